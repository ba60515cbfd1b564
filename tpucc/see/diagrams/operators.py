"""The operator graph as a diagram, clustered by layer.

A layer, for the eye, is a product with the bias, the normalisation and the activation that follow it: what will become one layer of
the device where fusion succeeds. A pooling is always a layer of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import assert_never

from tpucc.diagnostics import Origin, counted, listed, printable
from tpucc.explain.quantities import number
from tpucc.ir import Constant, Graph, Node, TensorType
from tpucc.layers.kinds import LAYERS, Conv, Fc, is_by_lanes
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import MOVED
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Given, Matrix, OnHost, Pooling, Rearrangement, Table, View
from tpucc.ops.slice import SliceAttributes
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.see.diagrams.grouping import common_start
from tpucc.see.palette import Kind, kind_of_layer

CONSTANTS = frozenset({"weight", "constant", "state"})
SUBTITLE = "Operators as the compiler understood the source"
UNITS = frozenset({Kind.MATRIX, Kind.VECTOR})
UNPLACED = " A colour says which unit computes an operator if the host doesn't."


def operator_diagram(graph: Graph, words: str = SUBTITLE, known: Mapping[str, Kind] | None = None) -> Diagram:
    """One box an operator, its constants small beside it, clusters for layers; inputs and outputs at the ends. `words` say what it is.

    `known` has the kinds of operators of which more is known than the graph says, see `known_kinds`. Where neither says what the host
    computes, the subtitle tells what the colours mean.
    """
    kinds = {**kinds_of(graph), **(known or {})}
    cluster_of, layers = clusters(graph, [node.name for node in graph if _is_hosted(node, kinds)])

    def box(node: Node, constants: Sequence[Node]) -> Box:
        details, cluster = _details(node), cluster_of.get(node.name, -1)
        kind = Kind.VECTOR if cluster >= 0 and kinds[node.name] is Kind.HOST else kinds[node.name]  # a normalisation behind a product
        return Box(node.op, kind, details, cluster, -1, (node.origin,), _signature(node, graph), name=node.name)

    boxes, edges = boxes_and_edges(graph, box, lambda _, constants: tuple(dict.fromkeys(map(constant_label, constants))))
    unplaced = known is None and not graph.is_placed and not UNITS.isdisjoint(box.kind for box in boxes)
    subtitle = f"{words}; the arrows are tensors{', the frames are layers' if layers else ''}.{UNPLACED if unplaced else ''}"
    return Diagram("graph", "operator", f"{graph.name}: {_counts(graph, kinds)}", subtitle, boxes, edges, layers)


def kinds_of(graph: Graph, has_layers: bool = False) -> Mapping[str, Kind]:
    """The kind of each node, by its name. What the host computes has the host's where the graph says so: in a placed graph, and in one of
    layers, where all other operators are the host's. `has_layers` says of a graph that might have none that it is one of layers."""
    layered = has_layers or any(node.op in LAYERS for node in graph)
    return {node.name: _placed(node, layered) for node in graph}


def _placed(node: Node, layered: bool) -> Kind:
    if node.op in LAYERS:
        return kind_of_layer(node.op, isinstance(node.attributes, Fc | Conv) and not is_by_lanes(node))
    kind = kind_of(node.op)
    return Kind.HOST if kind in UNITS and (layered or node.place == "host") else kind


def _is_hosted(node: Node, kinds: Mapping[str, Kind]) -> bool:
    """Whether the host computes what a unit of the device could."""
    return kinds[node.name] is Kind.HOST and kind_of(node.op) in UNITS


