import numpy as np

from tests.estimators.toys import random_world
from unveil.runs.world_page import looked_at


def test_means_are_those_of_the_whole_of_a_small_world() -> None:
    world = random_world(users=12, items=7, steps=9)
    seen = looked_at(world)
    user_S, step_S = world.slots()
    theta_SV, gamma_SV = world.exposure(user_S, step_S), world.relevance(user_S, step_S)
    assert seen.step_T.tolist() == list(range(9))
    for step in range(9):
        np.testing.assert_allclose(seen.theta_T[step], theta_SV[step_S == step].mean(), rtol=1e-5)
        np.testing.assert_allclose(seen.gamma_T[step], gamma_SV[step_S == step].mean(), rtol=1e-5)
    np.testing.assert_allclose(seen.theta_V, theta_SV.mean(0), rtol=1e-5)
