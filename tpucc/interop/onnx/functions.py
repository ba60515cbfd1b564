"""Functions of one value, as a quantised file says which one ends a layer: `Sub -0.7, GeluTanh`, or `Relu`.

The metadata of the layer's last node say it. Reading believes it only if the function's table, or its clamp, is that of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tpucc.ir.dtypes import IntegerFormat
from tpucc.ir.node import Attributes
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import UnfitError, clamp_bounds, function_table
from tpucc.numerics import DeviceInts, Float64
from tpucc.ops import OPS
from tpucc.ops.opdef import Clamp, Table

OPERATORS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "Abs": ("abs", {}, ()),
    "Clip": ("clip", {}, ("low", "high")),
    "Elu": ("elu", {}, ("alpha",)),
    "Exp": ("exp", {}, ()),
    "Gelu": ("gelu", {"approximate": False}, ()),
    "GeluTanh": ("gelu", {"approximate": True}, ()),
    "HardSigmoid": ("hard_sigmoid", {}, ()),
    "HardSwish": ("hard_swish", {}, ()),
    "LeakyRelu": ("leaky_relu", {}, ("alpha",)),
    "Log": ("log", {}, ()),
    "Relu": ("relu", {}, ()),
    "Relu6": ("relu6", {}, ()),
    "Sigmoid": ("sigmoid", {}, ()),
    "Sign": ("sign", {}, ()),
    "Sqrt": ("sqrt", {}, ()),
    "Swish": ("silu", {}, ()),
    "Tanh": ("tanh", {}, ()),
}
"""The functions whose tables the device has: tpucc's operator, those of its attributes that are fixed, and those that are numbers."""
ARITHMETIC: Mapping[str, Callable[[Float64, float], Float64]] = {
    "Add": lambda x, number: x + number,
    "Mul": lambda x, number: x * number,
    "Sub": lambda x, number: number - x,
}
"""Functions of a value and a number; Sub takes the value from the number."""
STEP = re.compile(r"(?P<name>[A-Za-z0-9]+)(?P<numbers>( -?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)*)")
MOST_STEPS = 4
"""Of one table: a number before a function is two."""


@dataclass(frozen=True, slots=True)
class Step:
    """A function of `OPERATORS` or `ARITHMETIC`, with its numbers."""

    name: str
    numbers: tuple[float, ...] = ()

    @classmethod
    def of_operator(cls, op: str, attributes: Attributes) -> Self | None:
        """The step that is tpucc's operator with these attributes; None where none is."""
        for name, (operator, fixed, numbers) in OPERATORS.items():
            if operator == op and all(getattr(attributes, field) == value for field, value in fixed.items()):
                return cls(name, tuple(float(getattr(attributes, field)) for field in numbers))
        return None

    def of(self, x: Float64) -> Float64:
        """The values of the function as the compiler computes them."""
        if self.name in ARITHMETIC:
            return ARITHMETIC[self.name](x, *self.numbers)
        if (bounds := self.bounds) is not None:
            return np.clip(x, *bounds)
        legalisation = OPS[OPERATORS[self.name][0]].legalisation
        assert isinstance(legalisation, Table)
        return np.asarray(legalisation.function(self._attributes(), x), np.float64)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Those of a clamp."""
        legalisation = OPS[OPERATORS[self.name][0]].legalisation if self.name in OPERATORS else None
        return legalisation.bounds(self._attributes()) if isinstance(legalisation, Clamp) else None

    def _attributes(self) -> Attributes:
        op, fixed, numbers = OPERATORS[self.name]
        attributes: Attributes = OPS[op].attributes(**fixed, **dict(zip(numbers, self.numbers, strict=True)))
        return attributes

    @property
    def text(self) -> str:
        return " ".join([self.name, *map(repr, self.numbers)])


@dataclass(frozen=True, slots=True)
class Function:
    """Steps in turn; none are the value itself, as of a table that only changes scale and zero point."""

    steps: tuple[Step, ...] = ()

    def of(self, x: Float64) -> Float64:
        for step in self.steps:
            x = step.of(x)
        return x

    def has_bounds(self, low: int, high: int, y: Quantisation, of: IntegerFormat) -> bool:
        """Whether this is a clamp of real values that keeps integers between these, y being how they are held."""
        bounds = self.steps[0].bounds if len(self.steps) == 1 else None
        found = clamp_bounds(*bounds, y, of) if bounds else None
        return found is not None and (of.low if found[0] is None else found[0], of.high if found[1] is None else found[1]) == (low, high)

    def has_table(self, table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> bool:
        """Whether this is its table, x and y being how its operand and its result are held."""
        try:
            return np.array_equal(function_table(self.of, x, y, of), table)
        except UnfitError:  # it has no value somewhere
            return False

    @property
    def text(self) -> str:
        """As files have it; `Identity` without steps."""
        return ", ".join(step.text for step in self.steps) or "Identity"


def function_of(text: str) -> Function | None:
    """The function of `Function.text`; None for another text."""
    if text == "Identity":
        return Function()
    steps = tuple(_step(part) for part in text.split(", ", MOST_STEPS))
    known = tuple(step for step in steps if step is not None)
    return Function(known) if len(known) == len(steps) <= MOST_STEPS else None


def _step(text: str) -> Step | None:
    found = STEP.fullmatch(text)
    if found is None:
        return None
    name, numbers = found["name"], tuple(map(float, found["numbers"].split()))
    expected = 1 if name in ARITHMETIC else len(OPERATORS[name][2]) if name in OPERATORS else None
    return Step(name, numbers) if len(numbers) == expected else None
