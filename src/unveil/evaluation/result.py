"""Evaluation: what came out, case by case and in summary; written, read, and compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from unveil.checksums import check_file, check_seal, sealed
from unveil.errors import UnveilError
from unveil.evaluation.metrics import higher_is_better
from unveil.evaluation.statistics import bootstrap, holm, paired
from unveil.files import write_json, write_whole

_AGAIN = "Write it anew: unveil evaluate on this folder."
CASES, METRICS = "cases.parquet", "metrics.json"
_HEADLINE = ("NDCG", 10)  # what baselines are compared by

#: What every figure stands on; written beside the figures.
RULES = {
    "ties": "against the target: its rank is 1 plus the candidates that score at least as high",
    "mean": "over users; a user with several cases counts once, with the average of them",
    "interval": "95%, percentile bootstrap over users; not the spread between training runs",
}

FIGURE = ["protocol", "metric", "k"]
SUMMARY: dict[str, type[pl.DataType]] = {"protocol": pl.String, "metric": pl.String, "k": pl.Int64}
SUMMARY |= dict.fromkeys(("mean", "low", "high"), pl.Float64) | {"n": pl.Int64}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of one scorer on one set of cases.

    `frame` has a row for each case: user, item, step, seen, the list `top`, and then under `protocol:metric@k` each
    value, with `protocol:rank` beside them; a metric that looks at all items has no k and goes by its name alone.
    `summary` has a row for each (protocol, metric, k), with 0 for no k: the mean over n users and its interval;
    metrics of all lists together have no interval.
    """

    frame: pl.DataFrame
    summary: pl.DataFrame
    fingerprint: str  # of cases and negatives: what must agree before two evaluations are compared
    baselines: Mapping[str, "Beside"] = field(default_factory=dict)  # by name, on the same cases
    skipped: Mapping[str, str] = field(default_factory=dict)  # baselines that were not fitted, and why

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        catalogue: Mapping[str, float],
        fingerprint: str,
        *,
        resamples: int = 1000,
        seed: int = 0,
    ) -> Self:
        """Summarise a frame of cases; `catalogue` holds the metrics that are no average over users."""
        users = per_user(frame)
        values = users.drop("user")
        low_M, high_M = bootstrap(values.to_numpy(), np.random.default_rng(seed), resamples=resamples)
        means = zip(values.columns, values.mean().row(0), low_M.tolist(), high_M.tolist(), strict=True)
        rows = [(*parts(name), mean, low, high, len(users)) for name, mean, low, high in means]
        rows += [(*parts(name), value, None, None, len(users)) for name, value in catalogue.items()]
        return cls(frame, pl.DataFrame(rows, schema=SUMMARY, orient="row"), fingerprint)

    def beside(self, baselines: Mapping[str, "Evaluation"]) -> Self:
        """With the results of baselines on the same cases, and the paired test of each over users."""
        name, own, found = column(self.protocol, *_HEADLINE), per_user(self.frame), dict[str, Beside]()
        for baseline, other in baselines.items():
            test = paired(own[name].to_numpy(), per_user(other.frame)[name].to_numpy())
            tested = (test.difference, test.low, test.high, test.p) if test.n > 1 else ()
            found[baseline] = Beside(other.summary, *tested)
        return replace(self, baselines=found)

    @property
    def protocol(self) -> str:
        """The one that counts: full ranking, or that of a labelled test."""
        return str(self.summary["protocol"][0])

    @property
    def best_baseline(self) -> tuple[str, bool] | None:
        """Of those that were tested, and whether its difference is significant: p < .05 by Holm over all of them."""
        tested = {name: (each.difference, each.p) for name, each in self.baselines.items() if each.p is not None}
        if not tested:
            return None
        difference, p = map(np.array, zip(*tested.values(), strict=True))
        best = int(difference.argmin())
        return list(tested)[best], bool(holm(p)[best] < 0.05)

    def value(self, protocol: str, metric: str, k: int) -> float:
        found = self.summary.filter(protocol=protocol, metric=metric, k=k)["mean"]
        if not len(found):
            there = ", ".join(column(*figure) for figure in self.summary.select(FIGURE).rows())
            raise UnveilError("no such figure", found=column(protocol, metric, k), expected=f"one of {there}")
        return float(found[0])

    def write(self, folder: Path) -> None:
        """Write the frame and the summary into a folder, each file whole or not at all."""
        cases = BytesIO()
        self.frame.write_parquet(cases)
        digest = sha256(cases.getvalue()).hexdigest()
        about = {"fingerprint": self.fingerprint, "cases": len(self.frame), "cases_sha256": digest, "rules": RULES}
        write_whole(folder / CASES, cases.getvalue())
        tables: dict[str, Any] = {"summary": self.summary.to_dicts()}
        if self.baselines:
            tables["baselines"] = {
                name: {**each._asdict(), "summary": each.summary.to_dicts()} for name, each in self.baselines.items()
            }
            tables["baselines_skipped"] = dict(self.skipped)
        write_json(folder / METRICS, sealed({**about, **tables}))

    @classmethod
    def read(cls, folder: Path) -> Self:
        try:
            about = json.loads((folder / METRICS).read_text(encoding="utf-8"))
            check_seal(about, folder / METRICS, _AGAIN)
            check_file(folder / CASES, about["cases_sha256"], _AGAIN)
            summary, fingerprint = pl.DataFrame(about["summary"], schema=SUMMARY), str(about["fingerprint"])
            old = {"popularity": {"summary": about["popularity"]}} if "popularity" in about else {}
            stored, skipped = about.get("baselines", old), dict(about.get("baselines_skipped", {}))
            for each in stored.values():
                each["summary"] = pl.DataFrame(each["summary"], schema=SUMMARY)
            baselines = {name: Beside(**each) for name, each in stored.items()}
        except (FileNotFoundError, NotADirectoryError) as error:
            expected, hint = f"{METRICS} and {CASES}", "Name a folder that `unveil evaluate` has written to."
            raise UnveilError("no evaluation here", where=folder, expected=expected, hint=hint) from error
        except (ValueError, LookupError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
            raise UnveilError("not an evaluation, or a damaged one", where=folder / METRICS, hint=_AGAIN) from error
        return cls(pl.read_parquet(folder / CASES), summary, fingerprint, baselines, skipped)


class Beside(NamedTuple):
    """A baseline on the cases of an evaluation, and how far its NDCG@10 is below over the same users: paired, with 95%
    interval and p-value; None where it was not tested."""

    summary: pl.DataFrame
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def parts(name: str) -> tuple[str, str, int]:
    """`full:NDCG@10` is the protocol full, the metric NDCG and k = 10; `truth:RankCorrelation` has k = 0, for none."""
    protocol, _, rest = name.partition(":")
    metric, _, k = rest.partition("@")
    return protocol, metric, int(k or 0)


def column(protocol: str, metric: str, k: int) -> str:
    """The name whose `parts` these are."""
    return f"{protocol}:{label(metric, k)}"


def label(metric: str, k: int) -> str:
    """`NDCG@10`; where there is no k (0), the metric alone."""
    return f"{metric}@{k}" if k else metric


def per_user(frame: pl.DataFrame) -> pl.DataFrame:
    """One row a user, in order: the average of each metric over the user's cases."""
    names = [name for name in frame.columns if ":" in name and not name.endswith(":rank")]
    return frame.group_by("user").agg(pl.col(names).mean()).sort("user")


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


def compare(evaluations: Mapping[str, Evaluation], *, alpha: float = 0.05) -> Comparison:
    """Paired tests per user between all evaluations, corrected by Holm's method over the whole table."""
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
    tests = _tests(evaluations)
    return Comparison(_table(evaluations, tests, alpha), tests, alpha)


def _tests(evaluations: Mapping[str, Evaluation]) -> pl.DataFrame:
    users = {name: per_user(evaluation.frame) for name, evaluation in evaluations.items()}
    shared = [c for c in next(iter(users.values())).columns[1:] if all(c in frame.columns for frame in users.values())]
    if not shared:
        raise UnveilError("no figure in common", hint="Evaluate with the same k and length of list.")
    rows = []
    for column in shared:
        for a, b in combinations(users, 2):
            result = paired(users[a][column].to_numpy(), users[b][column].to_numpy())
            rows.append(dict(zip(FIGURE, parts(column), strict=True)) | {"a": a, "b": b} | vars(result))
    tests = _directed(pl.DataFrame(rows))
    return tests.with_columns(p_holm=pl.Series(holm(tests["p"].to_numpy())))


def _directed(frame: pl.DataFrame) -> pl.DataFrame:
    direction = {name: higher_is_better(name) for name in frame["metric"].unique()}
    return frame.with_columns(higher_is_better=pl.col("metric").replace_strict(direction, return_dtype=pl.Boolean))


def _table(evaluations: Mapping[str, Evaluation], tests: pl.DataFrame, alpha: float) -> pl.DataFrame:
    summaries = [e.summary.with_columns(model=pl.lit(name)) for name, e in evaluations.items()]
    merit = pl.when("higher_is_better").then(-pl.col("mean")).otherwise(pl.col("mean"))
    table = _directed(pl.concat(summaries)).with_columns(place=merit.rank("min").over(FIGURE).cast(pl.Int64))
    winners = _winners(table, tests, alpha)
    table = table.join(winners, on=[*FIGURE, "model"], how="left", maintain_order="left")
    return table.with_columns(pl.col("significant").fill_null(value=False))


def _winners(table: pl.DataFrame, tests: pl.DataFrame, alpha: float) -> pl.DataFrame:
    best = table.filter(pl.col("place") == 1).select(*FIGURE, "model")
    second = table.filter(pl.col("place") == 2).select(*FIGURE, next="model")
    both_ways = pl.concat([tests.select(*FIGURE, "p_holm", model=x, next=y) for x, y in (("a", "b"), ("b", "a"))])
    tested = best.join(second, on=FIGURE).join(both_ways, on=[*FIGURE, "model", "next"])
    # Several may share the second place: the best has to be better than each of them.
    sure = tested.group_by(*FIGURE, "model").agg(pl.col("p_holm").max()).filter(pl.col("p_holm") < alpha)
    return sure.select(*FIGURE, "model", significant=pl.lit(value=True))
