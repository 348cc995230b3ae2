"""What can happen at a slot: by hand, against the formulas, and as probabilities should be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.estimators.toys import random_world
from unveil.propensity.factors import Factors
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory.claims import choice_depends_on_exposure
from unveil.simulation.theory.enumeration import CLOSED_FORMS, DenseWorld, event_probability, ideal_weight
from unveil.simulation.world import World


def two_items(theta: tuple[float, float], gamma: tuple[float, float]) -> DenseWorld:
    """One user at one step."""

    def logits(p: tuple[float, float]) -> Factors:
        return Factors.of(np.ones((1, 1)), np.log(np.array(p) / (1 - np.array(p)))[:, None], np.ones((1, 1)))

    world = random_world(users=1, items=2, steps=1)
    return DenseWorld(World(logits(gamma), logits(theta), world.users, world.items, world.start_U, 1.0, {}))


#: θ = (0.5, 0.8), γ = (0.9, 0.3): the first item is the better one.
LAID = two_items((0.5, 0.8), (0.9, 0.3))


@pytest.mark.parametrize(
    ("choice", "first", "second"),
    [
        ("rational_all", 0.5 * 0.9, 0.0),
        ("rational_exposed", 0.5 * 0.9, 0.8 * (1 - 0.5) * 0.3),
        ("categorical_all", 0.75 * 0.5 * 0.9, 0.25 * 0.8 * 0.3),
        # Both seen (0.4): 3/4 and 1/4; the first alone (0.1), the second alone (0.4): surely.
        ("categorical_exposed", (0.4 * 0.75 + 0.1) * 0.9, (0.4 * 0.25 + 0.4) * 0.3),
    ],
)
def test_two_items_by_hand(choice: str, first: float, second: float) -> None:
    p_SV1 = event_probability(LAID, choice)
    assert p_SV1[0] == pytest.approx([first, second, 1 - first - second], rel=1e-6)


def test_without_a_draw_of_relevance_every_choice_of_an_exposed_item_counts() -> None:
    p_SV1 = event_probability(LAID, "rational_exposed", "certain")
    assert p_SV1[0] == pytest.approx([0.5, 0.4, 0.1], rel=1e-6)


def test_one_luck_for_exposure_and_relevance_by_hand() -> None:
    # u < 0.5 shows the first item, and then u < 0.9 too: it always pleases. The second is shown by a luck of its own.
    p_SV1 = event_probability(LAID, "rational_all", "shared draw")
    assert p_SV1[0] == pytest.approx([0.5, 0.0, 0.5], rel=1e-6)
    drawn, lucky = (event_probability(LAID, "rational_exposed", how)[0, 1] for how in ("drawn", "shared draw"))
    assert drawn == pytest.approx(0.4 * 0.3, rel=1e-6)
    assert lucky == pytest.approx(0.5 * 0.3, rel=1e-6)  # P(first unseen) · P(u < min(0.8, 0.3))


def test_the_ideal_by_hand() -> None:
    assert ideal_weight(LAID, "rational_exposed")[0] == pytest.approx([0.9, 0.0], rel=1e-6)
    assert ideal_weight(LAID, "categorical_exposed")[0] == pytest.approx([0.75 * 0.9, 0.25 * 0.3], rel=1e-6)
    assert ideal_weight(LAID, "categorical_all", "certain")[0] == pytest.approx([0.75, 0.25], rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), items=st.integers(1, 5), severity=st.sampled_from([0.5, 1.0, 3.0]))
@pytest.mark.parametrize("choice", sorted(CLOSED_FORMS))
def test_the_closed_forms_are_what_the_enumeration_finds(choice: str, seed: int, items: int, severity: float) -> None:
    dense = DenseWorld(random_world(users=2, items=items, steps=2, seed=seed).with_severity(severity))
    p_SV1 = event_probability(dense, choice)
    assert p_SV1.sum(1) == pytest.approx(np.ones(len(dense)))
    assert (p_SV1 >= -1e-15).all()
    np.testing.assert_allclose(CLOSED_FORMS[choice](dense) * dense.gamma_SV, p_SV1[:, :-1], rtol=1e-6, atol=1e-8)


def test_every_choice_model_of_the_package_has_a_closed_form() -> None:
    assert {"rational_all", "rational_exposed", "categorical_all", "categorical_exposed"} <= set(CLOSED_FORMS)
    assert set(CLOSED_FORMS) <= set(CHOICES)


def test_which_choices_depend_on_exposure() -> None:
    assert choice_depends_on_exposure(LAID, "rational_exposed")
    assert choice_depends_on_exposure(LAID, "categorical_exposed")
    assert not choice_depends_on_exposure(LAID, "rational_all")
    assert not choice_depends_on_exposure(LAID, "categorical_all")
