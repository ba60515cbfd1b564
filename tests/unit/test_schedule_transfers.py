"""Transfers that are done together: what continues what, and what that saves."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.device_graphs import V1, assert_computes, chain, compiled
from tpucc.isa.instructions import Opcode
from tpucc.isa.program import HostBuffer, Program, stretch_ends
from tpucc.target import Target

NO_LATENCY = msgspec.structs.replace(V1, name="direct", host_latency_seconds=0.0)


def reads(program: Program) -> list[tuple[int, int, int]]:
    """Host row, unified-buffer row and rows of each."""
    code = program.instructions[program.instructions["opcode"] == Opcode.READ_HOST_MEMORY]
    return list(zip(code["host"].tolist(), code["dest"].tolist(), code["inner"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("rows", "target", "wanted"),
    [
        (1, V1, [13]),  # 13 column blocks of one row: fewer than the 42 rows of a microsecond
        (5, V1, [45, 20]),  # nine blocks have 45 rows
        (41, V1, [82, 82, 82, 82, 82, 82, 41]),
        (42, V1, [42] * 13),
        (200, V1, [200] * 13),
        (1, NO_LATENCY, [1] * 13),
    ],
)
def test_small_column_blocks_are_read_together(rows: int, target: Target, wanted: list[int]) -> None:
    graph = chain(rows, 13 * 256 - 7, 300)
    _, program = compiled(graph, target)
    assert [count for _, _, count in reads(program)] == wanted
    assert_computes(graph, program)


def test_blocks_that_lie_apart_are_read_one_by_one() -> None:
    """The second part's blocks find room where they can, here not side by side."""
    graph = chain(9, 700, 300)
    _, program = compiled(graph, V1, 2)
    found = reads(program)
    assert [count for _, _, count in found] == [15, 4, 4, 4]
    assert [host for host, _, _ in found] == [0, 15, 19, 23]
    assert not any(dest == before + 4 for (_, before, _), (_, dest, _) in pairwise(found[1:]))
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


@pytest.mark.parametrize(
    ("buffers", "ends"),
    [
        ([("input", 0, 3), ("input", 3, 2), ("constant", 5, 4)], [5, 5, 5, 5, 5, 9, 9, 9, 9, 9]),
        ([("constant", 5, 4), ("input", 0, 3)], [3, 3, 3, 3, 4, 9, 9, 9, 9, 9]),  # rows 3 and 4 are in no buffer
        ([("output", 2, 2), ("output", 4, 1), ("scratch", 5, 1), ("scratch", 7, 1)], [0, 1, 5, 5, 5, 6, 6, 8, 8, 9]),
        ([], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_stretches_are_buffers_of_one_kind_without_a_gap(buffers: list[tuple[str, int, int]], ends: list[int]) -> None:
    host = [HostBuffer(f"{kind}{start}", kind, start, rows) for kind, start, rows in buffers]
    assert stretch_ends(host, np.arange(10)).tolist() == ends
