"""One product layer as plain numbers and names: what a replaced lowering gets. `product_lines` reads the lines that it gives.

Row i, j, … of the result is the sum over all levels of row `start + i * steps[0] + j * steps[1] + …` of the level's buffer times the
level's tile, under the parameter block of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.machine.instruction import Records
from tpucc.target import Target


@dataclass(frozen=True, slots=True)
class ProductLevel:
    """The factors of each row of the result: rows of a buffer, and for each column block of the result a weight tile. The tile is None if
    it has only zeros and is left out."""

    buffer: str
    start: int
    steps: tuple[int, ...]
    tiles: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProductLayer:
    """An fc or conv layer, or its part of a batch, as a lowering gets it.

    Its result has the leading sizes `shape`. Column block n of it goes to buffer `results[n]`, to row `start` and on by `steps`, and is
    activated under the parameter block `blocks[n]`. Starts and steps count rows of the unified buffer; where values have 16 bits, each
    takes two rows, and every line ends in `, wide`.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    levels: tuple[ProductLevel, ...]
    results: tuple[str, ...]
    start: int
    steps: tuple[int, ...]
    blocks: tuple[int, ...]
    wide: bool
    target: Target
    buffers: tuple[VirtualBuffer, ...]
    """All buffers that its lines may name."""
    builtin: Callable[[], list[str]] = field(repr=False)


LowerProduct = Callable[[ProductLayer], str | Iterable[str]]
"""A lowering: the `.tile` lines of a layer. `.groups [200 200]` among them gives it accumulator groups of so many rows, from g0 on."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenProduct:
    """A product's lines, read: records whose buffers are indices into the layer's, and the rows of their accumulator groups."""

    records: Records
    groups: tuple[int, ...]


ReadLowering = Callable[[ProductLayer], WrittenProduct]
"""A lowering whose lines are read already."""


def lower_product(layer: ProductLayer) -> list[str]:
    """The built-in lowering, as lines: row groups, column blocks, levels, chunks (see `blocking`)."""
    return layer.builtin()
