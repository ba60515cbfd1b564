"""The layer graph: parameters against hand computation, results against the float reference, every shape of model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import FUSIONS, Model, applied, context, layers_of, outputs_of, placed, value_of
from tpucc.diagnostics import CompileError, ProgramError, UsageError
from tpucc.floating.arithmetic import PORTABLE
from tpucc.ir import Graph, Quantisation
from tpucc.ir.dtypes import I8
from tpucc.layers.kinds import Fc, Requantise, Vector, is_layer
from tpucc.numerics import AnyArray
from tpucc.passes.calibrate import calibrate
from tpucc.passes.quantise import quantise

BOTH = pytest.mark.parametrize("fused", [False, True], ids=["separate", "fused"])


def drawn(seed: int, *shape: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer_names(graph: Graph) -> list[str]:
    return [node.name for node in graph if is_layer(node)]


def held(graph: Graph, name: str) -> Quantisation:
    quantisation = graph[name].type.quantisation
    assert quantisation is not None
    return quantisation


def error_in_steps(graph: Graph, layers: Graph, x: dict[str, AnyArray]) -> float:
    """The largest error of the first output, in steps of the device value that it comes from."""
    (exact, *_), (found, *_) = outputs_of(graph, x), outputs_of(layers, x)
    node = layers[layers.outputs[0].node]
    assert node.op == "dequantize"
    return float(np.abs(exact - found).max() / held(layers, node.operands[0]).scale)


# ---- parameters by hand


def hand_model(bias: list[float], activation: str = "") -> Graph:
    """x in 0…255 has scale 1 and zero -128; the weights' scales are 1 and 0.5."""
    model = Model()
    x = model.input("x", 1, 2, range=(0.0, 255.0))
    return model.build(model.dense(x, [[127, 1], [64, -63.5]], bias, activation=activation))


def test_an_fc_layer_by_hand() -> None:
    graph = hand_model([3.0, -2.25])
    ends = np.array([[0, 0], [255, 0], [0, 255], [255, 255]], np.float32)
    layers = layers_of(graph, {"x": ends}, fused=True)
    y = held(layers, "fc")
    assert held(layers, "x.i8") == Quantisation(1.0, -128)
    assert layers["fc"].operands == ("x.i8", "fc.w", "fc.bias", "fc.multiplier")
    assert value_of(layers, "fc.w").tolist() == [[127, 2], [64, -127]]
    # round(3 / 1) + 128 · (127 + 64), round(-2.25 / 0.5 = -4.5) + 128 · (2 - 127)
    assert value_of(layers, "fc.bias").tolist() == [3 + 128 * 191, -4 - 128 * 125]
    assert value_of(layers, "fc.multiplier").tolist() == [float(np.float32(scale) / np.float32(y.scale)) for scale in (1.0, 0.5)]
    # the largest is 255 · 191 + 3 = 48,708, the smallest -255 · 63.5 - 2.25 = -16,194.75; outwards to ten bits
    assert y == Quantisation(float(np.float32((48768 + 16208) / 255)), round(-128 + 16208 * 255 / (48768 + 16208)))
    assert layers["fc"].attributes == Fc(Requantise(y.zero_point))


def test_per_tensor_scales() -> None:
    layers = layers_of(hand_model([3.0, -2.25]), fused=True, granularity="per_tensor")
    assert value_of(layers, "fc.w").tolist() == [[127, 1], [64, -64]]  # -63.5 to even
    assert value_of(layers, "fc.bias").tolist() == [3 + 128 * 191, -2 - 128 * 63]
    assert len(set(value_of(layers, "fc.multiplier").tolist())) == 1


