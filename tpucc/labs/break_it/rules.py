"""The rules of which a term asks for one: what they demand, which of the verifier's rules they are, and which instructions break them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tpucc.labs.break_it.plain import Plain
from tpucc.labs.solutions import Solution

Faults = Mapping[int, str]
"""The numbers of the instructions that break a rule, each with the reason."""


@dataclass(frozen=True)
class Rule:
    """A rule by its name. `codes` are the verifier's rules that say the same."""

    name: str
    says: str
    codes: tuple[str, ...]

    def faults(self, program: Plain) -> Faults:
        """What the lab's own solution finds. An archive for students has no solution."""
        found: Faults = Solution.of(Path(__file__).parent, self).call("faults", program)
        return found


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "unwritten",
            "An instruction that reads a row of the unified buffer which no instruction before it has written is at fault. Whether the row "
            "was at fault before makes no difference.",
            ("V0401",),
        ),
        Rule(
            "lost",
            "A multiply writes sums. One without `accumulate`, which reads none, begins new sums: it is at fault when one of its "
            "accumulator rows holds a sum that was begun or added to, and not activated since. An instruction that reads sums and writes "
            "none activates them. After a multiply that is at fault its new sums wait to be activated, as after any other.",
            ("V0502",),
        ),
        Rule(
            "fifo",
            "The FIFO is empty at first. An instruction that asks for a tile (`tile` is a number) puts one there; it is at fault when more "
            "tiles are there then than the FIFO holds, and they count all the same. An instruction that switches takes one; it is at fault "
            "when none is there, and takes nothing then.",
            ("V0601", "V0602"),
        ),
        Rule(
            "race",
            "Engines work at the same time, each on its own instructions in order. Two instructions of different engines collide when "
            "both touch the same row of the unified buffer, or of the accumulators, and at least one of them writes it. The later one is "
            "at fault unless it certainly starts after the earlier one has finished. A wait (E, [F, …]) at number n makes all later "
            "instructions of E start after those of F before n have finished, and after everything that the last of them has waited for. "
            "Instructions of the engine `control` touch nothing.",
            ("V0801", "V0802", "V0803"),
        ),
    )
}
