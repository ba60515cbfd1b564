"""Arrays for a model's inputs: what belongs together stays together, and help for one that doesn't fit is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.diagnostics import InputError, Origin
from tpucc.explain.quality import held_ranges
from tpucc.ir import NoAttributes, Node, TensorType
from tpucc.passes.input_arrays import batch_count, batches, checked_inputs


def entry(name: str, dtype: Any, shape: tuple[int, ...]) -> Node:
    return Node(name, "input", (), NoAttributes(), TensorType(dtype, shape), Origin())


def test_batches_of_different_leading_sizes_stay_together() -> None:
    """`np.resize` of no rows would give zeros."""
    inputs = [entry("a", "f32", (4, 1)), entry("b", "f32", (1, 1))]
    number = np.arange(1, 11, dtype=np.float32)[:, None]
    arrays = {"a": np.repeat(number, 4, axis=0), "b": number}
    for limit, count in ((0, 10), (8, 2), (3, 1), (100, 10)):
        found = list(batches(inputs, arrays, limit))
        assert len(found) == batch_count(inputs, arrays, limit) == count
        assert all(np.all(part["a"] == part["b"]) and part["b"].all() for part in found)


@each(["f32", "i32"])
def test_the_help_for_a_scalar_is_true(dtype: str) -> None:
    node, array = entry("s", dtype, ()), np.ones(1, np.int32)
    with pytest.raises(InputError) as caught:
        checked_inputs([node], {"s": array}, "calibration")
    assert caught.value.diagnostics[0].help[1] == "s.reshape(()) is a scalar"
    assert checked_inputs([node], {"s": array.reshape(())}, "calibration")["s"] == 1


@each([(0.01, 0.1), (0.1, 0.01)])
def test_of_two_scales_the_narrower_is_told(one: float, other: float) -> None:
    body = f"dequantize(quantize(x, {one})) @ w + dequantize(quantize(x, {other})) @ v"
    source = f"weights random(seed=1)\nmodel m(x: f32[4, 8]):\n    weight w: f32[8, 8]\n    weight v: f32[8, 8]\n    return {body}\n"
    prologue = tpucc.compile_source(source).runtime.host.prologue
    assert round(held_ranges(prologue)["x"].high, 2) == 1.27


def test_a_packed_image_has_a_held_range() -> None:
    source = (
        "weights random(seed=1)\nmodel m(x: f32[1, 224, 224, 3]):\n    weight w: f32[7, 7, 3, 16]\n"
        '    return relu(conv2d(x, w, stride=2, padding="same"))\n'
    )
    runtime = tpucc.compile_source(source).runtime
    assert "patches" in runtime.program.prologue
    assert "x" in held_ranges(runtime.host.prologue)