@pytest.mark.parametrize(("activation", "top"), [("relu", math.inf), ("relu6", 6.0)])
def test_a_fused_clamp_is_bounds_in_the_results_own_steps(activation: str, top: float) -> None:
    layers = layers_of(hand_model([3.0, -2.25], activation), {"x": np.array([[0, 0], [0.25, 0]], np.float32)}, fused=True)
    y, layer = held(layers, "fc"), layers["fc"].attributes
    assert isinstance(layer, Fc)
    high = 127 if math.isinf(top) else min(127, round(top / y.scale) - 128)
    assert layer.epilogue == Requantise(y.zero_point, None, None if high == 127 else high)
    assert layer.epilogue.bounds(I8) == (y.zero_point, high) == (-128, high)


def test_a_fused_table_requantises_for_the_range_before_it() -> None:
    x = {"x": np.array([[0, 0], [0.03125, 0], [0, 0.0625]], np.float32)}
    layers = layers_of(hand_model([-2.0, 1.0], "sigmoid"), x, fused=True)
    separate = layers_of(hand_model([-2.0, 1.0], "sigmoid"), x)
    before, y = held(separate, "fc_sum"), held(layers, "fc")
    assert layers["fc"].attributes == Fc(Requantise(before.zero_point, table=True))
    assert held(separate, "fc_sigmoid") == y
    expected = [
        max(-128, min(127, round(1 / (1 + math.exp(-before.scale * (q - before.zero_point))) / y.scale) + y.zero_point))
        for q in range(-128, 128)
    ]
    assert value_of(layers, "fc.table").tolist() == expected == value_of(separate, "fc_sigmoid.table").tolist()


def test_a_lone_clamp_keeps_its_operands_parameters() -> None:
    model = Model()
    graph = model.build(model.op("relu6", model.input("x", 3, 4, range=(-12.8, 12.7)), name="y"))
    layers = layers_of(graph)
    assert held(layers, "y") == held(layers, "x.i8") == Quantisation(float(np.float32(0.1)), 0)
    assert value_of(layers, "y.table").tolist() == [max(0, min(60, q)) for q in range(-128, 128)]


def test_bias_and_product_are_rounded_to_even() -> None:
    model = Model()
    x = model.input("x", 1, 1, range=(-128.0, 127.0))
    layers = layers_of(model.build(model.dense(x, [[127.0]], [0.5])), {"x": np.zeros((1, 1), np.float32)}, fused=True)
    assert value_of(layers, "fc.bias").tolist() == [0]


def test_vector_layers_by_hand() -> None:
    model = Model()
    a, b = model.input("a", 2, 3, range=(0.0, 255.0)), model.input("b", 3, range=(-128.0, 127.0))
    s, d, p = (model.op(op, a, b, name=op) for op in ("add", "sub", "mul"))
    c = model.op("mul", a, model.constant("c", [[-0.5], [127.0]]), name="scaled")
    layers = layers_of(model.build(s, d, p, c), {"a": np.full((2, 3), 255, np.float32), "b": np.full(3, 127, np.float32)})
    scales = {name: np.float32(held(layers, name).scale) for name in ("add", "sub", "mul", "scaled")}
    zeros = {name: held(layers, name).zero_point for name in scales}
    third = np.float32(1) / scales["add"]
    assert layers["add"].attributes == Vector("add", Requantise(zeros["add"], scales=(float(third),) * 2, zeros=(-128, 0)))
    third = np.float32(1) / scales["sub"]
    assert layers["sub"].attributes == Vector("subtract", Requantise(zeros["sub"], scales=(float(third),) * 2, zeros=(-128, 0)))
    one = float(np.float32(1) / scales["mul"])
    assert layers["mul"].attributes == Vector("multiply", Requantise(zeros["mul"], scales=(one,), zeros=(-128, 0)))
    half = np.float32(127.5 / 255)
    assert held(layers, "c") == Quantisation(float(half), -127)
    assert value_of(layers, "c").tolist() == [[-128], [127]]
    assert layers["scaled"].attributes == Vector(
        "multiply", Requantise(zeros["scaled"], scales=(float(half / scales["scaled"]),), zeros=(-128, -127))
    )


