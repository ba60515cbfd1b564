"""Numbers of instructions in another list than the program, for messages to whoever wrote that list."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.diagnostics import listed
from tpucc.isa.verify import Violation
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False)
class Numbering:
    """The number that each instruction has in another listing, `listing` in words; -1 for one that isn't there."""

    listing: str
    numbers: Int64

    def said(self, found: Violation) -> Violation:
        """A violation whose message has the numbers of its instructions there, too."""
        there = [int(self.numbers[index]) for index in (found.instruction, found.other) if index >= 0]
        shown = [f"{number:,}" for number in there if number >= 0]
        if not shown or len(shown) < len(there):
            return found
        which = f"it is instruction {shown[0]}" if len(shown) == 1 else f"these are the instructions {listed(shown)}"
        return replace(found, message=f"{found.message}; in {self.listing}, {which}")
