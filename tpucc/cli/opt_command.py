"""`tpucc opt MODEL -p PASS,PASS{option=1}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tpucc.cli.options import FILE, data_option, option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import SILENT, told
from tpucc.cli.resumed import read_text, refuse_like
from tpucc.cli.work import print_warnings
from tpucc.compilation import State
from tpucc.data.archive import read_arrays
from tpucc.diagnostics import Diagnostic, Error, ProgramError, UsageError, did_you_mean, listed, printable
from tpucc.driver import context_of, front
from tpucc.guest.files import passes_of_file
from tpucc.interop.sources import ONNX, read_source
from tpucc.ir.codec import require_version, stamped
from tpucc.ir.parser import read_graph
from tpucc.ir.printer import print_graph
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.options import Options
from tpucc.output_files import write_file
from tpucc.passes.base import Pass, with_options
from tpucc.passes.base import options_of as fields_of
from tpucc.passes.pipeline import PASSES, replacements, run_pass
from tpucc.plugins.installed import installed_passes
from tpucc.texts.resume import NO_STAGE, base_at, kind_of, verify_text
from tpucc.user_options import read_options

SOURCES = (".tpu", ONNX)
STEP = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


@click.command("opt")
@click.argument("model", type=FILE)
@click.option("-p", "--passes", "wanted", default="", metavar="PASS,PASS{option=1}", help="The passes to run, in this order.")
@option("passes")
@option("target")
@option("overrides")
@option("params")
@option("weights")
@option("calibration")
@option("activation_bits")
@option("cores")
@option("plugin_timeout")
@option("trust")
@click.option("--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model whose constants stand in a graph by their digests.")
@data_option
@click.option("-o", "--output", type=FILE, metavar="FILE.graph", help="Where to write the result (default: standard output).")
def command(wanted: str, model: Path, like: Path | None, with_data: bool, output: Path | None, **given: Any) -> None:
    """Run passes on the graph of MODEL, a source or a graph in text form, and print the result. Without passes: check it and print it."""
    keep_inputs(output)
    seconds = given["plugin_timeout"]
    brought = {path: passes_of_file(path, seconds, trust=given["trust"]) for path in given.pop("passes")}
    options = read_options({name: value for name, value in given.items() if value is not None}, installed=False)
    steps = list(_steps(wanted, _known([step for found in brought.values() for step in found])))
    told(_about(brought, steps))
    state = _read(model, like, options)
    result, context = state.graph, context_of(state)
    assert result is not None
    print_warnings(state.warnings, SILENT)
    for step in steps:
        try:
            result = run_pass(step, result.without_notes(), context)
        except Error as error:
            if state.model is None:
                raise
            raise error.at((), state.source) from error
        told(result.notes)
    printed = stamped(print_graph(result, with_data=with_data), "#")
    if output is None:
        click.echo(printed, nl=False)
    else:
        write_file(output, printed.encode())


def _read(path: Path, like: Path | None, options: Options) -> State:
    """The graph to begin with, and what passes get beside it: of a source, its own weights and calibration."""
    if path.suffix.lower() in SOURCES:
        refuse_like({"like": like})
        return front(read_source(path, options.params), path.parent, options)
    text = read_text(path)
    if path.suffix != ".graph" and kind_of(text) != "graph":
        message = f"{printable(text.name)} is the text of a later stage, which no pass takes"
        raise ProgramError(Diagnostic(NO_STAGE, message, help=("opt takes a source, or a .graph",)), text)
    require_version(text)
    examples = None if options.calibration is None else read_arrays(options.calibration)
    known = None if like is None else base_at(like, replace(options, calibration=None)).constants
    graph, places = read_graph(text.text, text.name, ATTRIBUTES, known)
    verify_text(graph, places)
    return State(text, options, graph=graph, calibration=examples)


def _about(brought: Mapping[Path, Sequence[Pass]], steps: Sequence[Pass]) -> Iterator[str]:
    """Notes of passes of files that `--passes` doesn't name, and of those that stand for one of tpucc's."""
    asked = [step.name for step in steps]
    for path, found in brought.items():
        if idle := [step.name for step in found if step.name not in asked]:
            more = f"{listed(idle)} of {printable(path.name)} {'does' if len(idle) == 1 else 'do'} not run"
            yield f"{more}: --passes names what runs, as in --passes {idle[0]}"
    yield from replacements(steps)


def _known(brought: Sequence[Pass]) -> dict[str, Pass]:
    """Every pass by its name; of two with one name, the pass of a file."""
    return {step.name: step for step in (*PASSES, *installed_passes(), *brought)}


def _steps(wanted: str, known: dict[str, Pass]) -> Iterator[Pass]:
    """The passes of `a,b{option=1}`. Raises `UsageError`."""
    position = 0
    while wanted[position:].strip():
        match = STEP.match(wanted, position)
        if match is None:
            raise UsageError(Diagnostic("E0516", f"can't read {wanted[position:]!r}; passes are written NAME,NAME{{option=value}}"))
        position = match.end()
        name, options = match.groups()
        if name not in known:
            near = did_you_mean(name, known)
            raise UsageError(Diagnostic("E0509", f"no pass is named {name}", help=(near or f"there are {', '.join(known)}",)))
        yield _with_options(known[name], options or "")


def _with_options(step: Pass, text: str) -> Pass:
    values: dict[str, object] = {}
    known = fields_of(step)
    for part in filter(None, (p.strip() for p in re.split(r"[,\s]+", text))):
        name, equals, value = part.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in known:
            near = did_you_mean(name, known) or (f"it has {', '.join(known)}" if known else "it has no options")
            raise UsageError(Diagnostic("E0509", f"{step.name} has no option {name}", help=(near,)))
        values[name] = _converted(value, known[name], f"{step.name}'s {name}")
    return with_options(step, values)


def _converted(text: str, default: object, what: str) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UsageError(Diagnostic("E0516", f"{what} is true or false, not {text}"))
        return text.lower() == "true"
    try:
        return type(default)(text)  # type: ignore[call-arg]
    except ValueError:
        raise UsageError(Diagnostic("E0516", f"{what} is a {type(default).__name__}, not {text}")) from None
