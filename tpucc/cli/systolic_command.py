"""`tpucc systolic --rows R --columns C [-o FILE.svg|FILE.html]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tpucc.arguments import require_package
from tpucc.cli.options import FILE
from tpucc.diagnostics import printable
from tpucc.output_files import write_file
from tpucc.see.waves import COUNTS, MOST, SIDES, TILES, VALUES, Demo, random_work, waves_page, waves_svg
from tpucc.see.waves.terminal import WIDTH, comparison, conclusion, introduction, terminal_frame, terminal_width
from tpucc.systolic.work import Registers

PROMPT = "Enter: next cycle, a: all others, q: quit "


class Cycles(click.ParamType[tuple[int | None, int | None]]):
    """One cycle, or from one to another: `7`, `4:9`, `12:`."""

    name = "cycles"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, int | None]:
        if isinstance(value, tuple):
            return value
        words = str(value).split(":")
        numbers = [int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None for word in words]
        if len(words) > 2 or (len(words) == 1 and numbers[0] is None) or any(w and n is None for w, n in zip(words, numbers, strict=True)):
            self.fail(f"{value!r} is neither a cycle like 7 nor cycles like 4:9", param, ctx)
        return numbers[0], numbers[-1]


@click.command("systolic")
@click.option("--rows", type=click.IntRange(SIDES[0], SIDES[-1]), default=4, show_default=True, help="Rows of elements.")
@click.option("--cols", "columns", type=click.IntRange(SIDES[0], SIDES[-1]), default=4, show_default=True, help="Columns of elements.")
@click.option("--count", type=click.IntRange(COUNTS[0], COUNTS[-1]), default=6, show_default=True, help="Rows of the input.")
@click.option(
    "--tiles", type=click.IntRange(TILES[0], TILES[-1]), default=1, show_default=True, help="Tiles of weights, one after the other."
)
@click.option("--values", type=click.Choice(list(VALUES)), default="small", show_default=True, help="How large the numbers are.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Other numbers.")
@click.option("--cycles", type=Cycles(), metavar="N|A:B", help="Only these cycles; an .svg of one cycle stands still.")
@click.option("--no-pause", is_flag=True, help="On a terminal, don't wait for Enter between cycles.")
@click.option("--hardware", "with_hardware", is_flag=True, help="Compare with the hardware's registers, in the text and in a page.")
@click.option("-o", "--output", type=FILE, metavar="FILE.svg|FILE.html", help="Write a moving picture, or a page to step through.")
def command(
    rows: int,
    columns: int,
    count: int,
    tiles: int,
    values: str,
    seed: int,
    cycles: tuple[int | None, int | None] | None,
    no_pause: bool,
    with_hardware: bool,
    output: Path | None,
) -> None:
    """Show data flowing in waves through an array of processing elements, cycle by cycle.

    A tile of random weights stays in the array, the rows of a random input flow through it. Every number is one that a register holds.

    On a terminal, Enter shows the next cycle.
    """
    work = random_work(rows, columns, count, tiles, seed, values)
    registers = _registers(work) if with_hardware else None
    if output is None:
        _print(work, _chosen(work, cycles), pauses=not no_pause and _is_at_terminal())
    else:
        write_file(output, _drawn(work, output, cycles, registers).encode())
        click.echo(f"{printable(str(output))}: {introduction(work)}")
    if registers is not None:
        click.echo(comparison(work, registers))


def _registers(work: Demo) -> Registers:
    """The hardware's registers in each cycle. Raises `UsageError` E0963 without PyRTL."""
    require_package("--hardware", "pyrtl", "'tpucc[rtl]'")
    from tpucc.cosimulation.waves import array_registers

    return list(array_registers([frame.cycle for frame in work.frames]))


def _drawn(work: Demo, output: Path, cycles: tuple[int | None, int | None] | None, registers: Registers | None) -> str:
    """The page or the picture, as the file's name says."""
    if output.suffix not in (".svg", ".html"):
        raise click.BadParameter(f"{output} ends neither in .svg nor in .html", param_hint="-o")
    chosen = _chosen(work, cycles)
    if cycles is not None and (output.suffix == ".html" or len(chosen) > 1):
        raise click.UsageError("--cycles is for text; with one cycle an .svg stands still")
    if output.suffix == ".html":
        return waves_page(work, registers)
    if registers is not None:
        raise click.UsageError(f"--hardware is for text and for pages: -o {output.with_suffix('.html')}")
    if max(work.rows, work.columns) > MOST:
        raise click.UsageError(
            f"a moving picture has at most {MOST} × {MOST} elements; a page shows more: -o {output.with_suffix('.html')}"
        )
    return waves_svg(work, None if cycles is None else chosen[0])


def _chosen(work: Demo, cycles: tuple[int | None, int | None] | None) -> range:
    last = len(work.frames) - 1
    first, end = cycles or (None, None)
    first, end = 0 if first is None else first, last if end is None else end
    if not first <= end <= last:
        raise click.BadParameter(f"there are cycles 0 to {last}", param_hint="--cycles")
    return range(first, end + 1)


def _print(work: Demo, cycles: range, *, pauses: bool) -> None:
    width = terminal_width(work)
    if width > WIDTH:
        raise click.UsageError(
            f"{work.rows} × {work.columns} elements need {width} columns of text, more than {WIDTH}; "
            "write a page that shows them all: -o waves.html"
        )
    click.echo(introduction(work))
    for number in cycles:
        click.echo()
        _echo(work, number)
        if pauses and number != cycles[-1]:
            answer = _answer()
            if answer == "q":
                return
            pauses = answer != "a"
    if cycles[-1] == len(work.frames) - 1:
        click.echo(f"\n{conclusion(work)}")


def _is_at_terminal() -> bool:
    """Whether somebody reads what is printed, and can type."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _answer() -> str:
    """What is typed before Enter; `q` for the end of the input."""
    click.echo(PROMPT, nl=False)
    line = sys.stdin.readline()
    if not line:
        click.echo()
    return line.strip().lower() if line else "q"


def _echo(work: Demo, number: int) -> None:
    text = terminal_frame(work, number)
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        click.echo(text.plain)
        return
    from rich.console import Console

    Console(highlight=False).print(text, soft_wrap=True)
