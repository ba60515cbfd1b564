"""Gradients of operators: every rule against differences of the reference in float64, and against faults that are put into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.cases import each
from tests.support.gradients import Point, by_rule, disagreement, faulty, points, takes_reals
from tpucc.ir import NoAttributes, f32
from tpucc.ops import OPS
from tpucc.ops.elu import EluAttributes
from tpucc.ops.gelu import GeluAttributes
from tpucc.ops.gradient import Gradients, Rule, Value
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.opdef import Array, OpDef

RULES = {name: op.gradient for name, op in OPS.items() if isinstance(op.gradient, Rule) and takes_reals(op)}
POINTS = {name: list(points(OPS[name])) for name in RULES}
CASES = {point.title: (point,) for found in POINTS.values() for point in found}

Fault = Callable[[list[Value | None]], Gradients]


@each(CASES)
def test_a_rule_gives_what_differences_give(point: Point) -> None:
    assert disagreement(point, RULES[point.op.name]) == ""


@each(CASES)
def test_references_compute_in_the_precision_of_their_operands(point: Point) -> None:
    """What is compared above is float64 throughout."""
    found = point.op.reference(point.attributes, point.operands)
    assert found.dtype == np.float64
    single = point.op.reference(point.attributes, [x.astype(np.float32) if x.dtype == np.float64 else x for x in point.operands])
    assert single.dtype == np.float32


@each(CASES)
def test_a_gradient_that_is_wanted_alone_is_the_same(point: Point) -> None:
    given = (point.op, point.attributes, point.operands, point.types, point.dy)
    with np.errstate(all="ignore"):
        together = by_rule(*given)
        for index, gradient in enumerate(together):
            wanted = [other == index for other in range(len(together))]
            alone = by_rule(*given, wanted)[index]
            assert alone is gradient is None or np.array_equal(np.asarray(alone), np.asarray(gradient))


@each(CASES)
def test_indices_have_no_gradient(point: Point) -> None:
    with np.errstate(all="ignore"):
        found = by_rule(point.op, point.attributes, point.operands, point.types, point.dy)
    assert all(found[index] is None for index, type_ in enumerate(point.types) if type_.dtype != "f32")


def test_every_rule_is_tried() -> None:
    assert {name for name, found in POINTS.items() if not found} == set()


# Faults. A check that can't fail is none: each rule with a fault must be found wrong at one of its points at least.


def changed(index: int, change: Callable[[Value], Value]) -> Fault:
    """The gradient of one operand changed."""
    return lambda given: [change(value) if place == index and value is not None else value for place, value in enumerate(given)]


def exchanged(index: int, other: int) -> Fault:
    """The gradients of two operands of one shape exchanged."""

    def fault(given: list[Value | None]) -> Gradients:
        given[index], given[other] = given[other], given[index]
        return given

    return fault


def scaled(value: Value) -> Value:
    return value * 1.01


def left_out(value: Value) -> Value:
    return value.zeros()


def raised(value: Value) -> Value:
    return value + 0.01


def gradients_of(point: Point) -> dict[int, Array]:
    with np.errstate(all="ignore"):
        found = by_rule(point.op, point.attributes, point.operands, point.types, point.dy)
    return {index: np.zeros_like(point.operands[index]) if (dx := found[index]) is None else dx for index in point.real}


def noticed(name: str, fault: Fault) -> bool:
    return any(disagreement(point, faulty(RULES[name], fault)) for point in POINTS[name])


@each(list(RULES))
def test_a_fault_in_a_rule_is_noticed(name: str) -> None:
    found = [gradients_of(point) for point in POINTS[name]]
    for index in sorted({index for gradients in found for index in gradients}):
        assert noticed(name, changed(index, raised)), f"operand {index} with 0.01 more"
        if any(gradients[index].any() for gradients in found if index in gradients):
            assert noticed(name, changed(index, scaled)), f"operand {index} times 1.01"
            assert noticed(name, changed(index, left_out)), f"operand {index} left out"


@each([name for name, found in POINTS.items() if any(len(point.real) > 1 for point in found)])
def test_exchanged_gradients_are_noticed(name: str) -> None:
    """For each pair of operands of one shape whose gradients differ."""
    for point in POINTS[name]:
        gradients = gradients_of(point)
        for index in gradients:
            for other in range(index):
                if other in gradients and gradients[index].shape == gradients[other].shape:
                    same = np.allclose(gradients[index], gradients[other], rtol=1e-4, atol=1e-4)
                    assert bool(disagreement(point, faulty(RULES[name], exchanged(index, other)))) != same, (point.title, index, other)


# Points at which differences say nothing.

KINKS: list[tuple[str, Any, float, float]] = [
    ("relu", NoAttributes(), 0.0, 0.0),
    ("relu6", NoAttributes(), 0.0, 0.0),
    ("relu6", NoAttributes(), 6.0, 0.0),
    ("leaky_relu", LeakyReluAttributes(0.25), 0.0, 1.0),
    ("elu", EluAttributes(0.25), 0.0, 1.0),
    ("hard_sigmoid", NoAttributes(), -3.0, 0.0),
    ("hard_sigmoid", NoAttributes(), 3.0, 0.0),
    ("hard_swish", NoAttributes(), -3.0, 0.0),
    ("hard_swish", NoAttributes(), 3.0, 1.0),
    ("gelu", GeluAttributes(), 0.0, 0.5),
    ("gelu", GeluAttributes(), 1e-300, 0.5),
    ("gelu", GeluAttributes(True), 0.0, 0.5),
]


@each({f"{case[0]} at {case[2]}": case for case in KINKS})
def test_conventions_at_kinks(name: str, attributes: Any, x: float, slope: float) -> None:
    with np.errstate(all="ignore"):
        (found,) = by_rule(OPS[name], attributes, [np.array([x])], [f32(1)], np.array([2.0]))
    assert found is not None
    assert found.item() == 2.0 * slope


STEEP: list[tuple[str, Any]] = [
    *((name, NoAttributes()) for name in ("relu", "relu6", "sigmoid", "tanh", "silu", "hard_sigmoid", "hard_swish")),
    *((name, OPS[name].examples[0].attributes) for name in ("leaky_relu", "elu", "softmax")),
    *(("gelu", GeluAttributes(approximate)) for approximate in (False, True)),
]


@each({f"{name} {attributes}": (name, attributes) for name, attributes in STEEP})
def test_gradients_of_extreme_values_are_finite_in_float32(name: str, attributes: Any) -> None:
    x = np.array([3.4e38, 1e20, 1e3, 90.0, 17.0, 1e-30, 1e-45, 0.0], np.float32)
    x = np.concatenate([x, -x])
    op: OpDef[Any] = OPS[name]
    with np.errstate(all="ignore"):
        (found,) = by_rule(op, attributes, [x], [f32(16)], np.ones(16, np.float32))
    assert found is not None
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert (np.abs(found) < 1.2).all()
