import numpy as np
import pytest

from tests.simulation.feedback.small import offer_of
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.simulation.feedback.responses import RESPONSES, Response, chosen, response_model


def model(name: str, **options: object) -> Response:
    return response_model({"name": name, **options})


def test_they_are_found_by_themselves() -> None:
    assert list(RESPONSES) == ["geometric", "logit", "logit-relevance", "popular", "position", "relevant", "uniform"]
    with pytest.raises(UnveilError, match="Did you mean 'uniform'"):
        model("unifrom")
    with pytest.raises(UnveilError, match="unknown option of the response 'geometric'"):
        model("geometric", decay=0.5)


@pytest.mark.parametrize("name", list(RESPONSES))
def test_contract_every_response_gives_probabilities_of_the_places_that_are_filled(name: str) -> None:
    rng = np.random.default_rng(0)
    top_UK = np.stack([rng.permutation(10)[:4] for _ in range(50)])
    for user, filled in enumerate(rng.integers(0, 5, 50)):
        top_UK[user, filled:] = NOBODY
    offer = offer_of(top_UK, gamma=rng.random((50, 4)), score=rng.normal(size=(50, 4)) * 20)
    response = model(name)
    p_UK = response(offer)
    assert p_UK.shape == (50, 4)
    assert (p_UK >= 0).all()
    assert (p_UK.sum(1) <= 1 + 1e-9).all()
    assert (p_UK[top_UK == NOBODY] == 0).all()
    if response.needs == "nothing":
        assert p_UK.sum(1) == pytest.approx((top_UK[:, 0] != NOBODY).astype(float))


@pytest.mark.parametrize("name", list(RESPONSES))
def test_contract_what_is_taken_follows_the_probabilities(name: str) -> None:
    offer = offer_of([[3, 7, 1, NOBODY]] * 40_000, gamma=[[0.2, 0.5, 0.3, 0.9]] * 40_000, score=[[2, 1, 0, 0]] * 40_000)
    response = model(name)
    item_U = chosen(offer, response, np.random.default_rng(1).random(40_000))
    expected = dict(zip([3, 7, 1], response(offer)[0], strict=False))
    for item, p in {**expected, NOBODY: 1 - sum(expected.values())}.items():
        assert (item_U == item).mean() == pytest.approx(p, abs=0.012)


def test_uniform() -> None:
    assert model("uniform")(offer_of([[3, 7], [4, NOBODY]])).tolist() == [[0.5, 0.5], [1, 0]]


def test_position() -> None:
    p_K = model("position")(offer_of([[3, 7, 1]]))[0]
    assert p_K / p_K[0] == pytest.approx([1, 1 / np.log2(3), 0.5])
    assert model("geometric", patience=0.5)(offer_of([[3, 7, 1]]))[0] == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_popular_users_follow_the_crowd() -> None:
    offer = offer_of([[3, 7, 1]])  # taken 3, 7 and 1 times
    assert model("popular")(offer)[0] == pytest.approx([4 / 14, 8 / 14, 2 / 14])
    assert model("popular", strength=0.0)(offer)[0] == pytest.approx([1 / 3] * 3)
    assert model("popular", strength=500.0)(offer)[0] == pytest.approx([0, 1, 0])


def test_logit() -> None:
    offer = offer_of([[3, 7], [3, NOBODY]], score=[[1000.0, 1000 + np.log(3)], [0, 0]])
    assert model("logit")(offer).tolist() == [pytest.approx([0.25, 0.75], abs=1e-4), [1, 0]]
    assert model("logit", temperature=1e9)(offer)[0] == pytest.approx([0.5, 0.5])


def test_logit_on_relevance_takes_one_item_with_probability_gamma() -> None:
    offer = offer_of([[3, NOBODY], [3, 7]], gamma=[[0.3, 0.8], [0.5, 0.5]])
    assert model("logit-relevance")(offer) == pytest.approx(np.array([[0.3, 0], [1 / 3, 1 / 3]]))


def test_relevant_takes_the_best_of_the_list_if_it_pleases() -> None:
    offer = offer_of([[3, 7, NOBODY]], gamma=[[0.2, 0.6, 0.9]])
    assert model("relevant")(offer)[0] == pytest.approx([0, 0.6, 0])
    by_chance = model("relevant", choice="categorical_exposed")(offer)[0]
    assert by_chance == pytest.approx([0.25 * 0.2, 0.75 * 0.6, 0])
    with pytest.raises(UnveilError, match="unknown choice model"):
        model("relevant", choice="rational")


def test_the_true_relevance_is_known_in_a_world_only() -> None:
    with pytest.raises(UnveilError, match="needs a world"):
        model("relevant")(offer_of([[1]]))


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("geometric", "patience", 0.0), ("logit", "temperature", 0.0), ("popular", "strength", float("inf"))],
)
def test_options_out_of_range(name: str, option: str, value: float) -> None:
    with pytest.raises(UnveilError, match=f"response.{option}: out of range"):
        model(name, **{option: value})


def test_luck_at_the_edges() -> None:
    offer = offer_of([[3, 7, 1]] * 2)
    assert chosen(offer, model("uniform"), np.array([0.0, np.nextafter(1, 0)])).tolist() == [3, 1]
