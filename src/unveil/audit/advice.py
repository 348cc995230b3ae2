"""What an advice is, and how its numbers are written."""

from collections.abc import Iterator
from dataclasses import dataclass

from unveil.audit.baselines import BASELINES
from unveil.audit.checks import Leakage, Repeats
from unveil.audit.concentration import Heads
from unveil.audit.costs import HALF_WIDTH, Cost, Costs
from unveil.audit.exposure import RARE, Exposure, Impressions
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL, Figures, Progress, figures
from unveil.audit.motion import Motion
from unveil.audit.order import Order
from unveil.audit.timing import ALPHA
from unveil.data.describe import TIE_RULE
from unveil.data.interactions import Interactions


@dataclass(frozen=True)
class Advice:
    """One thing to do or to know, with its reason and the figure it stands on."""

    about: str  # the figure's name in the audit: order, leakage, …
    title: str  # what to do or to know
    figure: str  # the figure, as people write it
    of: str  # what it is a figure of
    reason: str
    warning: bool = False  # whether results would mislead without it


def share(value: float) -> str:
    """93%, 0.4%, below 0.1%; 100% and 0% are never rounded to."""
    if 0 < value < 0.001:
        return "below 0.1%"
    if 0.995 <= value < 1:
        return "over 99%"
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"


def times(ratio: float) -> str:
    """3.2 ×."""
    return "∞ ×" if ratio == float("inf") else f"{ratio:,.1f} ×" if ratio < 100 else f"{ratio:,.0f} ×"


def metric(value: float) -> str:
    """0.031."""
    return f"{value:.3f}"


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


#: A log of random exposure below this share is too thin to point to.
_SOME = 0.001
#: More events than this with next to no chance of being shown, and weights by it are not to be trusted as they are.
_THIN = 0.05
_LOG_IT = (
    "Begin to log what is shown and left, the position, or the probability of showing: "
    "`propensity.name=recorded-temporal` and `unveil propensity fit` learn from the first, `propensity.name=position` "
    "from the first two together, "
    "`propensity.name=logged` reads the last."
)
_RATINGS_TELL = (
    "This log has ratings, and they tell some of it: the estimator `ever-rated` uses them and needs no propensity, "
    "`propensity.name=joint-rated-temporal` estimates one from them, under assumptions of its own. Whether either "
    "gains anything, `unveil advise` tries in worlds fitted to the log."
)


def exposure_advice(found: Figures) -> Iterator[Advice]:
    """The best source of propensities that the log has, and what else it knows."""
    known = found.exposure
    if known.only_popularity:
        yield _only_popularity(found)
    if known.logged_ess is not None and known.logged_smallest is not None and known.logged_rare is not None:
        yield _logged(known.logged_ess, known.logged_smallest)
        if known.logged_rare:
            yield _overlap(known.logged_rare, known.logged_smallest)
    if known.impressions is not None:
        yield _impressions(known.impressions)
        yield from _positions(known)
    if known.randomised is not None and known.randomised > _SOME:
        yield _randomised(known.randomised)
    if "rating" in known.columns:
        yield _ratings(found)


def _only_popularity(found: Figures) -> Advice:
    rated = f" {_RATINGS_TELL}" if "rating" in found.exposure.columns else ""
    position = " Positions alone, without what was left, do not tell it either." * ("position" in found.log.columns)
    return Advice(
        "exposure",
        "Only popularity can stand in for exposure: call no result on this log unbiased",
        "none",
        "of the columns tell what was shown and left, or how likely it was to be shown",
        "Popularity is exposure × relevance. Dividing it out removes what users like along with what they were shown, "
        "rewards whatever avoids popular items, and can do worse than not correcting at all. Gains of IPS and ITPS "
        "here are gains under that proxy: set a control beside them that merely avoids popular items (as "
        f"`unveil reproduce rq4` does).{position}{rated} {_LOG_IT}",
        warning=True,
    )


def _logged(ess: float, smallest: float) -> Advice:
    return Advice(
        "exposure",
        "Use the logged propensities, not popularity",
        share(ess),
        "of the events are left, in effect, when each is weighted by 1 / its logged propensity",
        "The log says how likely each row was to be shown: `--set propensity.name=logged`. Nothing that is estimated "
        f"can be better, as long as every item had some chance. The smallest propensity of what was taken is "
        f"{smallest:.2g}: the largest weight is {1 / smallest:,.3g}.",
    )


def _overlap(rare: float, smallest: float) -> Advice:
    """Poor overlap: few events stand for much that was hardly ever shown."""
    return Advice(
        "exposure",
        f"Some events had less than a {RARE:.0%} chance of being shown: clip their weights",
        share(rare),
        f"of what was taken has a logged propensity below {RARE:g}; the smallest is {smallest:.2g}",
        f"Each of them weighs more than {1 / RARE:g} events that were sure to be shown, and a few decide the result: "
        "`--set estimator.clip=0.01` bounds the weights, at the price of some bias. What was taken says nothing of "
        "items that could not be shown at all: no weight brings them back.",
        warning=rare > _THIN,
    )


