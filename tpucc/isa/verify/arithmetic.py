"""Group 9: no sum overflows, and the parameters of the activation unit are numbers that it can compute with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tpucc.diagnostics import printable
from tpucc.isa.effects import Bools
from tpucc.isa.verify.events import READ, WRITE, Events
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import INT32_MAX, Int64, column_bound

LARGEST_WEIGHT = 128
LARGEST_SCALE = np.float32(2.0**110)
"""A difference of two int16 values times it is finite in float32, so that sums of two such products are numbers."""

RULES = (
    Rule("V0901", "no overflow", "No sum of products, with or without the bias, leaves the range of int32, whatever the inputs are."),
    Rule(
        "V0902",
        "scales",
        "Multipliers and scales of a parameter block are finite and not negative. No value times a scale is infinite.",
    ),
    Rule(
        "V0903",
        "clamps",
        "A block's clamp is a range of the program's integers, int8 or int16, its zero points are such integers, and has_table is 0 or 1.",
    ),
    Rule("V0904", "one width", "Every instruction of a program that computes values has the flag wide, and every port is int16, or none."),
)


def blocks(context: Context) -> Iterator[Violation]:
    """The violations of V0902, V0903 and V0904; and those of V0901 by sums that no accumulator holds."""
    yield from _widths(context)
    if context.program.machine.register is None:
        return
    yield from _weighted(context)
    of = context.program.machine.format_of(int(np.bitwise_or.reduce(context.program.instructions["flags"], initial=0)))
    values = context.program.blocks
    scales = np.concatenate([values["multiplier"], values["scale_a"][:, None], values["scale_b"][:, None]], axis=1)
    bounded = (scales[:, -2:] <= LARGEST_SCALE).all(axis=1)
    for index in np.flatnonzero(~((np.isfinite(scales) & (scales >= 0)).all(axis=1) & bounded))[:MAX_REPORTED]:
        message = f"parameter block {index:,} has a multiplier or scale that is negative, not finite, or a scale above 2^110"
        yield Violation("V0902", message, about=("block", str(index)))
    small = [np.clip(values[name], of.low, of.high) == values[name] for name in ("zero", "low", "high", "zero_a", "zero_b")]
    good = np.logical_and.reduce([*small, values["low"] <= values["high"], values["has_table"] <= 1])
    for index in np.flatnonzero(~good)[:MAX_REPORTED]:
        clamp = f"clamps to {values['low'][index]}…{values['high'][index]}"
        message = f"parameter block {index:,} {clamp} or has a zero point past {of.name}"
        yield Violation("V0903", message, about=("block", str(index)))


def _widths(context: Context) -> Iterator[Violation]:
    """A narrow instruction in a wide program would take the low bytes for values."""
    effects = context.effects
    computes = effects.multiplies | effects.any_of(Contents.SUMS, "reads")
    computes |= effects.any_of(Contents.VALUES, "writes") & ~effects.host_reads
    wide = effects.bytes_per_value > 1
    if wide.any():
        yield from context.each("V0904", computes & ~wide, "computes 8-bit values, and others 16-bit values")
    for kind, ports in (("input", context.program.inputs), ("output", context.program.outputs)):
        for port in ports:
            if port.format.bytes_per_value != effects.bytes_per_value.max(initial=1) and computes.any():
                message = f"the port {printable(port.name)} is {port.format.name}, and the instructions compute other values"
                yield Violation("V0904", message, about=(kind, port.name))


def _weighted(context: Context) -> Iterator[Violation]:
    """Weighted sums of windows, whose weights may be any integers."""
    effects, largest = context.effects, context.program.machine.largest_values[context.program.instructions["flags"]]
    over = effects.weighs & (effects.window > (INT32_MAX - _largest_bias(context)[context.resolved.block]) // (largest * largest))
    yield from context.each("V0901", over, lambda i: f"may overflow the sum of {effects.window[i]:,} products and the bias")


def _largest_bias(context: Context) -> Int64:
    """The largest magnitude of a bias in each parameter block; 0 for the block -1."""
    return np.append(np.abs(context.program.blocks["bias"].astype(np.int64)).max(axis=1, initial=0), 0)


def sums(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0901 by sums in a memory."""
    yield from _Sums(context, memory).check(events)


