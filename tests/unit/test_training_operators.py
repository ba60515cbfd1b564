"""The operators that only training makes: against loops, with what their rules refuse, and where the batch lies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tests.support.rule_errors import Case as Refused
from tests.support.rule_errors import require_refused
from tests.support.windows import CONVOLUTIONS, PADDINGS, PAIRS, computed, filled, fits, image, in_passes_alone, reaching, sides, windows
from tpucc.diagnostics import InputError, Origin
from tpucc.ir import NoAttributes, Node, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.batch import Batch, Case, MixedError
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.opdef import Array
from tpucc.ops.windows import Padding, PoolAttributes
from tpucc.training.operators import gradient_operator, training_operator
from tpucc.training.operators.avg_pool_gradient import AvgPoolGradientAttributes
from tpucc.training.operators.broadcast import BroadcastAttributes
from tpucc.training.operators.conv2d_input_gradient import Conv2dGradientAttributes
from tpucc.training.operators.embedding_gradient import EmbeddingGradientAttributes
from tpucc.training.operators.random_uniform import RandomUniformAttributes


@pytest.mark.parametrize("family", [training_operator, gradient_operator])
def test_a_field_that_neither_family_nor_operator_gives_is_missed(family: Any) -> None:
    with pytest.raises(TypeError, match=r"missing \d+ required .*'summary'"):
        family(name="lacking")


I32 = TensorType("i32", (4, 3))
IMAGE = f32(2, 8, 6, 3)
KERNEL = f32(3, 3, 3, 4)
ERRORS: list[Refused] = [
    ("conv2d_input_gradient", Conv2dGradientAttributes((2, 8, 6)), (f32(2, 6, 4, 4), KERNEL), "E0303", ("shape",), "found 3"),  # type: ignore[arg-type]
    ("conv2d_input_gradient", Conv2dGradientAttributes((2, 8, 6, 3)), (f32(2, 6, 4, 4), f32(3)), "E0303", (1,), "channels out"),
    ("conv2d_input_gradient", Conv2dGradientAttributes((2, 8, 6, 5)), (f32(2, 6, 4, 4), KERNEL), "E0311", ("shape", 1), "has 5"),
    ("conv2d_input_gradient", Conv2dGradientAttributes((2, 8, 6, 3)), (f32(2, 6, 4, 5), KERNEL), "E0302", (0,), "f32[2, 6, 4, 4], found"),
    ("conv2d_input_gradient", Conv2dGradientAttributes((2, 8, 2, 3)), (f32(2, 6, 4, 4), KERNEL), "E0312", (0,), "more than the image's 2"),
    ("conv2d_weight_gradient", Conv2dGradientAttributes((3, 3, 5, 4)), (IMAGE, f32(2, 6, 4, 4)), "E0311", ("shape", 0), "kernel takes 5"),
    ("conv2d_weight_gradient", Conv2dGradientAttributes((3, 3, 3, 4), 2), (IMAGE, f32(2, 6, 4, 4)), "E0302", (1,), "f32[2, 3, 2, 4]"),
    ("max_pool_gradient", PoolAttributes(), (IMAGE, f32(2, 4, 3, 3), f32(2, 4, 3, 2)), "E0302", (2,), "f32[2, 4, 3, 3], found f32[2, 4"),
    ("max_pool_gradient", PoolAttributes(9), (IMAGE, IMAGE, IMAGE), "E0312", (0,), "height of 9"),
    ("avg_pool_gradient", AvgPoolGradientAttributes((2, 8, 6, 3)), (IMAGE,), "E0302", (0,), "f32[2, 4, 3, 3], found"),
    ("avg_pool_gradient", AvgPoolGradientAttributes((2, 8)), (IMAGE,), "E0303", ("shape",), "found 2"),  # type: ignore[arg-type]
    ("embedding_gradient", EmbeddingGradientAttributes(0), (I32, f32(4, 3, 2)), "E0307", ("rows",), "at least 1"),
    ("embedding_gradient", EmbeddingGradientAttributes(9), (I32, f32(4, 2)), "E0302", (0, 1), "a row of f32 values an index"),
    ("embedding_gradient", EmbeddingGradientAttributes(9), (f32(4), f32(4, 2)), "E0305", (0,), "i32"),
    ("random_uniform", RandomUniformAttributes(0, (4,)), (I32,), "E0305", (0,), "i32[3]: seed"),
    ("random_uniform", RandomUniformAttributes(-1, (4,)), (TensorType("i32", (3,)),), "E0307", ("use",), "at least 0"),
    ("broadcast", BroadcastAttributes((3, 1)), (f32(3, 4),), "E0302", (0, "shape"), "smaller"),
    ("broadcast", BroadcastAttributes((3, 5)), (f32(3, 4),), "E0302", (0, "shape"), "4 and 5"),
    ("softmax_cross_entropy", NoAttributes(), (f32(4, 3), I32), "E0302", (0, 1), "expected one label for each row, i32[4]"),
]


@each({f"{place}: {case[0]}, {case[5]}": (case,) for place, case in enumerate(ERRORS)})
def test_a_broken_rule(case: Refused) -> None:
    require_refused(case)


@examples(30, 6_000)
@given(*CONVOLUTIONS)
def test_gradients_of_convolution_against_loops(h: int, w: int, window: tuple[int, int], stride: tuple[int, int], padding: Padding) -> None:
    """Each product of the convolution goes back to both of its factors."""
    assume(fits((h, w), window, stride, padding))
    x, kernel = image(2, h, w, 3), image(*window, 3, 2)
    seen = windows(x, window, stride, padding)
    dy = image(2, len(seen), len(seen[0]), 2)
    dx, dw = np.zeros_like(x), np.zeros_like(kernel)
    for n, i, j, f in np.ndindex(dy.shape):
        for a, b, r, s in seen[i][j]:
            dx[n, a, b] += dy[n, i, j, f] * kernel[r, s, :, f]
            dw[r, s, :, f] += dy[n, i, j, f] * x[n, a, b]
    for name, operands, expected in (("input", (dy, kernel), dx), ("weight", (x, dy), dw)):
        op, attributes = OPS[f"conv2d_{name}_gradient"], Conv2dGradientAttributes(expected.shape, stride, padding)
        assert op.infer(attributes, [f32(*operand.shape) for operand in operands]) == f32(*expected.shape)
        assert np.array_equal(op.reference(attributes, operands), expected)


@examples(50, 5_000)
@given(*CONVOLUTIONS, st.tuples(st.integers(1, 4), st.integers(1, 3)), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))
def test_gradients_with_dilation_and_groups_against_zeros_in_the_kernel(
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
    zeros = filled(kernel, dilation, groups)
    assume(fits((h, w), (zeros.shape[0], zeros.shape[1]), stride, padding))
    y = OPS["conv2d"].reference(Conv2dAttributes(stride, padding), [x, zeros])
    dy, own = image(*y.shape), Conv2dGradientAttributes(x.shape, stride, padding, dilation, groups)
    dx = OPS["conv2d_input_gradient"].reference(Conv2dGradientAttributes(x.shape, stride, padding), [dy, zeros])
    assert np.array_equal(OPS["conv2d_input_gradient"].reference(own, [dy, kernel]), dx)
    dw = OPS["conv2d_weight_gradient"].reference(Conv2dGradientAttributes(zeros.shape, stride, padding), [x, dy])
    found = OPS["conv2d_weight_gradient"].reference(replace(own, shape=kernel.shape), [x, dy])
    assert np.array_equal(filled(found, dilation, groups), np.where(filled(np.ones_like(kernel), dilation, groups), dw, 0))


@pytest.mark.parametrize("groups", [2, 3])
def test_the_gradients_of_each_group_are_those_of_a_convolution_of_its_own(groups: int) -> None:
    """On a machine for floats, too: each has its depth in the order that is said."""
    x, kernel = image(2, 5, 4, 2 * groups) * 7, image(3, 2, 2, 4 * groups) * 5
    y = computed("conv2d", Conv2dAttributes(2, 1, 1, groups), x, kernel)
    dy, own = image(*y.shape) * 3, Conv2dGradientAttributes(x.shape, 2, 1, 1, groups)
    dx, dw = computed("conv2d_input_gradient", own, dy, kernel), computed("conv2d_weight_gradient", replace(own, shape=kernel.shape), x, dy)
    for g in range(groups):
        channels, filters = slice(2 * g, 2 * g + 2), slice(4 * g, 4 * g + 4)
        a, k, d = x[..., channels], kernel[..., filters], dy[..., filters]
        assert np.array_equal(dx[..., channels], computed("conv2d_input_gradient", Conv2dGradientAttributes(a.shape, 2, 1), d, k))
        assert np.array_equal(dw[..., filters], computed("conv2d_weight_gradient", Conv2dGradientAttributes(k.shape, 2, 1), a, d))


@examples(25, 2_500)
@given(*CONVOLUTIONS)
def test_products_of_gradients_have_their_depth_in_the_order_that_is_said(
    h: int, w: int, window: tuple[int, int], stride: tuple[int, int], padding: Padding
) -> None:
    """Padding has its places in a pass; the pixels between those of a dy that a stride spreads have none."""
    assume(fits((h, w), window, stride, padding))
    x, kernel = image(2, h, w, 3) * 7, image(*window, 3, 2) * 5
    top, _, left, _ = sides(padding, (h, w), window, stride)
    dy = image(*OPS["conv2d"].infer(Conv2dAttributes(stride, padding), [f32(*x.shape), f32(*kernel.shape)]).shape) * 3

    def at(array: Array, n: int, row: int, column: int, channel: int) -> float:
        inside = 0 <= row < array.shape[1] and 0 <= column < array.shape[2]
        return float(array[n, row, column, channel]) if inside else 0.0

    taps = [(r, s) for r in range(window[0]) for s in range(window[1])]
    dw = computed("conv2d_weight_gradient", Conv2dGradientAttributes(kernel.shape, stride, padding), x, dy)
    for r, s, c, f in np.ndindex(dw.shape):
        pixels = [(n, i * stride[0] - top + r, j * stride[1] - left + s, float(dy[n, i, j, f])) for n, i, j in np.ndindex(dy.shape[:3])]
        assert dw[r, s, c, f] == in_passes_alone([at(x, n, a, b, c) * value for n, a, b, value in pixels])
    dx = computed("conv2d_input_gradient", Conv2dGradientAttributes(x.shape, stride, padding), dy, kernel)
    for n, a, b, c in np.ndindex(dx.shape):
        met = [(divmod(a + top - r, stride[0]), divmod(b + left - s, stride[1]), r, s) for r, s in reversed(taps)]
        found = [(row[0], column[0], r, s) for row, column, r, s in met if row[1] == column[1] == 0]
        assert dx[n, a, b, c] == in_passes_alone([at(dy, n, i, j, f) * float(kernel[r, s, c, f]) for i, j, r, s in found for f in range(2)])


@pytest.mark.long
@examples(40, 2_500)
@given(st.integers(1, 7), st.integers(1, 6), PAIRS, st.none() | PAIRS, st.tuples(*[st.integers(0, 2)] * 4), st.booleans())
def test_gradients_of_averages_whose_windows_reach_beyond_the_end(
    h: int, w: int, size: tuple[int, int], stride: tuple[int, int] | None, padding: tuple[int, int, int, int], count: bool
) -> None:
    """And of averages of padding that counts: of what lies in the padded image, and not beyond."""
    step = stride or size
    top, bottom, left, right = padding
    assume(max(top, bottom) < size[0] and max(left, right) < size[1])
    rows, columns = reaching(h, size[0], step[0], top, bottom), reaching(w, size[1], step[1], left, right)
    assume(rows and columns)
    dy, dx = image(2, len(rows), len(columns), 3) * np.float32(2520), np.zeros((2, h, w, 3), np.float32)
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        pixels = dx[:, max(row, 0) : row + size[0], max(column, 0) : column + size[1]]
        tall, wide = (min(row + size[0], h + bottom) - row, min(column + size[1], w + right) - column) if count else pixels.shape[1:3]
        pixels += (dy[:, i, j] / (tall * wide))[:, None, None]
    own = AvgPoolGradientAttributes(dx.shape, size, stride, padding, True, count)
    assert np.array_equal(OPS["avg_pool_gradient"].reference(own, [dy]), dx)


@pytest.mark.parametrize("padding", [65_535, (65_535, 65_534, 65_535, 65_534)])
def test_absurd_padding_of_a_gradient_takes_no_memory(padding: Any) -> None:
    dy, kernel = np.zeros((1, 3, 3, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    dy[0, 1, 1, 0] = 5
    back = OPS["conv2d_input_gradient"].reference(Conv2dGradientAttributes((1, 2, 2, 1), 65_535, padding), [dy, kernel])
    assert back.tolist() == [[[[5], [0]], [[0], [0]]]]


@examples(30, 3_000)
@given(st.integers(1, 6), st.integers(1, 6), PAIRS, st.none() | PAIRS, PADDINGS, st.integers(1, 9))
def test_gradients_of_pools_against_loops(
    h: int, w: int, size: tuple[int, int], stride: tuple[int, int] | None, padding: Padding, different: int
) -> None:
    """With few different values there are ties, of which the first pixel of a window wins."""
    step = stride or size
    assume(fits((h, w), size, step, padding))
    x = image(2, h, w, 3) % different
    top, bottom, left, right = sides(padding, (h, w), size, step)
    assume(max(top, bottom) < size[0] and max(left, right) < size[1])
    seen = windows(x, size, step, padding)
    attributes = PoolAttributes(size, stride, padding)
    y = OPS["max_pool"].reference(attributes, [x])
    dy = image(*y.shape) * np.float32(2520)  # which every number of pixels divides
    largest, average = np.zeros_like(x), np.zeros_like(x)
    for n, i, j, c in np.ndindex(y.shape):
        best = max(seen[i][j], key=lambda place: float(x[n, place[0], place[1], c]))
        largest[n, best[0], best[1], c] += dy[n, i, j, c]
        for a, b, _, _ in seen[i][j]:
            average[n, a, b, c] += dy[n, i, j, c] / len(seen[i][j])
    op, own = OPS["avg_pool_gradient"], AvgPoolGradientAttributes(x.shape, size, stride, padding)
    assert np.array_equal(OPS["max_pool_gradient"].reference(attributes, [x, y, dy]), largest)
    assert np.array_equal(op.reference(own, [dy]), average)
    assert (
        OPS["max_pool_gradient"].infer(attributes, [f32(*a.shape) for a in (x, y, dy)]) == op.infer(own, [f32(*y.shape)]) == f32(*x.shape)
    )


def test_sums_of_overlapping_windows_go_from_the_last_window_to_the_first() -> None:
    """In float32 the order shows: 1 is lost beside 2^24, and two of them aren't."""
    dy = np.array([1, 1, 2**24], np.float32).reshape(1, 3, 1, 1)
    x = np.array([0, 0, 9, 0, 0], np.float32).reshape(1, 5, 1, 1)
    attributes = PoolAttributes((3, 1), 1)
    y = OPS["max_pool"].reference(attributes, [x])
    assert OPS["max_pool_gradient"].reference(attributes, [x, y, dy])[0, 2, 0, 0] == 2**24
    assert OPS["max_pool_gradient"].reference(attributes, [x, y, dy[:, ::-1]])[0, 2, 0, 0] == 2**24 + 2
    shares = AvgPoolGradientAttributes(x.shape, (3, 1), 1)
    assert OPS["avg_pool_gradient"].reference(shares, [dy * 3])[0, 2, 0, 0] == 2**24
    assert OPS["avg_pool_gradient"].reference(shares, [dy[:, ::-1] * 3])[0, 2, 0, 0] == 2**24 + 2


