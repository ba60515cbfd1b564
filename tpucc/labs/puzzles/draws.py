"""What differs between the puzzles of two terms; and for numbers that are drawn the memories and the goal of each puzzle: a function for
each `setting` of puzzles.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tpucc.labs.lab import Term
from tpucc.labs.puzzles.setting import LANES, Block, Setting, clamped, drawn, product
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
    def words(self) -> Mapping[str, Any]:
        """The words of the puzzles' texts and of the handout that depend on the term, and `scaled`."""
        first, second = ("1", "0") if self.turned else ("0", "1")
        rows, columns = "row by row: tiles 0 and 1 are rows 0 to 3", "column by column: tiles 0 and 1 are columns 0 to 3"
        return {
            **vars(self),
            "scaled": "each sum times the block's multiplier, rounded",
            "rows2": 2 * self.rows,
            "sign": self.sign,
            "function": self.function,
            "table_words": TABLES[self.table][0],
            "first": first,
            "second": second,
            "order": columns if self.turned else rows,
            "y_scale": 2 ** (7 - self.shift),
        }

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


def move(rules: Rules, source: Random) -> Setting:
    x = drawn(source, 4, most=99)
    return Setting({"x": x}, {"y": x[rules.row : rules.row + 1]})


def combine(rules: Rules, source: Random) -> Setting:
    a, b = (drawn(source, rules.rows, most=90) for _ in range(2))
    return Setting({"a": a, "b": b}, {"y": rules.combined(a, b)}, blocks=(Block(),))


def table(rules: Rules, source: Random) -> Setting:
    blocks = tuple(Block(table=TABLES[name][1], words=f"a table: {TABLES[name][0]}") for name in rules.tables)
    x = drawn(source, rules.rows, most=120)
    return Setting({"x": x}, {"y": np.vectorize(TABLES[rules.table][1])(x).astype(np.int8)}, blocks=blocks)


def one_product(rules: Rules, source: Random) -> Setting:
    x, w, block = drawn(source, rules.rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
    return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, (w,), (block,))


def two_tiles(rules: Rules, source: Random) -> Setting:
    x, w, block = drawn(source, rules.rows, 2 * LANES), drawn(source, 2 * LANES, most=30), Block(multiplier=0.125)
    tiles = (w[LANES:], w[:LANES]) if rules.turned else (w[:LANES], w[LANES:])
    return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, tiles, (block,))


def bias(rules: Rules, source: Random) -> Setting:
    x, w = drawn(source, rules.rows), drawn(source, LANES, most=40)
    bias = tuple(source.randint(-400, 400) for _ in range(LANES))
    plain, added, relu = Block(0.125), Block(0.125, bias), Block(0.125, bias, low=0)
    blocks = (relu, added, plain) if rules.turned else (plain, relu, added)
    sums = product(x, w)
    return Setting({"x": x}, {"y": added.of_sums(sums), "z": relu.of_sums(sums)}, (w,), blocks)


def requantise(rules: Rules, source: Random) -> Setting:
    """Values are exact multiples of powers of two, so that float32 has each of them."""
    x = drawn(source, rules.rows, most=60)
    sums = product(x, rules.weights) - rules.zero_x * rules.weights.sum(axis=0, dtype=np.int64)
    return Setting({"x": x}, {"y": Block(0.5**rules.shift, zero=rules.zero_y).of_sums(sums)}, (rules.weights,))


def fetch(rules: Rules, source: Random) -> Setting:
    x, tiles, block = drawn(source, 4), [drawn(source, LANES, most=40) for _ in range(3)], Block(multiplier=0.125)
    return Setting({"x": x}, {"y": block.of_sums(product(x, np.concatenate(tiles, axis=1)))}, tiles, (block,))


def race(rules: Rules, source: Random) -> Setting:
    x, b, w, block = drawn(source, rules.rows), drawn(source, rules.rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
    return Setting({"x": x, "b": b}, {"y": rules.combined(block.of_sums(product(x, w)), b)}, (w,), (block,))


def spill(rules: Rules, source: Random) -> Setting:
    a, b, c, d = (drawn(source, 1, most=5) for _ in range(4))
    total = rules.combined(a, b).astype(np.int64) * rules.combined(c, d)
    return Setting({"a": a, "b": b, "c": c, "d": d}, {"y": clamped(total)}, blocks=(Block(),), scratch={"spare": 1})


def tile_again(rules: Rules, source: Random) -> Setting:
    rows = 2 * rules.rows
    x, w, block = drawn(source, rows), drawn(source, LANES, most=40), Block(multiplier=0.125)
    return Setting({"x": x}, {"y": block.of_sums(product(x, w))}, (w,), (block,))


def window(rules: Rules, source: Random) -> Setting:
    x, tiles = drawn(source, 3 * rules.stride + 3), [drawn(source, LANES, most=30) for _ in range(3)]
    block = Block(multiplier=0.125)
    windows = [x[t : t + 3 * rules.stride + 1 : rules.stride] for t in range(3)]
    sums = product(np.concatenate(windows, axis=1), np.concatenate(tiles))
    return Setting({"x": x}, {"y": block.of_sums(sums)}, tiles, (block,))


def tiles(rules: Rules, source: Random) -> Setting:
    x, w, plain = drawn(source, rules.rows, 2 * LANES), drawn(source, 2 * LANES, 2 * LANES, most=30), Block(0.125, low=0)
    parts = [w[:LANES, :LANES], w[:LANES, LANES:], w[LANES:, :LANES], w[LANES:, LANES:]]
    tiles = [parts[n] for n in ((0, 2, 1, 3) if rules.turned else (0, 1, 2, 3))]
    return Setting({"x": x}, {"y": plain.of_sums(product(x, w))}, tiles, (plain,))


def fewest(rules: Rules, source: Random) -> Setting:
    x = drawn(source, 2, most=70)
    return Setting({"x": x}, {"y": np.repeat(rules.combined(x[:1], x[1:]), 6, axis=0)}, blocks=(Block(),))


DRAWS: Mapping[str, Callable[[Rules, Random], Setting]] = {
    draw.__name__: draw
    for draw in (
        *(move, combine, table, one_product, two_tiles, bias, requantise),
        *(fetch, race, spill, tile_again, window, tiles, fewest),
    )
}
"""The functions by their names."""
