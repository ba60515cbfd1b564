"""An analysis of the whole graph: `quantize` and `dequantize` of the source become parameters of the values that the device holds.

`dequantize(quantize(v, s, z))` says that v is held with scale s and zero point z. So the pair is removed, and v's type
has these parameters instead. The layer that computes v requantises with them, so nothing is rounded twice. Calibration keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from tpucc.diagnostics import CompileError, Diagnostic
from tpucc.ir import Graph, Node, Output, Quantisation, Range, TensorType
from tpucc.ir.dataflow import backward, constant_values
from tpucc.ir.dtypes import DEVICE_FORMATS, INTEGER_FORMATS, DeviceFormat, IntegerFormat
from tpucc.ops import dequantizes, facts_of, quantizes
from tpucc.ops.facts import Values, selects
from tpucc.ops.names import constant, quantize
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.place import require_placed
from tpucc.passes.rewriter import Names, is_product, is_view


@graph_pass("explicit-quantisation", "gives values the scales and zero points that quantize states in the source", level=0)
def explicit_quantisation(graph: Graph, context: Context) -> Graph:
    """Moves the parameters of `quantize` into the types of values that the device computes, and drops the pairs that are then idle.

    Of a value that is quantised in several ways there is a copy for each. The `quantize` of a value that is also read as it is stays, and
    becomes a layer that requantises; one whose integers are a result of the model stays; those on the host run there.
    What the host only moves is held as it was before, so that the device reads the same integers in other places. So is a concatenation
    of values that are all held alike: none of them is requantised.

    Raises `CompileError` E0807 for a `quantize` whose integers aren't those of the device.
    """
    if not any(quantizes(node.op) for node in graph):
        return graph
    require_placed(graph, "quantize is moved into types")
    constants = constant_values(graph)
    _require_formats(graph, constants, context.format)
    graph = quantised_apart(graph, list(_quantised(graph)), constants)
    fixed = _fixed(graph)
    held = {node.name: fixed.get(node.name, node.type).quantisation for node in graph}
    idle = _idle_pairs(graph, held)
    nodes = [_rewritten(node, idle, fixed) for node in graph if node.name not in idle]
    outputs = (Output(output.name, idle.get(output.node, output.node)) for output in graph.outputs)
    made = replace(graph, nodes=tuple(_with_moves_held(nodes, fixed, context.format)), outputs=tuple(outputs))
    read = made.output_nodes | {name for node in made for name in node.operands}
    return made.with_nodes(node for node in made if not quantizes(node.op) or node.name in read)


def holding(type_: TensorType, quantisation: Quantisation, of: IntegerFormat) -> TensorType:
    """An f32 type that is held with these parameters; its range is what they can represent, from which they can be found again."""
    low, high = (quantisation.scale * (bound - quantisation.zero_point) for bound in (of.low, of.high))
    return type_.with_range(Range(low, high)).with_quantisation(quantisation)


def _fixed(graph: Graph) -> dict[str, TensorType]:
    """For each value of the device that is only read to be quantised, and has no parameters yet, the type of its first `quantize`."""
    found: dict[str, TensorType] = {}
    for node, value in _quantised(graph):
        found.setdefault(value.name, node.type)
    return found


def _quantised(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Each `quantize` of a value of the device that is only read to be quantised, and has no parameters yet; and that value."""
    only_quantised = _only_quantised(graph)
    for node in graph:
        if quantizes(node.op) and node.type.quantisation is not None:
            value = _computed(graph, graph[node.operands[0]])
            on_device = value.on_device or (constant.made(value) and _only_for_device(graph, node))
            if on_device and value.type.quantisation is None and only_quantised[value.name]:
                yield node, value


