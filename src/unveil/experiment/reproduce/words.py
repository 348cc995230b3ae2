"""Sentences that all questions share, chosen by the figures. Nothing here is true beforehand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unveil.evaluation.statistics import Paired, holm
from unveil.experiment.outcome import BASE, BOUND, TRUE, Estimate
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure, Results
from unveil.report.names import listed, named, share, signed
from unveil.wording import quantity


def headline(results: Results, evaluation: str = TRUE) -> Figure:
    """The figure that conclusions are drawn from: the paper's NDCG@10."""
    return Figure(evaluation, results.sampled, "NDCG", 10)


def against_base(results: Results, severity: float, figure: Figure) -> dict[str, Paired]:
    """Every other trained arm less the naive one; p-values after Holm's correction over the arms."""
    if BASE not in results.trained:
        return {}
    others = [arm for arm in results.trained if arm != BASE]
    found = {arm: results.against(severity, arm, BASE, figure) for arm in others}
    corrected = holm(np.array([each.p for each in found.values()])).tolist()
    return {arm: replace(each, p=p) for (arm, each), p in zip(found.items(), corrected, strict=True)}


def verdict(found: Paired) -> str:
    """What a paired test allows to say."""
    if not found.p < ALPHA:
        return "cannot be told from"
    return "scores above" if found.difference > 0 else "scores below"


def difference(arm: str, found: Paired) -> str:
    """ITPS scores above the naive loss (+0.012 [0.003, 0.021], p 0.010)."""
    interval = f"[{signed(found.low)}, {signed(found.high)}]"
    p = "p below 0.001" if found.p < 0.001 else f"p {found.p:.3f}"
    return f"{named(arm)} {verdict(found)} the naive loss ({signed(found.difference)} {interval}, {p})"


def learnable(results: Results) -> list[str]:
    """The trained arms that need no truth and are not the naive one."""
    return [arm for arm in results.trained if arm not in (BASE, BOUND)]


def gap_words(gap: Estimate | None) -> str:
    """What an arm does to the gap from naive to ideal."""
    if gap is None:
        return "there is no gap to close"
    said = f"{gap_text(gap)} of the gap from naive to ideal is closed"
    doubt = " (the gap itself may be chance, so the share has no interval)" if gap.n > 1 and gap.low is None else ""
    return f"{said if gap.mean > 0 else f'none of the gap is closed: {gap_text(gap)}'}{doubt}"


def gap_text(gap: Estimate) -> str:
    """25% [20%, 30%]; the share alone where it has no interval."""
    bounds = "" if gap.low is None or gap.high is None else f" [{share(gap.low)}, {share(gap.high)}]"
    return f"{share(gap.mean)}{bounds}"


def order_words(order: Sequence[str]) -> str:
    """Best first."""
    return listed(order)


def interval(found: Estimate, digits: int = 3) -> str:
    """The interval as it is written after a mean; nothing where there is none."""
    if found.low is None or found.high is None:
        return ""
    return f" [{found.low:.{digits}f}, {found.high:.{digits}f}]".replace("-", "−")


def plus_minus(found: Estimate) -> str:
    """Half the width of the interval."""
    return "" if found.low is None or found.high is None else f" ±{(found.high - found.low) / 2:.4f}"


def caution(results: Results) -> str:
    """What the intervals and tests are over, and what they leave out."""
    if results.units == "worlds":
        freedom = quantity(results.worlds - 1, "degree")
        return (
            f"Means over {results.worlds} worlds of {quantity(results.replicates, 'replicate')} each. The units of "
            f"intervals and tests are the worlds, each with the mean of its replicates: their spread holds that of the "
            f"worlds and that of the replicates (Student's t, {freedom} of freedom)."
        )
    if results.units == "replicates":
        return (
            f"Means over {results.replicates} replicates of one world, each with a log, initial weights, batches, "
            f"masks and negatives of its own. All arms share the log and the negatives, and arms of equal settings the "
            f"rest. Intervals and tests are Student's t over replicates: another world may give other figures; "
            f"--worlds counts that in."
        )
    return (
        "One world, one log, one training of each loss. Intervals and tests are over users: they say how much users "
        "differ, not how much another draw or training would. --replicates counts that in."
    )


def ess_words(share_by_arm: Mapping[str, float]) -> str:
    """What weighting leaves of the sample."""
    told = ", ".join(f"{named(arm)} {value:.0%}" for arm, value in share_by_arm.items())
    return f"Effective sample size of the weights, as a share of the training events: {told}." if told else ""
