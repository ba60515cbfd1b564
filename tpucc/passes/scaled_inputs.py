"""Inputs whose columns have factors of their own, as scalers of data give them.

Data have columns of any unit: 13 of wine are from 0.1 to 1,680. As integers of 8 bits they have one step for all, of which the smaller
columns are a part. A scaler, `(x - mean) * factor`, makes all equally large, but only if it gets the numbers themselves. So the host
computes it, which has the inputs in float32: integers are what comes out of it. A division by such a column is the host's in any case.
"""

from __future__ import annotations

from collections.abc import Collection

from tpucc.ir.dataflow import Relations
from tpucc.ir.graph import Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.opdef import Rearrangement, View
from tpucc.passes.quotients import multiplies
from tpucc.passes.rewriter import constant_of

SCALED = "columns of an input have factors of their own, and as integers they would have one step for all"


def scaled_inputs(relations: Relations, products: Collection[str]) -> dict[str, str]:
    """Where inputs that are scaled with more than one factor are ready for the products that read them, and why the host has it so far.

    A step multiplies by, divides by, or adds a constant, or has values in other places.
    """
    read = relations.after(products)
    steps: set[str] = set()
    scaled: set[str] = set()
    for node in relations.computed:
        computed = [operand for operand in relations.graph.operands(node) if operand.name not in relations.constants]
        if not _is_step(node, len(computed)) or not all(operand.is_input or operand.name in steps for operand in computed):
            continue
        steps.add(node.name)
        if node.name in read and (not scaled.isdisjoint(node.operands) or _has_factors(relations, node)):
            scaled.add(node.name)
    ends = {name for name in scaled if scaled.isdisjoint(reader.name for reader in relations.graph.users[name])}
    return dict.fromkeys((node.name for node in relations.computed if node.name in ends), SCALED)


def _is_step(node: Node, computed: int) -> bool:
    """Whether a node with so many operands that depend on inputs is a step."""
    if node.type.dtype != "f32" or not computed:
        return False
    is_arithmetic = bool(facts_of(node.op).signs) or multiplies(node) or node.op == "div"
    return isinstance(OPS[node.op].legalisation, View | Rearrangement) or (is_arithmetic and computed == 1)


def _has_factors(relations: Relations, node: Node) -> bool:
    """Whether the node multiplies, or divides, by a constant of several values."""
    values = [value.data for operand in relations.graph.operands(node) if (value := constant_of(operand)) is not None]
    return not facts_of(node.op).signs and any((value != value.flat[0]).any() for value in values if value.size)
