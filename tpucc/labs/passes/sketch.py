"""Graphs made by hand, node by node; names say nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, Quantisation, Range, TensorType, f32
from tpucc.labs.passes.rules import Rules
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.gradient import DEFAULTS, Value

ORIGIN = Origin(made_by="lab")
PINNED = Quantisation(0.0625, 3)


class Sketch:
    """A graph that grows. Each method returns the new value; `rows` and `columns` are sizes of the model's input `x`."""

    def __init__(self, draw: Random, rules: Rules) -> None:
        self.draw, self.rules = draw, rules
        self.rows, self.columns = draw.randrange(2, 5), draw.randrange(2, 5)
        self._numbers = draw.sample(range(100, 1000), 400)
        self._nodes: dict[str, Node] = {}
        self._outputs: list[Output] = []
        self.x = self._added("x", "input", (), NoAttributes(), f32(self.rows, self.columns))

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        """The result of an operator, by its rule."""
        given: Attributes = OPS[op].attributes(**attributes) if isinstance(attributes, Mapping) else attributes
        type_ = OPS[op].infer(given, [value.type for value in operands])
        return self._added(self._name(), op, tuple(value.name for value in operands), given, type_)

    def constant(self, value: Constant) -> Value:
        return self._added(self._name(), "constant", (), ConstantAttributes(value), f32(*value.shape))

    def numbers(self, *shape: int) -> Value:
        """A constant of eighths, none of which is 0."""
        generator = np.random.default_rng(self.draw.randrange(2**32))
        eighths = np.asarray(generator.integers(2, 16, shape) / 8 * generator.choice([-1, 1], shape), np.float32)
        return self.constant(Constant(eighths))

    def row(self, value: Value) -> Value:
        """A constant with a number for each column of a value."""
        return self.numbers(value.type.columns)

    def given(self) -> Value:
        """Something that depends on the input, of its shape."""
        return self.x.call("tanh") if self.draw.random() < 0.3 else self.x

    def product(self, columns: int = 0) -> Value:
        """A product of the input, or of something like it, with constant weights."""
        weights = self.numbers(self.columns, columns or self.draw.randrange(2, 6))
        return self.given() @ weights

    def with_bias(self) -> Value:
        """A product with constant weights and a bias."""
        weights = self.numbers(self.columns, 3)
        return self.given().call("linear", weights, self.numbers(3))

    def applied(self, name: str, value: Value) -> Value:
        """A function of a value, with a parameter that is drawn where it has one."""
        return value.call(name, **({"alpha": self.draw.randrange(1, 9) / 16} if hasattr(OPS[name].attributes(), "alpha") else {}))

    def function(self, value: Value) -> Value:
        """One of the functions that a product takes in."""
        return self.applied(self.draw.choice(self.rules.functions), value)

    def pinned(self, value: Value) -> Value:
        """The value, whose quantisation the source fixes."""
        return self._changed(value, value.type.with_quantisation(PINNED))

    def ranged(self, value: Value) -> Value:
        """The value, of which calibration has found the range."""
        return self._changed(value, value.type.with_range(Range(-self.draw.randrange(1, 9) / 2, self.draw.randrange(1, 9) / 4)))

    def output(self, value: Value) -> Value:
        self._outputs.append(Output(f"y{len(self._outputs)}", value.name))
        return value

    def graph(self) -> Graph:
        return Graph("lab2", tuple(self._nodes.values()), tuple(self._outputs))

    def _changed(self, value: Value, type_: TensorType) -> Value:
        self._nodes[value.name] = replace(self._nodes[value.name], type=type_)
        return Value(value.name, type_, self)

    def _added(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> Value:
        self._nodes[name] = Node(name, op, operands, attributes, type_, ORIGIN)
        return Value(name, type_, self)

    def _name(self) -> str:
        return f"v{self._numbers.pop()}"
