"""The matrix unit's time as segments, and what limits a program: on timelines written down cycle by cycle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import Writer
from tpucc.isa.instructions import Flag, Opcode
from tpucc.isa.program import Program, Resident
from tpucc.numerics import Int64
from tpucc.sim.accounting import ROWS
from tpucc.sim.bottleneck import bottleneck
from tpucc.sim.segments import Cause, Segments, matrix_segments
from tpucc.sim.timing import Stalls, Tiles, Timeline

A, W, S, R, I, N = Cause.ACTIVE, Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT, Cause.RAW_STALL, Cause.INPUT_STALL, Cause.IDLE  # noqa: E741


def program(rows: int = 6) -> Program:
    """Instructions 2 and 3 are multiplies, each of a layer of its own, as are the others."""
    writer = Writer()
    tile = writer.tile(np.eye(4))
    for layer, (opcode, fields) in enumerate(
        [
            (Opcode.READ_HOST_MEMORY, {"host": 0, "dest": 0, "inner": 4}),
            (Opcode.READ_WEIGHTS, {"index": tile}),
            (Opcode.MATRIX_MULTIPLY, {"flags": int(Flag.SWITCH), "ub": 0, "acc": 0, "inner": 4}),
            (Opcode.MATRIX_MULTIPLY, {"ub": 0, "acc": 0, "inner": rows}),
            (Opcode.ACTIVATE, {"acc": 0, "inner": 4, "dest": 8}),
            (Opcode.INTERRUPT_HOST, {"index": 0}),
            (Opcode.ACTIVATE, {"acc": 0, "inner": 4, "dest": 8}),
        ]
    ):
        writer.layer = layer
        writer.add(opcode, **fields)
    return writer.program()


def column(**values: int) -> Int64:
    """Zero but for the instructions named `i2`, `i3`, …"""
    found = np.zeros(8, np.int64)
    for name, value in values.items():
        found[int(name[1:])] = value
    return found


NONE = np.zeros(0, np.int64)
TILES = Tiles(*(np.array([cycle], np.int64) for cycle in (0, 8, 8, 12, 17)))


def timeline() -> Timeline:
    """The host reads till 5; the first multiply waits 4 + 5 + 2 + 3 + 3 cycles, and runs from 17 to 21; the next from 31 to 37.

    The activation unit works from 3 to 8, and from 25 to 29; the host computes from 28 to 34; the first ends, at 45, after everything.
    """
    start = np.array([0, 0, 17, 31, 3, 28, 25, 45], np.int64)
    end = np.array([5, 0, 21, 37, 8, 34, 29, 45], np.int64)
    stalls = Stalls(raw=column(i2=4), input=column(i2=5, i3=10), weight=column(i2=2), shift=column(i2=3), other=column(i2=3))
    return Timeline(start, end, TILES, stalls, 45)


def each_cycle(found: Segments, values: Int64) -> list[int]:
    return np.repeat(values, found.cycles).tolist()


def test_every_cycle_is_what_the_columns_say() -> None:
    found = matrix_segments(program(), timeline())
    assert each_cycle(found, found.cause) == [
        *([R] * 4), *([I] * 5), *([W] * 2), *([S] * 3), *([N] * 3), *([A] * 4), *([I] * 10), *([A] * 6), *([N] * 8),
    ]  # fmt: skip
    assert each_cycle(found, found.instruction) == [2] * 21 + [3] * 16 + [7] * 8
    busy = {
        name: [cycle for cycle, on in enumerate(each_cycle(found, getattr(found, name))) if on] for name in Segments.__dataclass_fields__
    }
    assert busy["activating"] == [*range(3, 8), *range(25, 29)]
    assert busy["transferring"] == [*range(5)]
    assert busy["stepping"] == [*range(28, 34)]
    assert (found.start[0], found.end[-1]) == (0, 45)
    assert (found.start[1:] == found.end[:-1]).all()
    assert (found.cycles > 0).all()


def test_a_wait_is_the_layer_s_whose_activation_or_host_step_it_is_for() -> None:
    """While tiles are awaited it is the multiply's own; of an activation and a host step at once it is the activation's."""
    found = matrix_segments(program(), timeline())
    assert each_cycle(found, found.layer) == [
        *([2] * 3),
        *([4] * 5),
        *([2] * 13),
        *([3] * 4),
        *([6] * 4),
        *([5] * 2),
        *([3] * 6),
        *([6] * 8),
    ]


def test_at_the_end_the_unit_idles_for_what_finishes_last() -> None:
    found = timeline()
    longer = replace(found, end=np.where(np.arange(8) == 6, 45, found.end), start=np.minimum(found.start, 44))
    segments = matrix_segments(program(), replace(longer, makespan=45))
    assert each_cycle(segments, segments.instruction)[37:] == [6] * 8


def segments(*parts: tuple[int, Cause, str]) -> tuple[Segments, int]:
    """Segments of so many cycles, a cause, and a letter for each unit that works: a, t or s. The first two are before instruction 2."""
    ends = np.cumsum([cycles for cycles, _, _ in parts]).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    works = [np.array([letter in units for _, _, units in parts], np.bool_) for letter in "ats"]
    instruction = np.array([2 if place < 2 else 3 for place in range(len(parts))], np.int64)
    return Segments(starts, ends, np.array([cause for _, cause, _ in parts], np.int8), instruction, instruction, *works), int(ends[-1])


@pytest.mark.parametrize(
    ("cause", "units", "kind"),
    [
        (W, "ats", "weight memory"),
        (S, "ats", "weight shift"),
        (A, "ats", "matrix unit"),
        (R, "", "data dependencies"),
        (R, "a", "activation"),
        (R, "s", "host work"),
        (R, "as", "activation"),
        (R, "t", "data dependencies"),
        (I, "", "host link"),
        (I, "a", "activation"),
        (I, "s", "host work"),
        (N, "", "data dependencies"),
        (Cause.OUTPUT, "t", "host link"),
        (Cause.INPUT, "t", "host link"),
        (Cause.HOST_STEP, "s", "host work"),
        (Cause.ACTIVATION, "a", "activation"),
        (Cause.ACTIVATION, "at", "activation"),
    ],
)
def test_each_row_counts_for_one_limit(cause: Cause, units: str, kind: str) -> None:
    """The wanted one takes 60 of 100 cycles; the second multiply's tile arrived in time."""
    found, makespan = segments((10, W, ""), (10, S, ""), (60, cause, units), (20, A, ""))
    spent = replace(timeline(), makespan=makespan)
    limit = bottleneck(program(), spent, found)
    name, words = limit.name, limit.explanation
    assert name == kind
    rows = {W: "80.0 % of the cycles (weight stall 70.0, weight shift 10.0)", A: "80.0 % of the cycles (array active)"}
    assert rows.get(cause, f"60.0 % of the cycles ({ROWS[cause].name})") in words or cause is S


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (((30, R, "as"), (20, R, "s"), (25, A, "")), "activation"),
        (((30, I, "s"), (20, I, ""), (25, A, "")), "host work"),
        (((30, I, "a"), (20, I, ""), (25, A, "")), "activation"),
        (((30, I, ""), (20, I, "s"), (25, A, "")), "host link"),
    ],
)
def test_a_row_is_the_limit_s_that_takes_most_of_it(parts: tuple[tuple[int, Cause, str], ...], kind: str) -> None:
    found, makespan = segments(*parts)
    limit = bottleneck(program(), replace(timeline(), makespan=makespan), found)
    name, words = limit.name, limit.explanation
    assert (name, words.split(" wait")[0]) == (kind, f"66.7 % of the cycles ({ROWS[parts[0][1]].name})")


