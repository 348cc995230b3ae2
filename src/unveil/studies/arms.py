"""Arms with something of their own: an estimator, what it is told of exposure, and its options, in one word.

corrected                    as the study says
corrected@popularity         popularity in the place of exposure
itps@noisy:0.5+clip=0.02     noisy propensities, clipped; options are the estimator's, or any setting by its dots
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unveil.errors import UnveilError, check_range, unknown
from unveil.estimators.base import ESTIMATORS, estimator
from unveil.propensity.base import PROPENSITIES
from unveil.settings import parsed
from unveil.studies.results import BASE, BOUND
from unveil.training.recipe import Recipe

#: What an estimator is told of exposure, where that is no name of a propensity.
TRUE_THETA, ESTIMATED, NOISY = "true", "estimated", "noisy"
#: What `estimated` has always meant: counted from the log.
POPULARITY = "popularity"


@dataclass(frozen=True)
class Variant:
    """An arm that is trained, taken apart."""

    estimator: str
    propensity: str | None = None  # None: the study's
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, arm: str) -> "Variant":
        whole, *options = arm.split("+")
        name, at, propensity = whole.partition("@")
        chosen = estimator(name)
        if at and chosen.needs not in ("static", "temporal"):
            raise UnveilError(f"the estimator {name!r} uses no propensity", where=arm, hint=f"Write {name!r} alone.")
        variant = cls(chosen.name, propensity if at else None, tuple(_option(name, each) for each in options))
        if at:
            propensity_settings(propensity, chosen.needs, 0)
        return variant

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.options)


def settings(arm: str, changes: Iterable[str], seed: int, exposure: str) -> dict[str, Any]:
    """What an arm is trained with beside a preset, by dotted names; `exposure` is for arms that name no propensity.

    The changes come on top, but for the propensity and the options that the arm itself names.
    """
    variant = Variant.of(arm)
    name, needs, said = variant.estimator, estimator(variant.estimator).needs, changes_of(variant.estimator, changes)
    given = dict[str, Any]()
    if needs in ("static", "temporal"):
        given = propensity_settings(variant.propensity or exposure, needs, seed)
    own = {"estimator.seed": seed} if "seed" in ESTIMATORS.options(name) else {}
    own |= given | said if variant.propensity is None else said | given
    return own | variant.settings | {"training.seed": seed, "estimator.name": name}


def check_duplicates(arms: Iterable[str]) -> None:
    """Two words for one arm: trained twice, it would be counted twice."""
    words: dict[str, str] = {}
    for arm in dict.fromkeys(arms):
        other = words.setdefault(repr(Variant.of(arm)), arm)
        if other != arm:
            raise UnveilError("two arms are the same", found=f"{other} and {arm}", hint="Leave one of them out.")


def with_propensity(arm: str, propensity: str) -> str | None:
    """The same arm told another (known) propensity; None where it has one, uses none, or there is none of its kind."""
    variant = Variant.of(arm)
    needs = estimator(variant.estimator).needs
    if variant.propensity is not None or needs not in ("static", "temporal"):
        return None
    try:
        propensity_settings(propensity, needs, 0)
    except UnveilError:
        propensity_settings(propensity, "static" if needs == "temporal" else "temporal", 0)  # raises if nobody has it
        return None
    name, plus, options = arm.partition("+")
    return f"{name}@{propensity}{plus}{options}"


def _option(name: str, text: str) -> tuple[str, Any]:
    setting, value = parsed(text)
    option = setting.removeprefix("estimator.")
    if "." in option:
        return setting, value
    if option not in ESTIMATORS.options(name):
        raise unknown(f"option of the estimator {name!r}", option, ESTIMATORS.options(name))
    return f"estimator.{option}", value


def propensity_settings(choice: str, kind: str, seed: int) -> dict[str, Any]:
    """The settings of a propensity, named whole or by the part before its kind; its seed is the replicate's own."""
    name, _, amount = choice.partition(":")
    if choice == TRUE_THETA:
        return {"propensity.name": f"known-{kind}"}
    if name == NOISY:
        return {"propensity.name": f"noisy-{kind}", "propensity.sd": _deviation(amount), "propensity.seed": seed}
    own = registered(POPULARITY if choice == ESTIMATED else choice, kind)
    return {"propensity.name": own} | ({"propensity.seed": seed} if "seed" in PROPENSITIES.options(own) else {})


