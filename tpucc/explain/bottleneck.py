"""The bottleneck of a program, in a word and a sentence: the limit with the largest part of the critical path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain import levers
from tpucc.explain.critical import NOTHING, CriticalPath, Limit, shares
from tpucc.explain.levers import Lever, Work, tile_rows
from tpucc.explain.quantities import rate_text
from tpucc.explain.retiming import SPEEDS, Retimed, faster, retimed
from tpucc.isa.effects import effects
from tpucc.isa.link import link_bytes
from tpucc.isa.program import LayerInfo, Port, Program
from tpucc.prose import percent
from tpucc.sim.durations import Edges, duration, edge_seconds
from tpucc.sim.timing import instruction_cycles
from tpucc.target import Target, number_text

NEARLY = 0.8
"""The part of the largest share of the critical path from which on the second one is told beside it."""
HIDDEN = 0.25
"""A setting gains little when it takes less than this part of its limit's share away: other work is on paths that are nearly as long."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The bottleneck of a program, and a setting that would help."""

    name: str
    """One of `BOTTLENECKS`."""
    explanation: str
    """Its share of the critical path, and why."""
    share: float
    """Percent of the critical path."""
    lever: Lever | None
    """A setting with which an item of the batch takes fewer cycles; None where nothing runs on the device."""
    advice: str = ""
    """The lever in words, and what limits after it."""


def bottleneck(program: Program, path: CriticalPath, edges: Edges = (0, 0), *, each: float | None = None) -> Bottleneck:
    """Of a program whose critical path is known. `edges` is the measure of the host's work before and after it, and `each` the seconds of a
    batch in a stream; None where the unified buffer has no room for two."""
    if not path:
        return Bottleneck(NOTHING, "nothing runs on the device: every operator of the model is the host's", 0.0, None)
    found = shares(path)
    limit = limit_of_path(path)
    work = Work(program, effects(program.instructions, program.machine), path, tile_rows(program, path))
    row = _ROWS[limit]
    lever = row.lever(work)
    gain = _gain(work, lever, found[limit], edges) if lever.option == "set" and lever.field in SPEEDS else ""
    advice = f"{lever.words}{gain}{_then(work, lever, limit, edges, each, is_timed=bool(gain)) if each else ''}"
    words = f"{row.sentence(work, f'{found[limit]:.1f} % of the critical path')}{_nearly(found, limit)}; {advice}"
    return Bottleneck(limit.value, words, found[limit], lever, advice)


def limit_of_path(path: CriticalPath) -> Limit:
    """The limit with the largest share of a critical path that isn't empty."""
    found = shares(path)
    return max(found, key=lambda name: found[name])


def _gain(work: Work, lever: Lever, share: float, edges: Edges) -> str:
    """What a faster part of the machine gains, by the same program timed again; and of another part, where that gains twice as much."""
    program, target = work.program, work.program.target
    device = int(work.path.cycles.sum()) / target.clock_hz
    seconds = device + sum(edge_seconds(program, edges))
    own = retimed(program, edges, lever.field, lever.value / getattr(target, lever.field))
    words = f": the same program takes {_less(own, seconds)} from end to end, and then {_limits(own)}"
    if seconds - own.seconds >= HIDDEN * share / 100 * device:
        return words
    best = next(iter(faster(program, edges, min(seconds, own.seconds))), own)
    if seconds - best.seconds < 2 * (seconds - own.seconds) or best is own:
        return words
    return f"{words}; --set {best.field}={number_text(float(f'{best.value:.3g}'))} takes {_less(best, seconds)}"


def _less(found: Retimed, seconds: float) -> str:
    return f"{percent(seconds - found.seconds, seconds)} less" if found.seconds < seconds else "as long"


def _limits(found: Retimed) -> str:
    """What limits then, as a clause."""
    limit = Limit(found.bottleneck)
    return f"{_ROWS[limit].busy} limits" if _ROWS[limit].busy else f"{limit.value} limit"


def _nearly(found: Mapping[Limit, float], limit: Limit) -> str:
    """The limit with the second largest share, where that is nearly as large."""
    others = {name: share for name, share in found.items() if name is not limit}
    second = max(others, key=lambda name: others[name], default=limit)
    return (
        f"; nearly as much: {second.value} {found[second]:.1f} %" if second is not limit and found[second] > NEARLY * found[limit] else ""
    )


