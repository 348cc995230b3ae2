"""The page of the demo: what the log shows, what it hides, and how both were made. Shapes: V items."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import rows
from unveil.experiment import demo_figures as figures
from unveil.experiment.demo import Truth
from unveil.experiment.report import (
    Block,
    Code,
    Column,
    Figures,
    KeyFigure,
    Note,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
)
from unveil.simulation.builtin import WorldSpec

_LEDE = (
    "This log comes from a small made-up world. So we know what no real log tells: how likely every item was to be "
    "shown to every user at every step (exposure, θ), and how likely it was to please (relevance, γ). Users can only "
    "take what they are shown. What is popular is therefore not the same as what is liked, and this page puts the two "
    "side by side."
)
_TOP_ITEMS = 15
_BLOCK = 1024


def demo_page(truth: Truth, severities: Sequence[Truth], seed: int) -> Page:
    """The whole page."""
    return Page(
        title="What a log shows, and what it hides",
        lede=_LEDE,
        key_figures=_key_figures(truth),
        sections=[
            Section("What the log shows", _shown(truth)),
            Section("What the log hides", _hidden(truth, *item_means(truth))),
            Section("The harsher the exposure, the less the log knows", _harsher(severities)),
            Section("How it was made", _made(truth, seed)),
        ],
    )


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


def _key_figures(truth: Truth) -> list[KeyFigure]:
    log = truth.figures
    return [
        KeyFigure(f"{log.interactions:,}", "interactions"),
        KeyFigure(f"{log.users:,}", "users"),
        KeyFigure(f"{log.items:,}", f"items taken, of {truth.world.n_items:,} in all"),
        KeyFigure(f"{log.lengths.mean:.1f}", "interactions a user, on average"),
        KeyFigure(f"{log.skew.top_10_percent:.0%}", "of interactions fall on a tenth of the items"),
        KeyFigure(f"{truth.favourite_taken:.1%}", "of interactions are with the user’s true favourite"),
    ]


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
            f"average, on the scale of γ, a probability. A model that is trained to predict the log learns to predict "
            f"what is shown."
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


def _harsher(severities: Sequence[Truth]) -> list[Block]:
    return [
        Text(
            "Exposure is raised to a power p, the severity: θ = ô^p. The higher it is, the fewer items are shown, and "
            "the more unequally. Relevance stays as it was, and so do all random numbers: only exposure differs."
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
            ],
            [
                [
                    plain(truth.world.severity),
                    number(truth.world.describe().exposed_per_slot, 1),
                    count(truth.figures.interactions),
                    count(truth.figures.items),
                    number(truth.figures.skew.gini),
                    percent(truth.favourite_taken),
                    number(truth.lost),
                ]
                for truth in severities
            ],
        ),
    ]


def _made(truth: Truth, seed: int) -> list[Block]:
    world, spec = truth.world.describe(), WorldSpec(**truth.world.origin["spec"])
    return [
        Text(
            "At every step of a user, each item is shown with probability θ; of what is shown, the user takes the item "
            "of highest γ, and is pleased with it with probability γ. If so, the log gets an event with its own step "
            "and its true propensity. Users may take an item again, as in the data of the paper that this follows."
        ),
        Note(
            f"Relevance is personal: at the last step the {world.users} users have {world.favourites} different "
            f"favourites, and the commonest of these is shared by {world.commonest_favourite:.1%} of them."
        ),
        Table(
            "The parameters of the world",
            [Column("parameter"), Column("value", True), Column("meaning")],
            [[name, plain(value), says] for name, value, says in spec.sentences()],
            sortable=False,
        ),
        Text("Beside this page lie the log (log.csv) and the world (world/). To draw and describe the log again:"),
        Code(f"unveil world draw builtin --seed {seed} -o log.csv\nunveil data describe log.csv"),
        Text(f"Fingerprint of the log: {truth.log.fingerprint()[:16]}."),
    ]
