"""The operators of losses against plain Python: reductions, functions, comparisons, choices, and the losses themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.gradients import by_rule
from tpucc.diagnostics import InputError, Origin
from tpucc.ir import Attributes, NoAttributes, Node, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.batch import AVERAGED, Averaged, Batch, Case, Division, MixedError
from tpucc.ops.clip import ClipAttributes
from tpucc.ops.one_hot import OneHotAttributes
from tpucc.ops.opdef import Array
from tpucc.ops.reductions import ReductionAttributes
from tpucc.passes.divide_batch import rule_of
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.training.operators.broadcast import BroadcastAttributes

NONE = NoAttributes()
NAN = math.nan


def run(name: str, *operands: Any, **attributes: Any) -> Array:
    """The reference of an operator of float32 values and int32 indices."""
    arrays = [np.asarray(x, np.int32 if np.asarray(x).dtype.kind == "i" else np.float32) for x in operands]
    return OPS[name].reference(OPS[name].attributes(**attributes), arrays)


def gradient(name: str, *operands: Any, **attributes: Any) -> list[Any]:
    """The gradients of the sum of an operator's result, as lists."""
    arrays = [np.asarray(x, np.int32 if np.asarray(x).dtype.kind == "i" else np.float32) for x in operands]
    types = [TensorType("i32" if x.dtype == np.int32 else "f32", x.shape) for x in arrays]
    made = OPS[name].attributes(**attributes)
    dy = np.ones(OPS[name].infer(made, types).shape, np.float32)
    with np.errstate(all="ignore"):
        return [None if dx is None else dx.tolist() for dx in by_rule(OPS[name], made, arrays, types, dy)]


REDUCED: dict[str, Callable[[Sequence[float]], float]] = {"sum": sum, "mean": lambda x: sum(x) / len(x), "max": max, "min": min}
AXES = [None, 0, 1, -1, (), (0,), (0, 2), (2, 0), (-2, -1), (0, 1, 2)]


