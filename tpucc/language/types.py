"""Types as they are written, evaluated; and the inputs that have them."""

from __future__ import annotations

import math
from dataclasses import replace

from tpucc.diagnostics import Label, Span, UsageError, did_you_mean
from tpucc.ir import NoAttributes, Range, TensorType
from tpucc.ir.dtypes import FORMATS
from tpucc.language import ast
from tpucc.language.expressions import required_value, required_values
from tpucc.language.frame import Frame, as_integer, param_of, require_elements
from tpucc.language.problem import Problem, Unknown
from tpucc.language.static import require_static
from tpucc.language.values import POISON, Poison, Value, describe, is_number
from tpucc.language.words import advice
from tpucc.ops.rules import MAX_RANK, MAX_SIZE

DECLARABLE = ("f32", "i32")
"""The data types that a source may name; the others arise by quantising."""
KNOWN_SIZES = (
    "every size is known while compiling: write param batch = 8 at the top, and batch here; tpucc run takes other batches all the same"
)
"""The help for a size that isn't known while compiling."""


def tensor_type(frame: Frame, node: ast.Type, *, bounded_for: str = "") -> TensorType | Poison:
    """The type that is written, or `POISON`; errors are reported. `bounded_for` says what can't have bounds, if it can't.

    Raises `UsageError` for a size that `-D` sets, and that is none.
    """
    try:
        _require_dtype(node.dtype)
        if node.bounds is not None and bounded_for:
            message = f"{bounded_for} has no range"
            raise Problem("E0321", message, node.bounds.span, "", "only an input's range can be fixed with in [low, high]")
        sizes = [_size(frame, size) for size in node.sizes]
        range_ = None if node.bounds is None else _range(frame, node.dtype.text, node.bounds)
        if not all(sizes):
            raise Unknown
        if len(sizes) > MAX_RANK:
            raise Problem("E0303", f"a tensor has at most {MAX_RANK} dimensions, found {len(sizes)}", node.span)
    except (Problem, Unknown) as wrong:
        frame.report(wrong)
        return POISON
    type_ = TensorType(node.dtype.text, tuple(sizes), range_)
    require_elements(type_.plain(), node.span, frame.run.limits)
    return type_


def _require_dtype(dtype: ast.Identifier) -> None:
    if dtype.text in DECLARABLE:
        return
    if dtype.text in FORMATS:
        mend = "models are written in f32; the compiler quantises, and quantize(x, scale) fixes how"
    else:
        near = advice("types", dtype.text)
        mend = f"did you mean {near}?" if near else did_you_mean(dtype.text, DECLARABLE)
    raise Problem("E0320", f"{dtype.text} isn't a data type", dtype.span, "expected f32, or i32 for indices", mend)


def _size(frame: Frame, node: ast.Expression) -> int:
    """A size of a type; 0 when it is wrong, which is then reported."""
    try:
        if isinstance(node, ast.Name) and node.text == "None" and "None" not in frame.known_names():
            raise Problem("E0201", "a size can't be None", node.span, "nothing is named None", KNOWN_SIZES)
        value = required_value(frame, node)
        try:
            return _require_size(value, node, frame)
        except Problem as problem:
            raise _about_param(problem, node, frame) from None
    except (Problem, Unknown) as wrong:
        frame.report(wrong)
        return 0


def _about_param(problem: Problem, node: ast.Expression, frame: Frame) -> Problem:
    """A size that is a param's is wrong where the param has its value, once for all of its uses; the first of them is a note.

    Raises `UsageError` when `-D` sets the param: the source is right then, and every other use of the param as wrong.
    """
    param, found = param_of(frame, node), problem.diagnostic
    if param is None:
        return problem
    name = param.name.text
    if name in frame.run.given:
        message = f"-D {name}={frame.run.given[name]} doesn't fit: {found.message}"
        mend = f"a size is a whole number from 1 up: -D {name}=8"
        raise UsageError(replace(found, message=message, help=(mend,)), frame.run.source)
    return Problem(found.code, found.message, param.value.span, "", *found.help, notes=(Label(node.span, f"{name} is a size here"),))


def _require_size(value: Value, node: ast.Expression, frame: Frame) -> int:
    span = node.span
    size = as_integer(frame, value, node, "a size")
    shown = frame.run.excerpt(span)
    label = f"{shown} is {size}" if shown and shown != str(size) else ""
    if not 1 <= size <= MAX_SIZE:
        bound = "at least 1" if size < 1 else f"at most {MAX_SIZE:,}"
        raise Problem("E0308", f"a size must be {bound}, found {size}", span, label, KNOWN_SIZES if size == -1 else "")
    return size


def _range(frame: Frame, dtype: str, bounds: ast.Bounds) -> Range:
    low, high = required_values(frame, (bounds.low, bounds.high))
    first, last = _end(low, bounds.low.span, dtype), _end(high, bounds.high.span, dtype)
    if first >= last:
        message = f"the range is empty: {describe(low)} is not below {describe(high)}"
        raise Problem("E0321", message, bounds.span, "", "write in [low, high], the lower one first")
    return Range(first, last)


def _end(value: Value, span: Span, dtype: str) -> float:
    """An end of the range of an input."""
    require_static(value, "the end of a range", span)
    if not is_number(value):
        raise Problem("E0216", f"the end of a range must be a number, found {describe(value)}", span)
    if not math.isfinite(value) or abs(value) > 3.4e38:
        raise Problem("E0321", "the end of a range is beyond what f32 holds", span)
    if dtype == "i32" and not isinstance(value, int):
        mend = f"write {int(value)}" if value == int(value) else ""
        raise Problem("E0216", f"the end of a range of i32 must be an integer, found {describe(value)}", span, "", mend)
    if dtype == "i32" and not -(2**31) <= value < 2**31:
        raise Problem("E0321", "the end of a range is beyond what i32 holds", span)
    return float(value)


def declare_inputs(inputs: tuple[ast.Input, ...], frame: Frame) -> None:
    """Makes each input of `model` or `train` a node of the graph and a variable of the frame; what is wrong is reported."""
    for item in inputs:
        name = item.name
        if name.text in frame.variables:
            frame.report(Problem("E0204", f"two inputs are named {name.text}", name.span))
            continue
        type_ = tensor_type(frame, item.type)
        if isinstance(type_, Poison):
            frame.variables[name.text] = POISON
        else:
            frame.variables[name.text] = frame.add("input", (), NoAttributes(), type_, item.span, (name.text,))
