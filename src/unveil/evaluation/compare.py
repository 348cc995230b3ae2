"""Comparing models on the same cases: which is best, and is it significantly better than the next.

The family of tests is the whole table: every pair of models under every protocol, metric and k.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from unveil.errors import UnveilError
from unveil.evaluation.metrics import METRICS, metric
from unveil.evaluation.result import Evaluation, parts, per_user
from unveil.evaluation.stats import Test, holm, paired

FIGURE = ["protocol", "metric", "k"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """`table`: a row for each figure and model: mean, low, high, n, `place` (1 is best) and `significant`.

    A model is marked significant, the paper's asterisk, where it is best and its difference from the next best has a
    corrected p-value below `alpha`. `tests` has every pair: difference a − b, its interval, effect, p and p_holm.
    Both say of each figure whether `higher_is_better`.
    """

    table: pl.DataFrame
    tests: pl.DataFrame
    alpha: float


def compare(
    evaluations: Mapping[str, Evaluation], *, test: Test = "t", alpha: float = 0.05, seed: int = 0
) -> Comparison:
    """Paired tests per user between all evaluations, corrected by Holm's method over the whole table."""
    _refuse_unlike(evaluations)
    tests = _tests(evaluations, test, seed)
    return Comparison(_table(evaluations, tests, alpha), tests, alpha)


def higher_is_better(name: str) -> bool:
    """The direction of a metric; one that is not in the registry is taken to be better when higher."""
    return metric(name).higher_is_better if name in set(METRICS) else True


def _refuse_unlike(evaluations: Mapping[str, Evaluation]) -> None:
    if len(evaluations) < 2:
        raise UnveilError("nothing to compare with", found=f"{len(evaluations)} evaluation", expected="at least two")
    (first, reference), *others = evaluations.items()
    for name, evaluation in others:
        if evaluation.fingerprint != reference.fingerprint:
            raise UnveilError(
                "these were evaluated on different cases or negatives and cannot be compared",
                where=f"{first} and {name}",
                hint="Evaluate them on the same log with the same split, negatives and seed.",
            )


def _tests(evaluations: Mapping[str, Evaluation], test: Test, seed: int) -> pl.DataFrame:
    users = {name: per_user(evaluation.frame) for name, evaluation in evaluations.items()}
    shared = [c for c in next(iter(users.values())).columns[1:] if all(c in frame.columns for frame in users.values())]
    if not shared:
        raise UnveilError("no figure in common", hint="Evaluate with the same k and length of list.")
    rows = []
    for column in shared:
        for a, b in combinations(users, 2):
            result = paired(users[a][column].to_numpy(), users[b][column].to_numpy(), test=test, seed=seed)
            rows.append(dict(zip(FIGURE, parts(column), strict=True)) | {"a": a, "b": b} | vars(result))
    tests = _directed(pl.DataFrame(rows))
    return tests.with_columns(p_holm=pl.Series(holm(tests["p"].to_numpy())))


def _directed(frame: pl.DataFrame) -> pl.DataFrame:
    """With the direction of each row's metric."""
    direction = {name: higher_is_better(name) for name in frame["metric"].unique()}
    return frame.with_columns(higher_is_better=pl.col("metric").replace_strict(direction, return_dtype=pl.Boolean))


def _table(evaluations: Mapping[str, Evaluation], tests: pl.DataFrame, alpha: float) -> pl.DataFrame:
    summaries = [e.summary.with_columns(model=pl.lit(name)) for name, e in evaluations.items()]
    merit = pl.when("higher_is_better").then(-pl.col("mean")).otherwise(pl.col("mean"))
    table = _directed(pl.concat(summaries)).with_columns(place=merit.rank("min").over(FIGURE).cast(pl.Int64))
    return table.join(
        _winners(table, tests, alpha), on=[*FIGURE, "model"], how="left", maintain_order="left"
    ).with_columns(pl.col("significant").fill_null(value=False))


def _winners(table: pl.DataFrame, tests: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """The best model of each figure, where it is significantly better than the next best."""
    best = table.filter(pl.col("place") == 1).select(*FIGURE, "model")
    second = table.filter(pl.col("place") == 2).select(*FIGURE, next="model")
    both_ways = pl.concat([tests.select(*FIGURE, "p_holm", model=x, next=y) for x, y in (("a", "b"), ("b", "a"))])
    tested = best.join(second, on=FIGURE).join(both_ways, on=[*FIGURE, "model", "next"])
    # Several may share the second place: the best has to be better than each of them.
    sure = tested.group_by(*FIGURE, "model").agg(pl.col("p_holm").max()).filter(pl.col("p_holm") < alpha)
    return sure.select(*FIGURE, "model", significant=pl.lit(value=True))
