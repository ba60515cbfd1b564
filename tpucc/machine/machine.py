"""A machine, as a value. The verifier, the interpreter, the clock, listings and the container ask it, and name no part of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import DeviceFormat
from tpucc.machine.instruction import RECORD, DecodedInstruction, FunctionSpec, Spec
from tpucc.machine.parts import NOWHERE, AccessPattern, Account, Contents, Encoding, Expressions, Memory, Queue, Register, RowPlace, Unit
from tpucc.numerics import Int64
from tpucc.target import Target

_Number = TypeVar("_Number", bound=np.generic)
OPCODES = 256
KINDS = 1 << 16
"""Kinds of instructions: opcode · 256 + function."""


@dataclass(frozen=True, eq=False)
class Machine:
    """The parts of a machine. Raises `TypeError` where they don't fit each other.

    Each machine has its own enumerations of opcodes, engines, flags, places and functions. `units` stand in the order of their numbers,
    from 0; instructions that no unit executes have the next number as their engine. `rows` has the rows of each place that has rows. `halt`
    ends a program. `operands` makes the argument of `compute`, from the flags and from arrays by their names; on a machine with
    expressions, from the instruction's `fields` and the number of `lanes`, too. At instructions that touch `ports` the host works: it reads
    and fills the buffers of the ports of the program's host step `index`. Instructions that touch `exchange` are executed by all cores
    together: `compute` takes and gives rows of each core, one core after the other along the first axis. `obstacle` says why no program of
    the machine can be for a target; nothing where one can.
    """

    name: str
    memories: tuple[Memory, ...]
    rows: tuple[RowPlace, ...]
    units: tuple[Unit, ...]
    instructions: tuple[Spec, ...]
    formats: tuple[Encoding, ...]
    account: Account
    halt: IntEnum
    operands: Callable[..., Any]
    flag_type: Callable[[int], Any] = int
    queue: Queue | None = None
    register: Register | None = None
    expressions: Expressions | None = None
    ports: IntFlag = NOWHERE
    exchange: IntFlag = NOWHERE
    obstacle: Callable[[Target], str] = attrgetter("obstacle")

    def __post_init__(self) -> None:
        if [unit.engine.value for unit in self.units] != [*range(len(self.units))]:
            raise TypeError(f"the units of {self.name} aren't numbered 0, 1, …")
        known = {memory.name for memory in self.memories}
        if homeless := [memory.name for memory in self.memories if memory.spills_to not in {*known, ""}]:
            raise TypeError(f"the memory {homeless[0]} of {self.name} spills to a memory that there isn't")
        for rows in self.rows:
            if rows.memory not in known:
                raise TypeError(f"{self.name} has no memory {rows.memory}, in which the place {rows.place.name} lies")
            if rows.field not in (RECORD.names or ()):
                raise TypeError(f"the place {rows.place.name} of {self.name} begins at {rows.field}, which is no field of an instruction")
        codes = [spec.opcode.value for spec in self.instructions]
        if len({*codes}) < len(codes) or not all(0 <= code < OPCODES for code in codes):
            raise TypeError(f"two instructions of {self.name} have one opcode, or one has none from 0 to {OPCODES - 1}")
        for spec in self.instructions:
            self._require_parts(spec)

    def _require_parts(self, spec: Spec) -> None:
        """Raises `TypeError` unless the machine has all that the instruction runs on and touches."""
        what = f"{spec.mnemonic} of {self.name}"
        if spec.engine > len(self.units):
            engine = f"{spec.engine.name.lower()} has the number {spec.engine.value}"
            raise TypeError(f"{what} runs on no unit: {engine}, and there are {len(self.units)} units")
        if unknown := spec.touched & ~self._places:
            place = getattr(unknown, "name", None) or f"place {int(unknown)}"
            raise TypeError(f"{what} touches {place}, which is in no memory")
        fields = {operand.field for operand in spec.operands}
        unnamed = dict.fromkeys(rows.field for rows in self.rows if rows.place & spec.touched and rows.field not in fields)
        if unnamed:
            raise TypeError(f"{what} reads or writes rows that no operand names: {', '.join(unnamed)}")
        pushes = self.queue is not None and bool(spec.writes & self.queue.place)
        if (spec.compute is not None or bool(spec.functions)) is not bool(spec.writes & self.row_places) and not pushes:
            raise TypeError(f"{what} writes rows without computing any, or computes rows and writes none")

    @property
    def _places(self) -> int:
        """All places that the machine has."""
        places = self.row_places | self.ports | self.exchange
        if self.queue is not None:
            places |= self.queue.place | self.queue.used | self.queue.stored
        if self.expressions is not None:
            places |= self.expressions.place
        return places | (self.register.place if self.register is not None else 0)

    @cached_property
    def row_places(self) -> int:
        """All places that have rows."""
        return sum(rows.place for rows in self.rows)

    @cached_property
    def operand_rows(self) -> tuple[tuple[str, str], ...]:
        """The memory and the first field of all places that have rows; each once."""
        return tuple(dict.fromkeys((rows.memory, rows.field) for rows in self.rows))

    def places_of(self, *patterns: AccessPattern) -> int:
        """All places whose rows have one of these patterns."""
        return sum(rows.place for rows in self.rows if rows.pattern in patterns)

    @cached_property
    def by_opcode(self) -> Mapping[int, Spec]:
        return {spec.opcode.value: spec for spec in self.instructions}

    @cached_property
    def by_mnemonic(self) -> Mapping[str, Spec]:
        return {spec.mnemonic: spec for spec in self.instructions}

    @cached_property
    def functions(self) -> Mapping[int, FunctionSpec]:
        """The functions of all instructions, by their numbers."""
        found = {each.value: row for spec in self.instructions for each, row in spec.functions.items()}
        return dict(sorted(found.items()))

    @cached_property
    def by_memory(self) -> Mapping[str, Memory]:
        return {memory.name: memory for memory in self.memories}

    def holding(self, contents: Contents) -> Memory | None:
        """The first memory with these contents; None if the machine has none."""
        return next((memory for memory in self.memories if memory.contents is contents), None)

    @cached_property
    def written_fields(self) -> frozenset[str]:
        """The fields with the first of the rows that some instruction writes."""
        return frozenset(rows.field for spec in self.instructions for rows in self.rows_in(spec.writes))

    @property
    def control(self) -> int:
        """The engine's number of instructions that no unit executes."""
        return len(self.units)

    @cached_property
    def engine_of(self) -> npt.NDArray[np.uint8]:
        """The engine of each opcode, for whole columns at once."""
        return self._of_opcodes(lambda spec: spec.engine, self.control, np.uint8)

    @cached_property
    def walked(self) -> npt.NDArray[np.bool_]:
        """Whether the rows of each opcode have two dimensions."""
        return self._of_opcodes(lambda spec: spec.is_walked, False, np.bool_)

    @cached_property
    def read_by_kind(self) -> npt.NDArray[np.uint32]:
        """The places that each kind of instruction reads, without regard to flags."""
        found = np.zeros(KINDS, np.uint32)
        for opcode, spec in self.by_opcode.items():
            found[opcode << 8 : (opcode + 1) << 8] = spec.reads_for(-1)
            for function in spec.functions:
                found[opcode << 8 | function] = spec.reads_for(function)
        return found

    @cached_property
    def written_by_opcode(self) -> npt.NDArray[np.uint32]:
        """The places that instructions of each opcode write."""
        return self._of_opcodes(lambda spec: spec.writes, 0, np.uint32)

    def _of_opcodes(self, fact: Callable[[Spec], int], unknown: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
        """A fact about each opcode; `unknown` for an opcode that the machine doesn't have."""
        return np.array([fact(self.by_opcode[code]) if code in self.by_opcode else unknown for code in range(OPCODES)], dtype)

    @cached_property
    def read_by_flag(self) -> Mapping[int, int]:
        """The places that a flag makes instructions read."""
        rows = (row for spec in self.instructions for row in spec.flags.values())
        return {row.flag.value: row.reads.value for row in rows if row.reads}

    @cached_property
    def _unsigned(self) -> int:
        """The flags with which values of the first source are unsigned."""
        return sum({row.flag for spec in self.instructions for row in spec.flags.values() if row.is_unsigned})

    @cached_property
    def row_units(self) -> tuple[IntEnum, ...]:
        """The engines of instructions that touch rows, in the order of their numbers."""
        busy = {spec.engine for spec in self.instructions if spec.touched & self.row_places}
        return tuple(unit.engine for unit in self.units if unit.engine in busy)

    def sharing(self, memory: Memory) -> tuple[IntEnum, ...]:
        """The engines that touch rows of a memory."""
        places = self._in(memory.name)
        busy = {spec.engine for spec in self.instructions if spec.touched & places}
        return tuple(unit.engine for unit in self.units if unit.engine in busy)

    def format_of(self, flags: int) -> DeviceFormat:
        """The format that an instruction with these flags computes in."""
        return self._formats[int(flags) & self._format_flags]

    @cached_property
    def _format_flags(self) -> int:
        return sum(row.flag for row in self.formats)

    @cached_property
    def _formats(self) -> Mapping[int, DeviceFormat]:
        return {row.flag: row.format for row in self.formats}

    @cached_property
    def bytes_per_value(self) -> Int64:
        """The bytes of a value, by an instruction's flags: int64 [256], for whole columns at once."""
        return self._of_flags(lambda of, flags: of.bytes_per_value)

    @cached_property
    def largest_values(self) -> Int64:
        """The largest magnitude of a value, by an instruction's flags: int64 [256]."""
        return self._of_flags(lambda of, flags: of.largest)

    @cached_property
    def largest_inputs(self) -> Int64:
        """The largest magnitude of a value that a multiply reads, by its flags: int64 [256]."""
        return self._of_flags(lambda of, flags: of.high - of.low if flags & self._unsigned else of.largest)

    def _of_flags(self, fact: Callable[[DeviceFormat, int], int]) -> Int64:
        """A fact about the format of each combination of flags; flags of no format have the first one's."""
        formats = (self._formats.get(flags & self._format_flags, self.formats[0].format) for flags in range(256))
        return np.array([fact(of, flags) for flags, of in enumerate(formats)], np.int64)

    def read(self, record: Any) -> DecodedInstruction:
        """One record, whose opcode must be known, to be read."""
        spec = self.by_opcode[int(record["opcode"])]
        fields = (operand.field for operand in spec.operands)
        return DecodedInstruction(spec, self.flag_type(int(record["flags"])), {field: int(record[field]) for field in fields})

    def record(self, opcode: IntEnum, flags: int = 0, **fields: int) -> Any:
        """One record; operands left out get their default. For tests and small programs; large ones fill columns."""
        row, spec = np.zeros((), RECORD), self.by_opcode[opcode]
        row["opcode"], row["flags"] = opcode, flags
        operands = spec.operands_for(fields.get("function", 0))
        for operand in operands:
            value = fields.pop(operand.field, operand.default)
            if value is None:
                raise TypeError(f"{spec.mnemonic} needs {operand.field}")
            row[operand.field] = value
        if any(fields.values()):
            raise TypeError(f"{spec.mnemonic} has no {', '.join(fields)}")
        if any(operand.field == "inner" for operand in operands):
            row["outer"] = max(1, int(row["outer"]))
        return row

    def touching(self, reading: int = 0, writing: int = 0) -> Iterator[Spec]:
        """The instructions that read or write one of these places whatever their flags are."""
        return (spec for spec in self.instructions if spec.reads & reading or spec.writes & writing)

    def mnemonics(self, writing: int) -> Iterator[str]:
        """The names of the instructions that write one of these places whatever their flags are."""
        return (spec.mnemonic for spec in self.touching(writing=writing))

    @cached_property
    def values(self) -> Memory:
        """The memory in which scheduling gives buffers their rows. Raises `TypeError` when there is none."""
        found = self.holding(Contents.VALUES)
        if found is None:
            raise TypeError(f"{self.name} has no memory of values")
        return found

    @cached_property
    def transfers(self) -> tuple[Spec, Spec]:
        """The instruction that reads rows from the memory that the memory of values spills to, and the instruction that writes rows
        there."""
        if not self.values.spills_to:
            raise TypeError(f"the memory {self.values.name} of {self.name} spills to no other")
        here, there = self._in(self.values.name), self._in(self.values.spills_to)
        bring = next(spec for spec in self.touching(reading=there) if spec.writes & here)
        take = next(spec for spec in self.touching(reading=here) if spec.writes & there)
        return bring, take

    @cached_property
    def waiting(self) -> Spec:
        """The instruction that makes the unit `index` wait for the units `engines`."""
        return next(spec for spec in self.instructions if any(operand.field == "engines" for operand in spec.operands))

    @cached_property
    def taking(self) -> int:
        """The flags with which an instruction takes the next entry of the queue into use."""
        return sum(flag for flag, places in self.read_by_flag.items() if self.queue is not None and places & self.queue.place)

    def _in(self, memory: str) -> int:
        """All places that are rows of a memory."""
        return sum(rows.place for rows in self.rows if rows.memory == memory)

    def rows_at(self, place: int) -> RowPlace:
        """The rows of a place."""
        return self._rows[place]

    def rows_in(self, places: int) -> tuple[RowPlace, ...]:
        """The rows of several places, in the machine's order."""
        return _rows_in(self, int(places))

    @cached_property
    def _rows(self) -> Mapping[int, RowPlace]:
        return {rows.place.value: rows for rows in self.rows}


@cache
def _rows_in(machine: Machine, places: int) -> tuple[RowPlace, ...]:
    return tuple(rows for rows in machine.rows if rows.place & places)
