"""Advice on where propensities are to come from."""

from collections.abc import Iterator

from unveil.audit.advice.base import Advice, share
from unveil.audit.exposure import RARE, Exposure, Impressions
from unveil.audit.figures import Figures

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
