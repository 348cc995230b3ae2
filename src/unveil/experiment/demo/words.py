"""What the demo's figures say, in words that are chosen by the figures. Nothing here is true beforehand."""

from unveil.evaluation.statistics import Paired
from unveil.experiment.outcome import BASE, BOUND, STANDARD, TRUE, Outcome
from unveil.report.names import listed, named, share

RELEVANCE = "truth:Relevance@10"
_ALPHA = 0.05


def reading(outcome: Outcome) -> list[str]:
    """The conclusions, each a paragraph."""
    return [
        " ".join(_against_naive(outcome, arm) for arm in outcome.trained if arm not in (BASE, BOUND)),
        f"{_bound(outcome)} {_learnt(outcome)}",
        _two_rankings(outcome),
        _of_lists(outcome),
    ]


def gap_text(outcome: Outcome, arm: str) -> str:
    """The share of the gap closed, as it is shown; a dash for what the gap lies between."""
    gap = outcome.gap_closed(arm)
    return "–" if gap is None or arm in (BASE, BOUND) else share(gap)


def closes(outcome: Outcome, arm: str) -> str:
    """What an arm does to the gap, after its name; a difference that may be chance closes nothing."""
    gap = outcome.gap_closed(arm)
    if gap is None:
        return "finds no gap to close"
    if gap > 0 and sure(outcome.differences[arm]):
        return f"closes {gap:.0%} of the gap to the ideal"
    return "may close none of the gap to the ideal" if gap > 0 else "closes none of the gap to the ideal"


def _against_naive(outcome: Outcome, arm: str) -> str:
    means = f"NDCG@10 {outcome.estimate(arm).mean:.3f} against {outcome.estimate(BASE).mean:.3f}"
    said = f"{named(arm)} {verdict(outcome.differences[arm])} the naive loss on true favourites"
    return f"{said}: {means}; it {closes(outcome, arm)}."


def sure(found: Paired) -> bool:
    """Whether a difference is more than chance, as far as the units tell."""
    return found.p < _ALPHA


def verdict(found: Paired) -> str:
    """What a paired test allows to say."""
    if not sure(found):
        return "cannot be told from"
    return "scores above" if found.difference > 0 else "scores below"


def _bound(outcome: Outcome) -> str:
    base, bound = outcome.estimate(BASE).mean, outcome.estimate(BOUND).mean
    if bound > base:
        return f"The ideal loss, which is told the truth, reaches {bound:.3f} with the same network and histories."
    return f"The ideal loss, which is told the truth, reaches only {bound:.3f}: here there is no gap to close."


def _learnt(outcome: Outcome) -> str:
    base, popular = outcome.estimate(BASE).mean, outcome.estimate("popularity").mean
    clause = "more than" if base > popular else "no more than"
    return f"The naive model has learnt {clause} to recommend what is popular ({base:.3f} against {popular:.3f})."


def _two_rankings(outcome: Outcome) -> str:
    true, standard = outcome.ranking(TRUE), outcome.ranking(STANDARD)
    orders = (
        f"By the truth the order of the means is {listed(true)}; by the standard evaluation, on what users took, it is "
        f"{listed(standard)}."
    )
    if true == standard:
        return f"{orders} Here the two agree."
    learnable = [arm for arm in standard if arm != BOUND]
    chosen, best = learnable[0], next(arm for arm in true if arm != BOUND)
    if chosen == best:
        return f"{orders} Of the losses that need no truth, both put {named(best)} first."
    return (
        f"{orders} Of the losses that need no truth, the standard evaluation would have us choose {named(chosen)}, "
        f"and the truth {named(best)}: a log that is biased by exposure judges as it teaches."
    )


def _of_lists(outcome: Outcome) -> str:
    order = outcome.ranking(TRUE, RELEVANCE)
    means = ", ".join(f"{named(arm)} {outcome.estimate(arm, TRUE, RELEVANCE).mean:.3f}" for arm in order)
    sentence = f"The ten items that are recommended have a mean true relevance γ of: {means}."
    if order[0] == BOUND:
        return sentence
    return (
        f"{sentence} The ideal loss is not first here: it is trained on the one favourite of each step, and what "
        f"stands below the favourite is nothing to it."
    )


def caution(outcome: Outcome) -> str:
    """What the intervals leave out."""
    if len(outcome.trials) == 1:
        return (
            f"One world, one log, one training of each loss. The intervals and tests are over {outcome.units}: they "
            f"say how much the users differ, not how much another world or another training would. “unveil demo "
            f"--replicates 3” draws everything again and shows that."
        )
    return (
        f"Means over {outcome.units}, each with a world, a log and trainings of its own, shared by all losses; "
        f"intervals and tests by Student's t over replicates. The log and the world shown are those of the first."
    )
