"""A network as an ONNX model: tokens in, scores out, for any number of rows and columns."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from unveil.serving.recommender import Recommender, network_of
from unveil.settings import plain

INPUT, OUTPUT = "token_BL", "scores_BV"
#: Bytes of weights: a message of protobuf, which an ONNX file is, has less than 2 GiB; 16 MiB are left for the rest.
LARGEST = 2**31 - 2**24
#: Histories to compare on; the largest difference allowed, in standard deviations of the scores.
HISTORIES, TOLERANCE = 32, 1e-4
#: Network → what writes its nodes.
_WRITERS: dict[str, Callable[[Graph, Any, Value], Value]] = {"bert4rec": bert4rec, "sasrec": sasrec, "gru4rec": gru4rec}


def checked_onnx(recommender: Recommender) -> tuple[bytes, float]:
    """The network as ONNX, and how far it is from torch: the largest difference, in deviations of the scores."""
    model = network_of(recommender)
    content = as_bytes(model, recommender.length)
    return content, check_parity(OnnxScorer.of(content), model, recommender.sequences, recommender.length)


def on_onnx(recommender: Recommender) -> Recommender:
    """The same recommender on ONNX Runtime; an error if it differs."""
    return replace(recommender, model=OnnxScorer.of(checked_onnx(recommender)[0]))


def servable(recommender: Recommender) -> Recommender:
    """On ONNX Runtime; or in torch, if the network has no ONNX form: of another package, or too large."""
    model = network_of(recommender)
    fits = model.name in _WRITERS and _size(_graph(model)) <= LARGEST
    return on_onnx(recommender) if fits else recommender


def as_bytes(model: Backbone, length: int) -> bytes:
    """The model in ONNX's own format. The same weights give the same bytes."""
    if model.name not in _WRITERS:
        known = f"one of {', '.join(sorted(_WRITERS))}"
        raise UnveilError("this network has no ONNX form", found=model.name, expected=known)
    graph = _graph(model)
    if (size := _size(graph)) > LARGEST:
        raise UnveilError(
            "the network is too large for an ONNX file",
            found=f"{size / 2**30:.2f} GiB of weights",
            expected="less than 2 GiB, what its format can hold",
            hint="Export its vectors (--embeddings); or train with a smaller model.width.",
        )
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
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def _graph(model: Backbone) -> Graph:
    graph = Graph(model.n_items)
    graph.op("Identity", _WRITERS[model.name](graph, model, INPUT))
    graph.nodes[-1].output[0] = OUTPUT
    return graph


def _size(graph: Graph) -> int:
    return sum(array.nbytes for array in graph.weights.values())


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


def check_parity(exported: Scorer, model: Scorer, sequences: Sequences, length: int) -> float:
    """max |difference| over the standard deviation of a history's scores; one that could change a ranking is an error.

    Compared are users of all lengths in one batch, the shortest and the longest alone, and an empty history.
    """
    user_U = np.argsort(sequences.length_U, kind="stable")
    user_B = user_U[np.linspace(0, len(user_U) - 1, min(HISTORIES, len(user_U))).astype(np.int64)]
    batches = [
        histories(sequences, part, sequences.length_U[part], length) for part in (user_B, user_B[:1], user_B[-1:])
    ]
    batches.append(tokens_of([np.zeros(0, np.int64)], sequences.n_items, length))
    differences = []
    for token_BL in batches:
        with at_rest(model):
            expected_BV = model.scores(token_BL).cpu()
        spread = max(float(expected_BV.std(dim=1, correction=0).mean()), torch.finfo(torch.float32).tiny)
        differences.append(float((exported.scores(token_BL) - expected_BV).abs().max()) / spread)
    largest = float(np.max(differences))  # NaN, where any of them is
    if not largest <= TOLERANCE:
        hint = "Nothing was written. Please report it, with the run's config.json."
        raise UnveilError(
            "the ONNX model differs from the network", found=f"{largest:.2g}", expected=f"{TOLERANCE:g}", hint=hint
        )
    return largest
