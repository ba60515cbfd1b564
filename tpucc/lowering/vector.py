"""Lowering an element-wise layer."""

from __future__ import annotations

from tpucc.ir.node import Node
from tpucc.layers.kinds import Vector, looks_up
from tpucc.lowering.emission import Emission
from tpucc.lowering.steps import ElementWise, Operand
from tpucc.lowering.tensors import Access
from tpucc.lowering.values import Values
from tpucc.machines.v1 import Function


def lower_vector(node: Node, layer: Vector, y: Access, values: Values) -> ElementWise:
    """The step of a function of one value or two, v [..., C], whose shapes broadcast to y's: v [..., C].

    Leading sizes of 1 take no step, so that their rows are read again. An operand with one column gives its lane 0 to all lanes of y.
    """
    names, wide = (node.operands[:-1] if looks_up(layer) else node.operands), node.type.columns > 1
    operands = (Operand(values[name].broadcast(y.shape), wide and values.device[name].type.columns == 1) for name in names)
    table = values.data(node.operands[-1]) if looks_up(layer) else None
    return ElementWise(tuple(operands), Function[layer.function.upper()], values.blocks.element_wise(layer.epilogue, table))


def emit_vector(work: ElementWise, at: Emission) -> None:
    """For each column block of y one `vector` for each two loops over its rows."""
    accesses = (*work.accesses, at.step.y)
    splats = tuple(operand.splat for operand in work.operands)
    for n, y in enumerate(at.results):
        sources = tuple(at.buffer(operand.access, 0 if operand.splat else n) for operand in work.operands)
        at.emitter.configure(work.block)
        for walk in at.walks(*accesses):
            at.emitter.vector(work.function, walk, accesses, sources, splats, y)
        at.complete(y)
