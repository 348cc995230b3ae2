from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.run_folders import Finished
from tests.serving.test_recommender import by_hand
from unveil.errors import UnveilError
from unveil.models.base import backbone
from unveil.serving import onnx_model
from unveil.serving.export import export_embeddings, export_onnx
from unveil.serving.onnx_model import servable
from unveil.serving.recommender import Recommender, network_of


@pytest.mark.parametrize("name", ["bert4rec", "sasrec", "gru4rec"])
def test_query_times_vector_is_the_score(name: str, finished: Finished, tmp_path: Path) -> None:
    old, kind = finished.run.recommender, backbone(name)
    model = kind(kind.Config(width=8, length=old.length), len(old.items), seed=3)
    recommender = Recommender(model.eval(), old.items, old.users, old.sequences, old.length)
    export_embeddings(recommender, tmp_path)
    items, queries = (pl.read_parquet(tmp_path / f"{kind}_vectors.parquet") for kind in ("item", "query"))
    assert items["item_id"].to_list() == old.items.ids.to_list()
    assert queries["user_id"].to_list() == old.users.ids.to_list()
    scores_UV = queries["vector"].to_numpy() @ items["vector"].to_numpy().T + items["bias"].to_numpy()
    lists = recommender.recommend(k=30, filter_seen=False).frame
    place = {item: v for v, item in enumerate(items["item_id"])}
    for user, part in enumerate(lists.partition_by("user_id", maintain_order=True)):
        order_V = [place[item] for item in part["item_id"]]
        np.testing.assert_allclose(part["score"], scores_UV[user][order_V], atol=1e-5)


def test_files_are_not_written_over(finished: Finished, tmp_path: Path) -> None:
    recommender = finished.run.recommender
    written = export_onnx(recommender, tmp_path / "model.onnx")
    assert "30 items" in written[tmp_path / "model.onnx"]
    with pytest.raises(UnveilError, match="the output is there already"):
        export_onnx(recommender, tmp_path / "model.onnx")
    before = (tmp_path / "model.onnx").read_bytes()
    export_onnx(recommender, tmp_path / "model.onnx", overwrite=True)
    assert (tmp_path / "model.onnx").read_bytes() == before


def test_a_network_that_no_onnx_file_can_hold_is_told_and_served_by_torch(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommender = finished.run.recommender
    weights = sum(tensor.nbytes for tensor in network_of(recommender).state_dict().values())
    monkeypatch.setattr(onnx_model, "LARGEST", weights // 2)
    with pytest.raises(
        UnveilError, match=r"too large for an ONNX file: found '0\.00 GiB of weights', expected less than"
    ):
        export_onnx(recommender, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    assert servable(recommender).model is recommender.model
    monkeypatch.undo()
    assert servable(recommender).model is not recommender.model


def test_what_is_no_network_is_not_exported(tmp_path: Path) -> None:
    for export in (export_onnx, export_embeddings):
        with pytest.raises(UnveilError, match="only a network or a baseline can be written: found 'ByLength'"):
            export(by_hand(), tmp_path / "out")
