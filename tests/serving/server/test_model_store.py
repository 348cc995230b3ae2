"""New models take the place of old ones; bad ones do not."""

import os
import shutil
from pathlib import Path

import pytest

from tests.run_folders import Finished
from tests.serving.server.conftest import asking
from unveil.errors import UnveilError
from unveil.models.base import Backbone, backbone
from unveil.serving.model_files import write_dial
from unveil.serving.onnx_model import _WRITERS
from unveil.serving.recommender import Recommender
from unveil.serving.server.inference_service import Settings
from unveil.serving.server.model_store import ModelStore, ServedModel, signature
from unveil.serving.server.schemas import RecommendRequest


def another(folder: Path) -> Recommender:
    """A model for the same items with other weights."""
    old = Recommender.load(folder)
    assert isinstance(old.model, Backbone)
    kind = backbone("gru4rec")
    model = kind(kind.Config(width=4, length=old.length), len(old.items), seed=9)
    return Recommender(model, old.items, old.users, old.sequences, old.length)


def shelf_of(*folders: Path) -> ModelStore:
    store = ModelStore()
    store.add(folders)
    return store


def test_nothing_happens_while_nothing_changes(model_copy: Path) -> None:
    store = shelf_of(model_copy)
    before = store.model(None)
    (outcome,) = store.reload()
    assert (outcome.changed, outcome.refused) == (False, None)
    assert store.model(None) is before


def test_a_new_model_takes_over_and_the_old_one_still_answers_who_holds_it(model_copy: Path) -> None:
    store = shelf_of(model_copy)
    old = store.model(None)
    another(model_copy).save(model_copy, overwrite=True)
    (outcome,) = store.reload()
    new = store.model(None)
    assert outcome.changed
    assert (outcome.version, new.network) == (new.version, "gru4rec")
    assert new.version != old.version
    question = RecommendRequest(history=["001"], k=30, filter_seen=False)
    (first,), (second,) = old.answer([question]), new.answer([question])
    assert (first.version, second.version) == (old.version, new.version)
    assert first.items != second.items


@pytest.mark.parametrize(
    "damage", ["weights cut", "manifest gone", "folder gone", "not JSON", "one file of another", "no file"]
)
def test_a_bad_model_is_refused_and_the_old_one_stays(damage: str, model_copy: Path) -> None:
    store = shelf_of(model_copy)
    old, weights = store.model(None), model_copy / "model.safetensors"
    if damage == "weights cut":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "manifest gone":
        (model_copy / "manifest.json").unlink()
    elif damage == "folder gone":
        shutil.rmtree(model_copy)
    elif damage == "not JSON":
        (model_copy / "manifest.json").write_text("{")
    elif damage == "no file":
        (model_copy / "manifest.json").unlink()
        (model_copy / "manifest.json").mkdir()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    (outcome,) = store.reload()
    assert outcome.refused
    assert store.model(None) is old
    assert old.answer([RecommendRequest(history=["001"])])[0].items
    assert not store.reload()[0].refused, "what was refused is not tried again until it changes"


def test_a_dial_is_shown_with_the_model_it_was_measured_on_alone(model_copy: Path) -> None:
    store, points = shelf_of(model_copy), [{"novelty": 0.0, "recall": 0.5, "coverage": 0.1}]
    assert store.model(None).dial == []
    write_dial(model_copy, points)
    assert not store.reload()[0].changed
    assert store.model(None).dial == points
    kept, new = (model_copy / "dial.json").read_bytes(), another(model_copy)
    new.save(model_copy, overwrite=True)
    (model_copy / "dial.json").write_bytes(kept)
    assert store.reload()[0].changed
    assert store.model(None).dial == []


def test_a_folder_that_is_mended_is_taken_up(model_copy: Path) -> None:
    """Files arrive one by one: what does not fit yet is refused, and looked at again when the next one is there."""
    store = shelf_of(model_copy)
    arriving = model_copy.parent / "arriving"
    another(model_copy).save(arriving)
    names = ["manifest.json", *(path.name for path in arriving.iterdir() if path.name != "manifest.json")]
    outcomes = []
    for name in names:
        shutil.copy(arriving / name, model_copy / name)
        os.utime(model_copy / name)
        outcomes += store.reload()
    assert outcomes[0].refused
    assert outcomes[-1].refused is None
    assert store.model(None).network == "gru4rec"


def test_the_path_reload_says_what_came_of_it(model_copy: Path) -> None:
    store = shelf_of(model_copy)
    with asking(store, Settings(watch=None)) as client:
        told = client.post("/reload")
        assert (told.status_code, told.json()["models"][0]["changed"]) == (200, False)
        (model_copy / "items.parquet").unlink()
        told = client.post("/reload")
        assert told.status_code == 409
        assert "items.parquet: a file of the model is missing" in told.json()["error"]
        assert client.post("/v1/recommend", json={"history": ["001"]}).status_code == 200
        metrics = client.get("/metrics").text
        assert 'unveil_reloads_total{model="model",outcome="refused"} 1.0' in metrics


def test_two_models_are_told_apart(model_copy: Path, finished: Finished) -> None:
    store = shelf_of(model_copy, finished.folder)
    assert list(store.models) == ["model", "run"]
    assert store.model("run").folder == finished.folder
    with asking(store, Settings(watch=None)) as client:
        questions = [{"model": "run"}, {"model": "model"}, {"model": "run"}]
        answers = client.post("/v1/recommend/batch", json={"questions": questions}).json()["answers"]
        assert [answer["model"] for answer in answers] == ["run", "model", "run"]


def test_a_network_of_another_package_is_served_in_torch(model_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = RecommendRequest(history=["001", "002"], k=5)
    (expected,) = shelf_of(model_copy).model(None).answer([question])
    monkeypatch.delitem(_WRITERS, "sasrec")
    served = shelf_of(model_copy).model(None)
    assert isinstance(served.recommender.model, Backbone)
    (answer,) = served.answer([question])
    assert [item.item_id for item in answer.items] == [item.item_id for item in expected.items]


def test_names_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServedModel, "load", lambda name, folder, info: name)
    store = shelf_of(Path("a/run"), Path("b/run"), Path("run-2"), Path("c/run/"))
    assert list(store.models) == ["run", "run-2", "run-2-2", "run-3"]


def test_a_folder_that_is_none_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="not the folder of a trained model"):
        shelf_of(tmp_path)
    assert len(set(signature(tmp_path))) == 1
