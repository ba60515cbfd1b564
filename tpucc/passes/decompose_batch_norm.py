"""Batch normalisation becomes a multiplication and an addition.

At inference the statistics are constants, and `gamma * (x - mean) / sqrt(variance + epsilon) + beta` is `x * scale + offset` with
`scale = gamma / sqrt(variance + epsilon)` and `offset = beta - mean * scale`, one of each a channel (Ioffe and Szegedy,
arXiv 1502.03167, algorithm 2, step 11). Both fold into the layer before: the scale into its weights, the offset into its bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.ir import Constant, Node
from tpucc.numerics import Float64
from tpucc.ops.names import add, batch_norm, mul, sub
from tpucc.ops.opdef import Expression
from tpucc.passes.rewriter import constant_of
from tpucc.passes.rules import Match, Rule, constant, rule, rules_pass, value


@rules_pass("decompose-batch-norm", "rewrites batch_norm as a multiplication and an addition", level=0)
def decompose_batch_norm() -> Iterator[Rule]:
    """Rewrites `batch_norm` with constant parameters to `x * scale + offset`, and with a constant variance to
    `(x - mean) * scale + beta`.

    The constants are computed in float64 and rounded once. There is no square root of a computed variance: such a node stays, as does one
    whose constants aren't finite in float32.
    """
    normalised = batch_norm(value("x"), value("gamma"), value("beta"), value("mean"), constant("variance"))
    yield rule("a normalisation with a constant variance", normalised, _decompose)


def _decompose(m: Match) -> Expression | None:
    """The sum. Where gamma is computed, too, it is a factor of its own: `(x - mean) * scale * gamma + beta`."""
    gamma, beta, mean, variance = (_known(node) for node in (m.gamma, m.beta, m.mean, m.variance))
    assert variance is not None
    with np.errstate(all="ignore"):
        scale = 1 / np.sqrt(variance + batch_norm.attributes_of(m.root).epsilon)
        scale = scale if gamma is None else gamma * scale
    if gamma is None or beta is None or mean is None:
        statistics = (m.mean, m.variance) if gamma is None else (m.gamma, m.variance)
        factor = _constant(m, "scale", statistics, scale)
        if factor is None:
            return None
        scaled = mul(sub(m.x, m.mean), factor)
        return add(mul(scaled, m.gamma) if gamma is None else scaled, m.beta)
    parameters = (m.gamma, m.beta, m.mean, m.variance)
    factor, added = _constant(m, "scale", parameters, scale), _constant(m, "offset", parameters, beta - mean * scale)
    return None if factor is None or added is None else add(mul(m.x, factor), added)


def _known(node: Node) -> Float64 | None:
    known = constant_of(node)
    return None if known is None else known.data.astype(np.float64)


def _constant(m: Match, formula: str, parameters: Sequence[Node], values: Float64) -> Node | None:
    """A constant, made once for all nodes with these parameters, as an unrolled loop makes them; None if it isn't finite in float32."""

    def make() -> Node | None:
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32)
        return m.rewriter.constant(f"{m.root.name}.{formula}", Constant(rounded), m.root.origin) if np.isfinite(rounded).all() else None

    return m.rewriter.once((formula, *(each.name for each in parameters), batch_norm.attributes_of(m.root).epsilon), make)
