"""Products: fully connected and convolutional layers, with the bias and the activation that were fused into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tpucc.diagnostics import Diagnostic, Origin, ProgramError
from tpucc.ir import Node, Quantisation
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import Conv, Fc, Sides
from tpucc.layers.parameters import BIAS_BOUND, Requantisation, fitting_scales, requantisation
from tpucc.layers.verify import conv_shape
from tpucc.numerics import AnyArray, Float32, Int8, dequantise, quantise, quantise_weights
from tpucc.ops import facts_of
from tpucc.ops.axis import sides
from tpucc.ops.conv_transpose2d import transposed_axes
from tpucc.ops.names import conv_transpose2d, transposed_convolution
from tpucc.ops.parts import Shape
from tpucc.passes.layering.elementwise import requantised
from tpucc.passes.layering.graph import LayerGraph, Tail, parameters_of, tail_of
from tpucc.passes.layering.transposed import interleaved
from tpucc.passes.rewriter import held_array, is_product, is_written


def product(layers: LayerGraph, node: Node) -> Node:
    """The layer of a product. A transposed convolution becomes several layers, and this is the node that puts their results together."""
    if is_written(layers.graph[node.operands[1]]):
        return _by_written(layers, node)
    x = layers.for_device(node.operands[0])
    y, name = layers.quantisation_of(node), layer_name(node)
    tail = tail_of(layers, node, y)
    bias, origin = _bias(layers, node), node.origin.merged(*(layers.graph[operand].origin for operand in node.operands[2:]))
    (make, scales), kernel = _weights(layers, node, bias, parameters_of(x)), layers.graph[node.operands[1]]

    def multiplied(image: Node, held: Node, attributes: Fc | Conv, shape: Shape | None) -> Node:
        """The layer of an image, or of rows, and int8 weights."""
        folded = requantisation(_columns(held), scales, bias, parameters_of(x), tail.to, layers.format)
        constants = _constants(layers, name, origin, folded, tail)
        return layers.layer(node, (image, held, *constants), attributes, y, name=name, shape=shape)

    if conv_transpose2d.made(node) or transposed_convolution.made(node):

        def convolve(image: Node, values: Int8, around: Sides) -> Node:
            attributes = Conv((1, 1), around, parameters_of(x).zero_point, tail.epilogue())
            part = layers.constant(kernel.name, values, kernel.origin)
            return multiplied(image, part, attributes, conv_shape(attributes, image.type.shape, values.shape))

        return interleaved(layers, node, x, make(), transposed_axes(node.attributes, x.type.shape, kernel.type.shape), convolve)
    held = layers.shared(kernel.name, scales.tobytes(), lambda: layers.constant(kernel.name, make(), kernel.origin))
    return multiplied(x, held, _layer_attributes(node, kernel, x, tail), node.type.shape)


def _by_written(layers: LayerGraph, node: Node) -> Node:
    """The layer of a product by weights that the host writes: `as_weights` of what it computes.

    A zero point of x would be a bias that depends on the weights, so x and the weights have the zero point 0. The bias, divided by the
    product of their scales, must stay below `BIAS_BOUND`. Its multiplier and bounds hold for any weights: those of the largest magnitude.
    """
    written = layers.graph[node.operands[1]]
    depth, n = written.type.shape[-2:]
    x, y = _symmetric(layers, node.operands[0]), layers.quantisation_of(node)
    tail = tail_of(layers, node, y)
    bias = _bias(layers, node)
    least = np.abs(bias).max(initial=0) / (parameters_of(x).scale * BIAS_BOUND)
    source = layers.graph[written.operands[0]]
    scales = np.full(n, max(layers.symmetric_scale(written if source.type.quantisation is None else source), least), np.float32)
    weights = layers.symmetric(written.name, written.operands[0], float(scales[0]))
    folded = requantisation(np.full((depth, n), layers.format.low, np.int8), scales, bias, parameters_of(x), tail.to, layers.format)
    constants = _constants(layers, node.name, node.origin, folded, tail)
    return layers.layer(node, (x, weights, *constants), Fc(tail.epilogue()), y)


def _symmetric(layers: LayerGraph, name: str) -> Node:
    """The node from which the device reads a value with the zero point 0: what the host makes so, or a value of the device that has
    the zero point 0 already, or goes through a table to it."""
    scale = layers.symmetric_scale(layers.graph[name])
    if layers.on_host(name) and layers.graph[name].type.dtype == "f32":
        return layers.symmetric(name, name, scale)
    x = layers.for_device(name)
    return x if parameters_of(x).zero_point == 0 else requantised(layers, layers.graph[name], x, Quantisation(scale, 0))


def _constants(layers: LayerGraph, name: str, origin: Origin, folded: Requantisation, tail: Tail) -> Iterator[Node]:
    """The constants of the layer `name` beside its weights: bias, multiplier, and a table if the tail has one."""
    constants: dict[str, AnyArray] = {"bias": folded.bias, "multiplier": folded.multiplier}
    if tail.table is not None:
        constants["table"] = tail.table
    return (layers.constant(f"{name}.{part}", value, origin) for part, value in constants.items())


def _bias(layers: LayerGraph, node: Node) -> AnyArray:
    """The real bias [N]: zeros where the operator has none."""
    return _array(layers, node.operands[2]) if len(node.operands) == 3 else np.zeros(node.type.columns, np.float32)


def layer_name(node: Node) -> str:
    """The name of the layer of a node: a product's is what stands before the last dot of its weight's key (`fc1` of `fc1.w`); that of a key
    without a dot, and of another node, is the node's own.

    Numbers at the end of the weight's name were put there to keep names apart.
    """
    words = node.operands[1].split(".") if is_product(node) else []
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return ".".join(words[:-1]) or node.name


def _layer_attributes(node: Node, kernel: Node, x: Node, tail: Tail) -> Fc | Conv:
    windows = facts_of(node.op).windows
    if windows is None:
        return Fc(tail.epilogue())
    height, width = windows(node.attributes, (x.type.shape, kernel.type.shape))
    groups = x.type.shape[3] // kernel.type.shape[2]
    stride, dilation = (height.stride, width.stride), (height.dilation, width.dilation)
    return Conv(stride, sides(height, width), parameters_of(x).zero_point, tail.epilogue(), dilation, groups)


def _weights(layers: LayerGraph, node: Node, bias: AnyArray, x: Quantisation) -> tuple[Callable[[], Int8], Float32]:
    """What makes the weights of a product in int8, [K, N] or [R, S, C, F], and the scales of their columns, float32 [N].

    A scale that the source fixes is kept where its zero point is 0. With another zero point the weights are rounded as the source says, and
    quantised anew.
    """
    source = layers.graph[node.operands[1]]
    whole, given = _array(layers, source.name), source.type.quantisation
    real = whole.reshape(-1, whole.shape[-1])
    if given is not None and given.zero_point != 0:
        integers = quantise(real, given.scale, given.zero_point, INTEGER_FORMATS[layers.format.weights])
        real = dequantise(integers, given.scale, given.zero_point)
    scales = fitting_scales(real, bias, x, layers.per_channel, layers.format)
    if given is not None and given.zero_point == 0:
        scales = np.full_like(scales, given.scale)
    return lambda: quantise_weights(real, scales).reshape(whole.shape), scales


def _columns(weights: Node) -> AnyArray:
    """Weights as one matrix [K, N]."""
    values = held_array(weights)
    assert values is not None
    return values.reshape(-1, values.shape[-1])


def _array(layers: LayerGraph, name: str) -> AnyArray:
    values = layers.array(name)
    if values is None:
        raise ProgramError(Diagnostic("E0806", f"{name} must be constant: the device reads it from weight memory"))
    return values
