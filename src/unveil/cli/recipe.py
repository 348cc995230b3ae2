"""The options of `unveil reproduce recipe`: the paper's recipe for real data, where the truth is known."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.study_options import StudyOptions

if TYPE_CHECKING:
    from unveil.experiment.recipe.plan import RecipePlan
    from unveil.experiment.recipe.study import RecipeStudy

#: The exponents that the authors tuned for ml-1m, the plain inverse of popularity, and the true propensities.
ARMS = "naive,ips@popularity+exponent=0.5,itps@popularity+exponent=0.2,ips@popularity,itps@popularity,itps@true,ideal"


@dataclass(frozen=True)
class RecipeOptions(StudyOptions):
    """The options of a study, with the recipe's arms."""

    preset: Annotated[
        str, typer.Option(help="converged (one backbone for all), quick, tuned, or paper (a network for each).")
    ] = "converged"
    estimators: Annotated[
        str, typer.Option(help="Which to train, with commas between; gains are over naive.", rich_help_panel="How much")
    ] = ARMS

    def study(self) -> "RecipeStudy":
        """The same study, judged by popular negatives too."""
        from unveil.experiment.recipe.study import RecipeStudy

        return RecipeStudy(**{**asdict(super().study()), "changes": tuple(self.assignments or ())})

    def plan(self, severities: tuple[float, ...]) -> "RecipePlan":
        """The same plan, with naive to gain over."""
        from unveil.experiment.recipe.plan import RecipePlan

        return RecipePlan(**vars(super().plan(severities)))
