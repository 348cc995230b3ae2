"""What each epoch gave, in memory and as a file that can be read while the run goes on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from unveil.errors import UnveilError
from unveil.files import explained, write_whole


@dataclass(frozen=True)
class Epoch:
    """One line of the file of epochs."""

    epoch: int  # counted from 1
    loss: float  # mean risk over the epoch's slots, as the estimator weighs them
    lr: float  # of the last step
    slots: int
    seconds: float  # of training, validation apart
    validation: Mapping[str, float] | None  # None where the epoch was not validated

    def line(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


def append(path: Path, epoch: Epoch) -> None:
    """Add a line. A line cut off by a kill is mended by `rewrite` on resumption."""
    with explained(path), path.open("a", encoding="utf-8") as file:
        file.write(epoch.line())


def read(path: Path) -> list[Epoch]:
    """The epochs of a run that is over."""
    try:
        return [Epoch(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UnveilError(f"cannot be read as a file of epochs: {error}", where=path) from None


def rewrite(path: Path, epochs: Sequence[Epoch]) -> None:
    """Set the file to these epochs: lines written after the checkpoint that a run resumes from go."""
    write_whole(path, "".join(epoch.line() for epoch in epochs))
