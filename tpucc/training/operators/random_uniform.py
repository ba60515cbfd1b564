"""random_uniform: random numbers that are a function of their place. Internal: training makes it of dropout."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Stops
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.rules import require_integer, require_shape
from tpucc.training.operators import training_operator
from tpucc.training.random_numbers import uniform

DRAW = TensorType("i32", (3,))
"""The seed, the step, and the number of the first item."""


@dataclass(frozen=True, slots=True)
class RandomUniformAttributes:
    """`use` tells the draws of one step apart; `shape`: the sizes, the first of which counts items."""

    use: int
    shape: tuple[int, ...]


def infer(attributes: RandomUniformAttributes, types: Types) -> TensorType:
    if types[0].plain() != DRAW:
        raise RuleError("E0305", f"expected {DRAW}: seed, step and first item; found {types[0].brief}", about=(0,))
    require_integer(attributes.use, "use", 0)
    return f32(*require_shape(attributes.shape))


def reference(attributes: RandomUniformAttributes, operands: Arrays) -> Array:
    """Element i of item n has the counter (n · elements an item + i, use), with the key (seed, step).

    So an item's numbers are the same whatever the part of the batch that it is drawn with.
    """
    seed, step, first = operands[0].astype(np.uint32).tolist()
    shape = require_shape(attributes.shape)
    return uniform((seed, step), attributes.use, first * math.prod(shape[1:]), math.prod(shape)).reshape(shape)


def _batch(case: Case) -> Division:
    raise MixedError(f"{case.node.op} gets one seed for all items")


OP = training_operator(
    name="random_uniform",
    summary="random numbers of [0, 1), each a function of seed, step, use and place",
    documentation=(
        "`draw` is i32[3]: seed, step and the number of the first item. The numbers are Threefry's (Threefry-2x32, 20 rounds): nothing is "
        "remembered from one draw to the next, and cores that draw parts of a batch get the numbers of the whole. JAX: random.uniform. "
        "ONNX: RandomUniform."
    ),
    operands=(Operand("draw"),),
    attributes=RandomUniformAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device has no random numbers"),
    facts=whole(batch=_batch),
    gradient=Stops("random numbers depend on nothing that training changes"),
    examples=(
        Example("one whole tile", RandomUniformAttributes(0, (8, 256)), (DRAW,)),
        Example("ragged", RandomUniformAttributes(3, (3, 5, 257)), (DRAW,)),
        Example("a scalar", RandomUniformAttributes(1, ()), (DRAW,)),
    ),
)
