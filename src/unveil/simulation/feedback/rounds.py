"""The feedback loop: train, recommend, let users respond, and train on what they chose.

Who recommends is a network trained with an estimator, or a rule that learns next to nothing.
Shapes: R rounds of feedback, U users, K places, V items, N events, T steps, K factors.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save as as_bytes
from torch import Tensor, nn

from unveil.checksums import header, read_arrays
from unveil.data.indexing import Index
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.ranking import Scorer
from unveil.files import write_whole
from unveil.models.baselines import Random, fitted
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.factors import Factors
from unveil.simulation.feedback import figures
from unveil.simulation.feedback.figures import Lists, Record
from unveil.simulation.feedback.responses import Offer, Response, chosen
from unveil.simulation.world import World
from unveil.training.checkpoint import Checkpoint
from unveil.training.fit import new_model, prepare
from unveil.training.progress import Watcher
from unveil.training.recipe import AUTO, Recipe

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A scorer, and what its training says of itself."""

    scorer: Scorer
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def weights(self) -> dict[str, Tensor]:
        """What a file must hold to have the scorer again; nothing for a rule that the log alone decides."""
        scorer = self.scorer
        if isinstance(scorer, Random):
            return {"seed": torch.tensor([scorer.seed])}
        return dict(scorer.state_dict()) if isinstance(scorer, nn.Module) else {}


@dataclass(frozen=True, eq=False)
class Network:
    """A network with an estimator. It is trained on every event: one held out for validation would come a round late.

    Popularity stands in for exposure, in a world too: in the loop the recommender decides what is shown.
    """

    recipe: Recipe
    world: World | None = None
    watch: Watcher | None = None

    def __post_init__(self) -> None:
        name = str(self.recipe.propensity["name"])
        if name != AUTO and PROPENSITIES[name].source != "nothing":
            raise UnveilError(
                "in a loop the recommender decides what is shown: this propensity does not know it",
                where="propensity.name",
                found=name,
                expected="auto or one that is counted, such as popularity-static",
            )

    @property
    def length(self) -> int:
        """The number of tokens that the scorer is shown."""
        return self.recipe.model.length

    def learn(
        self, sequences: Sequences, seed: int, before: TrainedModel | None, epochs: int | None = None
    ) -> TrainedModel:
        """Train on whole histories: from scratch, or for some epochs from what was learnt `before`."""
        recipe = self.recipe.changed({"training.seed": seed} | ({} if before is None else self._further(epochs)))
        truth = self.world if estimator(str(recipe.estimator["name"])).needs == "truth" else None
        trainer = prepare(sequences, recipe, world=truth)
        if before is not None:
            trainer.model.load_state_dict(before.weights)
        fitted = trainer.fit(None, watch=self.watch)
        share = 1.0 if trainer.weights is None else trainer.weights.ess_share
        return TrainedModel(trainer.model, {"loss": fitted.epochs[-1].loss, "ess": share})

    def _further(self, epochs: int | None) -> dict[str, Any]:
        """A rate that was cut on the way stays cut; rates that fall to 0 rise once more, or nothing would be learnt."""
        training = self.recipe.training
        cut = training.schedule == "step" and training.epochs > training.step_epoch
        count = {} if epochs is None else {"training.epochs": epochs}
        return count | ({"training.step_epoch": 0} if cut else {})

    def recall(self, weights: Weights, sequences: Sequences) -> TrainedModel:
        """What was learnt on these histories, given what `TrainedModel.weights` was."""
        model = new_model(self.recipe, sequences.n_items)
        model.load_state_dict(dict(weights))
        return TrainedModel(model.eval())


@dataclass(frozen=True)
class Rule:
    """Learns next to nothing: the histories and the seed of the round give the scorer."""

    scorer: Callable[[Sequences, int], Scorer]
    length: int

    def learn(
        self, sequences: Sequences, seed: int, before: TrainedModel | None, epochs: int | None = None
    ) -> TrainedModel:
        return TrainedModel(self.scorer(sequences, seed))

    def recall(self, weights: Weights, sequences: Sequences) -> TrainedModel:
        return TrainedModel(self.scorer(sequences, int(weights["seed"]) if "seed" in weights else 0))


