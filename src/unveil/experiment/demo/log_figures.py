"""The plots of the demo's page, with their words and their numbers. Shapes: V items, U users, T steps, N events."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.experiment.demo.log import Truth
from unveil.report import plots
from unveil.report.page import Column, Figure, Table, count, number

_SEASONAL_ITEMS = 5


def popularity(truth: Truth) -> Figure:
    """Rank and frequency."""
    names, skew = truth.log.items.ids.to_list(), truth.figures.skew
    return Figure(
        "A few items are taken again and again",
        plots.popularity(truth.taken_V, names),
        f"Items by rank against how often they were taken, on logarithmic axes: {truth.taken_V.max():,} times for the "
        f"first, once for {skew.once} of the last.",
        f"Each point is an item. Gini coefficient {skew.gini:.2f}: 0 would be all alike, 1 all on one.",
        _ranked(truth.taken_V, names),
    )


def _ranked(taken_V: NDArray[np.int64], names: Sequence[str]) -> Table:
    order = np.argsort(-taken_V, kind="stable")[:50]
    body = [[names[v], count(rank), count(taken_V[v])] for rank, v in enumerate(order, 1)]
    return Table("The fifty most taken items", [Column("item"), Column("rank", True), Column("taken", True)], body)


def lengths(truth: Truth) -> Figure:
    """How long histories are."""
    length_U = Sequences.of(truth.log).length_U
    length_U = length_U[length_U > 0]
    return Figure(
        "Histories are of unequal length",
        plots.lengths(length_U),
        f"Histogram of history lengths, from {length_U.min()} to {length_U.max()} events; half of the users have at "
        f"most {np.median(length_U):g}.",
        "Users join at different steps and stay to the end; a step at which nothing pleased leaves no trace.",
        _histogram(length_U),
    )


def _histogram(length_U: NDArray[np.int64]) -> Table:
    edges = plots.length_bins(length_U)
    height, _ = np.histogram(length_U, edges)
    return Table(
        "Users by length of history",
        [Column("from", True), Column("to", True), Column("users", True)],
        [[count(a), count(b - 1), count(users)] for a, b, users in zip(edges[:-1], edges[1:], height, strict=True)],
        sortable=False,
    )


def taken_and_liked(truth: Truth) -> Figure:
    """Two Lorenz curves."""
    liked, agree = int((truth.favourite_V > 0).sum()), rank_correlation(truth.taken_V, truth.favourite_V)
    return Figure(
        "Taken is not the same as liked best",
        plots.lorenz({"taken": truth.taken_V, "liked best": truth.favourite_V}),
        "Two Lorenz curves, share of interactions against share of items: for what was taken, and for what would have "
        "been taken had everything been seen.",
        f"{liked} of the {truth.world.n_items} items are the favourite of somebody at some interaction. Over items, "
        f"being taken and being liked best have a rank correlation of {number(agree).text}.",
    )


def rank_correlation(one_V: NDArray[np.int64], two_V: NDArray[np.int64]) -> float:
    """Spearman's ρ: the correlation of ranks, equal counts sharing their mean rank."""
    return float(np.corrcoef(_mean_ranks(one_V), _mean_ranks(two_V))[0, 1])


def _mean_ranks(value_V: NDArray[np.int64]) -> NDArray[np.float64]:
    _, place_V, size = np.unique(value_V, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[place_V]


def out_of_sight(truth: Truth) -> Figure:
    """θ of what was taken and of what was liked best."""
    assert truth.log.propensity is not None
    taken, liked = float(np.median(truth.log.propensity)), float(np.median(truth.favourite_exposure_N))
    return Figure(
        "How visible was what was taken, and what was liked best?",
        plots.distributions(
            {"taken": truth.log.propensity, "liked best": truth.favourite_exposure_N}, "exposure θ, logarithmic"
        ),
        f"Two histograms over interactions on a logarithmic axis: the exposure of what was taken, of median "
        f"{taken:.3f}, and that of what the user would have liked best, of median {liked:.3f}.",
        f"Over the {len(truth.log):,} interactions: the median exposure of what was taken is {taken:.3f}, that of the "
        f"user's favourite at the same step {liked:.3f}.",
    )


def relevance_and_exposure(truth: Truth, gamma_V: NDArray[np.float64], theta_V: NDArray[np.float64]) -> Figure:
    """The truth about every item."""
    names = truth.log.items.ids.to_list()
    titles = [
        f"{name}: exposure {theta:.3f}, relevance {gamma:.2f}, taken {taken:,} times"
        for name, theta, gamma, taken in zip(names, theta_V, gamma_V, truth.taken_V, strict=True)
    ]
    related = float(np.corrcoef(np.log(theta_V), gamma_V)[0, 1])
    labels = "mean exposure θ, logarithmic", "mean relevance γ"
    return Figure(
        "What is shown, what pleases, and what is taken",
        plots.scatter(theta_V, gamma_V, truth.taken_V, titles, labels, "truth"),
        "A point for each item: mean exposure across, mean relevance up, the area growing with how often it was taken.",
        f"Each point is an item, averaged over the log's users and steps; its area grows with how often it was taken. "
        f"Exposure and relevance are drawn apart: the correlation of log θ and γ over items is {number(related).text}.",
    )


def seasons(truth: Truth, theta_V: NDArray[np.float64]) -> Figure:
    """Exposure along the steps."""
    curves = seasonal_curves(truth, theta_V)
    return Figure(
        "Exposure comes and goes",
        plots.over_steps(curves, "mean exposure θ", "seasons"),
        f"Mean exposure along the steps of {', '.join(curves)}: each rises and falls at a time of its own.",
        f"The {len(curves)} items of highest exposure, averaged over all users. One number for an item, as static "
        "inverse propensity scoring uses, cannot stand for a curve: so propensities here depend on the step.",
        Table(
            "Mean exposure by step",
            [Column("step", True), *(Column(name, True) for name in curves)],
            [[count(t), *(number(curve[t], 3) for curve in curves.values())] for t in range(truth.world.n_steps)],
            sortable=False,
        ),
    )


def seasonal_curves(truth: Truth, theta_V: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Mean θ over all users along the steps, for the most exposed items."""
    world, user_M = truth.world, np.arange(truth.world.n_users)

    def mean(item: int, step: int) -> float:
        return float(world.exposure_of(user_M, np.full_like(user_M, item), np.full_like(user_M, step)).mean())

    most = np.argsort(-theta_V, kind="stable")[:_SEASONAL_ITEMS]
    return {world.items[int(v)]: np.array([mean(v, t) for t in range(world.n_steps)]) for v in most}
