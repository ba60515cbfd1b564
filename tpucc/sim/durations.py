"""How long something takes: seconds as text, and the seconds of the host's work, which no instruction's time counts.

This is the one place where seconds become text. `words.js` of the report does the same in the browser.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.sim.stream import stream
from tpucc.sim.timing import Timeline

UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
"""Each unit, and how many of them a second has; the largest first."""
DIGITS, COLUMN_DIGITS = 3, 4
"""Significant digits of a duration alone, and of the longest of those that are compared."""


def duration(seconds: float) -> str:
    """`446 ns`, `12.3 µs`, `92.2 ms`, `1.21 s`: at most three significant digits, in the largest unit that gives at least 1."""
    value, unit, _ = _rounded(seconds, DIGITS)
    return f"{value:,.12g} {unit}"


def durations(seconds: Sequence[float]) -> list[str]:
    """A column of a table: one unit and one number of decimals, with which the longest has four significant digits."""
    longest, unit, factor = _rounded(max(seconds, default=0.0), COLUMN_DIGITS)
    decimals = max(0, COLUMN_DIGITS - len(str(int(longest))))
    return [f"{value * factor:,.{decimals}f} {unit}" for value in seconds]


def seconds_unit(seconds: float) -> tuple[str, float]:
    """The largest unit of which `seconds` are one or more, and how many of them a second has; nanoseconds for less."""
    return next((unit for unit in UNITS if seconds * unit[1] >= 1), UNITS[-1])


def _rounded(seconds: float, digits: int) -> tuple[float, str, float]:
    """The number, its unit, and how many of those a second has. Rounded before the unit is chosen: 999.7 ns are 1 µs, not 1,000 ns."""
    rounded = float(f"{seconds:.{digits}g}")
    unit, factor = seconds_unit(rounded)
    return rounded * factor, unit, factor


# The time of the host's work: before the device starts, in the steps between, and after the device has finished.


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
