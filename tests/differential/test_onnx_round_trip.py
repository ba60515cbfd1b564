"""What is exported is imported as the same graph, with the same operators in the same order, and so the same bits; quantised, with the same
integers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.differential.test_gallery import SMALL
from tests.support.cases import LONG, each, one_of
from tests.unit.test_onnx_export import ALL, SMALLER, compiled_at
from tpucc.interop.export import exported
from tpucc.interop.onnx.writing.rewriting import without_patches
from tpucc.interop.outside import Session
from tpucc.interop.programs import folder
from tpucc.ir import Constant, Graph, Node
from tpucc.layers.kinds import Conv, Layer, looks_up
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import evaluate
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.input_arrays import random_array
from tpucc.passes.quantise import quantise
from tpucc.runtime.check import random_inputs

reading = pytest.importorskip("tpucc.interop.onnx.reading")
"""The importer, where it is."""
GIVEN = frozenset({"constant", "weight"})


def operators(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph if node.op not in GIVEN)


@pytest.mark.parametrize("path", one_of(2, ALL))
def test_an_exported_program_is_imported_as_it_was(path: Path, tmp_path: Path) -> None:
    made = compiled_at(path, "weights")
    assert made.graph is not None
    (tmp_path / "model.onnx").write_bytes(exported(made, quantised=False)[1])
    again = reading.read(tmp_path / "model.onnx").built({})
    assert [(node.name, node.type.plain()) for node in again.graph.inputs] == [(node.name, node.type.plain()) for node in made.graph.inputs]
    assert made.model is not None
    assert all(
        after.type.range == before.type.range or not before.type.range
        for before, after in zip(made.model.graph.inputs, again.graph.inputs, strict=True)
    )
    assert again.weights.keys() == {node.attributes.key for node in made.model.graph if node.op == "weight"}
    assert operators(again.graph) == operators(made.graph)
    generator = np.random.default_rng(0)
    inputs = {node.name: random_array(generator, node.type) for node in made.graph.inputs}
    first = evaluate(made.graph, inputs)
    second = evaluate(again.graph, inputs, {"weight": lambda node, _: again.weights[node.attributes.key]})
    for before, after in zip(made.graph.outputs, again.graph.outputs, strict=True):
        np.testing.assert_array_equal(second[after.node], first[before.node], strict=True)


SIXTEEN = frozenset({"13_quadric", "attention", "broadcasts", "scalars"})
"""Small programs with tables, host steps and sums between them."""
LAYERS = """
weights random(seed=1)
model m(image: f32[2, 9, 9, 3] in [-1.0, 1.0], x: f32[2, 6], y: f32[2, 6]) -> f32[2, 5], f32[2, 6]:
    weight k: f32[3, 3, 3, 8] = "stem.kernel"
    weight b: f32[8] = "stem.bias"
    weight d: f32[3, 3, 1, 8]
    weight p: f32[1, 1, 8, 8]
    weight w: f32[8, 5] = "head.w"
    weight v: f32[6, 6]
    h = relu(conv2d(image, k, stride=2, padding="same") + b)
    g = relu6(conv2d(h, d, padding=1, groups=8))
    h = max_pool(h + conv2d(g, p), 2)
    h = global_avg_pool(avg_pool(h, 2, 1, padding=1)) @ w
    return h, relu(x @ v - y) * x
"""
"""Layers of each kind with one scale for their operands: convolutions, also depthwise, products, pools, sums, differences."""
CONCAT = """
weights random(seed=0)
model m(image: f32[2, 8, 8, 3] in [-1.0, 1.0]) -> f32[2, 8, 8, 2]:
    weight a: f32[3, 3, 3, 8]
    weight b: f32[3, 3, 8, 8]
    weight c: f32[1, 1, 16, 2]
    h = relu(conv2d(image, a, padding=1))
    return conv2d(concat([conv2d(h, b, padding=1), h], axis=3), c)
"""
"""Channels of different scales and zero points, which a product of integers puts on one."""


FUNCTIONS = """
weights random(seed=0)
model m(x: f32[2, 6], image: f32[2, 5, 5, 3]) -> f32[2, 5], f32[2, 3, 3, 4], f32[2, 5]:
    weight w: f32[6, 8]
    weight b: f32[8]
    weight v: f32[8, 5]
    weight u: f32[6, 5]
    weight k: f32[3, 3, 3, 4]
    h = tanh(x @ w + b) @ v
    h = sigmoid(h + x @ u) * silu(x[:, :5])
    return gelu(h * h), elu(conv2d(image, k)), hard_sigmoid(h) - hard_swish(x[:, :5])
"""
"""Layers that end in tables: behind products, sums, products of two values, convolutions, and alone."""


PADDING = """
weights random(seed=1)
model m(image: f32[2, 7, 5, 3] in [-1.0, 2.0], x: f32[3, 5]) -> f32[2, 4, 2, 6], f32[2, 2, 2, 6], f32[2, 5, 3, 6], f32[3, 4]:
    weight k: f32[3, 3, 3, 6]
    weight b: f32[6]
    weight w: f32[5, 4]
    h = conv2d(image, k)
    g = avg_pool(h, 2)[:, :, 0:1] + avg_pool(h, 2, padding=(0, 0, 0, 1))
    f = max_pool(pad(h, ((0, 0), (1, 2), (0, 1), (0, 0))), 2)
    return f, avg_pool(g, 3, 1, padding=1), clip(h + b, -0.5, 0.25), clip(x @ w, -0.5, 0.25)
"""
"""Rows of an integer that isn't 0 around values of a scale, windows that all lie over an edge, and clamps behind products."""


