"""The estimate of cycles: what it says of a row is what the clock says of an instruction, and both ask the machine's table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import TINY, V1, Device, compiled
from tpucc.isa.effects import effects
from tpucc.lowering import cost
from tpucc.lowering.blocking import choose_blocking
from tpucc.lowering.cost import costs_on
from tpucc.machines.v1 import V1 as MACHINE
from tpucc.machines.v1 import Opcode
from tpucc.sim.timing import instruction_cycles
from tpucc.target import Target


@each([TINY, V1])
def test_rows_cost_what_the_clock_says(target: Target) -> None:
    device = Device()
    h = device.fc("h", device.input("x", 30, 9), 6)
    _, program = compiled(device.build(device.vector("y", "add", h, h)), target)
    touched, costs = effects(program.instructions), costs_on(target)
    cycles = instruction_cycles(program, touched)
    for opcode, row in (
        (Opcode.MATRIX_MULTIPLY, costs.multiply),
        (Opcode.ACTIVATE, costs.activate),
        (Opcode.VECTOR, costs.vector),
    ):
        own = program.instructions["opcode"] == opcode
        assert own.any()
        assert np.array_equal(cycles[own], row * touched.rows[own])
    assert set(cycles[touched.pushes].tolist()) == {target.tile_fetch_cycles}
    assert costs.fetch == max(target.tile_fetch_cycles, target.tile_shift_cycles)
    reads = touched.host_reads & (touched.rows == touched.rows[touched.host_reads].max())
    assert costs.transfer(int(touched.rows[reads][0])) >= cycles[reads].max()


def test_a_slower_instruction_of_the_table_changes_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """An activation unit of a tenth of the speed: a product costs more, for its last rows drain longer."""
    spec = MACHINE.by_opcode[Opcode.ACTIVATE]

    def slow(work: Any) -> Any:
        return 10 * work.rows

    rows = {**MACHINE.by_opcode, Opcode.ACTIVATE.value: replace(spec, cycles=slow)}
    usual = choose_blocking((5000,), 3, 2, V1).cycles
    monkeypatch.setattr(cost, "V1", replace(MACHINE, instructions=tuple(rows.values())))
    try:
        costs_on.cache_clear()
        choose_blocking.cache_clear()
        assert costs_on(V1).drain(7) == V1.pipeline_cycles + 70
        assert choose_blocking((5000,), 3, 2, V1).cycles > usual
    finally:
        costs_on.cache_clear()
        choose_blocking.cache_clear()
