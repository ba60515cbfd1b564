"""The training machine: a step executed by instructions has the bits of the reference, keeps the rules, and takes as long as its groups."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support import dense_steps, map_steps
from tests.support.cases import each
from tests.support.command_line import run
from tests.support.seeds import at_length
from tpucc.diagnostics import CompileError, InputError, LimitError, ProgramError, Source, UsageError
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.isa.assembler import assemble, disassemble, read_listing
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Program
from tpucc.isa.verify import RULES, check, verify
from tpucc.machines.v2.expressions import OPERATIONS, Expression, number_text, parse
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Engine, Flag
from tpucc.schedule.listing import Listing
from tpucc.schedule.pipeline import with_end
from tpucc.schedule.synchronise import synchronise, with_waits
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program
from tpucc.target import Target, load_target, with_overrides
from tpucc.training.device import Device
from tpucc.training.lowering.lower import lower
from tpucc.training.repeated import Repeated, run_together
from tpucc.training.session import Session, Settings
from tpucc.training.start import started
from tpucc.training.timing.step_time import StepTime

TARGET = load_target("tpu_v2")
PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
NET = """\
param batch = 40
weights random(seed=1)
model net(x: f32[batch, 200]) -> f32[batch, 5]:
    weight w: f32[200, 140] = "w"
    weight b: f32[140] = "b"
    weight v: f32[140, 5] = "v"
    return softmax(relu(x @ w + b) @ v)
optimizer adam(rate=0.1)
train(x: f32[batch, 200], label: i32[batch] in [0, 4]) -> f32[]:
    return cross_entropy(net(x), label)
"""


def session(text: str, microbatches: int = 1, activations: str = "f32", cores: int = 1) -> Session:
    settings = Settings(target="tpu_v2", steps=3, cores=cores, microbatches=microbatches, activations=activations)
    return started(Source("net.tpu", text), PROGRAMS, "net", {}, settings)


def differences(of: Session, steps: int, target: Target = TARGET) -> list[str]:
    """The values of some steps that the machine computes otherwise than the reference; at first all padding is NaN."""
    device, state = Device(lower(of.step, target), padding=float("nan")), of.state
    for step in range(steps):
        given, parts = of._given(state), of._inputs(state)
        wanted, found = of._plan.run(given, parts), device.run(given, parts)
        wrong = [name for name in found if found[name].tobytes() != np.asarray(wanted[name]).tobytes()]
        if wrong:
            return [f"step {step}: {name}" for name in wrong]
        state = state.after({**state.values, **{key: wanted[name] for key, name in of._moved.items()}}, float(wanted[of._loss]))
    return []


POOLED = "weight f: f32[36, 5]; answer = flatten(max_pool(dropout(relu(conv2d(x, k, padding=1)), 0.3))) @ f"
WIDE = """\
weights random(seed=2)
model net(x: f32[9, 130]) -> f32[9, 300]:
    weight w: f32[130, 300] = "w"
    weight b: f32[300] = "b"
    return softmax(relu(x @ w) * b + 0.5 * b)
optimizer rmsprop(rate=0.1)
train(x: f32[9, 130], label: i32[9] in [0, 299]) -> f32[]:
    return cross_entropy(net(x), label) + 0.001 * sum(net(x) * net(x))
