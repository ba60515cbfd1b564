"""What a compiled model takes and gives: one array, several by name, integers instead of floats."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tpucc
from tests.support.cases import each

SOFTMAX = """
param batch = 4
weights random(seed=1)
model m(x: f32[batch, 6] in [-1.0, 1.0]) -> f32[batch, 3]:
    weight w: f32[6, 3]
    return softmax(x @ w)
"""


@each(product([4, 1, 9], [1, 2]))
def test_integers_before_the_last_operator_of_the_host_have_names(rows: int, cores: int) -> None:
    exe = tpucc.compile_source(SOFTMAX, cores=cores)
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 6)).astype(np.float32)
    ((name, found),) = exe.run_quantized(x).items()
    assert name not in exe.runtime.outputs
    assert found.values.shape == (rows, 3)
    logits = found.scale * (found.values.astype(np.float32) - np.float32(found.zero_point))
    expected = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(exe.run(x)["out"], expected / expected.sum(1, keepdims=True), rtol=1e-5)


def test_a_model_that_the_host_computes_has_no_integers() -> None:
    exe = tpucc.compile_source("model m(x: f32[2, 3]) -> f32[2, 3]:\n    return softmax(x)\n")
    with pytest.raises(tpucc.InputError, match="E0435"):
        exe.run_quantized(np.zeros((2, 3)))


def test_one_array_is_the_input_of_a_model_with_one() -> None:
    exe = tpucc.compile_source(SOFTMAX)
    x = np.ones((4, 6), np.float32)
    assert exe.run(x)["out"].tobytes() == exe.run(x=x)["out"].tobytes() == exe.run({"x": x})["out"].tobytes()
    assert exe.run(x.tolist())["out"].tobytes() == exe.run(x)["out"].tobytes()
    two = tpucc.compile_source("model m(x: f32[2, 3], y: f32[2, 3]) -> f32[2, 3]:\n    return x + y\n")
    with pytest.raises(tpucc.InputError, match=r"E0436.*the model takes x and y"):
        two.run(np.zeros((2, 3)))


@each(
    [
        ((6, 5, 3), (2, 3, 6, 5), "images have their channels last here: x.transpose(0, 2, 3, 1)"),
        ((64,), (64,), "one row is a batch of 1: x.reshape(1, 64)"),
        ((8, 8, 1), (8, 8, 1), "one row is a batch of 1: x.reshape(1, 8, 8, 1)"),
        ((64,), (50, 8, 8), "each row has as many values: x.reshape(50, 64)"),
        ((8, 8, 1), (50, 8, 8), "each row has as many values: x.reshape(50, 8, 8, 1)"),
        ((64,), (64, 50), "x.T has a row for each of its 50 columns"),
        ((64,), (50, 63), "n is any number of rows"),
        ((64,), (), "n is any number of rows"),
    ]
)
def test_an_input_of_another_shape_is_told_how_to_fit(row: tuple[int, ...], given: tuple[int, ...], mend: str) -> None:
    sizes = ", ".join(map(str, (2, *row)))
    exe = tpucc.compile_source(f"model m(x: f32[{sizes}]) -> f32[{sizes}]:\n    return relu(x)\n")
    with pytest.raises(tpucc.InputError) as caught:
        exe.run(np.zeros(given, np.float32))
    assert caught.value.diagnostics[0].help == (mend,)
