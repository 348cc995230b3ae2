"""The feedback loop: train, recommend, let users respond, and train on what they took.

Shapes: R rounds of feedback, U users, K places, V items.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.simulation.feedback.figures import FirstLog, Record, counts, of_lists, of_taken
from unveil.simulation.feedback.growth import grown
from unveil.simulation.feedback.learners import Learner, Learnt
from unveil.simulation.feedback.lists import Lists, recommended
from unveil.simulation.feedback.responses import Offer, Response, taken
from unveil.simulation.feedback.retraining import Retraining
from unveil.simulation.feedback.standing import standing
from unveil.simulation.world import World

_TRAINING, _LUCK = 1, 2  # keep two streams of random numbers apart


@dataclass(frozen=True, eq=False)
class State:
    """A loop after a round: all that the next round needs, and the record of every round so far."""

    taken_RU: Index
    lists: Lists
    learnt: Learnt
    records: tuple[Record, ...]

    @property
    def round(self) -> int:
        """The last round that is over."""
        return len(self.records) - 1


@dataclass(frozen=True, eq=False)
class Loop:
    """`rounds` rounds of feedback on a log. Round r is what came of r rounds of feedback; in round 0 there was none.

    In round 0 a model is trained on the log and recommends `k` unseen items to every user. In each later round users
    respond to the lists of the round before, the log grows by what they took, the model is trained on the whole of it
    at once, and recommends anew. The luck of a user in a round depends on seed, replicate and round, not on the model.
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
    def first(self) -> FirstLog:
        """The log before any feedback."""
        return FirstLog.of(self.base)

    def go(self, learner: Learner, replicate: int = 0, state: State | None = None) -> Iterator[State]:
        """The state after each round, from round 0 or from where another call stopped."""
        while state is None or state.round < self.rounds:
            state = self._started(learner, replicate) if state is None else self._next(learner, replicate, state)
            yield state

    def offer(self, lists: Lists, sequences: Sequences) -> Offer:
        """The lists as users see them, at the step after the last."""
        return Offer(lists, counts(sequences), self._relevance(lists.top_UK, sequences.n_steps))

    def luck(self, replicate: int, round: int) -> NDArray[np.float64]:
        """One number a user: the same for every model."""
        return np.random.default_rng([self.seed, replicate, round, _LUCK]).random(self.base.n_users)

    def training_seed(self, replicate: int, round: int) -> int:
        """Initial weights, batches and masks: the same for every model, others in every round and replicate."""
        return int(np.random.SeedSequence([self.seed, replicate, round, _TRAINING]).generate_state(1)[0])

    def _started(self, learner: Learner, replicate: int) -> State:
        learnt = learner.learn(self.base, self.training_seed(replicate, 0), None)
        nothing_RU = np.zeros((0, self.base.n_users), np.int32)
        return self._judged(learner, learnt, nothing_RU, self.base, (), {})

    def _next(self, learner: Learner, replicate: int, state: State) -> State:
        round = state.round + 1
        before = grown(self.base, state.taken_RU)
        offer = self.offer(state.lists, before)
        taken_U = taken(offer, self.response, self.luck(replicate, round))
        taken_RU = np.concatenate([state.taken_RU, taken_U[None]])
        sequences = grown(self.base, taken_RU)
        consumed = of_taken(taken_U, offer.count_V) | self._truth(taken_U[:, None], before, "taken_")
        learnt = self._retrained(learner, replicate, round, sequences, state.learnt)
        return self._judged(learner, learnt, taken_RU, sequences, state.records, consumed)

    def _retrained(self, learner: Learner, replicate: int, round: int, sequences: Sequences, last: Learnt) -> Learnt:
        how = self.retraining
        if not how.due(round):
            return Learnt(last.scorer)
        return learner.learn(
            sequences,
            self.training_seed(replicate, round),
            last if how.warm else None,
            how.epochs if how.warm else None,
        )

    def _judged(
        self,
        learner: Learner,
        learnt: Learnt,
        taken_RU: Index,
        sequences: Sequences,
        records: tuple[Record, ...],
        consumed: Record,
    ) -> State:
        lists = recommended(learnt.scorer, sequences, learner.length, self.k)
        shown = of_lists(lists, sequences, self.first) | self._truth(lists.top_UK, sequences)
        record = shown | consumed | dict(learnt.figures)
        return State(taken_RU, lists, learnt, (*records, record))

    def _truth(self, item_UK: Index, before: Sequences, of: str = "") -> Record:
        """How relevant these items are, and how they stand among all that was not met before; None without a world."""
        gamma_UK = self._relevance(item_UK, before.n_steps)
        standing_UK = None if self.world is None else standing(self.world, item_UK, before)
        return {f"{of}relevance": _mean(gamma_UK, item_UK), f"{of}standing": _mean(standing_UK, item_UK)}

    def _relevance(self, item_UK: Index, step: int) -> NDArray[np.float64] | None:
        """γ of these items of every user at a step; 0 in empty places. None without a world."""
        if self.world is None:
            return None
        user_M, place_M = np.nonzero(item_UK != NOBODY)
        gamma_UK = np.zeros(item_UK.shape)
        step_M = np.full(len(user_M), step)
        gamma_UK[user_M, place_M] = self.world.relevance_of(user_M, item_UK[user_M, place_M], step_M)
        return gamma_UK


def _mean(value_UK: NDArray[np.float64] | None, item_UK: Index) -> float | None:
    """Over the places that hold an item."""
    if value_UK is None or not (item_UK != NOBODY).any():
        return None
    return float(value_UK[item_UK != NOBODY].mean())
