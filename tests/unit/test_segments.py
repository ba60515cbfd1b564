"""The matrix unit's time as segments: on a timeline written down cycle by cycle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import Writer
from tpucc.explain.segments import Cause, Segments, matrix_segments
from tpucc.isa.program import Program
from tpucc.machines.v1 import Flag, Opcode
from tpucc.numerics import Int64
from tpucc.sim.timing import Tiles, Timeline

pytestmark = pytest.mark.usefixtures("any_ranges")

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


NONE = np.zeros(0, np.int64)
TILES = Tiles(*(np.array([cycle], np.int64) for cycle in (0, 11, 11, 14, 17)))


def timeline() -> Timeline:
    """The host reads till 5; the first multiply waits 4 + 5 + 2 + 3 + 3 cycles, and runs from 17 to 21; the next from 31 to 37.

    The activation unit works from 3 to 8, and from 25 to 29; the host computes from 28 to 34; the first ends, at 45, after everything.
    """
    start = np.array([0, 0, 17, 31, 3, 28, 25, 45], np.int64)
    end = np.array([5, 0, 21, 37, 8, 34, 29, 45], np.int64)
    return Timeline(start, end, TILES, np.array([(4, 9), (0, 31)], np.int64), 45)


def each_cycle(found: Segments, values: Int64) -> list[int]:
    return np.repeat(values, found.cycles).tolist()


def test_every_cycle_is_what_the_columns_say() -> None:
    found = matrix_segments(program(), timeline())
    assert each_cycle(found, found.cause) == [
        *([R] * 4), *([I] * 5), *([W] * 2), *([S] * 3), *([N] * 3), *([A] * 4), *([I] * 10), *([A] * 6), *([N] * 8),
    ]  # fmt: skip
    assert each_cycle(found, found.instruction) == [2] * 21 + [3] * 16 + [7] * 8
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
