"""The term's rules for a layer's lines, in which order lines visit the tiles of a layer, and the drawing of this order."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted
from tpucc.ir.codec import Errors
from tpucc.isa.listing.lines import Arguments, read_lines
from tpucc.isa.listing.words import name_text
from tpucc.labs.judging import in_words
from tpucc.labs.lab import Term
from tpucc.lowering.tileprogram import MULTIPLIES
from tpucc.lowering.tiletext import add_groups
from tpucc.machines.v1 import Flag, Opcode
from tpucc.plugins.failures import Failed
from tpucc.stages.products import ProductLayer, WrittenProduct

MOST_LINES = 5000
"""Lines of one layer."""
MOST_CHARACTERS = 2**20
MOST_SHOWN = 6
"""Levels of a layer that a message shows."""
MOST_ROWS = 2**16
"""Rows of all accumulator groups of one layer, and rows that its lines may walk to be drawn."""


@dataclass(frozen=True, slots=True)
class Rules:
    """An instruction walks at most `most` rows. Column blocks are activated from the first to the last or from the last to the first
    (`columns_down`), and a sum takes its levels likewise (`levels_down`). The machine has `accumulators` rows of accumulators; as two
    `halves`, one of them is filled while the other is emptied."""

    most: int
    columns_down: bool
    levels_down: bool
    accumulators: int
    halves: bool = False

    @property
    def half(self) -> int:
        return self.accumulators // 2

    @property
    def structure(self) -> str:
        return "accumulators in two halves" if self.halves else ""


def rules(term: Term) -> Rules:
    """The rules of a term; no two orders of terms are the built-in lowering's. Two halves have twice the rows."""
    draw, halves = term.draw("tiling"), term.has_structure("tiling")
    if draw is None:
        return Rules(8, False, False, 16)
    columns_down, levels_down = draw.choice(((True, False), (False, True), (True, True)))
    return Rules(draw.choice((5, 6, 7, 9, 10)), columns_down, levels_down, draw.choice((16, 20, 24)) * (1 + halves), halves)


@dataclass(frozen=True, slots=True)
class Visit:
    """A multiply: `rows` rows of the result from row `row` on, of column block `n`, gain the products of level `k`."""

    row: int
    rows: int
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class Sum:
    """A row of the result that is activated, of column block `n`. `multiplies` are those that it sums: each one's instruction, its tile,
    and its rows where this is the first of them, else 0."""

    row: int
    n: int
    multiplies: Sequence[tuple[int, int, int]]


