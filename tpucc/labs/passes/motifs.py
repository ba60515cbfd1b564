"""Parts of graphs: each has something for a pass to do, or something that looks like it and must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from tpucc.ir import Graph, Node
from tpucc.labs.passes.rules import Rules
from tpucc.labs.passes.sketch import Sketch
from tpucc.ops import OPS
from tpucc.ops.full import FullAttributes
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.transpose import TransposeAttributes

Motif = Callable[[Sketch, Rules], Node]
"""Adds nodes to a sketch, and returns the one that becomes an output."""


# Constants to fold.


def folds(sketch: Sketch, _: Rules) -> Node:
    """A few operators on constants, the last of which meets the input."""
    n = sketch.columns
    value = sketch.op("add", sketch.constant(n), sketch.constant(n))
    value = sketch.op(sketch.draw.choice(("mul", "sub")), value, sketch.constant(1, n))
    return sketch.op("mul", sketch.x, value)


def weights(sketch: Sketch, _: Rules) -> Node:
    """Weights that the source computes."""
    turned = sketch.op("transpose", sketch.constant(3, sketch.columns), attributes=TransposeAttributes((1, 0)))
    return sketch.op("matmul", sketch.x, sketch.op("tanh", turned))


def from_nothing(sketch: Sketch, _: Rules) -> Node:
    """An operator without operands."""
    made = sketch.op("full", attributes=FullAttributes((sketch.columns,), 0.5))
    return sketch.op("add", sketch.x, sketch.op("mul", made, sketch.constant()))


def whole_output(sketch: Sketch, _: Rules) -> Node:
    """An output that depends on no input."""
    return sketch.op("matmul", sketch.constant(2, 3), sketch.constant(3, 2))


def shared_constant(sketch: Sketch, _: Rules) -> Node:
    """A constant that something else reads, too."""
    value = sketch.constant(sketch.columns)
    twice = sketch.op("add", value, value)
    return sketch.op("mul", sketch.op("add", sketch.x, value), twice)


def partly(sketch: Sketch, _: Rules) -> Node:
    """Sums with the input stay, in whatever order they are written."""
    inner = sketch.op("add", sketch.constant(sketch.columns), sketch.x)
    return sketch.op("add", inner, sketch.op("relu", sketch.constant(sketch.columns)))


def at_the_limit(sketch: Sketch, rules: Rules) -> Node:
    """A result with as many elements as the limit allows."""
    return sketch.op("mul", sketch.constant(rules.limit // 2, 1), sketch.constant(2))


def beyond_the_limit(sketch: Sketch, rules: Rules) -> Node:
    """A result with more, which stays, and so does what reads it; its operands are folded."""
    column = sketch.op("add", sketch.constant(rules.limit // 2 + 1, 1), sketch.constant(1))
    return sketch.op("tanh", sketch.op("mul", column, sketch.constant(2)))


def large_already(sketch: Sketch, rules: Rules) -> Node:
    """A result beyond the limit that isn't larger than its operands."""
    return sketch.op("add", sketch.constant(rules.limit // 2 + 1, 2), sketch.constant(2))


def pinned_constant(sketch: Sketch, _: Rules) -> Node:
    """A constant whose quantisation is fixed, which is read as it is."""
    pinned = sketch.pinned(sketch.constant(sketch.columns))
    return sketch.op("mul", sketch.x, sketch.op("add", pinned, sketch.op("relu", sketch.constant(sketch.columns))))


def pinned_result(sketch: Sketch, _: Rules) -> Node:
    """A value of constants whose quantisation is fixed."""
    made = sketch.op("add", sketch.constant(sketch.columns), sketch.op("tanh", sketch.constant(1)))
    return sketch.op("sub", sketch.x, sketch.op("relu", sketch.pinned(made)))


# Biases.


def row(sketch: Sketch, product: Node) -> Node:
    """A constant with a value for each column."""
    return sketch.constant(product.type.columns)


def right(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("add", product, row(sketch, product))


def left(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("add", row(sketch, product), product)


def subtracted(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("sub", product, row(sketch, product))


def subtracted_from(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("sub", row(sketch, product), product)


def shared_product(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("mul", sketch.op("add", product, row(sketch, product)), product)


def product_is_output(sketch: Sketch, _: Rules) -> Node:
    product = sketch.output(sketch.product())
    return sketch.op("add", product, row(sketch, product))


def added_to_itself(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("add", sketch.op("add", product, product), row(sketch, product))


def second_bias(sketch: Sketch, rules: Rules) -> Node:
    total = right(sketch, rules)
    return sketch.op(sketch.draw.choice(("add", "sub")), total, row(sketch, total))


def second_after_shared(sketch: Sketch, rules: Rules) -> Node:
    total = right(sketch, rules)
    return sketch.op("mul", sketch.op("add", row(sketch, total), total), total)


def after_activation(sketch: Sketch, _: Rules) -> Node:
    """A product that has its activation already: what is added comes after it."""
    weights = sketch.constant(sketch.columns, 3)
    product = sketch.op("linear", sketch.x, weights, sketch.constant(3), attributes=LinearAttributes("relu"))
    return sketch.op("add", product, sketch.constant(3))


def scalar(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("add", product, sketch.constant(*[1] * sketch.draw.randrange(3)))


def row_of_rank_two(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("sub", product, sketch.constant(1, product.type.columns))


def a_value_each(sketch: Sketch, _: Rules) -> Node:
    """A constant with other values in each row."""
    product = sketch.product()
    return sketch.op("add", product, sketch.constant(*product.type.shape))


def a_column(sketch: Sketch, _: Rules) -> Node:
    """A constant with a value for each row, of which there are as many as columns."""
    product = sketch.product(sketch.rows)
    return sketch.op("add", product, sketch.constant(sketch.rows, 1))


def grows(sketch: Sketch, _: Rules) -> Node:
    """A sum of higher rank than the product."""
    product = sketch.product()
    return sketch.op("add", product, sketch.constant(1, 1, product.type.columns))


def no_constant(sketch: Sketch, _: Rules) -> Node:
    """Something is added that depends on the input."""
    product = sketch.product(sketch.columns)
    return sketch.op("add", product, sketch.op("tanh", sketch.x))


def no_weights(sketch: Sketch, _: Rules) -> Node:
    """A product of two values that depend on the input."""
    turned = sketch.op("transpose", sketch.x, attributes=TransposeAttributes((1, 0)))
    product = sketch.op("matmul", sketch.x, turned)
    return sketch.op("add", product, row(sketch, product))


def pinned_product(sketch: Sketch, _: Rules) -> Node:
    product = sketch.pinned(sketch.product())
    return sketch.op("add", product, row(sketch, product))


def pinned_bias(sketch: Sketch, _: Rules) -> Node:
    product = sketch.product()
    return sketch.op("add", product, sketch.pinned(row(sketch, product)))


def pinned_weights(sketch: Sketch, _: Rules) -> Node:
    product = sketch.op("matmul", sketch.x, sketch.pinned(sketch.constant(sketch.columns, 3)))
    return sketch.op("sub", product, row(sketch, product))


def pinned_sum(sketch: Sketch, _: Rules) -> Node:
    """The sum is fused, and keeps its quantisation."""
    product = sketch.product()
    return sketch.pinned(sketch.op("add", product, row(sketch, product)))


# Activations.


def _applied(sketch: Sketch, name: str, node: Node) -> Node:
    """A function with attributes of its own, where it has any."""
    attributes = OPS[name].attributes
    fields = attributes.__dataclass_fields__
    given = attributes(sketch.draw.randrange(1, 9) / 16) if "alpha" in fields else attributes()
    return sketch.op(name, node, attributes=given)


def _function(sketch: Sketch, rules: Rules, node: Node) -> Node:
    return _applied(sketch, sketch.draw.choice(rules.functions), node)


def activated(sketch: Sketch, rules: Rules) -> Node:
    return _function(sketch, rules, sketch.product())


def with_parameter(sketch: Sketch, _: Rules) -> Node:
    return _applied(sketch, "leaky_relu", sketch.product())


def with_range(sketch: Sketch, rules: Rules) -> Node:
    """The range of the product is known, which a table needs."""
    return _applied(sketch, sketch.draw.choice([name for name in rules.functions if name != "relu"]), sketch.ranged(sketch.product()))


def linear(sketch: Sketch) -> Node:
    """A product with a bias."""
    weights = sketch.constant(sketch.columns, 3)
    return sketch.op("linear", sketch.value(), weights, sketch.constant(3))


def after_bias(sketch: Sketch, rules: Rules) -> Node:
    return _function(sketch, rules, linear(sketch))


def two_functions(sketch: Sketch, rules: Rules) -> Node:
    """The first is fused, the second stays."""
    return _function(sketch, rules, _function(sketch, rules, linear(sketch)))


def other_function(sketch: Sketch, rules: Rules) -> Node:
    return _applied(sketch, sketch.draw.choice(rules.others), sketch.product())


def softmax(sketch: Sketch, _: Rules) -> Node:
    return sketch.op("softmax", sketch.product())


def shared_by_function(sketch: Sketch, rules: Rules) -> Node:
    product = linear(sketch)
    return sketch.op("add", _function(sketch, rules, product), product)


def read_by_two(sketch: Sketch, rules: Rules) -> Node:
    product = sketch.product()
    return sketch.op("mul", sketch.op("relu", product), _function(sketch, rules, product))


def output_before(sketch: Sketch, rules: Rules) -> Node:
    return _function(sketch, rules, sketch.output(sketch.product()))


def pinned_before(sketch: Sketch, rules: Rules) -> Node:
    return _function(sketch, rules, sketch.pinned(linear(sketch)))


def pinned_after(sketch: Sketch, rules: Rules) -> Node:
    """The function is fused, and keeps its quantisation."""
    return sketch.pinned(_function(sketch, rules, linear(sketch)))


def after_sum(sketch: Sketch, rules: Rules) -> Node:
    """A function of a sum with something that is no constant."""
    return _function(sketch, rules, sketch.op("add", sketch.product(sketch.columns), sketch.x))


def without_weights(sketch: Sketch, rules: Rules) -> Node:
    turned = sketch.op("transpose", sketch.x, attributes=TransposeAttributes((1, 0)))
    return _function(sketch, rules, sketch.op("matmul", sketch.x, turned))


def graphs(draw: Random, rules: Rules, plain: Motif, motifs: Sequence[Motif]) -> Iterator[Graph]:
    """A graph for each motif, beside one with plain work, in either order: who does nothing is never right."""
    for motif in motifs:
        sketch = Sketch(draw)
        for part in draw.sample((plain, motif), 2):
            sketch.output(part(sketch, rules))
        yield sketch.graph()
