"""The operators of which a term asks for the gradients, and the slope that counts where there are two."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tpucc.labs.lab import Term

_DECLARED = tomllib.loads(Path(__file__).with_name("operators.toml").read_text("utf-8"))
FUNCTIONS = ("smooth", "shaped", "kinked")


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's operators, one for each function that the student writes, and which of two slopes counts at a kink: the `larger`, the
    `smaller`, or their `mean`."""

    smooth: str = "tanh"
    shaped: str = "mul"
    kinked: str = "leaky_relu"
    slope: str = "mean"

    @property
    def asked(self) -> Mapping[str, str]:
        """The function of the submission for each operator."""
        return {self.smooth: "smooth", self.shaped: "shaped", self.kinked: "kinked"}


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("gradients")
    if draw is None:
        return Rules()
    kinked = draw.choice(KINKED)
    return Rules(draw.choice(SMOOTH), draw.choice(SHAPED), kinked, draw.choice(OPERATORS[kinked].slopes))


@dataclass(frozen=True, slots=True)
class Operator:
    """What operators.toml declares of an operator: the function that a student writes for it, the slopes that a term may choose at its
    kinks, and what the handout says of it."""

    group: str
    formula: str
    slopes: Sequence[str] = ()
    text: str = ""
    details: str = ""

    @property
    def paragraph(self) -> str:
        """All that the handout says of the operator below its formula."""
        return " ".join(f"{_DECLARED['texts'].get(self.text, '')} {self.details}".split())


OPERATORS: Mapping[str, Operator] = {name: Operator(**said) for name, said in _DECLARED["operators"].items()}
"""The operators by their names."""
SMOOTH, SHAPED, KINKED = (tuple(name for name, operator in OPERATORS.items() if operator.group == group) for group in FUNCTIONS)
"""The operators of each function."""
