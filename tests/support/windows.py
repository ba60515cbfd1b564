"""Windows over images, counted pixel by pixel, and images to try them with."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tpucc.ops import OPS
from tpucc.ops.opdef import Array, Defined
from tpucc.ops.windows import Padding

SIDES = st.tuples(*[st.integers(0, 3)] * 4)
PADDINGS = st.one_of(st.sampled_from(["same", "valid"]), st.integers(0, 2), SIDES)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
CONVOLUTIONS = (st.integers(1, 6), st.integers(1, 6), PAIRS, PAIRS, PADDINGS)


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


def reaching(size: int, window: int, stride: int, before: int, after: int) -> list[int]:
    """The first pixels of windows that go on until the padded image is covered, and begin in the image or the padding before it."""
    if window - stride >= before + size + after:
        return []
    starts = [-before]
    while starts[-1] + window < size + after and starts[-1] + stride < size:
        starts.append(starts[-1] + stride)
    return starts


def image(n: int, h: int, w: int, c: int) -> Array:
    """Small integers: their sums are exact, so that results can be compared for equality."""
    return np.random.default_rng(n + h * 7 + w * 31 + c).integers(-9, 10, (n, h, w, c)).astype(np.float32)


def in_passes(a: Array, b: Array) -> Array:
    """A product in passes of 4, each rounded to a multiple of 100: of which products share a pass, the result tells."""
    passes = [np.round(a[:, k : k + 4].astype(np.float64) @ b[k : k + 4], -2) for k in range(0, a.shape[1], 4)]
    return np.asarray(sum(passes), np.float32)


def in_passes_alone(terms: Sequence[float]) -> float:
    return float(sum(np.round(sum(terms[k : k + 4]), -2) for k in range(0, len(terms), 4)))


def computed(name: str, attributes: Any, *operands: Array) -> Array:
    floats = OPS[name].floats
    assert isinstance(floats, Defined)
    machine: Any = SimpleNamespace(product=in_passes, products=lambda a, b: np.stack([*map(in_passes, a, b)]))
    return floats.function(attributes, operands, machine)


def filled(kernel: Array, dilation: tuple[int, int], groups: int) -> Array:
    """The kernel [R, S, C/groups, F] of a dilated convolution in groups as one of a plain convolution: with zeros."""
    rows, columns, depth, filters = kernel.shape
    result = np.zeros(((rows - 1) * dilation[0] + 1, (columns - 1) * dilation[1] + 1, depth * groups, filters), kernel.dtype)
    for f in range(filters):
        first = f // (filters // groups) * depth
        result[:: dilation[0], :: dilation[1], first : first + depth, f] = kernel[..., f]
    return result
