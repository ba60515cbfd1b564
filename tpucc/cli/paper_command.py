"""`tpucc paper`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

import tpucc
from tpucc.cli.options import FILE, set_option, target_option
from tpucc.cli.work import print_json
from tpucc.paper.comparison import compare
from tpucc.paper.figures import Section
from tpucc.tables import table, wrapped
from tpucc.target import load_target

PROGRAMS = Path(tpucc.__file__).resolve().parents[1] / "programs" / "paper"
"""Where the programs lie in a checkout: beside the package."""
COLUMNS = 3
"""Applications side by side in 80 columns."""


@click.command("paper")
@click.option(
    "--programs", type=FILE, default=PROGRAMS, metavar="DIR", help="Where mlp0.tpu, … lie (default: programs/paper of a checkout)."
)
@target_option
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(programs: Path, target: str, overrides: dict[str, str], as_json: bool, quiet: bool) -> None:
    """Print our figures beside those of the TPU paper (Jouppi et al., ISCA 2017).

    Compiles its applications and times them, also on the variants of the paper's figure 11; nothing is executed.
    """
    machine = load_target(target, overrides)
    sections = compare(programs, machine, _ignore if quiet else _progress)
    if as_json:
        print_json({"target": machine.name, "tpucc": tpucc.__version__, "sections": [section.json() for section in sections]})
        return
    for section in sections:
        click.echo(section_text(section) + "\n")


def section_text(section: Section) -> str:
    """A section as text: its tables, its notes, and the reasons for what differs."""
    reasons = [f"{names}: {reason}" for names, reason in section.reasons()]
    sentences = "\n".join(wrapped(sentence, "  ") for sentence in (*section.notes, *reasons))
    return "\n\n".join(filter(None, (section.title, *_tables(section), sentences)))


def _tables(section: Section) -> Iterator[str]:
    """The figures, `COLUMNS` columns of the paper's table side by side, each as paper, ours, difference."""
    by_place = {(figure.row, figure.column): figure for figure in section.figures}
    for start in range(0, len(section.columns), COLUMNS):
        columns = section.columns[start : start + COLUMNS]
        rows = []
        for row in section.rows:
            figures = [by_place[row, column] for column in columns]
            unit = "" if figures[0].unit == "TOPS" and row.endswith("TOPS") else f" {figures[0].unit}"
            rows.append((f"{row}{'' if unit == ' %' else unit}", *(text for figure in figures for text in figure.texts())))
        yield table(("", *(text for column in columns for text in (column or "paper", "ours", "diff"))), rows)


def _progress(text: str) -> None:
    """A line to standard error when somebody watches."""
    stream = click.get_text_stream("stderr")
    if stream.isatty():
        click.echo(f"compiling {text} …", err=True)


def _ignore(_: str) -> None:
    """No progress."""