def _only_quantised(graph: Graph) -> Mapping[str, bool]:
    """Whether nothing reads a value but `quantize`, maybe through views of the device: another reader wants its whole range."""

    def only_quantised(node: Node, readers: Mapping[str, bool]) -> bool:
        others = (reader for reader in graph.users[node.name] if not quantizes(reader.op))
        views = all(reader.on_device and is_view(reader) and readers[reader.name] for reader in others)
        return views and node.name not in graph.output_nodes

    return backward(graph.nodes, only_quantised)


def _only_for_device(graph: Graph, node: Node) -> bool:
    """Whether the constant that `node` quantises is then dequantised, and read by nothing but the device: a weight, or an operand there."""
    pairs = graph.users[node.name]
    readers = [reader for pair in pairs for reader in graph.users[pair.name]]
    results = graph.output_nodes.intersection((node.name, *(pair.name for pair in pairs)))
    return not results and bool(readers) and all(reader.on_device for reader in readers)


def _computed(graph: Graph, value: Node) -> Node:
    """The node whose result `value` is on the device: views have none of their own."""
    while value.on_device and is_view(value):
        value = graph[value.operands[0]]
    return value


def _idle_pairs(graph: Graph, held: dict[str, Quantisation | None]) -> dict[str, str]:
    """Each `dequantize` of a value that is held with the parameters of its `quantize` anyway, and that value."""
    idle: dict[str, str] = {}
    for node in graph:
        source = graph[node.operands[0]] if node.operands else node
        if is_view(node):
            held[node.name] = held[node.name] or held[source.name]
        if dequantizes(node.op) and quantizes(source.op):
            value = idle.get(source.operands[0], source.operands[0])
            if held[value] == source.type.quantisation:
                idle[node.name] = value
    return idle


def _rewritten(node: Node, idle: Mapping[str, str], fixed: Mapping[str, TensorType]) -> Node:
    """The node as it reads past idle pairs, and is held as the source says."""
    operands, type_ = tuple(idle.get(name, name) for name in node.operands), node.type
    if (integers := fixed.get(node.name)) is not None and integers.quantisation is not None:
        type_ = holding(type_, integers.quantisation, INTEGER_FORMATS[integers.dtype])
    return node if operands == node.operands and type_ is node.type else replace(node, operands=operands, type=type_)


def _with_moves_held(nodes: Sequence[Node], fixed: Mapping[str, TensorType], format: DeviceFormat) -> Iterator[Node]:
    """The nodes, those that only move values held as integers held as these: a concatenation, rows of a table, and what the host moves. So
    is what the host makes real values of if the device reads these, too: it reads the same integers."""
    by_device = {name for node in nodes if node.on_device for name in node.operands}
    integers = dict(fixed)
    for node in nodes:
        of, facts = _integers_of(node, integers), facts_of(node.op)
        several = len(node.operands) > 1 and node.name not in fixed and of is not None and of.dtype == format.name
        is_joined = several and facts.values is Values.JOINED
        keeps = is_joined or (facts.keeps_parameters if node.on_device else selects(facts) and (several or len(node.operands) == 1))
        if quantizes(node.op):
            integers[node.name] = node.type
        elif of is not None and (keeps or dequantizes(node.op)):
            integers.setdefault(node.name, of)
        stays = (keeps and (is_joined or not node.on_device)) or (dequantizes(node.op) and not node.on_device and node.name in by_device)
        if of is not None and of.quantisation is not None and stays and node.type.dtype == "f32":
            yield replace(node, type=holding(node.type, of.quantisation, INTEGER_FORMATS[of.dtype]))
        else:
            yield node


def _integers_of(node: Node, integers: Mapping[str, TensorType]) -> TensorType | None:
    """The type of the integers as which the operand is held, or all operands are that stand side by side; None where they differ.
    Of a table of rows and their numbers only the table is held so."""
    found = [integers.get(name) for name in node.operands]
    if facts_of(node.op).values is not Values.JOINED:
        return next(filter(None, found), None)
    first = found[0]
    same = first is not None and all(other is not None and parameters_of(other) == parameters_of(first) for other in found)
    return first if same else None


