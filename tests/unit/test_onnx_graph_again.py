"""A file in float32 gives the operators of the source again: in the same order, with the same weights, and so in the same integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tpucc.runtime.check import random_inputs

BATCH_NORM = """
model net(x: f32[3, 2, 4] in [-1.0, 1.0]) -> f32[3, 2, 4]:
    weight g: f32[4] = "g"
    weight b: f32[4] = "b"
    weight m: f32[4] = "m"
    weight v: f32[4] = "v"
    y = sign(batch_norm(x, g, b, m, v))
    return y
"""
RESHAPED_NORM = """
model net(x: f32[3, 2, 4] in [-1.0, 1.0]) -> f32[3, 2, 4]:
    weight g: f32[4] = "g"
    weight b: f32[4] = "b"
    weight m: f32[4] = "m"
    weight v: f32[4] = "v"
    h = batch_norm(reshape(x, (6, 4)), g, b, m, v)
    y = reshape(h, (3, 2, 4))
    return y
"""
RESPONSE_NORM = """
model net(x: f32[3, 4] in [-1.0, 1.0]) -> f32[3, 1, 2, 2]:
    y = lrn(reshape(x, (3, 1, 2, 2)), 2, beta=0.5)
    return y
"""
ODD_NORM = """
model net(x: f32[3, 8] in [-1.0, 1.0]) -> f32[3, 2, 4]:
    y = lrn(reshape(x, (3, 2, 4)), 3)
    return y
"""
IMAGE_NORM = """
model net(x: f32[2, 4, 4, 3] in [-1.0, 1.0]) -> f32[2, 3, 3, 5]:
    weight k: f32[2, 2, 3, 5] = "k"
    h = conv2d(x, k)
    y = lrn(h, 4)
    return y
"""
NOT_EQUAL = """
model net(x: f32[3, 8] in [-1.0, 1.0]) -> f32[3, 8]:
    y = x != 0.0
    return y
"""
CONSTANT = """
model net(x: f32[3, 4] in [-1.0, 1.0]) -> f32[3, 4]:
    h = x * constant([0.5, -0.25, 1.5, 2.0])
    y = h + constant([[0.1], [2.0], [-3.0]])
    return y
"""
IMAGE_CONSTANT = """
model net(x: f32[2, 4, 4, 3] in [-1.0, 1.0]) -> f32[2, 3, 3, 2]:
    weight k: f32[2, 2, 3, 2] = "k"
    y = conv2d(x, k) - constant([0.5, 0.25])
    return y
"""
KEPT_AXIS = """
model net(x: f32[3, 4, 5, 2] in [-1.0, 1.0]) -> f32[3, 1, 5, 2], f32[3, 1, 1, 2], f32[3, 4, 5, 1]:
    a = min(x, axis=1, keepdims=True)
    b = mean(x, axis=(1, 2), keepdims=True)
    c = max(x, axis=3, keepdims=True)
    return a, b, c
"""

MOVES = """
model net(x: f32[3, 2, 4] in [-1.0, 1.0]) -> f32[3, 8], f32[3, 2, 4], f32[1, 3, 1], f32[3, 2]:
    weight w: f32[8, 8] = "w"
    a = tanh(abs(flatten(x)) @ w)
    b = reshape(sigmoid(a), (3, 2, 4)) * 0.3
    h = abs(reshape(relu(transpose(x[0:1], (0, 2, 1))), (1, 4, 2)))
    weight v: f32[4, 3] = "v"
    c = transpose(h[:, :, 1:2], (0, 2, 1)) @ v
    d = abs(transpose(concat([x, b], axis=1), (0, 1, 2)))[:, 1:3, 2]
    return a, b, transpose(c + constant([0.5, 0.25, 1.0]), (1, 2, 0)), d
