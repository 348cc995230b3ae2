"""A packed log is the log in memory: ids, order, steps, filters, splits, batches."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.packed.parquet import any_frame, cuts_of, scratch, write_parts
from unveil.data import interactions, mapped
from unveil.data.batches import ClozeTask, NextItemTask
from unveil.data.describe import describe
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions, Sequences
from unveil.data.packed import PackedLog, ingest, pack
from unveil.data.splits import EvalCases, leave_one_out
from unveil.errors import UnveilError

any_filters = st.builds(
    Filters,
    min_item=st.integers(0, 3),
    min_user=st.integers(0, 4),
    iterate=st.booleans(),
    repeats=st.sampled_from(["keep", "first", "last"]),
)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """Blocks so small that every log has several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "BLOCK", 8)
        patch.setattr(ingest, "SLICE", 5)
        patch.setattr("unveil.data.packed.log.RANGE", 4)
        patch.setattr(interactions, "BLOCK", 4)
        yield


def in_memory(frame: pl.DataFrame, folder: Path, filters: Filters | None = None) -> Interactions:
    frame.write_parquet(folder / "whole.parquet")
    return (filters or Filters())(Interactions.read(folder / "whole.parquet"))


def packed(frame: pl.DataFrame, cuts: list[int], folder: Path, filters: Filters | None = None) -> PackedLog:
    write_parts(frame, folder / "parts", cuts)
    return pack([folder / "parts"], folder / "packed", filters=filters)


def assert_same(one: Sequences, other: Sequences) -> None:
    for name in ("item_N", "step_N", "event_N", "offset_U1", "user_N", "length_U", "count_V"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.time_N is None) == (other.time_N is None)
    assert one.time_N is None or other.time_N is None or np.array_equal(one.time_N, other.time_N)
    assert (one.n_items, one.n_steps, len(one)) == (other.n_items, other.n_steps, len(other))


def assert_same_cases(one: EvalCases, other: EvalCases) -> None:
    for part in fields(EvalCases):
        assert np.array_equal(getattr(one, part.name), getattr(other, part.name)), part.name


@given(any_frame(), st.data())
@settings(max_examples=15)
def test_a_packed_log_is_the_log_in_memory(frame: pl.DataFrame, data: st.DataObject) -> None:
    with scratch() as folder:
        memory = in_memory(frame, folder)
        expected, cuts = Sequences.of(memory), data.draw(cuts_of(len(frame)))
        if not len(expected):
            with pytest.raises(UnveilError, match="no interaction"):
                packed(frame, cuts, folder)
            return
        log = packed(frame, cuts, folder)
        assert log == memory
        assert log.fingerprint() == memory.fingerprint()
        assert_same(Sequences.of(log), expected)
        assert np.array_equal(log.order(), memory.order())
        assert describe(log) == describe(memory)
        log.verify()


@given(any_frame(), any_filters, st.sampled_from([None, 3.5]), st.data())
@settings(max_examples=15)
def test_filters_leave_the_same(
    frame: pl.DataFrame, filters: Filters, least: float | None, data: st.DataObject
) -> None:
    filters = Filters(
        least if "rating" in frame.columns else None, *(getattr(filters, f.name) for f in fields(filters)[1:])
    )
    with scratch() as folder:
        memory = in_memory(frame, folder, filters)
        cuts = data.draw(cuts_of(len(frame)))
        if not len(memory) or not len(memory.interacted()):
            with pytest.raises(UnveilError, match=r"leave nothing|no interaction"):
                packed(frame, cuts, folder, filters)
            assert not (folder / "packed").exists()
            return
        log = packed(frame, cuts, folder, filters)
        assert log == memory
        assert_same(Sequences.of(log), Sequences.of(memory))


@given(any_frame(), st.data())
@settings(max_examples=15)
def test_splits_and_batches_are_the_same(frame: pl.DataFrame, data: st.DataObject) -> None:
    with scratch() as folder:
        memory = Sequences.of(in_memory(frame, folder))
        if not len(memory) or memory.length_U.max() < 3:
            return
        disk = Sequences.of(packed(frame, data.draw(cuts_of(len(frame))), folder))
        one, other = leave_one_out(disk), leave_one_out(memory)
        assert_same(one.train, other.train)
        assert_same_cases(one.valid, other.valid)
        assert_same_cases(one.test, other.test)
        length = data.draw(st.integers(1, 6))
        assert_same(one.train.recent(length), other.train.recent(length))
        if not len(other.train):
            return
        for bucket in (True, False):
            assert_same_batches(
                ClozeTask(one.train, length, 2, 0.4, 0.2, bucket=bucket),
                ClozeTask(other.train, length, 2, 0.4, 0.2, bucket=bucket),
            )
            assert_same_batches(
                NextItemTask(one.train, length, 2, bucket=bucket), NextItemTask(other.train, length, 2, bucket=bucket)
            )


def assert_same_batches(one: ClozeTask | NextItemTask, other: ClozeTask | NextItemTask) -> None:
    for mine, theirs in zip(one.epoch(3), other.epoch(3), strict=True):
        assert torch.equal(mine.token_BL, theirs.token_BL)
        assert all(torch.equal(a, b) for a, b in zip(mine.where, theirs.where, strict=True))
        for name in ("user_M", "item_M", "step_M", "event_M"):
            assert torch.equal(getattr(mine.slots, name), getattr(theirs.slots, name)), name
        assert mine.slots.lot == theirs.slots.lot
    assert one.slots_per_batch == other.slots_per_batch
    assert torch.equal(one.slots.item_M, other.slots.item_M)
    assert torch.equal(one.slots.user_M, other.slots.user_M)


def test_progress_only_rises_and_ends_with_all(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": ["a", "b"] * 9, "item": [1, 2, 3] * 6, "rating": [1.0, 4.0, 5.0] * 6})
    write_parts(frame, tmp_path / "parts", [5, 11])
    reports: list[tuple[int, int]] = []
    pack(
        [tmp_path / "parts"],
        tmp_path / "packed",
        filters=Filters(min_rating=2, repeats="last"),
        tell=lambda done, whole: reports.append((done, whole)),
    )
    assert reports == sorted(reports)
    assert len({done for done, _ in reports}) > 8
    assert reports[-1] == (1000, 1000)
