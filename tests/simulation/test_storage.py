import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


@pytest.fixture
def world() -> World:
    return World.builtin(WorldSpec(users=12, items=9, steps=6, shortest=2), seed=4).with_severity(1.7)


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    world.save(tmp_path / "world")
    return tmp_path / "world"


def test_a_loaded_world_is_the_one_that_was_saved(world: World, folder: Path) -> None:
    loaded = World.load(str(folder))
    assert repr(loaded) == repr(world)
    assert loaded.origin == world.origin
    assert (loaded.users, loaded.items) == (world.users, world.items)
    user_S, step_S = world.slots()
    np.testing.assert_array_equal(loaded.exposure(user_S, step_S), world.exposure(user_S, step_S))
    np.testing.assert_array_equal(loaded.relevance(user_S, step_S), world.relevance(user_S, step_S))
    assert loaded.log(np.random.default_rng(3)) == world.log(np.random.default_rng(3))


def test_the_parts_have_the_usual_mode(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert {path.stat().st_mode for path in folder.iterdir()} == {(tmp_path / "usual").stat().st_mode}


def test_an_occupied_folder_is_kept_unless_told_otherwise(world: World, folder: Path) -> None:
    with pytest.raises(UnveilError, match="not empty"):
        world.with_severity(3).save(folder)
    assert World.load(folder).severity == 1.7
    world.with_severity(3).save(folder, overwrite=True)
    assert World.load(folder).severity == 3


def test_a_folder_that_is_no_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"not a world: expected a folder with a world\.json"):
        World.load(tmp_path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("name", ["factors.safetensors", "ids.json", "world.json"])
def test_a_truncated_part_is_named(folder: Path, name: str) -> None:
    truncate(folder / name)
    with pytest.raises(UnveilError, match=f"{name}: .*cannot be read"):
        World.load(folder)


@pytest.mark.parametrize("name", ["factors.safetensors", "ids.json"])
def test_a_missing_part_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UnveilError, match=name):
        World.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "unveil world 9"}, "found 'unveil world 9', expected the format 'unveil world 1'"),
        ({"severity": "high"}, "damaged"),
        ({"severity": -2}, r"world\.json: the severity is out of range: found -2"),
        ({"severity": float("nan")}, r"world\.json: the severity is out of range: found nan"),
        ({"severity": 10**400}, "damaged"),
        ({"origin": None}, "damaged"),
        ({"origin": {"kind": "builtin", "foresight": "much"}}, "damaged world .*its foresight is not a number"),
    ],
)
def test_a_tampered_description_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    edit(folder / "world.json", **changes)
    with pytest.raises(UnveilError, match=message):
        World.load(folder)


def seal(folder: Path) -> None:
    """Hashes that fit the parts as they are now."""
    parts = {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("ids.json", "factors.safetensors")}
    edit(folder / "world.json", parts=parts)


def test_a_number_that_was_changed_is_noticed(folder: Path) -> None:
    content = bytearray((folder / "factors.safetensors").read_bytes())
    content[-2] ^= 1
    (folder / "factors.safetensors").write_bytes(content)
    with pytest.raises(UnveilError, match=r"factors\.safetensors: not as it was written"):
        World.load(folder)


@pytest.mark.parametrize("parts", [None, [], {"ids.json": "0"}])
def test_hashes_that_are_none_are_refused(folder: Path, parts: object) -> None:
    edit(folder / "world.json", parts=parts)
    with pytest.raises(UnveilError, match=r"ids\.json: not as it was written"):
        World.load(folder)


def test_a_file_is_no_world(folder: Path) -> None:
    with pytest.raises(UnveilError, match="not a world"):
        World.load(folder / "world.json")


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "world.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnveilError, match=r"world\.json: .*cannot be read"):
        World.load(folder)


@pytest.mark.parametrize("changes", [{"items": ["a", "b"]}, {"items": 3}, {"items": [[], []]}, {"users": None}])
def test_ids_that_do_not_fit_the_factors_are_refused(folder: Path, changes: dict[str, object]) -> None:
    edit(folder / "ids.json", **changes)
    with pytest.raises(UnveilError, match=r"ids\.json: not as it was written"):
        World.load(folder)
    seal(folder)
    with pytest.raises(UnveilError, match="damaged world"):
        World.load(folder)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("relevance.P_UK", np.zeros((11, 9), np.float32)),
        ("relevance.P_UK", np.zeros(12, np.float32)),
        ("exposure.W_TK", np.zeros((6, 2), np.float32)),
        ("start_U", np.full(12, 6, np.int32)),
        ("start_U", np.zeros(12, np.float32)),
        ("start_U", np.zeros((12, 1), np.int32)),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(folder: Path, name: str, table: NDArray[np.generic]) -> None:
    path = folder / "factors.safetensors"
    save_file({**load_file(path), name: table}, path)
    seal(folder)
    with pytest.raises(UnveilError, match="damaged world"):
        World.load(folder)


def test_a_description_without_an_end_is_refused(folder: Path) -> None:
    (folder / "world.json").write_text("[" * 200_000)
    with pytest.raises(UnveilError, match=r"world\.json: .*cannot be read"):
        World.load(folder)


def test_a_list_is_not_a_description(folder: Path) -> None:
    (folder / "world.json").write_text("[]")
    with pytest.raises(UnveilError, match="expected a JSON object"):
        World.load(folder)


def test_factors_that_are_not_numbers_are_refused(world: World, tmp_path: Path) -> None:
    world.relevance_logits.P_UK[0, 0] = np.nan
    world.save(tmp_path / "broken")
    with pytest.raises(UnveilError, match="not all numbers"):
        World.load(tmp_path / "broken")
