"""The operators of which a term asks for the gradients, at points: values of the operands, the gradient of the result, and by differences
the gradients of the operands."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc.labs.lab import Term
from tpucc.numerics import Float64
from tpucc.ops import OPS

_DECLARED = tomllib.loads(Path(__file__).with_name("operators.toml").read_text("utf-8"))
FUNCTIONS = ("smooth", "shaped", "kinked")
Form = tuple[Any, ...]
"""The shapes of the operands, a letter for each size, and then what the attributes need: see operators.toml."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's operators, one for each function that the student writes, and which of two slopes counts at a kink: the `larger`, the
    `smaller`, or their `mean`."""

    smooth: str = "tanh"
    shaped: str = "mul"
    kinked: str = "leaky_relu"
    slope: str = "mean"

    @property
    def functions(self) -> Mapping[str, str]:
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
    """What operators.toml declares of an operator: the function that a student writes for it, its cases, the slopes that a term may choose
    at its kinks, and what the handout says of it."""

    group: str
    forms: str
    formula: str
    slopes: Sequence[str] = ()
    text: str = ""
    details: str = ""

    def cases(self, kind: str) -> Sequence[Form]:
        """The forms of cases that are "one", "public" or "hidden"."""
        declared = _DECLARED["forms"][self.forms][kind]
        return [tuple(map(_read, form)) for form in ([declared] if kind == "one" else declared)]

    @property
    def paragraph(self) -> str:
        """All that the handout says of the operator below its formula."""
        return " ".join(f"{_DECLARED['texts'].get(self.text, '')} {self.details}".split())


def _read(declared: object) -> object:
    return None if declared == "all" else tuple(declared) if isinstance(declared, list) else declared


OPERATORS: Mapping[str, Operator] = {name: Operator(**said) for name, said in _DECLARED["operators"].items()}
"""The operators by their names."""
SMOOTH, SHAPED, KINKED = (tuple(name for name, operator in OPERATORS.items() if operator.group == group) for group in FUNCTIONS)
"""The operators of each function."""


STEP, FINE = 1e-5, 2.0**-24
"""How far an element is moved. Operators with kinks are straight between them, and their points have few bits: the fine step is exact."""
NEAR = 2.0**-22
"""How close to a kink some points lie: a rule that takes differences itself steps over it, or has no bits left in float32."""
SLOPES: Mapping[str, Callable[[Float64, Float64], Float64]] = {
    "larger": np.maximum,
    "smaller": np.minimum,
    "mean": lambda behind, ahead: (behind + ahead) / 2,
}
"""What counts where the slopes behind and ahead differ."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a pool: its `place` in the result, and its size."""

    place: tuple[int, ...]
    height: int
    width: int

    @property
    def pixels(self) -> tuple[int | slice, ...]:
        """The window's index in an image."""
        image, row, column, channel = self.place
        return image, slice(row * self.height, (row + 1) * self.height), slice(column * self.width, (column + 1) * self.width), channel

    def __str__(self) -> str:
        """`[0, 2:4, 0:3, 1]`."""
        return f"[{', '.join(f'{k.start}:{k.stop}' if isinstance(k, slice) else str(k) for k in self.pixels)}]"


@dataclass(frozen=True, eq=False)
class Case:
    """An operator at a point. All numbers are float32's, held as float64; `slope` is the term's word for kinks."""

    op: str
    attributes: Any
    operands: tuple[Float64, ...]
    dy: Float64
    slope: str

    @property
    def step(self) -> float:
        return FINE if self.op in KINKED else STEP

    @cached_property
    def result(self) -> Float64:
        return value(self.op, self.attributes, self.operands)

    @cached_property
    def gradients(self) -> tuple[Float64, ...]:
        """The gradient of each operand."""
        return tuple(differences(self, index) for index in range(len(self.operands)))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the operands."""
        return [x.shape for x in self.operands]

    def window(self, place: tuple[int, ...]) -> Window | None:
        """Of a pool, the window that a pixel is in."""
        if not self.op.endswith("_pool"):
            return None
        image, row, column, channel = place
        height, width = self.attributes.size
        return Window((image, row // height, column // width, channel), height, width)

    def is_at_kink(self, index: int, place: tuple[int, ...]) -> bool:
        """Whether the slopes on both sides of an element differ."""
        if self.op not in KINKED:
            return False
        larger, smaller = (replace(self, slope=slope).gradients[index][place] for slope in ("larger", "smaller"))
        return bool(larger != smaller)

    def change(self, moves: Sequence[Float64]) -> float:
        """The derivative of the sum of `dy` times the result, where all operands move at once."""
        ahead, behind = (
            value(self.op, self.attributes, [x + sign * self.step * move for x, move in zip(self.operands, moves, strict=True)])
            for sign in (1, -1)
        )
        return float(((ahead - behind) * self.dy).sum() / (2 * self.step))


def value(op: str, attributes: Any, operands: Sequence[Float64]) -> Float64:
    """An operator's result."""
    return np.asarray(OPS[op].reference(attributes, operands))


