"""Taking over cells from a folder that has none to give."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiment.reproduce.small import tiny_plan, tiny_study, tiny_world
from unveil.errors import UnveilError
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.rq1 import RQ1
from unveil.experiment.reproduce.rq3 import RQ3
from unveil.experiment.reproduce.run import answer, identity
from unveil.experiment.reproduce.worlds import Source
from unveil.runs.workers import Inline
from unveil.studies.cells import Store
from unveil.studies.presets import PRESETS


def test_a_folder_that_cannot_be_taken_from_is_refused_before_another_is_begun(tmp_path: Path) -> None:
    plan, out = tiny_plan(tiny_world(tmp_path / "world")), tmp_path / "out"
    with pytest.raises(UnveilError, match="nowhere: there are no cells to copy"):
        answer(RQ3(), plan, out, Inline(), take_from=tmp_path / "nowhere")
    other = Plan(replace(tiny_study(tmp_path / "world"), clip=0.5))
    Store(tmp_path / "other", identity(RQ1(), other, Source.of(other.study))).open()
    with pytest.raises(UnveilError, match=r"belongs to another run: .*clip"):
        answer(RQ3(), plan, out, Inline(), take_from=tmp_path / "other")
    assert not out.exists()


def test_settings_that_folders_leave_unsaid_are_told_as_their_defaults(tmp_path: Path) -> None:
    plan = tiny_plan(tiny_world(tmp_path / "world"))
    Store(tmp_path / "out", identity(RQ1(), plan, Source.of(plan.study))).open()
    other = replace(plan, study=replace(plan.study, impressions=0.2))
    with pytest.raises(UnveilError, match=r"another run: cells\.impressions was 0\.1 and is now 0\.2\."):
        answer(RQ1(), other, tmp_path / "out", Inline())


def test_cells_of_a_preset_that_changed_since_are_neither_gone_on_with_nor_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tiny_plan(tiny_world(tmp_path / "world"))
    name = plan.study.preset
    Store(tmp_path / "before", identity(RQ1(), plan, Source.of(plan.study))).open()
    later = replace(PRESETS[name], revision=PRESETS[name].revision + 1)
    monkeypatch.setattr("unveil.studies.presets.PRESETS", {**PRESETS, name: later})
    changed = rf"another run: cells\.preset was {name} and is now {name}, revision 2\."
    with pytest.raises(UnveilError, match=changed):
        answer(RQ1(), plan, tmp_path / "before", Inline())
    with pytest.raises(UnveilError, match=changed):
        answer(RQ3(), plan, tmp_path / "after", Inline(), take_from=tmp_path / "before")
    assert not (tmp_path / "after").exists()
