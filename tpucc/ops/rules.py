"""Rules that several operators share: of shapes, types and attributes; with the examples of those that have no others."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.ir import NoAttributes, Range, TensorType, f32
from tpucc.ir.dtypes import FORMATS
from tpucc.ops.opdef import Array, Arrays, Example, RuleError, Types

UNARY = (Example("one whole tile", NoAttributes(), (f32(8, 256),)), Example("ragged", NoAttributes(), (f32(3, 5, 257),)))
"""The examples of functions of one value."""

BROADCAST = (
    Example("one whole tile", NoAttributes(), (f32(8, 256), f32(8, 256))),
    Example("ragged", NoAttributes(), (f32(3, 5, 257), f32(3, 5, 257))),
    Example("a value a column", NoAttributes(), (f32(3, 257), f32(257))),
    Example("a scalar", NoAttributes(), (f32(3, 5), f32())),
    Example("both sides repeat", NoAttributes(), (f32(3, 1), f32(1, 4))),
)
"""The examples of functions of two values."""

ONE_TO_TWO = Range(1.0, 2.0)
POSITIVE = tuple(replace(example, operands=(example.operands[0].with_range(ONE_TO_TWO),)) for example in UNARY)
"""The examples of functions that only positive values have."""

MAX_RANK = 32
MAX_SIZE = 2**31 - 1
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_NORMAL = float(np.finfo(np.float32).tiny)


def require_f32(types: Types) -> None:
    """Raises `RuleError` for the first operand that isn't float32."""
    for index, type_ in enumerate(types):
        if type_.dtype != "f32":
            mend = "dequantize it first" if type_.quantisation else "only indices and labels are integers"
            raise RuleError("E0305", f"expected f32 values, found {type_.brief}", about=(index,), help=mend)


def require_rank(type_: TensorType, rank: int, index: int, layout: str) -> None:
    """Raises `RuleError` unless operand `index` has `rank` dimensions; `layout` names them: `[batch, height, width, channels]`."""
    if type_.rank != rank:
        raise RuleError("E0303", f"expected {rank} dimensions, {layout}, found {type_.rank}", about=(index,))


def unary(_: Any, types: Types) -> TensorType:
    """The rule of element-wise functions: float32 of any shape, the result likewise."""
    require_f32(types)
    return types[0].plain()


def binary(_: Any, types: Types) -> TensorType:
    """The rule of element-wise functions of two values: float32, shapes that broadcast as NumPy's do."""
    require_f32(types)
    return TensorType("f32", broadcast(types[0].shape, types[1].shape))


def broadcast(a: tuple[int, ...], b: tuple[int, ...], about: tuple[int | str, ...] = (0, 1), last: int = -1) -> tuple[int, ...]:
    """The common shape of two operands, which `about` names: sizes are compared from the right; one that is 1 or missing repeats.

    `last` is the operands' axis, counted from their end, that the last of these sizes belongs to.

    NumPy's rule, which is also ONNX's multidirectional broadcasting. Raises `RuleError`.
    """
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for axis, (m, n) in enumerate(zip(left, right, strict=True)):
        if m != n and 1 not in (m, n):
            mend = f"their sizes at axis {axis - rank + 1 + last} are {m} and {n}: these must be equal, or one of them 1"
            raise RuleError("E0302", "shapes don't broadcast", about=about, help=mend)
    return tuple(n if m == 1 else m for m, n in zip(left, right, strict=True))


def require_axis(axis: object, rank: int) -> int:
    """The attribute `axis` of operand 0, which has `rank` dimensions, as a number from 0; negative ones count from the end.

    Raises `RuleError`.
    """
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise RuleError("E0306", "axis must be an integer", about=("axis",))
    if rank == 0:
        raise RuleError("E0304", "{0} is a scalar: it has no axes", about=(0,))
    if not -rank <= axis < rank:
        found = f"axis {axis} is out of range" if abs(axis) <= MAX_SIZE else "the axis is far out of range"
        raise RuleError("E0304", found, about=("axis",), help=f"{{0}} has axes 0 to {rank - 1}, or {-rank} to -1")
    return axis % rank


