"""What a case left behind, and how that differs from what was recorded."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.golden.aliases import Aliases
from tests.golden.canary import canary
from tests.golden.commands import CASES, Case
from tests.golden.runner import HERE, run_command, workplace
from tests.golden.values import Values, printed, values_of

RECORDED = HERE / "recorded"


@dataclass(frozen=True)
class Recording:
    """Exit codes of the commands, every file they wrote, and the numbers in files and on standard output."""

    canary: str
    codes: list[int]
    files: list[str]
    values: dict[str, Values]

    @classmethod
    def of(cls, case: Case) -> "Recording":
        """Run the commands of a case."""
        with workplace(case.folders) as folder:
            return cls.run_in(folder, case.commands)

    @classmethod
    def run_in(cls, folder: Path, commands: Iterable[str]) -> "Recording":
        """Run commands in a folder."""
        translate = Aliases.read().old_value
        values: dict[str, Values] = {}
        codes = []
        for nth, words in enumerate(commands):
            done = run_command(words)
            codes.append(done.code)
            if done.code == 1:
                raise RuntimeError(f"unveil {words}\n{done.err}")
            if said := printed(done.out, translate):
                values[f"stdout-{nth}"] = said
        paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] != "in")
        for path in paths:
            if (found := values_of(path, translate)) is not None:
                values[str(path.relative_to(folder))] = found
        return cls(canary(), codes, [str(path.relative_to(folder)) for path in paths], values)

    @classmethod
    def read(cls, case: str) -> "Recording":
        return cls(**json.loads(_file(case).read_text(encoding="utf-8")))

    def write(self, case: str) -> None:
        RECORDED.mkdir(exist_ok=True)
        _file(case).write_text(_dumped(asdict(self)), encoding="utf-8")


def _file(case: str) -> Path:
    return RECORDED / f"{case}.json"


def _dumped(recording: dict[str, Any]) -> str:
    """One line a file and key: differences can be read in the history."""
    values = recording.pop("values")
    head = json.dumps(recording, indent=0)[1:-2].strip()
    parts = [
        f"{json.dumps(file)}: {{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in each.items()) + "\n}"
        for file, each in values.items()
    ]
    return "{\n" + head + ',\n"values": {\n' + ",\n".join(parts) + "\n}\n}\n"


@dataclass(frozen=True)
class Check:
    """How exactly numbers can be compared on this machine."""

    numbers: bool
    tolerance: float
    note: str | None

    @classmethod
    def of(cls, case: str, recorded: Recording) -> "Check":
        if recorded.canary == canary():
            return cls(numbers=True, tolerance=0.0, note=None)
        if CASES[case].trains:
            return cls(numbers=False, tolerance=0.0, note="torch computes otherwise here: only names were compared")
        return cls(numbers=True, tolerance=1e-3, note="torch computes otherwise here: numbers were compared to 1e-3")


def differences(case: str, old: Recording, new: Recording, check: Check, aliases: Aliases) -> Iterator[str]:
    """Every difference, as a line for people."""
    if old.codes != new.codes:
        yield f"exit codes: {old.codes} → {new.codes}"
    names = {file: aliases.file(case, file) for file in old.files}
    for file, now in names.items():
        if now not in new.files and not aliases.is_gone(f"{case}/{file}"):
            yield f"{_renamed(file, now)}: not written"
    for file in sorted(set(new.files) - set(names.values())):
        if not aliases.is_added(f"{case}/{file}"):
            yield f"{file}: a new file"
    for file, values in old.values.items():
        now = names.get(file, file)
        if now in new.files or file.startswith("stdout"):
            yield from _of_file(f"{case}/{file}", values, new.values.get(now, {}), check, aliases)


def _of_file(place: str, old: Values, new: Values, check: Check, aliases: Aliases) -> Iterator[str]:
    names = {key: aliases.key(place, key) for key in old}
    file = place.partition("/")[2]
    for key, now in names.items():
        if aliases.is_gone(place, key):
            continue
        if now not in new:
            yield f"{file}: {_renamed(key, now)}: gone, was {_shown(old[key])}"
        elif check.numbers and not _same(old[key], new[now], check.tolerance):
            yield f"{file}: {_renamed(key, now)}: {_shown(old[key])} → {_shown(new[now])}"
    for key in sorted(set(new) - set(names.values())):
        if not aliases.is_added(place, key):
            yield f"{file}: {key}: new, {_shown(new[key])}"


def _same(old: Any, new: Any, tolerance: float) -> bool:
    if not tolerance:
        return bool(old == new and type(old) is type(new))
    if isinstance(old, dict) and isinstance(new, dict):  # of a long list the head is compared
        return old["n"] == new["n"] and _same(old["head"], new["head"], tolerance)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_same(a, b, tolerance) for a, b in zip(old, new, strict=True))
    try:
        return math.isclose(float(old), float(new), rel_tol=tolerance, abs_tol=tolerance)
    except (TypeError, ValueError):
        return isinstance(old, str) == isinstance(new, str)  # a hash


def _renamed(old: str, now: str) -> str:
    return old if old == now else f"{old} (now {now})"


def _shown(value: Any) -> str:
    return json.dumps(value)[:120]
