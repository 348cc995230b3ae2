"""The paper's figures beside ours, all of them in `paper.toml`; and its data sets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from unveil.data.fetch import data_home
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import UnveilError, unknown
from unveil.runs.run_folder import Run
from unveil.settings import plain
from unveil.studies import shipped
from unveil.studies.results import Estimate, Measure, Results, means

#: The data set of the paper that `unveil data fetch` does not know, and its file in the folder of that name.
_BY_HAND, _FILES = "beauty", ("beauty.txt", "beauty.txt.gz")


@dataclass(frozen=True)
class Published:
    """One table of the paper: its protocol, its metrics in their order, and a row for each estimator."""

    evaluation: str
    protocol: str
    metrics: Sequence[str]
    rows: Mapping[str, Sequence[float]]

    @classmethod
    def semisynthetic(cls, evaluation: str, severity: float = 1.0) -> "Published":
        found = shipped("paper")["semisynthetic"]
        rows = found.get(evaluation, {}) if severity == found["severity"] else {}
        return cls(evaluation, found["protocol"], found["metrics"], rows)

    @classmethod
    def real(cls, data: str | None) -> "Published":
        found = shipped("paper")["real"]
        rows = {} if data is None else found["data"][data]["figures"]
        return cls("standard", found["protocol"], found["metrics"], rows)

    @property
    def measures(self) -> list[Measure]:
        return self.under(self.protocol)

    def under(self, protocol: str) -> list[Measure]:
        named = [metric.partition("@") for metric in self.metrics]
        return [Measure(self.evaluation, protocol, name, int(k)) for name, _, k in named]

    def comparable(self, results: Results) -> bool:
        """Whether the table was made so: at another severity, or against other negatives, it says nothing."""
        return bool(self.rows) and self.protocol in results.protocols

    def figure(self, arm: str, measure: Measure) -> float | None:
        if measure not in self.measures or arm not in self.rows:
            return None
        return self.rows[arm][self.measures.index(measure)]

    def order(self, measure: Measure, arms: Sequence[str]) -> list[str]:
        place = self.metrics.index(measure.name)
        return sorted((arm for arm in self.rows if arm in arms), key=lambda arm: -self.rows[arm][place])

    def gap_closed(self, arm: str, measure: Measure) -> float | None:
        """The share of the gap from naive to ideal that the paper's own figures give an arm."""
        naive, ideal, own = (self.figure(name, measure) for name in ("naive", "ideal", arm))
        if naive is None or ideal is None or own is None:
            return None
        return (own - naive) / (ideal - naive)

    def compare(self, results: Results) -> list["Comparison"]:
        return [
            Comparison(arm, measure, results.estimate(arm, measure), figure)
            for arm in results.trained
            for measure in self.measures
            if (figure := self.figure(arm, measure)) is not None and measure in results.measures
        ]

    def verdict(self, results: Results) -> dict[str, Any]:
        every, orders = self.compare(results), dict[str, dict[str, Any]]()
        for m in self.measures if self.comparable(results) else ():
            both = {"ours": results.order(m), "paper": self.order(m, results.trained)}
            orders[m.name] = {**both, "same": self.same_order(results, m)}
        return {
            "cells": [each.as_json() for each in every],
            "within_5_percent": sum(each.near for each in every),
            "of": len(every),
            "orders": orders,
            "same_order": all(order["same"] for order in orders.values()) if orders else None,
        }

    def same_order(self, results: Results, measure: Measure) -> bool:
        """Whether the means of the paper's arms stand in the paper's order, no two of them equal."""
        means = [results.mean(arm, measure) for arm in self.order(measure, results.trained)]
        return all(above > below for above, below in pairwise(means))


@dataclass(frozen=True)
class Comparison:
    """One of our figures and the paper's."""

    arm: str
    measure: Measure
    ours: Estimate
    paper: float

    @property
    def deviation(self) -> float:
        return self.ours.mean / self.paper - 1

    @property
    def near(self) -> bool:
        return abs(self.deviation) <= 0.05

    @property
    def covered(self) -> bool | None:
        if self.ours.low is None or self.ours.high is None:
            return None
        return self.ours.low <= self.paper <= self.ours.high

    def as_json(self) -> dict[str, Any]:
        place = {"estimator": self.arm, "metric": self.measure.metric, "k": self.measure.k}
        figures = {"mean": self.ours.mean, "paper": self.paper, "deviation": self.deviation}
        return {**place, **figures, "within_5_percent": self.near, "interval_holds_paper": self.covered}


