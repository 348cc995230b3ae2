"""Advice from a small log with ratings, and without, from the plan to the files."""

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tests.pages import faults
from tests.simulation.rated import rated
from unveil.data.filters import LogSource
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.experiment.advise.basis import by_ratings
from unveil.experiment.advise.candidates import Candidates
from unveil.experiment.advise.cell import AdviceCell, drawn
from unveil.experiment.advise.files import CONFIG, experiment, write
from unveil.experiment.advise.gains import Floats
from unveil.experiment.advise.insisted import refuse_lacking
from unveil.experiment.advise.judged import Advice
from unveil.experiment.advise.page import figure
from unveil.experiment.advise.plan import AdvicePlan
from unveil.experiment.advise.run import Tried, advise
from unveil.experiment.advise.scenarios import Scenario, scenarios
from unveil.experiment.advise.source import Looks, left_behind, read_shown
from unveil.experiment.advise.study import AdviceStudy
from unveil.experiment.advise.words import caution, reading
from unveil.experiment.reproduce.results import Figure
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.impressions import RecordedTemporal
from unveil.runs.config import Experiment
from unveil.runs.workers import Inline
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

TINY = ("model.width=8", "model.length=12", "training.epochs=1", "training.validate_every=1")


STUDY = AdviceStudy(users=40, steps=12, changes=TINY)


