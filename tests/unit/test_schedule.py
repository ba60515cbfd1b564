"""Scheduling: addresses, accumulators, prefetch and spills, checked by the verifier, the machine and independent counting."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tpucc
from tests.support.cases import each
from tests.support.device_graphs import TINY, V1, Device, assert_computes, chain, compiled, lstm
from tests.support.examples import examples
from tests.support.loop_orders import scheduled
from tests.support.reports import PROGRAMS
from tpucc.diagnostics import LimitError
from tpucc.ir import Graph
from tpucc.isa.container import encode
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.lowering.layout import BufferLayout
from tpucc.lowering.lower import lower
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.lowering.tiletext import read_tiles
from tpucc.machines.v1 import V1 as MACHINE
from tpucc.machines.v1 import Engine, Flag, Opcode
from tpucc.numerics import Int64
from tpucc.schedule import schedule
from tpucc.schedule.allocate import Lives
from tpucc.schedule.allocate_accumulators import allocate_accumulators
from tpucc.schedule.listing import Listing, blank
from tpucc.schedule.pipeline import with_end
from tpucc.sim.interpret import Interpreter
from tpucc.target import Target


def machine(**changes: int) -> Target:
    return msgspec.structs.replace(TINY, name="small", **changes)


def assert_stays_apart(program: Program) -> None:
    """Paints the stays, instruction by row: nothing overlaps, and the peak is what the program says."""
    painted = np.zeros((len(program.instructions), program.target.unified_buffer_rows), np.int8)
    for stay in program.residents:
        painted[stay.first : stay.last + 1, stay.start : stay.start + stay.rows] += 1
    assert painted.max(initial=0) <= 1
    alive = painted.sum(axis=1, dtype=np.int64)
    assert program.lower_bound_rows == alive.max(initial=0) <= program.peak_rows <= program.target.unified_buffer_rows


def test_the_one_tile_program() -> None:
    _, program = compiled(chain(8, 256, 256), V1)
    opcodes = [Opcode(code).mnemonic for code in program.instructions["opcode"]]
    assert opcodes == [
        *("read_weights", "read_host_memory", "synchronize", "matrix_multiply", "set_configuration", "synchronize", "activate"),
        *("synchronize", "write_host_memory", "interrupt_host", "halt"),
    ]
    assert program.peak_rows == program.lower_bound_rows == 8


@each(product([chain(9, 9, 7, 13), lstm(2, 3, 5, 6), chain(40, 5, 3)], [16, 48, 100]))
def test_stays_do_not_overlap_and_the_lower_bound_holds(graph: Graph, rows: int) -> None:
    tiles, program = compiled(graph, machine(unified_buffer_rows=rows))
    assert_stays_apart(program)
    assert {stay.name for stay in program.residents} <= {buffer.name for buffer in tiles.buffers}
    assert_computes(graph, program)


def test_rows_in_transfer_are_used_again_late() -> None:
    """With room to spare, activation never waits for the host to take the last block away."""
    _, program = compiled(chain(2048, 1024, 1024), V1)
    code = program.instructions
    waits = code[(code["opcode"] == Opcode.SYNCHRONIZE) & (code["index"] == Engine.ACTIVATION)]
    assert len(waits)
    assert not (waits["engines"] & 1 << Engine.HOST).any()


def test_kernels_do_not_wait_for_the_rows_of_earlier_ones(any_ranges: None) -> None:
    """The vector unit's kernels come while the layer before is computed: a network takes no longer than with rows of its own for each."""

    def apart(lives: Lives, rows: int) -> Int64:
        return np.cumsum(lives.rows) - lives.rows

    path = PROGRAMS / "gallery" / "mlperf_ds_cnn.tpu"
    default, unshared = tpucc.compile(path), tpucc.compile(path, stages=tpucc.Stages(allocate=apart))
    assert default.stats["cycles"] == unshared.stats["cycles"]
    assert default.stats["ub_peak_bytes"] < unshared.stats["ub_peak_bytes"]


def test_accumulators_are_used_in_turn() -> None:
    tiles = lower(chain(8, 9, 13), machine(accumulator_rows=20, unified_buffer_rows=200))
    assert allocate_accumulators(tiles).tolist() == [0, 8, 0, 8]
    tiles = lower(chain(8, 9, 13), machine(accumulator_rows=33, unified_buffer_rows=200))
    assert allocate_accumulators(tiles).tolist() == [0, 8, 16, 24]


