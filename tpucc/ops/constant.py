"""constant: a value that is known when compiling.

The language's `constant([[1.0, 2.0]])` takes nested lists of numbers; the front end makes the array of them, and the binding of weights
and the folding of constants make the same node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import Constant, TensorType
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import Declared
from tpucc.ops.opdef import Array, Arrays, Example, Given, Types
from tpucc.ops.rules import declared


@dataclass(frozen=True, slots=True)
class ConstantAttributes:
    """`value`: the constant itself, of any of the language's data types."""

    value: Constant


def infer(attributes: ConstantAttributes, _: Types) -> TensorType:
    return declared(attributes, (TensorType(attributes.value.dtype, attributes.value.shape),))


def reference(attributes: ConstantAttributes, _: Arrays) -> Array:
    return attributes.value.data


def _example(title: str, *shape: int) -> Example[ConstantAttributes]:
    return Example(title, ConstantAttributes(Constant(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))), ())


OP = leaf(
    name="constant",
    summary="a value written in the source",
    documentation="`constant([[1.0, 2.0], [3.0, 4.0]])` is f32[2, 2]. Lists at the same depth have the same length. ONNX: Constant.",
    attributes=ConstantAttributes,
    infer=infer,
    reference=reference,
    legalisation=Given(declared=False),
    onnx=Declared("an initializer"),
    examples=(_example("one whole tile", 256, 256), _example("ragged", 3, 257), _example("a scalar")),
)
