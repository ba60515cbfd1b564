"""The units that move rows: walks, the unified buffer, the way of the weights, the control of the units, the host port, the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import pytest

from tests.support.cases import each
from tpucc.machines.v1 import V1, Engine, Flag, Function, Opcode
from tpucc.sim.memories import offsets

pytestmark = pytest.mark.annex


@each([(3, 4, 7, 2), (1, 5, 0, 1), (4, 1, 3, 0), (2, 2, 1, 0), (1, 1, 0, 1)])
def test_a_walk_has_the_rows_of_the_simulator(outer: int, inner: int, pitch: int, stride: int, rtl: ModuleType) -> None:
    """And after its last step it begins anew, also with pauses in between."""
    from tpucc.rtl.walk import offset, steps

    def made(active, outer, inner, pitch, stride):  # type: ignore[no-untyped-def]
        of = steps("walk", active, outer, inner)
        return {"row": offset("walk", of, pitch, stride), "first": of.first, "ends": of.ends}

    walk = rtl.circuit({"active": 1, "outer": 16, "inner": 16, "pitch": 8, "stride": 8}, made)
    given = {"outer": outer, "inner": inner, "pitch": pitch, "stride": stride}
    wanted = offsets(outer, inner, pitch, stride).tolist()
    for pause in (0, 2):
        found = []
        for _ in wanted:
            found.append(walk.step(active=1, **given))
            for _ in range(pause):
                walk.step(active=0, **given)
        assert [each["row"] for each in found] == wanted
        assert [each["first"] for each in found] == [1, *[0] * (len(wanted) - 1)]
        assert [each["ends"] for each in found] == [*[0] * (len(wanted) - 1), 1]


def test_the_buffer_is_read_before_it_is_written(rtl: ModuleType) -> None:
    """Two units write in one cycle; what is read in that cycle is the old row."""
    buffer = rtl.unit("buffer")
    buffer.step(activation_writes=1, activation_row=3, activation_data=11, host_writes=1, host_row=4, host_data=22)
    found = buffer.step(matrix_reads=3, a_reads=4, b_reads=3, host_reads=4, activation_writes=1, activation_row=3, activation_data=33)
    assert (found["matrix_found"], found["a_found"], found["b_found"], found["host_found"]) == (11, 22, 11, 22)
    found = buffer.step(matrix_reads=3, activation_row=4, activation_data=5)
    assert (found["matrix_found"], buffer.step(a_reads=4)["a_found"]) == (33, 22)


def pushed(**fields: int) -> dict[str, int]:
    return {"push": 1, **{f"push_{name}": value for name, value in fields.items()}}


def test_a_tile_comes_in_its_time_with_its_last_row_first(rtl: ModuleType) -> None:
    """A tile of three rows in weight memory: the fourth is zero. The fetch takes eight cycles, the shift four; the next tile's shift begins
    in the cycle in which a multiply takes this one."""
    unit = rtl.unit("weights")
    for row in range(3):
        unit.step(writes=1, tile=6, row=row, data=0x04030201 + 0x10101010 * row)
    for row in range(4):
        unit.step(writes=1, tile=7, row=row, data=0x11111111 * (row + 1))
    for tile in (6, 7, 6):
        unit.step(**pushed(tile=tile))
    cycles = [unit.step(go=1, takes=int(cycle == 20)) for cycle in range(40)]
    assert [cycle for cycle, found in enumerate(cycles) if found["starts"]] == [0, 8, 16]
    assert [cycle for cycle, found in enumerate(cycles) if found["ends"]] == [7, 15, 23]
    shifted = [
        (cycle, found["shift_row"], [found[f"w_{lane}"] for lane in range(4)]) for cycle, found in enumerate(cycles) if found["shift_row"]
    ]
    first = [(8, 4, [0, 0, 0, 0]), (9, 3, [0x21, 0x22, 0x23, 0x24]), (10, 2, [0x11, 0x12, 0x13, 0x14]), (11, 1, [1, 2, 3, 4])]
    assert shifted == [*first, *((20 + i, 4 - i, [0x11 * (4 - i)] * 4) for i in range(4))]
    assert [cycle for cycle, found in enumerate(cycles) if found["full"]] == [*range(12, 21), *range(24, 40)]


def test_the_fetch_waits_for_a_place_of_the_fifo(rtl: ModuleType) -> None:
    """Two places: the fourth tile is asked for when the second has left, in the last cycle of its shift."""
    unit = rtl.unit("weights")
    for tile in range(4):
        unit.step(**pushed(tile=tile))
    cycles = [unit.step(go=1, takes=int(cycle == 40)) for cycle in range(60)]
    assert [cycle for cycle, found in enumerate(cycles) if found["starts"]] == [0, 8, 16, 44]


MULTIPLY = {"ub": 9, "ub_pitch": 0, "ub_stride": 1, "acc": 4, "outer": 1, "inner": 3}


def test_a_multiply_that_switches_waits_for_its_tile(rtl: ModuleType) -> None:
    unit = rtl.unit("matrix")
    unit.step(**pushed(**MULTIPLY, switch=1))
    unit.step(**pushed(**{**MULTIPLY, "ub": 2, "acc": 11}, accumulate=1))
    cycles = [unit.step(go=1, shadow_full=int(cycle == 5)) for cycle in range(20)]
    active = [cycle for cycle, found in enumerate(cycles) if found["active"]]
    assert active == [5, 6, 7, 8, 9, 10]
    assert [(cycles[c]["row"], cycles[c]["acc"], cycles[c]["adds"]) for c in active] == [
        *((9 + i, 4 + i, 0) for i in range(3)),
        *((2 + i, 11 + i, 1) for i in range(3)),
    ]
    assert [cycle for cycle, found in enumerate(cycles) if found["takes"]] == [5]


def test_a_multiply_is_finished_when_its_sums_are_there(rtl: ModuleType) -> None:
    """One that waits for its own unit starts 2 · lanes cycles after the end of the one before."""
    unit = rtl.unit("matrix")
    unit.step(**pushed(**MULTIPLY))
    unit.step(**pushed(**MULTIPLY, wait_matrix=1))
    cycles = [unit.step(go=1) for _ in range(20)]
    assert [cycle for cycle, found in enumerate(cycles) if found["active"]] == [0, 1, 2, 11, 12, 13]


def test_an_instruction_waits_for_each_unit_that_is_named(rtl: ModuleType) -> None:
    unit = rtl.unit("matrix")
    unit.step(**pushed(**MULTIPLY, wait_host=2, wait_activation=1))
    for given, active in (({}, 0), ({"host_finished": 2}, 0), ({"host_finished": 1, "activation_finished": 5}, 0)):
        assert unit.step(go=1, **given)["active"] == active
    assert unit.step(go=0, host_finished=2, activation_finished=1)["active"] == 0
    assert unit.step(go=1, host_finished=3, activation_finished=1)["active"] == 1


def test_a_window_is_read_before_its_row_is_written(rtl: ModuleType) -> None:
    """Two results of a window of 2 × 2 rows and their weights: eight cycles, and a write in every fourth."""
    unit = rtl.unit("activation")
    walks = {"ub": 10, "ub_stride": 2, "window_pitch": 8, "window_stride": 1, "dest": 30, "dest_stride": 3, "ub2": 20}
    counts = {"outer": 1, "inner": 2, "window_outer": 2, "window_inner": 2}
    unit.step(**pushed(function=int(Function.WEIGHTED), **walks, **counts))
    cycles = [unit.step(go=1) for _ in range(10)]
    assert [found["active"] for found in cycles] == [1] * 8 + [0] * 2
    assert [found["a"] for found in cycles[:8]] == [10, 11, 18, 19, 12, 13, 20, 21]
    assert [found["b"] for found in cycles[:8]] == [20, 21, 22, 23] * 2
    assert [(c, found["dest"]) for c, found in enumerate(cycles) if found["writes"]] == [(3, 30), (7, 33)]


def test_a_configuration_takes_a_cycle_and_writes_nothing(rtl: ModuleType) -> None:
    from tpucc.rtl.lane import CONFIGURE

    unit = rtl.unit("activation")
    once = {"outer": 1, "inner": 1, "window_outer": 1, "window_inner": 1}
    unit.step(**pushed(function=CONFIGURE, block=7, **once))
    unit.step(**pushed(function=int(Function.COPY), block=3, **once))
    first, second, third = (unit.step(go=1) for _ in range(3))
    assert (first["active"], first["writes"], second["block_in_use"]) == (1, 0, 7)
    assert (second["active"], second["writes"], third["block_in_use"]) == (1, 1, 7)


@each([(1, 0), (3, 0), (2, 5)])
def test_a_row_crosses_the_link_in_its_time(row_cycles: int, latency: int, rtl: ModuleType) -> None:
    """A transfer to the buffer and back to host memory, on links of different rates and latencies."""
    from tpucc.rtl.host import Transfer

    shape = replace(rtl.SHAPE, row_cycles=row_cycles, latency_cycles=latency)
    unit = rtl.unit("host", {"host_memory": {row: 100 + row for row in range(8)}}, shape)
    unit.step(**pushed(kind=Transfer.READ, host=2, row=40, inner=3))
    unit.step(**pushed(kind=Transfer.WRITE, host=6, row=41, inner=2))
    cycles = [unit.step(go=1) for _ in range(40)]
    first, second = latency + 3 * row_cycles, latency + 2 * row_cycles
    assert [cycle for cycle, found in enumerate(cycles) if found["ends"]] == [first - 1, first + second - 1]
    moved = [(c, f["to_host_row"], f["to_host_data"]) for c, f in enumerate(cycles) if f["to_host"]]
    assert moved == [(first + latency + row_cycles - 1, 6, 103), (first + latency + 2 * row_cycles - 1, 7, 104)]


def test_an_interrupt_lasts_as_long_as_the_host_works(rtl: ModuleType) -> None:
    from tpucc.rtl.host import Transfer

    unit = rtl.unit("host", {"host_step_cycles": {0: 4, 1: 1}})
    for step in range(2):
        unit.step(**pushed(kind=Transfer.INTERRUPT, index=step, inner=1))
    cycles = [unit.step(go=1) for _ in range(8)]
    assert [found["interrupt"] for found in cycles] == [1] * 5 + [0] * 3
    assert [cycle for cycle, found in enumerate(cycles) if found["ends"]] == [3, 4]


def decoded(unit: object, opcode: Opcode, flags: int = 0, **fields: int) -> Mapping[str, int]:
    """The outputs of the decoder in the cycle after a record."""
    record = int.from_bytes(V1.record(opcode, flags, **fields).tobytes(), "little")
    unit.step(record=record, valid=1, steps=1)  # type: ignore[attr-defined]
    return unit.step(go=1, steps=1)  # type: ignore[attr-defined,no-any-return]


def test_records_become_the_words_of_queues(rtl: ModuleType) -> None:
    """Each mnemonic in a decoder of its own: the unit that gets it, and fields that aren't those of the record."""
    from tpucc.rtl.host import Transfer
    from tpucc.rtl.lane import ACTIVATE, CONFIGURE

    pool = {"ub_pitch": 9, "ub2_pitch": 4, "ub2_stride": 2, "dest": 5, "outer": 2, "window_outer": 2, "window_inner": 3}
    cases = [
        (Opcode.READ_HOST_MEMORY, 0, {"host": 300, "dest": 7, "inner": 2}, Engine.HOST, {"kind": Transfer.READ, "row": 7, "host": 300}),
        (Opcode.WRITE_HOST_MEMORY, 0, {"host": 3, "ub": 8, "inner": 2}, Engine.HOST, {"kind": Transfer.WRITE, "row": 8, "inner": 2}),
        (Opcode.WRITE_WEIGHTS, 0, {"host": 3, "index": 9, "inner": 2}, Engine.HOST, {"kind": Transfer.WEIGHTS, "index": 9}),
        (Opcode.INTERRUPT_HOST, 0, {"index": 0}, Engine.HOST, {"kind": Transfer.INTERRUPT, "inner": 1}),
        (Opcode.READ_WEIGHTS, 0, {"index": 5}, Engine.WEIGHTS, {"tile": 5}),
        (
            Opcode.MATRIX_MULTIPLY,
            Flag.SWITCH,
            {"ub": 4, "acc": 2, "inner": 6},
            Engine.MATRIX,
            {"ub_stride": 1, "switch": 1, "accumulate": 0},
        ),
        (
            Opcode.CONVOLVE,
            Flag.ACCUMULATE | Flag.UNSIGNED,
            {"ub": 4, "ub_stride": 3, "ub_pitch": 5, "acc": 2, "outer": 2, "inner": 6},
            Engine.MATRIX,
            {"ub_stride": 3, "ub_pitch": 5, "switch": 0, "accumulate": 1, "unsigned": 1, "outer": 2},
        ),
        (Opcode.ACTIVATE, 0, {"acc": 3, "dest": 6, "inner": 4}, Engine.ACTIVATION, {"function": ACTIVATE, "window_inner": 1, "inner": 4}),
        (Opcode.SET_CONFIGURATION, 0, {"index": 9}, Engine.ACTIVATION, {"function": CONFIGURE, "block": 9, "outer": 1, "inner": 1}),
        (
            Opcode.VECTOR,
            Flag.SPLAT2,
            {"function": Function.ADD, "ub": 1, "ub2": 2, "ub2_stride": 3, "dest": 5, "inner": 6},
            Engine.ACTIVATION,
            {"function": Function.ADD, "splat": 0, "splat2": 1, "ub2_stride": 3, "window_outer": 1},
        ),
        (
            Opcode.POOL,
            0,
            {"function": Function.MAX, "ub": 1, "inner": 6, **pool},
            Engine.ACTIVATION,
            {"window_pitch": 4, "window_stride": 2, "window_outer": 2, "window_inner": 3, "window": 0},
        ),
    ]
    for opcode, flags, fields, engine, wanted in cases:
        found = decoded(rtl.unit("decoder"), opcode, flags, **fields)
        assert [unit for unit in Engine if found.get(f"{unit}_ready")] == [engine], opcode
        assert {name: found[f"{engine}_{name}"] for name in wanted} == wanted, opcode


