"""A propensity model by its name, built from what is available and fitted on the training part; and its caveats."""

from collections.abc import Mapping

from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError, unknown
from unveil.propensity.base import PROPENSITIES, PropensityModel, Source
from unveil.propensity.factors import Factored
from unveil.propensity.impressions import ImpressionGroups
from unveil.propensity.known import TrueWorld
from unveil.propensity.popularity import Popularity

_INSTEAD = (
    "Learn exposure from impressions (recorded-temporal), or run 'unveil advise' to see what helps; "
    "popularity is the last resort."
)
#: What a model of each source needs, and what to do if it is missing.
_NEEDS: Mapping[Source, tuple[str, str]] = {
    "truth": ("a world whose exposure is known", f"With a real log: {_INSTEAD[0].lower()}{_INSTEAD[1:]}"),
    "log": ("the log itself, for its ids and times", _INSTEAD),
    "ratings": ("a log with ratings", "Use timing or joint-temporal, which need none."),
    "impressions": (
        "a log with impressions without a click",
        "Call the column that says whether a row was clicked 'clicked', or name it (--clicked-col).",
    ),
    "positions": ("a log with a position column", "Name the column with --position-col."),
    "logged": ("a log with a propensity column", _INSTEAD),
}
_UNUSED = (
    "this log has impressions without a click, which are not used here: propensity.name=recorded-{kind} learns "
    "exposure from them (propensity.rate is the share that the log keeps), if several items are shown at a time."
)
_FEED = (
    "this log is a feed: {together:.0%} of its {skips:,} impressions without a click were shown together with others, "
    "and {with_click:.0%} with a click, but {estimator} assumes a choice among what is shown together. On such a log, "
    "AUC for items shown at random is .546 for corrected with exposure learnt from impressions, .590 for naive "
    "(docs/results/unbiased/kuairand). Use naive, or compare the estimator impressions."
)
_PROXY = (
    "popularity stands in for exposure. Popularity is exposure × relevance: correcting by it also removes relevance. "
    "For users of KuaiRec, who saw every item, NDCG@10 of ips, itps and logit-adjustment with it is .12, .31 and .03, "
    "of plain training .50 (docs/results/unbiased/kuairec). Better, if available: "
    "impressions (propensity.name=recorded-temporal, or `unveil propensity fit`) or propensities in the log "
    "(propensity.name=logged). With ratings, the estimator wmf-distilled-rated needs none. `unveil advise LOG` "
    "compares what the log supports with naive."
)


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
        what, hint = _NEEDS[chosen.source]
        raise UnveilError(f"the propensity {chosen.name!r} needs {what}, and there is none", hint=hint)
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
    found = [_FEED.format(estimator=chosen_by, **vars(groups))] if groups and groups.is_feed and chosen_by else []
    if not (is_popularity(model) or assumes):
        return found
    if groups and not groups.is_feed:
        found.append(_UNUSED.format(kind=model.kind))
    if is_popularity(model):
        return [*found, _PROXY]
    estimated = f"exposure was not recorded: {model.name} estimates it, assuming {assumes}."
    return [*found, f"{estimated} Gains are under that assumption. {getattr(model, 'caveat', '')}".rstrip()]
