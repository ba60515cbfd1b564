"""The puzzles of a term."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.labs.puzzles.puzzle import Puzzle
from tpucc.labs.puzzles.setting import LANES, Block, Setting, clamped, drawn, product
from tpucc.labs.puzzles.task import Most
from tpucc.numerics import Int8

TABLES: Mapping[str, tuple[str, Callable[[int], int]]] = {
    "relu": ("negative values become 0", lambda value: max(value, 0)),
    "abs": ("negative values lose their sign", lambda value: min(abs(value), 127)),
    "half": ("each value is halved, towards 0", lambda value: int(value / 2)),
}


@dataclass(frozen=True)
class Rules:
    """What differs between terms: which row is moved, how two rows are combined, which table is applied, in which order tiles and blocks
    lie, how far windows are apart, the zero points and the scale of a requantisation."""

    rows: int
    row: int
    minus: bool
    table: str
    turned: bool
    stride: int
    zero_x: int
    zero_y: int
    shift: int

    @property
    def function(self) -> str:
        """The function of `vector` that combines two rows."""
        return "subtract" if self.minus else "add"

    @property
    def sign(self) -> str:
        return "-" if self.minus else "+"

    def combined(self, a: Int8, b: Int8) -> Int8:
        """a + b or a - b, as int8."""
        return clamped(a.astype(np.int64) + (-1 if self.minus else 1) * b.astype(np.int64))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables in the order of their blocks."""
        return tuple(sorted(TABLES, reverse=self.turned))

    @property
    def weights(self) -> Int8:
        """The weights of the requantisation, which stay the same: a solution's bias depends on them."""
        return np.array([[1, -2, 3, 0], [2, 4, -1, 5], [-3, 1, 2, 2], [4, 0, -2, self.shift]], np.int8)


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("puzzles")
    if draw is None:
        return Rules(rows=3, row=1, minus=False, table="relu", turned=False, stride=2, zero_x=3, zero_y=-5, shift=4)
    return Rules(
        rows=draw.choice((2, 3, 4)),
        row=draw.choice((1, 2)),
        minus=draw.choice((False, True)),
        table=draw.choice(tuple(TABLES)),
        turned=draw.choice((False, True)),
        stride=draw.choice((2, 3)),
        zero_x=draw.choice((-7, -4, 2, 6)),
        zero_y=draw.choice((-9, 4, 8, 11)),
        shift=draw.choice((2, 3, 5)),
    )


SCALED = "each sum times the block's multiplier, rounded"
"""What `activate` makes of sums without a zero point."""


def puzzles(term: Term = AS_WRITTEN) -> tuple[Puzzle, ...]:
    """All puzzles of a term, in the order of their numbers."""
    held = rules(term)
    first = (_move, _combine, _table, _one_product, _two_tiles, _bias, _requantise)
    second = (_fetch, _race, _spill, _tile_again, _window, _tiles, _fewest)
    return tuple(replace(make(number, held), term=term) for number, make in enumerate((*first, *second), 1))


