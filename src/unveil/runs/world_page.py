"""The page of `unveil world fit`: how well the world was fitted, and what it is like. Shapes: T steps, V items."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Page,
    Section,
    Table,
    Text,
    number,
    write_page,
)
from unveil.report.plots import Line, Scale, lines
from unveil.simulation.describe import WorldDescription, rows
from unveil.simulation.world import World

#: Who predicts the held-out tuples.
PREDICTORS = {
    "mean": "predicting the mean",
    "bias_only": "biases alone: user + item + step",
    "recipe": "the recipe {recipe!r}",
    "world": "the factors of this world",
}
#: Steps and users that the plots look at, evenly spread.
_STEPS, _USERS = 25, 64
_FITTED = (
    "On tuples that were not learnt from: the squared error of ratings, lower is better, and how well exposed tuples "
    "are told from those that were not, AUC, higher is better."
)
_DRAWN = " The world is one draw from the posterior: it keeps what is personal; the mean over draws predicts better."
_MADE = "Everything is in world.json, ids.json and factors.safetensors of this folder."


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
    origin, figures = world.origin, world.describe()
    mse, auc = (origin[task]["world"]["test"] for task in ("relevance", "exposure"))
    return Page(
        "The world behind the log",
        f"Relevance learnt from {origin['relevance']['tuples']:,} ratings, exposure from what was interacted with, by "
        f"the recipe {origin['recipe']!r}: {figures.users:,} users, {figures.items:,} items, {figures.steps:,} steps.",
        [
            Section(
                "How well it was fitted",
                [Text(_FITTED + _DRAWN * (origin["recipe"] == "posterior")), fit_table(origin)],
            ),
            Section("What the world is like", _like(world, figures)),
            Section("How it was made", [Text(_MADE), Code(command)]),
        ],
        [
            KeyFigure(f"{mse:.3f}", "mean squared error of held-out ratings"),
            KeyFigure(f"{auc:.3f}", "AUC of held-out exposure"),
            KeyFigure(f"{figures.exposure_gini:.2f}", "Gini coefficient of exposure over items"),
            KeyFigure(f"{figures.exposed_per_slot:,.1f}", "items that a user sees at a step"),
        ],
    )


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


def _like(world: World, figures: WorldDescription) -> list[Block]:
    seen = looked_at(world)
    told: list[list[Cell | str]] = [[label.replace("  ", "– "), value] for label, value in rows(figures)]
    table = Table("The world in figures", [Column("figure"), Column("value", True)], told, sortable=False)
    return [Figures([_by_step(seen), _lorenz(seen)]), table]


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
        told = [f"{name}, step {step}: {value:.3f}" for step, value in zip(seen.step_T, value_T, strict=True)]
        drawn[name] = Line(seen.step_T.tolist(), value_T.tolist(), told, place)
    columns = [Column("step", True), *(Column(name, True) for name in drawn)]
    body: list[list[Cell | str]] = [
        [number(step, 0), number(gamma, 4), number(theta, 4)]
        for step, gamma, theta in zip(seen.step_T, seen.gamma_T, seen.theta_T, strict=True)
    ]
    return Figure(
        "Relevance and exposure by step",
        lines(drawn, ("step", "mean over users and items"), "by-step", Scale(whole=True)),
        "; ".join(text for line in drawn.values() for text in (line.told[0], line.told[-1])),
        f"Means over all items and up to {_USERS} users at each step.",
        Table("Means by step", columns, body),
    )


def _lorenz(seen: Seen) -> Figure:
    """How much of all exposure the most exposed items get."""
    share_V = np.cumsum(np.sort(seen.theta_V)[::-1]) / seen.theta_V.sum()
    at = np.unique(np.linspace(1, len(share_V), min(21, len(share_V))).round().astype(np.int64))
    x, y = (at / len(share_V)).tolist(), share_V[at - 1].tolist()
    told = [
        f"the most exposed {part:.0%} of the items: {share:.0%} of all exposure"
        for part, share in zip(x, y, strict=True)
    ]
    return Figure(
        "How unequal exposure is",
        lines(
            {"exposure": Line(x, y, told)},
            ("items, the most exposed first", "share of exposure"),
            "exposure-shares",
            Scale((True, True), diagonal=True),
        ),
        "; ".join(told[:: max(1, len(told) // 4)]),
        "On the dashed line all items would be exposed alike.",
    )


def _spread(many: int, few: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, many - 1, min(few, many)).round().astype(np.int64))