@each(
    [
        (24, [0, 4, 8, 12, 16, 20]),
        (20, [0, 4, 8, 12, 16, 0]),
        (16, [0, 4, 8, 12, 0, 4]),
        (15, [0, 4, 8, 0, 4, 8]),
        (12, [0, 4, 8, 0, 4, 8]),
    ]
)
def test_accumulators_go_on_at_the_first_row(room: int, starts: list[int]) -> None:
    """Chunks that just became free are used last, so that activate has the time of all others."""
    tiles = lower(chain(12, 8, 8), machine(accumulator_rows=room, unified_buffer_rows=200))
    order = tuple((n, k, chunk) for n in range(2) for k in range(2) for chunk in [(0, 4), (4, 4), (8, 4)])
    program = scheduled(tiles, [order])
    assert program is not None
    assert verify(program) == ()
    code = program.instructions
    assert code["acc"][code["opcode"] == Opcode.ACTIVATE].tolist() == starts


def test_accumulators_that_cannot_hold_a_sum() -> None:
    tiles = lower(chain(8, 9, 13), TINY)
    with pytest.raises(LimitError) as error:
        schedule(replace(tiles, target=machine(accumulator_rows=7)))
    assert error.value.diagnostics[0].code == "E0623"


def test_groups_that_do_not_fit_side_by_side_take_what_is_free() -> None:
    """Three groups whose lives form a chain: the third takes the rows of the first."""
    tiles = lower(chain(8, 4, 12), machine(accumulator_rows=16, unified_buffer_rows=200))
    code = tiles.instructions
    multiplies, activates = np.flatnonzero(code["group"] >= 0)[::2], np.flatnonzero(code["group"] >= 0)[1::2]
    assert len(multiplies) == len(activates) == 3
    order = [*range(multiplies[0] + 1), multiplies[1], activates[0] - 1, activates[0], multiplies[2], activates[1] - 1, activates[1]]
    rest = [index for index in range(len(code)) if index not in order]
    starts = allocate_accumulators(replace(tiles, instructions=code[order + rest]))
    assert sorted(starts.tolist()) == [0, 0, 8]


@pytest.mark.parametrize(("sizes", "room", "starts"), [((4, 7, 7, 4), 21, [0, 4, 11, 0]), ((3, 7, 7, 4), 20, [0, 0, 7, 14])])
def test_groups_that_live_together_never_meet(sizes: tuple[int, ...], room: int, starts: list[int]) -> None:
    """After one group come three that live together, the last of which doesn't fit behind the others: it goes to row 0 if it ends where the
    three began, or before. Where it would go further, the three begin at row 0."""
    tiles = lower(chain(8, 4, 16), machine(accumulator_rows=room, unified_buffer_rows=200))
    code = tiles.instructions
    (_, m1, m2, m3), (a0, a1, a2, _) = np.flatnonzero(code["group"] >= 0).reshape(4, 2).T.tolist()
    order = [*range(a0 + 1), m1, m2, a1 - 1, a1, m3, a2 - 1, a2]
    rest = [index for index in range(len(code)) if index not in order]
    assert allocate_accumulators(replace(tiles, instructions=code[order + rest], groups=sizes)).tolist() == starts


def groups_placed(room: int, cohorts: list[list[int]]) -> list[list[int]]:
    """The places of groups of such sizes: those of a cohort live together, cohorts one after the other."""
    numbers = np.split(np.arange(sum(map(len, cohorts))), np.cumsum([len(sizes) for sizes in cohorts])[:-1])
    order = np.concatenate([np.tile(group, 2) for group in numbers])
    code = np.zeros(len(order), TILE_RECORD)
    code["group"] = order
    tiles = lower(chain(8, 4, 4), machine(accumulator_rows=room))
    starts = allocate_accumulators(replace(tiles, instructions=code, groups=tuple(size for sizes in cohorts for size in sizes)))
    return [starts[group].tolist() for group in numbers]


@given(room=st.integers(12, 24), cohorts=st.lists(st.lists(st.integers(1, 8), min_size=1, max_size=6), min_size=1, max_size=5))
def test_groups_that_live_together_have_rows_of_their_own(room: int, cohorts: list[list[int]]) -> None:
    """Cohorts of any sizes that fit, one after the other, so that the ring closes in every way."""
    cohorts = [sizes for sizes in cohorts if sum(sizes) <= room]
    for starts, sizes in zip(groups_placed(room, cohorts), cohorts, strict=True) if cohorts else ():
        rows = [row for start, size in zip(starts, sizes, strict=True) for row in range(start, start + size)]
        assert len(set(rows)) == len(rows)
        assert max(rows) < room


