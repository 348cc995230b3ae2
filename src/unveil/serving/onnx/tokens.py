"""What is done with tokens before a network reads them, as in `models.causal`. Shapes: B rows, L columns."""

from unveil.data.tokens import mask_token, pad_token
from unveil.serving.onnx.graph import Graph, Value


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
