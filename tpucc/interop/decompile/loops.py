"""Loops for lines that repeat: `for i in range(6):` where groups of lines differ in integers only that rise or fall by equal steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.interop.decompile.bounds import MARK, marked

LONGEST = 12
"""Lines of a loop's body, at most."""
ROUNDS = 3
"""Rounds of a loop, at least; two will do for as many lines."""
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
INTEGER = re.compile(rf"{MARK}?(?<![\w.])(?<![eE][-+])(\d+)(?![\w.])")
IN_STRING = re.compile(r"\{\{|\{[^{}]*\}|(?<!\d)(?:0|[1-9]\d*)(?!\d)")
"""In a string: a brace, a hole, or a number."""
ADDED = re.compile(r"(\w+) = \1 \+ \[\w+\]$")
"""A variable is added to a list of what lines before compute: a loop of several lines doesn't begin with it, if it may begin later."""
VARIABLES = ("i", "t", "j", "k", "n", "round")


@dataclass(frozen=True, slots=True)
class Line:
    """A line cut at its integers: the texts around them, the integers, and whether each stands in a string, or may be left out."""

    texts: tuple[str, ...]
    integers: tuple[int, ...]
    quoted: tuple[bool, ...]
    marked: tuple[bool, ...]


def rolled(lines: Sequence[str]) -> list[str]:
    """The lines with loops; the lines of a loop's body are indented."""
    names = set(re.findall(r"\w+\b(?!=)", " ".join(lines)))
    cut = list(map(_cut, lines))
    found: list[str] = []
    place = 0
    while place < len(lines):
        period, rounds = _longest(cut, place)
        if rounds and ADDED.match(lines[place]) and _longest(cut, place + 1) == (period, rounds):
            rounds = 0
        if rounds:
            stop = place + period * rounds
            found += _loop([cut[start : start + period] for start in range(place, stop, period)], names)
            place = stop
        else:
            found.append(lines[place])
            place += 1
    return found


def _cut(line: str) -> Line:
    places = list(_integers(line))
    ends = [0, *(end for _, end, _ in places)]
    starts = [*(start for start, _, _ in places), len(line)]
    texts = tuple(line[end:start] for end, start in zip(ends, starts, strict=True))
    integers = tuple(int(line[start:end].removeprefix(MARK)) for start, end, _ in places)
    return Line(texts, integers, tuple(quoted for _, _, quoted in places), tuple(line[start] == MARK for start, _, _ in places))


def _integers(line: str) -> Iterator[tuple[int, int, bool]]:
    """The places of the integers of a line with their marks, each with whether it stands in a string."""
    place = 0
    for string in STRING.finditer(line):
        yield from ((found.start(), found.end(), False) for found in INTEGER.finditer(line, place, string.start()))
        for found in IN_STRING.finditer(line, string.start(), string.end()):
            if found[0].isdigit():
                yield found.start(), found.end(), True
        place = string.end()
    yield from ((found.start(), found.end(), False) for found in INTEGER.finditer(line, place))


def _longest(lines: Sequence[Line], start: int) -> tuple[int, int]:
    """The lines of a body and the rounds of the loop at a place that saves the most lines; no rounds if none saves any."""
    best, most = (0, 0), 0
    for period in range(1, LONGEST + 1):
        rounds = _rounds(lines, start, period)
        saved = period * (rounds - 1) - 1
        if saved <= most or (rounds < ROUNDS and period < ROUNDS):
            continue
        if _is_plain(lines[start : start + period], lines[start + period : start + 2 * period]):
            best, most = (period, rounds), saved
    return best


def _rounds(lines: Sequence[Line], start: int, period: int) -> int:
    """How often the next lines stand here one after the other."""
    steps: list[tuple[int, ...]] = []
    place = start
    while place + 2 * period <= len(lines):
        found = [_difference(a, b) for a, b in zip(lines[place : place + period], lines[place + period : place + 2 * period], strict=True)]
        differences = [step for step in found if step is not None]
        if len(differences) != period or (steps and steps != differences):
            break
        steps = differences
        place += period
    return (place - start) // period + 1


def _difference(a: Line, b: Line) -> tuple[int, ...] | None:
    """By how much each integer rises from one line to the next; None for lines that differ in more."""
    if a.texts != b.texts:
        return None
    return tuple(y - x for x, y in zip(a.integers, b.integers, strict=True))


def _is_plain(first: Sequence[Line], second: Sequence[Line]) -> bool:
    """Whether a loop is easy to read: if it has several lines, all integers that change do so by the same number."""
    rises = {y - x for a, b in zip(first, second, strict=True) for x, y in zip(a.integers, b.integers, strict=True) if x != y}
    return len(first) == 1 or len(rises) < 2


def _loop(rounds: Sequence[Sequence[Line]], names: set[str]) -> Iterator[str]:
    """The lines of a loop."""
    first, second = rounds[:2]
    moving = [
        (x, y - x, re.search(r"\w\[[^\]()]*$", before) is not None)
        for a, b in zip(first, second, strict=True)
        for x, y, before in zip(a.integers, b.integers, a.texts, strict=False)
        if x != y
    ]
    start, step, indexes = moving[0] if moving else (0, 1, False)
    if any(rise % step for _, rise, _ in moving):
        start, step = 0, 1
    choices = ("t", *VARIABLES) if indexes else VARIABLES
    name = next(name for name in (*choices, *(f"i{number}" for number in range(2, len(names) + 3))) if name not in names)
    yield f"for {name} in range({_bounds(start, step, len(rounds))}):"
    for a, b, *others in zip(*rounds, strict=True):
        marked = [all(marks) for marks in zip(a.marked, b.marked, *(line.marked for line in others), strict=True)]
        integers = [
            _written(x, y - x, start, step, name, quoted, mark)
            for x, y, quoted, mark in zip(a.integers, b.integers, a.quoted, marked, strict=True)
        ]
        yield "    " + "".join(part for pair in zip(a.texts, [*integers, ""], strict=True) for part in pair)


def _bounds(start: int, step: int, rounds: int) -> str:
    stop = start + step * rounds
    if step != 1:
        return f"{start}, {stop if step > 0 else max(stop, -1)}, {step}"
    return f"{start}, {stop}" if start else str(stop)


def _written(value: int, rise: int, start: int, step: int, name: str, quoted: bool, mark: bool) -> str:
    """An integer as an expression of the loop's variable. One that stays the same keeps the mark that it has in all rounds."""
    if rise == 0:
        return marked(str(value)) if mark else str(value)
    text = _linear(rise // step, value - rise // step * start, name)
    return f"{{{text}}}" if quoted else text


def _linear(rise: int, rest: int, name: str) -> str:
    """The sum of a number and a multiple of a variable that isn't zero."""
    multiple = name if abs(rise) == 1 else f"{abs(rise)} * {name}"
    return _shifted(multiple, rest) if rise > 0 else f"{rest} - {multiple}" if rest else f"-{multiple}"


def _shifted(text: str, number: int) -> str:
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text
