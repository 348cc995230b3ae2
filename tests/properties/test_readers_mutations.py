"""One or a few damaged lines in a log of any text format: the same log as a second, simple reader has, or a refusal.

The second reader knows the format and splits lines; the first has to find the format too. `UNVEIL_FUZZ_CASES` sets the
number of damaged files for each format.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

CASES = int(os.environ.get("UNVEIL_FUZZ_CASES", "150"))
Row = tuple[str, str, float | None, int | None]  # user, item, rating, seconds
EVENTS = [(str(1 + n * 7 % 11), str(20 + n * 5 % 17), 1 + n % 5, 880_000_000 + 977 * n) for n in range(60)]
PEOPLE = [(f"A{u.zfill(13)}", f"B{i.zfill(9)}", r, t) for u, i, r, t in EVENTS]
HISTORIES = [
    [str(user), *(str(100 + (user * 7 + n * n) % 41) for n in range(3 + user * user % 9))] for user in range(30)
]


def _text(rows: Sequence[Sequence[object]], between: str, header: str = "") -> str:
    return "".join(f"{line}\n" for line in [*filter(None, [header]), *(between.join(map(str, row)) for row in rows)])


HEADED = {
    "csv": ("user_id,item_id,rating,timestamp", ","),
    "tsv": ("user_id\titem_id\trating\ttimestamp", "\t"),
    "semicolon": ("user_id;item_id;rating;timestamp", ";"),
    "pipe": ("user_id|item_id|rating|timestamp", "|"),
    "quoted": ("user_id,item_id,rating,timestamp", ","),
    "movielens": ("userId,movieId,rating,timestamp", ","),
    "inter": ("user_id:token\titem_id:token\trating:float\ttimestamp:float", "\t"),
}
LOGS = {name: _text(EVENTS, between, header) for name, (header, between) in HEADED.items()} | {
    "quoted": _text([(f'"{u}"', f'"{i}"', f'"{r}"', t) for u, i, r, t in EVENTS], ",", HEADED["quoted"][0]),
    "movielens-100k": _text(EVENTS, "\t"),
    "movielens-1m": _text(EVENTS, "::"),
    "amazon-2014": _text(PEOPLE, ","),
    "amazon-2018": _text([(i, u, r, t) for u, i, r, t in PEOPLE], ","),
    "pairs": _text([row[:2] for row in EVENTS], " "),
    "sequences": _text(HISTORIES, " "),
    "jsonl": "".join(
        json.dumps(dict(zip(("user_id", "item_id", "rating", "timestamp"), row, strict=True))) + "\n" for row in EVENTS
    ),
}


def _of_fields(fields: list[str]) -> Row:
    """Times may have fractions; a carriage return ends a field as it ends a line."""
    user, item, rating, seconds = (field.removesuffix("\r") for field in fields)
    if not (user and item and re.fullmatch(r"[-+]?(\d*\.)?\d+|\d+\.", seconds.strip())):
        raise ValueError(fields)
    if not np.isfinite(number := float(rating)):
        raise ValueError(fields)
    return user, item, float(np.float32(number)), int(float(seconds) // 1)


def _plain(header: str) -> str:
    return re.sub("[\\s_-]", "", header).casefold()


def _unquoted(line: str) -> list[str]:
    """The fields of a row that ends on its line: in quotes from end to end, or not beginning with one."""
    field = r'(?:"[^"]*"|[^",][^,]*)'
    if not re.fullmatch(rf"{field}(,{field})*", line):
        raise ValueError(line)
    return [each.strip('"') if each.startswith('"') else each for each in re.findall(rf"(?:^|(?<=,)){field}", line)]


def _words(line: str) -> list[str]:
    return [word for word in re.split(r"[ \t\r]+", line) if word]


def simple(name: str, text: str) -> list[Row]:
    """The rows of a text, by splitting lines; ValueError where a line is no row."""
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    if name in HEADED:
        header, between = HEADED[name]
        if _plain(lines[0]) != _plain(header):
            raise ValueError(lines[0])
        if name == "quoted":
            return [_of_fields(_unquoted(line)) for line in lines[1:]]
        return [_of_fields(line.split(between)) for line in lines[1:]]
    if name == "sequences":
        words = list(map(_words, lines))
        if min(map(len, words)) < 2 or not all(word.isdigit() for line in words for word in line):
            raise ValueError(name)
        return [(user, item, None, None) for user, *items in words for item in items]
    if name == "pairs":
        return [(user, item, None, None) for user, item in map(_words, lines)]
    if name == "jsonl":
        return [
            _of_fields([str(json.loads(line)[key]) for key in json.loads(LOGS[name].split("\n")[0])]) for line in lines
        ]
    rows = [line.split("::" if name == "movielens-1m" else "\t" if name == "movielens-100k" else ",") for line in lines]
    return [_of_fields([row[1], row[0], *row[2:]] if name == "amazon-2018" else row) for row in rows]


Damage = Callable[[str, np.random.Generator], str]
STRANGE = [*"\t,;|: x0\"'-.{}é", "::", "nan", "\r"]
SIGNS = [sign for sign in STRANGE if len(sign) == 1 and sign != "\r"]  # for a header


def _sign(line: str, rng: np.random.Generator) -> str:
    signs = STRANGE if re.search(r"\d", line) else SIGNS
    return str(rng.choice(signs))


def _substitute(line: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(line)))
    return line[:at] + _sign(line, rng) + line[at + 1 :]


def _insert(line: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(line) + 1))
    return line[:at] + _sign(line, rng) + line[at:]


def _delete(line: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(line)))
    return line[:at] + line[at + 1 :]


def _cut(line: str, rng: np.random.Generator) -> str:
    return line[: rng.integers(len(line))]


def _cut_start(line: str, rng: np.random.Generator) -> str:
    return line[rng.integers(len(line)) :]


def _without_last_field(line: str, rng: np.random.Generator) -> str:
    return re.sub(r"[\t,;|: ]+[^\t,;|: ]*$", "", line)


def _twice(line: str, rng: np.random.Generator) -> str:
    return line + line


def _blank(line: str, rng: np.random.Generator) -> str:
    return ""


TYPOS: list[Damage] = [_substitute, _insert, _delete]
DAMAGES: list[Damage] = [*TYPOS, _cut, _cut_start, _without_last_field, _twice, _blank]


def damaged(name: str, rng: np.random.Generator) -> str:
    """One to three lines of the log damaged; of a header one character, for with half of it another file is meant."""
    lines = LOGS[name].splitlines()
    for at in rng.choice(len(lines), int(rng.integers(1, 4)), replace=False).tolist() + [0] * int(rng.integers(4) == 0):
        ways = TYPOS if at == 0 and name in HEADED else DAMAGES
        lines[at] = ways[rng.integers(len(ways))](lines[at], rng) if lines[at] else ""
    return "".join(f"{line}\n" for line in lines)


def _rows(log: Interactions) -> list[Row]:
    frame, empty = log.to_frame(), [None] * len(log)
    rating = frame["rating"].to_list() if log.rating is not None else empty
    time = [each // 10**6 for each in frame["time"]] if log.time is not None else empty
    return list(zip(frame["user"], frame["item"], rating, time, strict=True))


@pytest.mark.parametrize("name", LOGS)
def test_the_two_readers_agree_on_the_whole_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOGS[name])
    assert _rows(Interactions.read(tmp_path / "log")) == simple(name, LOGS[name])


@pytest.mark.parametrize("name", LOGS)
def test_a_damaged_line_gives_the_same_log_or_a_refusal(name: str, tmp_path: Path) -> None:
    rng, path, refused = np.random.default_rng(len(name)), tmp_path / "log", 0
    for _ in range(CASES):
        text = damaged(name, rng)
        path.write_text(text, newline="")
        try:
            found = _rows(Interactions.read(path))
        except UnveilError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
            continue
        try:
            expected = simple(name, text)
        except ValueError:
            expected = []
        assert found == expected, text
    assert refused > CASES // 10


@pytest.mark.parametrize("name", [name for name in LOGS if name not in HEADED and name != "sequences"])
def test_a_line_cut_short_is_named(name: str, tmp_path: Path) -> None:
    """As `sed '5s/\\t[0-9]*$//' u.data` does."""
    lines = LOGS[name].splitlines()
    lines[4] = _without_last_field(lines[4], np.random.default_rng(0))
    (tmp_path / "log").write_text("\n".join(lines))
    with pytest.raises(UnveilError, match=rf"log, row 5.*found .*{re.escape(repr(lines[4])[1:7])}.*expected"):
        Interactions.read(tmp_path / "log")