def test_synchronisations_are_counts_beside_the_next_instruction(rtl: ModuleType) -> None:
    """Two tiles are asked for; then the matrix unit waits for the weights, and what is asked for later doesn't count."""
    unit = rtl.unit("decoder")
    for tile in range(2):
        decoded(unit, Opcode.READ_WEIGHTS, index=tile)
    decoded(unit, Opcode.SYNCHRONIZE, index=Engine.MATRIX, engines=1 << Engine.WEIGHTS)
    decoded(unit, Opcode.READ_WEIGHTS, index=2)
    found = decoded(unit, Opcode.MATRIX_MULTIPLY, ub=0, acc=0, inner=1)
    waits = {other: found[f"matrix_wait_{other}"] for other in Engine if other is not Engine.CONTROL}
    assert waits == {Engine.HOST: 0, Engine.WEIGHTS: 2, Engine.MATRIX: 0, Engine.ACTIVATION: 0}
    assert [unit.step(go=1, weights_finished=count)["matrix_ready"] for count in (1, 2)] == [0, 1]


def test_all_units_wait_for_the_host(rtl: ModuleType) -> None:
    unit = rtl.unit("decoder")
    decoded(unit, Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=1)
    decoded(unit, Opcode.SYNCHRONIZE_HOST)
    decoded(unit, Opcode.READ_WEIGHTS, index=0)
    found = decoded(unit, Opcode.SET_CONFIGURATION, index=0)
    assert (found["weights_wait_host"], found["activation_wait_host"], found["host_wait_host"]) == (1, 1, 0)


def test_the_end_is_when_all_that_was_decoded_has_finished(rtl: ModuleType) -> None:
    """The last interrupt, which says so, waits in no queue."""
    unit = rtl.unit("decoder")
    decoded(unit, Opcode.READ_WEIGHTS, index=0)
    assert decoded(unit, Opcode.INTERRUPT_HOST, index=1)["host_ready"] == 0
    assert unit.step(weights_finished=1)["finished"] == 0
    decoded(unit, Opcode.HALT)
    assert [unit.step(weights_finished=count)["finished"] for count in (0, 1)] == [0, 1]
