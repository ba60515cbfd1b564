"""Waits: enough for the verifier, none too many, and where they hold up nothing."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import one_of
from tests.support.device_graphs import TINY, V1, Device, chain, compiled, lstm
from tests.support.examples import examples
from tpucc.ir import Graph
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.machines.v1 import V1 as MACHINE
from tpucc.machines.v1 import Engine, Opcode
from tpucc.schedule.hazards import conflicts


def broadcast() -> Graph:
    device = Device()
    a = device.input("a", 2, 1, 3, 1, 5)
    y = device.vector("y", "subtract", a, device.constant("b", 1, 2, 1, 3, 1))
    return device.build(device.fc("z", y, 6))


SMALL = msgspec.structs.replace(TINY, name="small", unified_buffer_rows=90)
CASES = {
    "one layer": (chain(8, 9, 7), TINY, None),
    "layers": (chain(16, 9, 7, 13), TINY, None),
    "row groups": (chain(33, 9, 7), SMALL, 1),
    "split": (chain(33, 5, 6, 7), TINY, 3),
    "spilled": (chain(8, 40, 40), TINY, None),
    "lstm": (lstm(2, 3, 5, 6), TINY, None),
    "walks": (broadcast(), SMALL, None),
    "wide": (chain(200, 600, 600, 600), V1, None),
}


def weakened(program: Program) -> list[Program]:
    """The program without one of its waits, or one of the engines of a wait, for each of them."""
    found = []
    for index in np.flatnonzero(program.instructions["opcode"] == Opcode.SYNCHRONIZE).tolist():
        mask = int(program.instructions["engines"][index])
        for engine in (engine for engine in Engine if mask >> engine & 1):
            code = program.instructions.copy()
            code["engines"][index] = mask & ~(1 << engine)
            if not code["engines"][index]:
                code[index] = 0
            found.append(replace(program, instructions=code))
    return found


@pytest.mark.parametrize("name", one_of(2, CASES))
def test_every_wait_is_needed(name: str) -> None:
    graph, target, parts = CASES[name]
    _, program = compiled(graph, target, parts)
    changed = weakened(program)
    assert changed
    step = -(-len(changed) // 60)
    for less in changed[::step]:
        assert any(violation.code.startswith("V08") for violation in verify(less))


@examples(5, 300)
@given(rows=st.integers(1, 20), widths=st.lists(st.integers(1, 9), min_size=2, max_size=4), parts=st.integers(1, 3))
def test_waits_of_random_programs_are_needed(rows: int, widths: list[int], parts: int) -> None:
    _, program = compiled(chain(rows, *widths), SMALL, min(parts, rows))
    weaker = weakened(program)
    assert weaker
    for changed in weaker:
        assert verify(changed) != ()


def test_conflicts_against_row_by_row_counting() -> None:
    """The vectorised answer equals a loop over instructions and rows that remembers who touched each row last."""
    for graph, target, parts in CASES.values():
        _, program = compiled(graph, target, parts)
        records = program.instructions[:1500]
        touched = effects(records)
        expected = np.full((len(records), len(Engine)), -1)
        writes: dict[tuple[str, int], dict[int, int]] = {}
        uses: dict[tuple[str, int], dict[int, int]] = {}
        for index in range(len(records)):
            engine = int(MACHINE.engine_of[records["opcode"][index]])
            read = [("ub", row) for walks in (touched.source, touched.source2) for row in walks.rows(index).tolist()]
            written = [("ub", row) for row in touched.target.rows(index).tolist()]
            sums = [("acc", row) for row in range(int(touched.sums.low[index]), int(touched.sums.high[index]))]
            (written if touched.sums.writes[index] else read).extend(sums)
            for rows, before in ((read, writes), (written, uses)):
                for place in rows:
                    for other, last in before.get(place, {}).items():
                        if other != engine:
                            expected[index, other] = max(expected[index, other], last)
            for place in (*read, *written):
                uses.setdefault(place, {})[engine] = index
            for place in written:
                writes.setdefault(place, {})[engine] = index
        np.testing.assert_array_equal(conflicts(touched), expected)


def test_the_next_product_starts_before_the_last_is_activated() -> None:
    """Double buffering: no wait of the matrix unit stands between an activation and the product after it, in either order."""
    _, program = compiled(chain(200, 1000, 1000), V1)
    code = program.instructions
    waits = np.flatnonzero((code["opcode"] == Opcode.SYNCHRONIZE) & (code["index"] == Engine.MATRIX))
    assert all(code["engines"][index] == 1 << Engine.HOST for index in waits), "the matrix unit waits for input only"


def test_a_wait_follows_what_it_waits_for() -> None:
    """Between the instruction waited for and the wait stands nothing of the awaited engine that need not be awaited."""
    _, program = compiled(chain(16, 9, 7, 13), TINY)
    code = program.instructions
    engine = MACHINE.engine_of[code["opcode"]]
    for index in np.flatnonzero(code["opcode"] == Opcode.SYNCHRONIZE).tolist():
        before = engine[index - 1] if index else Engine.CONTROL
        follows_awaited = bool(int(code["engines"][index]) >> before & 1)
        follows_waiting = before == code["index"][index]
        assert follows_awaited or follows_waiting or code["opcode"][index - 1] in (Opcode.SYNCHRONIZE, Opcode.READ_WEIGHTS)
