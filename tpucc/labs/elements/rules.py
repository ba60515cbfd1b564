"""What differs between terms: how the tag of a weight says which elements take it, and what the switch says. And what an element must do
in a cycle, in integers."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.labs.lab import Term


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's tags and its switch.

    A tag has a number: that of the `row` for which the weight is, or of the `steps` that it still has to go down. It is marked as a weight
    by its lowest `bit`, or has 1 more than its number, as `zero` marks no weight. The switch is 1 to `take` the weight of the shadow, or to
    `keep` the weight in use. tpucc's own array has row, zero and take.
    """

    counts: str = "row"
    marks: str = "bit"
    switch: str = "take"

    @property
    def keeps(self) -> bool:
        return self.switch == "keep"

    def tag(self, number: int) -> int:
        """The tag with this number."""
        return number + 1 if self.marks == "zero" else 2 * number + 1

    def at(self, row: int, target: int) -> int:
        """The tag at an element of `row`, of a weight for the row `target`, which isn't above; where it goes no further, 0."""
        return 0 if target < row else self.tag(target if self.counts == "row" else target - row)

    def takes(self, row: int, tag: int) -> bool:
        """Whether an element of a row takes a weight with this tag."""
        number, is_weight = (tag - 1, tag > 0) if self.marks == "zero" else (tag >> 1, bool(tag & 1))
        return is_weight and (self.counts == "steps" or number >= row)


CHOICES = [Rules(counts, marks, switch) for counts in ("row", "steps") for marks in ("bit", "zero") for switch in ("take", "keep")]
OTHERS = [rules for rules in CHOICES if (rules.marks, rules.switch) != ("zero", "take")]
"""Rules of terms: for none of them tpucc's own array is right."""


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("elements")
    return draw.choice(OTHERS) if draw else Rules()


@dataclass(slots=True)
class Expected:
    """What an element of a row must have, in integers: `x`, `switch` and `sum` after a cycle, and the weight that it must show below."""

    rules: Rules
    row: int
    x: int = 0
    switch: int = 0
    sum: int = 0
    weight: int = 0
    shadow: int = 0
    target: int = -1
    """The row for which the weight in the shadow is."""
    fresh: bool = False
    """Whether it came in the last cycle: then it must be shown; later it may be."""

    def step(self, x: int, switch: int, arriving: tuple[int, int], above: int) -> None:
        """A cycle, with the weight and the row that it is for which arrive from above; row -1 is none."""
        used = self.shadow if switch != self.rules.keeps else self.weight
        self.x, self.switch, self.weight, self.sum = x, switch, used, (above + x * used + 2**31) % 2**32 - 2**31
        weight, target = arriving
        self.fresh = target >= self.row
        if self.fresh:
            self.shadow, self.target = weight, target

    def problem_right(self, x: int, switch: int, total: int) -> str:
        """The first of the outputs that isn't as it must be, in words; nothing where all are."""
        for name, found, wanted in (("right.x", x, self.x), ("right.switch", switch, self.switch), ("sum", total, self.sum)):
            if found != wanted:
                return f"{name} is {found}, and should be {wanted}"
        return ""

    def problem_below(self, weight: int, tag: int) -> str:
        """The same of a weight that goes down."""
        shows, goes_on = self.rules.takes(self.row + 1, tag), self.target > self.row
        if shows and not goes_on:
            return f"down.tag is {tag}, and the element of row {self.row + 1} takes a weight that isn't for it"
        wanted = self.rules.at(self.row + 1, self.target)
        if self.fresh and goes_on and tag != wanted:
            return f"down.tag is {tag}, and should be {wanted}: a weight for row {self.target} has come"
        if shows and (weight, tag) != (self.shadow, wanted):
            return f"down is the weight {weight} with the tag {tag}, and should be {self.shadow} with {wanted}"
        return ""
