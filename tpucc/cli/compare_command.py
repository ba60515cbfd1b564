"""`tpucc compare A [B] [--a=OPTIONS] [--b=OPTIONS]`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tpucc.api import Executable
from tpucc.cli.columns import table_width
from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, compile_options, json_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.work import PROGRAM_SUFFIX, executable_from, print_warnings
from tpucc.diagnostics import printable
from tpucc.explain.accounting import TABLE_3
from tpucc.explain.comparison.compare import Comparison, compare
from tpucc.explain.comparison.pairs import Items, Pair, Seconds
from tpucc.explain.comparison.tables import comparison_table
from tpucc.output_files import write_file
from tpucc.see.comparison.page import comparison_page


@click.command("compare")
@click.argument("a", type=FILE, metavar="A")
@click.argument("b", type=FILE, metavar="[B]", required=False)
@click.option("--a", "options_a", metavar="OPTIONS", default="", help='Options of compiling for A alone, as in --a="-O0 -D batch=8".')
@click.option("--b", "options_b", metavar="OPTIONS", default="", help="Options of compiling for B alone.")
@compile_options
@click.option(
    "-o", "--output", type=FILE, metavar="PAGE.html", help="Also write a page: both timelines and buffers on one axis, the layers."
)
@json_option
@click.option("--quiet", is_flag=True, help="No warnings, no progress.")
def command(a: Path, b: Path | None, options_a: str, options_b: str, output: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Compare two compiles: how much longer B takes than A from end to end, on what the cycles are spent, in which layers, and why.

    A and B are models or programs; without B, it is A with other options.
    """
    other = b or a
    keep_inputs(output)
    with Progress(not quiet and not as_json) as progress:
        sides = [
            _side(a, options_a, given, progress, "--a"),
            _side(other, options_b, given, progress, "--b"),
        ]
        progress.stage("compare")
        notes = (sides[0].notes, sides[1].notes)
        found = compare(sides[0].runtime, sides[1].runtime, notes, _names((a, options_a), (other, options_b)))
        if not quiet:
            if b is None and options_a == options_b:
                progress.note("A and B are one model with the same options; name a second model, or options of B's: --b=-O0")
            print_warnings(_of_both(found, sides), progress)
        if output is not None:
            write_file(output, comparison_page(found, sides[0].runtime, sides[1].runtime).encode())
    if as_json:
        print_json(_json(found, sides))
    else:
        click.echo(comparison_table(found, table_width()))
        if output is not None:
            click.echo(f"\n{printable(str(output))}: open it in a browser")


def _side(path: Path, words: str, given: Mapping[str, Any], progress: Progress, option: str) -> Executable:
    """Compiles one side, with the options for both and its own, which count more."""
    own = _own_options(words, option)
    if path.suffix == PROGRAM_SUFFIX and own:
        raise click.UsageError(f"{option} has options of compiling; {path.name} is a program, which is compiled already")
    merged = {name: {**value, **own.get(name, {})} if isinstance(value, dict) else own.get(name, value) for name, value in given.items()}
    return executable_from(path, merged | {"like": None}, True, progress)


def _of_both(found: Comparison, sides: Sequence[Executable]) -> Iterator[str]:
    """The warnings, each once, without the notes of one side alone, which stand below the sentences."""
    warnings = dict.fromkeys(warning for side in sides for warning in side.warnings)
    return (warning for warning in warnings if not any(warning in own for own in found.notes))


def _own_options(words: str, option: str) -> dict[str, Any]:
    """The values of the options in the text of `--a` or `--b`. Raises `UsageError` for any that isn't an option of compiling."""

    @click.command(option, add_help_option=False)
    @compile_options
    def side(**_: Any) -> None: ...

    try:
        arguments = shlex.split(words)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    try:
        context = side.make_context(option, arguments)
    except click.UsageError as error:
        raise click.UsageError(f"{option}: {error.format_message()}") from None
    chosen = (name for name in context.params if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE")
    return {name: context.params[name] for name in chosen}


def _names(a: tuple[Path, str], b: tuple[Path, str]) -> tuple[str, str]:
    """What the sides are called: by their files, of two with one name by their paths, with their own options."""
    are_alike = a[0] != b[0] and a[0].name == b[0].name
    first, second = (" ".join(filter(None, (str(path) if are_alike else path.name, words))) for path, words in (a, b))
    return first, second


def _json(found: Comparison, sides: list[Executable]) -> dict[str, Any]:
    keys = ("model", "target", "cores", "cycles", "seconds", "macs", "tops", "bottleneck")
    return {
        "a": {"name": found.names[0], **{key: sides[0].stats[key] for key in keys}},
        "b": {"name": found.names[1], **{key: sides[1].stats[key] for key in keys}},
        "end_to_end": dict(zip("ab", found.end_to_end, strict=True)) | {"difference": found.seconds().difference},
        "cycles": asdict(found.cycles),
        "difference": found.difference,
        "stream": _with_difference(found.stream),
        "items": None if found.items is None else _items(found.items),
        "cause": found.cause,
        "notes": dict(zip("ab", map(list, found.notes), strict=True)),
        "by_root": {limit.value: value.difference for limit, value in found.rows.items()},
        "breakdown": {key: _row(key, sides) for key in TABLE_3.values()},
        "counts": {name.strip(): _with_difference(value) for name, value in found.counts.items()},
        "layers": [
            {
                "name": layer.names[1] or layer.names[0],
                "names": dict(zip("ab", layer.names, strict=True)),
                "parts": dict(zip("ab", map(list, layer.parts), strict=True)),
                "kind": layer.kind,
                "line": layer.lines[1] or layer.lines[0],
                "lines": dict(zip("ab", layer.lines, strict=True)),
                "cycles": asdict(layer.cycles),
                "difference": layer.cycles.difference,
                "cause": layer.cause,
                "only": layer.only,
            }
            for layer in found.layers
        ],
    }


def _with_difference(both: Pair | Seconds) -> dict[str, float]:
    return asdict(both) | {"difference": both.difference}


def _row(key: str, sides: list[Executable]) -> dict[str, float]:
    """The cycles of a row of the paper's Table 3, of both sides."""
    return _with_difference(Pair(*(round(side.stats["cycles"] * side.stats["breakdown"][key] / 100) for side in sides)))


def _items(found: Items) -> dict[str, Any]:
    """The seconds and the cycles of an item, and the side ("a" or "b") that is better for each; null where both are alike."""

    def both(values: tuple[float, float]) -> dict[str, float]:
        return {"a": values[0], "b": values[1], "difference": round(values[1] - values[0], 6)}

    better = {"throughput": found.throughput, "throughput_in_a_stream": found.streamed, "latency": found.latency}
    return {
        "batch": asdict(found.batch),
        "end_to_end": _with_difference(found.seconds),
        "cycles": both(found.cycles),
        "cycles_in_a_stream": both(found.stream),
        "better": {name: side or None for name, side in better.items()},
    }
