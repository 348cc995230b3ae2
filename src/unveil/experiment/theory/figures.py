"""The plots of the theory's page."""

from collections.abc import Callable, Sequence

from unveil.experiment.theory.minimisers import Minimiser
from unveil.experiment.theory.monte_carlo import Estimated
from unveil.experiment.theory.run import Theory
from unveil.experiment.theory.text import choice_name, relative
from unveil.experiment.theory.variants import CORRECTED, IDEAL, IPS, ITPS, NAIVE
from unveil.report.page import Figure
from unveil.report.plots import Line, Scale, canvas, colour_of, lines
from unveil.report.svg import INK, MUTED, Drawing, themed

_COLOURS = {NAIVE.label: 0, IPS.label: 1, ITPS.label: 2, IDEAL.label: 3, CORRECTED.label: 4}
_ROW = 0.26


def biases(theory: Theory) -> Figure:
    """Drawn and calculated biases of the losses that learn from a log."""
    shown = [row for row in theory.estimated if row.estimator in (NAIVE.label, IPS.label, ITPS.label)]
    said = ", ".join(f"{row.estimator} {relative(row.mean)} ({choice_name(row.choice)})" for row in shown)
    return Figure(
        "The bias of each loss, by how the user chooses",
        _dots(shown),
        f"Relative bias of the losses by how the user chooses: {said}.",
        "Dots: mean over drawn logs, with an interval often too short to see. Circles: the closed form.",
    )


def _dots(rows: Sequence[Estimated]) -> Drawing:
    with canvas("bias, relative to the ideal loss", "", (6.4, 0.75 + _ROW * len(rows))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.axvline(0, color=INK, linewidth=0.9)
        for place, row in enumerate(rows):
            colour = colour_of(_COLOURS[row.estimator])
            on.axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2.2)
            on.axes.scatter([row.mean], [place], s=26, color=colour, linewidths=0, zorder=3).set_gid(f"dot{place}")
            if row.formula is not None:
                on.axes.scatter([row.formula], [place], s=70, facecolors="none", edgecolors=MUTED, linewidths=0.9)
        labels = [f"{row.estimator}, {choice_name(row.choice)}" for row in rows]
        on.axes.set_yticks(range(len(rows)), labels, color=INK)
        on.axes.set_ylim(len(rows) - 0.4, -0.6)
        on.axes.xaxis.set_major_formatter(lambda value, _: f"{value:+.0%}".replace("-", "−"))
        titles = {
            f"dot{place}": [f"{label}: {relative(row.mean)}"]
            for place, (label, row) in enumerate(zip(labels, rows, strict=True))
        }
        return themed(on.figure, "biases", titles)


def firsts(theory: Theory) -> list[Figure]:
    """How often the favourite is found, in the limit and after one log."""
    common = "For a user who takes the best of the exposed, and a model that knows the user but not the step."
    return [
        Figure(
            "How often the favourite is found: endless logs",
            _over_severity(theory.minimisers, lambda row: row.user_first, "limit"),
            f"Share of slots at which the favourite stands first, by severity: {_said(theory, 'user_first')}.",
            f"{common} The minimum of the expected loss.",
        ),
        Figure(
            "How often the favourite is found: one log",
            _over_severity(theory.minimisers, lambda row: row.log_first, "one-log"),
            f"The same after one log: {_said(theory, 'log_first')}.",
            f"{common} The minimum of one log's loss, mean over {theory.settings.logs} logs.",
        ),
    ]


def _said(theory: Theory, quantity: str) -> str:
    return ", ".join(f"{row.estimator} {getattr(row, quantity):.0%} at {row.severity:g}" for row in theory.minimisers)


def _over_severity(rows: Sequence[Minimiser], value: Callable[[Minimiser], float], slug: str) -> Drawing:
    """One line for each loss, named at its end; the axis is the same in both drawings."""
    drawn = {}
    for label in dict.fromkeys(row.estimator for row in rows):
        mine = [row for row in rows if row.estimator == label]
        told = [f"{label}, severity {row.severity:g}: {value(row):.1%}" for row in mine]
        drawn[label] = Line([row.severity for row in mine], [value(row) for row in mine], told, _COLOURS[label])
    ticks = {severity: f"{severity:g}" for severity in sorted({row.severity for row in rows})}
    scale = Scale(percent=(False, True), top=1.0, ticks=ticks)
    return lines(drawn, ("severity p", "favourite stands first"), slug, scale)
