"""References of operators that multiply, move, look up, normalise and quantise, against loops or exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tpucc.diagnostics import InputError
from tpucc.ir import NoAttributes, Quantisation, Range, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.argmax import ArgmaxAttributes
from tpucc.ops.arithmetic import ArithmeticAttributes
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.convolution import ConvolutionAttributes
from tpucc.ops.dequantize import DequantizeAttributes, explicit
from tpucc.ops.full import FullAttributes
from tpucc.ops.fused import activation_of, with_activation, without_activation
from tpucc.ops.layer_norm import LayerNormAttributes
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.opdef import Array, Clamp, Table
from tpucc.ops.pad import PadAttributes
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.softmax import SoftmaxAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.ops.zeros import ShapeAttributes

NONE = NoAttributes()


def numbers(*shape: int) -> Array:
    """Small integers as float32, all different up to 1,000 of them."""
    return np.asarray((np.arange(math.prod(shape), dtype=np.float32) * 7 % 1009 - 100).reshape(shape), np.float32)


def run(name: str, attributes: Any, *operands: Array) -> Array:
    return OPS[name].reference(attributes, operands)


@each([(3,), (1, 3), (5, 3), (2, 4, 3), (2, 1, 2, 3)])
def test_matmul_against_loops(shape: tuple[int, ...]) -> None:
    a, b = numbers(*shape), numbers(3, 4)
    found = run("matmul", NONE, a, b)
    assert found.shape == (*shape[:-1], 4)
    assert found.dtype == np.float32
    for place in np.ndindex(found.shape):
        assert found[place] == sum(float(a[(*place[:-1], k)] * b[k, place[-1]]) for k in range(3))


BATCHES = [((2, 4, 3), (2, 3, 5)), ((1, 4, 3), (2, 3, 5)), ((2, 1, 4, 3), (5, 3, 2)), ((3,), (2, 3, 5)), ((4, 3), (2, 2, 3, 1))]


@each(BATCHES)
def test_matmul_of_batches_against_loops(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = numbers(*left), numbers(*right)
    rows, columns = np.atleast_2d(a), b.shape[-1]
    batch = np.broadcast_shapes(rows.shape[:-2], b.shape[:-2])
    wide, other = np.broadcast_to(rows, (*batch, *rows.shape[-2:])), np.broadcast_to(b, (*batch, 3, columns))
    wanted = np.zeros((*batch, rows.shape[-2], columns))
    for *item, m, n in np.ndindex(wanted.shape):
        wanted[(*item, m, n)] = sum(float(wide[(*item, m, k)]) * float(other[(*item, k, n)]) for k in range(3))
    found = run("matmul", NONE, a, b)
    assert found.dtype == np.float32
    assert np.array_equal(found, wanted.reshape(*batch, *a.shape[-2:-1], columns))
    assert OPS["matmul"].infer(NONE, [f32(*left), f32(*right)]) == f32(*found.shape)


@each([(3,), (4, 5), (2, 3, 7), (5, 1)])
def test_layer_norm_against_loops(shape: tuple[int, ...]) -> None:
    x, gamma, beta = numbers(*shape), numbers(shape[-1]) + 1, numbers(shape[-1]) - 7
    found = run("layer_norm", LayerNormAttributes(0.5), x, gamma, beta)
    assert found.dtype == np.float32
    for row, place in zip(found.reshape(-1, shape[-1]), np.ndindex(shape[:-1]), strict=True):
        values = [float(value) for value in x[place]]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        wanted = [(v - mean) / math.sqrt(variance + 0.5) * g + b for v, g, b in zip(values, gamma.tolist(), beta.tolist(), strict=True)]
        np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-3)


@each(product([(5,), (2, 5), (2, 3, 5)], [0, -1]))
def test_softmax_and_argmax_against_loops(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(1).standard_normal(shape, np.float32) * np.float32(20)
    lines = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
    found = np.moveaxis(run("softmax", SoftmaxAttributes(axis), x), axis, -1).reshape(lines.shape)
    places = run("argmax", ArgmaxAttributes(axis), x)
    assert places.dtype == np.int32
    for line, probabilities, place in zip(lines, found, places.reshape(-1), strict=True):
        exponentials = [math.exp(float(value)) for value in line]
        assert np.allclose(probabilities, [e / sum(exponentials) for e in exponentials], rtol=1e-5, atol=1e-30)
        assert place == max(range(len(line)), key=lambda index: (line[index], -index))


def test_softmax_of_huge_values_is_finite() -> None:
    found = run("softmax", SoftmaxAttributes(), np.array([[3e38, 3e38, -3e38], [-1000, -1001, -1002]], np.float32))
    assert found[0].tolist() == [0.5, 0.5, 0.0]
    assert found[1].tolist() == pytest.approx([0.66524096, 0.24472847, 0.09003057], rel=1e-6)


def test_argmax_takes_the_first_of_equals() -> None:
    assert run("argmax", ArgmaxAttributes(), np.array([[1, 3, 3], [2, 2, 2]], np.float32)).tolist() == [1, 0]


def test_batch_norm_against_loops() -> None:
    x, gamma, beta, mean = numbers(2, 3, 4), numbers(4), numbers(4) * 2, numbers(4) / 3
    variance = np.array([0.5, 1, 2, 0], np.float32)
    found = run("batch_norm", BatchNormAttributes(0.01), x, gamma, beta, mean, variance)
    for n, i, c in np.ndindex(x.shape):
        exact = gamma[c] * (x[n, i, c] - mean[c]) / math.sqrt(variance[c] + 0.01) + beta[c]
        assert found[n, i, c] == pytest.approx(exact, rel=1e-5, abs=1e-4)


def test_views_keep_the_order_of_values() -> None:
    x = numbers(2, 3, 4)
    for found in (run("flatten", NONE, x), run("reshape", ReshapeAttributes((4, -1)), x), run("reshape", ReshapeAttributes((24,)), x)):
        assert found.reshape(-1).tolist() == x.reshape(-1).tolist()
    assert run("flatten", NONE, x).shape == (2, 12)
    assert run("flatten", NONE, numbers(5)).shape == (5, 1)
    assert run("reshape", ReshapeAttributes((4, -1)), x).shape == (4, 6)


@examples(50, 8_000)
@given(st.permutations([0, 1, 2]), st.lists(st.booleans(), min_size=3, max_size=3))
def test_transpose_against_loops(order: list[int], negative: list[bool]) -> None:
    x = numbers(2, 3, 4)
    perm = tuple(axis - 3 if flip else axis for axis, flip in zip(order, negative, strict=True))
    found = run("transpose", TransposeAttributes(perm), x)
    assert OPS["transpose"].infer(TransposeAttributes(perm), [f32(2, 3, 4)]).shape == found.shape
    for place in np.ndindex(2, 3, 4):
        assert found[tuple(place[axis] for axis in order)] == x[place]


def test_concat_against_lists() -> None:
    a, b = numbers(2, 3), numbers(2, 1) + 0.5
    assert run("concat", ConcatAttributes(), a, b, a).tolist() == [[*p, *q, *p] for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert run("concat", ConcatAttributes(-2), a, a).tolist() == a.tolist() * 2


def test_pad_puts_zeros_around() -> None:
    x = numbers(2, 3)
    found = run("pad", PadAttributes(((1, 0), (2, 1))), x)
    assert found.tolist() == [[0] * 6, *([0, 0, *row, 0] for row in x.tolist())]


def test_slice_takes_a_part_and_drops_axes() -> None:
    x = numbers(4, 5, 6)
    assert np.array_equal(run("slice", SliceAttributes((1, 0, 2), (3, 5, 4)), x), x[1:3, :, 2:4])
    assert np.array_equal(run("slice", SliceAttributes((1, 4, 0), (4, -1, 6), (), (2, -3, 5)), x), x[1:4:2, ::-3, ::5])
    attributes = SliceAttributes((0, 3, 5), (4, 4, 6), (1, 2))
    assert np.array_equal(run("slice", attributes, x), x[:, 3, 5])
    assert OPS["slice"].infer(attributes, [f32(4, 5, 6)]) == f32(4)


def test_constants() -> None:
    assert run("zeros", ShapeAttributes((2, 3))).tolist() == [[0.0] * 3] * 2
    assert run("ones", ShapeAttributes((3,))).tolist() == [1.0] * 3
    assert run("full", FullAttributes((1, 2), -2.5)).tolist() == [[-2.5, -2.5]]
    assert run("full", FullAttributes((), 3)).item() == 3.0


def test_embedding_gathers_rows() -> None:
    table = numbers(5, 3)
    ids = np.array([[0, 4], [2, 2]], np.int32)
    assert run("embedding", NONE, ids, table).tolist() == [[table[i].tolist() for i in line] for line in ids]


@each([([[0, 5]], "index 5 at [0, 1]"), ([[-1, 0]], "index -1 at [0, 0]"), (7, "index 7 is")])
def test_embedding_refuses_indices_outside_the_table(ids: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        run("embedding", NONE, np.array(ids, np.int32), numbers(5, 3))
    assert caught.value.diagnostics[0].code == "E0454"
    assert words in str(caught.value)
    assert "5 rows" in str(caught.value)


@examples(80, 15_000)
@given(st.floats(-1e6, 1e6, width=32), st.floats(2**-10, 2**10, width=32), st.integers(-128, 127))
def test_quantize_against_exact_arithmetic(x: float, scale: float, zero_point: int) -> None:
    """Rounding of the float32 quotient in exact fractions: Python's round takes halves to the even integer."""
    quotient = Fraction(float(np.float32(x) / np.float32(scale)))
    expected = min(max(round(quotient) + zero_point, -128), 127)
    found = run("quantize", QuantizeAttributes(scale, zero_point), np.array([x], np.float32))
    assert found.dtype == np.int8
    assert found.tolist() == [expected]


