"""The numbers of a file: each key with its values in order, long lists as a hash and their head."""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

#: What may differ from one run to the next, or with what is installed.
VOLATILE = re.compile(r"(^|_)(seconds|version|versions|python|torch)$")
LONGEST = 8
HEAD = 4

Values = dict[str, Any]
Translate = Callable[[str], str]


def values_of(path: Path, translate: Translate = str) -> Values | None:
    """Keys and values of a file; None where its kind holds prose or drawings."""
    reader = _READERS.get(path.suffix)
    return None if reader is None else _shortened(reader(path), translate)


def printed(text: str, translate: Translate = str) -> Values | None:
    """The same of what a command prints, where it prints JSON."""
    try:
        return _shortened(_flat([json.loads(text)] if text.strip() else []), translate)
    except ValueError:
        pass
    try:
        return _shortened(_flat([[json.loads(line) for line in text.splitlines()]]), translate)
    except ValueError:
        return None


def _flat(documents: Sequence[Any]) -> dict[str, list[Any]]:
    """Every number, truth value and null by its path; places in lists are left out, so that a key names a column."""
    found: dict[str, list[Any]] = {}
    for document in documents:
        for key, value in _leaves(document, ()):
            found.setdefault(key, []).append(value)
    return found


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if not VOLATILE.search(str(key)):
                yield from _leaves(part, (*path, str(key)))
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, (*path[:-1], path[-1] + "[]") if path else ("[]",))
    elif not isinstance(value, str):
        yield "/".join(path), value


def _shortened(columns: Mapping[str, list[Any]], translate: Translate) -> Values:
    return {key: _short([_plain(value, translate) for value in column]) for key, column in sorted(columns.items())}


def _plain(value: Any, translate: Translate) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return translate(value) if isinstance(value, str) else value


def _short(column: list[Any]) -> Any:
    if len(column) <= LONGEST:
        return column[0] if len(column) == 1 else column
    return {"n": len(column), "head": column[:HEAD], "sha": _hash(json.dumps(column).encode())}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _json(path: Path) -> dict[str, list[Any]]:
    return _flat([json.loads(path.read_text(encoding="utf-8"))])


def _lines(path: Path) -> dict[str, list[Any]]:
    return _flat([[json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]])


def _toml(path: Path) -> dict[str, list[Any]]:
    return _flat([tomllib.loads(path.read_text(encoding="utf-8"))])


def _csv(path: Path) -> dict[str, list[Any]]:
    separator = "," if path.suffix == ".csv" else "\t"
    return _columns(pl.read_csv(path, separator=separator, infer_schema=False))


def _columns(frame: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: [str(each) for each in frame[name]] for name in frame.columns if not VOLATILE.search(name)}


def _parquet(path: Path) -> dict[str, list[Any]]:
    return _columns(pl.read_parquet(path))


def _safetensors(path: Path) -> dict[str, list[Any]]:
    """Of each tensor its type, its shape and a hash; of what is written beside them the numbers."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    beside = _flat([_parsed(header.pop("__metadata__", {}))])
    tensors = {
        f"tensor/{name}": [f"{each['dtype']} {each['shape']} {_hash(body[slice(*each['data_offsets'])])}"]
        for name, each in header.items()
    }
    return {**beside, **tensors}


def _parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, text in texts.items():
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found


def _array(path: Path) -> dict[str, list[Any]]:
    return {"array": [_hash(path.read_bytes())]}


_READERS: Mapping[str, Callable[[Path], dict[str, list[Any]]]] = {
    ".json": _json,
    ".jsonl": _lines,
    ".toml": _toml,
    ".csv": _csv,
    ".tsv": _csv,
    ".inter": _csv,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
    ".npy": _array,
}
