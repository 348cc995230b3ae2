"""A trained model with the ids and histories it needs. Raw ids in, raw ids out.

Shapes: B users of a batch, K places or items, V items; J items of a history, Q histories with one of them left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from warnings import warn

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.indexing import UNKNOWN, Index, Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.mapped import release
from unveil.data.slots import tokens_of
from unveil.errors import UnveilError, UnveilWarning
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.ranking import Scorer, checked_scores, evaluating, top_items
from unveil.files import atomic_folder
from unveil.models.base import Backbone, Model
from unveil.models.baselines import log_share
from unveil.serving.exposure import POPULARITY, ExposureTable, exposure_table, next_steps
from unveil.wording import quantity

if TYPE_CHECKING:
    from unveil.simulation.world import World
    from unveil.training.progress import Watcher


@dataclass(frozen=True, eq=False)
class Selection:
    """The k best allowed items, by score + shift; ties in the order of the vocabulary."""

    k: int
    allowed_V: Tensor | None = None  # True: may be recommended; None: all may
    shift_V: Tensor | None = None

    def __call__(self, scores_BV: Tensor, seen: Sequence[Index] = ()) -> tuple[Tensor, Tensor]:
        """top_BK without the items seen in each row, and their scores; `NOBODY` where no item is left."""
        if self.shift_V is not None:
            scores_BV = scores_BV + self.shift_V
        if self.allowed_V is not None:
            scores_BV = scores_BV.masked_fill(~self.allowed_V, -torch.inf)
        row_N = np.repeat(np.arange(len(seen)), [len(items) for items in seen])
        item_N = np.concatenate([np.zeros(0, np.int64), *seen])
        top_BK = top_items(scores_BV, self.k, (torch.from_numpy(row_N), torch.from_numpy(item_N)))
        return top_BK, scores_BV.gather(1, top_BK.clamp_min(0))

    def without_novelty(self) -> Self:
        """For scores that are popularity: the shift would cancel them."""
        return replace(self, shift_V=None)


def shift(count_V: NDArray[np.int64], novelty: float) -> Tensor:
    """−λ · log((count_i + 1) / (Σ_j count_j + V)): what novelty λ adds to each score.

    At 0 items are ranked by their probability after this history, p(i | h); at 1 by its lift over popularity,
    p(i | h) / p(i); in between, by p(i | h) / p(i)^λ. Below 0 popularity counts more than the model says.
    """
    if not -4 <= novelty <= 1:
        raise UnveilError("novelty is out of range", found=novelty, expected="between -4 and 1")
    return -novelty * log_share(torch.from_numpy(count_V))


#: Users, and scores, held at once: 16 MiB of scores.
ROWS, CELLS = 256, 2**22
_SAME_IDS = "Give ids as they are written in the log that the model was trained on."
SCHEMA = {"user_id": pl.String, "item_id": pl.String, "score": pl.Float32, "rank": pl.Int32}
_EMPTY = pl.DataFrame(schema=SCHEMA)


@dataclass(frozen=True)
class Recommendations:
    """A frame `user_id, item_id, score, rank`, best first, and the ids that are unknown."""

    frame: pl.DataFrame
    unknown_users: tuple[str, ...] = ()
    unknown_items: tuple[str, ...] = ()
    fallback_users: tuple[str, ...] = ()  # unknown users, whose recommendations are by popularity


@dataclass(frozen=True, eq=False)
class Recommender:
    """Top-k recommendations for known users, whose histories are `sequences`, or for given histories.

    `length`: tokens that the model reads. Ties are in the order of the vocabulary.
    """

    model: Scorer
    items: Vocabulary
    users: Vocabulary
    sequences: Sequences
    length: int
    exposure: ExposureTable | None = None  # of the propensity that it was trained with, where there was one

    @classmethod
    def fit(
        cls,
        log: Interactions,
        *,
        estimator: str = "naive",
        preset: str = "auto",
        overrides: Mapping[str, Any] | None = None,
        world: "World | None" = None,
        watch: "Watcher | None" = None,
    ) -> Self:
        """Train on a log without each user's last two interactions; the earlier of them decides when to stop and
        what is blended. The preset auto then fits the same on all interactions.

        `overrides` are settings by dotted name, such as `{"model.width": 64}`; `world` is where the log was drawn from.
        An `UnveilWarning` says where popularity has to stand in for exposure, or weights are degenerate.
        """
        from unveil.data.splits import leave_one_out
        from unveil.training.auto import suited
        from unveil.training.blend import choose
        from unveil.training.fit import learner, validation_of
        from unveil.training.recipe import Recipe, network_in
        from unveil.training.trainer import Trainer

        changes = {"estimator.name": estimator, **(overrides or {})}
        recipe = Recipe.preset(preset, network_in(changes)).changed(changes)
        split = leave_one_out(Sequences.of(log))
        recipe, _ = suited(recipe, split.train)
        known: dict[str, Any] = {"log": log, "world": None if world is None else world.aligned_with(log)}
        trainer, validation = learner(split.train, recipe, **known), validation_of(split, recipe)
        for warning in trainer.warnings() if isinstance(trainer, Trainer) else []:
            warn(warning, UnveilWarning, stacklevel=2)
        fitted = trainer.fit(validation, watch=watch)
        chosen = choose(trainer, split, recipe, validation)
        refit = recipe.training.refit
        model = chosen.again(split.whole, recipe, fitted, known, watch=watch) if refit else chosen.model
        exposure = exposure_table(trainer.propensity, split.whole, split.train)
        return cls(model, log.items, log.users, split.whole, model.config.length, exposure)

    def __repr__(self) -> str:
        model = getattr(self.model, "name", type(self.model).__name__)
        sizes = f"{quantity(len(self.users), 'user')}, {quantity(len(self.items), 'item')}"
        return f"Recommender({model}, {sizes}, {quantity(self.length, 'token')} a history)"

    def choice(
        self, k: int = 10, *, novelty: float = 0.0, candidates: Sequence[str] | None = None, exclude: Sequence[str] = ()
    ) -> Selection:
        """How to recommend: `candidates` are the only allowed items (None: all); unknown ids are skipped."""
        if not 1 <= k <= len(self.items):
            raise UnveilError("k is out of range", found=k, expected=f"between 1 and the {len(self.items):,} items")
        shift_V = shift(self.count_V, novelty) if novelty else None
        return Selection(k, self._allowed(candidates, exclude), shift_V)

    def recommend(
        self, users: Sequence[str] | None = None, k: int | Selection = 10, *, filter_seen: bool = True
    ) -> Recommendations:
        """The k best items for each of these users, by default all; k may be a `choice(10, exclude=["sold out"])`."""
        raw = pl.Series(self.users.ids if users is None else list(users), dtype=pl.String)
        index_B = self.users.index(raw)
        unknown = tuple(raw.filter(pl.Series(index_B == UNKNOWN)))
        if unknown and len(unknown) == len(raw):
            raise UnveilError("none of the users is known", found=unknown[0], hint="Give a history instead.")
        frames = self.batches(index_B[index_B != UNKNOWN], k, filter_seen=filter_seen)
        return Recommendations(pl.concat([_EMPTY, *frames]), unknown_users=unknown)

    def batches(self, user_B: Index, k: int | Selection = 10, *, filter_seen: bool = True) -> Iterator[pl.DataFrame]:
        """Recommendations for many users, by index, a frame at a time: memory does not grow with their number."""
        selection = self._chosen(k)
        for part in self.parts(len(user_B)):
            histories = [self.sequences.history(user) for user in user_B[part].tolist()]
            yield self._lists(self.users.raw(user_B[part]), histories, selection, filter_seen=filter_seen)
            release(self.sequences.storage.item_N)

    def recommend_for(
        self, histories: Sequence[Sequence[str]], k: int | Selection = 10, *, filter_seen: bool = True
    ) -> Recommendations:
        """The k best items after each history of raw item ids, oldest first; an empty history is a new user's.

        Unknown ids are skipped and reported. The user ids of the result are the positions of the histories, from 0.
        """
        selection, known, unknown = self._chosen(k), list[Index](), dict[str, None]()
        for place, history in enumerate(histories):
            index = self.items.index(list(history))
            known.append(index[index != UNKNOWN])
            unknown |= dict.fromkeys(raw for raw, v in zip(history, index, strict=True) if v == UNKNOWN)
            if len(history) and not len(known[-1]):
                where, found = f"history {place}" if len(histories) > 1 else None, ", ".join(history)
                raise UnveilError("no item of the history is known", where=where, found=found, hint=_SAME_IDS)
        names = pl.Series(range(len(known)), dtype=pl.Int64).cast(pl.String)
        parts = self.parts(len(known))
        frames = (self._lists(names[part], known[part], selection, filter_seen=filter_seen) for part in parts)
        return Recommendations(pl.concat([_EMPTY, *frames]), unknown_items=tuple(unknown))

    def with_histories(self, log: Interactions) -> Self:
        """The same model and popularity with the histories of another log; items that are unknown are skipped."""
        clicked, place_V = log.interacted(), self.items.index(log.items.ids)
        known = clicked.where(place_V[clicked.item] != UNKNOWN).compact()
        if not len(known):
            found = ", ".join(log.items.ids.head(5))
            raise UnveilError("no item of the histories is known", found=found, hint=_SAME_IDS)
        sequences = Sequences.of(known)
        item_N = self.items.index(known.items.ids)[sequences.item_N]
        sequences = replace(sequences, item_N=item_N, n_items=len(self.items))
        exposure = self.exposure and self.exposure.now()
        other = replace(self, users=known.users, sequences=sequences, exposure=exposure)
        vars(other)["count_V"] = self.count_V
        return other

    def popular(self, names: Sequence[str], k: int | Selection = 10) -> pl.DataFrame:
        """The same popular items for each name, for unknown users; novelty is ignored."""
        once = self._frame(pl.Series([""]), *self._chosen(k).without_novelty()(self.popularity_1V)).drop("user_id")
        users = pl.DataFrame({"user_id": list(names)}, schema={"user_id": pl.String})
        return users.join(once, how="cross")

    def effects(self, history: NDArray[Any], item_K: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """item_J and effect_JK[j, k] = log p(item k | history) − log p(item k | history without item j).

        An item is left out with all its occurrences; an older event takes its place where there is one.
        """
        item_J = np.unique(history[1 - self.length :] if self.length > 1 else history[:0])
        variants, shares = [history, *(history[history != item] for item in item_J)], list[Tensor]()
        index_K = torch.from_numpy(np.asarray(item_K, np.int64))
        for part in self.parts(len(variants)):
            scores_QV = self.scores(variants[part])
            shares.append(scores_QV[:, index_K] - scores_QV.logsumexp(dim=1, keepdim=True))  # log softmax
        share_QK = torch.cat(shares)
        return item_J, (share_QK[:1] - share_QK[1:]).numpy()

    def propensities(self, item_K: NDArray[Any], user: int = UNKNOWN) -> list[tuple[float, str]]:
        """The propensity of each item at the user's next step, and its source: popularity where it is unknown."""
        share_K, step = self.share_V[item_K].tolist(), None
        if self.exposure is None:
            return [(share, POPULARITY) for share in share_K]
        if user != UNKNOWN:
            step = int(next_steps(self.sequences, np.array([user]))[0])
        theta_K, source = self.exposure.at(step)[item_K].tolist(), self.exposure.source
        pairs = zip(theta_K, share_K, strict=True)
        return [(share, POPULARITY) if np.isnan(theta) else (theta, source) for theta, share in pairs]

    def reasons(self, history: NDArray[Any], item_K: NDArray[Any], count: int) -> list[list[tuple[int, float]]]:
        """The strongest effects on each item: (item of the history, effect)."""
        if not count or not len(history) or not len(item_K):
            return [[] for _ in item_K]
        item_J, effect_JK = self.effects(history, item_K)
        order_JK = np.argsort(-np.abs(effect_JK), axis=0, kind="stable")[:count]
        return [[(int(item_J[j]), float(effect_JK[j, k])) for j in order_JK[:, k]] for k in range(len(item_K))]

    def save(self, folder: Path | str, *, overwrite: bool = False) -> None:
        """Write a folder that `load` reads: weights, vocabularies, histories. Nothing in it is code."""
        from unveil.serving.model_files import write

        with atomic_folder(Path(folder), overwrite=overwrite) as draft:
            write(self, draft)

    @classmethod
    def load(cls, folder: Path | str, *, calibrated: bool = True, evaluated: bool = False) -> Self:
        """Read a saved recommender or a run folder, with its calibration on a slice if it has one; or, without one, the
        model that was evaluated, which has not seen the test events."""
        from unveil.serving.model_files import load

        return cls(**vars(load(Path(folder), calibrated=calibrated, evaluated=evaluated)))

    @cached_property
    def count_V(self) -> NDArray[np.int64]:
        return self.sequences.count_V

    @cached_property
    def share_V(self) -> NDArray[np.float64]:
        return np.asarray(self.count_V / max(1, int(self.count_V.sum())))

    @property
    def popularity_1V(self) -> Tensor:
        """Log popularity of each item, as the scores of one history."""
        return log_share(torch.from_numpy(self.count_V)).float()[None]

    def _chosen(self, k: int | Selection) -> Selection:
        return k if isinstance(k, Selection) else self.choice(k)

    def _allowed(self, candidates: Sequence[str] | None, exclude: Sequence[str]) -> Tensor | None:
        """Which items are allowed; None: all. It is an error if none is left."""
        if candidates is None and not exclude:
            return None
        allowed_V = torch.full((len(self.items),), candidates is None)
        for given, is_open in ((candidates or (), True), (exclude, False)):
            index = self.items.index(list(given))
            allowed_V[torch.from_numpy(index[index != UNKNOWN]).long()] = is_open
        if not bool(allowed_V.any()):
            raise UnveilError("no item is left to recommend", hint="Loosen the filters, or name more candidates.")
        return allowed_V

    def parts(self, rows: int) -> Iterator[slice]:
        """Slices of so many rows that few scores are held at once."""
        size = max(1, min(ROWS, CELLS // len(self.items)))
        return (slice(start, min(start + size, rows)) for start in range(0, rows, size))

    def scores(self, histories: Sequence[Index]) -> Tensor:
        token_BL = tokens_of(histories, len(self.items), self.length)
        with evaluating(self.model):
            return checked_scores(self.model, token_BL, len(self.items)).cpu()

    def _lists(
        self, names: pl.Series, histories: Sequence[Index], selection: Selection, *, filter_seen: bool
    ) -> pl.DataFrame:
        return self._frame(names, *selection(self.scores(histories), histories if filter_seen else ()))

    def _frame(self, names: pl.Series, top_BK: Tensor, score_BK: Tensor) -> pl.DataFrame:
        row_N, place_N = np.nonzero(top_BK.numpy() != NOBODY)
        item_N, score_N = (part_BK.numpy()[row_N, place_N] for part_BK in (top_BK, score_BK))
        columns = names.gather(row_N), self.items.raw(item_N), score_N, place_N + 1
        return pl.DataFrame(dict(zip(SCHEMA, columns, strict=True)), schema=SCHEMA)


def network_of(recommender: Recommender) -> Backbone:
    """Its network; other scorers have no vectors."""
    if not isinstance(recommender.model, Backbone):
        hint = "`unveil recommend -o FILE` writes its lists for all users; for a network alone, train with --no-blend."
        raise UnveilError("only networks have vectors of users and items", found=model_of(recommender).name, hint=hint)
    return recommender.model


def model_of(recommender: Recommender) -> Model:
    """Its network or baseline; other scorers are of no known form."""
    if not isinstance(recommender.model, Model):
        raise UnveilError("only a network or a baseline can be written", found=type(recommender.model).__name__)
    return recommender.model
