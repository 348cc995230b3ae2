import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from tests.run_folders import Finished, content, experiment_on, write_log
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.evaluation.result import Evaluation, compare
from unveil.models.base import Model
from unveil.models.baselines import fitted
from unveil.models.blend import Blend
from unveil.models.causal import SASRec
from unveil.runs import run_folder
from unveil.runs.config import Experiment
from unveil.runs.train import evaluate, prepared, run
from unveil.serving.recommender import Recommender
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.training.fit import prepare

FILES = {
    "README.md",
    "about.json",
    "cases.parquet",
    "cases.safetensors",
    "checkpoint.safetensors",
    "config.json",
    "exposure.safetensors",
    "histories.safetensors",
    "items.parquet",
    "manifest.json",
    "metrics.json",
    "model.safetensors",
    "negatives.safetensors",
    "training.jsonl",
    "users.parquet",
}

SPEC = WorldSpec(users=120, items=150, steps=20, tail=0.1)


def silent(_: str) -> None:
    pass


@pytest.fixture
def copy(finished: Finished, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder, tmp_path / "copy"))


def test_the_folder_holds_what_it_says(finished: Finished) -> None:
    assert set(content(finished.folder)) == FILES
    told = (Path(__file__).parents[2] / "docs" / "commands" / "train.md").read_text(encoding="utf-8")
    assert all(name in told for name in FILES)
    assert run_folder.read_config(finished.folder) == finished.run.experiment
    lines = [json.loads(line) for line in (finished.folder / "training.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[0]["validation"]["NDCG@10"] > 0
    about = json.loads((finished.folder / "about.json").read_text())
    assert about["versions"].keys() >= {"unveil", "python", "torch", "numpy", "polars"}
    assert (about["propensity"], about["by_proxy"]) == ("popularity-temporal", True)


def test_what_is_said_before_training(finished: Finished) -> None:
    said = "\n".join(finished.told)
    for part in (
        "events, 40 users, 30 items",
        "leave-one-out",
        "itps, weighted by popularity-temporal",
        "targets, effective sample size",
        "warning: popularity stands in for exposure",
        "parameters, on cpu",
    ):
        assert part in said


def test_judged_again_it_is_judged_the_same(finished: Finished, copy: Path) -> None:
    before = content(copy)
    evaluation = evaluate(copy)
    assert content(copy) == before
    assert evaluation.summary.equals(finished.run.evaluation.summary)
    (copy / "metrics.json").unlink()
    (copy / "cases.parquet").unlink()
    again = evaluate(copy)  # what was beside it is not known any more
    assert again.summary.equals(evaluation.summary)
    assert {name: each for name, each in content(copy).items() if name != "metrics.json"} == {
        name: each for name, each in before.items() if name != "metrics.json"
    }


def test_a_refit_is_a_training_on_all_events_as_long_as_the_best(finished: Finished, tmp_path: Path) -> None:
    """What is served is that; what is evaluated, now and again, is the network that has not seen the test events."""
    experiment = experiment_on(finished.log, {"training.refit": True, "task.windows": True})
    done = run(experiment, tmp_path / "run", tell=silent)
    plain_run = run(experiment.changed({"training.refit": False}), tmp_path / "plain", tell=silent)
    assert done.evaluation.summary.equals(plain_run.evaluation.summary)
    assert evaluate(tmp_path / "run").summary.equals(done.evaluation.summary)
    weights = {name: load_file(tmp_path / "run" / f"{name}.safetensors") for name in ("model", "evaluated")}
    alone = load_file(tmp_path / "plain" / "model.safetensors")
    assert all(torch.equal(alone[name], weights["evaluated"][name]) for name in alone)
    found = prepared(experiment, silent)
    trainer = prepare(found.split.whole, experiment.recipe, log=found.log)
    assert done.fitted.best is not None
    trainer.fit(None, last=done.fitted.best.epoch)
    assert len(trainer.task.recent) == len(found.log)
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, weights["model"][name]), name
    assert any(not torch.equal(weights["model"][name], weights["evaluated"][name]) for name in alone)
    served, judged = (Recommender.load(tmp_path / "run", evaluated=each) for each in (False, True))
    assert isinstance(served.model, SASRec)
    assert isinstance(judged.model, SASRec)
    assert torch.equal(served.model.item.weight, weights["model"]["item.weight"])
    assert torch.equal(judged.model.item.weight, weights["evaluated"]["item.weight"])


def test_a_blend_is_evaluated_and_fitted_again_with_the_same_shares(finished: Finished, tmp_path: Path) -> None:
    """What the folder serves is the blend of its parts, each fitted on all events; or a part, if it validates best."""
    experiment = experiment_on(finished.log, {"training.refit": True, "training.blend": True})
    said = list[str]()
    done = run(experiment, tmp_path / "run", tell=said.append)
    (line,) = [each for each in said if each.startswith("blend ")]
    assert evaluate(tmp_path / "run").summary.equals(done.evaluation.summary)
    values = {
        name: float(value)
        for name, value in re.findall(r"([\w-]+) (0\.\d{4})(?:,|$)", line.partition("validation:")[2])
    }
    judged, served = done.recommender.model, Recommender.load(tmp_path / "run").model
    assert isinstance(judged, Model)
    assert isinstance(served, Model)
    assert {"blend", "sasrec", "ease", "item-knn", "markov", "popularity"} == values.keys()
    assert values[judged.name] == max(values.values())
    assert type(served) is type(judged)
    before, after = judged.state_dict(), served.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    if isinstance(judged, Blend):
        assert torch.equal(before["share_P"], after["share_P"])
    whole = fitted("ease", done.recommender.sequences)
    own = [part for part in getattr(served, "models", [served]) if part.name == "ease"]
    assert all(torch.equal(part.weight, whole.state_dict()["weight"]) for part in own)


def test_the_split_comes_back(finished: Finished) -> None:
    split = finished.run.experiment.data.parts(finished.run.experiment.data.load())
    again = run_folder.read_split(finished.folder, split.whole)
    assert (again.rule, again.train_only) == (split.rule, split.train_only)
    assert np.array_equal(again.train.item_N, split.train.item_N)
    for part in ("valid", "test"):
        asked, kept = getattr(split, part), getattr(again, part)
        for name in ("user_C", "item_C", "step_C", "seen_C"):
            assert np.array_equal(getattr(asked, name), getattr(kept, name))
        assert kept.event_C is None, "a folder keeps what is asked, and no rows of a log that it has not"


def test_the_loaded_recommender_says_what_the_trained_model_says(finished: Finished) -> None:
    trained, loaded = finished.run.recommender, Recommender.load(finished.folder)
    assert loaded.recommend().frame.equals(trained.recommend().frame)
    histories = [["001", "002"], ["007"], []]
    assert loaded.recommend_for(histories).frame.equals(trained.recommend_for(histories).frame)


def test_the_same_again_is_the_same_and_another_seed_is_not(finished: Finished, tmp_path: Path) -> None:
    again = run(finished.run.experiment, tmp_path / "again", tell=silent)
    assert (again.folder / "metrics.json").read_bytes() == (finished.folder / "metrics.json").read_bytes()
    assert (again.folder / "model.safetensors").read_bytes() == (finished.folder / "model.safetensors").read_bytes()
    other = run(
        experiment_on(finished.log, {"estimator.name": "itps", "training.seed": 1}), tmp_path / "b", tell=silent
    )
    mine, theirs = (load_file(path / "model.safetensors")["item.weight"] for path in (again.folder, other.folder))
    assert not torch.equal(mine, theirs)
    comparison = compare({"a": Evaluation.read(again.folder), "b": Evaluation.read(other.folder)})
    assert set(comparison.table["model"]) == {"a", "b"}


def test_a_finished_run_resumes_to_the_same_files(finished: Finished, copy: Path) -> None:
    before, told = content(copy), list[str]()
    again = run(finished.run.experiment, copy, resume=True, tell=told.append)
    assert content(copy) == before
    assert told[-1] == "finished   nothing is left to do: this is what the run gave"
    assert again.fitted == finished.run.fitted
    assert again.evaluation.summary.equals(finished.run.evaluation.summary)
    assert again.recommender.recommend().frame.equals(finished.run.recommender.recommend().frame)


def test_where_and_how_often_may_change_on_resumption(finished: Finished, copy: Path) -> None:
    elsewhere = shutil.copy(finished.log, copy.parent / "moved.csv")
    changes = {"estimator.name": "itps", "training.checkpoint_minutes": 1}
    run(experiment_on(Path(elsewhere), changes), copy, resume=True, tell=silent)
    assert (copy / "metrics.json").read_bytes() == (finished.folder / "metrics.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"training.lr": 0.5}, r"training\.lr = 0\.003, and now it is 0\.5\."),
        ({"model.width": 16}, r"model\.width = 8, and now it is 16\."),
        ({"estimator.name": "ips"}, r"estimator\.name = itps, and now it is ips\."),
        ({"estimator.clip": 0.1}, r"estimator\.clip = nothing, and now it is 0\.1\."),
        ({"propensity.add": 1.0}, r"propensity\.add"),
        ({"data.min_item": 1}, r"data\.min_item"),
        ({"evaluation.seed": 1}, r"evaluation\.seed"),
    ],
)
def test_other_settings_are_refused_by_name_and_nothing_is_touched(
    changes: dict[str, Any], name: str, finished: Finished, copy: Path
) -> None:
    before = content(copy)
    with pytest.raises(UnveilError, match=f"the run began with {name}"):
        run(experiment_on(finished.log, {"estimator.name": "itps", **changes}), copy, resume=True, tell=silent)
    assert content(copy) == before


