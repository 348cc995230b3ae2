"""The question: how much of the gap from naive to ideal does each estimator close, and with which propensities?"""

from dataclasses import asdict
from math import isfinite
from typing import Any

from unveil.experiment.beyond import page
from unveil.experiment.beyond.shares import Share, shares
from unveil.experiment.beyond.words import AIM, AIM_ESTIMATED, comparable, everywhere_judged, is_estimated, reading
from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.run import Answer
from unveil.report.page import Section


class Beyond:
    """The cells are RQ2's, with more estimators, each also with propensities that were estimated from its log."""

    name = "beyond"
    title = "How much of the gap from naive to ideal does each estimator close?"

    def sheets(self, answer: Answer) -> list[Sheet]:
        """The shares along p."""
        found = answer.results
        return [page.sheet(found, figure) for figure in everywhere_judged(found)] if comparable(found) else []

    def reading(self, answer: Answer) -> list[str]:
        """Aims, what fell below naive, the paper's shares, the two levels."""
        study = answer.plan.study
        return reading(answer.results, study.propensity, epoch_by=study.epoch_by)

    def sections(self, answer: Answer) -> list[Section]:
        """The figure, the tables, and what all questions share."""
        return [*page.sections(answer.results), *page.made_of(answer.results, answer.worlds)]

    def findings(self, answer: Answer) -> dict[str, Any]:
        """Every share with its interval, its test and its worlds."""
        found = answer.results
        judged = everywhere_judged(found) if comparable(found) else []
        return {
            "aims": {"study": AIM, "estimated": AIM_ESTIMATED},
            "shares": [told(share) for figure in judged for share in shares(found, figure)],
        }


def told(share: Share) -> dict[str, Any]:
    """As JSON can hold it."""
    return {
        "estimator": share.arm,
        "estimated": is_estimated(share.arm),
        "severity": share.severity,
        "protocol": share.figure.protocol,
        "metric": share.figure.metric,
        "k": share.figure.k,
        "gap_closed": _estimate(share.gap),
        "against_naive": {name: value if isfinite(value) else None for name, value in vars(share.test).items()},
        "below_naive": share.below,
        "sure": share.surely,
        "worlds": [_estimate(each) for each in share.worlds],
    }


def _estimate(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)
