"""The numbers of `stats.json`: how long, how fast, where the cycles go, and what limits the model.

| key | unit and meaning |
|---|---|
| `model`, `target`, `tpucc` | names; tpucc's version |
| `cores` | how many cores share the batch |
| `end_to_end` | seconds of a batch from the model's inputs to its outputs, the host's work included: see `tpucc.explain.end_to_end` |
| `cycles`, `seconds` | the program's makespan, the same on every core: the device and its link |
| `macs` | multiply-accumulates of the model that the device computes, for the whole batch, no padding; rows of two bands count in both |
| `vector_macs` | those of `macs` that the activation unit computes, lane by lane by its vector unit; `useful_macs` are the others |
| `host_macs` | multiply-accumulates of the products that the host computes, none of which are in `macs` |
| `untimed` | what the host computes `before` the device starts and `after` it has finished: `end_to_end` counts it, no cycles do |
| `tops` | 2 · macs ÷ seconds ÷ 10¹² |
| `utilization` | tops ÷ peak, 0…1 |
| `peak_tops` | the peak of all cores: two operations a cell and cycle, half of that with 16-bit activations |
| `instructions` | all of them, synchronisations included |
| `tiles` | weight tiles of the program, each counted once; of a layer: distinct tiles that its multiplies use |
| `tile_fetches` | tiles fetched, of the program or for a layer; a tile that is asked for twice counts twice |
| `written_tiles` | those of `tiles` that hold no weights: the host writes them while the program runs |
| `weight_bytes` | bytes of the program's tiles in weight memory, padding included |
| `macs_per_weight_byte`, `ridge_macs_per_weight_byte` | intensity: macs ÷ bytes fetched; and where the target's roofline bends |
| `ub_peak_bytes`, `ub_lower_bound_bytes` | unified buffer: highest use, and the largest sum of what lives at one time |
| `host_bytes` | bytes that cross the host link for all cores, spills included |
| `host_steps`, `host_step_cycles` | how often the program stops for operators of the host, and the cycles that these take for all cores |
| `breakdown` | percentages; see below |
| `useful_share` | multiply-accumulates on cells with weights of the model ÷ those that the array could do in the time, 0…1 |
| `waits_by_root` | cycles in which the matrix unit waits, by what is at work at the end of the chain of waits: `host link` and so on |
| `critical_path` | percent of the critical path that each limit takes (`tpucc.explain.critical`): `weight_memory` and so on |
| `bottleneck`, `explanation` | one of `BOTTLENECKS`, that of the largest part of the critical path; a sentence with the numbers behind it |
| `bottleneck_share` | percent of the critical path that the bottleneck takes |
| `advice` | the end of that sentence: a setting with which an item takes fewer cycles; empty where nothing runs on the device |
| `stream` | the same in a stream of batches, for each of them; see below |
| `what_if` | of files only: each number of the machine that makes a batch faster if it is twice as good (`tpucc.explain.retiming`) |
| `layers` | of each `name`, `kind`, `line` (0: none), `cycles`, `macs`, `tiles`, `tile_fetches`, `instructions`, `tops`, and its waits |

A layer that is a step of the host has its `operators`, too. Each part of `untimed` has its `operators`, those first that take longest,
its `lines` of the source, the `macs` of `host_macs` that are there, and `elements`, the measure of its time. All these come from the
host's graphs, by `tpucc.explain.host_numbers`.

On several cores instructions, tiles, weight bytes and unified buffer are those of one: every core has the same program, and its own copy of
the weights.

`waits_by_root` and the cycles of `array_active` add up to `cycles` (`tpucc.explain.accounting`). The breakdown has the rows of the TPU
paper's Table 3, in which a wait counts for what the matrix unit itself waits for. Of the matrix unit's cycles, `array_active`,
`weight_stall` (the tile hasn't arrived), `weight_shift` (it isn't shifted in) and `non_matrix` (the rest) add up to 100. `useful_macs` and
`unused_macs` divide `array_active` into cells with and without weights of the model, whatever rows use them. `non_matrix` is the sum of
seven parts: `raw_stall` (waiting for the activation unit) and `input_stall` (waiting for the host); and, while the unit waits for neither,
`activation` (the activation unit works), `host_step` (the host computes a step), `output` (outputs leave), `input` (inputs arrive) and
`idle` (none of these). A layer's cycles are those that `Segments` gives it; the layers' sum to the program's. A step of the host is a layer
of the kind `host`. The last of `layers`, of the kind `input`, is the work on the model's inputs, and no layer of the program: their way
over the link and their copies in the unified buffer. A layer that only copies an input has no instructions and no cycles of its own, then.

In `stream`, `cycles`, `seconds`, `tops`, `utilization`, `breakdown`, `waits_by_root` and `bottleneck` are those of a batch whose inputs
arrive during the batch before and whose outputs leave during the one after (`tpucc.sim.stream`). `computing_cycles` and `link_cycles` are
what it takes without the link, and the link alone; what the second one is longer by counts for `input_stall`, and by its root for the host
link, or for host work if steps take most of it. `ub_bytes` is the unified buffer that a stream needs; where `fits` is false there is less,
and the figures are those of a batch alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.explain.accounting import TABLE_3, WAIT_ROWS
from tpucc.explain.attribution import Attribution, attribution
from tpucc.explain.bottleneck import bottleneck, limit_of_path
from tpucc.explain.critical import LIMITS, NOTHING, Limit, critical_path, shares
from tpucc.explain.end_to_end import end_to_end
from tpucc.explain.occupancy import cells_in_use
from tpucc.explain.segments import Cause, Segments, matrix_segments
from tpucc.isa.effects import effects, resolve
from tpucc.isa.link import link_bytes
from tpucc.isa.program import Program
from tpucc.numerics import Float64, Int64
from tpucc.sim.durations import Edges, host_seconds, host_step_cycles
from tpucc.sim.stream import Stream, stream
from tpucc.sim.timing import Timeline
from tpucc.version import VERSION


def stats(program: Program, timeline: Timeline, edges: Edges = (0, 0)) -> dict[str, Any]:
    """The dictionary that `stats.json` is made of: JSON values only.

    `edges` is the measure of the host's work before and after the program; without it the host's work isn't counted, as in the TPU paper.
    """
    target, cycles = program.target, timeline.makespan
    whose = attribution(program)
    segments = matrix_segments(program, timeline, whose)
    work, (spent, by_limit) = _work(program, whose), _spent(whose, segments)
    macs = sum(layer.macs for layer in program.layers) * program.cores
    tops, peak = _tops(program, macs, cycles), target.peak_ops / work.bytes_per_value * program.cores
    fetches, useful = len(timeline.tiles.asked), float(work.useful.sum()) / target.tile_bytes
    path = critical_path(program, timeline)
    streamed = stream(program, timeline)
    each = max(streamed.cycles / target.clock_hz, host_seconds(program, timeline, edges)) if streamed.fits else None
    limit = bottleneck(program, path, edges, each=each)
    found = {
        "model": program.name,
        "target": target.name,
        "tpucc": VERSION,
        "cores": program.cores,
        "cycles": cycles,
        "seconds": cycles / target.clock_hz,
        "macs": macs,
        "vector_macs": sum(layer.macs for layer in program.layers if layer.is_by_lanes) * program.cores,
        "tops": tops,
        "utilization": tops * 1e12 / peak,
        "peak_tops": peak / 1e12,
        "instructions": len(program.instructions),
        "tiles": program.tile_count,
        "written_tiles": program.written_tiles,
        "tile_fetches": fetches,
        "weight_bytes": program.tile_count * target.tile_bytes,
        "macs_per_weight_byte": macs / (fetches * program.cores * target.tile_bytes) if fetches else 0.0,
        "ridge_macs_per_weight_byte": target.peak_ops / work.bytes_per_value / 2 / target.weight_bandwidth,
        "ub_peak_bytes": program.peak_rows * target.mxu,
        "ub_lower_bound_bytes": program.lower_bound_rows * target.mxu,
        "host_bytes": _host_bytes(program),
        "host_steps": len(program.host_steps),
        "host_step_cycles": host_step_cycles(program, timeline),
        "breakdown": _breakdowns(spent.sum(axis=0)[np.newaxis], np.array([useful]))[0],
        "useful_share": useful / max(1, cycles),
        "waits_by_root": _by_root(by_limit.sum(axis=0).tolist()),
        "critical_path": {limit.replace(" ", "_"): share for limit, share in shares(path).items()},
        "bottleneck": limit.name,
        "bottleneck_share": limit.share,
        "explanation": limit.explanation,
        "advice": limit.advice,
        "stream": _streamed(program, streamed, whose, work, limit.name, peak),
        "layers": _layers(program, work, whose, spent, by_limit),
    }
    return {**found, "end_to_end": end_to_end(found, program, timeline, edges)}


@dataclass(frozen=True, eq=False, slots=True)
class _Work:
    """Per layer: multiply-accumulates on cells that hold weights of the model (layers that only move lanes have none), distinct tiles,
    fetches, instructions. `bytes_per_value` is how many cycles a row takes: 2 for integers of 16 bits, whose peak is half that of 8."""

    bytes_per_value: int
    useful: Float64
    tiles: Int64
    fetches: Int64
    instructions: Int64


def _work(program: Program, whose: Attribution) -> _Work:
    touched = effects(program.instructions, program.machine)
    tile, count = resolve(program.instructions, touched).tile, len(whose.layers)
    multiplies = np.flatnonzero(touched.multiplies)
    layer = whose.of[multiplies]
    useful = (touched.rows * touched.bytes_per_value * cells_in_use(program))[multiplies]
    pairs = np.unique(np.stack([layer, tile[multiplies]]), axis=1)
    size = int(touched.bytes_per_value[multiplies].max(initial=1))
    own = np.array([layer.macs * size for layer in whose.layers], np.float64)  # a tile may have zeros that an expansion put there
    return _Work(
        size,
        np.minimum(np.bincount(layer, useful, minlength=count), own),
        np.bincount(pairs[0], minlength=count),
        np.bincount(whose.of[touched.pushes], minlength=count),
        np.bincount(whose.of, minlength=count),
    )


def _streamed(program: Program, found: Stream, whose: Attribution, work: _Work, alone: str, peak: float) -> dict[str, Any]:
    segments = matrix_segments(program, found.timeline, whose)
    spent, by_limit = (own.sum(axis=0) for own in _spent(whose, segments))
    spent[Cause.INPUT_STALL] += found.waiting
    by_limit[LIMITS.index(_host_limit(program, found))] += found.waiting
    tops = _tops(program, sum(layer.macs for layer in program.layers) * program.cores, found.cycles)
    return {
        "cycles": found.cycles,
        "seconds": found.cycles / program.target.clock_hz,
        "tops": tops,
        "utilization": tops * 1e12 / peak,
        "computing_cycles": found.computing,
        "link_cycles": found.link,
        "ub_bytes": found.rows * program.target.mxu,
        "fits": found.fits,
        "breakdown": _breakdowns(spent[np.newaxis], work.useful.sum(keepdims=True) / program.target.tile_bytes)[0],
        "waits_by_root": _by_root(by_limit.tolist()),
        "bottleneck": _limit_of_stream(program, found, alone),
    }


def _limit_of_stream(program: Program, found: Stream, alone: str) -> str:
    """What limits a stream. Where nothing computes while the host isn't done, it is the host."""
    if not found.waiting:
        path = critical_path(program, found.timeline)
        return alone if not found.fits else limit_of_path(path).value if path else NOTHING
    return _host_limit(program, found).value


