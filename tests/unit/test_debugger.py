"""The machine step by step: its memories are the simulator's, forwards and back, and its words the timeline's."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import run
from tpucc.cli.debug_session import Session, help_text
from tpucc.explain.debugger import Debugger
from tpucc.explain.stalls import stalls
from tpucc.interop.programs import folder
from tpucc.isa.effects import effects
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import SPECS, V1, Opcode
from tpucc.runtime.check import random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.ports import unpack

CASES = {
    "pools, two halves": ("05_digits_cnn", {"params": {"batch": 6}}),
    "host steps": ("12_mlp_mixer_block", {"level": 0}),
    "written tiles": (
        "gallery/gpt2_block",
        {"params": {"length": 7, "width": 24, "heads": 3}, "settings": {"write-weights": {"computed_products": "device"}}},
    ),
    "depthwise": ("gallery/digits_mobilenet", {"params": {"batch": 1}, "settings": {"depthwise": {"unit": "vector"}}}),
    "16 bits": ("03_wine", {"params": {"batch": 5}, "activation_bits": 16}),
}


@cache
def compiled(program: str, options: str) -> Runtime:
    """`options` are those of `tpucc.compile` as a Python dictionary."""
    return tpucc.compile(folder() / f"{program}.tpu", **ast.literal_eval(options)).runtime


@pytest.fixture(params=CASES)
def debugger(request: pytest.FixtureRequest) -> Debugger:
    name, options = CASES[request.param]
    runtime = compiled(name, repr(options))
    return Debugger(runtime, random_inputs(runtime))


def memories(debugger: Debugger) -> list[bytes]:
    """What lies in them; the unified buffer as far as the program reaches."""
    held, interpreter = debugger.interpreter.memories, debugger.interpreter
    state = f"{list(interpreter.fifo)} {interpreter.tile} {interpreter.block}".encode()
    buffer = held["ub"][: int(effects(debugger.program.instructions).target.high.max())]
    tiles = held.tiles[len(held.tiles) - debugger.program.written_tiles :]
    return [memory.tobytes() for memory in (held["host"], buffer, held["acc"], tiles)] + [state]


def test_its_memories_are_the_simulators_forwards_and_back(debugger: Debugger) -> None:
    runtime, random = debugger.runtime, np.random.default_rng(1)
    count = len(debugger.program.instructions)
    looked_at = {int(n): list[bytes]() for n in random.choice(count, 12)} | {0: []}
    while not debugger.at_end:
        if debugger.position in looked_at:
            looked_at[debugger.position] = memories(debugger)
        debugger.step()
    ports, held = runtime.ports(random_inputs(runtime)), debugger.interpreter.memories
    for port in debugger.program.outputs:
        assert np.array_equal(unpack(port, debugger.program.host, held["host"]), ports[port.name])
    for position in sorted(looked_at, reverse=True):
        debugger.back(debugger.position - position)
        assert memories(debugger) == looked_at[position]
    for _ in range(5):
        debugger.step()
    assert debugger.position == 5


def test_going_back_takes_back_one_or_several(debugger: Debugger) -> None:
    states = []
    for _ in range(12):
        states.append(memories(debugger))
        debugger.step()
    for count, left in ((1, 11), (3, 8), (8, 0), (5, 0)):
        debugger.back(count)
        assert debugger.position == left
        assert memories(debugger) == states[left]


@pytest.mark.long
def test_a_wait_is_the_timelines() -> None:
    for name, level in (("04_digits_mlp", 2), ("06_digits_lstm", 2), ("05_digits_cnn", 0)):
        runtime = compiled(name, repr({"params": {"batch": 8}, "level": level}))
        found = Debugger(runtime, random_inputs(runtime))
        times, program = runtime.timeline, runtime.program
        idle = stalls(program, times).sum(axis=0)
        assert idle.any()
        multiplies = np.flatnonzero(effects(program.instructions).multiplies)
        for index, cycles in zip(multiplies[idle > 0].tolist(), idle[idle > 0].tolist(), strict=True):
            waits = found.waits(index)
            assert sum(wait.end - wait.start for wait in waits) == cycles
            for wait in waits:
                if "tile" in wait.words:
                    tile = int(re.findall(r"tile ([\d,]+)", wait.words)[0].replace(",", ""))
                    asked = np.flatnonzero((program.instructions["index"] == tile) & effects(program.instructions).pushes)
                    assert len(asked)
                if "whose instruction" in wait.words:
                    number, end = (
                        int(n.replace(",", "")) for n in re.findall(r"instruction ([\d,]+) ends in cycle ([\d,]+)", wait.words)[0]
                    )
                    assert int(times.end[number]) == end <= int(times.start[index])


TRANSCRIPT = """\
w
step
s 3
print ub 0
print acc 0
print acc 4095 5
print fifo
break fc2
break 12
break
continue
back 2
clear
break stall
continue
continue
help
# a remark

