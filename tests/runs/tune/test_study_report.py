from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from tests.pages import faults
from unveil.errors import UnveilError
from unveil.report.page import render
from unveil.runs.config import Experiment
from unveil.runs.tune.study import Plan, Replicate, Space, Study, Trial
from unveil.runs.tune.study_report import epsilon_squared, importances, page
from unveil.runs.tune.subjects import Training

SPACE = Space(
    "mine", {"model.width": CategoricalDistribution((8, 16)), "training.lr": FloatDistribution(1e-4, 1e-2, True)}
)


def record(entry: int, value: float) -> Trial:
    settings = {"model.width": (8, 16)[entry % 2], "training.lr": 1e-4 * (entry + 1)}
    return Trial(entry, "complete", settings, value, [Replicate(value, 2, 1.0, [(1, 0.0), (2, value)])])


FAILED = Trial(9, "failed", {"model.width": 8, "training.lr": 1e-2}, None, why="<no> number")


def study(*records: Trial, plan: Plan | None = None) -> Study:
    subject = Training(Experiment.of("quick"), truth=True)
    return Study("mine", plan or Plan(SPACE, replicates=1), subject, "f", "journal", records, len(records))


def test_one_trial_is_enough_for_a_page() -> None:
    text = render(page(study(record(0, 0.5), FAILED), "unveil tune"))
    assert "Too few trials are complete" in text
    assert "Every trial through its settings" not in text
    assert "&lt;no&gt; number" in text
    assert "1 trial failed." in text
    assert '<td class="number">–</td>' in text  # whichever way a reader sorts, what has no value comes last
    assert 'data-value="-1' not in text
    assert faults(text) == []


def test_all_parts_of_a_page() -> None:
    plan = Plan(SPACE, replicates=1, sampler="tpe", prune=True)
    text = render(
        page(study(*(record(entry, entry % 2 + entry / 100) for entry in range(6)), plan=plan), "unveil tune")
    )
    assert "Only 6 trials: these shares are rough." in text
    assert "training.lr in [0.0001, 0.01], uniform in the logarithm" in text
    assert "fell behind the median were stopped: 0 of them" in text
    assert "the true favourite of the user" in text
    assert text == render(page(study(*(record(e, e % 2 + e / 100) for e in range(6)), plan=plan), "unveil tune"))


def test_settings_of_the_same_last_name_have_an_axis_each() -> None:
    space = Space(
        "names", {f"{part}.name": CategoricalDistribution(("x", "y")) for part in ("estimator", "propensity")}
    )
    found = [
        Trial(
            n,
            "complete",
            {"estimator.name": "xy"[n % 2], "propensity.name": "xy"[n // 2]},
            n / 4,
            [Replicate(n, 1, 1.0, [(1, n)])],
        )
        for n in range(4)
    ]
    parallel = next(
        each.drawing
        for each in page(study(*found, plan=Plan(space, replicates=1)), "").figures()
        if each.drawing.name == "parallel"
    )
    assert parallel.svg.count(">name</text>") == 2


def test_one_training_of_each_trial_is_called_so() -> None:
    """Nothing is said of means and spreads that one training cannot have."""
    once, thrice = (
        render(page(study(record(0, 0.5), plan=Plan(SPACE, replicates=replicates)), "unveil tune"))
        for replicates in (1, 3)
    )
    assert "how much another seed would change is not known" in once
    assert "standard deviation of its replicates" not in once
    assert "several times with different seeds" in thrice


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


def trial_of(entry: int, value: float | None, **settings: object) -> Trial:
    return Trial(entry, "failed" if value is None else "complete", settings, value)


def test_by_hand() -> None:
    # means 1 and 4; SS within 2 + 2 = 4, SS total 4 + 4 · 1.5² = 13, so (13 − 4 − 1 · 4 / 2) / 13
    assert epsilon_squared({"a": [0.0, 2.0], "b": [3.0, 5.0]}) == pytest.approx(7 / 13)


def test_a_setting_that_decides_everything_and_one_that_decides_nothing() -> None:
    assert epsilon_squared({"a": [1.0, 1.0], "b": [2.0, 2.0]}) == 1.0
    assert epsilon_squared({"a": [1.0, 2.0], "b": [1.0, 2.0]}) == 0.0


@pytest.mark.parametrize("members", [{}, {"a": [1.0], "b": [2.0]}, {"a": [1.0, 1.0], "b": [1.0]}])
def test_what_cannot_be_told(members: dict[str, list[float]]) -> None:
    assert epsilon_squared(members) is None


def test_chance_alone_explains_little() -> None:
    rng = np.random.default_rng(0)
    found = [epsilon_squared({str(g): list(rng.normal(size=6)) for g in range(5)}) for _ in range(400)]
    assert np.mean([each or 0.0 for each in found]) < 0.08  # η² would be 4 / 29 = 0.14


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=6), min_size=2, max_size=5))
def test_a_share_is_a_share(groups: list[list[float]]) -> None:
    share = epsilon_squared({str(place): each for place, each in enumerate(groups)})
    assert share is None or 0 <= share <= 1


def test_settings_in_order_with_their_means() -> None:
    space = Space(
        "s",
        {
            "noise": CategoricalDistribution((1, 2)),
            "width": CategoricalDistribution((16, 8)),
            "one": CategoricalDistribution(("x",)),
            "lr": FloatDistribution(0.1, 1.0),
        },
    )
    records = [
        trial_of(entry, 10 * odd + entry / 10, noise=1 + entry // 4, width=(8, 16)[odd], one="x", lr=0.1 + entry / 10)
        for entry, odd in enumerate([0, 1] * 4)
    ]
    first, *rest = importances([*records, trial_of(8, None, noise=1, width=8, one="x", lr=0.5)], space)
    assert first.name == "width"
    assert first.share is not None
    assert first.share > 0.9
    assert {label: len(values) for label, values in first.groups.items()} == {"8": 4, "16": 4}
    assert np.mean(first.groups["16"]) == pytest.approx(10.4)
    assert {each.name for each in rest} == {"noise", "lr"}
    parts = next(each for each in rest if each.name == "lr").groups
    assert list(parts) == ["0.1 to 0.2", "0.3 to 0.4", "0.5 to 0.6", "0.7 to 0.8"]
    assert [len(values) for values in parts.values()] == [2, 2, 2, 2]
