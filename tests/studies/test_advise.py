"""Advice from a small log with ratings, and without, from the study to the files."""

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.pages import faults
from tests.simulation.rated import rated
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.propensity.base import PROPENSITIES, Kind
from unveil.propensity.impressions import Recorded
from unveil.report.prose import Prose
from unveil.runs.config import Experiment
from unveil.runs.workers import Inline
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.advise import Advise, advice_of, advise_study, draw_log, scenarios
from unveil.studies.candidates import (
    Candidates,
    check_columns,
    check_impressions,
    impressions_per_event,
    learns_from,
    some_users,
)
from unveil.studies.decision import CONFIG, HEADLINE, Advice, Draw, Floats, Scenario, config_of, write_config
from unveil.studies.engine import Answer, Report, run, write
from unveil.studies.results import TRUE, Measure

TINY = ("model.width=8", "model.length=12", "training.epochs=1", "training.validate_every=1")
ONE = scenarios(("rational_exposed",), (1.0,))


def config_for(study: Advise, arm: str) -> Experiment:
    return config_of(study.recipe(arm, study.seed), study.log, study.log.load(), study.preset)


def study(log: Path | str = "", **changes: Any) -> Advise:
    fields: dict[str, Any] = {
        "log": LogSource(log=str(log)),
        "users": 40,
        "steps": 12,
        "changes": TINY,
        "scenarios": scenarios(("rational_exposed",), (1.0, 2.0), changes.get("liked", ())),
        "replicates": 2,
        "estimators": ("itps", "corrected"),
        "clips": ("5%",),
        "propensities": ("popularity", "learnt"),
    }
    return Advise(**fields | changes)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    write_log(rated(), path)
    return path


Made = tuple[Report, Path, list[str]]


