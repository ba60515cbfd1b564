"""Instructions whose rows are still rows of buffers, collected in program order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.machines.v2.functions import EXPRESSIONS
from tpucc.machines.v2.instructions import SPECS, Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag
from tpucc.machines.v3.machine import SECOND
from tpucc.numerics import Int64

ROW_FIELDS = tuple(dict.fromkeys(rows.field for rows in V2.rows if rows.memory == V2.values.name))
"""The fields with first rows of vector memory."""


NO_FLAGS = Flag(0)
PUSHES: tuple[IntEnum, ...] = (Opcode.PUSH_WEIGHTS, SECOND[Opcode.PUSH_WEIGHTS])
"""The push of each matrix unit."""
MULTIPLIES: tuple[IntEnum, ...] = (Opcode.MATRIX_MULTIPLY, SECOND[Opcode.MATRIX_MULTIPLY])
"""The multiply of each matrix unit."""
WHOLE = frozenset({*PUSHES, Opcode.TRANSPOSE})
"""Instructions of a block of rows."""
Expression = Callable[[int, int], int]
"""Gives the number of an expression whose first row has this number."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Rows of vector memory that belong together. `home` is the first row of HBM that holds the same values when the step begins, -1
    without one."""

    name: str
    rows: int
    layer: int
    home: int = -1


@dataclass(frozen=True, slots=True)
class Rows:
    """A place: the number of a buffer, and a row in it."""

    buffer: int
    row: int = 0

    def after(self, rows: int) -> Rows:
        return Rows(self.buffer, self.row + rows)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where a value lies: the first row of its first column block, and its numbers of rows and columns."""

    at: Rows
    rows: int
    columns: int

    @property
    def size(self) -> tuple[int, int]:
        return self.rows, self.columns


@dataclass(frozen=True, slots=True)
class Access:
    """Rows that a source of an expression has: for the outer and the inner steps of the walk the rows from one to the next. With `splat`,
    lane 0 stands for all."""

    rows: Rows
    pitch: int
    stride: int
    splat: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction. `places` are the rows of its fields, by their names; `fields` has the others. `y` is the field whose rows are
    written. `table` is where its table lies, in a buffer that is in HBM."""

    opcode: IntEnum
    flags: Flag
    fields: dict[str, int]
    places: dict[str, Rows]
    y: str
    layer: int
    table: Rows | None = None

    @property
    def buffers(self) -> tuple[int, ...]:
        """The buffers in vector memory."""
        return tuple(dict.fromkeys(rows.buffer for rows in self.places.values()))

    @property
    def touched(self) -> tuple[int, ...]:
        """All buffers, wherever they lie."""
        return self.buffers if self.table is None else (*self.buffers, self.table.buffer)

    def walk(self, name: str) -> tuple[int, int, int, int]:
        """The rows that a field's place is the first of: outer steps and their pitch, inner ones and their stride."""
        fields = self.fields
        if self.opcode is Opcode.TRANSPOSE and name == "ub":
            return 1, 0, fields["window_inner"], 1
        outer, inner = fields["outer"], fields["inner"]
        return outer, fields.get(f"{name}_pitch", inner), inner, fields.get(f"{name}_stride", 1)

    def span(self, name: str) -> int:
        """The number of rows from the first one of a place to its last."""
        outer, pitch, inner, stride = self.walk(name)
        return (outer - 1) * pitch + (inner - 1) * stride + 1

    def rows(self, name: str) -> Int64:
        """The rows of a field's place in its buffer, for each outer step those of its inner ones: int64 [outer, inner]."""
        outer, pitch, inner, stride = self.walk(name)
        return self.places[name].row + pitch * np.arange(outer)[:, None] + stride * np.arange(inner)

    @property
    def sources(self) -> tuple[str, ...]:
        """The fields whose rows are read alone."""
        return tuple(name for name in self.places if name != self.y)

    @property
    def works_in_place(self) -> bool:
        """Whether it reads the buffer that it writes."""
        return bool(self.y) and any(self.places[name].buffer == self.places[self.y].buffer for name in self.sources)

    @property
    def keeps(self) -> bool:
        """Whether something of the rows that it writes stays: lanes, or the sum to which it adds."""
        lanes = self.opcode is Opcode.MOVE_LANES and Flag.CLEAR not in self.flags
        return lanes or Flag.ACCUMULATE in self.flags

    @property
    def leaves_rows(self) -> bool:
        """Whether something between the rows that it writes stays or is read, too."""
        return bool(self.y) and (self.keeps or self.works_in_place or self.walk(self.y)[3] != 1)

    def within(self, outer: range, inner: range, expression: Expression) -> Instruction:
        """The same for some outer and inner steps alone."""
        fields, places = self.fields | {"outer": len(outer), "inner": len(inner)}, {}
        before = outer.start * self.fields["inner"] + inner.start
        for name, place in self.places.items():
            _, pitch, _, stride = self.walk(name)
            places[name] = place.after(outer.start * pitch + inner.start * stride)
            if len(outer) == 1 and f"{name}_pitch" in fields:
                fields[f"{name}_pitch"] = 0
        if self.opcode is Opcode.VECTOR:
            fields["index"] = expression(fields["index"], before)
        if "host" in fields:
            fields["host"] += before
        return replace(self, fields=fields, places=places)

    def needed(self, rows: Bools, expression: Expression) -> Iterator[Instruction]:
        """Instructions that compute the same for those rows of the buffer that are needed, and maybe for others. Blocks stay whole.
        The first one takes the tile into use."""
        steps = rows[self.rows(self.y)]
        if self.opcode in WHOLE or steps.all():
            yield from (self,) if steps.any() else ()
            return
        flags = self.flags
        for outer, inner in _rectangles(steps):
            yield replace(self.within(outer, inner, expression), flags=flags)
            flags &= ~Flag.SWITCH


