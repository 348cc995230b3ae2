"""A question on a tiny world, from its fields to the files; and what is found wrong before any work is done."""

import csv
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.docs import ROOT
from tests.pages import faults
from tests.studies.small import CHANGES, NEGATIVES, tiny, tiny_world
from unveil.errors import UnveilError
from unveil.models.base import backbone
from unveil.models.bert4rec import BERT4RecConfig
from unveil.runs.workers import Inline
from unveil.simulation.world import World
from unveil.studies.arms import propensity_settings as propensity
from unveil.studies.cells import Store
from unveil.studies.engine import Answer, run, write
from unveil.studies.presets import PRESETS
from unveil.studies.results import STANDARD, TRUE
from unveil.studies.rq1 import RQ1
from unveil.studies.rq2 import RQ2
from unveil.studies.rq3 import RQ3
from unveil.studies.semisynthetic import cell_key, drawn_trial, world_folder
from unveil.studies.trial import TrialContext

COMMAND = ["unveil", "reproduce", "rq1", "-o", "a folder"]
ROW = {
    "estimator": str,
    "preset": str,
    "severity": float,
    "protocol": str,
    "evaluation": str,
    "metric": str,
    "k": int,
    "mean": float,
    "low": float,
    "high": float,
    "replicates": int,
    "worlds": int,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_world(tmp_path_factory.mktemp("world") / "tiny")


@pytest.fixture(scope="module")
def rq1(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    folder = tmp_path_factory.mktemp("rq1") / "run"
    found = run(tiny(RQ1, world), folder, Inline())
    write(found, folder, COMMAND)
    return found, folder


def test_arms_of_a_replicate_share_its_log_and_replicates_do_not(rq1: tuple[Answer, Path]) -> None:
    answer = rq1[0]
    logs = {arm: [r["log"]["fingerprint"] for r in answer.where(estimator=arm)] for arm in answer.results.arms}
    assert len({tuple(every) for every in logs.values()}) == 1
    first, second = logs["naive"]
    assert first != second
    losses = [record["training"]["loss"] for record in answer.where(estimator="naive")]
    assert losses[0] != losses[1]


def test_arms_are_those_of_the_plan_after_two_baselines(rq1: tuple[Answer, Path]) -> None:
    results = rq1[0].results
    assert list(results.arms) == ["random", "popularity", "naive", "ips", "itps", "ideal"]
    assert results.trained == ["naive", "ips", "itps", "ideal"]
    assert results.protocols == ["full", f"uniform-{NEGATIVES}"]
    assert rq1[0].where(estimator="ips")[0]["weights"]["effective_sample_size"] > 0
    assert rq1[0].where(estimator="naive")[0]["weights"] is None


def test_results_are_rows_that_a_program_can_check(rq1: tuple[Answer, Path]) -> None:
    told = json.loads((rq1[1] / "results.json").read_text())
    assert told["question"] == "rq1"
    assert told["command"] == "unveil reproduce rq1 -o 'a folder'"
    assert told["preset"] == "quick"
    assert told["gap_closed"].keys() == {"naive", "ips", "itps", "ideal"}
    for row in told["rows"]:
        for name, kind in ROW.items():
            assert isinstance(row[name], kind), (name, row)
        assert row["low"] <= row["mean"] <= row["high"]
    assert {row["evaluation"] for row in told["rows"]} == {TRUE, STANDARD}
    with (rq1[1] / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in table] == [row["mean"] for row in told["rows"]]


def test_the_page_needs_nothing_but_itself(rq1: tuple[Answer, Path]) -> None:
    html = (rq1[1] / "index.html").read_text()
    assert faults(html) == []
    assert html.count("<svg") >= 5
    assert "unveil reproduce rq1" in html


def test_the_plots_are_files_too_and_say_what_they_show(rq1: tuple[Answer, Path]) -> None:
    drawn = sorted((rq1[1] / "figures").glob("*.svg"))
    assert f"true-uniform-{NEGATIVES}-ndcg-10" in {path.stem for path in drawn}
    assert len(drawn) == (rq1[1] / "index.html").read_text().count("<svg")
    for path in drawn:
        root = ElementTree.fromstring(path.read_text())
        described = root.find("{http://www.w3.org/2000/svg}desc")
        assert described is not None
        assert "NDCG" in str(described.text) or "Recall" in str(described.text)
        used = set(re.findall(r"var\((--\w+)\)", path.read_text()))
        assert used <= set(re.findall(r"(--\w+):", path.read_text()))


def test_the_reading_names_command_preset_and_data(rq1: tuple[Answer, Path]) -> None:
    text = (rq1[1] / "README.md").read_text()
    for piece in ("# RQ1", "unveil reproduce rq1", "Preset `quick`", rq1[0].source.fingerprint[:16], "Means over 2"):
        assert piece in text
    for name in ("README.md", "index.html"):
        assert f"to see that all is well; changed: {', '.join(CHANGES)}" in (rq1[1] / name).read_text()
    assert json.loads((rq1[1] / "about.json").read_text())["versions"]["torch"]


def test_going_on_makes_nothing_twice_and_changes_nothing(rq1: tuple[Answer, Path], world: Path) -> None:
    _, folder = rq1
    before = {name: (folder / name).read_bytes() for name in ("results.json", "results.csv", "index.html")}
    again = run(tiny(RQ1, world), folder, Inline())
    write(again, folder, COMMAND)
    assert again.made == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_more_replicates_are_added_to_those_that_are_there(
    rq1: tuple[Answer, Path], world: Path, tmp_path: Path
) -> None:
    study = tiny(RQ1, world, replicates=3, estimators=("naive",))
    more = run(study, tmp_path / "more", Inline(), copy_from=rq1[1])
    assert more.made == 3  # the third replicate of naive and of two baselines
    factors = "worlds/00/factors.safetensors"
    assert (tmp_path / "more" / factors).stat().st_mtime_ns == (rq1[1] / factors).stat().st_mtime_ns  # not made again
    assert more.where(estimator="naive")[0]["ranks"] == rq1[0].where(estimator="naive")[0]["ranks"]


def test_rq3_takes_over_the_cells_of_rq1(rq1: tuple[Answer, Path], world: Path, tmp_path: Path) -> None:
    found = run(tiny(RQ3, world), tmp_path / "rq3", Inline(), copy_from=rq1[1])
    write(found, tmp_path / "rq3", COMMAND)
    assert found.made == 0
    assert found.frame.equals(rq1[0].frame)
    assert faults((tmp_path / "rq3" / "index.html").read_text()) == []
    told = json.loads((tmp_path / "rq3" / "results.json").read_text())
    assert len(told["flips"]) == 2 * 4 * 4
    assert told["verdict"].keys() == {TRUE, STANDARD}


def test_rq2_goes_along_the_severities(world: Path, tmp_path: Path) -> None:
    study = tiny(RQ2, world, severities=(1.0, 2.5), estimators=("naive", "itps", "ideal"))
    found = run(study, tmp_path / "rq2", Inline())
    write(found, tmp_path / "rq2", COMMAND)
    told = json.loads((tmp_path / "rq2" / "results.json").read_text())
    assert {row["severity"] for row in told["rows"]} == {1.0, 2.5}
    assert told["slopes"]["itps"].keys() == {"Recall@10", "NDCG@10", "Recall@5", "NDCG@5"}
    assert told["ess_share"]["itps"]["1"] > told["ess_share"]["itps"]["2.5"]
    page = (tmp_path / "rq2" / "index.html").read_text()
    assert "band-full-ndcg-10" in page
    assert faults(page) == []


def test_severities_share_their_luck_but_not_their_logs(world: Path) -> None:
    study = tiny(RQ1, world)
    assert study.log_seed(0, 1) != study.log_seed(1, 0)
    assert len({study.training_seed(w, r) for w in range(3) for r in range(3)}) == 9


def test_two_worlds_are_two_worlds(tmp_path: Path) -> None:
    changes = ("training.epochs=1", "model.width=8", "model.length=12")
    study = RQ1(data="builtin", preset="quick", changes=changes, worlds=2, replicates=1, estimators=("naive",))
    found = run(study, tmp_path / "run", Inline())
    one, two = (found.where(estimator="naive", world=world)[0]["log"]["fingerprint"] for world in (0, 1))
    assert one != two
    assert found.results.units == "worlds"
    assert {"w0", "w1"} <= set(found.records)


def test_the_catalogue_is_what_the_log_shows_or_the_whole(world: Path, tmp_path: Path) -> None:
    sizes = {}
    for catalogue in ("observed", "whole"):
        study = tiny(RQ1, world, catalogue=catalogue, severities=(4.0,), replicates=1, estimators=("naive",))
        sizes[catalogue] = run(study, tmp_path / catalogue, Inline()).where(estimator="popularity")[0]["log"]
    assert sizes["whole"]["catalogue"] == 30
    assert sizes["observed"]["catalogue"] == sizes["observed"]["items"] == sizes["whole"]["items"] < 30


def test_propensities_by_their_names() -> None:
    assert propensity("true", "static", 7) == {"propensity.name": "known-static"}
    assert propensity("estimated", "temporal", 7) == {"propensity.name": "popularity-temporal"}
    noisy = {"propensity.name": "noisy-temporal", "propensity.sd": 0.5, "propensity.seed": 7}
    assert propensity("noisy:0.5", "temporal", 7) == noisy


def test_the_papers_settings_are_those_of_each_estimator() -> None:
    study = RQ1(preset="paper")
    naive, ips, ideal = (study.recipe(name, 3) for name in ("naive", "ips", "ideal"))
    assert (naive.model.width, naive.model.blocks, naive.task.batch_size, naive.model.dropout) == (16, 1, 32, 0.4)
    assert isinstance(ips.model, BERT4RecConfig)
    assert (ips.model.width, ips.model.heads, ips.task.batch_size) == (64, 2, 16)
    assert ips.estimator == {"name": "ips", "clip": 0.2}
    assert (ideal.task.batch_size, ideal.model.dropout, ideal.task.mask_probability) == (8, 0.0, 0.4)
    for recipe in (naive, ips, ideal):
        training = recipe.training
        assert (training.epochs, training.schedule, training.step_epoch, training.lr) == (100, "step", 50, 1e-3)
        assert (training.seed, training.threads, recipe.model.head) == (3, 1, "untied")
    assert study.training.validation == "uniform"
    assert RQ1(preset="paper", clip=0.0).recipe("itps", 0).estimator == {"name": "itps", "clip": 0.0}


def test_what_is_learnt_from_impressions_knows_their_rate_and_is_clipped_as_the_truth_is() -> None:
    told = RQ1(preset="paper", impressions=0.3).recipe("ips@recorded", 5)
    assert told.propensity == {"name": "recorded-static", "rate": 0.3, "seed": 5}
    assert told.estimator == RQ1(preset="paper").recipe("ips", 5).estimator
    assert "clip" not in RQ1(preset="paper").recipe("ips@popularity", 5).estimator
    with pytest.raises(UnveilError, match="impressions: out of range"):
        RQ1(impressions=0.0)


@pytest.mark.parametrize("name", ["naive", "ips", "itps", "ideal"])
def test_the_tuned_settings_are_those_that_the_search_found(name: str) -> None:
    found = tomllib.loads((ROOT / "docs" / "results" / "tuning" / name / "best.toml").read_text(encoding="utf-8"))
    tuned = RQ1(preset="tuned").recipe(name, 0)
    assert isinstance(tuned.model, BERT4RecConfig)
    for setting in ("width", "blocks", "heads", "dropout", "length", "head"):
        assert getattr(tuned.model, setting) == found["model"][setting]
    for setting in ("batch_size", "mask_probability", "last_share", "always_mask"):
        assert getattr(tuned.task, setting) == found["task"][setting]
    for setting in ("epochs", "lr", "schedule", "step_epoch", "step_factor", "weight_decay"):
        assert getattr(tuned.training, setting) == found["training"][setting]
    assert tuned.estimator == found["estimator"]


def test_under_converged_all_estimators_share_one_backbone() -> None:
    recipes = [RQ1(preset="converged").recipe(name, 0) for name in ("naive", "ips", "itps", "ideal")]
    assert len({repr((recipe.model, recipe.task, recipe.training)) for recipe in recipes}) == 1


@pytest.mark.parametrize("network", ["bert4rec", "sasrec", "gru4rec"])
@pytest.mark.parametrize("preset", ["quick", "converged", "paper", "tuned"])
def test_any_network_can_be_asked_for_by_its_name(network: str, preset: str) -> None:
    recipe = RQ1(preset=preset, changes=(f"model.name={network}",)).recipe("itps@popularity+clip=5%", 0)
    plain = RQ1(preset=preset).recipe("itps@popularity+clip=5%", 0)
    assert backbone(network).Config is type(recipe.model)
    assert (recipe.model.width, recipe.model.dropout) == (plain.model.width, plain.model.dropout)
    same_task = replace(recipe.task, batch_size=plain.task.batch_size)  # a network may need other batches and epochs
    same_length = replace(recipe.training, epochs=plain.training.epochs)
    assert replace(recipe, model=plain.model, task=same_task, training=same_length) == plain


def test_drawn_logs_are_rated_in_stars_where_asked(world: Path, tmp_path: Path) -> None:
    World.load(world).save(world_folder(tmp_path, 0))
    fine, stars = (drawn_trial(tiny(RQ1, world, stars=each), tmp_path, 0, 1.0, 0).log for each in (False, True))
    assert fine.rating is not None
    assert stars.rating is not None
    assert replace(stars, rating=None) == replace(fine, rating=None)
    assert set(np.unique(stars.rating)) <= {1, 2, 3, 4, 5}
    assert not set(np.unique(fine.rating)) <= {1, 2, 3, 4, 5}


def test_the_epoch_may_be_chosen_by_what_was_taken(world: Path, tmp_path: Path) -> None:
    World.load(world).save(world_folder(tmp_path, 0))
    asked: dict[str, TrialContext] = {}
    for judge in ("truth", "taken"):
        asked[judge] = drawn_trial(tiny(RQ1, world, epoch_by=judge), tmp_path, 0, 1.0, 0)
    target = {judge: bench.validation.evaluator.cases.item_C for judge, bench in asked.items()}
    assert target["taken"].tolist() == asked["taken"].split.valid.item_C.tolist()
    assert target["taken"].tolist() != target["truth"].tolist()
    judged = [bench.tests[TRUE].cases.item_C.tolist() for bench in asked.values()]
    assert judged[0] == judged[1], "what is judged stays the truth"


def test_cells_of_the_usual_epochs_are_known_as_before() -> None:
    source = RQ1(data="builtin").open_data()
    assert not {"epoch_by", "foresight", "stars", "severities", "worlds"} & set(RQ1().identity(source))
    assert RQ1(epoch_by="taken").identity(source)["epoch_by"] == "taken"
    with pytest.raises(UnveilError, match="unknown rule for the epoch"):
        RQ1(epoch_by="test")


def test_a_cell_is_known_by_its_place() -> None:
    assert cell_key("itps", 1.0, 0, 3) == "w0-p1-r3-itps"
    assert cell_key("naive@noisy:1", 2.5, 2, 0) == "w2-p2.5-r0-naive@noisy-1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "papre"}, r"unknown preset: found 'papre'.*Did you mean 'paper'"),
        ({"negatives": 0}, "negatives: out of range"),
        ({"choice": "rational"}, "unknown choice model"),
        ({"catalogue": "some"}, "unknown catalogue"),
        ({"propensity": "noisy:much"}, "propensity: out of range: found 'noisy:much'"),
        ({"propensity": "guessed"}, "unknown propensity"),
        ({"clip": 2.0}, "clip: out of range"),
        ({"fit": "guess"}, "unknown way to fit"),
        ({"changes": ("model.widht=8",)}, "unknown setting"),
    ],
)
def test_a_study_refuses_what_is_wrong(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        RQ1(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replicates": 0}, "replicates: out of range: found 0, expected at least 1"),
        ({"worlds": 0}, "worlds: out of range"),
        ({"severities": (0.0,)}, "severity is out of range: found 0.0, expected a number above 0"),
        ({"severities": (float("nan"),)}, "severity is out of range"),
        ({"estimators": ("itsp",)}, "unknown estimator: found 'itsp'.*Did you mean 'itps'"),
        ({"estimators": ()}, "nothing to compare"),
    ],
)
def test_a_plan_refuses_what_is_wrong(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        RQ1(**changes)  # type: ignore[arg-type]


def rated_log(path: Path) -> Path:
    """Twelve users, nine items, five stars."""
    events = [(f"u{u}", f"i{(u + n) % 9}", 1 + n % 5) for u in range(12) for n in range(9)]
    path.write_text("user_id,item_id,rating\n" + "".join(f"{u},{i},{r}\n" for u, i, r in events))
    return path


def test_more_negatives_than_the_world_has_items_are_refused_before_any_work(world: Path, tmp_path: Path) -> None:
    for data, items in ((world, 30), ("builtin", 300), (rated_log(tmp_path / "rated.csv"), 9)):
        assert RQ1(data=str(data), steps=5, negatives=items - 1).open_data().name == str(data)
        with pytest.raises(UnveilError, match=rf"found {items}\. Pass --negatives {items - 1} or fewer"):
            run(RQ1(data=str(data), steps=5, negatives=items), tmp_path / "run", Inline())
    assert not (tmp_path / "run").exists()


def test_more_negatives_than_a_log_shows_items_are_refused_in_each_cell(world: Path, tmp_path: Path) -> None:
    study = tiny(RQ1, world, severities=(4.0,), replicates=1, negatives=29)
    with pytest.raises(UnveilError, match=r"6 of 6 cells failed.*more negatives than items"):
        run(study, tmp_path / "run", Inline())


def test_another_question_study_or_world_is_refused(rq1: tuple[Answer, Path], world: Path, tmp_path: Path) -> None:
    folder = rq1[1]
    with pytest.raises(UnveilError, match="question was rq1 and is now rq3"):
        run(tiny(RQ3, world), folder, Inline())
    with pytest.raises(UnveilError, match=r"cells\.seed was 0 and is now 9"):
        run(tiny(RQ1, world, seed=9), folder, Inline())
    with pytest.raises(UnveilError, match="a saved world is one world"):
        run(tiny(RQ1, world, worlds=2), tmp_path / "run", Inline())


def test_a_log_without_ratings_and_steps_beyond_every_history_are_refused(tmp_path: Path) -> None:
    rated, unrated = rated_log(tmp_path / "rated.csv"), tmp_path / "unrated.csv"
    unrated.write_text("".join(f"{line.rpartition(',')[0]}\n" for line in rated.read_text().splitlines()))
    with pytest.raises(UnveilError, match="no ratings"):
        run(RQ1(data=str(unrated), steps=5), tmp_path / "a", Inline())
    with pytest.raises(UnveilError, match="no history is as long"):
        run(RQ1(data=str(rated), steps=50), tmp_path / "b", Inline())
    assert not (tmp_path / "a").exists()


def test_a_folder_that_cannot_be_copied_from_is_refused_before_another_is_begun(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UnveilError, match="nowhere: there are no cells to copy"):
        run(tiny(RQ3, world), out, Inline(), copy_from=tmp_path / "nowhere")
    begin(tiny(RQ1, world, clip=0.5), tmp_path / "other")
    with pytest.raises(UnveilError, match=r"belongs to another run: .*clip"):
        run(tiny(RQ3, world), out, Inline(), copy_from=tmp_path / "other")
    assert not out.exists()


def begin(study: RQ1, folder: Path) -> None:
    identity = {"question": study.name, "format": study.format, "cells": study.identity(study.open_data())}
    Store(folder, identity).open()


def test_settings_that_folders_do_not_name_have_their_defaults(world: Path, tmp_path: Path) -> None:
    begin(tiny(RQ1, world), tmp_path / "out")
    with pytest.raises(UnveilError, match=r"another run: cells\.impressions was 0\.1 and is now 0\.2\."):
        run(tiny(RQ1, world, impressions=0.2), tmp_path / "out", Inline())


def test_cells_of_a_preset_that_changed_since_are_neither_continued_nor_copied(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tiny(RQ1, world), tmp_path / "before")
    later = replace(PRESETS["quick"], revision=PRESETS["quick"].revision + 1)
    monkeypatch.setattr("unveil.studies.presets.PRESETS", {**PRESETS, "quick": later})
    changed = r"another run: cells\.preset was quick and is now quick, revision 2\."
    with pytest.raises(UnveilError, match=changed):
        run(tiny(RQ1, world), tmp_path / "before", Inline())
    with pytest.raises(UnveilError, match=changed):
        run(tiny(RQ3, world), tmp_path / "after", Inline(), copy_from=tmp_path / "before")
    assert not (tmp_path / "after").exists()


def test_a_network_may_have_other_epochs_and_batches() -> None:
    """What a preset says of a network goes before what it says of all, and after it what the user says."""
    for changes, epochs, batch in (
        ((), 120, 64),
        (("model.name=bert4rec",), 120, 64),
        (("model.name=sasrec",), 24, 16),
        (("model.name=gru4rec",), 45, 64),
        (("model.name=sasrec", "training.epochs=7"), 7, 16),
        (("model.name=sasrec", "task.batch_size=64"), 24, 64),
    ):
        recipe = RQ1(preset="converged", changes=changes).recipe("itps", 0)
        assert (recipe.training.epochs, recipe.task.batch_size, recipe.training.lr) == (epochs, batch, 2e-3)
        assert recipe.estimator["clip"] == 0.02


OWN = ("model.width=8", "itps:model.width=16", "itps:estimator.clip=0.3", "training.epochs=2")


def test_an_arm_of_a_study_has_settings_of_its_own() -> None:
    study = RQ1(preset="quick", changes=OWN)
    assert [study.recipe(arm, 0).model.width for arm in ("naive", "ips", "itps")] == [8, 8, 16]
    assert study.recipe("itps", 0).estimator["clip"] == 0.3
    assert RQ1(preset="converged").about == PRESETS["converged"].about
    assert RQ1(preset="converged", changes=OWN).about == f"{PRESETS['converged'].about}; changed: {', '.join(OWN)}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("itsp:model.width=8", "Did you mean 'itps'"),
        ("naive:estimator.clip=1", "unknown option"),
        ("itps:model.widht=8", "unknown setting"),
    ],
)
def test_a_change_of_nothing_is_refused(change: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        RQ1(preset="quick", changes=(change,))
