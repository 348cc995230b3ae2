import numpy as np

from tests.estimators.toys import random_world
from unveil.simulation.describe import table_means


def test_means_are_those_of_the_whole_of_a_small_world() -> None:
    world = random_world(users=12, items=7, steps=9)
    user_S, step_S = world.slots()
    for table in (world.exposure, world.relevance):
        value_SV, found = table(user_S, step_S), table_means(world, table)
        by_step = [value_SV[step_S == step].mean() for step in range(9)]
        np.testing.assert_allclose(found.by_step, by_step, rtol=1e-5)
        np.testing.assert_allclose(found.total_V / len(user_S), value_SV.mean(0), rtol=1e-5)
        by_user = [value_SV[user_S == user].mean() for user in range(12)]
        spreads = (value_SV.mean(), value_SV.mean(0).std(), np.std(by_user), np.std(by_step))
        np.testing.assert_allclose(list(vars(found.spread).values()), spreads, rtol=1e-4)