POOL = PoolAttributes(3, 2, "same")
DIVIDED: list[tuple[str, Any, tuple[Array, ...], tuple[Batch | None, ...]]] = [
    ("conv2d_input_gradient", Conv2dGradientAttributes((4, 6, 5, 3), 2), (image(4, 2, 2, 2), image(3, 3, 3, 2)), (Batch(0), None)),
    ("avg_pool_gradient", AvgPoolGradientAttributes((4, 6, 5, 3), 3, 2, "same"), (image(4, 3, 3, 3),), (Batch(0),)),
    ("max_pool_gradient", POOL, (image(4, 6, 5, 3) % 9, image(4, 3, 3, 3) % 9, image(4, 3, 3, 3)), (Batch(0),) * 3),
    ("max_pool_gradient", POOL, (image(4, 6, 5, 3) % 9, image(4, 3, 3, 3) % 9, image(4, 3, 3, 3)), (Batch(0), Batch(0), None)),
]


def case_of(name: str, attributes: Any, operands: Sequence[Array], batches: Sequence[Batch | None]) -> Case:
    """The operator's node with the batch of 4 images among 2 cores."""
    types = [TensorType("i32" if operand.dtype == np.int32 else "f32", operand.shape) for operand in operands]
    origin = Origin(made_by="test")
    inputs = [Node(f"x{index}", "input", (), NoAttributes(), type_, origin) for index, type_ in enumerate(types)]
    node = Node("y", name, tuple(x.name for x in inputs), attributes, OPS[name].infer(attributes, types), origin)
    return Case(node, inputs, batches, 4, Fraction(1, 2))


