"""Stays in the unified buffer, between the instructions of a listing.

```
.resident h.0 layer=1 start=8 rows=51
    activate acc=0 ub=h.0 inner=51
    matrix_multiply ub=h.0 acc=51 rows=51, switch
.end h.0
```
A stay lasts from the first instruction between the two lines to the last one, without `.end` to the end of the program: so an instruction
that is added or taken away moves no other stay. Of several stays with one name the one that began first ends first. `first=` and `last=`
give an instruction by number instead; `disassemble` writes them only where places can't say it: stays out of order, or past the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from tpucc.diagnostics import did_you_mean, printable
from tpucc.isa.listing.lines import Arguments, Directive, Errors
from tpucc.isa.listing.printing import name_text
from tpucc.isa.listing.words import Word, integer, line_error
from tpucc.isa.program import Program, Resident


@dataclass(frozen=True, slots=True)
class StayLines:
    """The lines of a program's stays: before the code, and before and after instructions."""

    head: list[str]
    before: Mapping[int, list[str]]
    after: Mapping[int, list[str]]


NO_STAYS = StayLines([], {}, {})


def is_stay(line: tuple[Word, ...] | Directive) -> TypeGuard[Directive]:
    """Whether a line of a listing's code begins or ends a stay."""
    return isinstance(line, Directive) and line.name != "for"


def read_stays(code: Sequence[tuple[Word, ...] | Directive], errors: Errors) -> tuple[Resident, ...]:
    """The stays of a listing's code, in the order of their lines; lines that can't be read are reported."""
    stays: list[Resident] = []
    lasting: dict[str, list[int]] = {}
    count = sum(not isinstance(line, Directive) for line in code)
    position = 0
    for line in code:
        if not isinstance(line, Directive):
            position += 1
        elif is_stay(line) and not errors.full:
            with errors:
                _read(line, position, count, stays, lasting)
    return tuple(stays)


def _read(line: Directive, position: int, count: int, stays: list[Resident], lasting: dict[str, list[int]]) -> None:
    arguments = Arguments(line)
    title = arguments.name("a name")
    if line.name == "resident":
        stays.append(_stay(arguments, title, position, count))
        if "last" not in {word.key for word in line.words}:
            lasting.setdefault(title, []).append(len(stays) - 1)
        return
    arguments.done()
    if not lasting.get(title):
        near = did_you_mean(title, [name for name, begun in lasting.items() if begun])
        message = f"{printable(title)} ends here, but no .resident of it stands before"
        raise line_error("E0716", message, line.head.span, near)
    index = lasting[title].pop(0)
    stays[index] = replace(stays[index], last=position - 1)


def _stay(arguments: Arguments, title: str, position: int, count: int) -> Resident:
    layer, start, rows = arguments.integer("layer", 0), arguments.integer("start"), arguments.integer("rows")
    first, last = arguments.take("first"), arguments.take("last")
    arguments.done()
    begin = position if first is None else integer(first)
    end = count - 1 if last is None else integer(last)
    return Resident(title, layer, start, rows, begin, end)


def stay_lines(program: Program) -> StayLines:
    """The lines of a program's stays, which `read_stays` makes the same stays of."""
    stays, count = program.residents, len(program.instructions)
    firsts = [stay.first for stay in stays]
    if firsts != sorted(firsts) or (stays and not 0 <= firsts[0] <= firsts[-1] < count):
        return StayLines(["", *(_line(stay, numbers=True) for stay in stays)], {}, {})
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for stay, plain in zip(stays, _plain(stays, count), strict=True):
        before.setdefault(stay.first, []).append(_line(stay, numbers=not plain))
        if plain:
            after.setdefault(stay.last, []).append(f".end {name_text(stay.name)}")
    return StayLines([], before, after)


def _plain(stays: Sequence[Resident], count: int) -> list[bool]:
    """Which stays their places in the text say: those that end in the program, of one name in the order in which they began."""
    plain: list[bool] = []
    ends: dict[str, int] = {}
    for stay in stays:
        plain.append(max(stay.first, ends.get(stay.name, 0)) <= stay.last < count)
        if plain[-1]:
            ends[stay.name] = stay.last
    return plain


def _line(stay: Resident, numbers: bool) -> str:
    exactly = f" first={stay.first} last={stay.last}" if numbers else ""
    return f".resident {name_text(stay.name)} layer={stay.layer} start={stay.start} rows={stay.rows}{exactly}"
