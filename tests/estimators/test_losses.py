"""The losses: by hand, against the plain formula in value and gradient, by parts of slots or items, at the edges."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.estimators import losses
from unveil.estimators.base import Signal, build, cloze_risk
from unveil.estimators.losses import ByRows, by_slope, cross_entropy, fused_loss, softmax_loss
from unveil.propensity.known import KnownTemporal

Parts = tuple[Tensor, Tensor, Tensor]


def parts(M: int, V: int, D: int, seed: int = 0, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> Parts:
    rng = torch.Generator().manual_seed(seed)
    h_MD = scale * torch.randn(M, D, generator=rng, dtype=dtype)
    table_VD = torch.randn(V, D, generator=rng, dtype=dtype)
    bias_V = torch.randn(V, generator=rng, dtype=dtype)
    return h_MD.requires_grad_(), table_VD.requires_grad_(), bias_V.requires_grad_()


def signal(M: int, V: int, seed: int = 0, *, offset: bool = False, dtype: torch.dtype = torch.float64) -> Signal:
    rng = torch.Generator().manual_seed(seed + 1)
    offset_MV = torch.randn(M, V, generator=rng, dtype=dtype) if offset else None
    return Signal(torch.randint(V, (M,), generator=rng), 5 * torch.rand(M, generator=rng, dtype=dtype), offset_MV)


def plain_risk(h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, signal: Signal, normaliser: float) -> Tensor:
    """The equation, all logits at once, by torch's own autograd."""
    logits_MV = h_MD @ table_VD.T + bias_V
    if signal.offset_MV is not None:
        logits_MV = logits_MV + signal.offset_MV[:]
    log_p_M = torch.log_softmax(logits_MV, 1).gather(1, signal.target_M[:, None])[:, 0]
    return -(signal.weight_M * log_p_M).sum() / normaliser


def test_two_slots_by_hand() -> None:
    # Logits (0, log 3) and (log 4, 0): p of the targets is 3/4 and 1/5; weights 2 and 5.
    h_MD = torch.tensor([[0.0, math.log(3)], [math.log(4), 0.0]])
    risk = cloze_risk(h_MD, torch.eye(2), torch.zeros(2), Signal(torch.tensor([1, 1]), torch.tensor([2.0, 5.0])))
    assert risk.item() == pytest.approx((2 * math.log(4 / 3) + 5 * math.log(5)) / 2)


def test_bias_and_offset_by_hand() -> None:
    # All logits 0; a bias of log 2 on item 0 and an offset of log 6 on item 1: p = (2, 6, 1) / 9.
    bias_V, offset_MV = torch.tensor([2.0, 1.0, 1.0]).log(), torch.tensor([[1.0, 6.0, 1.0]]).log()
    risk = cloze_risk(torch.zeros(1, 4), torch.zeros(3, 4), bias_V, Signal(torch.tensor([1]), torch.ones(1), offset_MV))
    assert risk.item() == pytest.approx(math.log(9 / 6))


def test_the_normaliser_is_the_number_of_slots_unless_said_otherwise() -> None:
    p, s = parts(6, 5, 3), signal(6, 5)
    total = cloze_risk(*p, s, normaliser=1.0)
    torch.testing.assert_close(cloze_risk(*p, s), total / 6)
    torch.testing.assert_close(cloze_risk(*p, s, normaliser=s.weight_M.sum()), total / s.weight_M.sum())


@pytest.mark.parametrize("offset", [False, True])
def test_gradients_by_finite_differences(offset: bool) -> None:
    s = signal(4, 5, offset=offset)

    def risk(h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Tensor:
        return cloze_risk(h_MD, table_VD, bias_V, s, normaliser=3.0)

    assert torch.autograd.gradcheck(risk, parts(4, 5, 3))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 8), st.integers(0, 99), st.booleans())
