"""*Levers*: settings that make a program faster. For each kind of bottleneck there is one that works on this program.

A larger batch is the first choice, as far as the unified buffer and the accumulators have room for it. Where they have none, the lever is a
number of the machine: the memory that is too small, or a bandwidth. A lever is always about the bottleneck itself: if that is the host
link, a larger batch is one only for what transfers take to begin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.critical import CriticalPath, Limit
from tpucc.explain.tilegrid import tile_grid
from tpucc.isa.effects import Effects, effects, resolve
from tpucc.isa.link import link_bytes
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.sim.durations import Edges
from tpucc.sim.timing import instruction_cycles
from tpucc.target import number_text


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows that a fetched tile is used for, of the tiles on the critical path."""

    rows: int
    """Of the tiles that take most of its cycles; 0 where there are none."""
    only: bool
    """Whether there are no others."""
    whole: int
    """The rows of these tiles' layer in one part of the batch. They are more than `rows` where the accumulators don't hold their sums."""
    waits: bool
    """Whether the sums of that layer wait in the accumulators for further tiles, so that these must hold as many rows."""

    @property
    def words(self) -> str:
        return f"{'' if self.only else 'most are '}used for {counted(self.rows, 'row')}"


def tile_rows(program: Program, path: CriticalPath) -> TileRows:
    """Of a program with this critical path."""
    touched = effects(program.instructions, program.machine)
    used = np.bincount(np.maximum(np.cumsum(touched.pops) - 1, 0), touched.rows * touched.multiplies).astype(np.int64)
    parts = path.of_limits(Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT)
    if not parts.any():
        return TileRows(0, only=True, whole=0, waits=False)
    fetches, cycles = path.instruction[parts], path.cycles[parts]
    tiles = np.cumsum(touched.pushes)[fetches] - 1
    rows, kinds = np.unique(used[tiles], return_inverse=True)
    kind = np.bincount(kinds, cycles).argmax()
    own = kinds == kind
    layer = int(np.bincount(program.layer_of[fetches[own]], cycles[own]).argmax())
    most = int(rows[kind])
    waits = bool(tile_grid(program.layers[layer], program.target.mxu).row.max(initial=0) > 0)
    return TileRows(most, only=len(rows) == 1, whole=max(most, _rows_of_a_part(program, layer)), waits=waits)


