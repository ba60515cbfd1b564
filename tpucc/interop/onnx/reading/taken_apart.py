"""What exporters take apart is put together again by rules: the logistic function, softplus, GELU, SiLU, hard swish, layer
normalisation. What changes nothing is left out: factors 1, terms 0, and what a first state of zeros leaves in the first step of a
recurrence.

Exporters, and the import itself, compute the product of such a state and weights. Then the first step is another one than the others, and
is written out: what is left of the state in it, `+ zeros` and `* zeros`, goes. Where the product is there, the first step is like the
others, and the state stays as their loop begins. x + 0 is x, but for the sign of a zero. x * 0 is 0 where x is finite, as in a program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.ops import names as op
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.full import FullAttributes
from tpucc.ops.opdef import Expression, Term
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.base import Context
from tpucc.passes.dead_code import live
from tpucc.passes.rewriter import Rewriter
from tpucc.passes.rules import Guarded, Match, Rule, Rules, Variable, called, rule, value, variable, view
from tpucc.target import load_target

CLOSE = 1e-4
"""The relative difference of a constant that is still meant: exporters round them."""
PAST_ONE = 17.0
"""From here on 1 + exp(-x) is 1 in float32, and log(1 + exp(x)) is x."""
_NUMBERS = count()


def recognised(graph: Graph) -> Graph:
    """The graph with these functions as one operator each, and without what changes nothing or is read by nothing."""
    context = Context(load_target("tpu_v1"))
    for rules in (Rules("taken-apart", *_gates(), *_layer_norms()), Rules("neutral", *_neutral())):
        graph = live(rules.run(graph, context))
    return graph.without_firings()


def number_of(node: Node) -> float | None:
    """The value of a constant of one element."""
    if isinstance(node.attributes, ConstantAttributes) and node.type.size == 1:
        return float(node.attributes.value.data.reshape(()))
    return None


def number(wanted: float) -> Variable:
    """A constant of one element that has about this value."""

    def holds(node: Node) -> bool:
        found = number_of(node)
        return found is not None and math.isclose(found, wanted, rel_tol=CLOSE)

    return variable(f"number {next(_NUMBERS)}", holds)


x, epsilon = value("x"), variable("epsilon", lambda node: bool(number_of(node)))
limit = variable("limit", lambda node: (number_of(node) or 0.0) >= PAST_ONE)


def _columns(name: str) -> Variable:
    """A weight or a number with one value a column of the node that reads it."""
    return Variable(
        name,
        lambda node, reader: isinstance(node.attributes, WeightAttributes | FullAttributes) and node.type.shape == reader.type.shape[-1:],
    )


def _negative(form: Term) -> Term:
    return op.mul(form, number(-1.0))


def _halved(gate: Term) -> Iterator[Term]:
    """x/2 times a gate, in the orders in which exporters multiply."""
    yield from (op.mul(op.mul(x, number(0.5)), gate), op.mul(x, op.mul(gate, number(0.5))), op.mul(op.mul(x, gate), number(0.5)))


def _gates() -> Iterator[Rule]:
    """Functions of each element."""
    softplus = op.add(op.maximum(x, number(0.0)), op.log(op.add(op.exp(_negative(op.abs(x))), number(1.0))))
    chosen = op.where(op.greater(x, limit), x, called("softplus", softplus))
    yield rule("softplus", chosen, lambda m: m.softplus, lambda m: m.softplus.type.shape == m.root.type.shape)
    yield rule("sigmoid", op.div(number(1.0), op.add(op.exp(_negative(x)), number(1.0))), lambda m: op.sigmoid(m.x))
    shifted = op.relu6(op.add(x, number(3.0)))
    yield rule("hard sigmoid", op.mul(shifted, number(1 / 6)), lambda m: op.hard_sigmoid(m.x))
    for swish in (op.mul(op.mul(x, shifted), number(1 / 6)), op.mul(op.mul(x, number(1 / 6)), shifted), op.mul(x, op.hard_sigmoid(x))):
        yield rule("hard swish", swish, lambda m: op.hard_swish(m.x))
    yield rule("SiLU", op.mul(x, op.sigmoid(x)), lambda m: op.silu(m.x))
    for gate in _halved(op.add(_error_function(), number(1.0))):
        yield rule("GELU", gate, lambda m: op.gelu(m.x))
    for cube in (op.mul(op.mul(op.mul(x, x), x), number(0.044715)), op.mul(op.mul(op.mul(x, number(0.044715)), x), x)):
        for gate in _halved(op.add(op.tanh(op.mul(op.add(x, cube), number(math.sqrt(2 / math.pi)))), number(1.0))):
            yield rule("GELU by tanh", gate, lambda m: op.gelu(m.x, approximate=True))


def _error_function() -> Term:
    """erf(x / √2), as the row of Erf makes it: 2 · op.gelu(y) / y - 1, where y, √2 times its operand, is x again."""
    y = called("y", op.mul(op.mul(x, number(math.sqrt(0.5))), number(math.sqrt(2))))
    share = op.mul(op.div(op.gelu(value("y")), value("y")), number(2.0))
    return op.where(op.equal(y, number(0.0)), number(0.0), op.sub(share, number(1.0)))


def _layer_norms() -> Iterator[Rule]:
    """Along the last axis: (x - mean) / root · gamma + beta, as of PyTorch, and x · s + (beta - mean · s), where s is gamma / root, as of
    TensorFlow. The variance is the mean of squares of x - mean, or that of x² less mean², as of Flax."""
    average, gamma, beta = _mean(x), _columns("gamma"), _columns("beta")
    apart = called("apart", op.sub(x, view(average)))
    by_squares = op.sub(_mean(op.mul(x, x)), op.mul(average, average))
    variances = (_mean(op.mul(apart, value("apart"))), op.maximum(by_squares, number(0.0)), by_squares)
    for variance in variances:
        root = op.sqrt(op.add(variance, epsilon))
        scale = called("scale", op.mul(view(op.div(number(1.0), root)), gamma))
        for normed in (
            op.add(op.mul(op.div(apart, view(root)), gamma), beta),
            op.add(op.mul(x, scale), op.add(op.mul(view(_negative(average)), value("scale")), beta)),
        ):
            yield rule("layer norm", normed, _layer_norm)


def _layer_norm(m: Match) -> Expression:
    """With the shortest epsilon that is this one in float32."""
    return op.layer_norm(m.x, m.gamma, m.beta, epsilon=float(str(np.float32(number_of(m.epsilon)))))


def _mean(form: Term) -> Term:
    """The mean along the last axis."""

    def is_last(node: Node, rewriter: Rewriter) -> bool:
        return op.mean.made(node) and getattr(node.attributes, "axis", None) in (-1, rewriter.operands(node)[0].type.rank - 1)

    return Guarded(op.mean(form), is_last)


def _neutral() -> Iterator[Rule]:
    """Factors and divisors 1, also where 1 has a shape, and terms 0. Zeros that have a shape may be a first state."""
    one = variable("one", lambda node: number_of(node) == 1 or (isinstance(node.attributes, FullAttributes) and node.attributes.value == 1))
    zero = variable("zero", lambda node: number_of(node) == 0)
    for same in (op.mul(x, one), op.div(x, one), op.add(x, zero), op.sub(x, zero)):
        yield rule("neutral", same, lambda m: m.x, lambda m: m.x.type.shape == m.root.type.shape)
