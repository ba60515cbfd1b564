"""Batch normalisation becomes a multiplication and an addition.

At inference the statistics are constants, and `gamma * (x - mean) / sqrt(variance + epsilon) + beta` is `x * scale + offset` with
`scale = gamma / sqrt(variance + epsilon)` and `offset = beta - mean * scale`, one of each a channel (Ioffe and Szegedy,
arXiv 1502.03167, algorithm 2, step 11). Both fold into the layer before: the scale into its weights, the offset into its bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, NoAttributes, Node
from tpucc.numerics import Float64
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, constant_of


@dataclass(frozen=True)
class DecomposeBatchNorm(Pass):
    """Rewrites `batch_norm` with constant parameters to `x * scale + offset`, and with a constant variance to
    `(x - mean) * scale + beta`.

    The constants are computed in float64 and rounded once. There is no square root of a computed variance: such a node stays, as does one
    whose constants aren't finite in float32.
    """

    name = "decompose-batch-norm"
    summary = "rewrites batch_norm as a multiplication and an addition"
    level = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_decompose)


def _decompose(rewriter: Rewriter, node: Node) -> bool:
    """Puts the node in its new form, if it is a batch normalisation that has one.

    Where gamma is computed, too, it is a factor of its own: `(x - mean) * scale * gamma + beta`.
    """
    if not isinstance(node.attributes, BatchNormAttributes):
        return False
    x, *names = node.operands
    known = map(constant_of, rewriter.operands(node)[1:])
    gamma, beta, mean, variance = (None if value is None else value.data.astype(np.float64) for value in known)
    if variance is None:
        return False
    with np.errstate(all="ignore"):
        scale = 1 / np.sqrt(variance + node.attributes.epsilon)
        scale = scale if gamma is None else gamma * scale
    if gamma is None or beta is None or mean is None:
        factor, added = _constant(rewriter, node, "scale", names[3:] if gamma is None else [names[0], names[3]], scale), names[1]
    else:
        factor, added = _constant(rewriter, node, "scale", names, scale), _constant(rewriter, node, "offset", names, beta - mean * scale)
    if not factor or not added:
        return False
    if gamma is None or beta is None or mean is None:
        x = _step(rewriter, node, "sub", x, names[2])
    for by in (factor, *(names[:1] if gamma is None else ())):
        x = _step(rewriter, node, "mul", x, by)
    rewriter.put(replace(node, op="add", operands=(x, added), attributes=NoAttributes()))
    return True


def _step(rewriter: Rewriter, node: Node, op: str, x: str, other: str) -> str:
    return rewriter.make(Node(node.name, op, (x, other), NoAttributes(), node.type.plain(), node.origin)).name


def _constant(rewriter: Rewriter, node: Node, formula: str, parameters: Sequence[str], value: Float64) -> str:
    """The name of a constant, made once for all nodes with these parameters, as an unrolled loop makes them.

    It is empty when the constant isn't finite in float32.
    """
    assert isinstance(node.attributes, BatchNormAttributes)

    def make() -> str:
        with np.errstate(over="ignore"):
            rounded = value.astype(np.float32)
        return rewriter.constant(f"{node.name}.{formula}", Constant(rounded), node.origin).name if np.isfinite(rounded).all() else ""

    return rewriter.once((formula, tuple(parameters), node.attributes.epsilon), make)
