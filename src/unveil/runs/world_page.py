"""The page of `unveil world fit`: how well the world was fitted, and what it is like. Shapes: T steps, V items."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.report.page import Cell, Code, Column, Figure, Page, Table, number, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose
from unveil.simulation.describe import rows
from unveil.simulation.world import World

#: Who predicts the held-out tuples.
PREDICTORS = {
    "mean": "the mean",
    "bias_only": "biases only: user + item + step",
    "recipe": "the recipe {recipe!r}",
    "world": "the factors of this world",
}
#: Steps and users that the plots look at, evenly spread.
_STEPS, _USERS = 25, 64


@dataclass(frozen=True, eq=False)
class Seen:
    """Means over some users: of γ and of θ at some steps, and of θ for each item over these steps."""

    step_T: NDArray[np.int64]
    gamma_T: NDArray[np.float64]
    theta_T: NDArray[np.float64]
    theta_V: NDArray[np.float64]


def write_world_page(world: World, path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    write_page(world_page(world, shlex.join(command)), path)
    return path


def world_page(world: World, command: str) -> Page:
    """The whole page of a world that was fitted."""
    seen, figures = looked_at(world), world.describe()
    told: list[list[Cell | str]] = [[name.replace("  ", "– "), value] for name, value in rows(figures)]
    parts = {
        "fit": fit_table(world.origin),
        "by-step": _by_step(seen),
        "shares": _lorenz(seen),
        "figures": Table("", [Column("figure"), Column("value", True)], told, sortable=False),
        "command": Code(command),
    }
    facts = {"origin": world.origin, "world": figures, "sampled_users": _USERS}
    return Prose(["world.md.j2"], facts).page(parts)


def fit_table(origin: Mapping[str, Any]) -> Table:
    """A row for each predictor, on tuples that were not learnt from."""
    columns = [
        Column("held-out tuples: test (validation)"),
        Column("MSE of ratings", True),
        Column("AUC of exposure", True),
    ]
    body: list[list[Cell | str]] = [
        [label.format(recipe=origin["recipe"]), *(_score(origin[task][who]) for task in ("relevance", "exposure"))]
        for who, label in PREDICTORS.items()
    ]
    return Table("Predictions of what was held out", columns, body)


def _score(score: Mapping[str, float]) -> Cell:
    return Cell(f"{score['test']:.4f} ({score['valid']:.4f})", score["test"])


def looked_at(world: World) -> Seen:
    """Means over users, evenly spread, at steps, evenly spread; a user counts where they are there."""
    step_T = _spread(world.n_steps, _STEPS)
    gamma_T, theta_T, theta_V, kept = list[float](), list[float](), np.zeros(world.n_items), list[int]()
    for step in step_T.tolist():
        there = np.flatnonzero(world.start_U <= step)
        if not len(there):
            continue
        user_B = there[_spread(len(there), _USERS)]
        step_B = np.full(len(user_B), step)
        theta_BV = world.exposure(user_B, step_B)
        gamma_T.append(float(world.relevance(user_B, step_B).mean()))
        theta_T.append(float(theta_BV.mean()))
        theta_V += theta_BV.mean(0)
        kept.append(step)
    return Seen(np.array(kept), np.array(gamma_T), np.array(theta_T), theta_V / max(1, len(kept)))


def _by_step(seen: Seen) -> Figure:
    drawn = {}
    for place, (name, value_T) in enumerate((("relevance γ", seen.gamma_T), ("exposure θ", seen.theta_T))):
        hover = [f"{name}, step {step}: {value:.3f}" for step, value in zip(seen.step_T, value_T, strict=True)]
        drawn[name] = Line(seen.step_T.tolist(), value_T.tolist(), hover, place)
    columns = [Column("step", True), *(Column(name, True) for name in drawn)]
    body: list[list[Cell | str]] = [
        [number(step, 0), number(gamma, 4), number(theta, 4)]
        for step, gamma, theta in zip(seen.step_T, seen.gamma_T, seen.theta_T, strict=True)
    ]
    axes = ("step", "mean over users and items")
    return line_figure(drawn, axes, "by-step", Scale(whole=True), Table("Means by step", columns, body))


def _lorenz(seen: Seen) -> Figure:
    """How much of all exposure the most exposed items get."""
    share_V = np.cumsum(np.sort(seen.theta_V)[::-1]) / seen.theta_V.sum()
    at = np.unique(np.linspace(1, len(share_V), min(21, len(share_V))).round().astype(np.int64))
    x, y = (at / len(share_V)).tolist(), share_V[at - 1].tolist()
    hover = [f"the most exposed {a:.0%} of the items: {b:.0%} of all exposure" for a, b in zip(x, y, strict=True)]
    axes = ("items, most exposed first", "share of exposure")
    return line_figure({"exposure": Line(x, y, hover)}, axes, "exposure-shares", Scale((True, True), diagonal=True))


def _spread(many: int, few: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, many - 1, min(few, many)).round().astype(np.int64))
