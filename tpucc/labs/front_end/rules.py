"""What `lag` is in a term, and what the lab's own solution says of a call of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.guest.values import Plain
from tpucc.ir import TensorType, f32
from tpucc.labs.lab import Term
from tpucc.labs.solutions import Solution
from tpucc.ops.opdef import Array

Given = Mapping[str, Any]
"""The attributes `by` and `axis`."""
FUNCTIONS: Mapping[str, tuple[str, str, Callable[[Array, Array], Array]]] = {
    "difference": ("{} - {}", "the difference", np.subtract),
    "sum": ("{} + {}", "the sum", np.add),
    "product": ("{} * {}", "the product", np.multiply),
    "larger": ("max({}, {})", "the larger", np.maximum),
}
"""Of each function its formula, its name in words, and NumPy's function."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's operator: the function of two values, which operand is read `by` places ahead, whether a size of 1 repeats along the axis,
    and the defaults of `by` and `axis`."""

    function: str = "difference"
    ahead: str = "a"
    repeats: bool = True
    by: int = 1
    axis: int = -1

    @property
    def formula(self) -> str:
        """One value of the result: `a[i + by] - b[i]`."""
        return FUNCTIONS[self.function][0].format(*(self.place(name) for name in "ab"))

    @property
    def signature(self) -> str:
        return f"lag(a, b, by={self.by}, axis={self.axis})"

    def place(self, operand: str) -> str:
        """Which value of an operand is read for place i of the result: `a[i + by]`."""
        return f"{operand}[i + by]" if operand == self.ahead else f"{operand}[i]"

    @property
    def numpy_function(self) -> str:
        return f"np.{FUNCTIONS[self.function][2].__name__}"

    @property
    def solution(self) -> Solution:
        """The lab's own operator."""
        return Solution.of(Path(__file__).parent, self)

    def rule(self, given: Given, types: Sequence[TensorType]) -> Plain:
        """What the solution's rule says: the text of a type, or the parts of an error."""
        return self.solution.expected("rule", dict(given), list(types))

    def value(self, given: Given, operands: Sequence[Array]) -> Array:
        """The values of a call that the rule accepts."""
        return np.asarray(self.solution.expected("value", dict(given), list(operands)))


def rules(term: Term) -> Rules:
    """The operator of a term."""
    draw = term.draw("front_end")
    if draw is None:
        return Rules()
    function = draw.choice(("sum", "product", "larger"))
    return Rules(function, draw.choice("ab"), draw.random() < 0.5, draw.randrange(1, 4), draw.choice((-1, 0, -2)))


def type_of(said: str) -> TensorType | None:
    """The type of a text such as `f32[2, 3]`; None for another text."""
    try:
        sizes = json.loads(said.removeprefix("f32"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(sizes, list) or said != f"f32{sizes}" or not all(type(size) is int and size >= 0 for size in sizes):
        return None
    return f32(*sizes)
