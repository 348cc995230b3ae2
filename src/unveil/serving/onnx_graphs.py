"""Networks as ONNX graphs, node by node; BERT4Rec and SASRec run their last block at the last column only.

Why not torch's exporter: it takes seconds where this takes milliseconds, which a server that loads a new model feels,
and it unrolls recurrent cells to one fixed length. Shapes: B rows, L columns, D width, H heads, E width of one head,
Q query columns (L, or 1), V items.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.data.slots import mask_token, n_tokens, pad_token
from unveil.errors import UnveilError
from unveil.models.bert4rec import BERT4Rec, Block, TiedHead, UntiedHead
from unveil.models.gru4rec import GRU4Rec
from unveil.models.sasrec import SASRec

try:
    import onnx as onnx
    import onnxruntime as onnxruntime
except ModuleNotFoundError as error:
    raise UnveilError("ONNX models need onnx and onnxruntime", hint="Run: pip install 'unveil[export]'.") from error


#: Has LayerNormalization and Gelu; read by every runtime since 2024.
OPSET, IR_VERSION = 20, 9
#: ONNX's codes of types; the end of an axis, however long; what is added to an attention score that must not count.
_INT32, _INT64, _END, _BARRED = 6, 7, 2**62, float(np.finfo(np.float32).min)
Value = str  # what a node gives, by its name


class Graph:
    """Nodes and weights. Values are named by their node; weights by their module."""

    def __init__(self, n_items: int) -> None:
        self.nodes, self.weights = list[Any](), dict[str, NDArray[Any]]()
        self.pad, self.mask = self.scalar(pad_token(n_items)), self.scalar(mask_token(n_items))

    def op(self, kind: str, *inputs: Value, outputs: int = 1, **attributes: Any) -> Value:
        """Add a node and name its last output; the ones before it are not used."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [*[""] * (outputs - 1), name], name=name, **attributes))
        return name

    def weight(self, name: str, array: Tensor | NDArray[Any]) -> Value:
        """A learnt array; it is not copied."""
        self.weights[name] = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
        return name

    def integers(self, *values: int) -> Value:
        """A constant list of whole numbers."""
        return self.weight(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def scalar(self, value: float) -> Value:
        """A constant, whole or not by its type."""
        kind = np.int64 if isinstance(value, int) else np.float32
        return self.weight(f"{kind.__name__}_{value}", np.array(value, kind))

    def linear(self, x: Value, name: str, weight_OD: Tensor, bias_O: Tensor) -> Value:
        """x · weightᵀ + bias."""
        product = self.op("MatMul", x, self.weight(f"{name}.weight", weight_OD.detach().T.contiguous()))
        return self.op("Add", product, self.weight(f"{name}.bias", bias_O))

    def norm(self, x: Value, name: str, layer: nn.Module) -> Value:
        """Layer normalisation; a layer that is the identity adds nothing."""
        if not isinstance(layer, nn.LayerNorm):
            return x
        parts = (self.weight(f"{name}.{part}", getattr(layer, part)) for part in ("weight", "bias"))
        return self.op("LayerNormalization", x, *parts, axis=-1, epsilon=layer.eps)

    def cut(self, x: Value, start: int, stop: int) -> Value:
        """x[:, start:stop]."""
        return self.op("Slice", x, self.integers(start), self.integers(stop), self.integers(1))

    def length(self, x: Value) -> Value:
        """L, the length of axis 1, as a list of one."""
        return self.op("Shape", x, start=1, end=2)

    def columns(self, token_BL: Value) -> Value:
        """column_L: 0 to L − 1."""
        return self.op("Range", self.scalar(0), self.op("Squeeze", self.length(token_BL)), self.scalar(1))

    def padding(self, token_BL: Value) -> Value:
        """padding_B1: how many cells of each row hold no event."""
        is_pad_BL = self.op("Cast", self.op("Equal", token_BL, self.pad), to=_INT64)
        return self.op("ReduceSum", is_pad_BL, self.integers(1), keepdims=1)

    def mask_first(self, token_BL: Value) -> Value:
        """PAD x₁ x₂ MASK becomes PAD MASK x₁ x₂."""
        padding_B1, column_L = self.padding(token_BL), self.columns(token_BL)
        rolled_BL = self.op("Concat", self.cut(token_BL, -1, _END), self.cut(token_BL, 0, -1), axis=1)
        padded_BL = self.op("Where", self.op("Less", column_L, padding_B1), self.pad, rolled_BL)
        return self.op("Where", self.op("Equal", column_L, padding_B1), self.mask, padded_BL)

    def logits(self, h_BD: Value, table: nn.Embedding | nn.Linear | None, bias_V: Tensor) -> Value:
        """h · tableᵀ + bias. Without a table, by the whole item embedding, and PAD and MASK are dropped afterwards:
        cutting the embedding would copy it.
        """
        if table is not None:
            return self.op("Gemm", h_BD, self.weight("table", table.weight), self.weight("bias", bias_V), transB=1)
        V = len(bias_V)
        padded = self.weight("bias", torch.cat([bias_V.detach(), bias_V.new_zeros(n_tokens(V) - V)]))
        return self.cut(self.op("Gemm", h_BD, "item", padded, transB=1), 0, V)


def bert4rec(graph: Graph, model: BERT4Rec, token_BL: Value) -> Value:
    """scores_BV."""
    h_BD, head = _transformer(graph, model, token_BL), model.output
    if isinstance(head, UntiedHead):
        return graph.logits(h_BD, head.linear, head.linear.bias)
    assert isinstance(head, TiedHead)
    h_BD = graph.norm(h_BD, "output.first_norm", head.first_norm)
    h_BD = graph.op("Gelu", graph.linear(h_BD, "output.projection", head.projection.weight, head.projection.bias))
    return graph.logits(graph.norm(h_BD, "output.norm", head.norm), None, head.bias)


def sasrec(graph: Graph, model: SASRec, token_BL: Value) -> Value:
    """scores_BV."""
    h_BD = _transformer(graph, model, graph.mask_first(token_BL))
    return graph.logits(graph.norm(h_BD, "last_norm", model.last_norm), model.table, model.bias)


def _transformer(graph: Graph, model: BERT4Rec | SASRec, token_BL: Value) -> Value:
    """h_BD at the last column. Positions count back from there, and attention skips padding."""
    item_BLD = graph.op("Gather", graph.weight("item", model.item.weight), token_BL)
    position_TD = graph.weight("position", model.position.weight.detach().flip(0).contiguous())
    end = graph.integers(model.config.length)
    start = graph.op("Sub", end, graph.length(token_BL))
    h_BLD = graph.op("Add", item_BLD, graph.op("Slice", position_TD, start, end, graph.integers(0)))
    h_BLD = graph.norm(h_BLD, "first_norm", model.first_norm)
    is_pad_BL, barred = graph.op("Equal", token_BL, graph.pad), graph.scalar(_BARRED)
    bias_B11L = graph.op("Unsqueeze", graph.op("Where", is_pad_BL, barred, graph.scalar(0.0)), graph.integers(1, 2))
    bias = bias_B11L
    if isinstance(model, SASRec):  # bias_B1LL: it skips later columns, too
        column_L = graph.columns(token_BL)
        later_LL = graph.op("Less", graph.op("Unsqueeze", column_L, graph.integers(1)), column_L)
        bias = graph.op("Where", later_LL, barred, bias_B11L)
    for n, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        last = n == len(model.blocks) - 1  # nothing comes later than the last column
        h_BLD = _block(graph, f"blocks.{n}", block, h_BLD, bias_B11L if last else bias, last=last)
    return graph.op("Squeeze", h_BLD, graph.integers(1))


def _block(graph: Graph, name: str, block: Block, h_BLD: Value, bias: Value, *, last: bool) -> Value:
    """The next h, at every column or at the last alone."""
    pre = block.config.norm == "pre"
    x_BLD = graph.norm(h_BLD, f"{name}.attention_norm", block.attention_norm) if pre else h_BLD
    h_BQD, x_BQD = (graph.cut(value, -1, _END) if last else value for value in (h_BLD, x_BLD))
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
        graph.op("Transpose", graph.op("Reshape", x, split), perm=order)
        for x, order in ((q_BQD, (0, 2, 1, 3)), (k_BLD, (0, 2, 3, 1)), (v_BLD, (0, 2, 1, 3)))
    )
    score_BHQL = graph.op("Add", graph.op("MatMul", q_BHQE, k_BHEL), bias)
    a_BHQE = graph.op("MatMul", graph.op("Softmax", score_BHQL, axis=-1), v_BHLE)
    a_BQHE = graph.op("Transpose", a_BHQE, perm=(0, 2, 1, 3))
    a_BQD = graph.op("Reshape", a_BQHE, graph.integers(0, 0, D))
    return graph.linear(a_BQD, f"{name}.mix", block.mix.weight, block.mix.bias)


