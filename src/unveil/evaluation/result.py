"""Evaluation: what came out, case by case and in summary; written, read, and ready to be compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from unveil.errors import UnveilError
from unveil.evaluation.stats import bootstrap
from unveil.files import write_whole

CASES, METRICS = "cases.parquet", "metrics.json"

#: What every figure stands on; written beside the figures.
RULES = {
    "ties": "against the target: its rank is 1 plus the candidates that score at least as high",
    "mean": "over users; a user with several cases counts once, with the average of them",
    "interval": "95%, percentile bootstrap over users; not the spread between training runs",
}

SUMMARY = {
    "protocol": pl.String,
    "metric": pl.String,
    "k": pl.Int64,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
}


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

    def value(self, protocol: str, metric: str, k: int) -> float:
        """One figure of the summary."""
        wanted = (pl.col("protocol") == protocol) & (pl.col("metric") == metric) & (pl.col("k") == k)
        found = self.summary.filter(wanted)["mean"]
        if not len(found):
            there = ", ".join(column(*figure) for figure in self.summary.select("protocol", "metric", "k").rows())
            raise UnveilError("no such figure", found=column(protocol, metric, k), expected=f"one of {there}")
        return float(found[0])

    def write(self, folder: Path) -> None:
        """Write the frame and the summary into a folder, each file whole or not at all."""
        cases = BytesIO()
        self.frame.write_parquet(cases)
        digest = sha256(cases.getvalue()).hexdigest()
        about = {"fingerprint": self.fingerprint, "cases": len(self.frame), "cases_sha256": digest, "rules": RULES}
        write_whole(folder / CASES, cases.getvalue())
        write_whole(folder / METRICS, json.dumps({**about, "summary": self.summary.to_dicts()}, indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        try:
            about = json.loads((folder / METRICS).read_text())
            whole = about["cases_sha256"] == sha256((folder / CASES).read_bytes()).hexdigest()
            summary, fingerprint = pl.DataFrame(about["summary"], schema=SUMMARY), str(about["fingerprint"])
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "Name a folder that `unveil evaluate` has written to."
            raise UnveilError(
                "no evaluation here", where=folder, expected=f"{METRICS} and {CASES}", hint=hint
            ) from error
        except (ValueError, LookupError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
            raise UnveilError("not an evaluation, or a damaged one", where=folder / METRICS) from error
        if not whole:
            raise UnveilError("damaged, or of another evaluation than its summary", where=folder / CASES)
        return cls(pl.read_parquet(folder / CASES), summary, fingerprint)


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
