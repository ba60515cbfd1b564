"""The layer graph in parts: what the host does before the device, between two segments of its work, and after it.

The host's part before is the *prologue*, the one after the *epilogue*, those in between are *steps*. A value can be had

- on the device, in the *segment* that is the larger of its device operands' segments and its host operands' stages;
- on the host, at the *stage* that is the larger of its host operands' stages and one more than its device operands' segments.

Stage 0 is the prologue, stage k the step between the segments k - 1 and k, so that the device stops as seldom as the graph allows.
Operators of the host that wait for the device, but that the device doesn't wait for, are the epilogue's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tpucc.ir import Graph, NoAttributes, Node, Output
from tpucc.ir.dataflow import backward, forward, leading_to, stages, true_of
from tpucc.ir.dtypes import DEVICE_FORMATS
from tpucc.ir.graph import once_a_graph
from tpucc.layers.kinds import VIEWS, is_layer, weights_of
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.constant import OP as constant
from tpucc.ops.facts import MOVED, Values
from tpucc.ops.input import OP as input_
from tpucc.ops.opdef import Boundary, Given
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes


@dataclass(frozen=True, slots=True)
class HostStep:
    """The host's work between two segments of the device.

    `graph` has an `input` for each value from outside: the integers `reads` of the device, and values that earlier parts of the host
    made. Its outputs, each named as its node, are the integers `writes` that the device reads, and values that later parts read.
    """

    graph: Graph
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def elements(self) -> int:
        """The measure of its time: see `elements_in`."""
        return elements_in(self.graph)


@dataclass(frozen=True, slots=True)
class Partition:
    """Graphs whose values keep their names from one to the next.

    `prologue` has the model's inputs. Its outputs, each named as its node, are the integers that the device reads (`quantize` nodes) and
    the values that later parts of the host read. `device` has an `input` for each integer value that enters, constants, layers, and views
    (`reshape`, `slice`, `transpose`) of integer values, which move nothing; its nodes stand in the order of `segments`, which has the
    segment of every layer and view, and for an input the first segment that can read it. Its outputs are named as their nodes. It is empty
    when the device has nothing to do. `middle[k]` is the host's step between the segments k and k + 1. `epilogue` has an `input` for each
    value from outside, and the model's outputs.
    """

    prologue: Graph
    device: Graph
    epilogue: Graph
    middle: tuple[HostStep, ...]
    segments: Mapping[str, int]


def elements_in(graph: Graph) -> int:
    """The measure of the time that a part of the host's takes: the sum over its operators of the larger of operands and result; of a
    product all that it multiplies; of an operator that only moves values, its result. To quantise what crosses to the device, and to
    dequantise what comes from there, are such operators, too."""
    return sum(elements_of(graph, node) for node in graph)


def computing(graph: Graph) -> list[Node]:
    """The nodes of a part of the host's that compute: none that is given, and none that only crosses to the device or from there."""
    return [node for node in graph if not node.is_input and not isinstance(legalisation_of(node.op), Boundary | Given)]


@once_a_graph
def partition(graph: Graph) -> Partition:
    """Divides a layer graph. Time is linear in its nodes, however many parts there are."""
    return _Cut(graph).partition()


