"""What the figures say, in words that are chosen by the figures. Nothing here is true beforehand."""

from collections.abc import Sequence

from unveil.experiment.theory.finding import TOLERANCE, Finding
from unveil.experiment.theory.minimisers import Minimiser
from unveil.experiment.theory.monte_carlo import LEVEL
from unveil.experiment.theory.propositions import ALL, CHANCE_EXPOSED, EXPOSED
from unveil.experiment.theory.run import Theory
from unveil.experiment.theory.text import percentage, relative
from unveil.experiment.theory.variants import CORRECTED, ITPS, NAIVE

SCOPE = (
    "All this speaks of the loss of given scores: what the model says at a slot is held fixed. In training the model "
    "reads its context from the same log, so the contexts are as biased as the targets, and no weight corrects them."
)
SCALE = (
    "Every risk is divided by the number of slots, a constant. The paper divides by |S||I|T; training by the expected "
    "number of events in a batch and the mean weight of the log, which are constants of a run: none of these moves a "
    "minimum. Only the self-normalised loss divides by what the batch itself happens to hold."
)


_TAIL = (
    "An interval supposes that the mean over logs is nearly normal. Where exposure is rare it is not: the largest "
    "weights come up in few logs or none. Draw more, or choose a lower severity."
)


def reading(theory: Theory) -> list[str]:
    """The conclusions, each a paragraph."""
    return [claims(theory.findings), by_users(theory), drawn(theory), minima(theory), *severities(theory)]


def claims(findings: Sequence[Finding]) -> str:
    """How many claims hold, and which do not."""
    fail = [finding for finding in findings if not finding.holds]
    told = [
        f"{each.topic}: that {each.claim} {each.setting} {each.verdict}; the bias is {relative(each.bias)}."
        for each in fail
    ]
    return " ".join([f"{len(findings) - len(fail)} of {len(findings)} claims hold.", *told])


def by_users(theory: Theory) -> str:
    """ITPS, by whether the choice depends on exposure."""
    free = [row for row in theory.choosers if not row.depends_on_exposure]
    bound = [row for row in theory.choosers if row.depends_on_exposure]
    free_worst = max(abs(row.bias[ITPS.label]) for row in free)
    bound_all = [row.bias[ITPS.label] for row in bound]
    first = "ITPS is unbiased" if free_worst <= TOLERANCE else f"ITPS is off by up to {relative(free_worst)}"
    return (
        f"In the tiny world {first} wherever the choice does not depend on exposure; where it does, its bias runs from "
        f"{relative(min(bound_all))} to {relative(max(bound_all))}."
    )


def drawn(theory: Theory) -> str:
    """The larger world, and whether draws and formulas agree there."""
    size, judged = theory.settings, [row for row in theory.estimated if row.agrees is not None]
    wrong = [row for row in judged if not row.agrees]
    told = (
        f"On a world of {size.users:,} users, {size.items:,} items and {theory.slots:,} slots, "
        f"{len(judged) - len(wrong)} of {len(judged)} intervals hold what the formula says; all of them together "
        f"should with probability {LEVEL:.0%}."
    )
    return " ".join([told, *(f"Not so: {row.estimator}, {row.choice}." for row in wrong), *([_TAIL] if wrong else [])])


def minima(theory: Theory) -> str:
    """The bias of a loss is not the bias of its minimum."""
    parts = []
    naive = theory.distances.get(ALL, {}).get(NAIVE.label)
    if naive is not None and naive <= TOLERANCE:
        parts.append(
            "For the user of the proof, who chooses among all items, the naive loss is biased and yet has the ideal's "
            "own minimum at every slot: the log of such a user holds nothing but favourites. Weights only share the "
            "model's attention out differently between slots."
        )
    chance = theory.distances.get(CHANCE_EXPOSED, {})
    bias = _estimated(theory, CHANCE_EXPOSED, ITPS.label)
    if chance and bias is not None:
        parts.append(
            f"For the user who picks by chance among the exposed, the loss of ITPS is off by {relative(bias)}, its "
            f"minimum by {chance[ITPS.label]:.3f} (naive: {chance[NAIVE.label]:.3f})."
        )
    return " ".join(parts)


