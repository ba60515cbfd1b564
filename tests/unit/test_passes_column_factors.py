"""An image's product with a factor for each channel becomes a depthwise convolution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import applied, built, context
from tpucc.ir import Graph
from tpucc.ir.dtypes import I16
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.passes.batch_norm import column_factors
from tpucc.passes.folding import fold_scales
from tpucc.passes.place import place

HEAD = """weights random(seed=1)
model m(x: f32[3, 5, 7, 4] in [-1.0, 1.0]):
    weight k: f32[1, 1, 4, 6]
    weight c: f32[6]
    weight b: f32[6]
    weight one: f32[1, 1, 1, 6]
    weight pixels: f32[7, 6]
    weight d: f32[1]
    h = relu(conv2d(x, k))
    """


def placed(text: str) -> Graph:
    return applied(built(HEAD + text), fold_scales, place)


@each(
    {
        "a batch normalisation": ("return h, relu(h * c + b)", 1),
        "the factor first": ("return h, c * h", 1),
        "as a kernel": ("return h, h * one", 1),
        "two with one constant": ("return h * c, relu(h + 1.0) * c", 2),
        "one factor for all": ("return h, h * d + b", 0),
        "a factor for each pixel": ("return h, h * pixels", 0),
        "two values": ("return h, h * tanh(h)", 0),
        "rows": ("return h, reshape(h, (3, 210)) * full((210,), 2.0)", 0),
        "on the host": ("return softmax(h) * c", 0),
        "quantised by the source": ("return h, quantize(h * c, 0.1)", 0),
        "of integers that the source has": ("return h, dequantize(quantize(h, 0.1)) * c", 0),
    }
)
def test_products_with_factors_of_channels_are_convolutions(text: str, count: int) -> None:
    before = placed(text)
    after = column_factors.run(before, context())
    made = [node for node in after if node.op == "conv2d" and node.attributes == Conv2dAttributes(groups=6)]
    assert len(made) == count
    assert all(node.on_device and after[node.operands[1]].type.shape == (1, 1, 1, 6) for node in made)
    assert len({node.operands[1] for node in made}) == min(count, 1), "products with one constant share a kernel"
    assert (after is before) == (count == 0)
    assert all(node.place == before[node.name].place for node in after if node.name in before.by_name)
    assert column_factors.run(after, context()) is after


def test_values_of_16_bits_stay() -> None:
    graph = placed("return h, h * c")
    assert column_factors.run(graph, replace(context(), format=I16)) is graph


def test_it_rounds_once_and_small_factors_are_exact() -> None:
    """Channels that are up to 77 times as large as others are made alike: as an integer of one scale, 1/77 would be 2/127."""
    sizes, factors = (f"concat([full((3,), 1.0), full((3,), {value})], axis=0)" for value in ("77.0", "1.0 / 77.0"))
    text = f"{HEAD}large = conv2d(x, k * {sizes})\n    return large, large * {factors} - 0.1\n"
    x = np.random.default_rng(0).uniform(-1, 1, (3, 5, 7, 4)).astype(np.float32)
    errors = []
    for omitted in ((), ("column-factors",)):
        large, alike = tpucc.compile_source(text, omit=omitted).run(x=x).values()
        errors.append(np.abs(alike - (large * np.repeat([1, 1 / 77], 3) - 0.1))[..., 3:].max())
    assert errors[0] < 0.02
    assert errors[1] > 0.1
