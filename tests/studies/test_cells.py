"""What is done is kept and not done again; what fails is told; a folder belongs to one grid."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from tests.runs.jobs import Toy
from unveil.errors import UnveilError
from unveil.runs.progress import Bar, Lines, Silent, job_watcher
from unveil.runs.workers import Advanced, Done, Event, Failed, Inline, Job
from unveil.studies.cells import Interrupted, Store, run_cells

IDENTITY = {"question": "rq0", "cells": {"seed": 1, "preset": "quick"}}


class Counting(Inline):
    """Remembers what it was asked to do, and may be interrupted before a job."""

    def __init__(self, interrupted_at: int | None = None) -> None:
        self.asked: list[str] = []
        self.interrupted_at = interrupted_at

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        for place, job in enumerate(jobs):
            if place == self.interrupted_at:
                raise KeyboardInterrupt
            self.asked.append(job.key)
            yield from super().run([job])


def store(folder: Path) -> Store:
    made = Store(folder, IDENTITY)
    made.open()
    return made


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    jobs, first, second = [Toy(n) for n in range(4)], Counting(interrupted_at=2), Counting()
    with pytest.raises(Interrupted, match="stopped; 2 of 4 cells are done and kept"):
        run_cells(jobs, store(tmp_path), first, Silent())
    found = run_cells(jobs, store(tmp_path), second, Silent())
    assert (first.asked, second.asked) == (["n0", "n1"], ["n2", "n3"])
    assert list(found) == ["n0", "n1", "n2", "n3"]
    assert [result["square"] for result in found.values()] == [0, 1, 4, 9]


def test_failures_are_told_together_and_the_others_stay(tmp_path: Path) -> None:
    jobs = [Toy(0), Toy(1, "refused"), Toy(2, "bug"), Toy(3)]
    with pytest.raises(UnveilError) as failure:
        run_cells(jobs, store(tmp_path), Inline(), Silent())
    message = str(failure.value)
    assert "2 of 4 cells failed: n1: this cannot be squared: found 1; n2: ZeroDivisionError: a bug" in message
    assert f"See {tmp_path / 'errors'}" in message
    assert "Traceback" in (tmp_path / "errors" / "n2.txt").read_text()
    again = Counting()
    run_cells([Toy(0), Toy(1), Toy(2), Toy(3)], store(tmp_path), again, Silent())
    assert again.asked == ["n1", "n2"]
    assert not list((tmp_path / "errors").iterdir())


@pytest.mark.parametrize("damaged", ['{"square": 4', "{}", "[]", "null", ""])
def test_a_damaged_cell_is_done_again(tmp_path: Path, damaged: str) -> None:
    run_cells([Toy(2)], store(tmp_path), Inline(), Silent())
    path = tmp_path / "cells" / "n2.json"
    path.write_text(damaged or path.read_text().replace('"square": 4', '"square": 5'))
    engine = Counting()
    assert run_cells([Toy(2)], store(tmp_path), engine, Silent())["n2"]["square"] == 4
    assert engine.asked == ["n2"]


def test_a_folder_of_another_grid_is_refused_with_what_differs(tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(UnveilError, match=r"another run: cells\.seed was 1 and is now 2\. Name another folder"):
        Store(tmp_path, {**IDENTITY, "cells": {"seed": 2, "preset": "quick"}}).open()
    with pytest.raises(UnveilError, match="question was rq0 and is now rq9"):
        Store(tmp_path, {**IDENTITY, "question": "rq9"}).open()
    store(tmp_path)


def test_of_a_folder_of_another_question_nothing_else_is_said(tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(UnveilError) as refused:
        Store(tmp_path, {"question": "rq9", "cells": {"alpha": 3, "seed": 2}}).open()
    assert "another run: question was rq0 and is now rq9. Name another folder" in str(refused.value)


def test_data_are_told_by_the_first_digits_of_their_fingerprint(tmp_path: Path) -> None:
    Store(tmp_path, {"cells": {"data": "0123456789abcdef" * 4}}).open()
    with pytest.raises(UnveilError, match=r"cells\.data was 01234567… and is now fedcba98…\. Name another"):
        Store(tmp_path, {"cells": {"data": "fedcba9876543210" * 4}}).open()


def test_what_is_left_unsaid_is_told_as_what_it_is(tmp_path: Path) -> None:
    Store(tmp_path, IDENTITY, {"share": 0.1}).open()
    assert "share" not in (tmp_path / "run.json").read_text()
    said = {"seed": 1, "preset": "quick"}
    with pytest.raises(UnveilError, match=r"another run: cells\.share was 0\.1 and is now 0\.2\."):
        Store(tmp_path, {**IDENTITY, "cells": {**said, "share": 0.2}}, {"share": 0.1}).open()
    Store(tmp_path, {**IDENTITY, "cells": {**said, "share": 0.1}}, {"share": 0.1}).open()


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UnveilError, match="holds something else"):
        store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_cells_are_taken_over_from_a_folder_that_depends_on_the_same(tmp_path: Path) -> None:
    run_cells([Toy(1), Toy(2)], store(tmp_path / "one"), Inline(), Silent())
    other = Store(tmp_path / "other", {**IDENTITY, "question": "rq9"})
    other.open()
    assert other.copy_from(tmp_path / "one", {"here": ["n7", "n1"], "n5": ["n5"]}) == 1
    assert other.result("here") == store(tmp_path / "one").result("n1")
    assert other.result("n2") is None
    third = Store(tmp_path / "third", {**IDENTITY, "cells": {"seed": 5, "preset": "quick"}})
    third.open()
    with pytest.raises(UnveilError, match=r"cells\.seed was 1 and is now 5"):
        third.copy_from(tmp_path / "one", {"n1": ["n1"]})
    with pytest.raises(UnveilError, match="no cells to copy"):
        third.copy_from(tmp_path / "nowhere", {"n1": ["n1"]})


def watched(*, terminal: bool) -> tuple[str, object]:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=150, color_system=None)
    watch = job_watcher(console)
    watch.start([Toy(1), Toy(3), Toy(5)], total=5, what="cells")
    for event in (
        Advanced("n1", 0.0),
        Advanced("n3", 0.0),
        Advanced("n3", 0.5),
        Done("n1", {}, 2.0),
        Failed("n3", "no luck."),
    ):
        watch.event(event)
    watch.stop()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), watch


def test_a_file_gets_a_line_for_each_cell_with_the_time_left() -> None:
    text, watch = watched(terminal=False)
    assert isinstance(watch, Lines)
    first, second = text.splitlines()
    assert first.startswith("3/5 cells: n1 · done in 2 s · 0 s, about 0 s left")
    assert second.startswith("4/5 cells: n3 · failed: no luck.")
    assert watch.done == 2.0 + 4.0
    assert sum(watch.cost.values()) == 2.0 + 4.0 + 6.0


def test_a_terminal_gets_one_bar_with_the_cells_at_work() -> None:
    text, watch = watched(terminal=True)
    assert isinstance(watch, Bar)
    for piece in ("2/5 cells", "4/5 cells", "n3: no luck.", "left"):
        assert piece in text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("w0-p1-r0-ever", "w0-p1-r0-wmf-distilled"),
        ("rational_all-f0-w0-p1-r0-ever-rated", "rational_all-f0-w0-p1-r0-wmf-distilled-rated"),
        (
            "d0-rational_exposed-p1-r0-tempered@joint+clip=5%-i0.3",
            "d0-rational_exposed-p1-r0-corrected-tempered@joint+clip=5%-i0.3",
        ),
        ("w0-p1-r0-corrected-taught@popularity", "w0-p1-r0-corrected-distilled@popularity"),
    ],
)
def test_a_study_that_was_begun_with_old_names_of_estimators_goes_on(tmp_path: Path, before: str, now: str) -> None:
    begun, today = (
        {"question": "rq0", "cells": {"changes": [f"{name}:model.width=8"]}} for name in ("ever", "wmf-distilled")
    )
    old = Store(tmp_path / "old", begun)
    old.open()
    old.keep(before, {"square": 4, "seconds": 1.0})
    new = Store(tmp_path / "old", today)
    new.open()
    assert new.result(now) == {"square": 4, "seconds": 1.0}
    copy = Store(tmp_path / "copy", today)
    assert copy.copy_from(tmp_path / "old", {now: [now]}) == 1