def _require_formats(graph: Graph, constants: Set[str], format: DeviceFormat) -> None:
    """Constants are quantised as weights are, whether they are weights or not; other values to what the device holds."""
    wrong = []
    for node in graph:
        if quantizes(node.op):
            wanted = DEVICE_FORMATS[format.weights] if node.operands[0] in constants else format
            if quantize.attributes_of(node).format is not wanted:
                wrong.append(_misfit(node, wanted))
    if wrong:
        raise CompileError(wrong)


def _misfit(node: Node, wanted: DeviceFormat) -> Diagnostic:
    found, bits = node.type.dtype, wanted.bits
    labels = node.origin.labels()
    help = (f"write bits={bits} and a scale for it, or leave quantize out: calibration finds the parameters",)
    return Diagnostic("E0807", f"quantize makes {found} of {node.operands[0]}, which the device holds as {wanted.name}", labels, help)


# A value that the source quantises in two ways becomes two values, each with the parameters of one.
#
# `quantize(v, 0.1)` and `quantize(v, 0.2)` both round v, and neither rounds what the other has rounded. On the device a value is held with
# one scale and zero point. So what computes v is there once for each of them: from the product on, if nothing else reads what lies between.


Parameters = tuple[str, object]
"""The format of integers, with their scale and zero point."""


def quantised_apart(graph: Graph, quantised: Sequence[tuple[Node, Node]], constants: Set[str]) -> Graph:
    """The graph with a copy of each value for all parameters but the first with which it is quantised.

    `quantised` has each `quantize` with the value that the device computes for it, perhaps through views; nothing else reads these.
    """
    first: dict[str, Parameters] = {}
    wanted: dict[str, list[Parameters]] = {}
    for quantised_by, value in quantised:
        parameters = parameters_of(quantised_by.type)
        if first.setdefault(value.name, parameters) != parameters:
            for node in (*_views(graph, quantised_by), *_chain(graph, value, constants)):
                known = wanted.setdefault(node.name, [])
                if parameters not in known:
                    known.append(parameters)
    return graph.with_nodes(_copied(graph, wanted, {quantize.name for quantize, _ in quantised})) if wanted else graph


def parameters_of(integers: TensorType) -> Parameters:
    return integers.dtype, integers.quantisation


def _views(graph: Graph, quantize: Node) -> Iterator[Node]:
    """The views between a value and its `quantize`."""
    node = graph[quantize.operands[0]]
    while is_view(node):
        yield node
        node = graph[node.operands[0]]


def _chain(graph: Graph, value: Node, constants: Set[str]) -> Iterator[Node]:
    """The value, and what it is computed from by one operator after the other, back to a product: each is read by the next one only."""
    while True:
        yield value
        computed = [name for name in value.operands if name not in constants]
        if is_product(value) or len(computed) != 1:
            return
        value = graph[computed[0]]
        if value.is_input or not value.on_device or value.name in graph.output_nodes or len(graph.users[value.name]) > 1:
            return


def _copied(graph: Graph, wanted: Mapping[str, Sequence[Parameters]], quantised: Set[str]) -> Iterator[Node]:
    """The nodes, those that are wanted with other parameters once for each of them; what quantises them reads the copy with its own."""
    names = Names(graph)
    copies: dict[tuple[str, Parameters], str] = {}
    for node in graph:
        if node.name in quantised:
            yield _reading(node, copies, parameters_of(node.type))
            continue
        yield node
        for parameters in wanted.get(node.name, ()):
            copies[node.name, parameters] = names.fresh(node.name)
            yield replace(_reading(node, copies, parameters), name=copies[node.name, parameters])


def _reading(node: Node, copies: dict[tuple[str, Parameters], str], parameters: Parameters) -> Node:
    operands = tuple(copies.get((name, parameters), name) for name in node.operands)
    return node if operands == node.operands else replace(node, operands=operands)
