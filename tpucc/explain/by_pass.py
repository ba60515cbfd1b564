"""What each pass gives: the program as it is with a pass and those before it, and without those after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tpucc.compilation import Compilation
from tpucc.diagnostics import Error
from tpucc.driver import compile_source
from tpucc.explain.tables import table, wrapped
from tpucc.explain.timed import Timed
from tpucc.sim.durations import duration
from tpucc.stage_names import FRONT_STAGES, passes_of

FIRST = "without them"
HEADS = ("with the passes as far as", "cycles", "end to end", "%")
WITHOUT = "(Each row is a program of its own, made without the optional passes of the rows below it.)"
ROOM = "(A row without numbers: the program can't be compiled without the passes below it.)"


@dataclass(frozen=True, slots=True)
class Step:
    """A program with the optional passes as far as `name`: its cycles, and the seconds of a batch from end to end. None where the passes
    so far don't make a program that can be compiled."""

    name: str
    cycles: int | None
    seconds: float | None

    @property
    def stage(self) -> str:
        """The stage after which its graph is as it is here: the first one's is the model's."""
        return FRONT_STAGES[1] if self.name == FIRST else self.name


def by_pass(compilation: Compilation, folder: Path) -> list[Step]:
    """A step for each optional pass that changed the graph, in their order, after one without any of them. Every step but the last is a
    compile of its own. `folder` is where the source's files are."""
    options = compilation.options
    optional = {step.name for step in passes_of(options) if step.level > 0}
    names = [*dict.fromkeys(made.stage for made in compilation.snapshots if made.changed and made.stage in optional)]
    return [*_steps(compilation, folder, names)]


def _steps(compilation: Compilation, folder: Path, names: Sequence[str]) -> Iterator[Step]:
    options = compilation.options
    for place, name in enumerate((FIRST, *names)):
        later = frozenset(names[place:])
        try:
            made = compile_source(compilation.source, folder, replace(options, omit=options.omit | later)) if later else compilation
        except Error:
            yield Step(name, None, None)
            continue
        assert made.program is not None
        stats = Timed(made.program).stats
        yield Step(name, stats["cycles"], stats["end_to_end"]["seconds"])


def by_pass_table(steps: Sequence[Step]) -> str:
    """The steps as rows; the last column is the change of the time since the row above."""
    rows, before = [], None
    for step in steps:
        if step.cycles is None or step.seconds is None:
            rows.append((step.name, "", "", ""))
            continue
        change = f"{100 * (step.seconds / before - 1):+z.1f}" if before else ""
        rows.append((step.name, f"{step.cycles:,}", duration(step.seconds), change))
        before = step.seconds
    words = [WITHOUT, *([ROOM] if any(step.cycles is None for step in steps) else [])]
    return "\n".join([table(HEADS, rows), *map(wrapped, words)])
