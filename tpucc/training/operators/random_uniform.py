"""random_uniform: random numbers that are a function of their place. Internal: training makes it of dropout."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Stops
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.rules import require_integer, require_shape
from tpucc.training.operators import training_operator

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


def defined(attributes: RandomUniformAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """An item's numbers are the same whatever the part of the batch that it is drawn with."""
    return arithmetic.uniform(operands[0], attributes.use, require_shape(attributes.shape))


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
    reference=in_plain(defined),
    legalisation=OnHost("the device has no random numbers"),
    facts=whole(batch=_batch),
    floats=Defined(defined),
    gradient=Stops("random numbers depend on nothing that training changes"),
    examples=(
        Example("one whole tile", RandomUniformAttributes(0, (8, 256)), (DRAW,)),
        Example("ragged", RandomUniformAttributes(3, (3, 5, 257)), (DRAW,)),
        Example("a scalar", RandomUniformAttributes(1, ()), (DRAW,)),
    ),
)
