"""Notes of integers that are 0 where the host divides by what is made of them, or takes its root or its logarithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import Quantisation
from tpucc.ops import facts_of
from tpucc.ops.evaluate import compute
from tpucc.ops.facts import UNCHANGED
from tpucc.passes.rewriter import constant_of, is_product


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
