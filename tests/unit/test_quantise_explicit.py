"""`quantize` and `dequantize` in the source: the parameters are kept, and nothing is rounded twice."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import FUSIONS, Model, applied, layers_of, outputs_of, placed, value_of
from tpucc.ir import Graph, Quantisation
from tpucc.layers.kinds import Fc, Requantise, is_layer
from tpucc.layers.partition import partition
from tpucc.numerics import AnyArray, affine_parameters, dequantise, quantise, requantise
from tpucc.passes.calibrate import calibrate
from tpucc.passes.explicit_quantisation import explicit_quantisation

S, Z = float(np.float32(0.037)), -11
FIXED = Quantisation(S, Z)


def drawn(seed: int, *shape: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pinned(model: Model, x: str, name: str, scale: float = S, zero: int = Z) -> str:
    return model.op("dequantize", model.op("quantize", x, name=f"{name}_q", scale=scale, zero_point=zero), name=name)


def explicit(graph: Graph) -> Graph:
    return applied(placed(graph), explicit_quantisation)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph if node.op not in ("constant", "input")]


def layer_ops(graph: Graph) -> list[str]:
    return [node.op for node in graph if is_layer(node)]


def test_the_pair_goes_and_the_layer_requantises_with_its_parameters() -> None:
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4))
    graph = model.build(pinned(model, h, "d"))
    after = explicit(graph)
    assert ops(after) == ["matmul", "add"]
    assert after["fc_sum"].type.quantisation == FIXED
    assert after.outputs[0].node == "fc_sum"
    layers = layers_of(graph, {"x": drawn(3, 6, 5)}, fused=True)
    assert layer_ops(layers) == ["fc"]
    assert layers["fc"].type.quantisation == FIXED
    assert layers["fc"].attributes == Fc(Requantise(Z))


def test_no_second_rounding_happens() -> None:
    """The result is one rounding of the exact sum, not that of a calibrated value rounded again."""
    model = Model()
    x = model.input("x", 500, 3, range=(-128.0, 127.0))
    graph = model.build(pinned(model, model.dense(x, [[127.0], [3.0], [-50.0]]), "d", 61.0, 3))
    integers = np.random.default_rng(0).integers(-128, 128, (500, 3))
    inputs = {"x": integers.astype(np.float32)}
    layers = layers_of(graph, inputs)
    sums = (integers @ np.array([[127], [3], [-50]])).astype(np.int32)
    once = requantise(sums, np.float32(1) / np.float32(61), 3)
    np.testing.assert_array_equal(outputs_of(layers, inputs)[0], dequantise(once, 61.0, 3))


def test_parameters_survive_calibration_and_are_read_back_from_the_range() -> None:
    """Fused into a table, only the range before it is left of the parameters: it must give them back."""
    for scale in (S, 1e-30, 3.7e20, float(np.float32(1 / 3))):
        for zero in (-128, -1, 0, 5, 127):
            model = Model()
            graph = explicit(model.build(pinned(model, model.dense(model.input("x", 2, 3), drawn(1, 3, 4)), "d", scale, zero)))
            known = applied(placed(graph), calibrate)["fc_product"].type
            assert known.quantisation == Quantisation(float(np.float32(scale)), zero)
            assert known.range is not None
            assert affine_parameters(known.range.low, known.range.high) == (float(np.float32(scale)), zero)


@each(product(["relu", "tanh"], [False, True]))
def test_an_activation_after_the_pair_works_on_what_was_fixed(activation: str, fused: bool) -> None:
    model = Model()
    h = pinned(model, model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4)), "d")
    graph = model.build(model.op(activation, h, name="a"))
    layers = layers_of(graph, {"x": drawn(3, 6, 5)}, fused=fused)
    table = value_of(layers, next(name for name in layers.by_name if name.endswith(".table")))
    function = np.tanh if activation == "tanh" else lambda real: np.maximum(real, 0)
    y = layers[layers[layers.outputs[0].node].operands[0]].type.quantisation
    assert y is not None
    real = dequantise(np.arange(-128, 128).astype(np.int8), S, Z).astype(np.float64)
    np.testing.assert_array_equal(table, np.clip(np.rint(function(real) / y.scale) + y.zero_point, -128, 127))
    if activation == "relu":
        assert y == FIXED


def test_a_pair_after_an_activation_is_the_fused_layers_own() -> None:
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4), activation="relu")
    graph = model.build(pinned(model, h, "d", 0.05, -128))
    layers = layers_of(graph, {"x": drawn(3, 6, 5)}, fused=True)
    assert layer_ops(layers) == ["fc"]
    assert layers["fc"].type.quantisation == Quantisation(float(np.float32(0.05)), -128)


PAIRS = {"d": (S, Z), "e": (0.1, 5), "f": (0.03, -128)}


def quantised_in_ways(which: Collection[str], views: bool) -> Graph:
    """A layer with a function, quantised in some of the ways of `PAIRS`; with `views` the last one of them behind a reshape."""
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4), activation="relu")
    seen = model.op("reshape", h, name="seen", shape=(2, 3, 4)) if views and "f" in which else h
    return model.build(*(pinned(model, seen if name == "f" else h, name, *PAIRS[name]) for name in which))


@each([False, True])
def test_a_value_that_is_quantised_in_several_ways_is_rounded_once_for_each(views: bool) -> None:
    inputs = {"x": drawn(3, 6, 5)}
    layers = layers_of(quantised_in_ways(PAIRS, views), inputs, fused=True)
    assert layer_ops(layers) == ["fc"] * 3
    for name, found in zip(PAIRS, outputs_of(layers, inputs), strict=True):
        (alone,) = outputs_of(layers_of(quantised_in_ways([name], views), inputs, fused=True), inputs)
        np.testing.assert_array_equal(found, alone)


def test_what_the_host_quantises_does_not_take_the_parameters_of_another() -> None:
    """The rows of `seen` are others than those of h, so that the host makes them: it gets the whole range of h."""
    model = Model()
    h = model.dense(model.input("x", 4, 5), drawn(1, 5, 6), drawn(2, 6), activation="relu")
    seen = model.op("reshape", h, name="seen", shape=(3, 8))
    graph = model.build(pinned(model, h, "d", 0.001, -128), pinned(model, seen, "e", 0.05, -128))
    inputs = {"x": drawn(3, 4, 5)}
    found, expected = outputs_of(layers_of(graph, inputs), inputs)[1], outputs_of(graph, inputs)[1]
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert expected.max() > 1


def test_the_same_quantize_twice_is_one() -> None:
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4))
    graph = model.build(pinned(model, h, "d"), pinned(model, pinned(model, h, "e"), "f"))
    assert ops(explicit(graph)) == ["matmul"]
    assert [output.node for output in explicit(graph).outputs] == ["fc_product"] * 2


def test_a_pair_of_a_pair_with_other_parameters_rounds_twice_as_written() -> None:
    model = Model()
    x = model.input("x", 200, 1, range=(-128.0, 127.0))
    h = model.dense(x, [[127.0]])
    graph = model.build(pinned(model, pinned(model, h, "d", 100.0, 0), "e", 130.0, 0))
    inputs = {"x": np.arange(-100, 100, dtype=np.float32)[:, None]}
    layers = layers_of(graph, inputs)
    assert layer_ops(layers) == ["fc", "vector"]
    np.testing.assert_array_equal(outputs_of(layers, inputs)[0], outputs_of(graph, inputs)[0])


def test_integers_as_a_result_are_the_devices_own() -> None:
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4))
    graph = model.build(model.op("quantize", h, name="q", scale=S, zero_point=Z), pinned(model, h, "d"))
    inputs = {"x": drawn(3, 6, 5)}
    layers = layers_of(graph, inputs, fused=True)
    assert layer_ops(layers) == ["fc"]
    assert layers.outputs[0].node == "fc"
    integers, real = outputs_of(layers, inputs)
    assert integers.dtype == np.int8
    np.testing.assert_array_equal(dequantise(integers, S, Z), real)
    np.testing.assert_allclose(real, outputs_of(graph, inputs)[1], atol=0.1)
    assert [output.name for output in partition(layers).epilogue.outputs] == ["out_q", "out_d"]


def test_a_value_that_is_also_read_as_it_is_keeps_its_whole_range() -> None:
    model = Model()
    h = model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4))
    narrow = model.op("quantize", h, name="q", scale=0.001)
    graph = model.build(narrow, model.op("tanh", h, name="t"), h)
    inputs = {"x": drawn(3, 6, 5)}
    layers = layers_of(graph, inputs, fused=True)
    assert layer_ops(layers) == ["fc", "vector", "vector"]
    assert layers["q"].type.quantisation == Quantisation(float(np.float32(0.001)), 0)
    for found, expected in zip(outputs_of(layers, inputs)[1:], outputs_of(graph, inputs)[1:], strict=True):
        np.testing.assert_allclose(found, expected, atol=0.1)


def test_at_the_entrance_quantize_is_the_edge_itself() -> None:
    model = Model()
    x = model.input("x", 6, 5)
    graph = model.build(model.dense(pinned(model, x, "d"), drawn(1, 5, 4), drawn(2, 4)))
    assert explicit(graph) == placed(graph)
    layers = layers_of(graph, {"x": drawn(3, 6, 5)}, fused=True)
    assert [(node.name, node.op) for node in layers if node.op not in ("constant",)] == [
        ("x", "input"),
        ("d_q", "quantize"),
        ("fc", "fc"),
        ("fc.f32", "dequantize"),
    ]
    assert layers["d_q"].type.quantisation == FIXED


def test_an_input_that_is_also_read_without_a_pair_is_quantised_twice() -> None:
    model = Model()
    x = model.input("x", 6, 5, range=(-1.0, 1.0))
    graph = model.build(model.op("add", pinned(model, x, "d"), x, name="y"))
    layers = layers_of(graph)
    assert layers["y"].operands == ("d_q", "x.i8")


def test_on_the_host_they_simply_run() -> None:
    model = Model()
    soft = model.op("softmax", model.dense(model.input("x", 6, 5), drawn(1, 5, 4)), name="soft")
    graph = model.build(pinned(model, soft, "d", 0.25, 0), model.op("quantize", soft, name="q", scale=0.125))
    assert explicit(graph) == placed(graph)
    inputs = {"x": drawn(3, 6, 5)}
    layers = layers_of(graph, inputs)
    real, integers = outputs_of(layers, inputs)
    assert set(np.unique(real).tolist()) <= {0, 0.25, 0.5, 0.75, 1}
    assert integers.dtype == np.int8


def test_a_view_hands_the_parameters_to_the_layer_before_it() -> None:
    model = Model()
    h = model.op("reshape", model.dense(model.input("x", 4, 3), drawn(1, 3, 5)), shape=(2, 2, 5), name="view")
    graph = model.build(model.dense(pinned(model, h, "d"), drawn(2, 5, 2), key="fc2"))
    layers = layers_of(graph)
    assert layer_ops(layers) == ["fc", "fc"]
    assert layers["fc"].type.quantisation == layers["view"].type.quantisation == FIXED


@each(["sum", "reshape", "layer_norm"])
def test_what_the_host_reads_too_is_in_the_same_integers_for_the_device(reader: str) -> None:
    """On the host it is dequantised, and it was then quantised for the device by its calibrated range."""
    model = Model()
    d = pinned(model, model.input("x", 6, 4), "d")
    ones = model.constant("ones", np.ones(4, np.float32))
    other = {
        "sum": lambda: model.op("sum", d, axis=(1,), keepdims=False),
        "reshape": lambda: model.op("reshape", d, shape=(4, 6)),
        "layer_norm": lambda: model.op("layer_norm", d, ones, ones),
    }[reader]()
    graph = model.build(model.dense(d, drawn(2, 4, 3), drawn(3, 3)), other)
    layers = layers_of(graph, {"x": drawn(1, 6, 4) / 20}, fused=True)
    (product_,) = (node for node in layers if node.op == "fc")
    assert layers[product_.operands[0]].type.quantisation == FIXED


def test_what_the_host_moves_between_layers_is_held_as_before() -> None:
    """Without it calibration would find other parameters for what enters the device again, and the integers would be rounded anew."""
    model = Model()
    h = pinned(model, model.dense(model.input("x", 6, 5), drawn(1, 5, 4)), "d")
    turned = model.op("slice", model.op("transpose", model.op("relu", h), perm=(1, 0)), starts=(1, 0), stops=(4, 6))
    graph = model.build(model.dense(turned, drawn(2, 6, 3), key="fc2"))
    after = explicit(graph)
    assert {node.op: node.type.quantisation for node in after if not node.on_device and node.op in ("transpose", "slice")} == {
        "transpose": FIXED,
        "slice": FIXED,
    }
    layers = layers_of(graph, {"x": drawn(3, 6, 5)}, fused=True)
    assert layers[layers["fc2"].operands[0]].type.quantisation == FIXED


def test_a_concatenation_of_values_held_alike_is_held_as_they_are() -> None:
    """Its integers are theirs, so that nothing is requantised. Where they are held otherwise, calibration finds what suits both."""
    for other, wanted in ((S, FIXED), (2 * S, None)):
        model = Model()
        x = model.input("x", 6, 5)
        first, second = (model.dense(x, drawn(seed, 5, 4), drawn(seed, 4), key=f"d{seed}") for seed in (1, 2))
        joined = model.op("concat", pinned(model, first, "a"), pinned(model, second, "b", other), name="joined", axis=1)
        graph = model.build(model.dense(joined, drawn(3, 8, 2), key="last"))
        assert explicit(graph)["joined"].type.quantisation == wanted
        layers = layers_of(graph, {"x": drawn(4, 6, 5)})
        assert (layers["joined"].type.quantisation == FIXED) == (wanted is not None)


def test_rows_of_a_table_are_held_as_the_table_is() -> None:
    """The host takes them, and what the device then reads has the integers of the table."""
    model = Model()
    table = pinned(model, model.constant("table", drawn(1, 9, 4)), "t")
    rows = model.op("embedding", model.op("argmax", model.input("x", 6, 9), axis=-1), table, name="rows")
    graph = model.build(model.dense(rows, drawn(2, 4, 3)))
    assert explicit(graph)["rows"].type.quantisation == FIXED
    layers = layers_of(graph, {"x": drawn(4, 6, 9)})
    assert layers[layers["fc"].operands[0]].type.quantisation == FIXED


def test_views_of_integers() -> None:
    model = Model()
    h = model.dense(model.input("x", 4, 3), drawn(1, 3, 5))
    q = model.op("reshape", model.op("quantize", h, name="q", scale=S, zero_point=Z), shape=(2, 2, 5), name="view")
    graph = model.build(model.dense(model.op("dequantize", q, name="d"), drawn(2, 5, 2), key="fc2"), q)
    layers = layers_of(graph, {"x": drawn(3, 4, 3)})
    assert layer_ops(layers) == ["fc", "fc"]
    assert layers["fc"].type.quantisation == FIXED
    assert layers["fc2"].operands[0] == "view"
    assert outputs_of(layers, {"x": drawn(3, 4, 3)})[1].shape == (2, 2, 5)


@pytest.mark.parametrize("fused", [False, True])
def test_weights_keep_symmetric_parameters(fused: bool) -> None:
    model = Model()
    w = pinned(model, model.constant("fc.w", drawn(1, 5, 4)), "w", 0.25, 0)
    h = model.op("matmul", model.input("x", 6, 5), w, name="h")
    graph = model.build(model.op("add", h, model.constant("fc.b", drawn(2, 4)), name="s"))
    inputs = {"x": drawn(3, 6, 5)}
    layers = layers_of(graph, inputs, fused=fused)
    np.testing.assert_array_equal(value_of(layers, "fc.w"), quantise(drawn(1, 5, 4), 0.25, 0))
    (exact, found) = (outputs_of(g, inputs)[0] for g in (graph, layers))
    np.testing.assert_allclose(found, exact, atol=0.2)


def test_weights_with_a_zero_point_keep_their_rounded_values() -> None:
    model = Model()
    w = pinned(model, model.constant("fc.w", [[0.9], [-0.4], [2.1]]), "w", 0.5, 3)
    graph = model.build(model.op("matmul", model.input("x", 2, 3), w, name="h"))
    layers = layers_of(graph)
    assert value_of(layers, "fc.w").tolist() == [[64], [-32], [127]]  # 1.0, -0.5, 2.0 by their own scale 2 / 127


def test_a_vector_operand_keeps_its_parameters() -> None:
    model = Model()
    c = pinned(model, model.constant("c", [1.0, 2.0, 3.3]), "d", 0.5, 7)
    graph = model.build(model.op("mul", model.input("x", 2, 3), c, name="y"))
    layers = layers_of(graph)
    assert layers["c"].type.quantisation == Quantisation(0.5, 7)
    assert value_of(layers, "c").tolist() == [9, 11, 14]


def test_a_constant_that_the_host_reads_is_rounded_as_written() -> None:
    model = Model()
    c = pinned(model, model.constant("c", [[1.0, 2.2, 3.3]]), "d", 0.5, 0)
    graph = model.build(model.op("softmax", model.op("concat", model.input("x", 2, 3), c, axis=0)), c)
    inputs = {"x": drawn(1, 2, 3)}
    layers = layers_of(graph, inputs)
    for found, expected in zip(outputs_of(layers, inputs), outputs_of(graph, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_left_out_the_pass_costs_a_rounding_and_nothing_else() -> None:
    from tpucc.passes.quantise import quantise

    model = Model()
    graph = model.build(pinned(model, model.dense(model.input("x", 6, 5), drawn(1, 5, 4), drawn(2, 4)), "d"))
    inputs = {"x": drawn(3, 6, 5)}
    layers = applied(placed(graph), calibrate, *FUSIONS, quantise, calibration=inputs)
    assert layer_ops(layers) == ["fc", "vector"]
    np.testing.assert_allclose(outputs_of(layers, inputs)[0], outputs_of(graph, inputs)[0], atol=0.1)
