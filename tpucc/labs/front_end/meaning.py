"""What `lag` means in a term: its type, its values and its refusals, written apart from every solution.

An archive for students has recorded the answers and values of the public calls, and no code that finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from tpucc.guest.values import Plain
from tpucc.ir import TensorType, f32
from tpucc.labs.lab import Term
from tpucc.labs.recorded import packed, recorded
from tpucc.ops.opdef import Array
from tpucc.plugins.failures import Failed

Given = Mapping[str, object]
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


def rules(term: Term) -> Rules:
    """The operator of a term."""
    draw = term.draw("front_end")
    if draw is None:
        return Rules()
    function = draw.choice(("sum", "product", "larger"))
    return Rules(function, draw.choice("ab"), draw.random() < 0.5, draw.randrange(1, 4), draw.choice((-1, 0, -2)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that doesn't hold: its code, and what is to blame: operands by their indices, attributes by their names."""

    code: str
    about: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"RuleError {self.code}, about={self.about}"


def answer(rules: Rules, given: Given, types: Sequence[TensorType]) -> TensorType | Refusal:
    """The type of `lag` of operands of these types, or why there is none."""

    def made() -> Plain:
        found = _answer(rules, given, types)
        return [found.code, *found.about] if isinstance(found, Refusal) else list(found.shape)

    known = recorded(f"lag of {', '.join(map(str, types))} with {dict(given)} under {rules}", made)
    return Refusal(known[0], tuple(known[1:])) if known and isinstance(known[0], str) else f32(*known)


def _answer(rules: Rules, given: Given, types: Sequence[TensorType]) -> TensorType | Refusal:
    # lab 1 begin: find the type or what is to blame
    for index, type_ in enumerate(types):
        if type_.dtype != "f32":
            return Refusal("E0305", (index,))
    by, axis = given["by"], given["axis"]
    for name, value in (("by", by), ("axis", axis)):
        if type(value) is not int:
            return Refusal("E0306", (name,))
    assert isinstance(by, int)
    assert isinstance(axis, int)
    shape = common(types[0].shape, types[1].shape)
    if shape is None:
        return Refusal("E0302", (0, 1))
    if not -len(shape) <= axis < len(shape):
        return Refusal("E0304", ("axis",))
    sizes = {_size(type_.shape, shape, axis % len(shape)) for type_ in types}
    if len(sizes) > 1 and not rules.repeats:
        return Refusal("E0302", (0, 1))
    if by < 0:
        return Refusal("E0307", ("by",))
    if by >= shape[axis]:
        return Refusal("E0308", ("by",))
    axis %= len(shape)
    return f32(*shape[:axis], shape[axis] - by, *shape[axis + 1 :])
    # lab 1 end


def common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape to which two shapes are repeated by NumPy's rule, or None."""
    # lab 1 begin: find the shape to which two repeat
    rank = max(len(a), len(b))
    pairs = [sorted((_size(a, (1,) * rank, k), _size(b, (1,) * rank, k))) for k in range(rank)]
    return tuple(high for _, high in pairs) if all(low in (1, high) for low, high in pairs) else None
    # lab 1 end


def _size(shape: tuple[int, ...], whole: tuple[int, ...], axis: int) -> int:
    """The size that a shape has at an axis of the common shape; 1 where it lacks it."""
    place = axis - (len(whole) - len(shape))
    return shape[place] if place >= 0 else 1


def value(rules: Rules, by: int, axis: int, a: Array, b: Array) -> Array:
    """The values of `lag`, for what `answer` accepts."""
    operands = sha256(b"".join(str(x.shape).encode() + x.tobytes() for x in (a, b))).hexdigest()
    key = f"values of lag of {operands} with {by}, {axis} under {rules}"
    if packed():
        return np.asarray(recorded(key, lambda: lines(rules, by, axis, a, b)), np.float32)
    found = np.asarray(FUNCTIONS[rules.function][2](*lines(rules, by, axis, a, b)))
    recorded(key, found.tolist)
    return found


def lines(rules: Rules, by: int, axis: int, a: Array, b: Array) -> tuple[Array, Array]:
    """The values of both operands that meet, in the shape of the result."""
    # lab 1 begin: find the values that meet
    shape = np.broadcast_shapes(a.shape, b.shape)
    places = np.arange(shape[axis] - by)
    both = [np.take(np.broadcast_to(x, shape), places + by * (name == rules.ahead), axis) for name, x in (("a", a), ("b", b))]
    return both[0], both[1]
    # lab 1 end


@dataclass(frozen=True)
class Meant:
    """A submission that is right: what the public tests ask is recorded by asking it."""

    rules: Rules

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        defaults = {"by": self.rules.by, "axis": self.rules.axis}
        if function == "defaults":
            return defaults
        if function == "value":
            given, (a, b) = arguments
            return value(self.rules, given["by"], given["axis"], a, b)
        given, types = arguments
        found = answer(self.rules, {**defaults, **given}, types)
        if isinstance(found, Refusal):
            return {"code": found.code, "message": "refused", "about": list(found.about), "help": ""}
        return str(found)

    def defines(self) -> tuple[str, ...]:
        return ()

    def text(self, name: str) -> str:
        raise Failed("file", f"no {name} is asked for")
