"""The recipe for real data: what it reports is set beside the truth, and called by its name."""

from pathlib import Path

import pytest

from tests.pages import faults
from tests.studies.small import NEGATIVES, answer_of, record, said, tiny, tiny_world
from unveil.cli.reproduce import RecipeOptions
from unveil.errors import UnveilError
from unveil.runs.workers import Inline
from unveil.studies.engine import Answer, run, write
from unveil.studies.recipe import Recipe, gains
from unveil.studies.results import STANDARD, TRUE
from unveil.studies.rq1 import RQ1

#: The rank of the target of each of ten cases: high, and low.
HIGH, LOW = [1, 2] * 5, [8, 9] * 5
#: As low, but for one case: a gain that may be chance.
UNSURE = [1, *LOW[1:]]


def made_up(**arms: tuple[list[int], list[int]]) -> Answer:
    """Observed targets rank so against popular negatives, and true ones so among all items."""
    records = {}
    for name, (by_popular, true) in arms.items():
        own = records[f"w0-p1-r0-{name}"] = record(true, HIGH)
        for evaluation in (TRUE, STANDARD):
            own["ranks"][evaluation]["popular-100"] = by_popular
    study = Recipe(data="builtin", preset="quick", severities=(1.0,), replicates=1, estimators=tuple(arms))
    return answer_of(study, records)


@pytest.mark.parametrize(
    ("own", "verdict"),
    [
        ((HIGH, HIGH), "holds"),
        ((HIGH, [6, 7] * 5), "holds"),
        ((HIGH, [9, 10] * 5), "is a loss"),
        ((HIGH, [8, 9] * 4 + [9, 8]), "may be none"),
        ((LOW, HIGH), "missed"),
        ((LOW, LOW), "none reported"),
        (([9, 10] * 5, [9, 10] * 5), "none reported"),
        ((UNSURE, HIGH), "unsure; holds"),
        ((UNSURE, [9, 10] * 5), "unsure; is a loss"),
        ((UNSURE, [8, 9] * 4 + [9, 8]), "unsure; may be none"),
    ],
)
def test_a_gain_is_called_what_the_truth_makes_of_it(own: tuple[list[int], list[int]], verdict: str) -> None:
    answer = made_up(naive=(LOW, LOW), itps=own)
    found = gains(answer.results, 1.0)
    assert [gain.metric for gain in found] == [("NDCG", 10), ("Recall", 10)]
    assert found[0].verdict == verdict
    assert "ITPS: " in said(answer), "the template has words for every verdict"


def test_the_oracle_is_no_gain_of_the_recipe() -> None:
    answer = made_up(naive=(LOW, LOW), itps=(HIGH, LOW), ideal=(HIGH, HIGH))
    assert {gain.arm for gain in gains(answer.results, 1.0)} == {"itps"}


def test_popular_negatives_are_the_recipes_alone() -> None:
    assert not RQ1.by_popularity
    assert Recipe.by_popularity
    assert RecipeOptions(output=Path("out")).arms() == Recipe().estimators


@pytest.mark.parametrize("arms", [("itps@popularity",), ("naive",), ("naive", "ideal"), ("itps@popularity", "ideal")])
def test_a_gain_needs_naive_and_something_else(arms: tuple[str, ...]) -> None:
    with pytest.raises(UnveilError, match=r"--estimators: a gain is over naive.*expected naive and at least one"):
        Recipe(data="builtin", preset="quick", estimators=arms)
    assert Recipe(data="builtin", preset="quick", estimators=("naive", "itps@popularity"))


@pytest.mark.slow
def test_from_the_study_to_the_page(tmp_path: Path) -> None:
    arms = ("naive", "itps@popularity+exponent=0.2", "ideal")
    study = tiny(Recipe, tiny_world(tmp_path / "world"), clip=0.0, severities=(1.0,), estimators=arms)
    found = run(study, tmp_path / "run", Inline())
    report = write(found, tmp_path / "run", ["unveil", "reproduce", "recipe"])
    assert f"popular-{NEGATIVES}" in found.results.protocols
    assert {gain["estimator"] for gain in report.results()["gains"]} == {"itps@popularity+exponent=0.2"}
    assert not faults((tmp_path / "run" / "index.html").read_text())
