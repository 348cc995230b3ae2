"""A propensity model by its name, made from what is at hand and fitted on the training part."""

from collections.abc import Mapping

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError, unknown
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.factored import Factored
from unveil.propensity.known import Exposure
from unveil.propensity.popularity import Popularity

#: What to do for want of a propensity; popularity is not the first thing to name, as it is exposure times relevance.
INSTEAD = (
    "learn exposure from impressions (recorded-temporal), or ask 'unveil advise' what is worth trying; "
    "popularity is the last resort."
)


def build(
    name: str,
    options: Mapping[str, object],
    train: Sequences,
    *,
    window: int | None = None,
    log: Interactions | None = None,
    world: Exposure | None = None,
) -> PropensityModel:
    """The propensity `name` with its options, fitted. Models that count do so in the model's `window` (its length)."""
    chosen = PROPENSITIES[name]
    settings = dict(options)
    if "window" in PROPENSITIES.options(name):
        settings.setdefault("window", window)
    return PROPENSITIES.build(name, settings, *parts(chosen, log, world)).fit(train)


def refuse_options(name: str, options: Mapping[str, object]) -> None:
    """Before anything is fitted: options that a propensity does not have, of another kind, or out of range.

    Ranges are known to those that are estimated from events; others look up what is written elsewhere when they are
    made, and have to wait.
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


def parts(chosen: type[PropensityModel], log: Interactions | None, world: Exposure | None) -> list[object]:
    """What a model is made from, of what is at hand; whatever is not there is named."""
    if chosen.source == "nothing":
        return []
    if chosen.source == "truth":
        return [_given(world, chosen, "a world whose exposure is known", f"With a real log: {INSTEAD}")]
    if chosen.source == "log":
        return [_given(log, chosen, "the log itself, for its ids and times", INSTEAD.capitalize())]
    if chosen.source == "ratings":
        rated = None if log is None or log.rating is None else log
        return [_given(rated, chosen, "a log with ratings", "Use timing or joint-temporal, which need none.")]
    if chosen.source == "impressions":
        shown = None if log is None or log.clicked is None or log.clicked.all() else log
        hint = "Call the column that says whether a row was taken 'clicked', or name it (--clicked-col)."
        return [_given(shown, chosen, "a log that also has what was shown and left", hint)]
    if chosen.source == "positions":
        placed = None if log is None or log.position is None else log
        return [_given(placed, chosen, "a log with a position column", "Name the column with --position-col.")]
    column = None if log is None else log.propensity
    return [_given(column, chosen, "a log with a propensity column", INSTEAD.capitalize())]


def _given(part: object | None, chosen: type[PropensityModel], what: str, hint: str) -> object:
    if part is None:
        raise UnveilError(f"the propensity {chosen.name!r} needs {what}, and there is none", hint=hint)
    return part


_BETTER = (
    "Better where they are to be had: impressions (propensity.name=recorded-temporal, or `unveil propensity fit`) or "
    "propensities in the log (propensity.name=logged). With ratings, the estimator ever-rated needs none. `unveil "
    "advise LOG` tries what the log can give beside naive."
)
_UNUSED = (
    "this log keeps what was shown and left, which is not used here: propensity.name=recorded-{kind} learns exposure "
    "from it (propensity.rate says which share is kept), where several items are shown at a time."
)
_PROXY = (
    "popularity stands in for exposure: gains are under that proxy. Popularity is exposure × relevance: to correct by "
    f"it takes away what users like as well, and can do worse than naive. {_BETTER}"
)


def by_popularity(model: PropensityModel | None) -> bool:
    """Whether popularity stands in for exposure that nobody recorded."""
    return isinstance(model, Popularity)


def caution(model: PropensityModel | None, *, shown: bool = False) -> list[str]:
    """What to beware of where exposure was counted or estimated from what was taken; nothing where it was recorded.

    `shown`: the log keeps what was shown and left.
    """
    unused = [_UNUSED.format(kind=model.kind)] if shown and model is not None and not _recorded(model) else []
    return [*unused, *_guessed(model)]


def _recorded(model: PropensityModel) -> bool:
    return not by_popularity(model) and not getattr(model, "assumes", "")


def _guessed(model: PropensityModel | None) -> list[str]:
    if by_popularity(model):
        return [_PROXY]
    assumes = getattr(model, "assumes", "")
    if model is None or not assumes:
        return []
    told = f"nobody recorded exposure: {model.name} estimates it, assuming {assumes}. Gains are under that assumption."
    return [f"{told} {getattr(model, 'doubt', '')}".rstrip()]
