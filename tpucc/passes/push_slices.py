"""Slices move up, out of the middle of the device's work, in a walk from the outputs of the graph to its inputs.

No instruction of the device takes a part of a row's lanes. But a part of a product's columns is a product with a part of the weights'
columns, and a part of its rows is the product of a part of the rows: `(x @ w)[2:3, 0:4]` is `x[2:3] @ w[:, 0:4]`. Element-wise
operators let both through. So the slices of an LSTM's gates end in its weights and biases, and cost nothing. The channels of a convolution
and of a pool are such columns too.

The pass works from the outputs to the inputs, and asks of each value which parts of it are read; each part is then computed once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tpucc.diagnostics import Diagnostic, LimitError, Origin
from tpucc.ir import Graph, Node, TensorType
from tpucc.ir.dataflow import constant_values, leading_to
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.facts import COPIED
from tpucc.ops.names import slice as slice_
from tpucc.ops.opdef import Arithmetic, Clamp, Matrix, Pooling, Table
from tpucc.ops.parts import Bounds, Part, all_of, shape_of
from tpucc.ops.slice import SliceAttributes
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Names, after_products, as_constant, held_array, is_product

COMPUTING = (Matrix, Pooling, Table, Clamp, Arithmetic)
"""Operators for which the device has a layer."""


@graph_pass("push-slices", "slices the weights of a product instead of its result", level=1)
def push_slices(graph: Graph, context: Context, *, largest: int = 500_000, rows: bool = True) -> Graph:
    """Pushes each slice between a product and something else that the device computes into weights, constants, and what the host computes.

    A slice at the edge stays: the host does it. With `rows` off, only parts of columns are pushed, and of a part of both the rows stay
    behind as a slice: the device walks over a part of its rows for nothing, and what is computed from all of them is computed once.
    `largest` bounds the nodes of the result, because a value of which many different parts are read is computed once for each of them.
    Raises `LimitError` (E0650).
    """
    above = after_products(graph)
    slices = {node.name for node in graph if _is_slice(node) and (rows or _takes_columns(graph, node))}
    chosen = slices & above & leading_to(graph.nodes, {node.name for node in graph if isinstance(legalisation_of(node.op), COMPUTING)})
    return _Parts(graph, above, chosen, largest, rows).collect() if chosen else graph


def _is_slice(node: Node) -> bool:
    """Whether the node is a slice of neighbours: parts have no steps."""
    return slice_.made(node) and not slice_.attributes_of(node).steps


def _takes_columns(graph: Graph, node: Node) -> bool:
    """Whether a slice takes only some of the columns."""
    part = slice_.attributes_of(node)
    return bool(part.stops) and bool(part.stops[-1] - part.starts[-1] < graph[node.operands[0]].type.columns)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A part of a value that is read: the name it gets, which part it is, and the origin of the slice that reads it."""

    name: str
    bounds: Bounds
    origin: Origin


