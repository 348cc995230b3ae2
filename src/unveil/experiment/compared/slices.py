"""Who gains: accuracy by how popular the wanted item was, and by how long the history is. Shapes: C cases, V items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.evaluation.result import per_user
from unveil.evaluation.stats import bootstrap
from unveil.experiment.compared.runs import Judged

#: What is looked at, slice by slice.
COLUMN = "full:NDCG@10"
_THIRDS = ("least", "middle", "most")


@dataclass(frozen=True)
class Slice:
    """Some of the cases, and what each run makes of them: mean, low, high."""

    of: str
    name: str
    cases: int
    estimates: tuple[tuple[float, float, float], ...]


def slices(runs: Sequence[Judged], count_V: NDArray[np.int64]) -> list[Slice]:
    """Thirds of the cases by the training count of the target, and by the length of the history."""
    frame = runs[0].evaluation.frame
    told = {"training events of the target": count_V[frame["item"].to_numpy()], "events before it": frame["seen"]}
    return [each for of, value in told.items() for each in _thirds(runs, of, np.asarray(value)) if len(each.estimates)]


def _thirds(runs: Sequence[Judged], of: str, value_C: NDArray[np.int64]) -> list[Slice]:
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


def _estimate(run: Judged, in_C: NDArray[np.bool_]) -> tuple[float, float, float]:
    value_U1 = per_user(run.evaluation.frame.filter(pl.Series(in_C))).select(COLUMN).to_numpy()
    low, high = bootstrap(value_U1, np.random.default_rng(0), resamples=500)
    return float(value_U1.mean()), float(low[0]), float(high[0])
