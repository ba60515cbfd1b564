"""Chunks: steps with values that vector memory has no room for have the bits of the reference, and their programs keep the rules."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import dense_steps, map_steps
from tests.support.cases import each
from tests.support.command_line import run
from tests.support.seeds import at_length
from tests.unit.test_training_machine import NET, POOLED, PROGRAMS, TARGET, WIDE, differences, edited, of_images, places, session
from tests.unit.test_training_tables import WORDS
from tpucc.diagnostics import LimitError
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.machines.v2.instructions import Opcode
from tpucc.sim.timing import time_program
from tpucc.target import Target, load_target, with_overrides
from tpucc.training.lowering.chunks import Run, Runs
from tpucc.training.lowering.code import Access, Code
from tpucc.training.lowering.lower import lower

NORMED = """\
weights random(seed=5)
model net(x: f32[7, 6, 5, 3]) -> f32[7, 5]:
    weight k: f32[3, 3, 3, 17]
    weight l: f32[3, 3, 17, 17]
    weight gamma: f32[17]
    weight beta: f32[17]
    weight mean: f32[17]
    weight variance: f32[17]
    weight f: f32[17, 5]
    h = conv2d(x, k, padding="same")
    h = relu(batch_norm(conv2d(h, l, padding="same"), gamma, beta, mean, variance, momentum=0.9)) + h
    return global_avg_pool(h) @ f
optimizer momentum(rate=0.05)
train(x: f32[7, 6, 5, 3], label: i32[7] in [0, 4]) -> f32[]:
    return cross_entropy(softmax(net(x)), label)
"""
"""210 pixels: patches of two column blocks, batch statistics over 210 rows, and weight gradients of two passes, the last one ragged."""


def with_rows(rows: int, target: Target = TARGET) -> Target:
    return with_overrides(target, {"unified_buffer_rows": rows})


@cache
def program() -> Program:
    return lower(session(NORMED).step, with_rows(400)).program


def in_chunks(p: Program, opcode: Opcode) -> list[int]:
    """The transfers of rows that are there for a chunk."""
    field = "dest" if opcode == Opcode.LOAD else "ub"
    parts = [each for each in p.residents if "+" in each.name]
    return [
        index
        for index in places(p, opcode)
        if any(each.first <= index <= each.last and each.start <= p.instructions[field][index] < each.start + each.rows for each in parts)
    ]


@each(
    [
        (NORMED, 900),
        (NORMED, 400),
        (NORMED, 300),
        (NET, 500),
        (NET, 300),
        (WIDE, 200),
        (of_images(POOLED, batch=16), 500),
        (of_images(POOLED, batch=16), 200),
        (WORDS.replace("rows = 11", "rows = 700"), 300),
    ]
)
def test_values_larger_than_vector_memory(text: str, rows: int) -> None:
    assert differences(session(text), 2, with_rows(rows)) == []


def test_microbatches_cores_and_two_matrix_units() -> None:
    text = NORMED.replace("[7", "[8")
    assert differences(session(text, microbatches=2), 2, with_rows(300)) == []
    assert differences(session(text, cores=2), 2, with_rows(400)) == []
    assert differences(session(text), 2, with_rows(400, load_target("tpu_v3"))) == []


def _random_steps(sources: ModuleType, seeds: range) -> None:
    """Steps of random networks, with a quarter and a tenth of the rows that they take in a large memory. What one row needs must fit."""
    for seed in seeds:
        text, microbatches = sources.random_source(seed)
        of = session(text, microbatches)
        peak = max((each.start + each.rows for each in lower(of.step, TARGET).program.residents), default=1)
        for share in (4, 10):
            rows = max(136, peak // share)
            with suppress(LimitError):
                assert (seed, rows, differences(of, 1, with_rows(rows))) == (seed, rows, [])


@each([dense_steps, map_steps])
def test_random_steps_in_small_memories(sources: ModuleType) -> None:
    _random_steps(sources, range(6))


@pytest.mark.parametrize("sources", [dense_steps, map_steps])
@at_length(400, 40)
def test_random_steps_in_small_memories_at_length(seeds: range, sources: ModuleType) -> None:
    _random_steps(sources, seeds)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "batch", "steps"), [("14_digits_resnet", 200, 5), pytest.param("09_cifar_resnet", 16, 2, marks=pytest.mark.soak)]
)
def test_programs_that_were_too_large_leave_the_same_files(name: str, batch: int, steps: int, tmp_path: Path) -> None:
    for executor in ("machine", "reference"):
        words = ["train", PROGRAMS / f"{name}.tpu", "--target", "tpu_v2", "--steps", str(steps), "-D", f"batch={batch}", "--quiet"]
        assert run(*words, "--executor", executor, "-o", tmp_path / executor) == 0
    for file in ("state.npz", "weights.npz", "history.json"):
        assert (tmp_path / "machine" / file).read_bytes() == (tmp_path / "reference" / file).read_bytes()


def test_what_has_room_has_no_chunks() -> None:
    made = lower(session(NORMED).step, TARGET).program
    assert not in_chunks(made, Opcode.LOAD)
    assert not made.notes


def test_the_note_says_what_chunks_move_and_the_clock_counts_it() -> None:
    made = program()
    loaded, stored = (sum(made.instructions["inner"][in_chunks(made, opcode)].tolist()) for opcode in (Opcode.LOAD, Opcode.STORE))
    assert loaded > stored > 0
    assert made.notes[-1] == f"{loaded:,} rows were loaded and {stored:,} stored in chunks"
    assert time_program(made).makespan > time_program(lower(session(NORMED).step, TARGET).program).makespan
    assert assemble(disassemble(made), "net.asm") == made


def test_a_patch_is_made_where_it_is_needed() -> None:
    """Patches of 210 rows and two column blocks are in no buffer of HBM."""
    patches = {each.name.partition("+")[0] for each in program().residents if each.rows < 420 and "+" in each.name}
    stored = {buffer.name.split(":")[1] for buffer in program().host if buffer.kind == "scratch"}
    assert any(name.startswith("v") for name in patches - stored)


# The rules.


def test_a_chunk_without_all_of_its_rows_is_refused() -> None:
    made = program()
    for index in in_chunks(made, Opcode.LOAD)[:4]:
        rows = int(made.instructions["inner"][index])
        assert {violation.code for violation in verify(edited(made, index, inner=rows - 1))} & {"V0401", "V0306"}


def test_a_chunk_that_is_not_stored_is_refused() -> None:
    made = program()
    index = in_chunks(made, Opcode.STORE)[0]
    rows = int(made.instructions["inner"][index])
    assert {violation.code for violation in verify(edited(made, index, inner=rows - 1))} == {"V0404"}


PASSES = """
.target tpu_v2
.memory x input rows=24
.memory w input rows=200
.memory y output rows=8
.layer fc forward weights=200x40

    load hbm=w y=100 rows=200
    load hbm=x y=40 rows=8
    synchronize engine=weights wait=memory
    push_weights a=100 rows=128 lanes=40
    synchronize engine=matrix wait=memory
    matrix_multiply a=40 y=0 rows=8, switch
    push_weights a=228 rows=72 lanes=40
{between}    matrix_multiply a={second} y=0 rows=8, switch, accumulate
    synchronize engine=memory wait=matrix
    store a=0 hbm=y rows=8
    halt
