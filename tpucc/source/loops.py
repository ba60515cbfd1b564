"""Loops for lines that repeat, where groups of lines differ in integers only that rise or fall by equal steps: `for i in range(6):`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tpucc.source.names import unused

LONGEST = 12
"""Lines of a loop's body, at most."""
ROUNDS = 3
"""Rounds of a loop, at least; two will do for as many lines."""
LINE = 16
"""Characters that a line more is worth."""
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|(?:(?<=[(\[=])-|(?<=, )-)?(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])')
"""A string or a number."""
IN_STRING = re.compile(r"\{\{|\{[^{}]*\}|(?<!\d)(?:0|[1-9]\d*)(?!\d)")
"""In a string: a brace, a hole, or a number."""
APPENDED = re.compile(r"(\w+) = \1 \+ \[\w+\]$")
"""A variable is put into a list."""
INDEX = re.compile(r"\w\[[^\]()]*$")
"""What stands before an index."""
VARIABLES = ("i", "j", "k", "n", "round")


Numbers: TypeAlias = tuple[str, ...]
"""The texts of numbers: those of a line, or those of a place in each round."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line cut at its numbers: the texts around them, the numbers, and whether each stands in a string."""

    text: str
    texts: tuple[str, ...]
    numbers: Numbers
    quoted: tuple[bool, ...]


def rolled(lines: Sequence[str]) -> Iterator[str]:
    """The lines with loops; the lines of a loop's body are indented."""
    names = set(re.findall(r"\w+", " ".join(lines)))
    cut = list(map(_cut, lines))
    place = 0
    while place < len(lines):
        count, loop = _longest(cut, place, names)
        if count and APPENDED.match(lines[place]) and _longest(cut, place + 1, names)[0] == count:
            count = 0  # it begins with what is put into a list
        yield from loop if count else lines[place : place + 1]
        place += max(1, count)


def _cut(line: str) -> Line:
    found = [
        (number.span(), token[0].startswith('"'))
        for token in TOKEN.finditer(line)
        for number in (IN_STRING.finditer(line, *token.span()) if token[0].startswith('"') else (token,))
        if "{" not in number[0]
    ]
    ends = [0, *(end for (_, end), _ in found)]
    texts = tuple(line[end:start] for end, start in zip(ends, [*(start for (start, _), _ in found), len(line)], strict=True))
    return Line(line, texts, tuple(line[start:end] for (start, end), _ in found), tuple(quoted for _, quoted in found))


def _longest(lines: Sequence[Line], start: int, names: set[str]) -> tuple[int, list[str]]:
    """The lines that a loop at a place stands for, and the lines of the loop: of the one that saves the most. One of two rounds comes after
    all others. No lines if none saves any."""
    best, most = (0, list[str]()), 0
    for least in (ROUNDS, 2):
        for period in range(1, LONGEST + 1) if not most else ():
            rounds = _rounds(lines, start, period)
            if rounds >= least and max(period, rounds) >= ROUNDS:
                stop = start + period * rounds
                loop = list(_loop([lines[first : first + period] for first in range(start, stop, period)], names))
                saved = sum(len(line.text) + LINE for line in lines[start:stop]) - sum(len(line) + LINE for line in loop)
                best, most = ((stop - start, loop), saved) if saved > most and stop - start > best[0] else (best, most)
    return best


def _rounds(lines: Sequence[Line], start: int, period: int) -> int:
    """How often the next lines stand here one after the other, with numbers that rise by equal steps."""
    steps: list[int | None] = []
    place = start
    while place + 2 * period <= len(lines):
        pairs = list(zip(lines[place : place + period], lines[place + period : place + 2 * period], strict=True))
        found = [_rise(x, y) for a, b in pairs for x, y in zip(a.numbers, b.numbers, strict=False)]
        if any(a.texts != b.texts for a, b in pairs) or None in found or (place > start and steps != found):
            break
        steps = found
        place += period
    return (place - start) // period + 1


def _rise(number: str, following: str) -> int | None:
    """How much larger the next one of two integers is; None for numbers that differ and aren't integers."""
    if number == following:
        return 0
    return int(following) - int(number) if all(each.lstrip("-").isdigit() for each in (number, following)) else None


def _loop(rounds: Sequence[Sequence[Line]], names: set[str]) -> Iterator[str]:
    """The lines of a loop."""
    series = [list(zip(*(line.numbers for line in same), strict=True)) for same in zip(*rounds, strict=True)]
    moving = {
        values: INDEX.search(before) is not None
        for line, each in zip(rounds[0], series, strict=True)
        for before, values in zip(line.texts, each, strict=False)
        if len(set(values)) > 1
    }
    head, texts = _counting(moving, len(rounds), names)
    yield head
    for line, each in zip(rounds[0], series, strict=True):
        found = (f"{{{texts[x]}}}" if quoted and x in texts else texts.get(x, x[0]) for x, quoted in zip(each, line.quoted, strict=True))
        yield "    " + "".join(part for pair in zip(line.texts, (*found, ""), strict=True) for part in pair)


def _counting(moving: Mapping[Numbers, bool], rounds: int, names: set[str]) -> tuple[str, dict[Numbers, str]]:
    """The head of a loop that counts, and the texts in its body of integers that rise; each is an index or isn't."""
    name = next((name for name in ("t" if any(moving.values()) else "i", *VARIABLES) if name not in names), unused("i", names.__contains__))
    return f"for {name} in range({rounds}):", {values: _linear(int(values[0]), int(values[1]), name) for values in moving}


def _linear(first: int, second: int, name: str) -> str:
    """An integer as an expression of the loop's variable, by its values in the first two rounds."""
    rise = second - first
    multiple = name if abs(rise) == 1 else f"{abs(rise)} * {name}"
    if rise < 0:
        return f"{first} - {multiple}" if first else f"-{multiple}"
    return f"{multiple} {'+' if first > 0 else '-'} {abs(first)}" if first else multiple
