"""`dequantize` before moves: what is computed stays the same, and integers that were moved in the source are held on the device."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model, applied, outputs_of
from tpucc.ir import Quantisation
from tpucc.passes.move_integers import hoist_dequantize
from tpucc.runtime.check import compare_with_reference, random_inputs

SOURCE = """
weights random(seed=1)
model small(x: f32[8, 6]):
    weight a: f32[6, 6]
    q = quantize(tanh(x @ a), 0.01, 28)
    {move}
    return {result}
"""
REAL = "dequantize(q, 0.01, 28) @ a"
MOVES = [
    "q = concat([q, q], axis=0)",
    "q = q[2:6]",
    "q = concat([q[0:3], q[5:8]], axis=0)",
    "q = concat([q, q], axis=1)\n    q = q[:, 3:9]",
    "q = transpose(q, [1, 0])[0:6, 0:6]",
    "q = reshape(q, [2, 4, 6])\n    q = q[1]",
    "q = reshape(q, [2, 24])\n    q = reshape(concat([q, q[0:1]], axis=0), [12, 6])",
]


@each(product(MOVES, [0, 2]))
def test_moved_integers_compile(move: str, level: int) -> None:
    exe = tpucc.compile_source(SOURCE.format(move=move, result=REAL), level=level)
    compilation = exe.compilation
    assert compilation is not None
    assert compilation.layers is not None
    compared = compare_with_reference(exe.runtime, compilation.layers, random_inputs(exe.runtime, 3))
    assert compared
    assert not [comparison for comparison in compared if comparison.unequal]


@each(MOVES[:4])
def test_the_device_holds_them_with_the_source_s_parameters(move: str) -> None:
    """Not one value between the two products is rounded to other parameters."""
    compilation = tpucc.compile_source(SOURCE.format(move=move, result=REAL)).compilation
    assert compilation is not None
    assert compilation.layers is not None
    layers = [node for node in compilation.layers if node.type.dtype == "i8" and node.op not in ("input", "constant")]
    assert {node.type.quantisation for node in layers[1:-1]} == {Quantisation(float(np.float32(0.01)), 28)}


def moved(*, kept: bool) -> tuple[Model, list[str]]:
    """Two slices of integers, joined, turned over and dequantised; `kept`: what is turned over is also a result."""
    model = Model()
    q = model.op("quantize", model.input("x", 6, 5), name="q", scale=0.1, zero_point=3)
    parts = [model.op("slice", q, name=f"s{i}", starts=(i, 0), stops=(i + 2, 5)) for i in (0, 3)]
    turned = model.op("transpose", model.op("concat", *parts, name="c", axis=0), name="t", perm=(1, 0))
    real = model.op("dequantize", turned, name="d", scale=0.1, zero_point=3)
    return model, [real, *([turned] if kept else [])]


@pytest.mark.parametrize("kept", [False, True])
def test_the_values_stay(kept: bool) -> None:
    model, results = moved(kept=kept)
    graph = model.build(*results)
    after = applied(graph, hoist_dequantize)
    inputs = {"x": np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)}
    for before, now in zip(outputs_of(graph, inputs), outputs_of(after, inputs), strict=True):
        np.testing.assert_array_equal(before, now)
    (source,) = (node for node in after if node.op == "dequantize")
    assert source.operands == ("q",)
    assert after["d"].op == "transpose"
    assert ("t" in after.by_name) == kept


def test_nothing_to_move_leaves_the_graph() -> None:
    model = Model()
    q = model.op("quantize", model.input("x", 6, 5), name="q", scale=0.1, zero_point=3)
    graph = model.build(model.op("dequantize", q, name="d", scale=0.1, zero_point=3), q)
    assert hoist_dequantize.run(graph, None) is graph  # type: ignore[arg-type]


def test_a_chain_of_moves_may_be_long() -> None:
    """Longer than Python's calls may be nested."""
    model = Model()
    turned = model.op("quantize", model.input("x", 6, 6), name="q", scale=0.1, zero_point=3)
    for number in range(1500):
        turned = model.op("transpose", turned, name=f"t{number}", perm=(1, 0))
    after = applied(model.build(model.op("dequantize", turned, name="d", scale=0.1, zero_point=3)), hoist_dequantize)
    (source,) = (node for node in after if node.op == "dequantize")
    assert source.operands == ("q",)
    assert len(after) == 1500 + 3
