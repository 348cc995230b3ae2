"""The true favourite at a case's own user and step: by hand, and slot by slot."""

import numpy as np

from unveil.data.sequences import Sequences
from unveil.data.splits import EvalCases, leave_one_out
from unveil.data.vocabulary import Vocabulary
from unveil.evaluation.evaluator import Evaluator
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.truth import favourites_of, true_cases
from unveil.simulation.world import World


def turning() -> World:
    """One user, three items, two steps: γ is .8, .5, .2 at step 0 and .2, .5, .8 at step 1."""
    relevance = Factors.of(np.ones((1, 1)), np.log(4) * np.array([[1.0], [0.0], [-1.0]]), np.array([[1.0], [-1.0]]))
    nothing = Factors.constant(1, 3, 2)
    return World(relevance, nothing, Vocabulary("u"), Vocabulary("abc"), np.zeros(1, np.int32), 1.0, {})


def cases(user: list[int], step: list[int], item: list[int]) -> EvalCases:
    return EvalCases(*(np.array(column, np.int32) for column in (user, item, step, range(1, len(user) + 1))))


def test_the_target_becomes_the_favourite_at_the_cases_own_step() -> None:
    asked = cases([0, 0], [0, 1], [1, 1])
    true = true_cases(turning(), asked)
    assert true.item_C.tolist() == [0, 2]
    assert true.item_C.dtype == asked.item_C.dtype
    for same in ("user_C", "step_C", "seen_C"):
        assert getattr(true, same) is getattr(asked, same)
    assert asked.item_C.tolist() == [1, 1]


def test_no_cases_stay_no_cases() -> None:
    assert len(true_cases(turning(), cases([], [], []))) == 0


def test_favourites_of_many_blocks_agree_with_a_loop() -> None:
    world, rng = World.builtin(WorldSpec(users=20, items=9, steps=6, shortest=3)), np.random.default_rng(0)
    user, step = rng.integers(20, size=2500), rng.integers(6, size=2500)
    by_hand = [int(world.relevance(user[[n]], step[[n]])[0].argmax()) for n in range(2500)]
    assert favourites_of(world, user, step).tolist() == by_hand


def test_over_the_observed_catalogue_all_is_among_what_occurs_in_the_log() -> None:
    """Targets, negatives and rankings; an item that occurs in held-out events only is observed too."""
    whole = World.builtin(WorldSpec(users=20, items=60, steps=10, shortest=5, severity=1))
    log = whole.log(np.random.default_rng(0)).compact()
    world, split = whole.aligned_with(log), leave_one_out(Sequences.of(log))
    assert 20 < world.n_items < whole.n_items
    held_out = set(split.test.item_C.tolist()) - set(split.train.item_N.tolist())
    assert held_out
    true = true_cases(world, split.test)
    evaluator = Evaluator.of(
        true, split.whole, split.train, length=8, uniform=world.n_items - 1, popular=0, exclude_seen=False
    )
    negative_CN = evaluator.candidates.negatives[f"uniform-{world.n_items - 1}"]
    for case, row in enumerate(negative_CN.tolist()):
        assert {*row, int(true.item_C[case])} == set(range(world.n_items))
    observed = set(log.items.ids)
    for user, step, item in zip(true.user_C, true.step_C, true.item_C, strict=True):
        place = whole.users.index([log.users[int(user)]])
        gamma_V = whole.relevance(place, np.array([step]))[0]
        best = max((i for i in range(whole.n_items) if whole.items[i] in observed), key=lambda i: float(gamma_V[i]))
        assert world.items[int(item)] == whole.items[best]