def test_value_and_gradients_are_those_of_the_plain_formula(M: int, V: int, D: int, seed: int, offset: bool) -> None:
    p, s = parts(M, V, D, seed), signal(M, V, seed, offset=offset)
    mine, plain = cloze_risk(*p, s, normaliser=7.0), plain_risk(*p, s, 7.0)
    torch.testing.assert_close(mine, plain)
    for one, other in zip(torch.autograd.grad(mine, p), torch.autograd.grad(plain, p), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("M", [losses.ROWS - 1, losses.ROWS, 2 * losses.ROWS + 3])
def test_single_precision_over_several_chunks(M: int) -> None:
    p, s = parts(M, 301, 16, dtype=torch.float32), signal(M, 301, offset=True, dtype=torch.float32)
    assert s.offset_MV is not None
    exact_parts = tuple(x.detach().double().requires_grad_() for x in p)
    exact_signal = Signal(s.target_M, s.weight_M.double(), s.offset_MV[:].double())
    mine = cloze_risk(*p, s)
    exact = plain_risk(exact_parts[0], exact_parts[1], exact_parts[2], exact_signal, M)
    assert mine.item() == pytest.approx(exact.item(), rel=1e-6)
    for one, other in zip(torch.autograd.grad(mine, p), torch.autograd.grad(exact, exact_parts), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-6)


def test_chunks_hold_fewer_rows_where_there_are_many_items() -> None:
    assert losses.chunk_rows(3_416) == losses.chunk_rows(54_542) == 256
    assert losses.chunk_rows(1_000_000) == 16
    assert losses.chunk_rows(100_000) * 100_000 <= losses.LOGITS


def test_no_slots_no_loss_and_a_gradient_of_zero() -> None:
    p = parts(0, 5, 3)
    nothing = Signal(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    for risk in (cloze_risk(*p, nothing), cloze_risk(*p, nothing, normaliser=nothing.weight_M.sum())):
        assert risk.item() == 0.0
        for gradient in torch.autograd.grad(risk, p):
            assert not gradient.any()


def test_weights_of_zero_teach_nothing() -> None:
    p, target_M = parts(4, 5, 3), torch.arange(4)
    risk = cloze_risk(*p, Signal(target_M, torch.zeros(4)), normaliser=torch.zeros(()))
    assert risk.item() == 0.0
    assert not any(gradient.any() for gradient in torch.autograd.grad(risk, p))


def test_extreme_logits_stay_finite() -> None:
    p, s = parts(20, 9, 4, dtype=torch.float32, scale=1e4), signal(20, 9, dtype=torch.float32)
    mine, plain = cloze_risk(*p, s), plain_risk(*p, s, 20)
    torch.testing.assert_close(mine, plain)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(mine, p))


def test_an_item_that_cannot_be_shown_takes_no_part() -> None:
    h_MD, table_VD, bias_V = parts(1, 3, 2)
    hidden = torch.tensor([[0.0, 0.0, -torch.inf]], dtype=torch.float64)
    mine = cloze_risk(h_MD, table_VD, bias_V, Signal(torch.tensor([0]), torch.ones(1), hidden))
    without = cloze_risk(h_MD, table_VD[:2], bias_V[:2], Signal(torch.tensor([0]), torch.ones(1)))
    torch.testing.assert_close(mine, without)


def test_the_same_value_with_and_without_gradient() -> None:
    p, s = parts(300, 40, 8), signal(300, 40)
    with_gradient = cloze_risk(*p, s)
    with torch.no_grad():
        torch.testing.assert_close(cloze_risk(*p, s), with_gradient.detach())
    frozen = [x.detach() for x in p]
    assert not cloze_risk(frozen[0], frozen[1], frozen[2], s).requires_grad


def test_what_comes_before_the_loss_gets_its_gradient_and_inputs_stay_as_they_were() -> None:
    p, s = parts(10, 6, 3), signal(10, 6, offset=True)
    assert s.offset_MV is not None
    given = (*p, s.weight_M, s.offset_MV[:])
    copies = [x.detach().clone() for x in given]
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    mine = torch.autograd.grad(cloze_risk(scale * p[0], p[1], p[2], s), scale)[0]
    plain = torch.autograd.grad(plain_risk(scale * p[0], p[1], p[2], s, 10), scale)[0]
    torch.testing.assert_close(mine, plain)
    assert all(torch.equal(a, b) for a, b in zip(copies, given, strict=True))


def rivals(M: int, V: int, seed: int = 0) -> Signal:
    rng = torch.Generator().manual_seed(seed + 2)
    target_M, weight_M = torch.randint(V, (M,), generator=rng), torch.rand(M, generator=rng, dtype=torch.float64)
    return Signal(target_M, weight_M, rival_MV=3 * torch.rand(M, V, generator=rng, dtype=torch.float64))


def plain_rivalry(h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, signal: Signal, normaliser: float) -> Tensor:
    """The equation, pair by pair."""
    assert signal.rival_MV is not None
    f_MV, total, rival_MV = h_MD @ table_VD.T + bias_V, torch.zeros((), dtype=h_MD.dtype), signal.rival_MV[:]
    for m, target in enumerate(signal.target_M.tolist()):
        for j in range(len(table_VD)):
            if j != target:
                ahead = torch.log1p(torch.exp(f_MV[m, j] - f_MV[m, target]))
                total = total + signal.weight_M[m] * rival_MV[m, j] * ahead
    return total / normaliser


def test_rivals_by_hand() -> None:
    # Logits (0, log 3): softplus(0 − log 3) = log 4/3, twice as important a rival, weight 5.
    s = Signal(torch.tensor([1]), torch.tensor([5.0]), rival_MV=torch.tensor([[2.0, 7.0]]))
    risk = cloze_risk(torch.tensor([[0.0, math.log(3)]]), torch.eye(2), torch.zeros(2), s)
    assert risk.item() == pytest.approx(5 * 2 * math.log(4 / 3))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 4), st.integers(0, 99))
def test_rivals_in_value_and_gradients(M: int, V: int, D: int, seed: int) -> None:
    p, s = parts(M, V, D, seed), rivals(M, V, seed)
    mine, plain = cloze_risk(*p, s, normaliser=7.0), plain_rivalry(*p, s, 7.0)
    torch.testing.assert_close(mine, plain)
    with torch.no_grad():
        torch.testing.assert_close(cloze_risk(*p, s, normaliser=7.0), plain)
    if V > 1:
        for one, other in zip(torch.autograd.grad(mine, p), torch.autograd.grad(plain, p), strict=True):
            torch.testing.assert_close(one, other)