def _then(work: Work, lever: Lever, limit: Limit, edges: Edges, each: float, *, is_timed: bool) -> str:
    """The next bottleneck with the lever's setting: `; then, in a stream, the host link limits, at 11 TOPS at most (now 3.1 TOPS)`. An
    estimate of units that overlap in full, the host's work included: the busiest one limits. What a batch takes now, `each`, is measured.
    Where the busiest unit is the busiest without the lever, a stream gains nothing by it. Where it is the lever's own, the rate of a larger
    batch is said, and of another lever nothing. Of a program that was timed nothing else is said."""
    (before, _), (after, items) = (levers.busy_after(work, setting, edges) for setting in (None, lever))
    most = max(after, key=lambda name: after[name])
    operations = 2 * sum(layer.macs for layer in work.program.layers) * work.program.cores
    if not operations or (most is limit and lever.option != "batch"):
        return ""
    if most is not limit and most is max(before, key=lambda name: before[name]) and before[most] * items <= after[most]:
        return f"; in a stream {_ROWS[most].busy} limits already"
    if is_timed:
        return ""
    then, now = rate_text(operations * items * work.program.target.clock_hz / after[most]), rate_text(operations / each)
    limits = f"{_ROWS[most].busy} limits, at {then} at most" if most is not limit else f"at most {then}"
    return f"; then, in a stream, {limits} (now {now})"


def _weight_memory(work: Work, share: str) -> str:
    return f"weight tiles are fetched in {share}, each in {work.program.target.tile_fetch_cycles:,} cycles, and {work.tiles.words}"


def _weight_shift(work: Work, share: str) -> str:
    return f"weight tiles are shifted in during {share}, each in {work.program.target.tile_shift_cycles:,} cycles, and {work.tiles.words}"


def _matrix_unit(work: Work, share: str) -> str:
    macs, touched = sum(layer.macs for layer in work.program.layers if not layer.is_by_lanes), work.touched
    cells = int(touched.rows[touched.multiplies].sum()) * work.program.target.tile_bytes
    return f"the matrix unit multiplies in {share}, with {percent(macs, cells)} of its cells in use"


def _activation(work: Work, share: str) -> str:
    return f"the activation unit works in {share}{_busy(work)}{_rate(work)}"


def _busy(work: Work) -> str:
    """What keeps the activation unit busy on the path: the layers that take most of its cycles there."""
    cycles = Counter[str]()
    own = work.path.of_limits(Limit.ACTIVATION)
    spent = np.bincount(work.program.layer_of[work.path.instruction[own]].astype(np.int64), work.path.cycles[own])
    for layer, taken in zip(work.program.layers, spent.tolist(), strict=False):
        cycles[_work_of(layer)] += int(taken)
    if not cycles.total():
        return ""
    (most, taken), *_ = cycles.most_common(1)
    return f", {percent(taken, cycles.total())} of that for {most}"


def _work_of(layer: LayerInfo) -> str:
    """What the activation unit does for a layer."""
    if layer.multiplies:
        return "the sums of products"
    return "depthwise convolutions" if layer.is_by_lanes else _WORKS.get(layer.kind, "other layers")


