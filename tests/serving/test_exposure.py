import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from torch import Tensor

from tests.estimators.toys import Toy, random_world
from tests.evaluation.small import histories_of
from tests.run_folders import Finished, content, experiment_on, small_frame, write_log
from tests.serving.test_recommender import ByLength
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.known import KnownStatic, KnownTemporal, Logged
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity
from unveil.runs.train import run
from unveil.serving.exposure import ExposureTable, exposure_table, next_steps
from unveil.serving.recommendations import ListRequest, recommendations
from unveil.serving.recommender import Recommender

TOY = Toy.drawn(random_world(users=30))
WHOLE = Sequences.of(TOY.log)
TABLE = ExposureTable("x", "", np.array([2, 8]), np.array([[0.1, 0.2], [0.3, np.nan]], np.float32))


def test_a_step_is_read_at_the_nearest_one_and_a_stranger_at_the_last() -> None:
    assert TABLE.at(0).tolist() == TABLE.at(4).tolist() == TABLE.theta_SV[0].tolist()
    assert [TABLE.at(step)[0] for step in (6, 20, None)] == [np.float32(0.3)] * 3
    assert TABLE.now().at(0)[0] == np.float32(0.3)
    assert [TABLE.source, replace(TABLE, over="users").source] == ["x", "x, mean over users"]


def test_where_nothing_is_known_popularity_is_given_and_named() -> None:
    ids, sequences = Vocabulary("ab"), histories_of([0, 0, 1, 0], n_items=2)
    recommender = Recommender(ByLength(2), ids, Vocabulary("u"), sequences, 5)
    both = np.array([1, 0])
    assert recommender.propensities(both) == [(0.25, "popularity"), (0.75, "popularity")]
    recommender = replace(recommender, exposure=TABLE)
    assert recommender.propensities(both) == [(0.25, "popularity"), (float(np.float32(0.3)), "x")]
    assert recommender.propensities(both, 0) == [(float(np.float32(0.2)), "x"), (float(np.float32(0.1)), "x")]
    assert recommender.propensities(both[:0], 0) == []


def test_next_steps_by_hand() -> None:
    sequences = histories_of([0, 1, 2, 3], [0], [], [1, 2], n_items=4)
    assert next_steps(sequences, np.array([3, 0, 1, 2])).tolist() == [2, 3, 1, 3]


def test_static_popularity_is_the_same_for_all() -> None:
    table = exposure_table(StaticPopularity().fit(TOY.train), WHOLE, TOY.train)
    assert table is not None
    assert (table.source, table.theta_SV.shape) == ("popularity-static", (1, 7))
    count_V = np.maximum(TOY.train.count_V, TOY.train.count_V[TOY.train.count_V > 0].min())
    np.testing.assert_allclose(table.at(None), count_V / len(TOY.train), rtol=1e-6)


def test_a_temporal_one_is_given_at_each_step_that_comes_next() -> None:
    table = exposure_table(model := TemporalPopularity().fit(TOY.train), WHOLE, TOY.train)
    assert table is not None
    last_U = [int(WHOLE.step_N[stop - 1]) for stop in WHOLE.offset_U1[1:] if stop]
    assert table.step_S.tolist() == sorted({min(step + 1, WHOLE.n_steps - 1) for step in last_U})
    assert table.source == "popularity-temporal"
    for row, step in enumerate(table.step_S):
        slots = replace(TOY.slots.part(0, 1), step_M=TOY.slots.step_M[:1] * 0 + int(step))
        np.testing.assert_array_equal(table.theta_SV[row], model.of_all(slots)[0].numpy())


@pytest.mark.parametrize("kind", ["static", "temporal"])
def test_a_personal_one_is_the_mean_over_those_whose_step_it_is(kind: str) -> None:
    model = KnownStatic(TOY.world) if kind == "static" else KnownTemporal(TOY.world)
    table = exposure_table(model.fit(TOY.train), WHOLE, TOY.train)
    assert table is not None
    assert table.source == f"known-{kind}, mean over users"
    user_U, step_U = np.arange(30), next_steps(WHOLE, np.arange(30))
    theta_UV = TOY.world.static_exposure(user_U) if kind == "static" else TOY.world.exposure(user_U, step_U)
    for row, step in enumerate(table.step_S):
        among = user_U if kind == "static" else user_U[step_U == step]
        np.testing.assert_allclose(table.theta_SV[row], theta_UV[among].mean(0), rtol=1e-5)


def test_a_table_of_too_many_steps_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.serving.exposure._CELLS", 2 * 7)
    table = exposure_table(KnownTemporal(TOY.world), WHOLE, TOY.train)
    step_U = next_steps(WHOLE, np.arange(30))
    assert table is not None
    assert table.step_S.tolist() == [step_U.min(), step_U.max()]


