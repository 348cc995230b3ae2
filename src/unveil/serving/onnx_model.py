"""A network as an ONNX model: tokens in, scores out, for any number of rows and columns."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from unveil import __version__
from unveil.data.sequences import Sequences
from unveil.data.slots import histories, mask_token, pad_token, tokens_of
from unveil.errors import UnveilError
from unveil.evaluation.ranking import Scorer, at_rest
from unveil.models.base import Backbone
from unveil.serving.onnx_graphs import IR_VERSION, OPSET, Graph, Value, bert4rec, gru4rec, onnx, onnxruntime, sasrec
from unveil.settings import plain

INPUT, OUTPUT = "token_BL", "scores_BV"
#: Bytes of weights: a message of protobuf, which an ONNX file is, has less than 2 GiB; 16 MiB are left for the rest.
LARGEST = 2**31 - 2**24

#: Network → what writes its nodes.
_WRITERS: dict[str, Callable[[Graph, Any, Value], Value]] = {"bert4rec": bert4rec, "sasrec": sasrec, "gru4rec": gru4rec}


def has_form(model: Backbone) -> bool:
    """Whether this network has an ONNX form, as those of other packages have not, and fits into one file."""
    return model.name in _WRITERS and _size(_written(model)) <= LARGEST


def as_bytes(model: Backbone, length: int) -> bytes:
    """The model in ONNX's own format. The same weights give the same bytes."""
    proto = _model(model, length)
    onnx.checker.check_model(proto)
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def _model(model: Backbone, length: int) -> Any:
    graph = _graph(model)
    proto = onnx.helper.make_model(
        graph,
        producer_name="unveil",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.helper.set_model_props(proto, _about(model, length))
    return proto


def _graph(model: Backbone) -> Any:
    if model.name not in _WRITERS:
        known = f"one of {', '.join(sorted(_WRITERS))}"
        raise UnveilError("this network has no ONNX form", found=model.name, expected=known)
    graph = _written(model)
    _check_size(_size(graph))
    tensor = onnx.helper.make_tensor_value_info
    return onnx.helper.make_graph(
        graph.nodes,
        model.name,
        [tensor(INPUT, onnx.TensorProto.INT64, ["B", "L"])],
        [tensor(OUTPUT, onnx.TensorProto.FLOAT, ["B", model.n_items])],
        [onnx.numpy_helper.from_array(array, name) for name, array in graph.weights.items()],
    )


def _written(model: Backbone) -> Graph:
    """Nodes and weights; weights are not copied."""
    graph = Graph()
    graph.op("Identity", _WRITERS[model.name](graph, model, INPUT))
    graph.nodes[-1].output[0] = OUTPUT
    return graph


def _size(graph: Graph) -> int:
    """Bytes of its weights."""
    return sum(array.nbytes for array in graph.weights.values())


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise UnveilError(
            "the network is too large for an ONNX file",
            found=f"{size / 2**30:.2f} GiB of weights",
            expected="less than 2 GiB, what its format can hold",
            hint="Export its vectors (--embeddings); or train with a smaller model.width.",
        )


def _about(model: Backbone, length: int) -> dict[str, str]:
    """Metadata of the model: what its input and output are."""
    return {
        "n_items": str(model.n_items),
        "pad": str(pad_token(model.n_items)),
        "mask": str(mask_token(model.n_items)),
        "length": str(length),
        "config": json.dumps(plain(model.config)),
        "input": "int64 rows of item indices, oldest first, right-aligned: pad on the left, mask in the last column",
        "output": "a score for each item at the next step, on the scale of logits",
    }


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer by ONNX Runtime. One thread per session: with several requests at once, two are slower."""

    session: Any

    @classmethod
    def of(cls, content: bytes) -> Self:
        """A session on the CPU."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return cls(onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]))

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of all items at the next step."""
        (scores_BV,) = self.session.run([OUTPUT], {INPUT: token_BL.numpy()})
        return torch.from_numpy(scores_BV)


#: Histories to compare on; the largest difference allowed, in standard deviations of the scores.
HISTORIES, TOLERANCE = 32, 1e-4


def check_parity(exported: Scorer, model: Scorer, sequences: Sequences, length: int) -> float:
    """The largest difference found; one that could change a ranking is an error."""
    differences = [_difference(exported, model, token_BL) for token_BL in _histories(sequences, length)]
    largest = float(np.max(differences))  # NaN, where any of them is
    if not largest <= TOLERANCE:
        hint = "Nothing was written. Please report it, with the run's config.json."
        raise UnveilError(
            "the ONNX model differs from the network", found=f"{largest:.2g}", expected=f"{TOLERANCE:g}", hint=hint
        )
    return largest


def _histories(sequences: Sequences, length: int) -> list[Tensor]:
    """Users of all lengths in one batch, the shortest and the longest alone, and an empty history."""
    user_U = np.argsort(sequences.length_U, kind="stable")
    user_B = user_U[np.linspace(0, len(user_U) - 1, min(HISTORIES, len(user_U))).astype(np.int64)]
    together = histories(sequences, user_B, sequences.length_U[user_B], length)
    ends = (histories(sequences, user_B[[end]], sequences.length_U[user_B[[end]]], length) for end in (0, -1))
    return [together, *ends, tokens_of([np.zeros(0, np.int64)], sequences.n_items, length)]


def _difference(exported: Scorer, model: Scorer, token_BL: Tensor) -> float:
    """max |difference|, over the standard deviation of the scores of a history."""
    with at_rest(model):
        expected_BV = model.scores(token_BL).cpu()
    spread = max(float(expected_BV.std(dim=1, correction=0).mean()), torch.finfo(torch.float32).tiny)
    return float((exported.scores(token_BL) - expected_BV).abs().max()) / spread
