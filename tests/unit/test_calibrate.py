"""Calibration: which values get a range, which range, and what is said about inputs that don't fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import FUSIONS, Model, applied, context, placed
from tpucc.diagnostics import CompileError, Diagnostic, InputError, UsageError
from tpucc.ir import Graph, Range
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate, multiply_accumulates
from tpucc.ops.linear import LinearAttributes
from tpucc.passes.calibrate import NO_CALIBRATION, calibrate, examples, synthetic_note
from tpucc.passes.input_arrays import batch_count, batches, checked_inputs, synthetic_batches, synthetic_inputs

GENERATOR = np.random.default_rng(0)


def drawn(*shape: int) -> AnyArray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def identity_model(batch: int = 4, range: tuple[float, float] | None = None) -> Graph:
    """relu(x @ 1): ranges that can be read off the inputs."""
    model = Model()
    x = model.input("x", batch, 2, range=range)
    return model.build(model.op("relu", model.op("matmul", x, model.constant("fc.w", np.eye(2)), name="h"), name="r"))


def ranges(graph: Graph) -> dict[str, Range | None]:
    return {node.name: node.type.range for node in graph if node.op != "constant"}


def calibrated(graph: Graph, calibration: dict[str, AnyArray], **options: float | str) -> dict[str, Range | None]:
    return ranges(applied(placed(graph), calibrate(**options), calibration=calibration))  # type: ignore[arg-type]


def errors(graph: Graph, calibration: dict[str, AnyArray]) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        calibrate.run(placed(graph), context(calibration))
    return [(d.code, "; ".join((d.message, *d.help))) for d in caught.value.diagnostics]


@each([1, 3, 4, 5, 8, 11])
def test_any_batch_goes_in_rounds_of_the_models(rows: int) -> None:
    x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2) - 4
    high = float(x.max())
    expected = {"x": Range(-4.0, high), "h": Range(-4.0, high), "r": Range(0.0, max(high, 0.0))}
    assert calibrated(identity_model(), {"x": x}) == expected


def test_the_last_round_repeats_its_own_rows_and_nothing_else() -> None:
    graph = identity_model(4)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    parts = list(batches(graph.inputs, {"x": x}))
    assert [part["x"].tolist() for part in parts] == [x[:4].tolist(), [[8, 9]] * 4]


def test_fewer_rows_than_the_batch_are_repeated() -> None:
    graph = identity_model(4)
    assert [part["x"][:, 0].tolist() for part in batches(graph.inputs, {"x": np.array([[1, 0], [2, 0], [3, 0]], np.float32)})] == [
        [1, 2, 3, 1]
    ]


def test_an_array_of_its_inputs_own_shape_is_in_every_round() -> None:
    model = Model()
    x, state = model.input("x", 2, 3), model.input("state", 3)
    graph = model.build(model.op("add", x, state))
    arrays = {"x": drawn(5, 3), "state": drawn(3)}
    parts = list(batches(graph.inputs, arrays))
    assert len(parts) == batch_count(graph.inputs, arrays) == 3
    assert all(part["state"] is arrays["state"] for part in parts)


def test_a_limit_of_rows_spreads_them_evenly() -> None:
    graph = identity_model(4)
    x = np.repeat(np.arange(100, dtype=np.float32)[:, None], 2, axis=1)
    used = np.concatenate([part["x"][:, 0] for part in batches(graph.inputs, {"x": x}, 10)])
    assert used.tolist() == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 80, 90]
    assert batch_count(graph.inputs, {"x": x}, 10) == 3
    assert calibrated(graph, {"x": x}, rows=10)["x"] == Range(0.0, 90.0)
    assert calibrated(graph, {"x": x}, rows=0)["x"] == Range(0.0, 99.0)


def test_a_range_from_the_source_is_kept() -> None:
    found = calibrated(identity_model(range=(-1.0, 8.0)), {"x": np.full((3, 2), 2, np.float32)})
    assert found == {"x": Range(-1.0, 8.0), "h": Range(2.0, 2.0), "r": Range(2.0, 2.0)}


def test_only_what_the_device_holds_or_reads_is_measured() -> None:
    model = Model()
    t = model.op("transpose", model.input("x", 2, 3), perm=(1, 0), name="t")
    h = model.op("matmul", t, model.constant("w", drawn(2, 4)), name="h")
    graph = placed(model.build(model.op("softmax", h, name="soft")))
    assert {name for name, known in ranges(applied(graph, calibrate, calibration={"x": drawn(2, 3)})).items() if known} == {"t", "h"}


def test_minmax_equals_the_extremes_of_the_reference() -> None:
    model = Model()
    h = model.dense(model.input("x", 8, 5), drawn(5, 7), drawn(7), activation="sigmoid")
    graph = model.build(model.dense(h, drawn(7, 3), key="fc2"))
    x = drawn(24, 5)
    found = calibrated(graph, {"x": x})
    names = ["x", "fc_product", "fc_sum", "fc_sigmoid", "fc2_product"]
    values = [evaluate(graph, {"x": x[start : start + 8]}, keep=names) for start in (0, 8, 16)]
    for name in names:
        low, high = (f(part[name].min() if f is min else part[name].max() for part in values) for f in (min, max))
        known = found[name]
        assert known is not None
        assert known.low <= low <= high <= known.high
        assert known.high - known.low <= (high - low) + 2**-9 * (abs(low) + abs(high))


def test_ranges_are_of_few_bits_so_that_the_last_ones_of_a_sum_do_not_matter() -> None:
    """Libraries add in different orders: a program must not depend on which one was there."""
    x = drawn(64, 2) + np.float32(3)
    found = calibrated(identity_model(), {"x": x})
    nudged = calibrated(identity_model(), {"x": np.nextafter(x, np.float32(np.inf))})
    assert found == nudged
    for known in found.values():
        assert known is not None
        assert all(float(np.float16(value)) == value for value in (known.low, known.high))


def test_percentile_leaves_out_the_tails() -> None:
    x = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    GENERATOR.shuffle(x)
    found = calibrated(identity_model(), {"x": x}, method="percentile", percentile=99.5, rows=0)
    assert found["x"] == Range(10.0, 1990.0)  # ten at either end; 1989 rounded to ten bits
    assert calibrated(identity_model(), {"x": x}, method="percentile", percentile=100.0, rows=0)["x"] == Range(0.0, 2000.0)


def test_one_outlier_does_not_widen_a_percentile() -> None:
    x = np.tile(np.linspace(-1, 1, 500, dtype=np.float32)[:, None], 20).reshape(-1, 2)
    x[77, 1] = 1e6
    found = calibrated(identity_model(), {"x": x}, method="percentile", rows=0)
    assert found["x"] == Range(-1.0, 1.0)
    assert calibrated(identity_model(), {"x": x}, rows=0)["h"] == Range(-1.0, 1000448.0)


def test_parts_in_any_order_give_the_same_percentile() -> None:
    x = np.random.default_rng(4).standard_t(3, (2_000, 2)).astype(np.float32)
    found = [
        calibrated(identity_model(), {"x": rows}, method="percentile", percentile=99.0, rows=0) for rows in (x, x[::-1], np.sort(x, axis=0))
    ]
    assert found[0] == found[1] == found[2]


@each([0.0, 3.0, -0.5])
def test_one_value_has_the_range_of_the_extremes(value: float) -> None:
    x = {"x": np.full((8, 2), value, np.float32)}
    assert calibrated(identity_model(), x, method="percentile") == calibrated(identity_model(), x)


def test_a_fused_table_learns_the_range_before_it() -> None:
    model = Model()
    graph = model.build(model.dense(model.input("x", 4, 5), drawn(5, 3), drawn(3), activation="tanh"))
    x = drawn(16, 5)
    before = applied(placed(graph), calibrate, calibration={"x": x})
    fused_first = applied(placed(graph), *FUSIONS, calibrate, calibration={"x": x})
    fused_last = applied(before, *FUSIONS)
    attributes = fused_first["fc_tanh"].attributes
    assert isinstance(attributes, LinearAttributes)
    known = before["fc_sum"].type.range
    assert known is not None
    assert attributes.pre == (known.low, known.high)
    assert fused_first == fused_last


@pytest.mark.parametrize("level", [0, 2])
def test_values_that_the_source_quantises_saturate(level: int) -> None:
    """With the lowest integer as zero point nothing is below 0, as if a relu stood there: quantisers leave it out."""
    text = (
        "weights random(seed=1)\nmodel m(x: f32[4, 6] in [-1.0, 1.0]):\n    weight w: f32[6, 5]\n"
        "    return tanh(sqrt({}(dequantize(quantize(x @ w, 0.01, zero_point=-128)))))\n"
    )
    found = []
    for relu in ("", "relu"):
        exe = tpucc.compile_source(text.format(relu), level=level)
        assert exe.compilation is not None
        assert exe.compilation.layers is not None
        found.append([node.type.quantisation for node in exe.compilation.layers if node.type.quantisation][-1])
    assert found[0] == found[1]


HELD = "dequantize(quantize({}, 0.01, zero_point=3))"


@each(
    [
        ("h", True, {}),
        (HELD.format("h"), False, {}),
        (HELD.format("relu(h)"), True, {"level": 0}),
        (HELD.format("relu(h)"), False, {}),
        (HELD.format("tanh(h)"), True, {}),
        (HELD.format("max_pool(h)"), True, {}),
        (f"max_pool({HELD.format('relu(h)')})", False, {}),
        (f"avg_pool({HELD.format('relu(h)')})", True, {}),
        (HELD.format("h"), True, {"settings": {"quantise": {"bias_correction": True}}}),
    ]
)
def test_a_note_of_made_up_inputs_stands_where_they_matter(returned: str, said: bool, options: dict[str, Any], tmp_path: Path) -> None:
    """Where the source quantises all that layers hold, calibration with any inputs gives the same integers."""
    text = (
        "model m(x: f32[4, 6, 6, 2] in [-1.0, 1.0]):\n    weight w: f32[1, 1, 2, 5]\n"
        f"    h = conv2d({HELD.format('x')}, w)\n    return {returned}\n"
    )
    np.savez(tmp_path / "x.npz", x=np.full((4, 6, 6, 2), 0.125, np.float32))
    np.savez(weights := tmp_path / "w.npz", w=np.linspace(-1, 1, 10, dtype=np.float32).reshape(1, 1, 2, 5))
    files = (None, tmp_path / "x.npz")
    drawn_ones, given = (tpucc.compile_source(text, weights=weights, calibration=file, **options).compilation for file in files)
    assert drawn_ones is not None
    assert given is not None
    assert any(warning.startswith(NO_CALIBRATION) for warning in drawn_ones.warnings) == said
    assert (drawn_ones.layers != given.layers) == said


def test_without_calibration_inputs_are_drawn_and_a_note_says_how() -> None:
    results = [calibrate.run(placed(graph), context()) for graph in (identity_model(64), identity_model(64, (0.0, 2.0)))]
    assert [synthetic_note(result, "ranges are measured").split("(")[1].split(")")[0] for result in results] == [
        "standard normal, seed 0",
        "uniform in their range, seed 0",
    ]
    free, bounded = map(ranges, results)
    assert free == ranges(calibrate.run(placed(identity_model(64)), context()))
    normal = np.random.default_rng(0).standard_normal((64, 2), np.float32)
    for known, low, high in ((free["h"], normal.min(), normal.max()), (bounded["h"], 0, 2)):
        assert known is not None
        assert known.low == pytest.approx(low, abs=0.1)
        assert known.high == pytest.approx(high, abs=0.1)


@each([((), None), ((), (70, 3)), ((1,), (70, 3)), ((3,), (3, 1, 40)), ((2, 5), (2, 70))])
def test_inputs_of_few_elements_are_drawn_more_than_once(shape: tuple[int, ...], mate: tuple[int, ...] | None) -> None:
    """64 standard-normal values and more reach past 1.5 on both sides; a single one has one side only."""
    model = Model()
    s = model.input("s", *shape)
    if mate:
        model.input("x", *mate)
    found = ranges(calibrate.run(placed(model.build(model.op("relu", s, name="r"))), context()))
    assert found["s"] is not None
    assert found["r"] is not None
    assert found["s"].low < -1.5 < 1.5 < found["s"].high
    assert (found["r"].low, found["r"].high) == (0.0, found["s"].high)


def test_rounds_for_few_elements_keep_the_others_and_stay_within_the_most() -> None:
    model = Model()
    model.input("x", 8, 9)
    model.input("s")
    model.input("ids", 1, dtype="i32")
    model.input("n", dtype="i32", range=(5, 7))
    inputs = model.build(model.op("relu", "x")).inputs
    parts = list(synthetic_batches(inputs, 16, 5))
    assert len(parts) == 5
    first, second, third, *_ = parts
    assert np.array_equal(first["x"], third["x"])
    assert not np.array_equal(first["x"], second["x"])
    assert len({float(part["s"]) for part in parts}) == 5
    assert {int(part["n"]) for part in parts} <= {5, 6, 7}
    assert len(list(synthetic_batches(inputs, 16, 1))) == 2
    assert len(list(synthetic_batches(inputs, 16, 1000))) == 64
    assert len(list(synthetic_batches(inputs[:1], 16, 1000))) == 2


def test_a_graph_that_needs_no_range_is_left_alone_without_a_warning() -> None:
    model = Model()
    graph = placed(model.build(model.op("softmax", model.input("x", 2, 3))))
    assert calibrate.run(graph, context()) is graph
    once = calibrate.run(placed(identity_model()), context({"x": drawn(4, 2)}))
    assert once.notes == ()
    assert calibrate.run(once, context()) is once


def test_large_batches_are_measured_on_as_many_items_as_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 12 takes 48 multiply-accumulates. With at most 24 of them, 6 of its items are used; with 3, a single one."""
    shapes: list[tuple[int, ...]] = []

    def noting(graph: Graph, inputs: dict[str, AnyArray], **options: Any) -> object:
        shapes.append(inputs["x"].shape)
        return evaluate(graph, inputs, **options)

    monkeypatch.setattr("tpucc.passes.calibrate.evaluate", noting)
    monkeypatch.setattr("tpucc.passes.calibrate.JOINED_VALUES", 0)
    found = {}
    for most in (10**9, 24, 3):
        monkeypatch.setattr("tpucc.passes.calibrate.SYNTHETIC_MACS", most)
        found[most] = ranges(calibrate.run(placed(identity_model(12)), context()))
    assert [shape[0] for shape in dict.fromkeys(shapes)] == [12, 6, 1]
    assert found[24].keys() == found[10**9].keys(), "the same values are measured"
    assert found[24]["h"] != found[10**9]["h"]


