"""The outside judge: ONNX Runtime, which shares no code with tpucc, computes exported layers and programs to the same integers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import LONG, one_of
from tests.support.networks import network
from tests.support.onnx_layers import drawn
from tests.support.onnxruntime import session as session_of
from tests.support.seeds import at_length
from tpucc.compilation import Compilation
from tpucc.diagnostics import Source
from tpucc.driver import compile_source
from tpucc.interop.export import exported
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.interop.outside import Session, compare_with_onnxruntime
from tpucc.layers.partition import partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.options import Options
from tpucc.passes.input_arrays import random_array
from tpucc.runtime.runtime import Runtime

EACH, COUNT = 40, 200
BITS = (8, 16)
NETWORKS = 10
CLOSE = 1e-3
"""Of random networks: sums of which little is left show the last bits of their terms."""


def assert_equal(bits: int, seeds: range) -> None:
    layers = drawn(bits, seeds)
    found = Session(onnx_model(layers.graph())).run(layers.inputs)
    for name, expected in layers.expected.items():
        np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} of {layers.graph()[name].op}, seeds {seeds}")


@pytest.mark.parametrize("first", one_of(5, range(0, COUNT, EACH), LONG))
@pytest.mark.parametrize("bits", BITS)
def test_random_layers(bits: int, first: int) -> None:
    assert_equal(bits, range(first, first + EACH))


def compiled(seed: int, bits: int) -> Compilation:
    return compile_source(Source("m.tpu", network(seed)), Path(), Options(stop_after="divide-batch", activation_bits=bits))


def assert_network(seed: int) -> None:
    """In float32; in integers as a user runs the file; and the device's part, integer by integer."""
    made = compiled(seed, 8)
    assert made.graph is not None
    generator = np.random.default_rng(seed)
    inputs = {node.name: random_array(generator, node.type) for node in made.graph.inputs}
    expected, found = evaluate(made.graph, inputs), Session(*exported(made, quantised=False)).run(inputs)
    for output, value in zip(made.graph.outputs, found.values(), strict=True):
        wanted = expected[output.node]
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        assert wanted.dtype.kind == "i" or np.abs(value - wanted).max() <= CLOSE * np.abs(wanted).max(initial=1e-6), (seed, output)
    for bits in BITS:
        assert_integers(seed, compiled(seed, bits), inputs)


def assert_integers(seed: int, made: Compilation, inputs: Mapping[str, AnyArray]) -> None:
    assert made.layers is not None
    session_of(exported(made, quantised=True)[1]).run(None, dict(inputs))
    device = partition(made.layers).device
    entering, leaving = [node.name for node in device.inputs], [output.node for output in device.outputs]
    if not leaving:
        return
    values = evaluate(made.layers, inputs, LAYER_REFERENCES, keep=[*entering, *leaving])
    found = Session(onnx_model(device)).run({name: values[name] for name in entering})
    for name, value in zip(leaving, found.values(), strict=True):
        np.testing.assert_array_equal(value, values[name], err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("seed", one_of(4, range(NETWORKS), LONG))
def test_random_networks(seed: int) -> None:
    assert_network(seed)


@at_length(1_000, 25)
def test_many_random_networks(seeds: range) -> None:
    for seed in seeds:
        assert_network(seed)


@at_length(20_000, 25 * EACH)
@pytest.mark.parametrize("bits", BITS)
def test_random_layers_at_length(bits: int, seeds: range) -> None:
    for seed in seeds[::EACH]:
        assert_equal(bits, range(seed, seed + EACH))


def test_scalars_that_the_device_computes_and_that_enter_it() -> None:
    text = """weights random(seed=0)
model m(x: f32[] in [-1.0, 1.0], v: f32[2, 3]):
    weight w: f32[3, 2]
    return tanh(x), relu(softmax(v @ w)[0, 0] * x), tanh(mean(v @ w) * x)
"""
    made, inputs = (
        compile_source(Source("m.tpu", text), Path(), Options()),
        {"x": np.asarray(0.5, np.float32), "v": np.ones((2, 3), np.float32)},
    )
    assert made.program is not None
    assert made.layers is not None
    assert not [c for c in compare_with_onnxruntime(Runtime(made.program), made.layers, inputs) if c.unequal]
