"""Which values stay in float32, because the host divides by what is made of them, takes its root or its logarithm, or divides them.

Integers have equal steps. A divisor of less than half a step would be 0, and the quotient infinite; the square of a number, or its
exponential, is soon so small although the number isn't. Such a value mustn't become integers on the way from the last layer with weights.
Nor need what is divided: where the divisor is small, so is the numerator, and a step of its range is many times as much of the quotient.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from tpucc.ir.dataflow import Relations, stages
from tpucc.ir.graph import Graph, Node, Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import UNCHANGED, Values
from tpucc.ops.opdef import Arithmetic, Boundary
from tpucc.passes.rewriter import as_columns, constant_of, is_product

SINGULAR = "a divisor, or what a root or a logarithm is taken of, could become 0 in integers"
NUMERATOR = "a quotient would have the rounding of its numerator"
QUOTIENT = "a product with a reciprocal is a quotient"


def kept_in_float32(relations: Relations, places: Mapping[str, Side]) -> dict[str, str]:
    """The nodes on the device that belong on the host for the sake of its quotients, roots and logarithms, and why.

    What leaves the device makes other quotients the host's: the caller asks again until there is nothing more.
    """
    stage = stages(relations.graph, {name for name, place in places.items() if place == "device"})
    reciprocals = _reciprocals(relations, stage)
    return _of_quotients(relations, places, reciprocals) or dict.fromkeys(_products(relations, places, stage, reciprocals), QUOTIENT)


def _of_quotients(relations: Relations, places: Mapping[str, Side], reciprocals: Mapping[str, int]) -> dict[str, str]:
    """The nodes on the device that a singular operand of the host's is computed from, or another operand of such a node.

    From there they reach back to layers: products, each with its bias, clamps and the largest of windows, which become integers once; to
    `quantize` and `dequantize`, by which the source says what is integers; and to what the device reads as well, which it would have to get
    back. Of a numerator they reach back to averages of windows, too: the host would get all that these are made of.
    """
    graph = relations.graph
    layers = _layers(relations)
    singular: set[str] = set()
    numerators: set[str] = set()
    moved: dict[str, str] = {}
    for node in reversed(relations.computed):
        on_host = places[node.name] == "host"
        if on_host:
            below = [name for index in facts_of(node.op).singular if (name := node.operands[index]) not in relations.constants]
            singular.update(below)
            if below or (_multiplies(node) and not reciprocals.keys().isdisjoint(node.operands)):
                numerators.update(node.operands)
        why = SINGULAR if node.name in singular else NUMERATOR if node.name in numerators else ""
        if not why:
            continue
        if not on_host:
            averages = why == NUMERATOR and facts_of(node.op).windows is not None
            if averages or _stays(graph, node, layers, places, moved):
                continue
            moved[node.name] = why
        (singular if why == SINGULAR else numerators).update(node.operands)
    return moved


def _reciprocals(relations: Relations, stage: Mapping[str, int]) -> dict[str, int]:
    """The stage of each `c / v`, also where it has been moved or multiplied by constants."""
    found: dict[str, int] = {}
    for node in relations.computed:
        computed = [name for name in node.operands if name not in relations.constants]
        if node.op == "div" and computed == [node.operands[1]]:
            found[node.name] = stage[node.name]
        elif len(computed) == 1 and computed[0] in found and (_multiplies(node) or facts_of(node.op).values in UNCHANGED):
            found[node.name] = found[computed[0]]
    return found


def _products(relations: Relations, places: Mapping[str, Side], stage: Mapping[str, int], reciprocals: Mapping[str, int]) -> Iterator[str]:
    """The products on the device of a value and a reciprocal of the host's, `x * (c / v)`: such a product is the quotient `c * x / v`.

    As integers, the reciprocals of large numbers are lost beside those of small ones. A product stays where the host could compute it only
    after another stop of the device.
    """
    for node in relations.computed:
        known = [reciprocals[name] for name in node.operands if name in reciprocals]
        if known and _multiplies(node) and places[node.name] == "device":
            others = (name for name in node.operands if name not in reciprocals and name not in relations.constants)
            if max((stage[name] + (places[name] == "device") for name in others), default=0) <= max(known):
                yield node.name


def _multiplies(node: Node) -> bool:
    """Whether the node multiplies two values, element by element."""
    legalisation = OPS[node.op].legalisation
    return isinstance(legalisation, Arithmetic) and legalisation.function(node.attributes) == "multiply"


def _stays(graph: Graph, node: Node, layers: Container[str], places: Mapping[str, Side], moved: Container[str]) -> bool:
    """Whether a node of the device must be one, or another of the device's reads it."""
    if node.name in layers or isinstance(OPS[node.op].legalisation, Boundary):
        return True
    return any(places[reader.name] == "device" and reader.name not in moved for reader in graph.users[node.name])


def _layers(relations: Relations) -> set[str]:
    """The products; their sums with a bias; and clamps and the largest of windows of either, which alone read it: they round nothing.

    A clamp of what is read elsewhere isn't part of the layer: the device would make, and send, both.
    """
    graph = relations.graph
    found: set[str] = set()
    for node in relations.computed:
        of_layer = not found.isdisjoint(node.operands)
        if is_product(node) or (of_layer and (_selects_alone(graph, node) or adds_bias(graph, node))):
            found.add(node.name)
    return found


def _selects_alone(graph: Graph, node: Node) -> bool:
    """Whether the node's values are some of its operand's, or the bounds of a clamp, and it alone reads these."""
    facts = facts_of(node.op)
    return facts.keeps_parameters and facts.values is Values.COMPUTED and len(graph.users[node.operands[0]]) == 1


def adds_bias(graph: Graph, node: Node) -> bool:
    """Whether the node is a sum with a constant that has one value a column."""
    if not facts_of(node.op).signs:
        return False
    constants = [value for operand in graph.operands(node) if (value := constant_of(operand)) is not None]
    return any(as_columns(value, node.type) is not None for value in constants)
