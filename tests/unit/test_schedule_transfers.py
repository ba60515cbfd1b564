"""Transfers that are done together: what continues what, and what that saves."""

from __future__ import annotations

import msgspec
import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.device_graphs import TINY, V1, Device, assert_computes, chain, compiled
from tpucc.isa.program import HostBuffer, Program, stretch_ends
from tpucc.lowering.lower import lower
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.machines.v1 import Opcode
from tpucc.schedule.allocate import Allocation, Stay
from tpucc.schedule.pipeline import join_transfers
from tpucc.target import Target

NO_LATENCY = msgspec.structs.replace(V1, name="direct", host_latency_seconds=0.0)


def reads(program: Program) -> list[tuple[int, int, int]]:
    """Host row, unified-buffer row and rows of each."""
    code = program.instructions[program.instructions["opcode"] == Opcode.READ_HOST_MEMORY]
    return list(zip(code["host"].tolist(), code["dest"].tolist(), code["inner"].tolist(), strict=True))


@each(
    [
        (1, V1, [13]),  # 13 column blocks of one row: fewer than the 42 rows of a microsecond
        (5, V1, [45, 20]),  # nine blocks have 45 rows
        (41, V1, [82, 82, 82, 82, 82, 82, 41]),
        (42, V1, [42] * 13),
        (200, V1, [200] * 13),
        (1, NO_LATENCY, [1] * 13),
    ]
)
def test_small_column_blocks_are_read_together(rows: int, target: Target, wanted: list[int]) -> None:
    graph = chain(rows, 13 * 256 - 7, 300)
    _, program = compiled(graph, target)
    assert [count for _, _, count in reads(program)] == wanted
    assert_computes(graph, program)


def test_the_blocks_of_a_later_part_lie_side_by_side() -> None:
    """They begin together, so that one gap takes them all, and one transfer."""
    graph = chain(9, 700, 300)
    _, program = compiled(graph, V1, 2)
    found = reads(program)
    assert [(host, count) for host, _, count in found] == [(0, 15), (15, 12)]
    assert_computes(graph, program)


def test_the_memory_map_follows() -> None:
    """Every block's stay begins with the transfer that brings it, and what is not read together keeps its own."""
    _, program = compiled(chain(5, 13 * 256, 300), V1)
    at = np.flatnonzero(program.instructions["opcode"] == Opcode.READ_HOST_MEMORY).tolist()
    stays = [stay for stay in program.residents if stay.first in at]
    assert [stay.rows for stay in stays] == [5] * 13
    assert [at.index(stay.first) for stay in stays] == [0] * 9 + [1] * 4


def test_many_features_of_one_item_cross_in_one_transfer() -> None:
    """Forty latencies would be three quarters of the time that the fetches of a layer of two columns take."""
    source = "weights random(seed=0)\nmodel m(x: f32[1, 10000]):\n    weight w: f32[10000, 2]\n    return x @ w\n"
    exe = tpucc.compile_source(source)
    assert [count for _, _, count in reads(exe.program.value)] == [40]


def test_each_tensor_s_blocks_are_large_enough_or_not_by_themselves() -> None:
    """An input of one row has small blocks. That the other's are large has nothing to do with it: they are read as they are needed."""
    device = Device()
    x, y = device.input("x", 1, 700), device.input("y", 200, 700)
    tiles = lower(device.build(device.fc("g", x, 10), device.fc("h", y, 10)), V1)
    at = np.flatnonzero(tiles.instructions["opcode"] == Opcode.READ_HOST_MEMORY)
    assert tiles.instructions["inner"][at].tolist() == [1, 1, 1, 200, 200, 200]
    assert np.diff(at[:3]).tolist() == [1, 1]
    assert (np.diff(at[3:]) > 1).all()


def test_an_input_that_is_also_an_output_is_written_back_whole() -> None:
    """Its three column blocks are read together."""
    device = Device()
    x = device.input("x", 2, 700)
    graph = device.build(device.fc("h", x, 10), x)
    _, program = compiled(graph, V1)
    assert [count for _, _, count in reads(program)] == [6]
    assert_computes(graph, program)


READ, WRITE, OTHER = Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, Opcode.INTERRUPT_HOST
LATENT = msgspec.structs.replace(TINY, name="latent", host_latency_seconds=4 * TINY.mxu / TINY.host_bandwidth)
"""Four rows take as long as the latency."""
Move = tuple[Opcode, int, int, int, int]
"""Direction, layer, host row, row of the unified buffer, rows."""


