"""A report of finished runs: results by group, examples, calibration, novelty. Shapes: C cases, V items, K places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.titles import named_items
from unveil.data.vocabulary import UNKNOWN
from unveil.errors import UnveilError
from unveil.evaluation.calibration import Calibration, calibration
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.protocols import seen_cells
from unveil.evaluation.result import Comparison, Evaluation, compare, per_user
from unveil.evaluation.statistics import bootstrap
from unveil.runs import dial
from unveil.runs.run_folder import Run, differing
from unveil.serving.model_files import read_dial
from unveil.serving.recommender import Recommender

Progress = Callable[[int, int], None]
#: The protocol of list metrics.
LISTS = "lists"
#: What is compared, group by group.
COLUMN = "full:NDCG@10"
_THIRDS = ("least", "middle", "most")


@dataclass(frozen=True)
class Slice:
    """Some of the cases, and what each run makes of them: mean, low, high."""

    of: str
    name: str
    cases: int
    estimates: tuple[tuple[float, float, float], ...]


def slices(runs: Sequence[Run], count_V: NDArray[np.int64]) -> list[Slice]:
    """Thirds of the cases by the training count of the target, and by the length of the history."""
    frame = runs[0].evaluation.frame
    told = {"training events of the target": count_V[frame["item"].to_numpy()], "events before it": frame["seen"]}
    return [each for of, value in told.items() for each in _thirds(runs, of, np.asarray(value)) if len(each.estimates)]


def _thirds(runs: Sequence[Run], of: str, value_C: NDArray[np.int64]) -> list[Slice]:
    """Cases of one value stay together, so that thirds may be unequal; slices that would be empty are left out."""
    edges = np.quantile(value_C, [1 / 3, 2 / 3], method="inverted_cdf")
    third_C = np.searchsorted(edges, value_C, side="left")
    found = []
    for place, name in enumerate(_THIRDS):
        in_C = third_C == place
        if in_C.any():
            span = f"{name}: {value_C[in_C].min():,} to {value_C[in_C].max():,}"
            found.append(Slice(of, span, int(in_C.sum()), tuple(_estimate(run, in_C) for run in runs)))
    return found


def _estimate(run: Run, in_C: NDArray[np.bool_]) -> tuple[float, float, float]:
    value_U1 = per_user(run.evaluation.frame.filter(pl.Series(in_C))).select(COLUMN).to_numpy()
    low, high = bootstrap(value_U1, np.random.default_rng(0), resamples=500)
    return float(value_U1.mean()), float(low[0]), float(high[0])


#: Events of a history that are shown.
_SHOWN = 8
#: Cases that users are picked from.
_LOOKED_AT = 20_000


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
    frame = runs[0].evaluation.frame
    if users:
        picked = {_case_of(user, recommender, frame["user"].to_numpy()): "requested" for user in users}
    else:
        picked = _picked(runs, recommender)
    return [_example(runs, recommender, case, why) for case, why in picked.items()]


def shared_C(runs: Sequence[Run]) -> NDArray[np.float64]:
    """How much of two runs' lists is the same: |A ∩ B| / K for each case, mean over pairs of runs."""
    lists = [_lists(run) for run in runs]
    pairs = [_overlap(one_CK, other_CK) for one_CK, other_CK in combinations(lists, 2)]
    return np.asarray(np.mean(pairs, axis=0))


def _overlap(one_CK: NDArray[np.int32], other_CK: NDArray[np.int32]) -> NDArray[np.float64]:
    """Place by place, so that nothing larger than the lists is held."""
    found_C = np.zeros(len(one_CK))
    for item_C in one_CK.T:
        found_C += (other_CK == item_C[:, None]).any(axis=1) & (item_C != NOBODY)
    share_C: NDArray[np.float64] = found_C / one_CK.shape[1]
    return share_C


def _picked(runs: Sequence[Run], recommender: Recommender) -> dict[int, str]:
    """Three cases whose target may be listed, where there are any; of a large log, out of some that are drawn."""
    if len(runs) > 1:
        value_C = shared_C(runs)
        why = ("the lists differ most", "the lists differ as in the median case", "the lists differ least")
    else:
        value_C = -runs[0].evaluation.frame["full:rank"].to_numpy().astype(float)
        why = ("the target is ranked worst", "the target is ranked as in the median case", "the target is ranked best")
    drawn = np.random.default_rng(0).permutation(len(value_C))[:_LOOKED_AT]
    listed = drawn[~_barred(runs[0], recommender, drawn)]
    return dict(zip(_spread(value_C, listed if len(listed) else drawn), why, strict=True))


