"""Convolutions whose kernel is computed become products of two computed values.

A convolutional layer has its kernel in weight memory, so that it must be constant. With a kernel that the model computes, as in networks
of dynamic filters (Jia et al., arXiv 1605.09673), a convolution is a product of matrices: the pixels of each window in one row, known as
im2col, by the kernel, which has a row for each pixel of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tpucc.ir import Node
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.names import conv2d, matmul, patches, reshape, transpose
from tpucc.ops.opdef import Expression
from tpucc.passes.rewriter import is_written
from tpucc.passes.rules import Match, Rule, rule, rules_pass, value


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
