"""Comparisons say which choice of the compiler two machines share, and why another weight memory changes nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import tpucc
from tests.support.reports import PROGRAMS
from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.pairs import Pair
from tpucc.explain.comparison.reasons import reasons_of
from tpucc.explain.critical import Limit

WIDE = """weights random(seed=0)
model wide(x: f32[{rows}, 256] in [0.0, 1.0]) -> f32[{rows}, 256]:
    weight w: f32[256, 256]
    weight v: f32[256, 256]
    return relu(relu(x @ w) @ v)
"""


@pytest.mark.soak
def test_both_take_the_vector_unit_for_depthwise_convolutions() -> None:
    model = PROGRAMS / "gallery" / "mlperf_ds_cnn.tpu"
    here, matrix = (tpucc.compile(model, omit=omit) for omit in ([], ["depthwise"]))
    found = tpucc.compare(*(tpucc.compile(model, target=target, params={"batch": 32}) for target in ("tpu_v1", "tpu_v1_prime")))
    assert found.difference == 0
    assert "In both the activation unit computes 4 depthwise convolutions." in found.cause
    assert "A tile is fetched in 250 cycles instead of 1,349." in found.cause, "tiles are shifted in that it waits for"
    said = tpucc.compare(here, matrix).cause
    none = "The activation unit computes none of the depthwise convolutions in B, 4 in A"
    assert f"{none}: those that move take 48,564 cycles instead of 4,504." in said
    assert "Of all layers" not in said, "it would name one of the four, or another"
    assert "A tile is fetched" not in said, "the weight memory is the same"


@pytest.mark.soak
def test_numbers_of_the_machines_that_differ_are_named() -> None:
    one = tpucc.compile_source(WIDE.format(rows=8))
    small = tpucc.compile_source(WIDE.format(rows=8), target=replace(one.program.target, weight_fifo_tiles=1, clock_hz=1e9))
    assert (
        "The machines differ in clock_hz (1e+09 instead of 7e+08) and weight_fifo_tiles (1 instead of 4)."
        in tpucc.compare(one, small).cause
    )
    assert "and 6 other numbers. " in tpucc.compare(one, tpucc.compile_source(WIDE.format(rows=8), target="tiny")).cause
    assert "machines" not in tpucc.compare(one, one).cause


def test_where_tiles_are_waited_for_or_nothing_is_depthwise_neither_is_said() -> None:
    """What a fetch takes is said once: with the tiles that are waited for, or alone where they make no difference."""
    found = tpucc.compare(*(tpucc.compile_source(WIDE.format(rows=512), target=target) for target in ("tpu_v1", "tpu_v1_prime")))
    assert "A tile is fetched in 250 cycles instead of 1,349; the matrix unit waits for none in either." in found.cause
    assert all(found.rows[limit].a == 0 for limit in (Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT))
    one, other = (tpucc.compile_source(WIDE.format(rows=8), target=target) for target in ("tpu_v1", "tpu_v1_prime"))
    said = tpucc.compare(one, other).cause
    assert "waits for none" not in said
    assert "depthwise convolution" not in said
    assert ("250 cycles each instead of 1,349 cycles each" in said, "A tile is fetched" in said) == (True, False)


def test_of_equal_cycles_it_says_what_they_are_spent_on_and_how_far_buffers_reach() -> None:
    """A shorter wait for tiles only lengthens that for the host, where rows come last; an allocator changes rows, not cycles."""
    host, tiles = Limit.HOST_LINK, Limit.WEIGHT_MEMORY
    same = {limit: Pair(5, 5) for limit in ROWS}
    rows = same | {host: Pair(0, 827), tiles: Pair(827, 0)}
    assert list(reasons_of(rows)) == [f"They spend these cycles in other ways: {ROWS[tiles].name} -827, {ROWS[host].name} +827."]
    assert list(reasons_of(same)) == []
    iris = PROGRAMS / "02_iris.tpu"
    higher = tpucc.Stages(allocate=lambda lives, rows: tpucc.Stages().allocate(lives, rows) + 8)
    said = tpucc.compare(tpucc.compile(iris), tpucc.compile(iris, stages=higher)).cause
    assert "The buffers of B reach up to 15,104 bytes of the unified buffer, those of A to 13,056." in said
