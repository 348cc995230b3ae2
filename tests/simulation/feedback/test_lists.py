import numpy as np
import torch
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.simulation.feedback.small import random_histories
from unveil.evaluation.metrics import NOBODY
from unveil.models.baselines import Popularity, Random
from unveil.simulation.feedback import lists
from unveil.simulation.feedback.lists import recommended


class Ascending:
    """Item i scores i."""

    def scores(self, token_BL: Tensor) -> Tensor:
        return torch.arange(5.0).expand(len(token_BL), -1)


def test_nothing_that_was_seen_however_long_ago() -> None:
    sequences = sequences_of([[4, 0, 1], [2], []], 5)
    found = recommended(Ascending(), sequences, length=2, k=2)
    assert found.top_UK.tolist() == [[3, 2], [4, 3], [4, 3]]
    assert found.score_UK.tolist() == [[3, 2], [4, 3], [4, 3]]


def test_a_list_is_shorter_where_too_few_items_are_left() -> None:
    found = recommended(Ascending(), sequences_of([[4, 0, 1], [0, 1, 2, 3, 4]], 5), length=3, k=4)
    assert found.top_UK.tolist() == [[3, 2, NOBODY, NOBODY], [NOBODY] * 4]
    assert found.score_UK[1].tolist() == [0, 0, 0, 0]
    assert found.filled_UK.sum(1).tolist() == [2, 0]


def test_users_by_themselves_get_the_same() -> None:
    sequences = sequences_of(random_histories(1, users=40), 30)
    for scorer in (Random(30, seed=3), Popularity.fit(sequences)):
        together = recommended(scorer, sequences, 5, 6)
        rows, lists.ROWS = lists.ROWS, 1
        try:
            alone = recommended(scorer, sequences, 5, 6)
        finally:
            lists.ROWS = rows
        assert np.array_equal(together.top_UK, alone.top_UK)
        for user in range(40):
            assert not set(together.top_UK[user]) & set(sequences.history(user))
