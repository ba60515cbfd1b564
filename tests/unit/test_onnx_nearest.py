"""What messages say does instead of an operator that tpucc doesn't read: it compiles, and has the operator's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tests.support.onnxruntime import session as session_of
from tpucc.interop.onnx.reading.nearest import NEAREST

onnx = pytest.importorskip("onnx")
node, TensorProto = onnx.helper.make_node, onnx.TensorProto

IMAGE = {"x": (1, 3, 4, 4)}
ROWS = {"i": (3,), "x": (3, 4)}
HEADS = {"q": (2, 4, 8), "k": (2, 4, 8), "v": (2, 4, 8)}
ELSEWHERE = {
    *("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"),
    *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "If", "Scan", "NonMaxSuppression", "StatefulPartitionedCall", "Unique"),
}
"""Those of which the model is to be exported otherwise, or ended: no operators do instead."""


def loop() -> Any:
    """Relu, as often as the loop says."""
    value = onnx.helper.make_tensor_value_info
    inputs = [value("n", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("a", TensorProto.FLOAT, [2, 4])]
    results = [value("d", TensorProto.BOOL, []), value("b", TensorProto.FLOAT, [2, 4])]
    return onnx.helper.make_graph([node("Identity", ["c"], ["d"]), node("Relu", ["a"], ["b"])], "steps", inputs, results)


def hyperbolic(op: str) -> list[Any]:
    """(exp(x) ± exp(-x)) / 2."""
    steps = [("Exp", ["x"], ["a"]), ("Neg", ["x"], ["n"]), ("Exp", ["n"], ["b"]), (op, ["a", "b"], ["s"]), ("Mul", ["s", "half"], ["y"])]
    return [node(*step) for step in steps]


CASES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any]]] = {
    "attention": (
        "Attention",
        [
            node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
            node("MatMul", ["q", "t"], ["s"]),
            node("Softmax", ["s"], ["p"]),
            node("MatMul", ["p", "v"], ["y"]),
        ],
        {},
        HEADS,
    ),
    "crop": (
        "CenterCropPad",
        [node("Slice", ["x", "s", "e"], ["c"]), node("Pad", ["c", "p"], ["y"])],
        {"s": [0], "e": [1], "p": [0, 1, 0, 1]},
        {},
    ),
    "compress": ("Compress", [node("Gather", ["x", "i"], ["y"], axis=1)], {"i": [0, 2]}, {}),
    "cosines": (
        "Cos",
        [node("Gather", ["t", "i"], ["g"]), node("Add", ["g", "x"], ["y"])],
        {"t": np.cos(np.arange(40).reshape(10, 4))},
        ROWS,
    ),
    "sines": (
        "Sin",
        [node("Gather", ["t", "i"], ["g"]), node("Add", ["g", "x"], ["y"])],
        {"t": np.sin(np.arange(40).reshape(10, 4))},
        ROWS,
    ),
    "constant cosines": ("Cos", [node("Cos", ["t"], ["c"]), node("Add", ["c", "x"], ["y"])], {"t": np.ones((2, 4))}, {}),
    "constant sines": ("Sin", [node("Sin", ["t"], ["c"]), node("Add", ["c", "x"], ["y"])], {"t": np.ones((2, 4))}, {}),
    "cosh": ("Cosh", hyperbolic("Add"), {"half": 0.5}, {}),
    "sinh": ("Sinh", hyperbolic("Sub"), {"half": 0.5}, {}),
    "sums": ("CumSum", [node("MatMul", ["x", "t"], ["y"])], {"t": np.triu(np.ones((4, 4)))}, {}),
    "gelu": ("Erfc", [node("Gelu", ["x"], ["y"], approximate="tanh")], {}, {}),
    "exp": ("Expm1", [node("Exp", ["x"], ["e"]), node("Sub", ["e", "one"], ["y"])], {"one": 1.0}, {}),
    "elu": ("Expm1", [node("Elu", ["x"], ["y"])], {}, {}),
    "places": ("GatherND", [node("Gather", ["x", "i"], ["y"])], {"i": [1]}, {}),
    "norm": ("GlobalLpPool", [node("ReduceL2", ["x", "a"], ["y"])], {"a": [2, 3]}, IMAGE),
    "steps": ("Loop", [node("Loop", ["count", "going", "x"], ["y"], body=loop())], {"count": 3, "going": True}, {}),
    "resized": ("MaxUnpool", [node("Resize", ["x", "", "s"], ["y"])], {"s": [1.0, 1.0, 2.0, 2.0]}, IMAGE),
    "enlarged": ("MaxUnpool", [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])], {"w": np.ones((3, 2, 2, 2))}, IMAGE),
    "mask": (
        "NonZero",
        [node("Greater", ["x", "zero"], ["g"]), node("Cast", ["g"], ["m"], to=TensorProto.FLOAT), node("Mul", ["x", "m"], ["y"])],
        {"zero": 0.0},
        {},
    ),
    "region": (
        "RoiAlign",
        [node("Slice", ["x", "s", "e", "a"], ["c"]), node("Resize", ["c", "", "", "n"], ["y"], mode="linear")],
        {"s": [1, 1], "e": [3, 3], "a": [2, 3], "n": [1, 3, 4, 4]},
        IMAGE,
    ),
    "rotary": (
        "RotaryEmbedding",
        [
            node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
            node("Neg", ["b"], ["n"]),
            node("Concat", ["n", "a"], ["r"], axis=1),
            node("Mul", ["x", "cosines"], ["c"]),
            node("Mul", ["r", "sines"], ["s"]),
            node("Add", ["c", "s"], ["y"]),
        ],
        {"cosines": np.cos(np.arange(8).reshape(2, 4)), "sines": np.sin(np.arange(8).reshape(2, 4))},
        {},
    ),
    "set places": ("ScatterND", [node("Where", ["m", "v", "x"], ["y"])], {"m": np.eye(2, 4) > 0, "v": np.ones((2, 4))}, {}),
    "shrink": (
        "Shrink",
        [
            node("Sub", ["x", "half"], ["a"]),
            node("Add", ["x", "half"], ["b"]),
            node("Greater", ["x", "half"], ["g"]),
            node("Less", ["x", "below"], ["l"]),
            node("Where", ["l", "b", "zero"], ["c"]),
            node("Where", ["g", "a", "c"], ["y"]),
        ],
        {"half": 0.5, "below": -0.5, "zero": 0.0},
        {},
    ),
    "parts": ("SplitToSequence", [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Add", ["a", "b"], ["y"])], {}, {}),
    "gated": (
        "SwiGLU",
        [
            node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
            node("Sigmoid", ["a"], ["s"]),
            node("Mul", ["a", "s"], ["g"]),
            node("Mul", ["g", "b"], ["y"]),
        ],
        {},
        {},
    ),
    "largest place": ("TopK", [node("ArgMax", ["x"], ["y"], axis=1)], {}, {}),
    "largest value": ("TopK", [node("ReduceMax", ["x", "a"], ["y"])], {"a": [1]}, {}),
}


def test_each_suggestion_of_operators_has_a_case() -> None:
    own = {op for op in NEAREST if "." not in op}
    assert {op for op, *_ in CASES.values()} == own - ELSEWHERE


@pytest.mark.long
@each(CASES)
def test_what_is_suggested_compiles_and_computes_the_same(
    op: str, nodes: list[Any], arrays: dict[str, Any], inputs: Any, tmp_path: Path
) -> None:
    typed = {name: np.asarray(array) for name, array in arrays.items()}
    typed = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in typed.items()}
    model = model_of(nodes, [onnx.numpy_helper.from_array(array, name) for name, array in typed.items()], inputs or None)
    draw, given = np.random.default_rng(0), {}
    for value in model.graph.input:
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        given[value.name] = draw.uniform(-1, 1, shape).astype(np.float32)
        if value.name == "i":
            value.type.tensor_type.elem_type = TensorProto.INT64
            given["i"] = draw.integers(0, 4, shape)
    if nodes[-1].op_type == "ArgMax":
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(model, tmp_path / "m.onnx")
    found = tpucc.import_onnx(tmp_path / "m.onnx", layout="nchw")
    np.savez(tmp_path / "x.npz", **given)
    (values,) = found.compile(calibration=tmp_path / "x.npz").run(**given).values()
    session = session_of(model)
    (wanted,) = session.run(None, given)
    np.testing.assert_allclose(values, wanted, atol=0.04 * max(1.0, float(np.abs(wanted).max())), err_msg=op)
