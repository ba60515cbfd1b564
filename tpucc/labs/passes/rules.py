"""A term's rules of the three passes."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.labs.lab import Term

FUNCTIONS = ("relu6", "tanh", "sigmoid", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish")
ANY = "*"
"""An operand that may be any constant: the pass made it, or may have."""


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


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("passes")
    if draw is None:
        return Rules()
    functions = sorted(["relu", "leaky_relu", *draw.sample(FUNCTIONS, 2)])
    return Rules(draw.choice((24, 30, 36, 40, 48, 54, 60)), tuple(functions), draw.random() < 0.5)
