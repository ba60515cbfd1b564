"""Convolutions whose kernel is computed become products of two computed values.

A convolutional layer has its kernel in weight memory, so that it must be constant. With a kernel that the model computes, as in networks
of dynamic filters (Jia et al., arXiv 1605.09673), a convolution is a product of matrices: the pixels of each window in one row, known as
im2col, by the kernel, which has a row for each pixel of a window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tpucc.ir.dataflow import constant_values
from tpucc.ir.graph import Graph, NoAttributes, Node
from tpucc.ir.types import f32
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.patches import PatchesAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, as_reshape, has_weights


@dataclass(frozen=True)
class ComputedKernels(Pass):
    """Rewrites `conv2d(x, k)` to `patches(x) @ reshape(k)`, where k is computed.

    With groups it is one product with a matrix for each group: [groups, pixels, depth] @ [groups, depth, filters].
    """

    name = "computed-kernels"
    summary = "makes a convolution with a computed kernel a product of the windows' pixels with it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter, constants = Rewriter(graph, self.name), constant_values(graph)
        for node in rewriter:
            if isinstance(node.attributes, Conv2dAttributes) and not has_weights(node, rewriter.operands(node), constants):
                _put_product(rewriter, node, node.attributes)
            else:
                rewriter.put(node)
        return rewriter.build()


def _put_product(rewriter: Rewriter, node: Node, attributes: Conv2dAttributes) -> None:
    x, kernel = rewriter.operands(node)
    rows = _patches(rewriter, node, attributes)
    depth, filters, groups = prod(kernel.type.shape[:3]), kernel.type.columns, attributes.groups
    if groups == 1:
        matrix = rewriter.reshape(kernel, (depth, filters))
        rewriter.put(replace(node, op="matmul", operands=(rows.name, matrix.name), attributes=NoAttributes()))
        return
    pixels, positions = rows.type.rows, prod(kernel.type.shape[:2])
    channels = rewriter.reshape(rows, (pixels, positions, groups, x.type.columns // groups))
    by_group = rewriter.reshape(_transposed(rewriter, channels, (2, 0, 1, 3)), (groups, pixels, depth))
    matrices = _transposed(rewriter, rewriter.reshape(kernel, (depth, groups, filters // groups)), (1, 0, 2))
    type_ = f32(groups, pixels, filters // groups)
    product = rewriter.make(Node(node.name, "matmul", (by_group.name, matrices.name), NoAttributes(), type_, node.origin))
    rewriter.put(as_reshape(node, _transposed(rewriter, product, (1, 0, 2)).name))


def _patches(rewriter: Rewriter, node: Node, attributes: Conv2dAttributes) -> Node:
    """The windows' pixels, [N, H', W', R·S·C]; the image itself where each window is one pixel of it."""
    x, kernel = rewriter.operands(node)
    axes = conv_axes(attributes, x.type.shape, kernel.type.shape)
    if all((axis.window, axis.stride, axis.before, axis.after) == (1, 1, 0, 0) for axis in axes):
        return x
    window = kernel.type.shape[0], kernel.type.shape[1]
    shape = (*node.type.shape[:3], prod(window) * x.type.columns)
    steps = PatchesAttributes(window, attributes.stride, attributes.padding, attributes.dilation)
    return rewriter.make(Node(f"{x.name}.patches", "patches", (x.name,), steps, f32(*shape), node.origin))


def _transposed(rewriter: Rewriter, of: Node, perm: tuple[int, ...]) -> Node:
    type_ = f32(*(of.type.shape[axis] for axis in perm))
    return rewriter.make(Node(of.name, "transpose", (of.name,), TransposeAttributes(perm), type_, of.origin))
