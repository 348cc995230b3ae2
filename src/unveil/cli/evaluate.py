"""`unveil evaluate|compare|report|calibrate`: finished runs, their metrics and tests; what a small test teaches."""

from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from unveil.cli.options import AsJson, CandidatesFile, LabelledFile, Overwrite, Seed, SeenRows, TitleIds, Titles, option
from unveil.cli.results import print_comparison, print_evaluation
from unveil.cli.terminal import bar, print_page_table, print_paragraphs, this_command, write_where_possible
from unveil.errors import UnveilError
from unveil.files import atomic_folder, check_free, check_new_file, write_whole


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` wrote.")],
    json: AsJson = False,
    page: Annotated[bool, option("Write the run's page, index.html, again.", "--page/--no-page")] = True,
    test: LabelledFile = None,
    candidates: CandidatesFile = None,
    seen: SeenRows = "error",
) -> None:
    """Evaluate a run again: full ranking, and ranking among uniform and popularity-sampled negatives.

    With --test, evaluate it on labels from elsewhere instead (everything seen, or shown at random); nothing is written.
    """
    from unveil.runs.labelled import evaluate_labelled
    from unveil.runs.report_page import write_run_page
    from unveil.runs.run_folder import read_runs
    from unveil.runs.train import evaluate as evaluated

    _check_test(test, candidates, seen)
    evaluation = evaluated(run) if test is None else evaluate_labelled(run, test, candidates=candidates, seen=seen)
    if json:
        typer.echo(evaluation.summary.write_json())
    else:
        print_evaluation(evaluation)
    if page and test is None:
        write_where_possible(lambda: write_run_page(read_runs([run])[0], this_command()), aside=json)


def _check_test(test: str | None, candidates: Path | None, seen: SeenRows) -> None:
    if test is None and (candidates is not None or seen != "error"):
        raise UnveilError("--candidates and --seen are of a labelled test", hint="Name it with --test.")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[Path | None, option("Page (.html) and a CSV of all tests; or .csv.", "--output", "-o")] = None,
    alpha: Annotated[float, option("Level of significance.", min=0, max=1)] = 0.05,
    overwrite: Overwrite = False,
    test: LabelledFile = None,
    candidates: CandidatesFile = None,
    seen: SeenRows = "error",
) -> None:
    """Compare runs on the same cases: means, and paired tests of the differences, Holm-corrected.

    With --test, on labels from elsewhere instead of the held-out interactions.
    """
    from unveil.evaluation.result import Evaluation
    from unveil.evaluation.result import compare as compared
    from unveil.runs.labelled import evaluate_labelled
    from unveil.runs.report import ComparedRuns
    from unveil.runs.report_page import targets_caution, write_comparison
    from unveil.runs.run_folder import short_names

    _check_test(test, candidates, seen)
    if output is not None:  # before any work is done
        _check_output(output, overwrite=overwrite)
    how: Any = {"candidates": candidates, "seen": seen}
    read = (Evaluation.read(run) if test is None else evaluate_labelled(run, test, **how) for run in runs)
    evaluations = dict(zip(short_names(runs), read, strict=True))
    comparison = compared(evaluations, alpha=alpha)
    if output is not None and output.suffix == ".csv":
        write_whole(output, comparison.tests.write_csv())
    elif output is not None:
        write_comparison(ComparedRuns(evaluations, comparison), output, this_command())
    print_comparison(comparison)
    if test is None:
        typer.echo(targets_caution())
    if output is not None and output.suffix != ".csv":
        typer.echo(f"open {output}")


def _check_output(output: Path, *, overwrite: bool) -> None:
    from unveil.report.svg import check_page_path

    if output.suffix == ".csv":
        check_new_file(output, overwrite=overwrite)
    elif output.suffix.lower() in (".html", ".htm"):
        check_page_path(output, [output.with_suffix(".csv")], what="the comparison", overwrite=overwrite)
    else:
        found = output.suffix or "no ending"
        raise UnveilError("unknown kind of file", where=output, found=found, expected=".html or .csv")


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, one or more.")],
    output: Annotated[Path, option("Folder to write: index.html, results.json, …", "--output", "-o")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    users: Annotated[str | None, option("Users whose lists are shown; three by default.", metavar="ID,ID")] = None,
    dial: Annotated[bool, option("Measure novelty against accuracy.", "--dial/--no-dial")] = True,
    alpha: Annotated[float, option("Level of significance.", min=0, max=1)] = 0.05,
    overwrite: Overwrite = False,
    test: LabelledFile = None,
    candidates: CandidatesFile = None,
    seen: SeenRows = "error",
) -> None:
    """Compare runs on one page: metrics with intervals, tests, calibration, novelty, training, recommendations.

    The runs must have been trained on the same log and evaluated on the same cases and negatives. With --test, labels
    from elsewhere come first, before the held-out interactions.
    """
    from unveil.runs.report import Report, ReportOptions
    from unveil.runs.report_page import findings, write_report
    from unveil.runs.run_folder import read_runs

    _check_test(test, candidates, seen)
    check_free(output, overwrite=overwrite, inputs=runs)
    named = [user.strip() for user in (users or "").split(",") if user.strip()]
    options = ReportOptions(titles, title_ids, named, dial, alpha, test, candidates, seen)
    with bar("evaluating the models") as progress:
        found = Report(read_runs(runs), options, progress)
    with atomic_folder(output, overwrite=overwrite) as draft:
        write_report(found, draft, this_command())
    print_paragraphs(*findings(found))
    typer.echo(f"open {output / 'index.html'}")


def calibrate(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote; the first is to be beaten.")],
    slice: Annotated[
        str, option("Slice: user_id, item_id and, if known, label 0 or 1; items seen by all, or shown at random.")
    ],
    candidates: CandidatesFile = None,
    seen: SeenRows = "error",
    metric: Annotated[str, option("What is to be gained: NDCG@k, Recall@k, MAP@k or AUC.")] = "NDCG@10",
    log: Annotated[
        str | None,
        option("Log with impressions: items shown to the same users are similar. By default that of the first run."),
    ] = None,
    draws: Annotated[int, option("Smaller slices of each size, to measure their gain; 0: none.", min=0)] = 5,
    output: Annotated[Path | None, option("Page (.html) with the curve of gain.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, option("Measure, and write nothing.", "--dry-run")] = False,
    json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """Learn from a small slice without exposure bias which run to use, and how much popularity or appeal to add.

    The gain is measured on users that were not learnt from. What is not significantly better is not recommended, and
    nothing is written. A recommended calibration goes into the run folder; `recommend`, `serve` and `export` apply it.
    """
    from unveil.report.svg import check_page_path
    from unveil.runs.labelled import calibrate_runs

    if output is not None:
        check_page_path(output, what="the curve", overwrite=overwrite)
    how: Any = {"candidates": candidates, "seen": seen, "metric": metric, "log": log}
    with bar("calibrating") as progress:
        found = calibrate_runs(runs, slice, **how, draws=draws, seed=seed, progress=progress)
    if found.skipped:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in found.skipped.items())
        typer.echo(f"{slice}: rows skipped: {skipped}", err=True)
    if json:
        typer.echo(dumps(found.as_json(), indent=1))
    else:
        prose = found.prose()
        print_page_table(prose.table("candidates"), prose.paragraphs("measured"))
        if found.curve:
            about = "On the users outside slices of that size; means over draws; harmed: significantly worse there."
            print_page_table(prose.table("curve"), [about])
        print_paragraphs(*prose.paragraphs("verdict"))
    if found.found.is_better and not dry_run:
        typer.echo(f"wrote {found.write()}", err=json)
    if output is not None:
        write_where_possible(lambda: found.write_page(output, this_command()), aside=json)
