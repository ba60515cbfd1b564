"""Instructions whose rows are still rows of buffers, collected in program order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from tpucc.machines.v2.functions import EXPRESSIONS
from tpucc.machines.v2.instructions import SPECS, Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag

ROW_FIELDS = tuple(dict.fromkeys(rows.field for rows in V2.rows if rows.memory == V2.values.name))
"""The fields with first rows of vector memory."""


NO_FLAGS = Flag(0)


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
    written."""

    opcode: Opcode
    flags: Flag
    fields: dict[str, int]
    places: dict[str, Rows]
    y: str
    layer: int

    @property
    def buffers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(rows.buffer for rows in self.places.values()))


@dataclass(slots=True)
class Code:
    """The instructions, buffers and expressions so far. What is added belongs to `layer`."""

    lanes: int
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

    def push(self, block: Rows, rows: int, lanes: int, turned: bool) -> None:
        self._add(Opcode.PUSH_WEIGHTS, {"ub": block}, "", Flag.TURNED if turned else Flag(0), inner=rows, window_inner=lanes)

    def multiply(self, x: Rows, y: Rows, rows: int, accumulate: bool) -> None:
        flags = Flag.SWITCH | (Flag.ACCUMULATE if accumulate else Flag(0))
        self._add(Opcode.MATRIX_MULTIPLY, {"ub": x, "acc": y}, "acc", flags, inner=rows)

    def transpose(self, x: Rows, y: Rows, rows: int, lanes: int) -> None:
        self._add(Opcode.TRANSPOSE, {"ub": x, "dest": y}, "dest", inner=lanes, window_inner=rows)

    def move(self, x: Rows, y: Rows, rows: int, start: int, to: int, lanes: int) -> None:
        self._add(Opcode.MOVE_LANES, {"ub": x, "dest": y}, "dest", inner=rows, window_outer=start, index=to, window_inner=lanes)

    def reduce(self, function: IntEnum, x: Rows, y: Rows, rows: int, lanes: int) -> None:
        self._add(Opcode.REDUCE, {"ub": x, "dest": y}, "dest", function=function, inner=rows, window_inner=lanes)

    def vector(self, text: str, sources: tuple[Access, ...], y: Access, outer: int, inner: int) -> None:
        """The expression `text` of sources a, b and c. The third is dense."""
        fields = {"function": EXPRESSIONS[len(sources)], "index": self.expressions.setdefault(text, len(self.expressions))}
        places, flags = {"dest": y.rows}, Flag(0)
        walks = [*zip(("ub", "ub2"), sources, strict=False), ("dest", y)]
        for name, access in walks:
            fields |= {f"{name}_pitch": access.pitch if outer > 1 else 0, f"{name}_stride": access.stride}
        for name, flag, access in zip(("ub", "ub2", "acc"), (Flag.SPLAT_A, Flag.SPLAT_B, Flag.SPLAT_C), sources, strict=False):
            places[name] = access.rows
            flags |= flag if access.splat else Flag(0)
        self._add(Opcode.VECTOR, places, "dest", flags, outer=outer, inner=inner, **fields)

    def _add(self, opcode: Opcode, places: dict[str, Rows], y: str, flags: Flag = NO_FLAGS, **fields: int) -> None:
        self.instructions.append(Instruction(opcode, flags, {"outer": 1, **fields}, places, y, self.layer))

    def last_writes(self) -> Iterator[tuple[int, int]]:
        """For each buffer that is written, its number and the last instruction that writes it."""
        yield from {rows.buffer: index for index, each in enumerate(self.instructions) if (rows := each.places.get(each.y))}.items()


if any(operand.field == "outer" and operand.default is None for spec in SPECS.values() for operand in spec.operands):
    raise TypeError("an instruction of v2 must be given its outer steps, and `Code` gives 1")
