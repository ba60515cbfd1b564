"""Per-layer quantisation error: against a computation by hand, on every kind of layer, and where nothing is lost or much is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.api import Executable
from tpucc.diagnostics import Origin
from tpucc.explain.fidelity import Measurement, both_graphs, fidelity, twins_of
from tpucc.explain.layer_error import LayerError
from tpucc.ir import Attributes, Graph, GraphBuilder, NoAttributes, Node, Quantisation, TensorType
from tpucc.layers.kinds import Vector
from tpucc.layers.reference import compute
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.passes.input_arrays import batches, checked_inputs

DENSE = """
weights "w.npz"
calibration "c.npz"
model dense(x: f32[{rows}, 6] in [{low}, {high}]) -> f32[{rows}, 3]:
    weight a: f32[6, 5] = "one.a"
    weight b: f32[5] = "one.b"
    weight c: f32[5, 3] = "two.c"
    return relu(x @ a + b) @ c
"""
MAPS = """
param batch = 4
weights random(seed=2)
calibration "c.npz"
model maps(x: f32[batch, 9, 8, 3] in [-1.0, 1.0]) -> f32[batch, 4]:
    weight k: f32[3, 3, 3, 6]
    weight l: f32[3, 3, 6, 6]
    h = max_pool(tanh(conv2d(x, k, padding="same")), size=2)
    h = h + relu(conv2d(h, l, padding="same"))
    h = concat([h, pad(h, [(0, 0), (1, 0), (0, 0), (0, 0)])], axis=1)
    weight w: f32[6, 4]
    return global_avg_pool(avg_pool(h, size=(3, 2), stride=1)) @ w
"""


def drawn(seed: int, *shape: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def dense(folder: Path, low: float = -3.0, high: float = 3.0, bits: int = 8, examples: AnyArray | None = None, rows: int = 7) -> Executable:
    np.savez(folder / "w.npz", **{"one.a": drawn(1, 6, 5), "one.b": drawn(2, 5), "two.c": drawn(3, 5, 3)})
    np.savez(folder / "c.npz", x=drawn(4, 7, 6).clip(-3, 3) if examples is None else examples)
    return tpucc.compile_source(DENSE.format(low=low, high=high, rows=rows), folder=folder, activation_bits=bits)


def maps(folder: Path, batch: int = 4, **options: object) -> Executable:
    np.savez(folder / "c.npz", x=np.random.default_rng(5).uniform(-1, 1, (11, 9, 8, 3)).astype(np.float32))
    return tpucc.compile_source(MAPS, folder=folder, params={"batch": batch}, **options)  # type: ignore[arg-type]


def errors_of(exe: Executable) -> tuple[LayerError, ...]:
    assert exe.compilation is not None
    return fidelity(exe.compilation, exe.runtime)


def named(errors: Sequence[LayerError], name: str) -> LayerError:
    (found,) = (error for error in errors if error.name == name)
    return found


def sqnr(real: AnyArray, found: AnyArray) -> float:
    return float(10 * np.log10((real**2).sum() / ((found - real) ** 2).sum()))


class ByHand:
    """The dense network in float64 with the scales that the layers report, written from the rules of docs/numerics.md."""

    def __init__(self, errors: Sequence[LayerError], low: int, high: int) -> None:
        self.low, self.high = low, high
        self.x, self.one, self.two = ((error.scale, error.zero_point) for error in errors)

    def quantised(self, real: AnyArray, held: tuple[float, int]) -> AnyArray:
        return np.clip(np.rint(real / held[0]) + held[1], self.low, self.high)

    def product(self, q: AnyArray, x: tuple[float, int], w: AnyArray, bias: AnyArray, y: tuple[float, int], least: int) -> AnyArray:
        scales = np.abs(w).max(axis=0) / 127
        sums = (q - x[1]) @ np.rint(w / scales) + np.rint(bias / (x[0] * scales))
        return np.clip(np.rint(sums * (x[0] * scales / y[0])) + y[1], least, self.high)


@pytest.mark.parametrize(("bits", "low", "high"), [(8, -128, 127), (16, -32768, 32767)])
def test_a_network_by_hand(tmp_path: Path, bits: int, low: int, high: int) -> None:
    errors = errors_of(dense(tmp_path, bits=bits))
    assert [error.name for error in errors] == [f"x.i{bits}", "one", "two"]
    assert [(error.kind, error.layer, error.line, error.values, error.rows) for error in errors] == [
        ("quantize", -1, 4, 42, 7),
        ("fc", 0, 8, 35, 7),
        ("fc", 1, 8, 21, 7),
    ]
    x, a, b, c = (array.astype(np.float64) for array in (drawn(4, 7, 6).clip(-3, 3), drawn(1, 6, 5), drawn(2, 5), drawn(3, 5, 3)))
    hand = ByHand(errors, low, high)
    h = np.maximum(x @ a + b, 0)
    y = h @ c
    qx = hand.quantised(x, hand.x)
    qh = hand.product(qx, hand.x, a, b, hand.one, hand.one[1])
    qy = hand.product(qh, hand.one, c, np.zeros(3), hand.two, low)
    alone = hand.product(hand.quantised(h, hand.one), hand.one, c, np.zeros(3), hand.two, low)
    for error, real, integers, exact in zip(errors, (x, h, y), (qx, qh, qy), (qx, qh, alone), strict=True):
        scale, zero = error.scale, error.zero_point
        found = scale * (integers - zero)
        assert error.sqnr == pytest.approx(sqnr(real, found), abs=1e-3)
        assert error.own_sqnr == pytest.approx(sqnr(real, scale * (exact - zero)), abs=1e-3)
        assert error.mean_error == pytest.approx(np.abs(found - real).mean(), rel=1e-3)
        assert error.largest_error == pytest.approx(np.abs(found - real).max(), rel=1e-3)
        assert error.largest_steps == pytest.approx(error.largest_error / scale)
        assert error.seen == pytest.approx((real.min(), real.max()), rel=1e-5)
        assert error.limits == pytest.approx((scale * (low - zero), scale * (high - zero)))
        assert error.saturated == 0
        assert sum(error.histogram.counts) == error.values


def test_a_range_that_is_too_narrow_saturates(tmp_path: Path) -> None:
    """Values a little beyond the last integer still round to it; those past half a step don't."""
    x = np.full((7, 6), 0.25, np.float32)
    x[0, :3] = (-2.0, -0.002, 1.001)
    x[1:3, 0] = (4.0, 1.01)
    error = errors_of(dense(tmp_path, 0.0, 1.0, examples=x))[0]
    assert error.limits == (0.0, pytest.approx(1.0))
    assert (error.below, error.above) == (2 / 42, 2 / 42)
    assert error.saturated == 4 / 42
    assert error.seen == (-2.0, 4.0)
    assert error.largest_error == pytest.approx(3.0, abs=1e-6)
    assert error.histogram.start <= -2.0
    assert error.histogram.stop > 4.0


