"""Programs that stop for the host: their two forms, their rules, their results, their time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.machine import TINY, Writer
from tests.support.mixed import SCALE, ZERO, Mixed, random_inputs
from tests.support.random_machine import RandomProgram
from tests.support.slow_machine import slow_run
from tpucc.cli.main import main
from tpucc.diagnostics import InputError, ProgramError
from tpucc.explain.device_outputs import run_quantized
from tpucc.explain.stats import stats
from tpucc.explain.trace import trace_events
from tpucc.ir import Graph
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import HostWork, Program
from tpucc.isa.verify import verify
from tpucc.layers.partition import Partition, partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.machines.v1 import Flag, Opcode
from tpucc.numerics import Int8
from tpucc.ops.evaluate import evaluate
from tpucc.runtime.runtime import Runtime
from tpucc.sim.fast.execute import Simulator
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program

CODE = """
.target tiny
.input "x.i8" 6x4 scale={scale} zero={zero}
.input "first.i8" 6x4 scale={scale} zero={zero}
.input "joined.i8" 6x4 scale={scale} zero={zero}
.output a 6x4 scale={scale} zero={zero}
.output b 6x4 scale={scale} zero={zero}
.output c 6x4 scale={scale} zero={zero}
.block scale_a=0.5 scale_b=0.75 zero_a={zero} zero_b={zero} zero={zero}

    read_host_memory host="x.i8.0" ub=0 rows=6
    set_configuration block=0
    synchronize engine=activation wait=host
    vector function=add a=0 b=0 ub=6 inner=6
    synchronize engine=host wait=activation
    write_host_memory ub=6 host="a.0" rows=6
    interrupt_host step=0
    read_host_memory host="first.i8.0" ub=12 rows=6
    synchronize engine=activation wait=host
    vector function=add a=12 b=6 ub=18 inner=6
    synchronize engine=host wait=activation
    write_host_memory ub=18 host="b.0" rows=6
    interrupt_host step=1
    read_host_memory host="joined.i8.0" ub=24 rows=6
    synchronize engine=activation wait=host
    vector function=add a=24 b=18 ub=30 inner=6
    synchronize engine=host wait=activation
    write_host_memory ub=30 host="c.0" rows=6
    interrupt_host step=2
    halt
