"""What `unveil propensity` reports. Shapes: M slots, V items, K positions."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError, unknown
from unveil.estimators.base import events
from unveil.files import atomic_folder, versions, write_json
from unveil.propensity import time_of_day
from unveil.propensity.base import OF_EVENTS, PROPENSITIES, PropensityModel
from unveil.propensity.build import build, check_options
from unveil.propensity.factors import sigmoid
from unveil.propensity.impression_pairs import calibration
from unveil.propensity.positions import CHANCE, Position, PositionCounts, bootstrap, examination, p_equal
from unveil.propensity.time_of_day_fit import ExposureFit, FittedExposure
from unveil.propensity.weights import diagnose, inverse
from unveil.report.charts import curves, reliability_figure
from unveil.report.page import Code, Figure, write_page
from unveil.report.prose import Prose
from unveil.settings import parsed, plain
from unveil.simulation.world import World

Values = NDArray[np.float64]

_NUMBERS = 1 << 22  # in one table of slots × items
_TINY = 1e-300  # what is chosen less often cannot be distinguished from never
#: Items of each slot, most relevant first, among which exposure matters most, and those that are recommended.
TOP = 30
CLIP = 0.02  # θ is clipped from below in weights, as the presets clip it
REFERENCE = "known-static"  # the most that a propensity without steps can know, for comparison
SCORES = "scores.json"
#: Models as people call them, in the order of the tables.
LABELS = {
    "uniform": "uniform",
    "taken, static": "popularity: clicks, static",
    "taken, of late": "popularity: clicks, recent",
    "shown, static": "popularity: impressions, static",
    "shown, of late": "popularity: impressions, recent",
    "learnt": "learned",
}
#: What a propensity assumes that does not say it: popularity, or the truth.
_ASSUMED = ("that popularity is exposure", "nothing: it is the ground truth")


@dataclass(frozen=True, eq=False)
class Truth:
    """θ of every item at the slots, and the relevance logits."""

    slots: Slots
    theta_MV: Values
    logit_MV: Values

    @classmethod
    def of(cls, world: World, train: Sequences, most: int, rng: np.random.Generator) -> "Truth":
        count = min(len(train), most, max(1, _NUMBERS // max(1, world.n_items)))
        at_M = np.sort(rng.choice(len(train), count, replace=False))
        slots = events(train).at(torch.from_numpy(at_M))
        user_M, step_M = slots.user_M.numpy(), slots.step_M.numpy()
        theta_MV = np.maximum(world.exposure(user_M, step_M).astype(np.float64), np.finfo(np.float32).tiny)
        return cls(slots, theta_MV, world.relevance_logits.logits(user_M, step_M).astype(np.float64))

    @cached_property
    def log_chosen_MV(self) -> Values:
        """log P(i chosen) = log θ_i + Σ_{j better} log(1 − θ_j) + log γ_i, where users choose the best item exposed."""
        order_MV = np.argsort(-self.logit_MV, axis=1, kind="stable")
        miss_MV = np.log1p(-np.minimum(np.take_along_axis(self.theta_MV, order_MV, 1), 1 - 1e-12))
        missed_MV = np.empty_like(miss_MV)
        np.put_along_axis(missed_MV, order_MV, np.cumsum(miss_MV, axis=1) - miss_MV, 1)
        relevant_MV = np.log(sigmoid(self.logit_MV.astype(np.float32)).astype(np.float64) + _TINY)
        return np.asarray(np.log(self.theta_MV) + missed_MV + relevant_MV)


def score(model: PropensityModel, truth: Truth) -> dict[str, Any]:
    """Figures of a fitted propensity, and its calibration `curve`.

    Correlations are of log θ̂ with log θ: over all items, over the 30 most relevant of each slot, over the items
    chosen (`taken`). `mass` is Σ θ̂ / Σ θ; `ece` the calibration error as a share of all exposure; `log_loss` in nats a
    slot above that of the truth. `misplaced` is the share of the weight 1 / θ̂ of the events that is at other events
    than by the truth, `ess` the effective share of the events. `liked` is the mean relevance logit of the ten items
    ranked first if P(chosen) were known exactly and divided by θ̂, `gap` the share of the way from P to P / θ.
    """
    theta_MV = model.of_all(truth.slots).double().numpy()
    own_M = model(truth.slots).double().numpy()
    true_M = np.take_along_axis(truth.theta_MV, truth.slots.item_M.numpy()[:, None], 1)[:, 0]
    found_MV, true_MV = np.log(theta_MV), np.log(truth.theta_MV)
    top_MK = np.argsort(-truth.logit_MV, axis=1, kind="stable")[:, :TOP]
    curve, ece, mass = calibration(theta_MV.ravel(), truth.theta_MV.ravel(), np.ones(theta_MV.size))
    weight_M, ideal_M = (inverse(torch.from_numpy(each), CLIP) for each in (own_M, true_M))
    naive, ideal, liked = (
        relevance_of_first(truth.log_chosen_MV - shift, truth.logit_MV) for shift in (0.0, true_MV, found_MV)
    )
    return {
        "correlation": correlation(found_MV, true_MV),
        "top": correlation(*(np.take_along_axis(each, top_MK, 1) for each in (found_MV, true_MV))),
        "taken": correlation(np.log(own_M), np.log(true_M)),
        "mass": mass,
        "ece": ece,
        "log_loss": _loss(theta_MV, truth.theta_MV) - _loss(truth.theta_MV, truth.theta_MV),
        "misplaced": float((weight_M / weight_M.sum() - ideal_M / ideal_M.sum()).abs().sum() / 2),
        "ess": diagnose(weight_M).ess_share,
        "liked": liked,
        "gap": (liked - naive) / (ideal - naive) if ideal > naive else 0.0,
        "curve": asdict(curve),
    }


def correlation(one: Values, other: Values) -> float:
    """Pearson's; 0 where one of the two does not vary."""
    a, b = one.ravel() - one.mean(), other.ravel() - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-9 * len(a) else 0.0