def allocated(*moves: Move, stays: tuple[Stay, ...] = ()) -> Allocation:
    code = np.zeros(len(moves), TILE_RECORD)
    for index, (opcode, layer, host, row, rows) in enumerate(moves):
        code[index]["opcode"], code[index]["layer"], code[index]["host"], code[index]["inner"] = opcode, layer, host, rows
        code[index]["ub" if opcode is WRITE else "dest"] = row
    buffers = (HostBuffer("x", "input", 0, 20), HostBuffer("y", "input", 20, 10), HostBuffer("c", "constant", 30, 10))
    return Allocation(code, stays, 0, (*buffers, HostBuffer("z", "output", 40, 20)))


def rows_of(allocation: Allocation) -> list[tuple[int, int, int]]:
    """Host row, row of the unified buffer and rows of each instruction."""
    code = allocation.instructions
    return list(zip(code["host"].tolist(), (code["ub"] + code["dest"]).tolist(), code["inner"].tolist(), strict=True))


@each(
    [
        ([(READ, 0, 0, 7, 3), (READ, 0, 3, 10, 2), (READ, 0, 5, 12, 1)], [(0, 7, 6)]),
        ([(WRITE, 0, 40, 7, 3), (WRITE, 0, 43, 10, 2)], [(40, 7, 5)]),
        ([(READ, 0, 18, 7, 2), (READ, 0, 20, 9, 2)], [(18, 7, 4)]),  # two buffers of one kind
        ([(READ, 0, 28, 7, 2), (READ, 0, 30, 9, 2)], [(28, 7, 2), (30, 9, 2)]),  # input, constant
        ([(READ, 0, 0, 7, 3), (READ, 0, 4, 10, 2)], [(0, 7, 3), (4, 10, 2)]),  # a row of the host is left out
        ([(READ, 0, 0, 7, 3), (READ, 0, 3, 11, 2)], [(0, 7, 3), (3, 11, 2)]),  # a row of the unified buffer is
        ([(WRITE, 0, 40, 7, 3), (WRITE, 0, 43, 11, 2)], [(40, 7, 3), (43, 11, 2)]),
        ([(READ, 0, 0, 7, 3), (READ, 1, 3, 10, 2)], [(0, 7, 3), (3, 10, 2)]),  # of another layer
        ([(READ, 0, 0, 7, 3), (WRITE, 0, 3, 10, 2)], [(0, 7, 3), (3, 10, 2)]),  # the other way
        ([(READ, 0, 0, 7, 3), (READ, 0, 3, 10, 3)], [(0, 7, 6)]),
        ([(READ, 0, 0, 7, 4), (READ, 0, 4, 11, 4)], [(0, 7, 4), (4, 11, 4)]),  # large enough
        ([(READ, 0, 0, 7, 3), (OTHER, 0, 0, 0, 0), (READ, 0, 3, 10, 2)], [(0, 7, 3), (0, 0, 0), (3, 10, 2)]),
        ([(OTHER, 0, 0, 0, 0), (OTHER, 0, 0, 0, 0)], [(0, 0, 0), (0, 0, 0)]),
    ]
)
def test_what_continues_a_transfer_is_done_with_it(moves: list[Move], wanted: list[tuple[int, int, int]]) -> None:
    assert LATENT.half_rate_rows == 4
    assert rows_of(join_transfers(allocated(*moves), LATENT)) == wanted


def test_stays_follow_their_instructions() -> None:
    moves = [(READ, 0, 0, 7, 3), (READ, 0, 3, 10, 2), (OTHER, 0, 0, 0, 0), (WRITE, 0, 40, 7, 1), (WRITE, 0, 41, 8, 1), (OTHER, 0, 0, 0, 0)]
    stays = tuple(Stay(number, 7 + number, first, last) for number, (first, last) in enumerate([(0, 3), (1, 4), (2, 5)]))
    found = join_transfers(allocated(*moves, stays=stays), LATENT)
    assert [(each.buffer, each.start, each.first, each.last) for each in found.stays] == [(0, 7, 0, 2), (1, 8, 0, 2), (2, 9, 1, 3)]


@each(
    [
        ([("input", 0, 3), ("input", 3, 2), ("constant", 5, 4)], [5, 5, 5, 5, 5, 9, 9, 9, 9, 9]),
        ([("constant", 5, 4), ("input", 0, 3)], [3, 3, 3, 3, 4, 9, 9, 9, 9, 9]),  # rows 3 and 4 are in no buffer
        ([("output", 2, 2), ("output", 4, 1), ("scratch", 5, 1), ("scratch", 7, 1)], [0, 1, 5, 5, 5, 6, 6, 8, 8, 9]),
        ([], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ]
)
def test_stretches_are_buffers_of_one_kind_without_a_gap(buffers: list[tuple[str, int, int]], ends: list[int]) -> None:
    host = [HostBuffer(f"{kind}{start}", kind, start, rows) for kind, start, rows in buffers]
    assert stretch_ends(host, np.arange(10)).tolist() == ends
