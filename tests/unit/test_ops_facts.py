"""What the operators say of themselves, against what their references compute."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.floating.arithmetic import PORTABLE
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import MOVED, UNCHANGED, Facts, Values
from tpucc.ops.fused import defined_alone
from tpucc.ops.opdef import Arithmetic, Array, Boundary, Clamp, Example, Matrix, OnHost, OpDef, Pooling, Table
from tpucc.ops.parts import Bounds, all_of, shape_of

SMALL = 20_000
"""Elements of the largest operand or result that is computed here."""
CASES = {
    f"{op.name}: {example.title}": (op, example)
    for op in OPS.values()
    for example in op.examples
    if op.operands and max(math.prod(type_.shape) for type_ in example.operands) <= SMALL
}
FUNCTIONS = [op for op in OPS.values() if isinstance(op.legalisation, Table | Clamp)]
RISING = {
    f"{op.name}: {example.title}": (op, example.attributes)
    for op in FUNCTIONS
    for example in op.examples
    if op.facts.monotone(example.attributes)
}
PAIRS = [op for op in OPS.values() if isinstance(op.legalisation, Arithmetic)]


def arrays(op: OpDef[Any], example: Example[Any], random: np.random.Generator) -> list[Array]:
    """Operands of whole numbers, of which sums and products are exact in float32; indices that every table has, variances of at least 0."""
    bounds = [(0, 4) if type_.dtype == "i32" or op.name == "batch_norm" else (-8, 9) for type_ in example.operands]
    return [random.integers(*ends, type_.shape).astype(type_.numpy) for type_, ends in zip(example.operands, bounds, strict=True)]


def some_part(shape: tuple[int, ...], random: np.random.Generator, cut: set[int]) -> Bounds:
    """Random bounds along the axes `cut`, and the whole of the others."""
    found = []
    for axis, size in enumerate(shape):
        start = int(random.integers(0, size)) if axis in cut else 0
        found.append((start, int(random.integers(start + 1, size + 1)) if axis in cut else size))
    return tuple(found)


def taken(array: Array, bounds: Bounds) -> Array:
    return array[tuple(slice(*ends) for ends in bounds)]


@each(CASES)
def test_a_part_of_a_result_is_computed_from_the_parts_that_it_names(op: OpDef[Any], example: Example[Any]) -> None:
    random = np.random.default_rng(1)
    operands = arrays(op, example, random)
    whole = op.reference(example.attributes, operands)
    shapes = [array.shape for array in operands]
    for axes in ([], *([axis] for axis in range(whole.ndim)), range(whole.ndim)):
        for _ in range(4):
            bounds = some_part(whole.shape, random, set(axes))
            part = op.facts.part(example.attributes, shapes, whole.shape, bounds)
            if part is None or any(stop <= start for ends in part.operands for start, stop in ends):
                continue
            pieces = [taken(array, ends) for array, ends in zip(operands, part.operands, strict=True)]
            found = OPS[part.op or op.name].reference(part.attributes, pieces)
            assert found.shape == shape_of(bounds)
            np.testing.assert_allclose(found, taken(whole, bounds), rtol=1e-6)


@each(CASES)
def test_the_whole_is_a_part_of_everything_that_the_device_computes(op: OpDef[Any], example: Example[Any]) -> None:
    shapes = [type_.shape for type_ in example.operands]
    result = op.infer(example.attributes, example.operands).shape
    part = op.facts.part(example.attributes, shapes, result, all_of(result))
    if op.facts.values is not Values.VIEWED:
        assert (part is None) == isinstance(op.legalisation, OnHost)
    if part is not None and op.facts.values is Values.COMPUTED:
        assert part.operands == tuple(map(all_of, shapes))
        assert part.attributes == example.attributes


@each({op.name: (op,) for op in FUNCTIONS})
def test_functions_are_monotone_as_they_say(op: OpDef[Any]) -> None:
    x = np.linspace(-9, 9, 4001, dtype=np.float32)
    slopes = (0.5, -0.5) if "alpha" in {field.name for field in fields(op.attributes)} else (None,)
    for alpha in slopes:
        attributes = op.examples[0].attributes if alpha is None else op.attributes(alpha)
        rises = np.diff(op.reference(attributes, [x]).astype(np.float64)).min() >= -1e-6  # not where it is NaN
        assert op.facts.monotone(attributes) == rises
    assert facts_of("unknown") is facts_of("fc")
    assert not facts_of("fc").monotone(None)


@each(
    {
        f"{op.name} {example.title}": (op, example.attributes)
        for op in FUNCTIONS
        for example in op.examples
        if op.facts.monotone(example.attributes)
    }
)
def test_monotone_functions_never_fall_in_float32_but_for_the_last_bits(op: OpDef[Any], attributes: Any) -> None:
    """Neighbouring numbers of all magnitudes. The host's arithmetic rounds several times: an exponential, then a sum."""
    bits = np.concatenate([np.arange(start, start + 1000, dtype=np.int32) for start in range(0, 0x7F7FF000, 0x7F7FF000 // 100)])
    positive = bits.view(np.float32)
    x = np.concatenate([-positive[::-1], positive])
    with np.errstate(over="ignore"):
        reference, found = op.reference(attributes, [x]), defined_alone(op, attributes, [x], PORTABLE)
    falls = np.flatnonzero(reference[1:] < reference[:-1])[:1]
    assert not len(falls), f"falls from {reference[falls]} to {reference[falls + 1]} between {x[falls]} and {x[falls + 1]}"
    finite = np.minimum(found, np.float32(1e38))
    assert (finite[1:] >= finite[:-1] - 2 * np.spacing(np.abs(finite[:-1]))).all()


@each({op.name: (op,) for op in PAIRS})
def test_arithmetic_commutes_and_adds_as_it_says(op: OpDef[Any]) -> None:
    a, b = np.float32([1, 2, 3]), np.float32([4, -5, 6])
    for attributes in {example.attributes for example in op.examples}:
        value = op.reference(attributes, [a, b])
        assert op.facts.commutative(attributes) == np.array_equal(value, op.reference(attributes, [b, a]))
        sums = {(s, t): s * a + t * b for s in (1, -1) for t in (1, -1)}
        signs = next((signs for signs, expected in sums.items() if np.array_equal(value, expected)), ())
        assert op.facts.signs == (signs if op.attributes is OPS["mul"].attributes else ())


@each(CASES)
def test_values_come_from_where_it_is_said(op: OpDef[Any], example: Example[Any]) -> None:
    operands = arrays(op, example, np.random.default_rng(2))
    operands = [array + 0.5 if array.dtype == np.float32 else array for array in operands]  # so that no value is zero
    result = op.reference(example.attributes, operands)
    known = set(np.concatenate([array.reshape(-1) for array in operands]).tolist())
    values = op.facts.values
    if values in MOVED:
        assert set(result.reshape(-1).tolist()) <= known | (set() if values in UNCHANGED else {0.0})
    if values is Values.VIEWED:
        assert np.array_equal(result.reshape(-1), operands[0].reshape(-1))
    if values is Values.PICKED:
        assert len(operands) == 1
    assert (values is Values.COMPUTED) == isinstance(op.legalisation, Matrix | Pooling | Table | Clamp | Arithmetic | Boundary | OnHost)


@each([field.name for field in fields(Facts)])
def test_every_fact_must_be_said(fact: str) -> None:
    said = {field.name: getattr(OPS["relu"].facts, field.name) for field in fields(Facts) if field.name != fact}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{fact}'"):
        Facts(**said)


@each(
    [
        ("relu", {"elementwise": False}, "nothing else is element-wise"),
        ("softmax", {"elementwise": True}, "nothing else is element-wise"),
        ("slice", {"values": Values.COMPUTED}, "compute nothing"),
        ("reshape", {"values": Values.PICKED}, "compute nothing"),
        ("relu", {"values": Values.VIEWED}, "compute nothing"),
        ("constant", {"values": Values.COMPUTED}, "values are given"),
        ("relu", {"batch": None}, "have no rule for the batch"),
        ("relu", {"signs": (1, 1)}, "one sign an operand"),
        ("max_pool", {"windows": None}, "a pool has windows"),
        ("relu", {"fuses_into": "linear"}, "take in an activation"),
        ("matmul", {"fuses_into": ""}, "take in an activation"),
    ]
)
def test_facts_that_contradict_each_other_are_refused(name: str, wrong: dict[str, Any], why: str) -> None:
    op = OPS[name]
    with pytest.raises(TypeError, match=f"operator {name} contradict each other: .*{why}"):
        replace(op, facts=replace(op.facts, **wrong))


@each(CASES)
def test_a_number_makes_a_result_that_is_not_finite_only_where_it_is_said(op: OpDef[Any], example: Example[Any]) -> None:
    whole = [np.ones(type_.shape, type_.numpy) for type_ in example.operands]
    for index, array in enumerate(whole):
        found = []
        for number in (0, -1):
            operands = [*whole[:index], np.full_like(array, number), *whole[index + 1 :]]
            with np.errstate(all="ignore"):
                found.append(array.dtype != np.float32 or np.isfinite(op.reference(example.attributes, operands)).all())
        assert all(found) == (index not in op.facts.singular), index
