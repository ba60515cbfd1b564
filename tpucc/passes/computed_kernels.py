"""Convolutions whose kernel is computed become products of two computed values.

A convolutional layer has its kernel in weight memory, so that it must be constant. With a kernel that the model computes, as in networks
of dynamic filters (Jia et al., arXiv 1605.09673), a convolution is a product of matrices: the pixels of each window in one row, known as
im2col, by the kernel, which has a row for each pixel of a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tpucc.ir.dataflow import constant_values
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops.conv2d import OP as conv2d
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.matmul import OP as matmul
from tpucc.ops.opdef import Expression
from tpucc.ops.patches import OP as patches
from tpucc.ops.reshape import OP as reshape
from tpucc.ops.transpose import OP as transpose
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import is_written
from tpucc.passes.rules import Match, Rules, rule, value, variable


@dataclass(frozen=True)
class ComputedKernels(Pass):
    """Rewrites `conv2d(x, k)` to `patches(x) @ reshape(k)`, where k is computed.

    With groups it is one product with a matrix for each group: [groups, pixels, depth] @ [groups, depth, filters].
    """

    name = "computed-kernels"
    summary = "makes a convolution with a computed kernel a product of the windows' pixels with it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        constants = constant_values(graph)
        computed = variable("kernel", lambda node: node.name not in constants and not is_written(node))
        return Rules(self.name, rule("a computed kernel", conv2d(value("x"), computed), _product)).run(graph, context)


def _product(m: Match) -> Expression:
    """The product of the windows' pixels with the kernel: of groups, with one matrix each."""
    assert isinstance(m.root.attributes, Conv2dAttributes)
    rows, groups = _windows(m, m.root.attributes), m.root.attributes.groups
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
