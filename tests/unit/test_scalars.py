"""Scalars in every element-wise operator compile at both widths and at every level, and the device computes what the reference does."""

from __future__ import annotations

import pytest

import tpucc
from tests.support.cases import one_of
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs

FUNCTIONS = ("relu", "relu6", "tanh", "sigmoid", "gelu", "silu", "elu", "leaky_relu", "hard_swish", "hard_sigmoid")
EXPRESSIONS = (
    *(f"{name}(x)" for name in FUNCTIONS),
    *("x + 1.0", "1 - x", "x * 2.0", "-x", "x / 3", "x * x", "x + y", "x - w", "w * x + v", "relu6(x) * relu(y)", "relu(relu6(x) + 0.5)"),
    *("reshape(relu6(x), [1])", "reshape(relu6(x), [1, 1])", "concat([reshape(relu6(x), [1]), reshape(y, [1])], axis=0)"),
)
INPUTS = ("x: f32[]", "x: f32[] in [0.0, 6.0]", "z: f32[4, 5]", "z: f32[1]")
SOURCE = """
weights random(seed=0)
model m({input}, y: f32[]):
    {pick}
    weight w: f32[]
    weight v: f32[]
    return {results}
"""


CASES = [
    pytest.param(given, bits, level, marks=pytest.mark.soak if (row + column + level) % 2 else ())
    for row, given in enumerate(INPUTS)
    for column, bits in enumerate((8, 16))
    for level in (0, 1, 2)
]
"""Each two of input, bits and level together; in `make soak`, all three."""


@pytest.mark.parametrize(("given", "bits", "level"), one_of(2, CASES))
def test_scalars_in_every_element_wise_operator(given: str, bits: int, level: int) -> None:
    pick = {"x: f32[]": "pass", "x: f32[] in [0.0, 6.0]": "pass", "z: f32[4, 5]": "x = z[1, 2]", "z: f32[1]": "x = z[0]"}[given]
    exe = tpucc.compile_source(
        SOURCE.format(input=given, pick=pick, results=", ".join(EXPRESSIONS)), activation_bits=bits, level=level, target="tiny"
    )
    inputs = random_inputs(exe.runtime)
    compared = compare_with_reference(exe.runtime, exe.layers.value, inputs) + compare_executors(exe.runtime, inputs)
    assert [found.name for found in compared if found.unequal] == []


@pytest.mark.parametrize(("given", "value"), [("x: f32[]", "x"), ("x: f32[4, 5]", "x[1, 2]")])
def test_a_clamped_scalar_of_sixteen_bits(given: str, value: str) -> None:
    """The device has no instruction for it: the value is multiplied by a constant one, which has to be a scalar too."""
    exe = tpucc.compile_source(f"activations i16\nmodel m({given}):\n    return relu6({value})\n")
    assert [output.shape for output in exe.run(random_inputs(exe.runtime)).values()] == [()]
