"""One assumption at a time: the axes, who survives, and a whole study of a tiny world."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiment.reproduce.small import CHANGES, cell, tiny_study, tiny_world
from tests.pages import faults
from unveil.errors import UnveilError
from unveil.experiment.assumptions.axes import Point, axes
from unveil.experiment.assumptions.files import write
from unveil.experiment.assumptions.page import figure, mark, page, sheets
from unveil.experiment.assumptions.plan import Assumptions, Spot
from unveil.experiment.assumptions.run import Survey, run
from unveil.experiment.assumptions.standing import Line, lines, standings
from unveil.experiment.assumptions.words import reading, remarks
from unveil.experiment.reproduce.catalogue import QUESTIONS
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.run import answer
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import Source
from unveil.report.page import Figure, Note, Table
from unveil.runs.workers import Inline

BASE = Point()


def test_axes_vary_one_thing_from_the_base() -> None:
    found = axes(BASE, {"severity": (4, 2), "foresight": (), "choice": ("rational_all",), "propensity": ("noisy:1",)})
    assert [axis.name for axis in found] == ["severity", "choice", "propensity"], "the base alone is no axis"
    assert [level.label for level in found[0].levels] == ["1", "2", "4"], "a scale is in order, the base on it"
    for axis in found:
        for level in axis.levels:
            assert replace(level.point, **{axis.name: getattr(BASE, axis.name)}) == BASE
    with pytest.raises(UnveilError, match="no assumption is broken"):
        axes(BASE, {"severity": (1.0,)})


def test_what_estimators_are_told_is_said_by_their_arms() -> None:
    noisy, estimated = replace(BASE, propensity="noisy:1"), replace(BASE, propensity="popularity-temporal")
    assert noisy.arm("itps") == "itps@noisy:1"
    assert noisy.arm("naive") == "naive"
    assert noisy.arm("ideal") == "ideal"
    assert estimated.arm("itps") == "itps@popularity-temporal"
    assert estimated.arm("ips") is None, "it needs a static one"
    with pytest.raises(UnveilError, match="Did you mean 'popularity'"):
        replace(BASE, propensity="popularty").arm("itps")


def plan_of(study: Study, values: Mapping[str, Sequence[object]], *estimators: str, replicates: int = 2) -> Assumptions:
    return Assumptions(study, BASE, axes(BASE, values), 1, replicates, estimators)


def test_points_that_axes_share_are_made_once_and_logs_one_after_another() -> None:
    values = {"severity": (1.0, 2.0), "propensity": ("true", "noisy:1")}
    plan = plan_of(Study(data="builtin", preset="quick"), values, "naive", "itps", "ideal", replicates=1)
    jobs = plan.cell_jobs(Path("nowhere"))
    keys = [job.key for job in jobs.values()]
    assert len(set(keys)) == 3 + 3 + 1, "noisy propensities need a training of ITPS alone"
    assert all(keys.count(key) == (2 if key.endswith(("naive", "ideal")) and "p1" in key else 1) for key in keys)
    severities = [spot.point.severity for spot in jobs]
    assert severities == sorted(severities), "a process draws each log once"
    assert "rational_exposed-f0-w0-p1-r0-itps@noisy-1" in keys


def test_a_gap_has_two_ends() -> None:
    with pytest.raises(UnveilError, match="two ends"):
        plan_of(Study(data="builtin", preset="quick"), {"severity": (2.0,)}, "naive", "itps")
    with pytest.raises(UnveilError, match="two ends"):
        plan_of(Study(data="builtin", preset="quick"), {"severity": (2.0,)}, "naive", "naive", "ideal")


def hits(count: int) -> dict[str, object]:
    ranks = [1] * count + [50] * (10 - count)
    return cell(ranks, ranks)


@pytest.fixture
def made_up() -> Survey:
    """Of ten cases naive hits 2 and ideal 8; corrected 7 and then 5, ITPS 5 and then fewer than naive."""
    study = Study(data="builtin", preset="quick")
    plan = plan_of(study, {"severity": (2.0,)}, "naive", "itps", "corrected", "tempered", "ideal")
    hit = {"naive": (2, 2), "ideal": (8, 8), "corrected": (7, 5), "itps": (5, 1), "tempered": (3, 2)}
    cells = {
        spot: hits(
            hit[spot.estimator][int(spot.point.severity) - 1] + (spot.replicate * (spot.estimator == "tempered"))
        )
        for spot in plan.cell_jobs(Path("nowhere"))
    }
    return Survey(plan, Source("builtin", "builtin", "made up"), cells, [], 0.0, 0)


def line(survey: Survey, name: str) -> Line:
    return next(each for each in lines(survey) if each.estimator == name)


def test_who_holds_who_fades_and_who_breaks(made_up: Survey) -> None:
    assert line(made_up, "corrected").verdict == "holds"
    assert line(made_up, "itps").verdict == "breaks"
    assert line(made_up, "tempered").verdict == "fades"
    gaps = [each.gap.mean for each in line(made_up, "corrected").standings if each.gap]
    assert gaps[1] < gaps[0]
    low = line(made_up, "corrected").lowest
    assert low is not None
    assert low.level.label == "2"


def told_of(base: Point, hit: Mapping[str, int], values: Mapping[str, Sequence[object]]) -> Survey:
    """A study whose estimators hit the same number of ten cases everywhere."""
    plan = Assumptions(Study(data="builtin", preset="quick"), base, axes(base, values), 1, 2, tuple(hit))
    cells = {spot: hits(hit[spot.estimator]) for spot in plan.cell_jobs(Path("nowhere"))}
    return Survey(plan, Source("builtin", "builtin", "made up"), cells, [], 0.0, 0)


def test_the_figure_is_drawn(made_up: Survey) -> None:
    assert isinstance(figure(made_up), Figure)


def test_where_there_may_be_no_gap_there_are_no_shares(made_up: Survey) -> None:
    """The ideal loss hits one case more than naive in one replicate of two: not surely any."""
    level = made_up.plan.axes[0].levels[0]
    few = {spot: hits(5 + (spot.estimator == "ideal") * spot.replicate) for spot in made_up.cells}
    found = replace(made_up, cells=few)
    standing = standings(found, level)["corrected"]
    assert standing.gap is None
    assert mark(standing) == "+0.000, no gap °"
    assert isinstance(figure(found), Note)
    assert "–" not in sheets(found)[0].rows[0]


def test_what_was_not_tried_does_not_hold() -> None:
    """There is no static timing, so that IPS has an arm at one point alone."""
    base, values = replace(BASE, propensity="timing"), {"severity": (2.0,), "propensity": ("popularity",)}
    found = told_of(base, {"naive": 2, "ips": 7, "itps": 7, "ideal": 8}, values)
    told = reading(found)
    assert told[0].startswith("Surely above naive at every level of every axis: ITPS.")
    along = {part.partition(":")[0].removeprefix("Along "): part for part in told[2:]}
    assert "IPS (not tried at timing)" in along["propensities"]
    assert "naive at every level: ITPS." in along["severity p"]
    made = page(found, "unveil")
    counts = {each.label: each.value for each in made.key_figures}
    assert counts["points where IPS beats naive"] == "1 of 1"
    assert counts["points where ITPS beats naive"] == "3 of 3", "the base point is on both axes, and counts once"
    verdicts = made.sections[0].blocks[1]
    assert isinstance(verdicts, Table)
    assert next(row for row in verdicts.rows if row[0] == "IPS")[1] == "–", "nothing is known along severity"


def test_what_was_not_tried_has_no_worst_case() -> None:
    base, values = replace(BASE, propensity="timing"), {"severity": (2.0,), "propensity": ("popularity",)}
    found = told_of(base, {"naive": 2, "ips": 7, "itps": 5, "ideal": 8}, values)
    assert "The best worst case is that of ITPS" in reading(found)[0], "of IPS the harsher level is not known"


def test_where_all_lose_none_closes_most() -> None:
    found = told_of(BASE, {"naive": 4, "ips": 1, "itps": 2, "ideal": 8}, {"severity": (2.0,)})
    assert "At the last level ITPS does least harm, and none closes any of the gap: −" in reading(found)[-1]


def test_the_reading_is_chosen_by_the_figures(made_up: Survey) -> None:
    told = " ".join(reading(made_up))
    assert "Surely above naive at every level of every axis: corrected." in told
    assert "Surely below it somewhere: ITPS." in told
    assert "The best worst case is that of corrected" in told
    assert "tempered (at 1, 2)" in told


def test_what_chose_the_epochs_is_said(made_up: Survey) -> None:
    assert "by true relevance, which a real log does not have" in remarks(made_up)
    taken = replace(made_up.plan, study=replace(made_up.plan.study, epoch_by="taken"))
    assert "by what was taken" in remarks(replace(made_up, plan=taken))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Survey, Path]:
    world = tiny_world(tmp_path_factory.mktemp("world") / "tiny")
    values = {"foresight": (1.0,), "propensity": ("popularity",), "choice": ("categorical_exposed",)}
    plan = plan_of(tiny_study(world), values, "naive", "corrected", "ideal", replicates=1)
    folder = tmp_path_factory.mktemp("assumptions") / "run"
    found = run(plan, folder, Inline())
    write(found, folder, ["unveil", "reproduce", "assumptions"])
    return found, folder


def test_arms_of_a_point_share_its_log_and_points_do_not(tiny: tuple[Survey, Path]) -> None:
    found = tiny[0]
    logs: dict[Point, set[str]] = {}
    for spot, each in found.cells.items():
        logs.setdefault(replace(spot.point, propensity="true"), set()).add(each["log"]["fingerprint"])
    assert all(len(every) == 1 for every in logs.values())
    assert len(set.union(*logs.values())) == len(logs) == 3


def test_the_files_hold_the_figure_and_every_share(tiny: tuple[Survey, Path]) -> None:
    found, folder = tiny
    told = json.loads((folder / "results.json").read_text())
    assert told["question"] == "assumptions"
    assert [axis["name"] for axis in told["axes"]] == ["foresight", "propensity", "choice"]
    assert told["axes"][1]["levels"][1]["standings"][0]["estimator"] == "corrected"
    with (folder / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(told["rows"]) > 0
    assert faults((folder / "index.html").read_text()) == []
    assert "categorical" in (folder / "README.md").read_text()
    for name in ("README.md", "index.html"):
        assert f"to see that all is well; changed: {', '.join(CHANGES)}" in (folder / name).read_text()
    again = run(found.plan, folder, Inline())
    assert again.made == 0, "nothing is made again"
    assert found.made == len({job.key for job in found.plan.cell_jobs(folder).values()}) < len(found.cells)
    assert again.cells == found.cells


def test_a_folder_lends_its_worlds(tiny: tuple[Survey, Path], tmp_path: Path) -> None:
    found, folder = tiny
    other = replace(found.plan, axes=found.plan.axes[1:2])
    taken = run(other, tmp_path / "other", Inline(), take_from=folder)
    assert taken.made == 0
    assert taken.cells.keys() == other.cell_jobs(tmp_path).keys()


def test_another_question_lends_the_cells_of_the_base(tiny: tuple[Survey, Path], tmp_path: Path) -> None:
    """What is taken over is what would have been made; logs that the other question does not draw are not among it."""
    found, study = tiny[0], tiny[0].plan.study
    lent = Plan(study, (1.0,), replicates=1, estimators=("naive", "corrected", "corrected@popularity", "ideal"))
    answer(QUESTIONS["beyond"], lent, tmp_path / "beyond", Inline())
    taken = run(found.plan, tmp_path / "other", Inline(), take_from=tmp_path / "beyond")
    assert taken.made == found.made - 4
    for spot, each in taken.cells.items():
        assert {**each, "seconds": 0} == {**found.cells[spot], "seconds": 0}
    with pytest.raises(UnveilError, match=r"cells\.seed was 0 and is now 7"):
        run(replace(found.plan, study=replace(study, seed=7)), tmp_path / "no", Inline(), take_from=tmp_path / "beyond")
    assert not (tmp_path / "no").exists()


def test_spots_name_every_cell(tiny: tuple[Survey, Path]) -> None:
    assert Spot(BASE, 0, 0, "corrected") in tiny[0].cells
