"""The lanes in use: a vector or pool instruction computes the lanes that depend on inputs, and the other lanes get their constants.

A layer of 32 outputs uses 32 of 256 lanes. The values of the other lanes are constants that follow from the program: requantised products
without weights, zeros in host memory, or results of the vector unit on such values. So they are computed when the program is prepared, by
the same functions, as one row for all. For each row of the memories two things are known: the number of lanes in use, and the constants in
the others. If they aren't known of a row, all its lanes count as in use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from tpucc.isa.program import Program
from tpucc.machine.instruction import ComputeRows, FunctionSpec
from tpucc.machines.v1 import FUNCTIONS, Function, Place
from tpucc.machines.v1.formats import format_of
from tpucc.machines.v1.functions import ParameterBlock
from tpucc.numerics import AnyArray, Float32, Int8, Int64
from tpucc.sim.fast.pool import RegularPool
from tpucc.sim.fast.product import JoinedProduct, Requantisation, Scratch
from tpucc.sim.fast.walks import Grid, RowsOrGrid, as_grid, looker, put, regular, taken
from tpucc.sim.memories import AppliedInstruction, Memories, RowIndex, after, numbered
from tpucc.sim.ports import column_blocks

Compute = Callable[[Sequence[Int8]], AnyArray]
"""A function from the sources to the result, all with the lanes in use. Results are int8 or the same integers in float32."""
PrepareCompute = Callable[[Scratch, tuple[int, ...]], Compute]
"""The function for a result of a shape, in memory that steps share."""


@dataclass(frozen=True, eq=False, slots=True)
class Narrow:
    """An 8-bit vector or pool instruction: the function of `prepare` on the lanes in use, `tail` in all others."""

    sources: tuple[tuple[RowsOrGrid, slice], ...]
    dest: RowsOrGrid
    lanes: slice
    rest: slice
    tail: Int8
    prepare: PrepareCompute

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        """The function that runs the instruction on these memories, on views of rows that lie regularly. All source rows are read before
        any row is written."""
        memory, used, tail = memories["ub"], self.lanes.stop, self.tail
        rows = taken(memory, self.sources[0][0], slice(0))
        compute = self.prepare(scratch, (*rows.shape[:-1], used))
        if not all(isinstance(rows, Grid) for rows in (self.dest, *(rows for rows, _ in self.sources))):
            return partial(self._run_on_rows, memory, compute)
        sources = [taken(memory, rows, lanes) for rows, lanes in self.sources]
        dest, rest = taken(memory, self.dest, self.lanes), taken(memory, self.dest, self.rest)

        def run() -> None:
            if used:
                dest[...] = compute(sources)
            if len(tail):
                rest[...] = tail

        return run

    def _run_on_rows(self, memory: Int8, compute: Compute) -> None:
        """Runs the instruction where some rows don't lie regularly: they are gathered each time."""
        if self.lanes.stop:
            put(memory, self.dest, self.lanes, compute([taken(memory, rows, lanes) for rows, lanes in self.sources]))
        if len(self.tail):
            put(memory, self.dest, self.rest, self.tail)


@dataclass(eq=False)
class RowLanes:
    """For each row of a memory the number of lanes in use, int64 [rows], and the number of the constant row with its other lanes, int64
    [rows]."""

    used: Int64
    kind: Int64

    @classmethod
    def of(cls, rows: int) -> RowLanes:
        return cls(np.zeros(rows, np.int64), np.zeros(rows, np.int64))

    def set(self, rows: RowIndex, used: int, kind: int) -> None:
        self.used[rows], self.kind[rows] = used, kind


