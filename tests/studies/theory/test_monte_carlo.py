"""Drawn logs agree with the closed forms, and would not with wrong ones."""

from dataclasses import replace

import pytest

from tests.estimators.toys import random_world
from unveil.simulation.choice import CHOICES
from unveil.studies import theory_world
from unveil.studies.theory_loss import VARIANTS, Estimated, MonteCarlo, Scores
from unveil.studies.theory_world import CLOSED_FORMS, DenseWorld


@pytest.fixture(scope="module")
def drawn() -> MonteCarlo:
    dense = DenseWorld(random_world(users=40, items=12, steps=6, seed=5))
    return MonteCarlo(dense, Scores.informed(dense, 1), draws=60, seed=7)


@pytest.fixture(scope="module")
def rows(drawn: MonteCarlo) -> list[Estimated]:
    return [row for choice in CHOICES for row in drawn.run(choice, len(CHOICES))]


def test_every_interval_holds_its_closed_form(rows: list[Estimated]) -> None:
    assert len(rows) == len(CHOICES) * len(VARIANTS)
    judged = [row for row in rows if row.choice in ("rational_all", "rational_exposed") and row.formula is not None]
    assert len(judged) == 2 * (len(VARIANTS) - 1)
    assert all(row.agrees for row in judged), [row for row in judged if not row.agrees]


def test_what_the_intervals_find(rows: list[Estimated]) -> None:
    found = {(row.choice, row.estimator): row.found for row in rows}
    assert found["rational_all", "naive"] == "biased"
    assert found["rational_all", "ITPS"] == "none seen"
    assert found["rational_exposed", "ITPS"] == "biased"
    assert found["categorical_all", "ITPS"] == "none seen"


def test_a_wrong_formula_is_seen(drawn: MonteCarlo, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the rational user among the exposed chose among all.
    wrong = {**CLOSED_FORMS, "rational_exposed": CLOSED_FORMS["rational_all"]}
    monkeypatch.setattr(theory_world, "CLOSED_FORMS", wrong)
    assert not any(row.agrees for row in drawn.run("rational_exposed") if row.formula is not None)


def test_draws_differ_and_are_the_same_again(drawn: MonteCarlo, rows: list[Estimated]) -> None:
    assert all(row.spread > 0 for row in rows)
    again, other = (replace(drawn, seed=seed).run("rational_exposed", len(CHOICES)) for seed in (drawn.seed, 8))
    assert again == [row for row in rows if row.choice == "rational_exposed"]
    assert all(one.mean != two.mean for one, two in zip(again, other, strict=True))


def test_a_choice_without_closed_form_is_drawn_all_the_same(
    drawn: MonteCarlo, rows: list[Estimated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theory_world, "CLOSED_FORMS", {})
    found = drawn.run("rational_all")
    assert all(row.formula is None and row.agrees is None for row in found)
    assert [row.mean for row in found] == [row.mean for row in rows if row.choice == "rational_all"]