@each(DIVIDED)
def test_gradients_of_images_are_those_of_the_parts_of_the_batch(
    name: str, attributes: Any, operands: tuple[Array, ...], batches: tuple[Batch | None, ...]
) -> None:
    rule = OPS[name].facts.batch
    assert rule is not None
    division = rule(case_of(name, attributes, operands, batches))
    divided = [batch is not None or index in division.constants for index, batch in enumerate(batches)]
    parts = [[x[start : start + 2] if part else x for x, part in zip(operands, divided, strict=True)] for start in (0, 2)]
    found = [OPS[name].reference(division.attributes or attributes, part) for part in parts]
    assert division.result == Batch(0)
    assert np.array_equal(np.concatenate(found), OPS[name].reference(attributes, operands))


@each(
    [
        (*DIVIDED[0][:3], (None, Batch(3)), "needs a constant"),
        (*DIVIDED[1][:3], (Batch(1),), "along axis 1"),
        (*DIVIDED[2][:3], (Batch(1),) * 3, "has no separate items"),
        (
            *("conv2d_weight_gradient", Conv2dGradientAttributes((3, 3, 3, 2), 2), (image(4, 6, 5, 3), image(4, 2, 2, 2))),
            *((Batch(0), Batch(0)), "adds up over the batch"),
        ),
        (
            *("embedding_gradient", EmbeddingGradientAttributes(5), (np.zeros(4, np.int32), np.zeros((4, 3), np.float32))),
            *((Batch(0), Batch(0)), "adds up over the batch"),
        ),
        ("random_uniform", RandomUniformAttributes(0, (4,)), (np.zeros(3, np.int32),), (Batch(0),), "one seed"),
    ]
)
def test_gradients_that_no_core_has_alone(name: str, attributes: Any, operands: Any, batches: Any, why: str) -> None:
    rule = OPS[name].facts.batch
    assert rule is not None
    with pytest.raises(MixedError, match=why):
        rule(case_of(name, attributes, operands, batches))


