"""What weighting would cost, and what the log knows of exposure."""

from unveil.audit.costs import CLIPPED, EXPONENTS, Cost
from unveil.audit.run import Audit
from unveil.experiment.audit.words import COST, POPULARITY, SOURCES
from unveil.report.page import Block, Cell, Column, Figure, Figures, Note, Table, Text, count, number, percent
from unveil.report.plots import Line, Scale, lines

_NAMES = {"ips": "IPS", "itps": "ITPS", "itps-smoothed": "ITPS, smoothed"}
_AXES = ("exponent of the weights", "effective share of the events")


def blocks(found: Audit) -> list[Block]:
    """Effective sample size by exponent and clip."""
    costs = found.costs
    drawn = [_curves(found, nth) for nth in (0, 1)]
    return [
        Text(COST.format(events=f"{costs.events:,}", window=costs.window, alone=f"{costs.alone:.0%}")),
        Figures(drawn),
        _table(found),
    ]


def _curves(found: Audit, nth_clip: int) -> Figure:
    drawn = {}
    for place, (estimator, name) in enumerate(_NAMES.items(), 1):
        settings = [found.costs.of(estimator, exponent, nth_clip) for exponent in reversed(EXPONENTS)]
        told = ["exponent 0: all events alike, 100%", *(_told(name, each) for each in settings)]
        left = [1.0, *(each.ess_share for each in settings)]
        drawn[name] = Line([0.0, *(each.exponent for each in settings)], left, told, place)
    how = "Without clipping" if nth_clip == 0 else f"The lowest {CLIPPED[nth_clip]:.0%} of the propensities clipped"
    return Figure(
        f"{how}: what is left of the log",
        lines(
            drawn,
            ("exponent of the weights", "effective share of the events"),
            f"ess{nth_clip}",
            Scale((False, True), top=1.05),
        ),
        "; ".join(f"{name}: {', '.join(line.told)}" for name, line in drawn.items()),
        "w = max(θ̂, clip)^−exponent. Exponent 0 is the naive loss, 1 the full correction.",
    )


def _told(name: str, cost: Cost) -> str:
    return f"{name}, exponent {cost.exponent:g}: {cost.ess_share:.1%} left, largest weight {cost.largest_share:.2g}"


def _table(found: Audit) -> Table:
    columns = [Column("estimator"), Column("exponent", True)]
    columns += [Column(f"{part:.0%} clipped" if part else "no clip", True) for part in CLIPPED]
    rows: list[list[Cell | str]] = [
        [name, number(exponent, 2), *(_left(found.costs.of(each, exponent, nth)) for nth in range(len(CLIPPED)))]
        for each, name in _NAMES.items()
        for exponent in EXPONENTS
    ]
    return Table("Effective share of the events, and the clip of θ̂ that leaves it", columns, rows)


def _left(cost: Cost) -> Cell:
    clip = f" at {cost.clip:.1e}" if cost.clip else ""
    return Cell(f"{cost.ess_share:.1%}{clip}", cost.ess_share)


def exposure_blocks(found: Audit) -> list[Block]:
    """The columns that tell of exposure, and what they say; the warning where there are none."""
    known = found.exposure
    told: list[Block] = [Note(POPULARITY, warning=True)] if known.only_popularity else []
    told.append(_columns(found))
    if known.impressions is not None:
        told.append(_impressions(found))
        if known.impressions.by_position is not None:
            told.append(_positions(known.impressions.by_position))
    return told


def _columns(found: Audit) -> Table:
    there = found.exposure.columns
    rows: list[list[Cell | str]] = [[name, "yes" if name in there else "no", use] for name, use in SOURCES.items()]
    return Table("What tells of exposure", [Column("column"), Column("here"), Column("what it gives")], rows)


def _impressions(found: Audit) -> Table:
    seen = found.exposure.impressions
    assert seen is not None
    rows: list[list[Cell | str]] = [
        ["rows shown", count(seen.rows)],
        ["  of them taken", percent(seen.taken)],
        ["items shown", count(seen.items)],
        ["  of them never taken", percent(seen.never_taken)],
        ["rank correlation of times shown and times taken", number(seen.correlation, 2)],
        ["variance of log popularity explained by log exposure", percent(seen.explained)],
    ]
    return Table("What was shown", [Column("figure"), Column("value", True)], rows, sortable=False)


def _positions(rate: tuple[float, ...]) -> Table:
    rows: list[list[Cell | str]] = [[str(place), percent(value, 2)] for place, value in enumerate(rate, 1)]
    return Table("Taken by position", [Column("position"), Column("taken", True, "of what was shown")], rows)
