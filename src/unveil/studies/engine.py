"""One engine for every study: resume, locks, workers, progress, results, files and pages.

A study is a frozen pydantic model, whose fields are what its cells depend on, and a few functions: `cells` lists the
work, `run_cell` does one piece anywhere, `rows` turns its record into rows of the long frame (see `results`);
`findings` and `figures`, and what the template draws by itself (see `tables`), are shown where the template says.
`tests/studies/toy.py` is a whole one in 60 lines.
`run(study, folder, Processes(2))` gives an `Answer`; `write(answer, folder, command)` writes every file.
The same cells give the same bytes, but for times.
"""

import csv
import io
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from pydantic import BaseModel, ConfigDict

from unveil.files import alone_in, versions, write_json, write_whole
from unveil.report.page import Block, Page, Section, Table, Text, write_page
from unveil.report.prose import Prose
from unveil.runs.progress import Silent, Watcher, spell
from unveil.runs.workers import Engine, OnProgress
from unveil.studies import tables
from unveil.studies.cells import SECONDS, Store, run_cells
from unveil.studies.results import ALPHA, Results, frame_of, means


@dataclass(frozen=True)
class Cell:
    """A piece of work: the name of its file, its place along the axes, about how long it takes, and what does it."""

    key: str
    at: Mapping[str, Any]
    cost: float = 1.0
    method: str = "run_cell"  # of the study: (cell, context) → what JSON can hold


@dataclass(frozen=True)
class Context:
    """What a cell has beside itself: the folder of the study, and whom to inform of the share that is done."""

    folder: Path
    on_progress: OnProgress = lambda share: None

    def advance(self, done: int, total: int) -> None:
        self.on_progress(done / total)


@dataclass(frozen=True)
class Source:
    """The data of a study, looked at once: their name, what identifies their content, and a description."""

    name: str = ""
    fingerprint: str = ""
    about: str = ""


@dataclass(frozen=True, eq=False)
class Work:
    """A study that is being run; `other` is a folder to copy cells from, `say` informs a person."""

    study: "Study"
    store: Store
    source: Source
    other: Path | None = None
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None
    workers: int = 1

    @property
    def folder(self) -> Path:
        return self.store.folder

    def left(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that are to be done; those that another folder has are copied first."""
        if self.other is not None:
            self.store.copy_from(self.other, {cell.key: self.study.other_keys(cell) for cell in cells})
        return [cell for cell in cells if self.store.result(cell.key) is None]


class Study(BaseModel):
    """A question: what its cells depend on (the fields), its cells, and how their figures are shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str] = "study.md.j2"
    #: Raised when the same fields no longer give the same cells.
    format: ClassVar[int] = 1
    #: Fields that no cell depends on: how many cells there are may change later.
    extent: ClassVar[frozenset[str]] = frozenset({"worlds", "replicates", "severities", "estimators"})
    #: How means, intervals and tests come from the long frame.
    results_type: ClassVar[type[Results]] = Results
    #: Values of fields that older folders do not name.
    defaults: ClassVar[Mapping[str, Any]] = {}

    def open_data(self) -> Source:
        """The data, found and checked before any work is done."""
        return Source()

    def cells(self) -> Iterable[Cell]:
        """All cells, in the order in which arms and conditions are shown."""
        raise NotImplementedError

    def priority(self, cell: Cell) -> Any:
        """What cells are sorted by before they are done: whole replicates first, in one log by log, longest first."""
        log = [str(cell.at.get(name, "")) for name in ("choice", "foresight", "severity")]
        return cell.at.get("world", 0), cell.at.get("replicate", 0), log, -cell.cost

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """Do one cell, wherever that is."""
        raise NotImplementedError

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """The figures of a cell: metric, value, and what there is of measure and unit; the cell's place is added."""
        return record["rows"]  # type: ignore[no-any-return]

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """What the cells are, and the cells, the measured ones last; later stages may use earlier `work.records`."""
        yield "cells", list(self.cells())

    def identity(self, source: Source) -> dict[str, Any]:
        """What the cells depend on: the fields but their extent, and the content of the data."""
        fields = self.model_dump(mode="json", exclude=set(self.extent))
        known = {name: value for name, value in fields.items() if value != self.defaults.get(name, ...)}
        return {**known, "data": source.fingerprint} if source.fingerprint else known

    def other_keys(self, cell: Cell) -> Sequence[str]:
        """The keys that a cell may have in a folder that `--from` copies from."""
        return [cell.key]

    def figures(self, answer: "Answer") -> Mapping[str, Block]:
        """Plots by the names under which the template shows them."""
        return {}

    def findings(self, answer: "Answer") -> Mapping[str, Any]:
        """Figures for results.json and for the template."""
        return {}

    def facts(self, answer: "Answer") -> Mapping[str, Any]:
        """What the template needs beyond the findings, and results.json does not."""
        return {}

    def csv(self, answer: "Answer") -> list[dict[str, Any]] | None:
        """Rows of results.csv in the place of the means of all measures."""
        return None


