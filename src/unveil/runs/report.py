"""A report of finished runs: results by group, examples, calibration, novelty. Shapes: C cases, V items, K places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from unveil.data.indexing import UNKNOWN
from unveil.data.titles import named_items
from unveil.errors import UnveilError
from unveil.evaluation.calibration import Calibration, calibration
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.labelled import blocks, evaluate, reliability
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.protocols import Candidates, seen_cells
from unveil.evaluation.result import FIGURE, Comparison, Evaluation, compare, parts, per_user
from unveil.evaluation.statistics import bootstrap
from unveil.models.baselines import LessPopular, fitted
from unveil.runs.labelled import Seen, labelled_run
from unveil.runs.run_folder import NEGATIVES, Run, differing, read_split
from unveil.serving.model_files import read_dial
from unveil.serving.recommender import Recommender

Progress = Callable[[int, int], None]
LISTS = "lists"  # the protocol of list metrics
COLUMN = "full:NDCG@10"  # what is compared, group by group
_SHOWN = 8  # events of a history

TOP = 10  # places of a list
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # values of λ of the novelty setting
FIGURES = {
    "recall": ("Recall", "mean"),
    "recall_low": ("Recall", "low"),
    "recall_high": ("Recall", "high"),
    "ndcg": ("NDCG", "mean"),
    "coverage": ("Coverage", "mean"),
    "popularity": ("ARP", "mean"),
    "surprise": ("EFD", "mean"),  # bits
}
Point = dict[str, float]


def measure_dial(run: Path, points: Sequence[float] = POINTS) -> list[Point]:
    """Novelty against accuracy: scores less λ times the log of training popularity, on the test cases of a run."""
    split = read_split(run, (recommender := Recommender.load(run)).sequences)
    candidates = replace(Candidates.load(run / NEGATIVES, split.test, split.whole), negatives={})
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    evaluator = Evaluator(split.test, split.whole, candidates, count_V, recommender.length)
    top, found = min(TOP, len(recommender.items)), []
    for novelty in points:
        scorer = LessPopular(recommender.model.scores, torch.from_numpy(count_V), novelty)
        summary = evaluator.evaluate(scorer, (top,), top=top, resamples=200).summary
        rows = {row["metric"]: row for row in summary.iter_rows(named=True)}
        found.append({"novelty": novelty, **{name: rows[metric][end] for name, (metric, end) in FIGURES.items()}})
    return found


@dataclass(frozen=True)
class Slice:
    """Some of the cases, and what each run makes of them: mean, low, high."""

    of: str
    name: str
    cases: int
    estimates: tuple[tuple[float, float, float], ...]


def slices(runs: Sequence[Run], count_V: NDArray[np.int64]) -> list[Slice]:
    """Thirds of the cases by the training count of the target, and by the length of the history. Cases of one value
    stay together, so that thirds may be unequal."""
    frame = runs[0].evaluation.frame
    ways = {"training events of the target": count_V[frame["item"].to_numpy()], "length of the history": frame["seen"]}
    found = []
    for of, value in ways.items():
        value_C = np.asarray(value)
        edges = np.quantile(value_C, [1 / 3, 2 / 3], method="inverted_cdf")
        third_C = np.searchsorted(edges, value_C, side="left")
        for place in np.unique(third_C):
            in_C = third_C == place
            span = f"{('least', 'middle', 'most')[place]}: {value_C[in_C].min():,} to {value_C[in_C].max():,}"
            found.append(Slice(of, span, int(in_C.sum()), tuple(_estimate(run, in_C) for run in runs)))
    return found


def _estimate(run: Run, in_C: NDArray[np.bool_]) -> tuple[float, float, float]:
    value_U1 = per_user(run.evaluation.frame.filter(pl.Series(in_C))).select(COLUMN).to_numpy()
    low, high = bootstrap(value_U1, np.random.default_rng(0), resamples=500)
    return float(value_U1.mean()), float(low[0]), float(high[0])


@dataclass(frozen=True)
class Example:
    """One case: the user, why it is shown, the history, the target, and the recommendations of each run."""

    user: str
    why: str
    history: tuple[int, ...]  # the last few items, oldest first
    earlier: int  # how many came before them
    target: int
    barred: bool  # the target was met before, and lists leave out what was met
    ranks: tuple[int, ...]  # of the target among all items, run by run
    lists: tuple[tuple[int, ...], ...]


def examples(runs: Sequence[Run], recommender: Recommender, users: Sequence[str] = ()) -> list[Example]:
    """The users that were named; else three, by how much the lists of the runs differ, or how well the one run does."""
    user_C = runs[0].evaluation.frame["user"].to_numpy()
    picked = {_case_of(user, recommender, user_C): "requested" for user in users} or _picked(runs, recommender)
    return [_example(runs, recommender, case, why) for case, why in picked.items()]


def shared_C(runs: Sequence[Run]) -> NDArray[np.float64]:
    """How much of two runs' lists is the same: |A ∩ B| / K for each case, mean over pairs of runs."""
    pairs = [  # place by place, so that nothing larger than the lists is held
        sum((other_CK == item_C[:, None]).any(axis=1) & (item_C != NOBODY) for item_C in one_CK.T) / one_CK.shape[1]
        for one_CK, other_CK in combinations(map(_top_CK, runs), 2)
    ]
    return np.asarray(np.mean(pairs, axis=0))


