"""Gradients: what an operator says of how a change of its result goes back to its operands.

A *gradient* of a value is the derivative of the loss with respect to each of its elements, so it has that value's shape. An operator's
rule gets the gradient of its result and gives those of its operands, as nodes of the same graph: ordinary operators, which print, run and
are compiled like all others. The rules are those of reverse mode (Griewank and Walther, Evaluating Derivatives, chapter 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tpucc.ir import Attributes, Constant, TensorType

DEFAULTS: Mapping[str, Any] = {}
"""No attributes: each that a call doesn't give has the operator's default."""


class Builder(Protocol):
    """Makes nodes: what a rule needs of the pass that calls it."""

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        """The result of an operator, whose own rule gives the type. `attributes` are its attributes, or those that aren't its defaults."""
        ...

    def constant(self, value: Constant) -> Value: ...


UNKNOWN = "the numbers of a value aren't there yet when a rule runs"
"""The beginning of the errors about `==` and `if` on a value."""


@dataclass(frozen=True, slots=True)
class Value:
    """A node's result in the hands of a rule, with the arithmetic of the language: `dy * b`, `dy @ w.transposed()`, `2.0 * x`.

    Nothing is computed: each call adds a node to the graph that the builder makes, and numbers become float32 constants in it.
    `>`, `<`, `>=` and `<=` give masks, and `==` is an error.
    """

    name: str
    type: TensorType
    builder: Builder

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def call(self, op: str, *others: Value | float, **attributes: Any) -> Value:
        """`op(self, *others, **attributes)`."""
        return self.builder.call(op, (self, *map(self._value, others)), attributes)

    def __add__(self, other: Value | float) -> Value:
        return self.call("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.call("sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self.call("mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.call("div", other)

    def __radd__(self, other: float) -> Value:
        return self._value(other).call("add", self)

    def __rsub__(self, other: float) -> Value:
        return self._value(other).call("sub", self)

    def __rmul__(self, other: float) -> Value:
        return self._value(other).call("mul", self)

    def __rtruediv__(self, other: float) -> Value:
        return self._value(other).call("div", self)

    def __neg__(self) -> Value:
        return self * -1.0

    def __matmul__(self, other: Value) -> Value:
        return self.call("matmul", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.call("greater", other)

    def __lt__(self, other: Value | float) -> Value:
        return self.call("less", other)

    def __ge__(self, other: Value | float) -> Value:
        return self.call("greater_equal", other)

    def __le__(self, other: Value | float) -> Value:
        return self.call("less_equal", other)

    def __eq__(self, other: object) -> bool:
        raise TypeError(f'{UNKNOWN}: instead of v == w write v.call("equal", w), and instead of v != w v.call("not_equal", w)')

    def __bool__(self) -> bool:
        raise TypeError(f'{UNKNOWN}: instead of `if`, `and`, `or` and `not` write mask.call("where", v, w)')

    def reshape(self, *shape: int) -> Value:
        return self if shape == self.shape else self.call("reshape", shape=shape)

    def transposed(self, *perm: int) -> Value:
        """The axes in this order; without one, in the reverse order."""
        return self.call("transpose", perm=perm or tuple(range(self.type.rank))[::-1])

    def sum(self, axis: int | tuple[int, ...], keepdims: bool = False) -> Value:
        """The sum over axes; over none of them the value itself."""
        return self if axis == () else self.call("sum", axis=axis, keepdims=keepdims)

    def summed_to(self, shape: tuple[int, ...]) -> Value:
        """The opposite of `repeated_to`: this value summed over each axis along which NumPy's broadcasting repeats a value of `shape` to
        have this one's shape. The result has `shape`."""
        # lab 10 begin: sum over the axes that broadcasting has repeated
        lead = self.type.rank - len(shape)
        repeated = tuple(a for a, size in enumerate(self.shape) if a < lead or (shape[a - lead] == 1 and size != 1))
        return self.sum(repeated).reshape(*shape)
        # lab 10 end

    def repeated_to(self, shape: tuple[int, ...]) -> Value:
        """The value repeated to a shape by NumPy's broadcasting."""
        return self if shape == self.shape else self.call("broadcast", shape=shape)

    def zeros(self) -> Value:
        """Zeros of the same shape, in float32 whatever this value's type."""
        return self.builder.call("zeros", (), {"shape": self.shape})

    def _value(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.builder.constant(Constant(np.asarray(other, np.float32)))


@dataclass(frozen=True, slots=True)
class Backward:
    """A node as its rule sees it: attributes, operands, result, and `dy`, the gradient of the result.

    `wanted` says of each operand whether anybody asks for its gradient; a rule may spare work by it, and needn't.
    """

    attributes: Any
    operands: tuple[Value, ...]
    result: Value
    dy: Value
    wanted: tuple[bool, ...]


Gradients = Sequence[Value | None]
"""One for each operand, in order; see `Rule` for None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A function that gives the gradient of each operand, of that operand's shape. None stands for a gradient of zeros, of an operand whose
    small changes change nothing (indices, or what a function in steps gets), and for one that isn't wanted."""

    function: Callable[[Backward], Gradients]


@dataclass(frozen=True, slots=True)
class Stops:
    """The operator has no derivative that is of use: training through it is an error that says `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Nobody has written a rule, and `why` says why: mostly, the operator is only made after differentiation. Training through one that
    the source calls is an error that says `why`."""

    why: str


Gradient = Rule | Stops | Missing

LEAF = Rule(lambda _: ())
"""The rule of what has no operands."""
NO_GRADIENT = Rule(lambda g: (None,) * len(g.operands))
"""The rule of functions in steps: where they have a derivative it is 0, so that nothing goes back through them."""
