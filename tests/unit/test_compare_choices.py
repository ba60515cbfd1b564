"""Comparisons say which choice of the compiler two machines share, and why another weight memory changes nothing."""

from __future__ import annotations

import tpucc
from tests.support.reports import PROGRAMS
from tpucc.sim.accounting import ROWS
from tpucc.sim.segments import Cause

WIDE = """weights random(seed=0)
model wide(x: f32[{rows}, 256] in [0.0, 1.0]) -> f32[{rows}, 256]:
    weight w: f32[256, 256]
    weight v: f32[256, 256]
    return relu(relu(x @ w) @ v)
"""


def test_both_take_the_vector_unit_for_depthwise_convolutions_and_no_tile_is_waited_for() -> None:
    model = PROGRAMS / "gallery" / "mlperf_ds_cnn.tpu"
    here, prime, matrix = (
        tpucc.compile(model, target="tpu_v1"),
        tpucc.compile(model, target="tpu_v1_prime"),
        tpucc.compile(model, target="tpu_v1", omit=["depthwise"]),
    )
    found = tpucc.compare(here, prime)
    assert found.difference == 0
    assert "In both the vector unit computes 4 depthwise convolutions." in found.cause
    assert "A tile is fetched in 250 cycles instead of 1,349; the matrix unit waits for none in either." in found.cause
    assert all(found.rows[ROWS[cause].key].a == 0 for cause in (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT))
    said = tpucc.compare(here, matrix).cause
    assert "The vector unit computes none of the depthwise convolutions in B, 4 in A: those that move take 47,318 cycles instead of" in said
    assert "Of all layers" not in said, "it would name one of the four, or another"
    assert "A tile is fetched" not in said, "the weight memory is the same"


def test_where_tiles_are_waited_for_or_nothing_is_depthwise_neither_is_said() -> None:
    one, other = (tpucc.compile_source(WIDE.format(rows=8), target=target) for target in ("tpu_v1", "tpu_v1_prime"))
    said = tpucc.compare(one, other).cause
    assert "waits for none" not in said
    assert "vector unit" not in said