def test_what_the_log_recorded_is_the_mean_over_the_items_events() -> None:
    train = histories_of([0, 1, 0], [1, 0], n_items=3)
    table = exposure_table(Logged(np.array([0.2, 0.5, 0.4, 1.0, 0.6])).fit(train), train, train)
    assert table is not None
    assert table.source == "logged, mean over events"
    np.testing.assert_allclose(table.at(5), [0.4, 0.75, np.nan], rtol=1e-6)


class Unwilling(StaticPopularity):
    """A propensity of another package that does only what training asks of it."""

    def of_all(self, slots: Slots) -> Tensor:
        raise NotImplementedError

    def __call__(self, slots: Slots) -> Tensor:
        if len(slots) > self.most:
            raise UnveilError("only a few at a time")
        return super().__call__(slots)

    most = 10**9


def test_a_propensity_of_events_alone_is_asked_about_them_and_one_of_nothing_else_has_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Unwilling().fit(TOY.train)
    table = exposure_table(model, WHOLE, TOY.train)
    assert table is not None
    taken = TOY.train.count_V > 0
    np.testing.assert_allclose(table.at(None)[taken], TOY.train.count_V[taken] / len(TOY.train), rtol=1e-5)
    monkeypatch.setattr(Unwilling, "most", 3)
    assert exposure_table(model, WHOLE, TOY.train) is None


def test_without_a_propensity_there_is_no_table() -> None:
    assert exposure_table(None, WHOLE, TOY.train) is None


def test_a_run_keeps_its_propensity_and_lists_give_it(finished: Finished) -> None:
    assert Recommender.load(finished.folder).exposure is not None
    frame = recommendations(finished.folder, ListRequest(k=3, reasons=1)).frame
    assert set(frame["propensity_source"]) == {"popularity-temporal"}
    table = finished.run.recommender.exposure
    assert table is not None
    expected = table.at(None)[finished.run.recommender.items.index(frame["item_id"])]  # all histories end together
    np.testing.assert_array_equal(frame["propensity"].to_numpy(), expected.astype(float))


def test_logged_propensities_of_a_run_are_given_by_item(tmp_path: Path) -> None:
    frame = small_frame()
    theta = np.random.default_rng(0).uniform(0.1, 0.9, len(frame)).round(3)
    frame.with_columns(propensity=theta).write_csv(tmp_path / "log.csv")
    changes = {"estimator.name": "itps", "propensity.name": "logged", "training.epochs": 1}
    made = run(experiment_on(tmp_path / "log.csv", changes), tmp_path / "run", tell=lambda _: None)
    listed = recommendations(made.folder, ListRequest(history="001,002", k=5, reasons=1)).frame
    by_item: dict[str, list[float]] = {}
    log = Interactions.read(tmp_path / "log.csv")
    split = experiment_on(tmp_path / "log.csv", changes).data.parts(log)
    for event in split.train.event_N:
        by_item.setdefault(log.items[int(log.item[event])], []).append(float(theta[event]))
    for row in listed.iter_rows(named=True):
        assert row["propensity_source"] == "logged, mean over events"
        assert row["propensity"] == pytest.approx(np.mean(by_item[row["item_id"]]), rel=1e-5)


def test_a_run_without_a_propensity_gives_popularity(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv")
    made = run(experiment_on(log, {"training.epochs": 1}), tmp_path / "run", tell=lambda _: None)
    assert "exposure.safetensors" not in content(made.folder)
    frame = recommendations(made.folder, ListRequest(history="001", k=4, reasons=1)).frame
    assert set(frame["propensity_source"]) == {"popularity"}
    assert frame["propensity"].equals(frame["popularity"].rename("propensity"))


def test_a_folder_of_an_earlier_version_still_loads(finished: Finished, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished.folder, tmp_path / "old"))
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]["exposure.safetensors"], manifest["seal"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert Recommender.load(folder).exposure is None  # a file that the manifest does not know is not looked at
    assert set(recommendations(folder, ListRequest(history="001", k=2, reasons=1)).frame["propensity_source"]) == {
        "popularity"
    }


def test_a_table_of_other_items_is_told(finished: Finished, tmp_path: Path) -> None:
    finished.run.recommender.save(folder := tmp_path / "model")
    loaded = Recommender.load(folder)
    assert loaded.exposure is not None
    replace(loaded, exposure=replace(loaded.exposure, theta_SV=loaded.exposure.theta_SV[:, 1:])).save(tmp_path / "bad")
    assert load_file(tmp_path / "bad" / "exposure.safetensors")["theta_SV"].shape[1] == len(loaded.items) - 1
    with pytest.raises(UnveilError, match=r"does not hold together: exposure\.safetensors is of other items"):
        Recommender.load(tmp_path / "bad")
    assert sha256((folder / "exposure.safetensors").read_bytes()).hexdigest() in (folder / "manifest.json").read_text()


def test_another_logs_histories_are_at_the_last_step(finished: Finished) -> None:
    recommender = finished.run.recommender
    asked = replace(recommender, exposure=TABLE).with_histories(Interactions.read(finished.log))
    assert asked.exposure is not None
    assert asked.exposure.step_S.tolist() == [8]
