"""Slices move up, out of the middle of the device's work.

No instruction of the device takes a part of a row's lanes. But a part of a product's columns is a product with a part of the weights'
columns, and a part of its rows is the product of a part of the rows: `(x @ w)[2:3, 0:4]` is `x[2:3] @ w[:, 0:4]`. Element-wise
operators let both through. So the slices of an LSTM's gates end in its weights and biases, and cost nothing. The channels of a convolution
and of a pool are such columns too.

The pass works from the outputs to the inputs, and asks of each value which parts of it are read; each part is then computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tpucc.diagnostics import Diagnostic, LimitError, Origin
from tpucc.ir.constants import Constant
from tpucc.ir.graph import Attributes, Graph, Node
from tpucc.ir.types import TensorType
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Matrix, Pooling, Table, View
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Context
from tpucc.passes.rewriter import Names

COMPUTING = (Matrix, Pooling, Table, Clamp, Arithmetic)
"""Operators for which the device has a layer."""
Bounds = tuple[tuple[int, int], ...]
"""A part of a value: start and stop of each axis."""


@dataclass(frozen=True)
class PushSlices:
    """Pushes each slice between a product and something else that the device computes into weights, constants, and what the host computes.

    A slice at the edge stays: the host does it. With `rows` off, only parts of columns are pushed, and of a part of both the rows stay
    behind as a slice: the device walks over a part of its rows for nothing, and what is computed from all of them is computed once.
    `largest` bounds the nodes of the result, because a value of which many different parts are read is computed once for each of them.
    Raises `LimitError` (E0650).
    """

    name: ClassVar[str] = "push-slices"
    summary: ClassVar[str] = "moves slices between products into the weights"
    level: ClassVar[int] = 1

    largest: int = 500_000
    rows: bool = True

    def run(self, graph: Graph, context: Context) -> Graph:
        above = _above(graph)
        slices = {node.name for node in graph if node.op == "slice" and (self.rows or _takes_columns(graph, node))}
        chosen = slices & above & _below(graph)
        return _Parts(graph, above, chosen, self).collect() if chosen else graph


def _takes_columns(graph: Graph, node: Node) -> bool:
    """Whether a slice takes only some of the columns."""
    attributes = node.attributes
    assert isinstance(attributes, SliceAttributes)
    return attributes.stops[-1:] != () and attributes.stops[-1] - attributes.starts[-1] < graph[node.operands[0]].type.columns


def _is_product(node: Node) -> bool:
    return node.op in OPS and isinstance(OPS[node.op].legalisation, Matrix)


def _above(graph: Graph) -> set[str]:
    """The products, and the values that depend on one."""
    found: set[str] = set()
    for node in graph:
        if _is_product(node) or any(name in found for name in node.operands):
            found.add(node.name)
    return found


def _below(graph: Graph) -> set[str]:
    """The values that something which the device computes depends on."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if (node.op in OPS and isinstance(OPS[node.op].legalisation, COMPUTING)) or node.name in found:
            found.update(node.operands)
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a value that is read: the name it gets, which part it is, and the origin of the slice that reads it."""

    name: str
    bounds: Bounds
    origin: Origin


class _Parts:
    """The nodes of the new graph, collected from the last to the first."""

    def __init__(self, graph: Graph, above: set[str], chosen: set[str], options: PushSlices) -> None:
        self._graph = graph
        self._above = above
        self._chosen = chosen
        self._options = options
        self._nodes: list[Node] = []
        self._parts: dict[str, list[_Part]] = {}
        self._named: dict[tuple[str, Bounds], str] = {}
        self._whole = {node.name for node in graph if node.op == "input" or not graph.users[node.name]} | graph.output_nodes
        self._names = Names(graph)

    def collect(self) -> Graph:
        for node in reversed(self._graph.nodes):
            for part in self._parts.pop(node.name, ()):
                self._part(node, part)
            if node.name in self._chosen and node.name in self._whole:
                self._part(node, _Part(node.name, _all(node.type.shape), node.origin))
            elif node.name in self._whole:
                self._emit(node)
                self._whole.update(node.operands)
        return self._graph.with_nodes(reversed(self._nodes))

    def _emit(self, node: Node) -> None:
        self._nodes.append(node)
        if len(self._nodes) > self._options.largest:
            message = f"pushing slices upwards makes more than {self._options.largest:,} nodes"
            raise LimitError(Diagnostic("E0650", message, node.origin.labels()))

    def _part(self, node: Node, part: _Part) -> None:
        """Computes a part of a node's value from parts of its operands, as far as its operator lets them through."""
        type_ = replace(node.type, shape=_shape(part.bounds))
        made = node.origin.merged(part.origin).by(self._options.name)
        if isinstance(node.attributes, ConstantAttributes):
            value = Constant(node.attributes.value.data[tuple(slice(*ends) for ends in part.bounds)])
            self._emit(Node(part.name, "constant", (), ConstantAttributes(value), type_, made, node.place))
            return
        asked = asked_of_operands(self._graph, node, part.bounds) if node.name in self._above else None
        takes_rows = asked is not None and not self._options.rows and self._takes_rows(node, asked)
        if asked is None or (takes_rows and node.op != "slice"):
            self._whole.add(node.name)
            starts, stops = zip(*part.bounds, strict=True)
            self._emit(Node(part.name, "slice", (node.name,), SliceAttributes(starts, stops), type_, made, node.place))
        elif takes_rows:
            self._keep_rows(node, part, type_, asked[0])
        elif node.op == "slice" and type_.shape == _shape(asked[0]) and asked[0] != _all(self._graph[node.operands[0]].type.shape):
            self._ask(node.operands[0], _Part(part.name, asked[0], part.origin))
        else:
            self._compute(node, part, type_, asked)

    def _takes_rows(self, node: Node, asked: tuple[Bounds, ...]) -> bool:
        """Whether only some of the rows of an operand are asked for."""
        return any(bounds[:-1] != _all(self._graph[name].type.shape)[:-1] for name, bounds in zip(node.operands, asked, strict=True))

    def _keep_rows(self, node: Node, part: _Part, type_: TensorType, asked: Bounds) -> None:
        """Splits a slice: its columns are asked for, its rows are a slice of these."""
        attributes = node.attributes
        assert isinstance(attributes, SliceAttributes)
        low, high = asked[-1]
        columns = self._read(node.operands[0], (*_all(self._graph[node.operands[0]].type.shape)[:-1], (low, high)), part.origin)
        starts, stops = zip(*asked[:-1], (0, high - low), strict=True)
        sliced = SliceAttributes(starts, stops, attributes.squeeze)
        self._emit(Node(part.name, "slice", (columns,), sliced, type_, node.origin.merged(part.origin), node.place))

    def _compute(self, node: Node, part: _Part, type_: TensorType, asked: tuple[Bounds, ...]) -> None:
        operands = tuple(self._read(name, bounds, part.origin) for name, bounds in zip(node.operands, asked, strict=True))
        moved: tuple[str, Attributes] = (node.op, node.attributes)
        if node.op in ("reshape", "flatten", "slice"):
            moved = ("reshape", ReshapeAttributes(type_.shape))
        self._emit(Node(part.name, moved[0], operands, moved[1], type_, node.origin.merged(part.origin), node.place))

    def _read(self, name: str, bounds: Bounds, origin: Origin) -> str:
        """The name under which a part of a value will be computed; the value's own name for all of it."""
        if bounds == _all(self._graph[name].type.shape):
            self._whole.add(name)
            return name
        if (name, bounds) not in self._named:
            self._ask(name, _Part(self._names.fresh(name), bounds, origin))
        return self._named[name, bounds]

    def _ask(self, name: str, part: _Part) -> None:
        self._named.setdefault((name, part.bounds), part.name)
        self._parts.setdefault(name, []).append(part)


