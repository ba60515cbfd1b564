"""Where the instructions of a text stand, for messages about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.diagnostics import Label, Source, Span
from tpucc.isa.listing.words import Word


@dataclass(frozen=True, slots=True)
class Places:
    """`spans` has the place of each instruction in `source`, a listing or the text of a tile program."""

    source: Source
    spans: tuple[Span, ...]

    def labels(self, instruction: int, text: str = "") -> tuple[Label, ...]:
        """The line of an instruction; nothing for one that the text doesn't have."""
        return (Label(self.spans[instruction], text, self.source),) if 0 <= instruction < len(self.spans) else ()


def place_of(line: Sequence[Word]) -> Span:
    """From the first word of a line to its last."""
    return Span(line[0].line, line[0].start, line[0].line, line[-1].end)
