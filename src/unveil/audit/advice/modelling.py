"""Advice on what kind of model the log can feed."""

from collections.abc import Iterator

from unveil.audit.advice.base import Advice, share, times
from unveil.audit.family import ALPHA
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL, Figures
from unveil.audit.order import Order

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
