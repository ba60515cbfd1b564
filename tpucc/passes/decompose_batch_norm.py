"""Batch normalisation becomes a multiplication and an addition.

At inference the statistics are constants, and `gamma * (x - mean) / sqrt(variance + epsilon) + beta` is `x * scale + offset` with
`scale = gamma / sqrt(variance + epsilon)` and `offset = beta - mean * scale`, one of each a channel (Ioffe and Szegedy,
arXiv 1502.03167, algorithm 2, step 11). Both fold into the layer before: the scale into its weights, the offset into its bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, NoAttributes, Node
from tpucc.numerics import Float64
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.passes.base import Context
from tpucc.passes.rewriter import Rewriter, constant_of

Key = tuple[str, tuple[str, ...], float]
"""What a constant is computed from: its formula, the parameters, and epsilon."""


@dataclass(frozen=True)
class DecomposeBatchNorm:
    """Rewrites `batch_norm` with constant parameters to `x * scale + offset`, and with a constant variance to
    `(x - mean) * scale + beta`.

    The constants are computed in float64 and rounded once. There is no square root of a computed variance: such a node stays, as does one
    whose constants aren't finite in float32.
    """

    name: ClassVar[str] = "decompose-batch-norm"
    summary: ClassVar[str] = "makes a multiplication and an addition of batch_norm"
    level: ClassVar[int] = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        return _Decomposer(graph, self.name).rewrite(_Decomposer.decompose)


class _Decomposer(Rewriter):
    """Rewrites one node after the other; nodes that share parameters, as an unrolled loop makes them, share the new constants."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self._made: dict[Key, str | None] = {}

    def decompose(self, node: Node) -> bool:
        """Puts the node in its new form, if it is a batch normalisation that has one."""
        if not isinstance(node.attributes, BatchNormAttributes):
            return False
        values = [constant_of(operand) for operand in self.operands(node)[1:]]
        gamma, beta, mean, variance = (None if value is None else value.data.astype(np.float64) for value in values)
        if variance is None:
            return False
        with np.errstate(all="ignore"):
            factor = 1 / np.sqrt(variance + node.attributes.epsilon)
        if gamma is None or beta is None or mean is None:
            return self._stepwise(node, factor if gamma is None else gamma * factor, computed_gamma=gamma is None)
        return self._affine(node, gamma * factor, beta - mean * (gamma * factor))

    def _affine(self, node: Node, scale: Float64, offset: Float64) -> bool:
        """`x * scale + offset`."""
        x, *parameters = node.operands
        factor, added = self._constant(node, "scale", parameters, scale), self._constant(node, "offset", parameters, offset)
        if factor is None or added is None:
            return False
        scaled = self._step(node, "mul", x, factor)
        self.put(replace(node, op="add", operands=(scaled, added), attributes=NoAttributes()))
        return True

    def _stepwise(self, node: Node, scale: Float64, *, computed_gamma: bool) -> bool:
        """`(x - mean) * scale + beta`, where `scale` still lacks gamma if that is computed."""
        x, gamma, beta, mean, variance = node.operands
        factor = self._constant(node, "scale", (variance,) if computed_gamma else (gamma, variance), scale)
        if factor is None:
            return False
        scaled = self._step(node, "mul", self._step(node, "sub", x, mean), factor)
        if computed_gamma:
            scaled = self._step(node, "mul", scaled, gamma)
        self.put(replace(node, op="add", operands=(scaled, beta), attributes=NoAttributes()))
        return True

    def _step(self, node: Node, op: str, x: str, other: str) -> str:
        return self.make(node.name, op, (x, other), NoAttributes(), node.type.plain(), node.origin).name

    def _constant(self, node: Node, formula: str, parameters: list[str] | tuple[str, ...], value: Float64) -> str | None:
        """The name of a constant, made once for all nodes with these parameters; None when it isn't finite in float32."""
        assert isinstance(node.attributes, BatchNormAttributes)
        key = (formula, tuple(parameters), node.attributes.epsilon)
        if key not in self._made:
            with np.errstate(over="ignore"):
                rounded = value.astype(np.float32)
            finite = bool(np.isfinite(rounded).all())
            self._made[key] = self.constant(f"{node.name}.{formula}", Constant(rounded), node.origin).name if finite else None
        return self._made[key]
