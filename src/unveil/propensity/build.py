"""A propensity model by its name, made from what is at hand and fitted on the training part."""

from collections.abc import Mapping

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError, refuse_unless, unknown
from unveil.propensity.base import PROPENSITIES, PropensityModel
from unveil.propensity.factored import Factored
from unveil.propensity.known import Exposure


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
        _refuse_no_window(f"{name}.window", settings["window"])
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
    _refuse_no_window(f"{name}.window", options.get("window"))
    if issubclass(chosen, Factored):
        PROPENSITIES.build(name, options, *([] if chosen.source == "nothing" else [None]))


def _refuse_no_window(where: str, window: object) -> None:
    refuse_unless(not isinstance(window, int) or window >= 1, where, window, "at least 1, or none")


def parts(chosen: type[PropensityModel], log: Interactions | None, world: Exposure | None) -> list[object]:
    """What a model is made from, of what is at hand; whatever is not there is named."""
    if chosen.source == "nothing":
        return []
    if chosen.source == "truth":
        return [
            _given(world, chosen, "a world whose exposure is known", "Use a popularity propensity with a real log.")
        ]
    if chosen.source == "log":
        return [_given(log, chosen, "the log itself, for its ids and times", "Use a popularity propensity.")]
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
    return [_given(column, chosen, "a log with a propensity column", "Use a popularity propensity.")]


def _given(part: object | None, chosen: type[PropensityModel], what: str, hint: str) -> object:
    if part is None:
        raise UnveilError(f"the propensity {chosen.name!r} needs {what}, and there is none", hint=hint)
    return part
