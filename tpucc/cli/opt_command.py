"""`tpucc opt FILE.graph -p PASS,PASS{option=1}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tpucc.cli.messages import say
from tpucc.cli.options import FILE, data_option, option
from tpucc.cli.places import keep_inputs
from tpucc.cli.resumed import read_text
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean
from tpucc.files import write_file
from tpucc.interop.archive import read_arrays
from tpucc.ir.dtypes import BY_BITS, DEFAULT_FORMAT
from tpucc.ir.parser import read_graph
from tpucc.ir.printer import print_graph
from tpucc.ir.textversion import require_version, stamped
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.options import Options
from tpucc.passes.base import Context, Pass, options_of, with_options
from tpucc.passes.pipeline import PASSES
from tpucc.passes.plugins import installed_passes, passes_of_file
from tpucc.passes.running import run_pass, verify_text
from tpucc.runtime.resume import base_at
from tpucc.target import load_target

STEP = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


@click.command("opt")
@click.argument("graph", type=FILE)
@click.option("-p", "--passes", "wanted", default="", metavar="PASS,PASS{option=1}", help="The passes to run, in this order.")
@option("passes")
@option("target")
@option("overrides")
@option("calibration")
@option("activation_bits")
@option("cores")
@option("plugin_timeout")
@click.option("--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model whose constants stand in GRAPH by their digests.")
@data_option
@click.option("-o", "--output", type=FILE, metavar="FILE.graph", help="Where to write the result (default: standard output).")
def command(
    graph: Path,
    wanted: str,
    passes: tuple[Path, ...],
    target: str,
    overrides: dict[str, str],
    calibration: Path | None,
    activation_bits: int | None,
    cores: int,
    plugin_timeout: float,
    like: Path | None,
    with_data: bool,
    output: Path | None,
) -> None:
    """Run passes on GRAPH, a graph in text form, and print the result. Without passes: check it and print it."""
    keep_inputs(output)
    text = read_text(graph)
    require_version(text)
    steps = list(_steps(wanted, _known(passes, plugin_timeout)))
    examples = None if calibration is None else read_arrays(calibration)
    format = DEFAULT_FORMAT if activation_bits is None else BY_BITS[activation_bits]
    context = Context(load_target(target, overrides), examples, cores=cores, format=format)
    known = None if like is None else base_at(like, Options(target=context.target)).constants
    result, places = read_graph(text.text, text.name, ATTRIBUTES, known)
    verify_text(result, places)
    for step in steps:
        result = run_pass(step, result.without_notes(), context)
        for note in result.notes:
            say(f"note: {note}")
    printed = stamped(print_graph(result, with_data=with_data), "#")
    if output is None:
        click.echo(printed, nl=False)
    else:
        write_file(output, printed.encode())


def _known(files: Sequence[Path], seconds: float) -> dict[str, Pass]:
    """Every pass by its name; those of files win."""
    known: dict[str, Pass] = {step.name: step for step in (*PASSES, *installed_passes(seconds))}
    return known | {step.name: step for path in files for step in passes_of_file(path, seconds)}


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
    known = {f.name: f.default for f in options_of(step)}
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
