"""The time of the host's work: before the device starts, in the steps between, and after the device has finished.

The price of the host's work is our assumption (`Target.host_part_seconds`). Cores have one host, which serves one after the other.
"""

from __future__ import annotations

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.sim.stream import stream
from tpucc.sim.timing import Timeline

Edges = tuple[int, int]
"""The measure of the host's work before the device starts and after it has finished, of one core: elements."""


def edge_seconds(program: Program, edges: Edges) -> tuple[float, float]:
    """The seconds of the host's work before the device starts, and after it has finished."""
    before, after = (program.cores * program.target.host_part_seconds(elements) for elements in edges)
    return before, after


def host_step_cycles(program: Program, timeline: Timeline) -> int:
    """The cycles of the host's steps for all cores."""
    return int((timeline.end - timeline.start)[effects(program.instructions, program.machine).interrupts].sum())


def host_seconds(program: Program, timeline: Timeline, edges: Edges) -> float:
    """The seconds of the host's work for a batch: at both ends, and in the steps between."""
    return sum(edge_seconds(program, edges)) + host_step_cycles(program, timeline) / program.target.clock_hz


def stream_seconds(program: Program, timeline: Timeline, edges: Edges) -> float:
    """The seconds of each batch of a stream: of the busier one of host and device."""
    return max(stream(program, timeline).cycles / program.target.clock_hz, host_seconds(program, timeline, edges))
