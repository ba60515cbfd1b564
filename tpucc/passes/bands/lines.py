"""Operators that compute an image line by line, and the lines of their operands that some lines of the result depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tpucc.ir.graph import Attributes, Graph, Node
from tpucc.ops import OPS
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.convolution import ConvolutionAttributes, unfused
from tpucc.ops.opdef import Arithmetic, Clamp, Table
from tpucc.ops.pad import PadAttributes
from tpucc.ops.windows import Axis, PoolAttributes, pool_axes

Lines = tuple[int, int]
"""Lines of an image [N, H, W, C]: the first, and the one after the last, along H."""
Sides = tuple[int, int, int, int]
"""Pixels above, below, left and right of an image."""
NO_SIDES: Sides = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Reading:
    """How lines of a result are computed: the lines read of each operand (None: all of a constant), and the attributes for just these."""

    lines: tuple[Lines | None, ...]
    attributes: Attributes


def computes_by_line(graph: Graph, node: Node, constants: Collection[str]) -> bool:
    """Whether each line of the node's image depends on some lines of its operands, as convolutions, pools and functions of elements do.

    `constants` are the values that depend on no input. A constant with lines of its own isn't cut.
    """
    if node.type.rank != 4 or node.type.dtype != "f32" or all(name in constants for name in node.operands):
        return False
    match node.attributes:
        case Conv2dAttributes() | ConvolutionAttributes() | PoolAttributes():
            return node.operands[0] not in constants
        case ConcatAttributes(axis):
            return axis % 4 != 1 and not any(name in constants for name in node.operands)
        case PadAttributes(pads):
            return pads[1] == (0, 0)
    if node.op in ("matmul", "linear"):
        return node.operands[0] not in constants and graph[node.operands[0]].type.rank == 4
    if not isinstance(OPS[node.op].legalisation, Table | Clamp | Arithmetic):
        return False
    return all(_has_no_lines(graph[name]) if name in constants else graph[name].type.rank == 4 for name in node.operands)


def reading(graph: Graph, node: Node, lines: Lines, constants: Collection[str]) -> Reading | None:
    """What the lines of the result are computed from. None when that is padding alone: an image has at least one line."""
    axis = vertical_axis(graph, node)
    if axis is None:
        read = (None if name in constants else _aligned(graph[name], lines) for name in node.operands)
        return Reading(tuple(read), node.attributes)
    first, last = lines[0] * axis.stride - axis.before, (lines[1] - 1) * axis.stride - axis.before + axis.window
    pixels = max(first, 0), min(last, axis.size)
    if pixels[0] >= pixels[1]:
        return None
    padding = max(-first, 0), max(last - axis.size, 0), *_padding(graph, node)[2:]
    assert isinstance(node.attributes, Conv2dAttributes | ConvolutionAttributes | PoolAttributes)
    return Reading((pixels, *(None for _ in node.operands[1:])), replace(node.attributes, padding=padding))


def vertical_axis(graph: Graph, node: Node) -> Axis | None:
    """The axis along which windows go down the image; None for operators without windows."""
    found = _axes(graph, node)
    return None if found is None else found[0]


def convolution_padding(graph: Graph, node: Node) -> Sides:
    """The padding of a convolution, for which its image is stored with a border. Pools read no border, nor do other operators."""
    return NO_SIDES if isinstance(node.attributes, PoolAttributes) else _padding(graph, node)


def _padding(graph: Graph, node: Node) -> Sides:
    found = _axes(graph, node)
    if found is None:
        return NO_SIDES
    height, width = found
    return height.before, height.after, width.before, width.after


def _axes(graph: Graph, node: Node) -> tuple[Axis, Axis] | None:
    shapes = [graph[name].type.shape for name in node.operands]
    match node.attributes:
        case Conv2dAttributes():
            return conv_axes(node.attributes, shapes[0], shapes[1])
        case ConvolutionAttributes():
            return conv_axes(unfused(node.attributes), shapes[0], shapes[1])
        case PoolAttributes():
            return pool_axes(node.attributes, shapes[0])
    return None


def _has_no_lines(constant: Node) -> bool:
    return constant.type.shape[-3:-2] in ((), (1,))


def _aligned(operand: Node, lines: Lines) -> Lines:
    """The lines of an operand beside those of the result; a single line that repeats is read for all of them."""
    return (0, 1) if operand.type.shape[1] == 1 else lines
