"""Which calls of the source each layer is in, the outermost first: the band above the timeline is nested in the same way."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpucc.diagnostics import Origin, Span
from tpucc.values import dataclass

_DEFINITION = re.compile(r"(def|model)\s+(\w+)")
_NAME = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a `def`: its place, and the name of the `def`."""

    span: Span
    name: str


def calls_of(origin: Origin, lines: Sequence[str]) -> list[Call]:
    """The calls that led to the primary place of `origin`, the outermost first.

    The origin of a fused layer has the calls of all its parts. The primary place's are those that form a chain: each is written in the
    `def` that the one outside it calls.
    """
    found: list[Call] = []
    inside = _definition(origin.spans[0].line, lines) if origin.spans else ""
    for span in origin.calls:
        name = _callee(span, lines)
        if name and name == inside:
            found.append(Call(span, name))
            inside = _definition(span.line, lines)
    return found[::-1]


def _callee(span: Span, lines: Sequence[str]) -> str:
    text = lines[span.line - 1][span.column - 1 :] if 0 < span.line <= len(lines) else ""
    match = _NAME.match(text)
    return match[0] if match else ""


def _definition(line: int, lines: Sequence[str]) -> str:
    """The name of the `def` in which a line is; empty if it is in none."""
    for text in reversed(lines[:line]):
        if match := _DEFINITION.match(text):
            return match[2] if match[1] == "def" else ""
    return ""
