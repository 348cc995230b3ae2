"""What the scores of estimated propensities say, in sentences chosen by them."""

from collections.abc import Mapping
from typing import Any

from unveil.experiment.propensities.run import REFERENCE
from unveil.experiment.propensities.score import CLIP
from unveil.propensity.base import PROPENSITIES
from unveil.report.names import share

#: Figures by the name of the propensity.
Scores = Mapping[str, Mapping[str, float]]

#: Correlations below this are hardly better than none.
_HARDLY = 0.3
#: A share of the gap below this is none.
_SOME = 0.01
WHAT = (
    "Correlations are of log θ̂ with log θ: what a corrected softmax adds, and what a weight is but for its sign. "
    "Calibration error is the share of all exposure that is promised elsewhere than where it is; mass is what is "
    "promised in all over what is true. Popularity sums to one over the items and exposure does not: its mass says so, "
    "and only estimators that do not mind the scale of θ (ips and itps, corrected, tempered) may use it."
)
CLOSED = (
    "“Gap” needs no training: were the probability of every choice known exactly (of a user who takes the best of what "
    "is seen), and were it divided by θ̂, how relevant would the ten items ranked first be? 0% is no correction at all, "
    "100% the true one, below 0% worse than none. A learner that knows choices exactly is hurt by every error of θ̂; a "
    "network knows them less well, and smooths: its figures are those of `unveil reproduce beyond --estimated …`."
)


def reading(about: Mapping[str, Any]) -> list[str]:
    """Which is nearest, what popularity does, and what the figures are."""
    return [_best(about), _weights(about["scores"]), _popularity(about), CLOSED, WHAT]


def estimates(scores: Scores) -> Scores:
    """Those that do not come from the truth, noisy or not; all where there are no others."""
    return {name: each for name, each in scores.items() if PROPENSITIES[name].source != "truth"} or scores


def _best(about: Mapping[str, Any]) -> str:
    scores = about["scores"]
    estimated = estimates(scores)
    nearest = max(estimated, key=lambda name: estimated[name]["top"])
    most = max(estimated, key=lambda name: estimated[name]["gap"])
    found = estimated[nearest]["top"]
    hardly = " No estimate is near the truth here." if found < _HARDLY else ""
    gap = estimated[most]["gap"]
    closes = (
        f"{most} gives most of what the truth would give, {share(gap)}"
        if gap >= _SOME
        else "none of them gives anything of what the truth would give"
    )
    return (
        f"Among the 30 most relevant items of a slot, {nearest} is nearest to the true exposure: its log correlates "
        f"{found:.2f} with it.{hardly} To a perfect learner {closes}. Figures are over "
        f"{about['slots']:,} training events drawn at random and {about['items']:,} items, at severity "
        f"{about['severity']:g}."
    )


def _weights(scores: Scores) -> str:
    estimated = estimates(scores)
    least = min(estimated, key=lambda name: estimated[name]["misplaced"])
    known = f"; the true mean over the steps {share(scores[REFERENCE]['misplaced'])}" if REFERENCE in scores else ""
    return (
        f"As a weight (1 / θ̂, clipped at {CLIP:g}), {least} puts the least of it in the wrong place: "
        f"{share(estimated[least]['misplaced'])}{known}."
    )


def _popularity(about: Mapping[str, Any]) -> str:
    found = {name: each for name, each in about["scores"].items() if name.startswith("popularity")}
    if not found:
        return "Popularity was not asked for."
    told = ", ".join(f"{name} {each['top']:.2f} and {share(each['gap'])}" for name, each in found.items())
    return (
        f"Popularity, which is exposure times relevance, beside it (correlation, and gap): {told}. Where the "
        "second is below zero, to correct by popularity is worse than not to correct."
    )
