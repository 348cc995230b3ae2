"""A gap has two ends and something between them, or nothing is begun."""

import pytest

from unveil.errors import UnveilError
from unveil.experiment.beyond.plan import BeyondPlan
from unveil.experiment.reproduce.study import Study

STUDY = Study(data="builtin", preset="quick")


@pytest.mark.parametrize(
    "arms", [("naive",), ("naive", "naive", "ideal"), ("itps", "ideal"), ("naive", "itps"), ("naive+training.lr=1e-3",)]
)
def test_without_a_gap_there_is_no_plan(arms: tuple[str, ...]) -> None:
    with pytest.raises(UnveilError, match=r"--estimators: a gap has two ends.*expected naive, ideal and at least one"):
        BeyondPlan(STUDY, estimators=arms)


def test_a_misspelt_end_is_told_first() -> None:
    with pytest.raises(UnveilError, match="Did you mean 'naive'"):
        BeyondPlan(STUDY, estimators=("naiv", "itps", "ideal"))


def test_one_between_the_ends_will_do() -> None:
    assert BeyondPlan(STUDY, estimators=("ideal", "itps@popularity", "naive")).arms[-1] == "naive"
