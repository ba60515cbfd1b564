"""Keeps divisors, numerators and arguments of log and sqrt in float32, back to the last layer with weights.

Integers have equal steps. A divisor of less than half a step would become 0, and the quotient infinite. Squares and exponentials become
that small although their arguments don't. A numerator is small where its divisor is small, and there half a step of the numerator's range
is a large part of the quotient. A function of a quotient stays in float32 too: the range of the quotient is far wider (`quotients.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from tpucc.ir.dataflow import Relations, stages
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node, Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import Values
from tpucc.ops.opdef import Boundary, Clamp
from tpucc.passes.quotients import FUNCTION, QUOTIENT, functions, multiplies, products, reciprocals
from tpucc.passes.rewriter import as_columns, constant_of, is_product

SINGULAR, NUMERATOR = "singular", "numerator"
STAYS = "divisors, numerators, and arguments of sqrt and log stay in float32 on the host, back to the last layer with weights"


def kept_in_float32(relations: Relations, places: Mapping[str, Side]) -> dict[str, str]:
    """The nodes on the device that belong on the host for the sake of its quotients, roots and logarithms, and why.

    What leaves the device makes other quotients the host's: the caller asks again until there is nothing more.
    """
    stage = _stages(relations, places)
    inverse = reciprocals(relations, stage)
    return (
        dict.fromkeys(_of_quotients(relations, places, inverse), STAYS)
        or dict.fromkeys(products(relations, places, stage, inverse), QUOTIENT)
        or dict.fromkeys(functions(relations, places, inverse), FUNCTION)
    )


def copied_for_host(relations: Relations, places: Mapping[str, Side]) -> Collection[str]:
    """The nodes on the device that a singular operand of the host's is computed from and that the device reads as well.

    The host can compute each once more, from layers that come to it instead: never later than the node itself would have come. There is
    nothing that `kept_in_float32` would still move.
    """
    return _Walk(relations, places, reciprocals(relations, _stages(relations, places)), copies=True).copied


def guards_of_layers(relations: Relations, places: Mapping[str, Side], guards: Collection[str]) -> list[str]:
    """Those of `guards` that are clamps of a layer that leave out 0, and that alone read it: the layer can have a clamp of its own."""
    graph = relations.graph
    layers = {name for name in _layers(relations, guards=False) if places[name] == "device"}
    nodes = (node for node in relations.computed if node.name in guards and layers.issuperset(node.operands))
    return [node.name for node in nodes if _selects_alone(graph, node) and not _lets_zero_through(node)]


def _stages(relations: Relations, places: Mapping[str, Side]) -> Mapping[str, int]:
    return stages(relations.graph, {name for name, place in places.items() if place == "device"})


def _of_quotients(relations: Relations, places: Mapping[str, Side], inverse: Container[str]) -> dict[str, str]:
    """The nodes on the device that a singular operand of the host's is computed from, or another operand of such a node.

    Averages of windows in a numerator stay where the host would get all that they are made of for their sake alone.
    """
    moved = _Walk(relations, places, inverse).moved
    staying: set[str] = set()
    sent: set[str] = set()
    for node in relations.computed:
        if places[node.name] == "host":
            continue
        if node.name not in moved:
            readers = [reader.name for reader in relations.graph.users[node.name]]
            gets = any(places[name] == "host" or moved.get(name) == SINGULAR for name in readers)
            if not gets and node.name not in relations.graph.output_nodes:
                sent.add(node.name)
        elif not sent.isdisjoint(node.operands):
            sent.add(node.name)
            if moved[node.name] == NUMERATOR and facts_of(node.op).windows is not None:
                staying.add(node.name)
    return _Walk(relations, places, inverse, staying).moved if staying else moved


class _Walk:
    """One way back from the singular operands of the host's, and from the others of such nodes: what is on the device is `moved` from it.

    It ends at layers: products, each with its bias, clamps and the largest of windows, which become integers once; at `quantize` and
    `dequantize`, by which the source says what is integers; at numerators that are `staying`; and at what the device reads as well, which
    it would have to get back. With `copies`, it goes on through what the device reads as well, if that makes a singular operand: `copied`.
    """

    def __init__(
        self,
        relations: Relations,
        places: Mapping[str, Side],
        inverse: Container[str],
        staying: Container[str] = (),
        *,
        copies: bool = False,
    ) -> None:
        self.moved: dict[str, str] = {}
        self.copied: set[str] = set()
        self._graph = relations.graph
        self._places = places
        self._staying = staying
        self._copies = copies
        self._layers = {NUMERATOR: _layers(relations), SINGULAR: _layers(relations, guards=False)}
        singular: set[str] = set()
        numerators: set[str] = set()
        for node in reversed(relations.computed):
            on_host = places[node.name] == "host"
            if on_host:
                below = [name for index in facts_of(node.op).singular if (name := node.operands[index]) not in relations.constants]
                singular.update(below)
                if below or (multiplies(node) and any(name in inverse for name in node.operands)):
                    numerators.update(node.operands)
            why = SINGULAR if node.name in singular else NUMERATOR if node.name in numerators else ""
            if why and (on_host or self._passes(node, why)):
                (singular if why == SINGULAR else numerators).update(node.operands)

    def _passes(self, node: Node, why: str) -> bool:
        """Moves or copies a node of the device, unless the way ends there."""
        if node.name in self._layers[why] or isinstance(OPS[node.op].legalisation, Boundary):
            return False
        if why == NUMERATOR and node.name in self._staying:
            return False
        if not any(self._places[reader.name] == "device" and reader.name not in self.moved for reader in self._graph.users[node.name]):
            self.moved[node.name] = why
            return True
        if self._copies and why == SINGULAR:
            self.copied.add(node.name)
            return True
        return False


def _layers(relations: Relations, *, guards: bool = True) -> set[str]:
    """The products; their sums with a bias; and clamps and the largest of windows of either, which alone read it: they round nothing.

    A clamp of what is read elsewhere isn't part of the layer: the device would make, and send, both. Nor is, without `guards`, a clamp that
    leaves out 0: integers have a 0, and what is near it would become that. A sum with a constant after a clamp is no bias.
    """
    graph = relations.graph
    found: set[str] = set()
    clamped: set[str] = set()
    for node in relations.computed:
        if is_product(node):
            found.add(node.name)
        elif not found.isdisjoint(node.operands):
            after_clamp = not clamped.isdisjoint(node.operands)
            if adds_bias(graph, node) and not after_clamp:
                found.add(node.name)
            elif _selects_alone(graph, node) and (guards or _lets_zero_through(node)):
                found.add(node.name)
                if after_clamp or facts_of(node.op).elementwise:
                    clamped.add(node.name)
    return found


def _lets_zero_through(node: Node) -> bool:
    legalisation = OPS[node.op].legalisation
    if not isinstance(legalisation, Clamp):
        return True
    low, high = legalisation.bounds(node.attributes)
    return low <= 0 <= high


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
