"""`x[...]`: of tensors a part, with NumPy's meaning; of lists and strings an element or a slice, with Python's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import Span, counted
from tpucc.frontend import ast
from tpucc.frontend.apply import Application, Operand, applied
from tpucc.frontend.frame import Frame, Hint
from tpucc.frontend.problem import Problem
from tpucc.frontend.static import require_integer
from tpucc.frontend.values import Items, Poison, Tensor, Value, describe, items
from tpucc.ops.slice import SliceAttributes

Evaluate = Callable[[Frame, ast.Expression], Value]


@dataclass(frozen=True, slots=True)
class Part:
    """What is taken of one axis: start to stop; `dropped` when the axis was indexed by an integer."""

    start: int
    stop: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """A slice's bounds, as written; None where nothing is."""

    start: int | None
    stop: int | None


class PoisonedIndex(Exception):
    """An index is wrong, and reported."""


def tensor_part(frame: Frame, tensor: Tensor, node: ast.Subscript, evaluate: Evaluate, hint: Hint) -> Tensor:
    """A part of a tensor. Raises `Problem`, or `PoisonedIndex`."""
    variable = node.value.text if isinstance(node.value, ast.Name) else ""
    name = variable or frame.run.excerpt(node.value.span) or "the tensor"
    indices = [_index(frame, index, evaluate) for index in node.indices]
    type_ = tensor.type
    if len(indices) > type_.rank:
        message = f"{counted(len(indices), 'index', 'indices')} for {counted(type_.rank, 'dimension')}"
        raise Problem("E0303", message, node.span, f"{name} is {type_.brief}")
    parts = [
        _part(index, place.span, axis, type_.shape[axis], name)
        for axis, (index, place) in enumerate(zip(indices, node.indices, strict=True))
    ]
    parts += [Part(0, size, False) for size in type_.shape[len(parts) :]]
    if all(part == Part(0, size, False) for part, size in zip(parts, type_.shape, strict=True)):
        return tensor
    squeeze = tuple(axis for axis, part in enumerate(parts) if part.dropped)
    attributes = SliceAttributes(tuple(part.start for part in parts), tuple(part.stop for part in parts), squeeze)
    operand = Operand(tensor, node.value.span, variable)
    return applied(Application(frame, "slice", (operand,), attributes, node.span), hint)


def static_part(frame: Frame, value: Items | str, node: ast.Subscript, evaluate: Evaluate) -> Value:
    """An element or a slice of a list or a string. Raises `Problem`, or `PoisonedIndex`."""
    if len(node.indices) != 1:
        raise Problem("E0216", f"{describe(value)} takes one index, found {len(node.indices)}", node.span)
    index = _index(frame, node.indices[0], evaluate)
    values: Sequence[Value] = value.values if isinstance(value, Items) else value
    if isinstance(index, Bounds):
        chosen = slice(index.start, index.stop)
        return value[chosen] if isinstance(value, str) else items(value.values[chosen])
    if not -len(values) <= index < len(values):
        place = node.indices[0].span
        raise Problem(
            "E0219", f"index {index} is out of range", place, _reach(frame.run.excerpt(node.value.span) or "the list", len(values))
        )
    return values[index]


def _index(frame: Frame, node: ast.Expression | ast.Slice, evaluate: Evaluate) -> int | Bounds:
    if not isinstance(node, ast.Slice):
        return _integer(evaluate(frame, node), node.span, "an index")
    start, stop, step = (
        None if part is None else _integer(evaluate(frame, part), part.span, "the bound of a slice")
        for part in (node.start, node.stop, node.step)
    )
    if step not in (None, 1):
        raise Problem("E0226", "slices have steps of 1", node.step.span if node.step else node.span, f"found the step {step}")
    return Bounds(start, stop)


def _integer(value: Value, span: Span, what: str) -> int:
    if isinstance(value, Poison):
        raise PoisonedIndex
    return require_integer(value, what, span)


def _part(index: int | Bounds, span: Span, axis: int, size: int, name: str) -> Part:
    if isinstance(index, int):
        if not -size <= index < size:
            raise Problem("E0313", f"index {index} is out of range for axis {axis} of {name}", span, _reach(f"axis {axis}", size))
        return Part(index % size, index % size + 1, True)
    start, stop, _ = slice(index.start, index.stop).indices(size)
    if start >= stop:
        message = f"this slice takes nothing of axis {axis} of {name}"
        raise Problem("E0308", message, span, f"axis {axis} has {counted(size, 'element')}", "a tensor has at least one element")
    return Part(start, stop, False)


def _reach(name: str, size: int) -> str:
    if size == 0:
        return f"{name} is empty"
    return f"{name} has {counted(size, 'element')}: 0 to {size - 1}, or -{size} to -1"
