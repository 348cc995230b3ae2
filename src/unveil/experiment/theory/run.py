"""The whole of the theory in one go: exact on tiny worlds, by drawn logs on a larger one, and what is learnt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from unveil.errors import UnveilError
from unveil.experiment.theory.choices import Chooser, choosers
from unveil.experiment.theory.example import Example, example
from unveil.experiment.theory.finding import Finding
from unveil.experiment.theory.laid_open import LaidOpen
from unveil.experiment.theory.minimisers import SEVERITIES, Minimiser, by_choice, minimisers
from unveil.experiment.theory.monte_carlo import Estimated, MonteCarlo
from unveil.experiment.theory.propositions import EXPOSED, Propositions
from unveil.experiment.theory.scores import Scores
from unveil.experiment.theory.tiny import Tiny
from unveil.files import atomic_folder, refuse_occupied
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES
from unveil.simulation.world import World

#: Beyond this hardly anything is ever shown, and 1/θ leaves single precision.
MOST_SEVERE = 10.0

Told = Callable[[int, int], None]  # parts done, parts in all


@dataclass(frozen=True)
class Settings:
    """What is computed, and with what luck."""

    severity: float = 1.0
    seed: int = 0
    users: int = 200
    items: int = 100
    steps: int = 20
    draws: int = 100  # logs for each choice model
    logs: int = 8  # logs from which minimisers are fitted, for each severity

    def __post_init__(self) -> None:
        if not 0 < self.severity <= MOST_SEVERE:
            expected = f"a number above 0, at most {MOST_SEVERE:g}"
            raise UnveilError("the severity is out of range", found=self.severity, expected=expected)
        if min(self.draws, self.logs) < 2:
            raise UnveilError("an interval needs draws", found=min(self.draws, self.logs), expected="at least 2")

    @property
    def tiny(self) -> Tiny:
        """The tiny worlds."""
        return Tiny(self.severity, self.seed)

    def world(self, severity: float | None = None) -> World:
        """The larger world."""
        spec = WorldSpec(users=self.users, items=self.items, steps=self.steps, severity=severity or self.severity)
        return World.builtin(spec, self.seed)


@dataclass(frozen=True, eq=False)
class Theory:
    """All that was found."""

    settings: Settings
    slots: int  # user-step pairs of the larger world
    findings: list[Finding]
    choosers: list[Chooser]
    estimated: list[Estimated]
    minimisers: list[Minimiser]
    distances: Mapping[str, Mapping[str, float]]  # by choice model and estimator
    example: Example


def compute(settings: Settings, told: Told | None = None) -> Theory:
    """Everything, the same for the same settings."""
    steps = _Steps(told, len(CHOICES) * settings.draws, settings.draws)
    propositions = Propositions(settings.tiny)
    findings = propositions.findings()
    laid = LaidOpen(settings.world())
    drawn = MonteCarlo(laid, Scores.informed(laid, settings.seed), settings.draws, settings.seed)
    estimated = drawn.run(list(CHOICES), steps.one)
    lowest = [
        row
        for severity in SEVERITIES
        for row in steps.after(minimisers(settings.world(severity), EXPOSED, settings.logs, settings.seed))
    ]
    return Theory(
        settings=settings,
        slots=len(laid),
        findings=findings,
        choosers=choosers(propositions.moving),
        estimated=estimated,
        minimisers=lowest,
        distances=by_choice(settings.world(), list(CHOICES)),
        example=example(propositions.moving.laid.world, EXPOSED),
    )


def run_theory(
    settings: Settings, output: Path | None = None, *, overwrite: bool = False, told: Told | None = None
) -> Theory:
    """Compute, and with `output` write index.html, theory.json and theory.csv there."""
    if output is None:
        return compute(settings, told)
    from unveil.experiment.theory.files import write_results
    from unveil.experiment.theory.page import theory_page
    from unveil.report.page import write_page

    refuse_occupied(output, overwrite=overwrite)
    theory = compute(settings, told)
    with atomic_folder(output, overwrite=overwrite) as draft:
        write_results(theory, draft)
        write_page(theory_page(theory), draft / "index.html")
    return theory


class _Steps:
    """How far the work is: a draw is a step, and the minimisers of one severity take about as long as a quarter of

    a choice model's draws.
    """

    def __init__(self, told: Told | None, draws: int, each: int) -> None:
        self.told, self.done, self.part = told, 0, max(1, each // 3)
        self.total = draws + len(SEVERITIES) * self.part

    def one(self) -> None:
        """One draw more."""
        self._add(1)

    def after(self, rows: list[Minimiser]) -> list[Minimiser]:
        """These rows, and the steps they took."""
        self._add(self.part)
        return rows

    def _add(self, steps: int) -> None:
        self.done += steps
        if self.told is not None:
            self.told(self.done, self.total)
