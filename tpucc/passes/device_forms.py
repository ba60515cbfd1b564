"""What the device lacks under one name, and has under another: four passes of rules.

`device_forms`: divisions by constants, bounds, means of pixels. The device multiplies, clamps and averages over windows, but it doesn't
divide, compare, or add up along an axis. `copy_pixels`: images that are made larger by whole numbers. `shuffle_lanes`: channels in
another order. `computed_kernels`: convolutions whose kernel is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from tpucc.ir import Constant, Graph, Node
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.names import (
    clip,
    concat,
    conv2d,
    div,
    global_avg_pool,
    matmul,
    maximum,
    mean,
    minimum,
    mul,
    patches,
    reshape,
    resize,
    transpose,
)
from tpucc.ops.names import shuffle_lanes as shuffled
from tpucc.ops.opdef import Expression
from tpucc.ops.parts import Shape
from tpucc.ops.reductions import axes_of
from tpucc.ops.rules import FLOAT32_MAX, FLOAT32_NORMAL
from tpucc.passes.device_work import is_devices
from tpucc.passes.rewriter import Rewriter, array_of, is_pinned, is_written
from tpucc.passes.rules import Match, Rule, called, constant, in_any_order, once, rule, rules_pass, value, view


class OnDevice(Rewriter):
    """Knows of the nodes that a pass has put which of them the device computes."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self.on_device: set[str] = set()

    def put(self, node: Node, *fused: Node) -> Node:
        """Adds a node to the new graph, and notes whether the device computes it."""
        made = super().put(node, *fused)
        self._note(made)
        return made

    def keep(self, node: Node) -> None:
        """Adds a node of the old graph as it is, and notes whether the device computes it."""
        super().keep(node)
        self._note(node)

    def _note(self, node: Node) -> None:
        if is_devices(node, self.operands(node), not self.on_device.isdisjoint(node.operands), self.constants):
            self.on_device.add(node.name)


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
    larger, smaller = (in_any_order(each)(x, number) for each in (maximum, minimum))
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


# Images that are made larger by whole numbers become copies of their pixels.
#
# The device has no instruction that picks pixels by a table, but it joins values along an axis of rows. Pixels each of which stands
# twice are the image joined with itself along a new axis behind the width: `[N, H, W, 1, C]` twice is `[N, H, W, 2, C]`, which is `[N,
# H, 2 * W, C]`.


@rules_pass("copy-pixels", "rewrites a resize by whole numbers as copies of pixels", level=1)
def copy_pixels() -> Iterator[Rule]:
    """Rewrites `resize` of the nearest pixels, larger by whole numbers, to reshapes and `concat` of a value with itself.

    Columns go first: then fewer rows are copied twice. At the edges of the device's work the host does both.
    """
    yield rule("a resize of the nearest pixels", resize(value("x"), mode="nearest"), _copied, when=lambda m: not is_pinned(m.root))


