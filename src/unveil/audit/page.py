"""The audit as files: a page for people, its figures as JSON beside it, and the plots in a folder."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.audit.advice import WEIGHTED, Audit
from unveil.audit.baselines import BASELINES
from unveil.audit.exposure import EXPONENTS
from unveil.audit.motion import Motion
from unveil.data.interactions import Interactions
from unveil.data.readers.database import shown
from unveil.files import versions, write_json
from unveil.report.charts import Dot, intervals
from unveil.report.page import Code, Column, Figure, Page, Point, Table, count, percent, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import portion
from unveil.report.svg import check_page_path

_EVERY = 5  # points of the Lorenz curve between two marks


def check_output(page: Path, *, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is to be overwritten."""
    check_page_path(page, [beside(page)], what="the audit", overwrite=overwrite)


def beside(page: Path) -> Path:
    """audit.json beside audit.html."""
    return page.with_suffix(".json")


def write(
    found: Audit, log: Interactions, titles: Sequence[str], source: str, page: Path, command: Sequence[str]
) -> None:
    """Both files and the plots, each whole or not at all; the page last. Passwords of database URLs are left out."""
    line = shlex.join(map(shown, command))
    write_json(beside(page), results(found, log, line))
    write_page(audit_page(found, titles, Path(shown(source)).name, line), page)


def results(found: Audit, log: Interactions, command: str) -> dict[str, Any]:
    """Every figure under the names of `Audit`, items by their own ids, and what it was made with."""
    figures = {**asdict(found), "verdict": found.verdict, "advice": [asdict(each) for each in found.advice]}
    for name in ("histories", "calendar"):
        for mover in (figures[name] or {}).get("movers", ()):
            mover["item"] = log.items[mover["item"]]
    return {"audit": 1, "command": command, "versions": versions(), "fingerprint": log.fingerprint(), **figures}


def audit_page(found: Audit, titles: Sequence[str], name: str, command: str) -> Page:
    """The whole page; `titles` has one for each item, `name` is what the log is called."""
    parts: dict[str, Any] = {
        "advice": [Point(each.title, each.figure, each.of, each.reason, each.warning) for each in found.advice],
        "command": Code(command),
        **_concentration(found.concentration.lorenz),
        **{f"baselines-{split}": _scores(found, split) for split in {score.split for score in found.baselines}},
        **{f"ess{nth_clip}": _costs(found, nth_clip) for nth_clip in (0, 1)},
    }
    if along := found.motions:
        parts["heads"] = _heads(along)
    parts |= {f"movers-{name}": _movers(motion, name, titles) for name, motion in along.items() if motion.movers}
    return found.prose(name=name, verdict=found.verdict).page(parts)


def _concentration(lorenz: Sequence[float]) -> dict[str, Figure]:
    head = [1 - value for value in lorenz[::-1]][:21]
    curves = {"lorenz": ("least", lorenz[::_EVERY], _EVERY), "head": ("most", head, 1)}
    drawn = {}
    for place, (slug, (side, y, every)) in enumerate(curves.items()):
        x = [every * point / 100 for point in range(len(y))]
        hover = [f"the {side} popular {a:.0%} of the items: {portion(b)}" for a, b in zip(x, y, strict=True)]
        axes = (f"share of the items, {side} popular first", "share of the interactions")
        scale = Scale((True, True), top=1.0, diagonal=slug == "lorenz")
        drawn[slug] = line_figure({"": Line(x, y, hover, place)}, axes, slug, scale)
    return drawn


def _heads(along: Mapping[str, Motion]) -> Figure:
    curves = {f"along {name.split()[-1]}": motion.heads.shared for name, motion in along.items()}
    curves["random periods"] = list(along.values())[-1].heads.chance
    drawn = {}
    for place, (name, shared) in enumerate(curves.items()):
        hover = [f"{lag} apart: {value:.0%} in common" for lag, value in enumerate(shared, 1)]
        drawn[name] = Line(list(range(1, len(shared) + 1)), shared, hover, place if place < len(along) else None)
    return line_figure(drawn, ("tenths apart", "most popular items in common"), "heads", Scale((False, True), top=1.0))


def _movers(motion: Motion, name: str, titles: Sequence[str]) -> Figure:
    drawn: dict[str, Line] = {}
    tenths = list(range(1, motion.periods + 1))
    for place, mover in enumerate(motion.movers):
        title = titles[mover.item]
        if same := sum(other == title or other.startswith(f"{title} #") for other in drawn):
            title = f"{title} #{same + 1}"
        hover = [f"{title}, tenth {n}: {value:.2%}" for n, value in zip(tenths, mover.shares, strict=True)]
        drawn[title] = Line(tenths, mover.shares, hover, place)
    rows = [[count(n), *(percent(line.y[n - 1], 2) for line in drawn.values())] for n in tenths]
    columns = [Column("tenth", True), *(Column(title, True) for title in drawn)]
    table = Table(f"Share of the interactions along {name}", columns, rows, sortable=False)
    axes = (f"tenth of {'a history' if name == 'user histories' else 'the log'}", "share of the interactions")
    return line_figure(drawn, axes, f"movers-{name.split()[-1]}", Scale((False, True)), table)


def _scores(found: Audit, split: str) -> Figure:
    scores = [each for each in found.baselines if each.metric == "NDCG@10"]
    period = dict(zip(BASELINES, ("all time", "last period"), strict=True))
    dots = []
    for each in sorted(scores, key=lambda each: (each.protocol, each.baseline != BASELINES[0])):
        if each.split == split:
            name, figures = f"{each.protocol}, {period[each.baseline]}", (each.mean, each.low, each.high)
            title = "{}, {}: NDCG@10 {:.3f}, {:.3f} to {:.3f}".format(each.baseline, each.protocol, *figures)
            dots.append(Dot(name, *figures, BASELINES.index(each.baseline), title))
    drawing = intervals(dots, "NDCG@10", max(1e-3, *(each.high for each in scores)), f"baselines-{split}")
    return Figure("", drawing, "; ".join(dot.title for dot in dots))


def _costs(found: Audit, nth_clip: int) -> Figure:
    drawn = {}
    for place, (estimator, name) in enumerate(WEIGHTED.items(), 1):
        settings = [found.costs.of(estimator, exponent, nth_clip) for exponent in reversed(EXPONENTS)]
        hover = ["exponent 0: equal weights, 100%"]
        for cost in settings:
            kept = f"{cost.ess_share:.1%}, largest weight {cost.largest_share:.2g} of all"
            hover.append(f"{name}, exponent {cost.exponent:g}: {kept}")
        shares = [1.0, *(each.ess_share for each in settings)]
        drawn[name] = Line([0.0, *(each.exponent for each in settings)], shares, hover, place)
    axes = ("exponent of the weights", "effective share of the interactions")
    return line_figure(drawn, axes, f"ess{nth_clip}", Scale((False, True), top=1.05))
