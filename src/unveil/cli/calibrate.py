"""`unveil calibrate`: what a small test without exposure bias teaches finished runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unveil.cli.options import AsJson, CandidatesFile, Overwrite, Seed, SeenRows, option


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
    from unveil.cli.terminal import bar, print_page_table, print_paragraphs, this_command, write_where_possible
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
        from json import dumps

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
