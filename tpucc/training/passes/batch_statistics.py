"""Batch normalisation in training: with the mean and variance of its batch (Ioffe and Szegedy, arXiv 1502.03167, algorithm 1).

The averages that inference uses move towards the batch's statistics at each step: `momentum * average + (1 - momentum) * statistic`, as in
Keras, where the variance is the mean of the squares (not divided by one less, as in their algorithm 2).
"""

from __future__ import annotations

from dataclasses import replace

from tpucc.diagnostics import CompileError, Diagnostic
from tpucc.ir import Graph, Node, Output
from tpucc.ops.batch_norm import BatchNormAttributes
from tpucc.ops.gradient import Value
from tpucc.ops.names import add
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.build import Within
from tpucc.training.passes.names import NEXT


@graph_pass("batch-statistics", "computes the statistics of batch normalisation, and moves their averages", level=0)
def batch_statistics(graph: Graph, context: Context, *, one_pass: bool = False) -> Graph:
    """Rewrites `batch_norm(x, gamma, beta, mean, variance)` whose mean and variance are states; these get outputs `next NODE`.

    Where both are `fixed` weights, they are used as they are, and nothing is rewritten.

    Raises `CompileError` E0941 where mean or variance is computed, or only one of them is fixed.
    """
    rewriter = Rewriter(graph, "batch-statistics")
    moved: dict[str, str] = {}
    for node in rewriter:
        if isinstance(node.attributes, BatchNormAttributes) and _moves(rewriter, node):
            _normalise(rewriter, node, node.attributes, moved, one_pass)
        else:
            rewriter.put(node)
    outputs = tuple(Output(NEXT + name, value) for name, value in moved.items())
    rewriter.graph = replace(graph, outputs=(*graph.outputs, *outputs))
    return rewriter.build() if outputs else graph


def _moves(rewriter: Rewriter, node: Node) -> bool:
    kinds = [type(rewriter.nodes[name].attributes) for name in node.operands[3:]]
    if kinds == [WeightAttributes, WeightAttributes]:
        return False
    if kinds != [StateAttributes, StateAttributes]:
        mend = "declare both with `weight`, and both `fixed` if they shall stay as they are"
        message = "in training, the mean and the variance of batch_norm are weights, which it moves"
        raise CompileError(Diagnostic("E0941", message, node.origin.trail(), (mend,)))
    return True


def _normalise(rewriter: Rewriter, node: Node, attributes: BatchNormAttributes, moved: dict[str, str], one_pass: bool) -> None:
    within = Within(rewriter, node)
    x, gamma, beta, mean, variance = map(within.value, node.operands)
    rows = tuple(range(x.type.rank - 1))
    batch_mean = x.call("mean", axis=rows)
    centred = x - batch_mean
    if one_pass:
        batch_variance = ((x * x).call("mean", axis=rows) - batch_mean * batch_mean).call("maximum", 0.0)
    else:
        batch_variance = (centred * centred).call("mean", axis=rows)
    scaled = centred / (batch_variance + attributes.epsilon).call("sqrt") * gamma
    rewriter.put(rewriter.in_place(node, add(rewriter.nodes[scaled.name], rewriter.nodes[beta.name])))
    for average, statistic in ((mean, batch_mean), (variance, batch_variance)):
        before = within.value(moved.get(average.name, average.name))
        moved[average.name] = _average(before, statistic, attributes.momentum).name


def _average(before: Value, statistic: Value, momentum: float) -> Value:
    return before * momentum + statistic * (1.0 - momentum)
