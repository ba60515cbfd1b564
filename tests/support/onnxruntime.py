"""ONNX Runtime for tests: sessions whose integers are exact on every processor.

Without VNNI its products of unsigned values and signed weights saturate. So a session gets a copy of the model in which such weights are
unsigned: 128 more, and their zero points too. Their difference is the same, and products of unsigned integers are exact everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc.onnxruntime

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
WEIGHTS = {"QLinearMatMul": (3, 5), "QLinearConv": (3, 5), "QGemm": (3, 5), "MatMulInteger": (1, 3), "DequantizeLinear": (0, 2)}
"""Which operands of an operator are weights and their zero points. Those of ConvInteger are exact as they are."""
MOVES = {"Identity", "Cast", "CastLike", "Transpose", "Reshape"}
SIGNED, UNSIGNED = onnx.TensorProto.INT8, onnx.TensorProto.UINT8


def session(model: Any, *, optimised: bool = True, threads: int = 1) -> Any:
    """A session of a model, which is a `ModelProto`, its bytes, or a path. The model stays as it is."""
    if isinstance(model, bytes):
        model = onnx.load_from_string(model)
    elif not isinstance(model, onnx.ModelProto):
        model = onnx.load(Path(model))
    return tpucc.onnxruntime.session(with_unsigned_weights(model).SerializeToString(), threads, optimised)


def with_unsigned_weights(model: Any) -> Any:
    """A copy in which constant int8 weights of uint8 values are uint8."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = _Graph(changed)
    for node in changed.graph.node:
        if node.op_type in WEIGHTS and graph.multiplies_unsigned(node):
            weight, zero = WEIGHTS[node.op_type]
            if not node.input[zero:]:
                changed.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((), np.int8), f"{node.input[weight]}.zero"))
                node.input.append(changed.graph.initializer[-1].name)
                graph = _Graph(changed)
            graph.shift(node.input[weight])
            graph.shift(node.input[zero])
    return changed


class _Graph:
    """The constants of a model, and what makes and reads its values."""

    def __init__(self, model: Any) -> None:
        self.nodes = model.graph.node
        self.constants = {constant.name: constant for constant in model.graph.initializer}
        self.makers = {name: node for node in self.nodes for name in node.output}

    def multiplies_unsigned(self, node: Any) -> bool:
        """Whether a node multiplies uint8 values by constant weights, or dequantises such weights."""
        if self.root(node.input[WEIGHTS[node.op_type][0]]) not in self.constants:
            return False
        if node.op_type != "DequantizeLinear":
            return self.is_unsigned(node)
        readers = [reader for reader in self.nodes if node.output[0] in map(self.root, reader.input[1:])]
        others = [self.makers.get(self.root(reader.input[0])) for reader in readers]
        return any(other is not None and other.op_type == node.op_type and self.is_unsigned(other) for other in others)

    def is_unsigned(self, node: Any) -> bool:
        """Whether the zero point of a node's first operand is uint8; it is the third operand of all of them."""
        return len(node.input) > 2 and self.type_of(node.input[2]) == UNSIGNED

    def type_of(self, name: str) -> int | None:
        constant = self.constants.get(self.root(name))
        return constant and constant.data_type

    def root(self, name: str) -> str:
        """The value that this one only moves."""
        while name in self.makers and self.makers[name].op_type in MOVES:
            name = self.makers[name].input[0]
        return name

    def shift(self, name: str) -> None:
        """Adds 128 to the int8 constant behind a value, and makes it uint8 on its way there. It may be the number of a ConstantOfShape."""
        root = self.root(name)
        constant = self.constants[root] if root in self.constants else self.makers[root].attribute[0].t
        if constant.data_type not in (SIGNED, UNSIGNED):
            return  # a bias is int32
        if constant.data_type == SIGNED:
            numbers = onnx.numpy_helper.to_array(constant).astype(np.int16) + 128
            constant.CopyFrom(onnx.numpy_helper.from_array(numbers.astype(np.uint8), constant.name))
        while name in self.makers:
            if self.makers[name].op_type == "Cast":
                self.makers[name].attribute[0].i = UNSIGNED
            name = self.makers[name].input[0]