class _Parts:
    """The nodes of the new graph, collected from the last to the first."""

    def __init__(self, graph: Graph, above: Collection[str], chosen: Collection[str], largest: int, rows: bool) -> None:

        self._graph = graph
        self._above = above
        self._constants = constant_values(graph)
        """Weights that `quantize` puts on a grid are computed, too: parts of them are weights on the same grid."""
        self._chosen = chosen
        self._largest, self._rows = largest, rows
        self._nodes: list[Node] = []
        self._parts: dict[str, list[_Asked]] = {}
        self._named: dict[tuple[str, Bounds], str] = {}
        self._whole = {node.name for node in graph if node.is_input or not graph.users[node.name]} | graph.output_nodes
        self._names = Names(graph)

    def collect(self) -> Graph:
        for node in reversed(self._graph.nodes):
            for part in self._parts.pop(node.name, ()):
                self._part(node, part)
            if node.name in self._chosen and node.name in self._whole:
                self._part(node, _Asked(node.name, all_of(node.type.shape), node.origin))
            elif node.name in self._whole:
                self._emit(node)
                self._whole.update(node.operands)
        return self._graph.with_nodes(reversed(self._nodes))

    def _emit(self, node: Node) -> None:
        self._nodes.append(node)
        if len(self._nodes) > self._largest:
            message = f"pushing slices upwards makes more than {self._largest:,} nodes"
            raise LimitError(Diagnostic("E0650", message, node.origin.labels()))

    def _part(self, node: Node, part: _Asked) -> None:
        """Computes a part of a node's value from parts of its operands, as far as its operator lets them through."""
        type_ = replace(node.type, shape=shape_of(part.bounds))
        made = node.origin.merged(part.origin).by("push-slices")
        if (array := held_array(node)) is not None:
            constant = array[tuple(slice(*ends) for ends in part.bounds)]
            self._emit(as_constant(replace(node, name=part.name, type=type_, origin=made), constant))
            return
        how = self._how(node, part.bounds)
        takes_rows = how is not None and not self._rows and self._takes_rows(node, how.operands)
        if how is None or (takes_rows and not _is_slice(node)):
            self._whole.add(node.name)
            starts, stops = zip(*part.bounds, strict=True)
            self._emit(slice_.node(part.name, (node.name,), SliceAttributes(starts, stops), type_, made, node.place))
        elif takes_rows:
            self._keep_rows(node, part, type_, how.operands[0])
        elif _is_slice(node) and type_.shape == shape_of(how.operands[0]) and not self._is_all(node.operands[0], how.operands[0]):
            self._ask(node.operands[0], _Asked(part.name, how.operands[0], part.origin))
        else:
            self._compute(node, part, type_, how)

    def _how(self, node: Node, bounds: Bounds) -> Part | None:
        """How a part of the value is computed; None for one from which a slice takes it.

        A product of two computed values has no weights of which a part could be taken: parts that overlap would be computed anew.
        """
        is_known = node.name in self._constants
        if not is_known and (node.name not in self._above or (is_product(node) and self._constants.isdisjoint(node.operands))):
            return None
        return _part_of(self._graph, node, bounds)

    def _takes_rows(self, node: Node, asked: tuple[Bounds, ...]) -> bool:
        """Whether only some of the rows of an operand are asked for."""
        return any(bounds[:-1] != all_of(self._graph[name].type.shape)[:-1] for name, bounds in zip(node.operands, asked, strict=True))

    def _keep_rows(self, node: Node, part: _Asked, type_: TensorType, asked: Bounds) -> None:
        """Splits a slice: its columns are asked for, its rows are a slice of these."""
        low, high = asked[-1]
        columns = self._read(node.operands[0], (*all_of(self._graph[node.operands[0]].type.shape)[:-1], (low, high)), part.origin)
        starts, stops = zip(*asked[:-1], (0, high - low), strict=True)
        sliced = SliceAttributes(starts, stops, slice_.attributes_of(node).squeeze)
        self._emit(slice_.node(part.name, (columns,), sliced, type_, node.origin.merged(part.origin), node.place))

    def _compute(self, node: Node, part: _Asked, type_: TensorType, how: Part) -> None:
        operands = tuple(self._read(name, bounds, part.origin) for name, bounds in zip(node.operands, how.operands, strict=True))
        made = node.origin.merged(part.origin)
        self._emit(Node(part.name, how.op or node.op, operands, how.attributes, type_, made, node.place))

    def _read(self, name: str, bounds: Bounds, origin: Origin) -> str:
        """The name under which a part of a value will be computed; the value's own name for all of it."""
        if self._is_all(name, bounds):
            self._whole.add(name)
            return name
        if (name, bounds) not in self._named:
            self._ask(name, _Asked(self._names.fresh(name), bounds, origin))
        return self._named[name, bounds]

    def _is_all(self, name: str, bounds: Bounds) -> bool:
        return bounds == all_of(self._graph[name].type.shape)

    def _ask(self, name: str, part: _Asked) -> None:
        self._named.setdefault((name, part.bounds), part.name)
        self._parts.setdefault(name, []).append(part)


def _part_of(graph: Graph, node: Node, bounds: Bounds) -> Part | None:
    """How a part of the result is computed; None when the operator doesn't let slices through.

    It doesn't where parts are copies of their own, of what is joined or padded. Of images only channels are let through: neighbouring
    parts would both compute the pixels between them.
    """
    facts = facts_of(node.op)
    if facts.values in COPIED or (facts.windows is not None and bounds[:-1] != all_of(node.type.shape)[:-1]):
        return None
    return facts.part(node.attributes, [operand.type.shape for operand in graph.operands(node)], node.type.shape, bounds)
