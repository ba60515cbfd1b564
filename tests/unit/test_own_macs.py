"""`macs` are the model's own: zeros that an expansion put into weights are none of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tpucc
from tests.support.cases import one_of
from tpucc.ir.dtypes import I8
from tpucc.layers.kinds import Conv, Requantise
from tpucc.layers.reference import convolution

pytestmark = pytest.mark.usefixtures("any_ranges")

DEPTHWISE = """
weights random(seed=0)
model m(x: f32[2, 8, 8, 4] in [-1.0, 1.0]):
    weight a: f32[1, 1, 4, 16]
    h = relu(conv2d(x, a))
    parts = []
    for c in range(16):
        weight w: f32[3, 3, 1, 1] = "w{c}"
        parts = parts + [conv2d(h[:, :, :, c:c + 1], w, padding="same")]
    return concat(parts, axis=-1)
"""
OWN = 2 * 64 * (4 * 16 + 9 * 16)


GROUPS = """
weights random(seed=0)
model m(x: f32[2, 8, 8, 4] in [-1.0, 1.0]):
    weight a: f32[1, 1, 4, 16]
    h = relu(conv2d(x, a))
    weight w: f32[3, 3, 1, 16]
    return conv2d(h, w, padding="same", groups=16)
"""


PAIRS = [
    pytest.param(source, level, target, marks=pytest.mark.soak if (row + level + column) % 2 else ())
    for row, source in enumerate((DEPTHWISE, GROUPS))
    for level in (0, 1, 2)
    for column, target in enumerate(("tpu_v1", "tiny"))
]
"""Each two of source, level and target together; in `make soak`, all three."""


@pytest.mark.parametrize(("source", "level", "target"), one_of(2, PAIRS))
def test_a_depthwise_convolution_counts_its_own(source: str, level: int, target: str) -> None:
    """2 · 8 · 8 pixels: 4 · 16 products of each for the first layer, and nine of each channel."""
    overrides = {"unified_buffer_rows": 4096} if target == "tiny" else {}
    by_matrix = {"depthwise": {"unit": "matrix"}}
    stats = tpucc.compile_source(source, target=target, level=level, overrides=overrides, settings=by_matrix).stats
    assert stats["macs"] == OWN
    assert sum(layer["macs"] for layer in stats["layers"]) == OWN
    assert stats["tops"] == pytest.approx(2 * OWN / stats["seconds"] / 1e12)
    assert stats["breakdown"]["useful_macs"] == pytest.approx(100 * stats["utilization"], rel=0.02)  # tiles of zeros are skipped


def test_tiles_between_groups_are_not_fetched() -> None:
    """16 channels are four column blocks of tiny: a position has 4 tiles and not 16."""
    exe = tpucc.compile_source(GROUPS, target="tiny", overrides={"unified_buffer_rows": 4096})
    read = {int(tile) for tile in re.findall(r"read_weights tile=(\d+)", str(exe.program))}
    assert len(read) == 4 + 4 * 9
    assert all(exe.program.tiles[tile].any() for tile in read)


def test_the_reference_leaves_out_channels_of_zeros() -> None:
    """It multiplies two of 64 channels, and adds up the same integers."""
    random = np.random.default_rng(0)
    x = random.integers(-128, 128, (2, 6, 6, 64)).astype(np.int8)
    narrow = random.integers(-127, 128, (3, 3, 2, 5)).astype(np.int8)
    wide = np.zeros((3, 3, 64, 5), np.int8)
    wide[:, :, 7:9] = narrow
    bias, multiplier = np.arange(5, dtype=np.int32), np.full(5, 0.001, np.float32)
    layer = Conv((1, 1), (1, 1, 1, 1), -4, Requantise(3))
    wanted = convolution(layer, x[..., 7:9], narrow, bias, multiplier, to=I8)
    np.testing.assert_array_equal(convolution(layer, x, wide, bias, multiplier, to=I8), wanted)
    nothing = convolution(layer, x, np.zeros_like(wide), bias, multiplier, to=I8)
    np.testing.assert_array_equal(nothing, np.broadcast_to(3, nothing.shape))
