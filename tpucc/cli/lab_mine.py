"""`tpucc lab mine [DIR] [MODEL.tpu]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tpucc import api
from tpucc.api import Executable
from tpucc.cli.columns import filled
from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, json_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.diagnostics import Diagnostic, UsageError, counted, listed, printable
from tpucc.explain.comparison.compare import compare
from tpucc.explain.tables import table, wrapped
from tpucc.interop.programs import examples
from tpucc.labs.mine import Part, Trial, parts_in, trial
from tpucc.options import SECONDS
from tpucc.output_files import write_file
from tpucc.see.comparison.page import comparison_page

MODEL = "digits_mlp"
"""The program that is compiled where none is named."""
SAID = ("tpucc's program", "your program")
"""What sentences call the two programs."""


@click.command("mine")
@click.argument("folder", type=FILE, default=Path("."), metavar="[DIR]")
@click.argument("model", type=FILE, default=None, required=False, metavar="[MODEL.tpu]")
@click.option("-o", "--output", type=FILE, metavar="PAGE.html", help="Also write a page: your compiler's program beside tpucc's.")
@click.option("--plugin-timeout", type=click.FloatRange(0, min_open=True), default=SECONDS, show_default=True, help="Seconds of one call.")
@click.option("--trust", is_flag=True, help="Run your code in this process, without limits: there breakpoint() works.")
@json_option
def mine(folder: Path, model: Path | None, output: Path | None, plugin_timeout: float, trust: bool, as_json: bool) -> int:
    """Your own compiler: MODEL compiled with what you wrote in labs 2, 4, 5, 6 and 7, and with tpucc's own functions for the rest.

    DIR is the folder in which the labs' folders lie. Each function of yours is tried alone, then all that are right together. Exit status
    1 if one of yours is wrong. Without MODEL, it is the digits MLP.
    """
    keep_inputs(output)
    parts, source = parts_in(folder), model or examples()[MODEL].source
    with Progress(not as_json) as progress:
        progress.stage("tpucc")
        plain = api.compile(source)
        alone = dict[Part, Trial]()
        for part in parts:
            if part.begun:
                progress.stage(part.function)
                alone[part] = trial(source, (part,), plain, plugin_timeout, trust=trust)
        right = [part for part, made in alone.items() if not made.problem]
        progress.stage("together")
        if len(right) > 1:
            whole = trial(source, right, plain, plugin_timeout, trust=trust)
        else:
            whole = alone[right[0]] if right else Trial((), plain)
    found = None
    if whole.exe is not None and right:
        found = compare(plain.runtime, whole.exe.runtime, (plain.notes, whole.exe.notes), ("tpucc", "yours"), SAID)
    if output is not None:
        if found is None or whole.exe is None:
            raise UsageError(Diagnostic("E0551", f"there is no program of yours for {printable(str(output))} to show"))
        write_file(output, comparison_page(found, plain.runtime, whole.exe.runtime).encode())
    if as_json:
        print_json(_json(source, parts, plain, alone, whole))
    else:
        click.echo("\n".join(_text(source, parts, plain, alone, whole)))
        if found is not None and not whole.problem:
            click.echo("\n" + wrapped(printable(found.cause)))
        if output is not None:
            click.echo(f"\n{printable(str(output))}: open it in a browser")
    return 1 if whole.problem or len(right) < len(alone) else 0


def _text(source: Path, parts: Sequence[Part], plain: Executable, alone: dict[Part, Trial], whole: Trial) -> Iterator[str]:
    cycles, own = plain.runtime.timeline.makespan, f"{len(alone)} of {counted(len(parts), 'function')} are yours"
    yield f"{printable(source.name)}: {own}; tpucc's own program takes {cycles:,} cycles"
    rows = [(f"{part.lab.number}  {part.function}", part.state, *_cells(alone.get(part), cycles)) for part in parts]
    yield "\n" + table(("lab and function", "whose", "cycles", "against tpucc"), rows, left=2)
    for part, made in alone.items():
        if made.problem:
            yield f"\n{part.function} is wrong, and left out below:\n{made.problem}"
    names = listed([part.function for part in whole.parts])
    if not alone:
        yield "\nnothing is written yet: write one of these functions, and run this again"
    elif whole.problem:
        yield f"\n{names} together make a program that is wrong:\n{whole.problem}"
    elif whole.parts:
        own, more = _cells(whole, cycles)
        yield "\n" + filled(f"your compiler, with {names}: {own} cycles, {more}; the values are right", "", "  ")


def _cells(made: Trial | None, cycles: int) -> tuple[str, str]:
    """The cycles of a program, and how many more they are than `cycles`."""
    if made is None:
        return "", ""
    if made.cycles is None:
        return "", "wrong"
    if made.uncalled:
        return "", "not called"
    return f"{made.cycles:,}", f"{made.cycles / cycles - 1:+.1%}"


def _json(source: Path, parts: Sequence[Part], plain: Executable, alone: dict[Part, Trial], whole: Trial) -> dict[str, object]:
    return {
        "model": source.name,
        "cycles": plain.runtime.timeline.makespan,
        "functions": [
            {
                "lab": part.lab.number,
                "function": part.function,
                "file": None if part.file is None else str(part.file),
                "begun": part.begun,
                "cycles": alone[part].cycles if part in alone else None,
                "called": part in alone and not alone[part].uncalled,
                "problem": alone[part].problem if part in alone else "",
            }
            for part in parts
        ],
        "together": {"functions": [part.function for part in whole.parts], "cycles": whole.cycles, "problem": whole.problem},
    }