@dataclass(slots=True)
class Code:
    """The instructions, buffers and expressions so far. What is added belongs to `layer`. `units` are the matrix units."""

    lanes: int
    units: int = 1
    layer: int = 0
    buffers: list[Buffer] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    expressions: dict[str, int] = field(default_factory=dict)

    def buffer(self, name: str, rows: int, home: int = -1) -> Rows:
        """The first row of a new buffer."""
        self.buffers.append(Buffer(name, rows, self.layer, home))
        return Rows(len(self.buffers) - 1)

    def store(self, source: Rows, hbm: int, rows: int) -> Instruction:
        """The instruction that stores rows; it isn't added."""
        return Instruction(Opcode.STORE, Flag(0), {"host": hbm, "inner": rows, "outer": 1}, {"ub": source}, "", self.layer)

    def all_reduce(self, hbm: int, rows: int, microbatches: int) -> None:
        """The mean over the cores of rows of HBM. Buffers of vector memory that have their home there are loaded after it."""
        self._add(Opcode.ALL_REDUCE, {}, "", host=hbm, inner=rows, index=microbatches)

    def push(self, unit: int, block: Rows, rows: int, lanes: int, turned: bool) -> None:
        self._add(PUSHES[unit], {"ub": block}, "", Flag.TURNED if turned else Flag(0), inner=rows, window_inner=lanes)

    def multiply(self, unit: int, x: Rows, y: Rows, rows: int, accumulate: bool) -> None:
        flags = Flag.SWITCH | (Flag.ACCUMULATE if accumulate else Flag(0))
        self._add(MULTIPLIES[unit], {"ub": x, "acc": y}, "acc", flags, inner=rows)

    def transpose(self, x: Rows, y: Rows, rows: int, lanes: int) -> None:
        self._add(Opcode.TRANSPOSE, {"ub": x, "dest": y}, "dest", inner=lanes, window_inner=rows)

    def move(self, x: Access, y: Access, outer: int, inner: int, start: int, to: int, lanes: int, clear: bool) -> None:
        """Lanes `start`… of the rows of x at the lanes `to`… of rows of y, whose other lanes stay, or become 0."""
        fields = _steps((("ub", x), ("dest", y)), outer)
        fields |= {"outer": outer, "inner": inner, "window_outer": start, "index": to, "window_inner": lanes}
        self._add(Opcode.MOVE_LANES, {"ub": x.rows, "dest": y.rows}, "dest", Flag.CLEAR if clear else NO_FLAGS, **fields)

    def gather(self, indices: Rows, table: Rows, height: int, y: Rows, rows: int) -> None:
        """So many rows of a table, by their indices."""
        self._add(Opcode.GATHER, {"ub2": indices, "dest": y}, "dest", NO_FLAGS, table, inner=rows, index=height)

    def scatter_add(self, x: Rows, indices: Rows, table: Rows, height: int, rows: int) -> None:
        """Adds so many rows to rows of a table, by the indices of these."""
        self._add(Opcode.SCATTER_ADD, {"ub": x, "ub2": indices}, "", NO_FLAGS, table, inner=rows, index=height)

    def reduce(self, function: IntEnum, x: Rows, y: Rows, rows: int, lanes: int) -> None:
        self._add(Opcode.REDUCE, {"ub": x, "dest": y}, "dest", function=function, inner=rows, window_inner=lanes)

    def vector(self, text: str, sources: tuple[Access, ...], y: Access, outer: int, inner: int) -> None:
        """The expression `text` of sources a, b and c. The third is dense."""
        fields = {"function": EXPRESSIONS[len(sources)], "index": self.expressions.setdefault(text, len(self.expressions))}
        places, flags = {"dest": y.rows}, Flag(0)
        fields |= _steps((*zip(("ub", "ub2"), sources, strict=False), ("dest", y)), outer)
        for name, flag, access in zip(("ub", "ub2", "acc"), (Flag.SPLAT_A, Flag.SPLAT_B, Flag.SPLAT_C), sources, strict=False):
            places[name] = access.rows
            flags |= flag if access.splat else Flag(0)
        self._add(Opcode.VECTOR, places, "dest", flags, outer=outer, inner=inner, **fields)

    def after_rows(self, index: int, rows: int) -> int:
        """The number of an expression whose rows are numbered from a later one on."""
        text = next(text for text, number in self.expressions.items() if number == index)
        return self.expressions.setdefault(text.replace("row *", f"(row + {rows}) *"), len(self.expressions)) if rows else index

    def _add(
        self, opcode: IntEnum, places: dict[str, Rows], y: str, flags: Flag = NO_FLAGS, table: Rows | None = None, /, **fields: int
    ) -> None:
        self.instructions.append(Instruction(opcode, flags, {"outer": 1, **fields}, places, y, self.layer, table))

    def last_writes(self) -> Iterator[tuple[int, int]]:
        """For each buffer that is written, its number and the last instruction that writes it."""
        yield from {rows.buffer: index for index, each in enumerate(self.instructions) if (rows := each.places.get(each.y))}.items()


def _rectangles(steps: Bools) -> Iterator[tuple[range, range]]:
    """The steps [outer, inner] that are true, as ranges. Several outer steps are in one range if all of their inner ones are true."""
    whole = np.logical_and.reduce(steps, axis=1)
    for first, end in stretches(whole):
        yield range(first, end), range(steps.shape[1])
    for outer in np.flatnonzero(~whole & np.logical_or.reduce(steps, axis=1)).tolist():
        yield from ((range(outer, outer + 1), range(first, end)) for first, end in stretches(steps[outer]))


def stretches(chosen: Bools) -> Iterator[tuple[int, int]]:
    """The stretches of true elements: for each its first one, and the one after it."""
    changes = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    yield from zip(changes[::2], changes[1::2], strict=True)


def _steps(walks: Iterable[tuple[str, Access]], outer: int) -> dict[str, int]:
    """The fields with the steps of walks."""
    found: dict[str, int] = {}
    for name, access in walks:
        found |= {f"{name}_pitch": access.pitch if outer > 1 else 0, f"{name}_stride": access.stride}
    return found


if any(operand.field == "outer" and operand.default is None for spec in SPECS.values() for operand in spec.operands):
    raise TypeError("an instruction of v2 must be given its outer steps, and `Code` gives 1")