"""
Edit = Callable[[Program], Program]


@cache
def layers() -> Graph:
    """Two steps; the second reads what the first one made, and so does the epilogue. `real`, made in a step, is an output."""
    model = Mixed()
    x = model.input("x", 6, 4)
    held = model.quantised(x)
    real = model.real(model.add("a", held, held))
    first = model.op("softmax", real, name="first")
    b = model.add("b", model.quantised(first), "a")
    joined = model.op("add", model.op("mul", model.real(b), first, name="scaled"), x, name="joined")
    c = model.add("c", model.quantised(joined), b)
    return model.build(model.op("add", model.real(c), first, name="last"), real, model.op("reshape", "c.f32", name="flat", shape=(6, 4)))


@cache
def parts() -> Partition:
    return partition(layers())


@cache
def program() -> Program:
    """The graph by hand: the listing has the device's part, the partition the host's."""
    made = assemble(CODE.format(scale=SCALE, zero=ZERO), "mixed.asm")
    steps = tuple(HostWork(str(step.graph), step.reads, step.writes, step.elements) for step in parts().middle)
    return replace(made, prologue=str(parts().prologue), epilogue=str(parts().epilogue), host_steps=steps)


def codes(p: Program) -> set[str]:
    return {violation.code for violation in verify(p)}


def step(p: Program, number: int, **fields: object) -> Program:
    """The program with other fields of one host step."""
    steps = list(p.host_steps)
    steps[number] = replace(steps[number], **fields)  # type: ignore[arg-type]
    return replace(p, host_steps=tuple(steps))


def edited(p: Program, opcode: Opcode, nth: int, **fields: int) -> Program:
    code = p.instructions.copy()
    for field, value in fields.items():
        code[field][np.flatnonzero(code["opcode"] == opcode)[nth]] = value
    return replace(p, instructions=code)


def without(p: Program, opcode: Opcode, nth: int) -> Program:
    index = np.flatnonzero(p.instructions["opcode"] == opcode)[nth]
    return replace(p, instructions=np.delete(p.instructions, index), layer_of=np.delete(p.layer_of, index))


def swapped(p: Program, one: int, other: int) -> Program:
    code = p.instructions.copy()
    code[[one, other]] = code[[other, one]]
    return replace(p, instructions=code)


def test_the_program_keeps_every_rule() -> None:
    assert verify(program()) == ()


def test_both_forms_come_back_equal() -> None:
    p = program()
    text = disassemble(p)
    assert "interrupt_host step=2" in text
    assert f".host_step elements={p.host_steps[0].elements}" in text
    for again in (assemble(text, "mixed.asm"), decode(encode(p), "mixed.tpub")):
        assert again.host_steps == p.host_steps
        assert encode(again) == encode(p)
    assert encode(step(p, 1, elements=7)) != encode(p)


@each(["", "\n", "a\n\nb", "tab\tand \x07 bell", 'a "quoted" line; with a semicolon'])
def test_any_text_and_any_name_of_a_port_come_back(graph: str) -> None:
    p = step(program(), 0, graph=graph, reads=("two words", "c]", 'a"b;'), writes=(), elements=0)
    assert assemble(disassemble(p), "p.asm").host_steps == p.host_steps
    assert decode(encode(p), "p").host_steps == p.host_steps


@each(
    [
        (".reads a", ".reads stands after no .host_step"),
        (".writes a", ".writes stands after no .host_step"),
        (".host_step elements=-1", "expected a number for elements"),
        (".host_step element=1", "elements"),
        ('.host_step "a" "b"', "doesn't take"),
        (".host_step\n.reads a=1", "doesn't take a=1"),
        ("interrupt_host stp=1", "did you mean step"),
    ]
)
def test_wrong_lines_are_explained(line: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        assemble(f".target tiny\n{line}\n", "p.asm")
    assert words in str(caught.value)


def test_a_listing_s_own_target_needs_no_host_numbers_and_keeps_them() -> None:
    own = msgspec.structs.replace(TINY, name="mine", host_step_seconds=0.0, host_elements_per_second=5e6)
    text = disassemble(replace(program(), target=own))
    assert assemble(text, "p.asm").target == own
    shorter = text.replace(" host_step_seconds=0.0", "").replace(" host_elements_per_second=5000000.0", "")
    assert assemble(shorter, "p.asm").target == msgspec.structs.replace(TINY, name="mine")


BREAKS: dict[str, tuple[str, Edit]] = {
    "a step reads an input": ("V0108", lambda p: step(p, 0, reads=("x.i8",))),
    "a step fills an output": ("V0108", lambda p: step(p, 0, writes=("a",))),
    "a step reads a port twice": ("V0108", lambda p: step(p, 1, reads=("b", "b"))),
    "a step fills a port twice": ("V0108", lambda p: step(p, 1, writes=("joined.i8", "joined.i8"))),
    "two steps fill a port": ("V0108", lambda p: step(p, 1, writes=("first.i8", "joined.i8"))),
    "too many elements": ("V0108", lambda p: step(p, 1, elements=2**48 + 1)),
    "negative elements": ("V0108", lambda p: step(p, 1, elements=-1)),
    "a port that a later step fills is read": ("V0404", lambda p: edited(p, Opcode.READ_HOST_MEMORY, 1, host=12)),
    "a port is read before the step that fills it": ("V0404", lambda p: swapped(p, 6, 7)),
    "a step reads what is written later": ("V0404", lambda p: step(p, 0, reads=("a", "b"))),
    "an output is written after the step that reads it": ("V0404", lambda p: swapped(p, 5, 6)),
    "steps out of order": ("V1005", lambda p: swapped(p, 6, 12)),
    "a step twice": ("V1005", lambda p: edited(p, Opcode.INTERRUPT_HOST, 1, index=0)),
    "a step without an interrupt": ("V1005", lambda p: without(without(p, Opcode.INTERRUPT_HOST, 2), Opcode.INTERRUPT_HOST, 1)),
    "an interrupt without a step": ("V1005", lambda p: replace(p, host_steps=p.host_steps[:1])),
    "an output after the last interrupt": ("V1005", lambda p: swapped(p, 17, 18)),
}


@each(list(BREAKS))
def test_a_broken_rule_is_named(name: str) -> None:
    code, edit = BREAKS[name]
    assert code in codes(edit(program()))


def test_the_last_interrupt_may_be_left_out() -> None:
    assert verify(without(program(), Opcode.INTERRUPT_HOST, 2)) == ()


def test_only_the_ports_of_the_prologue_are_given() -> None:
    assert [port.name for port in program().prologue_ports] == ["x.i8"]
    for run in (Interpreter(program()).run, Simulator(program()).run):
        with pytest.raises(InputError) as caught:
            run({port.name: np.zeros(port.shape, np.int8) for port in program().inputs})
        assert [d.code for d in caught.value.diagnostics] == ["E0480", "E0480"]


@each([{}, {"first.i8": np.zeros((6, 3), np.int8)}, {"first.i8": np.zeros((6, 4), np.float32)}])
def test_an_answer_that_does_not_fit_is_refused(answer: Mapping[str, Int8]) -> None:
    x = {"x.i8": np.zeros((6, 4), np.int8)}
    for run in (Interpreter(program()).run, Simulator(program()).run):
        with pytest.raises(InputError) as caught:
            run(x, host=lambda number, values: answer)
        assert [d.code for d in caught.value.diagnostics] == ["E0480"]
        with pytest.raises(InputError) as caught:
            run(x)
        assert "there is no host" in str(caught.value)


def test_it_computes_what_the_layers_do() -> None:
    runtime = Runtime(program())
    for seed in range(5):
        inputs = random_inputs(layers(), seed)
        wanted = evaluate(layers(), inputs, LAYER_REFERENCES, keep=("a", "b", "c"))
        found = runtime.run(inputs)
        for output in layers().outputs:
            np.testing.assert_array_equal(found[output.name], wanted[output.node])
        for plain in (False, True):
            ports = runtime.ports(inputs, plain=plain)
            assert ports.keys() == {"a", "b", "c"}
            for name, values in ports.items():
                np.testing.assert_array_equal(values, wanted[name])


def test_integers_of_outputs_that_a_step_and_the_epilogue_dequantise() -> None:
    inputs = random_inputs(layers())
    found = run_quantized(Runtime(program()), inputs)
    wanted = evaluate(layers(), inputs, LAYER_REFERENCES, keep=("a", "c"))
    assert found.keys() == {"out_a.f32", "out_flat", "c"}  # the host makes another output from c
    for name, port in (("out_a.f32", "a"), ("out_flat", "c")):
        np.testing.assert_array_equal(found[name].values, wanted[port])
        assert (found[name].scale, found[name].zero_point) == (SCALE, ZERO)


def test_other_batches_run_in_rounds() -> None:
    runtime, x = Runtime(program()), np.random.default_rng(3).standard_normal((15, 4)).astype(np.float32)
    whole = runtime.run(x=x)
    for start in (0, 6):
        part = runtime.run(x=x[start : start + 6])
        for name, values in part.items():
            np.testing.assert_array_equal(whole[name][start : start + 6], values)
    assert {len(values) for values in whole.values()} == {15}


@each(
    [
        (lambda p: step(p, 0, graph=p.host_steps[1].graph), "host step 0 needs first, which nothing before it makes"),
        (lambda p: step(p, 0, graph=p.host_steps[1].graph), "the device after host step 0 needs first.i8"),
        (lambda p: step(p, 1, reads=()), "host step 1 needs b, which nothing before it makes"),
        (lambda p: replace(p, prologue=p.prologue.replace('x.i8 as "x.i8"', 'x.i8 as "y.i8"')), "the device needs x.i8, which nothing"),
        (
            lambda p: replace(p, prologue=p.prologue.replace('x.i8 as "x.i8"', 'x as "x.i8"')),
            "and the parts before it make 24 elements of f32",
        ),
        (
            lambda p: replace(p, epilogue=p.epilogue.replace("6, 4", "6, 5")),
            "needs first as 30 elements of f32, and the parts",
        ),
    ]
)
def test_parts_that_do_not_fit_are_refused(edit: Edit, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Runtime(edit(program())).run(random_inputs(layers()))
    assert {d.code for d in caught.value.diagnostics} == {"E0708"}
    assert message in str(caught.value)


class RandomStops(RandomProgram):
    """A random program that stops for the host: its steps read the output, and the first fills the input."""

    def make_with_steps(self, steps: int) -> Program:
        p = self.make()
        starts = sorted(self.choose.sample(range(30, len(p.instructions) - 2), steps))
        code = p.instructions[p.instructions["opcode"] != Opcode.INTERRUPT_HOST]
        stop = np.zeros(1, code.dtype)
        stop["opcode"] = Opcode.INTERRUPT_HOST
        for number, start in reversed(list(enumerate(starts))):
            stop["index"] = number
            code = np.insert(code, min(start, len(code) - 2), stop[0])
        works = tuple(HostWork("", ("y",), ("x",) if number == 0 else (), 0) for number in range(steps))
        return replace(p, instructions=code, layer_of=np.zeros(len(code), np.uint32), host_steps=works)


@pytest.mark.parametrize("seed", one_of(3, range(60)))
def test_random_programs_that_stop(seed: int) -> None:
    """The host sees the same memory in all executors, at every stop, and gives the same answer."""
    p = RandomStops(seed, length=80).make_with_steps(3)
    seen: list[list[bytes]] = []

    def host(number: int, values: Mapping[str, Int8]) -> dict[str, Int8]:
        seen[-1].append(values["y"].tobytes())
        return {"x": values["y"] ^ np.int8(0x55)} if number == 0 else {}

    results = []
    for run in (Interpreter(p).run, Simulator(p).run):
        seen.append([])
        results.append(run({}, host=host)["y"].tolist())
    seen.append([])
    results.append(slow_run(p, {}, host)["y"])
    assert results[0] == results[1] == results[2]
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 3


def test_a_group_does_not_grow_across_a_stop() -> None:
    """The host reads what the first half of a sum made, and the rest goes on after it, into the same accumulators."""
    writer = Writer(rows=4)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=4)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=4)
    writer.add(Opcode.ACTIVATE, acc=0, dest=4, inner=4)
    writer.add(Opcode.MATRIX_MULTIPLY, ub=0, acc=4, inner=4)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=4, host=4, inner=4)
    writer.add(Opcode.INTERRUPT_HOST)
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.ACCUMULATE, ub=4, acc=4, inner=4)
    writer.add(Opcode.ACTIVATE, acc=4, dest=8, inner=4)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=8, host=4, inner=4)
    p = replace(writer.program(), host_steps=(HostWork("", ("y",), (), 0),))
    x = np.arange(16, dtype=np.int8).reshape(4, 4)
    for run in (Interpreter(p).run, Simulator(p).run):
        seen: list[Int8] = []
        result = run({"x": x}, host=lambda number, values, seen=seen: seen.append(values["y"]) or {})  # type: ignore[misc]
        np.testing.assert_array_equal(seen[0], x)
        np.testing.assert_array_equal(result["y"], 2 * x)


def test_a_step_takes_its_time_on_the_host() -> None:
    """tiny runs at 1 MHz: a step takes 10 cycles, and a microsecond for a thousand elements."""
    p = step(step(program(), 0, elements=0), 1, elements=7_400)
    timeline = time_program(p)
    first, second, last = np.flatnonzero(p.instructions["opcode"] == Opcode.INTERRUPT_HOST)
    assert [int(timeline.end[i] - timeline.start[i]) for i in (first, second, last)] == [10, 17, 0]
    assert timeline.start[first] == timeline.end[first - 1]
    assert timeline.start[first + 1] == timeline.end[first]
    assert timeline.end[last] == timeline.makespan
    numbers = stats(p, timeline)
    assert (numbers["host_steps"], numbers["host_step_cycles"]) == (2, 27)
    without_steps = replace(p, host_steps=())
    assert time_program(without_steps).makespan == timeline.makespan - 27
    assert stats(without_steps, time_program(without_steps))["host_step_cycles"] == 0


def test_host_work_can_be_what_limits() -> None:
    p = step(program(), 1, elements=1_000_000)
    numbers = stats(p, time_program(p))
    assert numbers["bottleneck"] == "host work"
    assert "the host computes 2 steps in" in numbers["explanation"]
    assert stats(program(), time_program(replace(program(), host_steps=())))["bottleneck"] != "host work"


def test_a_steps_time_is_its_layers() -> None:
    """Where the interrupt has a layer of its own, nobody else gets its cycles."""
    p = step(program(), 0, elements=990_000)
    layer_of = p.layer_of.copy()
    layer_of[6] = 1
    named = replace(p, layers=(p.layers[0], replace(p.layers[0], name="first", kind="host")), layer_of=layer_of)
    numbers = stats(named, time_program(named))
    assert [layer["cycles"] for layer in numbers["layers"]] == [numbers["cycles"] - 1006, 1000, 6]


SOURCE = """
weights random(seed=1)
model steps(x: f32[8, 16] in [-1.0, 1.0]) -> f32[8, 3]:
    weight w: f32[16, 32]
    weight v: f32[32, 32]
    weight u: f32[32, 3]
    h = relu(x @ w)
    s = softmax(h)
    g = relu(s @ v)
    t = softmax(g) * 0.5
    return t @ u