"""
LOADED = "    load hbm=8 y=20 rows=8\n    synchronize engine=matrix wait=memory\n"


@each([("", 32, "V0905"), (LOADED, 20, ""), (LOADED, 32, "V0905")])
def test_rows_of_a_pass_lie_behind_those_before_unless_they_came_since(between: str, second: int, code: str) -> None:
    text = PASSES.format(between=between, second=second).replace("load hbm=x y=40 rows=8", "load hbm=x y=32 rows=16")
    assert {violation.code for violation in verify(assemble(text, "passes.asm"))} == ({code} if code else set())


LONG = """\
weights random(seed=6)
model net(x: f32[2000, 200]) -> f32[2000, 3]:
    weight w: f32[200, 3]
    return sigmoid(x @ w) * 2.0 + x @ w
optimizer sgd(rate=0.1)
train(x: f32[2000, 200], goal: f32[2000, 3]) -> f32[]:
    return mean_squared_error(net(x), goal)
"""


def test_a_run_that_needs_what_its_result_replaces_has_no_chunks() -> None:
    """y[r + 1] = t[r], where t[r] = y[r + 1], has chunks; y[r + 2] = t[r] hasn't: a chunk would read what the one before wrote."""
    code = Code(128)
    y, t = code.buffer("y", 64, home=0), code.buffer("t", 64)
    code.vector("a", (Access(y.after(1), 0, 1),), Access(t, 0, 1), 1, 63)
    code.vector("a", (Access(t, 0, 1),), Access(y.after(1), 0, 1), 1, 63)
    runs = Runs(code)
    (run_of_two,) = runs.beginning(0)
    assert run_of_two == Run(0, 1, 2)
    assert len(runs.chunks(run_of_two, 16, lambda chunk: True, False) or ()) == 4
    code.vector("a", (Access(y.after(1), 0, 1),), Access(t, 0, 1), 1, 62)
    code.vector("a", (Access(t, 0, 1),), Access(y.after(2), 0, 1), 1, 62)
    assert Runs(code).chunks(Run(2, 3, 4), 16, lambda chunk: True, False) is None


def test_rows_are_loaded_before_those_before_are_stored() -> None:
    """So transfers and arithmetic share the time: the rows of a chunk come while those of the chunk before are computed with."""
    of, small = session(LONG), with_rows(1600)
    assert differences(of, 1, small) == []
    made = lower(of.step, small).program
    loads, stores = (in_chunks(made, opcode) for opcode in (Opcode.LOAD, Opcode.STORE))
    assert sum(load < stores[0] for load in loads) == 6  # for two chunks, both column blocks of x, and w
    times = time_program(made)
    (first, *_) = places(made, Opcode.MATRIX_MULTIPLY)
    assert times.start[loads[1]] < times.end[first]
