"""What Figure 1 says of a log, in words that are chosen by the figures."""

from unveil.audit.timing import ALPHA, LEAST, Family
from unveil.experiment.fig1.pairs import Pair
from unveil.experiment.fig1.run import Fig1
from unveil.report.names import signed

#: Correlations below this are told as none.
_WEAK = 0.2


def reading(found: Fig1) -> list[str]:
    """The conclusions, each a paragraph."""
    paragraphs = [_all_items(found), _who(found), _ties(found), _static(found), _pairs(found)]
    return [paragraph for paragraph in paragraphs if paragraph]


def _all_items(found: Fig1) -> str:
    order = found.order
    return (
        f"Of {order.tested:,} items with at least {LEAST} events, {_share(order)} are taken at times that random order "
        f"does not explain (Holm-corrected, {ALPHA:.0%}); {order.discovered:,} by the false discovery rate. "
        f"{_how_much(found)}"
    )


def _share(family: Family) -> str:
    return f"{family.certain:,} ({family.certain / family.tested:.0%})"


def _how_much(found: Fig1) -> str:
    spread, shift = found.timing.dispersion, found.timing.typical_shift
    if shift == 0:
        return "Their mean places vary no more than chance lets them."
    return (
        f"Squared z-scores of the mean place are {spread:.1f} on average, and would be 1 by chance; a typical item "
        f"lies {shift:.3f} of a history before or after the middle, chance taken out."
    )


def _who(found: Fig1) -> str:
    early, late = ([found.titles[item] for item in found.order.most(sign, 3)] for sign in (-1, 1))
    if not early and not late:
        return ""
    ends = [f"{name} come {'; '.join(items)}" for name, items in (("earliest", early), ("latest", late)) if items]
    told = ", ".join(ends)
    return f"{told[0].upper()}{told[1:]} (furthest from chance first). {_popular(found.by_popularity)}"


def _popular(correlation: float) -> str:
    how = f"Spearman's correlation of events and mean place is {correlation:.2f}".replace("-", "−")
    if abs(correlation) < _WEAK:
        return f"Popular items come neither early nor late: {how}."
    return f"Popular items come {'late' if correlation > 0 else 'early'}: {how}."


def _ties(found: Fig1) -> str:
    if found.tied is None:
        return "The log has an order and no clock: which events share a moment cannot be seen."
    if found.shared is None:
        return "No two events of a user share a moment, as far as the log's clock tells."
    shared, order = found.shared, found.order
    return (
        f"{found.tied:.0%} of the events share their moment with another of the same user, and the order within a "
        f"moment is the file's. Where events of one moment share the mean of their places, {_share(shared)} of "
        f"{shared.tested:,} items differ, {_compared(shared.certain, order.certain)}."
    )


def _compared(one: int, other: int) -> str:
    if one == other:
        return "as many"
    return f"{'more' if one > other else 'fewer'} than the {other:,} by the order of the file"


def _static(found: Fig1) -> str:
    if found.static is None:
        return (
            "Users come back to items, so the order of drawing without replacement does not apply."
            if found.draws
            else ""
        )
    said = (
        f"Random order is not all that a static propensity allows: a user who never takes an item twice meets the "
        f"likely ones first. By the mean place alone {_share(found.mean)} items differ from random order, and "
        f"{_share(found.static)} from drawing by static propensities without repeats"
    )
    if found.static.certain > ALPHA * found.static.tested:
        unexplained = "a propensity that is the same at all times and for all does not explain when items are taken"
        return f"{said}: {unexplained}."
    return f"{said}: what random order does not explain, a propensity that never changes mostly does."


def _pairs(found: Fig1) -> str:
    told = [_pair(found, each) for each in found.pairs if each.share is not None]
    if not told:
        return ""
    return f"Of the users who took two items of a group at different moments: {'; '.join(told)} (sign tests)."


def _pair(found: Fig1, each: Pair) -> str:
    p = "p below 0.001" if each.p < 0.001 else f"p = {each.p:.3f}"
    first, second = found.titles[each.first], found.titles[each.second]
    together = f", {each.together:,} took both at one moment" if each.together else ""
    return f"{each.share:.0%} of {each.later + each.earlier:,} took “{second}” after “{first}” ({p}{together})"


def caution(found: Fig1) -> str:
    """What the tests do not say."""
    return (
        "The tests say when items are taken, not when they are shown: an order may come from exposure, from taste, "
        "from the year an item appeared, or from the page on which the service asked for ratings. Items are compared "
        "within users, so users with long histories or busy years move nothing. A mean place of "
        f"{0.5 + found.timing.typical_shift:.3f} ({signed(found.timing.typical_shift)} from the middle) can be certain "
        "and still be small."
    )
