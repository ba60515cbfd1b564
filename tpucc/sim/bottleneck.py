"""The bottleneck of a program, in a word and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted, percent
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.sim import levers
from tpucc.sim.accounting import ROWS
from tpucc.sim.durations import duration
from tpucc.sim.levers import Lever
from tpucc.sim.segments import Cause, Segments
from tpucc.sim.timing import Timeline
from tpucc.values import dataclass

BOTTLENECKS: Mapping[str, str] = MappingProxyType(
    {
        "weight memory": "the matrix unit waits for tiles that haven't arrived, or are shifted in late because they arrived late",
        "weight shift": "it waits for tiles that arrived in time, while they are shifted in",
        "matrix unit": "it multiplies",
        "activation": "it waits while the activation unit works",
        "host work": "it waits while the host computes a step between two parts of the program",
        "host link": "it waits while nothing but a transfer between host and unified buffer is under way, or for one",
        "data dependencies": "it waits for results on their way: the array's fill and drain, and the order of the instructions",
        "nothing": "the program takes no time: nothing runs on the device",
    }
)
"""The possible bottlenecks: each row of the matrix unit's cycles counts for one of these, and the largest is the bottleneck."""


LEAST_SHARE = 0.05
"""Percent of the cycles from which on a sentence names a row: less is printed as 0.0."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The bottleneck of a program, and a setting that would help."""

    name: str
    """One of `BOTTLENECKS`."""
    explanation: str
    """Which rows of the accounting are its, and why."""
    share: float
    """Percent of the cycles that these rows take."""
    lever: Lever | None
    """A setting with which an item of the batch takes fewer cycles; None where nothing runs on the device."""


def bottleneck(program: Program, timeline: Timeline, segments: Segments) -> Bottleneck:
    """The limit that takes most of the cycles."""
    if not timeline.makespan:
        return Bottleneck("nothing", "nothing runs on the device: every operator of the model is the host's", 0.0, None)
    cycles = np.bincount(segments.cause, segments.cycles, minlength=len(Cause)).astype(np.int64)
    limits = _limits(program, timeline, segments)
    name = max(limits, key=lambda limit: sum(cycles[cause] for cause in limits[limit]))
    rows = _tile_rows(program, segments)
    lever = _LEVERS[name](program, effects(program.instructions), rows.rows, timeline.makespan)
    words = f"{_SENTENCES[name](program, rows, _share(cycles, limits[name]))}; {lever.words}"
    return Bottleneck(name, words, float(100 * cycles[limits[name]].sum() / cycles.sum()), lever)


def _limits(program: Program, timeline: Timeline, segments: Segments) -> dict[str, list[Cause]]:
    """The rows of the accounting that each limit has, in the order of `_SENTENCES`. Each row is one limit's as a whole.

    Three rows can have several reasons. Such a row is the limit's whose reason takes most of it.
    """
    cause, length = segments.cause, segments.cycles
    late = _late(program, timeline)[segments.instruction]
    stepping = segments.stepping & ~segments.activating
    left = ~segments.activating & ~stepping

    def most(row: Cause, *reasons: tuple[str, npt.NDArray[np.bool_]]) -> str:
        return max(reasons, key=lambda reason: int(length[(cause == row) & reason[1]].sum()))[0]

    units = (("activation", segments.activating), ("host work", stepping))
    owner = {
        Cause.WEIGHT_STALL: "weight memory",
        Cause.WEIGHT_SHIFT: most(Cause.WEIGHT_SHIFT, ("weight memory", late), ("weight shift", ~late)),
        Cause.ACTIVE: "matrix unit",
        Cause.RAW_STALL: most(Cause.RAW_STALL, ("data dependencies", left), *units),
        Cause.INPUT_STALL: most(Cause.INPUT_STALL, ("host link", left), *units),
        Cause.ACTIVATION: "activation",
        Cause.HOST_STEP: "host work",
        Cause.OUTPUT: "host link",
        Cause.INPUT: "host link",
        Cause.IDLE: "data dependencies",
    }
    return {name: [row for row in Cause if owner[row] == name] for name in _SENTENCES}


def _late(program: Program, timeline: Timeline) -> npt.NDArray[np.bool_]:
    """For each instruction whether its tile was shifted in late because it arrived late: the shadow had been free before."""
    tiles, found = timeline.tiles, np.zeros(len(program.instructions), np.bool_)
    free = np.concatenate([np.zeros(1, np.int64), tiles.taken])[: len(tiles.shifting)]
    found[effects(program.instructions).pops] = tiles.shifting > free
    return found