@each(
    [
        (op, left, function, shape)
        for op, left, function in [
            ("add", False, lambda x: x + 2.5),
            ("sub", False, lambda x: x - 2.5),
            ("sub", True, lambda x: 2.5 - x),
            ("mul", False, lambda x: x * 2.5),
            ("mul", True, lambda x: x * 2.5),
        ]
        for shape in [(), (1,), (1, 1, 1)]
    ]
)
def test_a_constant_number_makes_a_table(op: str, left: bool, function: object, shape: tuple[int, ...]) -> None:
    assert callable(function)
    model = Model()
    x, c = model.input("x", 3, 5, range=(-2.0, 6.0)), model.constant("c", np.full(shape, 2.5))
    graph = model.build(model.op(op, *((c, x) if left else (x, c)), name="y"))
    layers = layers_of(graph, {"x": np.linspace(-2, 6, 15, dtype=np.float32).reshape(3, 5)})
    x_held, y = held(layers, "x.i8"), held(layers, "y")
    expected = [
        max(-128, min(127, round(function(x_held.scale * (q - x_held.zero_point)) / y.scale) + y.zero_point)) for q in range(-128, 128)
    ]
    assert value_of(layers, "y.table").tolist() == expected
    assert [node.op for node in layers if is_layer(node)] == ["vector"]
    assert outputs_of(layers, {"x": drawn(0, 3, 5)})[0].shape == graph["y"].type.shape


# ---- results against the float reference


@BOTH
@pytest.mark.parametrize("granularity", ["per_channel", "per_tensor"])
@pytest.mark.parametrize("seed", range(6))
def test_int8_stays_near_float_on_random_networks(seed: int, granularity: str, fused: bool) -> None:
    generator = np.random.default_rng(seed)
    sizes = [int(n) for n in generator.choice([1, 3, 17, 64, 130], 4)]
    activations = [
        str(a) for a in generator.choice(["relu", "relu6", "sigmoid", "tanh", "gelu", "elu", "silu", "leaky_relu", "hard_swish"], 3)
    ]
    model = Model()
    h = model.input("x", 9, sizes[0])
    for number, (k, n, activation) in enumerate(zip(sizes, sizes[1:], activations, strict=False)):
        h = model.dense(
            h, drawn(seed + number, k, n) / math.sqrt(k), drawn(seed - number + 50, n) / 4, key=f"fc{number}", activation=activation
        )
    graph = model.build(h)
    x = {"x": drawn(seed, 27, sizes[0])}
    layers = layers_of(graph, x, fused=fused, granularity=granularity)
    (exact,), (found,) = (outputs_of(g, {"x": x["x"][:9]}) for g in (graph, layers))
    signal, noise = float(np.square(exact).mean()), float(np.square(exact - found).mean())
    assert noise <= signal * 10**-2.3  # 23 dB after three layers; 8 bits alone give about 40
    assert len(layer_names(layers)) == (3 if fused else 9)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (1, 1, 1, 5)])
@BOTH
def test_products_of_every_rank(shape: tuple[int, ...], fused: bool) -> None:
    model = Model()
    graph = model.build(model.dense(model.input("x", *shape), drawn(1, 5, 3), drawn(2, 3), activation="relu"))
    x = {"x": drawn(3, *shape)}
    layers = layers_of(graph, x, fused=fused)
    assert layers[layers.outputs[0].node].type.shape == (*shape[:-1], 3)
    assert error_in_steps(graph, layers, x) < 6


BROADCASTS = [((4, 5), (5,)), ((4, 5), (4, 1)), ((4, 1), (1, 5)), ((), (3,)), ((2, 3, 4), (3, 1)), ((1,), (2, 1, 3)), ((6,), (6,))]


