"""Keeps scalers of input columns in float32: each column has a factor of its own.

The columns of data differ in size: the 13 of wine are from 0.1 to 1,680. One 8-bit scale for all would make the small columns 0. A scaler,
`(x - mean) * factor`, makes all columns equally large, but only if it reads the numbers themselves. So the host computes the scaler in
float32, and quantises its result. A division by such a column is the host's in any case.
"""

from __future__ import annotations

from collections.abc import Collection

from tpucc.ir.dataflow import Relations
from tpucc.ir.node import Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.div import OP as div
from tpucc.ops.opdef import Rearrangement, View
from tpucc.passes.quotients import multiplies
from tpucc.passes.rewriter import constant_of

SCALED = "input columns differ in size; one 8-bit scale would destroy the small ones, so the host scales them in float32"


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
    is_arithmetic = bool(facts_of(node.op).signs) or multiplies(node) or div.made(node)
    return isinstance(OPS[node.op].legalisation, View | Rearrangement) or (is_arithmetic and computed == 1)


def _has_factors(relations: Relations, node: Node) -> bool:
    """Whether the node multiplies, or divides, by a constant of several values."""
    values = [value.data for operand in relations.graph.operands(node) if (value := constant_of(operand)) is not None]
    return not facts_of(node.op).signs and any((value != value.flat[0]).any() for value in values if value.size)
