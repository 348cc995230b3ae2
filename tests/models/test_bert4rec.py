"""BERT4Rec against an independent reading of it, and what must not change its numbers."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from unveil.errors import UnveilError
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig

V, PAD, MASK = 11, 11, 12
SMALL = BERT4RecConfig(width=8, blocks=2, heads=2, length=7, dropout=0.0)
POST = replace(SMALL, norm="post")
FORMS = [SMALL, POST, replace(SMALL, head="untied"), replace(POST, head="untied")]


def model_of(config: BERT4RecConfig, seed: int = 0) -> BERT4Rec:
    """A model whose weights are all away from their special initial values, so that each of them matters."""
    model = BERT4Rec(config, V, seed=seed)
    generator = torch.Generator().manual_seed(seed + 100)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def rows(*histories: list[int], length: int = 7) -> Tensor:
    return torch.tensor([[PAD] * (length - len(row)) + row for row in histories])


TOKENS = rows([1, 2, MASK, 4, 5, 6, MASK], [3, MASK], [MASK], [9, 8, 7, MASK])
SLOTS = (torch.tensor([0, 0, 1, 2, 3]), torch.tensor([2, 6, 6, 6, 6]))


def by_hand(model: BERT4Rec, row: list[int]) -> Tensor:
    """h_LD of one row without padding, written from the definition: one head, one query at a time."""
    c = model.config
    D, E = c.width, c.width // c.heads

    def norm(x: Tensor, layer: torch.nn.Module) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * layer.get_parameter("weight") + layer.get_parameter("bias")

    def attend(x: Tensor, block: torch.nn.Module) -> Tensor:
        q, kv = block.get_submodule("query")(x), block.get_submodule("key_value")(x)
        k, v = kv[:, :D], kv[:, D:]
        out = torch.zeros_like(x)
        for n, head in product(range(len(row)), range(c.heads)):
            part = slice(head * E, (head + 1) * E)
            weight = torch.tensor([math.exp(float(q[n, part] @ k[j, part]) / math.sqrt(E)) for j in range(len(row))])
            out[n, part] = (weight / weight.sum()) @ v[:, part]
        mixed: Tensor = block.get_submodule("mix")(out)
        return mixed

    def feed(x: Tensor, block: torch.nn.Module) -> Tensor:
        wide = block.get_submodule("widen")(x)
        fed: Tensor = block.get_submodule("narrow")(wide * 0.5 * (1 + torch.erf(wide / math.sqrt(2))))
        return fed

    h = torch.stack([model.item.weight[t] + model.position.weight[len(row) - 1 - n] for n, t in enumerate(row)])
    if c.norm == "post":
        h = norm(h, model.first_norm)
    for block in model.blocks:
        first, second = block.get_submodule("attention_norm"), block.get_submodule("ffn_norm")
        if c.norm == "pre":
            h = h + attend(norm(h, first), block)
            h = h + feed(norm(h, second), block)
        else:
            h = norm(h + attend(h, block), first)
            h = norm(h + feed(h, block), second)
    return h


@pytest.mark.parametrize("config", FORMS)
@torch.no_grad()
def test_it_computes_what_the_definition_says(config: BERT4RecConfig) -> None:
    model, row = model_of(config), [1, 2, MASK, 4, 5]
    torch.testing.assert_close(model(torch.tensor([row]))[0], by_hand(model, row), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", FORMS)
def test_slots_alone_give_the_numbers_and_gradients_of_the_full_computation(config: BERT4RecConfig) -> None:
    full, part = model_of(config), model_of(config)
    h_full, h_part = full(TOKENS)[SLOTS], part(TOKENS, SLOTS)
    torch.testing.assert_close(h_part, h_full, rtol=1e-5, atol=1e-6)
    for model, h in ((full, h_full), (part, h_part)):
        torch.autograd.backward(F.cross_entropy(model.logits(h), torch.tensor([1, 2, 3, 4, 5])))
    for a, b in zip(full.parameters(), part.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=20))
@settings(deadline=None, max_examples=25)
@torch.no_grad()
def test_slots_may_come_in_any_order_and_number(pairs: list[tuple[int, int]]) -> None:
    model = model_of(SMALL)
    where = (
        torch.tensor([b for b, _ in pairs], dtype=torch.int64),
        torch.tensor([c for _, c in pairs], dtype=torch.int64),
    )
    torch.testing.assert_close(model(TOKENS, where), model(TOKENS)[where], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("config", [*FORMS, replace(SMALL, dropout=0.3), replace(SMALL, attention_dropout=0.3)])
def test_every_parameter_receives_gradient(config: BERT4RecConfig) -> None:
    model = model_of(config)
    torch.autograd.backward(F.cross_entropy(model.logits(model(TOKENS, SLOTS)), torch.tensor([1, 2, 3, 4, 5])))
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum().item() > 1e-6, name


@torch.no_grad()
def test_padding_on_the_left_changes_nothing() -> None:
    model = model_of(SMALL)
    for row in ([MASK], [1, MASK], [3, 1, 2, MASK]):
        bare, padded = model.scores(torch.tensor([row])), model.scores(rows(row))
        torch.testing.assert_close(padded, bare, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_what_padding_holds_is_never_seen() -> None:
    model = model_of(SMALL)
    before = model(TOKENS, SLOTS)
    model.item.weight[PAD] += 100.0
    torch.testing.assert_close(model(TOKENS, SLOTS), before)


@torch.no_grad()
def test_the_company_in_a_batch_changes_nothing() -> None:
    model = model_of(SMALL)
    together = model.scores(TOKENS)
    for n, row in enumerate(TOKENS):
        torch.testing.assert_close(model.scores(row[None])[0], together[n], rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_order_and_both_directions_matter() -> None:
    model = model_of(SMALL)
    middle = (torch.tensor([0]), torch.tensor([1]))
    h = model(torch.tensor([[1, MASK, 2]]), middle)
    assert not torch.allclose(h, model(torch.tensor([[1, MASK, 3]]), middle))
    assert not torch.allclose(h, model(torch.tensor([[4, MASK, 2]]), middle))
    assert not torch.allclose(h, model(torch.tensor([[2, MASK, 1]]), middle))


@torch.no_grad()
def test_a_row_of_padding_alone_gives_numbers() -> None:
    assert model_of(SMALL).scores(torch.full((2, 7), PAD)).isfinite().all()


@pytest.mark.parametrize("attention_dropout", [0.0, 1e-9])
def test_the_fused_kernel_and_the_plain_one_agree(attention_dropout: float) -> None:
    """A dropout below one coin keeps everything and yet takes the plain way."""
    model = model_of(replace(SMALL, attention_dropout=attention_dropout)).train()
    torch.testing.assert_close(model(TOKENS, SLOTS), model_of(SMALL)(TOKENS, SLOTS), rtol=1e-5, atol=1e-6)


def test_dropout_works_in_training_only() -> None:
    model = model_of(replace(SMALL, dropout=0.5))
    assert not torch.equal(model(TOKENS, SLOTS), model(TOKENS, SLOTS))
    assert torch.equal(model.scores(TOKENS), model.scores(TOKENS))
    assert model.training
    model.eval()
    assert torch.equal(model(TOKENS, SLOTS), model(TOKENS, SLOTS))
    assert not model.scores(TOKENS).requires_grad
    assert not model.training


@torch.no_grad()
def test_scores_are_the_logits_of_the_last_column() -> None:
    model = model_of(SMALL)
    torch.testing.assert_close(model.scores(TOKENS), model.logits(model(TOKENS)[:, -1]), rtol=1e-5, atol=1e-6)
    h_MD, table_VD, bias_V = model.head(model(TOKENS, SLOTS))
    torch.testing.assert_close(model.logits(model(TOKENS, SLOTS)), h_MD @ table_VD.T + bias_V)


def test_the_tied_head_shares_the_item_table_and_the_untied_one_does_not() -> None:
    tied, untied = BERT4Rec(SMALL, V), BERT4Rec(replace(SMALL, head="untied"), V)
    assert tied.head(torch.zeros(1, 8)).table_VD.data_ptr() == tied.item.weight.data_ptr()
    assert untied.head(torch.zeros(1, 8)).table_VD.data_ptr() != untied.item.weight.data_ptr()


@pytest.mark.parametrize(("width", "blocks", "length"), [(8, 1, 5), (8, 3, 9), (16, 2, 4)])
def test_the_number_of_parameters_follows_the_formula(width: int, blocks: int, length: int) -> None:
    D, body = width, (V + 2 + length) * width + blocks * (12 * width**2 + 13 * width)
    config = BERT4RecConfig(width=width, blocks=blocks, heads=2, length=length)
    assert BERT4Rec(config, V).n_parameters() == body + D**2 + 5 * D + V
    assert BERT4Rec(replace(config, norm="post"), V).n_parameters() == body + 2 * D + D**2 + 3 * D + V
    assert BERT4Rec(replace(config, head="untied"), V).n_parameters() == body + V * D + V


def test_initial_weights_are_berts_and_follow_the_seed() -> None:
    before = torch.random.get_rng_state()
    model = BERT4Rec(BERT4RecConfig(), 1000, seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    weight = model.item.weight.detach()
    assert weight.abs().max().item() <= 0.04
    assert weight.std().item() == pytest.approx(0.02 * 0.8796, rel=0.02)  # a normal cut at two deviations
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert set(parameter.tolist()) == {float("norm.weight" in name)}, name
    for other, same in ((3, True), (4, False)):
        twin = BERT4Rec(BERT4RecConfig(), 1000, seed=other)
        assert torch.equal(twin.item.weight, weight) is same


@pytest.mark.parametrize(
    ("impossible", "message"),
    [
        (lambda: replace(SMALL, width=10, heads=4), "multiple of heads"),
        (lambda: replace(SMALL, blocks=0), "model.blocks: out of range: found 0, expected at least 1"),
        (lambda: replace(SMALL, dropout=1.0), "model.dropout: out of range: found 1.0"),
        (lambda: replace(SMALL, attention_dropout=-0.1), "model.attention_dropout: out of range: found -0.1"),
    ],
)
def test_impossible_shapes_are_refused(impossible: Callable[[], BERT4RecConfig], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        impossible()


def test_rows_longer_than_the_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of 8 tokens"):
        BERT4Rec(SMALL, V).scores(torch.zeros(1, 8, dtype=torch.int64))