def require_sizes(shape: tuple[int, ...], about: int | str) -> None:
    """Raises `RuleError` unless every size is in 1…2^31 - 1 and there are at most 32 of them. tpucc has no empty tensors."""
    if len(shape) > MAX_RANK:
        raise RuleError("E0303", f"a tensor has at most {MAX_RANK} dimensions, found {len(shape)}", about=(about,))
    for size in shape:
        if size < 1:
            raise RuleError("E0308", f"every size must be at least 1, found {size if size > -MAX_SIZE else 'much less'}", about=(about,))
        if size > MAX_SIZE:
            raise RuleError("E0308", f"a size is larger than {MAX_SIZE:,}", about=(about,))


def swapped(rank: int) -> tuple[int, ...]:
    """The axes with the last two exchanged."""
    return (*range(rank - 2), rank - 1, rank - 2)


def reshaped(type_: TensorType, shape: tuple[int, ...]) -> TensorType:
    """The type of the same values in another shape or order; integers of the device stay quantised as they are."""
    return TensorType(type_.dtype, shape, quantisation=None if type_.dtype == "f32" else type_.quantisation)


def declared(_: Any, types: Types) -> TensorType:
    """The rule of inputs, weights and constants: a known data type and sizes of at least 1. `types` has the declared type alone."""
    if types[0].dtype not in FORMATS:
        raise RuleError("E0305", "no such data type", help=f"the data types are {', '.join(FORMATS)}")
    require_sizes(types[0].shape, 0)
    return types[0]


def same(_: Any, operands: Arrays) -> Array:
    """The reference of inputs and weights: the array that was given."""
    return operands[0]


# Attributes. They come from the source or from a graph in text form, and may be anything that can be written there: no type is trusted.


def shown(value: object) -> str:
    """`, found 2.5`: a wrong value at the end of a message, or nothing when it is long or would upset the text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**18:
        return ", found a number of more than 18 digits"
    text = repr(value) if isinstance(value, bool | int | float | str | None) else f"a {type(value).__name__}"
    return f", found {text}" if len(text) <= 40 and not set("{}") & set(text) else ""


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def require_integer(value: Any, name: str, low: int, high: int = MAX_SIZE) -> int:
    """The attribute `name` as an integer in low…high. Raises `RuleError`."""
    if not is_integer(value):
        raise RuleError("E0306", f"{name} must be an integer{shown(value)}", about=(name,))
    if not low <= value <= high:
        bounds = f"at least {low}" if value < low else f"at most {high:,}"
        raise RuleError("E0307", f"{name} must be {bounds}{shown(value)}", about=(name,))
    return int(value)


def require_number(value: Any, name: str) -> float:
    """The attribute `name` as a finite float32 number; integers are numbers, booleans aren't. Raises `RuleError`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuleError("E0306", f"{name} must be a number{shown(value)}", about=(name,))
    if not (math.isfinite(value) if isinstance(value, float) else True) or abs(value) > FLOAT32_MAX:
        raise RuleError("E0307", f"{name} must be a finite float32 number{shown(value)}", about=(name,))
    return float(value)


def require_flag(value: object, name: str) -> bool:
    """The attribute `name` as True or False. Raises `RuleError`."""
    if not isinstance(value, bool):
        raise RuleError("E0306", f"{name} must be True or False{shown(value)}", about=(name,))
    return value


def require_integers(value: Any, name: str) -> tuple[int, ...]:
    """The attribute `name`, an integer or a list of them, as a tuple. Raises `RuleError`."""
    if is_integer(value):
        return (value,)
    if not isinstance(value, tuple | list) or not all(map(is_integer, value)):
        raise RuleError("E0306", f"{name} must be a list of integers{shown(value)}", about=(name,))
    return tuple(value)


def require_shape(value: Any) -> tuple[int, ...]:
    """The attribute `shape`: sizes of at least 1; a lone integer is one size, as in NumPy. Raises `RuleError`."""
    shape = require_integers(value, "shape")
    require_sizes(shape, "shape")
    return shape


def require_pair(value: Any, name: str, high: int) -> tuple[int, int]:
    """The attribute `name` as (height, width), both in 1…high; a lone integer stands for both. Raises `RuleError`."""
    sizes = require_integers(value, name)
    if not is_integer(value) and len(sizes) != 2:
        raise RuleError("E0306", f"{name} must be an integer or a pair (height, width)", about=(name,))
    height, width = (require_integer(size, name, 1, high) for size in (sizes[0], sizes[-1]))
    return height, width
