import numpy as np

from tests.estimators.toys import random_world
from unveil.runs.world_page import step_means


def test_means_are_those_of_the_whole_of_a_small_world() -> None:
    world = random_world(users=12, items=7, steps=9)
    means, theta_V = step_means(world)
    user_S, step_S = world.slots()
    theta_SV, gamma_SV = world.exposure(user_S, step_S), world.relevance(user_S, step_S)
    assert means["step"].to_list() == list(range(9))
    for step in range(9):
        np.testing.assert_allclose(means["exposure θ"][step], theta_SV[step_S == step].mean(), rtol=1e-5)
        np.testing.assert_allclose(means["relevance γ"][step], gamma_SV[step_S == step].mean(), rtol=1e-5)
    np.testing.assert_allclose(theta_V, theta_SV.mean(0), rtol=1e-5)