def _rate(work: Work) -> str:
    """The cycles that a row takes on the path: one, or one for each value of a window; twice as many where values have 16 bits."""
    parts = work.path.instruction[work.path.of_limits(Limit.ACTIVATION)]
    rows, cycles = work.touched.rows[parts], instruction_cycles(work.program, work.touched)[parts]
    rows, cycles = rows[rows > 0], cycles[rows > 0]
    if not len(rows):
        return ""
    rates = np.unique(cycles // rows)
    if len(rates) > 1:
        return f", at {rates[0]:,} to {rates[-1]:,} cycles a row, {cycles.sum() / rows.sum():,.1f} on average"
    return ", at one row a cycle" if rates[0] == 1 else f", at {rates[0]:,} cycles a row"


def _host_work(work: Work, share: str) -> str:
    program = work.program
    steps, each = counted(len(program.host_steps), "step"), duration(program.target.host_step_seconds)
    turns = f", for {program.cores:,} cores in turn," if program.cores > 1 else ""
    return f"the host computes {steps}{turns} in {share}, each in at least {each}"


def _host_link(work: Work, share: str) -> str:
    program = work.program
    link, latency = f"{program.target.host_bandwidth / 1e9:.3g} GB/s", program.target.host_latency_seconds
    link += f" for all {program.cores:,} cores" if program.cores > 1 else ""
    each = f", and {duration(latency)} besides for each transfer" if latency else ""
    return f"rows cross between the host and the unified buffer in {share}, at {link}{each}{_padding(work)}"


def _padding(work: Work) -> str:
    """What is data in the input rows and in the output rows, where that is less than half and rows cost more than beginning transfers."""
    program, touched = work.program, work.touched
    target = program.target
    moving = touched.host_reads | touched.host_writes
    crossing = int(link_bytes(program, touched).sum()) * program.cores / target.host_bandwidth
    if int(moving.sum()) * target.host_latency_seconds > crossing:
        return ""
    return "".join(_padding_of(kind, ports, target) for kind, ports in (("input row", program.inputs), ("output row", program.outputs)))


def _padding_of(kind: str, ports: Sequence[Port], target: Target) -> str:
    used = [row for port in ports for row in _rows_of(port, target)]
    if not used or 2 * sum(rows * size for rows, size, _ in used) > sum(rows * width for rows, _, width in used):
        return ""
    least, most = min(size for _, size, _ in used), max(size for _, size, _ in used)
    width = f"{max(width for _, _, width in used):,} that cross"
    if least == most:
        return f"; each {kind} has {counted(least, 'byte')} of data in {width}"
    return f"; {kind}s have {least:,} to {counted(most, 'byte')} of data in {width}"


def _rows_of(port: Port, target: Target) -> Iterator[tuple[int, int, int]]:
    """For each column block of a port its rows, the bytes of data in each, and the bytes that cross the link."""
    columns, rows = port.shape[-1] if port.shape else 1, sum(port.splits) * port.format.bytes_per_value
    for block, width in enumerate(target.link_widths(columns)):
        yield rows, min(target.mxu, columns - block * target.mxu), width


def _data_dependencies(work: Work, share: str) -> str:
    pipeline = work.program.target.pipeline_cycles
    return f"sums are on their way in {share}: the array fills and drains for {pipeline:,} cycles before others can use them"


_WORKS: Mapping[str, str] = MappingProxyType({"pool": "pooling", "vector": "element-wise layers", "move": "copies of rows"})
"""What it does for layers without weights, by their kinds."""


class _Row(NamedTuple):
    """What is known of a limit: what happens in its parts of the critical path, a sentence about them, what is busy, and what helps."""

    happens: str
    sentence: Callable[[Work, str], str]
    lever: Callable[[Work], Lever]
    busy: str = ""


_ROWS: Mapping[Limit, _Row] = MappingProxyType(
    {
        Limit.WEIGHT_MEMORY: _Row("tiles are fetched from weight memory", _weight_memory, levers.weight_memory, "weight memory"),
        Limit.WEIGHT_SHIFT: _Row("tiles that have arrived are shifted into the matrix unit", _weight_shift, levers.weight_shift),
        Limit.MATRIX_UNIT: _Row("the matrix unit multiplies", _matrix_unit, levers.shared, "the matrix unit"),
        Limit.ACTIVATION: _Row("the activation unit works", _activation, levers.shared, "the activation unit"),
        Limit.HOST_WORK: _Row("the host computes a step between two parts of the program", _host_work, levers.host_work, "the host's work"),
        Limit.HOST_LINK: _Row("rows cross between host and unified buffer", _host_link, levers.host_link, "the host link"),
        Limit.DEPENDENCIES: _Row(
            "results are on their way: the array fills and drains before others can use its sums",
            _data_dependencies,
            levers.data_dependencies,
        ),
    }
)
BOTTLENECKS: Mapping[str, str] = MappingProxyType(
    {**{limit.value: row.happens for limit, row in _ROWS.items()}, NOTHING: "the program takes no time: nothing runs on the device"}
)
"""The possible bottlenecks, with what happens in their parts of the critical path."""
