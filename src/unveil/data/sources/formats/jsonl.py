"""JSON lines: one object a line. Amazon's review files of 2014, 2018 and 2023 are of this kind."""

import json
import re
from itertools import islice

import polars as pl

from unveil.data.sources.columns import assigned
from unveil.data.sources.content import Content
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import Likeness, register
from unveil.data.sources.table import Table
from unveil.errors import UnveilError


class JsonLines:
    """Columns are the keys of the objects, wherever in the file they first occur."""

    name = "jsonl"
    summary = "one JSON object a line (also Amazon review files)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """The first line opens an object, or a list of objects, which `read` refuses."""
        opens = content.head[0].lstrip().startswith("{") or _is_list(content)
        return Likeness.CERTAIN if opens else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The columns that are needed, as text."""
        _refuse_list(content)
        keys = _keys(content)
        places = assigned(keys, options.columns, content.path)
        names = {role: keys[place] for role, place in places.items()}
        _refuse_nested(content, names)
        try:
            frame = pl.read_ndjson(content.for_polars(), schema=dict.fromkeys(names.values(), pl.String))
        except pl.exceptions.PolarsError as error:
            raise _explained(content, error) from None
        frame = frame.select(**{role: pl.col(name) for role, name in names.items()})
        return Table(content.path, frame, names, content.line_of)


def _is_list(content: Content) -> bool:
    return re.match(r"\s*\[\s*[{\[]", content.text_start) is not None


def _refuse_list(content: Content) -> None:
    if _is_list(content):
        raise UnveilError(
            "one JSON list, not JSON lines",
            where=content.path,
            expected="one object a line",
            hint=f"Take it apart: jq -c '.[]' {content.path.name} > log.jsonl",
        )


def _keys(content: Content) -> list[str]:
    try:
        return list(pl.scan_ndjson(content.for_polars(), infer_schema_length=None).collect_schema())
    except pl.exceptions.PolarsError as error:
        raise _explained(content, error) from None


def _refuse_nested(content: Content, names: dict[str, str]) -> None:
    """Among the first lines: a list or an object where a plain value should be."""
    for row, line in enumerate(islice(content.head, 100)):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for name in names.values():
            if isinstance(entry, dict) and isinstance(entry.get(name), list | dict):
                where = f"{content.path}, row {content.line_of(row)}, column {name}"
                raise UnveilError("not a plain value", where=where, found=str(entry[name]), expected="text or a number")


def _explained(content: Content, error: Exception) -> UnveilError:
    """The first line that is not an object; or what the parser says."""
    content.check_encoding()
    with content.lines() as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip() and (problem := _problem(line)):
                return UnveilError(
                    problem,
                    where=f"{content.path}, row {number}",
                    found=line.strip(),
                    expected="one object a line",
                    hint="Correct the line, or name another --format.",
                )
    return UnveilError("not JSON lines", where=content.path, found=str(error).splitlines()[0])


def _problem(line: str) -> str | None:
    """Why a line is none; Python is glad to read NaN and Infinity, which JSON does not have."""
    foreign: list[str] = []
    try:
        entry = json.loads(line, parse_constant=foreign.append)
    except (ValueError, RecursionError):
        return "not a JSON object"
    if not isinstance(entry, dict):
        return "not a JSON object"
    return f"{foreign[0]} is no value of JSON" if foreign else None


register(JsonLines())
