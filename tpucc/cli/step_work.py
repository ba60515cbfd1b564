"""`tpucc compile MODEL.tpu --train`: one step of training as a graph, a picture, and the program of a training machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tpucc.cli.failures import print_json
from tpucc.cli.messages import warnings_of
from tpucc.cli.options import refuse_unused
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress, told
from tpucc.cli.step_profile import target_of_step
from tpucc.cli.work import Dump
from tpucc.compilation import Snapshot
from tpucc.diagnostics import Error, Source, counted, printable
from tpucc.explain.quantities import size
from tpucc.explain.tables import wrapped
from tpucc.interop.sources import read_source
from tpucc.isa.program import Program
from tpucc.language.elaborate import Model
from tpucc.machines.v2.links import all_reduce
from tpucc.output_files import write_files
from tpucc.passes.pipeline import unknown_name
from tpucc.sim.durations import duration
from tpucc.sim.timing import time_program
from tpucc.target import machine_name
from tpucc.training.lowering.lower import lower
from tpucc.training.numerics import CHOICES, Numerics
from tpucc.training.roles import Parts, Role, parts_of
from tpucc.training.start import step_of
from tpucc.training.step import Step
from tpucc.training.timing.step_time import StepTime
from tpucc.training_page import program_files, step_files

USED = ("model", "train", *CHOICES, "output", "params", "target", "cores", "print_after", "dump_dir", "with_data", "as_json", "quiet")
"""The parameters of `compile` that mean something for a step of training."""


def compile_step(
    model: Path, output: Path | None, given: Mapping[str, Any], dump: Dump, as_json: bool, quiet: bool, progress: Progress
) -> None:
    """Makes the step, writes its files, and prints a summary."""
    refuse_unused(USED)
    source = read_source(model)
    progress.stage("make the step graph")
    made, step = step_of(source, given["params"], given["cores"], Numerics(**{name: given[name] for name in CHOICES}))
    _require(step, dump.print_after)
    for number, stage in enumerate(step.stages):
        dump(Snapshot(number, stage.name, stage.graph, 0.0, stage.changed, stage.summary))
    warnings = warnings_of(made.warnings, source, step.notes)
    for warning in () if quiet else warnings:
        progress.say(warning)
    progress.stage("draw and write the files")
    time = StepTime(step, target_of_step(given))
    files = step_files(made, step, source, time, dump.with_data)
    program = _program(step, time, made.graph.name, source, quiet, progress)
    if program is not None:
        files |= program_files(program)
    folder = output or Path("build") / model.stem
    keep_inputs(*(folder / name for name in files))
    write_files(folder, files)
    paths = [printable(str(folder / name)) for name in files]
    parts = parts_of(step)
    if as_json:
        print_json(_summary(made, step, parts, time) | _of_program(program) | {"files": paths, "warnings": warnings})
    elif not quiet:
        with progress.aside():
            click.echo(_text(made, step, parts, time, program, paths))


def _program(step: Step, time: StepTime, name: str, source: Source, quiet: bool, progress: Progress) -> Program | None:
    """The program of a step on one core, where the command line names the target; a note says why there is none."""
    if click.get_current_context().get_parameter_source("target") is ParameterSource.DEFAULT or step.parts > 1:
        return None
    try:
        return lower(step, time.target, name, source.name, source.text).program
    except Error as error:
        told((f"no program: {found.message}" for found in error.diagnostics), progress, quiet)
        return None


def _of_program(program: Program | None) -> dict[str, Any]:
    return {} if program is None else {"instructions": len(program.instructions), "cycles": time_program(program).makespan}


def _require(step: Step, wanted: str | None) -> None:
    names = tuple(dict.fromkeys(stage.name for stage in step.stages))
    if wanted not in (None, "all", *names):
        raise unknown_name("stage of training", str(wanted), names)


def _summary(model: Model, step: Step, parts: Parts, time: StepTime) -> dict[str, Any]:
    return {
        "model": model.graph.name,
        "cores": step.parts,
        "nodes": len(step.graph),
        "operators": {str(role): parts.count(role) for role in Role},
        "state_bytes": parts.state_bytes,
        "kept_values": len(parts.kept),
        "kept_bytes": parts.kept_bytes,
        "all_reduce_by_formula": asdict(all_reduce(step.reduced_bytes, step.parts, time.target)),
        "seconds": time.seconds,
        "bound": str(time.bound),
        "stages": {f"{number:02} {stage.name}": len(stage.graph) for number, stage in enumerate(step.stages)},
    }


def _text(model: Model, step: Step, parts: Parts, time: StepTime, program: Program | None, paths: list[str]) -> str:
    each = f" on each of {counted(step.parts, 'core')}" if step.parts > 1 else ""
    changed = ", ".join(dict.fromkeys(stage.name for stage in step.stages[1:] if stage.changed))
    rows = [
        ("model", f"{printable(model.graph.name)}, a step of {model.training.optimizer if model.training else ''}{each}"),
        ("passes", changed),
        *((str(role), counted(parts.count(role), "operator")) for role in Role if parts.count(role)),
        ("state", f"{size(parts.state_bytes)} in {counted(len(parts.states), 'array')}"),
        ("kept", f"{size(parts.kept_bytes)} in {counted(len(parts.kept), 'activation')}, from the forward part for the backward one"),
        ("time", f"{duration(time.seconds)} on {machine_name(time.target.name, time.cores)}, limited by: {time.limits}"),
        *([] if program is None else [("program", _program_text(program))]),
        ("wrote", ", ".join(paths)),
    ]
    return "\n".join(wrapped(f"{label:<10} {value}", " " * 11) for label, value in rows)


def _program_text(program: Program) -> str:
    cycles = time_program(program).makespan
    seconds = cycles / program.target.clock_hz
    return f"{counted(len(program.instructions), 'instruction')}, {cycles:,} cycles, {duration(seconds)}"