#: What most users chose, the loop at its narrowest; and any unseen item, the loop at its widest.
MOST_POPULAR = Rule(lambda sequences, _: fitted("popularity", sequences), length=2)
AT_RANDOM = Rule(lambda sequences, seed: Random(sequences.n_items, seed), length=100)
#: Rules by the name under which they stand beside estimators.
RULES: Mapping[str, Rule] = {"popularity": MOST_POPULAR, "random": AT_RANDOM}


Learner = Network | Rule

BASE, WORLD = "histories.safetensors", "world"
_ARRAYS = ("item_N", "step_N", "event_N", "offset_U1")
_TRAINING, _CHOICES = 1, 2  # keep two streams of random numbers apart


def grown(base: Sequences, chosen_RU: Index) -> Sequences:
    """Histories after R rounds: in round r, step T − 1 + r, user u chose `chosen_RU[r − 1, u]`, or `NOBODY`."""
    round_M, user_M = np.nonzero(chosen_RU != NOBODY)
    first_row = int(base.event_N.max(initial=-1)) + 1
    user_N = np.concatenate([base.user_N, user_M])
    order_N = np.argsort(user_N, kind="stable")  # the first log, then round by round
    columns: dict[str, tuple[Any, Any]] = {
        "item_N": (base.item_N, chosen_RU[round_M, user_M]),
        "step_N": (base.step_N, base.n_steps + round_M),
        "event_N": (base.event_N, first_row + np.arange(len(user_M))),
    }
    moved: dict[str, Any] = {n: np.concatenate(parts)[order_N].astype(np.int32) for n, parts in columns.items()}
    offset_U1 = base.offset_U1 + np.concatenate([[0], np.cumsum((chosen_RU != NOBODY).sum(0))])
    return replace(base, **moved, clock=None, offset_U1=offset_U1, n_steps=base.n_steps + len(chosen_RU))


def held(world: World, steps: int) -> World:
    """The same world with at least that many steps; those beyond T − 1 are like T − 1: no taste is invented."""
    missing = max(0, steps - world.n_steps)

    def longer(factors: Factors) -> Factors:
        return replace(factors, W_TK=np.concatenate([factors.W_TK, np.repeat(factors.W_TK[-1:], missing, axis=0)]))

    return replace(
        world, relevance_logits=longer(world.relevance_logits), exposure_logits=longer(world.exposure_logits)
    )


def relevance_digest(world: World) -> str:
    """A hash of the true relevance: all that the loop uses of a world."""
    factors = world.relevance_logits
    return sha256(b"".join(table.tobytes() for table in (factors.P_UK, factors.Q_VK, factors.W_TK))).hexdigest()


@dataclass(frozen=True)
class Retraining:
    """Every `every` rounds: from scratch (the paper's), or `warm` from the weights at hand, for `epochs` if given."""

    every: int = 1
    warm: bool = False
    epochs: int | None = None  # of a warm start; None: as many as from scratch

    @classmethod
    def parse(cls, text: str) -> Self:
        found = re.fullmatch(r"scratch|(warm)(?::([1-9]\d*))?|every:([1-9]\d*)", text)
        if found is None:
            expected = "scratch, warm, warm:EPOCHS or every:ROUNDS"
            raise UnveilError("no such way to retrain", where="retrain", found=text, expected=expected)
        warm, epochs, every = found.groups()
        return cls(int(every or 1), warm is not None, int(epochs) if epochs else None)

    def due(self, round: int) -> bool:
        return round % self.every == 0


@dataclass(frozen=True, eq=False)
class State:
    """A loop after a round: all that the next round needs, and the record of every round so far."""

    chosen_RU: Index
    lists: Lists
    learnt: TrainedModel
    records: tuple[Record, ...]

    @property
    def round(self) -> int:
        """The last round that is over."""
        return len(self.records) - 1


