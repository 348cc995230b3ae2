import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save as array_bytes

from tests.data.on_disk import many_events, on_disk, peak_of
from tests.run_folders import Finished, content
from tests.serving.test_recommender import by_hand
from unveil.checksums import sealed
from unveil.data import indexing, interactions, mapped
from unveil.data.indexing import Vocabulary
from unveil.errors import UnveilError
from unveil.models.base import Backbone
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.serving import model_files
from unveil.serving.model_files import read_dial, version_of, write_dial
from unveil.serving.recommender import Recommender

PARTS = ["model.safetensors", "items.parquet", "users.parquet", "histories.safetensors", "exposure.safetensors"]


@pytest.fixture
def saved(finished: Finished, tmp_path: Path) -> Path:
    finished.run.recommender.save(tmp_path / "model")
    return tmp_path / "model"


def test_saved_it_is_the_recommender_part_of_a_run_folder(finished: Finished, saved: Path) -> None:
    assert set(content(saved)) == {*PARTS, "manifest.json"}
    assert content(saved).items() <= content(finished.folder).items()


def test_loaded_it_is_what_was_saved(finished: Finished, saved: Path, tmp_path: Path) -> None:
    trained, loaded = finished.run.recommender, Recommender.load(saved)
    assert isinstance(trained.model, Backbone)
    assert isinstance(loaded.model, Backbone)
    assert loaded.model.config == trained.model.config
    for name, tensor in trained.model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name]), name
    assert (loaded.items, loaded.users, loaded.length) == (trained.items, trained.users, trained.length)
    loaded.save(str(tmp_path / "again"))
    assert content(tmp_path / "again") == content(saved)


def test_an_occupied_folder_is_refused_unless_told(finished: Finished, saved: Path) -> None:
    (saved / "letter.txt").write_text("dear")
    with pytest.raises(UnveilError, match="not empty"):
        finished.run.recommender.save(saved)
    finished.run.recommender.save(saved, overwrite=True)
    assert set(content(saved)) == {*PARTS, "manifest.json"}


def test_what_is_no_network_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="only a network or a baseline can be written: found 'ByLength'"):
        by_hand().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_cut_short_changed_or_gone_is_told(name: str, saved: Path) -> None:
    whole = (saved / name).read_bytes()
    for damaged in (whole[:-1], b"", whole[:-1] + bytes([whole[-1] ^ 1]), whole + b"\0"):
        (saved / name).write_bytes(damaged)
        with pytest.raises(UnveilError, match=rf"{name}: not as it was written: changed or damaged\. Copy it again"):
            Recommender.load(saved)
    (saved / name).unlink()
    with pytest.raises(UnveilError, match=rf"{name}: a file of the model is missing"):
        Recommender.load(saved)
    (saved / name).mkdir()
    with pytest.raises(UnveilError, match=rf"{name}: cannot be read: Is a directory"):
        Recommender.load(saved)


def test_what_is_no_folder_of_a_model(saved: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", saved / "manifest.json", tmp_path):
        with pytest.raises(UnveilError, match=r"not the folder of a trained model: expected manifest\.json"):
            Recommender.load(place)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "unveil recommender 99"}, "not a manifest of this version: found 'unveil recommender 99'"),
        ({"sha256": {}}, "does not hold together"),
        ({"sha256": None}, "does not hold together"),
        ({"model": {"name": "bert5rec", "config": {}}}, "unknown model: found 'bert5rec'"),
        ({"model": {"name": "bert4rec", "config": {"width": 16}}}, "does not hold together"),
        ({"model": {"name": "bert4rec", "config": {"width": "wide"}}}, r"manifest\.json, width: not a valid value"),
        ({"model": None}, "does not hold together"),
        ({"n_steps": None}, "does not hold together"),
        ({"n_steps": -1}, "does not hold together: manifest.json has 8 tokens per history and -1 steps"),
        ({"length": 0}, "does not hold together: manifest.json has 0 tokens"),
        ({"length": 10**9}, "does not hold together: manifest.json has 1000000000 tokens"),
    ],
)
def test_a_manifest_that_was_changed_is_told(change: dict[str, object], message: str, saved: Path) -> None:
    path = saved / "manifest.json"
    content = {name: each for name, each in json.loads(path.read_text()).items() if name != "seal"} | change
    path.write_text(json.dumps(sealed(content)))
    with pytest.raises(UnveilError, match=message):
        Recommender.load(saved)


def test_a_setting_that_still_loads_is_told_too(saved: Path) -> None:
    """The weights of two heads of attention are those of one; an earlier version's manifest has no seal."""
    path = saved / "manifest.json"
    written = json.loads(path.read_text())
    heads = written["model"]["config"]["heads"]
    written["model"]["config"]["heads"] = heads // 2 or 2
    path.write_text(json.dumps(written))
    with pytest.raises(UnveilError, match=r"manifest\.json: not as it was written: changed or damaged\. Copy it again"):
        Recommender.load(saved)
    written["model"]["config"]["heads"] = heads
    del written["seal"]
    path.write_text(json.dumps(written))
    assert len(Recommender.load(saved).items)


@pytest.mark.parametrize("text", ["", "[1]", "null", "{", "[" * 100_000])
def test_what_is_no_manifest(text: str, saved: Path) -> None:
    (saved / "manifest.json").write_text(text)
    with pytest.raises(UnveilError, match=r"manifest\.json: not (JSON|a manifest of this version)"):
        Recommender.load(saved)


def test_the_weights_of_another_model_are_told(finished: Finished, saved: Path, tmp_path: Path) -> None:
    other = shutil.copytree(saved, tmp_path / "other")
    (Path(other) / "model.safetensors").write_bytes((saved / "histories.safetensors").read_bytes())
    with pytest.raises(UnveilError, match="changed or damaged"):
        Recommender.load(other)


def test_histories_on_the_disk_are_written_the_same_a_block_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = many_events()
    network = BERT4Rec(BERT4RecConfig(width=4, blocks=1, heads=1, length=5), 50, seed=0)
    items, users = (Vocabulary([f"{n:05d}" for n in range(count)]) for count in (50, memory.n_users))
    recent = on_disk(memory, tmp_path / "columns").recent(150)
    for module, name in ((interactions, "BLOCK"), (mapped, "BLOCK"), (indexing, "_BLOCK")):
        monkeypatch.setattr(module, name, 1 << 12)
    recommender = Recommender(network, items, users, recent, 5)
    (tmp_path / "model").mkdir()
    # A column of the 300,000 events is 1.2 MB.
    assert peak_of(lambda: model_files.write(recommender, tmp_path / "model")) < 1_000_000
    expected = memory.recent(150)
    columns = {name: np.ascontiguousarray(getattr(expected, name)) for name in ("item_N", "step_N", "event_N")}
    written = (tmp_path / "model" / "histories.safetensors").read_bytes()
    assert written == array_bytes({**columns, "offset_U1": expected.offset_U1})
    loaded = Recommender.load(tmp_path / "model").sequences
    assert np.array_equal(loaded.item_N, expected.item_N)


@pytest.mark.parametrize(
    "points", ["[1]", '["x"]', '[{"novelty": "much"}]', '[{"novelty": null}]', "null", "[" * 100_000]
)
def test_a_dial_that_was_not_measured_is_none(points: str, saved: Path) -> None:
    write_dial(saved, [{"novelty": 0.5}])
    assert read_dial(saved) == [{"novelty": 0.5}]
    (saved / "dial.json").write_text(f'{{"model": "{version_of(saved)}", "points": {points}}}')
    assert read_dial(saved) == []