def test_a_limit_s_figure_is_the_sum_of_the_rows_that_it_names() -> None:
    """24.25 and 24.25 percent are printed as 24.2 each, and their sum as 48.5: each figure is rounded by itself."""
    found, makespan = segments((97, I, ""), (97, Cause.OUTPUT, "t"), (103, A, ""), (103, R, ""))
    words = bottleneck(program(), replace(timeline(), makespan=makespan), found).explanation
    assert words.startswith("48.5 % of the cycles (waits for the host 24.2, outputs leave 24.2)")


def test_a_shift_that_began_late_is_weight_memory_s() -> None:
    found, makespan = segments((10, W, ""), (50, S, ""), (40, A, ""))
    assert bottleneck(program(), replace(timeline(), makespan=makespan), found).name == "weight memory"


def said(cause: Cause, units: str = "", made: Program | None = None) -> str:
    found, makespan = segments((0, W, ""), (0, S, ""), (75, cause, units), (25, N if cause is A else A, ""))
    return bottleneck(made or program(), replace(timeline(), makespan=makespan), found).explanation


def test_the_sentences_of_weights_and_products() -> None:
    """The tiny machine: a tile is fetched in 8 cycles and shifted in 4; the multiplies use one tile for 10 rows, of 16 cells each.

    With a tile each, they use them for 4 and 6 rows; the sentence has the rows of the tile that is waited for longest.
    """
    made = program()
    waits = "75.0 % of the cycles (weight stall) wait for weight tiles, each fetched in 8 cycles and used for"
    twice = "--set weight_bandwidth=4e6 would fetch tiles in half the time"
    assert said(W) == f"{waits} 10 rows; {twice}"
    code = made.instructions.copy()
    code["flags"][3] = int(Flag.SWITCH)
    each = replace(made, instructions=code)
    found, makespan = segments((75, W, ""), (25, A, ""))
    few = bottleneck(each, replace(timeline(), makespan=makespan), found).explanation
    assert few == f"{waits} 4 rows; a batch 2 times as large would hide the fetch"
    large = replace(each, residents=(Resident("all", 0, 0, 40, 0, 7),))
    assert bottleneck(large, replace(timeline(), makespan=makespan), found).explanation == f"{waits} 4 rows; {twice}"
    found, makespan = segments((5, W, ""), (0, S, ""), (70, W, ""), (25, A, ""))
    uneven = bottleneck(each, replace(timeline(), makespan=makespan), found).explanation
    assert uneven == f"{waits.replace('used', 'most used')} 6 rows; {twice}"
    shifts = "75.0 % of the cycles (weight shift) wait for tiles, each shifted in in 4 cycles and used for 10 rows"
    assert said(S) == f"{shifts}; --set unified_buffer_rows=192 would compute the batch in larger parts"
    working = replace(made, layers=tuple(replace(layer, macs=20) for layer in made.layers))
    assert len(made.layers) == 7
    multiplies = "the matrix unit multiplies in 75.0 % of the cycles (array active), with 88 % of its cells in use"
    assert said(A, made=working) == f"{multiplies}; --cores 2 would share the batch, 8 items each, if no item needs another"
    assert "fills and drains for 8 cycles" in said(R)


def test_the_sentences_of_the_host() -> None:
    link, step = said(I), said(R, "s")
    assert (
        "between the host and the unified buffer, at 0.004 GB/s; a batch 4 times as large would have fewer transfers for each item" in link
    )
    assert "0 host steps, each of at least 10 µs" in step
