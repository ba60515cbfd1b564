"""The closed set of layers, as attributes of graph nodes.

| node | operands |
|---|---|
| `fc` | for each source x: v [..., K]; for each weights: w [..., K, N]; bias: s [N]; multiplier: f32 [N]; table if the epilogue has one |
| `conv` | x: v [B, H, W, C]; weights: w [R, S, C / groups, F]; bias: s [F]; multiplier: f32 [F]; table if the epilogue has one |
| `pool` | x: v [B, H, W, C] |
| `vector` | a: v; b: v if the function is of two values; table if the epilogue has one, or the function is "table" |
| `move` | v, quantised alike |

The letters are number formats, rows of `tpucc.ir.dtypes`: v that of the graph's values, the same for all of them, w that of their weights
and s that of their accumulators. A table is v [v.table_entries].

All but the values are constants, with one exception. The weights of an `fc` may be integers with the zero point 0 that the host computes
and writes to weight memory: then they may have leading sizes, which broadcast to those of x as in NumPy, and each index of these has a
matrix of its own.

A layer is structure and epilogue: what is added and multiplied, and how the sums become values again. Another number format on the device
is another epilogue, and no other structure. The arithmetic is that of `tpucc.numerics`; shapes broadcast as in NumPy, and leading sizes are
rows. Beside the layers, the device has `reshape`, `slice` and `transpose` of values that leave the last axis alone: they move nothing, for
they only say how rows are walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.ir.dtypes import I8, IntegerFormat
from tpucc.ops import quantizes
from tpucc.ops.constant import ConstantAttributes

Sides = tuple[int, int, int, int]
"""How many rows or columns of pixels lie at the top, the bottom, the left and the right."""


class ConvUnit(StrEnum):
    """The unit that computes a convolution."""

    MATRIX = "matrix"
    VECTOR = "vector"


class PoolFunction(StrEnum):
    """The value of a window of pixels, channel by channel."""

    MAX = "max"
    AVERAGE = "average"


class VectorFunction(StrEnum):
    """A function of the elements of one value (TABLE) or two."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class OfTwo:
    """A function of the elements of two values: of real numbers, and the ONNX operator that is the same.

    Its layers compute f(scale_a · a, scale_b · b), which needs f(c · a, c · b) = c · f(a, b) for every c > 0. With `one_scale` they compute
    scale · f(a, b), which needs f(c · a, b) = f(a, c · b) = c · f(a, b).
    """

    real: np.ufunc
    onnx: str
    one_scale: bool = False


FUNCTIONS_OF_TWO: Mapping[VectorFunction, OfTwo] = {
    VectorFunction.ADD: OfTwo(np.add, "Add"),
    VectorFunction.SUBTRACT: OfTwo(np.subtract, "Sub"),
    VectorFunction.MULTIPLY: OfTwo(np.multiply, "Mul", one_scale=True),
}
"""All but TABLE, which is a function of one."""


class MoveFunction(StrEnum):
    """A way to put rows elsewhere."""

    CONCAT = "concat"
    PAD = "pad"


@dataclass(frozen=True, slots=True)
class Requantise:
    """From sums to integers: `table[clamp(round(sum · multiplier) + zero)]`.

    Without a table, `zero` is the result's zero point; with one, it is that of the value before the function. `low` and `high` bound the
    clamp; None is the format's own end.

    An `fc` or `conv` has its multiplier as an operand, and no `scales` or `zeros` here. In other layers the zero points `zeros` are
    subtracted from the values that are read, and the `scales` multiply: two of each for add and subtract, two zero points and one scale for
    multiply, one of each for an average.
    """

    zero: int = 0
    low: int | None = None
    high: int | None = None
    table: bool = False
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()

    def bounds(self, of: IntegerFormat) -> tuple[int, int]:
        """The integers that the clamp leaves, of the format `of`."""
        return of.low if self.low is None else self.low, of.high if self.high is None else self.high


Epilogue = Requantise
"""How the sums of a layer become values. With another kind (`Cast`, of a device that holds floats) this is a union."""


