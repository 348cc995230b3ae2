"""What a world knows about cases and lists: by hand, and slot by slot."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.splits import EvalCases
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Judge
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.truth import Regret, TrueRelevance, favourites_of, judges, true_cases
from unveil.simulation.world import World


def turning() -> World:
    """One user, three items, two steps: γ is .8, .5, .2 at step 0 and .2, .5, .8 at step 1."""
    relevance = Factors.of(np.ones((1, 1)), np.log(4) * np.array([[1.0], [0.0], [-1.0]]), np.array([[1.0], [-1.0]]))
    nothing = Factors.constant(1, 3, 2)
    return World(relevance, nothing, Vocabulary("u"), Vocabulary("abc"), np.zeros(1, np.int32), 1.0, {})


def cases(user: list[int], step: list[int], item: list[int]) -> EvalCases:
    return EvalCases(*(np.array(column, np.int32) for column in (user, item, step, range(1, len(user) + 1))))


SCORES = torch.zeros(2, 3)


def test_the_target_becomes_the_favourite_at_the_cases_own_step() -> None:
    asked = cases([0, 0], [0, 1], [1, 1])
    true = true_cases(turning(), asked)
    assert true.item_C.tolist() == [0, 2]
    assert true.item_C.dtype == asked.item_C.dtype
    for same in ("user_C", "step_C", "seen_C"):
        assert getattr(true, same) is getattr(asked, same)
    assert asked.item_C.tolist() == [1, 1]


def test_the_favourite_may_be_looked_for_among_some_items_only() -> None:
    asked = cases([0, 0], [0, 1], [1, 1])
    assert true_cases(turning(), asked, np.array([False, True, True])).item_C.tolist() == [1, 2]
    with pytest.raises(UnveilError, match="no item"):
        true_cases(turning(), asked, np.zeros(3, bool))


def test_no_cases_stay_no_cases() -> None:
    assert len(true_cases(turning(), cases([], [], []))) == 0


def test_relevance_and_regret_of_a_list_by_hand() -> None:
    asked, which = cases([0, 0], [0, 1], [1, 1]), np.array([1, 0])
    top = torch.tensor([[0, 1], [0, 1]])  # for the case of step 1, then for that of step 0
    relevance = TrueRelevance(turning(), asked)(which, SCORES, top)
    regret = Regret(turning(), asked)(which, SCORES, top)
    torch.testing.assert_close(relevance, torch.tensor([(0.2 + 0.5) / 2, (0.8 + 0.5) / 2]))
    torch.testing.assert_close(regret, torch.tensor([0.65 - 0.35, 0.0]))


def test_an_empty_place_is_worth_nothing() -> None:
    asked, which, top = cases([0], [0], [1]), np.array([0]), torch.tensor([[0, -1, -1, -1]])
    assert float(TrueRelevance(turning(), asked)(which, SCORES, top)) == pytest.approx(0.8 / 4)
    assert float(Regret(turning(), asked)(which, SCORES, top)) == pytest.approx((0.5 + 0.2) / 4)


@given(seed=st.integers(0, 50), k=st.integers(1, 12))
def test_judges_agree_with_a_loop_over_cases(seed: int, k: int) -> None:
    world, rng = World.builtin(WorldSpec(users=7, items=12, steps=5, shortest=2), seed), np.random.default_rng(seed)
    user, step, item = (rng.integers(n, size=9).tolist() for n in (7, 5, 12))
    asked, which = cases(user, step, item), rng.permutation(9)[:6]
    top = torch.from_numpy(np.stack([rng.permutation(12)[:k] for _ in which]))
    found = {name: judge(which, torch.zeros(6, 12), top) for name, judge in judges(world, asked, k).items()}
    for row, case in enumerate(which):
        gamma_V = world.relevance(asked.user_C[[case]], asked.step_C[[case]])[0]
        mean, best = gamma_V[top[row]].mean(), np.sort(gamma_V)[-k:].mean()
        assert float(found[f"truth:Relevance@{k}"][row]) == pytest.approx(float(mean), abs=1e-6)
        assert float(found[f"truth:Regret@{k}"][row]) == pytest.approx(float(best - mean), abs=1e-6)


def test_favourites_of_many_blocks_agree_with_a_loop() -> None:
    world, rng = World.builtin(WorldSpec(users=20, items=9, steps=6, shortest=3)), np.random.default_rng(0)
    user, step = rng.integers(20, size=2500), rng.integers(6, size=2500)
    by_hand = [int(world.relevance(user[[n]], step[[n]])[0].argmax()) for n in range(2500)]
    assert favourites_of(world, user, step).tolist() == by_hand


def test_they_are_what_an_evaluator_asks_for() -> None:
    given_to_an_evaluator: dict[str, Judge] = dict(judges(turning(), cases([0], [0], [0]), 2))
    assert list(given_to_an_evaluator) == ["truth:Relevance@2", "truth:Regret@2"]
