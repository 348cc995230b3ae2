"""The histories of a log on the disk, laid end to end in files: what `Sequences.of` makes in memory.

Shapes: N events, U users.
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.data.mapped import column_file
from unveil.data.packed.columns import Columns
from unveil.data.packed.progress import Progress
from unveil.data.packed.ranges import Range, ranges, taken_by
from unveil.errors import UnveilError

#: The files of the histories, by their name in `Sequences`.
HISTORIES = {
    "item_N": "history-item.npy",
    "step_N": "history-step.npy",
    "event_N": "history-event.npy",
    "offset_U1": "history-offset.npy",
}


def lay_out(columns: Columns, folder: Path, progress: Progress) -> int:
    """Write the files of the histories, and give the number of steps T."""
    length_U = taken_by("user", columns)
    size = int(length_U.sum())
    if not size:
        raise UnveilError("there is no interaction in the log", hint="Check the files, or loosen the filters.")
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)
    n_steps, own = int(length_U.max()), "step" in columns.roles
    parts = ranges(columns, ["item", "step"] if own else ["item"], length_U, None)
    with ExitStack() as files:
        item, step, event = (
            files.enter_context(column_file(folder / HISTORIES[name], np.int32, size))
            for name in ("item_N", "step_N", "event_N")
        )
        last_step = 0
        for part in progress.through("lay out", parts, size, lambda part: len(part.row_N)):
            step_N = part.columns["step"] if own else _aligned(part, offset_U1, n_steps)
            last_step = max(last_step, int(step_N.max(initial=0)))
            item(part.columns["item"])
            step(step_N)
            event(part.row_N)
    with column_file(folder / HISTORIES["offset_U1"], np.int64, len(offset_U1)) as offset:
        offset(offset_U1)
    return last_step + 1 if own else n_steps


def _aligned(part: Range, offset_U1: NDArray[np.int64], n_steps: int) -> NDArray[np.int64]:
    """Steps aligned at the end: every user's most recent event is at T − 1."""
    at_N = np.arange(len(part.row_N)) + offset_U1[part.first]
    return np.asarray(at_N - offset_U1[part.first + 1 : part.last + 1][part.user_N] + n_steps)