@each([(op, *shapes, constant) for op in ("add", "sub", "mul") for shapes in BROADCASTS for constant in ("", "left", "right")])
def test_broadcasting_of_every_kind(op: str, left: tuple[int, ...], right: tuple[int, ...], constant: str) -> None:
    model = Model()
    x = {side: drawn(n, *shape) for n, (side, shape) in enumerate((("left", left), ("right", right)))}
    names = [model.constant(side, x[side]) if side == constant else model.input(side, *x[side].shape) for side in x]
    graph = model.build(model.op(op, *names, name="y"))
    inputs = {side: array for side, array in x.items() if side != constant}
    layers = layers_of(graph, inputs)
    assert outputs_of(layers, inputs)[0].shape == np.broadcast_shapes(left, right)
    assert error_in_steps(graph, layers, inputs) < 4.5


@each([("add", lambda x: x + x), ("sub", lambda x: x - x), ("mul", lambda x: x * x)])
def test_the_same_operand_twice(op: str, function: object) -> None:
    assert callable(function)
    model = Model()
    x = model.input("x", 3, 4)
    graph = model.build(model.op(op, x, x, name="y"))
    inputs = {"x": drawn(1, 3, 4)}
    layers = layers_of(graph, inputs)
    assert layers["y"].operands == ("x.i8", "x.i8")
    np.testing.assert_allclose(outputs_of(layers, inputs)[0], function(inputs["x"]), atol=0.06)


def test_a_chain_of_functions_is_a_chain_of_tables() -> None:
    model = Model()
    y = model.input("x", 2, 3)
    for op in ("tanh", "gelu", "sigmoid"):
        y = model.op(op, y, name=op)
    graph = model.build(y)
    inputs = {"x": drawn(1, 2, 3)}
    layers = layers_of(graph, inputs)
    assert layer_names(layers) == ["tanh", "gelu", "sigmoid"]
    assert error_in_steps(graph, layers, inputs) < 2


def test_a_view_between_layers_holds_the_same_integers() -> None:
    model = Model()
    h = model.dense(model.input("x", 4, 3), drawn(1, 3, 5))
    h = model.op("reshape", h, shape=(2, 2, 5), name="view")
    graph = model.build(model.dense(h, drawn(2, 5, 2), key="fc2"))
    layers = layers_of(graph)
    assert (layers["view"].op, layers["view"].operands) == ("reshape", ("fc",))
    assert held(layers, "view") == held(layers, "fc")
    assert layers["fc2"].operands[0] == "view"


# ---- edges, names, sharing


def test_the_edges_of_the_device() -> None:
    model = Model()
    x = model.op("transpose", model.input("x", 3, 2), perm=(1, 0), name="turned")
    h = model.dense(x, drawn(1, 3, 4), drawn(2, 4), key="fc1", activation="relu")
    y = model.op("softmax", model.dense(h, drawn(3, 4, 2), key="fc2"), name="y")
    layers = layers_of(model.build(y, h), fused=True)
    described = [(node.name, node.op) for node in layers if node.op != "constant"]
    assert described == [
        ("x", "input"),
        ("turned", "transpose"),
        ("turned.i8", "quantize"),
        ("fc1", "fc"),
        ("fc2", "fc"),
        ("fc2.f32", "dequantize"),
        ("y", "softmax"),
        ("fc1.f32", "dequantize"),
    ]
    assert [(output.name, output.node) for output in layers.outputs] == [("out_y", "y"), ("out_fc1_relu", "fc1.f32")]


def test_a_value_crosses_each_edge_once() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    h, g = (model.dense(x, drawn(n, 3, 4), key=f"fc{n}") for n in range(2))
    soft = [model.op("softmax", h, name=f"soft{n}") for n in range(2)]
    layers = layers_of(model.build(*soft, g, h))
    assert sum(node.op == "quantize" for node in layers) == 1
    assert sum(node.op == "dequantize" for node in layers) == 2


