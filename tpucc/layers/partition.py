"""The layer graph in three: what the host does before, what the device does, what the host does after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.ir.graph import Graph, NoAttributes, Node, Output
from tpucc.layers.summary import is_layer


@dataclass(frozen=True, slots=True)
class Partition:
    """Three graphs; values keep their names from one to the next.

    `prologue` has the model's inputs. Its outputs, each named as its node, are the int8 values that the device reads (`quantize` nodes) and
    the values that the epilogue reads past the device. `device` has an `input` for each int8 value that enters, constants, layers, and
    `reshape` nodes of int8 values, which move nothing; its outputs are named as their nodes. It is empty when the device has nothing to do.
    `epilogue` has an `input` for each value from outside, and the model's outputs.
    """

    prologue: Graph
    device: Graph
    epilogue: Graph


def partition(graph: Graph) -> Partition:
    """Divides a layer graph. Raises `ProgramError` E0820 when the device would have to wait for something that follows it."""
    device = _device(graph)
    after = _after(graph, device)
    copied = {node.name for node in graph if node.op == "constant"}
    device_reads, after_reads = _read_by(graph, device) - device, _read_by(graph, after) - after
    entering, carried = device_reads - copied, (after_reads - copied) | (graph.output_nodes - after)
    results = carried & device
    return Partition(
        _part(graph, _needed(graph, (entering | carried) - device), (), (entering | carried) - device),
        _part(graph, device | (device_reads & copied), entering, results),
        replace(_part(graph, after | (after_reads & copied) - carried, carried, ()), outputs=graph.outputs),
    )


def _device(graph: Graph) -> frozenset[str]:
    """The layers, and the views between them; other views of int8 values are the host's, to whom they cost nothing either."""
    found: set[str] = set()
    leading = _leading_to_layers(graph)
    for node in graph:
        if is_layer(node) or (node.name in leading and node.operands[0] in found):
            found.add(node.name)
    return frozenset(found)


def _leading_to_layers(graph: Graph) -> frozenset[str]:
    """Views of int8 values that a layer reads, maybe through others."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        is_view = node.op == "reshape" and node.type.dtype == "i8"
        if is_view and any(is_layer(user) or user.name in found for user in graph.users[node.name]):
            found.add(node.name)
    return frozenset(found)


def _after(graph: Graph, device: frozenset[str]) -> frozenset[str]:
    """The nodes of the host that depend on the device."""
    found: set[str] = set()
    for node in graph:
        depends = any(name in device or name in found for name in node.operands)
        if depends and node.name not in device:
            found.add(node.name)
        elif any(name in found for name in node.operands):
            raise ProgramError(Diagnostic("E0820", f"the layer {node.name} reads what the host computes after the device"))
    return frozenset(found)


def _read_by(graph: Graph, names: Iterable[str]) -> set[str]:
    return {operand for name in names for operand in graph[name].operands}


def _needed(graph: Graph, results: Iterable[str]) -> set[str]:
    """The results, all that they depend on, and every input."""
    needed = set(results)
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed.update(node.operands)
    return needed | {node.name for node in graph.inputs}


def _part(graph: Graph, names: Iterable[str], entering: Iterable[str], results: Iterable[str]) -> Graph:
    """The nodes of these names, in the graph's order, with an `input` for each value that enters and an output for each result."""
    kept, inputs, wanted = frozenset(names), frozenset(entering), frozenset(results)
    nodes = tuple(_input(node) if node.name in inputs else node for node in graph if node.name in kept or node.name in inputs)
    return replace(graph, nodes=nodes, outputs=tuple(Output(node.name, node.name) for node in graph if node.name in wanted))


def _input(node: Node) -> Node:
    return Node(node.name, "input", (), NoAttributes(), node.type, node.origin)
