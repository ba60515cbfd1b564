"""Convolution and pooling against loops over every pixel, and TensorFlow's padding rule against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tpucc.ir.graph import NoAttributes
from tpucc.ir.types import f32
from tpucc.ops import OPS
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.opdef import Array, RuleError
from tpucc.ops.windows import Padding, PoolAttributes, axes

SIDES = st.tuples(*[st.integers(0, 3)] * 4)
PADDINGS = st.one_of(st.sampled_from(["same", "valid"]), st.integers(0, 2), SIDES)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def sides(padding: Padding, image: tuple[int, int], window: tuple[int, int], stride: tuple[int, int]) -> tuple[int, int, int, int]:
    """Padding as (top, bottom, left, right), TensorFlow's rule written as in its documentation: by the remainder of the stride."""
    if padding == "valid":
        return 0, 0, 0, 0
    if padding == "same":
        found = []
        for size, k, s in zip(image, window, stride, strict=True):
            total = max(k - s, 0) if size % s == 0 else max(k - size % s, 0)
            found += [total // 2, total - total // 2]
        return found[0], found[1], found[2], found[3]
    if isinstance(padding, int):
        return padding, padding, padding, padding
    assert isinstance(padding, tuple)
    return padding


def windows(x: Array, window: tuple[int, int], stride: tuple[int, int], padding: Padding) -> list[list[list[tuple[int, int, int, int]]]]:
    """For each output row and column the real pixels that it sees: (row, column, kernel row, kernel column)."""
    height, width = x.shape[1:3]
    top, bottom, left, right = sides(padding, (height, width), window, stride)
    rows = (height + top + bottom - window[0]) // stride[0] + 1
    columns = (width + left + right - window[1]) // stride[1] + 1
    return [[_seen(i * stride[0] - top, j * stride[1] - left, window, (height, width)) for j in range(columns)] for i in range(rows)]


def _seen(row: int, column: int, window: tuple[int, int], image: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    places = [(row + r, column + s, r, s) for r in range(window[0]) for s in range(window[1])]
    return [place for place in places if 0 <= place[0] < image[0] and 0 <= place[1] < image[1]]


def fits(image: tuple[int, int], window: tuple[int, int], stride: tuple[int, int], padding: Padding) -> bool:
    top, bottom, left, right = sides(padding, image, window, stride)
    return window[0] <= image[0] + top + bottom and window[1] <= image[1] + left + right


def image(n: int, h: int, w: int, c: int) -> Array:
    """Small integers: their sums are exact, so that results can be compared for equality."""
    return np.random.default_rng(n + h * 7 + w * 31 + c).integers(-9, 10, (n, h, w, c)).astype(np.float32)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), PAIRS, PAIRS, PADDINGS)
def test_convolution_against_loops(h: int, w: int, window: tuple[int, int], stride: tuple[int, int], padding: Padding) -> None:
    x, kernel = image(2, h, w, 3), image(*window, 3, 2)
    attributes = Conv2dAttributes(stride, padding)
    if not fits((h, w), window, stride, padding):
        with pytest.raises(RuleError) as caught:
            OPS["conv2d"].infer(attributes, [f32(*x.shape), f32(*kernel.shape)])
        assert caught.value.code == "E0312"
        return
    seen = windows(x, window, stride, padding)
    expected = np.zeros((2, len(seen), len(seen[0]), 2), np.float32)
    for n, i, j, f in np.ndindex(expected.shape):
        expected[n, i, j, f] = sum(float(x[n, a, b, c] * kernel[r, s, c, f]) for a, b, r, s in seen[i][j] for c in range(3))
    assert OPS["conv2d"].infer(attributes, [f32(*x.shape), f32(*kernel.shape)]) == f32(*expected.shape)
    assert np.array_equal(OPS["conv2d"].reference(attributes, [x, kernel]), expected)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), PAIRS, st.none() | PAIRS, PADDINGS)