def severities(theory: Theory) -> list[str]:
    """What becomes of the rational user among the exposed as exposure grows rarer."""
    mild, harsh = (_at(theory, severity) for severity in _ends(theory))
    return [_mass(mild, harsh), _corrected(mild), _one_log(theory)]


def _mass(mild: dict[str, Minimiser], harsh: dict[str, Minimiser]) -> str:
    p, q = mild[ITPS.label].severity, harsh[ITPS.label].severity
    return (
        f"For the user who takes the best of the exposed, 1/θ leaves Π(1 − θ) on every runner-up: the loss of ITPS is "
        f"off by {_bias(mild)} at severity {p:g} and by {_bias(harsh)} at severity {q:g}. At severity {p:g} "
        f"{percentage(mild[ITPS.label].slot_distance)} of the mass that ITPS learns at a slot stands at wrong items "
        f"(naive: {percentage(mild[NAIVE.label].slot_distance)}), at severity {q:g} "
        f"{percentage(harsh[ITPS.label].slot_distance)} (naive: {percentage(harsh[NAIVE.label].slot_distance)}). The "
        f"favourite still has the largest share at {percentage(mild[ITPS.label].slot_first)} and "
        f"{percentage(harsh[ITPS.label].slot_first)} of the slots (naive: {percentage(mild[NAIVE.label].slot_first)} "
        f"and {percentage(harsh[NAIVE.label].slot_first)})."
    )


def _bias(rows: dict[str, Minimiser]) -> str:
    bias = rows[ITPS.label].bias
    return "–" if bias is None else relative(bias)


def _corrected(mild: dict[str, Minimiser]) -> str:
    gap = abs(mild[CORRECTED.label].slot_distance - mild[ITPS.label].slot_distance)
    same = "the very softmax that ITPS would" if gap <= TOLERANCE else "another softmax than ITPS"
    return (
        f"Slot by slot the exposure-corrected softmax, P(i) ∝ θ_i exp f_i, would learn {same}: E[Y_i]/θ_i, normalised. "
        "It gives every event the weight one, so it differs where slots share parameters and where logs are finite."
    )


def _one_log(theory: Theory) -> str:
    told, lost = [], []
    for severity in sorted({row.severity for row in theory.minimisers}):
        rows = _at(theory, severity)
        itps, naive = rows[ITPS.label], rows[NAIVE.label]
        told.append(
            f"at severity {severity:g} {percentage(itps.log_first)}, {_against(itps, naive)} the naive "
            f"{percentage(naive.log_first)} (endless logs: {percentage(itps.user_first)} against "
            f"{percentage(naive.user_first)})"
        )
        lost.append(itps.user_first - itps.log_first > naive.user_first - naive.log_first)
    price = (
        " The naive loss loses less between endless logs and one: uneven weights have their price." if all(lost) else ""
    )
    return (
        "How often a model that knows the user but not the step, fitted to one log by ITPS, puts the favourite first: "
        f"{'; '.join(told)}.{price}"
    )


def _against(one: Minimiser, other: Minimiser) -> str:
    """What two intervals allow to say."""
    if one.low > other.high:
        return "above"
    return "below" if one.high < other.low else "not to be told from"


def _ends(theory: Theory) -> tuple[float, float]:
    found = sorted({row.severity for row in theory.minimisers})
    return found[0], found[-1]


def _at(theory: Theory, severity: float) -> dict[str, Minimiser]:
    return {row.estimator: row for row in theory.minimisers if row.severity == severity}


def _estimated(theory: Theory, choice: str, estimator: str) -> float | None:
    found = [row for row in theory.estimated if (row.choice, row.estimator) == (choice, estimator)]
    return (found[0].mean if found[0].formula is None else found[0].formula) if found else None


def key_bias(theory: Theory, choice: str = EXPOSED) -> float | None:
    """The bias of ITPS on the larger world under a choice model."""
    return _estimated(theory, choice, ITPS.label)
