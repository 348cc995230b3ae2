"""The page of an audit: verdict, advice, and the figures behind them."""

from collections.abc import Sequence

from unveil.audit.advice.base import share, times
from unveil.audit.run import Audit
from unveil.experiment.audit import evaluation, movement, weights
from unveil.experiment.audit.concentration import concentration_blocks
from unveil.experiment.audit.words import HOW, WHAT
from unveil.report.page import Code, KeyFigure, Page, Point, Section, Text
from unveil.wording import quantity

_FIVE = 5


def audit_page(found: Audit, titles: Sequence[str], name: str, command: str) -> Page:
    """The whole page; `titles` has one for each item, `name` is what the log is called."""
    return Page(
        title="What this log says about its own exposure",
        lede=f"{name}: {size(found)} {found.verdict}",
        key_figures=key_figures(found),
        sections=[
            Section("What to do", [Point(a.title, a.figure, a.of, a.reason, a.warning) for a in found.advice]),
            Section("Who gets the events", concentration_blocks(found)),
            Section("Does popularity stand still?", movement.blocks(found, titles)),
            Section("Does order matter?", evaluation.order_blocks(found)),
            Section("Can an evaluation be trusted?", evaluation.blocks(found)),
            Section("What weighting would cost", weights.blocks(found)),
            Section("What the log knows of exposure", weights.exposure_blocks(found)),
            Section("How it was made", [Text(WHAT), *(Text(each) for each in HOW), Code(command)]),
        ],
    )


def size(found: Audit) -> str:
    """How large the log is, and of when."""
    log = found.log
    when = "" if log.start is None or log.end is None else f", {log.start[:10]} to {log.end[:10]}"
    counts = (quantity(log.interactions, "event"), quantity(log.users, "user"), quantity(log.items, "item"))
    return f"{counts[0]} of {counts[1]} with {counts[2]}{when}."


def key_figures(found: Audit) -> list[KeyFigure]:
    """The five that matter most, of those that the log can give."""
    told = [KeyFigure(share(found.concentration.head["10%"]), "of the events on the most popular tenth of the items")]
    for motion, clock in ((found.histories, "step"), (found.calendar, "calendar")):
        if motion is not None:
            label = f"of the items with ten events or more have a popularity that moves with the {clock}"
            told.append(KeyFigure(share(motion.rejecting.share), label))
    if found.order is not None:
        told.append(KeyFigure(times(found.order.ratio), "as many recurring transitions as in shuffled histories"))
    if found.leakage is not None:
        told.append(KeyFigure(share(found.leakage.later), "of leave-one-out's training events are later than the case"))
    if len(told) < _FIVE:
        told.append(KeyFigure(share(found.costs.of("ips").ess_share), "of the events left, in effect, by IPS weights"))
    if len(told) < _FIVE:
        label = "of the events left, in effect, by ITPS weights"
        told.append(KeyFigure(share(found.costs.of("itps").ess_share), label))
    return told