class _Sums:
    """How large the sums in a memory can become.

    Three bounds, each tighter and dearer than the one before: any tile of this size, the tiles' largest columns, and each column for
    itself. The first is enough for sums a few hundred tiles deep, so that most programs never look at their weights here.
    """

    def __init__(self, context: Context, memory: Memory) -> None:
        self._adds, self._row = context.effects.reading(memory), memory.row
        self._context, self._tiles, self._block = context, context.resolved.tile, context.resolved.block
        self._largest = context.program.machine.largest_inputs[context.program.instructions["flags"]]

    def check(self, events: Events) -> Iterator[Violation]:
        mxu = self._context.program.target.mxu
        start = self._starts(events)
        anything = np.append(np.full(self._context.program.tile_count, mxu * LARGEST_WEIGHT), 0)
        if not self._suspects(events, start, anything).any():
            return
        largest = np.append(self._column_sums.max(axis=1, initial=0), 0)
        suspects = np.flatnonzero(self._suspects(events, start, largest))
        yield from self._exact(events, start, suspects)

    def _starts(self, events: Events) -> Int64:
        """For each event the position of the multiply that began its sum."""
        overwrites = (events.kind == WRITE) & ~self._adds[events.instruction]
        before = events.last(overwrites)
        return np.where(overwrites, np.arange(len(events)), np.where(before >= 0, before, events.start))

    def _suspects(self, events: Events, start: Int64, bound: Int64) -> Bools:
        """Events whose sum may overflow when a multiply by tile t adds at most `bound[t]` times its largest input."""
        tile, block = self._tiles[events.instruction], self._block[events.instruction]
        added = np.where(events.kind == WRITE, bound[tile] * self._largest[events.instruction], 0)
        total = np.cumsum(added)
        over: Bools = total - (total - added)[start] + np.where(events.kind == READ, _largest_bias(self._context)[block], 0) > INT32_MAX
        return over

    def _exact(self, events: Events, start: Int64, suspects: Int64) -> Iterator[Violation]:
        """Column by column, each sum once: the longest prefix of a chain stands for all of it."""
        writes = events.kind == WRITE
        last = np.where(writes[suspects], suspects, events.last(writes)[suspects])
        chains: dict[tuple[int, int], Int64] = {}
        reported: set[int] = set()
        final = {int(s): int(e) for s, e in zip(start[suspects], last, strict=True)}
        for position in suspects.tolist():
            begin, instruction = int(start[position]), int(events.instruction[position])
            if instruction in reported or (writes[position] and final[begin] != position):
                continue
            key = (begin, final[begin])
            if key not in chains:
                chains[key] = self._chain(events.instruction[begin : key[1] + 1][writes[begin : key[1] + 1]])
            column = self._overflow(chains[key], int(self._block[instruction]) if not writes[position] else -1)
            if column >= 0:
                reported.add(instruction)
                yield self._context.violation("V0901", instruction, f"may overflow column {column} of {self._row} {events.row[position]:,}")

    def _chain(self, multiplies: Int64) -> Int64:
        """The bound of each column for the sum of these multiplies."""
        keys, counts = np.unique(np.stack([self._tiles[multiplies], self._largest[multiplies]]), axis=1, return_counts=True)
        weights = np.where(keys[0] >= 0, keys[1] * counts, 0)
        bound: Int64 = weights @ self._column_sums[keys[0]]
        return bound

    def _overflow(self, bound: Int64, block: int) -> int:
        """The first column that may overflow, with the block's bias if there is one; -1 when none can."""
        if block >= 0:
            bound = bound + np.abs(self._context.program.blocks["bias"][block].astype(np.int64))
        over = np.flatnonzero(bound > INT32_MAX)
        return int(over[0]) if len(over) else -1

    @cached_property
    def _column_sums(self) -> Int64:
        """[tiles, mxu]: for each column of each tile the sum of its weights' magnitudes; of tiles that are written, the largest."""
        program = self._context.program
        tiles, mxu = program.tiles, program.target.mxu
        known = np.array([column_bound(tile, 1) for tile in tiles], np.int64).reshape(-1, mxu)
        return np.concatenate([known, np.full((program.written_tiles, mxu), mxu * LARGEST_WEIGHT)])