def gru4rec(graph: Graph, model: GRU4Rec, token_BL: Value) -> Value:
    """scores_BV: rows are read from their first token on, each as far as it goes."""
    padding_B1, length = graph.padding(token_BL), graph.length(token_BL)
    place_BL = graph.op("Mod", graph.op("Add", graph.columns(token_BL), padding_B1), length)
    left_BL = graph.op("GatherElements", graph.mask_first(token_BL), place_BL, axis=1)  # padding moved behind
    read_B = graph.op("Squeeze", graph.op("Sub", length, padding_B1), graph.integers(1))
    read_B = graph.op("Cast", read_B, to=_INT32)
    x_BLD = graph.op("Gather", graph.weight("item", model.item.weight), left_BL)
    x_LBD, h_1BD = graph.op("Transpose", x_BLD, perm=(1, 0, 2)), ""
    for n in range(model.config.blocks):
        inputs, sizes = (x_LBD, *_gates(graph, model, n), read_B), {"hidden_size": model.config.width}
        if n < model.config.blocks - 1:
            x_LBD = graph.op("Squeeze", graph.op("GRU", *inputs, linear_before_reset=1, **sizes), graph.integers(1))
        else:  # its second output: after the last token of each row
            h_1BD = graph.op("GRU", *inputs, outputs=2, linear_before_reset=1, **sizes)
    h_BD = graph.norm(graph.op("Squeeze", h_1BD, graph.integers(0)), "last_norm", model.last_norm)
    return graph.logits(h_BD, model.table, model.bias)


def _gates(graph: Graph, model: GRU4Rec, n: int) -> list[Value]:
    """The weights of layer n: torch has the gates in the order reset, update, new; ONNX update, reset, new."""
    arrays = []
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        reset, update, new = getattr(model.cells, f"{kind}_l{n}").detach().chunk(3)
        arrays.append(torch.cat([update, reset, new]))
    parts = {"w": arrays[0], "r": arrays[1], "b": torch.cat(arrays[2:])}
    return [graph.weight(f"cells.{n}.{name}", part[None]) for name, part in parts.items()]
