"""Lines and bars of jobs, with the notes of those that are done."""

from io import StringIO

from rich.console import Console

from tests.runs.jobs import Toy
from unveil.runs.progress import Bar, Lines, Watcher, job_watcher
from unveil.runs.workers import Advanced, Done, Failed

NOTES = ("width 8", "best 0.3000 (trial 1)")


def test_a_line_for_each_job_that_is_over() -> None:
    text = StringIO()
    lines = job_watcher(Console(file=text, width=40))
    assert isinstance(lines, Lines)
    lines.start([Toy(0), Toy(1)], 5, "trials")
    lines.event(Advanced("n0", 0.5))
    lines.event(Done("n0", {}, 4.0, NOTES))
    lines.event(Failed("n1", "no number"))
    first, second = text.getvalue().splitlines()
    assert first == "4/5 trials: n0 · width 8 · best 0.3000 (trial 1) · done in 4 s · 0 s, about 0 s left"
    assert second == "5/5 trials: n1 · failed: no number · 0 s, about 0 s left"


def test_no_time_left_is_named_before_enough_is_done() -> None:
    watch = Watcher()
    watch.start([Toy(0), Toy(1)], 2, "trials")  # of costs 1 and 2
    watch.event(Advanced("n0", 0.15))
    assert watch.left == ""
    watch.begun -= 10
    watch.event(Advanced("n1", 0.425))
    assert watch.left == "about 20 s left"


def test_a_bar_where_a_person_looks() -> None:
    bar = job_watcher(Console(file=StringIO(), force_terminal=True, width=120))
    assert isinstance(bar, Bar)
    bar.start([Toy(0), Toy(1)], 3, "trials")
    bar.event(Advanced("n0", 0.5))
    task = bar.bar.tasks[0]
    assert task.total is not None
    assert (task.completed, task.fields["note"]) == (Toy(0).cost * 0.5, "n0")
    bar.event(Done("n0", {}, 4.0, NOTES))
    assert (task.completed, task.description) == (Toy(0).cost, "2/3 trials")
    assert task.fields["note"] == "best 0.3000 (trial 1)"
    bar.stop()
