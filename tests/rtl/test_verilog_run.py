"""The chip's Verilog in simulators that read Verilog: all outputs in all cycles are those of PyRTL's simulation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tpucc
from tests.support.machine import TINY, TWO_LAYERS
from tests.support.random_machine import RandomProgram
from tpucc.runtime.check import random_inputs
from tpucc.sim.interpret import Interpreter

pytestmark = [pytest.mark.annex, pytest.mark.long]

SIMULATORS = {
    "iverilog": (["iverilog", "-g2012", "-o", "chip", "bench.v", "chip.v"], "chip"),
    "verilator": (["verilator", "--binary", "-Wno-fatal", "--top-module", "bench", "bench.v", "chip.v"], "obj_dir/Vbench"),
}
"""Of each simulator the command that makes a program of a bench, and the program."""
MEMORY = re.compile(r"^\s*reg\[\d+:0\] (\w+)\[(\d+):0\];", re.MULTILINE)
LONGEST = 4096
"""Cycles for which a bench has room."""
BENCH = """
module bench;
    reg clk = 0, rst = 1;
    integer cycle, place, last;
    {declared}
    reg [{width}:0] stimulus [0:{longest}];
    chip dut(.clk(clk), .rst(rst), {ports});
    initial begin
        {inputs} = 0;
        if (!$value$plusargs("last=%d", last)) $fatal;
        #5 clk = 1; #5 clk = 0; rst = 0;
        {filled}
        $readmemh("stimulus.hex", stimulus, 0, last);
        for (cycle = 0; cycle <= last; cycle = cycle + 1) begin
            {inputs} = stimulus[cycle];
            #4 $display("{formats}", {outputs});
            #1 clk = 1; #5 clk = 0;
        end
        $finish;
    end
endmodule
"""
"""A reset, the memories' first contents, and then a cycle for each word of the stimulus, of which the outputs are printed."""


def network() -> Interpreter:
    """A network of two layers that has begun."""
    runtime = tpucc.compile_source(TWO_LAYERS, target="tiny").runtime
    return runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime)))[0])


def random_program(seed: int, rtl: ModuleType) -> Interpreter:
    """A random machine program that has begun, with any instructions, walks and functions."""
    drawn = RandomProgram(seed, TINY)
    begun = Interpreter(rtl.ordered(drawn.make()))
    begun.begin({"x": drawn.numbers.integers(-128, 128, (drawn.writer.rows, TINY.mxu)).astype(np.int8)})
    return begun


def bench(folder: Path, rtl: ModuleType) -> dict[str, int]:
    """Writes the chip and what drives it. Returns the words of each memory."""
    from tpucc.rtl.verilog import verilog

    inputs, outputs = ports(rtl)
    text = verilog("chip", rtl.hardware().block)
    memories = {name: int(last) + 1 for name, last in re.findall(MEMORY, text)}
    (folder / "chip.v").write_text(text, "utf-8")
    declared = [f"{kind}[{size - 1}:0] {name};" for kind, own in (("reg", inputs), ("wire", outputs)) for name, size in own.items()]
    driven = BENCH.format(
        declared=" ".join(declared),
        width=sum(inputs.values()) - 1,
        longest=LONGEST,
        ports=", ".join(f".{name}({name})" for name in (*inputs, *outputs)),
        inputs=f"{{{', '.join(inputs)}}}",
        filled="\n        ".join(f'$readmemh("{name}.hex", dut.{name});' for name in memories),
        formats=" ".join("%h" for _ in outputs),
        outputs=", ".join(outputs),
    )
    (folder / "bench.v").write_text(driven, "utf-8")
    return memories


def ports(rtl: ModuleType) -> list[dict[str, int]]:
    """The bits of the chip's inputs, and of its outputs."""
    from pyrtl import Input, Output

    return [{wire.name: len(wire) for wire in rtl.hardware().block.wirevector_subset(kind)} for kind in (Input, Output)]


def driven(program: Path, begun: Interpreter, memories: dict[str, int], cycles: int, folder: Path, rtl: ModuleType) -> list[dict[str, int]]:
    """The outputs that a bench prints of a machine program, a cycle at a time, after the cycles that decode."""
    from tpucc.cosimulation.simulate import contents

    inputs, outputs = ports(rtl)
    records = [int.from_bytes(record.tobytes(), "little") for record in begun.program.instructions]
    given = [{"record": record, "valid": 1} for record in records] + [{"go": 1}] * cycles
    words = []
    for cycle in given:
        word = 0
        for name, size in inputs.items():
            word = word << size | cycle.get(name, 0)
        words.append(f"{word:x}")
    (folder / "stimulus.hex").write_text("\n".join(words), "utf-8")
    held = {memory.name: values for memory, values in contents(rtl.hardware(), begun.program, begun.memories.buffers).items()}
    assert held.keys() <= memories.keys()
    for name, count in memories.items():
        values = held.get(name, {})
        (folder / f"{name}.hex").write_text("\n".join(f"{values.get(place, 0):x}" for place in range(count)), "utf-8")
    command = [program, f"+last={len(words) - 1}"]
    made = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in made.splitlines() if re.fullmatch(r"[0-9a-f ]+", line)]
    return [dict(zip(outputs, (int(word, 16) for word in line), strict=True)) for line in lines[len(records) :]]


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_a_simulator_of_verilog_has_the_same_outputs(simulator: str, rtl: ModuleType, tmp_path: Path) -> None:
    """A network, and random machine programs."""
    if shutil.which(simulator) is None:
        pytest.skip(f"{simulator} is not installed")
    memories = bench(tmp_path, rtl)
    command, program = SIMULATORS[simulator]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for number, begun in enumerate((network(), *(random_program(seed, rtl) for seed in range(1, 12)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = rtl.simulate(rtl.hardware(), begun.program, begun.memories.buffers.copy(), begun.host, 10_000)
        assert run.finished
        found = driven(tmp_path / program, begun, memories, run.cycles + 1, folder, rtl)
        assert found == [dict(zip(run.signals, cycle, strict=True)) for cycle in zip(*run.signals.values(), strict=True)]
