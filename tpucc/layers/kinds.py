"""The closed set of layers, as attributes of graph nodes.

| node | operands |
|---|---|
| `fc` | for each source x: i8 [..., K]; for each weights: i8 [K, N]; bias: i32 [N]; multiplier: f32 [N]; table: i8 [256] if `table` |
| `conv` | x: i8 [B, H, W, C]; weights: i8 [R, S, C, F]; bias: i32 [F]; multiplier: f32 [F]; table: i8 [256] if `table` |
| `pool` | x: i8 [B, H, W, C] |
| `vector` | a: i8; b: i8 (add, subtract, multiply); table: i8 [256] if `table` |
| `move` | i8 values that are quantised alike |

Values are i8 here; with 16-bit activations all of them are i16, and a table has the function's values at 257 points: i16 [257]. Weights
stay i8. The arithmetic is that of `tpucc.numerics`; shapes broadcast as in NumPy, and leading sizes are rows. Beside the layers, the device
has `reshape`, `slice` and `transpose` of values that leave the last axis alone: they move nothing, for they only say how rows are walked.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.dtypes import I8

Sides = tuple[int, int, int, int]
"""Rows or columns of pixels at the top, the bottom, the left and the right."""


@dataclass(frozen=True, slots=True)
class Fc:
    """A fully connected layer: `table[clamp(requantise(Σ x_i @ weights_i + bias, multiplier) + zero)]`.

    The sum goes over `sources` operands, one unless said; their zero points are folded into the bias. Without a table, `zero` is the
    result's zero point; with one, it is that of the value before the function. A layer that `moves` has weights of zeros and ones that
    only pick lanes and place them: none of its products are the model's.
    """

    zero: int
    low: int = I8.low
    high: int = I8.high
    table: bool = False
    sources: int = 1
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, requantised as a fully connected layer is. Around the image, `sides` of pixels have the value `outside`.

    `outside` is x's zero point: zero in real numbers, so that the bias can take in the zero point of every product alike.
    """

    stride: tuple[int, int]
    sides: Sides
    outside: int
    zero: int
    low: int = I8.low
    high: int = I8.high
    table: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """The largest pixel of each window ("max"), or their mean ("average"), channel by channel; only real pixels count.

    average: `round(float32(scale / count) * Σ(a - zero_x)) + zero`, clamped, for a window of `count` real pixels. A maximum keeps the
    parameters of x and uses none of these numbers.
    """

    function: str
    size: tuple[int, int]
    stride: tuple[int, int]
    sides: Sides
    scale: float = 1.0
    zero_x: int = 0
    zero: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """An element-wise layer.

    `function` is "add", "subtract", "multiply" or "table". add, subtract: `round(scale_a * (a - zero_a) ± scale_b * (b - zero_b)) +
    zero`; multiply: `round(scale_a * ((a - zero_a) * (b - zero_b))) + zero`, all in float32; then the clamp and the table if there is
    one. "table" only looks up.
    """

    function: str
    scale_a: float = 1.0
    zero_a: int = 0
    scale_b: float = 1.0
    zero_b: int = 0
    zero: int = 0
    low: int = I8.low
    high: int = I8.high
    table: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Rows put elsewhere: "concat" joins its operands along `axis`, "pad" puts rows of `value` around one.

    `pads` are, for "pad", the numbers of rows before and after each axis. The last axis, that of the lanes, is never touched.
    """

    function: str
    axis: int = 0
    pads: tuple[tuple[int, int], ...] = ()
    value: int = 0


Layer = Fc | Conv | Pool | Vector | Move
LAYERS: dict[str, type[Layer]] = {"fc": Fc, "conv": Conv, "pool": Pool, "vector": Vector, "move": Move}
VIEWS = ("reshape", "slice", "transpose")
"""Operators that are the device's too, where they leave the last axis of a value alone."""
