"""The log of the demo beside its ground truth. Shapes: N events, V items, U users, T steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.exposure import rank_correlation
from unveil.data.describe import Description, describe, rows
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.evaluation.evaluator import favourites_of
from unveil.report import plots
from unveil.report.charts import curves
from unveil.report.page import Column, Figure, Table, columns, count
from unveil.simulation.world import World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEVERITIES = (1.0, 2.0, 3.0, 4.0)
_TOP_ITEMS, _RANKED_ITEMS, _SEASONAL_ITEMS = 15, 50, 5
_BLOCK = 1024  # events


@dataclass(frozen=True, eq=False)
class WorldLog:
    """A log drawn from a world; an event's most relevant item is that of highest γ for its user at its step."""

    world: World
    log: Interactions
    figures: Description
    relevant_V: Ints  # at how many events each item was the most relevant one
    chosen_V: Ints  # how many events each item has
    hits: float  # share of the events whose item is the most relevant one
    lost: float  # mean over events of γ of the most relevant item − γ of the chosen one
    relevant_theta_N: NDArray[np.float32]  # θ of the most relevant item of each event

    @classmethod
    def draw(cls, world: World, seed: int) -> "WorldLog":
        log = world.log(np.random.default_rng(seed))
        assert log.step is not None
        best_N = favourites_of(world, log.user, log.step)
        gamma_best_N, gamma_N = (world.relevance_of(log.user, item_N, log.step) for item_N in (best_N, log.item))
        return cls(
            world=world,
            log=log,
            figures=describe(log),
            relevant_V=np.bincount(best_N, minlength=world.n_items),
            chosen_V=np.bincount(log.item, minlength=world.n_items),
            hits=float((best_N == log.item).mean()),
            lost=float((gamma_best_N - gamma_N).mean()),
            relevant_theta_N=world.exposure_of(log.user, best_N, log.step),
        )

    @property
    def theta_N(self) -> Floats:
        assert self.log.propensity is not None
        return self.log.propensity

    @property
    def effective_share(self) -> float:
        """(Σ w)² / (N Σ w²) with w = 1/θ: the share of the events that weighting leaves."""
        weight_N = 1 / self.theta_N
        return float(weight_N.sum() ** 2 / (weight_N**2).sum() / len(weight_N))

    @cached_property
    def item_means(self) -> tuple[Floats, Floats]:
        """Mean γ and mean θ of each item, over the user and the step of every event."""
        world, log = self.world, self.log
        assert log.step is not None
        gamma_V, theta_V = np.zeros(world.n_items), np.zeros(world.n_items)
        for start in range(0, len(log), _BLOCK):
            user_B, step_B = log.user[start : start + _BLOCK], log.step[start : start + _BLOCK]
            gamma_V += world.relevance(user_B, step_B).sum(0, dtype=np.float64)
            theta_V += world.exposure(user_B, step_B).sum(0, dtype=np.float64)
        return gamma_V / len(log), theta_V / len(log)

    @cached_property
    def seasons(self) -> dict[str, Floats]:
        """Mean θ over all users along the steps, of the items of highest mean exposure."""
        world, user_U = self.world, np.arange(self.world.n_users)

        def mean(item: int, step: int) -> float:
            return float(world.exposure_of(user_U, np.full_like(user_U, item), np.full_like(user_U, step)).mean())

        most = np.argsort(-self.item_means[1], kind="stable")[:_SEASONAL_ITEMS]
        return {world.items[int(v)]: np.array([mean(v, t) for t in range(world.n_steps)]) for v in most}


def at_severities(world: World, seed: int) -> list[WorldLog]:
    """Logs of the world with milder and more severe exposure, its own among them, from the same random numbers."""
    return [WorldLog.draw(world.with_severity(p), seed) for p in sorted({*SEVERITIES, world.severity})]


def log_facts(own: WorldLog) -> dict[str, Any]:
    """The figures that the captions name."""
    gamma_V, theta_V = own.item_means
    return {
        "own": own,
        "log": own.figures,
        "description": rows(own.figures),
        "top_items": _top_items(own),
        "rank_correlation": rank_correlation(own.chosen_V, own.relevant_V),
        "median_theta": {"chosen": float(np.median(own.theta_N)), "relevant": float(np.median(own.relevant_theta_N))},
        "correlation": float(np.corrcoef(np.log(theta_V), gamma_V)[0, 1]),
        "world": own.world.describe(),
    }


def log_figures(own: WorldLog) -> Mapping[str, Figure]:
    """The plots of the log; their words are in the template."""
    names, (gamma_V, theta_V) = own.log.items.ids.to_list(), own.item_means
    counts = {"chosen": own.chosen_V, "most relevant": own.relevant_V}
    exposures: dict[str, NDArray[Any]] = {"chosen": own.theta_N, "most relevant": own.relevant_theta_N}
    titles = [
        f"{name}: exposure {theta:.3f}, relevance {gamma:.2f}, {n:,} interactions"
        for name, theta, gamma, n in zip(names, theta_V, gamma_V, own.chosen_V, strict=True)
    ]
    axes = "mean exposure θ, logarithmic", "mean relevance γ"
    length_U = Sequences.of(own.log).length_U
    length_U = length_U[length_U > 0]
    steps_T, colours = np.arange(own.world.n_steps), range(len(own.seasons))
    return {
        "popularity": _plot(plots.popularity(own.chosen_V, names), _most_chosen(own.chosen_V, names)),
        "lengths": _plot(plots.lengths(length_U), _histogram(length_U)),
        "lorenz": _plot(plots.lorenz(counts)),
        "exposures": _plot(plots.distributions(exposures, "exposure θ, logarithmic")),
        "items": _plot(plots.scatter(theta_V, gamma_V, own.chosen_V, titles, axes, "truth")),
        "seasons": curves(steps_T, own.seasons, colours, "mean exposure θ", "seasons", "time step"),
    }


def _plot(drawing: Any, data: Table | None = None) -> Figure:
    return Figure("", drawing, "", data=data)


def _most_chosen(chosen_V: Ints, names: Sequence[str]) -> Table:
    order = np.argsort(-chosen_V, kind="stable")[:_RANKED_ITEMS]
    body = [[names[v], count(rank), count(chosen_V[v])] for rank, v in enumerate(order, 1)]
    return Table(f"The {_RANKED_ITEMS} items with the most interactions", columns("item", "rank", "interactions"), body)


def _histogram(length_U: Ints) -> Table:
    edges = plots.length_bins(length_U)
    users, _ = np.histogram(length_U, edges)
    body = [[count(a), count(b - 1), count(n)] for a, b, n in zip(edges[:-1], edges[1:], users, strict=True)]
    heads = [Column(title, True) for title in ("from", "to", "users")]
    return Table("Users by the length of their history", heads, body, sortable=False)


def _top_items(own: WorldLog) -> list[tuple[str, int, int, float, float]]:
    """Items that are chosen or most relevant most often: both counts, mean θ and mean γ."""
    names, (gamma_V, theta_V) = own.log.items.ids.to_list(), own.item_means
    top = np.argsort(-np.maximum(own.chosen_V, own.relevant_V), kind="stable")[:_TOP_ITEMS]
    top = top[np.argsort(-own.chosen_V[top], kind="stable")]
    return [(names[v], int(own.chosen_V[v]), int(own.relevant_V[v]), theta_V[v], gamma_V[v]) for v in top.tolist()]
