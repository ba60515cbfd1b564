"""Products of matrices in blocks, in a chosen order: what is loaded when, the program of a core that trains, and its cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import NamedTuple

import numpy as np

from tpucc.isa.assembler import assemble
from tpucc.isa.program import Program
from tpucc.labs.lab import Term
from tpucc.schedule.listing import Listing
from tpucc.schedule.pipeline import with_end
from tpucc.schedule.synchronise import synchronise, with_waits
from tpucc.sim.timing import Timeline, time_program
from tpucc.target import Target, load_target

LANES = 128
"""Of the core; a block of the result has so many rows and columns."""
RESULTS = 4
"""The places for blocks of the result, which are filled in turn."""
Pair = tuple[int, int]
"""A row of blocks and a column of blocks: the number of a block of the result."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a term has of its own. Blocks of x and w have `depth` times 128 rows. Of the blocks that are there that one makes room which is
    used `last` of all, or which was `used` longest ago. `bandwidth` are the bytes a second of a chip's memory."""

    depth: int = 6
    leaves: str = "last"
    bandwidth: float = 1.5e11

    @property
    def block_rows(self) -> int:
        """The rows of a block of x and of one of w."""
        return self.depth * LANES

    @property
    def rank(self) -> str:
        """The solution's number of a block that is there: the one of the highest leaves."""
        return "-turn" if self.leaves == "used" else "uses[block][0] if uses[block] else len(pairs)"

    @property
    def target(self) -> Target:
        return load_target("tpu_v2", {"weight_bandwidth": self.bandwidth})


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("stationary")
    return Rules() if draw is None else Rules(draw.randrange(5, 9), draw.choice(("last", "used")), draw.choice((1e11, 1.25e11, 1.5e11)))


@dataclass(frozen=True, slots=True)
class Product:
    """y = x @ w, in `rows` times `columns` blocks of y, with `places` for blocks of x and w."""

    rows: int
    columns: int
    places: int

    @property
    def pairs(self) -> Iterator[Pair]:
        """All blocks of y, row by row."""
        return ((row, column) for row in range(self.rows) for column in range(self.columns))


class Step(NamedTuple):
    """A block of y: the blocks of x and w that are loaded for it, as "x3", and the places of its own two."""

    pair: Pair
    loads: Mapping[str, int]
    x: int
    w: int


def steps_of(product: Product, order: Sequence[Pair], leaves: str) -> list[Step]:
    """What is loaded for each block of y in turn, and where it lies."""
    uses: dict[str, list[int]] = {}
    for turn, (row, column) in enumerate(order):
        uses.setdefault(f"x{row}", []).append(turn)
        uses.setdefault(f"w{column}", []).append(turn)
    ahead = {block: iter(turns[1:]) for block, turns in uses.items()}
    rank: dict[str, int] = {}
    places: dict[str, int] = {}
    found = []
    for turn, (row, column) in enumerate(order):
        own, loads = (f"x{row}", f"w{column}"), {}
        for block in own:
            if block not in places:
                places[block] = len(places) if len(places) < product.places else places.pop(_leaving(places, rank, own))
                loads[block] = places[block]
        for block in own:
            rank[block] = -turn if leaves == "used" else next(ahead[block], len(order))
        found.append(Step((row, column), loads, places[own[0]], places[own[1]]))
    return found


def _leaving(places: Mapping[str, int], rank: Mapping[str, int], own: tuple[str, str]) -> str:
    """The block that makes room: the one of the highest rank that isn't in use."""
    return max((block for block in places if block not in own), key=lambda block: (rank[block], block))


def loads_of(product: Product, order: Sequence[Pair], leaves: str) -> int:
    """How many blocks are loaded."""
    return sum(len(step.loads) for step in steps_of(product, order, leaves))


