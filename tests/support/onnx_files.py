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


def quantised_network(kind: Any, axes: tuple[int, ...], pools_integers: bool = False) -> Any:
    """A convolution, a pool and a product of x [6, 3, 8, 8] between QuantizeLinear and DequantizeLinear, as quantisers write them.

    Values are of the type `kind`, and scales of the kernel have these axes: none, or one for its columns (4,). ONNX Runtime's optimizer
    refuses the Reshape in opset 21.
    """
    from onnx import helper, numpy_helper

    node, array, draw = helper.make_node, numpy_helper.from_array, np.random.default_rng(0)
    weights, fc = (draw.integers(-127, 128, shape).astype(np.int8) for shape in ((4, 3, 3, 3), (5, 64)))
    weights[:, 0, 0, 0] = 127
    fc[:, 0] = -127
    scales = draw.uniform(0.001, 0.01, axes).astype(np.float32)
    zero = 131 if kind is np.uint8 else 3
    constants = [
        *(array(weights, "w"), array(scales, "ws"), array(np.zeros(axes, np.int8), "wz")),
        *(array(draw.integers(-900, 900, 4).astype(np.int32), "b"), array((np.float32(0.02) * scales).astype(np.float32), "bs")),
        *(array(np.zeros(axes, np.int32), "bz"), array(np.float32(0.02), "xs"), array(kind(zero), "z"), array(np.float32(0.05177), "hs")),
        *(array(fc, "fc"), array(np.float32(0.004), "fs"), array(np.int8(0), "fz"), array(np.float32(0.31731), "ys")),
        array(np.array([0, -1], np.int64), "rows"),
    ]
    real = [node("DequantizeLinear", ["rq", "hs", "z"], ["rd"]), node("QuantizeLinear", ["p", "hs", "z"], ["pq"])]
    windows = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pool = [node("MaxPool", ["rq"], ["pq"], **windows)] if pools_integers else [real[0], node("MaxPool", ["rd"], ["p"], **windows), real[1]]
    nodes = [
        node("QuantizeLinear", ["x", "xs", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "xs", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "hs", "z"], ["rq"]),
        *pool,
        node("DequantizeLinear", ["pq", "hs", "z"], ["pd"]),
        node("Reshape", ["pd", "rows"], ["f"]),
        node("DequantizeLinear", ["fc", "fs", "fz"], ["fd"], axis=0),
        node("Gemm", ["f", "fd"], ["g"], transB=1),
        node("QuantizeLinear", ["g", "ys", "z"], ["gq"]),
        node("DequantizeLinear", ["gq", "ys", "z"], ["y"]),
    ]
    return model_of(nodes, constants, {"x": (6, 3, 8, 8)}, opset=17)
