"""A question on a tiny world, from the plan to the files."""

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
from tests.experiment.reproduce.small import CHANGES, NEGATIVES, tiny_plan, tiny_study, tiny_world
from tests.pages import faults
from unveil.errors import UnveilError
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.reproduce.cell import CellJob
from unveil.experiment.reproduce.cell import _bench as bench_of
from unveil.experiment.reproduce.files import write
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.rq1 import RQ1
from unveil.experiment.reproduce.rq2 import RQ2
from unveil.experiment.reproduce.rq3 import RQ3
from unveil.experiment.reproduce.run import Answer, answer, cells_depend_on
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import Source, place
from unveil.models.base import backbone
from unveil.models.bert4rec import BERT4RecConfig
from unveil.runs.workers import Inline
from unveil.simulation.world import World
from unveil.studies.arms import propensity_settings as propensity
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
    found = answer(RQ1(), tiny_plan(world), folder, Inline())
    write(found, folder, COMMAND)
    return found, folder


def test_arms_of_a_replicate_share_its_log_and_replicates_do_not(rq1: tuple[Answer, Path]) -> None:
    results = rq1[0].results
    logs = {arm: [cell["log"]["fingerprint"] for cell in results.every(1.0, arm)] for arm in results.arms}
    assert len({tuple(every) for every in logs.values()}) == 1
    first, second = logs["naive"]
    assert first != second
    losses = [cell["training"]["loss"] for cell in results.every(1.0, "naive")]
    assert losses[0] != losses[1]


def test_arms_are_those_of_the_plan_after_two_baselines(rq1: tuple[Answer, Path]) -> None:
    results = rq1[0].results
    assert list(results.arms) == ["random", "popularity", "naive", "ips", "itps", "ideal"]
    assert results.trained == ["naive", "ips", "itps", "ideal"]
    assert results.protocols == ["full", f"uniform-{NEGATIVES}"]
    assert results.cell(1.0, "ips")["weights"]["effective_sample_size"] > 0
    assert results.cell(1.0, "naive")["weights"] is None


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
    again = answer(RQ1(), tiny_plan(world), folder, Inline())
    write(again, folder, COMMAND)
    assert again.made == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_more_replicates_are_added_to_those_that_are_there(
    rq1: tuple[Answer, Path], world: Path, tmp_path: Path
) -> None:
    plan = replace(tiny_plan(world, replicates=3), estimators=("naive",))
    more = answer(RQ1(), plan, tmp_path / "more", Inline(), take_from=rq1[1])
    assert more.made == 3  # the third replicate of naive and of two baselines
    factors = "worlds/00/factors.safetensors"
    assert (tmp_path / "more" / factors).stat().st_mtime_ns == (rq1[1] / factors).stat().st_mtime_ns  # not made again
    assert more.results.cell(1.0, "naive")["ranks"] == rq1[0].results.cell(1.0, "naive")["ranks"]


def test_rq3_takes_over_the_cells_of_rq1(rq1: tuple[Answer, Path], world: Path, tmp_path: Path) -> None:
    found = answer(RQ3(), tiny_plan(world), tmp_path / "rq3", Inline(), take_from=rq1[1])
    write(found, tmp_path / "rq3", COMMAND)
    assert found.made == 0
    assert found.results.cells == rq1[0].results.cells
    assert faults((tmp_path / "rq3" / "index.html").read_text()) == []
    told = json.loads((tmp_path / "rq3" / "results.json").read_text())
    assert len(told["flips"]) == 2 * 4 * 4
    assert told["verdict"].keys() == {TRUE, STANDARD}


def test_rq2_goes_along_the_severities(world: Path, tmp_path: Path) -> None:
    plan = replace(tiny_plan(world, (1.0, 2.5)), estimators=("naive", "itps", "ideal"))
    found = answer(RQ2(), plan, tmp_path / "rq2", Inline())
    write(found, tmp_path / "rq2", COMMAND)
    told = json.loads((tmp_path / "rq2" / "results.json").read_text())
    assert {row["severity"] for row in told["rows"]} == {1.0, 2.5}
    assert told["slopes"]["itps"].keys() == {"Recall@10", "NDCG@10", "Recall@5", "NDCG@5"}
    assert told["ess_share"]["itps"]["1"] > told["ess_share"]["itps"]["2.5"]
    page = (tmp_path / "rq2" / "index.html").read_text()
    assert "band-full-ndcg-10" in page
    assert faults(page) == []


def test_severities_share_their_luck_but_not_their_logs(world: Path) -> None:
    study = tiny_study(world)
    assert study.log_seed(0, 1) != study.log_seed(1, 0)
    assert len({study.training_seed(w, r) for w in range(3) for r in range(3)}) == 9


