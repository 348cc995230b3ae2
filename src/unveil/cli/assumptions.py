"""`unveil reproduce assumptions -o FOLDER`: which estimator survives when its assumptions fail?"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import takes_options
from unveil.cli.study_options import CHOICES, StudyOptions, named_in, numbers_in
from unveil.cli.terminal import command_of, print_answer, until_stopped

if TYPE_CHECKING:
    from unveil.experiment.assumptions.plan import Assumptions

_AXES = "What is varied, one at a time"
#: From the log at its word to the truth.
ESTIMATORS = (
    "naive,ips,itps,itps-shrunk,corrected,corrected-taught,rational,consideration,tempered,ever,ever-rated,ideal"
)


@dataclass(frozen=True)
class AssumptionOptions(StudyOptions):
    """The options of a study at its base point, and the levels of each axis."""

    preset: Annotated[
        str, typer.Option(help="quick (a small backbone, few epochs), converged, tuned, or paper (a network for each).")
    ] = "quick"
    replicates: Annotated[
        int, typer.Option(help="Repeat everything random but the world.", rich_help_panel="How much")
    ] = 3
    estimators: Annotated[
        str, typer.Option(help="Which to train; naive and ideal are the ends of the gap.", rich_help_panel="How much")
    ] = ESTIMATORS
    severity: Annotated[float, typer.Option(help="Exponent p of exposure at the base point.")] = 1.0
    severities: Annotated[str, typer.Option(help="Exponents p; '' leaves them alone.", rich_help_panel=_AXES)] = "1,2,4"
    foresights: Annotated[
        str, typer.Option(help="How far exposure follows relevance; '' leaves it alone.", rich_help_panel=_AXES)
    ] = "0,1,2"
    choices: Annotated[
        str, typer.Option(help=f"How users choose: {CHOICES} '' leaves it alone.", rich_help_panel=_AXES)
    ] = "rational_exposed,categorical_exposed,rational_all"
    propensities: Annotated[
        str,
        typer.Option(help="What estimators are told: true, noisy:SD, popularity, …", rich_help_panel=_AXES),
    ] = "true,noisy:0.5,noisy:1,popularity"

    def assumptions(self) -> "Assumptions":
        """What is asked for, checked."""
        from dataclasses import replace

        from unveil.experiment.assumptions.axes import Point, axes
        from unveil.experiment.assumptions.plan import Assumptions
        from unveil.studies.arms import TRUE_THETA

        study = self.study()
        base = Point(study.choice, study.foresight, self.severity, study.propensity)
        values = {
            "foresight": numbers_in(self.foresights, "--foresights"),
            "propensity": named_in(self.propensities),
            "choice": named_in(self.choices),
            "severity": numbers_in(self.severities, "--severities"),
        }
        return Assumptions(
            replace(study, propensity=TRUE_THETA), base, axes(base, values), self.worlds, self.replicates, self.arms()
        )


@takes_options
def assumptions(*, options: AssumptionOptions) -> None:
    """Which estimator survives when exposure follows relevance, propensities are wrong, choice is by chance?"""
    from unveil.experiment.assumptions.files import write
    from unveil.experiment.assumptions.page import sheets
    from unveil.experiment.assumptions.run import run
    from unveil.experiment.assumptions.words import reading, remarks
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import engine

    plan, output = options.assumptions(), options.output
    workers = engine(options.engine, options.jobs, options.address)
    with until_stopped(output):
        found = run(plan, output, workers, watch=job_watcher(), take_from=options.take_from)
        write(found, output, command_of(sys.argv[1:]))
    print_answer(sheets(found), [*reading(found), remarks(found)], output)
