"""The recipe for real data: what it reports is set beside the truth, and called by its name."""

from pathlib import Path
from typing import Any

import pytest

from tests.experiment.reproduce.small import CHANGES, NEGATIVES, cell, tiny_world
from tests.pages import faults
from unveil.cli.recipe import ARMS
from unveil.errors import UnveilError
from unveil.experiment.outcome import STANDARD, TRUE
from unveil.experiment.recipe.gains import gains
from unveil.experiment.recipe.plan import RecipePlan
from unveil.experiment.recipe.question import VERDICTS, RecipeQuestion
from unveil.experiment.recipe.study import RecipeStudy
from unveil.experiment.reproduce.files import write
from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.results import Place, Results
from unveil.experiment.reproduce.run import Answer, answer
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import Source
from unveil.runs.workers import Inline
from unveil.studies.arms import Variant

#: The rank of the target of each of ten cases: high, and low.
HIGH, LOW = [1, 2] * 5, [8, 9] * 5
#: As low, but for one case: a gain that may be chance.
UNSURE = [1, *LOW[1:]]


def judged(by_popular: list[int], true: list[int]) -> dict[str, Any]:
    """A cell whose targets that were taken rank so against popular negatives, and true ones so among all items."""
    made = cell(true, HIGH)
    for evaluation in (TRUE, STANDARD):
        made["ranks"][evaluation]["popular-100"] = by_popular
    return made


def results(**arms: tuple[list[int], list[int]]) -> Results:
    cells = {Place(0, 1.0, 0, name): judged(*ranks) for name, ranks in arms.items()}
    return Results(cells, (1.0,), 1, 1, tuple(arms))


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
    found = gains(results(naive=(LOW, LOW), itps=own), 1.0)
    assert [gain.metric for gain in found] == [("NDCG", 10), ("Recall", 10)]
    assert found[0].verdict == verdict
    assert found[0].verdict in VERDICTS


def test_the_oracle_is_no_gain_of_the_recipe() -> None:
    found = gains(results(naive=(LOW, LOW), itps=(HIGH, LOW), ideal=(HIGH, HIGH)), 1.0)
    assert {gain.arm for gain in found} == {"itps"}


def test_the_arms_are_known_and_other_studies_stay_as_they_were() -> None:
    assert [Variant.of(arm).estimator for arm in ARMS.split(",")] == [
        "naive",
        "ips",
        "itps",
        "ips",
        "itps",
        "itps",
        "ideal",
    ]
    assert Study().popular is False
    assert RecipeStudy().popular is True


@pytest.mark.parametrize("arms", [("itps@popularity",), ("naive",), ("naive", "ideal"), ("itps@popularity", "ideal")])
def test_without_naive_and_something_else_there_is_no_plan(arms: tuple[str, ...]) -> None:
    with pytest.raises(UnveilError, match=r"--estimators: a gain is over naive.*expected naive and at least one"):
        RecipePlan(RecipeStudy(data="builtin", preset="quick"), estimators=arms)


def test_a_plan_needs_no_ideal() -> None:
    plan = RecipePlan(RecipeStudy(data="builtin", preset="quick"), estimators=("naive", "itps@popularity"))
    assert plan.study.popular


def test_what_is_missing_is_not_said_to_be_there() -> None:
    plan = Plan(RecipeStudy(data="builtin", preset="quick"), estimators=("itps",))
    source = Source("builtin", "builtin", "the built-in world")
    found = Answer(RecipeQuestion(), plan, source, results(itps=(HIGH, LOW)), [], 0.0, 1)
    assert RecipeQuestion().reading(found)[0].startswith("A gain is over naive: without it")


@pytest.mark.slow
def test_from_the_plan_to_the_page(tmp_path: Path) -> None:
    world = tiny_world(tmp_path / "world")
    study = RecipeStudy(data=str(world), preset="quick", clip=0.0, negatives=NEGATIVES, changes=CHANGES)
    plan = Plan(study, (1.0,), replicates=2, estimators=("naive", "itps@popularity+exponent=0.2", "ideal"))
    found = answer(RecipeQuestion(), plan, tmp_path / "run", Inline())
    write(found, tmp_path / "run", ["unveil", "reproduce", "recipe"])
    assert f"popular-{NEGATIVES}" in found.results.protocols
    told = RecipeQuestion().findings(found)["gains"]
    assert {gain["estimator"] for gain in told} == {"itps@popularity+exponent=0.2"}
    assert "reported" in RecipeQuestion().reading(found)[0]
    assert not faults((tmp_path / "run" / "index.html").read_text())