TABLES = """
weights random(seed=0)
model m(x: f32[4, 5] in [-2.0, 2.0], y: f32[4, 1], image: f32[2, 5, 5, 3]) -> f32[4, 7], f32[4, 5], f32[4, 5], f32[2, 3, 3, 4]:
    weight w: f32[5, 7]
    weight k: f32[3, 3, 3, 4]
    h = tanh(x @ w)
    g = h * y - sigmoid(y) + 1.0
    return g, -x * 0.3 * (1.0 - y), minimum(abs(x), 0.7) + clip(x, -0.5, 1.25) * 1.5, leaky_relu(conv2d(image, k), alpha=0.2)
"""
"""Tables of a value and a number: alone, behind others, and behind sums, of which the file has no scale."""


JOINED = """
weights random(seed=3)
model m(image: f32[2, 6, 6, 3] in [-1.0, 1.0], x: f32[3, 5]) -> f32[2, 6], f32[2, 6], f32[3, 4], f32[3, 4], f32[3, 4]:
    weight a: f32[3, 3, 3, 4]
    weight b: f32[1, 1, 3, 4]
    weight c: f32[1, 1, 8, 6]
    weight w: f32[5, 4]
    h = relu(concat([conv2d(image, a, padding=1), conv2d(image, b)], axis=3))
    h = conv2d(avg_pool(h, 6), c)
    g = global_avg_pool(h * h)
    weight v: f32[5, 4]
    y = x @ w
    f = clip(x @ v, -0.5, 0.75) + elu(x @ w, alpha=1.6) * w[:3]
    return g / sqrt(g + 0.001), flatten(h), (sigmoid(y) + w[:3]) * 4.0, exp(y) * f, gelu(y - w[:3], approximate=True)
"""
"""Tables of two functions, as of `sqrt(x + 0.001)` of channels of several scales, and of a sum whose scale is known."""


COMPUTED = """
weights random(seed=2)
model m(x: f32[2, 9, 8], y: f32[2, 9, 8]) -> f32[2, 9, 9], f32[2, 9, 8], f32[2, 9, 9], f32[2, 9, 9]:
    weight w: f32[8, 8]
    weight v: f32[8, 8]
    k = y @ w
    a = softmax(x @ transpose(k, (0, 2, 1)) * 0.3)
    u = transpose(y @ v, (0, 2, 1))
    return a, relu(a @ k), gelu(x @ u), clip(x @ transpose(y, (0, 2, 1)), -0.5, 2.0)
"""
"""Products of two computed values: values that the host has moved, a softmax of the host's, and an input."""


