"""What is true at some slots of a world: exposure, what is taken, and what would be. Shapes: M slots, V items."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError, unknown
from unveil.files import atomic_folder, versions, write_json
from unveil.propensity.base import OF_EVENTS, PROPENSITIES, PropensityModel
from unveil.propensity.build import build, check_options
from unveil.propensity.calibration import BINS, Calibration, equal_mass
from unveil.propensity.factors import sigmoid
from unveil.propensity.weights import diagnose, inverse
from unveil.report.charts import reliability_figure
from unveil.report.page import Cell, Code, Column, Page, Table, number, write_page
from unveil.report.prose import Prose, percent
from unveil.settings import parsed
from unveil.simulation.world import World

Values = NDArray[np.float64]

#: Numbers in one table of all slots and items: not more than this are looked at.
_NUMBERS = 1 << 22
#: What is taken less often than this is not told from never.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Truth:
    """θ of every item at the slots, the relevance logits, and P(taken) by a user who takes the best of what is seen."""

    slots: Slots
    theta_MV: Values
    logit_MV: Values

    @classmethod
    def of(cls, world: World, train: Sequences, most: int, rng: np.random.Generator) -> "Truth":
        """At training events drawn at random."""
        count = min(len(train), most, max(1, _NUMBERS // max(1, world.n_items)))
        at_M = np.sort(rng.choice(len(train), count, replace=False))
        columns = (train.user_N, train.item_N, train.step_N, train.event_N)
        user_M, item_M, step_M, event_M = (column[at_M].astype(np.int64) for column in columns)
        slots = Slots(*(torch.from_numpy(index) for index in (user_M, item_M, step_M, event_M)))
        theta_MV = np.maximum(world.exposure(user_M, step_M).astype(np.float64), np.finfo(np.float32).tiny)
        return cls(slots, theta_MV, world.relevance_logits.logits(user_M, step_M).astype(np.float64))

    def log_taken(self) -> Values:
        """log P(i taken) = log θ_i + Σ_{j better} log(1 − θ_j) + log γ_i."""
        order_MV = np.argsort(-self.logit_MV, axis=1, kind="stable")
        miss_MV = np.log1p(-np.minimum(np.take_along_axis(self.theta_MV, order_MV, 1), 1 - 1e-12))
        missed_MV = np.empty_like(miss_MV)
        np.put_along_axis(missed_MV, order_MV, np.cumsum(miss_MV, axis=1) - miss_MV, 1)
        pleased_MV = np.log(sigmoid(self.logit_MV.astype(np.float32)).astype(np.float64) + _TINY)
        return np.asarray(np.log(self.theta_MV) + missed_MV + pleased_MV)

    def top(self, k: int) -> NDArray[np.int64]:
        """The k most relevant items of each slot."""
        return np.argsort(-self.logit_MV, axis=1, kind="stable")[:, :k]


#: Items of each slot, most relevant first, among which exposure matters most.
TOP = 30
#: θ is clipped from below in weights, as the presets clip it.
CLIP = 0.02
_K = 10


@dataclass(frozen=True)
class Score:
    """Figures of one propensity at the slots of a truth.

    Correlations are of log θ̂ with log θ: over all items, over the 30 most relevant of each slot, over the items
    taken. `mass` is Σ θ̂ / Σ θ; `ece` the calibration error as a share of what is exposed; `log_loss` in nats a slot
    above that of the truth. `misplaced` is the share of the weight 1 / θ̂ of the events taken that stands elsewhere
    than by the truth, `ess` what the weights leave of the events. `liked` is the mean relevance logit of the ten items
    ranked first if P(taken) were known exactly and divided by θ̂, `gap` the share of the way from P to P / θ.
    """

    correlation: float
    top: float
    taken: float
    mass: float
    ece: float
    log_loss: float
    misplaced: float
    ess: float
    liked: float
    gap: float
    curve: Calibration


def scored(model: PropensityModel, truth: Truth) -> Score:
    """All figures of a fitted propensity."""
    theta_MV = model.of_all(truth.slots).double().numpy()
    own_M = model(truth.slots).double().numpy()
    true_M = np.take_along_axis(truth.theta_MV, truth.slots.item_M.numpy()[:, None], 1)[:, 0]
    found_MV, true_MV, top_MK = np.log(theta_MV), np.log(truth.theta_MV), truth.top(TOP)
    curve, mass, ece = _calibration(theta_MV.ravel(), truth.theta_MV.ravel())
    weight_M, ideal_M = (inverse(torch.from_numpy(each), CLIP) for each in (own_M, true_M))
    liked, gap = closed(truth, found_MV)
    return Score(
        correlation=correlation(found_MV, true_MV),
        top=correlation(*(np.take_along_axis(each, top_MK, 1) for each in (found_MV, true_MV))),
        taken=correlation(np.log(own_M), np.log(true_M)),
        mass=mass,
        ece=ece,
        log_loss=_loss(theta_MV, truth.theta_MV) - _loss(truth.theta_MV, truth.theta_MV),
        misplaced=float((weight_M / weight_M.sum() - ideal_M / ideal_M.sum()).abs().sum() / 2),
        ess=diagnose(weight_M).ess_share,
        liked=liked,
        gap=gap,
        curve=curve,
    )


def correlation(one: Values, other: Values) -> float:
    """Pearson's; 0 where one of the two does not vary."""
    a, b = one.ravel() - one.mean(), other.ravel() - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-9 * len(a) else 0.0


