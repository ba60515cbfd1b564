"""`tpucc judge MODEL.tpu`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tpucc.api import judge
from tpucc.cli.failures import print_json
from tpucc.cli.labelled import given_arrays
from tpucc.cli.messages import tell
from tpucc.cli.options import FILE, compile_options, json_option, like_option
from tpucc.cli.progress import Progress
from tpucc.cli.work import executable_from, print_warnings
from tpucc.diagnostics import PluginError, counted, printable
from tpucc.explain.tables import wrapped
from tpucc.interop.outside import LIBRARIES, Against
from tpucc.plain_errors import as_plain
from tpucc.runtime.judge import Verdict, refused


@click.command("judge")
@click.argument("model", type=FILE)
@compile_options
@like_option
@click.option("--input", "input_file", type=FILE, metavar="X.npz", help="Judge on these inputs, not on the calibration inputs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws the random inputs.")
@click.option("--against", type=click.Choice(LIBRARIES), help="Compare with that library, too: it computes the exported layers.")
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors; the exit status says it.")
def command(model: Path, input_file: Path | None, seed: int, against: Against | None, as_json: bool, quiet: bool, **given: Any) -> int:
    """Judge MODEL as it is compiled, with your passes and stages: exit status 0 if all is right, 1 if not.

    Its values must be equal to the references on the given and on random inputs, its program must be valid.
    """
    with Progress(not quiet and not as_json) as progress:
        try:
            exe = executable_from(model, given, True, progress)
            if not quiet:  # the notes that the program keeps are part of the verdict
                print_warnings((each for each in exe.warnings if each not in exe.runtime.program.notes), progress, of_accuracy=False)
            progress.stage("judge")
            verdict = judge(exe, None if input_file is None else given_arrays(input_file, exe.runtime.batches)[0], seed, against=against)
        except PluginError as error:
            verdict, words = refused(error), error.render()
            findings = as_plain(error)
        else:
            words = "\n".join(found.render() for found in verdict.findings)
            findings = [asdict(found) for found in verdict.findings]
    if as_json:
        print_json(asdict(verdict) | {"findings": findings})
    elif not quiet:
        tell(_text(model, verdict, words, against))
    return 0 if verdict.equal else 1


def _text(model: Path, verdict: Verdict, findings: str, against: Against | None) -> str:
    if verdict.findings:
        return f"{findings}\n{printable(model.name)}: there is no valid program, so nothing was run"
    values = f"equal{' to ONNX Runtime, too' if against else ''}" if verdict.equal else f"NOT EQUAL: {verdict.first_difference}"
    rows = f"at most {counted(verdict.peak_rows, 'row')} in use, {verdict.lower_bound:,} needed"
    cost = f"{counted(verdict.cycles, 'cycle')}; unified buffer: {rows}"
    notes = [f"note: {note}" for note in verdict.notes]
    if against and model.suffix == ".onnx":
        notes.append(f"note: ONNX Runtime has computed tpucc's own export of the layers, in the device's integers, and not {model.name}")
    return "\n".join(wrapped(printable(line), "  ") for line in (f"{model.name}: {values}", cost, *notes))
