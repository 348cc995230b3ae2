"""Networks as ONNX graphs, node by node; BERT4Rec and SASRec run their last block at the last column only.

Why not torch's exporter: it takes seconds where this takes milliseconds, which a server that loads a new model feels,
and it unrolls recurrent cells to one fixed length. Shapes: B rows, L columns, D width, H heads, E width of one head,
Q query columns (L, or 1), V items.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
Value = str  # what a node gives, by its name


@dataclass
class Graph:
    """A graph in the making. Values are named by their node; weights by their module."""

    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)

    def op(self, kind: str, *inputs: Value, attributes: Mapping[str, Any] | None = None, outputs: int = 1) -> Value:
        """Add a node and name its last output; the ones before it are not used."""
        unused = [""] * (outputs - 1)
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [*unused, name], name=name, **(attributes or {})))
        return name

    def weight(self, name: str, array: Tensor | NDArray[Any]) -> Value:
        """A learnt array."""
        self.weights[name] = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
        return name

    def integers(self, *values: int) -> Value:
        """A constant list of whole numbers."""
        return self.weight(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def integer(self, value: int) -> Value:
        """A constant whole number."""
        return self.weight(f"integer_{value}", np.array(value, np.int64))

    def number(self, value: float) -> Value:
        """A constant number."""
        return self.weight(f"number_{value}", np.array(value, np.float32))

    def linear(self, x: Value, name: str, weight_OD: Tensor, bias_O: Tensor) -> Value:
        """x · weightᵀ + bias."""
        product = self.op("MatMul", x, self.weight(f"{name}.weight", weight_OD.detach().T.contiguous()))
        return self.op("Add", product, self.weight(f"{name}.bias", bias_O))

    def norm(self, x: Value, name: str, layer: nn.Module) -> Value:
        """Layer normalisation; a layer that is the identity adds nothing."""
        if not isinstance(layer, nn.LayerNorm):
            return x
        parts = (self.weight(f"{name}.{part}", getattr(layer, part)) for part in ("weight", "bias"))
        return self.op("LayerNormalization", x, *parts, attributes={"axis": -1, "epsilon": layer.eps})

    def cut(self, x: Value, axis: int, start: int, stop: int) -> Value:
        """x[start:stop] along an axis."""
        return self.op("Slice", x, self.integers(start), self.integers(stop), self.integers(axis))

    def size(self, x: Value, axis: int) -> Value:
        """The length of an axis, as a list of one."""
        return self.op("Shape", x, attributes={"start": axis, "end": axis + 1})


def is_padding(graph: Graph, token_BL: Value, n_items: int) -> Value:
    """Which cells hold no event."""
    return graph.op("Equal", token_BL, graph.integer(pad_token(n_items)))


def padding_of(graph: Graph, is_pad_BL: Value) -> Value:
    """padding_B1: how many cells of each row hold no event."""
    counted_BL = graph.op("Cast", is_pad_BL, attributes={"to": INT64})
    return graph.op("ReduceSum", counted_BL, graph.integers(1), attributes={"keepdims": 1})


def columns(graph: Graph, token_BL: Value) -> Value:
    """column_L: 0 to L − 1."""
    length = graph.op("Squeeze", graph.size(token_BL, 1))
    return graph.op("Range", graph.integer(0), length, graph.integer(1))


def begun(graph: Graph, token_BL: Value, n_items: int) -> Value:
    """PAD x₁ x₂ MASK becomes PAD MASK x₁ x₂."""
    padding_B1 = padding_of(graph, is_padding(graph, token_BL, n_items))
    last_B1, rest = graph.cut(token_BL, 1, -1, FAR), graph.cut(token_BL, 1, 0, -1)
    rolled_BL = graph.op("Concat", last_B1, rest, attributes={"axis": 1})
    column_L = columns(graph, token_BL)
    before_BL = graph.op("Less", column_L, padding_B1)
    padded_BL = graph.op("Where", before_BL, graph.integer(pad_token(n_items)), rolled_BL)
    return graph.op("Where", graph.op("Equal", column_L, padding_B1), graph.integer(mask_token(n_items)), padded_BL)


#: The end of an axis, however long; the code of a 64-bit integer.
FAR, INT64 = 2**62, 7


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
    """With the whole embedding, dropping PAD and MASK afterwards: cutting the table would copy it."""
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


_INT32 = 6


def gru4rec(graph: Graph, model: GRU4Rec, token_BL: Value) -> Value:
    """scores_BV: rows are read from their first token on, each as far as it goes."""
    padding_B1 = padding_of(graph, is_padding(graph, token_BL, model.n_items))
    length = graph.size(token_BL, 1)
    left_BL = _from_the_left(graph, begun(graph, token_BL, model.n_items), padding_B1, length)
    read_B = graph.op("Squeeze", graph.op("Sub", length, padding_B1), graph.integers(1))
    read_B = graph.op("Cast", read_B, attributes={"to": _INT32})
    x_BLD = graph.op("Gather", graph.weight("item", model.item.weight), left_BL)
    x_LBD = graph.op("Transpose", x_BLD, attributes={"perm": (1, 0, 2)})
    h_BD = _cells(graph, model, x_LBD, read_B)
    h_BD = graph.norm(h_BD, "last_norm", model.last_norm)
    if model.table is None:
        return tied_logits(graph, h_BD, model.bias)
    return logits(graph, h_BD, graph.weight("table", model.table.weight), model.bias)


def _from_the_left(graph: Graph, token_BL: Value, padding_B1: Value, length: Value) -> Value:
    """Rows with their padding moved behind them."""
    place_BL = graph.op("Mod", graph.op("Add", columns(graph, token_BL), padding_B1), length)
    return graph.op("GatherElements", token_BL, place_BL, attributes={"axis": 1})


def _cells(graph: Graph, model: GRU4Rec, x_LBD: Value, read_B: Value) -> Value:
    """h_BD of the last layer after the last token of each row."""
    attributes = {"hidden_size": model.config.width, "linear_before_reset": 1}
    for n in range(model.config.blocks):
        inputs = x_LBD, *_gates(graph, model, n), read_B
        if n == model.config.blocks - 1:
            h_1BD = graph.op("GRU", *inputs, attributes=attributes, outputs=2)
            return graph.op("Squeeze", h_1BD, graph.integers(0))
        x_LBD = graph.op("Squeeze", graph.op("GRU", *inputs, attributes=attributes), graph.integers(1))
    raise AssertionError("a network has at least one layer")


def _gates(graph: Graph, model: GRU4Rec, n: int) -> tuple[Value, Value, Value]:
    """The weights of layer n: torch has the gates in the order reset, update, new; ONNX update, reset, new."""
    inward, inner, *biases = (getattr(model.cells, f"{kind}_l{n}").detach() for kind in _KINDS)
    parts = _reordered(inward), _reordered(inner), torch.cat([_reordered(bias) for bias in biases])
    w, r, b = (graph.weight(f"cells.{n}.{name}", part[None]) for name, part in zip("wrb", parts, strict=True))
    return w, r, b


_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _reordered(gates: Tensor) -> Tensor:
    reset, update, new = gates.chunk(3)
    return torch.cat([update, reset, new])
