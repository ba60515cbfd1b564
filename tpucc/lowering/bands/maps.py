"""A graph, seen as one of images: which operators compute them line by line, and which lines of their operands they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tpucc.ir.dataflow import constant_values
from tpucc.ir.graph import Attributes, Graph, Node
from tpucc.ops import OPS
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.convolution import ConvolutionAttributes, unfused
from tpucc.ops.opdef import Arithmetic, Clamp, Table, View
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

    @property
    def border(self) -> Sides:
        """The padding of a convolution, for which lines are stored with a border."""
        if not isinstance(self.attributes, Conv2dAttributes | ConvolutionAttributes):
            return NO_SIDES
        assert isinstance(self.attributes.padding, tuple)
        return self.attributes.padding


@dataclass(frozen=True)
class Maps:
    """A graph and what is asked of it again and again; each answer is found once."""

    graph: Graph

    @cached_property
    def constants(self) -> frozenset[str]:
        """The values that depend on no input."""
        return constant_values(self.graph)

    @cached_property
    def by_line(self) -> frozenset[str]:
        """The nodes of the device each line of whose image depends on some lines of their operands."""
        return frozenset(node.name for node in self.graph if node.on_device and self._computes_by_line(node))

    @cached_property
    def axes(self) -> Mapping[str, tuple[Axis, Axis]]:
        """Height and width under the windows of convolutions and pools."""
        found = ((node.name, _axes(self.graph, node)) for node in self.graph)
        return {name: both for name, both in found if both is not None}

    def border(self, node: Node) -> Sides:
        """The padding of a convolution, for which its image is stored with a border. Pools read no border, nor do other operators."""
        return NO_SIDES if isinstance(node.attributes, PoolAttributes) else self._padding(node)

    def stored(self, name: str, readers: Iterable[Node] | None = None) -> Sides:
        """The border with which the device holds a value that `readers` read; all that do on the device, unless they are given.

        What the host gives or gets, and other views of a value, have none: convolutions read a copy (`tpucc.lowering.borders`).
        """
        node = self.graph[name]
        if not node.on_device or name in self.graph.output_nodes or isinstance(OPS[node.op].legalisation, View):
            return NO_SIDES
        users = self.graph.users[name] if readers is None else readers
        return widest(self.border(user) for user in users if user.operands[0] == name)

    def reading(self, node: Node, lines: Lines) -> Reading | None:
        """What the lines of a result are computed from. None when that is padding alone: an image has at least one line."""
        if node.name not in self.axes:
            read = (None if name in self.constants else _aligned(self.graph[name], lines) for name in node.operands)
            return Reading(tuple(read), node.attributes)
        axis, _ = self.axes[node.name]
        first, last = lines[0] * axis.stride - axis.before, (lines[1] - 1) * axis.stride - axis.before + axis.window
        pixels = max(first, 0), min(last, axis.size)
        if pixels[0] >= pixels[1]:
            return None
        assert isinstance(node.attributes, Conv2dAttributes | ConvolutionAttributes | PoolAttributes)
        padding = max(-first, 0), max(last - axis.size, 0), *self._padding(node)[2:]
        return Reading((pixels, *(None for _ in node.operands[1:])), replace(node.attributes, padding=padding))

    def _padding(self, node: Node) -> Sides:
        if node.name not in self.axes:
            return NO_SIDES
        height, width = self.axes[node.name]
        return height.before, height.after, width.before, width.after

    def _computes_by_line(self, node: Node) -> bool:
        """Convolutions, pools, and functions of elements do. A constant with lines of its own isn't cut."""
        if node.type.rank != 4 or node.type.dtype != "f32":
            return False
        computed = [name for name in node.operands if name not in self.constants]
        if any(self.graph[name].type.rank != 4 for name in computed):
            return False
        match node.attributes:
            case Conv2dAttributes() | ConvolutionAttributes() | PoolAttributes():
                return computed == [node.operands[0]]
            case ConcatAttributes(axis):
                return axis % 4 != 1 and len(computed) == len(node.operands)
            case PadAttributes(pads):
                return pads[1] == (0, 0)
        if node.op in ("matmul", "linear"):
            return computed == [node.operands[0]]
        constants = (self.graph[name] for name in node.operands if name in self.constants)
        return isinstance(OPS[node.op].legalisation, Table | Clamp | Arithmetic) and all(map(_has_no_lines, constants))


def widest(sides: Iterable[Sides]) -> Sides:
    """The largest of each side."""
    top, bottom, left, right = map(max, zip(NO_SIDES, *sides, strict=True))
    return top, bottom, left, right


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