def test_pooling_against_loops(h: int, w: int, size: tuple[int, int], stride: tuple[int, int] | None, padding: Padding) -> None:
    step = stride or size
    assume(fits((h, w), size, step, padding))
    x = image(2, h, w, 3)
    top, bottom, left, right = sides(padding, (h, w), size, step)
    attributes = PoolAttributes(size, stride, padding)
    if max(top, bottom) >= size[0] or max(left, right) >= size[1]:
        with pytest.raises(RuleError, match="padding must be smaller"):
            OPS["max_pool"].infer(attributes, [f32(*x.shape)])
        return
    seen = windows(x, size, step, padding)
    largest, average = (np.zeros((2, len(seen), len(seen[0]), 3), np.float32) for _ in range(2))
    for n, i, j, c in np.ndindex(largest.shape):
        values = [float(x[n, a, b, c]) for a, b, _, _ in seen[i][j]]
        largest[n, i, j, c] = max(values)
        average[n, i, j, c] = np.float32(sum(values)) / np.float32(len(values))
    for name, expected in (("max_pool", largest), ("avg_pool", average)):
        assert OPS[name].infer(attributes, [f32(*x.shape)]) == f32(*expected.shape)
        assert np.array_equal(OPS[name].reference(attributes, [x]), expected)


@pytest.mark.parametrize(
    ("size", "window", "stride", "before", "after"),
    [(28, 2, 1, 0, 1), (5, 3, 2, 1, 1), (4, 3, 2, 0, 1), (6, 3, 2, 0, 1), (7, 1, 3, 0, 0), (2, 5, 1, 2, 2), (3, 4, 4, 0, 1)],
)
def test_same_padding_of_tensorflow(size: int, window: int, stride: int, before: int, after: int) -> None:
    height, width = axes((1, size, size, 1), (window, window), (stride, stride), "same")
    assert (height.before, height.after) == (width.before, width.after) == (before, after)
    assert height.outputs == math.ceil(size / stride)


def test_padding_never_wins_a_maximum_and_never_counts_in_an_average() -> None:
    x = np.full((1, 3, 3, 1), -5, np.float32)
    for name in ("max_pool", "avg_pool"):
        assert np.array_equal(OPS[name].reference(PoolAttributes(2, 2, "same"), [x]), np.full((1, 2, 2, 1), -5, np.float32))


def test_the_default_stride_is_the_size() -> None:
    assert OPS["max_pool"].infer(PoolAttributes((3, 2)), [f32(1, 9, 8, 4)]) == f32(1, 3, 4, 4)
    assert OPS["max_pool"].infer(PoolAttributes(), [f32(1, 28, 28, 4)]) == f32(1, 14, 14, 4)


def test_global_average() -> None:
    x = image(3, 4, 5, 2)
    found = OPS["global_avg_pool"].reference(NoAttributes(), [x])
    for n, c in np.ndindex(3, 2):
        assert found[n, c] == pytest.approx(sum(float(x[n, i, j, c]) for i in range(4) for j in range(5)) / 20, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("size", [65_535, (65_535, 1)])
def test_absurd_windows_take_no_time(size: Any) -> None:
    x = image(1, 4, 3, 2)
    found = OPS["max_pool"].reference(PoolAttributes(size, 1, "same"), [x])
    assert found.shape == x.shape


def test_absurd_padding_of_a_convolution_takes_no_memory() -> None:
    attributes = Conv2dAttributes(65_535, 65_535)
    found = OPS["conv2d"].reference(attributes, [image(1, 2, 2, 1), np.ones((1, 1, 1, 1), np.float32)])
    assert found.shape == OPS["conv2d"].infer(attributes, [f32(1, 2, 2, 1), f32(1, 1, 1, 1)]).shape == (1, 3, 3, 1)
    assert found[0, 1, 1, 0] == image(1, 2, 2, 1)[0, 0, 0, 0]
    assert np.count_nonzero(found) <= 1
