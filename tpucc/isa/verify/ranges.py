"""Group 3: every range lies inside its memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.effects import Bools, Walks
from tpucc.isa.program import stretch_ends
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.numerics import AnyArray, Int64

RULES = (
    Rule("V0301", "unified-buffer rows", "Every row of every walk lies in the unified buffer."),
    Rule("V0302", "accumulator rows", "Every accumulator row lies in the accumulators."),
    Rule("V0303", "host rows", "A transfer stays inside one host buffer, or host buffers of one kind that follow each other."),
    Rule("V0304", "tiles", "read_weights names a tile of the program."),
    Rule("V0305", "parameter blocks", "set_configuration names a parameter block of the program."),
    Rule("V0306", "counts", "Counts of rows and of windows are at least 1."),
    Rule("V0307", "repeated rows", "An instruction writes no row twice, and a pooling window holds no row twice."),
)


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 3; when there are none, every address is good and no walk is longer than its memory."""
    yield from _counts(context)
    yield from _rows(context)
    yield from _host(context)
    yield from _indices(context)
    yield from _repeated(context)


def _counts(context: Context) -> Iterator[Violation]:
    effects = context.effects
    none = effects.moves & ((effects.rows == 0) | (effects.window == 0))
    yield from context.each("V0306", np.flatnonzero(none), lambda i: "has a count of 0")


def _rows(context: Context) -> Iterator[Violation]:
    effects, target = context.effects, context.program.target
    rows = target.unified_buffer_rows
    for walks, does in ((effects.source, "reads"), (effects.source2, "reads"), (effects.target, "writes")):
        outside = np.flatnonzero(walks.high > rows)
        yield from context.each(
            "V0301",
            outside,
            lambda i, walks=walks, does=does: f"{does} up to row {walks.high[i] - 1:,}; the unified buffer has {rows:,} rows",  # type: ignore[misc]
        )
    outside = np.flatnonzero(effects.acc_end > target.accumulator_rows)
    size = target.accumulator_rows
    yield from context.each("V0302", outside, lambda i: f"uses accumulators up to row {effects.acc_end[i] - 1:,} of {size:,}")


def _host(context: Context) -> Iterator[Violation]:
    effects = context.effects
    start, end = effects.host_start, effects.host_end
    outside = np.flatnonzero(end > np.maximum(start, stretch_ends(context.program.host, start)))
    message = "moves the host's rows {:,} to {:,}, which are not all in host buffers of one kind"
    yield from context.each("V0303", outside, lambda i: message.format(start[i], end[i] - 1))


def buffer_of(context: Context, rows: Int64) -> Int64:
    """For each host row the position of its buffer in the order of their starts, -1 when it lies before all of them."""
    starts = np.array(sorted(buffer.start for buffer in context.program.host), np.int64)
    return np.searchsorted(starts, rows, side="right") - 1


def _indices(context: Context) -> Iterator[Violation]:
    index, effects, program = context.program.instructions["index"], context.effects, context.program
    tiles, blocks = len(program.tiles), len(program.blocks)
    yield from context.each(
        "V0304", np.flatnonzero(effects.pushes & (index >= tiles)), lambda i: f"asks for tile {index[i]:,} of {tiles:,}"
    )
    yield from context.each(
        "V0305", np.flatnonzero(effects.configures & (index >= blocks)), lambda i: f"chooses block {index[i]:,} of {blocks:,}"
    )


def _repeated(context: Context) -> Iterator[Violation]:
    records, effects = context.program.instructions, context.effects
    outer, inner = records["outer"], records["inner"]
    walked = effects.target.used & effects.walked
    for index in np.flatnonzero(
        walked & ~_distinct(outer, inner, records["dest_pitch"], records["dest_stride"], effects.bytes_per_value)
    ).tolist():
        if not _visits_all(
            effects.target, index, int(effects.rows[index] * effects.bytes_per_value[index]), context.program.target.unified_buffer_rows
        ):
            yield context.violation("V0307", index, "writes a row twice")
    window = _distinct(
        records["window_outer"], records["window_inner"], records["ub2_pitch"], records["ub2_stride"], effects.bytes_per_value
    )
    yield from context.each(
        "V0307", np.flatnonzero((effects.window > 1) & ~window), lambda i: "has a window whose rows are not in ascending order"
    )


def _distinct(outer: AnyArray, inner: AnyArray, pitch: AnyArray, stride: AnyArray, width: AnyArray) -> Bools:
    """Whether a walk visits each row once, one way or the other: outer steps beyond the inner ones, or inner beyond outer."""
    o, i, p, s, w = (column.astype(np.float64) for column in (outer, inner, pitch, stride, width))
    along, across = np.maximum(i - 1, 0) * s, np.maximum(o - 1, 0) * p
    good: Bools = ((i <= 1) | (s >= w)) & ((o <= 1) | (p >= w)) & ((o <= 1) | (i <= 1) | (p >= along + w) | (s >= across + w))
    return good


def _visits_all(walks: Walks, index: int, rows: int, size: int) -> bool:
    """Whether a walk inside a memory of `size` rows visits as many rows as it has steps."""
    if walks.high[index] > size:
        return True
    return rows <= int(walks.high[index] - walks.low[index]) and len(walks.rows(index)) == rows
