"""GRU4Rec as a graph. Shapes: B rows, L columns, D width, V items."""

import torch
from torch import Tensor

from unveil.models.gru4rec import GRU4Rec
from unveil.serving.onnx.graph import Graph, Value
from unveil.serving.onnx.tokens import begun, columns, is_padding, padding_of
from unveil.serving.onnx.transformer import logits, tied_logits

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
