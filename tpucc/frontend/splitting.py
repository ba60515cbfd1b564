"""`split(x, parts, axis)`: a tensor in several, as slices that lie side by side. No operator has several results."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise

from tpucc.diagnostics import Span
from tpucc.frontend import ast
from tpucc.frontend.apply import Application, Operand, applied, operand
from tpucc.frontend.binding import Callee, bind
from tpucc.frontend.frame import Frame, Hint
from tpucc.frontend.origins import integer_mend
from tpucc.frontend.problem import Problem
from tpucc.frontend.static import require_integer
from tpucc.frontend.values import POISON, Items, Value, items, poisoned
from tpucc.ops.slice import SliceAttributes

NAME = "split"
CALLEE = Callee(NAME, (("x", True), ("parts", True), ("axis", True)), None, "split(x, parts, axis)", "function")


def split(frame: Frame, node: ast.Call, values: Mapping[int, Value], hint: Hint) -> Value:
    """A tuple of the parts: as many as an integer says, all of one size, or of the sizes of a list. Raises `Problem`."""
    bound = bind(CALLEE, node.arguments, node.span)
    if any(map(poisoned, values.values())):
        return POISON
    x = operand(frame, values[id(bound["x"])], bound["x"].value)
    shape, name = x.tensor.type.shape, x.variable or "the tensor"
    place = bound["axis"].value.span
    given = values[id(bound["axis"])]
    axis = require_integer(given, "the axis of split", place, integer_mend(frame, bound["axis"].value, given))
    if not -len(shape) <= axis < len(shape):
        raise Problem("E0304", f"axis {axis} is out of range", place, f"{name} is {x.tensor.type.brief}")
    axis %= len(shape)
    sizes = _sizes(frame, values[id(bound["parts"])], shape[axis], f"axis {axis} of {name}", bound["parts"].value)
    frame.run.spend(10 * len(sizes), node.span)
    names = [(name,) for name in hint] if len(hint) == len(sizes) else [()] * len(sizes)
    ends = pairwise(accumulate(sizes, initial=0))
    return items(tuple(_part(frame, x, axis, start, stop, node.span, wanted) for (start, stop), wanted in zip(ends, names, strict=True)))


def _sizes(frame: Frame, parts: Value, size: int, what: str, node: ast.Expression) -> list[int]:
    span = node.span
    if isinstance(parts, Items):
        sizes = [require_integer(value, "a size of split", span, integer_mend(frame, node, value)) for value in parts.values]
        if not sizes or min(sizes) < 1 or sum(sizes) != size:
            message = f"the sizes of the parts must be at least 1 and add up to {size}, which {what} has"
            raise Problem("E0307", message, span, f"they add up to {sum(sizes)}", "split takes sizes, not the places between the parts")
        return sizes
    count = require_integer(parts, "the number of parts", span, "write an integer, or a list of sizes: split(x, [2, 3], axis=1)")
    if count < 1 or size % count:
        mend = "a list gives parts of different sizes: split(x, [2, 3], axis=1)"
        raise Problem("E0307", f"{what} can't be split into {count} equal parts", span, f"it has {size}", mend)
    return [size // count] * count


def _part(frame: Frame, x: Operand, axis: int, start: int, stop: int, span: Span, hint: Hint) -> Value:
    shape = x.tensor.type.shape
    starts, stops = [0] * len(shape), list(shape)
    starts[axis], stops[axis] = start, stop
    if stops == list(shape) and not start:
        return x.tensor
    return applied(Application(frame, "slice", (x,), SliceAttributes(tuple(starts), tuple(stops)), span), hint)