def test_every_edge_of_the_device_is_quantised_and_every_node_has_an_origin() -> None:
    model = Model()
    h = model.dense(model.input("x", 2, 3), drawn(1, 3, 4), drawn(2, 4), activation="tanh")
    graph = model.build(model.op("mul", h, h))
    layers = layers_of(graph, fused=True)
    assert all(node.origin for node in layers)
    assert layers["fc"].origin.lines == {graph[name].origin.line for name in ("fc_product", "fc_sum", "fc_tanh")}
    assert all(node.type.quantisation for node in layers if node.type.dtype == "i8" and node.op != "constant")


@each(
    [
        ("fc1.w", "fc1"),
        ("encoder.0.weight", "encoder.0"),
        ("lstm.kernel.3", "lstm"),
        ("w", "product"),
        ("w.1", "product"),
        ("0", "product"),
    ]
)
def test_a_layer_is_named_as_the_student_named_it(key: str, name: str) -> None:
    model = Model()
    graph = model.build(model.op("matmul", model.input("x", 2, 3), model.constant(key, drawn(1, 3, 4)), name="product"))
    assert layer_names(layers_of(graph)) == [name]


def test_names_are_unique_and_inputs_keep_theirs() -> None:
    model = Model()
    x, fc = model.input("x", 2, 3), model.input("fc", 2, 3)
    w = model.constant("fc.w", drawn(1, 3, 3))
    h = model.op("matmul", model.op("add", x, fc, name="s"), w, name="h")
    layers = layers_of(model.build(model.op("matmul", h, w, name="y")))
    assert layer_names(layers) == ["s", "fc.1", "fc.2"]
    assert [node.name for node in layers.inputs] == ["x", "fc"]


def test_a_weight_that_several_layers_read_is_one_constant() -> None:
    model = Model()
    w, c = model.constant("fc.w", drawn(1, 3, 3)), model.constant("c", drawn(2, 3))
    h = model.input("x", 2, 3)
    for number in range(5):
        h = model.op("add", model.op("matmul", h, w, name=f"h{number}"), c, name=f"s{number}")
    layers = layers_of(model.build(h))
    assert {node.operands[1] for node in layers if node.op == "fc"} == {"fc.w"}
    assert {node.operands[1] for node in layers if node.op == "vector"} == {"c"}


# ---- all shapes of models


def test_models_without_work_for_the_device() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    c = model.constant("c", drawn(1, 2))
    graph = model.build(x, c, model.op("softmax", x, name="y"))
    layers = layers_of(graph)
    assert layers == graph.with_nodes([graph["x"], graph["y"], graph["c"]])


def test_dead_operators_make_no_layers() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    model.dense(x, drawn(1, 3, 4), key="dead")
    unused = model.input("unused", 3)
    layers = layers_of(model.build(model.op("relu", x, name="y")))
    assert layer_names(layers) == ["y"]
    assert [node.name for node in layers.inputs] == ["x", unused]


def test_constants_that_nobody_folded() -> None:
    model = Model()
    w = model.op("transpose", model.constant("w", drawn(1, 4, 3)), perm=(1, 0), name="turned")
    zeros = model.op("zeros", shape=(2, 3), name="zeros")
    y = model.op("matmul", model.op("add", model.input("x", 2, 3), zeros, name="s"), w, name="y")
    graph = model.build(y, model.op("tanh", model.constant("c", [0.5]), name="t"))
    layers = layers_of(graph, {"x": drawn(2, 2, 3)})
    assert error_in_steps(graph, layers, {"x": drawn(2, 2, 3)}) < 4
    assert value_of(layers, "t") == PORTABLE.tanh(np.array(0.5, np.float32))


def test_an_input_that_is_also_an_output() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    layers = layers_of(model.build(x, model.op("relu", x, name="y")))
    inputs = {"x": drawn(1, 2, 3)}
    np.testing.assert_array_equal(outputs_of(layers, inputs)[0], inputs["x"])


