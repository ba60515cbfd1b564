"""Steps: the device's work for one layer, on accesses to tensors, before batches are split and buffers are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import ClassVar, assert_never

from tpucc.diagnostics import Origin
from tpucc.lowering.tensors import Access, Tensor
from tpucc.lowering.walks import Nest, nest
from tpucc.machines.v1 import Function

SKIPPED = -1
"""Stands for a weight tile of zeros, which no row is multiplied by."""
Moved = Callable[[Access], Access]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Rows of a result that the vector unit computes, lane by lane: each row of `y` is a `function` of one row of every source.

    Sources have the leading sizes of y. With a `window`, each row of the source is the first pixel of a window; `steps` has the rows of the
    tensor from one row of pixels to the next, and from one column to the next. `weights` has a row for each position of the window, the
    same for all windows of an item. A source of one column block is read for all column blocks of y, and a source of one column for all
    lanes.

    Column block n of y is computed with parameter block `parameter_blocks[n]`; copies and maxima need none.
    """

    function: Function
    sources: tuple[Access, ...]
    y: Access
    parameter_blocks: tuple[int, ...] = ()
    window: tuple[int, int] | None = None
    steps: tuple[int, int] = (0, 0)
    weights: Access | None = None

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The accesses that it reads."""
        return self.sources if self.weights is None else (*self.sources, self.weights)

    @property
    def walked(self) -> tuple[Access, ...]:
        """The accesses whose rows are visited together: the sources, then the result."""
        return (*self.sources, self.y)

    @property
    def pixels(self) -> int:
        """The rows of a source that are read for each row of y."""
        return 1 if self.window is None else prod(self.window)

    def moved(self, move: Moved) -> Region:
        weights = None if self.weights is None else move(self.weights)
        return replace(self, sources=tuple(map(move, self.sources)), y=move(self.y), weights=weights)


def copied(source: Access, target: Access) -> Region:
    """The region that copies the rows of `source` to the rows of `target`."""
    return Region(Function.COPY, (source,), target)


@dataclass(frozen=True, slots=True)
class Level:
    """A term of the sum that is a product: column block `column_block` of `x`, times one tile for each column block of the result.

    `x` has the leading sizes of the result.
    """

    x: Access
    column_block: int
    tiles: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """The sum of all levels, activated with one parameter block for each column block of the result.

    `kind` is the layer's kind, `weights` are the layer's K and N. A product that `moves` only picks lanes and places them. `fills` has for
    each tile the tile's index and its used rows and columns. `depth` is K without the rows that an expansion added. `group` is as in
    `LayerInfo`.
    """

    kind: str
    levels: tuple[Level, ...]
    parameter_blocks: tuple[int, ...]
    fills: tuple[tuple[int, int, int], ...]
    weights: tuple[int, int]
    depth: int
    moves: bool = False
    group: tuple[int, int] = (0, 0)
    writes: ClassVar[tuple[TileWrite, ...]] = ()
    regions: ClassVar[tuple[Region, ...]] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(level.x for level in self.levels)

    @property
    def deep(self) -> int:
        """The largest number of tiles that a column block sums over."""
        return max(sum(level.tiles[n] != SKIPPED for level in self.levels) for n in range(len(self.parameter_blocks)))

    @property
    def multiplies(self) -> int:
        """The number of tiles that each row is multiplied by, over all column blocks."""
        return sum(tile != SKIPPED for level in self.levels for tile in level.tiles)

    def moved(self, move: Moved) -> Product:
        return replace(self, levels=tuple(replace(level, x=move(level.x)) for level in self.levels))


@dataclass(frozen=True, slots=True)
class TileWrite:
    """The write of tile `tile` from rows `first` to `first + rows` of column block `column_block` of `weights`, a tensor of the host."""

    tile: int
    weights: Tensor
    column_block: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class WrittenProducts:
    """Products by matrices that the host computes: first their tiles are written, then each part multiplies some rows by its matrix."""

    writes: tuple[TileWrite, ...]
    parts: tuple[Step, ...]
    """The steps on some rows of the result. The work of each is a `Product`."""

    kind: ClassVar[str] = "fc"
    regions: ClassVar[tuple[Region, ...]] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(access for part in self.parts for access in part.accesses)

    def moved(self, move: Moved) -> WrittenProducts:
        return replace(self, parts=tuple(part.moved(move) for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class LaneByLane:
    """The work of a layer of the kind `kind` that the vector unit computes: the regions of its result."""

    kind: str
    regions: tuple[Region, ...]
    writes: ClassVar[tuple[TileWrite, ...]] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(access for region in self.regions for access in region.accesses)

    def moved(self, move: Moved) -> LaneByLane:
        return replace(self, regions=tuple(region.moved(move) for region in self.regions))


@dataclass(frozen=True, slots=True, eq=False)
class Moving(LaneByLane):
    """Copies of rows, for the reason `why`. Without regions, the result is an input or constant that is an output as it is."""

    kind: str = "move"
    regions: tuple[Region, ...] = ()
    why: str = ""


Work = Product | WrittenProducts | LaneByLane


@dataclass(frozen=True, eq=False)
class Step:
    """The work that computes the value `y`. Before it, `borders` fills the rows of y's border.

    `segment` is the number of the host's steps before this step.
    """

    name: str
    origin: Origin
    y: Access
    work: Work
    borders: tuple[Region, ...] = ()
    segment: int = 0

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The accesses that it reads."""
        return (*(access for region in self.borders for access in region.accesses), *self.work.accesses)

    @property
    def products(self) -> tuple[tuple[Step, Product], ...]:
        """Each product of the step with the step of this product alone: one, one for each part, or none."""
        match self.work:
            case Product() as work:
                return ((self, work),)
            case WrittenProducts(parts=parts):
                return tuple(product for part in parts for product in part.products)
            case LaneByLane():
                return ()
            case _:
                assert_never(self.work)

    @property
    def result(self) -> Tensor:
        return self.y.tensor

    @cached_property
    def reads(self) -> tuple[Tensor, ...]:
        """The tensors that the step reads. A result that comes from the host is one of them."""
        passing = (self.result,) if self.result.comes_from_host else ()
        return tuple(dict.fromkeys((*passing, *(access.tensor for access in self.accesses))))

    def moved(self, move: Moved) -> Step:
        """The step with `move` applied to each access."""
        return replace(self, y=move(self.y), work=self.work.moved(move), borders=tuple(region.moved(move) for region in self.borders))


@dataclass(frozen=True, slots=True)
class ProductNest:
    """The loops over the rows of a product. Tensor 0 of each loop is the result, and tensor `patterns[i]` is the operand of level i; levels
    whose operands advance alike share a tensor."""

    loops: Nest
    patterns: tuple[int, ...]


def product_nest(step: Step) -> ProductNest:
    """The loops of a step whose work is a product."""
    assert isinstance(step.work, Product)
    ways = {step.y.steps: 0}
    patterns = tuple(ways.setdefault(level.x.steps, len(ways)) for level in step.work.levels)
    return ProductNest(nest(step.y.shape, tuple(ways)), patterns)