def test_the_next_groups_begin_where_the_last_one_ended() -> None:
    """Past the end of the accumulators that is near their beginning."""
    assert groups_placed(12, [[5], [5, 4], [3], [5], [4]]) == [[0], [5, 0], [4], [7], [0]]
    assert groups_placed(12, [[5], [3, 9], [2]]) == [[0], [0, 3], [0]]


def test_weights_are_asked_for_as_early_as_the_fifo_allows() -> None:
    _, program = compiled(chain(3, 9, 13, 9), machine(weight_fifo_tiles=3, unified_buffer_rows=200))
    code = program.instructions
    reads = np.cumsum(code["opcode"] == Opcode.READ_WEIGHTS)
    switches = np.cumsum((code["opcode"] == Opcode.MATRIX_MULTIPLY) & ((code["flags"] & Flag.SWITCH) != 0))
    multiplies = np.flatnonzero(code["opcode"] == Opcode.MATRIX_MULTIPLY)
    outstanding = (reads - switches)[multiplies - 1]
    before_switch = outstanding[: len(multiplies) - 2]
    assert (before_switch == 3).all()
    assert reads[-1] == switches[-1] == 3 * 4 + 4 * 3


def test_the_tile_in_use_is_not_fetched_again() -> None:
    device = Device()
    weights = device.weights("w", 4, 4)
    h = device.input("x", 6, 4)
    for number in range(4):
        h = device.fc(f"h{number}", h, 4, weights=weights)
    _, program = compiled(device.build(h), TINY)
    assert (program.instructions["opcode"] == Opcode.READ_WEIGHTS).sum() == 1
    assert_computes(device.build(h), program)


@pytest.mark.soak
def test_hello_on_the_tiny_machine_drops_and_reads_again() -> None:
    graph = chain(8, 256, 256)
    _, program = compiled(graph, TINY)
    assert_computes(graph, program)
    assert_stays_apart(program)
    assert program.notes[-1].startswith("0 rows were spilled to host memory and ")
    assert not [buffer for buffer in program.host if buffer.kind == "scratch"]
    assert len({(stay.name, stay.first) for stay in program.residents}) > 128


@pytest.mark.long
def test_iris_on_the_tiny_machine_is_split_and_spilled() -> None:
    graph = chain(150, 4, 256, 3)
    tiles, program = compiled(graph, TINY)
    assert len(tiles.inputs[0].splits) == 13
    assert_computes(graph, program)
    scratch = [buffer for buffer in program.host if buffer.kind == "scratch"]
    written = program.instructions[program.instructions["opcode"] == Opcode.WRITE_HOST_MEMORY]
    to_scratch = [row["inner"] for row in written if row["host"] >= scratch[0].start]
    assert sum(to_scratch) == sum(buffer.rows for buffer in scratch)
    assert f"{sum(to_scratch):,} rows were spilled" in program.notes[-1]
    assert_reads_are_used(program)


def assert_reads_are_used(program: Program) -> None:
    """No stay of a buffer is only read from host memory: it would leave before its use, and be read again."""
    only_read = [stay for stay in program.residents if stay.first == stay.last]
    assert not [stay for stay in only_read if program.instructions["opcode"][stay.first] == Opcode.READ_HOST_MEMORY]


@each([36, 44, 52])
def test_what_leaves_before_its_use_is_not_read(room: int) -> None:
    """The program reads both inputs first, as parts that follow each other do, and the layers of one need the room of the other."""
    device = Device()
    a, b = device.input("a", 12, 4), device.input("b", 12, 4)
    h = device.fc("f1", device.fc("f0", a, 12), 4)
    graph = device.build(device.vector("sum", "add", h, b))
    tiles = lower(graph, machine(unified_buffer_rows=room), parts=1)
    reads = tiles.instructions["opcode"] == Opcode.READ_HOST_MEMORY
    program = schedule(replace(tiles, instructions=tiles.instructions[np.argsort(~reads, kind="stable")]))
    assert verify(program) == ()
    assert_computes(graph, program)
    assert_stays_apart(program)
    assert_reads_are_used(program)
    assert f" and {0 if room > 44 else 12} read again" in program.notes[-1]


