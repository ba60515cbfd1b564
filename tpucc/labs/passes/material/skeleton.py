"""Lab 2: passes. Write `fold_constants`, `fuse_bias` and `fuse_activation`; helpers of your own are welcome in this file."""

from dataclasses import replace

import numpy as np

from tpucc.ir import Constant
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import compute
from tpucc.ops.linear import LinearAttributes
from tpucc.passes.rewriter import Rewriter, as_columns, constant_of, is_pinned

LIMIT = {{limit}}  # elements of the largest constant that folding makes of smaller ones
FUNCTIONS = {{names}}  # the functions that a product takes in
SECOND = {{second}}  # whether a product that has a bias takes in another


def fold_constants(graph):
    """The graph, in which what is computed from constants alone is a constant.

    This one leaves the graph as it is, which is right and of no use.
    """
    rewriter = Rewriter(graph, "fold-constants")
    for node in rewriter:
        rewriter.put(node)
    return rewriter.build()


def fuse_bias(graph):
    """The graph, in which a constant that is added to a product is the product's bias."""
    rewriter = Rewriter(graph, "fuse-bias")
    for node in rewriter:
        rewriter.put(node)
    return rewriter.build()


def fuse_activation(graph):
    """The graph, in which a function that is applied to a product is the product's activation."""
    rewriter = Rewriter(graph, "fuse-activation")
    for node in rewriter:
        rewriter.put(node)
    return rewriter.build()
