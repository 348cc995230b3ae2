import numpy as np
import pytest

from unveil.simulation.builtin import WorldSpec
from unveil.simulation.describe import rows
from unveil.simulation.world import World


def test_favourites_along_the_steps_are_counted_user_by_user() -> None:
    world = World.builtin(WorldSpec(users=30, items=12, steps=9, shortest=2, drift=2.0), seed=2)
    counts = []
    for user in range(30):
        steps = range(int(world.start_U[user]), 9)
        gamma_TV = [world.relevance(np.array([user]), np.array([step]))[0] for step in steps]
        counts.append(len({int(np.argmax(gamma_V)) for gamma_V in gamma_TV}))
    assert world.describe().favourites_of_a_user == pytest.approx(np.mean(counts))
    assert max(counts) > 1


def test_a_world_without_fashion_has_one_favourite_a_user() -> None:
    assert World.builtin(WorldSpec(drift=0)).describe().favourites_of_a_user == 1


def test_every_figure_is_in_the_table() -> None:
    figures = World.builtin().with_severity(3).describe()
    table = dict(rows(figures))
    assert table["users"] == "600"
    assert table["severity p"] == "3"
    assert table["  users who share the most common one"] == f"{figures.commonest_favourite:.1%}"
    assert len(rows(figures)) == 18
