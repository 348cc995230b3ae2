"""A network as an ONNX model: tokens in, scores out, for any number of rows and columns.

Why not torch's exporter: it takes seconds where this takes milliseconds, which a server that loads a new model feels,
and it unrolls recurrent cells to one fixed length. BERT4Rec and SASRec run their last block at the last column only.
Shapes: B rows, L columns, D width, H heads, E width of one head, Q query columns (L, or 1), V items.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil import __version__
from unveil.data.interactions import Sequences
from unveil.data.slots import mask_token, n_tokens, pad_token, tokens_of
from unveil.errors import UnveilError
from unveil.evaluation.ranking import Scorer, evaluating
from unveil.models.base import Backbone, Model
from unveil.models.baselines import EPSILON, ItemToItem
from unveil.models.bert4rec import BERT4Rec, Block, TiedHead, UntiedHead
from unveil.models.causal import GRU4Rec, SASRec
from unveil.serving.recommender import Recommender, model_of
from unveil.settings import plain

try:
    import onnx
    import onnxruntime
except ModuleNotFoundError as error:
    raise UnveilError("ONNX models need onnx and onnxruntime", hint="Run: pip install 'unveil[export]'.") from error


INPUT, OUTPUT = "token_BL", "scores_BV"
#: Has LayerNormalization and Gelu; read by every runtime since 2024.
OPSET, IR_VERSION = 20, 9
#: ONNX's codes of types; the end of an axis, however long; what is added to an attention score that must not count.
_FLOAT, _INT32, _INT64, _END, _BARRED = 1, 6, 7, 2**62, float(np.finfo(np.float32).min)
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
        return self.weight(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def scalar(self, value: float) -> Value:
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
    """softmax(q kᵀ / √E + bias) v; the root is part of the weights of q."""
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
    a_BQD = graph.op("Reshape", graph.op("Transpose", a_BHQE, perm=(0, 2, 1, 3)), graph.integers(0, 0, D))
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


def item_to_item(graph: Graph, model: ItemToItem, token_BL: Value) -> Value:
    """x · aW + b, x_j the decay of the last time that j occurs in the history: PAD and MASK are dropped from x."""
    age_L = graph.op("Sub", graph.op("Sub", graph.length(token_BL), graph.integers(2)), graph.columns(token_BL))
    age_L = graph.op("Cast", graph.op("Max", age_L, graph.integers(0)), to=_FLOAT)
    decay_BL = graph.op("Expand", graph.op("Pow", graph.scalar(model.decay), age_L), graph.op("Shape", token_BL))
    rows = graph.op("Shape", token_BL, start=0, end=1)
    shape = graph.op("Concat", rows, graph.integers(n_tokens(model.n_items)), axis=0)
    empty = graph.op("Expand", graph.scalar(0.0), shape)
    x_BT = graph.op("ScatterElements", empty, token_BL, decay_BL, axis=1, reduction="max")
    x_BV = graph.cut(x_BT, 0, model.n_items)
    bias_V = model.scale * EPSILON * model.share + model.bias
    return graph.op("Gemm", x_BV, graph.weight("weight", model.scale * model.dense()), graph.weight("bias", bias_V))


def _gates(graph: Graph, model: GRU4Rec, n: int) -> list[Value]:
    """The weights of layer n: torch has the gates in the order reset, update, new; ONNX update, reset, new."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    gates = (getattr(model.cells, f"{kind}_l{n}").detach().chunk(3) for kind in kinds)
    arrays = [torch.cat([update, reset, new]) for reset, update, new in gates]
    parts = {"w": arrays[0], "r": arrays[1], "b": torch.cat(arrays[2:])}
    return [graph.weight(f"cells.{n}.{name}", part[None]) for name, part in parts.items()]


#: Bytes of weights: a message of protobuf, which an ONNX file is, has less than 2 GiB; 16 MiB are left for the rest.
LARGEST = 2**31 - 2**24
#: Histories to compare on; the largest difference allowed, in standard deviations of the scores.
HISTORIES, TOLERANCE = 32, 1e-4
#: Network → what writes its nodes.
_WRITERS: dict[str, Callable[[Graph, Any, Value], Value]] = {"bert4rec": bert4rec, "sasrec": sasrec, "gru4rec": gru4rec}
_WRITERS |= {"ease": item_to_item, "item-knn": item_to_item}


