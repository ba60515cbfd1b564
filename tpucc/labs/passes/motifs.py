"""Parts of graphs: each has something for a pass to do, or something that looks like it and must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from tpucc.ir import Graph
from tpucc.labs.passes.rules import Rules
from tpucc.labs.passes.sketch import Sketch
from tpucc.ops.full import FullAttributes
from tpucc.ops.gradient import Value

Motif = Callable[[Sketch], Value]
"""Adds nodes to a sketch, and returns the value that becomes an output."""


def of_product(rest: Callable[[Sketch, Value], Value]) -> Motif:
    """What is made of a product with constant weights."""
    return lambda sketch: rest(sketch, sketch.product())


def of_sum(rest: Callable[[Sketch, Value], Value]) -> Motif:
    """What is made of the sum of such a product and a constant row."""
    return of_product(lambda sketch, product: rest(sketch, product + sketch.row(product)))


CONSTANTS: Mapping[str, Motif] = {
    # a few operators on constants, the last of which meets the input
    "folds": lambda s: s.x * (s.numbers(s.columns) + s.numbers(s.columns)).call(s.draw.choice(("mul", "sub")), s.numbers(1, s.columns)),
    "weights that the source computes": lambda s: s.x @ s.numbers(3, s.columns).transposed().call("tanh"),
    "an operator without operands": lambda s: s.x + s.call("full", (), FullAttributes((s.columns,), 0.5)) * s.numbers(),
    "an output that depends on no input": lambda s: s.numbers(2, 3) @ s.numbers(3, 2),
    "a constant that something else reads": lambda s: _shared(s, s.numbers(s.columns)),
    # sums with the input stay, in whatever order they are written
    "partly": lambda s: (s.numbers(s.columns) + s.x) + s.numbers(s.columns).call("relu"),
    "as many elements as the limit": lambda s: s.numbers(s.rules.limit // 2, 1) * s.numbers(2),
    # the result stays, and so does what reads it; its operands are folded
    "more elements": lambda s: ((s.numbers(s.rules.limit // 2 + 1, 1) + s.numbers(1)) * s.numbers(2)).call("tanh"),
    "no larger than its operands": lambda s: s.numbers(s.rules.limit // 2 + 1, 2) + s.numbers(2),
    # a constant whose quantisation is fixed is read as it is
    "a pinned constant": lambda s: s.x * (s.pinned(s.numbers(s.columns)) + s.numbers(s.columns).call("relu")),
    "a pinned result": lambda s: s.x - s.pinned(s.numbers(s.columns) + s.numbers(1).call("tanh")).call("relu"),
}


def _shared(sketch: Sketch, value: Value) -> Value:
    twice = value + value
    return (sketch.x + value) * twice


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
    "no constant weights": lambda s: _with_row(s, s.x @ s.x.transposed()),
    "a pinned product": of_product(lambda s, p: s.pinned(p) + s.row(p)),
    "a pinned bias": of_product(lambda s, p: p + s.pinned(s.row(p))),
    "pinned weights": lambda s: _less_row(s, s.x @ s.pinned(s.numbers(s.columns, 3))),
    # the sum is fused, and keeps its quantisation
    "a pinned sum": of_sum(lambda s, total: s.pinned(total)),
}


def _with_row(sketch: Sketch, value: Value) -> Value:
    return value + sketch.row(value)


def _less_row(sketch: Sketch, value: Value) -> Value:
    return value - sketch.row(value)


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
    "shared by a function": lambda s: _beside(s, s.with_bias()),
    "read by two": of_product(lambda s, p: p.call("relu") * s.function(p)),
    "an output before": of_product(lambda s, p: s.function(s.output(p))),
    "pinned before": lambda s: s.function(s.pinned(s.with_bias())),
    # the function is fused, and keeps its quantisation
    "pinned after": lambda s: s.pinned(s.function(s.with_bias())),
    "after a sum with no constant": lambda s: s.function(s.product(s.columns) + s.x),
    "without constant weights": lambda s: s.function(s.x @ s.x.transposed()),
}


def _beside(sketch: Sketch, value: Value) -> Value:
    return sketch.function(value) + value


MOTIFS: Mapping[str, Motif] = {**CONSTANTS, **BIASES, **ACTIVATIONS}


def graphs(draw: Random, rules: Rules, plain: str, motifs: Sequence[str]) -> Iterator[Graph]:
    """A graph for each motif by its name, beside one with plain work, in either order: who does nothing is never right."""
    for motif in motifs:
        sketch = Sketch(draw, rules)
        for part in draw.sample((plain, motif), 2):
            sketch.output(MOTIFS[part](sketch))
        yield sketch.graph()