def _host_limit(program: Program, found: Stream) -> Limit:
    """What takes most of the host's time in a stream."""
    return Limit.HOST_WORK if 2 * host_step_cycles(program, found.timeline) > found.link else Limit.HOST_LINK


def _host_bytes(program: Program) -> dict[str, int]:
    touched = effects(program.instructions, program.machine)
    size, ways = link_bytes(program, touched), {"in": touched.host_reads, "out": touched.host_writes}
    return {way: int(size[moving].sum()) * program.cores for way, moving in ways.items()}


def _spent(whose: Attribution, segments: Segments) -> tuple[Float64, Float64]:
    """[layers, causes] and [layers, limits]: cycles of each layer by cause, and by root, whole numbers."""
    count = len(whose.layers)

    def by(reason: npt.NDArray[np.int8], reasons: int) -> Float64:
        place = segments.layer * reasons + reason
        return np.bincount(place, segments.cycles, minlength=count * reasons).astype(np.float64).reshape(count, reasons)

    return by(segments.cause, len(Cause)), by(segments.root, len(LIMITS))


def _layers(program: Program, work: _Work, whose: Attribution, spent: Float64, by_limit: Float64) -> list[dict[str, Any]]:
    """The numbers of each layer, of the cycles of all layers by cause and by root."""
    breakdowns = _breakdowns(spent, work.useful / program.target.tile_bytes)
    columns = (spent.sum(axis=1), work.tiles, work.fetches, work.instructions, by_limit)
    rows = zip(whose.layers, breakdowns, *(column.tolist() for column in columns), strict=True)
    return [
        {
            "name": layer.name,
            "kind": layer.kind,
            "line": layer.origin.line,
            "cycles": int(cycles),
            "macs": layer.macs * program.cores,
            "tiles": tiles,
            "tile_fetches": fetches,
            "instructions": instructions,
            "tops": _tops(program, layer.macs * program.cores, int(cycles)),
            "breakdown": breakdown,
            "waits_by_root": _by_root(limits),
        }
        for layer, breakdown, cycles, tiles, fetches, instructions, limits in rows
    ]


