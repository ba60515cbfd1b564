"""The lanes in use: a vector or pool instruction computes the lanes that depend on inputs, and the other lanes get their constants.

A layer of 32 outputs uses 32 of 256 lanes. The values of the other lanes are constants that follow from the program: requantised products
without weights, zeros in host memory, or results of the vector unit on such values. So they are computed when the program is prepared, by
the same functions, as one row for all. For each row of the memories two things are known: the number of lanes in use, and the constants in
the others. If they aren't known of a row, all its lanes count as in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from tpucc.isa.program import Program
from tpucc.machine.instruction import ComputeRows, FunctionSpec
from tpucc.machines.v1 import FUNCTIONS, Function, Place
from tpucc.machines.v1.formats import format_of
from tpucc.numerics import Int8, Int64
from tpucc.sim.fast.product import JoinedProduct, Scratch
from tpucc.sim.fast.walks import Grid, RowsOrGrid, looker, put, regular, taken
from tpucc.sim.memories import AppliedInstruction, Memories, RowIndex, after
from tpucc.sim.ports import column_blocks

Compute = Callable[[Sequence[Int8]], Int8]
"""A function from the sources to the result, all with the lanes in use."""


@dataclass(frozen=True, eq=False, slots=True)
class Narrow:
    """An 8-bit vector or pool instruction: `compute` on the lanes in use, `tail` in all others."""

    sources: tuple[tuple[RowsOrGrid, slice], ...]
    dest: RowsOrGrid
    lanes: slice
    rest: slice
    tail: Int8
    compute: Compute

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        """The function that runs the instruction on these memories, on views of rows that lie regularly. All source rows are read before
        any row is written."""
        memory = memories["ub"]
        if any(isinstance(rows, np.ndarray) for rows in (self.dest, *(rows for rows, _ in self.sources))):
            return partial(self._run_on_rows, memory)
        sources = [taken(memory, rows, lanes) for rows, lanes in self.sources]
        dest, rest = taken(memory, self.dest, self.lanes), taken(memory, self.dest, self.rest)
        tail, compute = self.tail, self.compute
        used, leading = dest.shape[-1], dest.shape[:-1]

        def run() -> None:
            if used:
                result = compute(sources)
                dest[...] = result.reshape(*leading, result.shape[-1])
            if len(tail):
                rest[...] = tail

        return run

    def _run_on_rows(self, memory: Int8) -> None:
        """Runs the instruction where some rows don't lie regularly: they are gathered each time."""
        if self.lanes.stop:
            put(memory, self.dest, self.lanes, self.compute([taken(memory, rows, lanes) for rows, lanes in self.sources]))
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

    def narrowed(self, action: AppliedInstruction) -> Narrow | None:
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

    def _narrow(self, compute: Compute, action: AppliedInstruction, dest: RowIndex) -> Narrow:
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
        sources = tuple(zip(_alike([rows for _, rows in action.reads]), read, strict=True))
        return Narrow(sources, regular(dest), lanes, slice(used, None), tail, compute)

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


def _alike(sources: Sequence[RowIndex]) -> Sequence[RowsOrGrid]:
    """The sources as grids, where all are grids of one shape; else the sources themselves."""
    grids = [rows if _are_windows(rows) else regular(rows) for rows in sources]
    same = {(grid.outer, grid.inner) if isinstance(grid, Grid) else None for grid in grids}
    return grids if len(same) == 1 and None not in same else sources


def compute_of(action: AppliedInstruction) -> Compute | None:
    """The action's function on 8-bit values, whose parameters are read from the block once; None for an action without such a function."""
    operands, constants = [action.machine.rows_at(place).operand for place, _ in action.reads], action.constants

    def computed(sources: Sequence[Int8]) -> Int8:
        found: Int8 = action.compute(action.machine.operands(action.flags, **dict(zip(operands, sources, strict=True)), **constants))
        return found

    row = _ROW_OF.get(action.compute)
    if row is None:
        return None
    if row.function is Function.COPY:
        return lambda sources: sources[0]
    if row.function is Function.TABLE:
        look_up = looker(constants["block"])
        return lambda sources: look_up(sources[0])
    return _by_table(computed) if row.reads & Place.UB2 else computed


def _by_table(computed: Compute) -> Compute:
    """A function of two operands, as a table of its 65,536 results: looking up takes a third of the time that computing takes on small
    operands, and less on large ones too."""
    byte = np.arange(256, dtype=np.uint8).view(np.int8)
    table = computed((byte[:, None], byte)).reshape(-1)

    def compute(sources: Sequence[Int8]) -> Int8:
        a, b = sources
        entries = np.zeros((*a.shape[:-1], max(a.shape[-1], b.shape[-1])), "<i8")  # `take` would convert indices of another type
        digits = entries.view(np.int8).reshape(*entries.shape, 8)
        digits[..., 1], digits[..., 0] = a, b
        found: Int8 = table.take(entries, mode="wrap")  # no number is outside: "wrap" saves the check
        return found

    return compute