def test_small_batches_are_measured_several_in_one_and_the_rest_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 11 rows there are three batches of 4, the last of which is filled by its own rows; it has 24 values a batch."""
    rounds: list[list[float]] = []

    def noting(graph: Graph, inputs: dict[str, AnyArray], **options: Any) -> object:
        rounds.append(inputs["x"][:, 0].tolist())
        return evaluate(graph, inputs, **options)

    monkeypatch.setattr("tpucc.passes.calibrate.evaluate", noting)
    x, found = np.arange(22, dtype=np.float32).reshape(11, 2), []
    for values in (0, 47, 48):
        monkeypatch.setattr("tpucc.passes.calibrate.JOINED_VALUES", values)
        found.append(calibrated(identity_model(4), {"x": x}))
    first, second, third = [0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 16]
    assert rounds == [first, second, third, first, second, third, [*first, *second], third]
    assert found[0] == found[1] == found[2]


def test_a_model_that_mixes_its_items_is_measured_on_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of `h`, which a layer of the device reads, is a sum over all items."""
    model = Model()
    h = model.op("matmul", model.constant("w", np.eye(4)), model.input("x", 4, 2), name="h")
    graph = placed(model.build(model.dense(h, np.eye(2))))
    macs = multiply_accumulates(graph)
    found = []
    for most in (macs, macs - 1):
        monkeypatch.setattr("tpucc.passes.calibrate.SYNTHETIC_MACS", most)
        found.append(ranges(calibrate.run(graph, context())))
    assert any(found[0].values())
    assert found[1] == found[0]


