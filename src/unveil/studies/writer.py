"""An answer as files and on the terminal. The same cells give the same bytes, but for times."""

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from unveil.files import versions, write_json, write_whole
from unveil.report.page import Page, Section, Table, Text, write_page
from unveil.report.prose import Prose
from unveil.runs.progress import spell
from unveil.studies.engine import Answer, Source, Study
from unveil.studies.results import means

_FINDINGS, _METHODS = "What the figures say", "How it was made"


@dataclass(frozen=True, eq=False)
class Report:
    """An answer with its tables, figures and words."""

    answer: Answer
    command: str = ""

    @cached_property
    def findings(self) -> Mapping[str, Any]:
        return dict(self.answer.study.findings(self.answer))

    @cached_property
    def parts(self) -> dict[str, Any]:
        return {**self.answer.study.tables(self.answer), **self.answer.study.figures(self.answer)}

    @cached_property
    def prose(self) -> Prose:
        """The templates of the study's class and of those it is made from, filled."""
        answer, kinds = self.answer, type(self.answer.study).__mro__
        chain = [kind.__dict__["template"] for kind in kinds if "template" in kind.__dict__]
        return Prose(
            list(dict.fromkeys([*chain, Study.template])),
            {
                "study": answer.study,
                "answer": answer,
                "results": answer.results,
                "command": self.command,
                "parts": self.parts,
                "spell": spell,
                **self.findings,
                **answer.study.facts(answer),
            },
        )

    @property
    def tables(self) -> list[Table]:
        """The tables for the terminal and README.md: those of the template's block `tables`."""
        blocks = [block for section in self.prose.sections("tables", self.parts) for block in section.blocks]
        return [block for block in blocks if isinstance(block, Table)]

    @cached_property
    def paragraphs(self) -> list[str]:
        return [*self.prose.paragraphs("findings"), *self.prose.paragraphs("caution")]

    def page(self) -> Page:
        lede, *rest = self.prose.paragraphs("findings")
        caution = [block for part in self.prose.sections("caution", self.parts) for block in part.blocks]
        sections = [
            Section(_FINDINGS, [*map(Text, rest), *caution]),
            *self.prose.sections("page", self.parts),
            *self.prose.sections("methods", self.parts, _METHODS),
        ]
        used = [part for part in sections if part.blocks]
        return Page(self.answer.study.title, lede, used, self.prose.key_figures("keys"))

    def readme(self) -> str:
        study = self.answer.study
        lines = [f"# {study.name.upper()}: {study.title}" if study.name.startswith("rq") else f"# {study.title}", ""]
        lines += [line for paragraph in self.paragraphs for line in (paragraph, "")]
        lines += [line for table in self.tables for line in markdown(table)]
        lines += [f"## {_METHODS}", "", f"    {self.command}", ""]
        return "\n".join([*lines, *(line for text in self.prose.paragraphs("made") for line in (text, ""))])

    def results(self) -> dict[str, Any]:
        """All that was found. Nothing in it depends on the clock."""
        answer, study = self.answer, self.answer.study
        fields = study.model_dump(mode="json")
        return {
            "question": study.name,
            "title": study.title,
            "command": self.command,
            **{name: value for name, value in fields.items() if name in study.extent},
            "data": {"name": answer.source.name, "fingerprint": answer.source.fingerprint},
            "study": {name: value for name, value in fields.items() if name not in study.extent},
            "units": answer.results.units,
            "interval": "95%, Student's t over the units",
            **self.findings,
            "rows": self.rows,
        }

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        own = self.answer.study.csv(self.answer)
        return list(means(self.answer.results)) if own is None else own

    def about(self) -> dict[str, Any]:
        answer = self.answer
        return {
            "command": self.command,
            "versions": versions(),
            "data": {each.name: getattr(answer.source, each.name) for each in fields(Source)},
            "seconds": round(answer.seconds, 1),
            "cells_made": answer.made,
            "cells": len(answer.cells),
            "worker_seconds": round(answer.worker_seconds, 1),
        }


def write(answer: Answer, folder: Path, command: Sequence[str]) -> Report:
    """Every file of a study."""
    report = Report(answer, shlex.join(command))
    frame = io.BytesIO()
    answer.frame.write_parquet(frame)
    write_whole(folder / "results.parquet", frame.getvalue())
    write_whole(folder / "results.csv", as_csv(report.rows))
    write_page(report.page(), folder / "index.html")
    write_whole(folder / "README.md", report.readme())
    write_json(folder / "about.json", report.about())
    write_json(folder / "results.json", report.results())
    return report


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under the names of their fields."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def markdown(table: Table) -> list[str]:
    """A table under its caption."""
    texts = [[column.title for column in table.columns], *_text(table)]
    escaped = [[text.strip().replace("*", "\\*").replace("|", "\\|") for text in row] for row in texts]
    rows = [f"| {' | '.join(row)} |" for row in escaped]
    return [f"## {table.caption}", "", rows[0], "|" + "---|" * len(table.columns), *rows[1:], "", table.foot, ""]


def _text(table: Table) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]


def print_report(report: Report, folder: Path | None = None) -> None:
    """Tables, then what they say, then where the page is. What is not a terminal is as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(highlight=False)
    wide = console if console.is_terminal else Console(width=160, highlight=False)  # in a file nothing is cut off
    for table in report.tables:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in table.columns:
            grid.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
        for row in _text(table):
            grid.add_row(*row)
        console.print(table.caption)
        wide.print(grid)
        console.print(f"{table.foot}\n")
    for paragraph in report.paragraphs:
        console.print(f"{paragraph}\n")
    if folder is not None:
        console.print(f"open {folder / 'index.html'}", soft_wrap=True)