def test_quantize_saturates_where_the_division_overflows() -> None:
    found = run("quantize", QuantizeAttributes(2.0**-126, 100), np.array([3e38, -3e38], np.float32))
    assert found.tolist() == [127, -128]


def test_dequantize_is_the_way_back() -> None:
    q = np.arange(-128, 128).astype(np.int8)
    found = run("dequantize", DequantizeAttributes(0.5, -3), q)
    assert found.tolist() == [0.5 * (value + 3) for value in range(-128, 128)]
    assert np.array_equal(run("quantize", QuantizeAttributes(0.5, -3), found), q)


def test_dequantize_takes_the_parameters_of_its_operand() -> None:
    type_ = TensorType("i8", (2,), quantisation=Quantisation(0.25, 7))
    assert OPS["dequantize"].infer(DequantizeAttributes(), [type_]) == f32(2)
    assert explicit(DequantizeAttributes(), type_) == DequantizeAttributes(0.25, 7)
    assert explicit(DequantizeAttributes(0.25, 7), type_) == DequantizeAttributes(0.25, 7)


def test_quantize_gives_a_quantised_type_with_a_float32_scale() -> None:
    found = OPS["quantize"].infer(QuantizeAttributes(0.1, 5), [f32(2, 3).with_range(Range(0.0, 1.0))])
    assert found == TensorType("i8", (2, 3), quantisation=Quantisation(float(np.float32(0.1)), 5))


