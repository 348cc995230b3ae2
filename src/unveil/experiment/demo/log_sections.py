"""The sections of the demo's page about its log: what it shows, what it hides, what severity does. Shapes: V items."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import rows
from unveil.experiment.demo import log_figures as figures
from unveil.experiment.demo.log import Truth
from unveil.report.page import Block, Cell, Column, Figures, Section, Table, Text, count, number, percent

_TOP_ITEMS = 15
_BLOCK = 1024


def log_sections(truth: Truth, severities: Sequence[Truth]) -> list[Section]:
    """What the log shows, what it hides, and how both change with the severity of exposure."""
    return [
        Section("What the log shows", _shown(truth)),
        Section("What the log hides", _hidden(truth, *item_means(truth))),
        Section("The harsher the exposure, the less the log knows", _harsher(severities, truth.world.severity)),
    ]


def item_means(truth: Truth) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean γ and mean θ of each item, over the user and the step of every event in the log."""
    world, log = truth.world, truth.log
    assert log.step is not None
    gamma_V, theta_V = np.zeros(world.n_items), np.zeros(world.n_items)
    for start in range(0, len(log), _BLOCK):
        user_B, step_B = log.user[start : start + _BLOCK], log.step[start : start + _BLOCK]
        gamma_V += world.relevance(user_B, step_B).sum(0, dtype=np.float64)
        theta_V += world.exposure(user_B, step_B).sum(0, dtype=np.float64)
    return gamma_V / len(log), theta_V / len(log)


def _shown(truth: Truth) -> list[Block]:
    return [
        Figures([figures.popularity(truth), figures.lengths(truth)]),
        Table(
            "The log in figures, as “unveil data describe” gives them",
            [Column("figure"), Column("value", True)],
            [row for row in rows(truth.figures) if row[1] != "not recorded"],
            sortable=False,
        ),
    ]


def _hidden(truth: Truth, gamma_V: NDArray[np.float64], theta_V: NDArray[np.float64]) -> list[Block]:
    return [
        Text(
            f"Had every user seen every item, they would have taken another one at {1 - truth.favourite_taken:.1%} of "
            f"the {truth.figures.interactions:,} interactions. What they took was less relevant by {truth.lost:.2f} on "
            f"average, on the scale of γ, a probability. A model that is trained to predict the log is "
            f"trained on what was shown."
        ),
        Figures(
            [
                figures.taken_and_liked(truth),
                figures.out_of_sight(truth),
                figures.relevance_and_exposure(truth, gamma_V, theta_V),
                figures.seasons(truth, theta_V),
            ]
        ),
        _items(truth, gamma_V, theta_V),
    ]


def _items(truth: Truth, gamma_V: NDArray[np.float64], theta_V: NDArray[np.float64]) -> Table:
    names, taken_V, liked_V = truth.log.items.ids.to_list(), truth.taken_V, truth.favourite_V
    top = np.argsort(-np.maximum(taken_V, liked_V), kind="stable")[:_TOP_ITEMS]
    top = top[np.argsort(-taken_V[top], kind="stable")]
    return Table(
        f"The {_TOP_ITEMS} items most taken or most liked",
        [
            Column("item"),
            Column("taken", True, "interactions"),
            Column("liked best", True, "interactions"),
            Column("exposure", True, "mean θ"),
            Column("relevance", True, "mean γ"),
        ],
        [[names[v], count(taken_V[v]), count(liked_V[v]), number(theta_V[v], 3), number(gamma_V[v])] for v in top],
    )


def _harsher(severities: Sequence[Truth], own: float) -> list[Block]:
    return [
        Text(
            "Exposure is raised to a power p, the severity: θ = ô^p. The higher it is, the fewer items are shown, and "
            "the more unequally. Relevance stays as it was, and so do all random numbers: only exposure differs. "
            "Weights of 1/θ grow with it, and the sample that they leave shrinks."
        ),
        Table(
            "One draw at each severity",
            [
                Column("severity p"),
                Column("shown", True, "items a step, mean"),
                Column("interactions", True),
                Column("items taken", True),
                Column("Gini", True, "of times taken"),
                Column("favourite taken", True, "of interactions"),
                Column("relevance lost", True, "mean over interactions"),
                Column("left by 1/θ", True, "effective share of interactions"),
            ],
            [
                [
                    _severity(truth.world.severity, own),
                    number(truth.world.describe().exposed_per_slot, 1),
                    count(truth.figures.interactions),
                    count(truth.figures.items),
                    number(truth.figures.skew.gini),
                    percent(truth.favourite_taken),
                    number(truth.lost),
                    percent(truth.effective_share),
                ]
                for truth in severities
            ],
        ),
    ]


def _severity(severity: float, own: float) -> Cell:
    return Cell(f"{severity:g}{' (this log)' if severity == own else ''}", severity)