def checked_onnx(recommender: Recommender) -> tuple[bytes, float]:
    """The network as ONNX, and how far it is from torch: the largest difference, in deviations of the scores."""
    model = model_of(recommender)
    content = as_bytes(model, recommender.length)
    return content, check_parity(OnnxScorer(content), model, recommender.sequences, recommender.length)


def servable(recommender: Recommender) -> Recommender:
    """On ONNX Runtime, an error if it differs; or in torch, if it is of another package, a baseline, or too large."""
    model = model_of(recommender)
    if not isinstance(model, Backbone) or model.name not in _WRITERS or _size(_graph(model)) > LARGEST:
        return recommender
    return replace(recommender, model=OnnxScorer(checked_onnx(recommender)[0]))


def as_bytes(model: Model, length: int) -> bytes:
    """The model in ONNX's own format. The same weights give the same bytes."""
    if model.name not in _WRITERS:
        known = ", ".join(sorted(_WRITERS))
        hint = "For a network alone, train with --no-blend." if model.name == "blend" else None
        raise UnveilError("this model has no ONNX form", found=model.name, expected=f"one of {known}", hint=hint)
    if isinstance(model, ItemToItem) and 4 * model.n_items**2 > LARGEST:
        expected = f"at most {int((LARGEST / 4) ** 0.5):,}"
        raise UnveilError("the catalogue is too large for an ONNX file", found=model.n_items, expected=expected)
    graph = _graph(model)
    if (size := _size(graph)) > LARGEST:
        found, expected = f"{size / 2**30:.2f} GiB of weights", "less than 2 GiB, what its format can hold"
        hint = "Export its vectors (--embeddings); or train with a smaller model.width."
        raise UnveilError("the network is too large for an ONNX file", found=found, expected=expected, hint=hint)
    tensor = onnx.helper.make_tensor_value_info
    inputs = [tensor(INPUT, onnx.TensorProto.INT64, ["B", "L"])]
    outputs = [tensor(OUTPUT, onnx.TensorProto.FLOAT, ["B", model.n_items])]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in graph.weights.items()]
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, model.name, inputs, outputs, weights),
        producer_name="unveil",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    about = {
        "n_items": str(model.n_items),
        "pad": str(pad_token(model.n_items)),
        "mask": str(mask_token(model.n_items)),
        "length": str(length),
        "config": json.dumps(plain(model.config)),
        "input": "int64 rows of item indices, oldest first, right-aligned: pad on the left, mask in the last column",
        "output": "a score for each item at the next step, on the scale of logits",
    }
    onnx.helper.set_model_props(proto, about)
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString(deterministic=True))


def _graph(model: Model) -> Graph:
    graph = Graph(model.n_items)
    graph.op("Identity", _WRITERS[model.name](graph, model, INPUT))
    graph.nodes[-1].output[0] = OUTPUT
    return graph


def _size(graph: Graph) -> int:
    return sum(array.nbytes for array in graph.weights.values())


class OnnxScorer:
    """A scorer by ONNX Runtime, on the CPU. One thread: with several requests at once, two are slower."""

    def __init__(self, content: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def scores(self, token_BL: Tensor) -> Tensor:
        (scores_BV,) = self.session.run([OUTPUT], {INPUT: token_BL.numpy()})
        return torch.from_numpy(scores_BV)


def check_parity(exported: Scorer, model: Scorer, sequences: Sequences, length: int) -> float:
    """max |difference| over the deviation of a history's scores; one that could change a ranking is an error."""
    user_U = np.argsort(sequences.length_U, kind="stable")
    user_B = user_U[np.linspace(0, len(user_U) - 1, min(HISTORIES, len(user_U))).astype(np.int64)]
    differences = []
    for part in (user_B, user_B[:1], user_B[-1:], user_B[:0]):  # all lengths, the shortest, the longest, none
        rows = [sequences.history(user) for user in part.tolist()] or [np.zeros(0, np.int64)]
        token_BL = tokens_of(rows, sequences.n_items, length)
        with evaluating(model):
            expected_BV = model.scores(token_BL).cpu()
        spread = max(float(expected_BV.std(dim=1, correction=0).mean()), torch.finfo(torch.float32).tiny)
        differences.append(float((exported.scores(token_BL) - expected_BV).abs().max()) / spread)
    largest = float(np.max(differences))  # NaN, where any of them is
    if not largest <= TOLERANCE:
        hint = "Nothing was written. Please report it, with the run's config.json."
        found, expected = f"{largest:.2g}", f"{TOLERANCE:g}"
        raise UnveilError("the ONNX model differs from the network", found=found, expected=expected, hint=hint)
    return largest
