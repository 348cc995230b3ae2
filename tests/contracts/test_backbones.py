"""What every registered network promises. A new one is tested here by being registered."""

from typing import Any

import pytest
import torch
from torch import Tensor

from unveil.data.slots import mask_token, pad_token
from unveil.models.base import BACKBONES, Backbone, backbone, mask_first

V, L = 9, 6
PAD, MASK = pad_token(V), mask_token(V)


def network(name: str, seed: int = 0, **options: Any) -> Backbone:
    """A small one, its weights moved away from their initial values, so that each of them matters."""
    kind = backbone(name)
    model = kind(kind.Config(width=8, length=L, **options), V, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def rows(*histories: list[int], width: int = L) -> Tensor:
    """What a scorer is asked: the histories, then MASK."""
    return torch.tensor([[PAD] * (width - 1 - len(row)) + row + [MASK] for row in histories])


@pytest.fixture(params=[name for name in BACKBONES if issubclass(BACKBONES[name], Backbone)])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_scores_of_all_items(name: str) -> None:
    scores_BV = network(name).scores(rows([1, 2, 3], [], [4]))
    assert scores_BV.shape == (3, V)
    assert scores_BV.isfinite().all()


def test_padding_says_nothing(name: str) -> None:
    model = network(name)
    narrow, wide = model.scores(rows([1, 2], width=3)), model.scores(rows([1, 2], width=L))
    torch.testing.assert_close(narrow, wide, rtol=1e-5, atol=1e-5)


def test_rows_do_not_see_each_other(name: str) -> None:
    model, asked = network(name), rows([1, 2, 3], [], [4, 5])
    alone = torch.cat([model.scores(row[None]) for row in asked])
    torch.testing.assert_close(model.scores(asked), alone, rtol=1e-5, atol=1e-5)


def test_the_order_of_a_history_matters(name: str) -> None:
    scores = network(name).scores(rows([1, 2, 3], [3, 2, 1]))
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)


def test_slots_are_columns(name: str) -> None:
    model = network(name).eval()
    token_BL = mask_first(rows([1, 2, 3], [5]), V) if model.task == "next-item" else rows([1, 2, 3], [5])
    where = (torch.tensor([0, 0, 1]), torch.tensor([L - 1, 2, L - 1]))
    torch.testing.assert_close(model(token_BL, where), model(token_BL)[where], rtol=1e-5, atol=1e-5)


def test_scoring_is_without_dropout_and_leaves_the_mode(name: str) -> None:
    model = network(name, dropout=0.5).train()
    asked = rows([1, 2, 3])
    assert torch.equal(model.scores(asked), model.scores(asked))
    assert model.training


def test_training_is_with_dropout(name: str) -> None:
    model = network(name, dropout=0.5).train()
    token_BL = mask_first(rows([1, 2, 3]), V) if model.task == "next-item" else rows([1, 2, 3])
    assert not torch.equal(model(token_BL), model(token_BL))


def test_seeded_and_apart_from_the_global_generator(name: str) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (network(name, seed=s).state_dict() for s in (0, 0, 1))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


def test_every_weight_is_reached_by_the_loss(name: str) -> None:
    model = network(name, dropout=0.0)
    token_BL = mask_first(rows([1, 2, 3], [5]), V) if model.task == "next-item" else rows([1, 2, 3], [5])
    where = (torch.tensor([0, 1]), torch.tensor([L - 1, L - 1]))
    torch.autograd.backward(model.logits(model(token_BL, where)).logsumexp(1).sum())
    silent = [key for key, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert silent == []
