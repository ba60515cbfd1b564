"""What an input of integers or booleans is, by its uses: the numbers of rows of a table, a mask, or numbers like others; and integers of a
quantised file that operators only move: the scale that is said of them later, and the grid on which results lie.

A file in the form of operators on integers has rows of a table, transposes and pools of integers without a scale. What makes real values
of them says one. So a table of integers is real values by the scale that the first such node says. Where others say another one, each has
the same integers by its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Grid, Static, Tensor, Value, is_count
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode, OnnxValue
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.files.tensors import BOOL, FLOATS
from tpucc.interop.onnx.reading.operators.quantised import integers_read, on_grid, table_of
from tpucc.interop.onnx.reading.operators.rows import Fact, has, places_of_rows
from tpucc.interop.onnx.reading.row_numbers import ARITHMETIC
from tpucc.ir import Range
from tpucc.numerics import AnyArray

INDICES: Mapping[str, int] = {"ScatterND": 1, **places_of_rows()}
"""Which operand of an operator has numbers of rows or of classes."""


def is_index(graph: OnnxGraph, name: str) -> bool:
    """Whether an input, or an integer that is computed of it, numbers rows or classes; so does one that nothing computes with."""
    reached, is_computed_with, made = {name}, False, _makers(graph)
    for node in _nodes(graph):
        if reached.isdisjoint(node.inputs):
            continue
        is_computed_with |= not has(node.op, Fact.VIEW)
        place = INDICES.get(node.op, len(node.inputs))
        if place < len(node.inputs) and node.inputs[place] in reached:
            return True
        if node.op == "Equal" and any(is_count(value) for each in node.inputs if (value := _known(graph, made, each)) is not None):
            return True
        is_cast = has(node.op, Fact.REAL) and node.attributes.get("to") in (BOOL, *FLOATS)
        if not has(node.op, Fact.CONDITION) and node.op != "Shape" and not is_cast:
            reached.update(filter(None, node.outputs))
    return not is_computed_with


def is_mask(graph: OnnxGraph, name: str) -> bool:
    """Whether only 0 and other values are told apart: each value is a condition, is compared with 0, or taken from 1."""
    same, found, made = {name}, False, _makers(graph)
    for node in _nodes(graph):
        if same.isdisjoint(node.inputs):
            continue
        if has(node.op, Fact.VIEW) or (node.op == "Cast" and node.attributes.get("to") != BOOL):
            same.update(node.outputs)
        elif node.op in ("Cast", "Where"):
            found = True
        elif node.op == "Sub" and not same.isdisjoint(node.inputs[1:2]):
            found |= _is(_known(graph, made, node.inputs[0]), 1)
        elif node.op == "Equal":
            found |= any(_is(_known(graph, made, other), 0) for other in node.inputs)
    return found


SAME_ROWS = frozenset(["Cast", "DequantizeLinear", "Identity", "QuantizeLinear"])
"""Operators whose result has the rows of their first operand, as those of a table that a quantiser has made integers of."""


def rows(graph: OnnxGraph, given: OnnxValue) -> Range | None:
    """The numbers of rows that an input of indices may name, of the tables that it is used with, itself or by a choice among integers."""
    aliases, sizes = {given.name}, list[int]()
    integers = set[str]() if given.type in FLOATS else {given.name}
    tables = {constant: array.shape for constant, array in graph.constants.items()}
    for node in graph.nodes:
        if node.op in SAME_ROWS:
            tables.update((made, tables[given]) for given, made in zip(node.inputs, node.outputs, strict=False) if given in tables)
        to = node.attributes.get("to") if node.op == "Cast" else None
        moves = has(node.op, Fact.VIEW) or to not in (None, BOOL)
        is_integer = not integers.isdisjoint(node.inputs) if to is None else to not in FLOATS
        if not (integers.isdisjoint(node.inputs) if node.op in ARITHMETIC else aliases.isdisjoint(node.inputs[:moves])):
            aliases.update(node.outputs)
            integers.update(node.outputs if is_integer else ())
        if node.op == "Gather" and len(node.inputs) > 1 and node.inputs[1] in aliases and node.inputs[0] in tables:
            sizes += tables[node.inputs[0]][:1]
    return Range(0.0, float(min(sizes) - 1)) if sizes else None


def with_kind(node: OnnxNode, operands: Iterable[Value | None], made: Value) -> Value:
    """A result that is whole if its operands are. Raises `Unsupported` where ONNX rounds such a result."""
    numbers = [value for place, value in enumerate(operands) if (node.op, place) not in _OTHERS]
    whole = any(isinstance(value, Tensor) and value.kind == "whole" for value in numbers)
    if not whole or not isinstance(made, Tensor) or made.kind != "float" or has(node.kind, Fact.REAL):
        return made
    if not has(node.kind, Fact.WHOLE):
        raise Unsupported("it rounds a result of integers", "Cast to float before it, or export the model with float32 values there")
    return Tensor(made.node, made.axes, "whole")


_OTHERS = frozenset([("Where", 0), ("Pow", 1), *INDICES.items()])
"""Operands whose type isn't that of the result."""


def _is(array: AnyArray | None, number: int) -> bool:
    """Whether a constant has this number everywhere."""
    return array is not None and bool((array == number).all())


def _nodes(graph: OnnxGraph) -> Iterable[OnnxNode]:
    """All nodes, those of branches before the node that has them."""
    for node in graph.nodes:
        for inner in node.attributes.values():
            if isinstance(inner, OnnxGraph):
                yield from _nodes(inner)
        yield node


def _makers(graph: OnnxGraph) -> Mapping[str, OnnxNode]:
    """The nodes that make values, by the names of these."""
    return {output: node for node in _nodes(graph) for output in node.outputs}


def _known(graph: OnnxGraph, made: Mapping[str, OnnxNode], name: str) -> AnyArray | None:
    """The values of a constant."""
    while name in made and made[name].op in ("Cast", "Identity"):
        name = made[name].inputs[0]
    value = graph.constants.get(name) if name not in made else made[name].attributes.get("value")
    return value if isinstance(value, np.ndarray) else None


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
        if node.op == "DequantizeLinear":
            x, scale, zero = (*node.inputs, "", "", "")[:3]
            said[x] = scale, zero
    return said


def kept(
    network: Network, node: OnnxNode, operands: Sequence[Value | None], of: Callable[[str, str], Grid | None]
) -> tuple[Sequence[Value | None], Grid | None]:
    """The operands of a node that only moves integers, all on one grid, and that grid; the operands alone where it moves none.

    `of` is the grid of the integers of a name and a type, by what is said of them.
    """
    if node.domain or not has(node.op, Fact.KEEPS):
        return operands, None
    moved = operands if node.op == "Concat" else operands[:1]
    grids = [value.kind for value in moved if isinstance(value, Tensor) and isinstance(value.kind, Grid)]
    if len(set(grids)) > 1:
        return [integers_read(network, value, grids[0]) if isinstance(value, Tensor) else value for value in operands], grids[0]
    if grids or not isinstance(table := operands[0], Static):
        return operands, next(iter(grids), None)
    grid = of(node.outputs[0], table.array.dtype.name)
    return (operands, None) if grid is None or node.op != "Gather" else ([table_of(network, table, grid), *operands[1:]], grid)


def moved(network: Network, made: Value, grid: Grid | None) -> Value:
    """A result of a node that only moves integers, on their grid."""
    return made if grid is None or not isinstance(made, Tensor) else on_grid(network, made, grid)
