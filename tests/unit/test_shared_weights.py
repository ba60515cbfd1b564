"""Weights that have the integers of several layers."""

from __future__ import annotations

import numpy as np

from tests.support.cases import each
from tpucc.interop.onnx.reading.exported.shared_weights import (
    Claim,
    common_values,
    of_bias,
    of_columns,
    of_elements,
    of_one_bias,
    of_values,
)
from tpucc.interop.onnx.scales import Use, bias_integers, scales_with_one_bias
from tpucc.ir.dtypes import I8, I16, IntegerFormat
from tpucc.layers.parameters import quantisation_of
from tpucc.numerics import AnyArray, Float32, multiplier, quantise, quantise_weights, weight_scales


def use(rng: np.random.Generator, scales: AnyArray) -> Use:
    """A product whose operand and result have some scales."""
    x, y = rng.uniform(0.001, 0.1, 2).astype(np.float32)
    return Use(multiplier(float(x), scales, float(y)), x, y)


def columns(rng: np.random.Generator, weights: Float32) -> Claim:
    scales = weight_scales(weights, per_channel=True)
    found = of_columns(quantise_weights(weights, scales), [use(rng, scales), use(rng, scales)])
    assert found is not None
    return found


def elements(rng: np.random.Generator, weights: Float32, of: IntegerFormat) -> Claim:
    held = quantisation_of(weights, of)
    integers, scale = quantise(weights, held.scale, held.zero_point, of), np.asarray([held.scale], np.float32)
    found = of_elements(integers, held.zero_point, [use(rng, scale)], of)
    assert found is not None
    return found


@each([(seed, of) for seed in range(12) for of in (I8, I16)])
def test_a_weight_is_found_that_all_layers_round_as_the_source_does(seed: int, of: IntegerFormat) -> None:
    """By columns, by rows, and by the range of all values, which may lie on one side of 0."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 0.1, rng.integers(1, 9, 2)).astype(np.float32)
    weights = {0: np.abs(weights), 1: -np.abs(weights), 2: weights * (rng.uniform(size=weights.shape) < 0.5)}.get(seed, weights)
    by_column, by_row = columns(rng, weights), columns(rng, weights.T).arranged(np.transpose, np.transpose)
    forms = [elements(rng, weights, of), elements(rng, weights, of)]
    for claims in ([by_column, by_row], forms, [by_column, *forms], [by_row, *forms], [by_column, by_row, *forms]):
        found = common_values(claims)
        assert found is not None
        np.testing.assert_allclose(found, weights, atol=np.abs(weights).max() / 100)
        assert all(claim.has(found) for claim in claims)
        assert common_values([*claims, of_values(weights)]) is not None
        assert common_values([*claims, of_values(weights * 2 + 1)]) is None


def test_a_bias_may_be_a_factor_too() -> None:
    rng = np.random.default_rng(0)
    bias, units = rng.normal(0, 0.1, 9).astype(np.float32), rng.uniform(0.001, 0.01, 9).astype(np.float32)
    claims = [of_bias(bias_integers(bias, 0.02, units), 0.02, units), elements(rng, bias, I8)]
    found = common_values(claims)
    assert found is not None
    np.testing.assert_allclose(found, bias, atol=1e-4)
    assert common_values([*claims, of_bias(bias_integers(bias + 1, 0.02, units), 0.02, units)]) is None


@each([(seed, of, sign) for seed in range(8) for of in (I8, I16) for sign in (1, -1)])
def test_a_value_is_found_that_is_the_bias_of_all_columns(seed: int, of: IntegerFormat, sign: int) -> None:
    """Also where its integers have more digits than float32: then only the right ones of the scales that the multipliers allow have it."""
    rng = np.random.default_rng(seed)
    scales = weight_scales(rng.normal(0, 0.1, (8, 30)).astype(np.float32), per_channel=True)
    product, value = use(rng, scales), rng.normal(0, 1, 1).astype(np.float32)
    x = 0.01 if of is I8 else 0.01 / 256
    integers = bias_integers(np.repeat(sign * value, 30), x, scales)
    found = scales_with_one_bias(product, integers, x, None)
    assert found is not None
    assert product.gives(found).all()
    claim = of_one_bias(integers, x, found, sign < 0)
    held = common_values([claim])
    assert held is not None
    assert claim.has(held)
    np.testing.assert_allclose(held, value, rtol=1e-2)
    wanted = scales_with_one_bias(product, integers, x, sign * value[0])
    assert wanted is not None
    np.testing.assert_array_equal(bias_integers(np.repeat(sign * value, 30), x, wanted), integers)
    integers[0] += 2**16
    assert scales_with_one_bias(product, integers, x, None) is None
    assert common_values([of_one_bias(integers, x, found, sign < 0)]) is None


def test_values_within_all_bounds_are_tried_by_rounding_them() -> None:
    """Of two largest integers of a column either may give the scale, and the bounds say of neither that it does."""
    integers = np.int8([[127], [127], [5]])
    near, far = (of_columns(integers, [Use(scale, np.float32(1), np.float32(1))]) for scale in np.float32([[0.1], [0.1000001]]))
    assert near is not None
    assert far is not None
    assert common_values([near, near]) is not None
    assert common_values([near, far]) is None


def test_columns_that_do_not_say_their_scale_are_no_claim() -> None:
    rng = np.random.default_rng(0)
    scales = np.float32([0.1, 0.2])
    assert of_columns(np.int8([[126, 127], [3, -4]]), [use(rng, scales)]) is None
    assert of_columns(np.int8([[0, 127], [0, -4]]), [use(rng, scales)]) is not None
    assert of_columns(np.int8([[127, 127], [3, -4]]), [use(rng, scales), use(rng, scales * 2)]) is None
