"""Learning rates by hand, and what holds for all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.training.learner import learning_rate
from unveil.training.recipe import SCHEDULES, TrainerConfig

PER_EPOCH = 4
BASE = TrainerConfig(epochs=10, lr=1.0)


def rates(config: TrainerConfig) -> list[float]:
    return [learning_rate(config, step, PER_EPOCH) for step in range(config.epochs * PER_EPOCH)]


def test_constant_stays() -> None:
    assert set(rates(BASE)) == {1.0}


def test_warm_up_rises_to_the_full_rate_on_its_last_step() -> None:
    assert rates(replace(BASE, warmup=2))[:9] == [n / 8 for n in range(1, 9)] + [1.0]


def test_linear_falls_evenly_from_the_end_of_the_warm_up_to_the_end() -> None:
    found = rates(replace(BASE, schedule="linear", warmup=2))
    assert found[:8] == [n / 8 for n in range(1, 9)]
    assert found[8:] == pytest.approx([1 - n / 32 for n in range(32)])


def test_cosine_is_half_way_down_in_the_middle() -> None:
    found = rates(replace(BASE, schedule="cosine"))
    assert found[0] == 1
    assert found[20] == pytest.approx(0.5)
    assert found[10] == pytest.approx((1 + 0.5**0.5) / 2)


def test_step_drops_once_to_a_tenth() -> None:
    found = rates(replace(BASE, schedule="step", step_epoch=3))
    assert found == [1.0] * 12 + [pytest.approx(0.1)] * 28


@given(st.sampled_from(SCHEDULES), st.floats(0, 12), st.integers(1, 10), st.integers(1, 7))
def test_rates_lie_between_nothing_and_the_full_rate(schedule: str, warmup: float, epochs: int, per_epoch: int) -> None:
    config = replace(BASE, schedule=schedule, warmup=warmup, epochs=epochs)  # type: ignore[arg-type]
    assert all(0 <= learning_rate(config, step, per_epoch) <= 1 for step in range(epochs * per_epoch))
