"""Single layers of ragged shapes: the layers' reference equals loops over Python's numbers, bit for bit.

The loops know what integers mean, not how layers hold them: they get the bias of the real numbers and every zero point apart, and the
layer gets a bias that took the zero points in and pixels around the image that hold x's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.support import slow_layers as slow
from tests.support.seeds import at_length
from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, Node, Quantisation, TensorType
from tpucc.layers.kinds import Conv, Fc, Move, Pool, Requantise, Vector
from tpucc.layers.reference import compute
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int8, Int32

COUNT = 500
PER_TEST = 25
CHANNELS = (1, 2, 3, 5, 16, 17, 255, 256, 257)
FEW = (1, 2, 3, 5, 16, 17)
MOST_WINDOWED = 30_000
"""Values that the slow pools may look at."""
MOST_SUMS = 3_000
"""Results of a slow product or convolution."""
EXTREME = {
    8: np.array([-128, -127, -1, 0, 1, 126, 127], np.int8),
    16: np.array([-32768, -32767, -257, -1, 0, 255, 32766, 32767], np.int16),
}
MOST_BIAS = 2**17
ORIGIN = Origin((Span(1, 1, 1, 2),))


class Draw:
    """Random parts of layers whose values have `bits`, all from one seed."""

    def __init__(self, seed: int, bits: int = 8) -> None:
        self.generator = np.random.default_rng(seed)
        self.bits = bits
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def integer(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, high, endpoint=True))

    def one_of(self, values: Sequence[int]) -> int:
        return int(self.generator.choice(values))

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def pair(self, low: int, high: int) -> tuple[int, int]:
        return self.integer(low, high), self.integer(low, high)

    def values(self, *shape: int) -> DeviceInts:
        """Uniform, or nothing but extremes."""
        if self.chance(0.2):
            return self.generator.choice(EXTREME[self.bits], shape)
        return self._uniform(*shape)

    def weights(self, *shape: int, depth: int) -> Int8:
        """For sums of `depth` products: so large that none leaves int32, whatever the values, their zero points and the bias."""
        most = self._most(depth)
        if self.chance(0.2):
            return self.generator.choice(np.array([-most, -1, 0, 1, most], np.int8), shape)
        return self.generator.integers(-most, most, shape, np.int8, endpoint=True)

    def bias(self, columns: int) -> Int32:
        return self.generator.integers(-MOST_BIAS, MOST_BIAS, columns, np.int32)

    def multipliers(self, columns: int, depth: int) -> Float32:
        """Such that sums of `depth` products fill the integers and go beyond them; or a power of two, for ties."""
        if self.chance(0.3):
            return np.full(columns, 2.0 ** -self.integer(1, 15), np.float32)
        spread = 0.63 * self._most(depth) * np.sqrt(depth)
        factors: Float32 = (self.generator.uniform(0.2, 3.0, columns) / spread).astype(np.float32)
        return factors

    def _most(self, depth: int) -> int:
        return min(127, (2**31 - 1 - MOST_BIAS) // (depth * 2**self.bits))

    def _uniform(self, *shape: int) -> DeviceInts:
        return self.generator.integers(self.low, self.high, shape, EXTREME[self.bits].dtype, endpoint=True)

    def scale(self) -> float:
        return float(np.float32(self.generator.choice((0.5, 0.25, 1.0, self.generator.uniform(0.001, 2.0)))))

    def result(self) -> slow.Result:
        full = self.chance(0.5)
        low, high = (self.low, self.high) if full else (self.integer(self.low, 0), self.integer(1, self.high))
        return slow.Result(self.zero(), low, high, self._uniform(256 if self.bits == 8 else 257) if self.chance(0.3) else None, self.bits)

    def zero(self) -> int:
        return self.one_of((self.low, self.high, 0, self.integer(self.low, self.high)))

    def walk(self, image: tuple[int, int], *, all_real: bool) -> slow.Walk:
        """A window that fits the padded image; with `all_real`, every one of its places has a real pixel."""
        size = self.pair(1, 7)
        largest = [min(3, side - 1) if all_real else 3 for side in size]
        sides = [self.integer(0, largest[at // 2]) if self.chance(0.6) else 0 for at in range(4)]
        fitting = [min(side, image[at] + sides[2 * at] + sides[2 * at + 1]) for at, side in enumerate(size)]
        if all_real:
            sides = [min(side, fitting[at // 2] - 1) for at, side in enumerate(sides)]
            fitting = [min(side, image[at] + sides[2 * at] + sides[2 * at + 1]) for at, side in enumerate(fitting)]
        top, bottom, left, right = sides
        return slow.Walk((fitting[0], fitting[1]), self.pair(1, 3), (top, bottom, left, right))


def computed(attributes: Attributes, shape: tuple[int, ...], *operands: AnyArray) -> DeviceInts:
    """What the layers' reference says; the result has the declared shape, and the type of the first operand."""
    held = operands[0].dtype
    type_ = TensorType("i8" if held == np.int8 else "i16", shape, None, Quantisation(1.0, 0))
    found = compute(Node("layer", type(attributes).__name__.lower(), (), attributes, type_, ORIGIN), operands)
    assert (found.dtype, found.shape) == (held, shape)
    return found