@dataclass(frozen=True)
class StudyJob:
    """A cell as a job: it is sent to other processes."""

    key: str
    cost: float
    study: Study
    cell: Cell
    folder: Path

    def run(self, on_progress: OnProgress) -> Mapping[str, Any]:
        record: Mapping[str, Any] = getattr(self.study, self.cell.method)(self.cell, Context(self.folder, on_progress))
        return record


@dataclass(frozen=True, eq=False)
class Answer:
    """What came out, and what it was made from."""

    study: Any  # a Study: its subclass knows its own fields
    source: Source
    cells: Sequence[Cell]  # the measured ones
    records: Mapping[str, Mapping[str, Any]]  # of all cells, by key
    seconds: float = 0.0  # of this run
    made: int = 0  # cells made by this run
    folder: Path = Path()

    @cached_property
    def frame(self) -> pl.DataFrame:
        return frame_of(
            {**cell.at, **row} for cell in self.cells for row in self.study.rows(cell, self.records[cell.key])
        )

    @cached_property
    def results(self) -> Results:
        found: Results = self.study.results_type.of(self.frame)
        return found

    @property
    def worker_seconds(self) -> float:
        return float(sum(record[SECONDS] for record in self.records.values()))

    def where(self, **at: Any) -> list[Mapping[str, Any]]:
        """The records of the measured cells at a place, such as severity=1.0, estimator="itps"."""
        return [self.records[cell.key] for cell in self.cells if at.items() <= cell.at.items()]

    def by_arm(self, arms: Iterable[str] | None = None, **at: Any) -> dict[str, Sequence[Mapping[str, Any]]]:
        """The records at a place, of the trained arms or those that are named."""
        return {arm: self.where(estimator=arm, **at) for arm in (self.results.trained if arms is None else arms)}


def run(
    study: Study,
    folder: Path,
    engine: Engine,
    *,
    watch: Watcher | None = None,
    copy_from: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Do what is left to do in the folder, and give everything. A stopped run goes on where it was."""
    begun, source = time.monotonic(), study.open_data()
    identity = {"question": study.name, "format": study.format, "cells": study.identity(source)}
    store = Store(folder, identity, study.defaults)
    if copy_from is not None:
        store.compatible(copy_from)  # an error before the folder is begun
    store.open()
    work, cells, made = Work(study, store, source, copy_from, {}, say, engine.workers), list[Cell](), 0
    with alone_in(folder):
        for what, stage in study.stages(work):
            cells, made = list(stage), len({cell.key for cell in work.left(stage)})
            each = sorted({cell.key: cell for cell in cells}.values(), key=study.priority)
            jobs = [StudyJob(cell.key, cell.cost, study, cell, folder) for cell in each]
            work.records.update(run_cells(jobs, store, engine, watch or Silent(), what=what))
    return Answer(study, source, cells, work.records, time.monotonic() - begun, made, folder)


_FINDINGS, _METHODS = "What the figures say", "How it was made"


@dataclass(frozen=True, eq=False)
class Report:
    """An answer with its figures and words."""

    answer: Answer
    command: str = ""

    @cached_property
    def findings(self) -> Mapping[str, Any]:
        return dict(self.answer.study.findings(self.answer))

    @cached_property
    def parts(self) -> dict[str, Any]:
        return dict(self.answer.study.figures(self.answer))

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
                "draw": tables,
                "spell": spell,
                "alpha": ALPHA,
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
    texts = [[column.title for column in table.columns], *table.texts]
    escaped = [[text.strip().replace("*", "\\*").replace("|", "\\|") for text in row] for row in texts]
    rows = [f"| {' | '.join(row)} |" for row in escaped]
    return [f"## {table.caption}", "", rows[0], "|" + "---|" * len(table.columns), *rows[1:], "", table.foot, ""]
