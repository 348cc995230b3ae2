from io import StringIO

from rich.console import Console

from unveil.runs.tune.claims import Record, Replicate
from unveil.runs.tune.worker import Bar, Lines, study_watcher

SETTINGS = {"model.width": 8, "task.mask_probability": 0.15, "model.tied": True}


def record(entry: int, *values: float) -> Record:
    replicates = [Replicate(value, 1, 2.0, [(1, value)]) for value in values]
    return Record(entry, "complete", SETTINGS, sum(values) / len(values), replicates)


FAILED = Record(2, "failed", SETTINGS, None, why="no number")
RUNNING = Record(3, "running", SETTINGS, None)


def test_a_line_for_each_trial_that_is_over_whoever_did_it() -> None:
    text = StringIO()
    lines = Lines(Console(file=text, width=40))
    lines.start([record(0, 0.1)], 5)
    lines.look([record(0, 0.1), record(1, 0.2, 0.4), FAILED, RUNNING])
    lines.look([record(0, 0.1), record(1, 0.2, 0.4), FAILED, RUNNING])
    first, second = text.getvalue().splitlines()
    settings = "width 8, mask probability 0.15, tied yes"
    trial = f"2/5 trial 1 · {settings} · 0.3000 ±0.1414 · trained in 4 s · best 0.3000 (trial 1) · 0 s, about 0 s left"
    assert first == trial
    assert second.startswith(f"3/5 trial 2 · {settings} · failed: no number · trained in 0 s · best 0.3000 (trial 1)")


def test_a_bar_where_a_person_looks() -> None:
    text = StringIO()
    bar = study_watcher(Console(file=text, force_terminal=True, width=120))
    assert isinstance(bar, Bar)
    bar.start([], 2)
    bar.advance(0, 0.5)
    assert bar.bar.tasks[0].completed == 0.5
    bar.look([record(0, 0.25)])
    task = bar.bar.tasks[0]
    assert (task.completed, task.total) == (1, 2)
    assert task.description == "1/2 trials"
    assert task.fields["told"] == "best 0.2500 (trial 0)"
    bar.stop()
    assert isinstance(study_watcher(Console(file=StringIO())), Lines)