REWRITTEN = """.target tiny
.input x 8x4
.output y 8x4
.output z 8x4
.buffer x.0 rows=8 home=x.0
.buffer y.0 rows=8
.buffer z.0 rows=8
.groups [8]
.tile
| 1 2 0 0
| 0 1 0 3
| 2 0 1 0
| 0 0 3 1
.block multiplier=0.5
    set_configuration block=0
    read_host_memory host=x.0 ub=x.0 rows=8
    matrix_multiply ub=x.0 acc=g0 rows={first} tile=0, switch
    activate acc=g0 ub=y.0 inner={first}
    matrix_multiply ub=x.0 acc=g0 rows=8 tile=0, switch
    activate acc=g0 ub=z.0 inner=8
    matrix_multiply ub=x.0 acc=g0 rows=8 tile=0, switch
    activate acc=g0 ub=z.0 inner=8
    matrix_multiply ub=z.0 acc=g0 rows={rows} tile=0, switch
    activate acc=g0 ub=y.0+{begin} inner={rows}
    matrix_multiply ub=x.0 acc=g0 rows=8 tile=0, switch
    activate acc=g0 ub=z.0 inner=8
    matrix_multiply ub=x.0 acc=g0 rows=8 tile=0, switch
    activate acc=g0 ub=z.0 inner=8
    write_host_memory ub=z.0 host=z.0 rows=8
    write_host_memory ub=y.0 host=y.0 rows=8
"""
"""Between the writes and the read of `y`, `x` and `z` are used twice each: in sixteen rows `y` leaves after each write."""


@pytest.mark.parametrize(("first", "begin", "rows"), [(8, 0, 8), (8, 2, 3), (4, 2, 6), (4, 4, 4)])
def test_what_is_written_again_after_a_spill_is_spilled_again(first: int, begin: int, rows: int) -> None:
    """Host memory has the rows of before: of all, of some, or of others than those that are written then."""
    tiles, _ = read_tiles(REWRITTEN.format(first=first, begin=begin, rows=rows), "hand.tile")
    inputs = {"x": np.random.default_rng(3).integers(-20, 20, (8, 4), np.int8)}
    expected = Interpreter(schedule(tiles)).run(inputs)
    program = schedule(replace(tiles, target=machine(unified_buffer_rows=16)))
    assert verify(program) == ()
    (scratch,) = (buffer for buffer in program.host if buffer.name == "scratch:y.0")
    written = program.instructions[program.instructions["opcode"] == Opcode.WRITE_HOST_MEMORY]
    spilled = written[(written["host"] >= scratch.start) & (written["host"] < scratch.start + scratch.rows)]
    assert spilled["inner"].tolist() == [first, rows]
    found = Interpreter(program).run(inputs)
    assert [found[name].tobytes() for name in "yz"] == [expected[name].tobytes() for name in "yz"]


@pytest.mark.long
@examples(25, 1_000)
@given(
    rows=st.integers(1, 12),
    widths=st.lists(st.integers(1, 20), min_size=2, max_size=4),
    room=st.integers(36, 60),
    accumulators=st.integers(2, 20),
    seed=st.integers(0, 99),
)
def test_spilled_programs_compute_the_same(rows: int, widths: list[int], room: int, accumulators: int, seed: int) -> None:
    """Residual chains keep early tensors alive; few accumulators make row groups, whose blocks are spilled half written."""
    device = Device("residual", seed)
    h = device.input("x", rows, widths[0])
    for number, width in enumerate(widths[1:]):
        wide = device.fc(f"a{number}", h, width)
        back = device.vector(f"v{number}", "add", device.fc(f"b{number}", wide, width), wide)
        h = device.vector(f"u{number}", "multiply", back, device.constant(f"c{number}", 1, width))
    graph = device.build(h, "a0")
    _, program = compiled(graph, machine(unified_buffer_rows=room, accumulator_rows=accumulators), parts=1)
    assert_computes(graph, program, seed)
    assert_stays_apart(program)
    assert_reads_are_used(program)


@each([("sum", "sum"), ("sum.1", "sum"), ("sum.band.2", "a band of lines of sum"), ("stage4.sum.1", "stage4.sum")])
def test_operands_that_do_not_fit_by_themselves(name: str, words: str) -> None:
    device = Device()
    graph = device.build(device.vector(name, "add", device.input("a", 1, 5, 6, 4), device.input("b", 6, 4)))
    with pytest.raises(LimitError) as error:
        compiled(graph, TINY)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "E0621"
    assert diagnostic.message == f"{words} works on 66 rows at once, 18 more than the unified buffer of 48 has"
    assert diagnostic.labels[0].span.line == 3
    assert "batch" in diagnostic.help[0]


