"""Stays in the unified buffer, between the instructions of a listing.

```
.resident h.0 layer=1 start=8 rows=51
    activate acc=0 ub=h.0 inner=51
    matrix_multiply ub=h.0 acc=51 rows=51, switch
.end h.0
```
A stay lasts from the first instruction between the two lines that writes its rows to the last one that reads or writes them: so an
instruction that is added or taken away moves no other stay. Without `.end` it lasts to its last use. `first=` and `last=` give an end by
number instead; `disassemble` writes them only where positions can't say it (a stay that is longer than its use, or out of order).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import LineError, did_you_mean, printable
from tpucc.isa.effects import Walks, effects
from tpucc.isa.fields import well_formed
from tpucc.isa.instructions import Records
from tpucc.isa.listing.lines import Arguments, Directive, Errors
from tpucc.isa.listing.printing import name_text
from tpucc.isa.listing.words import Word, integer, line_error
from tpucc.isa.program import Program, Resident
from tpucc.numerics import Int64

_STEP = 64
"""Instructions that are looked at together, when the first or last use of a stay is looked for."""


@dataclass(frozen=True, slots=True)
class WrittenStay:
    """A stay as the text has it. `first` and `last` are the instructions next to its lines; those given by number are meant exactly."""

    resident: Resident
    first_given: bool
    last_given: bool


@dataclass(frozen=True, slots=True)
class StayLines:
    """The lines of a program's stays: before the code, and before and after instructions."""

    head: list[str]
    before: Mapping[int, list[str]]
    after: Mapping[int, list[str]]


def read_stays(code: Sequence[tuple[Word, ...] | Directive], errors: Errors) -> tuple[WrittenStay, ...]:
    """The stays of a listing's code, in the order of their lines; lines that can't be read are reported."""
    stays: list[WrittenStay] = []
    lasting: dict[str, list[int]] = {}
    count = sum(not isinstance(line, Directive) for line in code)
    position = 0
    for line in code:
        if not isinstance(line, Directive):
            position += 1
        elif line.name != "for" and not errors.full:
            try:
                _read(line, position, count, stays, lasting)
            except LineError as error:
                errors.found.append(error.diagnostic)
    return tuple(stays)


def _read(line: Directive, position: int, count: int, stays: list[WrittenStay], lasting: dict[str, list[int]]) -> None:
    arguments = Arguments(line)
    title = arguments.name("a name")
    if line.name == "resident":
        stays.append(_stay(arguments, title, position, count))
        if not stays[-1].last_given:
            lasting.setdefault(title, []).append(len(stays) - 1)
        return
    arguments.done()
    if not lasting.get(title):
        near = did_you_mean(title, [name for name, begun in lasting.items() if begun])
        message = f"{printable(title)} ends here, but no .resident of it stands before"
        raise line_error("E0716", message, line.head.span, near)
    index = lasting[title].pop(0)
    stays[index] = replace(stays[index], resident=replace(stays[index].resident, last=position - 1))


def _stay(arguments: Arguments, title: str, position: int, count: int) -> WrittenStay:
    layer, start, rows = arguments.integer("layer", 0), arguments.integer("start"), arguments.integer("rows")
    first, last = arguments.take("first"), arguments.take("last")
    arguments.done()
    begin = position if first is None else integer(first)
    end = count - 1 if last is None else integer(last)
    return WrittenStay(Resident(title, layer, start, rows, begin, end), first is not None, last is not None)


def used_stays(stays: Sequence[WrittenStay], records: Records) -> tuple[Resident, ...]:
    """The stays, each from the first write of its rows to their last use; as written where there is none or an instruction is malformed."""
    written = tuple(stay.resident for stay in stays)
    if not stays or not well_formed(records).all():
        return written
    uses = _Uses(records)
    return tuple(
        replace(
            stay.resident,
            first=stay.resident.first if stay.first_given else uses.first(stay.resident),
            last=stay.resident.last if stay.last_given else uses.last(stay.resident),
        )
        for stay in stays
    )


class _Uses:
    """Which instructions write and read rows of the unified buffer."""

    def __init__(self, records: Records) -> None:
        touched = effects(records)
        self._count = len(records)
        self._writes = (touched.target,)
        self._all = (touched.source, touched.source2, touched.target)

    def first(self, stay: Resident) -> int:
        """The first write; when all that wrote the rows is gone, the instruction before the first read, since what is read began before."""
        for walks, back in ((self._writes, 0), (self._all, 1)):
            for steps in self._steps(stay):
                if found := _touching(walks, stay, steps):
                    return max(found[0] - back, 0)
        return stay.first

    def last(self, stay: Resident) -> int:
        """The last read or write."""
        for steps in reversed(self._steps(stay)):
            if found := _touching(self._all, stay, steps):
                return found[-1]
        return stay.last

    def _steps(self, stay: Resident) -> list[range]:
        low, high = max(stay.first, 0), min(stay.last + 1, self._count)
        return [range(start, min(start + _STEP, high)) for start in range(low, high, _STEP)]


def _touching(walks: Sequence[Walks], stay: Resident, among: range) -> list[int]:
    """The instructions that touch rows of the stay, in order."""
    found: set[int] = set()
    low, high, part = stay.start, stay.start + stay.rows, slice(among.start, among.stop)
    for walk in walks:
        near = np.flatnonzero((walk.low[part] < high) & (walk.high[part] > low)) + among.start
        found.update(index for index in near.tolist() if walk.dense[index] or _inside(walk.rows(index), low, high))
    return sorted(found)


def _inside(rows: Int64, low: int, high: int) -> bool:
    return bool(((rows >= low) & (rows < high)).any())


def stay_lines(program: Program) -> StayLines:
    """The lines of a program's stays: those that `read_stays` and `used_stays` make the same stays of."""
    stays, count = program.residents, len(program.instructions)
    firsts = [stay.first for stay in stays]
    if firsts != sorted(firsts) or (stays and not 0 <= firsts[0] <= firsts[-1] < count):
        return StayLines(["", *(_line(stay, numbers=True) for stay in stays)], {}, {})
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for stay, plain in zip(stays, _plain(program), strict=True):
        before.setdefault(stay.first, []).append(_line(stay, numbers=not plain))
        if plain:
            after.setdefault(stay.last, []).append(f".end {name_text(stay.name)}")
    return StayLines([], before, after)


def _plain(program: Program) -> list[bool]:
    """Which stays their places in the text say: those from their first write to their last use, with the first of a name ending first."""
    stays = program.residents
    written = [WrittenStay(stay, False, False) for stay in stays]
    used = used_stays(written, program.instructions)
    plain, ends = [], dict[str, int]()
    for stay, found in zip(stays, used, strict=True):
        plain.append(stay == found and ends.get(stay.name, 0) <= stay.last < len(program.instructions))
        ends[stay.name] = max(ends.get(stay.name, 0), stay.last) if plain[-1] else ends.get(stay.name, 0)
    return plain


def _line(stay: Resident, numbers: bool) -> str:
    exactly = f" first={stay.first} last={stay.last}" if numbers else ""
    return f".resident {name_text(stay.name)} layer={stay.layer} start={stay.start} rows={stay.rows}{exactly}"
