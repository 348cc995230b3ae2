"""The options of every question on semi-synthetic data, written once."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import Address, EngineOption, Jobs
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.experiment.reproduce.plan import Plan
    from unveil.experiment.reproduce.study import Study

_SIZE = "How much"
_WORLD = "The world and its log"
_TRAINING = "Training and judging"

#: What the ways to fit a world are.
FITS = (
    "How worlds are fitted: posterior (a draw that keeps what is personal, and so what is not sure), regularised (the "
    "one that predicts best, which is smoother) or paper (as the authors did: no biases, no penalty)."
)
#: What the ways to choose are.
CHOICES = (
    "rational_exposed (the best of what they see; the paper's), rational_all (the best of all there is, seen or not), "
    "categorical_exposed (by chance among what they see, likelier what they like) or categorical_all."
)


@dataclass(frozen=True)
class StudyOptions:
    """Where results go, how much is done, and what a study is made of."""

    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run: new, or one to go on with.")]
    preset: Annotated[
        str,
        typer.Option(
            help="paper (the authors' settings), tuned (our own search), converged (one backbone for all) or quick."
        ),
    ] = "paper"
    replicates: Annotated[int, typer.Option(help="Repeat everything random but the world.", rich_help_panel=_SIZE)] = 5
    worlds: Annotated[
        int, typer.Option(help="Make so many worlds, to count their variance as well.", rich_help_panel=_SIZE)
    ] = 1
    estimators: Annotated[
        str,
        typer.Option(
            help="Which to train, with commas between; itps@popularity+clip=5% has its own propensity and options.",
            rich_help_panel=_SIZE,
        ),
    ] = "naive,ips,itps,ideal"
    jobs: Jobs = None
    engine: EngineOption = "processes"
    address: Address = None
    take_from: Annotated[
        Path | None,
        typer.Option("--from", help="Take over cells from another question's folder.", rich_help_panel=_SIZE),
    ] = None
    data: Annotated[
        str,
        typer.Option(
            help="A log with ratings (a file or a fetched data set), 'builtin', or the folder of a world.",
            rich_help_panel=_WORLD,
        ),
    ] = "ml-100k"
    steps: Annotated[int, typer.Option(help="T: the last so many ratings of each user.", rich_help_panel=_WORLD)] = 100
    fit: Annotated[
        str,
        typer.Option(help=FITS, rich_help_panel=_WORLD),
    ] = "posterior"
    choice: Annotated[
        str,
        typer.Option(
            help=f"How users choose: {CHOICES}",
            rich_help_panel=_WORLD,
        ),
    ] = "rational_exposed"
    catalogue: Annotated[
        str,
        typer.Option(
            help="Targets and negatives among the items that the drawn log shows (observed), or all (whole).",
            rich_help_panel=_WORLD,
        ),
    ] = "observed"
    propensity: Annotated[
        str,
        typer.Option(
            help="What the estimators are given: true, noisy:SD, estimated, or a propensity by name.",
            rich_help_panel=_TRAINING,
        ),
    ] = "true"
    clip: Annotated[
        float | None,
        typer.Option(help="Clip θ from below; by default as the preset says.", rich_help_panel=_TRAINING),
    ] = None
    negatives: Annotated[
        int, typer.Option(help="Negatives drawn uniformly for each case.", rich_help_panel=_TRAINING)
    ] = 100
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of all trainings, or of one (ips:NAME=VALUE).",
            rich_help_panel=_TRAINING,
        ),
    ] = None
    foresight: Annotated[
        float,
        typer.Option(
            help="How far exposure follows relevance, in logits a standard deviation; 0: not at all.",
            rich_help_panel=_WORLD,
        ),
    ] = 0.0
    epoch_by: Annotated[
        str,
        typer.Option(
            help="What decides which epoch is kept: truth (the paper's), or taken, as on a real log.",
            rich_help_panel=_TRAINING,
        ),
    ] = "truth"
    stars: Annotated[
        bool,
        typer.Option(
            "--stars", help="Round the ratings of drawn logs to 1 … 5, for arms that use them.", rich_help_panel=_WORLD
        ),
    ] = False
    impressions: Annotated[
        float,
        typer.Option(
            help="Share of what is shown and left that drawn logs record, for arms that use it (corrected@recorded).",
            rich_help_panel=_WORLD,
        ),
    ] = 0.1
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0

    def plan(self, severities: tuple[float, ...]) -> "Plan":
        """What is asked for, checked; each severity once, in order."""
        from unveil.experiment.reproduce.plan import Plan

        return Plan(self.study(), tuple(sorted(set(severities))), self.worlds, self.replicates, self.arms())

    def study(self) -> "Study":
        """All that cells depend on but their place."""
        from unveil.experiment.reproduce.study import Study

        return Study(
            data=self.data,
            preset=self.preset,
            steps=self.steps,
            fit=self.fit,
            choice=self.choice,
            catalogue=self.catalogue,
            propensity=self.propensity,
            clip=self.clip,
            negatives=self.negatives,
            seed=self.seed,
            changes=tuple(self.assignments or ()),
            foresight=self.foresight,
            epoch_by=self.epoch_by,
            stars=self.stars,
            impressions=self.impressions,
        )

    def arms(self) -> tuple[str, ...]:
        """The estimators that were named."""
        return named_in(self.estimators)


def named_in(text: str) -> tuple[str, ...]:
    """Names with commas between, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def numbers_in(text: str, option: str) -> tuple[float, ...]:
    """Numbers with commas between, as they were given to an option, each once."""
    try:
        return tuple(dict.fromkeys(map(float, named_in(text))))
    except ValueError:
        raise UnveilError("not numbers", where=option, found=text, expected="numbers with commas between") from None