def registered(choice: str, kind: str) -> str:
    """The name in the registry of a propensity of that kind."""
    found = [name for name in (f"{choice}-{kind}", choice) if name in list(PROPENSITIES)]
    if not found:
        raise unknown("propensity", choice, (TRUE_THETA, f"{NOISY}:SD", ESTIMATED, *families()))
    if PROPENSITIES[found[0]].kind != kind:
        raise UnveilError(f"a {kind} propensity is needed, and this one is not", found=choice)
    return found[0]


def families() -> list[str]:
    """The propensities of the registry by the part of their names before the kind, each once."""
    return list(dict.fromkeys(map(family, PROPENSITIES)))


def family(name: str) -> str:
    """The part of a propensity's name before its kind: what people call it."""
    return name.removesuffix(f"-{PROPENSITIES[name].kind}")


def _deviation(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    expected = "noisy:SD with an SD of 0 or more, in logits"
    check_range(0 <= value < float("inf"), "propensity", f"noisy:{text}", expected)
    return value


def changes_of(arm: str, changes: Iterable[str]) -> dict[str, Any]:
    """The settings that are changed for an arm, by dotted names."""
    shared, own = dict[str, Any](), dict[str, Any]()
    for setting, value in map(parsed, changes):
        whose, colon, rest = setting.partition(":")
        if not colon:
            shared[setting] = value
        elif ESTIMATORS.aliases.get(whose, whose) == ESTIMATORS.aliases.get(arm, arm):
            own[rest] = value
    return shared | own


def with_changes(about: str, changes: Sequence[str]) -> str:
    """What is said of a preset, and right after it what of it was changed: "…; changed: training.epochs=2"."""
    return f"{about}; changed: {', '.join(changes)}" if changes else about


def check_changes(arms: Iterable[str], changes: Sequence[str]) -> None:
    """Before any work is done: estimators, and options of estimators, that are none."""
    named = [setting.partition(":")[0] for setting, _ in map(parsed, changes) if ":" in setting]
    for arm in dict.fromkeys([*(Variant.of(arm).estimator for arm in arms), *(estimator(n).name for n in named)]):
        known = ESTIMATORS.options(arm)
        for setting in changes_of(arm, changes):
            option = setting.removeprefix("estimator.")
            if option != setting and option not in known:
                raise unknown(f"option of the estimator {arm!r}", option, known)


def check_negatives(negatives: int, most: int) -> None:
    """`most` is how many negatives every case can have."""
    if most < negatives:
        hint = f"Pass --negatives {most} or fewer." if most > 0 else "Use data with more items."
        raise UnveilError("not every case has so many items to be ranked against", found=negatives, hint=hint)


def check_gap(arms: Sequence[str]) -> None:
    """Naive and ideal are the ends of the gap, and its shares are of what lies between them."""
    if not {BASE, BOUND} < set(arms):
        expected = "naive, ideal and at least one between them"
        raise UnveilError("a gap has two ends", where="--estimators", found=", ".join(arms), expected=expected)


def check_distinct(numbers: Iterable[float], where: str) -> None:
    """Cells and their seeds go by six digits of such a number: two that share them would be one, counted twice."""
    known: dict[str, float] = {}
    for number in numbers:
        other = known.setdefault(f"{number:g}", number)
        if other != number:
            found, expected = f"{other} and {number}", "numbers that differ in their first six digits"
            raise UnveilError("too near to be told apart", where=where, found=found, expected=expected)


def seconds_of(recipe: Recipe, size: tuple[int, int, int]) -> float:
    """Of users, items and events: the network over the tokens of every epoch, and the softmax over all items."""
    users, items, events = size
    task = recipe.task
    network: Any = recipe.model
    tokens = min(events, users * network.length)
    blocks, width = getattr(network, "blocks", 1), network.width
    inside = 6 * blocks * tokens * width * (12 * width + 2 * min(network.length, events / users))
    softmax = 6 * task.mask_probability * tokens * items * width
    return float(recipe.training.epochs * ((inside + softmax) / 4e10 + 0.004 * blocks * users / task.batch_size))
