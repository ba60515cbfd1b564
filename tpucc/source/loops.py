"""Loops for lines that repeat: `for i in range(6):` where groups of lines differ in integers only that rise or fall by equal steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.source.names import unused

LONGEST = 12
"""Lines of a loop's body, at most."""
ROUNDS = 3
"""Rounds of a loop, at least; two will do for as many lines."""
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|(?<![\w.])(?<![eE][-+])\d+(?![\w.])')
"""A string or an integer."""
IN_STRING = re.compile(r"\{\{|\{[^{}]*\}|(?<!\d)(?:0|[1-9]\d*)(?!\d)")
"""In a string: a brace, a hole, or a number."""
APPENDED = re.compile(r"(\w+) = \1 \+ \[\w+\]$")
"""A variable is put into a list."""
INDEX = re.compile(r"\w\[[^\]()]*$")
"""What stands before an index."""
VARIABLES = ("i", "j", "k", "n", "round")


@dataclass(frozen=True, slots=True)
class Line:
    """A line cut at its integers: the texts around them, the integers, and whether each stands in a string."""

    texts: tuple[str, ...]
    integers: tuple[int, ...]
    quoted: tuple[bool, ...]


def rolled(lines: Sequence[str]) -> Iterator[str]:
    """The lines with loops; the lines of a loop's body are indented."""
    names = set(re.findall(r"\w+", " ".join(lines)))
    cut = list(map(_cut, lines))
    place = 0
    while place < len(lines):
        period, rounds = _longest(cut, place)
        if rounds and APPENDED.match(lines[place]) and _longest(cut, place + 1) == (period, rounds):
            rounds = 0  # it begins with what is put into a list
        if rounds:
            yield from _loop([cut[start : start + period] for start in range(place, place + period * rounds, period)], names)
        else:
            yield lines[place]
        place += max(1, period * rounds)


def _cut(line: str) -> Line:
    places = list(_integers(line))
    ends = [0, *(end for _, end, _ in places)]
    starts = [*(start for start, _, _ in places), len(line)]
    texts = tuple(line[end:start] for end, start in zip(ends, starts, strict=True))
    return Line(texts, tuple(int(line[start:end]) for start, end, _ in places), tuple(quoted for _, _, quoted in places))


def _integers(line: str) -> Iterator[tuple[int, int, bool]]:
    """The places of the integers of a line, each with whether it stands in a string."""
    for token in TOKEN.finditer(line):
        if token[0].startswith('"'):
            inner = IN_STRING.finditer(line, token.start(), token.end())
            yield from ((found.start(), found.end(), True) for found in inner if found[0].isdigit())
        else:
            yield token.start(), token.end(), False


def _longest(lines: Sequence[Line], start: int) -> tuple[int, int]:
    """The lines of a body and the rounds of the loop at a place that saves the most lines; no rounds if none saves any."""
    best, most = (0, 0), 0
    for period in range(1, LONGEST + 1):
        rounds = _rounds(lines, start, period)
        saved = period * (rounds - 1) - 1
        if saved > most and max(period, rounds) >= ROUNDS:
            best, most = (period, rounds), saved
    return best


def _rounds(lines: Sequence[Line], start: int, period: int) -> int:
    """How often the next lines stand here one after the other."""
    steps: list[tuple[int, ...]] = []
    place = start
    while place + 2 * period <= len(lines):
        pairs = zip(lines[place : place + period], lines[place + period : place + 2 * period], strict=True)
        found = [tuple(y - x for x, y in zip(a.integers, b.integers, strict=True)) for a, b in pairs if a.texts == b.texts]
        if len(found) != period or (steps and steps != found):
            break
        steps = found
        place += period
    return (place - start) // period + 1


def _loop(rounds: Sequence[Sequence[Line]], names: set[str]) -> Iterator[str]:
    """The lines of a loop."""
    first, second = rounds[:2]
    moving = [
        (before, x, y - x)
        for a, b in zip(first, second, strict=True)
        for before, x, y in zip(a.texts, a.integers, b.integers, strict=False)
        if x != y
    ]
    _, start, step = moving[0] if moving else ("", 0, 1)
    if any(rise % step for _, _, rise in moving):
        start, step = 0, 1
    indexes = any(INDEX.search(before) for before, _, _ in moving)
    free = [name for name in ("t" if indexes else "i", *VARIABLES) if name not in names]
    name = free[0] if free else unused("i", names.__contains__)
    stop = start + step * len(rounds)
    bounds = f"{start}, {max(stop, -1)}, {step}" if step != 1 else f"{start}, {stop}" if start else str(stop)
    yield f"for {name} in range({bounds}):"
    for a, b in zip(first, second, strict=True):
        integers = [_linear(x, y - x, start, step, name, quoted) for x, y, quoted in zip(a.integers, b.integers, a.quoted, strict=True)]
        yield "    " + "".join(part for pair in zip(a.texts, [*integers, ""], strict=True) for part in pair)


def _linear(value: int, rise: int, start: int, step: int, name: str, quoted: bool) -> str:
    """An integer as an expression of the loop's variable."""
    if rise == 0:
        return str(value)
    factor = rise // step
    rest = value - factor * start
    multiple = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
    if factor < 0:
        text = f"{rest} - {multiple}" if rest else f"-{multiple}"
    else:
        text = f"{multiple} {'+' if rest > 0 else '-'} {abs(rest)}" if rest else multiple
    return f"{{{text}}}" if quoted else text
