"""Where items stand among all that a user has not met: the ends by hand, the rest by counting one by one."""

import numpy as np
import pytest

from unveil.data.sequences import Sequences
from unveil.evaluation.metrics import NOBODY
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.feedback import standing as module
from unveil.simulation.feedback.held import held
from unveil.simulation.feedback.standing import standing
from unveil.simulation.world import World

WORLD = World.builtin(WorldSpec(users=30, items=25, steps=12), seed=1)
BASE = Sequences.of(WORLD.log(np.random.default_rng(2)))
TRUTH = held(WORLD, BASE.n_steps + 1)


def unmet(user: int) -> list[int]:
    """Worst first."""
    met = set(BASE.item_N[BASE.user_N == user].tolist())
    gamma_V = TRUTH.relevance(np.array([user]), np.array([BASE.n_steps]))[0]
    return sorted(set(range(BASE.n_items)) - met, key=lambda item: gamma_V[item])


def test_the_best_unmet_item_stands_at_1_and_the_worst_at_0() -> None:
    ends_U2 = np.array([[unmet(user)[-1], unmet(user)[0]] for user in range(BASE.n_users)], np.int32)
    np.testing.assert_array_equal(standing(TRUTH, ends_U2, BASE), np.tile([1.0, 0.0], (BASE.n_users, 1)))


@pytest.mark.parametrize("cells", [1, 2 * 25, 2**22])
def test_it_is_the_place_among_the_unmet(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    rng = np.random.default_rng(0)
    item_UK = np.array([rng.choice(unmet(user), 3, replace=False) for user in range(BASE.n_users)], np.int32)
    item_UK[4, 1:] = NOBODY
    found_UK = standing(TRUTH, item_UK, BASE)
    for (user, place), item in np.ndenumerate(item_UK):
        if item == NOBODY:
            assert np.isnan(found_UK[user, place])
        else:
            order = unmet(user)
            assert found_UK[user, place] == pytest.approx(order.index(int(item)) / (len(order) - 1))