@dataclass(frozen=True, slots=True)
class Fc:
    """A fully connected layer: `Σ x_i @ weights_i + bias`.

    The sum goes over `sources` operands, one unless said; their zero points are folded into the bias. A layer that `moves` has weights of
    zeros and ones that only pick lanes and place them: none of its products are the model's.
    """

    epilogue: Epilogue
    sources: int = 1
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution: each window of the image, flattened, times the flattened kernel, plus bias. Around the image, `sides` of pixels have
    the value `outside`.

    `outside` is x's zero point: zero in real numbers, so that the bias can take in the zero point of every product alike. The pixels of a
    window are `dilation` apart. Channels and filters are divided into `groups`, and each group of filters sees its channels only.

    `unit` computes it: the matrix unit, or, where each filter sees one channel, its own, the vector unit lane by lane.
    """

    stride: tuple[int, int]
    sides: Sides
    outside: int
    epilogue: Epilogue
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    unit: ConvUnit = ConvUnit.MATRIX


@dataclass(frozen=True, slots=True)
class Pool:
    """The largest pixel of each window (MAX), or their mean (AVERAGE), channel by channel.

    AVERAGE: `round(float32(scale / count) * Σ(a - zero))`, then the epilogue. `count` is the number of real pixels in the window, and of
    pixels of the padding that are at most `counted` from the image, which are zeros. A maximum is one of real pixels only; it has the scale
    and zero point of x, and no epilogue.
    """

    function: PoolFunction
    size: tuple[int, int]
    stride: tuple[int, int]
    sides: Sides
    epilogue: Epilogue | None = None
    counted: Sides = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Vector:
    """An element-wise layer.

    With a function f of two values: `round(f(scale_a * (a - zero_a), scale_b * (b - zero_b)))`, or with one scale
    `round(scale * f(a - zero_a, b - zero_b))`, all in float32; then the epilogue. TABLE only looks up, and has none.
    """

    function: VectorFunction
    epilogue: Epilogue | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Rows put elsewhere: CONCAT joins its operands along `axis`, PAD puts rows of `value` around one.

    `pads` are, for PAD, the numbers of rows before and after each axis. The last axis, that of the lanes, is never touched.
    """

    function: MoveFunction
    axis: int = 0
    pads: tuple[tuple[int, int], ...] = ()
    value: int = 0


Layer = Fc | Conv | Pool | Vector | Move
LAYERS: dict[str, type[Layer]] = {"fc": Fc, "conv": Conv, "pool": Pool, "vector": Vector, "move": Move}
VIEWS = ("reshape", "slice", "transpose")
"""Operators that are the device's too, where they leave the last axis of a value alone."""


def looks_up(layer: Layer) -> bool:
    """Whether the layer's last operand is a table."""
    if isinstance(layer, Vector) and layer.function == VectorFunction.TABLE:
        return True
    return not isinstance(layer, Move) and layer.epilogue is not None and layer.epilogue.table


def epilogue_of(layer: Pool | Vector) -> Requantise:
    """The epilogue of a layer that must have one. Raises `TypeError` when it has none."""
    if layer.epilogue is None:
        raise TypeError(f"{layer.function} has no epilogue")
    return layer.epilogue


def is_layer(node: Node) -> bool:
    """Whether the node is a layer. A view is none, on the device too."""
    return isinstance(node.attributes, Layer)


def fits_vector_unit(layer: Conv, weights: tuple[int, ...], dtype: str) -> bool:
    """Whether the vector unit can compute it: each filter of a kernel of the shape `weights` sees one channel, its own, in 8 bits."""
    return dtype == I8.name and layer.groups == weights[3] and weights[2] == 1


def is_by_lanes(node: Node) -> bool:
    """Whether the node is a convolution that the vector unit computes."""
    return isinstance(node.attributes, Conv) and node.attributes.unit == ConvUnit.VECTOR


EXPANSIONS = ("fold-slices",)
"""Passes that add rows of zeros to a layer's weights; `made_by` of the weights' origin is then the pass. `own_rows` leaves them out."""


def own_rows(weights: Node) -> int:
    """How many rows of weights [..., K, N] the model asks for, over all kernel positions. Rows of zeros around its rows, and between them
    at equal distances, are left out where an expansion added them. Of weights that the host computes, the rows of one matrix."""
    if not isinstance(weights.attributes, ConstantAttributes):
        return weights.type.shape[-2]
    if weights.origin.made_by not in EXPANSIONS:
        return prod(weights.type.shape[:-1])
    data = weights.attributes.value.data
    used = np.flatnonzero(data.reshape(-1, *data.shape[-2:]).any(axis=(0, 2)))
    step = max(1, int(np.gcd.reduce(np.diff(used))))
    return prod(data.shape[:-2]) * int((used[-1] - used[0]) // step + 1) if len(used) else 0


def is_written(weights: Node) -> bool:
    """Whether the weights of an `fc` are integers that the host writes to weight memory while the model runs. Only for layer graphs."""
    return (quantizes(weights.op) or weights.is_input or weights.op in VIEWS) and len(weights.type.shape) > 1


def weight_shape(node: Node, graph: Graph) -> tuple[int, int]:
    """K and N of a layer's weights, over all sources and kernel positions; zeros when it has none."""
    match node.attributes:
        case Fc(sources=count):
            shapes = [graph[name].type.shape[-2:] for name in node.operands[count : 2 * count]]
            return sum(depth for depth, _ in shapes), shapes[0][1]
        case Conv():
            shape = graph[node.operands[1]].type.shape
            return prod(shape[:3]), shape[3]
    return (0, 0)


def macs(node: Node, graph: Graph) -> int:
    """Multiply-accumulates that the model asks for, padding of tiles not counted: rows · K · N of a product, none of another layer."""
    if isinstance(node.attributes, Fc) and node.attributes.moves:
        return 0
    _, outputs = weight_shape(node, graph)
    return node.type.rows * outputs * sum(own_rows(graph[name]) for name in weights_of(node))


def weights_of(node: Node) -> tuple[str, ...]:
    """The names of a layer's weights."""
    match node.attributes:
        case Fc(sources=count):
            return node.operands[count : 2 * count]
        case Conv():
            return node.operands[1:2]
    return ()