"""
"""More classes than lanes, of which the last column block has 44; and a sum of all elements, whose columns are no power of two."""


@cache
def program() -> Program:
    return lower(session(NET).step, TARGET).program


@pytest.mark.long
@pytest.mark.parametrize("microbatches", [1, 4])
@pytest.mark.parametrize("name", ["02_iris", "03_wine", "04_digits_mlp", "05_digits_cnn", "06_digits_lstm", "14_digits_resnet"])
def test_ten_steps_leave_the_same_files(name: str, microbatches: int, tmp_path: Path) -> None:
    """Dense networks, convolutions with pools and dropout, an LSTM, and batch norm with a path past two layers."""
    small = {"02_iris": 52, "05_digits_cnn": 16, "14_digits_resnet": 16}
    params = ["-D", f"batch={small[name]}"] if name in small and (microbatches > 1 or small[name] == 16) else []
    for executor in ("machine", "reference"):
        words = ["train", PROGRAMS / f"{name}.tpu", "--target", "tpu_v2", "--steps", "10", "--microbatches", str(microbatches), *params]
        assert run(*words, "--executor", executor, "-o", tmp_path / executor, "--quiet") == 0
    for file in ("state.npz", "weights.npz", "history.json"):
        assert (tmp_path / "machine" / file).read_bytes() == (tmp_path / "reference" / file).read_bytes()


@pytest.mark.parametrize("name", ["02_iris", "03_wine", "04_digits_mlp", "05_digits_cnn", "14_digits_resnet"])
def test_the_clock_lies_between_the_groups_bounds(name: str) -> None:
    """Groups one after the other, and a tenth; and groups that begin as soon as they can, less a twentieth."""
    text = (PROGRAMS / f"{name}.tpu").read_text()
    step = session(text.replace("batch = 200", "batch = 16") if name > "05" else text).step
    seconds, groups = time_program(lower(step, TARGET).program).makespan / TARGET.clock_hz, StepTime(step, TARGET)
    assert 0.95 * groups.overlapped_seconds <= seconds <= 1.1 * groups.seconds


def test_ragged_layers_of_several_tiles() -> None:
    assert differences(session(NET), 3) == []
    assert differences(session(NET, microbatches=4), 2) == []


def test_rows_of_several_column_blocks() -> None:
    assert differences(session(WIDE), 3) == []


def test_values_that_are_rounded_to_bfloat16() -> None:
    of = session(NET, activations="bf16")
    assert any("round_bf16" in text for text in lower(of.step, TARGET).program.expressions)
    assert differences(of, 2) == []


def of_images(body: str, batch: int = 4) -> str:
    """A network on images of 6×6 pixels of 3 channels; `answer` is the value with 5 columns."""
    lines = "\n".join(f"    {line}" for line in body.split("; "))
    return (
        f"weights random(seed=3)\nmodel net(x: f32[{batch}, 6, 6, 3]) -> f32[{batch}, 5]:\n    weight k: f32[3, 3, 3, 4]\n{lines}\n"
        f"    return answer\noptimizer momentum(rate=0.05)\n"
        f"train(x: f32[{batch}, 6, 6, 3], label: i32[{batch}] in [0, 4]) -> f32[]:\n"
        f"    return cross_entropy(softmax(net(x)), label)\n"
    )


@each(
    [
        # Steps of two pixels, whose gradients are products of several depths.
        'weight l: f32[3, 2, 4, 5]; answer = global_avg_pool(conv2d(relu(conv2d(x, k, padding="same")), l, stride=2, padding="same"))',
        # Windows that overlap, and reach beyond the image.
        "weight f: f32[36, 5]; h = conv2d(x, k, padding=1); "
        'answer = flatten(max_pool(h, size=3, stride=2, padding="same") + avg_pool(h, size=3, stride=2, padding="same")) @ f',
        # More channels than lanes.
        "weight q: f32[3, 3, 4, 140]; weight r: f32[2, 2, 140, 5]; answer = global_avg_pool(conv2d(tanh(conv2d(conv2d(x, k), q)), r))",
        # Channels in groups, and pixels spread by a transposed convolution.
        "weight g: f32[2, 2, 2, 6]; weight t: f32[3, 3, 6, 5]; "
        'answer = global_avg_pool(conv_transpose2d(conv2d(conv2d(x, k), g, groups=2), t, stride=2, padding="same"))',
        # Parts, transposed and joined.
        "weight f: f32[80, 5]; h = relu(conv2d(x, k)); h = concat([h[:, 1:], transpose(h, (0, 2, 1, 3))[:, :3]], axis=3)[:, ::2]; "
        "h = dropout(concat([h, pad(h[:, :, :, 1:7:2], ((0, 0), (0, 0), (0, 0), (3, 2)))], axis=1)[:, :, :, :5], 0.4); "
        "answer = flatten(h) @ f",
    ]
)
def test_elements_in_other_places(body: str) -> None:
    assert differences(session(of_images(body)), 2) == []
    assert differences(session(of_images(body), microbatches=2), 1) == []


@each([dense_steps, map_steps])
def test_random_steps(sources: ModuleType) -> None:
    for seed in range(10):
        text, microbatches = sources.random_source(seed)
        assert (seed, differences(session(text, microbatches), 2)) == (seed, [])


@pytest.mark.parametrize("sources", [dense_steps, map_steps])
@at_length(500, 50)
def test_random_steps_at_length(seeds: range, sources: ModuleType) -> None:
    for seed in seeds:
        text, microbatches = sources.random_source(seed)
        found = session(text, microbatches)
        assert (seed, differences(found, 2)) == (seed, [])
        made = lower(found.step, TARGET).program
        assert assemble(disassemble(made), "net.asm") == made


def test_values_leave_for_hbm_when_others_need_their_room() -> None:
    small = with_overrides(TARGET, {"unified_buffer_rows": 2900})
    made = lower(session(NET).step, small).program
    assert any(buffer.kind == "scratch" for buffer in made.host)
    assert "rows were stored because others needed their room" in made.notes[0]
    assert differences(session(NET), 2, small) == []


def test_what_one_instruction_needs_may_be_more_than_there_is_room_for() -> None:
    """A buffer that has no room beside the others is computed and read in parts. What one row or one block needs must be there."""
    for text, rows in ((NET, 900), (NET, 600), (of_images(POOLED, batch=16), 1000), (of_images(POOLED, batch=16), 700)):
        assert (rows, differences(session(text), 2, with_overrides(TARGET, {"unified_buffer_rows": rows}))) == (rows, [])
    with pytest.raises(LimitError, match="vector memory has 140 rows, and these don't fit together"):
        lower(session(NET).step, with_overrides(TARGET, {"unified_buffer_rows": 140}))
    with pytest.raises(LimitError, match="vector memory has 100 rows, and these don't fit together"):
        lower(session(of_images(POOLED, batch=16)).step, with_overrides(TARGET, {"unified_buffer_rows": 100}))


def test_sums_are_followed_in_programs_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier looks at some rows after the others: sums of other rows aren't short."""
    monkeypatch.setattr("tpucc.isa.verify.events.BATCH", 500)
    assert verify(program()) == ()
    assert {violation.code for violation in verify(BREAKS["passes swapped"][1](program()))} == {"V0905"}


