"""What a compiled model takes and gives: one array, several by name, integers instead of floats."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.explain.noise import Noise
from tpucc.explain.quality import not_finite
from tpucc.runtime.check import float_reference

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


NORMS = """
weights random(seed=1)
model m(x: f32[6, 8] in [-1.0, 1.0]) -> (f32[6, 8], f32[6, 8], f32[6, 8]):
    weight w: f32[8, 8]
    h = x @ w
    c = h - mean(h, axis=1, keepdims=True)
    e = exp(h)
    y = x / maximum(sqrt(sum(x * x, axis=1, keepdims=True)), 1e-30)
    return y, c / sqrt(mean(c * c, axis=1, keepdims=True) + 1e-9), e / sum(e, axis=1, keepdims=True)
"""


def test_norms_of_rows_of_which_the_squares_are_small_are_as_in_float32() -> None:
    exe = tpucc.compile_source(NORMS)
    x = (np.random.default_rng(0).uniform(-1, 1, (6, 8)) * np.float32([[1], [0.5], [0.1], [0.05], [0.03], [1]])).astype(np.float32)
    graph = exe.compilation.graph
    assert graph is not None
    found, meant = exe.run(x), float_reference(graph, {"x": x})
    assert np.array_equal(found["y"], meant["y"])
    assert max(np.abs(found[name] - meant[name]).max() for name in meant) < 0.4  # the row of 0.03 has a few steps of h


@each([((1.0, np.nan), "nan", -np.inf), ((np.inf, 2.0), "inf", -np.inf), ((1.0, 2.0), "0", np.inf)])
def test_an_error_that_is_not_a_number_is_the_largest(found: tuple[float, ...], largest: str, ratio: float) -> None:
    noise = Noise()
    noise.add(np.float64([1, 2]), np.float64(found))
    noise.add(np.float64([np.inf, np.nan, 3]), np.float64([np.inf, np.nan, 3]))
    assert f"{noise.largest:g}" == largest
    assert noise.sqnr == ratio


def test_outputs_that_are_not_finite_are_noted() -> None:
    values = {"y": np.float32([[1, np.inf], [np.nan, 0]]), "n": np.int32([1]), "z": np.float32(np.nan)}
    assert list(not_finite(values)) == ["y: 2 values of 4 are not finite; y[0, 1] is infinite", "z: 1 value of 1 is not finite; z is NaN"]


@each(
    [
        ("(x @ w)", "matmul (line 4) is in integers, and 0 where it is less than half a step: there div (line 4) isn't finite"),
        (
            "((x[:, :1] * x[:, :1]) @ (w[:1] * 0.0 + 1.0))",
            "matmul (line 4) is in integers, and 0 where it is less than half a step: there div (line 4) isn't finite",
        ),
        ("maximum(x @ w, 0.0)", "maximum (line 4) is in integers, and 0 where"),
        ("sqrt(relu(x @ w))", ""),
        ("sum(relu(x), axis=1, keepdims=True), relu(x) @ w", ""),
        ("maximum(x @ w, 0.001)", ""),
        ("(sum(abs(x @ w), axis=1, keepdims=True) + 0.1)", ""),
        ("exp(x @ w)", "exp (line 4)"),
        ("(x @ w + 9.0)", ""),
    ]
)
def test_what_integers_do_to_a_divisor_is_noted(divisor: str, note: str) -> None:
    head = "weights random(seed=1)\nmodel m(x: f32[4, 6] in [-1.0, 1.0]):\n    weight w: f32[6, 3]\n"
    notes = tpucc.compile_source(f"{head}    return x[:, :3] / {divisor}\n").compilation.notes
    found = [text for text in notes if "stay in float32" not in text or "exp" in text]
    assert len(found) == bool(note), found
    assert all(note in text for text in found)