def _impressions(seen: Impressions) -> Advice:
    return Advice(
        "exposure",
        "Learn exposure from the impressions, not from popularity",
        share(seen.explained),
        "of the variance of (log) popularity over items is explained by how often they were shown",
        f"The log has {seen.rows:,} rows of what was shown, of which {share(seen.taken)} were taken. Popularity mixes "
        "the two; `propensity.name=recorded-temporal` learns exposure alone, and so does `unveil propensity fit`, "
        "along the days, for `propensity.name=learnt-temporal`. "
        f"{share(seen.never_taken)} of the {seen.items:,} items shown were never taken: by popularity they would "
        "pass for never seen.",
    )


def _positions(known: Exposure) -> Iterator[Advice]:
    assert known.impressions is not None
    rate = known.impressions.by_position
    if rate is not None and len(rate) > 1:
        yield Advice(
            "exposure",
            "Keep the position: it is a part of exposure",
            f"{share(rate[0])} → {share(rate[-1])}",
            f"taken at the first position → at position {len(rate)}",
            "Where the share falls with the position, part of what looks like taste is the place on the page. "
            "A fair comparison of items is one at equal positions: `unveil propensity positions` tells the two apart "
            "by items that were shown at several, and `propensity.name=position` weights by it.",
        )


def _randomised(part: float) -> Advice:
    return Advice(
        "exposure",
        "Judge on the rows that a random policy showed",
        share(part),
        "of the rows were shown at random",
        "On them exposure is equal for all items by design, so what is taken there is relevance alone: the only part "
        "of the log on which a debiased model can be told from one that avoids popular items.",
    )


def _ratings(found: Figures) -> Advice:
    return Advice(
        "exposure",
        "Ratings tell liking from taking: use them as such",
        f"{found.log.interactions:,}",
        "events with a rating",
        "To take an item is not to like it. `--min-rating` keeps what was liked; `unveil world fit` learns relevance "
        "and exposure behind a log with ratings, and gives a world in which estimators can be compared by the truth.",
    )


#: Shares above which ties, repeats and later training events are worth a word.
_TIED, _TIED_LAST, _REPEATED, _LATER = 0.05, 0.01, 0.01, 0.01


def evaluation_advice(found: Figures) -> Iterator[Advice]:
    """Leakage, ties, repeats, protocols."""
    yield from _leakage(found)
    yield from _ties(found)
    yield from _repeats(found.repeats)
    yield from _to_beat(found)
    yield from _protocols(found)


def _leakage(found: Figures) -> Iterator[Advice]:
    if found.log.start is None:
        yield Advice(
            "leakage",
            "Without times nobody can tell whether training looks into the future",
            "none",
            "of the events have a time",
            "Leave-one-out is all that can be done with this file, and whether it leaks cannot be seen. Get the log "
            "with its times if you can.",
        )
    elif found.leakage is not None and found.leakage.later > _LATER:
        yield _leaks(found.leakage)


def _leaks(leak: Leakage) -> Advice:
    unborn = f" {share(leak.unborn)} ask for an item before anybody had taken it in training." if leak.unborn else ""
    return Advice(
        "leakage",
        "Leave-one-out learns from the future: judge by a split in time as well",
        share(leak.later),
        "of the training events are later than the case they are used for, on average",
        f"Of {leak.cases:,} test cases {share(leak.leaking)} have later events in their training set.{unborn} "
        "`--set data.split=temporal` trains on what came before a date and tests on what came after; expect lower "
        "figures, and perhaps another winner.",
        warning=leak.later > 10 * _LATER,
    )


def _ties(found: Figures) -> Iterator[Advice]:
    ties = found.log.ties
    if ties is not None and (ties.share > _TIED or ties.last_share > _TIED_LAST):
        yield Advice(
            "ties",
            "Say how ties are broken: they choose the test items",
            share(ties.last_share),
            "of the users have several events at their last moment, so their test item hangs on the rule",
            f"{share(ties.share)} of all events share their time with another of the same user. Here {TIE_RULE}; "
            "another tool may do otherwise and get another test set from the same file.",
            warning=ties.last_share > 10 * _TIED_LAST,
        )


