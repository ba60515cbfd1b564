"""The outside judge: ONNX Runtime, which shares no code with tpucc, computes exported layers and programs to the same integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_layers import drawn
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.runtime.outside import Session

EACH, COUNT, SOAK = 40, 200, 5_000
BITS = (8, 16)


def assert_equal(bits: int, seeds: range) -> None:
    layers = drawn(bits, seeds)
    found = Session(onnx_model(layers.graph())).run(layers.inputs)
    for name, expected in layers.expected.items():
        np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} of {layers.graph()[name].op}, seeds {seeds}")


@pytest.mark.parametrize("first", range(0, COUNT, EACH))
@pytest.mark.parametrize("bits", BITS)
def test_random_layers(bits: int, first: int) -> None:
    assert_equal(bits, range(first, first + EACH))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(COUNT, SOAK, 10 * EACH))
@pytest.mark.parametrize("bits", BITS)
def test_random_layers_at_length(bits: int, first: int) -> None:
    for seed in range(first, first + 10 * EACH, EACH):
        assert_equal(bits, range(seed, seed + EACH))
