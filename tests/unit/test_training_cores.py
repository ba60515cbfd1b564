"""A step on several cores: each executes the same program on its own examples, and an `all_reduce` makes means of what they have."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support import dense_steps, map_steps
from tests.support.cases import each
from tests.support.command_line import run
from tests.support.seeds import at_length
from tests.unit.test_training_machine import (
    NET,
    POOLED,
    PROGRAMS,
    TARGET,
    WIDE,
    Edit,
    differences,
    edited,
    first_row,
    of_images,
    places,
    session,
    without,
)
from tpucc.floating.all_reduce import all_reduce_mean
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.effects import effects
from tpucc.isa.program import HostBuffer, Program, bare_program
from tpucc.isa.verify import verify
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.units import Unit, Work
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import instruction_cycles, time_program
from tpucc.target import with_overrides
from tpucc.training.device import Device
from tpucc.training.lowering.lower import lower
from tpucc.training.repeated import Repeated, run_together
from tpucc.training.timing.step_time import StepTime

BATCHES = {"02_iris": 48, "03_wine": 48, "04_digits_mlp": 200, "05_digits_cnn": 16}


@cache
def program(cores: int = 8, microbatches: int = 1) -> Program:
    return lower(session(NET, microbatches, cores=cores).step, TARGET).program


# The bits are those of the reference.


@pytest.mark.long
@pytest.mark.parametrize(("cores", "microbatches"), [(2, 1), (4, 1), (8, 1), (2, 2)])
@pytest.mark.parametrize("name", list(BATCHES))
def test_ten_steps_leave_the_same_files(name: str, cores: int, microbatches: int, tmp_path: Path) -> None:
    words = ["train", PROGRAMS / f"{name}.tpu", "--target", "tpu_v2", "--steps", "10", "-D", f"batch={BATCHES[name]}", "--quiet"]
    words += ["--cores", str(cores), "--microbatches", str(microbatches)]
    for executor in ("machine", "reference"):
        assert run(*words, "--executor", executor, "-o", tmp_path / executor) == 0
    for file in ("state.npz", "weights.npz", "history.json"):
        assert (tmp_path / "machine" / file).read_bytes() == (tmp_path / "reference" / file).read_bytes()


@each([(2, 1), (4, 1), (8, 1), (2, 2)])
def test_ragged_layers_on_several_cores(cores: int, microbatches: int) -> None:
    assert differences(session(NET, microbatches, cores=cores), 2) == []


SHARED = WIDE.replace("[9", "[8").replace("sum(", "mean(")
"""The same network with a batch and a loss that can be divided."""


@each([SHARED, of_images(POOLED)])
def test_columns_of_several_blocks_and_dropout_on_four_cores(text: str) -> None:
    """Each core drops what one core would, in its part of the batch."""
    assert differences(session(text, cores=4), 2) == []


@each([dense_steps, map_steps])
def test_random_steps_on_several_cores(sources: ModuleType) -> None:
    _random_steps(sources, range(4))


@pytest.mark.parametrize("sources", [dense_steps, map_steps])
@at_length(200, 20)
def test_random_steps_on_several_cores_at_length(seeds: range, sources: ModuleType) -> None:
    _random_steps(sources, seeds)


def _random_steps(sources: ModuleType, seeds: range) -> None:
    """Parts of a batch on as many cores, and on half of them."""
    for seed in seeds:
        text, parts = sources.random_source(seed)
        for cores in {parts, max(1, parts // 2)}:
            assert (seed, cores, differences(session(text, parts // cores, cores=cores), 2)) == (seed, cores, [])


def test_all_cores_have_the_same_states_after_a_step() -> None:
    of = session(NET, cores=4)
    device = Device(lower(of.step, TARGET))
    device.run(of._given(of.state), of._inputs(of.state))
    rows = np.concatenate([np.arange(buffer.start, buffer.end) for buffer in program(4).host if buffer.kind == "state"])
    first, *others = (core.memories.buffers[rows] for core in device._cores)
    assert first.any()
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_cores_that_are_interpreted_leave_the_same_memories() -> None:
    """Another answer: an interpreter a core, and at the exchange the tree over all cores."""
    made = program(4)
    prepared, plain = [Repeated(made) for _ in range(4)], [Interpreter(made) for _ in range(4)]
    for number, (core, other) in enumerate(zip(prepared, plain, strict=True)):
        other.begin({})
        core.memories.buffers[...] = np.random.default_rng(number).integers(0, 2, core.memories.buffers.shape)
        other.memories.buffers[...] = core.memories.buffers
    run_together(prepared)
    (exchange,) = places(made, Opcode.ALL_REDUCE)
    first, count = (int(made.instructions[field][exchange]) for field in ("host", "inner"))
    for index in range(len(made.instructions)):
        if index == exchange:
            held = [other.memories.buffers[first : first + count] for other in plain]
            mean = all_reduce_mean([rows.copy() for rows in held])
            for rows in held:
                rows[...] = mean
            continue
        for other in plain:
            other.execute(index)
    for core, other in zip(prepared, plain, strict=True):
        assert core.memories.buffers.tobytes() == other.memories.buffers.tobytes()
    with pytest.raises(TypeError, match="all_reduce is executed by all cores together, and this is one"):
        plain[0].execute(exchange)


def test_what_cores_exchange_lies_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are stored and loaded together, up to so many rows, and exchanged at once."""
    counts = []
    for bucket in (1024, 200, 1):
        monkeypatch.setattr("tpucc.training.lowering.lower.BUCKET", bucket)
        assert differences(session(NET, cores=2), 2) == []
        made = lower(session(NET, cores=2).step, TARGET).program
        (exchange,) = places(made, Opcode.ALL_REDUCE)
        first, end = (int(made.instructions[field][exchange]) for field in ("host", "inner"))
        own = [place for place in places(made, Opcode.STORE) if first <= made.instructions["host"][place] < first + end]
        assert max(own) < exchange
        counts.append(len(own))
    assert counts == [1, 2, 4]


