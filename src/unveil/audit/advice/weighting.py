"""Advice on propensities and weights: static or by step, and what they cost."""

from collections.abc import Iterator

from unveil.audit.advice.base import Advice, share
from unveil.audit.costs import HALF_WIDTH, Cost, Costs
from unveil.audit.family import ALPHA
from unveil.audit.figures import Figures
from unveil.audit.heads import Heads
from unveil.audit.motion import Motion

#: At least this share of the events should be left by the weights, in effect.
ENOUGH = 0.2
#: Of the items, below which a propensity that stands still is good enough.
FEW = 0.05
#: Of the events alone in their cells, above which popularity by step is too thin to be a propensity.
THIN = 0.25
#: A shift of items within histories below this is certain, perhaps, but small.
SMALL_SHIFT = 0.02


def weighting_advice(found: Figures) -> Iterator[Advice]:
    """Does popularity stand still, along histories and along the calendar, and which weights can be borne?"""
    if found.histories is not None:
        yield _histories(found.histories)
    if found.calendar is not None:
        yield _calendar(found.calendar)
    yield _cost(found.costs)
    if found.costs.alone > THIN:
        yield _thin(found.costs)


def moves(motion: Motion) -> bool:
    """Whether even one item rejects a propensity that stands still: by Holm's correction chance names hardly one."""
    return motion.rejecting.holm > 0


def mostly_still(motion: Motion) -> bool:
    """Whether the items that reject it are few."""
    return motion.rejecting.share < FEW


def _histories(motion: Motion) -> Advice:
    tested = motion.rejecting
    of = f"of {tested.items:,} items reject a propensity that is the same at every step"
    if mostly_still(motion):
        who = "No item" if not moves(motion) else f"Only {tested.holm:,} of {tested.items:,} items"
        return Advice(
            "histories",
            "One propensity an item is enough along histories: IPS will do",
            share(tested.share),
            of,
            f"{who} can be said to come earlier or later in histories than a static propensity explains "
            f"({_holm(motion)}). Propensities by step have little to correct here, and are noisier.",
        )
    return Advice(
        "histories",
        "A static propensity does not hold along histories: compare ITPS with IPS",
        share(tested.share),
        of,
        f"These items are taken earlier or later in histories than a propensity explains that is the same at all times "
        f"and for all users ({_holm(motion)}); exposure may do that, and so may taste. {_shift(motion)} "
        f"{heads_told(motion.heads, 'tenth of histories')} "
        "`--estimator itps` weighs each event by the propensity at its own step.",
    )


def _shift(motion: Motion) -> str:
    shift = motion.typical_shift
    if shift < SMALL_SHIFT:
        return f"Certain is not large: a typical item lies only {shift:.3f} of a history off the middle."
    return f"A typical item lies {shift:.3f} of a history before or after the middle."


def _holm(motion: Motion) -> str:
    null = "nothing is taken twice, and likely items come first" if motion.static is not None else "random order"
    return f"Holm-corrected at {ALPHA:.0%}; null: {null}; events of one moment share their places"


def _calendar(motion: Motion) -> Advice:
    tested = motion.rejecting
    of = f"of {tested.items:,} items change their share of all events over the calendar"
    if mostly_still(motion):
        still = "stands still" if not moves(motion) else "of all but a few items stands still"
        return Advice(
            "calendar",
            f"Popularity {still} over the calendar",
            share(tested.share),
            of,
            f"By Holm's correction at {ALPHA:.0%}. {heads_told(motion.heads, 'tenth of the log')}",
        )
    return Advice(
        "calendar",
        "Popularity moves with the calendar: train again often, and judge by a split in time",
        share(tested.share),
        of,
        f"{heads_told(motion.heads, 'tenth of the log')} Popularity counted over the whole log is nobody's exposure "
        "at any time. Steps count events, not days, so ITPS does not see the calendar either: exposure learnt from "
        "impressions (`unveil propensity fit`) does. The last-period popularity below is a baseline that does.",
        warning=motion.heads.across < motion.heads.across_by_chance / 2,
    )


def heads_told(heads: Heads, period: str) -> str:
    """The first and the last head in a sentence."""
    if heads.size < 2:
        return ""
    kept, chance = (round(value * heads.size) for value in (heads.across, heads.across_by_chance))
    return (
        f"Of the {heads.size} most taken items of the first {period}, {kept} are among the {heads.size} of the last; "
        f"were events dealt out at random, {chance} would be."
    )


def _cost(costs: Costs) -> Advice:
    plain_ips, plain_itps = costs.of("ips"), costs.of("itps")
    least = min(plain_ips, plain_itps, key=lambda cost: cost.ess_share)
    if least.ess_share >= ENOUGH:
        return Advice(
            "costs",
            "The weights can be used as they are",
            share(least.ess_share),
            f"of the events are left, in effect, under {least.estimator.upper()} without clipping",
            f"IPS leaves {share(plain_ips.ess_share)}, ITPS {share(plain_itps.ess_share)} of {costs.events:,} training "
            "events. A clip or an exponent below 1 would buy little and cost a bias.",
        )
    told = "; ".join(_setting(costs, name) for name in ("ips", "itps"))
    return Advice(
        "costs",
        "Temper the weights: as they are they leave too little of the log",
        share(least.ess_share),
        f"of the events are left, in effect, under {least.estimator.upper()} without clipping",
        f"Of {costs.events:,} training events IPS leaves {share(plain_ips.ess_share)}, ITPS "
        f"{share(plain_itps.ess_share)} in effect (Σ w)² / Σ w². Of the settings in the table below "
        f"the strongest that leave at least {ENOUGH:.0%}: {told}. Clips and exponents trade bias for variance: choose "
        "on validation, never on test.",
        warning=least.ess_share < ENOUGH / 4,
    )


def _thin(costs: Costs) -> Advice:
    return Advice(
        "costs",
        "Popularity by step is thin: smooth it before it is called a propensity",
        share(costs.alone),
        "of the training events are alone with their item at their step",
        "There the propensity by step is a single count, the same for all: such ITPS weights are close to equal, which "
        "looks harmless and is next to no correction. "
        f"`--set propensity.name=popularity-temporal --set propensity.half_width={HALF_WIDTH}` spreads each count over "
        f"neighbouring steps and leaves {share(costs.of('itps-smoothed').ess_share)} of the events, in effect.",
        warning=costs.alone > 2 * THIN,
    )


def _setting(costs: Costs, estimator: str) -> str:
    best, name = strongest(costs, estimator), estimator.upper()
    if best is None:
        return f"{name} none"
    options = [f"estimator.exponent={best.exponent:g}"] * (best.exponent < 1)
    options += [f"estimator.clip={best.clip:g}"] * (best.clip > 0)
    how = " ".join(f"`--set {option}`" for option in options) or "as it is"
    return f"{name} {how} ({share(best.ess_share)})"


def strongest(costs: Costs, estimator: str) -> Cost | None:
    """Of the settings that leave enough the highest exponent, and of those the lowest clip."""
    fit = [each for each in costs.settings if each.estimator == estimator and each.ess_share >= ENOUGH]
    return max(fit, key=lambda each: (each.exponent, -each.clip), default=None)