def test_another_log_is_refused_and_nothing_is_touched(copy: Path, tmp_path: Path) -> None:
    before, other = content(copy), write_log(tmp_path / "other.csv", seed=9)
    with pytest.raises(UnveilError, match="the run began with another log"):
        run(experiment_on(other, {"estimator.name": "itps"}), copy, resume=True, tell=silent)
    assert content(copy) == before


def test_an_occupied_folder_is_refused_and_nothing_is_touched(finished: Finished, copy: Path, tmp_path: Path) -> None:
    before = content(copy)
    with pytest.raises(UnveilError, match=r"the output folder is not empty\. Name another; or,.* pass --resume"):
        run(finished.run.experiment, copy, tell=silent)
    assert content(copy) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UnveilError, match="the output folder is not empty"):
        run(finished.run.experiment, tmp_path / "mine", resume=True, tell=silent)
    assert content(tmp_path / "mine") == {"letter.txt": b"dear"}


def test_to_resume_what_never_began_is_to_start(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".config.json.0123abcd-99-x.part").touch()  # killed in the first draft, on another machine
    for place in ("nowhere", "new"):
        run(finished.run.experiment, tmp_path / place, resume=True, tell=silent)
        assert (tmp_path / place / "metrics.json").read_bytes() == (finished.folder / "metrics.json").read_bytes()