def test_moved_integers_stay_quantised_and_held_values_say_nothing_of_the_result() -> None:
    parameters = Quantisation(0.25, 7)
    integers, held = TensorType("i8", (2, 3), quantisation=parameters), f32(2, 3).with_quantisation(parameters)
    other = f32(2, 3).with_quantisation(Quantisation(0.5, 0))
    for name, attributes in (("transpose", TransposeAttributes((1, 0))), ("reshape", ReshapeAttributes((3, 2)))):
        assert OPS[name].infer(attributes, [integers]) == TensorType("i8", (3, 2), quantisation=parameters)
        assert OPS[name].infer(attributes, [held]) == f32(3, 2)
    assert OPS["concat"].infer(ConcatAttributes(), [held, other]) == f32(2, 6)
    assert OPS["quantize"].infer(QuantizeAttributes(0.5), [held]).quantisation == Quantisation(0.5, 0)
    assert OPS["slice"].infer(SliceAttributes((0, 1), (2, 2), (1,)), [integers]) == TensorType("i8", (2,), quantisation=parameters)


ACTIVATIONS = [name for name, op in OPS.items() if isinstance(op.legalisation, Table | Clamp)]


@each(product(ACTIVATIONS, [0, 1]))
def test_linear_is_bit_for_bit_its_parts(name: str, index: int) -> None:
    own = OPS[name].examples[index].attributes
    generator = np.random.default_rng(index)
    x, w, b = (generator.standard_normal(shape, np.float32) for shape in ((2, 5, 37), (37, 19), (19,)))
    fused = with_activation(LinearAttributes(), name, own, Range(-9.0, 9.0))
    parts = run(name, own, run("add", NONE, run("matmul", NONE, x, w), b))
    assert np.array_equal(run("linear", fused, x, w, b), parts, equal_nan=True)
    assert np.array_equal(run("linear", fused, x, w), run(name, own, run("matmul", NONE, x, w)), equal_nan=True)
    assert activation_of(fused) == (OPS[name], own)


@each(ACTIVATIONS)
def test_convolution_is_bit_for_bit_its_parts(name: str) -> None:
    own = OPS[name].examples[0].attributes
    generator = np.random.default_rng(3)
    x, w, b = (generator.standard_normal(shape, np.float32) for shape in ((2, 7, 5, 3), (3, 2, 3, 4), (4,)))
    plain = run("conv2d", Conv2dAttributes((2, 1), "same"), x, w)
    fused = with_activation(ConvolutionAttributes(stride=(2, 1), padding="same"), name, own, Range(-9.0, 9.0))
    assert np.array_equal(run("convolution", fused, x, w, b), run(name, own, run("add", NONE, plain, b)), equal_nan=True)
    assert np.array_equal(run("convolution", fused, x, w), run(name, own, plain), equal_nan=True)
    assert without_activation(fused) == ConvolutionAttributes(stride=(2, 1), padding="same")


@each(product(["add", "sub", "mul"], ACTIVATIONS))
def test_arithmetic_is_bit_for_bit_its_parts(of: str, name: str) -> None:
    own = OPS[name].examples[0].attributes
    a, b = (np.random.default_rng(4).standard_normal(shape, np.float32) for shape in ((3, 1, 5), (4, 5)))
    fused = with_activation(ArithmeticAttributes(of=of), name, own, Range(-9.0, 9.0))
    assert np.array_equal(run("arithmetic", fused, a, b), run(name, own, run(of, NONE, a, b)), equal_nan=True)
    assert np.array_equal(run("arithmetic", without_activation(fused), a, b), run(of, NONE, a, b), equal_nan=True)


def test_linear_keeps_parameters_as_plain_values() -> None:
    found = with_activation(LinearAttributes(), "leaky_relu", LeakyReluAttributes(0.2), Range(-1.0, 2.0))
    assert found == LinearAttributes("leaky_relu", (0.2,), (-1.0, 2.0))
    assert with_activation(LinearAttributes(), "relu", NONE) == LinearAttributes("relu")
    assert activation_of(LinearAttributes()) is None