def _repeats(found: Repeats) -> Iterator[Advice]:
    if found.share <= _REPEATED:
        return
    doubled = found.same_moment or 0
    if doubled > found.events / 2:
        yield Advice(
            "repeats",
            "Drop the rows that are there twice",
            f"{doubled:,}",
            "rows repeat user, item and time of another",
            "They are copies, not events: a model is trained and tested on its own answers. `--repeats first` keeps "
            "one of each.",
            warning=True,
        )
        return
    yield Advice(
        "repeats",
        "Users come back to items: decide whether that is what you want to predict",
        share(found.share),
        "of the events are with an item the user had before",
        f"{share(found.targets or 0.0)} of the test items of leave-one-out are such. If repeats count, let seen items "
        "compete (`--set evaluation.exclude_seen=false`) and beat “the same again” first; if not, `--repeats first`.",
    )


def _to_beat(found: Figures) -> Iterator[Advice]:
    split = TEMPORAL if found.score(TEMPORAL, BASELINES[0], "full") else LEAVE_ONE_OUT
    scores = [score for name in BASELINES if (score := found.score(split, name, "full")) is not None]
    if scores:
        best = max(scores, key=lambda score: score.mean)
        others = ", ".join(f"{score.baseline} {metric(score.mean)}" for score in scores)
        how = "a split in time" if split == TEMPORAL else "leave-one-out"
        yield Advice(
            "baselines",
            f"First beat {best.baseline}",
            metric(best.mean),
            f"NDCG@10 of {best.baseline} in full ranking, {how}",
            f"It needs no training ({others}; 95% interval of the better {metric(best.low)} to {metric(best.high)}, "
            f"over {best.cases:,} cases). A model that does not pass it has learnt nothing about users.",
        )


def _protocols(found: Figures) -> Iterator[Advice]:
    names = [("full", "full ranking"), ("uniform", "uniform negatives"), ("popular", "popular negatives")]
    scores = {told: found.score(LEAVE_ONE_OUT, BASELINES[0], name, "Recall@10") for name, told in names}
    there = {told: score for told, score in scores.items() if score is not None}
    if len(there) > 1 and "full ranking" in there:
        rest = [told for told in there if told != "full ranking"]
        told = ", ".join(f"{metric(score.mean)} ({name})" for name, score in there.items())
        yield Advice(
            "baselines",
            "Judge by full ranking: drawn negatives measure something else",
            f"{metric(there['full ranking'].mean)} → {metric(there[rest[0]].mean)}",
            f"Recall@10 of popularity, leave-one-out: full ranking → {rest[0]}",
            f"The same scorer on the same cases scores {told}. Uniform negatives flatter whatever knows what is "
            "popular, popular negatives punish it. Use drawn negatives only to set figures beside published "
            "ones.",
        )


#: Above these the head speaks for the log, and cold cases are too many to pass over.
_HEAVY, _MANY_COLD = 0.5, 0.05
#: So many times the recurring transitions of shuffled histories are more than a trace of order.
MUCH = 1.5


def modelling_advice(found: Figures) -> Iterator[Advice]:
    """Order, concentration, cold items and users."""
    if found.order is not None:
        yield _order(found.order)
    if (head := found.concentration.head["10%"]) > _HEAVY:
        yield _head(head, found.concentration.gini)
    yield from _cold(found)


def ordered(order: Order) -> bool:
    """Whether shuffling is seen."""
    return order.whole.p <= ALPHA


def _order(order: Order) -> Advice:
    of = "as many transitions recur as in shuffled histories"
    p = f"p {'≤' if order.whole.p <= 1.5 / (1 + order.shuffles) else '='} {order.whole.p:.2g}"
    if not ordered(order):
        return Advice(
            "order",
            "Order carries no information that one step back can see: try a model without order first",
            times(order.ratio),
            of,
            f"Shuffling every history changes nothing that {order.shuffles} shuffles can show ({p}). "
            f"{_guess(order)} A sequential model may still use longer memory, but the burden is on it.{_tied(order)}",
        )
    near = (
        " The same holds when only runs of ten neighbours are shuffled, so it is no mere slow drift."
        if order.near.p <= ALPHA
        else " Not so when only runs of ten neighbours are shuffled: what order there is, is slow drift, "
        "which popularity of late would catch as well."
    )
    much = "information: a sequential model has something to learn"
    little = "a little information: expect little more from a sequential model"
    return Advice(
        "order",
        f"Order carries {much if order.ratio >= MUCH else little}",
        times(order.ratio),
        of,
        f"{order.recurring:,} pairs of equal transitions against {order.whole.expected:,.0f} ({p}, {order.shuffles} "
        f"shuffles of {order.events:,} events).{near} {_guess(order)}{_tied(order)}",
    )


def _guess(order: Order) -> str:
    return (
        f"The commonest successor of an item among other users is right for {share(order.guessed)} of the events, and "
        f"for {share(order.guessed_shuffled)} in shuffled histories."
    )