def folded(bias: Int32, weights: Int8, zero: int) -> Int32:
    """The bias with an operand's zero point taken in, as the accumulators get it: `b - zero * Σ w` of each column."""
    sums = weights.reshape(-1, weights.shape[-1]).sum(axis=0, dtype=np.int64)
    result: Int32 = (bias.astype(np.int64) - zero * sums).astype(np.int32)
    return result


def epilogue(result: slow.Result, scales: tuple[float, ...] = (), zeros: tuple[int, ...] = ()) -> Requantise:
    return Requantise(result.zero, result.low, result.high, result.table is not None, scales, zeros)


def table_of(result: slow.Result) -> tuple[DeviceInts, ...]:
    return () if result.table is None else (result.table,)


def check_product(draw: Draw) -> None:
    """A fully connected layer of one to three operands, each with its own depth, zero point and weights."""
    leading = tuple(draw.integer(1, 4) for _ in range(draw.integer(0, 3)))
    columns, depths = draw.one_of(FEW), [draw.one_of(CHANNELS) for _ in range(draw.integer(1, 3))]
    xs, zeros = [draw.values(*leading, depth) for depth in depths], [draw.zero() for _ in depths]
    weights = [draw.weights(depth, columns, depth=sum(depths)) for depth in depths]
    bias, result = draw.bias(columns), draw.result()
    multiplier, taken_in = draw.multipliers(columns, sum(depths)), bias
    for w, zero in zip(weights, zeros, strict=True):
        taken_in = folded(taken_in, w, zero)
    layer = Fc(epilogue(result), len(xs))
    found = computed(layer, (*leading, columns), *xs, *weights, taken_in, multiplier, *table_of(result))
    np.testing.assert_array_equal(found, slow.product(xs, zeros, weights, bias, multiplier, result))


def check_convolution(draw: Draw) -> None:
    height, width = draw.pair(1, 9)
    walk, channels = draw.walk((height, width), all_real=False), draw.one_of(CHANNELS)
    pixels = int(np.prod(walk.outputs(height, width)))
    filters = draw.one_of([n for n in CHANNELS if n * pixels <= MOST_SUMS] or [1])
    depth = channels * walk.size[0] * walk.size[1]
    x, zero = draw.values(draw.integer(1, 2), height, width, channels), draw.zero()
    weights = draw.weights(*walk.size, channels, filters, depth=depth)
    bias, result, multiplier = draw.bias(filters), draw.result(), draw.multipliers(filters, depth)
    layer = Conv(walk.stride, walk.sides, zero, epilogue(result))
    shape = (len(x), *walk.outputs(height, width), filters)
    found = computed(layer, shape, x, weights, folded(bias, weights, zero), multiplier, *table_of(result))
    np.testing.assert_array_equal(found, slow.convolution(x, zero, weights, bias, walk, multiplier, result))


def check_pool(draw: Draw) -> None:
    height, width = draw.pair(1, 9)
    walk = draw.walk((height, width), all_real=True)
    places = int(np.prod(walk.outputs(height, width))) * walk.size[0] * walk.size[1]
    x = draw.values(draw.integer(1, 2), height, width, draw.one_of([n for n in CHANNELS if n * places <= MOST_WINDOWED] or [1]))
    shape = (len(x), *walk.outputs(height, width), x.shape[3])
    np.testing.assert_array_equal(computed(Pool("max", walk.size, walk.stride, walk.sides), shape, x), slow.largest(x, walk))
    scale, zero, result = draw.scale(), draw.zero(), slow.Result(draw.zero(), draw.low, draw.high, bits=draw.bits)
    layer = Pool("average", walk.size, walk.stride, walk.sides, epilogue(result, (scale,), (zero,)))
    np.testing.assert_array_equal(computed(layer, shape, x), slow.mean(x, zero, walk, scale, result))


