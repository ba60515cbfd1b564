"""The memories and the goal of each puzzle, for numbers that are drawn: a function for each `setting` of puzzles.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from tpucc.labs.puzzles.rules import TABLES, Rules
from tpucc.labs.puzzles.setting import LANES, Block, Setting, clamped, drawn, product


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
