"""The meter of a layer's error: sums over batches, and a histogram that grows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.diagnostics import Origin
from tpucc.explain.histogram import BINS
from tpucc.explain.layer_error import ErrorMeter, LayerError, alone, as_it_runs
from tpucc.explain.noise import FLOAT32
from tpucc.ir import Quantisation
from tpucc.ir.dtypes import I8
from tpucc.numerics import AnyArray, quantise
from tpucc.see.charts.errors import headline

HELD = Quantisation(0.5, 10)


def metered(*batches: AnyArray, held: Quantisation = HELD) -> LayerError:
    """The error of values that are quantised and no more, in these batches."""
    meter = ErrorMeter(held, I8)
    for batch in batches:
        integers = quantise(batch, held.scale, held.zero_point)
        meter.add(batch, integers)
        meter.add_alone(batch, integers)
    return meter.result("layer", 3, "fc", Origin(), 2)


def values(seed: int, size: int, spread: float = 10.0) -> AnyArray:
    return (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)


def test_batches_add_up() -> None:
    first, second, third = values(0, 100), values(1, 300), values(2, 50)
    apart, together = metered(first, second, third), metered(np.concatenate([first, second, third]))
    assert (apart.values, apart.seen, apart.histogram) == (together.values, together.seen, together.histogram)
    assert (apart.sqnr, apart.mean_error) == pytest.approx((together.sqnr, together.mean_error), rel=1e-12)
    assert (apart.name, apart.layer, apart.kind, apart.line, apart.rows) == ("layer", 3, "fc", 0, 2)


@pytest.mark.parametrize("reach", [-3000.0, 3000.0])
def test_a_later_batch_reaches_farther_on_one_side_alone(reach: float) -> None:
    """The first batch has the largest error nevertheless if the far value is there first."""
    near, far = np.float32([1.0, 2.0]), np.float32([reach])
    found, turned = metered(near, far), metered(far, near)
    assert found.histogram == turned.histogram
    assert found.histogram.start <= min(reach, found.limits[0])
    assert found.histogram.stop > max(reach, found.limits[1])
    assert sum(found.histogram.counts) == 3
    assert found.largest_error == turned.largest_error > 2900
    assert found.seen == turned.seen == (min(reach, 1.0), max(reach, 2.0))


@each([1e-30, 0.01, 1.0, 40.0, 1e6, 1e30])
def test_a_histogram_counts_every_value_however_it_grew(spread: float) -> None:
    batches = [values(seed, 200, spread * 3**seed) for seed in range(5)]
    found = metered(*batches).histogram
    edges = found.start + found.width * np.arange(len(found.counts) + 1)
    wanted, _ = np.histogram(np.concatenate(batches).astype(np.float64), edges)
    assert found.counts == tuple(wanted.tolist())
    assert sum(found.counts) == 1000
    assert math.frexp(found.width)[0] == 0.5
    assert BINS / 2 - 1 <= len(found.counts) <= BINS
    assert found.start <= min(metered(*batches).limits)
    assert found.stop > max(metered(*batches).limits)


@pytest.mark.parametrize(
    ("zero_point", "ends", "beyond"), [(-1, [64.0, 64.2], 65.0), (0, [-64.0, -64.2], -65.0)], ids=["the upper end", "the lower end"]
)
def test_only_what_saturates_is_in_bins_beyond_the_integers(zero_point: int, ends: list[float], beyond: float) -> None:
    """The ends, 64 and -64, are edges of bins: what rounds to them is in the bin within, also after bins have become one."""
    held = Quantisation(0.5, zero_point)
    for batches in ([np.float32(ends)], [np.float32(ends), np.float32([beyond])], [np.float32([beyond * 40]), np.float32(ends)]):
        error = metered(*batches, held=held)
        starts = error.histogram.start + error.histogram.width * np.arange(len(error.histogram.counts))
        outside = (starts >= error.limits[1]) | (starts + error.histogram.width <= error.limits[0])
        assert np.array(error.histogram.counts)[outside].sum() == len(batches) - 1 == round(error.saturated * error.values)


def test_signal_and_noise_by_hand() -> None:
    """0.3 rounds to one step, 0.5; 1.0 is exact; 100 is beyond the last integer, 117 steps or 58.5."""
    error = metered(np.float32([0.3, 1.0, 100.0, -80.0]))
    assert error.limits == (-69.0, 58.5)
    assert (error.below, error.above, error.saturated) == (0.25, 0.25, 0.5)
    noise = [0.2, 0.0, 41.5, 11.0]
    assert error.mean_error == pytest.approx(sum(noise) / 4, rel=1e-6)
    assert (error.largest_error, error.largest_steps, error.mean_steps) == pytest.approx((41.5, 83.0, sum(noise) / 2), rel=1e-6)
    ratio = (0.3**2 + 1 + 100**2 + 80**2) / sum(n * n for n in noise)
    assert error.sqnr == error.own_sqnr == pytest.approx(10 * math.log10(ratio), rel=1e-6)


def test_uniform_values_have_six_decibels_a_bit() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, 100_000).astype(np.float32)
    assert metered(x, held=Quantisation(2 / 255, 0)).sqnr == pytest.approx(20 * math.log10(255), abs=0.1)


def test_no_noise_and_no_signal() -> None:
    assert metered(np.zeros(5, np.float32)).sqnr == math.inf
    meter = ErrorMeter(HELD, I8)
    meter.add(np.zeros(2, np.float32), np.int8([10, 11]))
    assert meter.result("", 0, "", Origin(), 1).sqnr == -math.inf


def test_a_constant_signal_and_one_of_ones_and_zeros_are_no_measurement() -> None:
    same, ends = (metered(np.float32(values), held=Quantisation(1 / 255, -128)) for values in ([0.5] * 4, [1.0, 1e-22, 1.0, 0.0]))
    assert (same.constant, same.sqnr, same.mean_error > 0) == (True, math.inf, True)
    assert (ends.constant, ends.sqnr, ends.mean_error > 0) == (False, FLOAT32, True)
    assert [as_it_runs(same), alone(same), as_it_runs(ends)] == ["one value", "one value", "over 144 dB"]
    assert headline("net", [same]) == "net: the last layer has no signal to noise: it is constant in float32. Nothing saturates."
    assert headline("net", [ends]).startswith("net: the last layer has no signal to noise: it is saturated. ")


def test_what_overflowed_counts_as_the_largest_number() -> None:
    meter = ErrorMeter(HELD, I8)
    meter.add(np.float32([math.inf, -math.inf, math.nan, 1.0]), np.int8([127, -128, 10, 12]))
    error = meter.result("", 0, "", Origin(), 1)
    assert error.seen == (np.finfo(np.float32).min, np.finfo(np.float32).max)
    assert (error.below, error.above, sum(error.histogram.counts)) == (0.25, 0.25, 4)
    assert math.isfinite(error.sqnr)
