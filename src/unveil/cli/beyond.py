"""`unveil reproduce beyond -o FOLDER`: the share of the gap that estimators beyond the paper's close."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.study_options import StudyOptions, named_in

if TYPE_CHECKING:
    from unveil.experiment.beyond.plan import BeyondPlan

#: All that need no sampling, from the log at its word to the truth.
ESTIMATORS = (
    "naive,ips,itps,itps-shrunk,doubly-robust,corrected,corrected-taught,rational,consideration,tempered,"
    "logit-adjustment,ever,ever-rated,ideal"
)


@dataclass(frozen=True)
class BeyondOptions(StudyOptions):
    """The options of a study, with defaults of its own, and the propensities that are estimated."""

    preset: Annotated[
        str, typer.Option(help="converged (one backbone for all), quick, tuned, or paper (a network for each).")
    ] = "converged"
    worlds: Annotated[
        int, typer.Option(help="Make so many worlds: they are what intervals are over.", rich_help_panel="How much")
    ] = 3
    estimators: Annotated[
        str,
        typer.Option(
            help="Which to train, told --propensity; naive and ideal are the ends of the gap. Those that need a "
            "propensity are trained once more with each of --estimated.",
            rich_help_panel="How much",
        ),
    ] = ESTIMATORS
    estimated: Annotated[
        str,
        typer.Option(
            help="Propensities estimated from the log, each of them one more arm of every estimator that needs one "
            "(corrected: corrected@popularity); '' for none.",
            rich_help_panel="How much",
        ),
    ] = "popularity"

    def arms(self) -> tuple[str, ...]:
        """The estimators, and those that need a propensity once more with each that is estimated and of its kind."""
        from unveil.studies.arms import with_propensity

        names, sources = named_in(self.estimators), named_in(self.estimated)
        told = (with_propensity(name, source) for source in sources for name in names)
        return (*names, *(arm for arm in told if arm is not None))

    def plan(self, severities: tuple[float, ...]) -> "BeyondPlan":
        """The same plan, with a gap to close."""
        from unveil.experiment.beyond.plan import BeyondPlan

        return BeyondPlan(**vars(super().plan(severities)))