@each(product(REDUCED, AXES, [False, True]))
def test_reductions_against_loops(name: str, axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(5).permutation(60).reshape(3, 4, 5).astype(np.float32)
    found = run(name, x, axis=axis, keepdims=keepdims)
    axes = {a % 3 for a in (range(3) if axis is None else axis if isinstance(axis, tuple) else (axis,))}
    assert found.shape == tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
    kept = found.reshape([1 if a in axes else n for a, n in enumerate(x.shape)])
    for place in np.ndindex(kept.shape):
        line = [range(n) if a in axes else (place[a],) for a, n in enumerate(x.shape)]
        assert kept[place] == pytest.approx(REDUCED[name]([float(x[at]) for at in itertools.product(*line)]))


@pytest.mark.parametrize(("name", "wanted"), [("max", False), ("min", True)])
def test_the_first_of_equal_values_is_the_extreme_one(name: str, wanted: bool) -> None:
    """To the sign of a zero, which NumPy leaves to the processor; and its gradient goes to the same place."""
    assert np.signbit(run(name, [-0.0, 0.0])) == np.signbit(run(name, [-0.0] * 20 + [0.0])) == True  # noqa: E712
    assert not np.signbit(run(name, [0.0, -0.0]))
    assert np.isnan(run(name, [1.0, NAN, 2.0]))
    assert gradient(name, [[3.0, 3.0, 3.0], [1.0, 2.0, 2.0]], axis=1) == [[[1, 0, 0], [1, 0, 0] if wanted else [0, 1, 0]]]
    assert gradient(name, [[[2.0, 1.0], [1.0, 2.0]]], axis=(0, 2)) == [[[[0, 1], [1, 0]]] if wanted else [[[1, 0], [0, 1]]]]


FUNCTIONS: list[tuple[str, Callable[[float], float], list[float]]] = [
    ("exp", math.exp, [-100.0, -1.0, 0.0, 0.5, 80.0]),
    ("log", math.log, [1e-30, 0.5, 1.0, 3e38]),
    ("sqrt", math.sqrt, [0.0, 1e-40, 2.0, 3e38]),
    ("abs", abs, [-2.0, -0.0, 3.0]),
    ("sign", lambda x: (x > 0) - (x < 0), [-2.0, 0.0, 3.0, 1e-40]),
]


@each(FUNCTIONS)
def test_functions_against_plain_python(name: str, function: Callable[[float], float], points: list[float]) -> None:
    found = run(name, points)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([function(float(np.float32(x))) for x in points], rel=1e-6, abs=1e-38)


def test_what_has_no_finite_value_is_silent() -> None:
    assert run("exp", [100.0, -math.inf]).tolist() == [math.inf, 0.0]
    assert run("log", [0.0]).tolist() == [-math.inf]
    assert all(np.isnan(found) for found in (run("log", -1.0), run("sqrt", -1.0), run("div", 0.0, 0.0)))
    assert run("div", [1.0, -3e38], [0.0, 1e-3]).tolist() == [math.inf, -math.inf]


@each([
    ("greater", (0, 0, 1, 0)), ("greater_equal", (0, 1, 1, 0)), ("less", (1, 0, 0, 0)),
    ("less_equal", (1, 1, 0, 0)), ("equal", (0, 1, 0, 0)), ("not_equal", (1, 0, 1, 1)),
])  # fmt: skip
def test_comparisons(name: str, holds: tuple[int, ...]) -> None:
    found = run(name, [1.0, 2.0, 3.0, NAN], [2.0])
    assert found.dtype == np.float32
    assert found.tolist() == list(holds)
    assert gradient(name, [1.0, 2.0], [2.0]) == [None, None]


def test_the_larger_and_the_smaller_of_two() -> None:
    assert run("maximum", [[1.0], [5.0]], [3.0, NAN]).tolist()[1][0] == 5.0
    for name, wanted in (("maximum", [2.0, 3.0]), ("minimum", [1.0, -3.0])):
        assert run(name, [1.0, 3.0 if name == "maximum" else -3.0], [2.0, 0.0]).tolist() == wanted
        assert np.isnan(run(name, [NAN, 1.0], [1.0, NAN])).all()
        assert np.signbit(run(name, [-0.0] * 9, 0.0)).all()
        assert not np.signbit(run(name, [0.0] * 9, -0.0)).any()
        assert gradient(name, [1.0, 2.0], [1.0, 1.0]) == ([[1, 1], [0, 0]] if name == "maximum" else [[1, 0], [0, 1]])


def test_clip_and_its_kinks() -> None:
    x = [-2.0, -1.0, 0.5, 3.0, 4.0, NAN]
    assert run("clip", x, low=-1.0, high=3.0).tolist()[:5] == [-1.0, -1.0, 0.5, 3.0, 3.0]
    assert np.isnan(run("clip", x, low=-1.0, high=3.0)[5])
    assert gradient("clip", x[:5], low=-1.0, high=3.0) == [[0, 0, 1, 0, 0]]
    assert np.signbit(run("clip", [-0.0] * 9, low=0.0, high=1.0)).all()


def test_gradients_at_other_kinks_and_where_nothing_goes_back() -> None:
    assert gradient("abs", [-2.0, 0.0, 2.0]) == [[-1, 0, 1]]
    assert gradient("sign", [-2.0, 0.0, 2.0]) == [None]
    assert gradient("sqrt", [0.0]) == [[math.inf]]
    assert gradient("one_hot", [0, 1], n=2) == [None]


def test_where_takes_what_is_not_zero_for_true() -> None:
    assert run("where", [[0.0], [-0.5]], [1.0, 2.0, 3.0], 9.0).tolist() == [[9, 9, 9], [1, 2, 3]]
    assert gradient("where", [[0.0], [-0.5]], [1.0, 2.0, 3.0], 9.0) == [None, [1, 1, 1], 3]


def test_one_hot_and_broadcast() -> None:
    assert run("one_hot", [[2], [0]], n=3).tolist() == [[[0, 0, 1]], [[1, 0, 0]]]
    assert run("one_hot", 1, n=2).tolist() == [0, 1]
    assert run("broadcast", [[1.0], [2.0]], shape=(2, 2, 3)).tolist() == [[[1] * 3, [2] * 3]] * 2


P = np.random.default_rng(6).dirichlet(np.ones(5), (2, 3)).astype(np.float32)
LABELS = np.array([[0, 4, 2], [1, 1, 3]], np.int32)


def test_cross_entropies_against_loops() -> None:
    losses = [-math.log(float(P[i, j, LABELS[i, j]])) for i, j in np.ndindex(2, 3)]
    assert run("cross_entropy", P, LABELS) == pytest.approx(sum(losses) / 6, rel=1e-6)
    assert run("softmax_cross_entropy", np.log(P) + 7, LABELS) == pytest.approx(sum(losses) / 6, rel=1e-5)
    assert run("cross_entropy", P[0, 0], 4) == pytest.approx(-math.log(float(P[0, 0, 4])), rel=1e-6)


def test_the_cross_entropy_of_a_softmax_is_finite_where_the_probability_is_not_above_zero() -> None:
    z = [[1000.0, 0.0], [0.0, 3e38]]
    assert run("cross_entropy", run("softmax", z), [1, 1]) == math.inf
    assert run("softmax_cross_entropy", z[:1], [1]) == 1000.0
    assert run("softmax_cross_entropy", z, [0, 1]) == 0.0
    assert gradient("softmax_cross_entropy", z, [1, 1])[0] == [[0.5, -0.5], [0, 0]]
    assert gradient("cross_entropy", [[1.0, 0.0]], [0])[0] == [[-1, 0]]


def test_the_other_losses_against_loops() -> None:
    a, b = P.ravel().tolist(), P[::-1].ravel().tolist()
    assert run("mean_squared_error", P, P[::-1]) == pytest.approx(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / 30, rel=1e-6)
    wanted = sum(-(y * math.log(x) + (1 - y) * math.log(1 - x)) for x, y in zip(a, b, strict=True)) / 30
    assert run("binary_cross_entropy", P, P[::-1]) == pytest.approx(wanted, rel=1e-5)


def test_binary_cross_entropy_clips_as_keras_does() -> None:
    assert run("binary_cross_entropy", [0.0], [1.0]) == pytest.approx(-math.log(1e-7))
    assert run("binary_cross_entropy", [1.0], [0.0]) == pytest.approx(-math.log(2.0**-23))
    assert gradient("binary_cross_entropy", [0.0, 1.0], [1.0, 0.0])[0] == [0, 0]


@pytest.mark.parametrize(("label", "place"), [([0, 5], "label 5 at [1]"), ([-1, 0], "label -1 at [0]")])
@pytest.mark.parametrize("name", ["cross_entropy", "softmax_cross_entropy", "one_hot"])
def test_labels_that_are_no_class_are_refused(name: str, label: list[int], place: str) -> None:
    operands, attributes = ((label,), {"n": 5}) if name == "one_hot" else ((P[0, :2], label), {})
    with pytest.raises(InputError) as caught:
        run(name, *operands, **attributes)
    assert caught.value.diagnostics[0].code == "E0454"
    assert f"{place} is outside the 5 classes of {name}, which count from 0 to 4" in str(caught.value)


# Where the batch lies.

Where = Batch | Averaged | None
FIRST = Batch(0)


def divided(op: str, attributes: Attributes, shapes: Sequence[tuple[int, ...]], batches: Sequence[Where]) -> Division:
    """What the operator's rule says of a batch of 12 among 3 cores."""
    types = [TensorType("i32", shape) if OPS[op].operands[i].name in ("label", "i") else f32(*shape) for i, shape in enumerate(shapes)]
    operands = [Node(f"x{i}", "input", (), NONE, type_, Origin()) for i, type_ in enumerate(types)]
    node = Node("y", op, tuple(x.name for x in operands), attributes, OPS[op].infer(attributes, types), Origin())
    rule = rule_of(op)
    assert rule is not None
    return rule(Case(node, operands, batches, 12, Fraction(1, 3)))


SCALAR = ((), ())
KEEPS: list[tuple[str, Attributes, Sequence[tuple[int, ...]], Sequence[Where], Division]] = [
    ("add", NONE, SCALAR, (AVERAGED, AVERAGED), Division(AVERAGED)),
    ("add", NONE, ((), (3,)), (AVERAGED, None), Division(AVERAGED)),
    ("sub", NONE, SCALAR, (None, AVERAGED), Division(AVERAGED)),
    ("mul", NONE, SCALAR, (None, AVERAGED), Division(AVERAGED)),
    ("mul", NONE, SCALAR, (AVERAGED, None), Division(AVERAGED)),
    ("div", NONE, SCALAR, (AVERAGED, None), Division(AVERAGED)),
    ("div", NONE, ((12, 4), (12, 1)), (FIRST, None), Division(FIRST, {1: FIRST})),
    ("where", NONE, ((12, 1), (12, 4), (4,)), (FIRST, FIRST, None), Division(FIRST)),
    ("greater", NONE, ((3, 12), (12,)), (Batch(1), None), Division(Batch(1), {1: FIRST})),
    ("exp", NONE, ((3, 12),), (Batch(1),), Division(Batch(1))),
    ("one_hot", OneHotAttributes(7), ((12, 2),), (FIRST,), Division(FIRST)),
    ("sum", ReductionAttributes(-1), ((12, 4),), (FIRST,), Division(FIRST)),
    ("sum", ReductionAttributes((0, 2)), ((3, 24, 4),), (Batch(1, 2),), Division(Batch(0, 2))),
    ("max", ReductionAttributes((0, 2), True), ((3, 12, 4),), (Batch(1),), Division(Batch(1))),
    ("mean", ReductionAttributes(1), ((12, 4),), (FIRST,), Division(FIRST)),
    ("mean", ReductionAttributes(), ((24, 4),), (Batch(0, 2),), Division(AVERAGED)),
    ("mean", ReductionAttributes(0), ((12, 4),), (FIRST,), Division(AVERAGED)),
    ("broadcast", BroadcastAttributes((2, 12, 4)), ((12, 1),), (FIRST,), Division(Batch(1), attributes=BroadcastAttributes((2, 4, 4)))),
    ("cross_entropy", NONE, ((12, 4), (12,)), (FIRST, FIRST), Division(AVERAGED)),
    ("softmax_cross_entropy", NONE, ((12, 4), (12,)), (FIRST, None), Division(AVERAGED, {1: FIRST})),
    ("mean_squared_error", NONE, ((12, 4), (12, 4)), (None, FIRST), Division(AVERAGED, {0: FIRST})),
    ("binary_cross_entropy", NONE, ((3, 12), (3, 12)), (Batch(1), Batch(1)), Division(AVERAGED)),
]  # fmt: skip


@each(KEEPS)
def test_where_the_batch_goes(
    op: str, attributes: Attributes, shapes: Sequence[tuple[int, ...]], batches: Sequence[Where], wanted: Division
) -> None:
    assert divided(op, attributes, shapes, batches) == wanted


MIXES: list[tuple[str, Attributes, Sequence[tuple[int, ...]], Sequence[Where], str]] = [
    ("add", NONE, ((12,), ()), (FIRST, AVERAGED), "add needs x1, a mean over the whole batch"),
    ("mul", NONE, SCALAR, (AVERAGED, AVERAGED), "mul needs x0, a mean"),
    ("div", NONE, SCALAR, (None, AVERAGED), "div needs x1, a mean"),
    ("div", NONE, SCALAR, (AVERAGED, AVERAGED), "div needs x0, a mean"),
    ("maximum", NONE, SCALAR, (AVERAGED, None), "maximum needs x0, a mean"),
    ("exp", NONE, ((),), (AVERAGED,), "exp needs x0, a mean"),
    ("mean", ReductionAttributes(), ((4,),), (AVERAGED,), "mean needs x0, a mean"),
    ("matmul", NONE, ((2, 4), (4, 3)), (AVERAGED, None), "matmul needs x0, a mean"),
    ("sum", ReductionAttributes(), ((12, 4),), (FIRST,), "sum adds up over the batch"),
    ("max", ReductionAttributes(0), ((12, 4),), (FIRST,), "max takes the largest value of the batch"),
    ("min", ReductionAttributes((0, 1)), ((3, 12),), (Batch(1),), "min takes the smallest value of the batch"),
    ("sub", NONE, ((12, 12), (12, 12)), (FIRST, Batch(1)), "different items"),
    ("cross_entropy", NONE, ((12, 12), (12,)), (Batch(1), None), "takes the batch for the classes"),
    ("cross_entropy", NONE, ((12, 12, 4), (12, 12)), (FIRST, Batch(1)), "different items"),
    ("mean_squared_error", NONE, ((12, 12), (12, 12)), (FIRST, Batch(1)), "different items"),
    ("broadcast", BroadcastAttributes((2, 3)), ((1, 3),), (FIRST,), "broadcast repeats the batch"),
]  # fmt: skip


@each(MIXES)
def test_what_mixes_the_batch_is_refused(
    op: str, attributes: Attributes, shapes: Sequence[tuple[int, ...]], batches: Sequence[Where], words: str
) -> None:
    with pytest.raises(MixedError, match=words):
        divided(op, attributes, shapes, batches)


# In a model for the integer machine they run on the host.

MODEL = """weights random(seed=0)
model m(x: f32[6, 20], i: i32[6] in [0, 6]) -> (f32[6, 7], f32[6], f32[]):
    weight w: f32[20, 7]
    h = relu(x @ w)
    n = h - mean(h, axis=-1, keepdims=True)
    n = div(n, sqrt(mean(n * n, axis=-1, keepdims=True) + 0.001))
    m = where(greater(n, 0.0), log(exp(n)), minimum(abs(n), 0.5)) * one_hot(i, 7)
    e = clip(maximum(m, sign(n)), -0.5, 0.75) @ constant(EYE)
    loss = cross_entropy(softmax(e), i) + mean_squared_error(n, e) + 0.0001 * sum(w * w)
    return e, max(h, axis=-1) - min(h, axis=1), loss + binary_cross_entropy(sigmoid(h), one_hot(i, 7))
""".replace("EYE", str(np.eye(7).tolist()))


@pytest.mark.parametrize("level", [0, 2])
def test_a_model_of_them_compiles_runs_and_equals_its_layers(level: int) -> None:
    exe = tpucc.compile_source(MODEL, level=level)
    inputs = random_inputs(exe.runtime, 0)
    assert not any(c.unequal for c in compare_with_reference(exe.runtime, exe.compilation.layers, inputs))
    found = exe.run(inputs)
    assert [array.shape for array in found.values()] == [(6, 7), (6,), ()]
    assert all(np.isfinite(array).all() for array in found.values())
    assert {"fc", "cross_entropy", "where"} <= {node.op for node in exe.compilation.layers}


def test_bounds_of_clip_are_attributes() -> None:
    assert OPS["clip"].signature == "clip(x, low, high)"
    assert OPS["clip"].infer(ClipAttributes(1.0, 1.0), [f32(2)]) == f32(2)
