"""Programs for the training machine: `tpucc run`, `debug` and `profile` of a `.tpub` or a listing whose values lie in named rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tpucc.cli.failures import print_json
from tpucc.cli.options import refuse_given
from tpucc.cli.resumed import read_text
from tpucc.data.archive import naming, npz_bytes, read_arrays
from tpucc.diagnostics import CheckError, Diagnostic, counted, printable
from tpucc.explain.tables import table, wrapped
from tpucc.files import MODELS, read_file
from tpucc.isa.assembler import machine_of, read_listing
from tpucc.isa.container import decode
from tpucc.isa.effects import effects
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.isa.verify import check
from tpucc.machines import DEFAULT
from tpucc.numerics import Float32
from tpucc.output_files import write_file
from tpucc.prose import percent
from tpucc.sim.durations import duration
from tpucc.training.in_rows import InRows

USED = ("model", "input_file", "output_file", "check", "as_json", "quiet")
"""The parameters of commands that mean something for such a program."""


def for_floats(path: Path) -> Program | None:
    """The program or the listing in a file, verified, where it is one of another machine than the simulator's."""
    places: ListingSpans | None = None
    if path.suffix == ".tpub":
        program = decode(read_file(path, suffixes=MODELS), str(path))
    elif path.suffix == ".asm":
        source = read_text(path)
        if machine_of(source.text) is DEFAULT:  # a listing for it may have constants by digest, which --like knows
            return None
        program, places = read_listing(source.text, source.name)
    else:
        return None
    if program.machine is DEFAULT:
        return None
    check(program, places)
    return program


def in_rows(path: Path) -> InRows | None:
    """The program in a file, ready to run, where its values lie in rows. Raises `UsageError` for options that have no effect on it."""
    program = for_floats(path)
    if program is None:
        return None
    refuse_given(lambda name: name not in USED, "has no effect on a program for floats")
    return InRows(program)


def inputs_of(rows: InRows, file: Path | None) -> tuple[dict[str, Float32], str]:
    """The inputs, and in words where they are from."""
    if file is None:
        return rows.random(), "random inputs from seed 0"
    with naming(file):
        return rows.accepted(read_arrays(file)), str(file)


def run_rows(rows: InRows, input_file: Path | None, output_file: Path | None, check: bool) -> dict[str, Any]:
    """Runs a program; a summary of it. Raises `CheckError` E0910 where plain execution gives other bits."""
    inputs, origin = inputs_of(rows, input_file)
    outputs = rows.run(inputs)
    if check:
        wanted = rows.run_plain(inputs)
        if wrong := [printable(name) for name, array in outputs.items() if array.tobytes() != wanted[name].tobytes()]:
            raise CheckError([Diagnostic("E0910", f"{name} differs from plain execution, instruction by instruction") for name in wrong])
    if output_file is not None:
        write_file(output_file, npz_bytes(outputs))
    return {
        "model": rows.program.name,
        "target": rows.program.target.name,
        "inputs": origin,
        **_time(rows),
        "outputs": {name: f"{array.dtype.name}{list(array.shape)}" for name, array in outputs.items()},
        **({"check": "equal"} if check else {}),
    }


def rows_text(summary: Mapping[str, Any]) -> str:
    """The summary of a run for people."""
    lines = [f"{printable(summary['model'])} on 1 core of {summary['target']}, on {printable(summary['inputs'])}: {_time_text(summary)}"]
    lines += [printable(f"{name}: {kind}") for name, kind in summary["outputs"].items()]
    lines += ["check: all bits are those of plain execution, instruction by instruction"] if "check" in summary else []
    return "\n".join(wrapped(line, "  ") for line in lines)


def print_profile(rows: InRows, as_json: bool) -> None:
    """Prints the cycles for which each unit is at work, in all and by layer."""
    program, spent = rows.program, rows.timeline.end - rows.timeline.start
    engine = effects(program.instructions, program.machine).engine
    words, layers = [unit.word for unit in program.machine.units], range(len(program.layers))
    by_layer = [[int(spent[(engine == unit) & (program.layer_of == layer)].sum()) for unit in range(len(words))] for layer in layers]
    in_all = [int(spent[engine == unit].sum()) for unit in range(len(words))]
    summary = {
        "model": program.name,
        "target": program.target.name,
        **_time(rows),
        "units": dict(zip(words, in_all, strict=True)),
        "layers": [{"name": program.layers[layer].name, "units": dict(zip(words, by_layer[layer], strict=True))} for layer in layers],
    }
    if as_json:
        print_json(summary)
        return
    body = [(printable(program.layers[layer].name), *(f"{cycles:,}" for cycles in by_layer[layer])) for layer in layers]
    body.append(("in all", *(f"{cycles:,}" for cycles in in_all)))
    body.append(("of the time", *(percent(cycles, rows.timeline.makespan) for cycles in in_all)))
    heading = wrapped(f"{printable(program.name)} on 1 core of {program.target.name}: {_time_text(summary)}. Cycles at work:", "  ")
    click.echo(f"{heading}\n\n{table(('layer', *words), body)}")


def _time(rows: InRows) -> dict[str, Any]:
    cycles = rows.timeline.makespan
    return {"instructions": len(rows.program.instructions), "cycles": cycles, "seconds": cycles / rows.program.target.clock_hz}


def _time_text(summary: Mapping[str, Any]) -> str:
    return f"{counted(summary['instructions'], 'instruction')}, {summary['cycles']:,} cycles, {duration(summary['seconds'])}"