def _copied(m: Match) -> Expression | None:
    """The copies, in the shape of the result; None where the image doesn't grow by whole numbers."""
    images, rows, columns, _ = m.x.type.shape
    height, width = m.root.type.shape[1:3]
    if height % rows or width % columns:
        return None
    wide = _repeated(m, m.x, (images, rows, columns), width // columns)
    tall = _repeated(m, wide, (images, rows), height // rows)
    return reshape(tall, shape=m.root.type.shape)


def _repeated(m: Match, x: Node, leading: Shape, times: int) -> Node:
    """The value with each part at the leading indices repeated so many times."""
    if times == 1:
        return x
    apart = m.rewriter.reshape(x, (*leading, 1, x.type.rows // prod(leading), x.type.columns))
    return m.rewriter.add(concat(*[apart] * times, axis=len(leading)), m.root)


# Channels in another order: a reshape, a transpose and a reshape of them become one operator, which the matrix unit computes.


@rules_pass("shuffle-lanes", "makes one operator of the reshapes and the transpose that put channels into another order", level=1)
def shuffle_lanes() -> Iterator[Rule]:
    """Rewrites `reshape(transpose(reshape(x)))` to `shuffle_lanes(x)` where only the values of each row change places, as in ShuffleNet
    (Zhang et al., arXiv 1707.01083). The device can turn no row into several, but it can pick lanes by a product.
    """
    turned = once(called("turned", transpose(once(called("divided", view(value("x")))))))
    yield rule("lanes in another order", view(turned), _shuffled)


def _shuffled(m: Match) -> Expression | None:
    """`shuffle_lanes` in the place of the last reshape; None where rows change places, or values change rows."""
    rows, rank = len(m.x.type.shape) - 1, m.divided.type.rank
    perm = [axis % rank for axis in transpose.attributes_of(m.turned).perm]
    kept = m.x.type.shape[:-1] == m.divided.type.shape[:rows] and perm[:rows] == [*range(rows)] and m.root.type.shape == m.x.type.shape
    if rows < 1 or rank < rows + 2 or not kept:
        return None
    return shuffled(m.x, sizes=m.divided.type.shape[rows:], perm=tuple(axis - rows for axis in perm[rows:]))


# Convolutions whose kernel is computed become products of two computed values.
#
# A convolutional layer has its kernel in weight memory, so that it must be constant. With a kernel that the model computes, as in networks
# of dynamic filters (Jia et al., arXiv 1605.09673), a convolution is a product of matrices: the pixels of each window in one row, known as
# im2col, by the kernel, which has a row for each pixel of a window.


@rules_pass("computed-kernels", "makes a convolution with a computed kernel a product of the windows' pixels with it", level=1)
def computed_kernels() -> Iterator[Rule]:
    """Rewrites `conv2d(x, k)` to `patches(x) @ reshape(k)`, where k is computed.

    With groups it is one product with a matrix for each group: [groups, pixels, depth] @ [groups, depth, filters].
    """
    yield rule("a computed kernel", conv2d(value("x"), value("kernel")), _product, when=_is_computed)


def _is_computed(m: Match) -> bool:
    """Whether the kernel depends on an input. A value that the host writes to weight memory is a kernel as it is."""
    return m.kernel.name not in m.rewriter.constants and not is_written(m.kernel)


def _product(m: Match) -> Expression:
    """The product of the windows' pixels with the kernel: of groups, with one matrix each."""
    rows, groups = _windows(m, conv2d.attributes_of(m.root)), conv2d.attributes_of(m.root).groups
    depth, filters = prod(m.kernel.type.shape[:3]), m.kernel.type.columns
    if groups == 1:
        return matmul(rows, reshape(m.kernel, shape=(depth, filters)))
    pixels, positions = rows.type.rows, prod(m.kernel.type.shape[:2])
    channels = reshape(rows, shape=(pixels, positions, groups, m.x.type.columns // groups))
    by_group = reshape(transpose(channels, perm=(2, 0, 1, 3)), shape=(groups, pixels, depth))
    matrices = transpose(reshape(m.kernel, shape=(depth, groups, filters // groups)), perm=(1, 0, 2))
    return reshape(transpose(matmul(by_group, matrices), perm=(1, 0, 2)), shape=m.root.type.shape)


def _windows(m: Match, attributes: Conv2dAttributes) -> Node:
    """The windows' pixels, [N, H', W', R·S·C]; the image itself where each window is one pixel of it."""
    axes = conv_axes(attributes, m.x.type.shape, m.kernel.type.shape)
    if all((axis.window, axis.stride, axis.before, axis.after) == (1, 1, 0, 0) for axis in axes):
        return m.x
    size = m.kernel.type.shape[:2]
    made = patches(m.x, size=size, stride=attributes.stride, padding=attributes.padding, dilation=attributes.dilation)
    return m.rewriter.add(made, m.root, f"{m.x.name}.patches")
