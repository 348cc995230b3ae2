"""The page of `unveil world fit`: how well the world was fitted, and what it is like. Shapes: T steps, V items."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.describe import lorenz
from unveil.report.charts import curves, lorenz_figure
from unveil.report.page import Code, Table, write_page
from unveil.report.prose import Prose
from unveil.simulation.describe import rows
from unveil.simulation.world import World

_USERS = 64  # that the plots look at


def write_world_page(world: World, path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    by_step, theta_V = step_means(world)
    figures = world.describe()
    facts = {"origin": world.origin, "world": figures, "rows": rows(figures)}
    prose = Prose(["world.md.j2"], {**facts, "sampled_users": _USERS})
    means = {name: by_step[name].to_numpy() for name in by_step.columns[1:]}
    parts = {
        "fit": fit_table(world.origin),
        "by-step": curves(by_step["step"].to_numpy(), means, (0, 1), "mean over users and items", "by-step", "step"),
        "shares": lorenz_figure({"": lorenz(theta_V, np.linspace(0, 1, 21))}, "exposure", "exposure-shares"),
        "command": Code(shlex.join(command)),
    }
    write_page(prose.page(parts), path)
    return path


def fit_table(origin: Mapping[str, Any]) -> Table:
    """A row for each predictor, on tuples that were not learnt from."""
    facts = {
        "recipe": origin["recipe"],
        "scores": {
            who: [(origin[task][who]["test"], origin[task][who]["valid"]) for task in ("relevance", "exposure")]
            for who in ("mean", "bias_only", "recipe", "world")
        },
    }
    return Prose(["world.md.j2"], facts).table("fit")


def step_means(world: World) -> tuple[pl.DataFrame, NDArray[np.float64]]:
    """γ and θ at steps, means over the users who are there and items; and θ_V, means over these steps."""
    means, theta_V = list[tuple[int, float, float]](), np.zeros(world.n_items)
    for step in _spread(world.n_steps, 25).tolist():
        there = np.flatnonzero(world.start_U <= step)
        if len(there):
            user_B = there[_spread(len(there), _USERS)]
            step_B = np.full(len(user_B), step)
            theta_BV = world.exposure(user_B, step_B)
            means.append((step, float(world.relevance(user_B, step_B).mean()), float(theta_BV.mean())))
            theta_V += theta_BV.mean(0)
    frame = pl.DataFrame(means, schema=["step", "relevance γ", "exposure θ"], orient="row")
    return frame, theta_V / max(1, len(means))


def _spread(many: int, few: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, many - 1, min(few, many)).round().astype(np.int64))
