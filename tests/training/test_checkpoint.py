"""A checkpoint comes back as it was, or not at all."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from unveil.errors import UnveilError
from unveil.training.checkpoint import Checkpoint

TENSORS = {"model/a": torch.randn(3, 4), "model/b": torch.tensor(2.0), "other/a": torch.arange(5)}
STATE = {"epoch": 3, "best": 0.1 + 0.2, "name": "θ", "none": None, "list": [1, 2]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Checkpoint(TENSORS, STATE).save(tmp_path / "c.safetensors")
    return tmp_path / "c.safetensors"


def test_tensors_and_state_come_back_exactly(path: Path) -> None:
    loaded = Checkpoint.load(path)
    assert loaded.state == STATE
    assert loaded.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(loaded.tensors[name], tensor)
        assert loaded.tensors[name].dtype == tensor.dtype
    assert loaded.part("model").keys() == {"a", "b"}


def test_any_prefix_of_the_file_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(UnveilError, match="cannot be read as a checkpoint"):
            Checkpoint.load(path)


def test_any_changed_byte_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        # Blanks that pad the header, and names that no longer say format or digest, change nothing or are refused.
        try:
            loaded = Checkpoint.load(path)
        except UnveilError:
            continue
        assert loaded.state == STATE
        assert all(torch.equal(loaded.tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_changed_number_in_the_tensors_is_named_an_alteration(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UnveilError, match="was altered"):
        Checkpoint.load(path)


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_bytes_at_all_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "c.safetensors"
    path.write_bytes(content)
    with pytest.raises(UnveilError, match=str(path)):
        Checkpoint.load(path)


def test_files_of_others_and_missing_files_are_refused(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign.safetensors")
    with pytest.raises(UnveilError, match="not a checkpoint of this version"):
        Checkpoint.load(tmp_path / "foreign.safetensors")
    with pytest.raises(UnveilError, match="there is no checkpoint"):
        Checkpoint.load(tmp_path / "missing.safetensors")
    with pytest.raises(UnveilError, match="cannot be read"):
        Checkpoint.load(tmp_path)


def test_a_failed_save_leaves_the_older_file(path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Checkpoint(TENSORS, {"epoch": float("nan")}).save(path)
    assert Checkpoint.load(path).state == STATE
    assert [file.name for file in path.parent.iterdir()] == [path.name]
