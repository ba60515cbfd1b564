"""The ONNX package's own tests of operators: what tpucc reads of them gives the values that they expect. Making them takes long."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tpucc
from tpucc.interop.onnx.reading import Imported
from tpucc.interop.onnx.reading.model import decoded
from tpucc.interop.onnx.reading.network_of import Built
from tpucc.interop.onnx.reading.rules import RULES
from tpucc.interop.weights import bind_arrays
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

pytestmark = pytest.mark.soak
OTHERS = {
    "bf16": "the expected values are rounded to bfloat16, and tpucc computes in float32",
    "qk_matmul": "the expected values are infinite where a mask is, and tpucc's masks are finite",
    "affine_grid_3d": "the expected values are of several data sets in one, of which the model's inputs are the last",
    **dict.fromkeys(
        ("quantizelinear", "qlinear", "matmulinteger", "convinteger"), "they give and take integers, where tpucc has the real values"
    ),
    "empty_set": "tensors without values, which tpucc doesn't have",
    "shape_start_greater_than_end": "tensors without values, which tpucc doesn't have",
    "spacetodepth_crd_mode": "an attribute that the ONNX versions which tpucc knows don't have",
}
"""Parts of the names of tests that expect other values, and why."""
UNTRIED = {
    "Cast": "of computed values it changes nothing, which the package's tests don't show",
    "CastLike": "as Cast",
    **dict.fromkeys(
        (
            "ConvInteger",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "LayerNormalization",
            "MatMulInteger",
            "OneHot",
            "Trilu",
            "QLinearConv",
            "QLinearMatMul",
            "QuantizeLinear",
        ),
        "tests/unit/test_onnx_reading.py compares them with ONNX Runtime",
    ),
    "SimplifiedLayerNormalization": "ONNX Runtime's, not ONNX's",
}
"""Operators that none of the package's tests shows as tpucc reads them."""


def cases() -> list[Any]:
    node = pytest.importorskip("onnx.backend.test.case.node")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[Any] = node.collect_testcases(None)
        return found


def readings(case: Any) -> Iterator[tuple[Built, dict[str, AnyArray]]]:
    """The graph of a case, and its inputs by name: once with all of them given, and once with all but the first constant."""
    from onnx import ModelProto, numpy_helper

    arrays = case.data_sets[0][0]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        return
    for constant in (False, True):
        model, given = ModelProto(), []
        model.CopyFrom(case.model)
        for index, (value, array) in enumerate(zip(case.model.graph.input, arrays, strict=False)):
            if constant and index:
                model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            else:
                given.append(array)
        try:
            read = Imported("m", "m", decoded(model.SerializeToString(), None), "nchw")
            made = read.built({name: size or 1 for name, size in read.symbols.items()})
        except tpucc.CompileError:
            continue
        nodes = made.graph.inputs
        yield made, {node.name: array.astype(node.type.numpy) for node, array in zip(nodes, given, strict=True)}


def test_the_values_of_the_onnx_packages_own_tests() -> None:
    wrong, shown = [], set()
    for case in cases():
        if any(part in case.name for part in OTHERS):
            continue
        for made, given in readings(case):
            found = evaluate(bind_arrays(made.graph, made.weights), given)
            values = [found[output.node] for output in made.graph.outputs]
            if not all(_alike(value, wanted) for value, wanted in zip(values, case.data_sets[0][1], strict=True)):
                wrong.append(case.name)
            shown |= {node.op_type for node in case.model.graph.node}
            break
    assert not wrong
    assert {op for op in RULES if "." not in op} - shown <= UNTRIED.keys()


def _alike(value: AnyArray, wanted: Any) -> bool:
    expected = np.asarray(wanted).astype(np.float64)
    return value.shape == expected.shape and np.allclose(value.astype(np.float64), expected, rtol=2e-3, atol=1e-4, equal_nan=True)
