"""Drawn logs agree with the closed forms, and would not with wrong ones."""

from typing import Any

import pytest

from tests.estimators.toys import random_world
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory import enumeration
from unveil.simulation.theory.enumeration import CLOSED_FORMS
from unveil.simulation.theory.losses import VARIANTS, LossComparison, with_agreement

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def compared() -> LossComparison:
    return LossComparison.of(random_world(users=40, items=12, steps=6, seed=5), 1)


def drawn(compared: LossComparison, choice: str, seed: int = 7) -> Rows:
    return list(map(with_agreement, compared.drawn(choice, 60, seed, len(CHOICES))))


@pytest.fixture(scope="module")
def rows(compared: LossComparison) -> Rows:
    return [row for choice in CHOICES for row in drawn(compared, choice)]


def test_every_interval_holds_its_closed_form(rows: Rows) -> None:
    assert len(rows) == len(CHOICES) * len(VARIANTS)
    checked = [r for r in rows if r["choice"] in ("rational_all", "rational_exposed") and r["formula"] is not None]
    assert len(checked) == 2 * (len(VARIANTS) - 1)
    assert all(row["agrees"] for row in checked), [row for row in checked if not row["agrees"]]


def test_what_the_intervals_find(rows: Rows) -> None:
    found = {(row["choice"], row["estimator"]): row["found"] for row in rows}
    assert found["rational_all", "naive"] == "biased"
    assert found["rational_all", "ITPS"] == "none seen"
    assert found["rational_exposed", "ITPS"] == "biased"
    assert found["categorical_all", "ITPS"] == "none seen"


def test_a_wrong_formula_is_seen(compared: LossComparison, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the rational user among the exposed chose among all.
    wrong = {**CLOSED_FORMS, "rational_exposed": CLOSED_FORMS["rational_all"]}
    monkeypatch.setattr(enumeration, "CLOSED_FORMS", wrong)
    assert not any(row["agrees"] for row in drawn(compared, "rational_exposed") if row["formula"] is not None)


def test_draws_differ_and_are_the_same_again(compared: LossComparison, rows: Rows) -> None:
    assert all(row["spread"] > 0 for row in rows)
    again, other = (drawn(compared, "rational_exposed", seed) for seed in (7, 8))
    assert again == [row for row in rows if row["choice"] == "rational_exposed"]
    assert all(one["mean"] != two["mean"] for one, two in zip(again, other, strict=True))


def test_a_choice_without_closed_form_is_drawn_all_the_same(
    compared: LossComparison, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumeration, "CLOSED_FORMS", {})
    found = drawn(compared, "rational_all")
    assert all(row["formula"] is None and row["agrees"] is None for row in found)
    assert [row["mean"] for row in found] == [row["mean"] for row in rows if row["choice"] == "rational_all"]
