"""Parts of values: subscripts of lists, strings and tensors, and `split(x, parts, axis)`. A part of a tensor is a `slice` node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tpucc.diagnostics import Span, counted
from tpucc.language import ast
from tpucc.language.apply import Application, Operand, applied, operand
from tpucc.language.frame import Frame, Hint, as_integer, hints_for_each
from tpucc.language.problem import Problem
from tpucc.language.static import require_integer
from tpucc.language.values import ArgumentValue, Items, Tensor, Value, items
from tpucc.ops.slice import SliceAttributes


@dataclass(frozen=True, slots=True)
class Part:
    """The places of one axis that are taken; `dropped` when the axis was indexed by an integer."""

    places: range
    dropped: bool = False


def static_part(frame: Frame, value: Items | str, node: ast.Subscript, index: int | slice) -> Value:
    """An element or a slice of a list or a string. Raises `Problem`."""
    values: Sequence[Value] = value.values if isinstance(value, Items) else value
    if isinstance(index, slice):
        frame.run.spend_on(value, node.span)
        return value[index] if isinstance(value, str) else items(value.values[index])
    if not -len(values) <= index < len(values):
        reach = _reach(frame.run.excerpt(node.value.span) or "the list", len(values))
        scalar = isinstance(node.value, ast.Attribute) and node.value.name.text == "shape" and not values
        mend = "the shape of a scalar has no sizes" if scalar else ""
        raise Problem("E0219", f"index {index} is out of range", node.indices[0].span, reach, mend)
    return values[index]


def tensor_part(frame: Frame, tensor: Tensor, node: ast.Subscript, indices: Sequence[int | slice], hint: Hint) -> Tensor:
    """A part of a tensor: NumPy's meaning of the indices. Raises `Problem`."""
    variable = node.value.text if isinstance(node.value, ast.Name) else ""
    name = variable or frame.run.excerpt(node.value.span) or "the tensor"
    shape = tensor.type.shape
    if len(indices) > len(shape):
        message = f"{counted(len(indices), 'index', 'indices')} for {counted(len(shape), 'dimension')}"
        raise Problem("E0303", message, node.span, f"{name} is {tensor.type.brief}")
    parts = [_part(index, node.indices[axis].span, axis, shape[axis], name) for axis, index in enumerate(indices)]
    parts += [Part(range(size)) for size in shape[len(parts) :]]
    return _taken(frame, Operand(tensor, node.value.span, variable), parts, node.span, hint)


def _part(index: int | slice, span: Span, axis: int, size: int, name: str) -> Part:
    if isinstance(index, int):
        if not -size <= index < size:
            raise Problem("E0313", f"index {index} is out of range for axis {axis} of {name}", span, _reach(f"axis {axis}", size))
        return Part(range(index % size, index % size + 1), dropped=True)
    places = range(*index.indices(size))
    if not places:
        message = f"this slice takes nothing of axis {axis} of {name}"
        raise Problem("E0308", message, span, f"axis {axis} has {counted(size, 'element')}", "a tensor has at least one element")
    return Part(places if len(places) > 1 else range(places[0], places[0] + 1))


def _reach(name: str, size: int) -> str:
    if size == 0:
        return f"{name} is empty"
    return f"{name} has {counted(size, 'element')}: 0 to {size - 1}, or -{size} to -1"


def _taken(frame: Frame, x: Operand, parts: Sequence[Part], span: Span, hint: Hint) -> Tensor:
    """The parts of each axis; the tensor itself if they are all of it."""
    if all(part == Part(range(size)) for part, size in zip(parts, x.tensor.type.shape, strict=True)):
        return x.tensor
    squeeze = tuple(axis for axis, part in enumerate(parts) if part.dropped)
    starts, stops, steps = zip(*((part.places.start, part.places.stop, part.places.step) for part in parts), strict=True)
    attributes = SliceAttributes(starts, stops, squeeze, steps if set(steps) != {1} else ())
    return applied(Application(frame, "slice", (x,), attributes, span), hint)


def split(frame: Frame, bound: Mapping[str, ArgumentValue], span: Span, hint: Hint) -> Value:
    """The parts of `split(x, parts, axis)`: as many as an integer says, all of one size, or of the sizes of a list. Raises `Problem`."""
    x = operand(frame, bound["x"].value, bound["x"].expression)
    shape, name, given = x.tensor.type.shape, x.variable or "the tensor", bound["axis"]
    axis = as_integer(frame, given.value, given.expression, "the axis of split")
    if not -len(shape) <= axis < len(shape):
        raise Problem("E0304", f"axis {axis} is out of range", given.expression.span, f"{name} is {x.tensor.type.brief}")
    axis %= len(shape)
    sizes = _sizes(frame, bound["parts"], shape[axis], f"axis {axis} of {name}")
    frame.run.spend(10 * len(sizes), span)
    whole = [Part(range(size)) for size in shape]
    places = [Part(range(*ends)) for ends in pairwise(accumulate(sizes, initial=0))]
    parts = zip(places, hints_for_each(hint, len(sizes)), strict=True)
    return items(tuple([_taken(frame, x, [*whole[:axis], part, *whole[axis + 1 :]], span, wanted) for part, wanted in parts]))


def _sizes(frame: Frame, parts: ArgumentValue, size: int, what: str) -> list[int]:
    place = parts.expression.span
    if isinstance(parts.value, Items):
        sizes = [as_integer(frame, value, parts.expression, "a size of split") for value in parts.value.values]
        if not sizes or min(sizes) < 1 or sum(sizes) != size:
            message = f"the sizes of the parts must be at least 1 and add up to {size}, which {what} has"
            raise Problem("E0307", message, place, f"they add up to {sum(sizes)}", "split takes sizes, not the places between the parts")
        return sizes
    mend = "write an integer, or a list of sizes: split(x, [2, 3], axis=1)"
    count = require_integer(parts.value, "the number of parts", place, mend)
    if count < 1 or size % count:
        mend = "a list gives parts of different sizes: split(x, [2, 3], axis=1)"
        raise Problem("E0307", f"{what} can't be split into {count} equal parts", place, f"it has {size}", mend)
    return [size // count] * count