def test_values_of_cores_leave_when_others_need_their_room() -> None:
    small = with_overrides(TARGET, {"unified_buffer_rows": 1500})
    assert any(buffer.kind == "scratch" and "scratch:" in buffer.name for buffer in lower(session(NET, cores=4).step, small).program.host)
    assert differences(session(NET, cores=4), 2, small) == []


# The program, its rules and its time.


def test_one_program_for_all_cores() -> None:
    made = program(8, 1)
    assert (made.cores, len(places(made, Opcode.ALL_REDUCE))) == (8, 1)
    assert program(1, 8).cores == 1
    assert not places(program(1, 8), Opcode.ALL_REDUCE)
    for each_of in (made, program(2, 2)):
        assert assemble(disassemble(each_of), "net.asm") == each_of
        assert decode(encode(each_of), "net.tpub") == each_of
    assert "microbatches=2" in disassemble(program(2, 2))
    (exchange,) = places(made, Opcode.ALL_REDUCE)
    assert re.fullmatch(r"makes rows [\d,]+ to [\d,]+ of HBM their mean over all cores", str(V2.read(made.instructions[exchange])))


def _read_before(p: Program) -> Program:
    """What a core has is loaded before the exchange."""
    (exchange,) = places(p, Opcode.ALL_REDUCE)
    home = p.instructions["host"][exchange]
    extra = p.instructions[next(place for place in places(p, Opcode.LOAD) if p.instructions["host"][place] == home)]
    return replace(
        p,
        instructions=np.insert(p.instructions, exchange, extra),
        layer_of=np.insert(p.layer_of, exchange, p.layer_of[exchange]),
        residents=(),
    )


def _unwritten(p: Program) -> Program:
    """The last store before the exchange is left out."""
    (exchange,) = places(p, Opcode.ALL_REDUCE)
    return without(p, max(place for place in places(p, Opcode.STORE) if place < exchange))


@each(
    [
        ("V0909", _read_before, "averages row 0 of exchange:"),
        ("V0909", _unwritten, "which nothing has written, or something has read since"),
        ("V0909", lambda p: replace(p, cores=6), "is a mean over 6 parts of 6 cores, which is no power of two"),
        ("V0909", lambda p: edited(p, places(p, Opcode.ALL_REDUCE)[0], index=0), "is a mean over 0 parts of 8 cores"),
        ("V0303", lambda p: edited(p, places(p, Opcode.ALL_REDUCE)[0], inner=10**6), "which are not all in host buffers of one kind"),
        ("V1004", lambda p: edited(p, places(p, Opcode.ALL_REDUCE)[0], host=first_row(p, "input"), inner=1), "writes rows of input:x"),
        ("V1006", lambda p: edited(p, places(p, Opcode.ALL_REDUCE)[0], host=0, inner=1), "a state's"),
        ("V0803", lambda p: without(p, places(p, Opcode.ALL_REDUCE)[0] - 1), "doesn't wait for instruction"),
    ]
)
def test_a_program_that_breaks_a_rule_of_exchanges_is_refused(code: str, edit: Edit, message: str) -> None:
    assert verify(program(8)) == ()
    assert any(found.code == code and message in found.message for found in verify(edit(program(8))))