@pytest.mark.parametrize("left", [set(), {"config.json"}, {"config.json", "about.json"}])
def test_a_run_that_died_before_its_first_epoch_starts_anew(left: set[str], finished: Finished, copy: Path) -> None:
    before = content(copy)
    for name in FILES - left:
        (copy / name).unlink()
    run(finished.run.experiment, copy, resume=True, tell=silent)
    again = content(copy)
    assert again.keys() == before.keys()
    assert again["model.safetensors"] == before["model.safetensors"]
    assert again["metrics.json"] == before["metrics.json"]


class TestNegatives:
    """A hundred where there are a hundred; fewer, and said so, where there are not; what was asked for, or an error."""

    def test_a_small_catalogue_gives_fewer(self, finished: Finished) -> None:
        found = finished.run.experiment.evaluation.uniform
        popular = finished.run.experiment.evaluation.popular
        assert found == 30 - 11  # the longest history has ten items before its test item
        assert popular is not None
        assert 0 < popular <= found
        protocols = set(finished.run.evaluation.summary["protocol"])
        assert protocols == {"full", f"uniform-{found}", f"popular-{popular}", "lists"}
        assert any(f"{found} uniform ones instead of 100" in line for line in finished.told)

    def test_a_number_that_was_asked_for_and_cannot_be_drawn_is_an_error(
        self, finished: Finished, tmp_path: Path
    ) -> None:
        with pytest.raises(UnveilError, match="more negatives than items"):
            run(experiment_on(finished.log, {"evaluation.uniform": 25}), tmp_path / "run", tell=silent)
        assert not (tmp_path / "run").exists()

    def test_a_number_that_was_asked_for_is_drawn_and_nothing_is_said(self, finished: Finished, tmp_path: Path) -> None:
        told: list[str] = []
        asked = {"evaluation.uniform": 5, "evaluation.popular": 0, "training.epochs": 1}
        done = run(experiment_on(finished.log, asked), tmp_path / "run", tell=told.append)
        assert set(done.evaluation.summary["protocol"]) == {"full", "uniform-5", "lists"}
        assert not any("instead of" in line for line in told)

    def test_a_large_catalogue_gives_a_hundred(self, world_log: tuple[World, Path], tmp_path: Path) -> None:
        done = run(experiment_on(world_log[1], {"training.epochs": 1}), tmp_path / "run", tell=silent)
        assert (done.experiment.evaluation.uniform, done.experiment.evaluation.popular) == (100, 100)

    def test_fewer_items_than_places_are_refused_before_training(self, tmp_path: Path) -> None:
        rows = [(f"u{user}", f"i{(user + place) % 6}", place) for user in range(8) for place in range(5)]
        frame = pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")
        frame.write_csv(tmp_path / "six.csv")
        with pytest.raises(UnveilError, match="the catalogue is too small: found '6 items', expected at least 10"):
            run(experiment_on(tmp_path / "six.csv"), tmp_path / "run", tell=silent)
        assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def world_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A small world, saved, and a log drawn from it; all of its items occur."""
    place = tmp_path_factory.mktemp("world")
    world = World.builtin(SPEC, seed=3)
    world.save(place / "world")
    write(world.log(np.random.default_rng(0)), place / "log.csv")
    return world, place / "log.csv"


class TestWorlds:
    """The truth is used where it is given, and refused where it is another's."""

    @pytest.mark.parametrize(
        ("name", "propensity"), [("ips", "known-static"), ("itps", "known-temporal"), ("ideal", None)]
    )
    def test_a_world_gives_the_truth(
        self, name: str, propensity: str | None, world_log: tuple[World, Path], tmp_path: Path
    ) -> None:
        told: list[str] = []
        changes = {"estimator.name": name, "data.world": str(world_log[1].parent / "world"), "training.epochs": 1}
        run(experiment_on(world_log[1], changes), tmp_path / "run", tell=told.append)
        about = json.loads((tmp_path / "run" / "about.json").read_text())
        assert (about["propensity"], about["by_proxy"]) == (propensity, False)
        assert not any("stands in for exposure" in line for line in told)
        assert "proxy" not in (tmp_path / "run" / "README.md").read_text()

    def test_popularity_is_a_proxy_even_where_there_is_a_world(
        self, world_log: tuple[World, Path], tmp_path: Path
    ) -> None:
        told: list[str] = []
        changes = {
            "estimator.name": "ips",
            "propensity.name": "popularity-static",
            "data.world": str(world_log[1].parent / "world"),
            "training.epochs": 1,
        }
        run(experiment_on(world_log[1], changes), tmp_path / "run", tell=told.append)
        assert any("stands in for exposure" in line for line in told)
        assert "proxy" in (tmp_path / "run" / "README.md").read_text()

    @pytest.mark.parametrize(
        ("other", "seed", "why"),
        [
            (SPEC, 4, "its propensities are not the exposure of this world"),
            (replace(SPEC, steps=10), 3, "it has a step 19, and the world's last is 9"),
            (replace(SPEC, items=90), 3, "its item 'i0...' is not in the world"),
            (replace(SPEC, users=90), 3, "its user 'u0...' is not in the world"),
        ],
    )
    def test_another_world_does_not_fit(
        self, other: WorldSpec, seed: int, why: str, world_log: tuple[World, Path], tmp_path: Path
    ) -> None:
        World.builtin(other, seed).save(tmp_path / "other")
        changes = {"estimator.name": "ideal", "data.world": str(tmp_path / "other")}
        with pytest.raises(UnveilError, match=f"the log does not fit the world: {why}"):
            run(experiment_on(world_log[1], changes), tmp_path / "run", tell=silent)
        assert not (tmp_path / "run").exists()

    def test_a_run_goes_on_in_its_own_world_only(self, world_log: tuple[World, Path], tmp_path: Path) -> None:
        """A log that says nothing of its exposure fits many worlds."""
        log, own, other = tmp_path / "log.csv", world_log[1].parent / "world", tmp_path / "other"
        pl.read_csv(world_log[1]).drop("propensity").write_csv(log)
        World.builtin(SPEC, seed=4).save(other)
        changes = {"estimator.name": "ideal", "training.epochs": 1}
        run(experiment_on(log, {**changes, "data.world": str(own)}), tmp_path / "run", tell=silent)
        before = content(tmp_path / "run")
        with pytest.raises(UnveilError, match="the run began with another world"):
            run(experiment_on(log, {**changes, "data.world": str(other)}), tmp_path / "run", resume=True, tell=silent)
        assert content(tmp_path / "run") == before

    def test_a_log_without_steps_does_not_fit(self, world_log: tuple[World, Path], tmp_path: Path) -> None:
        pl.read_csv(world_log[1]).select("user_id", "item_id", "timestamp").write_csv(tmp_path / "log.csv")
        changes = {"estimator.name": "ideal", "data.world": str(world_log[1].parent / "world")}
        with pytest.raises(UnveilError, match="does not say at which step"):
            run(experiment_on(tmp_path / "log.csv", changes), tmp_path / "run", tell=silent)


