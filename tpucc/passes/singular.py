"""Which values stay in float32, because the host divides by what is made of them, or takes its root or its logarithm.

Integers have equal steps. A divisor of less than half a step would be 0, and the quotient infinite; the square of a number, or its
exponential, is soon so small although the number isn't. Such a value mustn't become integers on the way from the last layer with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

import numpy as np

from tpucc.ir.dataflow import Relations, stages
from tpucc.ir.graph import Graph, Node, Side
from tpucc.ir.types import Quantisation
from tpucc.ops import OPS, facts_of
from tpucc.ops.evaluate import compute
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp
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


def products_with_reciprocals(relations: Relations, places: Mapping[str, Side]) -> Iterator[str]:
    """The products on the device of a value and a reciprocal of the host's, `x * (c / v)`: such a product is the quotient `c * x / v`.

    As integers, the reciprocals of large numbers are lost beside those of small ones. A product stays where the host could compute it only
    after another stop of the device.
    """
    stage = stages(relations.graph, {name for name, place in places.items() if place == "device"})
    reciprocals: dict[str, int] = {}
    for node in relations.computed:
        computed = [name for name in node.operands if name not in relations.constants]
        if node.op == "div" and computed == [node.operands[1]]:
            reciprocals[node.name] = stage[node.name]
        elif (_multiplies(node) or facts_of(node.op).values in UNCHANGED) and not reciprocals.keys().isdisjoint(computed):
            known = max(reciprocals[name] for name in computed if name in reciprocals)
            if len(computed) == 1:
                reciprocals[node.name] = known
            others = (stage[name] + (places[name] == "device") for name in computed if name not in reciprocals)
            if _multiplies(node) and places[node.name] == "device" and max(others, default=0) <= known:
                yield node.name


def _multiplies(node: Node) -> bool:
    """Whether the node multiplies two values, element by element."""
    legalisation = OPS[node.op].legalisation
    return isinstance(legalisation, Arithmetic) and legalisation.function(node.attributes) == "multiply"


def zeros_of_integers(graph: Graph, parameters: Callable[[Node], Quantisation]) -> Iterator[str]:
    """A note of each operator of the host that isn't finite where integers are 0; `parameters` are those of a value of the device.

    `graph` is calibrated. Between the integers and the operand there are operators of the host that make zeros of zeros, as a root does.
    An unrolled loop has its note once.
    """
    noted: set[object] = set()
    for node in graph:
        for index in facts_of(node.op).singular if node.place == "host" else ():
            source, added_up = _source(graph, graph[node.operands[index]])
            key = source.origin.spans[:1] or source.name, node.origin.spans[:1] or node.name
            if key in noted or not source.on_device or not _rounds_to_zero(source, parameters) or _is_finite_at_zero(graph, node, index):
                continue
            noted.add(key)
            shared = not is_product(source) and any(reader.on_device for reader in graph.users[source.name])
            why = ", as the device reads it as well," if shared else ","
            where = "where all that is added up is 0," if added_up else "there"
            place = f" (line {node.origin.line})" if node.origin.line else ""
            yield f"{source.name} is in integers{why} and 0 where it is less than half a step: {where} {node.op}{place} isn't finite"


def _source(graph: Graph, value: Node) -> tuple[Node, bool]:
    """What decides whether a value of the host's is 0, as far back as that is one value; and whether a sum, or the like, is between."""
    added_up = False
    while not value.on_device and len(names := {name for name in value.operands if constant_of(graph[name]) is None}) == 1:
        source = graph[names.pop()]
        if not _keeps_zeros(graph, value, source):
            break
        facts = facts_of(value.op)
        added_up = added_up or not (facts.elementwise or facts.values in UNCHANGED)
        value = source
    return value, added_up


def _keeps_zeros(graph: Graph, node: Node, source: Node) -> bool:
    """Whether the node, which reads constants and `source`, is 0 somewhere if that is 0."""
    if node.type.dtype != "f32" or source.type.dtype != "f32":
        return False
    operands = graph.operands(node)
    zeros = np.zeros(source.type.shape, np.float32)
    arrays = [zeros if constant is None else constant.data for constant in map(constant_of, operands)]
    with np.errstate(all="ignore"):
        return not np.all(compute(node, [operand.type for operand in operands], arrays))


def _is_finite_at_zero(graph: Graph, node: Node, index: int) -> bool:
    """Whether the result is finite where that operand is 0, as a root is, and the others are 1."""
    types = [operand.type for operand in graph.operands(node)]
    arrays = [np.full(type_.shape, int(number != index), type_.numpy) for number, type_ in enumerate(types)]
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(compute(node, types, arrays))))


def _rounds_to_zero(value: Node, parameters: Callable[[Node], Quantisation]) -> bool:
    """Whether numbers of the value's range are less than half a step. Some are where the source fixes the parameters and no range."""
    held, half = value.type.range, parameters(value).scale / 2
    return held is None or (held.low < half and held.high > -half)


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
