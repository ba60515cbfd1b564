"""One model on different numbers of cores: what more cores gain, and what they can't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.diagnostics import printable
from tpucc.explain.tables import table, wrapped
from tpucc.explain.timed import Timed
from tpucc.sim.durations import durations


@dataclass(frozen=True, slots=True)
class Scale:
    """A model on `cores` cores, `batch` items on each.

    `speedup` is the first row's cycles over this one's. `efficiency` is the speed-up over how many times as many cores there are: 1 where
    twice the cores are twice as fast.
    """

    cores: int
    batch: int
    cycles: int
    seconds: float
    speedup: float
    efficiency: float
    tops: float
    utilization: float
    bottleneck: str


def scaling(runtimes: Sequence[Timed]) -> list[Scale]:
    """A row for each program, all of one model and one batch; they are compared with the first. Each has at least one input."""
    return [_scale(runtime, runtimes[0]) for runtime in runtimes]


def scaling_table(runtimes: Sequence[Timed]) -> str:
    """The rows for the terminal."""
    program, rows = runtimes[0].program, scaling(runtimes)
    batch = rows[0].batch * rows[0].cores
    head = f"{printable(program.name)} on {program.target.name}, a batch of {batch:,} divided among cores"
    return f"{wrapped(head, '  ')}\n\n{table(HEAD, cells(rows), left=0)}"


HEAD = ("cores", "items", "cycles", "time", "speed-up", "efficiency", "TOPS", "bottleneck")


def cells(rows: Sequence[Scale]) -> list[tuple[str, ...]]:
    """The rows as text, in the order of `HEAD`; their times have one unit."""
    times = durations([row.seconds for row in rows])
    return [_cells(row, time) for row, time in zip(rows, times, strict=True)]


def _cells(row: Scale, time: str) -> tuple[str, ...]:
    share = f"{100 * row.efficiency:.0f} %"
    counts = (f"{row.cores:,}", f"{row.batch:,}", f"{row.cycles:,}", time)
    return (*counts, f"{row.speedup:.2f}", share, f"{row.tops:.3g}", row.bottleneck)


def _scale(runtime: Timed, first: Timed) -> Scale:
    stats, cores = runtime.stats, runtime.program.cores
    batch = next(iter(runtime.inputs.values())).shape[0] // cores
    speedup = max(1, first.stats["cycles"]) / max(1, stats["cycles"])
    return Scale(
        cores=cores,
        batch=batch,
        cycles=stats["cycles"],
        seconds=stats["seconds"],
        speedup=speedup,
        efficiency=speedup * first.program.cores / cores,
        tops=stats["tops"],
        utilization=stats["utilization"],
        bottleneck=stats["bottleneck"],
    )
