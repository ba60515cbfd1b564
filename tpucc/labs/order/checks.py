"""Whether an order is valid: everything is made before it is needed, each activation has its block, and the term's rules hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tpucc.diagnostics import Error
from tpucc.guest.values import Plain
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.labs.judging import integers
from tpucc.lowering.tileprogram import TileProgram, flat
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import Int64
from tpucc.plugins.failures import Failed
from tpucc.schedule import schedule
from tpucc.stages.replaced import problem_of_order

Transfers = Literal["free", "kept", "at once"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rules: at most `sums` sums are open at a time, or as many as there is room for (0); where transfers may stand; and for how
    many tiles the machine's FIFO has `places`.

    `kept`: transfers keep their order. `at once`: each write to the host stands right after the instruction that makes the last of its
    rows.
    """

    sums: int = 0
    transfers: Transfers = "free"
    places: int = 2


def read_order(found: Plain, count: int) -> Int64:
    """A submission's answer as numbers of instructions. Raises `Failed`."""
    order = integers(found, (count,), f"{count:,} integers")
    if problem := problem_of_order(order):
        raise Failed("wrong", problem)
    return order.astype(np.int64)


def in_order(tiles: TileProgram, order: Int64) -> TileProgram:
    """The tile program with its instructions in a new order."""
    return replace(tiles, instructions=tiles.instructions[order])


def scheduled(tiles: TileProgram, order: Int64) -> Program:
    """The machine program of an order. Raises `Failed` where the machine has no room for it."""
    try:
        return schedule(in_order(tiles, order))
    except Error as error:
        raise Failed("wrong", "; ".join(found.message for found in error.diagnostics)) from None


def wrong(tiles: TileProgram, order: Int64, rules: Rules) -> str:
    """What is wrong with an order, in words that name instructions by their numbers in `tiles`; nothing when it is valid."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    touched = effects(flat(tiles))
    for earlier, later, reason in (*_made(touched), *_summed(tiles, touched)):
        if place[earlier] > place[later]:
            return f"{_name(tiles, later)} stands before {_name(tiles, earlier)}, {reason}"
    problem = _blocks(tiles, order) or _open(tiles, order, rules) or _transfers(tiles, touched, order, place, rules)
    if problem:
        return problem
    try:
        verify_tiles(in_order(tiles, order))
    except Error as error:
        return f"{error.diagnostics[0].code}: {error.diagnostics[0].message}"
    return ""


def makers(touched: Effects) -> Iterator[tuple[int, int, int]]:
    """Each instruction that reads rows, an instruction that makes some of them, and one of these."""
    maker = {row: index for index in np.flatnonzero(touched.target.used).tolist() for row in touched.target.rows(index).tolist()}
    for walks in (touched.source, touched.source2):
        for index in np.flatnonzero(walks.used).tolist():
            made = {maker[row]: row for row in walks.rows(index).tolist() if row in maker}
            yield from ((index, made_by, row) for made_by, row in made.items())


def _made(touched: Effects) -> Iterator[tuple[int, int, str]]:
    for index, maker, _ in makers(touched):
        yield maker, index, "which makes rows that it reads"


def _summed(tiles: TileProgram, touched: Effects) -> Iterator[tuple[int, int, str]]:
    """The first multiply of each sum comes first, its activation last."""
    group, multiplies = tiles.instructions["group"], touched.multiplies
    for index in np.flatnonzero((group >= 0) & ~multiplies).tolist():
        own = np.flatnonzero((group == group[index]) & multiplies)
        begins = own[~touched.sums.reads[own]].tolist()
        for multiply in own.tolist():
            yield multiply, index, "which adds to the sum that it activates"
            if begins and multiply not in begins:
                yield begins[0], multiply, "which begins the sum that it adds to"


def _blocks(tiles: TileProgram, order: Int64) -> str:
    """Each instruction that uses a parameter block finds the one that it found before."""
    before, after = _chosen(tiles, np.arange(len(order))), _chosen(tiles, order)
    for index in order.tolist():
        if before.get(index) != after.get(index):
            found = f"block {after[index]}" if after[index] >= 0 else "no block"
            return f"{_name(tiles, index)} finds {found} chosen, and needs block {before[index]}"
    return ""


def _chosen(tiles: TileProgram, order: Int64) -> dict[int, int]:
    """The parameter block that each instruction of the activation unit finds, -1 for none."""
    touched, found, block = effects(tiles.instructions), dict[int, int](), -1
    for index in order.tolist():
        if touched.configures[index]:
            block = int(tiles.instructions["index"][index])
        elif touched.engine[index] == Engine.ACTIVATION:
            found[index] = block
    return found


def _open(tiles: TileProgram, order: Int64, rules: Rules) -> str:
    group, opened = tiles.instructions["group"].tolist(), set[int]()
    for index in order.tolist():
        if group[index] < 0:
            continue
        if tiles.instructions["opcode"][index] == Opcode.ACTIVATE:
            opened.discard(group[index])
            continue
        opened.add(group[index])
        if rules.sums and len(opened) > rules.sums:
            return f"{_name(tiles, index)} opens a sum while {len(opened) - 1} are open, and {rules.sums} may be in this term"
    return ""


def _transfers(tiles: TileProgram, touched: Effects, order: Int64, place: Int64, rules: Rules) -> str:
    moved = np.flatnonzero(touched.host_reads | touched.host_writes)
    if rules.transfers == "kept":
        for earlier, later in zip(moved[:-1].tolist(), moved[1:].tolist(), strict=True):
            if place[earlier] > place[later]:
                return f"{_name(tiles, later)} stands before {_name(tiles, earlier)}, and transfers keep their order in this term"
    if rules.transfers == "at once":
        for index in np.flatnonzero(touched.host_writes).tolist():
            last = max(int(place[maker]) for reader, maker, _ in makers(touched) if reader == index)
            if place[index] != last + 1:
                return f"{_name(tiles, index)} doesn't stand right after {_name(tiles, int(order[last]))}, which makes the last of its rows"
    return ""


def _name(tiles: TileProgram, index: int) -> str:
    return f"instruction {index} `{tiles[index].text}`"
