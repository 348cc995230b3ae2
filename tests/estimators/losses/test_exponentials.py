"""Sums of exponentials over tiles of items: the softmax's cross-entropy, at borders of tiles and beyond their range."""

import math

import pytest
import torch
from torch import Tensor

from unveil.estimators.losses import exponentials, fused
from unveil.estimators.losses.exponentials import softmax_loss
from unveil.estimators.losses.forms import cross_entropy
from unveil.estimators.losses.fused import by_slope, fused_loss


def parts(M: int, V: int, dtype: torch.dtype = torch.float64, shift: float = 0.0) -> list[Tensor]:
    """h, table, bias, target, weight, offset."""
    rng = torch.Generator().manual_seed(V)
    h_MD, table_VD, bias_V = (torch.randn(*size, generator=rng, dtype=dtype) for size in ((M, 8), (V, 8), (V,)))
    target_M, weight_M = torch.randint(V, (M,), generator=rng), torch.rand(M, generator=rng, dtype=dtype)
    return [h_MD, table_VD, bias_V + shift, target_M, weight_M, torch.randn(M, V, generator=rng, dtype=dtype)]


def gradients(loss: fused.ChunkLoss, given: list[Tensor]) -> list[Tensor]:
    """The loss, and its gradients in h, table and bias."""
    learnt = [x.clone().requires_grad_() for x in given[:3]]
    value = fused_loss(loss, learnt[0], learnt[1], learnt[2], given[3], given[4], given[5])
    return [value.detach(), *torch.autograd.grad(value, learnt)]


@pytest.mark.parametrize("V", [1, 6, 7, 8, 14, 15])
@pytest.mark.parametrize("M", [1, fused.ROWS + 3])
def test_tiles_and_chunks_make_no_difference(V: int, M: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponentials, "TILE", 7)
    given = parts(M, V)
    for mine, whole in zip(gradients(softmax_loss, given), gradients(by_slope(cross_entropy), given), strict=True):
        torch.testing.assert_close(mine, whole)


@pytest.mark.parametrize("shift", [-300.0, -60.0, -30.0, 0.0, 30.0, 60.0, 300.0])
def test_a_shift_of_all_logits_changes_nothing(shift: float) -> None:
    """In single precision, where exp overflows above 88 and vanishes below −103."""
    still, moved = (gradients(softmax_loss, parts(20, 30, torch.float32, by)) for by in (0.0, shift))
    for one, other in zip(still, moved, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-4)


def test_one_row_beyond_the_range_among_others_within_it() -> None:
    given = parts(4, 9, torch.float32)
    given[5][2] += 200.0
    for mine, whole in zip(gradients(softmax_loss, given), gradients(by_slope(cross_entropy), given), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, whole)


def test_a_loss_that_is_no_number_stays_one() -> None:
    given = parts(3, 5)
    given[0][1] = math.nan
    assert gradients(softmax_loss, given)[0].isnan()
