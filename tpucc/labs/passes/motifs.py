"""Parts of graphs: each has something for a pass to do, or something that looks like it and must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, Quantisation, Range, TensorType, f32
from tpucc.labs.passes.comparing import Rules
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.full import FullAttributes
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

    def given_row(self) -> Value:
        """Another input of the model: a number for each of three columns."""
        return self._added(self._name(), "input", (), NoAttributes(), f32(3))

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


Motif = Callable[[Sketch], Value]
"""Adds nodes to a sketch, and returns the value that becomes an output."""


def of(value: Motif, rest: Callable[[Sketch, Value], Value]) -> Motif:
    """What is made of a value."""
    return lambda sketch: rest(sketch, value(sketch))


def of_product(rest: Callable[[Sketch, Value], Value]) -> Motif:
    """What is made of a product with constant weights."""
    return of(Sketch.product, rest)


def of_sum(rest: Callable[[Sketch, Value], Value]) -> Motif:
    """What is made of the sum of such a product and a constant row."""
    return of_product(lambda sketch, product: rest(sketch, product + sketch.row(product)))


CONSTANTS: Mapping[str, Motif] = {
    # a few operators on constants, the last of which meets the input
    "folds": lambda s: s.x * (s.numbers(s.columns) + s.numbers(s.columns)).call(s.draw.choice(("mul", "sub")), s.numbers(1, s.columns)),
    "weights that the source computes": lambda s: s.x @ s.numbers(3, s.columns).transposed().call("tanh"),
    "an operator without operands": lambda s: s.x + s.call("full", (), FullAttributes((s.columns,), 0.5)) * s.numbers(),
    "an output that depends on no input": lambda s: s.numbers(2, 3) @ s.numbers(3, 2),
    "a constant that something else reads": of(lambda s: s.numbers(s.columns), lambda s, value: _shared(s.x, value)),
    # sums with the input stay, in whatever order they are written
    "partly": lambda s: (s.numbers(s.columns) + s.x) + s.numbers(s.columns).call("relu"),
    "as many elements as the limit": lambda s: s.numbers(s.rules.limit // 2, 1) * s.numbers(2),
    # the result stays, and so does what reads it; its operands are folded
    "more elements": lambda s: ((s.numbers(s.rules.limit // 2 + 1, 1) + s.numbers(1)) * s.numbers(2)).call("tanh"),
    "no larger than its operands": lambda s: s.numbers(s.rules.limit // 2 + 1, 2) + s.numbers(2),
    # operands that aren't there have no size
    "no operands, more elements": lambda s: s.call("full", (), FullAttributes((s.rules.limit + 1,), 0.5)).call("tanh"),
    "as large as two uses": lambda s: s.call("concat", [s.numbers(s.rules.limit // 2 + 1)] * 2),
    # a constant whose quantisation is fixed is read as it is
    "a pinned constant": lambda s: s.x * (s.pinned(s.numbers(s.columns)) + s.numbers(s.columns).call("relu")),
    "a pinned result": lambda s: s.x - s.pinned(s.numbers(s.columns) + s.numbers(1).call("tanh")).call("relu"),
}


def _shared(x: Value, value: Value) -> Value:
    twice = value + value
    return (x + value) * twice


BIASES: Mapping[str, Motif] = {
    "right": of_sum(lambda s, total: total),
    "left": of_product(lambda s, p: s.row(p) + p),
    "subtracted": of_product(lambda s, p: p - s.row(p)),
    "subtracted from": of_product(lambda s, p: s.row(p) - p),
    "a shared product": of_product(lambda s, p: (p + s.row(p)) * p),
    "a product that is an output": of_product(lambda s, p: s.output(p) + s.row(p)),
    "added to itself": of_product(lambda s, p: (p + p) + s.row(p)),
    "a second bias": of_sum(lambda s, total: total.call(s.draw.choice(("add", "sub")), s.row(total))),
    "a second bias of a shared sum": of_sum(lambda s, total: (s.row(total) + total) * total),
    # what is added to a product that has its activation comes after it
    "after an activation": lambda s: s.x.call("linear", s.numbers(s.columns, 3), s.numbers(3), activation="relu") + s.numbers(3),
    "a scalar": of_product(lambda s, p: p + s.numbers(*[1] * s.draw.randrange(3))),
    "a row of rank two": of_product(lambda s, p: p - s.numbers(1, p.type.columns)),
    "a value each": of_product(lambda s, p: p + s.numbers(*p.shape)),
    # a value for each row, of which there are as many as columns
    "a column": lambda s: s.product(s.rows) + s.numbers(s.rows, 1),
    "a sum of higher rank": of_product(lambda s, p: p + s.numbers(1, 1, p.type.columns)),
    "no constant": lambda s: s.product(s.columns) + s.x.call("tanh"),
    "no constant weights": of(lambda s: s.x @ s.x.transposed(), lambda s, p: p + s.row(p)),
    "a pinned product": of_product(lambda s, p: s.pinned(p) + s.row(p)),
    "a pinned bias": of_product(lambda s, p: p + s.pinned(s.row(p))),
    "pinned weights": of(lambda s: s.x @ s.pinned(s.numbers(s.columns, 3)), lambda s, p: p - s.row(p)),
    # the sum is fused, and keeps its quantisation
    "a pinned sum": of_sum(lambda s, total: s.pinned(total)),
}


ACTIVATIONS: Mapping[str, Motif] = {
    "activated": of_product(lambda s, p: s.function(p)),
    "a parameter": of_product(lambda s, p: s.applied("leaky_relu", p)),
    # the range of the product is known, which a table needs
    "a range": lambda s: s.applied(s.draw.choice([name for name in s.rules.functions if name != "relu"]), s.ranged(s.product())),
    "after a bias": lambda s: s.function(s.with_bias()),
    # the first is fused, the second stays
    "two functions": lambda s: s.function(s.function(s.with_bias())),
    "another function": lambda s: s.applied(s.draw.choice(s.rules.others), s.product()),
    "softmax": of_product(lambda s, p: p.call("softmax")),
    "shared by a function": of(Sketch.with_bias, lambda s, total: s.function(total) + total),
    "read by two": of_product(lambda s, p: p.call("relu") * s.function(p)),
    "an output before": of_product(lambda s, p: s.function(s.output(p))),
    "pinned before": lambda s: s.function(s.pinned(s.with_bias())),
    # the function is fused, and keeps its quantisation
    "pinned after": lambda s: s.pinned(s.function(s.with_bias())),
    "after a sum with no constant": lambda s: s.function(s.product(s.columns) + s.x),
    "without constant weights": lambda s: s.function(s.x @ s.x.transposed()),
    "without a constant bias": lambda s: s.function(s.x.call("linear", s.numbers(s.columns, 3), s.given_row())),
}


MOTIFS: Mapping[str, Motif] = {**CONSTANTS, **BIASES, **ACTIVATIONS}


def graphs(draw: Random, rules: Rules, plain: str, motifs: Sequence[str]) -> Iterator[Graph]:
    """A graph for each motif by its name, beside one with plain work, in either order: who does nothing is never right."""
    for motif in motifs:
        sketch = Sketch(draw, rules)
        for part in draw.sample((plain, motif), 2):
            sketch.output(MOTIFS[part](sketch))
        yield sketch.graph()