def _breakdowns(by_cause: Float64, useful_cycles: Float64) -> list[dict[str, float]]:
    """Percentages of rows of cycles by cause; all zero where there are no cycles. `useful_cycles` are each row's active cycles times the
    share of cells that hold weights."""
    cycles = np.maximum(1, by_cause.sum(axis=1))
    percent = by_cause * (100 / cycles)[:, np.newaxis]
    active, useful = percent[:, Cause.ACTIVE], useful_cycles * 100 / cycles
    columns = {
        "array_active": active,
        "useful_macs": useful,
        "unused_macs": np.maximum(0.0, active - useful),
        **{TABLE_3[cause]: percent[:, cause] for cause in (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT)},
        "non_matrix": percent[:, Cause.RAW_STALL :].sum(axis=1),
        **{key: percent[:, cause] for cause, key in TABLE_3.items() if cause >= Cause.RAW_STALL},
    }
    return [dict(zip(columns, row, strict=True)) for row in np.stack([*columns.values()], axis=1).tolist()]


_ROOTS = tuple((limit.value, LIMITS.index(limit)) for limit in WAIT_ROWS)


def _by_root(waits: Sequence[float]) -> dict[str, int]:
    """The cycles of each root of waits, from the cycles of each limit."""
    return {limit: int(waits[place]) for limit, place in _ROOTS}


def _tops(program: Program, macs: int, cycles: int) -> float:
    return 2 * macs * program.target.clock_hz / cycles / 1e12 if cycles else 0.0
