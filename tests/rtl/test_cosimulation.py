"""Programs on the hardware beside the interpreter and the clock: every row that is written, every start and end is equal."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import ModuleType

import msgspec
import numpy as np
import pytest

import tpucc
from tests.differential.test_computed_products import BY_DEVICE
from tests.differential.test_computed_products import network as product_network
from tests.differential.test_random_networks import MEMORIES
from tests.support.cases import each
from tests.support.lab_solutions import reference
from tests.support.machine import TINY, Writer
from tests.support.networks import BLACKBOARD, MIDDLE, Bounds, network
from tests.support.random_machine import RandomProgram
from tests.support.seeds import at_length
from tpucc.api import Executable
from tpucc.isa.assembler import assemble
from tpucc.labs import find
from tpucc.labs.lab import Term
from tpucc.labs.puzzles.puzzle import Puzzle, puzzles
from tpucc.lowering.tiletext import read_tiles
from tpucc.machines.v1 import Flag, Function, Opcode
from tpucc.runtime.check import random_inputs
from tpucc.schedule.pipeline import schedule
from tpucc.sim.interpret import Interpreter
from tpucc.target import Target

pytestmark = pytest.mark.annex

LAYER = """
param batch = 3
weights random(seed=5)
model layer(x: f32[batch, 4] in [-1.0, 1.0]):
    weight w: f32[4, 4]
    return relu(x @ w)
