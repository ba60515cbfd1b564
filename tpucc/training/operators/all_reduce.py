"""all_reduce: the mean of a value over the parts of a batch. Internal: training on several cores makes it.

Each core has its own value of the operand, from its part of the examples; the result is the same on all of them. The cores exchange their
values by recursive halving, whose order of additions is a tree (`tpucc.floating.all_reduce`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Missing
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, Operand, Types
from tpucc.ops.rules import require_f32, require_integer
from tpucc.training.operators import training_operator


@dataclass(frozen=True, slots=True)
class AllReduceAttributes:
    """`parts`: into how many the batch is divided."""

    parts: int


def infer(attributes: AllReduceAttributes, types: Types) -> TensorType:
    require_f32(types)
    require_integer(attributes.parts, "parts", 1)
    return types[0].plain()


def reference(_: AllReduceAttributes, operands: Arrays) -> Array:
    """The mean of equal values: evaluated by itself, a graph stands for a batch whose parts are all the same."""
    return operands[0]


def _batch(case: Case) -> Division:
    raise MixedError("all_reduce is the mean over the parts of a batch")


OP = training_operator(
    name="all_reduce",
    summary="the mean over the parts of a batch, the same on every core",
    documentation="Made by training on several cores, or in several microbatches. TensorFlow: CrossShardOptimizer. JAX: lax.pmean.",
    operands=(Operand("x"),),
    attributes=AllReduceAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the machine's cores don't talk to each other"),
    facts=whole(batch=_batch),
    gradient=Missing("training differentiates before it reduces"),
    examples=(
        Example("one whole tile", AllReduceAttributes(8), (f32(256, 256),)),
        Example("ragged", AllReduceAttributes(2), (f32(3, 257),)),
    ),
)
