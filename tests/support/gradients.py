"""Gradients by rule and by differences, in float64, at points drawn for the examples that each operator brings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import tpucc.training.operators  # noqa: F401 - rules call them by name
from tpucc.ir import Attributes, Constant, TensorType
from tpucc.ops import OPS
from tpucc.ops.gradient import DEFAULTS, Backward, Gradients, Rule, Value
from tpucc.ops.opdef import Array, Example, OpDef, RuleError

STEP = 1e-5
"""Half the distance over which a difference is taken: it errs by STEP^2 for the curve and by 1e-16 / STEP for the rounding."""
TOLERANCE = 1e-6
"""Of the largest gradient of an operand. Constants in rules are float32, and err by 6e-8."""
SINGLES = 40
"""Elements of one operand whose gradient is looked at, one by one."""
MOST = 1_000
"""Elements of the operands of an example at which gradients are tried."""
WIDE, UNIT = (-4.0, 7.0), (0.1, 0.9)
"""Where operands are drawn: wide enough for both kinks of relu6, and where logarithms and square roots have values."""


class Eager:
    """A builder that computes what a rule makes at once, in float64 unless said."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = dtype
        self._arrays: list[Array] = []

    def value(self, array: Array, type_: TensorType) -> Value:
        assert array.shape == type_.shape
        self._arrays.append(np.asarray(array, self.dtype) if type_.dtype == "f32" else array)
        return Value(str(len(self._arrays) - 1), type_, self)

    def array(self, value: Value) -> Array:
        return self._arrays[int(value.name)]

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        operator = OPS[op]
        given = operator.attributes(**attributes) if isinstance(attributes, Mapping) else attributes
        type_ = operator.infer(given, [value.type for value in operands])
        return self.value(operator.reference(given, [self.array(value) for value in operands]), type_)

    def constant(self, value: Constant) -> Value:
        return self.value(value.data, TensorType(value.dtype, value.shape))


def by_rule(
    op: OpDef[Any], attributes: Any, operands: Sequence[Array], types: Sequence[TensorType], dy: Array, wanted: Sequence[bool] = (), /
) -> list[Array | None]:
    """The gradients that an operator's rule gives, computed in the type of `dy`; those of all operands unless `wanted` says which."""
    assert isinstance(op.gradient, Rule)
    builder = Eager(dy.dtype)
    values = tuple(map(builder.value, operands, types))
    result = builder.value(op.reference(attributes, operands), op.infer(attributes, types))
    made = op.gradient.function(
        Backward(attributes, values, result, builder.value(dy, result.type.plain()), tuple(wanted) or (True,) * len(values))
    )
    assert len(made) == len(values), "one gradient an operand"
    for gradient, value in zip(made, values, strict=True):
        assert gradient is None or gradient.type.plain() == value.type.plain(), "a gradient has its operand's type"
    return [None if gradient is None else builder.array(gradient) for gradient in made]


@dataclass(frozen=True, eq=False)
class Point:
    """Operands of an operator, in float64, and the weights `dy` of a sum over its result: the loss whose gradient is looked for."""

    title: str
    op: OpDef[Any]
    attributes: Any
    types: tuple[TensorType, ...]
    operands: tuple[Array, ...]
    dy: Array

    def loss(self, operands: Sequence[Array]) -> float:
        with np.errstate(all="ignore"):
            return float((self.op.reference(self.attributes, operands) * self.dy).sum())

    @property
    def real(self) -> tuple[int, ...]:
        """The operands of real numbers; a mask of zeros and ones isn't one."""
        return tuple(i for i, type_ in enumerate(self.types) if type_.dtype == "f32" and _name(self.op, i) != "mask")

    @cached_property
    def places(self) -> dict[int, list[tuple[int, ...]]]:
        """The elements of each real operand that are moved alone: all of them, or some where there are many."""
        random = np.random.default_rng(3)
        indices = {i: list(np.ndindex(self.operands[i].shape)) for i in self.real}
        return {i: [all_[n] for n in sorted(random.permutation(len(all_))[:SINGLES])] for i, all_ in indices.items()}

    @cached_property
    def singles(self) -> dict[int, Array]:
        """For each real operand, the derivatives with respect to the elements of `places`."""
        return {i: np.array([self._difference({i: _single(self.operands[i], place)}) for place in self.places[i]]) for i in self.real}

    @cached_property
    def directions(self) -> list[tuple[dict[int, Array], float]]:
        """Directions in which all real operands move together, and the derivative along each."""
        random = np.random.default_rng(4)
        moves = [{i: random.standard_normal(self.operands[i].shape) for i in self.real} for _ in range(2)]
        return [(move, self._difference(move)) for move in moves]

    def _difference(self, move: dict[int, Array]) -> float:
        ahead, behind = ([x + sign * STEP * move[i] if i in move else x for i, x in enumerate(self.operands)] for sign in (1, -1))
        return (self.loss(ahead) - self.loss(behind)) / (2 * STEP)


