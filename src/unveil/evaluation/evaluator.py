"""Evaluator: cases and their candidates in, any scorer's results out, in one pass; and the ground truth of a world.
Shapes: B cases of a batch, C cases, K places, L tokens, N negatives, V items."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.indexing import gathered
from unveil.data.interactions import Sequences
from unveil.data.slots import Slots, histories
from unveil.data.splits import EvalCases, Split
from unveil.errors import UnveilError
from unveil.evaluation.metrics import CatalogueMetric, ListMetric, RankMetric, TruthMetric, metric, metrics_of
from unveil.evaluation.protocols import FULL, Candidates, case_fingerprint, no_cells, seen_cells
from unveil.evaluation.ranking import Scorer, checked_scores, evaluating, rank_among, rank_among_all, top_items
from unveil.evaluation.result import Evaluation, column
from unveil.propensity.factors import Indices
from unveil.propensity.known import TrueWorld


class Sharing(Protocol):
    """Each batch of cases is evaluated by one process, as a single one would: results are the same to the bit."""

    def evaluates(self, nth: int) -> bool:
        """Whether this process evaluates the n-th batch of cases."""

    def sum_columns(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Sum columns over the processes, in place: each has zeros where another evaluated."""


#: Scores held at once: 16 MiB. Large catalogues are evaluated in smaller batches.
CELLS = 2**22