def same_integers(path: Path, exe: tpucc.Executable, **settings: dict[str, object]) -> bool:
    """Whether a quantised export, imported and compiled, gives the same bits."""
    tpucc.export_onnx(exe, path, quantized=True)
    again = tpucc.import_onnx(path).compile(settings=settings)
    inputs = random_inputs(exe.runtime, 3)
    assert again.compilation is not None
    assert again.compilation.graph is not None
    given = dict(zip((node.name for node in again.compilation.graph.inputs), inputs.values(), strict=True))
    return all(np.array_equal(a, b) for a, b in zip(exe.run(inputs).values(), again.run(given).values(), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("path", one_of(4, one_of(3, ALL), LONG))
def test_a_quantised_export_is_imported_with_the_same_integers(path: Path, tmp_path: Path) -> None:
    exe = tpucc.compile(path, params={name: int(value) for name, value in SMALLER.get(path.stem, {}).items()})
    assert same_integers(tmp_path / "model.onnx", exe)


@pytest.mark.soak
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", SMALL)
def test_so_is_that_of_a_program_of_the_gallery(name: str, bits: int, tmp_path: Path) -> None:
    exe = tpucc.compile(folder() / "gallery" / f"{name}.tpu", params=SMALL[name], activation_bits=bits)
    assert same_integers(tmp_path / "model.onnx", exe)


@pytest.mark.parametrize("path", one_of(2, [path for path in ALL if path.id in SIXTEEN]))
def test_so_is_one_of_sixteen_bits(path: Path, tmp_path: Path) -> None:
    params = {name: int(value) for name, value in SMALLER.get(path.stem, {}).items()}
    exe = tpucc.compile(path, params=params, activation_bits=16)
    assert same_integers(tmp_path / "model.onnx", exe)
    assert "\nactivations i16\n" in tpucc.import_onnx(tmp_path / "model.onnx").source


ALONE = """weights random(seed=1)
model m(x: f32[2, 4, 5] in [-2.0, 2.0]):
    weight w: f32[5, 1]
    weight r: f32[1, 5]
    weight c: f32[5]
    weight s: f32[5, 5]
    weight k: f32[1, 1, 5, 3]
    weight b: f32[1] = "bias"
    h = x @ w
    return {text}
"""


@pytest.mark.soak
@pytest.mark.long
@each(
    {
        "one-row-of-integers": ("reshape(reshape(x[:1] @ w, (1, 1, 4))[0], (4, 1)) @ r", 8, 2),
        "one-row-then-a-table": ("tanh(reshape(reshape(h, (2, 1, 4))[1], (4, 1)) @ r)", 16, 2),
        "beside-what-broadcasts": ("c + h, r * x[:, :, :1], maximum(reshape(x[:, :, 1], (8, 1)), c), where(h > 0.0, r, x[:1, :1])", 8, 2),
        "moved-before-a-bias": ("reshape(transpose(reshape(x @ s, (2, 2, 2, 5)), (0, 2, 1, 3)), (4, 2, 5)) @ s + c", 8, 2),
        "by-a-constant": ("sigmoid(c * x)", 8, 1),
        "by-a-constant-image": ("tanh(max_pool(reshape(x, (1, 2, 4, 5)) * c, 2) * c)", 16, 2),
        "turned": ("leaky_relu(-x), elu(0.5 - x, alpha=0.7), clip(x * -2.0, 0.1, 0.8), silu(-1.2 - x), tanh(x * -0.7)", 8, 2),
        "turned-wide": ("leaky_relu(0.3 - x, alpha=0.2), clip(x + 0.3, -0.7, 0.8), gelu(-1.2 - x), sign(-x)", 16, 2),
        "one-output": ("(x @ w + b) * b, b - h", 8, 2),
        "one-output-wide": ("hard_swish(0.3 - (x @ w + b))", 16, 2),
        "one-scale": ("x @ dequantize(quantize(k[0, 0], 0.02))", 8, 0),
        "one-scale-image": ("conv2d(reshape(x, (1, 2, 4, 5)), dequantize(quantize(k, 0.02, zero_point=3))) + 0.5", 8, 2),
        "beside-constants": ("relu(concat([full([2, 4, 1], -2.0), h], axis=2))", 8, 2),
        "lanes-around": ("dequantize(quantize(pad(dequantize(quantize(x @ s, 0.02)), ((0, 0), (0, 0), (1, 2))), 0.05, 10))", 8, 2),
        "lanes-around-image": (
            "dequantize(quantize(pad(dequantize(quantize(conv2d(reshape(x, (1, 2, 4, 5)), k), 0.02, 4)), "
            "((0, 0), (0, 0), (1, 0), (0, 2))), 0.05, 10))",
            8,
            2,
        ),
        "windows-beyond-what-counts": ("avg_pool(reshape(x, (1, 4, 5, 2)), 3, 2, padding=1, ceil=True, count_padding=True)", 8, 2),
        "beside-constants-image": ("sigmoid(concat([conv2d(reshape(x, (1, 2, 4, 5)), k), full([1, 2, 4, 2], 0.7)], axis=3))", 8, 0),
    }
)
def test_a_layer_comes_back_with_the_same_integers(text: str, bits: int, level: int, tmp_path: Path) -> None:
    exe = tpucc.compile_source(ALONE.format(text=text), activation_bits=bits, level=level)
    assert same_integers(tmp_path / "model.onnx", exe)


FAST_HOST = {"host_elements_per_second": 1e15, "host_bandwidth": 1e15}
"""It packs and pads whatever saves the device some time."""
PACKED = {
    "windows in steps": "conv2d(image, k, stride=2, padding=1)",
    "windows with gaps": "conv2d(image, k, padding=(0, 2, 1, 0), dilation=(2, 1))",
    "pixels": "conv2d(wide, d, padding=2, groups=8)",
    "two of one image": "conv2d(image, k) + conv2d(image, l)",
    "single pixels in steps": "conv2d(image, o, stride=(1, 2), padding=(0, 1, 2, 0))",
}


@pytest.mark.soak
@pytest.mark.long
@each({f"{title}, {bits} bits": (text, bits) for title, text in PACKED.items() for bits in (8, 16)})
def test_a_convolution_of_patches_is_written_as_one_of_the_image(text: str, bits: int, tmp_path: Path) -> None:
    """ONNX Runtime computes the device's integers, and the file is read as the convolution of the source."""
    head = (
        "weights random(seed=1)\nmodel m(image: f32[2, 9, 8, 3] in [-1.0, 2.0], wide: f32[2, 9, 8, 8]):\n    weight k: f32[3, 3, 3, 8]\n"
        "    weight l: f32[3, 3, 3, 8]\n    weight d: f32[3, 3, 1, 8]\n    weight o: f32[1, 1, 3, 8]\n"
    )
    exe = tpucc.compile_source(f"{head}    return {text}\n", activation_bits=bits, overrides=FAST_HOST)
    assert exe.compilation is not None
    assert any(node.op == "patches" for node in exe.compilation.layers or ())
    model, data = exported(exe.compilation, quantised=True)
    assert not any(node.op in ("Concat", "Pad", "Slice") for node in model.nodes)
    inputs = random_inputs(exe.runtime, 4)
    for one, other in zip(Session(model, data).run(inputs).values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert same_integers(tmp_path / "model.onnx", exe)
    kernel = (3, 3, 1, 8) if "wide" in text else (1, 1, 3, 8) if "o," in text else (3, 3, 3, 8)
    assert kernel in [array.shape for array in tpucc.import_onnx(tmp_path / "model.onnx").weights.values()]


WIDE = """weights random(seed=0)
activations i16
model m(x: f32[2, 6, 6, 3] in [-1.0, 1.0]):
    v = dequantize(quantize(x, 0.0001, {zero}, bits=16))
    weight w: f32[3, 3, {channels}, 6]
    return {text}
"""


@pytest.mark.soak
@each(
    {
        f"{title}, zero point {zero}": (zero, text, channels)
        for title, (text, channels) in {
            "padded": ("conv2d(v, w, padding=(0, 2, 1, 0), stride=2)", 3),
            "in groups": ("conv2d(v, w, padding=1, groups=3)", 1),
            "dense": ("sigmoid(v @ w[0, 0]), dequantize(quantize(relu(v @ w[0, 1]), 0.0002, {zero}, bits=16))", 3),
            "pools": ("max_pool(v, 3, 1, padding=1), avg_pool(v, 3, 1, padding=1)", 3),
            "rows around": ("pad(v, ((0, 0), (1, 1), (0, 2), (0, 0))) * 0.5 + v[:1, :1, :1]", 3),
        }.items()
        for zero in (-5, 30000, -32768, 32767)
    }
)
def test_zero_points_of_sixteen_bits(zero: int, text: str, channels: int, tmp_path: Path) -> None:
    """A source may say them. Padding has them, which ConvInteger's bytes haven't."""
    exe = tpucc.compile_source(WIDE.format(zero=zero, text=text.format(zero=zero), channels=channels))
    assert exe.compilation is not None
    inputs = random_inputs(exe.runtime, 4)
    found = Session(*exported(exe.compilation, quantised=True)).run(inputs)
    for one, other in zip(found.values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert same_integers(tmp_path / "model.onnx", exe)


def test_other_convolutions_of_patches_are_written_as_they_are() -> None:
    """As a pass of a user's may make them."""
    text = "weights random(seed=1)\nmodel m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):\n    weight k: f32[3, 3, 3, 8]\n    return conv2d(x, k)\n"
    made = tpucc.compile_source(text, overrides=FAST_HOST).compilation
    assert made is not None
    assert made.layers is not None
    (conv,) = (node for node in made.layers if isinstance(node.attributes, Conv))
    for changes in ({"outside": 5}, {"sides": (1, 0, 0, 0)}, {"stride": (2, 1)}):
        graph = made.layers.with_nodes(
            replace(node, attributes=replace(conv.attributes, **changes)) if node is conv else node for node in made.layers
        )
        assert without_patches(graph) is graph
    assert without_patches(made.layers) is not made.layers


def test_weights_that_a_pass_has_reshaped_have_their_own_keys() -> None:
    """Not that of another one, of whose name theirs is a number."""
    text = (
        "weights random(seed=1)\nmodel m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):\n"
        '    weight a: f32[3, 3, 3, 8] = "k.0"\n    weight b: f32[3, 3, 3, 4] = "k.1"\n    weight c: f32[3, 3, 8, 4] = "c.w"\n'
        "    return conv2d(relu(conv2d(x, a)), c), conv2d(x, b)\n"
    )
    made = tpucc.compile_source(text).compilation
    assert made is not None
    initializers = exported(made, quantised=True)[0].initializers
    shapes = {name: array.shape for name, array in initializers.items() if array.ndim == 4}
    assert shapes == {"k.0": (8, 3, 3, 3), "k.1": (4, 3, 3, 3), "c.w": (4, 8, 3, 3)}


LIKE_ONE_ANOTHER = {
    "a function that is called twice": """
def layer(x, name):
    weight k: f32[3, 3, 3, 3] = name
    return relu(conv2d(x, k, padding=1))

model m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):
    return layer(x, "k.0"), layer(x, "k.1")
""",
    "a loop with numbers": """
model m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):
    h = x
    for i in range(3):
        weight k: f32[3, 3, 3, 3] = "k.{i}"
        h = relu(conv2d(h, k, padding=1))
    return h
""",
    "a loop": """
model m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):
    h = x
    for i in range(3):
        weight k: f32[3, 3, 3, 3] = "k{i}"
        h = relu(conv2d(h, k, padding=1))
    return h
""",
}


@each({title: (text,) for title, text in LIKE_ONE_ANOTHER.items()})
def test_weights_of_one_statement_have_the_keys_that_are_theirs(text: str) -> None:
    """Those of ONNX's kernels are the model's, quantised."""
    made = tpucc.compile_source(f"weights random(seed=1)\n{text}").compilation
    assert made is not None
    initializers = exported(made, quantised=True)[0].initializers
    assert made.graph is not None
    float_weights = exported(made, quantised=False)[0].initializers
    weights = {key: array for key, array in float_weights.items() if array.ndim == 4}
    assert weights
    for key, array in weights.items():
        if key not in initializers and "k.{i}" in text:
            continue  # it has another name
        held = initializers[key] * (np.abs(array).max(axis=(1, 2, 3), keepdims=True) / 127)
        np.testing.assert_allclose(held, array, atol=np.abs(array).max() / 100)


def test_kernels_have_their_keys_though_a_batch_norm_is_folded_into_them() -> None:
    """And nothing else has: multipliers come from the places of all that is in them."""
    made = tpucc.compile(folder() / "gallery" / "mlperf_resnet8.tpu").compilation
    assert made is not None
    model = exported(made, quantised=True)[0]
    kernels = {name for name, array in model.initializers.items() if array.dtype == np.int8 and array.ndim > 1}
    assert made.model is not None
    keys = {node.attributes.key for node in made.model.graph if isinstance(node.attributes, WeightAttributes) and node.type.rank > 1}
    assert kernels == keys


@each(
    {
        "of one another's names": (
            '    weight a: f32[3, 3] = "a.w"\n    weight c: f32[3, 3] = "c.w"\n    weight b: f32[3] = "c.b"\n    weight d: f32[3] = "a.b"\n'
            "    return tanh(tanh(x @ a + b) @ c + d)\n",
        ),
        "of a loop": (
            '    for i in range(3):\n        weight w: f32[3, 3] = "w{i}"\n        weight b: f32[3] = "b{2 - i}"\n'
            "        x = relu(x @ w + b)\n    return x\n",
        ),
    }
)
def test_biases_have_their_keys(body: str, tmp_path: Path) -> None:
    """Not names that are made of their kernels'."""
    text = f"weights random(seed=1)\nmodel m(x: f32[2, 3] in [-1.0, 1.0]):\n{body}"
    for level in (0, 2):
        exe = tpucc.compile_source(text, level=level)
        for quantized in (False, True):
            tpucc.export_onnx(exe, tmp_path / f"{quantized}.onnx", quantized=quantized)
        expected, found = (tpucc.import_onnx(tmp_path / f"{quantized}.onnx").weights for quantized in (False, True))
        assert found.keys() == expected.keys()
        assert ("relu(" in body) == ("relu(" in tpucc.import_onnx(tmp_path / "True.onnx").source)
        for key, array in expected.items():
            np.testing.assert_allclose(found[key], array, atol=np.abs(array).max() / 100)


@pytest.mark.long
@each([(text, level) for text in ("x @ dequantize(quantize(w, {}))", "conv2d(x[:1], dequantize(quantize(k, {})))") for level in (0, 2)])
def test_weights_that_the_source_rounds_come_back_from_a_float_export(text: str, level: int, tmp_path: Path) -> None:
    """They are rounded in the file's place, and ranges are measured with what the device has: also where most of them saturate."""
    for scale in (0.1, 0.004):
        shape = text.format(scale).replace("x[:1]", "reshape(x[:1], (1, 1, 4, 5))")
        exe = tpucc.compile_source(ALONE.format(text=shape), level=level)
        tpucc.export_onnx(exe, tmp_path / "m.onnx")
        inputs = random_inputs(exe.runtime, 3)
        again = tpucc.import_onnx(tmp_path / "m.onnx").compile(level=level).run(inputs)
        for one, other in zip(again.values(), exe.run(inputs).values(), strict=True):
            np.testing.assert_array_equal(one, other)


WEIGHTS = """weights random(seed=1)
model m(x: f32[2, 6] in [-1.0, 1.0], y: f32[6, 2] in [-1.0, 2.0], y2: f32[2, 6] in [-2.0, 1.0], z: f32[6, 6] in [-1.0, 1.0],
        i: f32[2, 6, 6, 3] in [-1.0, 1.0], j: i32[4] in [0, 5]):
    weight w: f32[6, 6] = "val_7"
    weight e2: f32[6, 1] = "e_quantized"
    weight e: f32[2, 6] = "onnx::Add_1"
    weight k: f32[3, 3, 3, 3] = "constant.kernel"
    weight b: f32[6]
    weight c: f32[3]
    weight s: f32[1] = "scale"
    weight t: f32[1, 1]
    weight g: f32[]
    weight r: f32[1, 6]
    return {text}
"""


@each(
    [
        "(x @ w + s) * s - g, x * t + r, s * i, g - x",
        "x + s * t * 0.5, tanh(s) * x, x * 0.5",
        "x / s, i / g * g, x / 3.0",
        "x @ w, relu(x @ w) @ w, x @ transpose(w, (1, 0))",
        "(y @ e) @ transpose(e, (1, 0)), transpose(y, (1, 0)) * e",
        "conv2d(i, k), conv2d(i * 0.5 + 0.3, k), conv2d(i, transpose(k, (1, 0, 2, 3))) * c + c",
        "conv2d(g * relu(conv2d(i, k)), k), conv2d(maximum(g, conv2d(i, k)) - g, k), conv2d(s / exp(conv2d(i, k) * t), k)",
        "embedding(j, concat([w, w * s], axis=0)), conv2d(i, k * 0.5) + c * 2.0",
        "layer_norm(x, b * 2.0, b) @ w[:, 3:5], batch_norm(i, c * 0.5, c, c, abs(c)), x @ (w @ w)",
    ]
)
def test_a_float_export_has_the_steps_and_the_weights_of_its_source(text: str, tmp_path: Path) -> None:
    """Also those of one value, in their shapes, and weights that several steps read; numbers stay numbers."""
    exe = tpucc.compile_source(WEIGHTS.format(text=text))
    tpucc.export_onnx(exe, tmp_path / "m.onnx")
    again = reading.read(tmp_path / "m.onnx").built({})
    assert exe.compilation is not None
    made, source = exe.compilation, exe.compilation.model
    assert source is not None
    assert made.graph is not None
    assert operators(again.graph) == operators(made.graph)
    held = {node.attributes.key: made.graph[node.name] for node in source.graph if isinstance(node.attributes, WeightAttributes)}
    held = {key: node for key, node in held.items() if made.graph.users[node.name]}
    assert again.weights.keys() == held.keys()
    for key, node in held.items():
        assert isinstance(node.attributes, ConstantAttributes)
        np.testing.assert_array_equal(again.weights[key], node.attributes.value.data, strict=True)


@pytest.mark.long
@each(
    [
        "flatten(x) * v + v",
        "reshape(x, (8, 5)) + u",
        "tanh(reshape(x, (2, 2, 2, 5)) * t) - t",
        "relu(x[:, 1]) * q + maximum(x[:, 2], q)",
        "sigmoid(x[:, 1] + q @ o) * q + x[:, 0]",
        "q + x[:, 0, :1], t * x[:, :2, :1], reshape(x[:, :, 0], (1, 8, 1)) / p",
        "reshape(x[:, 1], (2, 1, 5)) * reshape(q, (2, 1, 5)) + p, x[:, 1] * q, x[:1, 1] - r, x[0, 1] - r",
    ]
)
def test_weights_behind_a_reshape_keep_their_shapes(text: str, tmp_path: Path) -> None:
    head = "weights random(seed=1)\nmodel m(x: f32[2, 4, 5] in [-2.0, 2.0]):\n"
    shapes = {"v": (20,), "u": (8, 5), "t": (2, 2, 5), "q": (2, 5), "o": (5, 5), "p": (2, 1, 5), "r": (1, 5)}
    head += "".join(f"    weight {key}: f32{[*shape]}\n" for key, shape in shapes.items())
    exe = tpucc.compile_source(f"{head}    return {text}\n")
    tpucc.export_onnx(exe, tmp_path / "m.onnx")
    again = tpucc.import_onnx(tmp_path / "m.onnx")
    assert {key: array.shape for key, array in again.weights.items()}.items() <= shapes.items()
    inputs = random_inputs(exe.runtime, 3)
    for one, other in zip(again.compile().run(inputs).values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def quantised_again(text: str, bits: int, path: Path) -> tuple[tpucc.Imported, Mapping[str, AnyArray]]:
    """A model of `WEIGHTS`, exported in integers and imported with the same ones, and the weights of the source."""
    exe = tpucc.compile_source(WEIGHTS.format(text=text), activation_bits=bits)
    assert same_integers(path, exe)
    made = exe.compilation
    assert made is not None
    assert made.graph is not None
    assert made.model is not None
    used = [node for node in made.model.graph if isinstance(node.attributes, WeightAttributes) and made.model.graph.users[node.name]]
    arrays = {node.attributes.key: made.graph[node.name].attributes.value.data for node in used}  # type: ignore[attr-defined]
    return tpucc.import_onnx(path), arrays


@pytest.mark.soak
@pytest.mark.long
@each(
    [
        (text, bits, parts)
        for text, parts in {
            "relu(x @ e2) + s": ["+ s"],
            "tanh(x @ e2), x @ e2 - s": ["tanh(", " - s"],
            "x * t, tanh(i * s), x * 0.5": ["* t", "* s", "* 0.5"],
            "g - x, silu(s + x), -x + 0.5": ["g - ", "scale + ", "+ 0.5"],
            "maximum(x, s), tanh(x @ e2 + s)": ["maximum(x, s", " @ e_quantized + s"],
        }.items()
        for bits in (8, 16)
    ]
)
def test_weights_of_one_value_come_back_from_a_quantised_export(text: str, bits: int, parts: list[str], tmp_path: Path) -> None:
    """Also where they are a number of a table: the file says which weight it is. Other numbers stay numbers."""
    again, arrays = quantised_again(text, bits, tmp_path / "m.onnx")
    assert again.weights.keys() == arrays.keys()
    for part in parts:
        assert part in re.sub(r"quantized\((.*?), [-0-9.e]+(, -?[0-9]+)?\)", r"\1", again.source), again.source
    for key in ("scale", "t", "g"):
        if key in arrays and "e2" not in text:
            np.testing.assert_array_equal(again.weights[key], arrays[key], strict=True)


@pytest.mark.soak
@pytest.mark.long
@each(
    [
        ("x @ w, y2 @ w", 8),
        ("relu(x @ w) @ w", 16),
        ("z * w, relu(x @ w)", 8),
        ("transpose(z, (1, 0)) * w + transpose(z + 0.5, (1, 0)) * w", 16),
        ("conv2d(i, k), conv2d(i * 0.5 + 0.3, k)", 8),
        ("conv2d(i, k), conv2d(i * 0.5 + 0.3, k)", 16),
        ("(y @ e) @ transpose(e, (1, 0))", 8),
        ("x @ transpose(w, (1, 0)), y2 @ w, z + w", 16),
        ("x @ transpose(w, (1, 0))", 8),
        ("tanh(i * c) + c", 16),
        ("tanh(concat([x @ w, w], axis=0)), z * w", 8),
        ("x + b, y2 * b, tanh(b - x)", 8),
        ("x * b, relu(x @ w + b)", 8),
        ("relu(x @ w + b) @ w, y2 @ w + b", 8),
        ("sigmoid(conv2d(i, k) + c) * c", 8),
    ]
)
def test_a_weight_that_several_layers_read_is_one_in_an_import(text: str, bits: int, tmp_path: Path) -> None:
    """Each layer has integers of its own, by its own scales. One weight has them all, and lies within a step of the source's; transposed
    or reshaped it is another one."""
    again, arrays = quantised_again(text, bits, tmp_path / "m.onnx")
    assert again.weights.keys() >= arrays.keys() or "transpose(" in text
    for key in again.weights.keys() & arrays.keys():
        array = arrays[key]
        np.testing.assert_allclose(again.weights[key], array, atol=np.abs(array).max() / 100, strict=True)


ONES = ((6, 1), (1, 6), (1, 1))


@pytest.mark.soak
@each([(shape, text, bits) for shape in ONES for text in ("x @ transpose(w, (1, 0))", "y @ w @ transpose(w, (1, 0))") for bits in (8, 16)])
def test_a_tied_matrix_of_one_row_or_column_comes_back(shape: tuple[int, int], text: str, bits: int, tmp_path: Path) -> None:
    """Transposed it has its values in the same order, in another shape."""
    rows, columns = shape
    head = f"weights random(seed=1)\nmodel m(x: f32[4, {columns}] in [-1.0, 1.0], y: f32[4, {rows}] in [-1.0, 1.0]):\n"
    source = f"{head}    weight w: f32{[*shape]}\n    return {text}, relu(x @ transpose(w, (1, 0))) @ w\n"
    for level in (0, 2):
        exe = tpucc.compile_source(source, activation_bits=bits, level=level)
        tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
        again = tpucc.import_onnx(tmp_path / "m.onnx")
        inputs = random_inputs(exe.runtime, 3)
        for one, other in zip(again.compile(level=level).run(inputs).values(), exe.run(inputs).values(), strict=True):
            np.testing.assert_array_equal(one, other)


@each(
    [
        ((3, 1, 1, 1), (1, 0, 2, 3)),
        ((1, 3, 1, 1), (1, 0, 2, 3)),
        ((1, 1, 3, 1), (0, 1, 3, 2)),
        ((1, 1, 1, 3), (0, 1, 3, 2)),
    ]
)
def test_a_kernel_with_its_axes_of_size_1_elsewhere_comes_back(shape: tuple[int, ...], perm: tuple[int, ...], tmp_path: Path) -> None:
    """Both forms have the same values in one order."""
    channels = shape[2], shape[perm[2]]
    head = "weights random(seed=1)\nmodel m({}):\n    weight k: f32{}\n".format(
        ", ".join(f"{name}: f32[2, 6, 6, {count}] in [-1.0, 1.0]" for name, count in zip("xy", channels, strict=True)), [*shape]
    )
    exe = tpucc.compile_source(f"{head}    return conv2d(x, k), conv2d(y, transpose(k, {perm}))\n")
    assert same_integers(tmp_path / "m.onnx", exe)


@pytest.mark.long
@each([(text, bits) for text in ("conv2d(i, k) - g, x @ e2 - t", "relu(x @ w + s) * s, y2 - s") for bits in (8, 16)])
def test_a_weight_of_one_value_may_be_a_bias(text: str, bits: int, tmp_path: Path) -> None:
    """Each column has integers of its own, in units of its scale. One value has them all."""
    again, arrays = quantised_again(text, bits, tmp_path / "m.onnx")
    assert {key for key, array in again.weights.items() if array.size == 1} == {key for key, array in arrays.items() if array.size == 1}
    assert not any("bias" in key for key in again.weights)
    for key in ("scale", "t", "g"):
        if key in arrays:
            np.testing.assert_allclose(again.weights[key], arrays[key], rtol=0.01, strict=True)


def test_a_kernel_that_two_convolutions_read_is_one_constant_of_the_file() -> None:
    made = tpucc.compile_source(WEIGHTS.format(text="conv2d(i, k), conv2d(i * 0.5 + 0.3, k)")).compilation
    assert made is not None
    for quantised in (False, True):
        names = exported(made, quantised)[0].initializers
        assert [name for name in names if name.startswith("constant.kernel")] == ["constant.kernel"]


def test_a_weight_of_zeros_is_a_weight(tmp_path: Path) -> None:
    """As a bias that nobody has trained, of which a source computes something; a product of another with zeros isn't written out."""
    np.savez(tmp_path / "zeros.npz", b=np.zeros(6, np.float32))
    text = 'weights "zeros.npz"\nmodel m(x: f32[2, 6]):\n    weight b: f32[6]\n    return x + b * 0.5\n'
    tpucc.export_onnx(tpucc.compile_source(text, folder=tmp_path), tmp_path / "m.onnx")
    assert "x + b * 0.5" in tpucc.import_onnx(tmp_path / "m.onnx").source


def test_a_form_of_a_weight_that_has_other_values_has_a_key_with_a_number(tmp_path: Path) -> None:
    """As the weights of a product into which a scale is folded; the weight itself keeps its key."""
    again, arrays = quantised_again("(x @ w + b) * r, x @ w", 8, tmp_path / "m.onnx")
    assert again.weights.keys() >= {"val_7", "val_7.1"}
    assert not any("mul" in key for key in again.weights)
    np.testing.assert_allclose(again.weights["val_7"], arrays["val_7"], atol=np.abs(arrays["val_7"]).max() / 100)


CHAINS = {
    "log(sigmoid(h))": "log(quantized(sigmoid(",
    "h * tanh(log(1.0 + exp(h)))": "log(1.0 + ",
    "tanh(gelu(h)) * 3.0 + y": " * 3.0",
    "(abs(y) * 3.0 + 0.7) * h": " * 3.0",
    "gelu(0.7 - y) * silu(-y) * h": "gelu(0.7 - y",
    "abs(y * 3.0 + 0.2) * abs(0.5 - y) * h": "abs(",
    "gelu(-0.7 - relu(h)), leaky_relu(sign(-y) + -2.0)": "gelu(-0.7 - relu(",
    "elu(minimum(-2.0 - y, 0.4) * -2.0, alpha=0.7) * sqrt(relu(h))": "alpha=0.7",
    "hard_swish(-0.1 - relu6(h)) + clip(h, -0.123456789, 0.75)": ", -0.123456789, 0.75",
}
"""Functions in turn, and a part of the source that is imported. The first may leave the second only a part of its range."""


@pytest.mark.parametrize("text", one_of(2, CHAINS, LONG))
def test_functions_in_turn_are_one_table_of_the_device_and_come_back_one_by_one(text: str, tmp_path: Path) -> None:
    """ONNX Runtime computes the same integers as the device from them, and what is compiled anew has the tables again."""
    head = "weights random(seed=1)\nmodel m(x: f32[5, 7] in [-2.0, 2.0], y: f32[5, 9] in [-1.0, 1.5]):\n    weight w: f32[7, 9]\n"
    exe = tpucc.compile_source(f"{head}    h = x @ w\n    return {text}\n")
    assert exe.compilation is not None
    model, data = exported(exe.compilation, quantised=True)
    (tmp_path / "model.onnx").write_bytes(data)
    again = tpucc.import_onnx(tmp_path / "model.onnx")
    compiled = again.compile()
    source = re.sub(r"quantized\((.*?), [-0-9.e]+, -?[0-9]+\)", r"\1", again.source)
    whole = again.source.replace("dequantize(quantize(", "quantized(")
    assert CHAINS[text] in (whole if "quantized" in CHAINS[text] else source), source
    assert compiled.stats["cycles"] == pytest.approx(exe.stats["cycles"], rel=0.01), "the source may have another order"
    assert tables_of(compiled) == tables_of(exe)
    inputs = random_inputs(exe.runtime, 4)
    expected = exe.run(inputs)
    for found in (compiled.run(inputs), Session(model, data).run(inputs)):
        for one, other in zip(found.values(), expected.values(), strict=True):
            np.testing.assert_array_equal(one, other)


def tables_of(exe: tpucc.Executable) -> list[bytes]:
    """The look-up tables of the layers that have one."""
    assert exe.compilation is not None
    layers = exe.compilation.layers
    assert layers is not None
    found = [layers[node.operands[-1]] for node in layers if isinstance(node.attributes, Layer) and looks_up(node.attributes)]
    return sorted(node.attributes.value.data.tobytes() for node in found if isinstance(node.attributes, ConstantAttributes))


@dataclass(frozen=True)
class Mirror(Pass):
    """Turns look-up tables over: what stands for a value stands for its opposite."""

    name = "mirror"
    summary = "turns tables over"
    level = 1
    after = quantise.name

    def run(self, graph: Graph, context: Context) -> Graph:
        return graph.with_nodes(_turned(node) if node.name.startswith("mul.table") else node for node in graph)


def _turned(node: Node) -> Node:
    assert isinstance(node.attributes, ConstantAttributes)
    return replace(node, attributes=ConstantAttributes(Constant(node.attributes.value.data[::-1].copy())))


def test_tables_that_a_pass_of_the_users_has_changed_are_written_as_they_are(tmp_path: Path) -> None:
    text = "model m(x: f32[3, 4] in [-2.0, 2.0], y: f32[3, 4]):\n    return tanh(gelu(x)) * 3.0 + y\n"
    exe = tpucc.compile_source(text, passes=(Mirror(),))
    assert exe.compilation is not None
    inputs = random_inputs(exe.runtime, 4)
    (found,) = Session(*exported(exe.compilation, quantised=True)).run(inputs).values()
    assert np.array_equal(found, next(iter(exe.run(inputs).values())))
    assert not np.array_equal(found, next(iter(tpucc.compile_source(text).run(inputs).values())))
    with pytest.raises(tpucc.CompileError, match=r"E1007"):
        same_integers(tmp_path / "model.onnx", exe)


@pytest.mark.long
@pytest.mark.parametrize("bits", one_of(2, [8, 16]))
def test_each_kind_of_layer_is_imported_with_the_same_integers(bits: int, tmp_path: Path) -> None:
    for source in (LAYERS, CONCAT, FUNCTIONS, PADDING, TABLES, JOINED):
        assert same_integers(tmp_path / "model.onnx", tpucc.compile_source(source, activation_bits=bits))


def test_images_of_an_export_keep_the_order_that_the_source_gave_them(tmp_path: Path) -> None:
    text = """
weights random(seed=0)
model m(image: f32[2, 3, 6, 5]) -> f32[2, 4, 6, 5], f32[2, 6, 5, 4]:
    weight k: f32[1, 1, 3, 4]
    h = conv2d(transpose(image, (0, 2, 3, 1)), k)
    return transpose(h, (0, 3, 1, 2)), h
"""
    exe = tpucc.compile_source(text)
    for quantized in (False, True):
        tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=quantized)
        assert text.split("\n")[2] in tpucc.import_onnx(tmp_path / "m.onnx").source.replace("image_", "image")


@each(["(1.0 - mask) * -10000.0", "0.5 - mask * 2.0", "mask * 3.0 - 1.0"])
def test_a_table_that_moves_all_integers_alike_is_a_product_and_a_sum(text: str, tmp_path: Path) -> None:
    """As of attention masks."""
    np.savez(tmp_path / "masks.npz", mask=np.eye(2, 5, dtype=np.float32), x=np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5))
    source = f"model m(mask: f32[2, 5] in [0.0, 1.0], x: f32[2, 5]) -> f32[2, 5]:\n    return {text} + x\n"
    exe = tpucc.compile_source(source, calibration=tmp_path / "masks.npz")
    assert same_integers(tmp_path / "model.onnx", exe)


POOLED = """
weights random(1)
model m(x: f32[2, 4, 4, 3]) -> f32[2, 2, 2, 8]:
    weight w: f32[3, 8]
    h = x @ w
    p = max_pool(h, size=2) / sqrt(avg_pool(h * h, size=2) + 0.000001)
    return p / maximum(sqrt(sum(p * p, axis=-1, keepdims=True)), 0.001)
"""
"""Integers of a layer that the host pools channels first."""


@each(["host", "device"])
def test_products_of_computed_values_have_the_same_integers(way: str, tmp_path: Path) -> None:
    settings: dict[str, dict[str, object]] = {"write-weights": {"computed_products": way}}
    exe = tpucc.compile_source(COMPUTED, settings=settings)
    assert any("on the matrix unit in 8 bits" in note for note in exe.notes) == (way == "device")
    assert same_integers(tmp_path / "model.onnx", exe, **settings)


def test_integers_that_are_dequantised_in_steps_before_a_pool_of_the_host_come_back(tmp_path: Path) -> None:
    """The file has them so, behind a transpose of the integers."""
    path = tmp_path / "model.onnx"
    for bits in (8, 16):
        assert same_integers(path, tpucc.compile_source(POOLED, activation_bits=bits))
        assert b"h.f32.nchw.Sub" in path.read_bytes()


@pytest.mark.long
def test_the_steps_of_an_exported_lstm_are_a_loop(tmp_path: Path) -> None:
    path = Path(__file__).resolve().parents[2] / "programs" / "06_digits_lstm.tpu"
    tpucc.export_onnx(tpucc.compile(path, params={"batch": 2}), tmp_path / "lstm.onnx")
    source = tpucc.import_onnx(tmp_path / "lstm.onnx").source
    assert "    for t in range(8):\n        h, c = lstm_step(image[:, t], h, c)\n" in source


SEQUENCE = """
weights random(seed=0)
def step(x, h, c):
    weight k: f32[4, 32] = "k"
    weight r: f32[8, 32] = "r"
    weight b: f32[32] = "b"
    z = x @ k + h @ r + b
    c = sigmoid(z[:, 8:16]) * c + sigmoid(z[:, :8]) * tanh(z[:, 16:24])
    return sigmoid(z[:, 24:]) * tanh(c), c
model m(x: f32[2, 7, 4] in [-1.0, 1.0]) -> f32[2, 8]:
    h = zeros([2, 8])
    c = zeros([2, 8])
    for t in range(7):
        h, c = step(x[:, t], h, c)
    return h
"""


@pytest.mark.long
def test_the_steps_of_a_quantised_lstm_have_the_same_weights_and_one_def(tmp_path: Path) -> None:
    """Each step has scales of its own, and in the file multipliers and integers of biases of its own: these are its arguments."""
    tpucc.export_onnx(tpucc.compile_source(SEQUENCE), tmp_path / "lstm.onnx", quantized=True)
    again = tpucc.import_onnx(tmp_path / "lstm.onnx")
    assert again.weights.keys() >= {f"{weight}.{gate}" for weight in "krb" for gate in range(1, 5)}
    assert again.source.count("def step(") == 1, again.source
    assert again.source.count(" = step(") == 6, again.source


def test_a_bias_that_is_subtracted_does_not_have_the_key_of_its_opposite(tmp_path: Path) -> None:
    exe = tpucc.compile_source(
        "weights random(seed=1)\nmodel m(x: f32[3, 4]):\n    weight k: f32[4, 5]\n    weight b: f32[5]\n    return relu(x @ k - b)\n"
    )
    tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
    again = tpucc.import_onnx(tmp_path / "m.onnx")
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    assert again.weights.keys() == {"k", "b"}
    (bias,) = (node.attributes for node in exe.compilation.graph if node.name == "b")
    assert isinstance(bias, ConstantAttributes)
    np.testing.assert_array_equal(again.weights["b"], bias.value.data if "- b" in again.source else -bias.value.data)
