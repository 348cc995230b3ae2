"""A stretch of work has the threads it asks for, and leaves torch's own number as it was."""

import numpy as np
import pytest
import torch

from tests.simulation.rated import rated
from unveil.models.tensor_factorization.recipes import Descent, Paper
from unveil.processes import threads
from unveil.simulation.fit import Fit, observed


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (2, 2), (None, 3)])
def test_the_number_is_given_back(asked: int | None, given: int) -> None:
    with threads(3):
        with threads(asked):
            assert torch.get_num_threads() == given
        assert torch.get_num_threads() == 3
        with pytest.raises(ValueError, match="on purpose"), threads(1):
            raise ValueError("on purpose")
        assert torch.get_num_threads() == 3


def test_factors_descend_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their steps are too small to share."""
    seen: list[int] = []
    monkeypatch.setattr(Descent, "epoch", lambda *_: seen.append(torch.get_num_threads()))
    task, _ = Fit(recipe="paper", steps=10).tasks(observed(rated(), 10))
    with threads(2):
        Paper(width=2, epochs=3).learn(task, np.random.default_rng(0), lambda _: None)
    assert seen == [1, 1, 1]