Columns = dict[str, NDArray[Any]]
#: value_B of the cases `case_B`, from scores_BV and top_BK, for those who know more than the log (a world knows γ).
CaseMetric = Callable[[NDArray[np.int64], Tensor, Tensor], Tensor]
#: shift_BV that is added to scores before they are ranked, at each case's own user and step.
Shift = Callable[[Slots], Tensor]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Ranks each target under every protocol at once, and lists what would be recommended in its place.

    `sequences` are the histories that the cases' contexts lie in, `count_V` the items' training counts, `length` the
    number of tokens a scorer is shown. Results do not depend on the size of the batches or on `bucket`, which puts
    histories of similar length together. With `sharing`, processes evaluate some batches each, and have all results.
    """

    cases: EvalCases
    sequences: Sequences
    candidates: Candidates
    count_V: NDArray[Any]
    length: int
    batch_size: int = 256
    bucket: bool = True
    device: str = "cpu"
    case_metrics: Mapping[str, CaseMetric] = field(default_factory=dict)  # column such as "truth:Regret@10" → metric
    sharing: Sharing | None = None  # None: this process evaluates all
    shift: Shift | None = None  # None: scores are ranked as they are

    def __post_init__(self) -> None:
        if not len(self.cases):
            raise UnveilError("there is nothing to evaluate on: no cases", hint="Use a longer log, or another split.")
        if self.candidates.cases != case_fingerprint(self.cases, self.sequences.n_items):
            raise UnveilError("the candidates were drawn for other cases", hint="Draw them for the cases at hand.")

    @classmethod
    def of(
        cls,
        cases: EvalCases,
        sequences: Sequences,
        train: Sequences,
        *,
        length: int,
        uniform: int = 100,
        popular: int = 100,
        exclude_seen: bool = True,
        seed: int = 0,
        sharing: Sharing | None = None,
    ) -> Self:
        numbers, count_V = {"uniform": uniform, "popular": popular, "seed": seed}, train.count_V
        candidates = Candidates.draw(cases, sequences, count_V, **numbers, exclude_seen=exclude_seen)
        return cls(cases, sequences, candidates, count_V, length, sharing=sharing)

    def evaluate(
        self,
        scorer: Scorer,
        k: Sequence[int] = (5, 10),
        *,
        top: int = 10,
        resamples: int = 1000,
        seed: int = 0,
        progress: Callable[[int], object] | None = None,
    ) -> Evaluation:
        """Every protocol and metric: of the target's rank at each k, of lists with `top` places. `progress` is called
        with the number of cases done after each batch."""
        n_items, cases = self.sequences.n_items, self.cases
        if wrong := [places for places in (*k, top) if not 1 <= places <= n_items]:
            expected = f"between 1 and the {n_items} items of the catalogue"
            raise UnveilError("k is out of range", found=wrong[0], expected=expected)
        columns = self._columns(scorer, self.candidates.protocols, top, progress)
        top_CK = columns.pop("top")
        values = {"user": cases.user_C, "item": cases.item_C, "step": cases.step_C, "seen": cases.seen_C, "top": top_CK}
        for protocol in self.candidates.protocols:
            rank_C = values[f"{protocol}:rank"] = columns[f"{protocol}:rank"]
            values |= {f"{protocol}:{m.name}@{at}": m(rank_C, at) for m in metrics_of(RankMetric) for at in k}
        values |= {f"lists:{m.name}@{top}": m(top_CK, self.count_V) for m in metrics_of(ListMetric)}
        frame = pl.DataFrame(values)
        frame = frame.with_columns(pl.Series(name, columns[name], pl.Float64) for name in self.case_metrics)
        lists = {f"lists:{m.name}@{top}": m(top_CK, n_items) for m in metrics_of(CatalogueMetric)}
        return Evaluation.of(frame, lists, self.candidates.fingerprint(), resamples=resamples, seed=seed)

    def ranks(self, scorer: Scorer, protocol: str = FULL) -> NDArray[np.int64]:
        """rank_C of the targets under one protocol and nothing else: what validation during training needs."""
        return self._columns(scorer, (protocol,), 0, None)[f"{protocol}:rank"]

    def _columns(
        self, scorer: Scorer, protocols: Sequence[str], top: int, progress: Callable[[int], object] | None
    ) -> Columns:
        """All columns that need scores, filled in batch by batch; allocated first, not to fragment the memory."""
        columns: Columns = {f"{protocol}:rank": np.zeros(len(self.cases), np.int64) for protocol in protocols}
        if top:
            columns |= {name: np.zeros(len(self.cases)) for name in self.case_metrics}
            columns["top"] = np.zeros((len(self.cases), top), np.int32)
        done = 0
        with evaluating(scorer):
            for nth, case_B in enumerate(self._batches()):
                if self.sharing is None or self.sharing.evaluates(nth):
                    for name, value_B in self._batch(scorer, case_B, protocols, top).items():
                        columns[name][case_B] = value_B.cpu().numpy()
                done += len(case_B)
                if progress:
                    progress(done)
        if self.sharing is not None:
            self.sharing.sum_columns(columns)
        return columns

    def _batches(self) -> Iterator[NDArray[np.int64]]:
        length_C = np.minimum(self.cases.seen_C, self.length)
        order_C = np.argsort(length_C, kind="stable") if self.bucket else np.arange(len(self.cases))
        size = max(1, min(self.batch_size, CELLS // self.sequences.n_items))
        return (order_C[start : start + size] for start in range(0, len(order_C), size))

    def _batch(
        self, scorer: Scorer, case_B: NDArray[np.int64], protocols: Sequence[str], top: int
    ) -> dict[str, Tensor]:
        user_B, seen_B = self.cases.user_C[case_B], self.cases.seen_C[case_B]
        token_BL = histories(self.sequences, user_B, seen_B, self.length).to(self.device)
        scores_BV = checked_scores(scorer, token_BL, self.sequences.n_items)
        if self.shift is not None:
            some = self.cases.some(case_B)
            columns = (some.user_C, some.item_C, some.step_C, *([] if some.event_C is None else [some.event_C]))
            scores_BV = scores_BV + self.shift(Slots(*map(self._tensor, columns))).to(scores_BV.device)
        cells = seen_cells(self.sequences, user_B, seen_B) if self.candidates.exclude_seen else no_cells()
        barred = self._tensor(cells[0]), self._tensor(cells[1])
        item_B, negatives = self._tensor(self.cases.item_C[case_B]), self.candidates.negatives
        found = {
            f"{name}:rank": rank_among_all(scores_BV, item_B, barred)
            if name == FULL
            else rank_among(scores_BV, item_B, self._tensor(gathered(negatives[name], case_B)))
            for name in protocols
        }
        if top:
            found["top"] = top_items(scores_BV, top, barred)
            found |= {name: value(case_B, scores_BV, found["top"]) for name, value in self.case_metrics.items()}
        return found

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)


@dataclass(frozen=True, eq=False)
class ValidationEvaluator:
    """A number for each scorer, to stop training or choose settings by: higher is better.

    No test case can be reached from here: histories end with the last validation context. Of a packed log they are a
    part of one file; a tuner is given them apart (`Sequences.copied`).
    """

    evaluator: Evaluator
    metric: RankMetric
    k: int = 10
    protocol: str = FULL
    of_interactions: bool = True  # targets are logged interactions; else the ground truth of a world

    @classmethod
    def of(
        cls,
        split: Split,
        *,
        length: int,
        monitor: str = "NDCG@10",
        protocol: str = FULL,
        negatives: Mapping[str, int] | None = None,
        exclude_seen: bool = True,
        seed: int = 0,
    ) -> Self:
        """The validation part of a split. `protocol` names the ranking that counts: full, uniform-N or popular-N.
        `negatives`: how many of each kind are drawn, if more than those that the protocol needs."""
        name, _, k = monitor.partition("@")
        if not k.isdecimal() or not int(k):
            expected = "a metric at a number of places, e.g. NDCG@10"
            raise UnveilError("no such figure", where="training.monitor", found=monitor, expected=expected)
        kind, _, count = protocol.partition("-")
        negatives = negatives or {each: int(count) if each == kind else 0 for each in ("uniform", "popular")}
        # Histories end after each user's last validation context, or after training where there is none.
        stop_U = split.train.length_U.copy()
        np.maximum.at(stop_U, split.valid.user_C, split.valid.seen_C)
        sequences = split.whole.cut(np.zeros_like(stop_U), stop_U)
        drawn: dict[str, Any] = {**negatives, "exclude_seen": exclude_seen, "seed": seed}
        evaluator = Evaluator.of(split.valid, sequences, split.train, length=length, **drawn)
        chosen = metric(name)
        if not isinstance(chosen, RankMetric):
            raise UnveilError("not a metric of the target's rank", found=name, expected="NDCG, Recall or MRR")
        if protocol not in evaluator.candidates.protocols:
            raise UnveilError("no such protocol", found=protocol, expected="full, uniform-N or popular-N")
        return cls(evaluator, chosen, int(k), protocol)

    def explained_by(self, shift: Shift) -> Self:
        """Interactions ranked by what an estimator expects, scores + shift; the ground truth by scores alone.

        Interactions are no measure of f where training assumes P(interaction) ∝ exp(f + shift): the better f separates
        relevance from exposure, the worse it predicts, by itself, what exposure let users choose.
        """
        return replace(self, evaluator=replace(self.evaluator, shift=shift)) if self.of_interactions else self

    def __call__(self, scorer: Scorer) -> float:
        value_C = self.metric(self.evaluator.ranks(scorer, self.protocol), self.k)
        user_C = self.evaluator.cases.user_C
        cases_U = np.bincount(user_C)
        return float((np.bincount(user_C, weights=value_C)[cases_U > 0] / cases_U[cases_U > 0]).mean())


#: The protocol of a world, whose true relevance is known, over all its items. For those that occur in a log (the
#: paper's observed catalogue), narrow both alike: `log = log.compact(); world = world.aligned_with(log)`.
TRUTH = "truth"


def true_relevance_metrics(world: TrueWorld, cases: EvalCases, k: int) -> dict[str, CaseMetric]:
    """Every metric of true relevance at each case's own user and step, by the name of its column."""

    def at(metric: TruthMetric, case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        gamma_BV = world.relevance(cases.user_C[case_B], cases.step_C[case_B])
        return torch.from_numpy(metric(gamma_BV, scores_BV.cpu().numpy(), top_BK.cpu().numpy()))

    metrics = metrics_of(TruthMetric)
    return {column(TRUTH, each.name, k if each.of_lists else 0): partial(at, each) for each in metrics}


def favourites_of(world: TrueWorld, user_N: Indices, step_N: Indices) -> NDArray[np.int64]:
    """argmax_i γ_sit at each of these users and steps, block by block."""
    parts = [slice(start, start + 1024) for start in range(0, len(user_N), 1024)]
    best = [world.ideal_target(user_N[part], step_N[part]) for part in parts]
    return np.concatenate([np.zeros(0, np.int64), *best])


def true_cases(world: TrueWorld, cases: EvalCases) -> EvalCases:
    """The paper's evaluation on true relevance: the target is the item of highest γ at the case's user and step."""
    best_C = favourites_of(world, cases.user_C, cases.step_C)
    return replace(cases, item_C=best_C.astype(cases.item_C.dtype))