@dataclass(eq=False)
class Lanes:
    """The lanes in use after the steps of the program so far. Each method adds a step."""

    program: Program
    rows: list[Int8] = field(default_factory=list)
    """The constant rows; lanes that some row uses are zero."""

    def __post_init__(self) -> None:
        program, self._numbers = self.program, dict[bytes, int]()
        self.mxu = program.target.mxu
        self._kind(np.zeros(self.mxu, np.int8))
        self.ub, self.host = RowLanes.of(program.target.unified_buffer_rows), RowLanes.of(program.host_rows)
        first = 0
        for buffer in program.host:
            if buffer.kind == "constant":
                for row in range(buffer.rows):
                    self.host.set(slice(buffer.start + row, buffer.start + row + 1), 0, self._kind(program.constants[first + row]))
                first += buffer.rows
            elif buffer.kind != "input":  # what an earlier run has left
                self.host.set(slice(buffer.start, buffer.end), self.mxu, 0)

    def filled(self, ports: Iterable[Any]) -> None:
        """Adds that the host fills these ports: lanes past the last column stay as they were."""
        for port in ports:
            for _, columns, rows in column_blocks(port, self.program.host, self.mxu):
                self.host.used[rows] = np.maximum(self.host.used[rows], columns.stop - columns.start)

    def multiplied(self, products: Iterable[JoinedProduct]) -> None:
        """Adds products, which write their results."""
        for product in products:
            for output in product.outputs:
                if (done := output.activation) is not None:
                    used = output.columns.stop - output.columns.start
                    if done.to.bytes_per_value == 1:
                        self.ub.set(done.dest, used, self._kind(np.concatenate([np.zeros(used, np.int8), done.tail])))
                    else:
                        self._unknown(done.dest, done.to.bytes_per_value)

    def narrowed(self, action: AppliedInstruction) -> Narrow | RegularPool | None:
        """Adds an action. Returns the action on the lanes in use, where the vector unit computes it in 8 bits; None for any other
        action."""
        place, dest = action.writes
        if place is not Place.DEST:
            if place is Place.HOST:
                self._copied(self.ub, action.reads[0][1], self.host, dest)
            return None
        if action.reads[0][0] is Place.HOST:
            self._copied(self.host, action.reads[0][1], self.ub, dest)
            return None
        format = format_of(action.flags)
        compute = compute_of(action) if format.bytes_per_value == 1 else None
        if compute is None:
            self._unknown(dest, format.bytes_per_value)
            return None
        return self._narrow(compute, action, dest)

    def _narrow(self, compute: PrepareCompute, action: AppliedInstruction, dest: RowIndex) -> Narrow | RegularPool:
        used, kinds = 0, list[Int64]()
        for place, rows in action.reads:
            own = int(self.ub.used[rows].max())
            splat = bool(action.flags & action.machine.rows_at(place).splat)
            used = max(used, self.mxu if splat and own else own)
            kinds.append(self.ub.kind[rows])
        kernel = next((self._stacked(kind) for (place, _), kind in zip(action.reads, kinds, strict=True) if place is Place.KERNEL), None)
        for (place, _), kind in zip(action.reads, kinds, strict=True):
            if place is not Place.KERNEL and (kind != kind.flat[0]).any():
                constants = self._stacked(np.unique(kind))
                unlike = (constants != constants[0]).any(axis=0)
                counts = unlike if kernel is None else unlike & kernel.any(axis=0)
                used = max(used, int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0)
        tail = self._tail(action, kinds)[used:] if used < self.mxu else np.zeros(0, np.int8)
        self.ub.set(dest, used, self._kind(np.concatenate([np.zeros(used, np.int8), tail])))
        lanes = slice(0, used)
        read = [slice(0, 1) if action.flags & action.machine.rows_at(place).splat else lanes for place, _ in action.reads]
        if kernel is not None and used and (pool := RegularPool.of(action, used, tail)) is not None:
            return pool
        to, *places = _alike(dest, [rows for _, rows in action.reads])
        return Narrow(tuple(zip(places, read, strict=True)), to, lanes, slice(used, None), tail, compute)

    def _tail(self, action: AppliedInstruction, kinds: Sequence[Int64]) -> Int8:
        """The result of the action on rows of constants: one row. The rows of a source are alike, but for weights."""
        values: dict[str, Any] = {}
        for (place, rows), kind in zip(action.reads, kinds, strict=True):
            if place is Place.KERNEL:
                values[action.machine.rows_at(place).operand] = self._stacked(kind)
                continue
            row = self.rows[kind.flat[0]][None, : 1 if action.flags & action.machine.rows_at(place).splat else None]
            values[action.machine.rows_at(place).operand] = np.repeat(row[:, None], rows.shape[1], axis=1) if _are_windows(rows) else row
        result: Int8 = action.compute(action.machine.operands(action.flags, **values, **action.constants))
        whole = np.zeros(self.mxu, np.int8)
        whole[:] = result[0]
        return whole

    def _stacked(self, kinds: Int64) -> Int8:
        """The constant rows of these numbers [rows, mxu]."""
        return np.stack([self.rows[each] for each in kinds.tolist()])

    def _copied(self, source: RowLanes, rows: RowIndex, target: RowLanes, dest: RowIndex) -> None:
        target.used[dest], target.kind[dest] = source.used[rows], source.kind[rows]

    def _unknown(self, rows: RowIndex, bytes_per_value: int) -> None:
        for _ in range(bytes_per_value):
            self.ub.set(rows, self.mxu, 0)
            rows = after(rows)

    def _kind(self, row: Int8) -> int:
        """The number of a constant row, whose lanes in use are zero."""
        number = self._numbers.setdefault(row.tobytes(), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


_ROW_OF: dict[ComputeRows, FunctionSpec] = {row.compute: row for row in FUNCTIONS.values()}


def _are_windows(rows: RowsOrGrid) -> TypeGuard[Int64]:
    """Whether rows are windows [rows of the result, rows of a window]."""
    return isinstance(rows, np.ndarray) and rows.ndim == 2


def _alike(dest: RowIndex, sources: Sequence[RowIndex]) -> Sequence[RowsOrGrid]:
    """The rows of the result and of its sources as grids of one shape, where all are; else as they are."""
    places = [regular(dest), *sources]
    if isinstance(places[0], np.ndarray) or any(_are_windows(rows) for rows in sources):
        return places
    shaped = (each for each in map(regular, (dest, *sources)) if isinstance(each, Grid))
    outer, inner = next(((grid.outer, grid.inner) for grid in shaped), (1, numbered(dest).size))
    grids = [grid for rows in (dest, *sources) if (grid := as_grid(rows, outer, inner)) is not None]
    return grids if len(grids) == len(places) else places


def compute_of(action: AppliedInstruction) -> PrepareCompute | None:
    """The action's function on 8-bit values, whose parameters are read from the block once; None for an action without such a function."""
    operands, constants = [action.machine.rows_at(place).operand for place, _ in action.reads], action.constants

    def computed(sources: Sequence[Int8]) -> Int8:
        found: Int8 = action.compute(action.machine.operands(action.flags, **dict(zip(operands, sources, strict=True)), **constants))
        return found

    row = _ROW_OF.get(action.compute)
    if row is None:
        return None
    if row.function is Function.COPY:
        return lambda scratch, shape: lambda sources: sources[0]
    if row.function is Function.TABLE:
        look_up = looker(constants["block"])
        return lambda scratch, shape: lambda sources: look_up(sources[0])
    if not row.reads & Place.UB2:
        return lambda scratch, shape: computed
    if (combine := _PAIRS.get(Function(row.function))) is not None and not constants["block"]["has_table"]:
        return partial(_in_place, combine, constants["block"])
    byte = np.arange(256, dtype=np.uint8).view(np.int8)
    return partial(_by_table, computed((byte[:, None], byte)).reshape(-1))


def _by_table(table: Int8, scratch: Scratch, shape: tuple[int, ...]) -> Compute:
    """A function of two operands by the table of its results [65536]: on small operands faster than in place and by its own table."""
    entries, high, low = scratch.entries(shape)

    def compute(sources: Sequence[Int8]) -> Int8:
        high[...], low[...] = sources
        found: Int8 = table.take(entries, mode="wrap")  # no number is outside: "wrap" saves the check
        return found

    return compute


_PAIRS = {Function.ADD: np.add, Function.SUBTRACT: np.subtract, Function.MULTIPLY: np.multiply}
"""Of the functions that are computed in place; any other one is looked up."""


def _in_place(combine: np.ufunc, block: ParameterBlock, scratch: Scratch, shape: tuple[int, ...]) -> Compute:
    """A function of two operands, step by step as its row in `FUNCTIONS` has it, in float32 and in place."""
    first: Float32
    first, second = (operand.reshape(shape) for operand in scratch.inputs(2, math.prod(shape)))
    zero_a, zero_b, scale_a, scale_b = (np.asarray(block[name], np.float32) for name in ("zero_a", "zero_b", "scale_a", "scale_b"))
    requantisation = Requantisation.of(scale_a, block["zero"], block["low"], block["high"])

    def compute(sources: Sequence[Int8]) -> Float32:
        first[...], second[...] = sources
        np.subtract(first, zero_a, out=first)
        np.subtract(second, zero_b, out=second)
        if combine is np.multiply:
            np.multiply(first, second, out=first)
            requantisation.apply(first)
        else:
            np.multiply(first, scale_a, out=first)
            np.multiply(second, scale_b, out=second)
            combine(first, second, out=first)
            requantisation.round(first)
        return first

    return compute
