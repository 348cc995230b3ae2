"""Results that come in parts, kept in memory or on the disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.on_disk import peak_of
from unveil.data import mapped
from unveil.data.mapped import kept, walked


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 3), st.integers(0, 40), st.integers(1, 9))
def test_parts_make_the_whole_wherever_it_is_kept(sizes: list[int], width: int, held: int, block: int) -> None:
    whole = np.arange(sum(sizes) * width, dtype=np.int32).reshape(-1, width)
    edges = np.cumsum(sizes)[:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "HELD", held)
        patch.setattr(mapped, "BLOCK", block)
        found = kept(iter(np.split(whole, edges)) if sizes else iter(()), whole.shape, np.int32)
        assert isinstance(found, np.memmap) == (whole.size > held)
        assert np.array_equal(found, whole)
        parts = list(walked(found))
    assert all(part.size <= max(block, width) for part in parts)
    assert np.array_equal(np.concatenate([whole[:0], *parts]), whole)


def test_what_is_kept_on_the_disk_leaves_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "HELD", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def parts() -> Iterator[np.ndarray]:
        return (np.full((100, 10), n, np.int32) for n in range(1000))

    assert peak_of(lambda: kept(parts(), (100_000, 10), np.int32)) < 100_000
    found = kept(parts(), (100_000, 10), np.int32)
    assert not list(tmp_path.iterdir())
    assert found[::100, 0].tolist() == list(range(1000))
