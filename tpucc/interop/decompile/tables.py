"""Loops whose rounds differ in numbers that follow no rule: these are lists in front of the loop, and `scales[t]` in it.

A quantised recurrence has scales of its own in each step. Lines that differ in sizes or in names alone stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from tpucc.interop.decompile.bounds import MARK, marked, shortened
from tpucc.interop.decompile.names import RESERVED
from tpucc.interop.decompile.statics import fresh
from tpucc.ops import OPS

LONGEST = 12
"""Lines of a loop's body, at most."""
ROUNDS = 3
"""Rounds of a loop, at least."""
COLUMNS = 6
"""Lists of a loop, at most."""
A_LINE = 10
"""Characters that a line more is worth."""
STRING = r'"(?:\\.|[^"\\])*"'
NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])"
TOKEN = re.compile(rf"{STRING}|(?<!\w)\({NUMBER}(?:, {NUMBER})+\)|{MARK}?(?<![\w.]){NUMBER}")
"""A string, a tuple of numbers, or a number with its mark."""
PIECE = re.compile(r"\w+=?|[()\[\],]")
"""A word, maybe an argument's name, a bracket or a comma."""
INDEX = re.compile(r"\w\[[^\]()]*$")
"""What stands before a number in an index."""
ADDED = re.compile(r"(\w+) = \1 \+ \[\w+\]$")
"""A variable is added to a list."""
Signatures = Mapping[str, Sequence[str]]
"""The names of the parameters of functions, in order."""
PLURALS = {"axis": "axes"}
TEXTS = ("padding", "mode")
"""Parameters whose strings aren't names."""
VARIABLES = ("t", "i", "j", "k")


@dataclass(frozen=True, slots=True)
class Cut:
    """A line cut at its strings and numbers: the texts around them, the tokens, and whether each is a part of an index, or may be left
    out."""

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    indexes: tuple[bool, ...]
    marked: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """The lines of a loop, and how many lines stand for the same without it."""

    lines: tuple[str, ...]
    replaced: int


def cut(line: str) -> Cut:
    found = list(TOKEN.finditer(line))
    ends = [0, *(token.end() for token in found)]
    starts = [*(token.start() for token in found), len(line)]
    texts = tuple(line[end:start] for end, start in zip(ends, starts, strict=True))
    indexes = tuple(INDEX.search(line, 0, token.start()) is not None for token in found)
    return Cut(texts, tuple(token[0].removeprefix(MARK) for token in found), indexes, tuple(token[0][0] == MARK for token in found))


def tabled(lines: Sequence[str], cuts: Sequence[Cut], place: int, names: set[str], signatures: Signatures) -> Loop | None:
    """The loop for the next lines that saves the most text; None if none saves any."""
    best, most = None, 0
    for period in range(1, LONGEST + 1):
        rounds = _rounds(cuts, place, period)
        if rounds < ROUNDS:
            continue
        loop = _loop([cuts[start : start + period] for start in range(place, place + period * rounds, period)], names, signatures)
        if loop is None:
            continue
        saved = sum(map(_cost, lines[place : place + period * rounds])) - sum(map(_cost, loop.lines))
        if saved > most:
            best, most = loop, saved
    return best


def _cost(line: str) -> int:
    return len(shortened(line)) + A_LINE


def _rounds(cuts: Sequence[Cut], start: int, period: int) -> int:
    """How often the next lines stand here one after the other, tokens aside; those of indexes rise or fall by equal steps."""
    first, place, rises = cuts[start : start + period], start, None
    while place + 2 * period <= len(cuts):
        one, next_ = cuts[place : place + period], cuts[place + period : place + 2 * period]
        if any(a.texts != b.texts or list(map(_kind, a.tokens)) != list(map(_kind, b.tokens)) for a, b in zip(first, next_, strict=True)):
            break
        pairs = [pair for a, b in zip(one, next_, strict=True) for pair in zip(a.tokens, b.tokens, a.indexes, strict=True)]
        found = [int(y) - int(x) for x, y, index in pairs if index]
        if rises is not None and rises != found:
            break
        rises, place = found, place + period
    return (place - start) // period + 1


def _kind(token: str) -> tuple[str, int]:
    return (token[0] if token[0] in '"(' else "", token.count(",") if token[0] == "(" else 0)


def _loop(rounds: Sequence[Sequence[Cut]], names: set[str], signatures: Signatures) -> Loop | None:
    """The lists and the loop; None for a loop without scales."""
    name = next((name for name in VARIABLES if name not in names), "round")
    taken = {*names, name}
    columns = [[list(tokens) for tokens in zip(*(line.tokens for line in lines), strict=True)] for lines in zip(*rounds, strict=True)]
    steps = [_steps(column) for line in columns for column in line]
    start = next((first for found in steps if found is not None for first, rise in [found] if rise == 1), 0)
    lists: dict[tuple[str, ...], str] = {}
    body: list[str] = []
    scaled = False
    for line, own, *others in zip(rounds[0], columns, *rounds[1:], strict=True):
        texts: list[str] = []
        for place, column in enumerate(own):
            if len(set(column)) == 1 and all(each.marked[place] for each in (line, *others)):
                texts.append(marked(column[0]))
                continue
            if (text := _written(column, name, start)) is None:
                scaled |= column[0][0] != '"' and any("." in token or "e" in token for token in column)
                wanted = _wanted(column, _argument(line, place, signatures))
                text = lists.setdefault(tuple(column), fresh(wanted, (taken | RESERVED).__contains__))
                taken.add(text)
                text += f"[{_shifted(name, -start)}]"
            texts.append(text)
        body.append("    " + "".join(part for pair in zip(line.texts, [*texts, ""], strict=True) for part in pair))
    if not scaled or len(lists) > COLUMNS:
        return None
    heads = [f"{text} = [{', '.join(column)}]" for column, text in lists.items()]
    stop = start + len(rounds)
    return Loop((*heads, f"for {name} in range({f'{start}, {stop}' if start else stop}):", *body), len(rounds) * len(body))