def test_rows_of_millions_are_made_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And few rows of thousands are few."""
    monkeypatch.setattr("tpucc.passes.calibrate.SYNTHETIC_VALUES", 1000)
    for width, rounds_made in ((2000, 1), (300, 3), (10, 64)):
        model = Model()
        model.input("x", 1, width)
        assert len(list(examples(placed(model.build(model.op("relu", "x"))), None))) == rounds_made


def test_made_up_inputs() -> None:
    model = Model()
    model.input("x", 3, 1000)
    model.input("ids", 3, 1000, dtype="i32", range=(5, 7))
    model.input("free", 2, dtype="i32")
    model.input("scalar")
    graph = model.build(model.op("relu", "x"))
    found = synthetic_inputs(graph.inputs, 64)
    assert {name: array.shape for name, array in found.items()} == {"x": (66, 1000), "ids": (66, 1000), "free": (44,), "scalar": ()}
    assert {name: str(array.dtype) for name, array in found.items()} == {
        "x": "float32",
        "ids": "int32",
        "free": "int32",
        "scalar": "float32",
    }
    assert set(np.unique(found["ids"]).tolist()) == {5, 6, 7}
    assert not found["free"].any()
    assert abs(float(found["x"].mean())) < 0.02
    assert abs(float(found["x"].std()) - 1) < 0.02
    assert batch_count(graph.inputs, checked_inputs(graph.inputs, found, "inputs")) == 22


def test_what_is_wrong_with_the_arrays_is_told_at_once() -> None:
    model = Model()
    image = model.input("image", 4, 3)
    ids = model.input("ids", 4, dtype="i32", range=(0, 9))
    scale = model.input("scale", 4, 1)
    model.input("bias", 3)
    rows = model.op("embedding", ids, model.constant("table", drawn(10, 3)))
    graph = model.build(model.op("mul", model.op("add", image, rows), scale))
    arrays = {"imagee": drawn(4, 3), "ids": np.array([1.5]), "scale": drawn(4, 2), "bias": np.array(["a"] * 3), "zz": drawn(1)}
    found = errors(graph, arrays)
    assert [code for code, _ in found] == ["E0441", "E0442", "E0442", "E0444", "E0443", "E0444"]
    assert "did you mean imagee?" in found[0][1]
    assert "did you mean image?" in found[1][1]
    assert "shape [4, 2]" in found[4][1]


@each(
    [
        (np.array([[0, 1], [np.nan, 2]], np.float32), "E0445", "x is nan at [1, 0]"),
        (np.array([[0, 1], [2, -np.inf]], np.float64), "E0445", "x is -inf at [1, 1]"),
        (np.array([[0, 1e300]]), "E0445", "x is 1e+300 at [0, 1]"),
        (np.full((3, 2), np.nan), "E0445", "6 values like this"),
        (np.zeros((0, 2)), "E0443", "no rows"),
        (np.zeros(2), "E0443", "f32[4, 2]"),
        (np.zeros((2, 2), complex), "E0444", "complex128"),
    ]
)
def test_bad_arrays(x: AnyArray, code: str, words: str) -> None:
    (found,) = errors(identity_model(), {"x": x})
    assert found[0] == code
    assert words in found[1]


def test_integers_out_of_range() -> None:
    model = Model()
    ids = model.input("ids", 2, dtype="i32", range=(0, 9))
    rows = model.op("embedding", ids, model.constant("table", drawn(10, 3)))
    graph = model.build(model.op("relu", rows))
    assert errors(graph, {"ids": np.array([3, 10])})[0] == ("E0446", "the calibration's ids is 10 at [1], outside 0…9")
    assert errors(graph, {"ids": np.array([-1, 2**40])})[0][1].endswith("2 values like this")


def test_inputs_of_different_numbers_of_examples() -> None:
    model = Model()
    graph = model.build(model.op("add", model.input("a", 2, 3), model.input("b", 2, 3)))
    (found,) = errors(graph, {"a": drawn(10, 3), "b": drawn(5, 3)})
    assert found[0] == "E0447"
    assert "a has 10 rows, b has 5 rows" in found[1]
    (found,) = errors(graph, {"a": drawn(10, 3), "b": drawn(9, 3)})
    assert found[0] == "E0447", "as many rounds, but the last row of a would stand beside one of b that is repeated"


def test_other_numbers_are_taken_as_they_are() -> None:
    assert calibrated(identity_model(), {"x": np.array([[0, 255]], np.uint8)})["x"] == Range(0.0, 255.0)
    assert calibrated(identity_model(), {"x": np.array([[-1, 3]], ">f8")})["x"] == Range(-1.0, 3.0)


def test_a_value_that_overflows_is_an_error_at_its_place() -> None:
    model = Model()
    h = model.op("mul", model.input("x", 2, 3), model.constant("c", np.full(3, 3e38)), name="h")
    huge = placed(model.build(model.op("relu", h, name="r")))
    with pytest.raises(CompileError) as caught:
        calibrate.run(huge, context({"x": np.full((2, 3), 100, np.float32)}))
    (error,) = caught.value.diagnostics
    assert (error.code, error.span and error.span.line) == ("E0805", huge["h"].origin.line)
    assert error.message == "h (mul) is infinite in 6 of 6 values: no range covers it"
    assert "too large" in error.help[0]


@each(
    [
        ("log(x @ w)", "h (log) is not a number in 1 of 2 values", "matmul is -1 to 1", "keep matmul above 0"),
        ("1.0 / relu(x)", "h (div) is infinite in 3 of 4 values", "scalar is 1; relu is 0 to 1", "keep relu above 0"),
        ("exp(x * 100.0)", "h (exp) is infinite in 1 of 4 values", "mul is -100 to 100", "look for values that grow"),
    ]
)
def test_the_operator_of_the_first_value_that_is_not_finite_is_named(body: str, what: str, of: str, help: str, tmp_path: Path) -> None:
    """Also where the host computes it, and a layer reads what came of it."""
    text = f"model m(x: f32[2, 2]):\n    w = constant([[1.0], [0.0]])\n    h = {body}\n    return relu(h @ ones([h.shape[1], 3]))\n"
    np.savez(tmp_path / "x.npz", x=np.array([[1, 0], [-1, 0]], np.float32))
    with pytest.raises(CompileError) as caught:
        tpucc.compile_source(text, calibration=tmp_path / "x.npz")
    (error,) = caught.value.diagnostics
    assert error.message == f"{what}: no range covers it"
    assert error.labels[0].text == of
    assert error.help[0].startswith(help)
    assert "random" not in str(error.help)
    with pytest.raises(CompileError, match="these inputs are random"):
        tpucc.compile_source(text)


@each([({"method": "minmx"}, "E0517"), ({"percentile": 50.0}, "E0518"), ({"percentile": float("nan")}, "E0518"), ({"rows": -1}, "E0518")])
def test_bad_options(options: dict[str, float | str], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        calibrate(**options).run(identity_model(), context())  # type: ignore[arg-type]
    found: Diagnostic = caught.value.diagnostics[0]
    assert found.code == code
