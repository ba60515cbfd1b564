"""What the device lacks under one name, and has under another: divisions by constants, bounds, means of pixels.

The device multiplies, clamps and averages over windows, but it doesn't divide, compare, or add up along an axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from tpucc.ir import Constant, Graph, Node
from tpucc.ops.names import clip, div, global_avg_pool, maximum, mean, minimum, mul, reshape
from tpucc.ops.opdef import Expression
from tpucc.ops.reductions import axes_of
from tpucc.ops.rules import FLOAT32_MAX, FLOAT32_NORMAL
from tpucc.passes.device_work import is_devices
from tpucc.passes.rewriter import Rewriter, array_of
from tpucc.passes.rules import Family, Match, Rule, constant, rule, rules_pass, value


class OnDevice(Rewriter):
    """Knows of the nodes that a pass has put which of them the device computes."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self.on_device: set[str] = set()

    def enter(self, node: Node) -> Node:
        """Adds a node to the new graph, and notes whether the device computes it."""
        made = super().enter(node)
        if is_devices(made, self.operands(made), not self.on_device.isdisjoint(made.operands), self.constants):
            self.on_device.add(made.name)
        return made


@rules_pass(
    "device-forms", "rewrites divisions by constants, constant bounds and means of pixels as what the device has", level=1, using=OnDevice
)
def device_forms() -> Iterator[Rule]:
    """Rewrites operators that only the host has as ones that the device has, too.

    | before | after |
    |---|---|
    | `x / c` | `x * (1 / c)`, which may differ in the last bit |
    | `maximum(x, 0.1)`, `minimum(x, 0.9)` | `clip`, with the largest float32 number as the other bound |
    | `mean` over neighbouring axes, from the second at most to the last but one | `global_avg_pool` of rows as pixels |

    Only values that the device computes are worth it, for the host has no other way with its own; and of these only images of at most a
    quarter of the unified buffer.
    """
    x, number = value("x"), constant("number")
    larger, smaller = (Family(each.made, in_any_order=True)(x, number) for each in (maximum, minimum))
    yield rule("a division by a constant", div(x, number), _multiplied, when=_is_on_device)
    yield rule("a lower bound", larger, lambda m: clip(m.x, low=_bound(m), high=FLOAT32_MAX), when=_has_bound)
    yield rule("an upper bound", smaller, lambda m: clip(m.x, low=-FLOAT32_MAX, high=_bound(m)), when=_has_bound)
    yield rule("a mean of pixels", mean(x), _pooled, when=_is_on_device)


def _is_on_device(m: Match) -> bool:
    """Whether the operator reads a value that the device computes."""
    assert isinstance(m.rewriter, OnDevice)
    return not m.rewriter.on_device.isdisjoint(m.root.operands)


def _multiplied(m: Match) -> Expression | None:
    """A quotient as a product; None where a reciprocal isn't a normal float32 number."""
    with np.errstate(all="ignore"):
        factors = np.asarray(1 / array_of(m.number), np.float32)
    if not (np.isfinite(factors).all() and (np.abs(factors) >= FLOAT32_NORMAL).all()):
        return None
    made = m.rewriter.once(m.number.name, lambda: m.rewriter.constant(m.number.name, Constant(factors), m.number.origin))
    return mul(m.x, made)


def _has_bound(m: Match) -> bool:
    """Whether the constant is one finite number, which bounds every element of a value."""
    bound = array_of(m.number)
    return _is_on_device(m) and bound.size == 1 and m.root.type.shape == m.x.type.shape and bool(np.isfinite(bound).all())


def _bound(m: Match) -> float:
    return float(array_of(m.number).reshape(()))


def _pooled(m: Match) -> Expression | None:
    """A mean as a pool of images: the sizes before the axes are their number, the averaged ones their pixels, the last one their
    channels. None where the axes aren't neighbours, or an image is too large."""
    shape, target = m.x.type.shape, m.context.target
    axes = axes_of(mean.attributes_of(m.root), len(shape))
    if 0 in axes or not axes or axes != tuple(range(axes[0], len(shape) - 1)):
        return None
    images, pixels = prod(shape[: axes[0]]), shape[axes[0] : -1]
    if 4 * prod(pixels) * -(-shape[-1] // target.mxu) > target.unified_buffer_rows:
        return None
    height, width = pixels if len(pixels) == 2 else (prod(pixels), 1)
    image = (images, height, width, shape[-1])
    pool = global_avg_pool(m.x if shape == image else m.rewriter.reshape(m.x, image))
    return pool if m.root.type.shape == (images, shape[-1]) else reshape(pool, shape=m.root.type.shape)
