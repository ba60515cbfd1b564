"""device-forms: divisions by constants, bounds and means of pixels in the forms that the device has."""

from __future__ import annotations

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.networks import drawn, elaborated, results
from tpucc.ir import Graph
from tpucc.passes.base import Context
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.device_forms import device_forms
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.target import load_target

CONTEXT = Context(load_target("tpu_v1"))
HEAD = """weights random(seed=1)
model m(x: f32[2, 3, 5, 7]):
    weight w: f32[7, 6]
    weight s: f32[6]
    h = x @ w
"""


def formed(body: str, target: str = "tpu_v1") -> tuple[Graph, Graph]:
    """The graph of a body with its constants folded, and after the pass."""
    context = Context(load_target(target))
    graph = constant_folding.run(elaborated(f"{HEAD}    {body}\n"), context)
    return graph, device_forms.run(graph, context)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph if node.op not in ("input", "constant", "matmul")]


@each(
    [
        ("return h / (s + 1.0)", ["mul"]),
        ("return relu(h) / constant([[3.0]])", ["relu", "mul"]),
        ("return maximum(h, 0.25)", ["clip"]),
        ("return minimum(-0.5, h)", ["clip"]),
        ("return minimum(maximum(h, -0.5), 0.5) / s", ["clip", "clip", "mul"]),
        ("return mean(h, (1, 2))", ["global_avg_pool"]),
        ("return mean(h, [-2, 1], keepdims=True)", ["global_avg_pool", "reshape"]),
        ("return mean(h, 2)", ["reshape", "global_avg_pool", "reshape"]),
        ("return mean(reshape(h, (2, 15, 6)), 1)", ["reshape", "reshape", "global_avg_pool"]),
        ("return mean(tanh(h) + h, 2, keepdims=True)", ["tanh", "add", "reshape", "global_avg_pool", "reshape"]),
    ]
)
def test_what_the_device_has_under_another_name(body: str, wanted: list[str]) -> None:
    before, after = formed(body)
    assert ops(after) == wanted
    inputs = drawn(before, 3)
    np.testing.assert_allclose(results(after, inputs)["out"], results(before, inputs)["out"], rtol=1e-6, atol=1e-6)
    assert after.outputs == before.outputs
    assert device_forms.run(after, CONTEXT) is after


@each(
    [
        "return 1.0 / h",
        "return h / zeros([6])",
        "return h / full([6], 3e38)",
        "return maximum(h, s)",
        "return maximum(h[0, 0, 0], constant([[0.5]]))",
        "return maximum(x, 0.5), h",
        "return maximum(softmax(h), 0.5)",
        "return mean(h)",
        "return mean(h, -1)",
        "return mean(h, 1)",
        "return mean(h, (0, 1, 2))",
        "return mean(softmax(h), (1, 2))",
        "return mean(x, (1, 2)) @ w, h",
    ]
)
def test_what_stays(body: str) -> None:
    before, after = formed(body)
    assert ops(after) == ops(before)


def test_images_that_fill_the_buffer_stay() -> None:
    before, after = formed("return mean(h, (1, 2))", "tiny")
    assert ops(after) == ops(before)


@pytest.mark.parametrize("bits", one_of(2, [8, 16]))
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_machine_equals_the_reference(level: int, bits: int) -> None:
    body = (
        "return clip(maximum(h, -0.25) / (s + 1.0), 0.1, 0.6), mean(abs(h), (1, 2)) @ ones([6, 2]), exp(mean(h, 2)), sign(h) * sqrt(abs(h))"
    )
    exe = tpucc.compile_source(f"{HEAD}    {body}\n", level=level, activation_bits=bits)
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    assert not any(c.unequal for c in compare_with_reference(exe.runtime, exe.compilation.layers, random_inputs(exe.runtime, 2)))
