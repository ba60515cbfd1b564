"""Quantised exports say which function ends each layer, whatever the weights are called and into how many layers an operator is divided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.runtime.check import random_inputs

WORDS = ("w", "y", "x", "h", "up", "dec", "weight", "table", "band", "f32", "0", "1", "2", "13")
"""Of which keys are made: values of the source, numbers, and what passes add to names."""
FUNCTIONS = (
    "sigmoid({})",
    "gelu({})",
    "leaky_relu({}, alpha=0.1)",
    "tanh({})",
    "relu6({})",
    "hard_swish({})",
    "elu({})",
    "relu({})",
    "silu({}) * 0.5",
    "clip({}, -0.2, 0.3)",
    "{}",
)
IMAGE, ROWS, LARGE = "2, 4, 4, 8", "6, 8", "1, 64, 64, 8"
LAYERS = {
    "two by two phases": (IMAGE, (4, 4, 8, 3), 3, "conv_transpose2d(x, w, stride=2, padding=1) + b"),
    "nine phases": (IMAGE, (3, 3, 8, 3), 3, "conv_transpose2d(x, w, stride=3) + b"),
    "phases of lines": (IMAGE, (4, 3, 8, 3), 3, "conv_transpose2d(x, w, stride=(2, 1), padding=1) + b"),
    "phases without kernels": (IMAGE, (1, 1, 8, 3), 3, "conv_transpose2d(x, w, stride=2) + b"),
    "one phase": (IMAGE, (3, 3, 8, 3), 3, "conv_transpose2d(x, w, padding=1) + b"),
    "groups": (IMAGE, (3, 3, 4, 6), 6, "conv2d(x, w, padding=1, groups=2) + b"),
    "each channel": (IMAGE, (3, 3, 1, 8), 8, "conv2d(x, w, padding=1, groups=8) + b"),
    "pixels again": (IMAGE, (3, 3, 8, 3), 3, "resize(conv2d(x, w, padding=1) + b, (8, 8))"),
    "bands": (LARGE, (3, 3, 8, 8), 8, "conv2d(x, w, padding=1) + b"),
    "products": (ROWS, (8, 8), 8, "sigmoid(x @ w + b) @ w + b"),
    "joined": (ROWS, (8, 8), 8, "concat([x @ w, x @ w + b, x], axis=1)"),
    "parts": (ROWS, (8, 8), 8, "(x @ w + b)[:, :4] * (x @ w + b)[:, 4:]"),
}
"""By their titles layers: shapes of the operand and of the weight, the bias's size, and the text."""
SEEDS = 40


def drawn_source(seed: int) -> str:
    """A layer with a function and keys of weights, each drawn; layers and functions in turn."""
    draw = np.random.default_rng(seed)
    shape, weight, columns, text = list(LAYERS.values())[seed % len(LAYERS)]
    function = FUNCTIONS[seed % len(FUNCTIONS)]
    key = ".".join(draw.choice(WORDS, draw.integers(1, 4)))
    return (
        f'weights "drawn.npz"\nmodel m(x: f32[{shape}] in [-1.0, 1.0]):\n    weight w: f32{list(weight)} = "{key}"\n'
        f'    weight b: f32[{columns}] = "{key}.bias"\n    y = {function.format(text)}\n    return y\n'
    )


@pytest.mark.soak
@pytest.mark.long
@each([(seed,) for seed in range(SEEDS)], usual=len(LAYERS))
def test_a_layer_of_any_name_comes_back_with_the_same_integers(seed: int, tmp_path: Path) -> None:
    """Weights are one number or its opposite: each part of a kernel has the scale of the whole."""
    draw = np.random.default_rng(seed)
    _, weight, columns, _ = list(LAYERS.values())[seed % len(LAYERS)]
    source = drawn_source(seed)
    key = source.split('"')[3]
    signs = (0.1 * draw.choice([-1, 1], weight)).astype(np.float32)
    bias = draw.normal(0, 0.1, columns).astype(np.float32)
    room = {"unified_buffer_rows": 2048}
    np.savez(tmp_path / "drawn.npz", **{key: signs, f"{key}.bias": bias})
    exe = tpucc.compile_source(source, folder=tmp_path, overrides=room)
    tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
    again = tpucc.import_onnx(tmp_path / "m.onnx").compile(overrides=room)
    inputs = random_inputs(exe.runtime, seed)
    np.testing.assert_array_equal(*(made.run(inputs)["y"] for made in (exe, again)))


STEPS = """weights random(seed=0)
def step(x, h, name):
    weight w: f32[8, 8] = "{{name}}.kernel"
    weight u: f32[8, 8] = "{{name}}.recurrent"
    z = sigmoid(x @ w + h @ u)
    return z * tanh(x @ u) + (1.0 - z) * h

model m(x: f32[4, 3, 8] in [-1.0, 1.0]):
    h = step(x[:, 0], zeros((4, 8)), "{key}")
    h = step(x[:, 1], h, "{key}")
    y = step(x[:, 2], h, "{key}")
    return y
"""


@pytest.mark.soak
@each(["h", "y.1", "gru.0", "1.2.table", "z.cell", "x"])
def test_steps_of_any_name_come_back_with_the_same_integers(key: str, tmp_path: Path) -> None:
    exe = tpucc.compile_source(STEPS.format(key=key))
    tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
    inputs = random_inputs(exe.runtime, 0)
    np.testing.assert_array_equal(*(made.run(inputs)["y"] for made in (exe, tpucc.import_onnx(tmp_path / "m.onnx").compile())))