def _rows_of_a_part(program: Program, layer: int) -> int:
    """The rows that each tile of a layer is used for in one part of the batch, however often it is fetched."""
    touched = effects(program.instructions, program.machine)
    own = program.layer_of == layer
    fetched = set(resolve(program.instructions, touched).tile[own & touched.multiplies].tolist())
    places = sum(tile in fetched for tile, _, _ in program.layers[layer].tile_fills)
    division = program.division
    until = [info.name for info in program.layers].index(division.until) if division and division.until else len(program.layers)
    parts = division.parts if division and layer < until else 1
    return -(-int(touched.rows[own & touched.multiplies].sum()) // max(1, places * parts))


LEAST = 1.5
"""A larger batch is a lever only if the batch can grow by this factor."""
HARDLY = 1.1
"""For the shift of a tile, on which no other number of the machine works, a factor that is known not to be an estimate may be as small."""
MEASURED = " (tpucc sweep -D batch=… measures it)"
"""Where the source has such a param."""
PARAM = re.compile(r"^param[ \t]+batch\b", re.MULTILINE)
WHOLE = 10
"""From here on factors are whole numbers; below, tenths, if the batch has so many items."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A setting, as it is given on the command line, and what it does."""

    option: Literal["batch", "cores", "set"]
    """A parameter with which the batch grows (-D), `--cores`, or `--set`."""
    field: str
    """Of the target; nothing for the batch and for cores."""
    value: float
    """How many times as large the batch is; how many cores; the field's value."""
    effect: str
    """`would fetch tiles in half the time`."""
    most: bool = False
    """Whether the value is the largest batch that may have room. An estimate: of a larger batch an item can need more rows, or fewer."""
    needed: tuple[tuple[str, int], ...] = ()
    """Fields of the target that have to be larger for the larger batch, with their values."""

    @property
    def words(self) -> str:
        match self.option:
            case "batch" if self.most:
                return f"a batch up to about {self.value:,.12g} times as large may have room, and {self.effect}"
            case "batch":
                settings = " and ".join(f"--set {field}={value}" for field, value in self.needed)
                return f"a batch {self.value:,.12g} times as large{f', with {settings},' if settings else ''} {self.effect}"
            case "cores":
                return f"--cores {self.value:.0f} {self.effect}"
            case "set":
                value = self.value if isinstance(self.value, int) else float(f"{self.value:.3g}")
                return f"--set {self.field}={number_text(value)} {self.effect}"


@dataclass(frozen=True, slots=True)
class Work:
    """What levers are chosen by."""

    program: Program
    touched: Effects
    path: CriticalPath
    """The critical path."""
    tiles: TileRows
    """The rows that a fetched tile is used for."""

    def seconds(self, *limits: Limit) -> float:
        """The parts of the critical path that are of these limits."""
        return int(self.path.cycles[self.path.of_limits(*limits)].sum()) / self.program.target.clock_hz


def busy_after(work: Work, lever: Lever | None, edges: Edges) -> tuple[Mapping[Limit, float], float]:
    """How many cycles each unit is busy for a batch with the lever's setting, if there is one, and how many times as large that batch is.

    Rows and the host's values grow with the batch, fetches and beginnings don't. Cores share the batch, and each fetches all weights.
    """
    program, machine, touched = work.program, work.program.target, work.touched
    items = lever.value if lever and lever.option == "batch" else 1.0
    cores = lever.value / program.cores if lever and lever.option == "cores" else 1.0
    if lever and lever.option == "set":
        kind = type(getattr(machine, lever.field))
        machine = msgspec.structs.replace(machine, **{lever.field: kind(lever.value)})
    taken = instruction_cycles(program, touched)
    account = program.machine.account
    computing, finishing = (
        float(taken[(touched.engine == unit) & (touched.rows > 0)].sum()) for unit in (account.computes, account.finishes)
    )
    size, transfers = float(link_bytes(program, touched).sum()) * program.cores, int((touched.host_reads | touched.host_writes).sum())
    values = program.cores * (sum(edges) + sum(step.elements for step in program.host_steps))
    stops = program.cores * (len(program.host_steps) + sum(map(bool, edges)))
    clock = machine.clock_hz
    return {
        Limit.WEIGHT_MEMORY: int(touched.pushes.sum()) * machine.tile_fetch_cycles,
        Limit.MATRIX_UNIT: computing * items / cores,
        Limit.ACTIVATION: finishing * items / cores,
        Limit.HOST_LINK: (size * items / machine.host_bandwidth + transfers * machine.host_latency_seconds) * clock,
        Limit.HOST_WORK: (values * items / machine.host_elements_per_second + stops * machine.host_step_seconds) * clock,
    }, items


def weight_memory(work: Work) -> Lever:
    found = _more_rows(work, work.program.target.tile_fetch_cycles, "its fetch", LEAST)
    return found or _twice(work.program, "weight_bandwidth", "would fetch tiles in half the time")


def weight_shift(work: Work) -> Lever:
    """No number of the machine makes a shift shorter, so a tile has to be used for more rows."""
    cycles = work.program.target.tile_shift_cycles
    found = _more_rows(work, cycles, "its shift", HARDLY)
    if found is None and _is_cut_for_room(work.program):
        return _room(work.program)
    wanted = max(2.0, _enough(work, cycles) / max(work.tiles.rows, 1))
    return found or _with_memories(work, wanted, f"would use each tile for more rows{_measured(work)}", sums=work.tiles.waits)


def _more_rows(work: Work, cycles: int, what: str, least: float) -> Lever | None:
    """A tile that is used for as many rows as hide `what`, which takes so many `cycles`: by more accumulators, where they are too few for
    the batch, else by a larger batch. Whether that then stays in one piece isn't known here."""
    tiles, enough = work.tiles, _enough(work, cycles)
    held = work.program.target.accumulator_rows if tiles.waits else enough
    if tiles.rows < min(tiles.whole, enough) and held < enough:
        return _more_sums(work, enough, what)
    rows, less = max(tiles.rows, 1), f"would use each tile for more rows{_measured(work)}"
    if held < enough:
        sums = f"would use such a tile for the {held:,} rows whose sums the accumulators hold{_measured(work)}"
        return _batch(work, held / rows, sums, less, least, math.floor)
    hidden = f"would use such a tile for the {enough:,} rows that hide {what}, if it stays in one piece{_measured(work)}"
    return _batch(work, enough / rows, hidden, less, least)


def _measured(work: Work) -> str:
    return MEASURED if PARAM.search(work.program.source_text) else ""


def _enough(work: Work, cycles: int) -> int:
    """The rows that the matrix unit takes so many cycles for."""
    touched = work.touched
    return -(-cycles // int(touched.bytes_per_value[touched.multiplies].max(initial=1)))


def _more_sums(work: Work, enough: int, what: str) -> Lever:
    """Accumulators for all rows of a part of the batch, or for so many that its row groups have `enough` rows each."""
    tiles = work.tiles
    value = _doubled(work.program.target.accumulator_rows, min(tiles.whole, 2 * enough))
    used = f"all {tiles.whole:,} rows" if tiles.whole < enough else f"the {enough:,} rows that hide {what}"
    return Lever("set", "accumulator_rows", value, f"would hold the sums of more rows, and use such a tile for {used}")


def _doubled(value: int, wanted: float) -> int:
    """The value, doubled until it is no less than what is wanted."""
    while value < wanted:
        value *= 2
    return value


def shared(work: Work) -> Lever:
    """For what each core has of its own. Whether items need each other isn't known here, unless cores share them already."""
    program = work.program
    cores, sizes = 2 * program.cores, {port.shape[0] for port in program.prologue_ports if port.shape}
    alone = "" if program.cores > 1 else ", if no item needs another"
    odd = any(size % 2 for size in sizes)
    batch = _batch(work, 2.0, larger := f"could be shared by --cores {cores}{alone}", larger)
    if odd and batch and not batch.most:
        return batch
    halves = f"the batch, {counted(max(sizes, default=0) // 2, 'item')} each"
    batch_words = "an even batch" if odd else "the batch" if len(sizes) > 1 else halves
    return Lever("cores", "", cores, f"would share {batch_words}{alone}")


def host_work(work: Work) -> Lever:
    """Each step is for all parts of a batch together, so its parts may be any number."""
    program, target = work.program, work.program.target
    computing = sum(step.elements for step in program.host_steps) / target.host_elements_per_second
    if computing > len(program.host_steps) * target.host_step_seconds:
        return _twice(program, "host_elements_per_second", "would compute the values in half the time")
    steps = "would have fewer host steps for each item"
    batch = Lever("batch", "", 4.0, steps) if _is_cut_for_room(program) else _batch(work, 4.0, steps, steps)
    return batch or Lever("set", "host_step_seconds", target.host_step_seconds / 2, "would begin each step in half the time")


def host_link(work: Work) -> Lever:
    """A larger batch has fewer transfers to begin for each item; twice the bandwidth halves what the rows take to cross."""
    program, target = work.program, work.program.target
    latency = int(work.path.of_limits(Limit.HOST_LINK).sum()) * target.host_latency_seconds
    crossing = work.seconds(Limit.HOST_LINK) - latency
    batch = _batch(work, 4.0, fewer := "would have fewer transfers for each item", fewer)
    if batch and latency * (1 - 1 / batch.value) >= crossing / 2:
        return batch
    if latency < crossing:
        return _twice(program, "host_bandwidth", "would move the rows in half the time")
    return Lever("set", "host_latency_seconds", target.host_latency_seconds / 2, "would begin each transfer in half the time")


def data_dependencies(work: Work) -> Lever:
    fewer = "would fill and drain the array less often for each item"
    if _is_cut_for_room(work.program):
        return _room(work.program)
    return _batch(work, 4.0, fewer, fewer) or _with_memories(work, 4.0, fewer, sums=False)


def _is_cut_for_room(program: Program) -> bool:
    """Whether the batch is computed in parts because the unified buffer has no room for it in one piece. Those that hide transfers are
    computed in another order."""
    return program.division is not None and program.division.order == "in-turn"


def _batch(
    work: Work, wanted: float, enough: str, less: str, least: float = LEAST, rounding: Callable[[float], int] = math.ceil
) -> Lever | None:
    """A larger batch: `wanted` times as large, or as large as has room if an item needs as many rows then. None where that is hardly
    larger, and where the batch is cut for want of room already."""
    factor = min(wanted, _growth(work))
    exact = factor == wanted
    items = _items(work.program)
    step = 1 if factor >= WHOLE else 10 if items >= WHOLE else items if factor < 2 else 1
    rounded = float((rounding if exact else math.floor)(factor * step) / step)
    if min(factor, rounded) < (least if exact else LEAST) or _is_cut_for_room(work.program):
        return None
    return Lever("batch", "", rounded, enough) if exact else Lever("batch", "", rounded, less, most=True)


def _growth(work: Work) -> float:
    """How many times as large a batch has room in the unified buffer, if an item needs as many rows then. Parts that hide transfers are
    chosen only where the whole batch has room, of which is known that it needs no more than all of them."""
    program = work.program
    needed = max(program.peak_rows, _rows_of_layers(work))
    if program.division:
        needed = min(needed, program.peak_rows * program.division.parts)
    return max(1.0, program.target.unified_buffer_rows / max(1, needed))


def _rows_of_layers(work: Work) -> int:
    """The most rows of the unified buffer that are alive at some time while one layer is computed. The peak may be lower, where the last
    rows of a layer's operands die before the last ones of its results are there; the rows of a larger batch may live longer."""
    touched, program = work.touched, work.program
    computing = np.flatnonzero(
        (touched.source.used | touched.source2.used | touched.target.used) & ~touched.host_reads & ~touched.host_writes
    )
    layer, count = program.layer_of[computing], len(program.layers)
    first, last = np.full(count, len(program.instructions), np.int64), np.full(count, -1, np.int64)
    np.minimum.at(first, layer, computing)
    np.maximum.at(last, layer, computing)
    rows, begun, ended = (np.array([getattr(each, name) for each in program.residents], np.int64) for name in ("rows", "first", "last"))
    alive = _summed(begun, rows, last + 1) - _summed(ended, rows, first)
    return int(np.where(last >= 0, alive, 0).max(initial=0))


def _summed(places: Int64, rows: Int64, before: Int64) -> Int64:
    """For each number in `before` the sum of the rows whose places are less."""
    order = np.argsort(places, kind="stable")
    sums = np.concatenate([[0], np.cumsum(rows[order])])
    return np.asarray(sums[np.searchsorted(places[order], before)], np.int64)


def _with_memories(work: Work, wanted: float, effect: str, *, sums: bool) -> Lever:
    """A larger batch, with a larger unified buffer where it needs one, and more accumulators where the `sums` of all rows wait there."""
    target = work.program.target
    factor = float(math.ceil(wanted))
    buffer = _doubled(target.unified_buffer_rows, factor / _growth(work) * target.unified_buffer_rows)
    held = _doubled(target.accumulator_rows, factor * work.tiles.rows if sums else 0)
    values = (("unified_buffer_rows", buffer), ("accumulator_rows", held))
    return Lever("batch", "", factor, effect, needed=tuple((name, value) for name, value in values if value > getattr(target, name)))


def _items(program: Program) -> int:
    """Those of the smallest batch of an input."""
    return min((port.shape[0] for port in program.prologue_ports if port.shape), default=1)


def _twice(program: Program, field: str, effect: str) -> Lever:
    return Lever("set", field, 2 * getattr(program.target, field), effect)


def _room(program: Program) -> Lever:
    """For a batch that is computed in parts, each in the room that the unified buffer has."""
    return Lever("set", "unified_buffer_rows", 4 * program.target.unified_buffer_rows, "would compute the batch in larger parts")