"""


def test_a_step_is_a_layer_with_the_lines_that_it_computes() -> None:
    """And the layer before it has none of its cycles."""
    exe = tpucc.compile_source(SOURCE)
    found = exe.runtime.program
    assert [(layer.name, layer.kind, layer.origin.line) for layer in found.layers] == [
        ("h", "fc", 7),
        ("host step 0", "host", 8),
        ("g", "fc", 9),
        ("host step 1", "host", 10),
        ("t", "vector", 10),
        ("matmul.2", "fc", 11),
    ]
    assert found.device_layers == 4
    own = [[Opcode(int(code)).mnemonic for code in found.instructions["opcode"][found.layer_of == layer]] for layer in (1, 3)]
    assert own == [["interrupt_host"]] * 2
    cycles = [layer["cycles"] for layer in exe.stats["layers"]]
    assert sum(cycles) == exe.stats["cycles"]
    assert cycles[1] + cycles[3] == exe.stats["host_step_cycles"]
    assert all(cycles[layer] < cycles[step] for layer in (0, 2, 4, 5) for step in (1, 3))


def test_a_step_that_only_crosses_has_the_places_of_what_crosses() -> None:
    """It dequantises a computed kernel and quantises it in the scale of weights."""
    source = """
weights random(seed=1)
model m(x: f32[1, 5, 7, 3], z: f32[1, 4]):
    weight w: f32[1, 1, 3, 1]
    weight g: f32[4, 1]
    h = relu(conv2d(x, w))
    return relu(conv2d(h, tanh(reshape(z @ g, (1, 1, 1, 1)))))