TOY = Toy.drawn(random_world(users=80))
V = TOY.world.n_items


def many(n: int) -> Slots:
    """So many slots: those of the toy, again and again."""
    return TOY.slots.at(torch.arange(n) % len(TOY.slots))


@pytest.mark.parametrize("name", ["corrected", "rational", "consideration"])
def test_the_loss_and_its_gradients_are_those_of_the_whole_table_to_the_last_bit(name: str) -> None:
    slots = many(2 * losses.ROWS + 5)
    lazy = build(name, {}, propensity=KnownTemporal(TOY.world), train=TOY.train)(slots)
    rng = torch.Generator().manual_seed(0)
    p = [torch.randn(*shape, generator=rng).requires_grad_() for shape in ((len(slots), 8), (V, 8), (V,))]
    risks = [cloze_risk(p[0], p[1], p[2], signal) for signal in (lazy, at_hand(lazy))]
    assert torch.equal(*risks)
    for one, other in zip(*(torch.autograd.grad(risk, p) for risk in risks), strict=True):
        assert torch.equal(one, other)


def at_hand(signal: Signal) -> Signal:
    """The same signal with every table made whole."""
    tables = (signal.offset_MV, signal.rival_MV, signal.imputed_MV, signal.theta_MV)
    assert any(isinstance(table_MV, ByRows) for table_MV in tables)
    whole = [None if table_MV is None else table_MV[:] for table_MV in tables]
    return Signal(signal.target_M, signal.weight_M, *whole)


def test_no_more_rows_than_those_of_a_chunk_are_ever_made() -> None:
    asked: list[int] = []

    def make(slots: Slots) -> Tensor:
        asked.append(len(slots))
        return torch.zeros(len(slots), V)

    slots = many(2 * losses.ROWS + 5)
    signal = Signal(slots.item_M, torch.ones(len(slots)), ByRows(slots, make))
    assert not asked
    cloze_risk(torch.zeros(len(slots), 4), torch.zeros(V, 4), torch.zeros(V), signal)
    assert asked == [losses.ROWS, losses.ROWS, 5]


def test_rows_by_any_index_and_elsewhere() -> None:
    table = ByRows(TOY.slots, lambda slots: slots.item_M[:, None].float().repeat(1, 3))
    assert len(table) == len(TOY.slots)
    assert torch.equal(table[torch.tensor([4, 2])], table[:][[4, 2]])
    assert torch.equal(table[1:3], table[:][1:3])
    assert table.to("meta")[:2].device.type == "meta"


def chunk_of(M: int, V: int, dtype: torch.dtype = torch.float64, shift: float = 0.0) -> list[Tensor]:
    """h, table, bias, target, weight, offset."""
    rng = torch.Generator().manual_seed(V)
    h_MD, table_VD, bias_V = (torch.randn(*size, generator=rng, dtype=dtype) for size in ((M, 8), (V, 8), (V,)))
    target_M, weight_M = torch.randint(V, (M,), generator=rng), torch.rand(M, generator=rng, dtype=dtype)
    return [h_MD, table_VD, bias_V + shift, target_M, weight_M, torch.randn(M, V, generator=rng, dtype=dtype)]


def gradients(loss: losses.ChunkLoss, given: list[Tensor]) -> list[Tensor]:
    """The loss, and its gradients in h, table and bias."""
    learnt = [x.clone().requires_grad_() for x in given[:3]]
    value = fused_loss(loss, learnt[0], learnt[1], learnt[2], given[3], given[4], given[5])
    return [value.detach(), *torch.autograd.grad(value, learnt)]


@pytest.mark.parametrize("V", [1, 6, 7, 8, 14, 15])
@pytest.mark.parametrize("M", [1, losses.ROWS + 3])
def test_tiles_and_chunks_make_no_difference(V: int, M: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "TILE", 7)
    given = chunk_of(M, V)
    for mine, whole in zip(gradients(softmax_loss, given), gradients(by_slope(cross_entropy), given), strict=True):
        torch.testing.assert_close(mine, whole)


@pytest.mark.parametrize("shift", [-300.0, -60.0, -30.0, 0.0, 30.0, 60.0, 300.0])
def test_a_shift_of_all_logits_changes_nothing(shift: float) -> None:
    """In single precision, where exp overflows above 88 and vanishes below −103."""
    still, moved = (gradients(softmax_loss, chunk_of(20, 30, torch.float32, by)) for by in (0.0, shift))
    for one, other in zip(still, moved, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-4)


def test_one_row_beyond_the_range_among_others_within_it() -> None:
    given = chunk_of(4, 9, torch.float32)
    given[5][2] += 200.0
    for mine, whole in zip(gradients(softmax_loss, given), gradients(by_slope(cross_entropy), given), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, whole)


def test_a_loss_that_is_no_number_stays_one() -> None:
    given = chunk_of(3, 5)
    given[0][1] = math.nan
    assert gradients(softmax_loss, given)[0].isnan()