@dataclass(frozen=True, eq=False)
class Loop:
    """`rounds` rounds of feedback on a log; round r is what came of r of them.

    In round 0 a model is trained on the log and recommends `k` unseen items to every user. In each later round users
    respond to the last lists, and the model is trained on the grown log. Random draws do not depend on the model.
    """

    base: Sequences
    response: Response
    retraining: Retraining = field(default_factory=Retraining)
    rounds: int = 10
    k: int = 10
    seed: int = 0
    world: World | None = None  # aligned with the log, and held beyond its last step

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.base.n_items:
            expected = f"between 1 and the {self.base.n_items:,} items"
            raise UnveilError("k is out of range", found=self.k, expected=expected)
        if self.response.needs == "world" and self.world is None:
            hint = "Name the world that the log was drawn from (--world)."
            raise UnveilError(f"the response {self.response.name!r} needs a world, and there is none", hint=hint)

    @cached_property
    def first(self) -> figures.FirstLog:
        return figures.FirstLog.of(self.base)

    def go(self, learner: Learner, replicate: int = 0, state: State | None = None) -> Iterator[State]:
        """The state after each round, from round 0 or from where another call stopped."""
        while state is None or state.round < self.rounds:
            state = self._next(learner, replicate, state)
            yield state

    def kept(self, learner: Learner, replicate: int, path: Path) -> Iterator[State]:
        """The same; each state is saved in the file, and one that is there already is the first."""
        reached = load(path, self, learner) if path.exists() else None
        if reached is not None:
            yield reached
        for state in self.go(learner, replicate, reached):
            save(state, path)
            yield state

    def uniforms(self, replicate: int, round: int) -> NDArray[np.float64]:
        """One number a user: the same for every model."""
        return np.random.default_rng([self.seed, replicate, round, _CHOICES]).random(self.base.n_users)

    def training_seed(self, replicate: int, round: int) -> int:
        """Initial weights, batches and masks: the same for every model, others in every round and replicate."""
        return int(np.random.SeedSequence([self.seed, replicate, round, _TRAINING]).generate_state(1)[0])

    def _next(self, learner: Learner, replicate: int, last: State | None) -> State:
        chosen_RU, consumed = np.zeros((0, self.base.n_users), np.int32), Record()
        if last is not None:
            chosen_RU, consumed = self._respond(replicate, last)
        sequences, round = self.base if last is None else grown(self.base, chosen_RU), len(chosen_RU)
        if last is not None and not self.retraining.due(round):
            learnt = TrainedModel(last.learnt.scorer)
        else:
            warm = last.learnt if last is not None and self.retraining.warm else None
            seed, epochs = self.training_seed(replicate, round), None if warm is None else self.retraining.epochs
            learnt = learner.learn(sequences, seed, warm, epochs)
        lists = figures.recommended(learnt.scorer, sequences, learner.length, self.k)
        shown = figures.of_lists(lists, sequences, self.first) | self._truth(lists.top_UK, sequences)
        records = () if last is None else last.records
        return State(chosen_RU, lists, learnt, (*records, shown | consumed | dict(learnt.figures)))

    def _respond(self, replicate: int, last: State) -> tuple[Index, Record]:
        """What users chose in all rounds with one more, and the figures of that; at the step after the last."""
        before = grown(self.base, last.chosen_RU)
        offer = Offer(last.lists, before.count_V, self._relevance(last.lists.top_UK, before.n_steps))
        chosen_U = chosen(offer, self.response, self.uniforms(replicate, last.round + 1))
        found = figures.of_chosen(chosen_U, offer.count_V) | self._truth(chosen_U[:, None], before, "taken_")
        return np.concatenate([last.chosen_RU, chosen_U[None]]), found

    def _truth(self, item_UK: Index, before: Sequences, of: str = "") -> Record:
        """How relevant these items are, and how they stand among all that was not met before; None without a world."""
        filled_UK, gamma_UK = item_UK != NOBODY, self._relevance(item_UK, before.n_steps)
        if self.world is None or gamma_UK is None or not filled_UK.any():
            return {f"{of}relevance": None, f"{of}standing": None}
        found = {"relevance": gamma_UK, "standing": figures.standing(self.world, item_UK, before)}
        return {f"{of}{name}": float(value_UK[filled_UK].mean()) for name, value_UK in found.items()}

    def _relevance(self, item_UK: Index, step: int) -> NDArray[np.float64] | None:
        """γ of these items of every user at a step; 0 in empty places. None without a world."""
        if self.world is None:
            return None
        user_M, place_M = np.nonzero(item_UK != NOBODY)
        gamma_UK = np.zeros(item_UK.shape)
        step_M = np.full(len(user_M), step)
        gamma_UK[user_M, place_M] = self.world.relevance_of(user_M, item_UK[user_M, place_M], step_M)
        return gamma_UK