def check_element_wise(draw: Draw) -> None:
    """add, subtract and multiply of operands that broadcast, each with its own parameters."""
    shape = tuple(draw.integer(1, 5) for _ in range(draw.integer(1, 3)))
    narrow = tuple(1 if draw.chance(0.3) else size for size in shape)[draw.integer(0, len(shape) - 1) :]
    a, b = draw.values(*shape), draw.values(*narrow)
    if draw.chance(0.5):
        a, b = b, a
    wide_a, wide_b = np.broadcast_arrays(a, b)
    scales, zeros, result = (draw.scale(), draw.scale()), (draw.zero(), draw.zero()), draw.result()
    for function, sign in (("add", 1), ("subtract", -1)):
        found = computed(Vector(function, epilogue(result, scales, zeros)), shape, a, b, *table_of(result))
        np.testing.assert_array_equal(found, slow.sum_of(sign, wide_a, wide_b, scales, zeros, result))
    scale = scales[0] * 2.0 ** (8 - draw.bits)
    found = computed(Vector("multiply", epilogue(result, (scale,), zeros)), shape, a, b, *table_of(result))
    np.testing.assert_array_equal(found, slow.product_of(wide_a, wide_b, scale, zeros, result))


def check_move(draw: Draw) -> None:
    """Rows joined along an axis that isn't the lanes', and rows put around a value."""
    shape = tuple(draw.integer(1, 4) for _ in range(draw.integer(2, 4)))
    axis, count = draw.integer(0, len(shape) - 2), draw.integer(1, 4)
    parts = [draw.values(*shape[:axis], draw.integer(1, 4), *shape[axis + 1 :]) for _ in range(count)]
    expected = slow.joined(parts, axis)
    np.testing.assert_array_equal(computed(Move("concat", axis), expected.shape, *parts), expected)
    pads, value = (*(draw.pair(0, 3) for _ in shape[1:]), (0, 0)), draw.zero()
    expected = slow.surrounded(parts[0], pads, value)
    np.testing.assert_array_equal(computed(Move("pad", 0, pads, value), expected.shape, parts[0]), expected)


CHECKS: tuple[Callable[[Draw], None], ...] = (check_product, check_convolution, check_pool, check_element_wise, check_move)


@pytest.mark.parametrize("first", range(0, COUNT, PER_TEST * len(CHECKS)))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_reference_equals_loops(check: Callable[[Draw], None], first: int) -> None:
    for seed in range(first, first + PER_TEST):
        check(Draw(seed))


@at_length(10_000, 1_000)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_reference_equals_loops_at_length(check: Callable[[Draw], None], seeds: range) -> None:
    for seed in seeds:
        check(Draw(seed))


def test_a_pixel_outside_is_zero_and_not_counted() -> None:
    """One pixel of 5 with a zero point of 3, padded all round: the real value is 2 everywhere it is seen."""
    x, walk = np.full((1, 1, 1, 1), 5, np.int8), slow.Walk((2, 2), (1, 1), (1, 1, 1, 1))
    kernel, ones = np.array([[[[10]], [[20]]], [[[30]], [[40]]]], np.int8), np.ones(1, np.float32)
    convolved = computed(Conv((1, 1), walk.sides, 3, Requantise()), (1, 2, 2, 1), x, kernel, folded(np.zeros(1, np.int32), kernel, 3), ones)
    assert convolved[0, :, :, 0].tolist() == [[80, 60], [40, 20]]
    averaged = computed(Pool("average", (2, 2), (1, 1), walk.sides, Requantise(scales=(1.0,), zeros=(3,))), (1, 2, 2, 1), x)
    assert averaged[0, :, :, 0].tolist() == [[2, 2], [2, 2]]
    lowest = computed(Pool("max", (2, 2), (1, 1), walk.sides), (1, 2, 2, 1), np.full_like(x, -128))
    assert lowest.max() == -128


def test_the_mean_is_a_product_with_a_rounded_factor() -> None:
    """Of 1 and 2 the mean is a tie, and goes to the even 2. 91 / 14 would be one too, but 91 times the float32 nearest to 1/14 is above."""
    pair, many = np.array([1, 2], np.int8).reshape(1, 1, 2, 1), np.full((1, 2, 7, 1), 6, np.int8)
    many[0, 1] += 1
    as_it_is = Requantise(scales=(1.0,), zeros=(0,))
    assert computed(Pool("average", (1, 2), (1, 1), (0, 0, 0, 0), as_it_is), (1, 1, 1, 1), pair).item() == 2
    assert computed(Pool("average", (2, 7), (1, 1), (0, 0, 0, 0), as_it_is), (1, 1, 1, 1), many).item() == 7
