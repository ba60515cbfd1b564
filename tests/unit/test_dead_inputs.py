"""A layer whose input is always zero: its result is its bias."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import one_of

DENSE = """
weights "w.npz"
calibration "c.npz"
model m(x: f32[4, 8] in [0.0, 1.0]):
    weight w: f32[8, 3]
    weight b: f32[3]
    return relu(x - 100) @ w + b
"""
IMAGE = """
weights "w.npz"
calibration "c.npz"
model m(x: f32[4, 3, 3, 8] in [0.0, 1.0]):
    weight w: f32[2, 2, 8, 3]
    weight b: f32[3]
    return conv2d(relu(x - 100), w) + b
"""
THEN = DENSE.replace("return relu(x - 100) @ w + b", "h = relu(x - 100) @ w + b\n    return relu(h) @ v").replace(
    "    weight b", "    weight v: f32[3, 2]\n    weight b"
)
BIASES = {"small": [0.003, -0.002, 0.001], "large": [3000.0, -2.0, 0.5], "tiny": [3e-5, -2e-5, 1e-5]}


SIZES, LEVELS = (0.01, 1.0, 30.0), (0, 1, 2)
SOURCES = {"dense": DENSE, "image": IMAGE, "two layers": THEN}


def cases() -> Iterator[Any]:
    """Every source with every size, bias, level and width of integers: each two of them together, all five together in `make soak`."""
    for (i, source), (j, size), (k, bias), (m, level), (n, bits) in product(*map(enumerate, (SOURCES, SIZES, BIASES, LEVELS, (8, 16)))):
        marks = pytest.mark.soak if (i + j + k + m) % 3 or (i + j + n) % 2 else ()
        yield pytest.param(SOURCES[source], size, bias, level, bits, marks=marks, id=f"{source}-{size}-{bias}-{level}-{bits}")


@pytest.mark.parametrize(("source", "size", "bias", "level", "bits"), one_of(2, list(cases())))
def test_the_bias_comes_through(source: str, size: float, bias: str, level: int, bits: int, tmp_path: Path) -> None:
    """Within a step of the result's own scale, which its largest bias fills."""
    random = np.random.default_rng(0)
    shape = (4, 3, 3, 8) if source == IMAGE else (4, 8)
    weights = {"w": (size * random.standard_normal((2, 2, 8, 3) if source == IMAGE else (8, 3))).astype(np.float32)}
    weights |= {"b": np.array(BIASES[bias], np.float32)}
    if source == THEN:
        weights["v"] = np.array([[1, 0.5], [0.25, -1], [0.5, 1]], np.float32)
    np.savez(tmp_path / "w.npz", **weights)
    x = random.random(shape, np.float32)
    np.savez(tmp_path / "c.npz", x=x)
    exe = tpucc.compile_source(source, folder=tmp_path, level=level, activation_bits=bits)
    [found] = exe.run(x=x).values()
    wanted = np.maximum(weights["b"], 0) @ weights["v"] if source == THEN else weights["b"]
    step = np.abs(wanted).max() / (100 if bits == 8 or source == THEN else 1000)  # weights have eight bits
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), atol=step)


def test_the_bias_of_the_issue(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", w=np.ones((8, 3), np.float32), b=np.full(3, 0.003, np.float32))
    np.savez(tmp_path / "c.npz", x=np.ones((4, 8), np.float32))
    for level in (0, 1, 2):
        [found] = tpucc.compile_source(DENSE, folder=tmp_path, level=level).run(x=np.ones((4, 8), np.float32)).values()
        np.testing.assert_allclose(found, 0.003, rtol=1e-3)
