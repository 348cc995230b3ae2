"""Figure 1 of the paper: when in their histories users interact with an item, and whether that could be chance."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from unveil.audit.motion import PlaceTests, expected_means
from unveil.audit.timing import ALPHA, LEAST, Floats, Pair, first_interactions, pair, positions, timing
from unveil.data.filters import LogSource
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.titles import matching, named_items
from unveil.errors import UnveilError
from unveil.files import write_whole
from unveil.report.charts import Box, boxes
from unveil.report.page import Figure
from unveil.report.plots import canvas, plain_numbers
from unveil.report.svg import COLOURS, MUTED, themed
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work

#: The paper's two trilogies.
PAPER = "Godfather;Back to the Future"
#: Boxes in one drawing: more cannot be read.
MOST = 8


class Group(NamedTuple):
    """Items that are drawn side by side."""

    name: str
    items: tuple[int, ...]


def groups_of(patterns: str, items: Vocabulary, titles: Sequence[str], count_V: NDArray[Any]) -> list[Group]:
    """`a,b;c`: groups of ids or parts of titles, in that order, then by the years in titles; at most eight each."""
    groups = []
    for part in filter(None, map(str.strip, patterns.split(";"))):
        names = [name.strip() for name in part.split(",") if name.strip()]
        found = dict.fromkeys(item for name in names for item in matching(name, items, titles, where="--items"))
        seen = [item for item in found if count_V[item] > 0]
        if not seen:
            hint = "Name others: an impression without a click has no place in a history."
            raise UnveilError("nobody interacted with any of these items", where="--items", found=part, hint=hint)
        kept = sorted(seen, key=lambda item: -count_V[item])[:MOST]
        groups.append(Group(", ".join(names), tuple(item for item in seen if item in kept)))
    return groups


def extremes(z_V: NDArray[Any], tested_V: NDArray[np.bool_], each: int = 4) -> list[Group]:
    """Where nobody named items: those that come earliest and latest, as far from chance as any."""
    tested = np.flatnonzero(tested_V)
    order = tested[np.argsort(z_V[tested], kind="stable")].tolist()
    return [Group("Earliest", tuple(order[:each])), Group("Latest", tuple(order[::-1][:each]))]


@dataclass(frozen=True, eq=False)
class ItemData(Source):
    """A log whose items can be tested, and those to draw."""

    sequences: Any = None  # Sequences
    ids: Any = None  # Vocabulary
    titles: Sequence[str] = ()
    groups: Sequence[Group] = ()

    @classmethod
    def of(cls, log: Interactions, titles: Sequence[str], items: str | None = None) -> "ItemData":
        """`items` is for `groups_of`; None: the paper's trilogies, or the earliest and latest."""
        sequences = Sequences.of(log)
        found = timing(sequences, positions(sequences))
        if not found.tested_V.any():
            most = int(found.count_V.max(initial=0))
            raise UnveilError("no item has events enough to test", found=most, expected=f"an item with {LEAST} or more")
        try:
            groups = groups_of(PAPER if items is None else items, log.items, titles, found.count_V)
        except UnveilError:
            if items is not None:
                raise
            groups = extremes(found.z_V, found.tested_V)
        return cls("", log.fingerprint(), f"{log}", sequences, log.items, titles, groups)

    @property
    def pairs(self) -> list[Pair]:
        return [pair(self.sequences, *each) for group in self.groups for each in pairwise(group.items)]

    def samples(self, group: Group) -> tuple[list[Box], list[Box]]:
        """The boxes of a group: steps counted from 1, and shares of the history."""
        from matplotlib.cbook import boxplot_stats

        sequences = self.sequences
        place_N = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], sequences.length_U) + 1.0

        def box(item: int, value_N: NDArray[Any]) -> Box:
            own = value_N[sequences.item_N == item]
            return {**boxplot_stats(own)[0], "label": self.titles[item], "count": len(own)}

        steps, shares = ([box(item, value_N) for item in group.items] for value_N in (place_N, positions(sequences)))
        return steps, shares


@lru_cache(maxsize=1)
def place_tests(data: ItemData, mean_V: tuple[float, ...] | None, draws: int) -> PlaceTests:
    """The tests of all items, given the mean places that so many draws gave."""
    return PlaceTests.of(data.sequences, None if mean_V is None else np.array(mean_V), draws)


