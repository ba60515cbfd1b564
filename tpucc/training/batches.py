"""Which values of a step have the batch as one of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import forward
from tpucc.ops import facts_of
from tpucc.ops.batch import Averaged, Batch, Case, MixedError
from tpucc.training.passes.names import DRAW


def values_with_batch(graph: Graph) -> frozenset[str]:
    """The inputs, and what is computed of them item by item, forward and backward. A sum over the batch, as the gradient of a weight,
    isn't."""
    size = max((node.type.shape[0] for node in graph.inputs if node.name != DRAW and node.type.shape), default=1)

    def batch(node: Node, operands: Mapping[str, Batch | None]) -> Batch | None:
        rule = facts_of(node.op).batch
        if node.is_input:
            return Batch(0) if node.name != DRAW and node.type.shape else None
        if rule is None or not any(operands.values()):
            return None
        try:
            found = rule(Case(node, graph.operands(node), [operands[name] for name in node.operands], size, Fraction(1))).result
        except MixedError:
            return None
        return None if isinstance(found, Averaged) else found

    return frozenset(name for name, found in forward(graph, batch).items() if found is not None)