def test_a_value_that_is_always_zero_has_a_scale_that_keeps_biases() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    graph = model.build(model.dense(model.op("sub", x, x, name="zero"), drawn(1, 3, 2), drawn(2, 2)))
    inputs = {"x": drawn(3, 2, 3)}
    layers = layers_of(graph, inputs, fused=True)
    assert held(layers, "zero") == Quantisation(2.0**-24, 0)
    assert error_in_steps(graph, layers, inputs) < 1


# ---- numbers that don't fit


def test_a_bias_beside_a_column_of_tiny_weights_keeps_its_value() -> None:
    """In units of s_x · s_w it would be past int32: the column's scale grows, and its products vanish as they should."""
    model = Model()
    weights = drawn(1, 4, 3)
    weights[:, 1] *= np.float32(1e-12)
    graph = model.build(model.dense(model.input("x", 5, 4), weights, [0.5, -1.75, 3.0]))
    inputs = {"x": drawn(2, 5, 4)}
    for granularity in ("per_channel", "per_tensor"):
        layers = layers_of(graph, inputs, fused=True, granularity=granularity)
        assert np.abs(value_of(layers, "fc.bias").astype(np.int64)).max() <= 2**30 + 2**17
        assert error_in_steps(graph, layers, inputs) < 3


def test_a_huge_bias_is_kept_too() -> None:
    model = Model()
    graph = model.build(model.dense(model.input("x", 5, 4), drawn(1, 4, 2), [1e30, -1.0]))
    inputs = {"x": drawn(2, 5, 4)}
    assert error_in_steps(graph, layers_of(graph, inputs, fused=True), inputs) < 2


def test_a_product_so_deep_that_the_accumulators_could_overflow_is_an_error() -> None:
    depth = 140_000
    model = Model()
    graph = model.build(model.op("matmul", model.input("x", 1, depth), model.constant("fc.w", np.ones((depth, 1))), name="y"))
    with pytest.raises(CompileError) as caught:
        layers_of(graph)
    (error,) = caught.value.diagnostics
    assert error.code == "E0803"
    assert error.span == graph["y"].origin.spans[0]
    assert "140,000 products" in error.message


def test_a_ratio_past_float32_is_an_error() -> None:
    model = Model()
    x = model.input("x", 1, 2, range=(0.0, 1e38))
    graph = model.build(model.op("mul", x, model.constant("c", [1e-30, 1e30]), name="y"))
    calibrated = applied(placed(graph), calibrate, calibration={"x": np.full((1, 2), 1e-7, np.float32)})
    small = calibrated.with_nodes(
        replace(n, type=n.type.with_range(None).with_quantisation(Quantisation(1e-20, 0))) if n.name == "y" else n for n in calibrated
    )
    with pytest.raises(CompileError) as caught:
        quantise.run(small, context())
    assert caught.value.diagnostics[0].code == "E0804"


def test_a_graph_that_is_not_ready() -> None:
    model = Model()
    h = model.op("matmul", model.input("x", 1, 2), model.constant("w", drawn(1, 2, 2)), name="h")
    graph = model.build(model.op("tanh", h, name="t"))
    calibrated = applied(placed(graph), calibrate)
    unknown = calibrated.with_nodes(replace(n, type=n.type.plain()) if n.name == "h" else n for n in calibrated)
    for bad in (graph, applied(placed(graph), *FUSIONS), applied(unknown, *FUSIONS)):
        with pytest.raises(ProgramError) as caught:
            quantise.run(bad, context())
        assert caught.value.diagnostics[0].code == "E0806"


def test_a_layer_graph_is_left_alone() -> None:
    model = Model()
    layers = layers_of(model.build(model.op("relu", model.input("x", 1, 2))))
    assert quantise.run(layers, context()) is layers


def test_bad_granularity() -> None:
    with pytest.raises(UsageError) as caught:
        quantise(granularity="per_row").run(hand_model([0, 0]), context())
    assert caught.value.diagnostics[0].code == "E0517"