class _Cut:
    """The part that makes each value, and the values that cross from part to part. The host's parts are numbered: 0, the steps, and last
    the epilogue."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._place = {node.name: place for place, node in enumerate(graph)}
        self._device = _device(graph)
        self._copied = {node.name for node in graph if constant.made(node)}
        times = stages(graph, self._device)
        self._last = 1 + max((times[name] for name in self._device), default=0)
        self._part = self._host_parts(times)
        self._members: list[list[str]] = [[] for _ in range(self._last + 1)]
        for name, part in self._part.items():
            self._members[part].append(name)
        self._reads = [self._read_by(members) for members in self._members]
        self._reads[-1] |= {name for name in graph.output_nodes if self._part.get(name) != self._last}
        self._entering = self._read_by(self._device) - self._device - self._copied
        self._segments = {name: times[name] for name in self._place if name in self._device}
        self._segments |= {name: self._part[name] for name in self._in_order(self._entering)}
        self._wanted = self._entering.union(*(self._outside(part) for part in range(self._last + 1)))

    def partition(self) -> Partition:
        """The graphs of all parts."""
        epilogue = replace(self._host_graph(self._last), outputs=self._graph.outputs)
        steps = tuple(self._step(part) for part in range(1, self._last))
        return Partition(self._host_graph(0), self._device_graph(), epilogue, steps, self._segments)

    def _host_parts(self, times: Mapping[str, int]) -> dict[str, int]:
        """The part of each value that the host makes. Constants are copied to where they are read, but for those that the model returns.

        Values that nothing needs are left out of the prologue: among them may be any constant that was folded away.
        """
        late = {node.name for node in self._graph if node.is_input or times[node.name] > 0}
        needed = leading_to(self._graph.nodes, late | self._device | self._graph.output_nodes)
        leading = leading_to(self._graph.nodes, self._device)
        copied = self._copied - self._graph.output_nodes
        made = needed - self._device - copied
        names = (node.name for node in self._graph if node.name in made)
        return {name: times[name] if times[name] == 0 or name in leading else self._last for name in names}

    def _read_by(self, names: Iterable[str]) -> set[str]:
        return {operand for name in names for operand in self._graph[name].operands}

    def _outside(self, part: int) -> set[str]:
        """The values that a part of the host reads and doesn't make. Constants of the model's outputs come to the epilogue as values."""
        constants = self._copied - self._graph.output_nodes if part == self._last else self._copied
        return {name for name in self._reads[part] if name not in constants and self._part.get(name) != part}

    def _step(self, part: int) -> HostStep:
        graph = self._host_graph(part)
        reads = tuple(node.name for node in graph.inputs if node.name in self._device)
        return HostStep(graph, reads, tuple(output.name for output in graph.outputs if output.name in self._entering))

    def _host_graph(self, part: int) -> Graph:
        outside = self._outside(part)
        constants = (self._reads[part] & self._copied) - outside
        return self._made(self._in_order({*self._members[part], *outside, *constants}), outside, self._members[part])

    def _device_graph(self) -> Graph:
        constants = self._read_by(self._device) & self._copied
        names = self._in_order({*self._device, *self._entering, *constants})
        ordered = sorted(names, key=lambda name: self._segments.get(name, 0))
        return self._made(ordered, self._entering, self._in_order(self._device))

    def _made(self, names: Iterable[str], inputs: Iterable[str], results: Iterable[str]) -> Graph:
        """A graph of the nodes `names`, with an `input` for each of `inputs`, that hands on what other parts want of `results`."""
        entering = frozenset(inputs)
        nodes = tuple(_input(node) if node.name in entering else node.holding(()) for node in map(self._graph.__getitem__, names))
        return replace(self._graph, nodes=nodes, outputs=tuple(Output(name, name) for name in results if name in self._wanted))

    def _in_order(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._place.__getitem__)


def _device(graph: Graph) -> frozenset[str]:
    """The layers, and the views between them; other views of integers are the host's, to whom they cost nothing either."""
    views = _views_for_layers(graph)
    return true_of(forward(graph, lambda node, operands: is_layer(node) or (node.name in views and any(operands.values()))))


def _views_for_layers(graph: Graph) -> frozenset[str]:
    """Views of integers whose rows a layer reads, maybe through others; a layer's weights are read from weight memory."""

    def shows_rows(node: Node, readers: Mapping[str, bool]) -> bool:
        users = graph.users[node.name]
        read = any(node.name not in weights_of(user) if is_layer(user) else readers[user.name] for user in users)
        return read and _is_walk(graph, node)

    return true_of(backward(graph.nodes, shows_rows))


def _is_walk(graph: Graph, node: Node) -> bool:
    """Whether a node shows an integer value in other rows with the same lanes: then the device walks the rows so."""
    if node.op not in VIEWS or node.type.dtype not in DEVICE_FORMATS:
        return False
    shown = graph[node.operands[0]].type
    if isinstance(node.attributes, TransposeAttributes) and shown.rank:
        return node.attributes.perm[-1] % shown.rank == shown.rank - 1
    if isinstance(node.attributes, SliceAttributes) and shown.rank:
        *rows, lanes = node.attributes.ranges
        return lanes == range(shown.columns) and all(places.step > 0 for places in rows)
    return node.type.columns == shown.columns


def elements_of(graph: Graph, node: Node) -> int:
    """The measure of the time that one operator takes: see `elements_in`."""
    facts, operands = facts_of(node.op), graph.operands(node)
    if facts.values in (Values.GIVEN, Values.VIEWED):
        return 0
    if facts.values in MOVED:
        return node.type.size
    multiplied = node.type.size * facts.terms([operand.type.shape for operand in operands])
    return max([multiplied, *(operand.type.size for operand in operands if not constant.made(operand))])


def _input(node: Node) -> Node:
    return input_.node(node.name, (), NoAttributes(), node.type, node.origin)
