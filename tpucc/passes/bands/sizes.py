"""How large the values of a graph are on a target, and how long its operators take, by estimates that need no lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tpucc.ir.graph import Node
from tpucc.ops import OPS
from tpucc.ops.opdef import Matrix
from tpucc.passes.bands.maps import NO_SIDES, Lines, Maps, Sides
from tpucc.target import Target


@dataclass(frozen=True)
class Sizes:
    """Rows and cycles for one image of the batch: the batch is split before an image is."""

    maps: Maps
    target: Target

    def blocks(self, name: str) -> int:
        """Column blocks of a value."""
        return -(-self.maps.graph[name].type.columns // self.target.mxu)

    def rows(self, name: str, lines: Lines, sides: Sides = NO_SIDES) -> int:
        """Rows of one column block of some lines of an image, with a border."""
        top, bottom, left, right = sides
        return (top + lines[1] - lines[0] + bottom) * (left + self.maps.graph[name].type.shape[2] + right)

    def all_rows(self, name: str, sides: Sides = NO_SIDES) -> int:
        """Rows of one column block of an image with a border."""
        return self.rows(name, (0, self.maps.graph[name].type.shape[1]), sides)

    def item(self, name: str) -> int:
        """Rows of a value of any rank, all column blocks, for one item of the batch."""
        return prod(self.maps.graph[name].type.shape[1:-1]) * self.blocks(name)

    def together(self, node: Node, rows: Mapping[str, int]) -> int:
        """Rows that an operator works on at once: a column block of each value, but all of what a product sums over.

        `rows` has those of a column block of each operand that isn't constant, and of the node itself.
        """
        sums = isinstance(OPS[node.op].legalisation, Matrix) or node.op == "concat"
        read = sum(rows[name] * (self.blocks(name) if sums else 1) for name in dict.fromkeys(node.operands) if name in rows)
        return rows[node.name] + read

    def needed(self, node: Node) -> int:
        """The rows that an operator on images works on at once when it computes the whole of one."""
        graph, around = self.maps.graph, self.maps.border(node)
        images = [name for name in node.operands if name not in self.maps.constants and graph[name].type.rank == 4]
        rows = {name: self.all_rows(name, around) for name in images}
        return self.together(node, {**rows, node.name: self.all_rows(node.name)})

    def cycles(self, node: Node, lines: Lines) -> int:
        """Cycles for some lines of the result: one a row for each tile, unless fetching the tile takes longer; one a row for each pixel
        of a pool's window."""
        rows = self.rows(node.name, lines)
        if isinstance(OPS[node.op].legalisation, Matrix):
            *taps, depth, _ = self.maps.graph[node.operands[1]].type.shape
            tiles = prod(taps) * -(-depth // self.target.mxu) * self.blocks(node.name)
            return tiles * max(rows, self.target.tile_fetch_cycles)
        height, width = self.maps.axes.get(node.name, (None, None))
        area = height.window * width.window if height is not None and width is not None else 1
        return rows * self.blocks(node.name) * area