def test_what_takes_the_most_rows_is_named_and_with_it_what_does_not_fit_either() -> None:
    device = Device()
    a = device.input("a", 1, 18, 4)
    h = device.vector("first", "add", a, device.constant("c", 18, 4))
    wide = device.vector("wide", "add", device.input("b", 1, 20, 4), device.constant("d", 20, 4))
    with pytest.raises(LimitError) as error:
        compiled(device.build(device.vector("last", "add", h, a), wide), TINY)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.message == "wide works on 60 rows at once, 12 more than the unified buffer of 48 has"
    assert diagnostic.help[0] == "first and last take too many rows, too"


def test_operands_that_do_not_fit_are_refused_before_constants_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may take gigabytes."""
    monkeypatch.setattr(BufferLayout, "constants", lambda layout: pytest.fail("packed"))
    device = Device()
    graph = device.build(device.vector("sum", "add", device.input("a", 1, 60, 4), device.constant("c", 60, 4)))
    with pytest.raises(LimitError, match="sum works on 180 rows at once, 132 more"):
        lower(graph, TINY)


def test_operands_that_do_not_fit_are_taken_item_by_item() -> None:
    """5 items of 6 rows, and 6 rows that all share: 66 rows in 48."""
    device = Device()
    graph = device.build(device.vector("sum", "add", device.input("a", 5, 6, 4), device.input("b", 6, 4)))
    tiles, program = compiled(graph, TINY)
    assert [port.splits for port in tiles.inputs] == [(18, 12), (6,)]
    assert_computes(graph, program)
    assert_stays_apart(program)


def test_operands_that_just_fit_are_moved_together() -> None:
    """30 + 6 + 30 rows in 66: whatever lies between them must go, the operands themselves if need be."""
    device = Device()
    a, b = device.input("a", 5, 6, 4), device.input("b", 6, 4)
    first = device.vector("first", "add", a, b)
    graph = device.build(device.vector("second", "multiply", first, b), device.vector("third", "subtract", first, a))
    for room in (90, 91, 95):
        _, program = compiled(graph, machine(unified_buffer_rows=room))
        assert_computes(graph, program)
        assert_stays_apart(program)


def test_the_same_program_every_time() -> None:
    graph = lstm(3, 9, 5, 6)
    first, second = (encode(schedule(lower(graph, TINY))) for _ in range(2))
    assert first == second


def test_the_host_s_part_is_left_to_the_driver() -> None:
    tiles, program = compiled(chain(8, 9, 7), TINY)
    assert (program.prologue, program.epilogue, program.source_text) == ("", "", "")
    assert (program.name, program.source, program.layers, program.inputs) == (tiles.name, tiles.source, tiles.layers, tiles.inputs)
    assert len(program.layer_of) == len(program.instructions)


def test_engines_have_their_instructions_in_the_order_of_the_tile_program() -> None:
    tiles, program = compiled(chain(9, 9, 7, 5), TINY)
    scheduled = program.instructions[:-2]
    for engine in (Engine.MATRIX, Engine.ACTIVATION, Engine.HOST):
        own = scheduled[MACHINE.engine_of[scheduled["opcode"]] == engine]
        theirs = tiles.instructions[MACHINE.engine_of[tiles.instructions["opcode"]] == engine]
        np.testing.assert_array_equal(own["opcode"], theirs["opcode"])
        np.testing.assert_array_equal(own["inner"], theirs["inner"])


@pytest.mark.long
def test_a_long_lstm() -> None:
    graph = lstm(60, 8, 32, 100)
    program = schedule(lower(graph, V1))
    assert len(program.instructions) > 2_500
    assert verify(program) == ()
    assert_computes(graph, program)


@pytest.mark.soak
def test_fifty_thousand_instructions() -> None:
    device = Device()
    weights = device.weights("w", 2000, 2000)
    h = device.input("x", 200, 2000)
    for number in range(350):
        h = device.fc(f"h{number}", h, 2000, weights=weights)
    graph = device.build(h)
    program = schedule(lower(graph, V1))
    assert len(program.instructions) > 50_000
    assert verify(program) == ()


def test_the_last_interrupt_comes_after_those_of_the_host_s_steps() -> None:
    stops = blank(3, Opcode.INTERRUPT_HOST)
    stops["index"] = np.arange(3)
    end = with_end(Listing(stops, np.full(3, 5), np.arange(3)))
    assert end.records["opcode"].tolist() == [*[Opcode.INTERRUPT_HOST] * 4, Opcode.HALT]
    assert end.records["index"].tolist() == [0, 1, 2, 3, 0]
    assert end.layer.tolist() == [5] * 5
