"""Lab 1: the operator `lag`. Write `Attributes`, `infer` and `reference`; helpers of your own are welcome in this file."""

from dataclasses import asdict, dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.opdef import RuleError


@dataclass(frozen=True)
class Attributes:
    """What a call says beside its operands. Give it `by` and `axis`, in this order, both `int`, with their defaults."""


def infer(attributes, types):
    """The type of `lag(a, b)`, or a RuleError.

    `types` are the types of a and b: `types[0].dtype` is "f32" or another data type, `types[0].shape` a tuple of sizes, and
    `types[0].rank` says how many; `types[0].brief` is the type as messages show it, such as `f32[2, 3]`. `attributes.by` and
    `attributes.axis` are what the call says. The result is a `TensorType`: `f32(2, 3)` makes f32[2, 3].
    """
    # of all errors only the first, and so far of operand a alone
    if types[0].dtype != "f32":
        raise RuleError("E0305", f"expected f32 values, found {types[0].brief}", about=(0,), help="dequantize it first")
    raise NotImplementedError("the rest of the rule")


def reference(attributes, operands):
    """The values of `lag(a, b)`: a float32 array of the shape that `infer` gives, from the float32 arrays a and b.

    Value i along the axis is {{formula}}.
    """
    raise NotImplementedError("the values")


# Given: the tests ask your operator through these three functions. Leave them as they are.


def defaults():
    """The attributes of a call that says nothing of them."""
    return asdict(Attributes())


def rule(attributes, types):
    """The type of a call as text, or the parts of the error."""
    try:
        return str(infer(Attributes(**attributes), types))
    except RuleError as error:
        return {"code": error.code, "message": error.message, "about": error.about, "help": error.help}


def value(attributes, operands):
    """The values of a call."""
    return reference(Attributes(**attributes), operands)
