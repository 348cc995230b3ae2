"""Shares of a batch make up the batch, and their risks and gradients add up to its own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.training.cyclic import LENGTH, MODEL, TRAINING, V, circle
from tests.training.distributed.uneven import Uneven, gradients
from unveil.data.batches import Batch, ClozeTask
from unveil.data.slots import Slots
from unveil.models.bert4rec import BERT4Rec
from unveil.training.distributed import SINGLE, buckets, part_of
from unveil.training.trainer import Tally, Trainer, normaliser


def batch_of(asked_BL: np.ndarray) -> Batch:
    """Tokens and slots that are told apart by their numbers."""
    b_M, l_M = map(torch.from_numpy, np.nonzero(asked_BL))
    token_BL = torch.arange(asked_BL.size).view(*asked_BL.shape)
    item_M = token_BL[b_M, l_M]
    return Batch(token_BL, Slots(item_M + 1, item_M, item_M + 2, item_M + 3), (b_M, l_M))


@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 12), st.floats(0, 1), st.integers(0, 2**31))
def test_parts_make_up_the_batch(rows: int, columns: int, size: int, density: float, seed: int) -> None:
    batch = batch_of(np.random.default_rng(seed).random((rows, columns)) < density)
    parts = [part_of(batch, rank, size) for rank in range(size)]
    assert torch.equal(torch.cat([part.token_BL for part in parts]), batch.token_BL)
    for name in ("user_M", "item_M", "step_M", "event_M"):
        assert torch.equal(torch.cat([getattr(part.slots, name) for part in parts]), getattr(batch.slots, name))
    for part in parts:
        assert torch.equal(part.token_BL[part.where], part.slots.item_M)  # slots still point at their own cells
    counts = [len(part.token_BL) for part in parts]
    assert max(counts) - min(counts) <= 1


def test_by_hand() -> None:
    batch = batch_of(np.array([[1, 0], [0, 0], [1, 1]], bool))
    first, second = part_of(batch, 0, 2), part_of(batch, 1, 2)
    assert first.token_BL.tolist() == [[0, 1]]
    assert first.slots.item_M.tolist() == [0]
    assert second.token_BL.tolist() == [[2, 3], [4, 5]]
    assert [index.tolist() for index in second.where] == [[1, 1], [0, 1]]
    assert SINGLE.part(batch) is batch


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 10))
def test_buckets_hold_all_in_order_and_not_too_much(sizes: list[int], most: int) -> None:
    tensors = [torch.full((size,), float(nth)) for nth, size in enumerate(sizes)]
    made = list(buckets(tensors, most))
    assert [id(tensor) for bucket in made for tensor in bucket] == [id(tensor) for tensor in tensors]
    for bucket in made:
        assert len(bucket) == 1 or sum(tensor.numel() for tensor in bucket) <= most


@pytest.mark.parametrize("self_normalised", [False, True])
def test_gradients_of_the_parts_add_up(self_normalised: bool) -> None:
    """With the divisor of the whole batch, which a part alone could not know."""
    task = ClozeTask(circle(), LENGTH, batch_size=5, mask_probability=0.15, seed=3, always_mask=False)
    learner = Trainer(TRAINING, BERT4Rec(MODEL, V, seed=1).eval(), Uneven(self_normalised), task)
    empty = unequal = 0
    for batch in task.epoch(1):
        parts = [part_of(batch, rank, 3) for rank in range(3)]
        counts = [len(part.slots) for part in parts]
        empty, unequal = empty + (0 in counts), unequal + (len(set(counts)) > 1)
        signal = learner.estimator(batch.slots)
        divisor, _ = normaliser(learner.estimator, signal, len(batch.slots), task.slots_per_batch)
        found = [_alone(learner, part, divisor) for part in parts]
        risk, whole = _alone(learner, batch, divisor)
        assert sum(value for value, _ in found) == pytest.approx(risk, rel=1e-5)
        torch.testing.assert_close(torch.stack([flat for _, flat in found]).sum(0), whole, rtol=1e-4, atol=1e-6)
    assert empty
    assert unequal


def _alone(learner: Trainer, part: Batch, divisor: float) -> tuple[float, Tensor]:
    learner.optimiser.zero_grad()
    risk = learner.backward(part, learner.estimator(part.slots), divisor)
    return risk, gradients(learner.model)


def test_a_step_divides_by_what_the_paper_says() -> None:
    """The expected slots of a batch, whatever is in this one; or the mean weight of the batch times that."""
    task = ClozeTask(circle(), LENGTH, batch_size=5, mask_probability=0.3, seed=3)
    batch = next(task.epoch(1))
    signal = Uneven()(batch.slots)
    for self_normalised, scale in ((False, 1.0), (True, float(signal.weight_M.mean()))):
        model = BERT4Rec(MODEL, V, seed=1)
        learner = Trainer(TRAINING, model, Uneven(self_normalised), task)
        tally = Tally()
        learner.step(batch, tally, 1)
        divisor, total = normaliser(learner.estimator, signal, len(batch.slots), task.slots_per_batch)
        assert divisor == pytest.approx(task.slots_per_batch * scale)
        assert tally.total == total == pytest.approx(len(signal.weight_M) * scale)
