"""The page of `unveil world fit`: how well the world was fitted, and what it is like."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.describe import lorenz
from unveil.report.charts import curves, lorenz_figure
from unveil.report.page import Code, Table, write_page
from unveil.report.prose import Prose
from unveil.simulation.describe import rows, table_means
from unveil.simulation.world import World


def write_world_page(world: World, path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    figures, exposure = world.describe(), table_means(world, world.exposure)
    means = {"relevance γ": table_means(world, world.relevance).by_step, "exposure θ": exposure.by_step}
    steps_T, even = np.flatnonzero(exposure.step_2T[1]), np.linspace(0, 1, 21)
    prose = Prose(["world.md.j2"], {"origin": world.origin, "world": figures, "rows": rows(figures)})
    parts = {
        "fit": fit_table(world.origin),
        "by-step": curves(steps_T, means, (0, 1), "mean over users and items", "by-step", "step"),
        "shares": lorenz_figure({"": lorenz(exposure.total_V, even)}, "exposure", "exposure-shares"),
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
