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
from tpucc.ir.codec import Errors, line_error
from tpucc.isa.listing.lines import Arguments, Directive
from tpucc.isa.listing.schema import Entry, Fields
from tpucc.isa.listing.words import Word, name, name_text
from tpucc.isa.program import Program, Resident

_WORDS = (Entry("name", what="a name"), Entry("layer", default=0), "start", "rows")
_PLACED = Fields(Resident, *_WORDS)
"""A stay between its two lines."""
_NUMBERED = Fields(Resident, *_WORDS, Entry("first", default=None), Entry("last", default=None))


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
        if is_stay(line):
            errors.attempt(_begin if line.name == "resident" else _end, line, position, count, stays, lasting)
        position += not isinstance(line, Directive)
    return tuple(stays)


def _begin(line: Directive, position: int, count: int, stays: list[Resident], lasting: dict[str, list[int]]) -> None:
    title, layer, start, rows, first, last = _NUMBERED.read(Arguments(line))
    if last is None:
        lasting.setdefault(title, []).append(len(stays))
    stays.append(Resident(title, layer, start, rows, position if first is None else first, count - 1 if last is None else last))


def _end(line: Directive, position: int, count: int, stays: list[Resident], lasting: dict[str, list[int]]) -> None:
    arguments = Arguments(line)
    title = name(arguments.next("a name"))
    arguments.done()
    if not lasting.get(title):
        near = did_you_mean(title, [each for each, begun in lasting.items() if begun])
        raise line_error("E0716", f"{printable(title)} ends here, but no .resident of it stands before", line.head.span, near)
    index = lasting[title].pop(0)
    stays[index] = replace(stays[index], last=position - 1)


def stay_lines(program: Program) -> StayLines:
    """The lines of a program's stays, which `read_stays` makes the same stays of."""
    stays, count = program.residents, len(program.instructions)
    firsts = [stay.first for stay in stays]
    if firsts != sorted(firsts) or (stays and not 0 <= firsts[0] <= firsts[-1] < count):
        return StayLines(["", *(_NUMBERED.line("resident", stay) for stay in stays)], {}, {})
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    ends: dict[str, int] = {}
    """The last instruction of each name's stays so far."""
    for stay in stays:
        plain = max(stay.first, ends.get(stay.name, 0)) <= stay.last < count
        before.setdefault(stay.first, []).append((_PLACED if plain else _NUMBERED).line("resident", stay))
        if plain:
            after.setdefault(stay.last, []).append(f".end {name_text(stay.name)}")
            ends[stay.name] = stay.last
    return StayLines([], before, after)
