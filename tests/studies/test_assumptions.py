"""One assumption at a time: the axes, who survives, and a whole study of a tiny world."""

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pages import faults
from tests.studies.small import CHANGES, answer_of, record, said, tiny, tiny_world
from unveil.errors import UnveilError
from unveil.report.page import Figure, Table
from unveil.runs.workers import Inline
from unveil.studies.assumptions import Assumptions, Line, Point
from unveil.studies.beyond import Beyond
from unveil.studies.engine import Answer, Report, run, write

BASE = Point()


def study_of(*estimators: str, **fields: Any) -> Assumptions:
    usual = {"data": "builtin", "preset": "quick", "replicates": 2, "severities": ()}
    return Assumptions(**{**usual, "estimators": estimators or ("naive", "itps", "ideal"), **fields})


def test_axes_vary_one_thing_from_the_base() -> None:
    study = study_of(severities=(4.0, 2.0), choices=("rational_all",), propensities=("noisy:1",))
    assert [axis.name for axis in study.axes] == ["propensity", "choice", "severity"], "the base alone is no axis"
    assert list(study.axes[2].levels) == ["1", "2", "4"], "a scale is in order, the base on it"
    for axis in study.axes:
        for point in axis.levels.values():
            assert replace(point, **{axis.name: getattr(BASE, axis.name)}) == BASE
    with pytest.raises(UnveilError, match="no assumption is broken"):
        study_of(severities=(1.0,))


def test_which_propensities_estimators_are_given_is_said_by_their_arms() -> None:
    noisy, estimated = replace(BASE, propensity="noisy:1"), replace(BASE, propensity="popularity-temporal")
    assert noisy.arm("itps") == "itps@noisy:1"
    assert noisy.arm("naive") == "naive"
    assert noisy.arm("ideal") == "ideal"
    assert estimated.arm("itps") == "itps@popularity-temporal"
    assert estimated.arm("ips") is None, "it needs a static one"
    with pytest.raises(UnveilError, match="Did you mean 'popularity'"):
        replace(BASE, propensity="popularty").arm("itps")


def test_points_that_axes_share_are_made_once_and_logs_one_after_another() -> None:
    study = study_of(severities=(1.0, 2.0), propensities=("true", "noisy:1"), replicates=1)
    cells = sorted(study.cells(), key=study.priority)
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == 3 + 3 + 1, "noisy propensities need a training of ITPS alone"
    assert all(keys.count(key) == (2 if key.endswith(("naive", "ideal")) and "p1" in key else 1) for key in keys)
    severities = [cell.at["severity"] for cell in cells]
    assert severities == sorted(severities), "a process draws each log once"
    assert "rational_exposed-f0-w0-p1-r0-itps@noisy-1" in keys


def test_a_gap_has_two_ends() -> None:
    for arms in (("naive", "itps"), ("naive", "naive", "ideal")):
        with pytest.raises(UnveilError, match="two ends"):
            study_of(*arms, severities=(2.0,))


def hits(count: int) -> dict[str, Any]:
    ranks = [1] * count + [50] * (10 - count)
    return record(ranks, ranks)


def answered(study: Assumptions, hit: Mapping[str, Any]) -> Answer:
    """Of ten cases an estimator hits so many, or as many as a function of its place says."""
    return answer_of(study, {cell.key: hits(_hits(hit[cell.at["estimator"]], cell.at)) for cell in study.cells()})


def _hits(count: Any, at: Mapping[str, Any]) -> int:
    return int(count(at) if callable(count) else count)


@pytest.fixture
def made_up() -> Answer:
    """Of ten cases naive hits 2 and ideal 8; corrected 7 and then 5, ITPS 5 and then fewer than naive."""
    study = study_of("naive", "itps", "corrected", "corrected-tempered", "ideal", severities=(1.0, 2.0))
    along = {"corrected": (7, 5), "itps": (5, 1), "corrected-tempered": (3, 2)}
    hit = {
        name: lambda at, own=own, name=name: (
            own[int(at["severity"]) - 1] + at["replicate"] * (name == "corrected-tempered")
        )
        for name, own in along.items()
    }
    return answered(study, {"naive": 2, "ideal": 8, **hit})


def line(answer: Answer, name: str) -> Line:
    found: Line = next(own[name] for own in answer.study.lines(answer).values() if name in own)
    return found


def test_who_holds_who_fades_and_who_breaks(made_up: Answer) -> None:
    assert line(made_up, "corrected").verdict == "holds"
    assert line(made_up, "itps").verdict == "breaks"
    assert line(made_up, "corrected-tempered").verdict == "fades"
    first, second = (gap.mean for gap in line(made_up, "corrected").gaps.values())
    assert second < first
    assert line(made_up, "corrected").lowest == "2"
    assert isinstance(Report(made_up).parts["shares_figure"], Figure)


def test_where_there_may_be_no_gap_there_are_no_shares() -> None:
    """The ideal loss hits one case more than naive in one replicate of two: not surely any."""
    study = study_of("naive", "corrected", "ideal", severities=(1.0, 2.0))
    found = answered(study, {"naive": 5, "corrected": 5, "ideal": lambda at: 5 + at["replicate"]})
    standing, _ = line(found, "corrected").standings.values()
    assert standing.gap is None
    assert "+0.000, no gap °" in str(Report(found).tables)
    assert "shares_figure" not in Report(found).parts
    assert "no gap to draw shares of" in str(Report(found, "unveil").page())