def _steps(column: Sequence[str]) -> tuple[int, int] | None:
    """The first of integers that rise or fall by equal steps, and the step; None for others."""
    if not all(re.fullmatch(r"-?\d+", token) for token in column):
        return None
    numbers = list(map(int, column))
    rises = {b - a for a, b in pairwise(numbers)}
    return (numbers[0], rises.pop()) if len(rises) == 1 and 0 not in rises else None


def _written(column: Sequence[str], name: str, start: int) -> str | None:
    """The tokens of a place as one text; None if they need a list."""
    if len(set(column)) == 1:
        return column[0]
    if (found := _steps(column)) is not None:
        first, rise = found
        return linear(rise, first - rise * start, name)
    if column[0][0] == '"':
        parts = [re.split(r"(?<!\d)(0|[1-9]\d*)(?!\d)", token) for token in column]
        if len({tuple(part[::2]) for part in parts}) == 1:
            numbers = [_written(items, name, start) for items in zip(*(part[1::2] for part in parts), strict=True)]
            if all(number is not None for number in numbers):
                holes = [number if number is None or number.isdigit() else f"{{{number}}}" for number in numbers]
                return "".join(str(part) for pair in zip(parts[0][::2], [*holes, ""], strict=True) for part in pair)
    return None


def linear(rise: int, rest: int, name: str) -> str:
    """The sum of a number and a multiple of a variable that isn't zero."""
    multiple = name if abs(rise) == 1 else f"{abs(rise)} * {name}"
    return _shifted(multiple, rest) if rise > 0 else f"{rest} - {multiple}" if rest else f"-{multiple}"


def _shifted(text: str, number: int) -> str:
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text


def _wanted(column: Sequence[str], argument: str) -> str:
    """What a list is called whose items are arguments of that name, or parts of others; strings are names, but for two attributes."""
    if column[0][0] == '"' and argument not in TEXTS:
        return "names"
    word = argument.rstrip("0123456789_") or "number"
    return PLURALS.get(word, word if word.endswith("s") else f"{word}s")


def _argument(line: Cut, place: int, signatures: Signatures) -> str:
    """The name of the parameter to which a token is given; empty where it is no whole argument, or one of a list."""
    before = "0".join(line.texts[: place + 1])
    if not re.match(r"\s*[,)]", line.texts[place + 1]) or not re.search(r"(?:[(,]\s*|\w=)$", before):
        return ""
    calls: list[list[str]] = []
    word = ""
    for found in PIECE.finditer(before):
        piece = found[0]
        if piece in "([":
            calls.append([word if piece == "(" else "", ""])
        elif piece in ")]":
            calls.pop()
        elif piece == "," and calls:
            calls[-1][1:] = [*calls[-1][1:], ""]
        elif piece.endswith("=") and calls:
            calls[-1][-1] = piece[:-1]
        word = piece
    if not calls or not calls[-1][0]:
        return ""
    name, *arguments = calls[-1]
    formals = signatures.get(name) or _formals(name)
    return arguments[-1] or (formals[len(arguments) - 1] if len(arguments) <= len(formals) else "")


def _formals(name: str) -> Sequence[str]:
    """The parameters of an operator as calls have them: operands, then attributes. None for a word that is no operator."""
    operator = OPS.get(name)
    return [*(operand.name for operand in operator.operands), *(field.name for field in fields(operator.attributes))] if operator else ()


def is_added(line: str) -> bool:
    """Whether a line adds to a list what is computed before it: a loop of several lines doesn't begin with it, if it may begin later."""
    return ADDED.match(line) is not None


def walked(lines: Sequence[str], names: set[str], signatures: Signatures) -> Iterator[str]:
    """The lines, with such loops; `names` are taken."""
    cuts = list(map(cut, lines))
    place = 0
    while place < len(lines):
        loop = None if lines[place].startswith(" ") else tabled(lines, cuts, place, names, signatures)
        if loop is not None and is_added(lines[place]):
            later = tabled(lines, cuts, place + 1, names, signatures)
            loop = None if later is not None and later.replaced == loop.replaced else loop
        if loop is None:
            yield lines[place]
            place += 1
        else:
            yield from loop.lines
            names = names | {line.partition(" = ")[0] for line in loop.lines if not line.startswith((" ", "for "))}
            place += loop.replaced