def sums_of(layer: ProductLayer, product: WrittenProduct) -> Iterator[Sum]:
    """The sums of a layer's lines, in the order in which they are activated."""
    code, names = product.records, [name_text(buffer.name) for buffer in layer.buffers]
    held, tile = defaultdict[tuple[int, int], list[tuple[int, int, int]]](list), -1
    for index, opcode in enumerate(code["opcode"].tolist()):
        rows, inner = int(code["outer"][index]) * int(code["inner"][index]), int(code["inner"][index])
        places = [(int(code["group"][index]), int(code["acc"][index]) + row) for row in range(rows)]
        if opcode in MULTIPLIES:
            tile = int(code["index"][index]) if code["flags"][index] & Flag.SWITCH else tile
            for at, place in enumerate(places):
                held[place].append((index, tile, 0 if at else rows))
        elif opcode == Opcode.ACTIVATE and (name := names[code["dest_buffer"][index]]) in layer.results:
            first, pitch, stride = (int(code[field][index]) for field in ("dest", "dest_pitch", "dest_stride"))
            for at, place in enumerate(places):
                row = (first + at // inner * pitch + at % inner * stride - layer.start) // (1 + layer.wide)
                yield Sum(row, layer.results.index(name), held.pop(place, []))


def visits_of(layer: ProductLayer, product: WrittenProduct) -> list[Visit]:
    """The multiplies of a layer's lines in their order, as far as they are activated; none of lines that walk no end of rows."""
    return list(numbered_visits(layer, product).values())


def numbered_visits(layer: ProductLayer, product: WrittenProduct) -> dict[int, Visit]:
    """The same, by their instructions."""
    code = product.records
    if (code["outer"].astype(float) * code["inner"]).sum() > MOST_ROWS:
        return {}
    visits: dict[int, Visit] = {}
    for each in sums_of(layer, product):
        tiles = [tile for _, tile, _ in each.multiplies]
        for turn, (index, _, rows) in enumerate(each.multiplies):
            if rows:
                visits[index] = Visit(each.row, rows, _level(layer, each.n, tiles, turn), each.n)
    return dict(sorted(visits.items()))


def broken_rule(layer: ProductLayer, product: WrittenProduct, rules: Rules, lines: Sequence[str]) -> str:
    """The first of the term's rules that lines break, or nothing. The lines make a valid program, whose integers are right."""
    code, own = product.records, [line.strip() for line in lines if line.strip()[0] not in ".;"]
    for index, rows in enumerate((code["outer"].astype(int) * code["inner"].astype(int)).tolist()):
        if code["opcode"][index] in (*MULTIPLIES, Opcode.ACTIVATE) and rows > rules.most:
            return f"{_line(own, index)} walks {rows} rows; {rules.most} are the most"
    if rules.halves and (problem := _of_halves(product, lines, own, rules.half)):
        return problem
    last = -1
    for each in sums_of(layer, product):
        found = [tile for _, tile, _ in each.multiplies]
        expected = list(_tiles(layer, each.n).values())[:: -1 if rules.levels_down else 1]
        if found != expected:
            return f"a sum of column block {each.n} takes the tiles {found}; in this term's order they are {expected}"
        if each.n != last and (problem := _of_columns(len(layer.results), last, each.n, rules.columns_down)):
            return problem
        last = each.n
    return ""


def _line(own: Sequence[str], index: int) -> str:
    return f"`{own[index]}`" if index < len(own) else f"instruction {index}"


def _of_halves(product: WrittenProduct, lines: Sequence[str], own: Sequence[str], most: int) -> str:
    """What is wrong with how the halves of the accumulators, of `most` rows each, are filled and emptied; or nothing."""
    code, half_of = product.records, _half_of_each_group(lines)
    held, emptied, filled = (set[tuple[int, int]](), set[tuple[int, int]]()), [False, False], -1
    for index, opcode in enumerate(code["opcode"].tolist()):
        group, first, rows = (int(code[field][index]) for field in ("group", "acc", "inner"))
        if group < 0:
            continue
        places, half = {(group, first + row) for row in range(rows * int(code["outer"][index]))}, half_of[group]
        name = f"the {('lower', 'upper')[half]} half"
        if opcode == Opcode.ACTIVATE:
            held[half].difference_update(places)
            emptied[half] = bool(held[half])
        elif emptied[half]:
            left = counted(len(held[half]), "row")
            return f"{_line(own, index)} fills {name}, which is being emptied: {left} of it must be activated first"
        elif not held[half] and half == filled:
            return f"{_line(own, index)} fills {name} again; the halves are filled in turn"
        elif len(held[half] | places) > most:
            return f"{_line(own, index)} fills {name} with {len(held[half] | places)} rows; it has {most}"
        else:
            held[half].update(places)
            filled = half
    return ""


def _half_of_each_group(lines: Sequence[str]) -> list[int]:
    """0 for the lower half of the accumulators, 1 for the upper: the groups of a `.groups` line lie in one, and lines take them in turn."""
    found = list[int]()
    for number, directive in enumerate(read_lines("\n".join(lines), Errors()).directives):
        sizes = list[int]()
        add_groups(Arguments(directive), sizes)
        found += [number % 2] * len(sizes)
    return found


def _tiles(layer: ProductLayer, n: int) -> dict[int, int]:
    """The tile of each level of a column block, without those of zeros."""
    return {k: tile for k, level in enumerate(layer.levels) if (tile := level.tiles[n]) is not None}


def _level(layer: ProductLayer, n: int, found: list[int], turn: int) -> int:
    """Which level the tile is of that was multiplied with in this turn; -1 when it is of none."""
    among = [k for k, tile in _tiles(layer, n).items() if tile == found[turn]]
    return among[min(found[:turn].count(found[turn]), len(among) - 1)] if among else -1


def _of_columns(count: int, last: int, n: int, down: bool) -> str:
    """What is wrong with activating column block `n` after `last` (-1: as the first), or nothing."""
    first = count - 1 if down else 0
    expected = first if last < 0 else (last + (-1 if down else 1)) % count
    if n == expected:
        return ""
    before = "first" if last < 0 else f"after column block {last}"
    return f"column block {n} is activated {before}; in this term's order it is column block {expected}"


def described(layer: ProductLayer) -> str:
    """A layer in a few lines, for a message."""
    shown = [
        f"level {k}: {part.buffer}+{part.start} steps={part.steps} tiles={list(part.tiles)}"
        for k, part in enumerate(layer.levels[:MOST_SHOWN])
    ]
    more = [f"… {len(layer.levels)} levels"] if len(layer.levels) > MOST_SHOWN else []
    results = f"shape={layer.shape} results={list(layer.results)} start={layer.start} steps={layer.steps} blocks={list(layer.blocks)}"
    return "\n".join([f"a layer of kind {layer.kind}: {results}{' wide' * layer.wide}", *shown, *more])


def lines_of(answer: object) -> list[str]:
    """A lowering's answer as lines. Raises `Failed`."""
    found = [answer] if isinstance(answer, str) else answer
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise Failed("result", f"returned {in_words(answer)}; expected lines, a list of strings")
    lines = [part for line in found for part in line.splitlines() if part.strip()]
    characters = sum(map(len, lines))
    if len(lines) > MOST_LINES or characters > MOST_CHARACTERS:
        limits = f"{MOST_LINES:,} and {MOST_CHARACTERS:,} are the most"
        raise Failed("result", f"returned {len(lines):,} lines of {characters:,} characters; {limits}")
    return lines


COLUMNS, MOST_LEVELS, MOST_BLOCKS = 78, 18, 8
Panel = tuple[int, int, dict[tuple[int, int], list[int]]]
"""A chunk of rows of the result: its first row, how many it has, and the numbers of the visits of each tile (k, n)."""


def panels(visits: Sequence[Visit]) -> list[Panel]:
    """The chunks in the order of their rows, with the visits numbered from 1."""
    found: dict[int, Panel] = {}
    for number, visit in enumerate(visits, 1):
        _, _, numbers = found.setdefault(visit.row, (visit.row, visit.rows, {}))
        numbers.setdefault((visit.k, visit.n), []).append(number)
    return [found[row] for row in sorted(found)]


def order_text(layer: ProductLayer, visits: Sequence[Visit]) -> str:
    """The tables in characters, side by side as far as they fit."""
    every = panels(visits)
    deep, wide = _shown(layer)
    cell = max(4, len(str(len(visits))) + 1)
    width = max(wide * cell, len("rows 000-000")) + 2
    fit = every[: max(1, (COLUMNS - 6) // width)]
    lines = [" " * 6 + "".join(_title(panel).ljust(width) for panel in fit)]
    lines.append(" " * 6 + "".join("".join(f"n={n}".rjust(cell) for n in range(wide)).ljust(width) for _ in fit))
    for k in range(deep):
        parts = ["".join(_mark(layer, panel, k, n).rjust(cell) for n in range(wide)).ljust(width) for panel in fit]
        lines.append(f"k={k}".ljust(6) + "".join(parts))
    lines += [*_left_out(layer, len(every) - len(fit)), *textwrap.wrap(_reading(layer, every), COLUMNS)]
    return "\n".join(line.rstrip() for line in lines)


def _shown(layer: ProductLayer) -> tuple[int, int]:
    return min(len(layer.levels), MOST_LEVELS), min(len(layer.results), MOST_BLOCKS)


def _title(panel: Panel) -> str:
    row, rows, _ = panel
    return f"rows {row}-{row + rows - 1}" if rows > 1 else f"row {row}"


def _mark(layer: ProductLayer, panel: Panel, k: int, n: int) -> str:
    """The number of the visit; `0` for a tile of zeros; `-` for none, and a `+` for more than one."""
    seen = panel[2].get((k, n), [])
    if not seen:
        return "0" if layer.levels[k].tiles[n] is None else "-"
    return f"{seen[0]}" + "+" * (len(seen) > 1)


def _reading(layer: ProductLayer, every: Sequence[Panel]) -> str:
    """What the numbers and the marks are, of the marks that are there."""
    deep, wide = _shown(layer)
    marks = {_mark(layer, panel, k, n) for panel in every for k in range(deep) for n in range(wide)}
    told = ["- is a product that is missing"] * ("-" in marks) + ["0 a tile of zeros"] * ("0" in marks)
    told += ["+ a product that is there again"] * any(mark.endswith("+") for mark in marks)
    return "; ".join(["levels k, column blocks n, and the order of the multiplies", *told])


def _left_out(layer: ProductLayer, chunks: int) -> list[str]:
    deep, wide = _shown(layer)
    counts = [(chunks, "more chunk"), (len(layer.levels) - deep, "more level"), (len(layer.results) - wide, "more column block")]
    told = [counted(count, what) for count, what in counts if count > 0]
    return [f"not shown: {', '.join(told)}"] if told else []
