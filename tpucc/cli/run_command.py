"""`tpucc run MODEL.tpu|PROGRAM.tpub`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import click
import numpy as np

from tpucc.api import Executable
from tpucc.cli.failures import print_json
from tpucc.cli.labelled import given_arrays, held_out
from tpucc.cli.options import FILE, compile_options, json_option, like_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress, told
from tpucc.cli.resumed import source_of
from tpucc.cli.row_program import in_rows, rows_text, run_rows
from tpucc.cli.summary import run_text
from tpucc.cli.work import executable_from, judged
from tpucc.data.archive import naming, npz_bytes
from tpucc.diagnostics import CheckError, Diagnostic, Label, Source, counted
from tpucc.explain.device_outputs import run_quantized
from tpucc.explain.noise import noise_of, rounded_notes
from tpucc.explain.quality import Accuracy, Regression, held_ranges, not_finite, notices
from tpucc.explain.recording import first_part
from tpucc.interop.sources import held_out_file
from tpucc.numerics import AnyArray
from tpucc.output_files import write_file
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import Comparison, calibrated_inputs, float_reference, parts_with_plain, parts_with_reference, random_inputs
from tpucc.runtime.runtime import DevicePart, Runtime
from tpucc.sim.fast.backends import BACKENDS, Backend, require
from tpucc.target import load_target


@click.command("run")
@click.argument("model", type=FILE)
@compile_options
@like_option
@click.option("--input", "input_file", type=FILE, metavar="X.npz", help="An array for each input of the model, by name.")
@click.option("--output", "output_file", type=FILE, metavar="Y.npz", help="Where to write the outputs.")
@click.option("--quantized-output", type=FILE, metavar="Q.npz", help="Where to write the integers that the device computed.")
@click.option("--check", is_flag=True, help="Compare with the integer and the float reference; exit 1 on any inequality.")
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True, help="Who computes the large products.")
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    model: Path,
    input_file: Path | None,
    output_file: Path | None,
    quantized_output: Path | None,
    check: bool,
    backend: Backend,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Execute MODEL, a source (.tpu) or a program (.tpub).

    Without --input it runs on the calibration inputs, or on random ones. Where labels are known (an array `labels` in the input file, or
    in MODEL_test.npz beside the source), the accuracy of the integers is printed beside that of float32.

    With --target tpu_v2 or tpu_v3, MODEL runs on the training machine, in bfloat16 and float32: on --input, or on MODEL_test.npz. A program
    or listing (.asm) for this machine runs on the rows of its memory: an array for each of its inputs and states, else random ones.
    """
    with Progress(not quiet and not as_json) as progress:
        ran = _in_floats(model, given, input_file, output_file, check, progress)
        if ran is None:
            require(backend)
            keep_inputs(output_file, quantized_output)
            exe = executable_from(model, given, quiet, progress).with_backend(backend)
            ran = _in_integers(exe, source_of(model, given), input_file, output_file, quantized_output, check, quiet, progress)
    if as_json:
        print_json(ran.summary)
    elif not quiet:
        click.echo(ran.text)
    if ran.unequal is not None:
        raise ran.unequal


class _Ran(NamedTuple):
    """The summary of a run, its text, and the error where an output differs from the reference."""

    summary: dict[str, Any]
    text: str
    unequal: CheckError | None = None


def _in_floats(
    model: Path, given: Mapping[str, Any], input_file: Path | None, output_file: Path | None, check: bool, progress: Progress
) -> _Ran | None:
    """A run in floats: of a source for a machine for floats, or of a program for one. None where `model` is neither."""
    if model.suffix != ".tpu":
        if (rows := in_rows(model)) is None:
            return None
        keep_inputs(output_file)
        summary = run_rows(rows, input_file, output_file, check)
        return _Ran(summary, rows_text(summary))
    target = load_target(given["target"], given["overrides"])
    if target.data_type != "bfloat16":
        return None
    from tpucc.cli.float_run import run_in_floats, summary_text  # running in integers needs none of it

    keep_inputs(output_file)
    summary = run_in_floats(model, target, given, input_file, output_file, check, progress)
    return _Ran(summary, summary_text(summary))


def _in_integers(
    exe: Executable,
    source: Path,
    input_file: Path | None,
    output_file: Path | None,
    quantized_output: Path | None,
    check: bool,
    quiet: bool,
    progress: Progress,
) -> _Ran:
    """A run of a program for the machine of integers. `source` is the file beside which held-out rows may lie."""
    runtime = exe.runtime
    given_inputs, labels, origin = inputs_of(exe, input_file)
    if input_file is not None and labels is None:
        told(notices(runtime.inputs, given_inputs, held=held_ranges(runtime.host.prologue)), progress, quiet)
    inputs = runtime.accepted(given_inputs)
    progress.stage("execute")
    outputs, parts = runtime.run_with_integers(inputs) if check else (runtime.run(inputs), [])
    told(not_finite(outputs), progress, quiet)
    shapes = {name: f"{array.dtype.name}{list(array.shape)}" for name, array in outputs.items()}
    summary: dict[str, Any] = {"model": runtime.program.name, "inputs": origin, "outputs": shapes}
    if output_file is not None:
        write_file(output_file, npz_bytes(outputs))
    if quantized_output is not None:
        write_file(quantized_output, npz_bytes(_integers(runtime, inputs)))
    summary.update({key: runtime.stats[key] for key in ("cycles", "seconds", "end_to_end")})
    summary.update(_quality(exe, source, given_inputs if input_file else None, labels, progress, quiet))
    if check:
        progress.stage("compare with the reference")
        summary["check"] = _check(exe, inputs, outputs, parts) | {"padded": _is_padded(runtime, inputs)}
    if exe.compilation is not None and (summary.keys() & {"accuracy", "regression"} or "float" in summary.get("check", {})):
        told(rounded_notes(exe.compilation.meant), progress, quiet)
    return _Ran(summary, run_text(summary), _unequal(summary.get("check", {}), exe))