"""
"""Moves before functions of elements, also those that change nothing, or move axes of size 1 alone."""
NOWHERE = """
model net(x: f32[4, 8] in [0.0, 2.0], y: f32[1, 4, 4, 2] in [0.0, 2.0]) -> (f32[4, 8], f32[4, 8],
    f32[1, 4, 4, 2], f32[1, 2, 3, 2]):
    weight w: f32[8, 8] = "w"
    a = pad(x, ((0, 0), (0, 0))) @ w
    b = concat([x], axis=1) @ pad(w, ((0, 0), (0, 0)))
    weight k: f32[1, 1, 2, 2] = "k"
    c = conv2d(resize(y, (4, 4)), k)
    h = concat([pad(y, ((0, 0), (0, 0), (0, 0), (0, 0)))], axis=3)
    h = resize(h, (4, 4), mode="bilinear")
    return a, b, c, transpose(resize(h, (3, 2)), (0, 3, 1, 2))
"""
"""Moves that change nothing: their values are calibrated. A `resize` that the file has as rows and columns of pixels."""
RANKS = """
model net(x: f32[2, 1] in [0.0, 2.0], y: f32[4] in [-1.0, 1.0], i: f32[1, 4, 4, 2] in [-1.0, 1.0],
    s: f32[]) -> (f32[2, 2], f32[2, 4], f32[2, 4], f32[2, 4], f32[1, 4, 4, 2], f32[1, 4, 4, 2]):
    a = y[0:2] * x
    b = where(x > y, 0.5, x)
    weight c: f32[2, 1] = "c"
    h = y - c
    p = s * y + x
    weight k: f32[1, 1, 2, 2] = "k"
    h2 = conv2d(i, k)
    g = h2 * s
    return a, b, h, p, g, where(h2 < 0.5, 1.0, global_avg_pool(i))
"""
"""Values of different rank that broadcast have their own shapes, also behind a comparison that is turned to another layout."""
RECURRENCE = """
def step(x, h, c):
    weight w: f32[3, 8] = "w"
    weight r: f32[4, 8] = "r"
    weight b: f32[8] = "b"
    z = x @ w + (h @ r + b)
    return sigmoid(z[:, 0:4]) * c + tanh(z[:, 4:8])

model net(x: f32[2, 5, 3] in [-1.0, 1.0]) -> f32[2, 4]:
    h = zeros([2, 4])
    c = zeros([2, 4])
    for t in range(5):
        c = step(x[:, t], h, c)
        h = tanh(c)
    return h
"""
"""The first step is the others', products with zeros included."""


@pytest.mark.long
@each(
    [
        BATCH_NORM,
        RESHAPED_NORM,
        RESPONSE_NORM,
        ODD_NORM,
        IMAGE_NORM,
        NOT_EQUAL,
        CONSTANT,
        IMAGE_CONSTANT,
        KEPT_AXIS,
        MOVES,
        NOWHERE,
        RANKS,
        RECURRENCE,
    ]
)
def test_the_source_comes_back(source: str, tmp_path: Path) -> None:
    (tmp_path / "net.tpu").write_text(f"weights random(seed=1)\n{source}", encoding="utf-8")
    first = tpucc.compile(tmp_path / "net.tpu")
    tpucc.export_onnx(first, tmp_path / "net.onnx")
    model = tpucc.import_onnx(tmp_path / "net.onnx")
    assert model.source[model.source.index(source.split()[0]) :] == source.lstrip()
    inputs = random_inputs(first.runtime, seed=2)
    again = model.compile()
    assert again.stats["cycles"] == first.stats["cycles"]
    for name, values in first.run(inputs).items():
        np.testing.assert_array_equal(again.run(inputs)[name], values)


def test_what_is_not_equal_is_one_comparison_in_all_files(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node
    nodes = [node("Equal", ["x", "z"], ["e"]), node("Not", ["e"], ["n"]), node("Cast", ["n"], ["y"], to=1)]
    onnx.save(model_of(nodes, inputs={"x": [2, 4], "z": [2, 4]}), tmp_path / "net.onnx")
    assert "x != z" in tpucc.import_onnx(tmp_path / "net.onnx").source
