"""What the figures of a learnt exposure say, in sentences chosen by them."""

from collections.abc import Mapping
from typing import Any

from unveil.report.names import share

#: Models as people call them, in the order of the tables.
NAMES = {
    "uniform": "all items alike",
    "taken, static": "popularity: taken, static",
    "taken, of late": "popularity: taken, of late",
    "shown, static": "popularity: shown, static",
    "shown, of late": "popularity: shown, of late",
    "learnt": "learnt",
}
WHAT = (
    "θ is the probability that an item is what a user is shown at an impression of that day and hour: over all items "
    "it sums to about 1, as popularity does. It is learnt from what was shown, taken or not; whether it was taken "
    "plays no part, for that is relevance."
)
CAUTION = (
    "Held-out impressions are those of the last days. Each is paired with the item that was shown and with items drawn "
    "at random, which stand for all that were not: log-loss, calibration error and mass are those of all pairs. Shares "
    "of late look back from each day only, on the held-out days too."
)


def reading(about: Mapping[str, Any]) -> list[str]:
    """Ranking and loss beside popularity, calibration, and what strangers get."""
    return [_loss(about["quality"]), _calibration(about["quality"]), WHAT, _strangers(about), CAUTION]


def _loss(quality: Mapping[str, Mapping[str, float]]) -> str:
    own = quality["learnt"]
    rivals = [name for name in quality if name not in ("learnt", "uniform")]
    best = min(rivals, key=lambda name: quality[name]["log_loss"])
    gain = quality[best]["log_loss"] - own["log_loss"]
    told = f"{abs(gain):.3f} nats an impression {'below' if gain > 0 else 'above'} the best {NAMES[best]}"
    return (
        f"On held-out days the learnt exposure has an AUC of {own['auc']:.3f} and a log-loss of {own['log_loss']:.3f}: "
        f"{told} ({quality[best]['auc']:.3f} and {quality[best]['log_loss']:.3f}). Popularity counted in what users "
        f"took, as it stands in for exposure where no impressions are known, has {quality['taken, static']['auc']:.3f} "
        f"and {quality['taken, static']['log_loss']:.3f}."
    )


def _calibration(quality: Mapping[str, Mapping[str, float]]) -> str:
    told = ", ".join(f"{NAMES[name]} {share(each['ece'])}" for name, each in quality.items() if name != "uniform")
    return (
        f"Expected calibration error, as a share of what was shown: {told}. In all, the learnt exposure promises "
        f"{quality['learnt']['mass']:.2f} impressions for each there was."
    )


def _strangers(about: Mapping[str, Any]) -> str:
    found = about["strangers"]
    return (
        f"{found['users']:.0%} of the held-out impressions are of users, {found['items']:.0%} of items, that the "
        f"fitted days do not have. To them, and to ids that the log does not have at all, θ is what "
        f"popularity alone gives."
    )
