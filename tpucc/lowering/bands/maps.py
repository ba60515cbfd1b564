"""A graph as operators on images: the operators that compute images line by line, and the lines of the operands that they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir import Attributes, Graph, Node
from tpucc.ir.dataflow import constant_values
from tpucc.layers.kinds import Sides
from tpucc.lowering.tensors import NO_SIDES, widest
from tpucc.ops import OPS, facts_of
from tpucc.ops.as_weights import OP as as_weights
from tpucc.ops.axis import Axis, sides
from tpucc.ops.facts import MADE
from tpucc.ops.opdef import Matrix, View
from tpucc.ops.parts import Part, Shape, all_of, shape_of

Lines = tuple[int, int]
"""Lines of an image [N, H, W, C]: the first, and the one after the last, along H."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The computation of some lines of a result: the lines that are read of each operand (None: all of a constant), and the attributes for
    them.

    `border` is the padding of a convolution, for which lines are stored with a border.
    """

    lines: tuple[Lines | None, ...]
    attributes: Attributes
    border: Sides = NO_SIDES


@dataclass(frozen=True)
class Maps:
    """A graph with facts about its lines; each fact is computed once."""

    graph: Graph

    @cached_property
    def constants(self) -> frozenset[str]:
        """The values that depend on no input."""
        return constant_values(self.graph)

    @cached_property
    def by_line(self) -> frozenset[str]:
        """The nodes of the device that compute images whose lines each depend on some lines of the operands."""
        return frozenset(node.name for node in self.graph if node.on_device and self._computes_by_line(node))

    @cached_property
    def axes(self) -> Mapping[str, tuple[Axis, Axis]]:
        """Height and width under the windows of convolutions and pools."""
        found = ((node, facts_of(node.op).windows) for node in self.graph)
        return {node.name: windows(node.attributes, self._shapes(node)) for node, windows in found if windows is not None}

    def border(self, node: Node) -> Sides:
        """The padding of a convolution, for which its image is stored with a border. Pools read no border, nor do other operators."""
        return sides(*self.axes[node.name]) if _is_convolution(node) else NO_SIDES

    def stored(self, name: str, readers: Iterable[Node] | None = None) -> Sides:
        """The border with which the device holds a value that `readers` read. Without `readers`, these are all its readers on the device.

        Values that the host gives or takes, and views of a value, have no border: convolutions read a copy (`tpucc.lowering.tensors`).
        """
        node = self.graph[name]
        if not node.on_device or name in self.graph.output_nodes or isinstance(OPS[node.op].legalisation, View):
            return NO_SIDES
        users = self.graph.users[name] if readers is None else readers
        return widest(self.border(user) for user in users if user.operands[0] == name)

    def reading(self, node: Node, lines: Lines) -> Reading | None:
        """The lines from which lines of a result are computed; None where they are padding only: an image has at least one line."""
        part = self._part(node, lines)
        assert part is not None, f"{node.name} isn't computed by line"
        read = tuple(None if name in self.constants else bounds[1] for name, bounds in zip(node.operands, part.operands, strict=True))
        if any(ends is not None and ends[0] >= ends[1] for ends in read):
            return None
        return Reading(read, part.attributes, self._border_of(node, part))

    def _part(self, node: Node, lines: Lines) -> Part | None:
        images, _, *rest = all_of(node.type.shape)
        return facts_of(node.op).part(node.attributes, self._shapes(node), node.type.shape, (images, lines, *rest))

    def _border_of(self, node: Node, part: Part) -> Sides:
        windows = facts_of(node.op).windows
        if windows is None or not _is_convolution(node):
            return NO_SIDES
        return sides(*windows(part.attributes, [shape_of(bounds) for bounds in part.operands]))

    def _shapes(self, node: Node) -> list[Shape]:
        return [self.graph[name].type.shape for name in node.operands]

    def _computes_by_line(self, node: Node) -> bool:
        """Whether the operator computes images from lines of images. Constants with lines aren't cut, nor are weights that the host
        writes."""
        computed = [self.graph[name].type for name in node.operands if name not in self.constants]
        if any(as_weights.made(self.graph[name]) for name in node.operands) or any(
            type_.rank != 4 or type_.dtype != "f32" for type_ in (node.type, *computed)
        ):
            return False
        part = self._part(node, (0, 1)) if facts_of(node.op).values in MADE else None
        if part is None:
            return False
        pairs = zip(node.operands, part.operands, strict=True)
        return all(bounds == all_of(self.graph[name].type.shape) for name, bounds in pairs if name in self.constants)


def _is_convolution(node: Node) -> bool:
    return facts_of(node.op).windows is not None and isinstance(OPS[node.op].legalisation, Matrix)
