"""Rows of ONNX's operators: what follows from the function that is one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.building.weights import Called
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit, Unsupported
from tpucc.interop.onnx.reading.operators.rows import ROWS, Axis, Fact, Ints, Number, Positive, Row, has, parameters_of
from tpucc.ir import TensorType


def example(
    c: Call,
    x: Tensor,
    sizes: Ints,
    depth: Number | None,
    *others: Value,
    axis: Axis = -1,
    group: Positive = 1,
    flag: bool = False,
    mode: Literal["one", "two"] = "one",
) -> Result:
    return c.static(np.array([len(sizes), depth or 0, len(others), axis, group, flag, mode == "two"], np.float64))


EXAMPLE = Row("Example", example, frozenset(), None, None, ("note",), *parameters_of(example))
SIZES = Static(np.array([4, 5, 6]), "sizes")


def called(operands: list[Value | None], **attributes: object) -> list[float]:
    """What the example is given: the count of sizes, the depth, the count of others, the axis, the group, the flag, and the mode."""
    network = Network("m", {}, Called.of(OnnxGraph("m", (), {}, (), ())))
    x = network.tensor(Static(np.arange(6, dtype=np.float32).reshape(2, 3), "x"))
    node = OnnxNode("Example", ("",) * (1 + len(operands)), ("y",), attributes)
    made = EXAMPLE.built(Call(network, node, [x, *operands], 21, frozenset()))
    assert isinstance(made, Static)
    return [float(number) for number in made.array]


def test_operands_and_attributes_are_converted_by_their_kinds() -> None:
    number = Static(np.float32(2.5).reshape(1), "n")
    assert called([SIZES, None]) == [3, 0, 0, 1, 1, 0, 0]
    assert called([SIZES, number, SIZES, number], axis=0, group=2, flag=1, mode="two") == [3, 2.5, 2, 0, 2, 1, 1]
    assert called([None], sizes=(7, 8), __note=1.0) == [2, 0, 0, 1, 1, 0, 0]  # an attribute in older versions


@each(
    [
        ([None], {}),
        ([Static(np.ones((1, 2), np.int64), "s")], {}),
        ([SIZES, Static(np.ones(2), "n")], {}),
        ([SIZES], {"axis": 2}),
        ([SIZES], {"group": 0}),
        ([SIZES], {"flag": 2}),
        ([SIZES], {"mode": "tow"}),
    ]
)
def test_other_kinds_are_damage(operands: list[Value | None], attributes: dict[str, object]) -> None:
    with pytest.raises(Misfit):
        called(operands, **attributes)


def test_a_list_that_the_network_computes_is_refused() -> None:
    network = Network("m", {}, Called.of(OnnxGraph("m", (), {}, (), ())))
    node = network.input("s", TensorType("f32", (2,)))
    with pytest.raises(Unsupported, match="the network computes its sizes"):
        called([Tensor(node, ((0,),))])


def test_facts_hold_of_each_other() -> None:
    """What moves values keeps them, and makes whole numbers of whole ones."""
    for op, row in ROWS.items():
        if has(op, Fact.VIEW) and row.build is not None:
            assert has(op, Fact.KEEPS), op
            assert has(op, Fact.WHOLE), op
        assert not has(op, Fact.REAL) or not has(op, Fact.VIEW), op