def _tied(order: Order) -> str:
    if order.tied is None:
        return (
            " The log has no clock, so its order is taken at its word: events of one moment that were sorted by item "
            "when the file was written would look like order too."
        )
    if not order.tied:
        return ""
    filed = f"{order.as_filed:,}" if order.as_filed is not None else "as many"
    return (
        f" {share(order.tied)} of the events share a moment; their order was drawn at random. By the order of the file "
        f"{filed} would recur."
    )


def _head(head: float, gini: float) -> Advice:
    return Advice(
        "concentration",
        "The head speaks for the log: report novelty and coverage beside accuracy",
        share(head),
        "of the events fall on the most popular tenth of the items",
        f"With a Gini coefficient of {gini:.2f} a mean over events is a mean over few items. Whatever lists the head "
        "looks accurate; look at Coverage@10 and EFD@10 too, which `unveil evaluate` gives beside every figure.",
    )


def _cold(found: Figures) -> Iterator[Advice]:
    split = TEMPORAL if TEMPORAL in found.cold.splits else LEAVE_ONE_OUT
    cases = found.cold.splits.get(split)
    if cases is not None and max(cases.items, cases.users) > _MANY_COLD:
        which, hidden = (
            ("leave-one-out", "") if split == LEAVE_ONE_OUT else ("a split in time", " Leave-one-out hides both.")
        )
        yield Advice(
            "cold",
            "Say what cold items and users get",
            f"{share(cases.items)}, {share(cases.users)}",
            f"of the test cases of {which} ask for items, come from users, that training never saw",
            "A model of ids cannot rank an item it has never seen, and knows nothing of a new user but the events "
            f"just before the case.{hidden} Report warm and cold cases apart.",
        )
    if found.cold.rare_items > _HEAVY:
        yield Advice(
            "cold",
            "Most items are too rare to learn",
            share(found.cold.rare_items),
            f"of the items have fewer than five events; they hold {share(found.cold.rare_events)} of all events",
            "`--min-item 5` leaves them out. That changes the question as well as the answer: state the filter, and "
            "never compare figures across filters.",
        )


def verdict(found: Figures) -> str:
    """Exposure, popularity, order, evaluation: a sentence each."""
    return " ".join(
        each for each in (_exposure(found), _popularity(found), _verdict_order(found), _evaluation(found)) if each
    )


def _exposure(found: Figures) -> str:
    known = found.exposure
    if known.logged_ess is not None:
        return "This log says how likely each row was to be shown: it can be debiased, and the result checked."
    if known.impressions is not None:
        return "This log says what was shown and left: exposure can be learnt from it, apart from taste."
    source = "popularity and ratings" if "rating" in known.columns else "popularity"
    return (
        f"This log says what users took, not what they were shown: exposure can only be guessed from {source}, and "
        f"no debiased result on it can be proved."
    )


def _popularity(found: Figures) -> str:
    head = f"A tenth of the items takes {share(found.concentration.head['10%'])} of the events"
    along = {"with the step": found.histories, "with the calendar": found.calendar}
    seen = {name: motion for name, motion in along.items() if motion is not None}
    if not seen:
        return f"{head}; too few events to see whether popularity moves."
    how = "moves" if any(not mostly_still(motion) for motion in seen.values()) else "hardly moves"
    moving = [
        f"{share(motion.rejecting.share)} of {motion.rejecting.items:,} tested items {name}"
        for name, motion in seen.items()
        if moves(motion)
    ]
    return f"{head}, and popularity {f'{how}: ' + ', '.join(moving) if moving else 'stands still'}."


def _verdict_order(found: Figures) -> str:
    if found.order is None:
        return ""
    if not ordered(found.order):
        return "The order of events tells nothing that one step back can see."
    return f"The order of events carries {'information' if found.order.ratio >= MUCH else 'a little information'}."


def _evaluation(found: Figures) -> str:
    leak = found.leakage
    if leak is not None and leak.later > 0.01:
        later = f"{share(leak.later)} of its training events are later than the case, on average"
        return f"Leave-one-out would learn from the future: {later}."
    return "" if leak is not None else "Whether leave-one-out learns from the future cannot be seen."


def advice(found: Figures) -> tuple[Advice, ...]:
    """All that applies to this log, warnings first."""
    parts = (exposure_advice, evaluation_advice, weighting_advice, modelling_advice)
    every = [each for part in parts for each in part(found)]
    return tuple(sorted(every, key=lambda each: not each.warning))


@dataclass(frozen=True)
class Audit(Figures):
    """The figures of a log, what they come to, and what to do."""

    verdict: str
    advice: tuple[Advice, ...]


def audit(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Look at a log without training anything. The same log and seed give the same audit."""
    found = figures(log, seed=seed, progress=progress)
    return Audit(**vars(found), verdict=verdict(found), advice=advice(found))