MOVES = """
.target tpu_v2
.memory x input rows=64
.memory y output rows=64

    load hbm=x y=0 rows=64
    synchronize engine=lanes wait=memory
    move_lanes a=0 y=8 inner=8 from=0 to=4 lanes=8
    move_lanes a=8 y=16 inner=8 from=0 to=4 lanes=8
    move_lanes a=16 y=50 inner=8 from=0 to=4 lanes=8
    move_lanes a=0 y=24 outer=2 inner=3 a_pitch=5 y_pitch=4 from=1 to=60 lanes=60
    move_lanes a=3 y=40 inner=6 a_stride=0 from=1 to=60 lanes=60
    move_lanes a=40 y=3 inner=2 from=100 to=0 lanes=28, clear
    move_lanes a=42 y=5 inner=2 from=100 to=0 lanes=28, clear
    synchronize engine=memory wait=lanes
    store a=0 hbm=y rows=64
    halt
"""
"""Three moves that need each other's rows, two that don't, and two that clear."""


def test_neighbours_that_move_rows_become_one_where_they_are_apart() -> None:
    (stage,) = Repeated(assemble(MOVES, "moves.asm")).stages
    assert len(stage) == 7


@each([NET, WIDE, of_images(POOLED), MOVES])
def test_what_is_prepared_leaves_the_memories_of_the_interpreter(text: str) -> None:
    """Two runs, of a program whose memories held NaN."""
    made = assemble(text, "moves.asm") if text == MOVES else lower(session(text).step, TARGET).program
    prepared, plain = Repeated(made), Interpreter(made)
    plain.begin({})
    draw = np.random.default_rng(0)
    for memory, other in zip(prepared.memories.rows.values(), plain.memories.rows.values(), strict=True):
        memory[...] = np.nan
        memory[: made.host_rows] = draw.integers(0, 2, (made.host_rows, TARGET.mxu))
        other[...] = memory
    for _ in range(2):
        run_together([prepared])
        for index in range(len(made.instructions)):
            plain.execute(index)
    for name, rows in prepared.memories.rows.items():
        assert rows.tobytes() == plain.memories[name].tobytes()
    with pytest.raises(TypeError, match="programs of v1 can't be prepared"):
        Repeated(tpucc.compile_source("model m(x: f32[4, 4]):\n    return relu(x)").program.value)


def test_text_and_binary() -> None:
    made = program()
    assert assemble(disassemble(made), "net.asm") == made
    assert decode(encode(made), "net.tpub") == made
    half = replace(made, host=(replace(made.host[0], half=True), *made.host[1:]))
    assert assemble(disassemble(half), "net.asm") == half
    assert decode(encode(half), "net.tpub") == half
    assert [str(V2.read(record)) for record in made.instructions if record["opcode"] == Opcode.HALT] == ["ends the program"]


def test_every_instruction_has_a_sentence() -> None:
    made = lower(session(dense_steps.random_source(2)[0]).step, TARGET).program
    said = {V2.read(record).spec.mnemonic: str(V2.read(record)) for record in made.instructions}
    assert {*said} >= {"load", "store", "push_weights", "matrix_multiply", "vector", "transpose", "reduce", "synchronize"}
    assert all(text and "{" not in text for text in said.values())


# The rules: a change of the program that breaks each.

Edit = Callable[[Program], Program]


def places(p: Program, opcode: Opcode) -> list[int]:
    return np.flatnonzero(p.instructions["opcode"] == opcode).tolist()


def edited(p: Program, at: int, **fields: int) -> Program:
    code = p.instructions.copy()
    for name, value in fields.items():
        code[name][at] = value
    return replace(p, instructions=code)


def with_flags(p: Program, index: int, add: int = 0, less: int = 0) -> Program:
    return edited(p, index, flags=(int(p.instructions["flags"][index]) | add) & ~less)


def swapped(p: Program, one: int, other: int) -> Program:
    """The program in which two pairs of a push and a multiply stand in each other's place, each with the sum and the flags of its place."""
    code = p.instructions.copy()
    for field in ("ub", "inner", "window_inner"):
        code[field][[one, other]] = code[field][[other, one]]
    return replace(p, instructions=code, residents=())


def chains(p: Program) -> tuple[list[int], list[int]]:
    """The multiplies that add, and those that they add to."""
    multiplies = places(p, Opcode.MATRIX_MULTIPLY)
    adds = [index for index in multiplies if p.instructions["flags"][index] & Flag.ACCUMULATE]
    return adds, [multiplies[multiplies.index(index) - 1] for index in adds]


def _passes_swapped(p: Program) -> Program:
    adds, first = chains(p)
    pushes = places(p, Opcode.PUSH_WEIGHTS)
    multiplies = places(p, Opcode.MATRIX_MULTIPLY)
    number = multiplies.index(adds[0])
    changed = swapped(p, pushes[number - 1], pushes[number])
    return swapped(changed, first[0], adds[0])


def _passes_of_a_hundred(p: Program) -> Program:
    """The two passes of the first sum have 100 rows each, not 128 and 72."""
    first, second = places(p, Opcode.PUSH_WEIGHTS)[:2]
    return edited(edited(p, first, inner=100), second, inner=100, ub=int(p.instructions["ub"][second]) - 28)


def _stored_in_halves(p: Program) -> Program:
    """The loss is stored as bfloat16."""
    home = next(index for index, buffer in enumerate(p.host) if buffer.kind == "output")
    host = tuple(replace(buffer, half=index == home) for index, buffer in enumerate(p.host))
    store = next(index for index in places(p, Opcode.STORE) if p.instructions["host"][index] == p.host[home].start)
    return with_flags(replace(p, host=host), store, add=Flag.HALF)


def _state_store(p: Program) -> int:
    """The first instruction that stores new states."""
    return next(index for index in places(p, Opcode.STORE) if p.instructions["inner"][index] > 1)


def _turned_in_place(p: Program) -> Program:
    first = places(p, Opcode.TRANSPOSE)[0]
    return edited(p, first, dest=int(p.instructions["ub"][first]))


