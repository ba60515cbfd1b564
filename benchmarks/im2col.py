"""The baseline for convolutional networks: a plain float32 forward in NumPy, its convolutions by im2col.

Every window is unfolded into a row, and a convolution is then one matrix product (Chellapilla, Puri and Simard, "High Performance
Convolutional Neural Networks for Document Processing", 2006). This is what one writes in NumPy who wants speed without a compiler: one
copy and one call of the BLAS a convolution, batch norm as a factor and a summand a channel. What isn't here is taken from the operators'
own float32 references, which are as plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops.axis import Axis
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.evaluate import Extra, evaluate


def forward(graph: Graph, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The outputs of an operator graph whose weights are bound, by name, in float32."""
    values = evaluate(graph, inputs, PLAIN)
    return {output.name: values[output.node] for output in graph.outputs}


def conv2d(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
    """x [N, H, W, C] and w [R, S, C, F] → [N, H', W', F]."""
    x, w = operands
    assert isinstance(node.attributes, Conv2dAttributes)
    height, width = conv_axes(node.attributes, x.shape, w.shape)
    if node.attributes.groups > 1:
        assert node.attributes.groups == x.shape[3] == w.shape[3]
        return depthwise(x, w, height, width, node.type.shape)
    rows = unfold(x, height, width)
    return (rows @ w.reshape(-1, w.shape[3])).reshape(node.type.shape)


def depthwise(x: AnyArray, w: AnyArray, height: Axis, width: Axis, shape: tuple[int, ...]) -> AnyArray:
    """A filter for each channel: a product and a sum for each place of the window, which is several times as fast as unfolding."""
    padded, result = _padded(x, height, width), np.zeros(shape, np.float32)
    for row in range(height.window):
        for column in range(width.window):
            result += padded[:, row :: height.stride, column :: width.stride][:, : shape[1], : shape[2]] * w[row, column, 0]
    return result


def unfold(x: AnyArray, height: Axis, width: Axis) -> AnyArray:
    """Every window of x [N, H, W, C] as a row [N * H' * W', R * S * C]. Nothing is copied for windows of one pixel side by side."""
    padded = _padded(x, height, width)
    windows = sliding_window_view(padded, (height.window, width.window), axis=(1, 2))[:, :: height.stride, :: width.stride]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, height.window * width.window * x.shape[3])


def _padded(x: AnyArray, height: Axis, width: Axis) -> AnyArray:
    """Zeros around x, without NumPy's own `pad`, which is slower."""
    if not any((height.before, height.after, width.before, width.after)):
        return x
    shape = (x.shape[0], height.before + x.shape[1] + height.after, width.before + x.shape[2] + width.after, x.shape[3])
    padded = np.zeros(shape, x.dtype)
    padded[:, height.before : height.before + x.shape[1], width.before : width.before + x.shape[2]] = x
    return padded


def batch_norm(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
    """As a factor and a summand for each channel: two passes over x, not four."""
    x, gamma, beta, mean, variance = operands
    assert isinstance(node.attributes, BatchNormAttributes)
    factor = gamma / np.sqrt(variance + np.float32(node.attributes.epsilon))
    result = x * factor
    result += beta - mean * factor
    return result


PLAIN: Extra = {"conv2d": conv2d, "batch_norm": batch_norm}
"""The operators that are computed here, not by their references."""
