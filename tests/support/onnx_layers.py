"""Random layers for ONNX Runtime: many of them in one graph, since a session takes longer to make than a layer to compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.differential.test_random_layers import ORIGIN, Draw, epilogue, folded, table_of
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, NoAttributes, Node, Quantisation, TensorType
from tpucc.ir.dtypes import BY_BITS
from tpucc.layers.kinds import FUNCTIONS_OF_TWO, Conv, Fc, Layer, Move, Pool, Requantise, Vector
from tpucc.layers.reference import compute
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int32, multiplier
from tpucc.ops.constant import ConstantAttributes

IMAGE = 4
LARGE = 2**29
"""Biases up to here: sums beyond 2^24, which float32 rounds."""


Values = list[tuple[DeviceInts, int]]
"""Integers, and their zero points."""


class Layers:
    """A graph of layers, each with inputs of its own, and what the layers' reference gives for these.

    While it is `turned`, a layer gets values with four axes from one that ONNX has channels first.
    """

    def __init__(self, bits: int) -> None:
        self.format = BY_BITS[bits]
        self.builder = GraphBuilder("layers")
        self.turned = False
        self.inputs: dict[str, AnyArray] = {}
        self.expected: dict[str, AnyArray] = {}

    def graph(self) -> Graph:
        return self.builder.build()

    def add(self, layer: Layer, values: Values, constants: list[AnyArray], zero: int, scales: tuple[float, float]) -> None:
        """A layer of these values with their zero points, and of constants; `scales` are those of the first value and of the result."""
        number = len(self.expected)
        names = [f"x{number}.{index}" for index in range(len(values))] + [f"c{number}.{index}" for index in range(len(constants))]
        for index, (data, held) in enumerate(values):
            name = names[index]
            self._node(name, "input", (), NoAttributes(), TensorType(self.format.name, data.shape, None, Quantisation(scales[0], held)))
            self.inputs[name] = data
            if self.turned and data.ndim == IMAGE:
                names[index] = self._turned(name)
        for name, data in zip(names[len(values) :], constants, strict=True):
            value = Constant(data)
            self._node(name, "constant", (), ConstantAttributes(value), TensorType(value.dtype, value.shape))
        operands = [*(data for data, _ in values), *constants]
        shape = np.broadcast_shapes(*(data.shape for data, _ in values)) if isinstance(layer, Vector) else ()
        result = TensorType(self.format.name, shape, None, Quantisation(scales[1], zero))
        found = compute(Node("", type(layer).__name__.lower(), (), layer, result, ORIGIN), operands)
        type_ = replace(result, shape=found.shape)
        name = self._node(f"y{number}", type(layer).__name__.lower(), tuple(names), layer, type_)
        self.builder.output(name, name)
        self.expected[name] = found

    def _turned(self, name: str) -> str:
        """The value as it is, from a maximum of single pixels, which ONNX has channels first."""
        same = Pool("max", (1, 1), (1, 1), (0, 0, 0, 0))
        return self._node(f"{name}.turned", "pool", (name,), same, self.builder.nodes[name].type)

    def _node(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> str:
        return self.builder.add(Node(name, op, operands, attributes, type_, ORIGIN)).name


def drawn(bits: int, seeds: range) -> Layers:
    """A layer of each kind, or some, for every seed."""
    layers = Layers(bits)
    for seed in seeds:
        draw, layers.turned = Draw(seed, bits), bool(seed % 2)
        KINDS[seed % len(KINDS)](layers, draw)
    return layers


def _scales(draw: Draw, columns: int, depth: int) -> tuple[tuple[float, float], Float32]:
    """Scales of a value and of the result, and the multipliers: those of weights with scales, or any."""
    factors, scales = draw.multipliers(columns, depth), (draw.scale(), draw.scale())
    return scales, multiplier(scales[0], (factors * scales[1] / scales[0]).astype(np.float32), scales[1]) if draw.chance(0.7) else factors


def _bias(draw: Draw, columns: int) -> Int32:
    return draw.generator.integers(-LARGE, LARGE, columns, np.int32) if draw.bits == 8 and draw.chance(0.3) else draw.bias(columns)


def product(layers: Layers, draw: Draw) -> None:
    """A fully connected layer of one to three values; without a bias now and then."""
    leading = tuple(draw.integer(1, 4) for _ in range(draw.integer(0, 3) if not layers.turned else 3))
    columns, depths = draw.integer(1, 17), [draw.one_of((1, 3, 17, 257, 1500)) for _ in range(draw.integer(1, 3))]
    values = [(draw.values(*leading, depth), draw.zero()) for depth in depths]
    weights = [draw.weights(depth, columns, depth=sum(depths)) for depth in depths]
    bias, result = np.zeros(columns, np.int32) if draw.chance(0.2) else _bias(draw, columns), draw.result()
    for (_, zero), matrix in zip(values, weights, strict=True):
        bias = folded(bias, matrix, zero)
    scales, factors = _scales(draw, columns, sum(depths))
    layers.add(Fc(epilogue(result), len(values)), values, [*weights, bias, factors, *table_of(result)], result.zero, scales)


def convolution(layers: Layers, draw: Draw) -> None:
    """With strides, dilation, groups and padding."""
    height, width = draw.pair(1, 9)
    walk, groups, dilation = draw.walk((height, width), all_real=False), draw.one_of((1, 1, 2, 3, 17)), draw.pair(1, 3)
    taps = tuple(max(1, (size - 1) // apart + 1) for size, apart in zip(walk.size, dilation, strict=True))
    channels, filters = (draw.one_of((1, 2, 5)) * groups for _ in range(2))
    depth = channels // groups * taps[0] * taps[1]
    x, zero = draw.values(draw.integer(1, 2), height, width, channels), draw.zero() if draw.bits == 8 else 0
    weights, bias, result = draw.weights(*taps, channels // groups, filters, depth=depth), _bias(draw, filters), draw.result()
    scales, factors = _scales(draw, filters, depth)
    layer = Conv(walk.stride, walk.sides, zero, epilogue(result), dilation, groups)
    layers.add(layer, [(x, zero)], [weights, folded(bias, weights, zero), factors, *table_of(result)], result.zero, scales)


def pool(layers: Layers, draw: Draw) -> None:
    """A maximum, an average with some padding that counts, and one over the whole image."""
    height, width = draw.pair(1, 9)
    walk = draw.walk((height, width), all_real=True)
    x, zero, result, scale = (
        draw.values(draw.integer(1, 2), height, width, draw.one_of((1, 3, 17))),
        draw.zero(),
        draw.result(),
        draw.scale(),
    )
    layers.add(Pool("max", walk.size, walk.stride, walk.sides), [(x, zero)], [], zero, (scale, scale))
    top, bottom, left, right = (draw.integer(0, side) for side in walk.sides)
    end = epilogue(result, (scale,), (zero,))
    end = Requantise(end.zero, end.low, end.high, False, end.scales, end.zeros)
    layers.add(Pool("average", walk.size, walk.stride, walk.sides, end, (top, bottom, left, right)), [(x, zero)], [], end.zero, (1.0, 1.0))
    layers.add(Pool("average", (height, width), (1, 1), (0, 0, 0, 0), end), [(x, zero)], [], end.zero, (1.0, 1.0))


def element_wise(layers: Layers, draw: Draw) -> None:
    """A sum, a difference and a product of values that broadcast, and a table alone."""
    shape = tuple(draw.integer(1, 5) for _ in range(draw.integer(1, 4) if not layers.turned else 4))
    narrow = tuple(1 if draw.chance(0.3) else size for size in shape)[draw.integer(0, len(shape) - 1) :]
    values = [(draw.values(*shape), draw.zero()), (draw.values(*narrow), draw.zero())]
    zeros, result = (values[0][1], values[1][1]), draw.result()
    for function, of_two in FUNCTIONS_OF_TWO.items():
        scales = (draw.scale() * 2.0 ** (8 - draw.bits),) if of_two.one_scale else (draw.scale(), draw.scale())
        layers.add(Vector(function, epilogue(result, scales, zeros)), values, [*table_of(result)], result.zero, (1.0, 1.0))
    table = draw.values(256 if draw.bits == 8 else 257)
    layers.add(Vector("table"), values[:1], [table], 0, (1.0, 1.0))


def move(layers: Layers, draw: Draw) -> None:
    """Rows joined, and rows put around a value."""
    shape = tuple(draw.integer(1, 4) for _ in range(draw.integer(2, 4)))
    axis, zero = draw.integer(0, len(shape) - 2), draw.zero()
    parts = [(draw.values(*shape[:axis], draw.integer(1, 4), *shape[axis + 1 :]), zero) for _ in range(draw.integer(1, 4))]
    layers.add(Move("concat", axis), parts, [], zero, (1.0, 1.0))
    layers.add(Move("pad", 0, (*(draw.pair(0, 3) for _ in shape[1:]), (0, 0)), draw.zero()), parts[:1], [], zero, (1.0, 1.0))


KINDS = (product, convolution, pool, element_wise, move)
