"""Why a node can't be read, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import Diagnostic, counted, listed
from tpucc.interop.onnx.reading import sequences
from tpucc.interop.onnx.reading.building.values import Listed, Static, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, shortened
from tpucc.interop.onnx.reading.nearest import NEAREST, instead_of
from tpucc.interop.onnx.reading.operators.rows import ROWS

SHOWN = 8
"""The most values of a constant that a message has."""
NAMED = 6
"""Nodes that a message names."""
STRUCTURE = frozenset({"If", "Loop", *sequences.RULES})
"""Operators that are taken apart while a file is read."""


def hindrance(node: OnnxNode, is_computed: bool) -> Unsupported | None:
    """Why a node can't be read, whatever its operands are but for whether the network computes one of them."""
    if node.kind in STRUCTURE:
        return None
    if (row := ROWS.get(node.kind)) is None:
        return Unsupported("", instead_of(node))
    if row.build is not None:
        return None
    return Unsupported("", NEAREST.get(node.op, "of constants it is read, and computed while reading")) if is_computed else None


def misfit(node: OnnxNode, operands: Sequence[Value | Listed | None]) -> str:
    """What a rule was given that it can't be applied to: the shapes, short lists of integers, and the attributes that are numbers or
    words."""
    given = {name: value for name, value in node.attributes.items() if isinstance(value, int | float | str | tuple)}
    words = listed([f"{named(name)} = {shortened(list(value) if isinstance(value, tuple) else value)}" for name, value in given.items()])
    shapes = listed([_shown(value) for value in operands]) or "none"
    return f"operands of the shapes {shapes} don't fit each other, or the operator{f' with {words}' if words else ''}"


def _shown(value: Value | Listed | None) -> str:
    """An operand in a message."""
    if value is None or isinstance(value, Listed):
        return "nothing" if value is None else "a sequence"
    known = (
        shortened(value.array.tolist())
        if isinstance(value, Static) and value.array.dtype.kind in "iu" and 0 < value.array.size <= SHOWN
        else ""
    )
    return f"{list(value.shape)}{f' with {known}' if known else ''}"


def problem(op: str, message: str, help: str, nodes: list[OnnxNode]) -> Diagnostic:
    """One message for all nodes that have one problem."""
    shown = listed([node.title for node in nodes[:NAMED]] + [f"{len(nodes) - NAMED} more"] * (len(nodes) > NAMED))
    where = f"{counted(len(nodes), 'node')}: {shown}"
    if not message:
        return Diagnostic("E1006", f"tpucc has nothing for the operator {op} ({where})", help=(help,))
    return Diagnostic("E1007", f"{op}: {message} ({where})", help=(help,))
