"""Dropout by sixteen-bit coins: its moments, its scale, its independence and its seed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unveil.models.bert4rec import LEVELS, add_dropped, dropout, keep_mask, realised_keep


@pytest.mark.parametrize("p", [0.01, 0.1, 0.25, 0.5, 0.9])
def test_the_mask_has_the_moments_of_scaled_coins(p: float) -> None:
    n = 1 << 20
    mask = keep_mask(torch.Size([n]), p, torch.Generator().manual_seed(1)).double()
    keep = realised_keep(p)
    variance = (1 - keep) / keep
    assert abs(mask.mean().item() - 1) < 5 * (variance / n) ** 0.5
    assert mask.var().item() == pytest.approx(variance, rel=0.02)
    assert set(mask.tolist()) == {0.0, torch.tensor(1 / keep).item()}


@pytest.mark.parametrize("lane", range(4))
def test_every_lane_of_a_word_is_a_fair_coin(lane: int) -> None:
    """A generator that never sets the top bit would spoil one lane in four."""
    mask = keep_mask(torch.Size([1 << 20]), 0.3, torch.Generator().manual_seed(2))[lane::4]
    share = (mask > 0).double().mean().item()
    assert abs(share - 0.7) < 5 * (0.21 / len(mask)) ** 0.5


def test_neighbouring_coins_and_successive_masks_are_uncorrelated() -> None:
    generator, n = torch.Generator().manual_seed(3), 1 << 18
    first, second = (keep_mask(torch.Size([n]), 0.5, generator) > 0 for _ in range(2))
    for a, b in ((first, second), (first[1:], first[:-1]), (first[4:], first[:-4])):
        agreement = (a == b).double().mean().item()
        assert abs(agreement - 0.5) < 5 * (0.25 / n) ** 0.5


@given(st.floats(0, 0.999999))
def test_the_keep_probability_is_quantised_by_at_most_half_a_coin(p: float) -> None:
    keep = realised_keep(p)
    assert keep * LEVELS == int(keep * LEVELS)
    assert 0 < keep <= 1
    assert abs(keep - (1 - p)) <= max(0.5, 1 - (1 - p) * LEVELS) / LEVELS + 1e-12


def test_a_seed_fixes_the_mask() -> None:
    one, two, other = (keep_mask(torch.Size([7, 5]), 0.5, torch.Generator().manual_seed(s)) for s in (5, 5, 6))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    x = torch.ones(1000)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        first, second = dropout(x, 0.5), dropout(x, 0.5)
        torch.manual_seed(9)
        assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 1023])
def test_any_size_is_served(size: int) -> None:
    assert keep_mask(torch.Size([size]), 0.2).shape == (size,)


def test_no_dropout_is_the_same_tensor_and_a_sum() -> None:
    x, residual = torch.randn(3, 4), torch.randn(3, 4)
    assert dropout(x, 0.0) is x
    assert torch.equal(add_dropped(residual, x, 0.0), residual + x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_passes_where_the_value_passed(dtype: torch.dtype) -> None:
    x = torch.ones(4096, dtype=dtype, requires_grad=True)
    residual = torch.zeros(4096, dtype=dtype, requires_grad=True)
    out = add_dropped(residual, x, 0.4)
    torch.autograd.backward(out.sum())
    assert x.grad is not None
    assert residual.grad is not None
    assert torch.equal(x.grad, out.detach())
    assert torch.equal(residual.grad, torch.ones_like(residual))
    assert 0.5 < (out != 0).double().mean().item() < 0.7
