"""The page of `unveil propensity score`: every estimate beside the truth, with calibration curves."""

from collections.abc import Mapping
from typing import Any

from unveil.experiment.propensities.words import estimates, reading
from unveil.report import charts
from unveil.report.names import share
from unveil.report.page import Cell, Code, Column, Figure, Figures, KeyFigure, Page, Section, Table, Text, number

TITLE = "How near is each estimate to the true exposure?"
#: Curves in one picture.
_DRAWN = 4


def page(about: Mapping[str, Any]) -> Page:
    """The whole page, from what the folder says of itself."""
    first, *rest = reading(about)
    scores = about["scores"]
    estimated = estimates(scores)
    best = max(estimated, key=lambda name: estimated[name]["top"])
    return Page(
        TITLE,
        first,
        [
            Section("Beside the truth", [table(scores)]),
            Section("What the figures say", [Text(each) for each in rest]),
            Section("Is what is promised kept?", [Figures([_curve(about["curves"], scores)])]),
            Section("How it was made", [_assumed(about["assumes"]), Code(about["command"])]),
        ],
        [
            KeyFigure(f"{scores[best]['top']:.2f}", f"correlation among the 30 most relevant, {best}"),
            KeyFigure(
                share(max(each["gap"] for each in estimated.values())), "of the gap closed at most, were choices known"
            ),
            KeyFigure(number(about["naive"], 2).text, "mean relevance logit of the ten first without any correction"),
        ],
    )


def table(scores: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each propensity."""
    columns = [
        Column("propensity"),
        Column("log θ", True, "correlation, all items"),
        Column("top", True, "the 30 most relevant"),
        Column("taken", True, "of the events"),
        Column("ECE", True, "calibration error"),
        Column("mass", True, "promised / true"),
        Column("loss", True, "nats a slot above the truth"),
        Column("moved", True, "weight that stands elsewhere"),
        Column("ESS", True, "of the events"),
        Column("gap", True, "closed, were choices known"),
    ]
    return Table("Estimated propensities and the truth", columns, [_row(*each) for each in scores.items()])


def _row(name: str, score: Mapping[str, float]) -> list[Cell | str]:
    correlations = [number(score[each], 2) for each in ("correlation", "top", "taken")]
    scale = [number(score["ece"], 2), number(score["mass"], 2), number(score["log_loss"], 1)]
    weights = [Cell(share(score[each]), score[each]) for each in ("misplaced", "ess", "gap")]
    return [name, *correlations, *scale, *weights]


def _curve(curves: Mapping[str, Mapping[str, Any]], scores: Mapping[str, Mapping[str, float]]) -> Figure:
    best = sorted(scores, key=lambda name: -scores[name]["top"])[:_DRAWN]
    told = "; ".join(
        f"{name}: {', '.join(f'{p:.2g} → {o:.2g}' for p, o in zip(each['predicted'], each['observed'], strict=True))}"
        for name, each in ((name, curves[name]) for name in best)
    )
    return Figure(
        "Calibration, by the truth",
        charts.reliability(
            {name: (curves[name]["predicted"], curves[name]["observed"]) for name in best},
            ("estimated θ", "true θ, on average"),
            "exposed",
            "calibration",
        ),
        f"Mean of the true exposure against what is estimated, bin by bin. {told}.",
        "Bins of equal estimated mass; the best by correlation among the 30 most relevant items. On the dashed line "
        "what is promised is kept.",
    )


def _assumed(assumes: Mapping[str, str]) -> Table:
    columns = [Column("propensity"), Column("assumes")]
    return Table("What each estimate assumes", columns, [[name, told] for name, told in assumes.items()])