def test_the_ranking_that_validates_is_the_one_that_is_named(finished: Finished, tmp_path: Path) -> None:
    changes = {"evaluation.validation": "uniform-5", "training.monitor": "Recall@5", "training.epochs": 1}
    done = run(experiment_on(finished.log, changes), tmp_path / "run", tell=silent)
    assert done.fitted.best is not None
    assert done.fitted.epochs[0].validation == {"Recall@5": done.fitted.best.value}
    assert done.fitted.best.value > 0.3  # of six candidates five make the list


def test_a_temporal_split(finished: Finished, tmp_path: Path) -> None:
    changes = {"data.split": "temporal", "data.valid_from": 0.6, "data.targets": "all", "training.epochs": 1}
    done = run(experiment_on(finished.log, changes), tmp_path / "run", tell=silent)
    assert len(done.evaluation.frame) > done.evaluation.summary["n"][0]
    before = content(tmp_path / "run")
    evaluate(tmp_path / "run")
    assert content(tmp_path / "run") == before


def test_a_password_is_not_written(finished: Finished, tmp_path: Path) -> None:
    found = prepared(finished.run.experiment, lambda _: None)
    secret = replace(found.experiment.data, log="postgresql://me:hunter2@host/db", query="SELECT 1")
    run_folder.begin(tmp_path, replace(found, experiment=replace(found.experiment, data=secret)), workers=1)
    written = (tmp_path / "config.json").read_text()
    assert "postgresql://me:***@host/db" in written
    assert "hunter2" not in written


