"""Causal networks: nothing that comes later is seen; what is asked is what was learnt."""

import pytest
import torch
from torch import Tensor

from tests.contracts.test_backbones import MASK, PAD, V, network, rows
from tests.data.ragged import sequences_of
from unveil.data.batches import NextItemTask
from unveil.data.slots import histories
from unveil.models.base import BACKBONES, Causal, backbone, mask_first

CAUSAL = [name for name in BACKBONES if issubclass(BACKBONES[name], Causal)]


def test_the_last_mask_moves_to_the_beginning() -> None:
    asked = torch.tensor([[PAD, PAD, 1, 2, MASK], [PAD, PAD, PAD, PAD, MASK], [1, 2, 3, 4, MASK]])
    begins = [[PAD, PAD, MASK, 1, 2], [PAD, PAD, PAD, PAD, MASK], [MASK, 1, 2, 3, 4]]
    assert mask_first(asked, V).tolist() == begins


def test_the_cells_of_a_recurrent_network_begin_within_one_by_the_root_of_the_width() -> None:
    kind = backbone("gru4rec")
    model = kind(kind.Config(width=64, length=5), V, seed=0)
    drawn = torch.cat([each.detach().flatten() for name, each in model.named_parameters() if name.startswith("cells.")])
    assert drawn.abs().max() <= 1 / 8
    assert float(drawn.std()) == pytest.approx(1 / 8 / 3**0.5, rel=0.03), "that of a uniform law"


@pytest.mark.parametrize("name", CAUSAL)
def test_nothing_later_is_seen(name: str) -> None:
    model = network(name).eval()
    one, other = torch.tensor([[MASK, 1, 2, 3, 4]]), torch.tensor([[MASK, 1, 2, 7, 8]])
    h_one, h_other = model(one), model(other)
    torch.testing.assert_close(h_one[:, :3], h_other[:, :3], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(h_one[:, 3:], h_other[:, 3:], atol=1e-3)


@pytest.mark.parametrize("name", CAUSAL)
def test_everything_earlier_is_seen(name: str) -> None:
    model = network(name).eval()
    last = [model(torch.tensor([row]))[0, -1] for row in ([MASK, 1, 2, 3], [MASK, 5, 2, 3], [MASK, 1, 5, 3])]
    assert not torch.allclose(last[0], last[1], atol=1e-3)
    assert not torch.allclose(last[0], last[2], atol=1e-3)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("head", ["tied", "untied"])
def test_scores_are_the_logits_of_the_last_column(name: str, head: str) -> None:
    model = network(name, head=head).eval()
    h_D = model(torch.tensor([[MASK, 1, 2, 3]]))[0, -1:]
    h, table_VD, bias_V = model.head(h_D)
    expected: Tensor = h @ table_VD.T + bias_V
    torch.testing.assert_close(model.scores(rows([1, 2, 3])), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("length", [3, 9])
def test_what_is_served_is_what_was_trained_at_the_last_event(name: str, length: int) -> None:
    """The last slot of a row in training, and the question of a scorer who has all but that event: the same logits."""
    train = sequences_of([[1, 2, 3, 4, 5], [6], [2, 2, 7]], V)
    config = backbone(name).Config(width=8, blocks=1, length=length, dropout=0.0)
    model = backbone(name)(config, V, seed=0).eval()
    for batch in NextItemTask(train, length, batch_size=3).epoch(1):
        last_M = torch.nonzero(batch.where[1] == batch.token_BL.shape[1] - 1)[:, 0]
        user_B = batch.slots.user_M[last_M].numpy()
        assert batch.slots.item_M[last_M].tolist() == [int(train.history(user)[-1]) for user in user_B]
        asked = histories(train, user_B, train.length_U[user_B] - 1, length)
        trained = model.logits(model(batch.token_BL, batch.where)[last_M])
        torch.testing.assert_close(model.scores(asked), trained, rtol=1e-4, atol=1e-5)


def test_a_recurrent_network_by_hand() -> None:
    """One cell, written out: r, z and n of a GRU, from the first token on, whatever padding stands before it."""
    model = network("gru4rec").eval()
    weights = dict(model.named_parameters())
    w, u = weights["cells.weight_ih_l0"], weights["cells.weight_hh_l0"]
    b, c = weights["cells.bias_ih_l0"], weights["cells.bias_hh_l0"]
    h = torch.zeros(8)
    for token in (MASK, 1, 2):
        gate, back = w @ weights["item.weight"][token] + b, u @ h + c
        r, z = torch.sigmoid(gate[:8] + back[:8]), torch.sigmoid(gate[8:16] + back[8:16])
        h = (1 - z) * torch.tanh(gate[16:] + r * back[16:]) + z * h
    normed = torch.nn.functional.layer_norm(h, (8,), weights["last_norm.weight"], weights["last_norm.bias"])
    found = model(torch.tensor([[PAD, PAD, MASK, 1, 2]]))[0, -1]
    torch.testing.assert_close(found, normed, rtol=1e-4, atol=1e-5)
