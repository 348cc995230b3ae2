"""What tuning has found so far, in a file: a run that was stopped goes on where it was."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.files import write_whole

Options = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One fit of the grid."""

    task: str
    options: Options
    replicate: int

    @property
    def key(self) -> str:
        """What tells it from the others, as text."""
        return json.dumps([self.task, self.options, self.replicate], sort_keys=True)


@dataclass(frozen=True, eq=False)
class Kept:
    """The validation losses so far, as lines of a file: first what they are of, then one for each fit."""

    path: Path
    identity: dict[str, Any]
    losses: dict[str, float]

    @classmethod
    def read(cls, path: Path, identity: dict[str, Any]) -> "Kept":
        """What the file holds, if there is one; results of something else are refused."""
        if not path.exists():
            return cls(path, identity, {})
        try:
            head, *lines = (json.loads(line) for line in path.read_text().splitlines())
            losses = {Cell(line["task"], line["options"], line["replicate"]).key: line["loss"] for line in lines}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnveilError(
                "not a record of tuning", where=path, hint="Remove it, or name another output."
            ) from error
        if head != json.loads(json.dumps(identity)):
            raise UnveilError(
                "these results are of another log, recipe or seed", where=path, hint="Remove the file to start anew."
            )
        return cls(path, identity, losses)

    def add(self, cell: Cell, loss: float) -> None:
        """Remember a fit, in the file too."""
        self.losses[cell.key] = loss
        names = ("task", "options", "replicate")
        lines = [dict(zip(names, json.loads(key), strict=True), loss=value) for key, value in self.losses.items()]
        write_whole(self.path, "".join(json.dumps(line) + "\n" for line in (self.identity, *lines)))

    def best(self, tried: list[Options], task: str, replicates: int) -> Options:
        """The options of the lowest mean loss over replicates."""
        means = [sum(self.losses[Cell(task, options, number).key] for number in range(replicates)) for options in tried]
        return tried[means.index(min(means))]