@pytest.mark.parametrize("name", ["cases.safetensors", "negatives.safetensors"])
@pytest.mark.parametrize("damage", ["gone", "cut", "text"])
def test_damaged_cases_are_told(name: str, damage: str, copy: Path) -> None:
    before = (copy / "metrics.json").read_bytes()
    if damage == "gone":
        (copy / name).unlink()
    else:
        (copy / name).write_bytes((copy / name).read_bytes()[:100] if damage == "cut" else b"hello")
    with pytest.raises(UnveilError, match=name):
        evaluate(copy)
    assert (copy / "metrics.json").read_bytes() == before


def test_negatives_of_other_cases_are_told(finished: Finished, copy: Path, tmp_path: Path) -> None:
    other = run(
        experiment_on(write_log(tmp_path / "o.csv", seed=5), {"training.epochs": 1}), tmp_path / "o", tell=silent
    )
    shutil.copy(other.folder / "negatives.safetensors", copy)
    with pytest.raises(UnveilError, match="belong to other cases"):
        evaluate(copy)


def test_a_damaged_config_is_told(copy: Path) -> None:
    (copy / "config.json").write_text('{"model": 3}')
    with pytest.raises(UnveilError, match=r"config\.json, model: not a valid value"):
        run_folder.read_config(copy)
    (copy / "config.json").write_text("[")
    with pytest.raises(UnveilError, match=r"config\.json: cannot be read"):
        run_folder.read_config(copy)