def test_what_was_not_tried_does_not_hold() -> None:
    """There is no static timing, so that IPS has an arm at one point alone."""
    fields: dict[str, Any] = {"base_propensity": "timing", "severities": (1.0, 2.0), "propensities": ("popularity",)}
    found = answered(study_of("naive", "ips", "itps", "ideal", **fields), {"naive": 2, "ips": 7, "itps": 7, "ideal": 8})
    text = said(found)
    assert text.startswith("Significantly above naive at every level of every axis: ITPS.")
    assert "IPS (not tried at timing)" in text
    counts = {each.label: each.value for each in Report(found).page().key_figures}
    assert counts["points where IPS beats naive"] == "1 of 1"
    assert counts["points where ITPS beats naive"] == "3 of 3", "the base point is on both axes, and counts once"
    sections = {section.title: section.blocks for section in Report(found).page().sections}
    (verdicts,) = (block for block in sections["One assumption at a time"] if isinstance(block, Table))
    assert next(row for row in verdicts.rows if row[0] == "IPS")[2] == "–", "nothing is known along severity"
    worse = answered(found.study, {"naive": 2, "ips": 7, "itps": 5, "ideal": 8})
    assert "The best worst case is that of ITPS" in said(worse), "of IPS the more severe level is not known"


def test_where_all_lose_none_closes_most() -> None:
    study = study_of("naive", "ips", "itps", "ideal", severities=(1.0, 2.0))
    found = answered(study, {"naive": 4, "ips": 1, "itps": 2, "ideal": 8})
    assert "At the last level ITPS does least harm, and none closes any of the gap: −" in said(found)


def test_the_text_is_chosen_by_the_figures(made_up: Answer) -> None:
    text = said(made_up)
    assert "at every level of every axis: corrected." in text
    assert "Significantly below it at some level: ITPS." in text
    assert "The best worst case is that of corrected" in text
    assert "tempered (at 1, 2)" in text
    assert "by true relevance, which a real log does not have" in text


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    world = tiny_world(tmp_path_factory.mktemp("world") / "tiny")
    fields = {"foresights": (1.0,), "propensities": ("popularity",), "choices": ("categorical_exposed",)}
    study = tiny(Assumptions, world, estimators=("naive", "corrected", "ideal"), replicates=1, **fields)
    folder = tmp_path_factory.mktemp("assumptions") / "run"
    found = run(study, folder, Inline())
    write(found, folder, ["unveil", "reproduce", "assumptions"])
    return found, folder


def test_arms_of_a_point_share_its_log_and_points_do_not(done: tuple[Answer, Path]) -> None:
    logs: dict[Any, set[str]] = {}
    for cell in done[0].cells:
        place = (cell.at["choice"], cell.at["foresight"], cell.at["severity"])
        logs.setdefault(place, set()).add(done[0].records[cell.key]["log"]["fingerprint"])
    assert all(len(every) == 1 for every in logs.values())
    assert len(set.union(*logs.values())) == len(logs) == 3


def test_the_files_hold_the_figure_and_every_share(done: tuple[Answer, Path]) -> None:
    found, folder = done
    results = json.loads((folder / "results.json").read_text())
    assert results["question"] == "assumptions"
    assert [axis["name"] for axis in results["axes"]] == ["foresight", "propensity", "choice"]
    assert results["axes"][1]["levels"][1]["standings"][0]["estimator"] == "corrected"
    with (folder / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(results["rows"]) > 0
    assert faults((folder / "index.html").read_text()) == []
    assert "categorical" in (folder / "README.md").read_text()
    for name in ("README.md", "index.html"):
        assert f"to see that all is well; changed: {', '.join(CHANGES)}" in (folder / name).read_text()
    again = run(found.study, folder, Inline())
    assert again.made == 0, "nothing is made again"
    assert found.made == len({cell.key for cell in found.cells}) < len(found.cells)
    assert again.frame.equals(found.frame)


def test_cells_and_worlds_are_copied(done: tuple[Answer, Path], tmp_path: Path) -> None:
    """From another study come the cells of the base; logs that it does not draw are not among them."""
    found, folder = done
    fewer = found.study.model_copy(update={"foresights": (), "choices": ()})
    assert run(fewer, tmp_path / "fewer", Inline(), copy_from=folder).made == 0
    arms = ("naive", "corrected", "corrected@popularity", "ideal")
    lent = tiny(Beyond, Path(found.study.data), severities=(1.0,), replicates=1, estimators=arms)
    run(lent, tmp_path / "beyond", Inline())
    copied = run(found.study, tmp_path / "other", Inline(), copy_from=tmp_path / "beyond")
    assert copied.made == found.made - 4
    assert copied.frame.equals(found.frame)
    with pytest.raises(UnveilError, match=r"cells\.seed was 0 and is now 7"):
        other = found.study.model_copy(update={"seed": 7})
        run(other, tmp_path / "no", Inline(), copy_from=tmp_path / "beyond")
    assert not (tmp_path / "no").exists()