def _single(x: Array, place: tuple[int, ...]) -> Array:
    made = np.zeros_like(x)
    made[place] = 1.0
    return made


def _name(op: OpDef[Any], index: int) -> str:
    return op.operands[min(index, len(op.operands) - 1)].name


def disagreement(point: Point, rule: Rule) -> str:
    """What is wrong with a rule at a point, empty if nothing is: each gradient against differences, one element at a time and together.

    Together is the dot test: dot(dy, J v) = dot(transposed(J) dy, v), where the left side is a difference along v.
    """
    with np.errstate(all="ignore"):
        found = by_rule(replace(point.op, gradient=rule), point.attributes, point.operands, point.types, point.dy)
    gradients = {i: np.zeros(point.operands[i].shape) if (dx := found[i]) is None else dx for i in point.real}
    for i, gradient in gradients.items():
        wanted = point.singles[i]
        error = np.abs(np.array([gradient[place] for place in point.places[i]]) - wanted)
        if not (error <= TOLERANCE * (1.0 + np.abs(wanted).max())).all():
            return f"{_name(point.op, i)} is off by {error.max():g}, of {np.abs(wanted).max():g}"
    for move, change in point.directions:
        terms = np.concatenate([(gradients[i] * move[i]).ravel() for i in point.real])
        if not abs(terms.sum() - change) <= TOLERANCE * (1.0 + np.abs(terms).sum()):
            return f"the change along a direction is {terms.sum():g}, not {change:g}"
    return ""


def takes_reals(op: OpDef[Any]) -> bool:
    """Whether an operator has operands of real numbers in one of its examples."""
    return bool(op.operands) and any(type_.dtype == "f32" for example in op.examples for type_ in example.operands)


def points(op: OpDef[Any]) -> Iterator[Point]:
    """Points at the small forms of an operator's examples where it has values, for gradients of its result."""
    for example in op.examples:
        small = _small(op, example)
        if small is None or not any(type_.dtype == "f32" for type_ in small.operands):
            continue
        result = op.infer(small.attributes, small.operands)
        for bounds in (WIDE, UNIT):
            operands = arrays(op, small.operands, bounds)
            with np.errstate(all="ignore"):
                value = op.reference(small.attributes, operands)
            if result.dtype == "f32" and np.isfinite(value).all():
                dy = np.random.default_rng(2).standard_normal(result.shape)
                yield Point(f"{op.name}: {example.title}, {bounds[0]} to {bounds[1]}", op, small.attributes, small.operands, operands, dy)


def arrays(op: OpDef[Any], types: Sequence[TensorType], bounds: tuple[float, float], dtype: Any = np.float64) -> tuple[Array, ...]:
    """Operands within the ranges of their types, or else within bounds.

    No two reals of one range are equal, so that there are no ties; masks are of zeros and ones, integers small.
    """
    random = np.random.default_rng(1)
    total = sum(type_.size for type_ in types)
    steps = iter(random.permutation(total))

    def drawn(index: int, type_: TensorType) -> Array:
        if type_.dtype != "f32":
            return np.asarray(random.integers(0, 3, type_.shape), type_.numpy)
        if _name(op, index) == "mask":
            return np.asarray(random.integers(0, 2, type_.shape), dtype)
        low, high = (type_.range.low, type_.range.high) if type_.range else bounds
        places = np.fromiter(steps, np.float64, type_.size).reshape(type_.shape)
        return np.asarray(low + (high - low) * (places + 0.3737) / total, dtype)

    return tuple(drawn(index, type_) for index, type_ in enumerate(types))


def _small(op: OpDef[Any], example: Example[Any]) -> Example[Any] | None:
    """An example with its large sizes made small, in attributes and operands alike; itself where it is small; None where neither can be."""
    changed = {name: _shrunk(getattr(example.attributes, name)) for name in example.attributes.__dataclass_fields__}
    attributes = replace(example.attributes, **changed)
    small = replace(example, attributes=attributes, operands=tuple(replace(x, shape=_shrunk(x.shape)) for x in example.operands))
    for candidate in (small, example):
        if sum(math.prod(x.shape) for x in candidate.operands) <= MOST and _fits(op.infer, candidate):
            return candidate
    return None


def _shrunk(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_shrunk, value))
    return value.bit_length() if isinstance(value, int) and value > 9 else value


def _fits(infer: Callable[..., TensorType], example: Example[Any]) -> bool:
    try:
        infer(example.attributes, example.operands)
    except RuleError:
        return False
    return True


def faulty(rule: Rule, fault: Callable[[list[Value | None]], Gradients]) -> Rule:
    """A rule with a fault in what it gives; where it gives no gradient of real numbers, zeros stand for it."""

    def function(g: Backward) -> Gradients:
        pairs = zip(g.operands, rule.function(g), strict=True)
        return fault([x.zeros() if dx is None and x.type.dtype == "f32" else dx for x, dx in pairs])

    return Rule(function)
