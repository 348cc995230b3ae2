"""A graph in the making: nodes and weights under names of their own.

Why not torch's exporter: it takes seconds where this takes milliseconds, which a server that loads a new model feels,
and it unrolls recurrent cells to one fixed length.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.serving.onnx.library import onnx

#: Has LayerNormalization and Gelu; read by every runtime since 2024.
OPSET, IR_VERSION = 20, 9
Value = str  # what a node gives, by its name


@dataclass
class Graph:
    """Values are named by the node that gives them; weights by where they come from."""

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
