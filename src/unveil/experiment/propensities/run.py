"""Fitting propensities on a log drawn from a world, and scoring each by what is true there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError, unknown
from unveil.experiment.propensities.score import Score, relevance_of_first, scored
from unveil.experiment.propensities.truth import Truth
from unveil.propensity.base import OF_EVENTS, PROPENSITIES
from unveil.propensity.build import build, refuse_options
from unveil.settings import parsed
from unveil.simulation.world import World

#: The most that a propensity without steps can know, for comparison.
REFERENCE = "known-static"


@dataclass(frozen=True, eq=False)
class Scores:
    """A score for each propensity, and what they were scored on."""

    scores: dict[str, Score]
    slots: int
    items: int
    events: int
    severity: float
    naive: float  # mean relevance logit of the ten first by P(taken), not corrected


def usable(log: Interactions) -> list[str]:
    """Every propensity that this log, and nothing else, is enough for; then the reference."""
    sources = {"nothing"} | ({"ratings"} if log.rating is not None else set())
    sources |= {"impressions"} if log.clicked is not None else set()
    return [*(name for name in PROPENSITIES if PROPENSITIES[name].source in sources), REFERENCE]


def score_all(
    world: World,
    log: Interactions,
    names: Sequence[str] = (),
    assignments: Sequence[str] = (),
    *,
    slots: int = 2000,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Scores:
    """Fit each on the training part, as a training would, and score it at training events drawn at random."""
    asked = list(names or usable(log))
    refuse_of_events(asked)
    refuse_stray(assignments, asked)
    options = {name: _options(name, assignments) for name in asked}
    for name in asked:
        refuse_options(name, options[name])
    part = world.aligned_with(log)
    train = leave_one_out(Sequences.of(log)).train
    if not len(train):
        raise UnveilError("the log has no training events: no user has three or more")
    truth = Truth.of(part, train, slots, np.random.default_rng(seed))
    found = {}
    for name in asked:
        tell(name)
        model = build(name, options[name], train, log=log, world=part)
        found[name] = scored(model, truth)
    naive = relevance_of_first(truth.log_taken(), truth.logit_MV)
    return Scores(found, len(truth.slots), part.n_items, len(train), part.severity, naive)


def refuse_of_events(names: Sequence[str]) -> None:
    """Scores are over every item of a slot: a propensity that is known of the taken one alone has none."""
    for name in names:
        if PROPENSITIES[name].source in OF_EVENTS:
            problem = f"the propensity {name!r} is known of taken items alone, and scores are over all items"
            raise UnveilError(problem, where="--propensity", hint="Leave it out.")


def refuse_stray(assignments: Sequence[str], names: Sequence[str]) -> None:
    """An option of a propensity that is not scored, or of none, would say nothing."""
    for text in assignments:
        name, colon, _ = text.partition(":")
        if not colon or "=" in name:
            raise _of_none(text, names)
        if name not in names:
            raise unknown("propensity that is scored", name, names)


def _of_none(text: str, names: Sequence[str]) -> UnveilError:
    """The error for an option that does not say whose it is; it suggests the first propensity that has such a one."""
    option = text.partition("=")[0].strip()
    whose = next((name for name in names if option in PROPENSITIES.options(name)), None)
    return UnveilError(
        "this option does not say of which propensity it is",
        where="--set",
        found=text,
        expected="PROPENSITY:NAME=VALUE",
        hint=f"For example {whose}:{text}." if whose else None,
    )


def _options(name: str, assignments: Sequence[str]) -> dict[str, object]:
    """Of NAME:OPTION=VALUE those that are of this propensity."""
    own = [text.partition(":")[2] for text in assignments if text.partition(":")[0] == name]
    return dict(map(parsed, own))