def _state_again(p: Program) -> Program:
    """A state is read after the new one was stored."""
    store = _state_store(p)
    load = places(p, Opcode.LOAD)[0]
    extra = p.instructions[load].copy()
    extra["host"], extra["inner"] = p.instructions["host"][store], 1
    code = np.insert(p.instructions, store + 1, extra)
    return replace(p, instructions=code, layer_of=np.insert(p.layer_of, store + 1, p.layer_of[store]), residents=())


def first_row(p: Program, kind: str) -> int:
    """The first row of the first buffer of a kind."""
    return next(buffer.start for buffer in p.host if buffer.kind == kind)


def without(p: Program, index: int) -> Program:
    kept = np.arange(len(p.instructions)) != index
    return replace(p, instructions=p.instructions[kept], layer_of=p.layer_of[kept], residents=())


BREAKS: dict[str, tuple[str, Edit]] = {
    "passes swapped": ("V0905", _passes_swapped),
    "a pass that isn't added": ("V0905", lambda p: with_flags(p, chains(p)[0][0], less=Flag.ACCUMULATE)),
    "a pass added to other rows": ("V0905", lambda p: edited(p, chains(p)[0][0], acc=int(p.instructions["acc"][chains(p)[0][0]]) + 1)),
    "a pass added to a part of the rows": ("V0905", lambda p: edited(p, chains(p)[0][0], inner=20)),
    "passes of a hundred each": ("V0905", _passes_of_a_hundred),
    "a pass over the same rows again": ("V0905", lambda p: edited(p, chains(p)[0][0], ub=int(p.instructions["ub"][chains(p)[1][0]]))),
    "a first pass that isn't whole": ("V0905", lambda p: edited(p, places(p, Opcode.PUSH_WEIGHTS)[0], inner=100)),
    "a block of too many lanes": ("V0906", lambda p: edited(p, places(p, Opcode.TRANSPOSE)[0], inner=129)),
    "a block without lanes": ("V0906", lambda p: edited(p, places(p, Opcode.REDUCE)[0], window_inner=0)),
    "halves of values that nothing rounds": ("V0907", _stored_in_halves),
    "halves of whole values": ("V0907", lambda p: with_flags(p, places(p, Opcode.LOAD)[0], add=Flag.HALF)),
    "an expression that isn't there": ("V0908", lambda p: edited(p, places(p, Opcode.VECTOR)[0], index=999)),
    "an expression of other sources": ("V0908", lambda p: replace(p, expressions=("(a + c)", *p.expressions[1:]))),
    "an expression of nothing that is known": ("V0908", lambda p: replace(p, expressions=("cosine(a)", *p.expressions[1:]))),
    "a state that isn't stored": ("V1006", lambda p: without(p, _state_store(p))),
    "a state that is read again": ("V1006", _state_again),
    "a tile that isn't pushed": ("V0601", lambda p: without(p, places(p, Opcode.PUSH_WEIGHTS)[0])),
    "a tile that isn't taken": ("V0602", lambda p: with_flags(p, places(p, Opcode.MATRIX_MULTIPLY)[1], less=Flag.SWITCH)),
    "a missing wait": ("V0801", lambda p: without(p, places(p, Opcode.SYNCHRONIZE)[0])),
    "rows that nothing wrote": ("V0401", lambda p: without(p, places(p, Opcode.LOAD)[0])),
    "a turn in place": ("V0703", _turned_in_place),
    "no instructions": ("V1001", lambda p: replace(p, instructions=p.instructions[:0], layer_of=p.layer_of[:0], residents=())),
}  # fmt: skip


@each([(title, *row) for title, row in BREAKS.items()])
def test_a_program_that_breaks_a_rule_is_refused(title: str, code: str, edit: Edit) -> None:
    assert code in {violation.code for violation in verify(edit(program()))}


def test_the_program_keeps_all_rules() -> None:
    assert verify(program()) == ()
    assert {code for code, _ in BREAKS.values()} >= {code for code in RULES if code in ("V0905", "V0906", "V0907", "V0908", "V1006")}


def random_listing(seed: int) -> str:
    """Instructions of all five units on a few rows of vector memory, without waits."""
    draw = np.random.default_rng(seed)
    lines, rows = ["load hbm=x y=0 rows=64"], list(range(0, 64, 8))
    for _ in range(60):
        a, b, y = (int(each) for each in draw.choice(rows, 3, replace=False))
        lines += [
            [f"load hbm=x y={y} rows=8"],
            [f"store a={a} hbm=s+{y} rows=8"],
            [f"push_weights a={a} rows=8 lanes=8", f"matrix_multiply a={b} y={y} rows=8, switch"],
            [f"vector function=of_ab expression=0 a={a} b={b} y={y} inner=8"],
            [f"transpose a={a} rows=8 y={y} lanes=8"],
        ][draw.integers(5)]
    head = [".target tpu_v2", ".memory x input rows=64", ".memory s scratch rows=64", '.expression 0 "a + b"']
    return "\n".join([*head, *lines])


@each([*range(20), 252, 297, 348, 550])
def test_the_scheduler_finds_all_waits_of_five_units(seed: int) -> None:
    """The verifier, which finds hazards in another way, has nothing to say. In the last four, one wait is implied by another, and this by a
    third, which implies only the second."""
    bare = assemble(random_listing(seed), "random.asm")
    count = len(bare.instructions)
    listing = Listing(bare.instructions, np.zeros(count, np.int64), np.arange(count), (), V2)
    whole = with_end(with_waits(listing, synchronise(listing)))
    made = replace(bare, instructions=whole.records, layer_of=np.zeros(len(whole), np.uint32))
    assert [each.message for each in verify(made) if each.code.startswith("V08")] == []