"""
    exe = tpucc.compile_source(source, settings={"write-weights": {"computed_products": "device"}})
    (step,) = (layer for layer in exe.program.layers if layer.is_host_step)
    assert step.origin.line == 7


def test_the_summary_counts_steps_beside_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of `tpucc profile` has a row for each of both."""
    source = tmp_path / "stepping.tpu"
    source.write_text(SOURCE)
    assert main(["compile", str(source), "-o", str(tmp_path), "--emit", "stats"]) == 0
    assert re.search(r"^layers +4 and 2 host steps, with [0-9,]+ multiply-accumulates$", capsys.readouterr().out, re.MULTILINE)


def test_steps_are_layers_of_the_texts_too() -> None:
    exe = tpucc.compile_source(SOURCE)
    for text in (str(exe.tiles), str(exe.program)):
        assert encode(tpucc.resume(text, like=exe).runtime.program) == encode(exe.runtime.program)


@pytest.mark.parametrize(("rate", "limit"), [("1e6", "host work"), ("1e12", "host link")])
def test_a_stream_that_waits_for_the_host_says_for_what(rate: str, limit: str) -> None:
    overrides = {"host_elements_per_second": rate, "host_step_seconds": "0", "host_bandwidth": "1e7"}
    assert tpucc.compile_source(SOURCE, overrides=overrides).stats["stream"]["bottleneck"] == limit


def test_the_trace_shows_the_steps() -> None:
    p = step(program(), 0, elements=20_000)
    events = msgspec.json.decode(trace_events(p, time_program(p)))["traceEvents"]
    shown = [event for event in events if event["name"].startswith("interrupt_host")]
    assert [event["args"]["cycles"] for event in shown] == [30, TINY.host_step_cycles(p.host_steps[1].elements)]
    assert [event["args"]["index"] for event in shown] == [0, 1]


@each([{"host_step_seconds": -1.0}, {"host_step_seconds": float("inf")}, {"host_elements_per_second": 0.0}])
def test_targets_with_impossible_hosts_are_refused(fields: dict[str, float]) -> None:
    values = {name: getattr(TINY, name) for name in TINY.__struct_fields__}
    with pytest.raises(ValueError, match=next(iter(fields))):
        type(TINY)(**{**values, **fields})