def closed(truth: Truth, found_MV: Values) -> tuple[float, float]:
    """How relevant the ten first by P(taken) / θ̂ are, and where that lies from P to P / θ."""
    taken_MV = truth.log_taken()
    naive, ideal, liked = (
        relevance_of_first(taken_MV - shift, truth.logit_MV) for shift in (0.0, np.log(truth.theta_MV), found_MV)
    )
    return liked, (liked - naive) / (ideal - naive) if ideal > naive else 0.0


def relevance_of_first(score_MV: Values, logit_MV: Values) -> float:
    """The mean relevance logit of the ten items of highest score of each slot."""
    first_MK = np.argsort(-score_MV, axis=1, kind="stable")[:, :_K]
    return float(np.take_along_axis(logit_MV, first_MK, 1).mean())


def _loss(theta_MV: Values, true_MV: Values) -> float:
    """E[−log-likelihood of what is exposed at a slot] under the truth."""
    unseen_MV = np.log1p(-np.minimum(theta_MV, 1 - 1e-7))
    return float(-(true_MV * np.log(theta_MV) + (1 - true_MV) * unseen_MV).sum(1).mean())


def _calibration(theta: Values, true: Values) -> tuple[Calibration, float, float]:
    """Bins of equal promised mass: what is promised, and what is true, there; total mass; error."""
    bins = equal_mass(theta, np.ones_like(theta), BINS)
    promised_B, true_B, size_B = (np.bincount(bins, each, BINS) for each in (theta, true, np.ones_like(theta)))
    there, total = size_B > 0, float(true.sum())
    curve = Calibration(
        (promised_B[there] / size_B[there]).tolist(),
        (true_B[there] / size_B[there]).tolist(),
        promised_B[there].tolist(),
    )
    return curve, float(promised_B.sum()) / total, float(np.abs(promised_B - true_B).sum()) / total


#: The most that a propensity without steps can know, for comparison.
REFERENCE = "known-static"


@dataclass(frozen=True, eq=False)
class Scores:
    """A score for each propensity, and what they were scored on."""

    scores: dict[str, Score]
    slots: int
    items: int
    events: int
    severity: float
    naive: float  # mean relevance logit of the ten first by P(taken), not corrected


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
) -> Scores:
    """Fit each on the training part, as a training would, and score it at training events drawn at random."""
    asked = list(names or usable(log))
    refuse_of_events(asked)
    refuse_stray(assignments, asked)
    options = {name: _options(name, assignments) for name in asked}
    for name in asked:
        check_options(name, options[name])
    part = world.aligned_with(log)
    train = leave_one_out(Sequences.of(log)).train
    if not len(train):
        raise UnveilError("the log has no training events: no user has three or more")
    truth = Truth.of(part, train, slots, np.random.default_rng(seed))
    found = {}
    for name in asked:
        tell(name)
        model = build(name, options[name], train, log=log, world=part)
        found[name] = scored(model, truth)
    naive = relevance_of_first(truth.log_taken(), truth.logit_MV)
    return Scores(found, len(truth.slots), part.n_items, len(train), part.severity, naive)


def refuse_of_events(names: Sequence[str]) -> None:
    """Scores are over every item of a slot: a propensity that is known of the taken one alone has none."""
    for name in names:
        if PROPENSITIES[name].source in OF_EVENTS:
            problem = f"the propensity {name!r} is known of taken items alone, and scores are over all items"
            raise UnveilError(problem, where="--propensity", hint="Leave it out.")


