"""Convolution and pooling against loops over every pixel, and TensorFlow's padding rule against its definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tests.support.windows import CONVOLUTIONS, PADDINGS, PAIRS, computed, filled, fits, image, in_passes_alone, reaching, sides, windows
from tpucc.ir import NoAttributes, f32
from tpucc.ops import OPS
from tpucc.ops.avg_pool import AvgPoolAttributes
from tpucc.ops.axis import Axis
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.conv_transpose2d import ConvTranspose2dAttributes
from tpucc.ops.lrn import LrnAttributes
from tpucc.ops.opdef import Array, Defined, RuleError
from tpucc.ops.resize import ResizeAttributes
from tpucc.ops.windows import Padding, PoolAttributes, axes


@examples(30, 15_000)
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


@examples(30, 10_000)
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
        given = OPS[name].attributes(size, stride, padding)
        assert OPS[name].infer(given, [f32(*x.shape)]) == f32(*expected.shape)
        assert np.array_equal(OPS[name].reference(given, [x]), expected)


@pytest.mark.long
@examples(40, 2_500)
@given(st.integers(1, 7), st.integers(1, 6), PAIRS, st.none() | PAIRS, st.tuples(*[st.integers(0, 2)] * 4), st.booleans(), st.booleans())
def test_pools_that_reach_beyond_the_end(
    h: int, w: int, size: tuple[int, int], stride: tuple[int, int] | None, padding: tuple[int, int, int, int], ceil: bool, count: bool
) -> None:
    """And averages of padding that counts: of what lies in the padded image, and not beyond."""
    step = stride or size
    top, bottom, left, right = padding
    assume(max(top, bottom) < size[0] and max(left, right) < size[1])
    rows, columns = reaching(h, size[0], step[0], top, bottom), reaching(w, size[1], step[1], left, right)
    if not ceil:
        rows = list(range(-top, h + bottom - size[0] + 1, step[0]))
        columns = list(range(-left, w + right - size[1] + 1, step[1]))
    x, attributes = image(2, h, w, 3), AvgPoolAttributes(size, stride, padding, ceil, count)
    if not rows or not columns:
        with pytest.raises(RuleError, match="is more than the image's"):
            OPS["avg_pool"].infer(attributes, [f32(*x.shape)])
        return
    largest, average = (np.zeros((2, len(rows), len(columns), 3), np.float32) for _ in range(2))
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        pixels = x[:, max(row, 0) : row + size[0], max(column, 0) : column + size[1]]
        tall, wide = (min(row + size[0], h + bottom) - row, min(column + size[1], w + right) - column) if count else pixels.shape[1:3]
        largest[:, i, j] = pixels.max(axis=(1, 2))
        average[:, i, j] = pixels.sum(axis=(1, 2)) / np.float32(tall * wide)
    pool = PoolAttributes(size, stride, padding, ceil)
    assert OPS["max_pool"].infer(pool, [f32(*x.shape)]) == OPS["avg_pool"].infer(attributes, [f32(*x.shape)]) == f32(*average.shape)
    assert np.array_equal(OPS["max_pool"].reference(pool, [x]), largest)
    assert np.array_equal(OPS["avg_pool"].reference(attributes, [x]), average)


@examples(30, 5_000)
@given(st.integers(1, 5), st.integers(1, 4), PAIRS, PAIRS, PADDINGS)
def test_transposed_convolution_against_loops(h: int, w: int, window: tuple[int, int], stride: tuple[int, int], padding: Padding) -> None:
    x, kernel = image(2, h, w, 3), image(*window, 3, 2)
    whole = np.zeros((2, (h - 1) * stride[0] + max(window[0], stride[0]), (w - 1) * stride[1] + max(window[1], stride[1]), 2), np.float32)
    for i, j, r, s in np.ndindex(h, w, *window):
        whole[:, i * stride[0] + r, j * stride[1] + s] += x[:, i, j] @ kernel[r, s]
    if padding == "same":  # Keras: as many pixels as stride * size, what is too much shared by both ends
        over = [max(k - s, 0) for k, s in zip(window, stride, strict=True)]
        around: tuple[int, ...] = (over[0] // 2, over[0] - over[0] // 2, over[1] // 2, over[1] - over[1] // 2)
    else:
        around = sides(padding, (h, w), window, stride)
    expected = whole[:, around[0] : whole.shape[1] - around[1], around[2] : whole.shape[2] - around[3]]
    attributes, types = ConvTranspose2dAttributes(stride, padding), [f32(*x.shape), f32(*kernel.shape)]
    if whole.shape[1] <= around[0] + around[1] or whole.shape[2] <= around[2] + around[3]:
        with pytest.raises(RuleError, match="the padding leaves nothing"):
            OPS["conv_transpose2d"].infer(attributes, types)
        return
    assert OPS["conv_transpose2d"].infer(attributes, types) == f32(*expected.shape)
    assert np.array_equal(OPS["conv_transpose2d"].reference(attributes, [x, kernel]), expected)


@examples(25, 5_000)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 13), st.integers(1, 13))
def test_resize_against_loops(h: int, w: int, height: int, width: int) -> None:
    """By exact fractions of a pixel; the mixtures of integers are rounded."""
    x = image(2, h, w, 3)
    taken, mixed = np.zeros((2, height, width, 3), np.float32), np.zeros((2, height, width, 3))

    def weights(size: int, outputs: int, at: int) -> dict[int, Fraction]:
        place = min(max((Fraction(at) + Fraction(1, 2)) * size / outputs - Fraction(1, 2), Fraction(0)), Fraction(size - 1))
        first = math.floor(place)
        return {first: 1 - (place - first), min(first + 1, size - 1): place - first} if place > first else {first: Fraction(1)}

    for i, j in np.ndindex(height, width):
        taken[:, i, j] = x[:, i * h // height, j * w // width]
        rows, columns = weights(h, height, i), weights(w, width, j)
        mixed[:, i, j] = sum(float(p * q) * x[:, a, b].astype(np.float64) for a, p in rows.items() for b, q in columns.items())
    assert np.array_equal(OPS["resize"].reference(ResizeAttributes((height, width)), [x]), taken)
    found = OPS["resize"].reference(ResizeAttributes((height, width), "bilinear"), [x])
    np.testing.assert_allclose(found, mixed, rtol=0, atol=1e-5)


@each([1, 2, 3, 4, 9])
def test_local_response_normalisation_against_loops(size: int) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 5))
    expected = np.zeros_like(x)
    for n, i, c in np.ndindex(x.shape):
        near = [x[n, i, k] ** 2 for k in range(c - math.floor((size - 1) / 2), c + math.ceil((size - 1) / 2) + 1) if 0 <= k < 5]
        expected[n, i, c] = x[n, i, c] / (2.0 + 0.5 / size * sum(near)) ** 0.75
    np.testing.assert_allclose(OPS["lrn"].reference(LrnAttributes(size, 0.5, 0.75, 2.0), [x]), expected, rtol=1e-12)


def test_pools_of_one_window_that_is_larger_than_the_image() -> None:
    """As in PyTorch: 2 pixels under a window of 3 with a stride of 2 have one output with `ceil`, and "same" has the outputs it had."""
    assert OPS["max_pool"].infer(PoolAttributes(3, 2, ceil=True), [f32(1, 2, 2, 4)]) == f32(1, 1, 1, 4)
    for size, stride in itertools.product(range(1, 5), repeat=2):
        given = [PoolAttributes(size, stride, "same", ceil) for ceil in (False, True)]
        assert len({OPS["max_pool"].infer(attributes, [f32(1, 7, 8, 1)]) for attributes in given}) == 1


@examples(50, 5_000)
@given(*CONVOLUTIONS, st.tuples(st.integers(1, 4), st.integers(1, 3)), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))
def test_dilation_and_groups_against_zeros_in_the_kernel(
    h: int,
    w: int,
    window: tuple[int, int],
    stride: tuple[int, int],
    padding: Padding,
    dilation: tuple[int, int],
    groups: int,
    c: int,
    f: int,
) -> None:
    x, kernel = image(2, h, w, c * groups), image(*window, c, f * groups)
    attributes, plain, zeros = (
        Conv2dAttributes(stride, padding, dilation, groups),
        Conv2dAttributes(stride, padding),
        filled(kernel, dilation, groups),
    )
    assume(fits((h, w), (zeros.shape[0], zeros.shape[1]), stride, padding))
    y = OPS["conv2d"].reference(plain, [x, zeros])
    assert OPS["conv2d"].infer(attributes, [f32(*x.shape), f32(*kernel.shape)]) == f32(*y.shape)
    assert np.array_equal(OPS["conv2d"].reference(attributes, [x, kernel]), y)


@pytest.mark.parametrize("groups", [2, 3])
def test_each_group_is_a_convolution_of_its_own(groups: int) -> None:
    """On a machine for floats, too: each has its depth in the order that is said."""
    x, kernel = image(2, 5, 4, 2 * groups) * 7, image(3, 2, 2, 4 * groups) * 5
    y = computed("conv2d", Conv2dAttributes(2, 1, 1, groups), x, kernel)
    for g in range(groups):
        channels, filters = slice(2 * g, 2 * g + 2), slice(4 * g, 4 * g + 4)
        assert np.array_equal(y[..., filters], computed("conv2d", Conv2dAttributes(2, 1), x[..., channels], kernel[..., filters]))


@examples(25, 2_500)
@given(*CONVOLUTIONS)
def test_products_of_convolutions_have_their_depth_in_the_order_that_is_said(
    h: int, w: int, window: tuple[int, int], stride: tuple[int, int], padding: Padding
) -> None:
    """Padding has its places in a pass."""
    assume(fits((h, w), window, stride, padding))
    x, kernel = image(2, h, w, 3) * 7, image(*window, 3, 2) * 5
    top, _, left, _ = sides(padding, (h, w), window, stride)
    y = computed("conv2d", Conv2dAttributes(stride, padding), x, kernel)

    def at(array: Array, n: int, row: int, column: int, channel: int) -> float:
        inside = 0 <= row < array.shape[1] and 0 <= column < array.shape[2]
        return float(array[n, row, column, channel]) if inside else 0.0

    taps = [(r, s) for r in range(window[0]) for s in range(window[1])]
    for n, i, j, f in np.ndindex(y.shape):
        places = [(i * stride[0] - top + r, j * stride[1] - left + s, r, s) for r, s in taps]
        assert y[n, i, j, f] == in_passes_alone([at(x, n, a, b, c) * float(kernel[r, s, c, f]) for a, b, r, s in places for c in range(3)])


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4), st.integers(-2, 5), st.integers(-2, 5))
def test_the_outputs_that_see_a_pixel(size: int, window: int, stride: int, before: int, after: int) -> None:
    assume(size + before + after >= window)
    axis = Axis(size, window, stride, before, after)
    starts = range(-before, size + after - window + 1, stride)
    expected = [i for i, start in enumerate(starts) if any(0 <= pixel < size for pixel in range(start, start + window))]
    assert len(starts) == axis.outputs
    assert list(range(*axis.reached)) == expected


@each([(28, 2, 1, 0, 1), (5, 3, 2, 1, 1), (4, 3, 2, 0, 1), (6, 3, 2, 0, 1), (7, 1, 3, 0, 0), (2, 5, 1, 2, 2), (3, 4, 4, 0, 1)])
def test_same_padding_of_tensorflow(size: int, window: int, stride: int, before: int, after: int) -> None:
    height, width = axes((1, size, size, 1), (window, window), (stride, stride), "same")
    assert (height.before, height.after) == (width.before, width.after) == (before, after)
    assert height.outputs == math.ceil(size / stride)


def test_padding_never_wins_a_maximum_and_never_counts_in_an_average() -> None:
    x = np.full((1, 3, 3, 1), -5, np.float32)
    for name in ("max_pool", "avg_pool"):
        assert np.array_equal(OPS[name].reference(OPS[name].attributes(2, 2, "same"), [x]), np.full((1, 2, 2, 1), -5, np.float32))


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


@pytest.mark.parametrize("padding", [65_535, (65_535, 65_534, 65_535, 65_534)])
def test_absurd_padding_of_a_convolution_takes_no_memory(padding: Any) -> None:
    attributes, kernel = Conv2dAttributes(65_535, padding), np.ones((1, 1, 1, 1), np.float32)
    found = OPS["conv2d"].reference(attributes, [image(1, 2, 2, 1), kernel])
    assert found.shape == OPS["conv2d"].infer(attributes, [f32(1, 2, 2, 1), f32(1, 1, 1, 1)]).shape
    assert found[0, 1, 1, 0] == image(1, 2, 2, 1)[0, 0, 0, 0] != 0
    assert np.count_nonzero(found) == 1
    machine: Any = SimpleNamespace(product=np.matmul, products=np.matmul)
    assert isinstance(OPS["conv2d"].floats, Defined)
    assert np.array_equal(OPS["conv2d"].floats.function(attributes, [image(1, 2, 2, 1), kernel], machine), found)
