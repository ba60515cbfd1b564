"""What files of packages have, in networks of a few nodes: one-hot rows by comparisons, numbers that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of

onnx, reference = pytest.importorskip("onnx"), pytest.importorskip("onnx.reference")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
DRAW = np.random.default_rng(0)
COUNT = 7


def whole(name: str, *numbers: int) -> Any:
    return array(np.array(numbers, np.int64), name)


def imported(model: Any, tmp_path: Path) -> str:
    onnx.save(model, tmp_path / "m.onnx")
    return tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": 2}).source


def comparison(steps: list[Any], *rows: int) -> Any:
    """Integers ids [batch, 6], `c` of them by some steps, and its comparison with 0 to 6 in an array of the shape `rows`, as float32."""
    nodes = [*steps, node("Equal", ["c", "r"], ["e"]), node("Cast", ["e"], ["y"], to=onnx.TensorProto.FLOAT)]
    numbers = array(np.arange(COUNT, dtype=np.int32).reshape(rows), "r")
    constants = [numbers, whole("last", 2), whole("column", -1, 6, 1), whole("same", 1, 6, 1)]
    made = model_of(nodes, constants, {"ids": ("batch", 6)})
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    return made


UNSQUEEZE = node("Unsqueeze", ["ids", "last"], ["c0"])
RESHAPE = node("Reshape", ["ids", "column"], ["c0"])


@each(
    [
        ([UNSQUEEZE, node("Identity", ["c0"], ["c"])], (COUNT,)),
        ([UNSQUEEZE, node("Expand", ["c0", "same"], ["c"])], (1, 1, COUNT)),
        ([RESHAPE, node("Identity", ["c0"], ["c"])], (COUNT,)),
        ([RESHAPE, node("Expand", ["c0", "same"], ["c1"]), node("Identity", ["c1"], ["c"])], (1, 1, COUNT)),
    ]
)
def test_rows_of_one_1_by_a_comparison_are_known(steps: list[Any], rows: tuple[int, ...], tmp_path: Path) -> None:
    model = comparison(steps, *rows)
    source = imported(model, tmp_path)
    assert "ids: i32[batch, 6]" in source
    assert f"one_hot(ids, {COUNT})" in source
    ids = DRAW.integers(0, COUNT, (2, 6)).astype(np.int32)
    made = tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": 2})
    [found] = made.compile().run(ids=ids).values()
    [wanted] = reference.ReferenceEvaluator(model).run(None, {"ids": ids})
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < 0.02


@each([("Add", ["x", "zero"]), ("Add", ["zero", "x"]), ("Sub", ["x", "zero"])])
def test_sums_with_0_are_left_out(op: str, operands: list[str], tmp_path: Path) -> None:
    nodes = [node(op, operands, ["a"]), node("Relu", ["a"], ["y"])]
    source = imported_fixed(nodes, tmp_path)
    assert "relu(x)" in source


def test_0_minus_a_value_stays(tmp_path: Path) -> None:
    source = imported_fixed([node("Sub", ["zero", "x"], ["a"]), node("Relu", ["a"], ["y"])], tmp_path)
    assert "relu(x)" not in source


def imported_fixed(nodes: list[Any], tmp_path: Path) -> str:
    onnx.save(model_of(nodes, [array(np.float32(0), "zero")]), tmp_path / "m.onnx")
    return tpucc.import_onnx(tmp_path / "m.onnx").source
