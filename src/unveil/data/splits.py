"""Splits: leave-one-out (the paper's) or by a global cut in time. Shapes: C cases, U users, N events, B of a block."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Index, gathered
from unveil.data.interactions import Sequences, moment
from unveil.data.mapped import walked
from unveil.errors import UnveilError
from unveil.wording import quantity

SHORTEST = 3  # Fewer events than this and a history is used for training only

Targets = Literal["first", "last", "all"]
Times = NDArray[np.int64]
_BINS = 1 << 16  # Spans of time that are counted apart in one pass over the events


@dataclass(frozen=True, eq=False)
class EvalCases:
    """To predict: `item_C` for `user_C` at `step_C`, from the first `seen_C` events of the whole history."""

    user_C: Index
    item_C: Index
    step_C: Index
    seen_C: Index
    event_C: Index | None = None  # the row of the log that each case is, where the log is at hand

    def __len__(self) -> int:
        return len(self.user_C)

    def some(self, which: NDArray[Any] | slice) -> "EvalCases":
        event_C = None if self.event_C is None else self.event_C[which]
        return EvalCases(self.user_C[which], self.item_C[which], self.step_C[which], self.seen_C[which], event_C)

    def __repr__(self) -> str:
        return f"EvalCases({quantity(len(self), 'case')})"


@dataclass(frozen=True, eq=False)
class Split:
    """The whole histories and their parts. A tuner is handed `train` and `valid` and never this object."""

    whole: Sequences
    train: Sequences
    valid: EvalCases
    test: EvalCases
    rule: str
    train_only: int  # users whose history gives no case

    def __str__(self) -> str:
        sizes = ((self.train, "train on"), (self.valid, "validate on"), (self.test, "test on"))
        return ", ".join(f"{quantity(len(part), 'event')} to {use}" for part, use in sizes)

    def __repr__(self) -> str:
        return f"Split({self}; {self.rule}; {quantity(self.train_only, 'user')} for training only)"


def leave_one_out(sequences: Sequences) -> Split:
    """The last event is the test case, the one before it for validation; histories below three only train."""
    length_U = sequences.length_U
    long_U = length_U >= SHORTEST
    if not long_U.any():
        problem = "all histories are too short to hold out a validation and a test event"
        found, expected = length_U.max(initial=0), f"at least {SHORTEST} events in the longest history"
        hint = "Use a longer log, or lower --min-item, --min-user and --min-rating."
        raise UnveilError(problem, found=int(found), expected=expected, hint=hint)
    users = np.flatnonzero(long_U).astype(np.int32)
    return Split(
        whole=sequences,
        train=sequences.cut(np.zeros_like(length_U), np.where(long_U, length_U - 2, length_U)),
        valid=_cases(sequences, users, length_U[users] - 2),
        test=_cases(sequences, users, length_U[users] - 1),
        rule=f"leave-one-out; users with fewer than {SHORTEST} events are for training only",
        train_only=int((~long_U & (length_U > 0)).sum()),
    )


def temporal_split(
    sequences: Sequences, *, valid: float | datetime = 0.8, test: float | datetime = 0.9, targets: Targets = "last"
) -> Split:
    """Train on what happened before `valid`, validate on what came before `test`, test on the rest.

    A cut is a date or a share of the events in time order; what is at its very time is after it. `targets` says which
    of a user's events after a cut are cases; all events before a case are its context.
    """
    times = Timeline(sequences)
    cut_valid, cut_test = _time_of(times, valid), _time_of(times, test)
    begin, end, (first, last) = moment(cut_valid), moment(cut_test), times.span
    if not first < cut_valid < cut_test <= last:
        problem = f"the cuts at {begin} and {end} leave one of train, validation and test empty"
        raise UnveilError(problem, expected=f"two moments in order between {moment(first)} and {moment(last)}")
    before_valid_U, before_test_U = times.before(cut_valid, cut_test)
    valid_cases = _after(sequences, before_valid_U, before_test_U, targets)
    test_cases = _after(sequences, before_test_U, sequences.length_U, targets)
    with_case_U = np.isin(np.arange(sequences.n_users), np.concatenate([valid_cases.user_C, test_cases.user_C]))
    return Split(
        whole=sequences,
        train=sequences.cut(np.zeros_like(before_valid_U), before_valid_U),
        valid=valid_cases,
        test=test_cases,
        rule=f"global temporal split: validation from {begin}, test from {end}, {targets} events",
        train_only=int((~with_case_U & (sequences.length_U > 0)).sum()),
    )


def _cases(sequences: Sequences, user_C: Index, seen_C: NDArray[Any]) -> EvalCases:
    at_C = sequences.offset_U1[user_C] + seen_C
    columns = (sequences.item_N, sequences.step_N, sequences.event_N)
    item_C, step_C, event_C = (gathered(column_N, at_C) for column_N in columns)
    return EvalCases(user_C, item_C, step_C, seen_C.astype(np.int32), event_C)


def _after(sequences: Sequences, start_U: NDArray[Any], stop_U: NDArray[Any], targets: Targets) -> EvalCases:
    """Cases among each user's events from `start` to `stop`, those with nothing before them left out."""
    start_U = np.maximum(start_U, 1)
    count_U = np.maximum(stop_U - start_U, 0)
    if targets == "first":
        stop_U = start_U + np.minimum(count_U, 1)
    elif targets == "last":
        start_U = stop_U - np.minimum(count_U, 1)
    count_U = np.maximum(stop_U - start_U, 0)
    user_C = np.repeat(np.arange(sequences.n_users, dtype=np.int32), count_U)
    nth_C = np.arange(len(user_C)) - np.repeat(np.cumsum(count_U) - count_U, count_U)
    return _cases(sequences, user_C, start_U[user_C] + nth_C)