"""


def test_a_session(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TRANSCRIPT))
    assert run("debug", folder() / "02_iris.tpu", "--quiet") == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.split("\n") if len(line) > 80] == []
    assert "stops at layer fc2\nstops at line 12" in printed
    assert "at layer fc2" in printed
    assert "acc ends with row 4,095: it has 1 of the 5 rows" in printed
    assert "waits 479 cycles for tile 1, which is asked for in cycle 1,349 and arrives in 2,698" in " ".join(printed.split())
    assert "ub 0 (row 0 of x.i8.0)" in " ".join(printed.split())


def test_tiles_that_are_asked_for_are_on_the_way_until_they_arrive() -> None:
    found = Debugger(runtime := compiled("02_iris", "{}"), random_inputs(runtime))
    session, both = Session(found), set[bool]()
    while not found.at_end:
        found.step()
        there, *more = session.answer("p fifo").split("\n")
        coming = [int(number.replace(",", "")) for number in re.findall(r"arrives\s+in\s+cycle\s+([\d,]+)", "\n".join(more))]
        assert all(found.now < arrives for arrives in coming)
        assert len(re.findall(r"\d+", there)) + len(coming) == len(found.interpreter.fifo)
        both.add(bool(coming))
    assert both == {True, False}


def test_a_line_of_a_def_stops_in_each_of_its_calls() -> None:
    session = Session(Debugger(runtime := compiled("02_iris", "{}"), random_inputs(runtime)))
    session.answer("break 9")
    answers = [session.answer("continue") for _ in range(2)]
    assert all(answer.startswith("at line 9\n") for answer in answers)
    assert {name for answer in answers for name in re.findall(r"for (fc\d), line", answer)} == {"fc1", "fc2"}


def test_at_a_terminal_the_first_screen_says_how_to_get_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(["?", "q"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert run("debug", folder() / "02_iris.tpu", "--quiet") == 0
    printed = capsys.readouterr().out
    assert "\n`help` lists the commands\n" + help_text(V1) + "\n" in printed


@pytest.mark.long
@each(
    [
        ("stpe", "did you mean step?"),
        ("ba\nbr\nb\n x", "there is no command x"),
        ("step x", "x is no number of instructions: give one from 1 to 1,000,000,000"),
        ("step -1", "-1 is no number of instructions: give one from 1 to"),
        ("back 0", "0 is no number of instructions: give one from 1 to"),
        ("back", "nothing is executed yet"),
        ("print", "print what?"),
        ("print ub", "which row?"),
        ("print acc 4096", "4096 is no row: acc has rows 0 to 4,095"),
        ("print acc -1", "-1 is no row: acc has rows 0 to 4,095"),
        ("print ub 0 900", "900 is no number of rows: give one from 1 to 64"),
        ("break fc9", "did you mean fc"),
        ("break 99", "no layer comes from line 99; layers come from lines 7, 8, 9, 12, 13"),
        ("break " + 5000 * "9", "give a layer, a line or `stall`"),
        ("step 999999\nstep", "there is no instruction left"),
    ]
)
def test_a_wrong_command_says_what_is_right(
    line: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(line + "\n"))
    assert run("debug", folder() / "02_iris.tpu", "--quiet") == 1
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["closed", "empty"])
def test_nobody_asks(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", stream)
    assert run("debug", folder() / "01_hello.tpu", "--quiet") == 0


def test_quit_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\nstep\n"))
    assert run("debug", folder() / "01_hello.tpu", "--quiet") == 0
    assert "(tpucc) step" not in capsys.readouterr().out


def every_instruction() -> Iterator[DecodedInstruction]:
    for opcode in Opcode:
        spec = SPECS[opcode]
        for function in spec.functions or (0,):
            fields = {operand.field: 1 for operand in spec.operands_for(function) if operand.field != "function"}
            yield V1.read(V1.record(opcode, **fields, **({"function": function} if spec.functions else {})))


def test_each_instruction_has_its_sentence() -> None:
    texts = [str(instruction) for instruction in every_instruction()]
    assert all(text and "{" not in text for text in texts)
    assert len(set(texts)) >= len(Opcode) - 1
    multiply = V1.read(V1.record(Opcode.MATRIX_MULTIPLY, ub=3, acc=0, inner=4))
    assert str(multiply) == "multiplies rows 3 to 6 of the unified buffer by the tile in use, into accumulators 0 to 3"
