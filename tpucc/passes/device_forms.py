"""What the device lacks under one name, and has under another: divisions by constants, bounds, means of pixels.

The device multiplies, clamps and averages over windows, but it doesn't divide, compare, or add up along an axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.dataflow import constant_values
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops.clip import OP as clip
from tpucc.ops.clip import ClipAttributes
from tpucc.ops.div import OP as div
from tpucc.ops.global_avg_pool import OP as global_avg_pool
from tpucc.ops.maximum import OP as maximum
from tpucc.ops.mean import OP as mean
from tpucc.ops.minimum import OP as minimum
from tpucc.ops.mul import OP as mul
from tpucc.ops.reductions import ReductionAttributes, axes_of
from tpucc.ops.reshape import OP as reshape
from tpucc.ops.rules import FLOAT32_MAX, FLOAT32_NORMAL
from tpucc.passes.base import Context, Pass
from tpucc.passes.device_work import is_devices
from tpucc.passes.rewriter import Rewriter, constant_of
from tpucc.target import Target


@dataclass(frozen=True)
class DeviceForms(Pass):
    """Rewrites operators that only the host has as ones that the device has, too.

    | before | after |
    |---|---|
    | `x / c` | `x * (1 / c)`, which may differ in the last bit |
    | `maximum(x, 0.1)`, `minimum(x, 0.9)` | `clip`, with the largest float32 number as the other bound |
    | `mean` over neighbouring axes, from the second at most to the last but one | `global_avg_pool` of rows as pixels |

    Only values that the device computes are worth it, for the host has no other way with its own; and of these only images of at most a
    quarter of the unified buffer.
    """

    name = "device-forms"
    summary = "rewrites divisions by constants, constant bounds and means of pixels as what the device has"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter, constants = Rewriter(graph, self.name), constant_values(graph)
        on_device: set[str] = set()
        for node in rewriter:
            reads_device = not on_device.isdisjoint(node.operands)
            if reads_device and _rewrite(rewriter, node, context.target):
                on_device.add(node.name)
                continue
            rewriter.put(node)
            if is_devices(node, rewriter.operands(node), reads_device, constants):
                on_device.add(node.name)
        return rewriter.build()


def _rewrite(rewriter: Rewriter, node: Node, target: Target) -> bool:
    if div.made(node):
        return _multiply(rewriter, node)
    if maximum.made(node) or minimum.made(node):
        return _clip(rewriter, node)
    return mean.made(node) and _pool(rewriter, node, target)


def _multiply(rewriter: Rewriter, node: Node) -> bool:
    """Puts a quotient as a product, where every reciprocal is a normal float32 number."""
    x, divisor = rewriter.operands(node)
    value = constant_of(divisor)
    if value is None:
        return False
    with np.errstate(all="ignore"):
        factors = np.asarray(1 / value.data, np.float32)
    if not (np.isfinite(factors).all() and (np.abs(factors) >= FLOAT32_NORMAL).all()):
        return False
    made = rewriter.once(divisor.name, lambda: rewriter.constant(divisor.name, Constant(factors), divisor.origin))
    rewriter.put(rewriter.in_place(node, mul(x, made)))
    return True


def _clip(rewriter: Rewriter, node: Node) -> bool:
    """Puts the larger or the smaller of a value and a number as a clamp."""
    for x, other in (rewriter.operands(node), rewriter.operands(node)[::-1]):
        number = constant_of(other)
        if number is not None and number.data.size == 1 and node.type.shape == x.type.shape and np.isfinite(number.data).all():
            bound = float(number.data.reshape(()))
            bounds = (bound, FLOAT32_MAX) if maximum.made(node) else (-FLOAT32_MAX, bound)
            rewriter.put(rewriter.in_place(node, clip.with_attributes(ClipAttributes(*bounds), x)))
            return True
    return False


def _pool(rewriter: Rewriter, node: Node, target: Target) -> bool:
    """Puts a mean as a pool of images: the sizes before the axes are their number, the averaged ones their pixels, the last one their
    channels."""
    (x,) = rewriter.operands(node)
    assert isinstance(node.attributes, ReductionAttributes)
    axes, shape = axes_of(node.attributes, x.type.rank), x.type.shape
    if 0 in axes or not axes or axes != tuple(range(axes[0], len(shape) - 1)):
        return False
    images, pixels = prod(shape[: axes[0]]), shape[axes[0] : -1]
    if 4 * prod(pixels) * -(-shape[-1] // target.mxu) > target.unified_buffer_rows:
        return False
    height, width = pixels if len(pixels) == 2 else (prod(pixels), 1)
    image = x if shape == (images, height, width, shape[-1]) else rewriter.reshape(x, (images, height, width, shape[-1]))
    pool = global_avg_pool(image)
    whole = node.type.shape == (images, shape[-1])
    rewriter.put(rewriter.in_place(node, pool if whole else reshape(pool, shape=node.type.shape)))
    return True
