"""Which calls of the source each layer is in, the outermost first: the band above the timeline is nested in the same way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import Origin, Span
from tpucc.passes.batch_products import batch_products

_BLOCK = re.compile(r"\s*(for|def|model)\b")
_DEFINITION = re.compile(r"(def|model)\s+(\w+)")
_RANGE = re.compile(r"\s*for\s+\w+\s+in\s+range\(\s*(-?\d{1,9}(?:\s*,\s*-?\d{1,9})*)\s*\)")
_NAME = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a `def`: its place, and the name of the `def`."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A call, and of one that a loop repeats which time it is: the `number`th of `count`; 0 of what is computed once for all of them."""

    call: Call
    number: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The lines of a source, and its `def`s. Lines are counted from 1."""

    lines: Sequence[str]
    inside: Sequence[str]
    """For each line the name of the `def` in which it is, empty if it is in none. The first name is empty: no line has the number 0."""
    begins: Mapping[str, int]
    """The line that begins a `def`, by its name."""

    @classmethod
    def of(cls, lines: Sequence[str]) -> Source:
        inside, begins, name = [""], dict[str, int](), ""
        for number, text in enumerate(lines, 1):
            if match := _DEFINITION.match(text):
                name = match[2] if match[1] == "def" else ""
                begins |= {name: number} if name and name not in begins else {}
            inside.append(name)
        return cls(lines, inside, begins)

    def definition(self, line: int) -> str:
        """The name of the `def` in which a line is; empty if it is in none."""
        return self.inside[min(line, len(self.lines))]

    def line_of_def(self, name: str) -> int:
        """The number of the line that begins a `def`; behind the last if there is none."""
        return self.begins.get(name, len(self.lines) + 1)


def nesting(origins: Sequence[Origin], source: Source) -> list[tuple[Turn, ...]]:
    """For each layer, in the order of the program, the calls that it is in, the outermost first."""
    chains = [calls_of(origin, source) for origin in origins]
    paths: list[tuple[Turn, ...]] = [()] * len(origins)
    for depth in range(max(map(len, chains), default=0)):
        own: dict[tuple[tuple[Turn, ...], Call], list[int]] = {}
        for layer, chain in enumerate(chains):
            if len(chain) > depth:
                own.setdefault((paths[layer], chain[depth]), []).append(layer)
        for (path, call), members in own.items():
            layers = [layer for layer in members if origins[layer].made_by != batch_products.name] or members
            places = [chains[layer][depth + 1].span.line if len(chains[layer]) > depth + 1 else _line(origins[layer]) for layer in layers]
            loop = _loop(call, source)
            numbers = _turns(places, _count(loop)) if loop else [1] * len(layers)
            turns = dict.fromkeys(members, int(numbers[-1] == 1)) | dict(zip(layers, numbers, strict=True))
            for layer, number in turns.items():
                paths[layer] = (*path, Turn(call, number, numbers[-1]))
    return paths


def _turns(places: Sequence[int], count: int) -> list[int]:
    """For each layer of a repeated call, by its line in the `def`, the number of its turn: one begins where the lines go back, or where
    they go back from the last one, if that makes `count` turns: passes put a turn's other layers in another order.

    All are of one turn unless the turns have lines in common, two at least.
    """
    last = max(places)
    back = _numbered(after < before for before, after in itertools.pairwise(places))
    ends = _numbered(after < before == last for before, after in itertools.pairwise(places))
    if _are_alike(places, back):
        return back
    return ends if ends[-1] == count and _are_alike(places, ends) else [1] * len(places)


def _numbered(begins: Iterable[bool]) -> list[int]:
    return list(itertools.accumulate(begins, initial=1))


def _are_alike(places: Sequence[int], numbers: Sequence[int]) -> bool:
    lines: dict[int, set[int]] = {}
    for number, place in zip(numbers, places, strict=True):
        lines.setdefault(number, set()).add(place)
    return len(set.intersection(*lines.values())) > 1


def _count(loop: str) -> int:
    """How often a loop is gone through whose ends are written as numbers; 0 of others."""
    match = _RANGE.match(loop)
    ends = [int(end) for end in match[1].split(",")] if match else []
    return len(range(*ends)) if 0 < len(ends) <= 3 and 0 not in ends[2:] else 0


def _loop(call: Call, source: Source) -> str:
    """The line of the `for` in whose body a call is; empty without one, or if the call's `def` has one, whose turns could be taken for
    the call's."""
    line = call.span.line - 1
    indent = _indent(source.lines[line])
    for text in map(source.lines.__getitem__, range(line - 1, -1, -1)):
        found = _BLOCK.match(text)
        if found and _indent(text) < indent:
            is_repeated = found[1] == "for" and not any(re.match(r"\s*for\b", inner) for inner in _body(call.name, source))
            return text if is_repeated else ""
    return ""


def _body(name: str, source: Source) -> Iterator[str]:
    """The lines of a `def` behind its first."""
    return itertools.takewhile(lambda text: not text.strip() or _indent(text) > 0, source.lines[source.line_of_def(name) :])


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _line(origin: Origin) -> int:
    return origin.spans[0].line


def calls_of(origin: Origin, source: Source) -> list[Call]:
    """The calls that led to the primary place of `origin`, the outermost first.

    The origin of a fused layer has the calls of all its parts. The primary place's are those that form a chain: each is written in the
    `def` that the one outside it calls.
    """
    found: list[Call] = []
    inside = source.definition(origin.spans[0].line) if origin.spans else ""
    for span in origin.calls:
        name = _callee(span, source.lines)
        if name and name == inside:
            found.append(Call(span, name))
            inside = source.definition(span.line)
    return found[::-1]


def _callee(span: Span, lines: Sequence[str]) -> str:
    text = lines[span.line - 1][span.column - 1 :] if 0 < span.line <= len(lines) else ""
    match = _NAME.match(text)
    return match[0] if match else ""
