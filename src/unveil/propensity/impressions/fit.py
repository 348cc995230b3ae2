"""Learning exposure: earlier days to learn from, later ones to stop and calibrate by, the last to judge on.

Shapes: D days, V items, M pairs, K factors.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.impressions.calibrate import calibrated
from unveil.propensity.impressions.judge import Quality, judged
from unveil.propensity.impressions.learn import Learning, learnt
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Draw, Pairs
from unveil.propensity.impressions.shares import recent, share
from unveil.propensity.impressions.shown import Shown

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ExposureFit:
    """How exposure is learnt and judged."""

    valid_days: int = 2
    test_days: int = 2
    look_back: int = 2  # first days from which nothing is learnt: too little came before them
    half_life: float = 1.0  # days after which an impression counts half in what is shown of late …
    longer: float = 14.0  # … and over a longer time
    judged_negatives: int = 50  # of each held-out impression
    learning: Learning = field(default_factory=Learning)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("look_back", 1),
            ("valid_days", 1),
            ("test_days", 1),
            ("judged_negatives", 1),
            ("seed", 0),
        ):
            refuse_unless(getattr(self, name) >= least, name, getattr(self, name), f"at least {least}")
        for name in ("half_life", "longer"):
            refuse_unless(0 < getattr(self, name) < float("inf"), name, getattr(self, name), "above 0")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, how good it is on the last days beside popularity, and what the days are."""

    model: ExposureModel
    quality: dict[str, Quality]  # model → figures on the held-out days
    days: dict[str, int]  # part → days
    impressions: dict[str, int]  # part → impressions
    epochs: list[
        dict[str, float]
    ]  # the loss on the validation days after each; at 0 it is that of what is shown of late
    strangers: dict[str, float]  # share of the test impressions whose user, or item, the fitted days do not have


def fit(log: Interactions, how: ExposureFit, progress: Progress = lambda done, total: None) -> Fitted:
    """Fit on the first days, stop and calibrate on the next, judge on the last."""
    shown = Shown.of(log)
    days = _days(shown, how)
    learn, valid, test = (shown.between(*ends) for ends in days.values())
    rng = np.random.default_rng(how.seed)
    count_DV = shown.counts(shown.n_days)
    shares = np.log(recent(count_DV, how.half_life)), np.log(recent(count_DV, how.longer))
    uniform = Draw(how.judged_negatives, np.full(shown.n_items, 1 / shown.n_items))
    held_out = uniform.pairs(valid, rng)
    model, epochs = learnt(log, shown, learn, held_out, shares, how.learning, rng, progress)
    model = calibrated(model, held_out)
    pairs = uniform.pairs(test, rng)
    theta = {**_popularities(shown, days["learn"][1], how, pairs), "learnt": _of(model, pairs)}
    return Fitted(
        model,
        {name: judged(each, pairs) for name, each in theta.items()},
        {name: stop - start for name, (start, stop) in days.items()},
        {"learn": len(learn), "valid": len(valid), "test": len(test)},
        epochs,
        {
            "users": float((~np.isin(test.user_N, learn.user_N)).mean()),
            "items": float((~np.isin(test.item_N, learn.item_N)).mean()),
        },
    )


def _days(shown: Shown, how: ExposureFit) -> dict[str, tuple[int, int]]:
    """Which days are for what; the first ones only serve to look back on."""
    last = shown.n_days
    ends = (how.look_back, last - how.valid_days - how.test_days, last - how.test_days, last)
    if ends[1] <= ends[0]:
        expected = f"at least {how.look_back + how.valid_days + how.test_days + 1}"
        raise UnveilError("too few days to learn from, to stop by and to judge on", found=last, expected=expected)
    parts = dict(zip(("learn", "valid", "test"), pairwise(ends), strict=True))
    for name, (start, stop) in parts.items():
        if not len(shown.between(start, stop)):
            raise UnveilError(f"nothing was shown on the days that are to {name}", hint="Choose other numbers of days.")
    return parts


def _of(model: ExposureModel, pairs: Pairs) -> Any:
    return model.theta(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M)


def _popularities(shown: Shown, until: int, how: ExposureFit, pairs: Pairs) -> dict[str, Any]:
    """What is counted: in what users took and in what they were shown, on the fitted days and of late."""
    found = {"uniform": np.full(len(pairs), 1 / shown.n_items)}
    for name, taken in (("taken", True), ("shown", False)):
        count_DV = shown.counts(shown.n_days, taken=taken)
        found[f"{name}, static"] = share(count_DV[:until].sum(0))[pairs.item_M]
        found[f"{name}, of late"] = recent(count_DV, how.half_life)[pairs.day_M, pairs.item_M]
    return found
