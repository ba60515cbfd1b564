"""Work that several commands share: they compile the file that the command line names, with its warnings and its dumps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tpucc.api import WARNING, Executable
from tpucc.cli.labelled import held_out
from tpucc.cli.options import options_from, refuse_given
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import SILENT, CompileProgress, Progress, told
from tpucc.cli.resumed import TEXT_SUFFIXES, refuse_like, resumed
from tpucc.compilation import Compilation, Snapshot
from tpucc.data.archive import naming
from tpucc.driver import compile_source
from tpucc.explain.quality import Accuracy, Regression, held_ranges, notices, quality
from tpucc.explain.timed import Timed
from tpucc.interop.sources import held_out_file, read_source
from tpucc.ir.codec import stamped
from tpucc.numerics import AnyArray
from tpucc.output_files import write_file
from tpucc.passes.calibrate import NO_CALIBRATION
from tpucc.stage_names import FRONT_STAGES, require_stage

PROGRAM_SUFFIX = ".tpub"


@dataclass
class Dump:
    """An observer that prints and saves the stages it was asked for."""

    print_after: str | None
    folder: Path | None
    progress: Progress
    with_data: bool

    def __call__(self, snapshot: Snapshot) -> None:
        if self.print_after in ("all", snapshot.stage) and snapshot.stage not in ("parse", "verify"):
            with self.progress.aside():
                click.echo(f"; after {snapshot.stage}\n{snapshot.rules}{snapshot.text(self.with_data)}")
        if self.folder is not None and snapshot.stage not in ("parse", "verify"):
            place = self.folder / f"{snapshot.number:02}-{snapshot.stage}{snapshot.suffix}"
            text = stamped(snapshot.text(self.with_data), "#" if snapshot.suffix == ".graph" else ";")
            keep_inputs(place)
            write_file(place, text.encode())


def executable_from(
    path: Path, given: Mapping[str, Any], quiet: bool, progress: Progress = SILENT, *, of_accuracy: bool = True
) -> Executable:
    """The executable of a source or of a program. Options of compiling have no effect on a program, and are refused. Notes `of_accuracy`
    are left out where the command shows no values."""
    if path.suffix == PROGRAM_SUFFIX:
        refuse_like(given)
        refuse_given(given.__contains__, "is an option of compiling; a program is compiled already")
        return Executable(Timed(Timed.load(path).program, progress.rounds))
    compilation = compiled(path, given, quiet, progress, of_accuracy=of_accuracy)
    assert compilation.program is not None
    return Executable(Timed(compilation.program, progress.rounds), compilation)


def compiled(
    path: Path,
    given: Mapping[str, Any],
    quiet: bool,
    progress: Progress = SILENT,
    *,
    dump: Dump | None = None,
    stop_after: str | None = None,
    of_accuracy: bool = True,
) -> Compilation:
    """Compiles a source, or goes on from the text of a stage, with the options of the command line; prints warnings to standard error."""
    options = options_from(given, stop_after)
    if dump is not None and dump.print_after not in (None, "all"):
        require_stage(str(dump.print_after), options)
    showing = CompileProgress(progress, options)

    def observe(snapshot: Snapshot) -> None:
        showing(snapshot)
        if dump is not None:
            dump(snapshot)

    if path.suffix in TEXT_SUFFIXES:
        compilation = resumed(path, given["like"], options, observe)
    else:
        refuse_like(given)
        source = read_source(path, options.params, progress.stage)
        progress.stage(FRONT_STAGES[0])
        compilation = compile_source(source, path.parent, options, observe)
    if not quiet:
        print_warnings(compilation.warnings, progress, of_accuracy)
    return compilation


def require_model(path: Path) -> None:
    """Raises `UsageError` for a file that has gone through passes already, where it is asked what each of them gives."""
    if path.suffix in (PROGRAM_SUFFIX, *TEXT_SUFFIXES):
        raise click.UsageError(f"{path.name} has gone through passes already; what each of them gives is told of a model (.tpu, .onnx)")


def print_warnings(warnings: Iterable[str], progress: Progress, of_accuracy: bool = True) -> None:
    """Warnings of the source, and notes, on standard error; without those `of_accuracy` where no values are shown."""
    for warning in warnings:
        if warning.startswith(NO_CALIBRATION) and not of_accuracy:
            continue
        if WARNING.search(warning):
            progress.say(warning)
        else:
            progress.note(warning)


def held_out_accuracy(
    compilation: Compilation, runtime: Timed, path: Path, progress: Progress = SILENT, quiet: bool = False
) -> Accuracy | None:
    """The accuracy on the held-out set beside the source, for the page; None where there is no such set, or the model doesn't classify."""
    found = held_out(path, lambda notes: told(notes, progress, quiet))
    if found is None or compilation.graph is None:
        return None
    with naming(held_out_file(path)):
        measured = judged(runtime, compilation, *found, progress, quiet)
    return measured if isinstance(measured, Accuracy) else None


def judged(
    runtime: Timed, compilation: Compilation, inputs: Mapping[str, AnyArray], labels: AnyArray, progress: Progress, quiet: bool
) -> Accuracy | Regression | None:
    """The quality of a model on labelled rows. Prints warnings about these rows."""
    if compilation.graph is None:
        return None
    told(notices(runtime.inputs, inputs, held=held_ranges(runtime.host.prologue)), progress, quiet)
    measured = quality(runtime, compilation.graph, runtime.accepted(inputs), labels)
    if isinstance(measured, str):
        told([measured], progress, quiet)
        return None
    return measured
