from pathlib import Path

import pytest

from tests.pages import faults
from unveil.errors import UnveilError
from unveil.report.page import render
from unveil.runs.config import Experiment
from unveil.runs.tune.claims import Record, Replicate
from unveil.runs.tune.objective import Training
from unveil.runs.tune.page import page
from unveil.runs.tune.space import Choice, Range, Space
from unveil.runs.tune.subject import Plan, Study

SPACE = Space("mine", {"model.width": Choice((8, 16)), "training.lr": Range(1e-4, 1e-2, True)})


def record(entry: int, value: float) -> Record:
    settings = {"model.width": (8, 16)[entry % 2], "training.lr": 1e-4 * (entry + 1)}
    return Record(entry, "complete", settings, value, [Replicate(value, 2, 1.0, [(1, 0.0), (2, value)])])


FAILED = Record(9, "failed", {"model.width": 8, "training.lr": 1e-2}, None, why="<no> number")


def study(*records: Record, plan: Plan | None = None) -> Study:
    subject = Training(Experiment.of("quick"), truth=True)
    return Study("mine", plan or Plan(SPACE, replicates=1), subject, "f", "journal", records)


def test_one_trial_is_enough_for_a_page() -> None:
    text = render(page(study(record(0, 0.5), FAILED), "unveil tune"))
    assert "Too few trials are complete" in text
    assert "Every trial through its settings" not in text
    assert "&lt;no&gt; number" in text
    assert "1 trial failed." in text
    assert 'data-value="–"' in text  # whichever way a reader sorts, what has no value comes last
    assert 'data-value="-1' not in text
    assert faults(text) == []


def test_all_parts_of_a_page() -> None:
    plan = Plan(SPACE, replicates=1, sampler="tpe", prune=True)
    text = render(
        page(study(*(record(entry, entry % 2 + entry / 100) for entry in range(6)), plan=plan), "unveil tune")
    )
    assert "Only 6 trials: these shares are rough." in text
    assert "training.lr in [0.0001, 0.01] by ratio" in text
    assert "fell behind the median were stopped: 0 of them" in text
    assert "the true favourite of each user" in text
    assert text == render(page(study(*(record(e, e % 2 + e / 100) for e in range(6)), plan=plan), "unveil tune"))


def test_one_training_of_each_trial_is_called_so() -> None:
    """Nothing is said of means and spreads that one training cannot have."""
    once, thrice = (
        render(page(study(record(0, 0.5), plan=Plan(SPACE, replicates=replicates)), "unveil tune"))
        for replicates in (1, 3)
    )
    assert "how much another seed would change is not known" in once
    assert "standard deviation of its replicates" not in once
    assert "several times with other seeds" in thrice


def test_without_a_best_there_is_a_reason() -> None:
    with pytest.raises(UnveilError, match="all trials failed; the first: <no> number"):
        _ = study(FAILED).best


def test_spaces_are_in_the_package() -> None:
    import unveil.runs.tune

    (root,) = unveil.runs.tune.__path__
    assert {path.stem for path in (Path(root) / "spaces").glob("*.toml")} == {
        "paper",
        "paper-exposure",
        "paper-ml-20m",
        "paper-relevance",
    }
