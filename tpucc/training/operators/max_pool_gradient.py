"""max_pool_gradient: how a change of the largest values goes back to the image. Internal: the gradient of max_pool is made of it."""

from __future__ import annotations

from itertools import product as pairs

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError, aligned
from tpucc.ops.facts import whole
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.windows import PoolAttributes, infer_pool, pool_axes
from tpucc.training.operators import gradient_operator


def infer(attributes: PoolAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` with two of `[N, H', W', C]` becomes `[N, H, W, C]`."""
    pooled = infer_pool(attributes, types[:1])
    for index in (1, 2):
        if types[index].plain() != pooled:
            raise RuleError("E0302", f"the pool of {{0}} is {pooled}, found {types[index].brief}", about=(index,))
    return f32(*types[0].shape)


def reference(attributes: PoolAttributes, operands: Arrays) -> Array:
    """One step a window position, row by row: the windows whose largest pixel it is, among those that have found none yet.

    Where windows overlap, a pixel's sum starts at 0 and goes in that order of the positions. A NaN is no largest pixel; a gradient that is
    infinite makes NaN of the rest of its window.
    """
    x, y, dy = operands
    height, width = pool_axes(attributes, x.shape)
    dx, searching = np.zeros_like(x, dy.dtype, order="C"), np.ones_like(y, np.bool_, order="C")
    for r, s in pairs(height.positions, width.positions):
        (rows_out, rows), (columns_out, columns) = height.tap(r), width.tap(s)
        here, there = np.s_[:, rows, columns], np.s_[:, rows_out, columns_out]
        found = searching[there] & (x[here] == y[there])
        searching[there] ^= found
        dx[here] += dy[there] * found
    return dx


def _batch(case: Case) -> Division:
    """All operands have the items, which are images."""
    division = aligned(case, range(len(case.operands)))
    if division.batch.axis != 0:
        raise MixedError(f"the batch lies along axis {division.batch.axis}, where {case.node.op} has no separate items")
    return division


OP = gradient_operator(
    name="max_pool_gradient",
    summary="the gradient of max_pool",
    documentation=(
        "`x` and `y` are the image `[N, H, W, C]` and its pool `[N, H', W', C]`, and `dy` the gradient of the pool. Each window hands its "
        "gradient to its largest pixel, the first of those that are equal, row by row; where windows overlap, they add up. TensorFlow: "
        "raw_ops.MaxPoolGrad. ONNX: MaxUnpool (windows side by side)."
    ),
    operands=(Operand("x"), Operand("y"), Operand("dy")),
    attributes=PoolAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device pools, but doesn't tell which pixel won"),
    facts=whole(batch=_batch),
    examples=(
        Example("one whole tile", PoolAttributes(), (f32(1, 8, 8, 256), f32(1, 4, 4, 256), f32(1, 4, 4, 256))),
        Example("ragged", PoolAttributes(3, 2, "same"), (f32(2, 7, 8, 5), f32(2, 4, 4, 5), f32(2, 4, 4, 5))),
        Example("padding by hand", PoolAttributes((3, 2), (1, 2), (2, 0, 1, 1)), (f32(1, 5, 6, 3), f32(1, 5, 4, 3), f32(1, 5, 4, 3))),
        Example("beyond the end", PoolAttributes(2, 2, ceil=True), (f32(1, 5, 7, 2), f32(1, 3, 4, 2), f32(1, 3, 4, 2))),
        Example("pixels that no window sees", PoolAttributes(2, 3), (f32(1, 6, 7, 2), f32(1, 2, 2, 2), f32(1, 2, 2, 2))),
    ),
)