def asked_of_operands(graph: Graph, node: Node, bounds: Bounds) -> tuple[Bounds, ...] | None:
    """The parts of the operands that a part of the result depends on; None when the operator doesn't let slices through."""
    shapes = [operand.type.shape for operand in graph.operands(node)]
    kind = OPS[node.op].legalisation if node.op in OPS else None
    match node.attributes:
        case SliceAttributes():
            return (_sliced(node.attributes, bounds),)
        case TransposeAttributes():
            axes = [axis % len(bounds) for axis in node.attributes.perm]
            return (tuple(bounds[axes.index(axis)] for axis in range(len(axes))),)
    if node.op in ("matmul", "linear"):
        return _product(shapes, bounds)
    if node.op in ("conv2d", "convolution") or isinstance(kind, Pooling):
        return _channels(shapes, node.type.shape, bounds)
    if isinstance(kind, View):
        return _viewed(shapes[0], node.type.shape, bounds)
    if isinstance(kind, Table | Clamp | Boundary | Arithmetic):
        return tuple(_broadcast(shape, bounds) for shape in shapes)
    return None


def _product(shapes: list[tuple[int, ...]], bounds: Bounds) -> tuple[Bounds, ...]:
    """Rows of the left operand, columns of the right one, and of the bias."""
    depth, columns = (0, shapes[1][0]), bounds[-1]
    return ((*bounds[:-1], depth), (depth, columns), (columns,))[: len(shapes)]


def _channels(shapes: list[tuple[int, ...]], result: tuple[int, ...], bounds: Bounds) -> tuple[Bounds, ...] | None:
    """Some channels of a pooled image, or of a convolution's kernel and bias; a part of the image isn't let through."""
    if bounds[:-1] != _all(result)[:-1]:
        return None
    image, *weights = (_all(shape) for shape in shapes)
    if not weights:
        return ((*image[:-1], bounds[-1]),)
    return (image, *((*whole[:-1], bounds[-1]) for whole in weights))


def _broadcast(shape: tuple[int, ...], bounds: Bounds) -> Bounds:
    """The part of an element-wise operand; an axis of size 1 that repeats is read whole."""
    aligned = bounds[len(bounds) - len(shape) :]
    return tuple((0, 1) if size == 1 else ends for size, ends in zip(shape, aligned, strict=True))


def _sliced(attributes: SliceAttributes, bounds: Bounds) -> Bounds:
    """A part of a slice as a part of what it slices; an axis that was dropped is read where the slice reads it."""
    kept = iter(bounds)
    found: list[tuple[int, int]] = []
    for axis, (start, stop) in enumerate(zip(attributes.starts, attributes.stops, strict=True)):
        low, high = (0, stop - start) if axis in attributes.squeeze else next(kept)
        found.append((start + low, start + high))
    return tuple(found)


def _viewed(before: tuple[int, ...], after: tuple[int, ...], bounds: Bounds) -> tuple[Bounds, ...] | None:
    """Through a reshape: a part of the columns when the columns stay, any part when only axes of size 1 come or go."""
    if [size for size in before if size != 1] == [size for size in after if size != 1]:
        ends = iter([pair for pair, size in zip(bounds, after, strict=True) if size != 1])
        return (tuple((0, 1) if size == 1 else next(ends) for size in before),)
    if before[-1:] == after[-1:] and bounds[:-1] == _all(after)[:-1]:
        return ((*_all(before)[:-1], bounds[-1]),)
    return None


def _all(shape: tuple[int, ...]) -> Bounds:
    return tuple((0, size) for size in shape)


def _shape(bounds: Bounds) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in bounds)