def inputs_of(exe: Executable, path: Path | None) -> tuple[Mapping[str, AnyArray], AnyArray | None, str]:
    """The arrays to run on as they are, their labels if they have some, and in words where they are from."""
    if path is not None:
        arrays, labels = given_arrays(path, exe.runtime.batches)
        return arrays, labels, f"{path} ({_rows(exe.runtime, arrays)})"
    known = calibrated_inputs(exe.compilation) if exe.compilation else None
    if known is not None:
        return known, None, f"the calibration inputs ({_rows(exe.runtime, known) if exe.runtime.batch else 'the first round'})"
    return random_inputs(exe.runtime), None, "random inputs from seed 0"


def first_inputs_of(exe: Executable, path: Path | None) -> tuple[Arrays, str]:
    """The inputs of the first core in the first round, and in words where they are from."""
    arrays, _, origin = inputs_of(exe, path)
    part, several = first_part(exe.runtime, exe.runtime.accepted(arrays))
    return part, origin + (", of which this is the first" if several else "")


def _rows(runtime: Runtime, arrays: Mapping[str, AnyArray]) -> str:
    rows = {arrays[name].shape[0] for name in runtime.inputs if name in arrays and arrays[name].ndim}
    if runtime.batch is None or len(rows) != 1:
        return "as given"
    count = rows.pop()
    if count == runtime.batch or count == 0:
        return counted(count, "row")
    rounds = counted(-(-count // runtime.batch), "round")
    return f"{counted(count, 'row')} in {rounds} of {runtime.batch:,}" + (", the last one padded" if count % runtime.batch else "")


def _integers(runtime: Runtime, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    for name, output in run_quantized(runtime, inputs).items():
        arrays[name] = output.values
        arrays[f"{name}.scale"] = np.asarray(output.scale, np.float32)
        arrays[f"{name}.zero_point"] = np.asarray(output.zero_point, np.int32)
    return arrays


def _quality(
    exe: Executable, model: Path, inputs: Mapping[str, AnyArray] | None, labels: AnyArray | None, progress: Progress, quiet: bool
) -> dict[str, Any]:
    """Accuracy, or the errors if the labels aren't classes: on the rows of --input, else on the held-out set beside the source."""
    source, place = "the given inputs", held_out_file(model)
    if inputs is None and exe.compilation and (found := held_out(model, lambda notes: told(notes, progress, quiet))) is not None:
        (inputs, labels), source = found, place.name
    if exe.compilation is None or inputs is None or labels is None:
        return {}
    integers = exe.runtime.integers
    with naming(place):  # given inputs fit, or the model hasn't run
        measured = judged(exe.runtime, exe.compilation, inputs, labels, progress, quiet)
    match measured:
        case None:
            return {}
        case Accuracy():
            return {"accuracy": {"float32": measured.float32, integers: measured.quantised, "rows": measured.rows, "inputs": source}}
        case Regression():
            fits = {"float32": asdict(measured.float32), integers: asdict(measured.quantised)}
            return {"regression": {**fits, "rows": measured.rows, "inputs": source}}
        case _:
            assert_never(measured)


def _check(exe: Executable, inputs: Mapping[str, AnyArray], outputs: Mapping[str, AnyArray], parts: Sequence[DevicePart]) -> dict[str, Any]:
    """The comparison of what the device computed with the integer reference, or for a program without its source with plain execution,
    step by step."""
    compilation, runtime = exe.compilation, exe.runtime
    if compilation is None or compilation.layers is None or compilation.graph is None:
        return {"against": "plain execution, instruction by instruction", "integer": _counts(parts_with_plain(runtime, parts))}
    reference = float_reference(compilation.meant or compilation.graph, inputs)
    return {
        "against": "the layers' integer reference",
        "integer": _counts(parts_with_reference(runtime, compilation.layers, parts)),
        "float": {
            name: {"largest": noise.largest, "mean": noise.mean, "snr_db": noise.sqnr, "is_constant": noise.constant}
            for name, noise in noise_of(outputs, reference).items()
        },
    }


def _is_padded(runtime: Runtime, inputs: Mapping[str, AnyArray]) -> bool:
    """Whether the last batch is filled up with rows that weren't given."""
    rows = runtime.batches.rows(inputs)
    return rows is not None and runtime.batch is not None and rows % runtime.batch > 0


def _counts(comparisons: list[Comparison]) -> dict[str, Any]:
    return {c.name: {"elements": c.elements, "unequal": c.unequal, "first": c.first} for c in comparisons}


def _unequal(check: Mapping[str, Any], exe: Executable) -> CheckError | None:
    """`CheckError` E0910 for each output that differs, at the line of the source that computes it; None where none does."""
    program, wrong = exe.runtime.program, {name: c for name, c in check.get("integer", {}).items() if c["unequal"]}
    if not wrong:
        return None
    texts = {name: f"{name}: {c['unequal']:,} of {c['elements']:,} elements differ; the first is {c['first']}" for name, c in wrong.items()}
    origins = {layer.name: layer.origin for layer in program.layers}
    places = {name: tuple(map(Label, origins[name].call)) if name in origins and program.source_text else () for name in texts}
    source = Source(program.source, program.source_text)
    return CheckError([Diagnostic("E0910", text, places[name]) for name, text in texts.items()], source)