@dataclass(frozen=True, eq=False)
class Made:
    """An order of a product with its program."""

    rules: Rules
    product: Product
    order: tuple[Pair, ...]

    @cached_property
    def steps(self) -> list[Step]:
        return steps_of(self.product, self.order, self.rules.leaves)

    @cached_property
    def program(self) -> Program:
        """Loads, passes and stores, each unit's as early as it can."""
        bare = replace(assemble("\n".join(self._lines()) + "\n", "product.asm"), target=self.rules.target)
        records = bare.instructions[:-1]
        listing = Listing(records, np.zeros(len(records), np.int64), np.arange(len(records)), ("product",), bare.machine)
        listing = with_end(with_waits(listing, synchronise(listing)))
        return replace(bare, instructions=listing.records, layer_of=listing.layer.astype(np.uint32))

    @cached_property
    def time(self) -> Timeline:
        return time_program(self.program)

    @property
    def cycles(self) -> int:
        return self.time.makespan

    def _lines(self) -> Iterator[str]:
        """The listing, without waits."""
        rows, product = self.rules.block_rows, self.product
        yield ".target tpu_v2"
        yield from (f".memory x{row} input rows={rows}" for row in range(product.rows))
        yield from (f".memory w{column} input rows={rows}" for column in range(product.columns))
        yield from (f".memory y{row}_{column} output rows={LANES}" for row, column in product.pairs)
        yield f'.layer product forward weights={rows}x{product.columns * LANES} made_by="lab"'
        for turn, (pair, loads, x, w) in enumerate(self.steps):
            yield from (f"load hbm={block} y={place * rows} rows={rows}" for block, place in loads.items())
            y = product.places * rows + turn % RESULTS * LANES
            for deep in range(0, rows, LANES):
                yield f"push_weights a={w * rows + deep} rows={LANES} lanes={LANES}"
                yield f"matrix_multiply a={x * rows + deep} y={y} rows={LANES}, switch{', accumulate' * (deep > 0)}"
            yield f"store a={y} hbm=y{pair[0]}_{pair[1]} rows={LANES}"
        yield "halt"

    @property
    def grid(self) -> str:
        """What is loaded for each block of y: x, w, both (2) or nothing."""
        marks = {step.pair: "2" if len(step.loads) == 2 else next(iter(step.loads), "·")[0] for step in self.steps}
        lines = [" ".join(marks[row, column] for column in range(self.product.columns)) for row in range(self.product.rows)]
        return "\n".join([f"loaded for each block of y ({loads_of(self.product, self.order, self.rules.leaves)} blocks in all):", *lines])


def plain_orders(product: Product) -> Iterator[tuple[Pair, ...]]:
    """Orders that nobody has to think about: row by row, column by column, and both to and fro."""
    rows, columns = range(product.rows), range(product.columns)
    for fro in (1, -1):
        yield tuple((row, column) for row in rows for column in columns[:: fro**row])
        yield tuple((row, column) for column in columns for row in rows[:: fro**column])


TO_WIN = 1.25
"""What plain orders take at least, in the cycles of the best."""
TRIED = 20
"""How many products are drawn until one has so much to win."""
SHAPES: Mapping[str, tuple[range, range, range]] = {
    "few places": (range(7, 12), range(7, 12), range(4, 7)),
    "many places": (range(10, 14), range(10, 14), range(7, 10)),
    "wide": (range(4, 7), range(11, 16), range(3, 5)),
    "tall": (range(11, 16), range(4, 7), range(3, 5)),
}
"""The rows, columns and places of products."""


def drawn(rules: Rules, shape: str, draw: Random, best: Callable[[Rules, Product], int]) -> Product:
    """A product of a shape with something to win. `best` gives a product's least cycles."""
    tried: list[tuple[float, Product]] = []
    while len(tried) < TRIED and (not tried or tried[-1][0] < TO_WIN):
        product = Product(*(draw.choice(sizes) for sizes in SHAPES[shape]))
        plain = min(Made(rules, product, order).cycles for order in plain_orders(product))
        tried.append((plain / best(rules, product), product))
    return max(tried, key=lambda entry: entry[0])[1]
