"""`tpucc paper`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, option, refuse_unused
from tpucc.cli.progress import Progress
from tpucc.diagnostics import printable
from tpucc.explain.paper.applications import find_programs
from tpucc.explain.paper.comparison import compare
from tpucc.explain.paper.figures import Section
from tpucc.explain.tables import GAP, WIDTH, table, wrapped
from tpucc.interop.programs import folder
from tpucc.target import load_target, require_compilable
from tpucc.version import VERSION


@click.command("paper")
@click.option("--programs", type=FILE, metavar="DIR", help="Where mlp0.tpu, … lie (default: those that come with tpucc).")
@option("target")
@option("overrides")
@click.option("--training", is_flag=True, help="Print steps of training instead, as measured on TPU v2 and v3.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(programs: Path | None, target: str, overrides: dict[str, str], training: bool, as_json: bool, quiet: bool) -> None:
    """Print our figures beside those of the TPU paper (Jouppi et al., ISCA 2017).

    Compiles its applications and times them, also on the variants of the paper's figure 11; nothing is executed. With --training: times
    steps of ResNet-50 and of dense networks, and prints them beside what was measured.
    """
    if training:
        _print_training(programs, as_json, quiet)
        return
    machine = load_target(target, overrides)
    require_compilable(machine)
    programs = programs or folder() / "paper"
    find_programs(programs)
    with Progress(not quiet and not as_json) as progress:
        sections = list(compare(programs, machine, lambda text: progress.stage(f"compile {text}")))
    if as_json:
        print_json({"target": machine.name, "tpucc": VERSION, "sections": [section.json() for section in sections]})
        return
    _print(f"{printable(machine.name)} beside the TPU of Jouppi et al., ISCA 2017", sections)


def _print_training(programs: Path | None, as_json: bool, quiet: bool) -> None:
    from tpucc.training.timing.measured import compare_training  # the paper's figures need none of it

    refuse_unused(("programs", "training", "as_json", "quiet"), "--training")
    with Progress(not quiet and not as_json) as progress:
        found = compare_training(programs or folder(), lambda text: progress.stage(f"time {text}"))
    if as_json:
        print_json({"tpucc": VERSION, **found.json()})
        return
    _print("Steps of training beside those of Cloud TPUs", found.sections())


def _print(head: str, sections: Iterable[Section]) -> None:
    for text in (head, *map(section_text, sections)):
        click.echo(f"{text}\n")


def section_text(section: Section) -> str:
    """A section as text: its tables, its notes, and the reasons for what differs."""
    reasons = [f"{names}: {reason}" for names, reason in section.reasons()]
    sentences = "\n".join(wrapped(sentence, "  ") for sentence in (*section.notes, *reasons))
    return "\n\n".join(filter(None, (section.title, *_tables(section), sentences)))


def _tables(section: Section) -> Iterator[str]:
    """The section's columns side by side, as many as fit."""
    count = next((count for count in (3, 2) if _fits(section, count)), 1)
    for start in range(0, len(section.columns), count):
        columns = section.columns[start : start + count]
        yield table(section.head(columns), section.grid(columns))


def _fits(section: Section, count: int) -> bool:
    """Whether tables of `count` columns of the paper's are at most 80 wide."""
    groups = (section.columns[start : start + count] for start in range(0, len(section.columns), count))
    return all(_width([section.head(columns), *section.grid(columns)]) <= WIDTH for columns in groups)


def _width(rows: Sequence[Sequence[str]]) -> int:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return sum(widths) + GAP * (len(widths) - 1)
