"""Quotients of the host's in other forms, products with reciprocals, and functions of quotients."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from tpucc.ir.dataflow import Relations
from tpucc.ir.node import Node, Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.div import OP as div
from tpucc.ops.facts import UNCHANGED, selects
from tpucc.ops.opdef import Arithmetic, Boundary

QUOTIENT = "products with reciprocals are quotients, and stay in float32 on the host"
FUNCTION = "functions of quotients stay in float32 on the host, as the range of the quotients can be far wider"


def reciprocals(relations: Relations, stage: Mapping[str, int]) -> dict[str, int]:
    """The stage of each `c / v`, also where it has been moved or multiplied by constants."""
    found: dict[str, int] = {}
    for node in relations.computed:
        computed = [name for name in node.operands if name not in relations.constants]
        if div.made(node) and computed == [node.operands[1]]:
            found[node.name] = stage[node.name]
        elif len(computed) == 1 and computed[0] in found and (multiplies(node) or facts_of(node.op).values in UNCHANGED):
            found[node.name] = found[computed[0]]
    return found


def products(relations: Relations, places: Mapping[str, Side], stage: Mapping[str, int], inverse: Mapping[str, int]) -> Iterator[str]:
    """The products on the device of a value and a reciprocal of the host's, `x * (c / v)`: such a product is the quotient `c * x / v`.

    As integers, the reciprocals of large numbers are lost beside those of small ones. A product stays where the host could compute it only
    after another stop of the device.
    """
    for node in relations.computed:
        known = [inverse[name] for name in node.operands if name in inverse]
        if known and multiplies(node) and places[node.name] == "device":
            others = (name for name in node.operands if name not in inverse and name not in relations.constants)
            if max((stage[name] + (places[name] == "device") for name in others), default=0) <= max(known):
                yield node.name


def functions(relations: Relations, places: Mapping[str, Side], inverse: Container[str]) -> Iterator[str]:
    """The functions on the device of one quotient of the host's: element-wise, maybe with constants, or the largest of windows.

    A divisor near 0 makes quotients of any size. Of a range that holds them a clamp, or a function that saturates, leaves a step or two.
    The host computes the function where it has the quotient: the device doesn't stop for it.
    """
    quotients: set[str] = set()
    for node in relations.computed:
        computed = {name for name in node.operands if name not in relations.constants}
        if len(computed) == 1 and not computed.isdisjoint(quotients) and _is_function(node):
            quotients.add(node.name)
            if places[node.name] == "device":
                yield node.name
        elif places[node.name] == "host" and _is_quotient(relations, node, inverse):
            quotients.add(node.name)


def multiplies(node: Node) -> bool:
    """Whether the node multiplies two values, element by element."""
    legalisation = OPS[node.op].legalisation
    return isinstance(legalisation, Arithmetic) and legalisation.function(node.attributes) == "multiply"


def _is_quotient(relations: Relations, node: Node, inverse: Container[str]) -> bool:
    """Whether the node divides by a computed value, or multiplies by a reciprocal."""
    if multiplies(node):
        return any(name in inverse for name in node.operands)
    return len(node.operands) > 1 and any(node.operands[index] not in relations.constants for index in facts_of(node.op).singular)


def _is_function(node: Node) -> bool:
    """Whether each value of the result depends on one value of the one operand that isn't constant, or is one of its values."""
    facts = facts_of(node.op)
    single = facts.elementwise or facts.values in UNCHANGED or selects(facts)
    return single and not isinstance(OPS[node.op].legalisation, Boundary)
