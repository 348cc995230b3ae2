"""What is to be said of a propensity that nobody recorded."""

from unveil.propensity.base import PropensityModel
from unveil.propensity.popularity import Popularity

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
