"""A scorer that runs an ONNX model.

Shapes: B histories, L tokens, V items.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from unveil.serving.onnx.library import onnxruntime
from unveil.serving.onnx.model import INPUT, OUTPUT


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """One thread a session: two get in each other's way when several requests are answered at once."""

    session: Any

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Ready the model for the CPU."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return cls(onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]))

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of all items at the next step."""
        (scores_BV,) = self.session.run([OUTPUT], {INPUT: token_BL.numpy()})
        return torch.from_numpy(scores_BV)
