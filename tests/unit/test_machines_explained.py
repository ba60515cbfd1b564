"""What explains a program's time knows a machine only as its rows: other machines than v1 have no sums, and units of their own."""

from __future__ import annotations

from tests.unit.test_machines import PAIR, SUM, TOY, TWO
from tpucc.explain.occupancy import sums_in_use
from tpucc.explain.segments import matrix_segments
from tpucc.explain.waiting import waiting
from tpucc.isa.assembler import assemble
from tpucc.sim.timing import time_program


def test_a_machine_without_a_memory_of_sums_has_none_in_use() -> None:
    program = assemble(PAIR, "pair.asm", machine=TOY)
    times = time_program(program)
    assert matrix_segments(program, times).cause.tolist() == [0]
    assert [len(column) for column in sums_in_use(program, times.start, times.end)] == [0, 0]


def test_two_units_that_wait_for_each_other() -> None:
    program = assemble(SUM, "sum.asm", machine=TWO)
    found = waiting(program, time_program(program))
    assert [found[i].words for i in range(len(found.unit))] == [
        "the adder, whose instruction 2 ends in cycle 6",
        "the mover, whose instruction 0 ends in cycle 2",
    ]