def paper_rows(
    results: Results, preset: str, published: Callable[[str, float], Published]
) -> Iterator[tuple[Measure, dict[str, Any]]]:
    """Rows of results.csv: every mean, and the figure of the paper's table for an evaluation and a severity."""
    for row in means(results):
        measure = Measure(*(row[name] for name in Measure._fields))
        figure = published(measure.evaluation, row.get("severity") or 0.0).figure(row["estimator"], measure)
        yield measure, {"severity": None, **row, "preset": preset, "paper": figure}


def size_of(log: Interactions) -> tuple[int, int, int]:
    """Users, items and interactions: by these a data set of the paper is known."""
    return len(log.users), len(log.items), len(log.interacted())


def recognised(users: int, items: int, interactions: int) -> str | None:
    """The data set of the paper that has exactly this many users, items and interactions."""
    sizes = {name: tuple(each["size"]) for name, each in shipped("paper")["real"]["data"].items()}
    return next((name for name, size in sizes.items() if size == (users, items, interactions)), None)


def read_log(data: str, min_item: int | None = None, min_user: int | None = None) -> Interactions:
    """The log; filters that are None are the paper's, and a log of a data set's published size is left as it is."""
    path: Path | str = _put_by_hand() if data == _BY_HAND and not Path(data).exists() else data
    with convert_first(path):
        log = Interactions.read(path)
    if min_item is None and min_user is None and recognised(*size_of(log)):
        return log
    left = Filters(min_item=5 if min_item is None else min_item, min_user=5 if min_user is None else min_user)(log)
    if not len(left.interacted()):
        hint = "Lower --min-item and --min-user."
        raise UnveilError("nothing is left of the log after filtering", where=data, hint=hint)
    return left


def _put_by_hand() -> Path:
    places = [data_home() / _BY_HAND / name for name in _FILES]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        published = "It is the beauty.txt that is published with BERT4Rec (FeiSun/BERT4Rec, data/beauty.txt)"
        hint = f"{published}: put it at {places[0]}, or name its path."
        raise UnveilError("this data set cannot be fetched", found=_BY_HAND, hint=hint)
    return found


def tuned(data: str, estimator: str, preset: str) -> dict[str, Any]:
    """The authors' settings of an estimator on a data set; under other presets than `paper` only its own options."""
    real = shipped("paper")["real"]
    if data not in real["data"]:
        raise unknown("data set with the authors' settings", data, real["data"])
    own = dict(zip(real["settings"], real["data"][data]["tuned"].get(estimator, ()), strict=False))
    if preset == "paper":
        return {"model.length": real["data"][data]["length"], **own}
    return {name: value for name, value in own.items() if name.startswith("estimator.")}


def published_line(run: Run) -> str | None:
    """What others published for the data and network of a run, and its own; None where nothing can be compared."""
    made, settings = run.recommender, run.experiment
    data = recognised(len(made.users), len(made.items), len(made.sequences))
    network = str(plain(settings.model)["name"])
    beside = run.evaluation.baselines  # those of a network that is part of a blend, too
    found = [each for each in shipped("paper")["others"] if (each["data"], each["network"]) == (data, network)]
    if not found or settings.data.split != "leave-one-out" or not settings.evaluation.exclude_seen:
        return None
    summary = beside[network].summary if network in beside else run.evaluation.summary
    figures = [summary.filter(protocol="full", metric=metric, k=10)["mean"][0] for metric in ("Recall", "NDCG")]
    own = " / ".join(f"{figure:.4f}" for figure in figures)
    theirs = "; ".join(f"{each['recall']:.4f} / {each['ndcg']:.4f} ({each['source']})" for each in found)
    return (
        f"published  {network} on {data}, full ranking, leave-one-out, Recall@10 / NDCG@10: {theirs}; this run, "
        f"{settings.estimator['name']}: {own}"
    )
