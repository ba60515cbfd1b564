"""The rows of a graph's values on a target, and the cycles of its operators, by estimates that need no lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tpucc.ir import Node
from tpucc.layers.kinds import Sides
from tpucc.lowering.bands.maps import Lines, Maps
from tpucc.lowering.cost import costs_on
from tpucc.lowering.tensors import NO_SIDES, stored, widest
from tpucc.ops import OPS, facts_of
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.facts import COPIED
from tpucc.ops.opdef import Matrix, View
from tpucc.target import Target


@dataclass(frozen=True)
class ImageSizes:
    """Rows and cycles for one image of the batch: the batch is split before an image is.

    Rows are those of the unified buffer, `bytes_per_value` for each row of values.
    """

    maps: Maps
    target: Target
    bytes_per_value: int = 1

    def column_blocks(self, name: str) -> int:
        """Column blocks of a value."""
        return -(-self.maps.graph[name].type.columns // self.target.mxu)

    def rows(self, name: str, lines: Lines, sides: Sides = NO_SIDES) -> int:
        """Rows of one column block of some lines of an image, with a border."""
        _, _, width, columns = self.maps.graph[name].type.shape
        return prod(stored((1, lines[1] - lines[0], width, columns), sides)) * self.bytes_per_value

    def all_rows(self, name: str, sides: Sides = NO_SIDES) -> int:
        """Rows of one column block of an image with a border."""
        return self.rows(name, (0, self.maps.graph[name].type.shape[1]), sides)

    def resident(self, name: str, sides: Sides) -> int:
        """Rows of one column block of the tensor that a whole value is read from. It has a border of `sides` if it is computed for this
        value. A view is read from another value's tensor."""
        maps = self.maps
        value = base = maps.graph[name]
        while base.on_device and isinstance(OPS[base.op].legalisation, View):
            base = maps.graph[base.operands[0]]
        if base is value:
            return self.all_rows(name, sides)
        if base.type.rank == 4:
            return self.all_rows(base.name, maps.stored(base.name))
        return base.type.rows // value.type.shape[0] * self.bytes_per_value

    def item(self, name: str) -> int:
        """Rows of a value of any rank, all column blocks, for one item of the batch."""
        return self.image(name) * self.column_blocks(name)

    def image(self, name: str) -> int:
        """Rows of one column block of a value of any rank, for one item of the batch."""
        return prod(self.maps.graph[name].type.shape[1:-1]) * self.bytes_per_value

    def at_once(self, node: Node, rows: Mapping[str, int], *, bordered: bool) -> int:
        """Rows that one instruction of an operator works on: a column block of each operand and of the result.

        A product reads its operands and writes its result by different instructions, copies have one source. The border of a result that
        is `bordered` is copied from a row of zero points. `rows` has those of a column block of each operand that isn't constant, and of
        the node itself.
        """
        read = [rows[name] for name in dict.fromkeys(node.operands) if name in rows]
        if _is_product(node):
            return max(rows[node.name] + bordered * self.bytes_per_value, *read)
        return rows[node.name] + (max(read) if facts_of(node.op).values in COPIED else sum(read))

    def whole(self, node: Node) -> tuple[int, int]:
        """The rows that one instruction works on, and the rows that the operator works on, when a whole image is computed. A product works
        on all rows that it sums over, so that no chunk waits for rows to be read again."""
        images = self._images(node)
        rows = {name: self._rows_read(node, name) for name in (*images, node.name)}
        reads = sum(rows[name] * (self.column_blocks(name) if _is_product(node) else 1) for name in images)
        copies = (self.resident(name, NO_SIDES) + rows[name] for name in images[:1] if self._held(node, name) != self.maps.stored(name))
        bordered = self._held(node, node.name) != NO_SIDES
        return max((self.at_once(node, rows, bordered=bordered), *copies)), rows[node.name] + reads

    def _rows_read(self, node: Node, name: str) -> int:
        """Rows of a column block of an operand where the node reads it, a copy with a border if there is one; or of its result."""
        held = self._held(node, name)
        return self.resident(name, held) if held == self.maps.stored(name) else self.all_rows(name, held)

    def _images(self, node: Node) -> tuple[str, ...]:
        """The operands that are images, each once."""
        graph, constants = self.maps.graph, self.maps.constants
        return tuple(dict.fromkeys(name for name in node.operands if name not in constants and graph[name].type.rank == 4))

    def _held(self, node: Node, name: str) -> Sides:
        """The border of an operand as the node reads it, or of its result."""
        stored = self.maps.stored(name)
        return widest((stored, self.maps.border(node))) if name == node.operands[0] else stored

    def cycles(self, node: Node, lines: Lines) -> int:
        """Cycles for some lines of the result: one a row for each tile, unless fetching the tile takes longer; one a row for each pixel
        of a pool's window. Neither instructions nor what drains at the end count, as they do where a product is cut.
        """
        rows, costs = self.rows(node.name, lines), costs_on(self.target)
        if isinstance(OPS[node.op].legalisation, Matrix):
            *taps, depth, _ = self.maps.graph[node.operands[1]].type.shape
            tiles = prod(taps) * -(-depth // self.target.mxu) * self.column_blocks(node.name)
            return tiles * costs.tile(rows)
        height, width = self.maps.axes.get(node.name, (None, None))
        area = height.window * width.window if height is not None and width is not None else 1
        return rows * self.column_blocks(node.name) * area * costs.vector

    def reloading(self, node: Node, lines: Lines, rows: int) -> int:
        """Cycles of the transfers when an operator works on more rows than there are: they come and go with each chunk of accumulators."""
        if rows <= self.target.unified_buffer_rows:
            return 0
        chunks = -(-self.rows(node.name, lines) // (self.target.accumulator_rows * self.bytes_per_value))
        return chunks * costs_on(self.target).transfer(rows)


def _is_product(node: Node) -> bool:
    """Whether the matrix unit computes it: lanes are joined by products, too."""
    lanes = isinstance(node.attributes, ConcatAttributes) and node.attributes.axis % node.type.rank == node.type.rank - 1
    return lanes or isinstance(OPS[node.op].legalisation, Matrix)