def test_a_run_goes_on_with_a_newer_log(finished: Finished, tmp_path: Path) -> None:
    """Items that both logs have begin with the weights they had, new ones as they would; without epochs that is all."""
    frame = pl.read_csv(finished.log, schema_overrides={"user_id": pl.String, "item_id": pl.String})
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    frame.filter(pl.col("item_id") != "003").write_csv(old)
    frame.filter(pl.col("item_id") != "005").write_csv(new)
    before = run(experiment_on(old), tmp_path / "before", tell=silent)
    said = list[str]()
    changes = {"training.start": str(tmp_path / "before"), "training.lr": 1e-12}
    run(experiment_on(new, changes), tmp_path / "after", tell=said.append)
    assert f"from       {tmp_path / 'before'}: 28 items known, 1 new, 1 gone" in said
    one, other = (Recommender.load(tmp_path / name) for name in ("before", "after"))
    weights = [dict(each.model.named_parameters()) for each in (one, other) if isinstance(each.model, SASRec)]
    common = sorted(set(one.items.ids) & set(other.items.ids))
    place = [torch.from_numpy(each.items.index(common)).long() for each in (one, other)]
    for name in ("item.weight", "bias"):
        assert torch.allclose(weights[0][name][place[0]], weights[1][name][place[1]], atol=1e-6)
        if name == "item.weight":  # PAD and MASK
            assert torch.allclose(weights[0][name][-2:], weights[1][name][-2:], atol=1e-6)
    for name in weights[0].keys() - {"item.weight", "bias"}:
        assert torch.allclose(weights[0][name], weights[1][name], atol=1e-6)
    fresh, place_of_new = SASRec(before.experiment.model, len(other.items), seed=0), other.items.find("003")
    assert torch.allclose(weights[1]["item.weight"][place_of_new], fresh.item.weight[place_of_new], atol=1e-6)


def test_what_is_evaluated_goes_on_from_what_has_not_seen_the_test(finished: Finished, tmp_path: Path) -> None:
    """And what is served from what was served."""
    refitted = {"training.refit": True, "task.windows": True}
    run(experiment_on(finished.log, refitted), tmp_path / "before", tell=silent)
    changes = {**refitted, "training.start": str(tmp_path / "before"), "training.lr": 1e-12, "training.epochs": 1}
    run(experiment_on(finished.log, changes), tmp_path / "after", tell=silent)
    for name in ("model", "evaluated"):
        before, after = (load_file(tmp_path / folder / f"{name}.safetensors") for folder in ("before", "after"))
        assert all(torch.allclose(before[each], after[each], atol=1e-6) for each in before)
    served, judged = (load_file(tmp_path / "after" / f"{name}.safetensors") for name in ("model", "evaluated"))
    assert not torch.allclose(served["item.weight"], judged["item.weight"])


def test_a_run_to_go_on_from_that_does_not_fit(finished: Finished, tmp_path: Path) -> None:
    start = {"training.start": str(finished.folder)}
    with pytest.raises(UnveilError, match=r"model\.width: the network to go on .* another form: found '8, and now 16'"):
        run(experiment_on(finished.log, {**start, "model.width": 16}), tmp_path / "run", tell=silent)
    popular = Experiment.of("quick", {"data.log": str(finished.log), "model.name": "popularity"})
    run(popular, tmp_path / "popular", tell=silent)
    with pytest.raises(UnveilError, match="no network to go on from: found 'popularity'"):
        run(experiment_on(finished.log, {"training.start": str(tmp_path / "popular")}), tmp_path / "run", tell=silent)
    assert not (tmp_path / "run").exists()
