"""Which values stay in float32, because the host divides by what is made of them, or takes its root or its logarithm.

Integers have equal steps. A divisor of less than half a step would be 0, and the quotient infinite; the square of a number, or its
exponential, is soon so small although the number isn't. Such a value mustn't become integers on the way from the last layer with weights.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from tpucc.ir.dataflow import Relations
from tpucc.ir.graph import Graph, Node, Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.opdef import Boundary, Clamp
from tpucc.passes.rewriter import as_columns, constant_of, is_product


def for_singular_operands(relations: Relations, places: Mapping[str, Side]) -> Iterator[str]:
    """The nodes on the device that belong on the host, as a singular operand of the host's is computed from them.

    From such an operand they reach back to products, each with its bias and a clamp, which become integers once; to `quantize` and
    `dequantize`, by which the source says what is integers; and to what the device reads as well, which it would have to get back.
    """
    graph = relations.graph
    layers = _layers(relations)
    wanted: set[str] = set()
    moved: set[str] = set()
    for node in reversed(relations.computed):
        on_host = places[node.name] == "host"
        if on_host:
            wanted.update(node.operands[index] for index in facts_of(node.op).singular)
        if node.name not in wanted:
            continue
        if not on_host:
            if _stays(graph, node, layers, places, moved):
                continue
            moved.add(node.name)
            yield node.name
        wanted.update(node.operands)


def zeros_of_integers(graph: Graph) -> Iterator[str]:
    """A note of each singular operand of the host's that is a layer's result all the same, with 0 in its range; `graph` is calibrated."""
    for node in graph:
        if node.place == "host":
            for value in (graph[node.operands[index]] for index in facts_of(node.op).singular):
                while facts_of(value.op).values in UNCHANGED and len(value.operands) == 1:
                    value = graph[value.operands[0]]
                held = value.type.range
                if value.on_device and held and held.low <= 0 <= held.high:
                    place = f" (line {node.origin.line})" if node.origin.line else ""
                    yield f"{value.name} is in integers, and 0 where it is less than half a step: there {node.op}{place} isn't finite"


def _stays(graph: Graph, node: Node, layers: Container[str], places: Mapping[str, Side], moved: Container[str]) -> bool:
    """Whether a node of the device must be one, or another of the device's reads it."""
    if node.name in layers or isinstance(OPS[node.op].legalisation, Boundary):
        return True
    return any(places[reader.name] == "device" and reader.name not in moved for reader in graph.users[node.name])


def _layers(relations: Relations) -> set[str]:
    """The products; their sums with a bias, and clamps of either, which round nothing."""
    found: set[str] = set()
    for node in relations.computed:
        of_layer = not found.isdisjoint(node.operands)
        if is_product(node) or (of_layer and (isinstance(OPS[node.op].legalisation, Clamp) or adds_bias(relations.graph, node))):
            found.add(node.name)
    return found


def adds_bias(graph: Graph, node: Node) -> bool:
    """Whether the node is a sum with a constant that has one value a column."""
    if not facts_of(node.op).signs:
        return False
    constants = [value for operand in graph.operands(node) if (value := constant_of(operand)) is not None]
    return any(as_columns(value, node.type) is not None for value in constants)
