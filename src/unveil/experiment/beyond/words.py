"""What the shares say, chosen by the figures."""

from collections.abc import Sequence

from unveil.estimators.base import estimator
from unveil.evaluation.protocols import FULL
from unveil.experiment.beyond.shares import METRICS, Share, everywhere, levels, published, shares
from unveil.experiment.outcome import BASE, BOUND, TRUE
from unveil.experiment.reproduce.results import Figure, Results
from unveil.experiment.reproduce.words import gap_text, headline, learnable
from unveil.propensity.base import PROPENSITIES
from unveil.report.names import against, listed, named, share
from unveil.studies.arms import Variant, propensity_settings

#: What was set out to be closed at every severity: with the study's propensities, and with what the log tells.
AIM, AIM_ESTIMATED = 0.60, 0.25
#: Where an arm has its exposure from, if not from a propensity that its name tells.
STUDY, NOWHERE = "the study’s", "none"


def figures(results: Results) -> list[Figure]:
    """NDCG@10 and Recall@10, ranked as in the paper."""
    return [Figure(TRUE, results.sampled, *metric) for metric in METRICS]


def everywhere_judged(results: Results) -> list[Figure]:
    """The same, and then ranked among all items: what holds under one ranking need not hold under another."""
    return [*figures(results), *(Figure(TRUE, FULL, *metric) for metric in METRICS)]


def judged(figure: Figure) -> str:
    """NDCG@10 against 100 uniform items."""
    return f"{figure.name} against {against(figure.protocol)}"


def source_of(arm: str) -> str:
    """The propensity of its own that an arm has, the study's, or none: some losses learn from the log alone."""
    _, has_own, own = arm.partition("@")
    if has_own:
        return own
    return STUDY if estimator(Variant.of(arm).estimator).needs in ("static", "temporal") else NOWHERE


def is_estimated(arm: str) -> bool:
    """Whether exposure is known from the log only: no propensity at all, or none that is the truth, noisy or not.

    What a drawn log records of its own exposure (`logged`) is the world's.
    """
    variant = Variant.of(arm)
    if variant.propensity is None:
        return source_of(arm) == NOWHERE
    told = propensity_settings(variant.propensity, estimator(variant.estimator).needs, 0)
    return PROPENSITIES[told["propensity.name"]].source not in ("truth", "logged")


def comparable(results: Results) -> bool:
    """Whether both ends of the gap are there, and something between them."""
    return {BASE, BOUND} <= set(results.trained) and bool(learnable(results))


def reading(results: Results, propensity: str, *, epoch_by: str = "truth") -> list[str]:
    """The aims, who fell below naive, the paper's shares beside, and where the spread comes from."""
    if not comparable(results):
        return ["The gap has two ends: without naive, ideal and something between them there is nothing to say."]
    every = {figure: shares(results, figure) for figure in everywhere_judged(results)}
    return [
        *filter(None, (_aims(figure, found, propensity) for figure, found in every.items())),
        _below([each for found in every.values() for each in found]),
        *filter(None, [_chosen(results) if epoch_by == "truth" else ""]),
        _paper({figure: every[figure] for figure in figures(results)}),
        *_levels(results),
    ]


def _aims(figure: Figure, found: Sequence[Share], propensity: str) -> str:
    """Arms that are told the truth beside another propensity of the study, or the truth with noise, have no aim."""
    given = [each for each in found if source_of(each.arm) == STUDY]
    estimated = [each for each in found if is_estimated(each.arm)]
    told = (
        _aim(figure, given, f"{propensity} propensities", AIM),
        _aim(figure, estimated, "estimated ones or none", AIM_ESTIMATED),
    )
    return " ".join(filter(None, told))


def _aim(figure: Figure, found: Sequence[Share], what: str, aim: float) -> str:
    """Who reaches the aim everywhere, and how the best does at each severity."""
    if not any(each.gap for each in found):
        return f"{judged(figure)}, {what}: there is no gap to close, as ideal is not above naive." if found else ""
    arms = dict.fromkeys(each.arm for each in found)
    least = {arm: min((e.gap.mean for e in found if e.arm == arm and e.gap is not None), default=-9.0) for arm in arms}
    best = max(arms, key=lambda arm: least[arm])
    along = ", ".join(f"p = {e.severity:g} {gap_text(e.gap)}" for e in found if e.arm == best and e.gap is not None)
    reached = everywhere(found, aim)
    verdict = (
        f"at least {share(aim)} is closed at every p by {listed(reached)}"
        if reached
        else f"none closes {share(aim)} at every p"
    )
    best_of = f"the one with the best worst case is {named(best)}: {along}"
    return f"{judged(figure)}, {what}: by the means {verdict}; {best_of}."


def _below(found: Sequence[Share]) -> str:
    """Under both rankings: what is below naive among all items is not to be missed.

    The correction is Holm's over the arms and severities of a figure, so an interval of one share by itself can lie
    below 0 where no test is sure.
    """
    sure = [each for each in found if each.below and each.surely]
    perhaps = [each for each in found if each.below and not each.surely]
    if not (sure or perhaps):
        return "No estimator has a mean below that of the naive loss anywhere, against drawn negatives or all items."
    told = [f"Surely (p < 0.05 after Holm’s correction): {_places(sure)}"] if sure else []
    told += [f"By the mean, though not surely after that correction: {_places(perhaps)}"] if perhaps else []
    return f"Below the naive loss. {'. '.join(told)}."


def _places(found: Sequence[Share]) -> str:
    """corrected · popularity (NDCG@10 against all items at p = 1, 2; Recall@10 against all items at p = 1)."""
    said = []
    for arm in dict.fromkeys(each.arm for each in found):
        own = [each for each in found if each.arm == arm]
        parts = [
            f"{judged(figure)} at p = {', '.join(f'{each.severity:g}' for each in own if each.figure == figure)}"
            for figure in dict.fromkeys(each.figure for each in own)
        ]
        said.append(f"{named(arm)} ({'; '.join(parts)})")
    return ", ".join(said)


def _chosen(results: Results) -> str:
    """What an arm that is told nothing of the truth still has of it."""
    if not any(map(is_estimated, learnable(results))):
        return ""
    return (
        "Which epoch is kept is decided by true relevance on the validation cases, for every arm alike, as in the "
        "paper: estimated propensities are fitted to the log alone, but a real log could not choose the epoch so. "
        "With --epoch-by taken what was taken chooses it."
    )


def _paper(every: dict[Figure, list[Share]]) -> str:
    told = []
    for figure, found in every.items():
        ours = next((e.gap for e in found if e.arm == "itps" and e.severity == 1 and e.gap is not None), None)
        here = "" if ours is None else f" (here ITPS closes {gap_text(ours)})"
        told.append(f"{share(published((figure.metric, figure.k)))} of the gap in {figure.name}{here}")
    return f"In the paper’s table, at p = 1 and in its own world, ITPS closed {' and '.join(told)}."


def _levels(results: Results) -> list[str]:
    """How much of the spread is the worlds', for the arm that is best on average."""
    figure = headline(results)
    severity = results.severities[0]
    best = next(arm for arm in results.order(severity, figure) if arm not in (BASE, BOUND))
    found = levels(results, best, figure, severity)
    if found is None:
        return []
    told = (
        f"Two levels: the gain of {named(best)} over naive in {figure.name} at p = {severity:g} differs between worlds "
        f"by a standard deviation of {found.worlds:.3f}, between replicates of one world by {found.replicates:.3f}. "
        f"Replicates of a world share its favourites and are no worlds of their own: each world counts once, with the "
        f"mean of its replicates."
    )
    return [told]
