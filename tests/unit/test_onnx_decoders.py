"""Images that are made of rows: the columns of weights go into the order of the pixels, and no transpose is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tests.support.onnxruntime import session as session_of
from tpucc.interop.onnx import reading
from tpucc.ops.evaluate import evaluate

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array

DRAW = np.random.default_rng(0)
SIZES = {
    "w": (8, 36),
    "b": (36,),
    "v": (36, 36),
    "scale": (36,),
    "mean": (36,),
    "e": (10, 36),
    "k": (6, 3, 4, 4),
    "kl": (6, 3, 4),
    "row": (1, 36),
    "half": (1,),
}
WEIGHTS: Mapping[str, Any] = {name: DRAW.normal(0, 0.5, shape).astype(np.float32) for name, shape in SIZES.items()} | {
    "variance": DRAW.uniform(0.5, 2, 36).astype(np.float32),
    "shape": np.array([0, 6, 2, 3], np.int64),
    "line": np.array([0, 6, 6], np.int64),
    "s": np.float32(0.02),
    "z": np.uint8(128),
}
DENSE = [node("Gemm", ["x", "w", "b"], ["h"])]
LINE = [
    node("Reshape", ["h", "line"], ["i"]),
    node("ConvTranspose", ["i", "kl"], ["y"], strides=[2], pads=[1, 1]),
]
IMAGE = [node("Reshape", ["r", "shape"], ["i"]), node("ConvTranspose", ["i", "k"], ["y"], strides=[2, 2], pads=[1] * 4)]


def relu_of(name: str) -> Any:
    return node("Relu", [name], ["r"])


MOVED = {
    "a bias and a function": [*DENSE, relu_of("h"), *IMAGE],
    "no bias": [node("MatMul", ["x", "w"], ["r"]), *IMAGE],
    "a batch norm": [*DENSE, node("BatchNormalization", ["h", "scale", "b", "mean", "variance"], ["r"]), *IMAGE],
    "a gate": [*DENSE, node("Sigmoid", ["h"], ["g"]), node("Mul", ["h", "g"], ["r"]), *IMAGE],
    "two products": [*DENSE, node("Relu", ["h"], ["g"]), node("MatMul", ["g", "v"], ["m"]), node("Add", ["m", "row"], ["r"]), *IMAGE],
    "a number": [*DENSE, node("Mul", ["h", "half"], ["r"]), *IMAGE],
    "quantised": [*DENSE, node("QuantizeLinear", ["h", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["r"]), *IMAGE],
    "a function of the image": [*DENSE, node("Reshape", ["h", "shape"], ["j"]), node("Tanh", ["j"], ["i"]), IMAGE[1]],
    "a line": [*DENSE, *LINE],
    "two readers of the image": [
        *(*DENSE, relu_of("h"), *IMAGE),
        node("ConvTranspose", ["i", "k"], ["o"], strides=[2, 2], pads=[1] * 4),
        node("Add", ["y", "o"], ["sum"]),
    ],
}
"""Networks without a transpose."""
KEPT = {
    "rows that something else reads": [*DENSE, relu_of("h"), *IMAGE, node("ReduceMax", ["r"], ["o"])],
    "a weight that is read twice": [*DENSE, node("MatMul", ["h", "v"], ["m"]), node("MatMul", ["m", "v"], ["r"]), *IMAGE],
    "a residual": [*DENSE, node("MatMul", ["h", "v"], ["m"]), node("Add", ["m", "h"], ["r"]), *IMAGE],
    "a softmax": [*DENSE, node("Softmax", ["h"], ["r"]), *IMAGE],
}
"""Networks whose columns have an order that is fixed."""


def checked(nodes: Sequence[Any], folder: Path) -> tuple[str, Mapping[str, Any]]:
    """The source of a network, and its weights; its values are those of ONNX Runtime."""
    read = {name for each_node in nodes for name in each_node.input}
    constants = [array(value, name) for name, value in WEIGHTS.items() if name in read]
    made = [name for each_node in nodes for name in each_node.output if name not in read]
    onnx.save(model_of(nodes, constants, {"x": ("batch", 8)}, made, opset=17), folder / "m.onnx")
    found = reading.read(folder / "m.onnx").built({"batch": 3})
    x = DRAW.normal(size=(3, 8)).astype(np.float32)
    values = evaluate(found.graph, {"x": x}, {"weight": lambda node, _: found.weights[node.attributes.key]})
    session = session_of(folder / "m.onnx")
    for output, wanted in zip(found.graph.outputs, session.run(None, {"x": x}), strict=True):
        result = values[output.node]
        np.testing.assert_allclose(np.moveaxis(result, -1, 1) if result.ndim == wanted.ndim == 4 else result, wanted, rtol=1e-4, atol=1e-4)
    return tpucc.import_onnx(folder / "m.onnx").source, found.weights


@each({title: (nodes,) for title, nodes in MOVED.items()})
def test_columns_are_in_the_order_of_the_pixels(nodes: list[Any], tmp_path: Path) -> None:
    source, weights = checked(nodes, tmp_path)
    assert "transpose(reshape(" not in source
    assert "reshape(reshape(" not in source
    assert weights.keys() <= WEIGHTS.keys()
    moved = np.moveaxis(WEIGHTS["w"].reshape(8, 6, 6), 1, 2).reshape(8, 36)  # as (2, 3) or as 6 pixels
    np.testing.assert_array_equal(weights["w"], WEIGHTS["w"] if "v" in weights else moved)


@each({title: (nodes,) for title, nodes in KEPT.items()})
def test_columns_of_a_fixed_order_stay(nodes: list[Any], tmp_path: Path) -> None:
    source, weights = checked(nodes, tmp_path)
    assert "transpose(reshape(" in source
    assert all(np.array_equal(array, WEIGHTS[key]) for key, array in weights.items() if key not in {"k", "kl"})


def test_weights_of_an_export_keep_their_columns(tmp_path: Path) -> None:
    """The source's own transpose comes back, and its weights as they were."""
    text = (
        "weights random(seed=0)\nmodel m(x: f32[2, 8]):\n    weight w: f32[8, 36]\n    weight k: f32[3, 3, 6, 4]\n"
        "    return conv2d(transpose(reshape(relu(x @ w), (2, 6, 2, 3)), (0, 2, 3, 1)), k, padding=1)\n"
    )
    exe = tpucc.compile_source(text)
    tpucc.export_onnx(exe, tmp_path / "m.onnx")
    again = tpucc.import_onnx(tmp_path / "m.onnx")
    assert "transpose(reshape(" in again.source
    given = onnx.numpy_helper.to_array(next(one for one in onnx.load(tmp_path / "m.onnx").graph.initializer if one.name == "w"))
    np.testing.assert_array_equal(again.weights["w"], given)
