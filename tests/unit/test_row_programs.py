"""Programs for the training machine that somebody has written: run, timed and debugged from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import run
from tpucc.cli.debug_session import Session
from tpucc.diagnostics import InputError, LimitError, Source, UsageError
from tpucc.explain.debugger import Debugger
from tpucc.isa.assembler import assemble
from tpucc.isa.container import encode
from tpucc.isa.verify import check
from tpucc.target import load_target
from tpucc.training.device import Device
from tpucc.training.in_rows import MOST_ROWS, InRows, put_rows, rows_of
from tpucc.training.lowering.lower import lower
from tpucc.training.session import Settings
from tpucc.training.start import started

LAYER = """
.target tpu_v2
.memory x input rows=16
.memory w input rows=200
.memory b state rows=1
.memory y output rows=8
.layer fc forward weights=200x40
.expression 0 "max(a + b, 0.0)"
.expression 1 "a + a"

    load hbm=x y=0 rows=216
    load hbm=b y=216 rows=1
    synchronize engine=weights wait=memory
    push_weights a=16 rows=128 lanes=40
    synchronize engine=matrix wait=memory
    matrix_multiply a=0 y=300 rows=8, switch
    push_weights a=144 rows=72 lanes=40
    matrix_multiply a=8 y=300 rows=8, switch, accumulate
    synchronize engine=vector wait=matrix
    vector function=of_ab expression=0 a=300 b=216 b_stride=0 y=308 inner=8
    vector function=of_a expression=1 a=216 y=216 inner=1
    synchronize engine=memory wait=vector
    store a=308 hbm=y rows=8
    store a=216 hbm=b rows=1
    halt
"""


NET = """
weights random(seed=1)
model net(x: f32[5, 200]) -> f32[5, 3]:
    weight w: f32[200, 3] = "w"
    return softmax(x @ w)
optimizer adam(rate=0.1)
train(x: f32[5, 200], label: i32[5] in [0, 2]) -> f32[]:
    return cross_entropy(net(x), label)