def boxes_and_edges(
    graph: Graph, box: Callable[[Node, Sequence[Node]], Box], constants: Callable[[Node, Sequence[Node]], tuple[str, ...]]
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """A graph's nodes and outputs as boxes, its values as edges.

    `box` draws a node with the constants that it reads, `constants` says in lines what these are, for a small box beside it.
    """
    boxes: list[Box] = []
    edges: list[Edge] = []
    index: dict[str, int] = {}

    def connect(tail: Node, head: int) -> None:
        edges.append(Edge(index[tail.name], head, edge_label(tail.type), tail.type.quantisation is not None))

    for node in shown_nodes(graph):
        own = index[node.name] = len(boxes)
        operands = graph.operands(node)
        read = [operand for operand in operands if operand.name not in index]
        boxes.append(box(node, read))
        for operand in operands:
            if operand.name in index:
                connect(operand, own)
        if words := constants(node, read):
            edges.append(Edge(len(boxes), own))
            boxes.append(Box(words[0], Kind.WEIGHTS, words[1:], beside=own, origins=origins_of(read)))
    for output in graph.outputs:
        connect(graph[output.node], len(boxes))
        boxes.append(Box("output", Kind.HOST, (output.name,), signature="output", name=output.name, noun="operator"))
    return tuple(boxes), tuple(edges)


def shown_nodes(graph: Graph) -> list[Node]:
    """The nodes that have boxes of their own: constants stand beside their readers."""
    return [node for node in graph if node.op not in CONSTANTS or node.name in graph.output_nodes]


def origins_of(nodes: Iterable[Node]) -> tuple[Origin, ...]:
    """The origins of these nodes, each once."""
    return tuple(dict.fromkeys(node.origin for node in nodes))


def kind_of(op: str) -> Kind:
    """The kind of an operator, from how it is legalised."""
    if op in CONSTANTS:
        return Kind.WEIGHTS
    if facts_of(op).values in MOVED:
        return Kind.MOVE
    if op not in OPS:
        return Kind.HOST
    match OPS[op].legalisation:
        case Matrix():
            return Kind.MATRIX
        case Table() | Clamp() | Arithmetic() | Pooling():
            return Kind.VECTOR
        case Boundary():
            return Kind.BOUNDARY
        case OnHost() | Given() | View() | Rearrangement():
            return Kind.HOST
        case other:
            assert_never(other)


def _counts(graph: Graph, kinds: Mapping[str, Kind]) -> str:
    shown = shown_nodes(graph)
    multiplied = [kinds[node.name] for node in shown if kind_of(node.op) is Kind.MATRIX]
    products, lanes, hosted = (multiplied.count(kind) for kind in (Kind.MATRIX, Kind.VECTOR, Kind.HOST))
    folded = {node.name for node in shown if kinds[node.name] is Kind.WEIGHTS}
    others = sum((kind_of(node.op) is not Kind.MATRIX or node.name in folded) and not node.is_input for node in shown)
    held = (node for node in graph if node.op in CONSTANTS)
    weights = sum(node.type.size for node in held if node.type.shape or not isinstance(_value(node), Constant))  # no number of the source
    parts = [counted(products, "matrix product")] if products else []
    parts += [f"{counted(lanes, 'depthwise convolution')} on the activation unit"] if lanes else []
    parts += [f"{counted(hosted, 'product')} on the host"] if hosted else []
    parts += [counted(others, "other operator" if parts else "operator")] if others else []
    return listed([*parts, counted(weights, "weight")]) if weights else listed(parts) or "no operators"


def clusters(graph: Graph, on_host: Collection[str] = ()) -> tuple[dict[str, int], tuple[Cluster, ...]]:
    """For each node inside a layer the layer's number, and the layers. Layers of a single operator are left out, and so are operators that
    the host computes, `on_host` by name."""
    layer_of: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    hosted = frozenset(on_host)
    for node in graph:
        kind = kind_of(node.op)
        if node.name in hosted:
            continue
        if kind is Kind.MATRIX:
            layer_of[node.name] = node.name
            members[node.name] = [node.name]
        elif (kind is Kind.VECTOR and not isinstance(OPS[node.op].legalisation, Pooling)) or node.op == "batch_norm":
            _join(graph, node, layer_of, members)
    large = [layer for layer in members if len(members[layer]) > 1]
    numbers = {layer: number for number, layer in enumerate(large)}
    found = {name: numbers[layer] for name, layer in layer_of.items() if layer in numbers}
    return found, tuple(Cluster(_layer_name(graph, layer, members[layer])) for layer in large)


def _join(graph: Graph, node: Node, layer_of: dict[str, str], members: dict[str, list[str]]) -> None:
    """A node joins the layer whose result only it reads, if it reads nothing else; a sum of two products makes them one layer."""
    computed = [operand for operand in graph.operands(node) if operand.op not in CONSTANTS]
    ends = [layer_of[operand.name] for operand in computed if operand.name in layer_of and _only_reader(graph, operand.name)]
    if not ends or len(ends) < len(computed):
        return
    first, *rest = dict.fromkeys(ends)
    if rest and not (_adds(node) and all(kind_of(operand.op) is Kind.MATRIX or _adds(operand) for operand in computed)):
        return
    for other in rest:
        for name in members[other]:
            layer_of[name] = first
        members[first] += members.pop(other)
    layer_of[node.name] = first
    members[first].append(node.name)


def _adds(node: Node) -> bool:
    return bool(facts_of(node.op).signs)


def _only_reader(graph: Graph, name: str) -> bool:
    return len(graph.users[name]) == 1 and name not in graph.output_nodes


def _layer_name(graph: Graph, first: str, members: Iterable[str]) -> str:
    """What its weights are called, else the product's own name; and the line."""
    line = graph[first].origin.line
    return f"{weights_name(graph, members) or first}{f' · line {line}' if line else ''}"


def weights_name(graph: Graph, members: Iterable[str]) -> str:
    """The common part of the keys of the weights and states that these nodes read: `fc1` of `fc1.w` and `fc1.b`; empty without one. Scalars
    are numbers of the source."""
    operands = dict.fromkeys(operand for name in members for operand in graph.operands(graph[name]))
    keys = [_key(operand) for operand in operands if operand.op in CONSTANTS and operand.type.rank]
    return printable(".".join(common_start(key.split(".")[:-1] for key in keys)))


def _key(node: Node) -> str:
    key = getattr(node.attributes, "key", node.name)
    return key if isinstance(key, str) else node.name


def _details(node: Node) -> tuple[str, ...]:
    if node.op in CONSTANTS:
        return (constant_label(node),)
    return (*((node.name,) if node.name != node.op else ()), *attribute_label(node))


def _signature(node: Node, graph: Graph) -> str:
    """Equal for operators that do the same: for products and windows by weights of one shape, with the same strides and groups."""
    words = [node.op, node.type.brief]
    if node.op in OPS and isinstance(OPS[node.op].legalisation, Matrix | Pooling):
        words += [*attribute_label(node), *(operand.type.brief for operand in graph.operands(node)[1:2])]
    return " ".join(words)


def edge_label(value: TensorType) -> tuple[str, ...]:
    """`f32[150, 4]`; of a quantised value also `0.0314 · (q + 3)`: how its integers q stand for real numbers."""
    if value.quantisation is None:
        return (value.brief,)
    zero = value.quantisation.zero_point
    shift = f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q"
    return value.brief, f"{number(value.quantisation.scale)} · {shift}"


def constant_label(node: Node) -> str:
    """A weight's key, or a constant's name, and its type; a single number stands for itself."""
    value = _value(node)
    if isinstance(value, Constant) and value.data.size == 1:
        return number(float(value.data.reshape(-1)[0]))
    return f"{_key(node)} {node.type.brief}"


def _value(node: Node) -> object:
    return getattr(node.attributes, "value", None)


def attribute_label(node: Node) -> tuple[str, ...]:
    """The attributes that say something, in a few words: `axis -1`, `[:, 0:100]`; nothing when there are none."""
    if isinstance(node.attributes, SliceAttributes):
        return (_slice_label(node.attributes),)
    words = []
    for field in fields(node.attributes):
        value = getattr(node.attributes, field.name)
        if isinstance(value, bool | int | float | str | tuple) and value != field.default and value not in ("", ()):
            words.append(f"{field.name.replace('_', ' ')} {_written(value)}")
    return (", ".join(words),) if words else ()


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return "×".join(map(_written, value)) if isinstance(value, tuple) else str(value)


def _slice_label(part: SliceAttributes) -> str:
    """`[3, 0:100]`, as the source has it."""
    axes = (str(places.start) if axis in part.squeeze else _range_text(places) for axis, places in enumerate(part.ranges))
    return f"[{', '.join(axes)}]"


def _range_text(places: range) -> str:
    """`0:4`, `0:9:2`, or `8::-1` where a range runs down to 0."""
    last = str(places.stop) if places.stop >= 0 else ""
    return f"{places.start}:{last}" if places.step == 1 else f"{places.start}:{last}:{places.step}"


IDLE = frozenset({Kind.WEIGHTS, Kind.BOUNDARY, Kind.MOVE})
"""Operators that compute nothing of the model."""


def known_kinds(graph: Graph, layers: Graph) -> Mapping[str, Kind]:
    """The kinds of those operators of which the layers say another than their names do: of convolutions that the vector unit computes, of
    what the host computes though the device could, of what the device computes though it has no such operator, and of what became a
    constant before anything runs.

    An operator is found among the layers by its name, else by its place in the source. One that has layers of several kinds keeps its own.
    """
    made, found, constants = _Made(layers), dict[str, Kind](), set[str]()
    for node in graph:
        own, kinds = kind_of(node.op), made.of(node)
        if node.op in CONSTANTS or (not node.is_input and constants.issuperset(node.operands) and not made.named(node)):
            constants.add(node.name)
            found[node.name] = Kind.WEIGHTS
        elif own in UNITS and kinds == {Kind.HOST}:
            found[node.name] = Kind.HOST
        elif (own is Kind.MATRIX and kinds == {Kind.VECTOR}) or (own is Kind.HOST and not node.is_input and kinds and kinds <= UNITS):
            found[node.name] = Kind.VECTOR
    return found


class _Made:
    """The nodes of a layer graph that compute something, by the names of the values that they have, and by their places."""

    def __init__(self, layers: Graph) -> None:
        self._kinds = kinds_of(layers, has_layers=True)
        self._named: dict[str, set[Kind]] = defaultdict(set)
        self._placed: dict[str, list[Node]] = defaultdict(list)
        for node in layers:
            if not node.is_input and self._kinds[node.name] not in IDLE:
                for name in (node.name, *node.holds):
                    self._named[name].add(self._kinds[node.name])
                for span in node.origin.spans:
                    self._placed[str(span)].append(node)

    def named(self, node: Node) -> set[Kind]:
        """What computes an operator, by the name of its value alone."""
        return self._named.get(node.name, set())

    def of(self, node: Node) -> set[Kind]:
        """What computes an operator; nothing where no layer tells."""
        calls = frozenset(node.origin.calls)
        here = (each for span in node.origin.spans[:1] for each in self._placed.get(str(span), ()))
        return self.named(node) or {self._kinds[each.name] for each in here if calls.issubset(each.origin.calls)}