def _move(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x = drawn(source, 4, most=99)
        return Setting({"x": x}, {"y": x[held.row : held.row + 1]})

    task = (
        f"The host's memory has four rows of x. Move row {held.row}, counted from 0, to y: into the unified buffer with "
        "`read_host_memory`, and out of it with `write_host_memory`. Both are done by the host engine, one after the other."
    )
    return Puzzle(number, "move a row", task, draw, best=3)


def _combine(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        a, b = (drawn(source, held.rows, most=90) for _ in range(2))
        return Setting({"a": a, "b": b}, {"y": held.combined(a, b)}, blocks=(Block(),))

    task = (
        f"y = a {held.sign} b, value by value; results beyond int8 are clamped. `vector` works on the activation engine, and asks for a "
        "parameter block. The host's rows of b lie right after those of a. Engines work at the same time: with "
        "`synchronize engine=activation wait=host`, `vector` waits until the rows are there, and a line of the same kind lets the host "
        "wait for its result."
    )
    return Puzzle(number, f"{held.function} two matrices", task, draw, best=7)


def _table(number: int, held: Rules) -> Puzzle:
    words, function = TABLES[held.table]
    blocks = tuple(Block(table=TABLES[name][1], words=f"a table: {TABLES[name][0]}") for name in held.tables)

    def draw(source: Random) -> Setting:
        x = drawn(source, held.rows, most=120)
        return Setting({"x": x}, {"y": np.vectorize(function)(x).astype(np.int8)}, blocks=blocks)

    task = (
        f"y is x, but {words}: {held.table}. The function `table` of `vector` looks each value up in the table of the parameter block "
        "in use."
    )
    return Puzzle(number, f"{held.table} of rows", task, draw, best=7)


def _one_product(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, w, block = drawn(source, held.rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
        return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, (w,), (block,))

    task = (
        f"y = x times tile 0, {SCALED}. The tile goes from weight memory to the FIFO, from there "
        "to the matrix unit; the sums go to the accumulators, and from there through `activate` to the unified buffer. No engine waits for "
        "another one by itself, but for a tile: who reads rows that another engine writes needs a `synchronize` line before, even where "
        "the values happen to come in time."
    )
    return Puzzle(number, "one product", task, draw, best=10)


def _two_tiles(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, w, block = drawn(source, held.rows, 2 * LANES), drawn(source, 2 * LANES, most=30), Block(multiplier=0.125)
        tiles = (w[LANES:], w[:LANES]) if held.turned else (w[:LANES], w[LANES:])
        return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, tiles, (block,))

    first, second = (1, 0) if held.turned else (0, 1)
    task = (
        f"y = x times w, {SCALED}; x has eight columns and w eight rows: rows 0 to 3 of w are tile {first}, rows 4 to 7 are tile {second}. "
        "Two products are added in the accumulators: the first one begins the sum, the second one accumulates."
    )
    return Puzzle(number, "accumulate over two tiles", task, draw, best=12)


def _bias(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, w = drawn(source, held.rows), drawn(source, LANES, most=40)
        bias = tuple(source.randint(-400, 400) for _ in range(LANES))
        plain, added, relu = Block(0.125), Block(0.125, bias), Block(0.125, bias, low=0)
        blocks = (relu, added, plain) if held.turned else (plain, relu, added)
        sums = product(x, w)
        return Setting({"x": x}, {"y": added.of_sums(sums), "z": relu.of_sums(sums)}, (w,), blocks)

    task = (
        f"y = x times tile 0 plus a bias, {SCALED}, and z = relu of the same: negative values become 0. A parameter block has the bias, "
        "which is added to each sum before the multiplier, and the lowest value that comes out (low). Sums may be activated twice."
    )
    return Puzzle(number, "a bias through activate", task, draw, best=12)


def _requantise(number: int, held: Rules) -> Puzzle:
    """Values are exact multiples of powers of two, so that float32 has each of them."""

    def draw(source: Random) -> Setting:
        x = drawn(source, held.rows, most=60)
        sums = product(x, held.weights) - held.zero_x * held.weights.sum(axis=0, dtype=np.int64)
        return Setting({"x": x}, {"y": Block(0.5**held.shift, zero=held.zero_y).of_sums(sums)}, (held.weights,))

    task = (
        f"A quantised value q stands for scale·(q - zero). x has scale 1/16 and zero {held.zero_x}, the weights of tile 0 have scale "
        f"1/8 and zero 0, y has scale 1/{2 ** (7 - held.shift)} and zero {held.zero_y}. y is the product of what x and the tile stand "
        "for. Write the parameter block yourself: a line `.block bias=[… … … …] multiplier=… zero=…`. It computes round((sum + "
        "bias)·multiplier) + zero. The tile stays the same, so its column sums may be worked out by hand."
    )
    return Puzzle(number, "requantise", task, draw, best=10, directives=("block",))


_SLOW = """\
    read_host_memory host=x.0 ub=0 rows=4
    set_configuration block=0
    synchronize engine=matrix wait=host
    read_weights tile=0
    matrix_multiply ub=0 acc=0 rows=4, switch
    synchronize engine=activation wait=matrix
    activate acc=0 ub=4 inner=4
    synchronize engine=weights wait=matrix
    read_weights tile=1
    matrix_multiply ub=0 acc=4 rows=4, switch
    synchronize engine=activation wait=matrix
    activate acc=4 ub=8 inner=4
    synchronize engine=weights wait=matrix
    read_weights tile=2
    matrix_multiply ub=0 acc=8 rows=4, switch
    synchronize engine=activation wait=matrix
    activate acc=8 ub=12 inner=4
    synchronize engine=host wait=activation
    write_host_memory ub=4 host=y.0 rows=12
    halt
"""


def _fetch(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, tiles, block = drawn(source, 4), [drawn(source, LANES, most=40) for _ in range(3)], Block(multiplier=0.125)
        return Setting({"x": x}, {"y": block.of_sums(product(x, np.concatenate(tiles, axis=1)))}, tiles, (block,))

    task = (
        f"y = x times three tiles, one for each four columns of y, {SCALED}. The program in the file is right, and slow: two `synchronize` "
        "lines let the weight engine wait for the sums of the product before, 8 cycles, and then fetch, 8 cycles more. Let it fetch "
        "ahead. The FIFO holds two tiles, so that the third may be asked for only after a line that has switched to the first."
    )
    return Puzzle(number, "hide a fetch behind a product", task, draw, best=14, text=_SLOW, most=Most(cycles=CYCLES), slow=SLOW)


CYCLES, SLOW = 64, 88
"""What three products take if fetches are hidden, and one after the other."""
_RACING = """\
    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows={rows}
    matrix_multiply ub=0 acc=0 rows={rows}, switch
    read_host_memory host=b.0 ub=0 rows={rows}
    set_configuration block=0
    activate acc=0 ub={rows} inner={rows}
    vector function={function} a={rows} b=0 ub={rows} inner={rows}
    write_host_memory ub={rows} host=y.0 rows={rows}
    halt
"""


def _race(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, b, w, block = drawn(source, held.rows), drawn(source, held.rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
        return Setting({"x": x, "b": b}, {"y": held.combined(block.of_sums(product(x, w)), b)}, (w,), (block,))

    task = (
        f"The program in the file computes y = x times tile 0, {SCALED}, {held.sign} b, as long as its engines work one after the other. "
        "They don't. Add `synchronize` lines, and change nothing else. An engine that waits for another one also waits for all that this "
        "one has waited for: four lines are enough."
    )
    text = _RACING.format(rows=held.rows, function=held.function)
    return Puzzle(number, "fix a race", task, draw, best=13, text=text, keeps=True, most=Most(instructions=13))


def _spill(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        a, b, c, d = (drawn(source, 1, most=5) for _ in range(4))
        total = held.combined(a, b).astype(np.int64) * held.combined(c, d)
        return Setting({"a": a, "b": b, "c": c, "d": d}, {"y": clamped(total)}, blocks=(Block(),), scratch={"spare": 1})

    task = (
        f"y = (a {held.sign} b)·(c {held.sign} d), value by value, one row each. The unified buffer has two rows only. Put the first "
        "result aside: the host has a row named `spare`, which may be written and read again. `vector` may write over a row that it "
        "reads."
    )
    return Puzzle(number, "spill a buffer", task, draw, best=16, unified_buffer_rows=2)


def _tile_again(number: int, held: Rules) -> Puzzle:
    rows = 2 * held.rows

    def draw(source: Random) -> Setting:
        x, w, block = drawn(source, rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
        return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, (w,), (block,))

    task = (
        f"y = x times tile 0, {SCALED}. x has {rows} rows, the accumulators only {held.rows}: compute the product in two parts, and fetch "
        "the tile once. The second part's sums may lie where the first part's were, once those are activated."
    )
    most = Most(fetches=1)
    return Puzzle(number, "use a tile again", task, draw, best=14, most=most, accumulator_rows=held.rows)


def _window(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, tiles = drawn(source, 3 * held.stride + 3), [drawn(source, LANES, most=30) for _ in range(3)]
        block = Block(multiplier=0.125)
        windows = [x[t : t + 3 * held.stride + 1 : held.stride] for t in range(3)]
        sums = product(np.concatenate(windows, axis=1), np.concatenate(tiles))
        return Setting({"x": x}, {"y": block.of_sums(sums)}, tiles, (block,))

    task = (
        f"Row i of y is row {held.stride}i of x times tile 0, plus row {held.stride}i + 1 times tile 1, plus row {held.stride}i + 2 times "
        f"tile 2, {SCALED}: a convolution along the rows with a window of three and a stride of {held.stride}; y has four rows. `convolve` "
        "multiplies rows that are `ub_stride` apart, `inner` of them."
    )
    return Puzzle(number, "convolve a window of rows", task, draw, best=14)


_TILED = """\
.buffer left rows={rows}
.buffer right rows={rows}
.buffer h rows={rows}
.groups [{rows}]

    ; rows are named: left, right+1, g0. A multiply that switches names its tile: matrix_multiply ub=left acc=g0 rows={rows} tile=0, switch
"""


def _tiles(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x, w, plain = drawn(source, held.rows, 2 * LANES), drawn(source, 2 * LANES, 2 * LANES, most=30), Block(0.125, low=0)
        parts = [w[:LANES, :LANES], w[:LANES, LANES:], w[LANES:, :LANES], w[LANES:, LANES:]]
        tiles = [parts[n] for n in ((0, 2, 1, 3) if held.turned else (0, 1, 2, 3))]
        return Setting({"x": x}, {"y": plain.of_sums(product(x, w))}, tiles, (plain,))

    order = "column by column: tiles 0 and 1 are columns 0 to 3" if held.turned else "row by row: tiles 0 and 1 are rows 0 to 3"
    task = (
        f"y = relu(x times w), {SCALED}, in which negative values become 0; w is 8×8 and has four tiles, {order}. This one is a tile "
        "program: buffers have names instead of rows, groups of accumulators are g0, g1, …, and tpucc adds fetches, waits, addresses and "
        "the end. Declare the buffers and groups that you need: `.buffer NAME rows=R`, and one `.groups [R …]` with a number of rows for "
        "each group."
    )
    return Puzzle(number, "a product of four tiles", task, draw, 10, _TILED.format(rows=held.rows), "tile", directives=("buffer", "groups"))


def _fewest(number: int, held: Rules) -> Puzzle:
    def draw(source: Random) -> Setting:
        x = drawn(source, 2, most=70)
        return Setting({"x": x}, {"y": np.repeat(held.combined(x[:1], x[1:]), 6, axis=0)}, blocks=(Block(),))

    task = (
        f"Each of the six rows of y is row 0 of x {held.sign} row 1 of x. Seven instructions are enough: read what the strides of a "
        "walk mean (`a_stride`, `b_stride`, `ub_stride`), in particular a stride of 0."
    )
    return Puzzle(number, "the fewest instructions", task, draw, best=7, most=Most(instructions=7))
