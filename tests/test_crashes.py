"""Commands that are stopped at a file operation: what was there is whole; the same command ends with the same bytes.

Quick tests stop some commands at a few operations, the slow one all at every one. With a full disk the system refuses
every operation from one on, and nothing but a message comes of it.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crashes import KILLED, Outcome, Server, server
from tests.run_folders import options, small_frame, write_log
from unveil.training.checkpoint import Checkpoint

Content = dict[str, object]
FEW = 6  # operations of a command at which quick tests stop it


@dataclass(frozen=True)
class Case:
    """A command of LOG that writes OUT, and what is added to it after a stop."""

    command: str
    again: str = ""
    overwrites: bool = False  # OUT is there before, with other content

    @staticmethod
    def _placed(word: str, place: dict[str, Path]) -> str:
        first, slash, rest = word.partition("/")
        return f"{place[first]}{slash}{rest}" if first in place else word

    def words(self, work: Path, more: str = "") -> list[str]:
        place = {"LOG": work / "log.csv", "PARTS": work / "parts", "OUT": work / "out", "MODEL": work / "model"}
        place["SPACE"] = work / "space.toml"
        words = [self._placed(word, place) for word in f"{self.command} {more}".split()]
        return [*words, *(options() if words[0] in ("train", "tune") else [])]


CASES = {
    "train": Case("train LOG -o OUT --preset quick --no-page", "--resume"),
    "train-page": Case("train LOG -o OUT --set training.epochs=1", "--resume"),
    "tune": Case("tune LOG -o OUT --space SPACE --trials 2 --replicates 1 --set training.epochs=1"),
    "loop": Case("loop LOG -o OUT -e popularity,random --rounds 2 --resume"),
    "pack": Case("data pack PARTS -o OUT --overwrite", overwrites=True),
    "world": Case("world draw builtin -o OUT/log.csv --save-world OUT/world --overwrite"),
    "export": Case("export MODEL -o OUT --onnx --embeddings --weights --overwrite"),
    "recommend": Case("recommend MODEL -o OUT/lists.csv --overwrite"),
}


@pytest.fixture(scope="module")
def commands() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(scope="module")
def inputs(commands: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, Parquet files of it, a search space, a model, and a packed log of other events."""
    work = tmp_path_factory.mktemp("inputs")
    write_log(work / "log.csv")
    (work / "parts").mkdir()
    small_frame(1).write_parquet(work / "parts" / "part.parquet")
    (work / "space.toml").write_text('"model.width" = [4, 8]\n')
    model = [
        "train",
        work / "log.csv",
        "-o",
        work / "model",
        "--no-page",
        "--preset",
        "quick",
        "--no-blend",
        *options(),
    ]
    assert commands.run(model, work).code == 0
    (work / "old").mkdir()
    small_frame(2).write_parquet(work / "old" / "part.parquet")
    packed = ["data", "pack", work / "old" / "part.parquet", "-o", work / "before"]
    assert commands.run(packed, work).code == 0
    return work


@dataclass
class Trial:
    """A case in a place of its own, which every command in it sees under the same name."""

    case: Case
    commands: Server
    work: Path
    before: Path  # what OUT holds before, for a case that overwrites
    whole: Content

    def start(self) -> None:
        shutil.rmtree(self.work / "out", ignore_errors=True)
        if self.case.overwrites:
            shutil.copytree(self.before, self.work / "out")

    def run(self, stop_at: int = 0, why: str = "kill", *, again: bool = False) -> Outcome:
        words = self.case.words(self.work, self.case.again if again else "")
        return self.commands.run(words, self.work, stop_at, why)

    def check_target(self, old: Content) -> None:
        """Whoever looks while nobody is at work finds the old content or the new one."""
        if self.case.overwrites:
            assert content(self.work / "out") in (old, self.whole)

    def check_end(self, stopped: Outcome) -> None:
        done = self.run(again=True)
        assert done.code == 0, (stopped, done.said)
        assert content(self.work / "out") == self.whole
        assert not [path.name for path in self.work.rglob(".*")]


def trial(name: str, commands: Server, inputs: Path, tmp_path: Path) -> tuple[Trial, int, Content]:
    """What an unbroken command writes, how many operations that takes, and what was there before."""
    work = tmp_path / "work"
    work.mkdir()
    for each in ("log.csv", "parts", "model", "space.toml"):
        (work / each).symlink_to(inputs / each)
    found = Trial(CASES[name], commands, work, inputs / "before", {})
    found.start()
    old = content(work / "out") if CASES[name].overwrites else {}
    done = found.run(stop_at=10**9)
    assert done.code == 0, done.said
    found.whole = content(work / "out")
    return found, done.operations, old


def content(folder: Path) -> Content:
    """Every file below, less what depends on the clock."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    files = (path for path in files if not path.name.startswith("journal.log"))  # of when and by whom what was done
    return {str(path.relative_to(folder)): _of(path) for path in files}


#: What a page tells of the clock and of the stop.
_TOLD = (
    r"\d[\d.,]*\s(s|min|h|seconds?|minutes?|hours?)\b|; the last run took .*? of them|, attempt \d+"
    r"|\d+ trials? (had to be restarted|failed)[^.]*"
)


def _of(path: Path) -> object:
    if path.name.endswith("checkpoint.safetensors") or path.parent.name == "states":
        saved = Checkpoint.load(path)
        tensors = {name: tensor.numpy().tobytes() for name, tensor in saved.tensors.items()}
        return tensors, _timeless(dict(saved.state))
    if path.suffix == ".jsonl":
        return [_timeless(json.loads(line)) for line in path.read_text().splitlines()]
    if path.suffix == ".json":
        return _timeless(json.loads(path.read_text()))
    if path.name == "trials.csv":  # seconds and attempts come last but one and two
        return re.sub(r",[\d.]+,\d+,([^,\n]*)$", r",\1", path.read_text(), flags=re.MULTILINE)
    if path.suffix in (".md", ".html"):
        return re.sub(_TOLD, "", path.read_text())
    return path.read_bytes()


def _timeless(value: object) -> object:
    clock = ("seconds", "seal", "worker_seconds", "cells_made")
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if name not in clock}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def _some(operations: int) -> Sequence[int]:
    """A few operations, the first and the last among them."""
    return sorted({1 + round(n * (operations - 1) / (FEW - 1)) for n in range(FEW)})


@pytest.mark.parametrize("name", ["train", "pack"])
def test_killed_at_some_operations(name: str, commands: Server, inputs: Path, tmp_path: Path) -> None:
    _killed_at(name, commands, inputs, tmp_path, few=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_killed_at_every_operation(name: str, commands: Server, inputs: Path, tmp_path: Path) -> None:
    _killed_at(name, commands, inputs, tmp_path, few=False)


def _killed_at(name: str, commands: Server, inputs: Path, tmp_path: Path, *, few: bool) -> None:
    found, operations, old = trial(name, commands, inputs, tmp_path)
    for number in _some(operations) if few else range(1, operations + 1):
        found.start()
        stopped = found.run(number)
        assert stopped.code == KILLED, (number, stopped)
        found.check_target(old)
        found.check_end(stopped)


@pytest.mark.parametrize("name", ["pack", *(pytest.param(name, marks=pytest.mark.slow) for name in CASES)])
def test_a_full_disk_is_one_message(name: str, commands: Server, inputs: Path, tmp_path: Path) -> None:
    found, operations, old = trial(name, commands, inputs, tmp_path)
    for number in _some(operations):
        found.start()
        stopped = found.run(number, "disk full")
        assert "Traceback" not in stopped.said
        found.check_target(old)
        found.check_end(stopped)
