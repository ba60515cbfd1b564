"""Indices of rows: numbers below 0 that count from the end, as Keras has them, are none in tpucc, whose tables have the rows 0 to n - 1.

Exporters write the choice between x and x + n as Where(x < 0, x + n, x), or as a sum of products with what a comparison gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static
from tpucc.interop.onnx.reading.building.weights import Called
from tpucc.interop.onnx.reading.files.model import OPSETS, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit, TooLarge, Unsupported
from tpucc.interop.onnx.reading.files.tensors import BFLOAT16
from tpucc.interop.onnx.reading.folding import known_results
from tpucc.interop.onnx.reading.operators.rows import Fact, names_with
from tpucc.numerics import AnyArray

CHOOSING = names_with(Fact.CONDITION) | {"Add", "Cast", "Constant", "Mul", "Sub", "Where"}
"""Operators with which a choice between two numbers is written."""
TYPES = (np.int64, np.int32)
"""What numbers of rows may be in the file."""
MOST_NODES = 32
"""Of a choice."""
MOST_ROWS = 2**16
"""A choice is computed for each row of a table, of a larger one for the first of them, the last, and those beside its constants."""


def counted_from_the_start(graph: OnnxGraph) -> OnnxGraph:
    """The graph in which Gather reads x itself, where its indices are x for each x that is a row of the table, counted from 0."""
    choices = _Choices(graph)
    found = {id(node): x for node in graph.nodes if (x := choices.numbers(node)) is not None}
    if not found:
        return graph
    nodes = [replace(node, inputs=(node.inputs[0], found[id(node)])) if id(node) in found else node for node in graph.nodes]
    unread = {id(part) for node in graph.nodes if id(node) in found for part in choices.of(node.inputs[1])}
    return replace(graph, nodes=without_unread(graph, nodes, unread))


class _Choices:
    def __init__(self, graph: OnnxGraph) -> None:
        self.constants = graph.constants
        self.made = {name: node for node in graph.nodes for name in node.outputs}
        self.known = set(graph.constants)
        """What is computed of constants."""
        for node in graph.nodes:
            if self.known.issuperset(filter(None, node.read_names())):
                self.known.update(node.outputs)

    def of(self, name: str) -> Sequence[OnnxNode]:
        """The nodes that choose a value, each behind those that it reads; none where they are more than a choice needs."""
        seen, found = set[int](), list[OnnxNode]()

        def visit(name: str) -> None:
            node = self.made.get(name)
            if node is not None and node.kind in CHOOSING and id(node) not in seen and len(seen) <= MOST_NODES:
                seen.add(id(node))
                for operand in node.inputs:
                    visit(operand)
                found.append(node)

        visit(name)
        return found if len(found) <= MOST_NODES else ()

    def numbers(self, gather: OnnxNode) -> str | None:
        """The one value from which the indices of a Gather are chosen, where they are this value for each row of the table."""
        if gather.kind != "Gather" or len(gather.inputs) != 2 or not (nodes := self.of(gather.inputs[1])):
            return None
        read = {name for node in nodes for name in node.inputs} - {name for node in nodes for name in node.outputs}
        constants = {name: self.constants[name] for name in read if name in self.constants}
        roots = read - constants.keys()
        if len(roots) != 1 or roots <= self.known or any(array.size != 1 for array in constants.values()):
            return None
        (root,) = roots
        x = _rows(self._count(gather), constants.values())
        tried = (_computed(nodes, {**constants, root: x.astype(type_)}).get(gather.inputs[1]) for type_ in TYPES)
        return root if any(values is not None and np.array_equal(values, x) for values in tried) else None

    def _count(self, gather: OnnxNode) -> int:
        """The rows of its table; as many as there may be for one that isn't known."""
        shape, axis = np.shape(self.constants.get(gather.inputs[0], ())), gather.attributes.get("axis", 0)
        return shape[axis] if -len(shape) <= axis < len(shape) else 2**31


def _rows(count: int, constants: Iterable[AnyArray]) -> AnyArray:
    """Numbers of rows for which a choice is computed."""
    beside = {int(array.flat[0]) + step for array in constants if np.isfinite(array.flat[0]) for step in (-1, 0, 1)}
    return np.array(sorted({*range(min(count, MOST_ROWS)), *(row for row in (*beside, count - 1) if 0 <= row < count)}), np.int64)


def _computed(nodes: Iterable[OnnxNode], given: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The values of nodes, as far as they can be computed of numbers."""
    values, net = dict(given), Network("choice", given, Called.of(OnnxGraph("choice", (), {}, (), ())))
    for node in nodes:
        if node.attributes.get("to") == BFLOAT16:  # which is computed as float32 here
            break
        call = Call(
            net, node, [Static(values[name], name) if name in values else None for name in node.inputs], OPSETS.stop - 1, frozenset()
        )
        try:
            found = known_results(call)
        except (Misfit, TooLarge, Unsupported):
            break
        if found is None or not set(filter(None, node.inputs)) <= values.keys():
            break
        values[node.outputs[0]] = found[0]
    return values


def without_unread(graph: OnnxGraph, nodes: Sequence[OnnxNode], unread: Iterable[int]) -> tuple[OnnxNode, ...]:
    """The nodes but for those of `unread` that nothing reads any more."""
    read, kept, perhaps = {value.name for value in graph.outputs}, list[OnnxNode](), set(unread)
    for node in reversed(nodes):
        if id(node) not in perhaps or not read.isdisjoint(node.outputs):
            kept.append(node)
            read.update(node.read_names())
    return tuple(reversed(kept))