def state_path(folder: Path, model: str, replicate: int) -> Path:
    """The file that is written after every round of a model in a replicate, however many rounds there will be."""
    return folder / "states" / f"{model}-r{replicate}.safetensors"


def chosen_until(path: Path, rounds: int) -> Index:
    """What users chose in the first rounds, from the file."""
    return np.asarray(Checkpoint.load(path).tensors["loop/taken"].numpy()[:rounds])


def save(state: State, path: Path) -> None:
    """What users chose so far, the lists they have now, the weights behind them, and the records of all rounds."""
    arrays = {"taken": state.chosen_RU, "top": state.lists.top_UK, "score": state.lists.score_UK}
    tensors = {f"loop/{name}": torch.from_numpy(array) for name, array in arrays.items()}
    tensors |= {f"weights/{name}": tensor for name, tensor in state.learnt.weights.items()}
    Checkpoint(tensors, {"records": list(state.records)}).save(path)


def load(path: Path, loop: Loop, learner: Learner) -> State:
    """The state as it was saved; a rule is learnt again from the log of the round in which it last was."""
    checkpoint = Checkpoint.load(path)
    arrays = {name: tensor.numpy() for name, tensor in checkpoint.part("loop").items()}
    records = tuple(checkpoint.state["records"])
    last = max(round for round in range(len(records)) if loop.retraining.due(round))
    learnt = learner.recall(checkpoint.part("weights"), grown(loop.base, arrays["taken"][:last]))
    return State(arrays["taken"], Lists(arrays["top"], arrays["score"]), learnt, records)


def write_base(folder: Path, base: Sequences, world: World | None) -> None:
    """What all cells start from: the histories before any feedback, and the world in the log's own indices."""
    arrays = {name: np.ascontiguousarray(getattr(base, name)) for name in _ARRAYS}
    write_whole(folder / BASE, as_bytes(arrays, header(arrays, {"n_items": base.n_items, "n_steps": base.n_steps})))
    if world is not None and not (folder / WORLD).exists():
        world.save(folder / WORLD)


def read_base(folder: Path) -> tuple[Sequences, World | None]:
    """What `write_base` wrote."""
    arrays, about = read_arrays(folder / BASE)
    world = World.load(folder / WORLD) if (folder / WORLD).exists() else None
    return Sequences(clock=None, **arrays, **about), world


def grown_log(log: Interactions, chosen_RU: Index) -> Interactions:
    """The interactions of the log and of the loop by user and step; a round is a day after the log's last moment."""
    base = Sequences.of(log)
    after = grown(base, chosen_RU)
    time_N = None
    if log.time is not None:
        round_N = np.maximum(after.step_N.astype(np.int64) - base.n_steps + 1, 0)
        known_N = log.time[np.minimum(after.event_N, len(log) - 1)]
        time_N = np.where(round_N > 0, int(log.time.max()) + round_N * 86_400_000_000, known_N)
    return Interactions(after.user_N, after.item_N, log.users, log.items, time=time_N, step=after.step_N)