def plan_of(log: Path, study: AdviceStudy = STUDY) -> AdvicePlan:
    return AdvicePlan(
        LogSource(log=str(log)),
        study,
        scenarios(("rational_exposed",), (1.0, 2.0), study.liked),
        worlds=1,
        replicates=2,
        estimators=("itps", "corrected"),
        clips=("5%",),
        propensities=("popularity", "learnt"),
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    write_log(rated(), path)
    return path


@pytest.fixture(scope="module")
def made(log: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, Path, list[str]]:
    folder, said = tmp_path_factory.mktemp("advice") / "run", list[str]()
    found = advise(plan_of(log), folder, Inline(), tell=said.append)
    write(Advice(found), folder, ["unveil", "advise", str(log)])
    return found, folder, said


def test_all_arms_of_a_draw_share_its_log(made: tuple[Tried, Path, list[str]]) -> None:
    found = made[0]
    assert found.candidates.usable == ("naive", "itps@popularity+clip=5%", "corrected@popularity")
    logs: dict[tuple[Scenario, int], set[str]] = {}
    for at, cell in found.cells.items():
        logs.setdefault((at.scenario, at.replicate), set()).add(cell["log"]["fingerprint"])
    assert all(len(every) == 1 for every in logs.values())
    assert len(set.union(*logs.values())) == 4, "scenarios and replicates draw apart"


def test_time_is_told_before_the_first_training(made: tuple[Tried, Path, list[str]]) -> None:
    assert made[2][0].startswith("Finding out which propensities can be had")
    assert made[2][1].startswith("24 trainings on 4 drawn logs, 24 left: about")


def test_the_folder_goes_on_where_it_was(made: tuple[Tried, Path, list[str]], log: Path) -> None:
    found, folder, _ = made
    said: list[str] = []
    again = advise(plan_of(log), folder, Inline(), tell=said.append)
    assert again.made == 0
    assert said == ["24 trainings are done: nothing is left to do."]
    assert again.cells == found.cells
    with pytest.raises(UnveilError, match="belongs to another run"):
        advise(plan_of(log, replace(STUDY, seed=1)), folder, Inline())


def test_the_config_trains_as_advised(made: tuple[Tried, Path, list[str]], log: Path) -> None:
    found, folder, _ = made
    advice = Advice(found)
    told = json.loads((folder / "results.json").read_text())
    assert told["advice"]["chosen"] == advice.decision.chosen
    assert {row["estimator"] for row in told["rows"]} == set(found.candidates.arms)
    taken = Experiment.of(folder / CONFIG)
    assert taken == experiment(advice)
    assert taken.estimator["name"] == advice.decision.chosen.partition("@")[0]
    assert taken.data.log == str(log)
    assert taken.model.width == 8


def test_a_clip_is_a_number_of_the_real_log(made: tuple[Tried, Path, list[str]]) -> None:
    advice = Advice(made[0])
    advice.__dict__["decision"] = replace(advice.decision, chosen="itps@popularity+clip=5%")
    own = experiment(advice)
    assert 0 < own.estimator["clip"] < 1
    assert own.propensity == {"name": "popularity-temporal"}


def test_the_page_says_what_to_use_and_what_it_rests_on(made: tuple[Tried, Path, list[str]]) -> None:
    found, folder, _ = made
    page = (folder / "index.html").read_text()
    assert faults(page) == []
    for words in ("What to do", "Every candidate", "What knowing the truth would give", "Drawn logs beside yours"):
        assert words in page
    told = " ".join(reading(Advice(found)))
    assert told.startswith("Use ")
    assert "What could not be tried: learnt (" in told
    assert (folder / "figures" / "scenarios.svg").is_file()
    assert tomllib.loads((folder / CONFIG).read_text())["data"]["log"]


class Shown(Advice):
    """Two scenarios of two draws in which ideal gains .4 over naive and `ever` loses .05, surely."""

    def values(self, figure: Figure) -> dict[str, Floats]:
        naive = np.array([[[0.40, 0.41]], [[0.50, 0.51]]])
        return {"naive": naive, "ever": naive - 0.05, "ideal": naive + 0.4}

    def looks(self, scenario: Scenario) -> Looks:
        return self.tried.looks


class DrawnOnce(Shown):
    """The first draw of each scenario alone."""

    def values(self, figure: Figure) -> dict[str, Floats]:
        return {arm: value[:, :, :1] for arm, value in super().values(figure).items()}


def test_one_draw_is_no_advice(made: tuple[Tried, Path, list[str]]) -> None:
    plan = replace(made[0].plan, worlds=1, replicates=1)
    once = replace(made[0], plan=plan, candidates=Candidates(("naive", "ever"), ("ideal",)))
    first, *_ = reading(DrawnOnce(once))
    assert first.startswith("No advice yet: with one world and one draw in each scenario nothing can be told")
    assert first.endswith("the highest mean is its own; until that is tested, use the naive loss.")


def test_what_is_surely_below_naive_is_not_said_to_be_like_it(made: tuple[Tried, Path, list[str]]) -> None:
    first, *rest = reading(Shown(replace(made[0], candidates=Candidates(("naive", "ever"), ("ideal",)))))
    assert first == (
        "Use the naive loss: over 2 scenarios no estimator that this log allows is surely above it. "
        "The highest mean is its own."
    )
    assert not any("What knowing exposure would give" in each for each in rest), "no arm was told it"


def test_ratings_in_drawn_logs_are_better_than_stars(made: tuple[Tried, Path, list[str]]) -> None:
    assert "not in stars" not in caution(Advice(made[0]))
    rated = replace(made[0], candidates=replace(made[0].candidates, usable=("naive", "ever-rated")))
    assert "not in stars" in caution(Advice(rated))
    assert [by_ratings(arm) for arm in ("naive", "ever", "itps@popularity+clip=5%", "itps@true")] == [False] * 4
    assert by_ratings("itps@joint-rated+clip=5%")


def test_users_who_never_come_back_are_told_from_those_of_worlds(made: tuple[Tried, Path, list[str]]) -> None:
    tried = replace(made[0], candidates=replace(made[0].candidates, usable=("naive", "ever-rated")))
    assert "0.0% of the events take an item again" in caution(Advice(replace(tried, again=0.0)))
    assert "again, and users of drawn logs" not in caution(Advice(replace(tried, again=0.5)))
    assert "again, and users of drawn logs" not in caution(Advice(replace(made[0], again=0.0)))


def test_a_log_without_ratings_needs_a_declaration(log: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    write_log(replace(rated(), rating=None), bare)
    with pytest.raises(UnveilError, match="--implicit"):
        advise(plan_of(bare), tmp_path / "refused", Inline())
    small = replace(
        plan_of(bare, replace(STUDY, liked=(0.2, 0.8))), replicates=1, estimators=("corrected", "ever-rated")
    )
    small = replace(small, scenarios=scenarios(("rational_exposed",), (1.0,), (0.2, 0.8)))
    found = advise(small, tmp_path / "declared", Inline())
    assert found.candidates.usable == ("naive", "corrected@popularity"), "drawn logs have ratings, this one has none"
    assert "rating" in found.refused["ever-rated"]
    assert [world["origin"]["liked"] for world in found.worlds] == [0.2, 0.8]
    advice = Advice(found)
    write(advice, tmp_path / "declared", ["unveil", "advise"])
    assert "declared, not learnt: 20%, 80%" in (tmp_path / "declared" / "README.md").read_text()
    assert advice.decision.chosen == "naive", "one draw says nothing sure"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rated log that keeps some of what its users were shown and left."""
    world = World.builtin(WorldSpec(users=50, items=30, steps=30), seed=3)
    path = tmp_path_factory.mktemp("shown") / "log.csv"
    write_log(replace(world.log(np.random.default_rng(0), ratings_noise=0.3, impressions=0.2), step=None), path)
    return path


def test_impressions_of_the_log_are_tried_as_well(shown: Path, tmp_path: Path) -> None:
    left = left_behind(read_shown(LogSource(log=str(shown)), 40, 0))
    assert left > 0.1
    plan = replace(
        plan_of(shown, replace(STUDY, left=left)),
        scenarios=scenarios(("rational_exposed",), (1.0,)),
        replicates=1,
        estimators=("corrected", "ever-rated"),
        propensities=("popularity", "recorded"),
    )
    found = advise(plan, tmp_path / "advice", Inline())
    assert found.candidates.usable == ("naive", "corrected@popularity", "corrected@recorded", "ever-rated")
    assert len({cell["log"]["fingerprint"] for cell in found.cells.values()}) == 1, "the same was taken for all arms"
    assert "impressions that nobody took, as yours does" in caution(Advice(found))
    world, log, rate = drawn(plan.study, tmp_path / "advice", 0, plan.scenarios[0], 0, recorded=True)
    assert 0 < rate < 1
    assert left_behind(log) == pytest.approx(left, rel=0.25)
    plain = drawn(plan.study, tmp_path / "advice", 0, plan.scenarios[0], 0)
    assert replace(log.interacted(), clicked=None) == plain.log
    assert plain.rate == 0
    assert world.n_items == plain.world.n_items


def test_the_config_says_which_share_of_the_impressions_the_log_keeps(
    shown: Path, made: tuple[Tried, Path, list[str]]
) -> None:
    study = replace(STUDY, left=0.9, impressions=0.2)
    assert study.recipe("corrected@recorded", 0).propensity["rate"] == 0.2
    assert "rate" not in study.recipe("corrected@popularity", 0).propensity
    advice = Advice(replace(made[0], plan=plan_of(shown, study)))
    advice.__dict__["decision"] = replace(advice.decision, chosen="corrected@recorded")
    assert experiment(advice).propensity == {"name": "recorded-temporal", "seed": 0, "rate": 0.2}
    with pytest.raises(UnveilError, match="impressions: out of range"):
        replace(STUDY, impressions=0)


def test_cells_are_told_by_the_impressions_they_depend_on() -> None:
    def key(left: float, arm: str) -> str:
        return AdviceCell(replace(STUDY, left=left), Path(), 0, Scenario("rational_exposed", 1.0), 0, arm).key

    assert key(0.5, "naive") == key(0.8, "naive") == "d0-rational_exposed-p1-r0-naive"
    assert key(0.5, "itps@recorded") != key(0.8, "itps@recorded")


def test_impressions_count_where_something_can_be_learnt_from_them(shown: Path) -> None:
    log = read_shown(LogSource(log=str(shown)), 40, 0)
    assert log.clicked is not None
    assert log.time is not None
    late = replace(log, time=np.where(log.clicked, log.time, log.time + 10**15))
    assert left_behind(late) == 0, "all of them come after what is held out"
    few = np.flatnonzero(~log.clicked)[:20]
    assert left_behind(log.where(np.sort(np.concatenate([np.flatnonzero(log.clicked), few])))) == 0
    unseen = replace(log, exposed=log.clicked)
    assert left_behind(unseen) == 0, "the system did not show them"


@dataclass
class OfAShop(RecordedTemporal):
    """Somebody else's, under another name."""

    name: ClassVar[str] = "of-a-shop"


def test_what_others_learn_from_impressions_is_tried_too(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROPENSITIES._found, OfAShop.name, OfAShop)
    plan = replace(
        plan_of(shown, replace(STUDY, left=0.5)),
        scenarios=scenarios(("rational_exposed",), (1.0,)),
        replicates=1,
        estimators=("corrected",),
        propensities=("of-a-shop",),
    )
    assert advise(plan, tmp_path / "advice", Inline()).candidates.usable == ("naive", "corrected@of-a-shop")


def test_a_log_without_impressions_has_no_recorded_exposure(log: Path, tmp_path: Path) -> None:
    assert left_behind(read_shown(LogSource(log=str(log)), 40, 0)) == 0
    with pytest.raises(UnveilError, match="allows the naive loss alone"):
        advise(replace(plan_of(log), propensities=("recorded",)), tmp_path / "none", Inline())


def test_nothing_but_naive_can_be_had(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="allows the naive loss alone"):
        advise(replace(plan_of(log), propensities=("learnt",)), tmp_path / "none", Inline())


@pytest.mark.parametrize(
    ("propensities", "says"),
    [
        (("popularity", "known"), "--propensities known: cannot be had from this log: the propensity 'known-static' "),
        (("noisy",), "needs a world whose exposure is known"),
        (("logged",), "needs a log with a propensity column, and there is none"),
        (("recorded",), "a log with impressions without a click, and there is none.*--clicked-col"),
        (("position",), "needs a log with a position column"),
        (("learnt",), "needs the folder of a learnt exposure"),
    ],
)
def test_what_is_insisted_on_and_cannot_be_had_is_refused_before_any_work(
    log: Path, tmp_path: Path, propensities: tuple[str, ...], says: str
) -> None:
    plan = replace(plan_of(log), propensities=propensities, insist=True)
    with pytest.raises(UnveilError, match=says):
        advise(plan, tmp_path / "none", Inline())
    assert not (tmp_path / "none").exists()


def test_what_no_drawn_log_has_cannot_be_insisted_on(log: Path) -> None:
    placed = replace(rated(), position=np.ones(len(rated()), np.int32))
    with pytest.raises(UnveilError) as told:
        refuse_lacking(("position",), placed, recorded=False)
    assert "position: cannot be had from logs that are drawn from a world: the propensity 'position'" in str(told.value)
    assert "--position-col" not in str(told.value), "the user's log has one"
    refuse_lacking((), placed, recorded=False)
    refuse_lacking(("popularity", "timing", "joint-rated"), placed, recorded=False)


def test_impressions_that_are_kept_can_be_insisted_on(shown: Path) -> None:
    kept = read_shown(LogSource(log=str(shown)), 40, 0)
    refuse_lacking(("recorded", "logged"), kept, recorded=True)
    with pytest.raises(UnveilError, match="recorded: cannot be had from logs that are drawn from a world"):
        refuse_lacking(("recorded",), kept, recorded=False)


def test_what_turns_out_not_to_be_had_is_refused_before_the_first_training(log: Path) -> None:
    plan = replace(plan_of(log), propensities=("popularity", "timing"), insist=True)
    had = {"popularity-static": "", "popularity-temporal": "", "timing": ""}
    refused = had | {"popularity-static": "no", "timing": "too few events"}
    usable = plan.candidates({"real": had, "drawn": had}, rated=True).usable
    assert "itps@timing+clip=5%" in usable
    with pytest.raises(UnveilError, match="--propensities timing: cannot be had from this log: too few events"):
        plan.candidates({"real": refused, "drawn": had}, rated=True)
    with pytest.raises(UnveilError, match="--propensities timing: cannot be had from logs that are drawn from a world"):
        plan.candidates({"real": had, "drawn": refused}, rated=True)
    left = replace(plan, insist=False).candidates({"real": refused, "drawn": had}, rated=True).usable
    assert not any("timing" in arm for arm in left), "what was not asked for by name is left out"


def test_what_no_estimator_can_use_cannot_be_insisted_on(log: Path) -> None:
    with pytest.raises(UnveilError, match="--propensities logged: no estimator that is tried can use this propensity"):
        replace(plan_of(log), estimators=("corrected",), propensities=("logged",), insist=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("itps:estimator.exponent=x", r"itps\.exponent: not a valid value: found 'x'"),
        ("propensity.add=x", r"popularity-temporal\.add: not a valid value: found 'x'"),
        ("estimator.clip=0.1", "unknown option of the estimator 'naive'"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused_with_the_plan(log: Path, change: str, says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        plan_of(log, replace(STUDY, changes=(*TINY, change)))


def test_without_a_scenario_there_is_no_plan(log: Path) -> None:
    with pytest.raises(UnveilError, match="there is no scenario to try"):
        replace(plan_of(log), scenarios=())


def test_a_world_that_is_none_is_refused_before_any_work(log: Path, tmp_path: Path) -> None:
    plan = plan_of(log, replace(STUDY, world=str(tmp_path / "nothere")))
    with pytest.raises(UnveilError, match=r"nothere: not a world: expected a folder with a world\.json"):
        advise(plan, tmp_path / "none", Inline())
    assert not (tmp_path / "none").exists()


def test_the_figure_names_what_its_bars_are_over(made: tuple[Tried, Path, list[str]]) -> None:
    advice = Advice(made[0])
    assert "intervals over replicates" in figure(advice).caption
    assert "true propensities" in figure(advice).caption


def test_naive_alone_is_nothing_to_choose_from(log: Path) -> None:
    with pytest.raises(UnveilError, match="nothing to compare with the naive loss"):
        replace(plan_of(log), estimators=("naive", "ideal"))


def test_a_saved_world_is_one_world(log: Path) -> None:
    with pytest.raises(UnveilError, match="one world"):
        replace(plan_of(log, replace(STUDY, world="somewhere")), worlds=2)
