"""A term's rules of the three passes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tpucc.labs.lab import Term
from tpucc.labs.solutions import Solution

FUNCTIONS = ("relu6", "tanh", "sigmoid", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish")


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's rules: the elements of the largest constant that folding makes of smaller ones, the functions that a product takes in, and
    whether it takes in a second bias."""

    limit: int = 64
    functions: tuple[str, ...] = ("leaky_relu", "relu", "sigmoid", "tanh")
    second: bool = True

    @property
    def others(self) -> tuple[str, ...]:
        """Functions that stay."""
        return tuple(sorted({*FUNCTIONS, "relu", "leaky_relu"}.difference(self.functions)))

    @property
    def names(self) -> str:
        """The functions as a tuple of the submission's."""
        return str(self.functions).replace("'", '"')

    @property
    def solution(self) -> Solution:
        """The lab's own passes under these rules."""
        return Solution.of(Path(__file__).parent, self)


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("passes")
    if draw is None:
        return Rules()
    functions = sorted(["relu", "leaky_relu", *draw.sample(FUNCTIONS, 2)])
    return Rules(draw.choice((24, 30, 36, 40, 48, 54, 60)), tuple(functions), draw.random() < 0.5)
