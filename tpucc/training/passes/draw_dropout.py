"""Dropout becomes a product with a mask of random numbers (Srivastava et al., JMLR 15, 2014).

A value is dropped, that is set to 0, with the probability `rate`; the others are divided by `1 - rate`, so that the expected sum stays.
The random numbers are a function of the seed, the step, the example and the place in it. So they don't depend on how many cores share the
batch, or on the order in which anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from tpucc.ir import NoAttributes, TensorType
from tpucc.ops.names import dropout, mul
from tpucc.ops.names import input as input_
from tpucc.ops.opdef import Expression
from tpucc.passes.rules import Match, Rule, rule, rules_pass, value
from tpucc.training.operators.random_uniform import RandomUniformAttributes
from tpucc.training.passes.build import Within
from tpucc.training.passes.names import DRAW


@rules_pass("draw-dropout", "makes a product with random numbers of dropout", level=0)
def draw_dropout() -> Iterator[Rule]:
    """Rewrites `dropout(x, rate)` as `x * ((u >= rate) * (1 / (1 - rate)))`, with u uniform in 0…1.

    The n-th dropout of the graph draws the n-th sequence. With a rate of 0 it is x itself. The new input `draw` gives the seed, the step
    and the number of the first example.
    """
    sequences = count()
    yield rule("a dropout of nothing", dropout(value("x"), rate=0.0), lambda m: m.x)
    yield rule("a dropout", dropout(value("x")), lambda m: _masked(m, next(sequences)))


def _masked(m: Match, sequence: int) -> Expression:
    """The product with a mask, which is drawn from a sequence of random numbers."""
    draw_type, rate = TensorType("i32", (3,)), dropout.attributes_of(m.root).rate
    draw = m.rewriter.once(DRAW, lambda: m.rewriter.put(input_.node(DRAW, (), NoAttributes(), draw_type, m.root.origin)))
    within = Within(m.rewriter, m.root)
    uniform = within.call("random_uniform", (within.value(draw.name),), RandomUniformAttributes(sequence, m.root.type.shape))
    mask = (uniform >= rate) * (1.0 / (1.0 - rate))
    return mul(m.x, m.rewriter.nodes[mask.name])