def test_two_worlds_are_two_worlds(tmp_path: Path) -> None:
    study = Study(data="builtin", preset="quick", changes=("training.epochs=1", "model.width=8", "model.length=12"))
    plan = Plan(study, worlds=2, replicates=1, estimators=("naive",))
    found = answer(RQ1(), plan, tmp_path / "run", Inline())
    one, two = (found.results.cell(1.0, "naive", world)["log"]["fingerprint"] for world in (0, 1))
    assert one != two
    assert found.results.units == "worlds"
    assert len(found.worlds) == 2


def test_the_catalogue_is_what_the_log_shows_or_the_whole(world: Path, tmp_path: Path) -> None:
    sizes = {}
    for catalogue in ("observed", "whole"):
        study = replace(tiny_study(world), catalogue=catalogue)
        found = answer(RQ1(), Plan(study, (4.0,), replicates=1, estimators=("naive",)), tmp_path / catalogue, Inline())
        sizes[catalogue] = found.results.cell(4.0, "popularity")["log"]
    assert sizes["whole"]["catalogue"] == 30
    assert sizes["observed"]["catalogue"] == sizes["observed"]["items"] == sizes["whole"]["items"] < 30


def test_propensities_by_their_names() -> None:
    assert propensity("true", "static", 7) == {"propensity.name": "known-static"}
    assert propensity("estimated", "temporal", 7) == {"propensity.name": "popularity-temporal"}
    noisy = {"propensity.name": "noisy-temporal", "propensity.sd": 0.5, "propensity.seed": 7}
    assert propensity("noisy:0.5", "temporal", 7) == noisy


def test_the_papers_settings_are_those_of_each_estimator() -> None:
    study = Study(preset="paper")
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
    assert study.validation == "uniform-100"
    assert Study(preset="paper", clip=0.0).recipe("itps", 0).estimator == {"name": "itps", "clip": 0.0}


def test_what_is_learnt_from_impressions_knows_their_rate_and_is_clipped_as_the_truth_is() -> None:
    told = Study(preset="paper", impressions=0.3).recipe("ips@recorded", 5)
    assert told.propensity == {"name": "recorded-static", "rate": 0.3, "seed": 5}
    assert told.estimator == Study(preset="paper").recipe("ips", 5).estimator
    assert "clip" not in Study(preset="paper").recipe("ips@popularity", 5).estimator
    with pytest.raises(UnveilError, match="impressions: out of range"):
        Study(impressions=0.0)


@pytest.mark.parametrize("name", ["naive", "ips", "itps", "ideal"])
def test_the_tuned_settings_are_those_that_the_search_found(name: str) -> None:
    found = tomllib.loads((ROOT / "docs" / "results" / "tuning" / name / "best.toml").read_text(encoding="utf-8"))
    tuned = Study(preset="tuned").recipe(name, 0)
    assert isinstance(tuned.model, BERT4RecConfig)
    for setting in ("width", "blocks", "heads", "dropout", "length", "head"):
        assert getattr(tuned.model, setting) == found["model"][setting]
    for setting in ("batch_size", "mask_probability", "last_share", "always_mask"):
        assert getattr(tuned.task, setting) == found["task"][setting]
    for setting in ("epochs", "lr", "schedule", "step_epoch", "step_factor", "weight_decay"):
        assert getattr(tuned.training, setting) == found["training"][setting]
    assert tuned.estimator == found["estimator"]


def test_under_converged_all_estimators_share_one_backbone() -> None:
    recipes = [Study(preset="converged").recipe(name, 0) for name in ("naive", "ips", "itps", "ideal")]
    assert len({repr((recipe.model, recipe.task, recipe.training)) for recipe in recipes}) == 1


@pytest.mark.parametrize("network", ["bert4rec", "sasrec", "gru4rec"])
@pytest.mark.parametrize("preset", ["quick", "converged", "paper", "tuned"])
def test_any_network_can_be_asked_for_by_its_name(network: str, preset: str) -> None:
    recipe = Study(preset=preset, changes=(f"model.name={network}",)).recipe("itps@popularity+clip=5%", 0)
    plain = Study(preset=preset).recipe("itps@popularity+clip=5%", 0)
    assert backbone(network).Config is type(recipe.model)
    assert (recipe.model.width, recipe.model.dropout) == (plain.model.width, plain.model.dropout)
    same_task = replace(recipe.task, batch_size=plain.task.batch_size)  # a network may need other batches and epochs
    same_length = replace(recipe.training, epochs=plain.training.epochs)
    assert replace(recipe, model=plain.model, task=same_task, training=same_length) == plain


def test_drawn_logs_are_rated_in_stars_where_asked(world: Path, tmp_path: Path) -> None:
    World.load(world).save(place(tmp_path, 0))
    fine, stars = (bench_of(replace(tiny_study(world), stars=each), tmp_path, 0, 1.0, 0).log for each in (False, True))
    assert fine.rating is not None
    assert stars.rating is not None
    assert replace(stars, rating=None) == replace(fine, rating=None)
    assert set(np.unique(stars.rating)) <= {1, 2, 3, 4, 5}
    assert not set(np.unique(fine.rating)) <= {1, 2, 3, 4, 5}