def test_nothing_is_lost_where_integers_stay_integers(tmp_path: Path) -> None:
    source = """
calibration "c.npz"
model exact(x: f32[3, 4, 4, 2] in [-128.0, 127.0]) -> f32[3, 2, 2, 2]:
    return max_pool(relu(x), size=2)
"""
    np.savez(tmp_path / "c.npz", x=np.random.default_rng(0).integers(-128, 128, (3, 4, 4, 2)).astype(np.float32))
    errors = errors_of(tpucc.compile_source(source, folder=tmp_path))
    assert {error.kind for error in errors} == {"quantize", "vector", "pool"}
    for error in errors:
        assert (error.scale, error.sqnr, error.own_sqnr, error.mean_error, error.largest_error) == (1.0, math.inf, math.inf, 0.0, 0.0)


def test_16_bits_lose_less(tmp_path: Path) -> None:
    coarse, fine = (errors_of(dense(tmp_path, bits=bits)) for bits in (8, 16))
    assert fine[0].sqnr > coarse[0].sqnr + 40
    assert all(after.sqnr > before.sqnr for before, after in zip(coarse, fine, strict=True))


@pytest.mark.parametrize("level", [0, 2])
def test_every_kind_of_layer_is_measured(tmp_path: Path, level: int) -> None:
    exe = maps(tmp_path, level=level)
    errors = errors_of(exe)
    assert {error.kind for error in errors} == {"quantize", "conv", "pool", "vector", "move", "fc"}
    assert all(error.sqnr > 20 for error in errors)
    assert all(0 < error.largest_steps < 8 for error in errors)
    layers = exe.runtime.program.layers
    assert [layers[error.layer].name for error in errors if error.layer >= 0] == [e.name for e in errors if e.layer >= 0]
    assert [error.layer for error in errors if error.layer >= 0] == sorted({e.layer for e in errors} - {-1})
    assert all(error.line > 0 for error in errors)


def test_several_cores_have_the_errors_of_one(tmp_path: Path) -> None:
    one, two = (errors_of(maps(tmp_path, cores=cores)) for cores in (1, 2))
    assert one == two


