"""A propensity model by its name, built from what is available and fitted on the training part; and its caveats."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError, unknown
from unveil.propensity.base import PROPENSITIES, PropensityModel, Source
from unveil.propensity.factors import Factored
from unveil.propensity.impressions import ImpressionGroups
from unveil.propensity.known import TrueWorld
from unveil.propensity.popularity import Popularity

_MESSAGES = tomllib.loads(files("unveil.propensity").joinpath("messages.toml").read_text(encoding="utf-8"))
_WARNINGS: Mapping[str, str] = _MESSAGES["warnings"]


def build(
    name: str,
    options: Mapping[str, object],
    train: Sequences,
    *,
    window: int | None = None,
    log: Interactions | None = None,
    world: TrueWorld | None = None,
) -> PropensityModel:
    """The propensity `name` with its options, fitted. Models that count do so in the model's `window` (its length)."""
    settings = dict(options)
    if "window" in PROPENSITIES.options(name):
        settings.setdefault("window", window)
    return PROPENSITIES.build(name, settings, *parts(PROPENSITIES[name], log, world)).fit(train)


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Before anything is fitted: options that a propensity does not have, of another type, or out of range.

    Ranges are checked of those that are estimated from events; others read files when they are built.
    """
    known, chosen = PROPENSITIES.options(name), PROPENSITIES[name]
    for option in options:
        if option not in known:
            raise unknown(f"option of the propensity {name!r}", option, known)
    PROPENSITIES.check(name, options)
    if chosen.source == "nothing":
        PROPENSITIES.build(name, options)
    elif issubclass(chosen, Factored):
        PROPENSITIES.build(name, options, None)


def parts(chosen: type[PropensityModel], log: Interactions | None, world: TrueWorld | None) -> list[object]:
    """What a model is built from; an error names what is missing."""
    if chosen.source == "nothing":
        return []
    there: dict[Source, object] = {"truth": world}
    if log is not None:
        shown = log.clicked is not None and not log.clicked.all()
        there |= {"log": log, "logged": log.propensity, "impressions": log if shown else None}
        there |= {"ratings": None if log.rating is None else log, "positions": None if log.position is None else log}
    if (part := there.get(chosen.source)) is None:
        needs = _MESSAGES["needs"][chosen.source]
        problem = f"the propensity {chosen.name!r} needs {needs['what']}, and there is none"
        raise UnveilError(problem, hint=needs["hint"])
    return [part]


def is_popularity(model: PropensityModel | None) -> bool:
    """Whether popularity stands in for exposure that was not recorded."""
    return isinstance(model, Popularity)


def caveats(
    model: PropensityModel | None, *, groups: ImpressionGroups | None = None, chosen_by: str | None = None
) -> list[str]:
    """Warnings about exposure that is estimated from interactions, or that explains choices in a feed.

    `groups`: of the log's impressions without a click; `chosen_by`: the estimator, if it assumes a choice among items.
    """
    assumes = getattr(model, "assumes", "")
    if model is None:
        return []
    found = list[str]()
    if groups and groups.is_feed and chosen_by:
        found.append(_WARNINGS["feed"].format(estimator=chosen_by, **vars(groups)))
    if not (is_popularity(model) or assumes):
        return found
    if groups and not groups.is_feed:
        found.append(_WARNINGS["unused"].format(kind=model.kind))
    if is_popularity(model):
        return [*found, _WARNINGS["proxy"]]
    caveat = getattr(model, "caveat", "")
    return [*found, _WARNINGS["estimated"].format(name=model.name, assumes=assumes, caveat=caveat).rstrip()]
