"""What the advice rests on."""

from unveil.estimators.base import estimator
from unveil.estimators.ever import Ever
from unveil.experiment.advise.judged import Advice
from unveil.experiment.advise.study import by_impressions
from unveil.propensity.base import PROPENSITIES
from unveil.studies.arms import TRUE_THETA, Variant, registered

#: A log in which no more of the events repeat an item is one whose users do not come back.
_SELDOM = 0.05


def basis(advice: Advice) -> str:
    """Where relevance comes from, and in what drawn logs differ from the real one to the gain of some candidates."""
    return " ".join(filter(None, (_relevance(advice), _rated(advice), _again(advice), _shown(advice))))


def _relevance(advice: Advice) -> str:
    study = advice.tried.plan.study
    if study.world is not None:
        return f"The world was given ({study.world}): that it is like the log is assumed, not known."
    if study.liked:
        declared = ", ".join(f"{each:.0%}" for each in study.liked)
        return (
            f"No rating was looked at to make the worlds: what is liking is declared, not learnt: {declared} of what "
            f"makes an item popular, and all that is personal and steady. The advice is no better than that."
        )
    return "Relevance comes from the ratings of the log, exposure from what was and was not rated."


def _rated(advice: Advice) -> str:
    """Drawn ratings are no stars: what leans on them is told more than the real log would tell it."""
    if not any(map(by_ratings, advice.tried.candidates.usable)):
        return ""
    return (
        "Drawn logs are rated by relevance itself, with an error, and not in stars: candidates that use ratings may "
        "look better here than they are on the log."
    )


def _again(advice: Advice) -> str:
    """Users of a world come back to items; where the log's do not, sets of what was taken are worth less."""
    tried = advice.tried
    arms = [estimator(Variant.of(arm).estimator) for arm in tried.candidates.usable]
    if tried.again > _SELDOM or not any(issubclass(arm, Ever) for arm in arms):
        return ""
    return (
        f"In your log {tried.again:.1%} of the events take an item again, and users of drawn logs come back to items "
        f"as they like: ever and ever-rated, which learn from that, may look better here than they are on the log."
    )


def _shown(advice: Advice) -> str:
    """Drawn logs keep impressions by the toss of a coin whose odds are known; real ones need not."""
    study = advice.tried.plan.study
    if not any(by_impressions(study.recipe(arm, 0)) for arm in advice.tried.candidates.usable):
        return ""
    return (
        f"For each event drawn logs keep {study.left:.3g} impressions that nobody took, as yours does, or all there "
        f"are, several at a time and each as likely as any other; what learns from them is told how likely. Of your "
        f"log it is told that {study.impressions:.0%} are kept (--impressions). Where yours shows one thing at a time, "
        f"or keeps some rather than others, it may look better here than it is on your log."
    )


def by_ratings(arm: str) -> bool:
    """Whether an arm learns from ratings, by its loss or by its propensity."""
    variant = Variant.of(arm)
    needs = estimator(variant.estimator).needs
    if needs not in ("static", "temporal") or variant.propensity in (None, TRUE_THETA):
        return needs == "ratings"
    return PROPENSITIES[registered(variant.propensity, needs)].source == "ratings"