def test_bands_are_layers_of_their_own(tmp_path: Path) -> None:
    """Of the nine lines of the convolution the pool reads eight."""
    whole, banded = (
        errors_of(maps(tmp_path, 1, target="tiny", overrides={"unified_buffer_rows": rows, "host_bandwidth": 1e9})) for rows in (16384, 120)
    )
    bands = [error for error in banded if error.name.startswith("tanh.band")]
    assert len(bands) == 2
    assert sum(error.values for error in bands) == named(whole, "tanh").values * 8 // 9
    assert min(error.seen[0] for error in bands) == named(whole, "tanh").seen[0]
    assert {error.quantisation for error in bands} == {named(whole, "tanh").quantisation}
    assert named(banded, "matmul").sqnr == pytest.approx(named(whole, "matmul").sqnr, abs=1e-9)


def test_a_layer_is_compared_with_its_value_whatever_others_are_called(tmp_path: Path) -> None:
    """The first product's layer is called `h` after its weight, as is the variable of the second."""
    source = """
weights random(seed=1)
calibration "c.npz"
model names(x: f32[4, 5]) -> f32[4, 5]:
    weight a: f32[5, 5] = "h.a"
    weight b: f32[5, 5] = "g.b"
    g = tanh(x @ a)
    h = g @ b
    return h
"""
    np.savez(tmp_path / "c.npz", x=drawn(0, 4, 5))
    errors = errors_of(tpucc.compile_source(source, folder=tmp_path))
    assert [error.name for error in errors] == ["x.i8", "h", "g"]
    assert all(error.sqnr > 25 for error in errors)


def compiled(folder: Path, body: str, level: int = 2) -> Executable:
    """A model of x [8, 6] with these lines."""
    np.savez(folder / "c.npz", x=drawn(9, 40, 6))
    head = 'weights random(seed=1)\ncalibration "c.npz"\nmodel small(x: f32[8, 6]):\n    weight a: f32[6, 6]\n'
    return tpucc.compile_source(head + body, folder=folder, level=level)


def small(folder: Path, body: str, level: int = 2) -> tuple[LayerError, ...]:
    """The errors of such a model, on 40 rows."""
    return errors_of(compiled(folder, body, level))


def test_parameters_that_the_source_fixes_at_the_edge(tmp_path: Path) -> None:
    """`quantize` of an input is measured against what it reads; after it, what it lost is lost in float32 too."""
    edge, product = small(tmp_path, "    return dequantize(quantize(x, 0.01, 28), 0.01, 28) @ a\n")
    x = drawn(9, 40, 6)
    assert (edge.kind, edge.layer, edge.limits) == ("quantize", -1, pytest.approx((-1.56, 0.99)))
    assert edge.below == pytest.approx((x < -1.565).mean())
    assert edge.above == pytest.approx((x > 0.995).mean())
    assert product.sqnr == product.own_sqnr > 30 > edge.sqnr


def test_what_the_host_hands_back_carries_its_errors(tmp_path: Path) -> None:
    errors = small(tmp_path, "    return softmax(x @ a) @ a\n")
    assert [error.name for error in errors] == ["x.i8", "matmul", "softmax.i8", "matmul.1"]
    back = errors[2]
    assert back.kind == "quantize"
    assert back.own_sqnr > back.sqnr + 1


def test_a_batch_that_cannot_be_divided_is_measured_whole(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x=drawn(9, 100, 6))
    source = """
weights random(seed=1)
calibration "c.npz"
model turned(x: f32[100, 6]) -> f32[6, 100]:
    weight a: f32[6, 6]
    return transpose(tanh(x @ a), (1, 0))
"""
    errors = errors_of(tpucc.compile_source(source, folder=tmp_path))
    assert {(error.rows, error.values) for error in errors} == {(100, 600)}


def test_a_model_of_the_host_has_no_layers(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x=drawn(9, 40, 6))
    source = 'calibration "c.npz"\nmodel host(x: f32[8, 6]):\n    return softmax(x)\n'
    assert errors_of(tpucc.compile_source(source, folder=tmp_path)) == ()


def test_without_examples_nothing_is_measured(tmp_path: Path) -> None:
    exe = tpucc.compile_source(MAPS.replace('calibration "c.npz"', ""))
    assert errors_of(exe) == ()


