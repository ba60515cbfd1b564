"""The closed set of layers, as attributes of graph nodes.

| node | operands |
|---|---|
| `fc` | x: i8 [..., K]; weights: i8 [K, N]; bias: i32 [N]; multiplier: f32 [N]; table: i8 [256] if `table` |
| `vector` | a: i8; b: i8 (add, subtract, multiply); table: i8 [256] if `table` |

The arithmetic is that of `tpucc.numerics`; shapes broadcast as in NumPy, and leading sizes are rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.numerics import INT8_HIGH, INT8_LOW


@dataclass(frozen=True, slots=True)
class Fc:
    """A fully connected layer: `table[clamp(requantise(x @ weights + bias, multiplier) + zero)]`.

    The input's zero point is folded into the bias. Without a table, `zero` is the result's zero point; with one, it is that of the
    value before the function.
    """

    zero: int
    low: int = INT8_LOW
    high: int = INT8_HIGH
    table: bool = False


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
    low: int = INT8_LOW
    high: int = INT8_HIGH
    table: bool = False


Layer = Fc | Vector
LAYERS: dict[str, type[Fc] | type[Vector]] = {"fc": Fc, "vector": Vector}
