"""Steps: what the device does for one layer, on accesses to tensors, before batches are split and buffers are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tpucc.diagnostics import Origin
from tpucc.lowering.tensors import Access, Tensor
from tpucc.lowering.walks import Nest, nest
from tpucc.machines.v1 import Function

SKIPPED = -1
"""Stands for a weight tile of nothing but zeros, which isn't multiplied with."""
Moved = Callable[[Access], Access]


@dataclass(frozen=True, slots=True)
class Copy:
    """The rows of `source` put at those of `target`, which has the same leading sizes; `every_block`: column block 0 of the source goes
    to all of the target's."""

    source: Access
    target: Access
    every_block: bool = False

    def moved(self, move: Moved) -> Copy:
        return replace(self, source=move(self.source), target=move(self.target))


@dataclass(frozen=True, slots=True)
class Level:
    """One multiply of every row of the result: column block `block` of `x`, times one tile for each column block of the result.

    `x` has the result's leading sizes.
    """

    x: Access
    block: int
    tiles: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """The sum of all levels, activated under one parameter block for each column block of the result.

    `kind` is the layer's, `weights` its K and N; one that `moves` only picks lanes and places them. `fills` are, for each of its tiles, the
    tile and the rows and columns that it uses. `depth` is K without the rows that an expansion added. `group` is that of `LayerInfo`.
    """

    kind: str
    levels: tuple[Level, ...]
    blocks: tuple[int, ...]
    fills: tuple[tuple[int, int, int], ...]
    weights: tuple[int, int]
    depth: int
    moves: bool = False
    group: tuple[int, int] = (0, 0)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(level.x for level in self.levels)

    @property
    def deep(self) -> int:
        """Tiles that a column block sums over, at most."""
        return max(sum(level.tiles[n] != SKIPPED for level in self.levels) for n in range(len(self.blocks)))

    def moved(self, move: Moved) -> Product:
        return replace(self, levels=tuple(replace(level, x=move(level.x)) for level in self.levels))


@dataclass(frozen=True, slots=True)
class TileWrite:
    """Rows `first` to `first + rows` of column block `block` of `weights`, a tensor of the host, which become the tile `tile`."""

    tile: int
    weights: Tensor
    block: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class WrittenProducts:
    """Products by matrices that the host has computed: first it writes their tiles, then each part multiplies some rows by its own."""

    writes: tuple[TileWrite, ...]
    parts: tuple[Step, ...]
    """Steps on rows of one result, whose work is a `Product`."""

    kind = "fc"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(access for part in self.parts for access in part.accesses)

    def moved(self, move: Moved) -> WrittenProducts:
        return replace(self, parts=tuple(part.moved(move) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Operand:
    """A value as an element-wise step reads it, broadcast to the result; `splat`: its one column serves all of the result's."""

    access: Access
    splat: bool


@dataclass(frozen=True, slots=True, eq=False)
class ElementWise:
    """A function of the operands, element by element, under one parameter block."""

    operands: tuple[Operand, ...]
    function: Function
    block: int

    kind = "vector"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(operand.access for operand in self.operands)

    def moved(self, move: Moved) -> ElementWise:
        return replace(self, operands=tuple(replace(operand, access=move(operand.access)) for operand in self.operands))


@dataclass(frozen=True, slots=True)
class Region:
    """The windows of one shape: `x` has the first pixel of each, `y` their results.

    `window` is the number of rows and columns of pixels; `steps` are the tensor's rows from one to the next of each. Column block n of the
    result is made under parameter block `blocks[n]`; a maximum needs none.
    """

    x: Access
    y: Access
    window: tuple[int, int]
    steps: tuple[int, int]
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pooling:
    """A function of windows, lane by lane: a maximum, an average, or the weighted sum of a depthwise convolution.

    `weights` are those of a weighted sum, whose windows are one region: for each item of the result, which share them, a row for each
    position of the window.
    """

    function: Function
    regions: tuple[Region, ...]
    weights: Access | None = None

    @property
    def kind(self) -> str:
        return "pool" if self.weights is None else "conv"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (*(region.x for region in self.regions), *(() if self.weights is None else (self.weights,)))

    def moved(self, move: Moved) -> Pooling:
        regions = tuple(replace(region, x=move(region.x), y=move(region.y)) for region in self.regions)
        return replace(self, regions=regions, weights=None if self.weights is None else move(self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class Moving:
    """Rows that are copied. Without copies, the result is a tensor of the host that is an output as it is: it passes through."""

    copies: tuple[Copy, ...]
    why: str = ""

    kind = "move"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(copy.source for copy in self.copies)

    def moved(self, move: Moved) -> Moving:
        return replace(self, copies=tuple(copy.moved(move) for copy in self.copies))


Work = Product | WrittenProducts | ElementWise | Pooling | Moving


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The work that makes the value `y`. `borders` comes first: it fills the rows of y's border.

    `segment` is the number of the host's steps that come before.
    """

    name: str
    origin: Origin
    y: Access
    work: Work
    borders: tuple[Copy, ...] = ()
    segment: int = 0

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All that it reads."""
        return (*(copy.source for copy in self.borders), *self.work.accesses)

    @property
    def result(self) -> Tensor:
        return self.y.tensor

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """The tensors that it reads; one that passes through is read and made."""
        passing = (self.result,) if self.result.comes_from_host else ()
        return tuple(dict.fromkeys((*passing, *(access.tensor for access in self.accesses))))

    def moved(self, move: Moved) -> Step:
        """The same work on other accesses."""
        return replace(self, y=move(self.y), work=self.work.moved(move), borders=tuple(copy.moved(move) for copy in self.borders))


@dataclass(frozen=True, slots=True)
class ProductNest:
    """The loops; tensor 0 of each is the result, and tensor `patterns[i]` what level i reads. Levels that advance alike share one."""

    loops: Nest
    patterns: tuple[int, ...]


def product_nest(step: Step) -> ProductNest:
    """The loops of a step whose work is a product."""
    assert isinstance(step.work, Product)
    ways = {step.y.steps: 0}
    patterns = tuple(ways.setdefault(level.x.steps, len(ways)) for level in step.work.levels)
    return ProductNest(nest(step.y.shape, tuple(ways)), patterns)
