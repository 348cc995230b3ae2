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
from unveil.propensity.build import build, refuse_options
from unveil.propensity.calibration import BINS, Calibration, equal_mass
from unveil.propensity.factors import sigmoid
from unveil.propensity.weights import diagnose, inverse
from unveil.report import charts
from unveil.report.names import share
from unveil.report.page import (
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Page,
    Section,
    Table,
    Text,
    number,
    write_page,
)
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
        refuse_options(name, options[name])
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

#: Correlations below this are hardly better than none.
_HARDLY = 0.3
#: A share of the gap below this is none.
_SOME = 0.01
WHAT = (
    "Correlations are of log θ̂ with log θ: what a corrected softmax adds, and what a weight is but for its sign. "
    "Calibration error is the share of all exposure that is promised elsewhere than where it is; mass is what is "
    "promised in all over what is true. Popularity sums to one over the items and exposure does not: its mass says so, "
    "and only estimators that do not mind the scale of θ (ips and itps, corrected, tempered) may use it."
)
CLOSED = (
    "“Gap” needs no training: were the probability of every choice known exactly (of a user who takes the best of what "
    "is seen), and were it divided by θ̂, how relevant would the ten items ranked first be? 0% is no correction at all, "
    "100% the true one, below 0% worse than none. A learner that knows choices exactly is hurt by every error of θ̂; a "
    "network knows them less well, and smooths: its figures are those of `unveil reproduce beyond --estimated …`."
)


def reading(about: Mapping[str, Any]) -> list[str]:
    """Which is nearest, what popularity does, and what the figures are."""
    return [_best(about), _weights(about["scores"]), _popularity(about), CLOSED, WHAT]


def estimates(scores: ByName) -> ByName:
    """Those that do not come from the truth, noisy or not; all where there are no others."""
    return {name: each for name, each in scores.items() if PROPENSITIES[name].source != "truth"} or scores


def _best(about: Mapping[str, Any]) -> str:
    scores = about["scores"]
    estimated = estimates(scores)
    nearest = max(estimated, key=lambda name: estimated[name]["top"])
    most = max(estimated, key=lambda name: estimated[name]["gap"])
    found = estimated[nearest]["top"]
    hardly = " No estimate is near the truth here." if found < _HARDLY else ""
    gap = estimated[most]["gap"]
    closes = (
        f"{most} gives most of what the truth would give, {share(gap)}"
        if gap >= _SOME
        else "none of them gives anything of what the truth would give"
    )
    return (
        f"Among the 30 most relevant items of a slot, {nearest} is nearest to the true exposure: its log correlates "
        f"{found:.2f} with it.{hardly} To a perfect learner {closes}. Figures are over "
        f"{about['slots']:,} training events drawn at random and {about['items']:,} items, at severity "
        f"{about['severity']:g}."
    )


def _weights(scores: ByName) -> str:
    estimated = estimates(scores)
    least = min(estimated, key=lambda name: estimated[name]["misplaced"])
    known = f"; the true mean over the steps {share(scores[REFERENCE]['misplaced'])}" if REFERENCE in scores else ""
    return (
        f"As a weight (1 / θ̂, clipped at {CLIP:g}), {least} puts the least of it in the wrong place: "
        f"{share(estimated[least]['misplaced'])}{known}."
    )


def _popularity(about: Mapping[str, Any]) -> str:
    found = {name: each for name, each in about["scores"].items() if name.startswith("popularity")}
    if not found:
        return "Popularity was not asked for."
    told = ", ".join(f"{name} {each['top']:.2f} and {share(each['gap'])}" for name, each in found.items())
    return (
        f"Popularity, which is exposure times relevance, beside it (correlation, and gap): {told}. Where the "
        "second is below zero, to correct by popularity is worse than not to correct."
    )


TITLE = "How near is each estimate to the true exposure?"
#: Curves in one picture.
_DRAWN = 4