def refuse_stray(assignments: Sequence[str], names: Sequence[str]) -> None:
    """An option of a propensity that is not scored, or of none, would say nothing."""
    for text in assignments:
        name, colon, _ = text.partition(":")
        if not colon or "=" in name:
            raise _of_none(text, names)
        if name not in names:
            raise unknown("propensity that is scored", name, names)


def _of_none(text: str, names: Sequence[str]) -> UnveilError:
    """The error for an option that does not say whose it is; it suggests the first propensity that has such a one."""
    option = text.partition("=")[0].strip()
    whose = next((name for name in names if option in PROPENSITIES.options(name)), None)
    return UnveilError(
        "this option does not say of which propensity it is",
        where="--set",
        found=text,
        expected="PROPENSITY:NAME=VALUE",
        hint=f"For example {whose}:{text}." if whose else None,
    )


def _options(name: str, assignments: Sequence[str]) -> dict[str, object]:
    """Of NAME:OPTION=VALUE those that are of this propensity."""
    own = [text.partition(":")[2] for text in assignments if text.partition(":")[0] == name]
    return dict(map(parsed, own))


#: Figures by the name of the propensity.
ByName = Mapping[str, Mapping[str, float]]
SCORES = "scores.json"
_DRAWN = 4


def write_scores(
    found: Scores, log: Interactions, folder: Path, command: Sequence[str], *, overwrite: bool = False
) -> dict[str, Any]:
    """A folder with a page and every figure, whole or not at all; gives what it says of itself."""
    scores = {name: asdict(each) for name, each in found.scores.items()}
    bins = {name: each.pop("curve") for name, each in scores.items()}
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "events": len(log)},
        "slots": found.slots,
        "items": found.items,
        "severity": found.severity,
        "naive": found.naive,
        "scores": scores,
        "curves": bins,
        "assumes": {name: assumed(name) for name in scores},
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        write_json(draft / SCORES, about)
        write_page(scores_page(about), draft / "index.html")
    return about


def assumed(name: str) -> str:
    """What a propensity assumes."""
    chosen = PROPENSITIES[name]
    known = "nothing: it is the ground truth" if chosen.source == "truth" else "that popularity is exposure"
    return str(getattr(chosen, "assumes", known))


def scores_page(about: Mapping[str, Any]) -> Page:
    """The whole page, from what the folder says of itself."""
    scores, bins = about["scores"], about["curves"]
    best = sorted(scores, key=lambda name: -scores[name]["top"])[:_DRAWN]
    drawn = {name: (bins[name]["predicted"], bins[name]["observed"]) for name in best}
    assumes = [[name, text] for name, text in about["assumes"].items()]
    return _prose(about).page(
        {
            "scores": scores_table(scores),
            "calibration": reliability_figure(drawn, ("estimated θ", "true θ, mean"), "exposed", "calibration"),
            "assumes": Table("", [Column("propensity"), Column("assumes")], assumes),
            "command": Code(about["command"]),
        }
    )


def scores_findings(about: Mapping[str, Any]) -> list[str]:
    """What the figures say, each a paragraph."""
    return _prose(about).paragraphs("findings")


def _prose(about: Mapping[str, Any]) -> Prose:
    scores = about["scores"]
    estimated = estimates(scores)
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


def estimates(scores: ByName) -> ByName:
    """Those that do not come from the ground truth, noisy or not; all where there are no others."""
    return {name: each for name, each in scores.items() if PROPENSITIES[name].source != "truth"} or scores


def scores_table(scores: ByName) -> Table:
    """A row for each propensity."""
    columns = [
        Column("propensity"),
        Column("log θ", True, "correlation, all items"),
        Column("top", True, "the 30 most relevant"),
        Column("chosen", True, "of the events"),
        Column("ECE", True, "calibration error"),
        Column("mass", True, "predicted / true"),
        Column("loss", True, "nats per event above the ground truth"),
        Column("misplaced", True, "share of the weight"),
        Column("ESS", True, "of the events"),
        Column("gap", True, "closed, if choices were known"),
    ]
    return Table("Estimated propensities and the ground truth", columns, [_row(*each) for each in scores.items()])


def _row(name: str, score: Mapping[str, float]) -> list[Cell | str]:
    digits = {"correlation": 2, "top": 2, "taken": 2, "ece": 2, "mass": 2, "log_loss": 1}
    shares = [Cell(percent(score[each]), score[each]) for each in ("misplaced", "ess", "gap")]
    return [name, *(number(score[figure], places) for figure, places in digits.items()), *shares]