"""


def wide(lanes: int) -> Target:
    """A machine of so many lanes, whose transfers have a latency and whose rows take two cycles."""
    sizes = {"accumulator_rows": 4 * lanes, "unified_buffer_rows": 16 * lanes, "weight_fifo_tiles": 3, "weight_memory_bytes": 2**22}
    rates = {"host_bandwidth": lanes * 5e5, "weight_bandwidth": lanes * 1e6, "host_latency_seconds": 3e-6, "host_row_bytes": 0}
    return msgspec.structs.replace(TINY, name=f"{lanes} wide", mxu=lanes, **sizes, **rates)


def require_equal(exe: Executable, seed: int, rtl: ModuleType) -> int:
    """Runs a program on random inputs; returns how many rows it writes: 0 where the host computes everything."""
    runtime = exe.runtime
    begun = runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime, seed)))[0])
    both = rtl.cosimulate(begun, rtl.hardware(runtime.program.target))
    assert not both.differences, f"{both.differences[:3]}"
    np.testing.assert_array_equal(both.run.host, begun.memories.buffers)
    return int(both.rows)


def fitting(source: str, target: Target, **options: object) -> Executable | None:
    """The compiled source; None when it doesn't fit the machine's memories."""
    try:
        return tpucc.compile_source(source, target=target, **options)  # type: ignore[arg-type]
    except tpucc.Error as error:
        if any(d.code not in MEMORIES for d in error.diagnostics):
            raise
        return None


def check_networks(seeds: range, target: Target, bounds: Bounds, rtl: ModuleType) -> int:
    """How many rows the networks write that fit the machine."""
    compiled = [(seed, fitting(network(seed, bounds), target)) for seed in seeds]
    return sum(require_equal(exe, seed, rtl) for seed, exe in compiled if exe is not None)


def test_a_layer(rtl: ModuleType) -> None:
    assert require_equal(tpucc.compile_source(LAYER, target="tiny"), 0, rtl) == 12


@pytest.mark.long
def test_random_networks(rtl: ModuleType) -> None:
    assert check_networks(range(1, 6), TINY, BLACKBOARD, rtl) > 50


@at_length(600, 20)
def test_random_networks_at_length(seeds: range, rtl: ModuleType) -> None:
    check_networks(seeds, TINY, BLACKBOARD, rtl)


@pytest.mark.long
@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_networks_on_other_widths(lanes: int, rtl: ModuleType) -> None:
    assert check_networks(range(5, 8), wide(lanes), MIDDLE if lanes > 8 else BLACKBOARD, rtl) > 20


def odd(seed: int) -> Target:
    """A machine of any sizes and rates that can be built."""
    choose = Random(seed)
    lanes = choose.choice((2, 4, 8, 16))
    return msgspec.structs.replace(
        wide(lanes),
        name="odd",
        accumulator_rows=choose.randint(max(16, lanes), 12 * lanes + 20),
        unified_buffer_rows=choose.randint(48, 300),
        weight_fifo_tiles=choose.randint(1, 5),
        weight_bandwidth=lanes * 1e6 / choose.choice((1, 2, 3)),
        host_bandwidth=lanes * 1e6 / choose.choice((1, 2, 3)),
        host_latency_seconds=choose.choice((0.0, 1e-6, 9e-6, 1e-4)),
    )


@at_length(60, 4)
def test_machines_of_any_size_at_length(seeds: range, rtl: ModuleType) -> None:
    for seed in seeds:
        check_networks(range(3 * seed, 3 * seed + 3), odd(seed), BLACKBOARD, rtl)
        check_random_programs(range(seed, seed + 1), rtl, odd(seed))


def test_tiles_that_the_program_writes_and_steps_of_the_host(rtl: ModuleType) -> None:
    """Products of computed values: the host writes their right sides as tiles, and computes between them."""
    found = [fitting(product_network(seed), TINY, settings=BY_DEVICE) for seed in (1, 4)]
    programs = [exe.program.value for exe in found if exe is not None]
    assert sum((program.instructions["opcode"] == Opcode.WRITE_WEIGHTS).sum() for program in programs) > 0
    assert sum(len(program.host_steps) for program in programs) > 0
    for seed, exe in enumerate(found):
        if exe is not None:
            require_equal(exe, seed, rtl)


@pytest.mark.long
@pytest.mark.parametrize("puzzle", puzzles(Term()), ids=lambda puzzle: puzzle.file)
def test_every_puzzle(puzzle: Puzzle, rtl: ModuleType) -> None:
    """The reference of each puzzle, in as many cycles as the clock says."""
    lab, setting = find("puzzles"), puzzle.draw(Random(puzzle.number))
    text = lab.filled((reference(lab) / puzzle.file).read_text("utf-8"), Term())
    whole = f"{text.rstrip()}\n{setting.directives(puzzle.target_line)}"
    program = assemble(whole, puzzle.file) if puzzle.kind == "asm" else schedule(read_tiles(whole, puzzle.file)[0])
    both = rtl.beside(program, dict(setting.inputs))
    assert not both.differences


def check_random_programs(seeds: range, rtl: ModuleType, target: Target = TINY) -> int:
    """How many of the random machine programs the hardware has run; the others read rows that they have written themselves."""
    run = 0
    for seed in seeds:
        drawn = RandomProgram(seed, target)
        program = rtl.ordered(drawn.make())
        inputs = {"x": drawn.numbers.integers(-128, 128, (drawn.writer.rows, target.mxu)).astype(np.int8)}
        try:
            both = rtl.beside(program, inputs)
        except tpucc.Error as error:
            if error.diagnostics[0].code != "E0961":
                raise
            continue
        assert not both.differences, f"seed {seed}: {both.differences[:3]}"
        run += 1
    return run


def test_random_machine_programs(rtl: ModuleType) -> None:
    """Whatever may stand in a program: every function, walks of all kinds, blocks with any numbers, unsigned inputs."""
    assert check_random_programs(range(3), rtl) >= 2


@at_length(2_000, 40)
def test_random_machine_programs_at_length(seeds: range, rtl: ModuleType) -> None:
    check_random_programs(seeds, rtl)


def test_the_first_difference_is_named(rtl: ModuleType) -> None:
    """On hardware whose fetch takes a cycle more, the end of the first fetch is what differs first."""
    runtime = tpucc.compile_source(LAYER, target="tiny").runtime
    begun = runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime)))[0])
    both = rtl.cosimulate(begun, rtl.chip(replace(rtl.SHAPE, fetch_cycles=9)))
    assert not both.equal
    first = both.differences[0]
    assert (first.unit, first.signal, first.cycle) == ("weights", "ends", 7)
    assert "read_weights" in runtime.program.machine.read(runtime.program.instructions[first.instruction]).spec.mnemonic
    assert str(first) == f"cycle 7, weights.ends (instruction {first.instruction}): in cycle 8; the simulator: in cycle 7"


def test_a_wrong_number_is_named(rtl: ModuleType) -> None:
    """The hardware has another weight than the program: its sum differs in the accumulators, in one column, and in what follows."""
    runtime = tpucc.compile_source(LAYER, target="tiny").runtime
    program = runtime.program
    begun = runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime)))[0])
    tiles = program.tiles.copy()
    tiles[0, 0, 2] ^= 64
    other = Interpreter(replace(program, tiles=tiles))
    run = rtl.simulate(rtl.hardware(), other.program, begun.memories.buffers.copy(), begun.host, 100)
    (first, *_), _ = rtl.differences(rtl.hardware(), begun, run, runtime.timeline)
    assert (first.unit, first.signal) == ("accumulators", "column_2")
    assert first.hardware.startswith("row ")


def test_rows_that_are_not_written_are_missed(rtl: ModuleType) -> None:
    runtime = tpucc.compile_source(LAYER, target="tiny").runtime
    inputs = runtime.parts(runtime.accepted(random_inputs(runtime)))[0]
    run = rtl.cosimulate(runtime.begun(inputs), rtl.hardware()).run
    *cycles, _ = run.when("host_writes_host")
    writes = [int(cycle in cycles) for cycle in range(len(run.signals["finished"]))]
    cut = replace(run, signals={**run.signals, "host_writes_host": writes})
    (first,), _ = rtl.differences(rtl.hardware(), runtime.begun(inputs), cut, runtime.timeline)
    assert (first.signal, first.cycle) == ("writes_host", cycles[-1])
    assert (first.hardware, first.simulator) == ("2 rows written", "3 rows")


def test_decoding_while_the_program_runs_takes_longer(rtl: ModuleType) -> None:
    """The clock knows no decoder: with a record a cycle, instructions start later."""
    runtime = tpucc.compile_source(LAYER, target="tiny").runtime
    inputs = runtime.parts(runtime.accepted(random_inputs(runtime)))[0]
    early = rtl.early_cycles(runtime.begun(inputs), rtl.hardware())
    usual = runtime.timeline.makespan
    assert usual < early <= usual + len(runtime.program.instructions)


def machine_program(*records: tuple[Opcode, int, dict[str, int]]) -> Writer:
    writer = Writer(rows=4)
    writer.tile(np.eye(4))
    writer.block()
    for opcode, flags, fields in records:
        writer.add(opcode, flags, **fields)
    return writer


COPY = {"function": Function.COPY, "ub": 0, "dest": 1, "inner": 3}
READ = (Opcode.READ_HOST_MEMORY, 0, {"host": 0, "dest": 0, "inner": 4})
REFUSED = {
    "values of 16 bits": ([READ, (Opcode.VECTOR, Flag.WIDE, {**COPY, "inner": 1, "dest": 2})], "E0961", "values have 8 bits"),
    "rows that it reads again": ([READ, (Opcode.VECTOR, 0, COPY)], "E0961", "it reads a row that it has written"),
    "a long walk": ([READ, (Opcode.VECTOR, 0, {**COPY, "dest": 0, "inner": 1 << 16})], "E0961", "inner is counted in 16 bits"),
    "many instructions": ([READ] * 1025, "E0960", "1,025 instructions of the host unit"),
}


@each(REFUSED)
def test_what_is_not_built_is_refused(records: list[tuple[Opcode, int, dict[str, int]]], code: str, words: str, rtl: ModuleType) -> None:
    with pytest.raises(tpucc.Error) as caught:
        rtl.beside(machine_program(*records).program(), {"x": np.zeros((4, 4), np.int8)})
    assert caught.value.diagnostics[0].code == code
    assert words in caught.value.diagnostics[0].message


def test_rows_may_be_replaced_in_place(rtl: ModuleType) -> None:
    """A row that is read before it is overwritten, or in the same cycle, is no obstacle."""
    down = {**COPY, "ub": 1, "dest": 0}
    here = {**COPY, "ub": 2, "dest": 2, "inner": 2}
    written = [READ, (Opcode.VECTOR, 0, down), (Opcode.VECTOR, 0, here), (Opcode.WRITE_HOST_MEMORY, 0, {"ub": 0, "host": 4, "inner": 4})]
    program = rtl.ordered(machine_program(*written).program())
    both = rtl.beside(program, {"x": np.arange(16, dtype=np.int8).reshape(4, 4)})
    assert both.equal
    assert both.run.host[4:].tolist() == [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [12, 13, 14, 15]]


TARGETS = {
    "of odd width": ({"mxu": 3, "host_row_bytes": 3, "host_bandwidth": 3e6}, "3 lanes"),
    "with a fast link": ({"host_bandwidth": 8e6}, "0.5 cycles on the host link"),
    "whose rows are packed": ({"host_row_bytes": 1}, "padded to 1 bytes"),
    "with fast weights": ({"weight_bandwidth": 8e6}, "arrives in 2 cycles"),
}


@each(TARGETS)
def test_machines_that_can_not_be_built(changes: dict[str, float], words: str, rtl: ModuleType) -> None:
    with pytest.raises(tpucc.Error) as caught:
        rtl.shape_of(msgspec.structs.replace(TINY, **changes))
    assert caught.value.diagnostics[0].code == "E0960"
    assert words in caught.value.diagnostics[0].message


def test_memories_can_be_filled_through_the_ports(rtl: ModuleType) -> None:
    """As the Verilog has it: a word a cycle, instead of what the simulation puts there."""
    lane = rtl.unit("lane")
    from tpucc.rtl.lane import ACTIVATE, block_layout

    fields = {**dict.fromkeys(block_layout(4).bits, 0), "low": 0x80, "high": 0x7F, "has_table": 1, "multiplier_0": 0x3F800000}
    lane.step(load=1, load_address=3, load_data=block_layout(4).word(fields))
    lane.step(load=2, load_address=3 << 8 | 5, load_data=77)
    lane.step(block_in_use=3)
    assert lane.step(function=ACTIVATE, acc=5, block_in_use=3)["result"] == 77