def _top_CK(run: Run) -> NDArray[np.int32]:
    return np.asarray(run.evaluation.frame["top"].to_numpy(), np.int32)


def _picked(runs: Sequence[Run], recommender: Recommender) -> dict[int, str]:
    """The cases of the lowest, the median and the highest value, out of 20,000 that are drawn."""
    if len(runs) > 1:
        value_C = shared_C(runs)
        why = ("the lists differ most", "the lists differ as in the median case", "the lists differ least")
    else:
        value_C = -runs[0].evaluation.frame["full:rank"].to_numpy().astype(float)
        why = ("the target is ranked worst", "the target is ranked as in the median case", "the target is ranked best")
    among = np.random.default_rng(0).permutation(len(value_C))[:20_000]
    if runs[0].experiment.evaluation.exclude_seen:  # an item that was met before can stand in no list
        user, item, seen = (runs[0].evaluation.frame[name].to_numpy()[among] for name in ("user", "item", "seen"))
        row_N, seen_N = seen_cells(recommender.sequences, user, seen)
        listed = np.delete(among, row_N[seen_N == item[row_N]])
        among = listed if len(listed) else among
    order = among[np.argsort(value_C[among], kind="stable")]
    return dict(zip(order[[0, len(order) // 2, -1]].tolist(), why, strict=True))


def _case_of(user: str, recommender: Recommender, user_C: NDArray[np.int32]) -> int:
    index = int(recommender.users.index([user])[0])
    if index == UNKNOWN:
        hint = "Write users as in the log, separated by commas."
        raise UnveilError("no such user in the log", where="--users", found=user, hint=hint)
    cases = np.flatnonzero(user_C == index)
    if not len(cases):
        raise UnveilError("nothing of this user was held out", where="--users", found=user)
    return int(cases[-1])


def _example(runs: Sequence[Run], recommender: Recommender, case: int, why: str) -> Example:
    row = runs[0].evaluation.frame.row(case, named=True)
    history = recommender.sequences.history(int(row["user"]))[: row["seen"]].tolist()
    return Example(
        recommender.users[int(row["user"])],
        why,
        tuple(history[-_SHOWN:]),
        max(0, len(history) - _SHOWN),
        int(row["item"]),
        runs[0].experiment.evaluation.exclude_seen and row["item"] in history,
        tuple(int(run.evaluation.frame["full:rank"][case]) for run in runs),
        tuple(tuple(item for item in _top_CK(run)[case].tolist() if item != NOBODY) for run in runs),
    )


@dataclass(eq=False)
class ComparedRuns:
    """Evaluations on the same cases by the name of the run, and the tests between them; None: one run alone."""

    evaluations: Mapping[str, Evaluation]
    comparison: Comparison | None

    @property
    def names(self) -> list[str]:
        return list(self.evaluations)

    @property
    def protocols(self) -> list[str]:
        """Full ranking first; list metrics have no target and are apart."""
        found = next(iter(self.evaluations.values())).summary["protocol"].unique(maintain_order=True).to_list()
        return [name for name in found if name != LISTS]

    def row(self, run: str, protocol: str, name: str) -> dict[str, Any]:
        wanted = dict(zip(FIGURE, parts(f"{protocol}:{name}"), strict=True))
        return self.evaluations[run].summary.filter(**wanted).row(0, named=True)

    def order(self, protocol: str) -> list[str]:
        return sorted(self.names, key=lambda name: -self.row(name, protocol, "NDCG@10")["mean"])

    def p(self, protocol: str) -> float:
        """Corrected, of the difference in NDCG@10 between the first two."""
        assert self.comparison is not None
        first = self.order(protocol)[:2]
        pair = pl.col("a").is_in(first) & pl.col("b").is_in(first)
        return float(self.comparison.tests.filter(pair, protocol=protocol, metric="NDCG", k=10)["p_holm"][0])


@dataclass(frozen=True)
class ReportOptions:
    """Titles of items, users whose recommendations are shown, whether to measure the dial, level of the tests."""

    titles: Path | None = None
    title_ids: Path | None = None
    users: Sequence[str] = ()
    dial: bool = True
    alpha: float = 0.05
    test: str | None = None  # a labelled test, and how it is read
    candidates: Path | None = None
    seen: Seen = "error"


class LabelledReport(ComparedRuns):
    """Runs, and the popularity baseline, on a test that is not held out of the log."""

    def __init__(self, runs: Sequence[Run], options: ReportOptions) -> None:
        how: dict[str, Any] = {"candidates": options.candidates, "seen": options.seen}
        scored = {run.name: labelled_run(run.folder, options.test, **how) for run in runs}
        first, evaluations = scored[runs[0].name], {name: evaluate(*each) for name, each in scored.items()}
        evaluations["popularity baseline"] = evaluate(fitted("popularity", first[1]), *first[1:])
        super().__init__(evaluations, compare(evaluations, alpha=options.alpha))
        self.source, self.test = options.test, first[2]
        self.curves = {name: reliability(blocks(*each)) for name, each in scored.items()}


class Report(ComparedRuns):
    """Runs that were evaluated on the same cases. Their models are evaluated where their files do not say enough."""

    def __init__(self, runs: Sequence[Run], options: ReportOptions | None = None, progress: Progress | None = None):
        options, evaluations = options or ReportOptions(), {run.name: run.evaluation for run in runs}
        several = len(runs) > 1
        self.labelled = LabelledReport(runs, options) if options.test is not None else None
        super().__init__(evaluations, compare(evaluations, alpha=options.alpha) if several else None)
        recommender, split = runs[0].model()
        self.runs, self.differing = runs, differing(runs)
        self.count_V = split.train.count_V
        self.ids = recommender.items.ids.to_list()
        self.titles = named_items(recommender.items, options.titles, options.title_ids)
        self.examples = examples(runs, recommender, options.users)
        self.slices = slices(runs, self.count_V)
        self.shared = float(shared_C(runs).mean()) if several else None  # of the lists of two runs, mean over pairs
        self.calibrations: dict[str, Calibration] = {}
        self.dials: dict[str, list[Point]] = {}  # without points where the novelty setting was not measured
        for done, run in enumerate(runs, 1):
            recommender, split = run.model()
            scored, exclude_seen = (recommender.model, split.test, split.whole), run.experiment.evaluation.exclude_seen
            self.calibrations[run.name] = calibration(*scored, recommender.length, exclude_seen=exclude_seen)
            self.dials[run.name] = _dial(run.folder) if options.dial else []
            if progress is not None:
                progress(done, len(runs))


def _dial(folder: Path) -> list[Point]:
    points = read_dial(folder)
    return points if points and all(point.keys() >= {"novelty", *FIGURES} for point in points) else measure_dial(folder)