"""


def layer(text: str = LAYER) -> InRows:
    program = assemble(text, "layer.asm")
    check(program)
    return InRows(program)


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    sizes = {"x": (8, 200), "w": (200, 40), "b": (40,)}
    return {name: draw.integers(-8, 8, size).astype(np.float32) for name, size in sizes.items()}


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 128), (5, 129), (2, 300)])
def test_a_matrix_lies_in_as_many_rows_for_each_128_columns(rows: int, columns: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(rows, columns))
    held = np.zeros((rows * -(-columns // 128), 128))
    put_rows(held, matrix)
    assert np.array_equal(rows_of(held, rows, columns), matrix)
    assert np.array_equal(held[0, : min(columns, 128)], matrix[0, :128])


def test_a_run_gives_the_outputs_and_the_new_states(arrays: dict[str, np.ndarray]) -> None:
    program = layer()
    inputs = program.accepted(arrays)
    found = program.run(inputs)
    wanted = np.maximum(arrays["x"] @ arrays["w"] + arrays["b"], 0)  # small integers: every order gives these bits
    assert np.array_equal(found["y"][:, :40], wanted)
    assert np.array_equal(found["b"][0, :40], 2 * arrays["b"])
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in program.run_plain(inputs).items()
    }


def test_numbers_are_converted_and_the_bits_of_indices_kept(arrays: dict[str, np.ndarray]) -> None:
    program = layer()
    as_integers = program.accepted({**arrays, "x": arrays["x"].astype(np.int8)})
    assert as_integers["x"].tobytes() == program.accepted(arrays)["x"].tobytes()
    bits = program.accepted({**arrays, "b": np.arange(40, dtype=np.uint32)})["b"]
    assert np.array_equal(bits.view(np.uint32), np.arange(40)[None])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((8, 300))}, r"input x has the shape \[8, 300\], which fills 24 rows; its buffer has 16"),
        ({"x": np.zeros((0, 200))}, "which fills 0 rows"),
        ({"x": np.array([["a"]])}, "input x is <U1, expected numbers"),
        ({"ww": np.zeros(3)}, "the program has no input ww"),
        ({"x": None}, "the input x is missing: 16 rows of 128 lanes"),
    ],
)
def test_arrays_that_do_not_fit(arrays: dict[str, np.ndarray], change: dict[str, np.ndarray | None], message: str) -> None:
    given = {name: array for name, array in {**arrays, **change}.items() if array is not None}
    with pytest.raises(InputError, match=message):
        layer().accepted(given)


def test_a_program_of_several_cores_or_of_more_memory_than_there_is() -> None:
    with pytest.raises(UsageError, match="is for 2 cores, which exchange values"):
        layer(".cores 2\n" + LAYER)
    with pytest.raises(LimitError, match="rows are simulated"):
        layer(LAYER.replace(".memory y", f".memory more input rows={MOST_ROWS}\n.memory y"))


def test_a_step_of_training_runs_as_its_device_does() -> None:
    settings = Settings(target="tpu_v2", steps=1)
    session = started(Source("net.tpu", NET), Path(), "net", {}, settings)
    lowered = lower(session.step, load_target("tpu_v2"))
    program, device = InRows(lowered.program), Device(lowered)
    draw = program.random(3)
    assert {name: array.tobytes() for name, array in program.run(draw).items()} == {
        name: array.tobytes() for name, array in program.run_plain(draw).items()
    }
    assert program.timeline.makespan == device.cycles


def test_the_commands(arrays: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, binary, given, made = (tmp_path / name for name in ("layer.asm", "layer.tpub", "in.npz", "out.npz"))
    text.write_text(LAYER)
    binary.write_bytes(encode(layer().program))
    np.savez(given, **arrays)
    for place in (text, binary):
        assert run("run", place, "--input", given, "--output", made, "--check", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["check"], found["outputs"]["y"], found["cycles"]) == ("equal", "float32[8, 128]", layer().timeline.makespan)
        with np.load(made) as archive:
            assert np.array_equal(archive["y"][:, :40], np.maximum(arrays["x"] @ arrays["w"] + arrays["b"], 0))
        assert run("profile", place, "--json") == 0
        units = json.loads(capsys.readouterr().out)["units"]
        assert (units["matrix"], units["weights"], units["links"]) == (16, 256, 0)
    assert run("run", text, "-O", "1") == 2
    assert "-O has no effect on a program for floats" in capsys.readouterr().err


def test_the_debugger_names_what_each_unit_waits_for(arrays: dict[str, np.ndarray]) -> None:
    program = layer()
    session = Session(Debugger(program, program.accepted(arrays)))

    def answer(command: str) -> str:
        return " ".join(session.answer(command).split())

    answer("step 4")
    assert "on the way, in cycle" in answer("print fifo")
    assert "the tile of instruction 3 (arrives in cycle" in answer("print fifo")
    multiply = answer("step 2")
    assert answer("back 1").startswith("next, 5 of 15: 5 matrix_multiply"), multiply
    assert "its unit waits 128 cycles for the tile of instruction 3, which is asked for in cycle" in answer("where")
    answer("step")
    assert answer("print fifo").endswith("in use: the tile of instruction 3")
    answer("step 3")
    assert answer("where").startswith("next, 9 of 15: 9 vector")
    assert "its unit waits" in answer("where")
    assert "for the matrix unit, whose sums of instruction 7 are complete in cycle" in answer("where")
    answer("break stall")
    answer("back 9")
    assert answer("continue").startswith("at stall next, 5 of 15")
    answer("clear")
    assert answer("continue").startswith("all 15 instructions are executed")
    row = np.maximum(arrays["x"] @ arrays["w"] + arrays["b"], 0)[0]
    assert answer("print hbm 217").startswith(f"hbm 217 {row[0]} {row[1]} {row[2]}")
    assert "print hbm ROW [N] N rows of the HBM" in answer("help")


def test_going_back_leaves_what_was_there(arrays: dict[str, np.ndarray]) -> None:
    program = layer()
    debugger = Debugger(program, program.accepted(arrays))
    states = []
    while not debugger.at_end:
        states.append(debugger.interpreter.memories["vmem"][:400].tobytes())
        debugger.step()
    for position in reversed(range(len(states))):
        debugger.back()
        assert debugger.interpreter.memories["vmem"][:400].tobytes() == states[position]
