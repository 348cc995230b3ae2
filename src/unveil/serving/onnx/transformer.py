"""BERT4Rec and SASRec as graphs: the last block at the last column only, as the scorer in torch has it.

Shapes: B rows, L columns, D width, H heads, E width of one head, Q columns asked from (L, or 1), V items.
"""

import numpy as np
import torch

from unveil.data.tokens import n_tokens
from unveil.models.bert4rec import BERT4Rec, Block, TiedHead, UntiedHead
from unveil.models.sasrec import SASRec
from unveil.serving.onnx.graph import Graph, Value
from unveil.serving.onnx.tokens import FAR, begun, columns, is_padding

_BARRED = float(np.finfo(np.float32).min)


def bert4rec(graph: Graph, model: BERT4Rec, token_BL: Value) -> Value:
    """scores_BV."""
    h_BLD = _embedded(graph, model, token_BL)
    bias_B11L = _padding_bias(graph, token_BL, model.n_items)
    for n, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        h_BLD = _block(graph, f"blocks.{n}", block, h_BLD, bias_B11L, last=n == len(model.blocks) - 1)
    h_BD = graph.op("Squeeze", h_BLD, graph.integers(1))
    if isinstance(model.output, UntiedHead):
        return logits(graph, h_BD, graph.weight("table", model.output.linear.weight), model.output.linear.bias)
    assert isinstance(model.output, TiedHead)
    h_BD = graph.norm(h_BD, "output.first_norm", model.output.first_norm)
    projection = model.output.projection
    h_BD = graph.op("Gelu", graph.linear(h_BD, "output.projection", projection.weight, projection.bias))
    return tied_logits(graph, graph.norm(h_BD, "output.norm", model.output.norm), model.output.bias)


def sasrec(graph: Graph, model: SASRec, token_BL: Value) -> Value:
    """scores_BV."""
    token_BL = begun(graph, token_BL, model.n_items)
    h_BLD = _embedded(graph, model, token_BL)
    bias_B11L = _padding_bias(graph, token_BL, model.n_items)
    bias_B1LL = _causal_bias(graph, token_BL, bias_B11L)
    for n, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        last = n == len(model.blocks) - 1  # nothing comes later than the last column
        h_BLD = _block(graph, f"blocks.{n}", block, h_BLD, bias_B11L if last else bias_B1LL, last=last)
    h_BD = graph.norm(graph.op("Squeeze", h_BLD, graph.integers(1)), "last_norm", model.last_norm)
    if model.table is None:
        return tied_logits(graph, h_BD, model.bias)
    return logits(graph, h_BD, graph.weight("table", model.table.weight), model.bias)


def logits(graph: Graph, h_BD: Value, table_VD: Value, bias_V: torch.Tensor) -> Value:
    """h · tableᵀ + bias."""
    return graph.op("Gemm", h_BD, table_VD, graph.weight("bias", bias_V), attributes={"transB": 1})


def tied_logits(graph: Graph, h_BD: Value, bias_V: torch.Tensor) -> Value:
    """Against the whole embedding, of which PAD and MASK are then left out: cutting the table would copy it."""
    padded = torch.cat([bias_V.detach(), bias_V.new_zeros(n_tokens(len(bias_V)) - len(bias_V))])
    return graph.cut(logits(graph, h_BD, "item", padded), 1, 0, len(bias_V))


def _embedded(graph: Graph, model: BERT4Rec | SASRec, token_BL: Value) -> Value:
    """Item + position; positions count back from the last column."""
    item_BLD = graph.op("Gather", graph.weight("item", model.item.weight), token_BL)
    position_TD = graph.weight("position", model.position.weight.detach().flip(0).contiguous())
    end = graph.integers(model.config.length)
    start = graph.op("Sub", end, graph.size(token_BL, 1))
    h_BLD = graph.op("Add", item_BLD, graph.op("Slice", position_TD, start, end, graph.integers(0)))
    return graph.norm(h_BLD, "first_norm", model.first_norm)


def _padding_bias(graph: Graph, token_BL: Value, n_items: int) -> Value:
    """bias_B11L: the most negative number where the key is padding."""
    is_pad_BL = is_padding(graph, token_BL, n_items)
    bias_BL = graph.op("Where", is_pad_BL, graph.number(_BARRED), graph.number(0.0))
    return graph.op("Unsqueeze", bias_BL, graph.integers(1, 2))


def _causal_bias(graph: Graph, token_BL: Value, bias_B11L: Value) -> Value:
    """bias_B1LL: also where the key comes later."""
    column_L = columns(graph, token_BL)
    later_LL = graph.op("Less", graph.op("Unsqueeze", column_L, graph.integers(1)), column_L)
    return graph.op("Where", later_LL, graph.number(_BARRED), bias_B11L)


def _block(graph: Graph, name: str, block: Block, h_BLD: Value, bias: Value, *, last: bool) -> Value:
    """The next h, at every column or at the last alone."""
    pre = block.config.norm == "pre"
    x_BLD = graph.norm(h_BLD, f"{name}.attention_norm", block.attention_norm) if pre else h_BLD
    h_BQD, x_BQD = (graph.cut(value, 1, -1, FAR) if last else value for value in (h_BLD, x_BLD))
    h_BQD = graph.op("Add", h_BQD, _attention(graph, name, block, x_BQD, x_BLD, bias))
    h_BQD = h_BQD if pre else graph.norm(h_BQD, f"{name}.attention_norm", block.attention_norm)
    x_BQD = graph.norm(h_BQD, f"{name}.ffn_norm", block.ffn_norm) if pre else h_BQD
    wide = graph.op("Gelu", graph.linear(x_BQD, f"{name}.widen", block.widen.weight, block.widen.bias))
    h_BQD = graph.op("Add", h_BQD, graph.linear(wide, f"{name}.narrow", block.narrow.weight, block.narrow.bias))
    return h_BQD if pre else graph.norm(h_BQD, f"{name}.ffn_norm", block.ffn_norm)


def _attention(graph: Graph, name: str, block: Block, x_BQD: Value, x_BLD: Value, bias: Value) -> Value:
    """softmax(q kᵀ / √E + bias) v; the root is taken into the weights of q."""
    D, H = block.config.width, block.config.heads
    scale = (D // H) ** -0.5
    q_BQD = graph.linear(x_BQD, f"{name}.query", block.query.weight * scale, block.query.bias * scale)
    halves = zip(("key", "value"), block.key_value.weight.chunk(2), block.key_value.bias.chunk(2), strict=True)
    k_BLD, v_BLD = (graph.linear(x_BLD, f"{name}.{part}", weight, bias_D) for part, weight, bias_D in halves)
    split = graph.integers(0, 0, H, D // H)
    q_BHQE, k_BHEL, v_BHLE = (
        graph.op("Transpose", graph.op("Reshape", x, split), attributes={"perm": order})
        for x, order in ((q_BQD, (0, 2, 1, 3)), (k_BLD, (0, 2, 3, 1)), (v_BLD, (0, 2, 1, 3)))
    )
    score_BHQL = graph.op("Add", graph.op("MatMul", q_BHQE, k_BHEL), bias)
    a_BHQE = graph.op("MatMul", graph.op("Softmax", score_BHQL, attributes={"axis": -1}), v_BHLE)
    a_BQHE = graph.op("Transpose", a_BHQE, attributes={"perm": (0, 2, 1, 3)})
    a_BQD = graph.op("Reshape", a_BQHE, graph.integers(0, 0, D))
    return graph.linear(a_BQD, f"{name}.mix", block.mix.weight, block.mix.bias)