# Expressions.


def value(text: str, **sources: Any) -> list[float]:
    arrays = {name: np.array(row, np.float32).reshape(1, -1) for name, row in sources.items()}
    found = np.broadcast_to(parse(text)(arrays, 1, 4), (1, 4))
    assert found.dtype == np.float32
    return [float(each) for each in found[0]]


@each(
    [
        ("max(a + b, 0.0)", {"a": [1, -2, 3, 4], "b": [1, 1, -1, -8]}, [2, 0, 2, 0]),
        ("a - b * c", {"a": [1, 1, 1, 1], "b": [2, 2, 2, 2], "c": [3, 3, 3, 3]}, [-5, -5, -5, -5]),
        ("max(a, -0.5)", {"a": [-1, -0.25, 3, 4]}, [-0.5, -0.25, 3, 4]),
        ("(a - b) / 2.0", {"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]}, [0, 0.5, 1, 1.5]),
        ("select((float(lane) == 2.0), 1.0, 0.0)", {}, [0, 0, 1, 0]),
        ("select((lane < 2), a, -a)", {"a": [5, 6, 7, 8]}, [5, 6, -7, -8]),
        ("select(both((a > 1.0), (a != 3.0)), a, 0.0)", {"a": [1, 2, 3, 4]}, [0, 2, 0, 4]),
        ("float(xor(left(lane, 1), 1) + row)", {}, [1, 3, 5, 7]),
        ("float(right(bits(a), 23))", {"a": [1, 2, 4, 8]}, [127, 128, 129, 130]),
        ("round_bf16(a)", {"a": [1.001, 1, 2.007, 3]}, [1, 1, 2, 3]),
        ("sqrt(abs(min(a, 0.0)))", {"a": [-4, 9, -9, 0]}, [2, 0, 3, 0]),
        ("sign(a) + neg(a)", {"a": [-4, 0, 2, 1]}, [3, 0, -1, 0]),
    ]
)
def test_what_expressions_compute(text: str, sources: dict[str, list[float]], wanted: list[float]) -> None:
    assert value(text, **sources) == wanted


@each(
    [
        ("a +", "isn't of the form"),
        ("a + d", "has d, and its sources are a, b and c; lane and row say where it stands"),
        ("sqrtt(a)", "has sqrtt(…), which is no operation of the unit: did you mean sqrt"),
        ("silu(a)", "has silu(…), which is no operation of the unit: the operations are abs, "),
        ("max(a, 0)", "has max of a float32, a uint32, which is no operation of the unit; a float32 number has a decimal point, as 0.0"),
        ("a.real", "has a.real, which is no operation of the unit"),
        ("(lambda: a)()", "which is no operation of the unit"),
        ("a ** b", "which is no operation of the unit"),
        ("a < b < c", "which is no operation of the unit"),
        ("max(a)", "has max of a float32, which is no operation of the unit"),
        ("a + lane", "has + of a float32, a uint32"),
        ("lane", "is a uint32, and a lane holds a float32"),
        ("a > b", "is a mask, and a lane holds a float32"),
        ("float(lane + 4294967296)", "which is no uint32"),
        ("True", "which is no operation of the unit"),
        (" + ".join(["a"] * 34), "has 33 operations, and an instruction has room for 32"),
        ("+".join(f"{n}.0" for n in range(17)), "has 17 numbers, and an instruction has room for 16"),
        ("(" * 300 + "a" + ")" * 300, "isn't of the form"),
        ("a" * 3000, "has 3,000 characters"),
    ]
)
def test_what_is_no_expression(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse(text)


def test_an_expression_costs_what_it_consists_of() -> None:
    """Two operations a bundle, and a source each."""
    of: dict[str, Expression] = {text: parse(text) for text in ("a", "a + b", "a * b + c", "exp(a)", "a + 1.0 + 2.0 + 3.0 + 4.0 + 5.0")}
    assert [found.bundles(TARGET) for found in of.values()] == [1, 2, 3, -(-of["exp(a)"].cost // 2), 3]
    assert 15 < of["exp(a)"].cost < 40
    assert all(operation.cost == 1 for operation in OPERATIONS.values() if operation.name in ("+", "/", "select", "sqrt", ">"))


@each([0.1, 1e-8, 1e30, 2.0, -0.0, 1 / 3, float(np.float32(1e-45)), 16777216.0, float(np.finfo(np.float32).max)])
def test_a_number_is_read_as_it_was(number: float) -> None:
    assert np.float32(value(f"a + {number_text(number)}", a=[0, 0, 0, 0])[0]) == np.float32(number)


# Instructions alone: what each computes, and how long it takes.

ALONE = """
.target tpu_v2
.memory x input rows={rows}
.memory y output rows={rows}
.expression 0 "a * 2.0"

    load hbm=x y=0 rows={rows}
    synchronize engine={engine} wait=memory
    {line}
    synchronize engine=memory wait={engine}
    store a=1000 hbm=y rows={rows}
    halt
"""


def alone(line: str, engine: str, rows: int, x: np.ndarray) -> tuple[np.ndarray, int]:
    """The rows that an instruction leaves from row 1,000 on, of x in row 0 and those that follow, and its cycles."""
    made = assemble(ALONE.format(line=line, engine=engine, rows=rows), "one.asm")
    assert verify(made) == ()
    interpreter = Interpreter(made)
    interpreter.begin({})
    interpreter.memories.buffers[:rows] = x
    for index in range(len(made.instructions)):
        interpreter.execute(index)
    times = time_program(made)
    return interpreter.memories.buffers[rows : 2 * rows], int(times.end[2] - times.start[2])


def test_what_lanes_do() -> None:
    x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    turned, cycles = alone("transpose a=0 rows=16 y=1000 lanes=16", "lanes", 16, x)
    assert np.array_equal(turned[:, :16], x[:, :16].T)
    assert cycles == 128
    sums, cycles = alone("reduce function=sum a=0 y=1000 rows=16 lanes=5", "lanes", 16, x)
    assert np.array_equal(sums[:, 0], x[:, :5].sum(axis=1))
    assert cycles == 7 * 2
    largest, _ = alone("reduce function=largest a=0 y=1000 rows=16 lanes=5", "lanes", 16, x)
    assert np.array_equal(largest[:, 0], x[:, 4])
    moved, cycles = alone("move_lanes a=0 y=1000 inner=16 from=3 to=100 lanes=28, clear", "lanes", 16, x)
    assert np.array_equal(moved[:, 100:], x[:, 3:31])
    assert not moved[:, :100].any()
    assert cycles == 2


def test_what_vector_and_memory_take() -> None:
    """A transfer takes a microsecond and its bytes: 512 a row, at 300 GB/s and 700 MHz."""
    x = np.ones((16, 128), np.float32)
    doubled, cycles = alone("vector function=of_a expression=0 a=0 y=1000 inner=16", "vector", 16, x)
    assert (doubled == 2).all()
    assert cycles == 2
    made = assemble(ALONE.format(line="vector function=of_a expression=0 a=0 y=1000 inner=16", engine="vector", rows=16), "one.asm")
    assert time_program(made).end[0] == 700 + round(16 * 512 * 700e6 / 300e9)


def test_a_push_waits_until_the_tile_before_is_in_use() -> None:
    """Three products: each tile is pushed when the multiply by the one before has started, and the store waits until sums have drained."""
    text = """
.target tpu_v2
.memory x input rows=300
.memory y output rows=900

    load hbm=x y=0 rows=300
    synchronize engine=weights wait=memory
    push_weights a=0 rows=128 lanes=128
    synchronize engine=matrix wait=memory
    matrix_multiply a=0 y=1000 rows=300, switch
    push_weights a=128 rows=128 lanes=128, turned
    matrix_multiply a=0 y=1300 rows=300, switch
    push_weights a=0 rows=128 lanes=128
    matrix_multiply a=0 y=1600 rows=300, switch
    synchronize engine=memory wait=matrix
    store a=1000 hbm=y rows=900
    halt
"""
    made = assemble(text, "two.asm")
    assert verify(made) == ()
    times = time_program(made)
    push, first, pushed, second, again, third, store = times.start[[2, 4, 5, 6, 7, 8, 10]].tolist()
    assert first == push + 128
    assert (pushed, again) == (first, second)
    assert (second, third) == (first + 300, first + 600)
    assert store == third + 300 + 256


def test_the_tile_is_rounded_and_may_be_turned() -> None:
    text = """
.target tpu_v2
.memory x input rows=4
.memory y output rows=4

    load hbm=x y=0 rows=4
    synchronize engine=weights wait=memory
    push_weights a=0 rows=4 lanes=3{turned}
    synchronize engine=matrix wait=memory
    matrix_multiply a=0 y=8 rows=4, switch
    synchronize engine=memory wait=matrix
    store a=8 hbm=y rows=4
    halt
"""
    rows = np.random.default_rng(1).normal(size=(4, 128)).astype(np.float32)
    for turned in (False, True):
        made = assemble(text.format(turned=", turned" if turned else ""), "one.asm")
        interpreter = Interpreter(made)
        interpreter.begin({})
        interpreter.memories.buffers[:4] = rows
        interpreter.memories["vmem"][...] = np.nan
        for index in range(len(made.instructions)):
            interpreter.execute(index)
        block = rows[:4, :3].T if turned else rows[:4, :3]
        found = interpreter.memories.buffers[4:8]
        left, right = (round_to_bfloat16(np.ascontiguousarray(x)).astype(np.float64) for x in (rows[:, : len(block)], block))
        wanted = left @ right
        assert np.array_equal(found[:, : block.shape[1]], wanted.astype(np.float32))
        assert not found[:, block.shape[1] :].any()


# Inference.


@pytest.mark.parametrize("name", ["02_iris", "03_wine", "04_digits_mlp"])
def test_a_model_is_run_in_floats(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bits are the reference's, and the accuracy is nearly float32's."""
    out = tmp_path / "out.npz"
    assert run("run", PROGRAMS / f"{name}.tpu", "--target", "tpu_v2", "--check", "--output", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["check"] == "equal"
    assert found["accuracy"] > 0.97
    assert found["cycles"] > 4000
    ((_, outputs),) = np.load(out).items()
    assert len(outputs) == found["rows"]
    assert np.allclose(outputs.sum(axis=1), 1, atol=1e-5)


def test_a_run_in_floats_is_of_models_with_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.tpu"
    model.write_text(NET)
    assert run("run", model, "--target", "tpu_v2") == 2
    assert "there are no inputs: no m_test.npz lies beside the source" in capsys.readouterr().err
    np.savez(tmp_path / "x.npz", x=np.ones((50, 200), np.float32))
    assert run("run", model, "--target", "tpu_v2", "--input", tmp_path / "x.npz") == 0
    assert "50 rows of x.npz in 2 rounds" in capsys.readouterr().out.replace("\n ", "")
    np.savez(tmp_path / "x_train.npz", x=np.ones((50, 200), np.float32), label=np.zeros(50, np.int64))
    assert run("run", model, "--target", "tpu_v2", "--input", tmp_path / "x_train.npz") == 0
    assert "right: " in capsys.readouterr().out
    assert run("run", model, "--target", "tpu_v2", "--backend", "numpy") == 2
    assert "--backend has no effect on a run in floats" in capsys.readouterr().err
    model.write_text(COMPUTED)
    np.savez(tmp_path / "x.npz", x=np.ones((4, 6), np.float32))
    assert run("run", model, "--target", "tpu_v2", "--input", tmp_path / "x.npz") == 1
    assert "m.tpu:5:30: error E0949: the machine has no instructions for this argmax yet" in capsys.readouterr().err


OWN = """\
weights random(seed=0)
model own(x: f32[4, 8]):
    weight w: f32[8, 10]
    return {}
"""


@each(["transpose(relu(x @ w), (1, 0))", "sum(x @ w)", "transpose(x, (1, 0))", "x", "exp(sum(x))"])
def test_outputs_without_a_row_for_each_of_the_input_s(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are whole; and inputs of two batches are refused, as their outputs can't be joined."""
    model, out = tmp_path / "own.tpu", tmp_path / "out.npz"
    model.write_text(OWN.format(text))
    np.savez(tmp_path / "x.npz", x=np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8))
    assert run("run", model, "--target", "tpu_v2", "--check", "--input", tmp_path / "x.npz", "--output", out) == 0
    compiled = tpucc.compile(model)
    ((_, found),) = np.load(out).items()
    ((_, wanted),) = compiled.run(np.load(tmp_path / "x.npz")).items()
    assert found.shape == wanted.shape
    capsys.readouterr()
    if text != "x":
        np.savez(tmp_path / "x.npz", x=np.ones((8, 8), np.float32))
        assert run("run", model, "--target", "tpu_v2", "--input", tmp_path / "x.npz") != 0
        assert "error E0451" in capsys.readouterr().err


def test_a_target_whose_lanes_have_no_halves_is_refused() -> None:
    with pytest.raises(UsageError, match="it has 12 lanes; v2 adds lanes in halves"):
        lower(session(NET).step, load_target("tpu_v2", {"mxu": 12}))


# What isn't there.

COMPUTED = """\
weights random(seed=0)
optimizer sgd(rate=0.1)
model m(x: f32[4, 6]) -> f32[4, 3]:
    weight table: f32[6, 3]
    return softmax(embedding(argmax(x), table))
train(x: f32[4, 6], label: i32[4]) -> f32[]:
    return cross_entropy(m(x), label)
"""
BATCHED = """\
weights random(seed=0)
optimizer sgd(rate=0.1)
model m(x: f32[4, 6, 8]) -> f32[4, 6, 6]:
    weight w: f32[8, 8]
    return x @ transpose(x @ w, (0, 2, 1))
train(x: f32[4, 6, 8], goal: f32[4, 6, 6]) -> f32[]:
    return mean_squared_error(m(x), goal)
"""


REPEATED = """\
weights random(seed=0)
optimizer sgd(rate=0.1)
model m(c: f32[8, 1]) -> f32[8, 4]:
    weight y: f32[4]
    weight z: f32[4]
    return where(c > 0.0, y, z)
train(c: f32[8, 1], goal: f32[8, 4]) -> f32[]:
    return mean_squared_error(m(c), goal)
"""


def test_what_has_no_instructions_yet_is_said_at_its_place() -> None:
    with pytest.raises(CompileError, match="the machine has no instructions for this argmax yet") as error:
        lower(session(COMPUTED).step, TARGET)
    (found,) = error.value.diagnostics
    assert found.code == "E0949"
    assert found.labels[0].span.line == 5
    assert "--executor reference" in found.help[0]


@each([BATCHED, REPEATED])
def test_products_of_several_matrices_and_expressions_of_three_repeated_values(text: str) -> None:
    assert differences(session(text), 2) == []


def test_what_executes_no_instructions(tmp_path: Path) -> None:
    def refused(message: str, **settings: Any) -> None:
        with pytest.raises(UsageError, match=message):
            started(Source("net.tpu", NET), PROGRAMS, "net", {}, Settings(executor="machine", **settings))

    refused("the host executes no instructions")
    refused("no program can be for tpu_v4i: it has 4 matrix units a core", target="tpu_v4i")
    with pytest.raises(UsageError, match="executor is reference or machine, found 'tpu'"):
        started(Source("net.tpu", NET), PROGRAMS, "net", {}, Settings(target="tpu_v2", executor="tpu"))
    place = tmp_path / "step.tpub"
    place.write_bytes(encode(program()))
    with pytest.raises(UsageError, match="step is a program of the machine v2, and this is about programs for TPU v1"):
        tpucc.load(place)


def test_a_label_that_is_no_class_is_said_as_the_reference_says_it() -> None:
    of = session(NET)
    device, given = Device(lower(of.step, TARGET)), of._given(of.state)
    (part,) = of._inputs(of.state)
    part["label"] = np.full_like(part["label"], 7)
    for executor in (device, of._plan):
        with pytest.raises(InputError, match=r"label 7 at .* is outside the 5 classes"):
            executor.run(given, [part])


def test_compile_writes_the_program_of_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET)
    assert run("compile", model, "--train", "--target", "tpu_v2", "-o", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "instructions, " in out
    made = decode((tmp_path / "out" / "train.tpub").read_bytes(), "train.tpub")
    assert run("asm", tmp_path / "out" / "train.asm", "-o", tmp_path / "again.tpub") == 0
    assert (tmp_path / "again.tpub").read_bytes() == encode(made)
    assert run("disasm", tmp_path / "again.tpub") == 0
    model.write_text(COMPUTED)
    assert run("compile", model, "--train", "--target", "tpu_v2", "-o", tmp_path / "maps") == 0
    assert "note: no program: the machine has no instructions for this argmax yet" in capsys.readouterr().err
    assert not (tmp_path / "maps" / "train.tpub").exists()


def test_train_says_what_a_step_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET)
    assert run("train", model, "--target", "tpu_v2", "--executor", "machine", "--steps", "1", "-o", tmp_path / "out") == 0
    head = capsys.readouterr().out.split(":")[0].replace("\n", " ")
    assert f"{len(program().instructions)} instructions and" in head
    with pytest.warns(tpucc.InputWarning, match="the source names no examples"):
        trained = tpucc.train(model, target="tpu_v2", executor="machine", steps=1)
    assert np.array_equal(trained.weights["w"], np.load(tmp_path / "out" / "weights.npz")["w"])


def test_the_engines_are_those_of_the_units() -> None:
    assert [unit.engine for unit in V2.units] == [engine for engine in Engine if engine is not Engine.CONTROL]


def test_of_several_missing_waits_the_latest_is_named() -> None:
    """The vector unit reads rows of a load, and rows of a move that comes after it."""
    text = MOVES[: MOVES.index("    move_lanes")] + (
        "    move_lanes a=0 y=300 inner=8 from=0 to=0 lanes=8\n    vector function=of_ab expression=0 a=16 b=300 y=400 inner=8\n"
        "    synchronize engine=memory wait=vector|lanes\n    store a=0 hbm=y rows=64\n    halt\n"
    )
    found = verify(assemble(text.replace("\n\n", '\n.expression 0 "a + b"\n\n', 1), "waits.asm"))
    (told,) = (violation for violation in found if violation.code == "V0801")
    assert (told.instruction, told.other) == (3, 2)


def test_a_violation_about_a_buffer_shows_its_directive() -> None:
    """`.memory` defines on v2 what `.host` defines on v1."""
    text = MOVES.replace("store a=0 hbm=y rows=64", "store a=0 hbm=y rows=63")
    with pytest.raises(ProgramError) as caught:
        check(*read_listing(text, "moves.asm"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.line if found.span else 0) == ("V1002", 4)


PREFIX = ".target tpu_v2\n.memory x input rows=4\n"
STORED = "    load hbm=x y=0 rows=8\n    store a=0 hbm=y rows=8\n    halt\n"


@each(
    [
        (f"{PREFIX}.memory h input rows=4 format=bf16\n.memory y output rows=8\n{STORED}", "V0303"),
        (f"{PREFIX}.memory h input rows=4\n.memory y output rows=4\n.memory z output rows=4 format=bf16\n{STORED}", "V0303"),
        (f"{PREFIX}.memory h input rows=4\n.memory y output rows=8\n{STORED}", ""),
        (f"{PREFIX}.input p 4x4\n.memory h input rows=4\n.memory y output rows=8\n{STORED}", "V0106"),
    ]
)
def test_buffers_of_v2_have_values_of_one_size_in_a_transfer_and_no_ports(text: str, code: str) -> None:
    assert {violation.code for violation in verify(assemble(text, "buffers.asm"))} == ({code} if code else set())


def test_ports_of_v2_are_refused_in_binaries_too() -> None:
    text = f"{PREFIX}.input p 4x4\n.memory y output rows=4\n    halt\n"
    with pytest.raises(ProgramError, match="it has ports of integers, and v2 has none"):
        decode(encode(assemble(text, "ports.asm")), "ports.tpub")


def test_a_listing_for_a_target_of_ones_own_is_read_again() -> None:
    own = with_overrides(TARGET, {"clock_hz": 8e8, "ici_hop_seconds": 0.0})
    made = lower(session(NET).step, own).program
    assert assemble(disassemble(made), "net.asm") == made


@each([0.5, 1e-300])
def test_a_link_is_not_slower_than_a_byte_a_second(rate: float) -> None:
    with pytest.raises(UsageError, match="0, or a number from 1 to"):
        with_overrides(TARGET, {"ici_bandwidth": rate})


def test_sizes_of_weights_are_bounded_beside_a_size_of_0() -> None:
    made = program()
    layers = (replace(made.layers[0], macs=0, weights=(2**63, 0)), *made.layers[1:])
    assert {violation.code for violation in verify(replace(made, layers=layers))} == {"V0102"}


@each(
    [
        ("load hbm=x y=0 rows=4", "on tpu_v2 or tpu_v3 there is one: .target says which machine the listing is for"),
        ("matrix_multiply_2 a=0 y=8 rows=4", "on tpu_v3 there is one"),
        ("lode hbm=x y=0 rows=4", "the instructions are"),
    ]
)
def test_an_instruction_of_another_machine_says_which_target_has_it(line: str, help: str) -> None:
    with pytest.raises(ProgramError) as caught:
        assemble(f"    {line}\n    halt\n", "kernel.asm")
    assert help in caught.value.render()
