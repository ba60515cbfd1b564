"""Parts: what of its operands a part of a result is computed from.

A rule gets an operator's attributes, the shapes of its operands and of its result, and the bounds of a part of the result. It gives a
`Part`, or None where the operator is computed whole. Slices that move up, maps that are computed in bands of lines and any other pass that
cuts values ask these rules. The rules of operators that are alone in what they do stand in the operators' files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.ir import Attributes
from tpucc.ops.axis import Ends

Shape = tuple[int, ...]
Shapes = Sequence[Shape]
"""The shapes of a node's operands, in order."""
Bounds = tuple[Ends, ...]
"""A part of a value: start and stop of each axis."""


@dataclass(frozen=True, slots=True)
class Part:
    """How a part of a result is computed.

    `operands` has for each operand the part that is read; one that is empty along an axis when nothing but padding is. `attributes` are
    those with which that part is computed: by the operator `op`, or by the same one where `op` is empty.
    """

    operands: tuple[Bounds, ...]
    attributes: Attributes
    op: str = ""


PartRule = Callable[[Any, Shapes, Shape, Bounds], Part | None]


def all_of(shape: Shape) -> Bounds:
    """The bounds of the whole of a value."""
    return tuple((0, size) for size in shape)


def shape_of(bounds: Bounds) -> Shape:
    return tuple(stop - start for start, stop in bounds)


def inseparable(_: Attributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """The operator is computed whole."""
    return None


def element_by_element(attributes: Attributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """NumPy's broadcasting: the same elements of each operand; an axis of size 1 that repeats is read whole."""
    return Part(tuple(_aligned(shape, bounds) for shape in shapes), attributes)


def _aligned(shape: Shape, bounds: Bounds) -> Bounds:
    ends = bounds[len(bounds) - len(shape) :]
    return tuple((0, 1) if size == 1 else pair for size, pair in zip(shape, ends, strict=True))


def product(attributes: Attributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """Rows of the left operand, columns of the right one, and of the bias if there is one; of batch dimensions the same items of both."""
    left, right = shapes[:2]
    depth, columns = (0, left[-1]), bounds[-1]
    if len(right) == 2:
        operands: tuple[Bounds, ...] = ((*bounds[:-1], depth), (depth, columns), (columns,))
        return Part(operands[: len(shapes)], attributes)
    rows = bounds[-2:-1] if len(left) > 1 else ()
    items = bounds[: len(bounds) - 1 - len(rows)]
    return Part(((*_aligned(left[:-2], items), *rows, depth), (*_aligned(right[:-2], items), depth, columns)), attributes)
