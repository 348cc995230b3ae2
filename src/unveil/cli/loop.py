"""`unveil demo|theory|loop`, `unveil reproduce rq5`: the method on built-in worlds, the theory, feedback loops."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from unveil.cli.options import Assignments, Jobs, LogOptions, Overwrite, Seed, WorkerOptions, World, named_in, option
from unveil.cli.terminal import print_report, run_study
from unveil.files import check_resumed


def demo(
    output: Annotated[Path, option("Folder to write: page, results, log, world.", "--output", "-o")] = Path("demo"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    users: Annotated[int, option("Users of the world.", min=1)] = 1000,
    epochs: Annotated[int, option("Epochs of each training.", min=1)] = 80,
    replicates: Annotated[int, option("Repetitions with other worlds; about a minute each.", min=1)] = 1,
    jobs: Jobs = None,
) -> None:
    """Show on a built-in world with known ground truth what a log hides, and what several losses learn from it.

    A run that was stopped continues with the same command; --overwrite begins again.
    """
    from unveil.runs.workers import engine
    from unveil.studies.demo import Demo

    study = Demo(spec=replace(Demo().spec, users=users), epochs=epochs, replicates=replicates, seed=seed)
    run_study(study, output, engine("processes", jobs), overwrite=overwrite)


def theory(
    severity: Annotated[float, option("Exponent p of exposure: θ = ô^p, above 0, at most 10.")] = 1.0,
    seed: Annotated[int, option("Seed of the worlds, the scores and the draws.", min=0, max=2**62)] = 0,
    draws: Annotated[int, option("Logs drawn for each choice model.", min=2)] = 100,
    output: Annotated[Path | None, option("Folder to write: page and results.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check the paper's propositions: exactly on tiny worlds, by drawn logs on a larger one, in about half a minute."""
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import Inline
    from unveil.studies.engine import Report, run
    from unveil.studies.theory import Theory

    study = Theory(severity=severity, seed=seed, draws=draws)
    if output is not None:
        run_study(study, output, Inline(), overwrite=overwrite)
        return
    with TemporaryDirectory() as place:
        print_report(Report(run(study, Path(place), Inline(), watch=job_watcher())))


@dataclass(frozen=True, kw_only=True)
class LoopOptions(WorkerOptions):
    """What every loop has."""

    output: Annotated[Path, option("Folder of the loop; new, or one to --resume.", "--output", "-o")]
    estimators: Annotated[
        str, option("Models, with commas between; also popularity and random.", "--estimators", "-e")
    ] = "naive,popularity,random"
    rounds: Annotated[int, option("Rounds of feedback after the first training.", min=1)] = 10
    replicates: Annotated[int, option("Repetitions of everything random.", min=1)] = 1
    retrain: Annotated[str, option("scratch, warm, warm:EPOCHS or every:ROUNDS.")] = "scratch"
    preset: Annotated[str, option("quick, paper or converged; with a fixed number of epochs.")] = "quick"
    assignments: Assignments = None
    seed: Seed = 0
    resume: Annotated[
        bool, option("Continue a loop that was stopped, or start it; also with more rounds.", "--resume")
    ] = False

    def settings(self) -> dict[str, Any]:
        same = {name: getattr(self, name) for name in ("rounds", "replicates", "retrain", "preset", "seed")}
        return {**same, "estimators": named_in(self.estimators), "changes": tuple(self.assignments or ())}


@dataclass(frozen=True, kw_only=True)
class RQ5Options(LoopOptions):
    """With the paper's defaults."""

    estimators: Annotated[str, option("Models, with commas between.", "--estimators", "-e")] = "naive,ips,itps"
    replicates: Annotated[int, option("Repetitions of everything random; the paper: 5.", min=1)] = 5
    preset: Annotated[str, option("paper (the authors' settings), converged or quick.")] = "paper"


def loop(
    *,
    options: LogOptions,
    how: LoopOptions,
    k: Annotated[int, option("Items recommended to every user in a round.", "-k", min=1)] = 10,
    response: Annotated[
        str, option("uniform, position, geometric, popular, logit; in a world also relevant, logit-relevance.")
    ] = "uniform",
    world: World = None,
    keep_logs: Annotated[bool, option("Also write the last log of each model.", "--keep-logs")] = False,
) -> None:
    """Simulate a feedback loop: recommend, let users respond, retrain on their choices; and measure what happens.

    --set NAME=VALUE is for all models, itps:NAME=VALUE for one, response.NAME=VALUE for the users' response.
    """
    own = {"world": world, "keep_logs": keep_logs, "k": k, "response": response}
    _run({"log": options.source(), **own}, how)


def rq5(
    *,
    options: LogOptions,
    how: RQ5Options,
    tuned_for: Annotated[
        str | None, option("Authors' settings: ml-1m, ml-20m or beauty; by default by the log's name or size.")
    ] = None,
) -> None:
    """Does ITPS keep recommendations novel along a feedback loop? Users choose any of their ten items at random.

    --set NAME=VALUE is for all models, ips:NAME=VALUE for one.
    """
    _run({"log": options.source(), "tuned_for": tuned_for or data_set_of(options)}, how)


def data_set_of(options: LogOptions) -> str:
    """The data set of the paper that the log is by its name or by its size; else the first one."""
    from unveil.studies import shipped
    from unveil.studies.paper import recognised, size_of

    if options.log in shipped("paper")["real"]["data"]:
        return options.log
    return recognised(*size_of(options.source().load())) or "ml-1m"


def _run(own: dict[str, Any], how: LoopOptions) -> None:
    """Run a loop with these settings of its own; only a folder that is to be resumed may be there already."""
    from unveil.studies.cells import ABOUT
    from unveil.studies.loop import LoopStudy

    study = LoopStudy(**own, **how.settings())
    check_resumed(how.output, (how.output / ABOUT).exists(), resume=how.resume)
    hint = "; the rounds that are over are kept. Go on with the same command and --resume."
    run_study(study, how.output, how.workers(), steps=study.rounds + 1, hint=hint)