@pytest.fixture(scope="module")
def made(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder, said = tmp_path_factory.mktemp("advice") / "run", list[str]()
    report = write(run(study(log), folder, Inline(), say=said.append), folder, ["unveil", "advise", str(log)])
    write_config(report)
    return report, folder, said


def test_all_arms_of_a_draw_share_its_log(made: Made) -> None:
    answer = made[0].answer
    assert advice_of(answer).candidates.usable == ("naive", "itps@popularity+clip=5%", "corrected@popularity")
    logs: dict[tuple[str, int], set[str]] = {}
    for cell in answer.cells:
        place = cell.at["scenario"], cell.at["replicate"]
        logs.setdefault(place, set()).add(answer.records[cell.key]["log"]["fingerprint"])
    assert all(len(every) == 1 for every in logs.values())
    assert len(set.union(*logs.values())) == 4, "scenarios and replicates have draws of their own"


def test_the_folder_goes_on_where_it_was(made: Made, log: Path) -> None:
    report, folder, said = made
    assert len(said) == 2
    assert said[1].startswith("24 trainings on 4 drawn logs, 24 left: about")
    later: list[str] = []
    again = run(study(log), folder, Inline(), say=later.append)
    assert again.made == 0
    assert len(later) == 1, "nothing is fitted to find out what can be estimated"
    assert again.records == report.answer.records
    with pytest.raises(UnveilError, match="belongs to another run"):
        run(study(log, seed=1), folder, Inline())


def test_the_config_trains_as_advised(made: Made, log: Path) -> None:
    report, folder, _ = made
    chosen = advice_of(report.answer).decision.chosen
    found = json.loads((folder / "results.json").read_text())
    assert found["advice"]["chosen"] == chosen
    assert {row["estimator"] for row in found["rows"]} == set(advice_of(report.answer).candidates.arms)
    read = Experiment.of(folder / CONFIG)
    assert read == config_for(report.answer.study, chosen)
    assert read.estimator["name"] == chosen.partition("@")[0]
    assert (read.data.log, read.model.width) == (str(log), 8)
    assert tomllib.loads((folder / CONFIG).read_text())["data"]["log"]


def test_a_clip_becomes_a_number_of_the_real_log(log: Path) -> None:
    own = config_for(study(log), "itps@popularity+clip=5%")
    assert 0 < own.estimator["clip"] < 1
    assert own.propensity == {"name": "popularity-temporal"}


def test_the_page_has_every_part(made: Made) -> None:
    report, folder, _ = made
    page = (folder / "index.html").read_text()
    assert faults(page) == []
    for gain in advice_of(report.answer).decision.gains.values():
        assert f"{gain.largest_regret:.3f}" in page
    assert report.paragraphs[0].startswith(("Use ", "No advice"))
    assert "random clicks" in page
    assert any("learnt (" in each for each in report.paragraphs), "what could not be tried"
    assert (folder / "figures" / "scenarios.svg").is_file()
    assert str(folder / CONFIG) in (folder / "README.md").read_text()


class Given(Advice):
    """Two scenarios of two draws in which ideal gains .4 over naive and the others lose .05."""

    at_chance: ClassVar[dict[Scenario, tuple[float, float]]] = {}

    def value(self, arm: str, measure: Measure = HEADLINE) -> Floats:
        naive = np.array([[[0.40, 0.41]], [[0.50, 0.51]]])[:, :, : self.answer.study.replicates]
        return np.asarray(naive + {"naive": 0.0, "ideal": 0.4}.get(arm, -0.05))


def said(answer: Answer, advice: Advice, block: str = "findings", **facts: Any) -> list[str]:
    figures = {"study": answer.study, "answer": answer, **advice.facts()}
    return Prose(["advise.md.j2"], {**figures, **facts}).paragraphs(block)


def given(made: Made, replicates: int = 2) -> tuple[Answer, Advice]:
    answer = made[0].answer
    answer = replace(answer, study=answer.study.model_copy(update={"replicates": replicates}))
    found = advice_of(made[0].answer)
    return answer, Given(
        answer, Candidates(("naive", "wmf-distilled"), ("ideal",)), {}, found.shape, found.repeats, found.evidence
    )


def test_one_draw_is_no_advice(made: Made) -> None:
    first = said(*given(made, replicates=1))[0]
    assert first.startswith("No advice yet")
    assert "the highest mean is its own" in first


def test_a_candidate_below_naive_is_not_advised(made: Made) -> None:
    first, *rest = said(*given(made))
    assert first.startswith("Use the naive loss. The best choice on half of the draws")
    assert not any("With the true propensities" in each for each in rest), "no arm had them"


def test_scenarios_at_chance_are_dropped_and_named(made: Made) -> None:
    """By the ranks of the test cases: in one scenario those of a random ranking, in the other all first."""
    answer = made[0].answer
    records = {key: dict(value) for key, value in answer.records.items()}
    for cell in answer.cells:
        lost, items = cell.at["scenario"].endswith("p2"), records[cell.key]["log"]["catalogue"]
        ranks = np.arange(1, items + 1).tolist() if lost else [1] * 20
        records[cell.key]["ranks"] = {TRUE: {"full": ranks}}
    found = replace(advice_of(answer), answer=replace(answer, records=records))
    assert [each.severity for each in found.at_chance] == [2.0]
    assert [each.severity for each in found.scenarios] == [1.0]
    (naive, random), *_ = found.at_chance.values()
    assert naive == pytest.approx(random)
    assert len(found.decision.gains["naive"].of_scenario) == 1
    text = " ".join(said(answer, found))
    assert "Left out of the decision" in text
    assert "p = 2 (NDCG@10" in text


def test_nothing_but_chance_is_no_advice(made: Made) -> None:
    answer = made[0].answer
    records = {key: dict(value) for key, value in answer.records.items()}
    for cell in answer.cells:
        records[cell.key]["ranks"] = {TRUE: {"full": [1000] * 20}}
    found = replace(advice_of(answer), answer=replace(answer, records=records))
    assert found.decision.chosen == "naive"
    assert said(answer, found)[0].startswith("No advice: in every scenario")


def test_assumptions_depend_on_the_candidates(made: Made) -> None:
    answer, found = made[0].answer, advice_of(made[0].answer)
    usable = Candidates(("naive", "wmf-distilled-rated"), found.candidates.ceilings)

    def caution(candidates: Candidates, repeats: float) -> str:
        return " ".join(said(answer, Given(answer, candidates, {}, found.shape, repeats, found.evidence), "caution"))

    plain, rated_arm = caution(found.candidates, 0.5), caution(usable, 0.5)
    assert "not in stars" not in plain
    assert "not in stars" in rated_arm
    assert "0.0% of the events repeat an item" in caution(usable, 0.0)
    assert "repeat an item" not in rated_arm


def test_arms_that_use_ratings() -> None:
    assert "ratings" not in map(learns_from, ("naive", "wmf-distilled", "itps@popularity+clip=5%", "itps@true"))
    assert learns_from("wmf-distilled-rated") == "ratings"
    assert learns_from("itps@joint-rated+clip=5%") == "ratings"


def test_a_log_without_ratings_needs_a_declaration(tmp_path: Path) -> None:
    bare, folder = tmp_path / "bare.csv", tmp_path / "declared"
    write_log(replace(rated(), rating=None), bare)
    with pytest.raises(UnveilError, match="--implicit"):
        run(study(bare), tmp_path / "refused", Inline())
    tried = scenarios(("rational_exposed",), (1.0,), (0.2, 0.8))
    small = study(
        bare, liked=(0.2, 0.8), replicates=1, estimators=("corrected", "wmf-distilled-rated"), scenarios=tried
    )
    report = write(run(small, folder, Inline()), folder, ["unveil", "advise"])
    found = advice_of(report.answer)
    assert found.candidates.usable == ("naive", "corrected@popularity"), "drawn logs have ratings, this one has none"
    assert "rating" in found.refused["wmf-distilled-rated"]
    assert [world["origin"]["liked"] for world in report.answer.records["worlds-0"]["worlds"]] == [0.2, 0.8]
    assert "20%, 80%" in (folder / "README.md").read_text()
    assert found.decision.chosen == "naive", "one draw cannot be tested"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rated log that records some impressions without a click."""
    world = World.builtin(WorldSpec(users=50, items=30, steps=30), seed=3)
    path = tmp_path_factory.mktemp("shown") / "log.csv"
    write_log(replace(world.log(np.random.default_rng(0), ratings_noise=0.3, impressions=0.2), step=None), path)
    return path


def read(log: Path) -> Interactions:
    return some_users(LogSource(log=str(log)).load(), 40, 0)


def test_impressions_of_the_log_are_tried_as_well(shown: Path, tmp_path: Path) -> None:
    left = impressions_per_event(read(shown))
    assert left > 0.1
    chosen = study(
        shown,
        left=left,
        scenarios=ONE,
        replicates=1,
        estimators=("corrected", "wmf-distilled-rated"),
        propensities=("popularity", "recorded"),
    )
    answer = run(chosen, tmp_path / "advice", Inline())
    usable = ("naive", "corrected@popularity", "corrected@recorded", "wmf-distilled-rated")
    assert advice_of(answer).candidates.usable == usable
    assert len({answer.records[cell.key]["log"]["fingerprint"] for cell in answer.cells}) == 1, "the same interactions"
    assert "impressions" in chosen.facts(answer)["uses"]
    world, log, rate = draw_log(chosen, tmp_path / "advice", Draw(0, ONE[0], 0), recorded=True)
    assert 0 < rate < 1
    assert impressions_per_event(log) == pytest.approx(left, rel=0.25)
    plain_world, plain_log, plain_rate = draw_log(chosen, tmp_path / "advice", Draw(0, ONE[0], 0))
    assert replace(log.interacted(), clicked=None) == plain_log
    assert (plain_rate, plain_world.n_items) == (0, world.n_items)


def test_the_config_has_the_share_of_the_impressions_that_the_log_records(shown: Path) -> None:
    chosen = study(shown, left=0.9, impressions=0.2)
    assert chosen.recipe("corrected@recorded", 0).propensity["rate"] == 0.2
    assert "rate" not in chosen.recipe("corrected@popularity", 0).propensity
    own = config_for(chosen, "corrected@recorded").propensity
    assert own == {"name": "recorded-temporal", "seed": 0, "rate": 0.2}
    with pytest.raises(UnveilError, match="impressions: out of range"):
        study(shown, impressions=0)


def test_keys_name_the_impressions_that_cells_depend_on() -> None:
    def key(left: float, arm: str) -> str:
        return study(left=left).cell_key(Draw(0, Scenario("rational_exposed", 1.0), 0), arm)

    assert key(0.5, "naive") == key(0.8, "naive") == "d0-rational_exposed-p1-r0-naive"
    assert key(0.5, "itps@recorded") != key(0.8, "itps@recorded")


def test_impressions_count_where_something_can_be_learnt_from_them(shown: Path) -> None:
    log = read(shown)
    assert log.clicked is not None
    assert log.time is not None
    late = replace(log, time=np.where(log.clicked, log.time, log.time + 10**15))
    assert impressions_per_event(late) == 0, "all of them come after what is held out"
    few = np.flatnonzero(~log.clicked)[:20]
    assert impressions_per_event(log.where(np.sort(np.concatenate([np.flatnonzero(log.clicked), few])))) == 0
    assert impressions_per_event(replace(log, exposed=log.clicked)) == 0, "the system did not show them"


@dataclass
class OfAShop(Recorded):
    """Somebody else's, under another name."""

    name: ClassVar[str] = "of-a-shop"
    kind: ClassVar[Kind] = "temporal"


def test_propensities_of_others_that_learn_from_impressions_are_tried_too(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROPENSITIES._found, OfAShop.name, OfAShop)
    chosen = study(shown, left=0.5, scenarios=ONE, replicates=1, estimators=("corrected",), propensities=("of-a-shop",))
    answer = run(chosen, tmp_path / "advice", Inline())
    assert advice_of(answer).candidates.usable == ("naive", "corrected@of-a-shop")


@pytest.mark.parametrize("name", ["recorded", "learnt"])
def test_a_log_that_allows_naive_alone(log: Path, tmp_path: Path, name: str) -> None:
    assert impressions_per_event(read(log)) == 0
    with pytest.raises(UnveilError, match="allows the naive loss alone"):
        run(study(log, propensities=(name,)), tmp_path / "none", Inline())


@pytest.mark.parametrize(
    ("propensities", "says"),
    [
        (("popularity", "known"), "--propensities known: cannot be had from this log: the propensity 'known-static' "),
        (("noisy",), "needs a world whose exposure is known"),
        (("logged",), "needs a log with a propensity column, and there is none"),
        (("recorded",), "--clicked-col"),
        (("position",), "needs a log with a position column"),
        (("learnt",), "needs the folder of a learnt exposure"),
    ],
)
def test_a_required_propensity_that_cannot_be_had_is_an_error_before_any_work(
    log: Path, tmp_path: Path, propensities: tuple[str, ...], says: str
) -> None:
    with pytest.raises(UnveilError, match=says):
        run(study(log, propensities=propensities, required=propensities), tmp_path / "none", Inline())
    assert not (tmp_path / "none").exists()


def test_what_no_drawn_log_has_cannot_be_required() -> None:
    placed = replace(rated(), position=np.ones(len(rated()), np.int32))
    with pytest.raises(UnveilError) as error:
        check_columns(("position",), placed, recorded=False)
    assert "position: cannot be had from logs that are drawn from a world: " in str(error.value)
    assert "--position-col" not in str(error.value), "the user's log has one"
    check_columns((), placed, recorded=False)
    check_columns(("popularity", "timing", "joint-rated"), placed, recorded=False)


def test_recorded_impressions_can_be_required(shown: Path) -> None:
    check_columns(("recorded", "logged"), read(shown), recorded=True)
    with pytest.raises(UnveilError, match="recorded: cannot be had from logs that are drawn from a world"):
        check_columns(("recorded",), read(shown), recorded=False)


def test_a_required_propensity_that_cannot_be_fitted_is_an_error_before_the_first_training(log: Path) -> None:
    chosen = study(log, propensities=("popularity", "timing"), required=("popularity", "timing"))
    able = {"popularity-static": "", "popularity-temporal": "", "timing": ""}
    refused = able | {"popularity-static": "no", "timing": "too few events"}
    assert "itps@timing+clip=5%" in chosen.candidates({"real": able, "drawn": able}).usable
    with pytest.raises(UnveilError, match="--propensities timing: cannot be had from this log: too few events"):
        chosen.candidates({"real": refused, "drawn": able})
    with pytest.raises(UnveilError, match="--propensities timing: cannot be had from logs that are drawn from a world"):
        chosen.candidates({"real": able, "drawn": refused})
    left = chosen.model_copy(update={"required": ()}).candidates({"real": refused, "drawn": able}).usable
    assert not any("timing" in arm for arm in left), "what was not named is left out"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"changes": ("itps:estimator.exponent=x",)}, r"itps\.exponent: not a valid value: found 'x'"),
        ({"changes": ("propensity.add=x",)}, r"popularity-temporal\.add: not a valid value: found 'x'"),
        ({"changes": ("estimator.clip=0.1",)}, "unknown option of the estimator 'naive'"),
        ({"scenarios": ()}, "there is no scenario to try"),
        ({"estimators": ("naive", "ideal")}, "nothing to compare with the naive loss"),
        ({"estimators": ("itps@popularity",)}, "named alone here"),
        ({"world": "somewhere", "worlds": 2}, "one world"),
        ({"world": "builtin", "liked": (0.5,)}, "has a liking of its own"),
        (
            {"estimators": ("corrected",), "propensities": ("logged",), "required": ("logged",)},
            "--propensities logged: no estimator that is tried can use this propensity",
        ),
    ],
)
def test_wrong_options_are_errors_before_the_log_is_read(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        study("nowhere.csv", **changes)


def error_of(log: Interactions, folder: Path, **changes: Any) -> str:
    write_log(log, folder / "log.csv")
    chosen = study(
        folder / "log.csv", scenarios=ONE, replicates=1, estimators=("wmf-distilled",), propensities=(), **changes
    )
    with pytest.raises(UnveilError) as error:
        run(chosen, folder / "advice", Inline())
    return str(error.value)


def test_a_world_that_is_none_is_an_error_before_any_work(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"nothere: not a world: expected a folder with a world\.json"):
        run(study(log, world=str(tmp_path / "nothere")), tmp_path / "none", Inline())
    assert not (tmp_path / "none").exists()


def test_a_share_of_impressions_needs_impressions(tmp_path: Path) -> None:
    found = error_of(rated(), tmp_path, impressions=0.1)
    assert found.startswith("--impressions: ")
    assert "found '0 such rows', expected at least 30 to learn from" in found
    assert not (tmp_path / "advice").exists()
    clicked = np.ones(len(rated()), np.bool_)
    clicked[:3] = False
    with pytest.raises(UnveilError, match="found '3 such rows'"):
        check_impressions(0.1, 0.0, replace(rated(), clicked=clicked))
    check_impressions(0.1, 0.4, replace(rated(), clicked=clicked))
    check_impressions(1.0, 0.0, rated())


def test_users_with_too_few_items_to_rank_are_an_error_at_once(tmp_path: Path) -> None:
    assert error_of(rated(items=30, longest=6), tmp_path, users=1).startswith("too few items to be ranked in ")
    assert not (tmp_path / "advice").exists()


def test_a_drawn_log_with_too_few_items_is_an_error_before_anything_is_fitted_to_it(tmp_path: Path) -> None:
    World.builtin(WorldSpec(users=12, items=9, steps=8), seed=0).save(tmp_path / "world")
    found = error_of(rated(), tmp_path, world=str(tmp_path / "world"))
    assert found.startswith("too few items to be ranked in a log that was drawn from the world: found ")
    assert not list((tmp_path / "advice" / "cells").glob("propensities-*"))


def test_a_study_of_an_effort_looks_at_the_log(log: Path, shown: Path) -> None:
    quick = advise_study(LogSource(log=str(log)), users=40, replicates=None)
    assert (quick.replicates, quick.worlds, len(quick.scenarios), quick.required) == (3, 1, 4, ())
    assert quick.steps == int(np.bincount(read(log).user).max())
    assert quick.left == 0
    own = advise_study(LogSource(log=str(shown)), world="builtin", effort="thorough", propensities=("popularity",))
    assert (own.steps, own.worlds, own.required) == (100, 6, ("popularity",))
    assert own.left > 0
    for wrong in ({"effort": "slow"}, {"propensities": ("popular",)}):
        with pytest.raises(UnveilError, match="unknown"):
            advise_study(LogSource(log=str(log)), **wrong)
