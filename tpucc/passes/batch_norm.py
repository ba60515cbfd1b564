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
from tpucc.ops import OPS, legalisation_of
from tpucc.ops.names import add, batch_norm, conv2d, mul, sub
from tpucc.ops.opdef import Arithmetic, Boundary, Expression
from tpucc.passes.device_work import multiplies
from tpucc.passes.rewriter import columns_of, constant_of, is_pinned
from tpucc.passes.rules import Family, Match, Rule, columns, constant, rule, rules_pass, value


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


# Factors of columns: a product of an image with one factor for each channel, as batch normalisation leaves it, is a convolution.
#
# The vector unit multiplies integers by integers. A constant of factors has one scale there, in which small factors have few steps, and the
# sum after it rounds once more. A depthwise convolution of 1×1 multiplies channel by channel, too. Its weights have a scale for each
# channel, so that every factor is exact but for the rounding of its scale to float32; the sum is its bias, and it rounds once.


@rules_pass("column-factors", "makes an image's product with a factor for each channel a depthwise convolution", level=1)
def column_factors() -> Iterator[Rule]:
    """Rewrites `x * c`, where the device has an image [N, H, W, C] and c is one factor a channel, as `conv2d(x, k, groups=C)` with
    k = c as [1, 1, 1, C].

    Values of 16 bits stay: their integers are fine enough, and the vector unit has no convolutions of them. So do values whose scales the
    source gives, and products with one number for all channels, which are tables.
    """
    factor = Family(lambda op: isinstance(legalisation_of(op), Arithmetic), when=multiplies)(value("x"), columns("factors"))
    yield rule("a factor for each channel of an image", factor, _convolution, when=_is_image)


def _convolution(m: Match) -> Expression | None:
    """The convolution; its kernel is shared by all products with this constant. None where the factors are all one number."""
    factors = columns_of(m.factors, m.root.type)
    if factors is None or not (factors.data != factors.data[0]).any():
        return None

    def kernel() -> Node:
        value = Constant(factors.data.reshape(1, 1, 1, -1))
        same = value.shape == m.factors.type.shape
        return m.factors if same else m.rewriter.constant(m.factors.name, value, m.factors.origin)

    return conv2d(m.x, m.rewriter.once(m.factors.name, kernel), groups=m.root.type.columns)


def _is_image(m: Match) -> bool:
    """Whether the device has both images, and the source doesn't say how the product, or what it multiplies, becomes integers."""
    if not m.context.format.has_exact_tables or not m.root.on_device or m.root.type.rank != 4 or m.x.type.shape != m.root.type.shape:
        return False
    near = (*m.rewriter.operands(m.root), *m.rewriter.graph.users[m.root.name])
    return not is_pinned(m.root) and not any(is_pinned(each) or isinstance(OPS[each.op].legalisation, Boundary) for each in near)
