"""Integers of a quantised file that operators only move: the scale that is said of them later, and the grid on which results lie.

A file in the form of operators on integers has rows of a table, transposes and pools of integers without a scale. What computes with them
says one, as its own operands. So a table of integers is real values by the scale that the first such node says. Where others say another
one, each has the same integers by its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import BITS, Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.operators.quantised import Quantised, Scale, integers_read, on_grid, table_of
from tpucc.interop.onnx.reading.operators.rows import ROWS, Fact, has, names_with

ON_INTEGERS = frozenset({"ArgMax", "ArgMin", "Cast", "CastLike", "Shape", "Size"}) | names_with(Fact.KEEPS)
"""Operators that take integers of the file as the real values that they stand for: they only move or compare them."""
Said = Mapping[str, tuple[str, str]]
"""By the name of integers, those of their scale and their zero point; the latter is empty where none is given."""


def said_scales(graph: OnnxGraph) -> Said:
    """What the first node says that computes with integers, also with what operators have made of them that only move them."""
    said: dict[str, tuple[str, str]] = {}
    for node in reversed(graph.nodes):
        if not node.domain and has(node.op, Fact.KEEPS):
            found = next((said[name] for name in node.outputs if name in said), None)
            if found is not None:
                said |= dict.fromkeys(node.inputs if node.op == "Concat" else node.inputs[:1], found)
        for place in _quantised_places(node):
            scale, zero = (*node.inputs[place + 1 : place + 3], "", "")[:2]
            said[node.inputs[place]] = scale, zero
    return said


def _quantised_places(node: OnnxNode) -> Sequence[int]:
    """The quantised operands of an operator on integers, the last one first; each has its scale and its zero point behind it."""
    row, count = ROWS.get(node.kind), len(node.inputs)
    if row is None:
        return ()
    if has(node.kind, Fact.REAL) and any(row.places_of(Scale, count)):
        return range(min(count, 1))
    return [*row.places_of(Quantised, count)][::-1]


def kept(
    network: Network, node: OnnxNode, operands: Sequence[Value | None], of: Callable[[str, str], Grid | None]
) -> tuple[Sequence[Value | None], Grid | None]:
    """The operands of a node that only moves integers, all on one grid, and that grid; the operands alone where it moves none.

    `of` is the grid of the integers of a name and a type, by what is said of them.
    """
    if node.domain or not has(node.op, Fact.KEEPS):
        return operands, None
    moved = operands if node.op == "Concat" else operands[:1]
    grids = [value.kind for value in moved if isinstance(value, Tensor) and isinstance(value.kind, Grid) and not value.kind.measured]
    if len(set(grids)) > 1:
        return [integers_read(network, value, grids[0]) if isinstance(value, Tensor) else value for value in operands], grids[0]
    if grids or not isinstance(table := operands[0], Static) or table.array.dtype.name not in BITS:
        return operands, next(iter(grids), None)
    grid = of(node.outputs[0], table.array.dtype.name)
    return (operands, None) if grid is None or node.op != "Gather" else ([table_of(network, table, grid), *operands[1:]], grid)


def moved(network: Network, made: Value, grid: Grid | None) -> Value:
    """A result of a node that only moves integers, on their grid."""
    return made if grid is None or not isinstance(made, Tensor) else on_grid(network, made, grid)