def page(about: Mapping[str, Any]) -> Page:
    """The whole page, from what the folder says of itself."""
    first, *rest = reading(about)
    scores = about["scores"]
    estimated = estimates(scores)
    best = max(estimated, key=lambda name: estimated[name]["top"])
    return Page(
        TITLE,
        first,
        [
            Section("Beside the truth", [table(scores)]),
            Section("What the figures say", [Text(each) for each in rest]),
            Section("Is what is promised kept?", [Figures([_curve(about["curves"], scores)])]),
            Section("How it was made", [_assumed(about["assumes"]), Code(about["command"])]),
        ],
        [
            KeyFigure(f"{scores[best]['top']:.2f}", f"correlation among the 30 most relevant, {best}"),
            KeyFigure(
                share(max(each["gap"] for each in estimated.values())), "of the gap closed at most, were choices known"
            ),
            KeyFigure(number(about["naive"], 2).text, "mean relevance logit of the ten first without any correction"),
        ],
    )


def table(scores: Mapping[str, Mapping[str, float]]) -> Table:
    """A row for each propensity."""
    columns = [
        Column("propensity"),
        Column("log θ", True, "correlation, all items"),
        Column("top", True, "the 30 most relevant"),
        Column("taken", True, "of the events"),
        Column("ECE", True, "calibration error"),
        Column("mass", True, "promised / true"),
        Column("loss", True, "nats a slot above the truth"),
        Column("moved", True, "weight that stands elsewhere"),
        Column("ESS", True, "of the events"),
        Column("gap", True, "closed, were choices known"),
    ]
    return Table("Estimated propensities and the truth", columns, [_row(*each) for each in scores.items()])


def _row(name: str, score: Mapping[str, float]) -> list[Cell | str]:
    correlations = [number(score[each], 2) for each in ("correlation", "top", "taken")]
    scale = [number(score["ece"], 2), number(score["mass"], 2), number(score["log_loss"], 1)]
    weights = [Cell(share(score[each]), score[each]) for each in ("misplaced", "ess", "gap")]
    return [name, *correlations, *scale, *weights]


def _curve(curves: Mapping[str, Mapping[str, Any]], scores: Mapping[str, Mapping[str, float]]) -> Figure:
    best = sorted(scores, key=lambda name: -scores[name]["top"])[:_DRAWN]
    told = "; ".join(
        f"{name}: {', '.join(f'{p:.2g} → {o:.2g}' for p, o in zip(each['predicted'], each['observed'], strict=True))}"
        for name, each in ((name, curves[name]) for name in best)
    )
    return Figure(
        "Calibration, by the truth",
        charts.reliability(
            {name: (curves[name]["predicted"], curves[name]["observed"]) for name in best},
            ("estimated θ", "true θ, on average"),
            "exposed",
            "calibration",
        ),
        f"Mean of the true exposure against what is estimated, bin by bin. {told}.",
        "Bins of equal estimated mass; the best by correlation among the 30 most relevant items. On the dashed line "
        "what is promised is kept.",
    )


def _assumed(assumes: Mapping[str, str]) -> Table:
    columns = [Column("propensity"), Column("assumes")]
    return Table("What each estimate assumes", columns, [[name, told] for name, told in assumes.items()])


SCORES = "scores.json"


def write(
    found: Scores, log: Interactions, folder: Path, command: Sequence[str], *, overwrite: bool = False
) -> dict[str, Any]:
    """The folder, whole or not at all; what it says of itself is given back."""
    scores = {name: asdict(each) for name, each in found.scores.items()}
    curves = {name: each.pop("curve") for name, each in scores.items()}
    about = {
        "command": shlex.join(command),
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "events": len(log)},
        "slots": found.slots,
        "items": found.items,
        "severity": found.severity,
        "naive": found.naive,
        "scores": scores,
        "curves": curves,
        "assumes": {name: assumed(name) for name in scores},
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        write_json(draft / SCORES, about)
        write_page(page(about), draft / "index.html")
    return about


def assumed(name: str) -> str:
    """What a propensity takes for granted."""
    chosen = PROPENSITIES[name]
    known = "nothing: it is the truth" if chosen.source == "truth" else "that popularity is exposure"
    return str(getattr(chosen, "assumes", known))
