"""The matrix unit's time as one line of segments: what each cycle was spent on, and by which layer.

The segments partition the program's time, so that every share of it adds up: rows 1, 4, 5 and 6 of the TPU paper's Table 3 are sums
over all segments, a layer's cycles the sum over its own.

A wait has two reasons. Its *cause* is what the matrix unit itself waits for, as Table 3 counts. Its *root* is what is at work at the end of
the chain of waits (`tpucc.explain.critical`): only less of that makes the wait shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.explain.attribution import Attribution, attribution
from tpucc.explain.critical import DRAINS, LIMITS, Activities, Limit, activities
from tpucc.explain.stalls import stalls
from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.program import Program
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


class Cause(IntEnum):
    """The state of the matrix unit in a cycle, in the order of Table 3: those from `RAW_STALL` on are its row 6.

    From `ACTIVATION` on the unit waits for nothing, mostly because it has done its last product. Such a cycle is named after another unit
    that works in it, the first of these: the activation unit, a host step, an output or an input on the link.
    """

    ACTIVE = 0
    WEIGHT_STALL = 1
    WEIGHT_SHIFT = 2
    RAW_STALL = 3
    INPUT_STALL = 4
    ACTIVATION = 5
    HOST_STEP = 6
    OUTPUT = 7
    INPUT = 8
    IDLE = 9


IN_TURN = (Cause.RAW_STALL, Cause.INPUT_STALL, Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT, Cause.IDLE, Cause.ACTIVE)
"""The causes before a multiply and then the multiply, in the order of time, as `stalls` gives them."""


@dataclass(frozen=True, eq=False, slots=True)
class Segments:
    """Cycles [start, end) one after the other from 0 to the makespan; one entry of each column a segment, none empty."""

    start: Int64
    end: Int64
    cause: npt.NDArray[np.int8]
    instruction: Int64
    """The multiply that runs or waits; at the end, the instruction that finishes last."""
    layer: Int64
    """Whose cycles these are. While the matrix unit waits and the activation unit works, it is the layer that the activation unit works on;
    while that unit waits, too, and the host computes a step, the layer of the step's interrupt. A wait whose root is work on the inputs is
    the input's. The numbers are those of `Attribution.layers`."""
    root: npt.NDArray[np.int8]
    """Places in `LIMITS`: the matrix unit where it multiplies; where it waits, what is at work meanwhile at the end of the chain of
    waits."""

    @property
    def cycles(self) -> Int64:
        return self.end - self.start


def matrix_segments(program: Program, timeline: Timeline, whose: Attribution | None = None) -> Segments:
    """The segments of a program, whose attribution may be known already; empty when it takes no time."""
    touched, account = effects(program.instructions, program.machine), program.machine.account
    engine = touched.engine
    multiplies = np.flatnonzero(engine == account.computes)
    bounds, causes, instructions = _waits_and_work(multiplies, stalls(program, timeline), timeline)
    roots = _roots(multiplies, activities(program, timeline))
    activation, host = _busy(engine, timeline, account.finishes), _busy(engine, timeline, account.supplies)
    others = np.concatenate([activation, host])
    times = np.sort(np.concatenate([bounds, roots.start, timeline.start[others], timeline.end[others]]))
    cuts = times[np.diff(times, prepend=-1) > 0]
    start, end = cuts[:-1], cuts[1:]
    within = np.searchsorted(bounds, start, "right") - 1
    working, hosting = _at(timeline, activation, start), _at(timeline, host, start)
    stepping = (hosting >= 0) & touched.interrupts[hosting]
    cause = causes[within]
    leaving = (hosting >= 0) & _leaves(program, touched)[hosting]
    meanwhile = np.select(
        [working >= 0, stepping, leaving, hosting >= 0], [Cause.ACTIVATION, Cause.HOST_STEP, Cause.OUTPUT, Cause.INPUT], Cause.IDLE
    )
    cause = np.where(cause == Cause.IDLE, meanwhile, cause).astype(np.int8)
    owner = np.where(working >= 0, working, np.where(stepping, hosting, instructions[within]))
    of, (limit, at_work) = np.append((whose or attribution(program)).of, -1), roots.at(start)
    layer = of[np.where(cause >= Cause.RAW_STALL, owner, instructions[within])]
    layer = np.where((cause != Cause.ACTIVE) & (of[at_work] == len(program.layers)), len(program.layers), layer)
    root = np.where(cause == Cause.ACTIVE, LIMITS.index(Limit.MATRIX_UNIT), limit)
    return Segments(start, end, cause, instructions[within], layer, root.astype(np.int8))


class _Roots(NamedTuple):
    """The activities at the ends of all chains of waits of the matrix unit, in the order of time: the cycles that count, the limit and the
    instruction."""

    start: Int64
    end: Int64
    limit: npt.NDArray[np.int8]
    instruction: Int64

    def at(self, times: Int64) -> tuple[npt.NDArray[np.int8], Int64]:
        """The limit and the instruction of the activity of each time; `DRAINS` and -1 where none is known: of what a batch before has
        left."""
        place = np.searchsorted(self.start, times, "right") - 1
        known = (place >= 0) & (times < np.append(self.end, -1)[place])
        chosen = np.where(known, place, -1)
        return np.append(self.limit, np.int8(DRAINS))[chosen], np.append(self.instruction, -1)[chosen]


def _roots(multiplies: Int64, known: Activities) -> _Roots:
    """Before each multiply, and before the end of the program, from the end of the multiply before on."""
    numbers, chain = known.chains(np.append(known.predecessor[multiplies], known.last), since := np.append(0, known.end[multiplies]))
    since = since[chain]
    start, end = np.maximum(known.start[numbers], since), known.end[numbers]
    waited = end > start
    numbers = numbers[waited]
    return _Roots(start[waited], end[waited], known.limit[numbers], known.instruction[numbers])


def _leaves(program: Program, touched: Effects) -> Bools:
    """Which instructions write rows of the program's buffers."""
    memory = program.machine.holding(Contents.BUFFERS)
    return touched.writing(memory) if memory is not None else np.zeros(len(touched), np.bool_)


def _waits_and_work(multiplies: Int64, waits: Int64, timeline: Timeline) -> tuple[Int64, npt.NDArray[np.int8], Int64]:
    """The start of each of the unit's states, its cause and its instruction: the waits and the work of each of its instructions, then the
    end."""
    lengths = np.concatenate([waits.T, (timeline.end - timeline.start)[multiplies, None]], axis=1).reshape(-1)
    causes = np.tile(np.array(IN_TURN, np.int8), len(multiplies))
    last = int(np.argmax(timeline.end))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    causes, instructions = np.append(causes, np.int8(Cause.IDLE)), np.append(np.repeat(multiplies, len(IN_TURN)), last)
    ends = np.append(starts[1:], timeline.makespan)
    kept = ends > starts
    return np.append(starts[kept], timeline.makespan), causes[kept], instructions[kept]


def _busy(engine: npt.NDArray[np.uint8], timeline: Timeline, unit: int) -> Int64:
    return np.flatnonzero((engine == unit) & (timeline.end > timeline.start))


def _at(timeline: Timeline, instructions: Int64, times: Int64) -> Int64:
    """Which of a unit's `instructions`, in order, runs at each time; -1 where none does."""
    if not len(instructions):
        return np.full(len(times), -1, np.int64)
    found = instructions[np.maximum(np.searchsorted(timeline.start[instructions], times, "right") - 1, 0)]
    runs = (timeline.start[found] <= times) & (times < timeline.end[found])
    return np.where(runs, found, -1)
