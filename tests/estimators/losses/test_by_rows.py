"""Numbers of every slot and item that are made some slots at a time: the same, and never all at once."""

import pytest
import torch
from torch import Tensor

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.estimators.base import Signal, cloze_risk
from unveil.estimators.build import build
from unveil.estimators.losses import fused
from unveil.estimators.losses.by_rows import ByRows
from unveil.propensity.known import KnownTemporal

TOY = Toy.drawn(random_world(users=80))
V = TOY.world.n_items


def many(n: int) -> Slots:
    """So many slots: those of the toy, again and again."""
    return TOY.slots.at(torch.arange(n) % len(TOY.slots))


@pytest.mark.parametrize("name", ["corrected", "rational", "consideration"])
def test_the_loss_and_its_gradients_are_those_of_the_whole_table_to_the_last_bit(name: str) -> None:
    slots = many(2 * fused.ROWS + 5)
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

    slots = many(2 * fused.ROWS + 5)
    signal = Signal(slots.item_M, torch.ones(len(slots)), ByRows(slots, make))
    assert not asked
    cloze_risk(torch.zeros(len(slots), 4), torch.zeros(V, 4), torch.zeros(V), signal)
    assert asked == [fused.ROWS, fused.ROWS, 5]


def test_rows_by_any_index_and_elsewhere() -> None:
    table = ByRows(TOY.slots, lambda slots: slots.item_M[:, None].float().repeat(1, 3))
    assert len(table) == len(TOY.slots)
    assert torch.equal(table[torch.tensor([4, 2])], table[:][[4, 2]])
    assert torch.equal(table[1:3], table[:][1:3])
    assert table.to("meta")[:2].device.type == "meta"
