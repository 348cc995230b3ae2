"""`unveil recommend RUN`: lists for a history, for some users, or for all."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class As(StrEnum):
    """How lists are printed."""

    table = "table"
    csv = "csv"
    jsonl = "jsonl"


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` or `Recommender.save` wrote.")],
    history: Annotated[
        str | None, typer.Option(help="Item ids with commas between them, oldest first.", metavar="A,B,C")
    ] = None,
    users: Annotated[Path | None, typer.Option(help="File with one user id a line; all users where not given.")] = None,
    k: Annotated[int, typer.Option("-k", help="Items in a list.")] = 10,
    keep_seen: Annotated[bool, typer.Option("--keep-seen", help="List items of the history too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .csv, .jsonl or .parquet.")
    ] = None,
    form: Annotated[As, typer.Option("--as", help="How to print, where no file is written.")] = As.table,
) -> None:
    """Recommend: user_id, item_id, score, rank; raw ids in, raw ids out. Unknown ids are reported and passed over.

    The list after a history is nobody's in particular and has no user_id.
    """
    from unveil.cli.results import print_lists, refuse_unknown_kind, write_lists
    from unveil.serving.lists import lists_for

    if output is not None:
        refuse_unknown_kind(output)
    lists = lists_for(run, history=history, users=users, k=k, filter_seen=not keep_seen)
    for kind, unknown in (("items", lists.unknown_items), ("users", lists.unknown_users)):
        if unknown:
            shown = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            typer.echo(f"unknown {kind} passed over ({len(unknown):,}): {shown}", err=True)
    if output is not None:
        write_lists(lists.frame, output)
    else:
        print_lists(lists.frame, form.value)
