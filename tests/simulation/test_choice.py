import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.propensity.factors import Floats, sigmoid
from unveil.simulation.choice import CHOICES, NOTHING

LOGIT = np.array([[0.0, 2.0, 1.0]], np.float32)
SHOWN = np.array([[True, False, True]])
HALF = np.array([0.5])


@pytest.mark.parametrize(("name", "item"), [("rational_exposed", 2), ("rational_all", 1)])
def test_the_rational_user_takes_the_best_of_what_they_look_at(name: str, item: int) -> None:
    assert CHOICES[name]()(LOGIT, SHOWN, HALF).tolist() == [item]


def test_of_equals_the_first_in_the_catalogue_is_taken() -> None:
    level = np.zeros((1, 3), np.float32)
    assert CHOICES["rational_exposed"]()(level, np.array([[False, True, True]]), HALF).tolist() == [1]


@pytest.mark.parametrize("name", ["rational_exposed", "categorical_exposed"])
def test_nothing_shown_is_nothing_taken(name: str) -> None:
    model, none = CHOICES[name](), np.zeros((1, 3), bool)
    assert model(LOGIT, none, HALF).tolist() == [NOTHING]
    assert model.probability(LOGIT, none).tolist() == [[0, 0, 0]]


def test_categorical_shares_worked_by_hand() -> None:
    gamma = np.array([0.2, 0.3, 0.5])
    logit = np.log(gamma / (1 - gamma)).astype(np.float32)[None]
    np.testing.assert_allclose(CHOICES["categorical_all"]().probability(logit, SHOWN)[0], gamma, rtol=1e-6)
    exposed = CHOICES["categorical_exposed"]().probability(logit, SHOWN)[0]
    np.testing.assert_allclose(exposed, [2 / 7, 0, 5 / 7], rtol=1e-6)


@pytest.mark.parametrize("name", list(CHOICES))
@given(logit=arrays(np.float32, (1, 4), elements=st.floats(-4, 4, width=32)), shown=arrays(bool, (1, 4)))
def test_picks_over_an_even_grid_have_the_stated_probabilities(
    name: str, logit: Floats, shown: NDArray[np.bool_]
) -> None:
    model = CHOICES[name]()
    uniform = (np.arange(2000) + 0.5) / 2000
    picks = model(np.repeat(logit, 2000, 0), np.repeat(shown, 2000, 0), uniform)
    frequency = np.bincount(picks[picks >= 0], minlength=4) / 2000
    np.testing.assert_allclose(frequency, model.probability(logit, shown)[0], atol=2 / 2000)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1, 0)])
def test_the_ends_of_the_unit_interval_pick_an_exposed_item(uniform: float) -> None:
    shown = np.array([[False, True, True, False]])
    logit = np.full((1, 4), 0.3, np.float32)
    assert CHOICES["categorical_exposed"]()(logit, shown, np.array([uniform]))[0] in (1, 2)


def test_every_choice_model_is_found() -> None:
    assert list(CHOICES) == ["categorical_all", "categorical_exposed", "rational_all", "rational_exposed"]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnveilError, match=r"Did you mean 'rational_exposed'\?"):
        CHOICES["rational_exposd"]()


def test_sigmoid_orders_as_logits_do() -> None:
    """Choosing by logit is choosing by γ."""
    assert (sigmoid(LOGIT).argmax(1) == LOGIT.argmax(1)).all()