def _barred(run: Run, recommender: Recommender, cases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these cases ask for an item that can stand in no list, since it was met before."""
    barred = np.zeros(len(cases), np.bool_)
    if run.experiment.evaluation.exclude_seen:
        user, item, seen = (run.evaluation.frame[name].to_numpy()[cases] for name in ("user", "item", "seen"))
        row_N, seen_N = seen_cells(recommender.sequences, user, seen)
        barred[row_N[seen_N == item[row_N]]] = True
    return barred


def _spread(value_C: NDArray[np.float64], among: NDArray[np.int64]) -> list[int]:
    """The cases of the lowest, the median and the highest value; of equal ones the first."""
    order = among[np.argsort(value_C[among], kind="stable")]
    return [int(order[place]) for place in (0, len(order) // 2, -1)]


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
        tuple(tuple(item for item in _lists(run)[case].tolist() if item != NOBODY) for run in runs),
    )


def _lists(run: Run) -> NDArray[np.int32]:
    """top_CK."""
    return np.asarray(run.evaluation.frame["top"].to_numpy(), np.int32)


@dataclass(frozen=True)
class Measured:
    """Of one run, on its test cases; no dial where it was not requested."""

    calibration: Calibration
    dial: Sequence[dial.Point]


def measured(run: Run, *, with_dial: bool) -> Measured:
    """Evaluate the model once more. A dial that was measured before is read from the run's folder."""
    recommender, split = run.model()
    exclude_seen = run.experiment.evaluation.exclude_seen
    found = calibration(recommender.model, split.test, split.whole, recommender.length, exclude_seen=exclude_seen)
    points = read_dial(run.folder) if with_dial else []
    if with_dial and not (points and all(set(point) >= dial.FIGURES for point in points)):
        points = dial.measured(run.folder)
    return Measured(found, points)


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Evaluations on the same cases by the name of the run, and the tests between them; None: one run alone."""

    evaluations: Mapping[str, Evaluation]
    comparison: Comparison | None

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return list(self.evaluations)

    @property
    def protocols(self) -> list[str]:
        """Full ranking first; list metrics have no target and are apart."""
        found = next(iter(self.evaluations.values())).summary["protocol"].unique(maintain_order=True).to_list()
        return [name for name in found if name != LISTS]

    def row(self, run: str, protocol: str, name: str) -> dict[str, Any]:
        """One row of a run's summary, by a label such as NDCG@10."""
        metric, _, k = name.partition("@")
        wanted = (pl.col("protocol") == protocol) & (pl.col("metric") == metric) & (pl.col("k") == int(k or 0))
        return self.evaluations[run].summary.filter(wanted).row(0, named=True)

    def order(self, protocol: str) -> list[str]:
        """The runs, best NDCG@10 first."""
        return sorted(self.names, key=lambda name: -self.row(name, protocol, "NDCG@10")["mean"])


@dataclass(frozen=True, eq=False)
class Report(ComparedRuns):
    """Runs that were evaluated on the same cases."""

    runs: Sequence[Run]
    measured: Mapping[str, Measured]
    slices: Sequence[Slice]
    differing: Mapping[str, Sequence[Any]]
    examples: Sequence[Example]
    shared: float | None  # of the recommendations of two runs, mean over cases and pairs
    titles: Sequence[str]
    ids: Sequence[str]
    count_V: NDArray[np.int64]  # training interactions of each item


@dataclass(frozen=True)
class ReportOptions:
    """Titles of items, users whose recommendations are shown, whether to measure the dial, level of the tests."""

    titles: Path | None = None
    title_ids: Path | None = None
    users: Sequence[str] = ()
    dial: bool = True
    alpha: float = 0.05


def report(runs: Sequence[Run], options: ReportOptions | None = None, progress: Progress | None = None) -> Report:
    """Compare the runs, and evaluate their models where their files do not say enough."""
    options = options or ReportOptions()
    recommender, split = runs[0].model()
    titles = named_items(recommender.items, options.titles, options.title_ids)
    shown = examples(runs, recommender, options.users)
    found = {}
    for done, run in enumerate(runs, 1):
        found[run.name] = measured(run, with_dial=options.dial)
        if progress is not None:
            progress(done, len(runs))
    several = len(runs) > 1
    evaluations = {run.name: run.evaluation for run in runs}
    return Report(
        evaluations,
        compare(evaluations, alpha=options.alpha) if several else None,
        runs,
        found,
        slices(runs, split.train.count_V),
        differing(runs),
        shown,
        float(shared_C(runs).mean()) if several else None,
        titles,
        recommender.items.ids.to_list(),
        split.train.count_V,
    )