@each([(40,), (5, 8), ()])
def test_the_gradient_of_an_embedding_adds_rows_in_their_order(shape: tuple[int, ...]) -> None:
    """Numbers that float32 sums round: another order would give other bits."""
    random = np.random.default_rng(5)
    ids = np.asarray(random.integers(0, 4, shape), np.int32)
    dy = np.asarray(random.standard_normal((*shape, 3)), np.float32)
    expected = np.zeros((6, 3), np.float32)
    for row, values in zip(ids.reshape(-1).tolist(), dy.reshape(-1, 3), strict=True):
        expected[row] += values
    attributes = EmbeddingGradientAttributes(6)
    assert np.array_equal(OPS["embedding_gradient"].reference(attributes, (ids, dy)), expected)
    assert OPS["embedding_gradient"].infer(attributes, [TensorType("i32", shape), f32(*dy.shape)]) == f32(6, 3)


def test_the_gradient_of_an_embedding_refuses_indices_outside_the_table() -> None:
    with pytest.raises(InputError, match=r"index -1 at \[1\] is outside"):
        OPS["embedding_gradient"].reference(EmbeddingGradientAttributes(5), (np.array([4, -1], np.int32), np.ones((2, 3), np.float32)))


def test_random_numbers_of_a_part_of_a_batch_are_those_of_the_whole() -> None:
    def drawn(seed: int, step: int, first: int, use: int, *shape: int) -> Array:
        return OPS["random_uniform"].reference(RandomUniformAttributes(use, shape), (np.array([seed, step, first], np.int32),))

    whole = drawn(7, 3, 0, 1, 8, 5, 2)
    assert np.array_equal(drawn(7, 3, 6, 1, 2, 5, 2), whole[6:])
    assert np.array_equal(drawn(7, 3, 0, 1), whole[0, 0, 0])
    others = [drawn(-8, 3, 0, 1, 8, 5, 2), drawn(7, 4, 0, 1, 8, 5, 2), drawn(7, 3, 0, 2, 8, 5, 2)]
    for values in (whole, *others):
        assert values.min() >= 0.0
        assert values.max() < 1.0
        assert len(np.unique(values)) == values.size
    assert not any(np.array_equal(other, whole) for other in others)