def differences(case: Case, index: int) -> Float64:
    """The gradient of an operand: each element is moved alone, ahead and back, and the result's slopes are weighed with `dy`."""
    x, slope = case.operands[index], SLOPES[case.slope]
    found = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        ahead, behind = (_moved(case, index, place, step) for step in (case.step, -case.step))
        found[place] = (slope((case.result - behind) / case.step, (ahead - case.result) / case.step) * case.dy).sum()
    return found


def _moved(case: Case, index: int, place: tuple[int, ...], step: float) -> Float64:
    x = case.operands[index].copy()
    x[place] += step
    return value(case.op, case.attributes, (*case.operands[:index], x, *case.operands[index + 1 :]))


@dataclass(frozen=True, slots=True)
class Kind:
    """Which sizes cases have, and numbers of how few bits; `near` is how close to kinks values stand beside those at kinks, or None where
    all are away from them."""

    sizes: range
    near: float | None
    bits: int = 24


PLAIN, SMALL, LARGE = Kind(range(2, 5), 0.0, 3), Kind(range(2, 6), NEAR), Kind(range(5, 12), None)


def drawn(op: str, form: Form, slope: str, draw: Random, kind: Kind) -> Case:
    """A case of a form."""
    count = len(OPS[op].operands)
    shapes, given = (_images(form, draw, kind), form[:1]) if op.endswith("_pool") else (_shapes(form[:count], draw, kind), form[count:])
    attributes = OPS[op].attributes(*given)
    random = np.random.default_rng(draw.randrange(2**32))
    if op in KINKED:
        operands = [_with_kinks(random, shape, KINKS[op](*given) if op in KINKS else (), kind.near) for shape in shapes]
    else:
        operands = [_normal(random, shape, kind) for shape in shapes]
    if op == "div":
        operands[1] = _float32(np.copysign(0.5 + np.abs(operands[1]), operands[1]))
    dy = _normal(random, value(op, attributes, operands).shape, kind)
    return Case(op, attributes, tuple(operands), dy, slope if op in KINKED else "mean")


KINKS: Mapping[str, Callable[..., tuple[float, ...]]] = {"leaky_relu": lambda alpha: (0.0,), "clip": lambda low, high: (low, high)}
"""The kinks of operators that have them at fixed values."""


def _shapes(forms: Sequence[str], draw: Random, kind: Kind) -> list[tuple[int, ...]]:
    """The letters of one case are different sizes."""
    letters = sorted({letter for form in forms for letter in form if letter != "1"})
    chosen = dict(zip(letters, draw.sample(kind.sizes, len(letters)), strict=True), **{"1": 1})
    return [tuple(chosen[letter] for letter in form) for form in forms]


def _images(form: Form, draw: Random, kind: Kind) -> list[tuple[int, ...]]:
    (height, width), channels = form
    batch, down, across = (1, 1, 2) if kind is PLAIN else draw.sample(range(1, kind.sizes.start + 2), 3)
    return [(batch, height * down, width * across, channels)]


def _with_kinks(random: np.random.Generator, shape: tuple[int, ...], kinks: tuple[float, ...], close: float | None) -> Float64:
    """Values of which many are at kinks, of images many pixels that are equal, and many close to that; or all away from kinks."""
    if close is None:
        away = (random.permutation(math.prod(shape)).reshape(shape) * 2 + 1) / 64 - 4.0
        return _float32(away + random.random(shape) / 256)
    near = random.choice([0.0, 0.0, 0.0, close, -close], shape)
    if not kinks:
        values = random.integers(-1, 2, shape) + near
        values[0, 0, :2] = 1.0
        return np.asarray(values)
    far = random.choice([-7.75, -3.5, -1.5, -0.375, 0.625, 1.25, 2.75, 6.5], shape) + random.choice([0.0, 2, 4, 6], shape) * close
    chosen = np.where(random.random(shape) < 0.5, far, random.choice(kinks, shape) + near)
    chosen.flat[-1] = -7.75
    chosen.flat[: len(kinks)] = kinks[: chosen.size]
    return np.asarray(chosen)


def _normal(random: np.random.Generator, shape: tuple[int, ...], kind: Kind) -> Float64:
    """Values of both signs, of a few bits behind the point, or of all that a float32 has; none is 0."""
    values = random.standard_normal(shape)
    if kind.bits < 24:
        values = np.copysign(np.ceil(np.abs(values) * 2.0**kind.bits) / 2.0**kind.bits, values)
    return _float32(values)


def _float32(values: Float64) -> Float64:
    return np.asarray(values).astype(np.float32).astype(np.float64)