def test_few_rows_of_many_are_measured(tmp_path: Path) -> None:
    """Whole batches of the model, as many as 64 rows are; a larger batch is divided."""
    counts = [errors_of(dense(tmp_path, examples=drawn(0, 1000, 6), rows=rows))[0] for rows in (7, 50, 300, 127)]
    assert [(error.rows, error.values) for error in counts] == [(63, 378), (50, 300), (60, 360), (64, 384)]


@pytest.mark.parametrize("spare", [0, -1])
def test_fewer_rows_are_measured_where_they_are_much_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    """Of a batch of one: 6 × 5 + 5 × 3 products, 5 + 3 values, and two layers."""
    exe = dense(tmp_path, examples=drawn(0, 1000, 6), rows=1)
    monkeypatch.setattr("tpucc.explain.fidelity.CALL", 1000)
    monkeypatch.setattr("tpucc.explain.fidelity.WORK", 7 * (45 + 8 * 50 + 2 * 1000) + spare)
    assert {error.rows for error in errors_of(exe)} == {7 + spare}


def test_a_batch_that_is_much_work_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work for three items of eight: a quarter of the batch is as much as can be had."""
    exe = dense(tmp_path, examples=drawn(0, 1000, 6), rows=8)
    monkeypatch.setattr("tpucc.explain.fidelity.CALL", 0)
    monkeypatch.setattr("tpucc.explain.fidelity.WORK", 3 * (45 + 8 * 50))
    assert {error.rows for error in errors_of(exe)} == {2}


def test_a_layer_of_another_shape_is_compared_with_its_value(tmp_path: Path) -> None:
    """The mean of all pixels is a pool of one pixel an item, and a reshape of that."""
    np.savez(tmp_path / "c.npz", x=drawn(1, 4, 5, 5, 3))
    source = """
weights random(seed=1)
calibration "c.npz"
model mean(x: f32[4, 5, 5, 3]) -> f32[4, 2]:
    weight a: f32[3, 2]
    return global_avg_pool(x) @ a
"""
    errors = errors_of(tpucc.compile_source(source, folder=tmp_path))
    assert [(error.kind, error.values) for error in errors] == [("quantize", 300), ("pool", 12), ("fc", 8)]
    assert all(error.sqnr > 25 for error in errors)


def test_exact_integers_pass_through_steps_without_a_value_of_their_own(tmp_path: Path) -> None:
    """A reshape between two layers changes neither what they lose together nor what each loses."""
    plain = small(tmp_path, "    return tanh(x @ a) @ a\n", level=0)
    shaped = small(tmp_path, "    return reshape(tanh(x @ a), (4, 2, 6)) @ a\n", level=0)
    assert [(error.sqnr, error.own_sqnr) for error in shaped] == [(error.sqnr, error.own_sqnr) for error in plain]
    assert plain[-1].own_sqnr > plain[-1].sqnr + 0.5


def test_no_value_is_computed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 and as it runs once, and once alone."""
    exe = compiled(tmp_path, "    h = tanh(x @ a)\n    g = relu(x)\n    return g + sigmoid(h)\n")
    assert exe.compilation is not None
    graphs = both_graphs(exe.compilation)
    assert graphs is not None
    assert exe.compilation.calibration is not None
    inputs, computed = graphs[0].inputs, Counter[str]()
    part = next(batches(inputs, checked_inputs(inputs, exe.compilation.calibration, "calibration")))

    def counted(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
        computed[node.name] += 1
        return compute(node, operands)

    monkeypatch.setattr("tpucc.explain.fidelity.compute", counted)
    Measurement(*graphs).measure(part, evaluate(graphs[0], part, keep=[node.name for node in graphs[0]]))
    assert set(computed.values()) == {2}


def one_node(op: str, type_: TensorType, attributes: Attributes) -> Graph:
    builder = GraphBuilder("made", "made.tpu")
    builder.add(Node("x", "input", (), NoAttributes(), TensorType("f32", (2, 3)), Origin(())))
    builder.output("y", builder.add(Node("y", op, ("x",), attributes, type_, Origin(()))).name)
    return builder.build()


@each([((2, 3), "f32", {"y": "y"}), ((2, 4), "f32", {}), ((2, 3), "i32", {})])
def test_a_layer_that_a_plug_in_made_of_something_else_is_left_out(shape: tuple[int, ...], dtype: str, twins: dict[str, str]) -> None:
    """A pass of one's own may put another value under an old name."""
    layers = one_node("vector", TensorType("i8", (2, 3), quantisation=Quantisation(0.5, 0)), Vector("table"))
    assert twins_of(one_node("relu", TensorType(dtype, shape), NoAttributes()), layers) == twins