def _share(cycles: Int64, rows: Sequence[Cause]) -> str:
    """The rows' sum, and the rows, each rounded by itself: `61.2 % of the cycles (waits for the host 30.3, outputs leave 30.9)`."""
    shares = 100 * cycles / cycles.sum()
    parts = [(ROWS[row].name, f"{shares[row]:.1f}") for row in rows if shares[row] >= LEAST_SHARE]
    names = ", ".join(f"{name} {share}" for name, share in parts) if len(parts) > 1 else "".join(name for name, _ in parts)
    return f"{shares[rows].sum():.1f} % of the cycles ({names})"


def _weight_memory(program: Program, rows: TileRows, share: str) -> str:
    return f"{share} wait for weight tiles, each fetched in {program.target.tile_fetch_cycles:,} cycles and {rows.words}"


def _weight_shift(program: Program, rows: TileRows, share: str) -> str:
    return f"{share} wait for tiles, each shifted in in {program.target.tile_shift_cycles:,} cycles and {rows.words}"


def _matrix_unit(program: Program, rows: TileRows, share: str) -> str:
    macs = sum(layer.macs for layer in program.layers)
    cells = int(effects(program.instructions).rows[_multiplies(program)].sum()) * program.target.tile_bytes
    return f"the matrix unit multiplies in {share}, with {percent(macs, cells)} of its cells in use"


def _activation(program: Program, rows: TileRows, share: str) -> str:
    return f"{share} wait for the activation unit, which does one row a cycle"


def _host_work(program: Program, rows: TileRows, share: str) -> str:
    steps, each = counted(len(program.host_steps), "host step"), duration(program.target.host_step_seconds)
    turns = f", computed for {program.cores:,} cores in turn" if program.cores > 1 else ""
    return f"{share} wait for {steps}{turns}, each of at least {each}"


def _host_link(program: Program, rows: TileRows, share: str) -> str:
    link, latency = f"{program.target.host_bandwidth / 1e9:.3g} GB/s", program.target.host_latency_seconds
    link += f" for all {program.cores:,} cores" if program.cores > 1 else ""
    each = f", and {duration(latency)} besides for each" if latency else ""
    return f"{share} wait for transfers between the host and the unified buffer, at {link}{each}{_padding(program)}"


def _padding(program: Program) -> str:
    """What is data in the rows of the largest port, if that is less than half and these rows cost more than beginning the transfers."""
    target, touched = program.target, effects(program.instructions)
    port = max((*program.inputs, *program.outputs), key=lambda port: sum(port.splits), default=None)
    moving = touched.host_reads | touched.host_writes
    crossing = int(touched.rows[moving].sum()) * target.mxu * program.cores / target.host_bandwidth
    if port is None or int(moving.sum()) * target.host_latency_seconds > crossing:
        return ""
    used = port.shape[-1] if port.shape else 1
    if 2 * used > target.mxu:
        return ""
    kind = "input row" if port in program.inputs else "output row"
    return f"; each {kind} has {counted(used, 'byte')} of data in {target.mxu:,}"


def _data_dependencies(program: Program, rows: TileRows, share: str) -> str:
    pipeline = program.target.pipeline_cycles
    return f"{share} wait for results on their way: the array fills and drains for {pipeline:,} cycles before others can use its sums"


_SENTENCES: Mapping[str, Callable[[Program, TileRows, str], str]] = MappingProxyType(
    {
        "weight memory": _weight_memory,
        "weight shift": _weight_shift,
        "matrix unit": _matrix_unit,
        "activation": _activation,
        "host work": _host_work,
        "host link": _host_link,
        "data dependencies": _data_dependencies,
    }
)


_LEVERS: Mapping[str, Callable[[Program, Effects, float, int], Lever]] = MappingProxyType(
    {
        "weight memory": levers.weight_memory,
        "weight shift": levers.weight_shift,
        "matrix unit": levers.shared,
        "activation": levers.shared,
        "host work": levers.host_work,
        "host link": levers.host_link,
        "data dependencies": levers.data_dependencies,
    }
)


def _multiplies(program: Program) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return effects(program.instructions).multiplies


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows that a fetched tile is used for, where the matrix unit waits for weights."""

    rows: int
    """Of the tiles that it waits for longest in all."""
    only: bool
    """Whether it waits for no others."""

    @property
    def words(self) -> str:
        return f"used for {self.rows:,} rows" if self.only else f"most used for {self.rows:,} rows"


def _tile_rows(program: Program, segments: Segments) -> TileRows:
    touched = effects(program.instructions)
    tile = np.maximum(np.cumsum(touched.pops) - 1, 0)
    used = np.bincount(tile, touched.rows * touched.multiplies).astype(np.int64)[tile]
    waits = np.flatnonzero(np.isin(segments.cause, (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT)))
    rows, kinds = np.unique(used[segments.instruction[waits]], return_inverse=True)
    if not len(rows):
        return TileRows(0, only=True)
    return TileRows(int(rows[np.bincount(kinds, segments.cycles[waits]).argmax()]), only=len(rows) == 1)