def relevance_of_first(score_MV: Values, logit_MV: Values) -> float:
    """The mean relevance logit of the ten items of highest score of each slot."""
    first_MK = np.argsort(-score_MV, axis=1, kind="stable")[:, :10]
    return float(np.take_along_axis(logit_MV, first_MK, 1).mean())


def _loss(theta_MV: Values, true_MV: Values) -> float:
    """E[−log-likelihood of what is exposed at a slot] under the truth."""
    unseen_MV = np.log1p(-np.minimum(theta_MV, 1 - 1e-7))
    return float(-(true_MV * np.log(theta_MV) + (1 - true_MV) * unseen_MV).sum(1).mean())


def usable(log: Interactions) -> list[str]:
    """Every propensity that this log, and nothing else, is enough for; then the reference."""
    sources = {"nothing"} | ({"ratings"} if log.rating is not None else set())
    sources |= {"impressions"} if log.clicked is not None else set()
    return [*(name for name in PROPENSITIES if PROPENSITIES[name].source in sources), REFERENCE]


def score_all(
    world: World,
    log: Interactions,
    names: Sequence[str] = (),
    assignments: Sequence[str] = (),
    *,
    slots: int = 2000,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Fit each on the training part, as a training would, and score it at training events drawn at random."""
    options = _options(names or usable(log), assignments)
    part = world.aligned_with(log)
    train = leave_one_out(Sequences.of(log)).train
    if not len(train):
        raise UnveilError("the log has no training events: no user has three or more")
    truth, scores = Truth.of(part, train, slots, np.random.default_rng(seed)), {}
    kinds = [(name, PROPENSITIES[name]) for name in options]
    for name, own in options.items():
        tell(f"fitting {name}")
        scores[name] = score(build(name, own, train, log=log, world=part), truth)
    return {
        "log": {"fingerprint": log.fingerprint(), "events": len(log)},
        "slots": len(truth.slots),
        "items": part.n_items,
        "severity": part.severity,
        "naive": relevance_of_first(truth.log_chosen_MV, truth.logit_MV),  # without correction
        "curves": {name: each.pop("curve") for name, each in scores.items()},
        "scores": scores,
        "assumes": {name: str(getattr(kind, "assumes", _ASSUMED[kind.source == "truth"])) for name, kind in kinds},
    }


def _options(names: Sequence[str], assignments: Sequence[str]) -> dict[str, dict[str, object]]:
    """The options of each propensity by PROPENSITY:NAME=VALUE, checked before anything is fitted."""
    found: dict[str, dict[str, object]] = {name: {} for name in names}
    for name in names:
        if PROPENSITIES[name].source in OF_EVENTS:
            problem = f"the propensity {name!r} is known for chosen items only, and scores are over all items"
            raise UnveilError(problem, where="--propensity", hint="Leave it out.")
    for text in assignments:
        name, colon, own = text.partition(":")
        if not colon or "=" in name:
            option = text.partition("=")[0].strip()
            whose = next((each for each in names if option in PROPENSITIES.options(each)), None)
            raise UnveilError(
                "this option does not say of which propensity it is",
                where="--set",
                found=text,
                expected="PROPENSITY:NAME=VALUE",
                hint=f"For example {whose}:{text}." if whose else None,
            )
        if name not in found:
            raise unknown("propensity that is scored", name, names)
        found[name].update([parsed(own)])
    for name, options in found.items():
        check_options(name, options)
    return found


def write_scores(scores: dict[str, Any], folder: Path, command: Sequence[str], *, overwrite: bool = False) -> None:
    """A folder with a page and every figure, whole or not at all."""
    about = {"command": shlex.join(command), "versions": versions(), **scores}
    best = sorted(about["scores"], key=lambda name: -about["scores"][name]["top"])[:4]
    figure = _calibration_figure(about, best, ("estimated θ", "true θ, mean"), "exposed")
    with atomic_folder(folder, overwrite=overwrite) as draft:
        write_json(draft / SCORES, about)
        page = scores_prose(about).page({"calibration": figure, "command": Code(about["command"])})
        write_page(page, draft / "index.html")


def _calibration_figure(about: Mapping[str, Any], names: Sequence[str], axes: tuple[str, str], verb: str) -> Figure:
    bins = about["curves"]
    drawn = {LABELS.get(name, name): (bins[name]["predicted"], bins[name]["observed"]) for name in names}
    return reliability_figure(drawn, axes, verb, "calibration")


def scores_prose(about: Mapping[str, Any]) -> Prose:
    """The table and what its figures say. Of estimates, that is of none with the truth, if there are others."""
    scores = about["scores"]
    estimated = {name: each for name, each in scores.items() if PROPENSITIES[name].source != "truth"} or scores
    facts = {
        "estimated": estimated,
        "nearest": max(estimated, key=lambda name: estimated[name]["top"]),
        "closest": max(estimated, key=lambda name: estimated[name]["gap"]),
        "least": min(estimated, key=lambda name: estimated[name]["misplaced"]),
        "popularity": {name: each for name, each in scores.items() if name.startswith("popularity")},
        "reference": REFERENCE,
        "clip": CLIP,
    }
    return Prose(["propensity_scores.md.j2"], {**about, **facts})


def write_fit(
    fitted: FittedExposure, log: Interactions, how: ExposureFit, folder: Path, command: Sequence[str], overwrite: bool
) -> Prose:
    """A folder with the model, its quality and a page, whole or not at all; gives what the page says."""
    quality = {name: asdict(each) for name, each in fitted.quality.items()}
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "users": len(log.users), "items": len(log.items)},
        "fit": plain(how),
        "days": fitted.days,
        "impressions": fitted.impressions,
        "strangers": fitted.unknown,
        "curves": {name: each.pop("calibration") for name, each in quality.items()},
        "quality": quality,
        "epochs": fitted.epochs,
    }
    at, loss = (np.array([each[name] for each in fitted.epochs]) for name in ("epoch", "valid_log_loss"))
    drawn = ("learnt", "shown, of late", "taken, static")
    parts = {
        "calibration": _calibration_figure(about, drawn, ("predicted θ", "share that was shown"), "shown"),
        "learning": curves(at, {"learned": loss[0] - loss}, [0], "nats gained, validation days", "learning"),
        "command": Code(shlex.join(command)),
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        prose = fit_prose(time_of_day.write(fitted.model, draft, about))
        write_page(prose.page(parts), draft / "index.html")
    return prose


def fit_prose(about: Mapping[str, Any]) -> Prose:
    """The table and what its figures say."""
    quality = about["quality"]
    best = min((name for name in quality if name not in ("learnt", "uniform")), key=lambda n: quality[n]["log_loss"])
    gain = quality[best]["log_loss"] - quality["learnt"]["log_loss"]
    facts = {"labels": LABELS, "own": quality["learnt"], "best": best, "gain": gain}
    return Prose(["propensity_fit.md.j2"], {**about, **facts})


def examine_positions(
    log: Interactions, *, deepest: int = 0, add: float = Position.add, draws: int = 400, seed: int = 0
) -> dict[str, Any]:
    """How often each position of a log is examined (e), from what was marked as exposed, or all of it.

    Of each of the `places`, `relative` (the plain share of clicks, relevance and all) and `examined`, with its interval
    from `low` to `high`, are shares of the position that is examined `best`. `clicks` were on the `items` that were
    clicked and shown at several positions; `p` is of a test that all positions are examined alike.
    """
    counts = PositionCounts.of(log, np.ones(len(log), bool) if log.exposed is None else log.exposed, deepest)
    shown_K, clicked_K = counts.by_position()
    informative = counts.informative().connected(clicked_K > 0)
    kept_K = np.isin(counts.position_K, informative.position_K)
    rate_K = (clicked_K / shown_K)[kept_K]
    e_K = examination(informative, add)
    best = int(e_K.argmax())
    e_DK = bootstrap(informative, add, draws, np.random.default_rng(seed))
    low_K, high_K = np.quantile(e_DK / e_DK[:, [best]], (0.025, 0.975), axis=0)
    columns: dict[str, Any] = {
        "position": informative.position_K,
        "shown": shown_K[kept_K].astype(int),
        "clicked": clicked_K[kept_K].astype(int),
        "rate": rate_K,
        "relative": rate_K / rate_K[best],
        "examined": e_K,
        "low": low_K,
        "high": high_K,
    }
    return {
        "places": pl.DataFrame(columns).to_dicts(),
        "best": int(informative.position_K[best]),
        "items": len(np.unique(informative.item_P)),
        "clicks": int(informative.clicked_P.sum()),
        "p": p_equal(informative),
    }


def positions_prose(found: Mapping[str, Any]) -> Prose:
    """The table; whether anything is certain, what the columns are, and how to use them."""
    return Prose(["positions.md.j2"], {**found, "chance": CHANCE})
