"""Numbers of instructions in another list than the program, for messages to whoever wrote that list."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.diagnostics import listed
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False)
class Numbering:
    """The number that each instruction has in another listing, `listing` in words; -1 for one that isn't there."""

    listing: str
    numbers: Int64

    def words(self, message: str, *instructions: int) -> str:
        """A message about these instructions, with their numbers there; -1 is none."""
        there = [int(self.numbers[index]) for index in instructions if index >= 0]
        shown = [f"{number:,}" for number in there if number >= 0]
        if not shown or len(shown) < len(there):
            return message
        which = f"it is instruction {shown[0]}" if len(shown) == 1 else f"these are the instructions {listed(shown)}"
        return f"{message}; in {self.listing}, {which}"
