"""Small ONNX files for tests, and the wire format for those that no library would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpucc.numerics import AnyArray


def wire(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of protobuf: numbers as varints, bytes with their lengths."""
    made = b""
    for number, value in fields:
        made += _varint(number << 3 | (0 if isinstance(value, int) else 2))
        made += _varint(value) if isinstance(value, int) else _varint(len(value)) + value
    return made


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made, number = made + bytes([number & 0x7F | 0x80]), number >> 7
    return made + bytes([number])


def model_of(
    nodes: Sequence[Any],
    constants: Sequence[Any] = (),
    inputs: Mapping[str, Sequence[int | str]] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
) -> Any:
    """A model of these nodes. Inputs are float32, of the shapes given; one x [2, 4] unless others are."""
    from onnx import TensorProto, helper

    given: Mapping[str, Sequence[int | str]] = {"x": (2, 4)} if inputs is None else inputs
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in given.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "m", values, results, list(constants))
    domains = dict.fromkeys(["com.microsoft", *(node.domain for node in nodes if node.domain)])
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def add_model(constant: AnyArray) -> Any:
    """x + w."""
    from onnx import helper, numpy_helper

    return model_of([helper.make_node("Add", ["x", "w"], ["y"])], [numpy_helper.from_array(np.asarray(constant), "w")])