def test_an_exchange_takes_its_links_and_its_memory() -> None:
    """1,000 rows are B = 512,000 bytes. Eight cores: B ÷ 150 GB/s in the chip, B ÷ 124 GB/s in one dimension of the torus, half of it in
    the other, six hops of 1 µs; and 2 B ÷ 300 GB/s from memory and to it: 3.413 + 4.129 + 2.065 + 6 and 3.413 µs at 700 MHz."""
    text = """
.target tpu_v2
.cores {cores}
.memory x input rows=1000
.memory g scratch rows=1000
.memory y output rows=1000

    load hbm=x y=0 rows=1000
    store a=0 hbm=g rows=1000
    synchronize engine=links wait=memory
    all_reduce hbm=g rows=1000
    synchronize engine=memory wait=links
    load hbm=g y=0 rows=1000
    store a=0 hbm=y rows=1000
    halt
"""
    taken = {}
    for cores in (1, 2, 8):
        made = assemble(text.format(cores=cores), "exchange.asm")
        assert verify(made) == ()
        times = time_program(made)
        taken[cores] = int(times.end[3] - times.start[3])
        assert (times.start[3], times.start[5]) == (times.end[1], times.end[3])
    assert taken == {1: 2389, 2: 2389 + 2389 + 1400, 8: 2389 + round(0.7 * (3413.333 + 4129.032 + 2064.516 + 6000))}


@each(product([2, 4, 8], [1, 100, 5000]))
def test_the_groups_and_the_instruction_have_one_time_for_whole_rows(cores: int, rows: int) -> None:
    work = Work(TARGET)
    work.bytes["gradients"] = 2 * 512 * rows
    work.add_exchange(512 * rows, cores)
    records = np.array([V2.record(Opcode.ALL_REDUCE, host=0, inner=rows)])
    home = HostBuffer("g", "scratch", 0, rows)
    made = bare_program(name="one", target=TARGET, machine=V2, instructions=records, host=(home,), cores=cores)
    (cycles,) = instruction_cycles(made, effects(records, V2)).tolist()
    assert abs(cycles - TARGET.clock_hz * work.seconds()[Unit.LINKS]) <= 1


@each(product(list(BATCHES), [2, 4, 8]))
def test_the_clock_of_cores_lies_between_the_groups_bounds(name: str, cores: int) -> None:
    """The groups' exchange has the values alone; the instruction's has whole rows, of which few lanes may be in use: a fifth at most."""
    source = re.sub(r"param batch = \d+", f"param batch = {BATCHES[name]}", (PROGRAMS / f"{name}.tpu").read_text())
    step = session(source, cores=cores).step
    seconds, groups = time_program(lower(step, TARGET).program).makespan / TARGET.clock_hz, StepTime(step, TARGET)
    assert 0.95 * groups.overlapped_seconds <= seconds <= 1.2 * groups.seconds


def test_the_digits_network_is_slower_on_more_cores() -> None:
    source = (PROGRAMS / "04_digits_mlp.tpu").read_text()
    times = [time_program(lower(session(source, cores=cores).step, TARGET).program).makespan for cores in (1, 2, 4, 8)]
    assert times == sorted(times)


# The commands.


def test_compile_writes_the_program_of_a_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET)
    assert run("compile", model, "--train", "--target", "tpu_v2", "--cores", "8", "-o", tmp_path / "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    made = decode((tmp_path / "out" / "train.tpub").read_bytes(), "train.tpub")
    assert (made.cores, found["cores"], found["cycles"]) == (8, 8, time_program(program(8)).makespan)
    assert np.array_equal(made.instructions, program(8).instructions)


@each(
    [
        ((3, 1), "E0947", "cores must be a power of two, found 3"),
        ((16, 1), "E0508", "batch 40 is not divisible by 16 cores"),
        ((8, 2), "E0508", "batch 40 is not divisible by 8 cores of 2 microbatches"),
    ]
)
def test_cores_that_cannot_share_the_batch(
    counts: tuple[int, int], code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET)
    cores, microbatches = counts
    words = ["train", model, "--target", "tpu_v2", "--executor", "machine", "--cores", cores, "--microbatches", microbatches]
    assert run(*map(str, words)) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"error {code}" in told
    assert message in told