class Fig1(Study):
    """Box plots of some items, and a test of all. What takes time is the cell: draws by static propensities."""

    name: ClassVar[str] = "fig1"
    title: ClassVar[str] = "When do users interact with items?"
    template: ClassVar[str] = "fig1.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset({"titles", "title_ids", "items"})
    log: LogSource = Field(exclude=True)
    titles: Path | None = None
    title_ids: Path | None = None
    items: str | None = None
    draws: int = 50  # orders of all histories for the null without replacement; 0: no such test
    seed: int = 0

    @cached_property
    def data(self) -> ItemData:
        log = self.log.load()
        return ItemData.of(log, named_items(log.items, self.titles, self.title_ids), self.items)

    def open_data(self) -> ItemData:
        return self.data

    def cells(self) -> Iterable[Cell]:
        yield Cell("static", {})

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        sequences = self.data.sequences
        if not self.draws or len(first_interactions(sequences)) < len(sequences):  # users come back to items
            return {"expected": None}
        rng = np.random.default_rng(self.seed)
        return {"expected": expected_means(sequences, positions(sequences), self.draws, rng).tolist()}

    def tests(self, records: Mapping[str, Any]) -> PlaceTests:
        mean_V = records["static"]["expected"]
        return place_tests(self.data, None if mean_V is None else tuple(mean_V), self.draws)

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """The share of the tested items that differ, by null hypothesis."""
        for name, family in self.tests({cell.key: record}).families().items():
            yield {"protocol": name, "metric": "differ", "value": family.certain / family.tested}

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        yield "cells", list(self.cells())
        write_whole(work.folder / "items.csv", item_table(self.data, self.tests(work.records)).write_csv())

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        data, found, groups = self.data, self.tests(answer.records), []
        families = {"random_order": found.order, "random_order_mean": found.mean, "ties_shared": found.shared}
        families |= {"static_propensity_mean": found.static}
        ids, timing, quartiles = data.ids.ids, found.timing, ("q1", "med", "q3")
        for group in data.groups:
            items = [
                {
                    "item_id": ids[item],
                    "title": data.titles[item],
                    "events": int(timing.count_V[item]),
                    "steps": [step[name] for name in quartiles],
                    "shares": [share[name] for name in quartiles],
                    "mean_position": float(timing.mean_V[item]),
                    "z": float(found.order.z_V[item]),
                    "p_holm": float(found.order.holm_V[item]),
                }
                for item, step, share in zip(group.items, *data.samples(group), strict=True)
            ]
            groups.append({"name": group.name, "items": items})
        return {
            "data": {"fingerprint": data.fingerprint, "events": len(data.sequences), "items": len(ids)},
            "units": "items",
            "interval": "none",
            "alpha": ALPHA,
            "least_events": LEAST,
            "tied": found.tied,
            "draws": self.draws,
            "tests": {name: None if family is None else family.plain() for name, family in families.items()},
            "dispersion": timing.dispersion,
            "typical_shift": timing.typical_shift,
            "popularity_correlation": found.by_popularity,
            "groups": groups,
            "pairs": [asdict(each) | {"first": ids[each.first], "second": ids[each.second]} for each in data.pairs],
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        found = self.tests(answer.records)
        ends = {"earliest": found.order.most(-1, 10), "latest": found.order.most(1, 10)}
        shown = {"found": found, "titles": self.data.titles, "least": LEAST, "ends": ends}
        return {**shown, "boxes": boxes, "funnel": funnel}


def item_table(data: ItemData, found: PlaceTests) -> pl.DataFrame:
    """A row for each item with events; items with too few have no tests."""
    timing, tested_V = found.timing, found.order.tested_V
    columns: dict[str, Any] = {
        "item_id": data.ids.ids,
        "title": list(data.titles),
        "events": timing.count_V,
        "mean_position": timing.mean_V,
    }
    for name, family in found.families().items():
        tests = {key: getattr(family, f"{key}_V") for key in ("z", "p", "holm", "q")}
        columns |= {f"{name}_{key}": _blank(value_V, family.tested_V) for key, value_V in tests.items()}
    columns["order_z_spread"] = _blank(timing.z_spread_V, tested_V)
    if found.expected_V is not None:
        columns["static_mean_position"] = _blank(found.expected_V, tested_V)
    return pl.DataFrame(columns).filter(pl.col("events") > 0).sort("events", descending=True, maintain_order=True)


def _blank(value_V: Floats, tested_V: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(value_V).set(pl.Series(~tested_V), None)


def funnel(found: PlaceTests, titles: Sequence[str]) -> Figure:
    """Mean place against number of events, and the band in which 95% of items in random order would lie."""
    timing, shown = found.timing, np.flatnonzero(found.order.tested_V)
    count_V, mean_V, differs = timing.count_V, timing.mean_V, found.order.holm_V[shown] < ALPHA
    spread = np.sqrt(np.median(timing.variance_V[shown] * count_V[shown]))
    x = np.geomspace(LEAST, count_V.max(), 60)
    half = 1.96 * spread / np.sqrt(x)
    hover: dict[str, list[str]] = {}
    with canvas("events of the item, logarithmic", "mean place in histories") as on:
        on.axes.set_xscale("log")
        on.axes.fill_between(x, 0.5 - half, 0.5 + half, color=MUTED, alpha=0.18, linewidth=0)
        for name, items, colour in (("alike", shown[~differs], MUTED), ("differs", shown[differs], COLOURS[1])):
            marks = on.axes.scatter(count_V[items], mean_V[items], s=7, color=colour, alpha=0.7, linewidths=0)
            marks.set_gid(name)
            hover[name] = [f"{titles[v]}: {count_V[v]:,} events, mean place {mean_V[v]:.3f}" for v in items]
        plain_numbers(on.axes.xaxis)
        drawing = themed(on.figure, "funnel", {name: each for name, each in hover.items() if each})
    about = f"{len(shown):,} items, {int(differs.sum()):,} differ from random order"
    return Figure("", drawing, f"Mean place against number of events: {about}.")
