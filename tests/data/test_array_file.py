"""A file of arrays written in blocks is the file that the library writes."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save

from tests.data.on_disk import peak_of
from tests.data.packed.parquet import scratch
from unveil.data import mapped
from unveil.data.mapped import Streamed, write_arrays

arrays = hnp.arrays(st.sampled_from(["<i4", "<i8", "<f4", "<f8"]), hnp.array_shapes(max_dims=2, min_side=0, max_side=9))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter("__metadata__".__ne__)


@given(st.dictionaries(names, arrays, max_size=4), st.sampled_from([None, {"about": '{"a": "é"}'}]), st.integers(1, 5))
@settings(max_examples=40)
def test_the_bytes_are_those_of_the_library(
    given: dict[str, np.ndarray], about: dict[str, str] | None, block: int
) -> None:
    with scratch() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "BLOCK", block)
        digest = write_arrays(folder / "a", {name: Streamed.of(array) for name, array in given.items()}, about)
        written = (folder / "a").read_bytes()
    assert written == save(given, about)
    assert digest == sha256(written).hexdigest()


def test_it_is_never_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "BLOCK", 1 << 12)
    zeros = np.memmap(tmp_path / "zeros", np.int64, "w+", shape=(1 << 20,))
    assert peak_of(lambda: write_arrays(tmp_path / "a", {"zeros": Streamed.of(zeros)})) < 200_000
    assert np.array_equal(load_file(tmp_path / "a")["zeros"], zeros)


def test_parts_that_do_not_add_up_leave_nothing(tmp_path: Path) -> None:
    short = Streamed(np.dtype(np.int32), (3,), lambda: [np.zeros(2, np.int32)])
    with pytest.raises(ValueError, match="short was to have 12 bytes and was given 8"):
        write_arrays(tmp_path / "a", {"short": short})
    assert not list(tmp_path.iterdir())