def _time_of(times: "Timeline", at: float | datetime) -> int:
    if isinstance(at, datetime):
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    if not 0 < at < 1:
        raise UnveilError("a cut is out of range", found=at, expected="a share between 0 and 1, or a date")
    return times.nth(int(at * len(times)))


class Timeline:
    """When the events of some histories were, in µs."""

    def __init__(self, sequences: Sequences) -> None:
        if sequences.clock is None or not len(sequences):
            problem = "a global temporal split needs times, and this log has an order only"
            raise UnveilError(problem, hint="Use leave-one-out, or a file with a time column.")
        self._sequences, self._time = sequences, sequences.clock

    def __len__(self) -> int:
        return len(self._sequences)

    @cached_property
    def span(self) -> tuple[int, int]:
        first, last = zip(*((int(time_B.min()), int(time_B.max())) for time_B in self._times()), strict=True)
        return min(first), max(last)

    def nth(self, n: int) -> int:
        """The time of the nth event in order of time, counted from 0.

        Counted in equal spans, then within the span of the nth, until it is one moment: 16 bits in each of four passes.
        """
        low, last = self.span
        size = last - low + 1
        while size > 1:
            width = -(-size // _BINS)
            count = sum((_binned(time_B, low, size, width) for time_B in self._times()), np.zeros(_BINS, np.int64))
            upto = np.cumsum(count)
            at = int(np.searchsorted(upto, n, side="right"))
            low, n, size = low + at * width, n - int(upto[at] - count[at]), width
        return low

    def before(self, *moments: int) -> list[NDArray[np.int64]]:
        found = []
        for part in self._sequences.blocks():
            time_B, user_B = _far(self._time, part.event_N), part.user_N
            found.append([np.bincount(user_B[time_B < time], minlength=part.n_users) for time in moments])
        return [np.concatenate(each) for each in zip(*found, strict=True)]

    def _times(self) -> Iterator[Times]:
        """All times, in any order: as the log has them, where all of its rows are events of these histories."""
        if len(self._time) == len(self):
            return walked(self._time)
        return (_far(self._time, part.event_N) for part in self._sequences.blocks() if len(part))


def _binned(time_B: Times, low: int, size: int, width: int) -> NDArray[np.int64]:
    """How many of the times from `low` on, within `size`, lie in each span of this width."""
    # Differences of 64-bit numbers may need all 64 bits; wrapped around, as these are, they are right.
    since_B = time_B.astype(np.uint64) - np.uint64(low % (1 << 64))
    since_B = since_B[since_B <= np.uint64(size - 1)]
    return np.bincount((since_B // np.uint64(width)).astype(np.int64), minlength=_BINS)


def _far(values: Times, row_B: NDArray[np.int32]) -> Times:
    """The values at rows that lie all over a column: in the order of the column, so that few pages are held at once."""
    order_B = np.argsort(row_B)
    value_B = np.empty(len(row_B), values.dtype)
    value_B[order_B] = gathered(values, row_B[order_B])
    return value_B
