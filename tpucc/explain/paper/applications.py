"""The paper's applications, compiled and timed; nothing is executed.

The paper counts the device and its link, and excludes the host. So the compiler chooses as for a host whose work takes no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tpucc.diagnostics import Diagnostic, Source, UsageError
from tpucc.driver import compile_source
from tpucc.explain.paper.published import published
from tpucc.explain.stats import stats
from tpucc.explain.sweeps.shared import Compiler
from tpucc.interop.sources import read_source
from tpucc.ir import Graph, Range
from tpucc.options import Options
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.calibrate import ProbeGraph, calibrate
from tpucc.sim.timing import time_program
from tpucc.target import FASTEST, Target

SUFFIX = ".tpu"
FREE_HOST: Mapping[str, float] = {"host_step_seconds": 0.0, "host_elements_per_second": FASTEST}
"""The numbers of a host whose work takes no time."""


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """A compiled application: the leading size of its first input, its numbers as in `stats.json`, and its fetches.

    `fetched` are the seconds until the last weight tile has arrived.
    """

    batch: int
    stats: Mapping[str, Any]
    fetched: float

    @property
    def seconds(self) -> float:
        return float(self.stats["seconds"])


@graph_pass(calibrate.name, calibrate.summary, level=0)
def unit_ranges(graph: Graph, context: Context) -> Graph:
    """Stands in for calibration and runs nothing: it gives -1…1 to every value that needs a range, since time depends on none."""
    probed = ProbeGraph.of(graph, context.format)
    return probed.ranged(dict.fromkeys(probed.measured, Range(-1.0, 1.0)))


def find_programs(folder: Path) -> dict[str, Path]:
    """The sources of the paper's applications in `folder`, by name, in the paper's order. Raises `UsageError` when there are none."""
    found = {name: folder / f"{name}{SUFFIX}" for name in published().applications if (folder / f"{name}{SUFFIX}").is_file()}
    if not found:
        names = ", ".join(f"{name}{SUFFIX}" for name in published().applications)
        help_text = "--programs DIR says where mlp0.tpu, mlp1.tpu, … lie; those that come with tpucc are taken without it"
        raise UsageError(Diagnostic("E0532", f"{folder} has none of the paper's programs ({names})", help=(help_text,)))
    return found


def known(programs: Mapping[str, Path]) -> dict[str, Path]:
    """Those whose shapes are known well enough for their figures to be compared."""
    return {name: path for name, path in programs.items() if not published().applications[name].qualitative}


def measure(source: Source, folder: Path, target: Target, activation_bits: int | None = None, level: int = 2) -> Measured:
    """Compiles a source, whose files are relative to `folder`, with -O `level`, and times it. Raises what compiling raises."""
    options = _options(target, activation_bits, level)
    compilation = compile_source(source, folder, options)
    program, graph = compilation.program, compilation.graph
    assert program is not None
    assert graph is not None
    timeline = time_program(program)
    fetched = int(timeline.tiles.arrived.max(initial=0)) / program.target.clock_hz
    return Measured(graph.inputs[0].type.shape[0], stats(program, timeline), fetched)


def measure_file(path: Path, target: Target, level: int = 2) -> Measured:
    """`measure` of one of the paper's applications, with the activations that it has there."""
    return measure(read_source(path), path.parent, target, published().applications[path.stem].activation_bits, level)


def seconds_on(path: Path, targets: Sequence[Target]) -> list[float]:
    """How long a batch of one of the paper's applications takes on each of the targets. What they share is compiled once."""
    compiler, bits = Compiler(extra_asks=True), published().applications[path.stem].activation_bits
    programs = (compiler.program(path, _options(target, bits)) for target in targets)
    return [stats(program, time_program(program))["seconds"] for program in programs]


def _options(target: Target, activation_bits: int | None, level: int = 2) -> Options:
    return Options(target=msgspec.structs.replace(target, **FREE_HOST), level=level, passes=(unit_ranges,), activation_bits=activation_bits)
