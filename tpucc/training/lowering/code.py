"""Instructions whose rows are still rows of buffers, collected in program order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from tpucc.machines.v2.functions import EXPRESSIONS
from tpucc.machines.v2.instructions import SPECS, Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag

ROW_FIELDS = tuple(dict.fromkeys(rows.field for rows in V2.rows if rows.memory == V2.values.name))
"""The fields with first rows of vector memory."""


NO_FLAGS = Flag(0)
WHOLE = frozenset({Opcode.PUSH_WEIGHTS, Opcode.TRANSPOSE})
"""Instructions of a block of rows."""


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

    @property
    def needs_result(self) -> bool:
        """Whether the buffer that it writes must be there whole: rows keep lanes or have gaps between them, or it reads the buffer, too."""
        if not self.y:
            return False
        keeps = self.opcode is Opcode.MOVE_LANES and Flag.CLEAR not in self.flags
        reads = [name for name, place in self.places.items() if place.buffer == self.places[self.y].buffer] != [self.y]
        return keeps or reads or self.walk(self.y)[3] != 1

    def parts(self, rows: int, expression: Callable[[int, int], int]) -> Iterator[Instruction]:
        """Instructions that do the same, of at most so many rows each. Blocks stay whole. `expression` gives the number of an expression
        whose first row has this number."""
        fields = self.fields
        if self.opcode in WHOLE:
            yield self
            return
        for outer in range(fields["outer"]):
            for inner in range(0, fields["inner"], rows):
                own = fields | {"outer": 1, "inner": min(rows, fields["inner"] - inner)}
                places, before = {}, outer * fields["inner"] + inner
                for name, place in self.places.items():
                    _, pitch, _, stride = self.walk(name)
                    places[name] = place.after(outer * pitch + inner * stride)
                    own |= {f"{name}_pitch": 0} if f"{name}_pitch" in own else {}
                if self.opcode is Opcode.VECTOR:
                    own["index"] = expression(fields["index"], before)
                if "host" in own:
                    own["host"] += before
                yield Instruction(self.opcode, self.flags & ~Flag.SWITCH if before else self.flags, own, places, self.y, self.layer)


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

    def move(self, x: Access, y: Access, outer: int, inner: int, start: int, to: int, lanes: int, clear: bool) -> None:
        """Lanes `start`… of the rows of x at the lanes `to`… of rows of y, whose other lanes stay, or become 0."""
        fields = _steps((("ub", x), ("dest", y)), outer)
        fields |= {"outer": outer, "inner": inner, "window_outer": start, "index": to, "window_inner": lanes}
        self._add(Opcode.MOVE_LANES, {"ub": x.rows, "dest": y.rows}, "dest", Flag.CLEAR if clear else NO_FLAGS, **fields)

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

    def _add(self, opcode: Opcode, places: dict[str, Rows], y: str, flags: Flag = NO_FLAGS, **fields: int) -> None:
        self.instructions.append(Instruction(opcode, flags, {"outer": 1, **fields}, places, y, self.layer))

    def last_writes(self) -> Iterator[tuple[int, int]]:
        """For each buffer that is written, its number and the last instruction that writes it."""
        yield from {rows.buffer: index for index, each in enumerate(self.instructions) if (rows := each.places.get(each.y))}.items()


def _steps(walks: Iterable[tuple[str, Access]], outer: int) -> dict[str, int]:
    """The fields with the steps of walks."""
    found: dict[str, int] = {}
    for name, access in walks:
        found |= {f"{name}_pitch": access.pitch if outer > 1 else 0, f"{name}_stride": access.stride}
    return found


if any(operand.field == "outer" and operand.default is None for spec in SPECS.values() for operand in spec.operands):
    raise TypeError("an instruction of v2 must be given its outer steps, and `Code` gives 1")