def test_the_epoch_may_be_chosen_by_what_was_taken(world: Path, tmp_path: Path) -> None:
    World.load(world).save(place(tmp_path, 0))
    asked: dict[str, TrialContext] = {}
    for judge in ("truth", "taken"):
        asked[judge] = bench_of(replace(tiny_study(world), epoch_by=judge), tmp_path, 0, 1.0, 0)
    target = {judge: bench.evaluation.validation.evaluator.cases.item_C for judge, bench in asked.items()}
    assert target["taken"].tolist() == asked["taken"].split.valid.item_C.tolist()
    assert target["taken"].tolist() != target["truth"].tolist()
    judged = [bench.evaluation.truth.cases.item_C.tolist() for bench in asked.values()]
    assert judged[0] == judged[1], "what is judged stays the truth"


def test_cells_of_the_usual_epochs_are_known_as_before() -> None:
    source = Source("builtin", "builtin", "built in")
    assert not {"epoch_by", "foresight", "stars"} & set(cells_depend_on(Study(), source))
    assert cells_depend_on(Study(epoch_by="taken"), source)["epoch_by"] == "taken"
    with pytest.raises(UnveilError, match="judge of the epochs"):
        Study(epoch_by="test")


def test_a_cell_is_known_by_its_place(world: Path) -> None:
    assert CellJob(tiny_study(world), Path(), 0, 1.0, 3, "itps").key == "w0-p1-r3-itps"
    assert CellJob(tiny_study(world), Path(), 2, 2.5, 0, "naive").key == "w2-p2.5-r0-naive"


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
        replace(Study(), **changes)  # type: ignore[arg-type]


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
        replace(Plan(), **changes)  # type: ignore[arg-type]


def rated_log(path: Path) -> Path:
    """Twelve users, nine items, five stars."""
    events = [(f"u{u}", f"i{(u + n) % 9}", 1 + n % 5) for u in range(12) for n in range(9)]
    path.write_text("user_id,item_id,rating\n" + "".join(f"{u},{i},{r}\n" for u, i, r in events))
    return path


def test_more_negatives_than_the_world_has_items_are_refused_before_any_work(world: Path, tmp_path: Path) -> None:
    for data, items in ((world, 30), ("builtin", 300), (rated_log(tmp_path / "rated.csv"), 9)):
        study = Study(data=str(data), steps=5, negatives=items)
        assert Source.of(replace(study, negatives=items - 1)).data == str(data)
        with pytest.raises(UnveilError, match=rf"found {items}\. Pass --negatives {items - 1} or fewer"):
            answer(RQ1(), Plan(study), tmp_path / "run", Inline())
    assert not (tmp_path / "run").exists()


def test_more_negatives_than_a_log_shows_items_are_refused_in_each_cell(world: Path, tmp_path: Path) -> None:
    plan = replace(tiny_plan(world, [4.0], replicates=1), study=replace(tiny_study(world), negatives=29))
    with pytest.raises(UnveilError, match=r"6 of 6 cells failed.*more negatives than items"):
        answer(RQ1(), plan, tmp_path / "run", Inline())


def test_another_question_study_or_world_is_refused(rq1: tuple[Answer, Path], world: Path, tmp_path: Path) -> None:
    folder = rq1[1]
    with pytest.raises(UnveilError, match="question was rq1 and is now rq3"):
        answer(RQ3(), tiny_plan(world), folder, Inline())
    other = replace(tiny_plan(world), study=replace(tiny_study(world), seed=9))
    with pytest.raises(UnveilError, match=r"cells\.seed was 0 and is now 9"):
        answer(RQ1(), other, folder, Inline())
    with pytest.raises(UnveilError, match="a saved world is one world"):
        answer(RQ1(), replace(tiny_plan(world), worlds=2), tmp_path / "run", Inline())


def test_a_log_without_ratings_and_steps_beyond_every_history_are_refused(tmp_path: Path) -> None:
    rated, unrated = rated_log(tmp_path / "rated.csv"), tmp_path / "unrated.csv"
    unrated.write_text("".join(f"{line.rpartition(',')[0]}\n" for line in rated.read_text().splitlines()))
    with pytest.raises(UnveilError, match="no ratings"):
        answer(RQ1(), Plan(Study(data=str(unrated), steps=5)), tmp_path / "a", Inline())
    with pytest.raises(UnveilError, match="no history is as long"):
        answer(RQ1(), Plan(Study(data=str(rated), steps=50)), tmp_path / "b", Inline())
    assert not (tmp_path / "a").exists()
