"""Placement: what goes where, and what the notes say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model, applied, built, context
from tests.support.placing import placement
from tpucc.diagnostics import ProgramError, UsageError
from tpucc.ir import Graph
from tpucc.ops.clip import ClipAttributes
from tpucc.options import options_of
from tpucc.passes.calibrate import calibrate
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.device_work import keeps_rows, needs_host
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias
from tpucc.passes.place import place

W44 = np.ones((4, 4), np.float32)


def on_device(graph: Graph) -> set[str]:
    return {name for name, side in placement(graph).items() if side == "device"}


def product(model: Model, x: str, name: str) -> str:
    columns = model.builder.nodes[x].type.columns
    return model.op("matmul", x, model.constant(f"{name}.w", np.ones((columns, 4))), name=name)


def test_products_and_element_wise_operators_go_on_the_device() -> None:
    model = Model()
    h = model.op("tanh", model.op("relu", product(model, model.input("x", 2, 3), "h"), name="r"), name="t")
    graph = model.build(model.op("add", h, model.op("mul", h, h, name="square"), name="y"))
    assert on_device(graph) == {"h", "r", "t", "square", "y"}
    result = applied(graph, place)
    assert {node.name: node.place for node in result} == placement(graph)
    assert applied(result, place) is result


def test_the_prologue_takes_what_host_operators_depend_on_and_no_more() -> None:
    model = Model()
    x = model.op("relu", model.input("x", 3, 2), name="before")
    x = model.op("transpose", x, perm=(1, 0), name="turned")
    y = product(model, model.op("tanh", x, name="after"), "y")
    assert on_device(model.build(y)) == {"after", "y"}


def test_the_epilogue_takes_what_depends_on_host_operators_and_no_more() -> None:
    model = Model()
    h = model.op("tanh", product(model, model.input("x", 2, 3), "h"), name="t")
    y = model.op("relu", model.op("softmax", h, name="soft"), name="last")
    assert on_device(model.build(y, h)) == {"h", "t"}


NORMALISED = {
    "of an input": ("x / sqrt(sum(x * x, axis=1, keepdims=True))", set[str]()),
    "of a layer": ("h / maximum(sqrt(sum(h * h, axis=1, keepdims=True)), 1e-30)", {"h"}),
    "centred": (
        "(h - mean(h, axis=1, keepdims=True)) / sqrt(mean((h - mean(h, axis=1, keepdims=True)) * h, axis=1, keepdims=True))",
        {"h"},
    ),
    "with the layer's bias and clamp": (
        "relu(h + b) / sum(exp(relu(h + b)), axis=1, keepdims=True)",
        {"h", "add", "relu", "add.1", "relu.1"},
    ),
    "a logarithm of the host's": ("log(sum(exp(h), axis=1))", {"h"}),
    "a logarithm of the device's": ("log(exp(h) + 1.0)", {"h", "exp", "add", "log"}),
    "of what the device reads too": ("(tanh(h) @ v) / sum(tanh(h), axis=1, keepdims=True)", {"h", "tanh", "matmul"}),
    "of a constant": ("tanh(h) / (v[0] * v[0])", {"h", "tanh"}),
    "by a product with the reciprocal": ("(h * (b * (1.0 / sqrt(mean(h * h, axis=1, keepdims=True))))) @ v", {"h", "matmul"}),
    "with a numerator of its own": ("tanh(h) / sqrt(sum(h * h, axis=1, keepdims=True))", {"h"}),
    "with sums of a layer's and of a function's": (
        "sum(relu(h) * exp(h @ v), axis=1) / sum(exp(h @ v), axis=1)",
        {"h", "matmul", "matmul.1"},
    ),
    "with a numerator that the device reads too": ("(tanh(h) @ v) / (1.0 + exp(tanh(h)))", {"h", "tanh", "matmul"}),
    "of a clamp and of what it clamps": ("relu(h) / sqrt(sum(h * h, axis=1, keepdims=True))", {"h"}),
    "of a clamp alone": ("relu(h) / sqrt(sum(x * x, axis=1, keepdims=True))", {"h", "relu"}),
    "times a reciprocal, with a numerator of its own": ("(tanh(h) * b) * (1.0 / sum(h * h, axis=1, keepdims=True))", {"h"}),
    "by a reciprocal that is there before the layer": ("(h * (1.0 / (x * x + 1.0))) @ v", {"h", "mul.1", "matmul"}),
    "under a clamp": ("clip(1.0 / (h * h + 0.001), 0.0, 10.0) @ v", {"h", "matmul"}),
    "under functions and constants": ("sigmoid(relu(h / sum(h * h, axis=1, keepdims=True))[:2] * b + b) @ v", {"h", "matmul"}),
    "under a sum with a layer": ("tanh(h / sum(h * h, axis=1, keepdims=True) + h) @ v", {"h", "add", "tanh", "matmul"}),
    "guarded against 0": ("1.0 / sqrt(clip(h, 0.001, 2.0))", {"h"}),
    "guarded by a sum": ("1.0 / (relu(h) + 0.001)", {"h", "relu"}),
    "with a guard in the numerator alone": ("clip(h, 0.001, 2.0) / sum(exp(x))", {"h", "clip"}),
}


def of_a_layer(text: str, values: str = "y = x") -> Graph:
    """The graph of an expression in `h`, the result of a layer, its input, other weights, and `values` of these."""
    return built(
        f"""weights random(seed=0)
model m(x: f32[4, 3] in [-1.0, 1.0]):
    weight w: f32[3, 3]
    weight b: f32[3]
    weight v: f32[3, 3]
    h = x @ w
    {values}
    return {text}
"""
    )


@each(NORMALISED)
def test_what_the_host_divides_by_stays_in_float32_from_the_last_layer_on(text: str, expected: set[str]) -> None:
    graph = of_a_layer(text)
    assert on_device(graph) == expected
    former = {node.name for node in applied(graph, place(float_divisors=False)) if node.place == "device"}
    assert former >= expected


POOLED = {
    "the largest round nothing": ("max_pool(relu(h), size=2) / (sum(x * x) + 1.0)", {"h", "relu", "max_pool"}),
    "nor in a divisor": ("x / (sum(max_pool(x, size=2) * max_pool(relu(h), size=2)) + 1.0)", {"h", "relu", "max_pool.1"}),
    "an average as a numerator": ("global_avg_pool(relu(h)) / (sum(x * x) + 1.0)", {"h", "relu", "global_avg_pool"}),
    "an average as a divisor": ("x / sum(global_avg_pool(relu(h)) + 1.0)", {"h", "relu"}),
    "an average of what the divisor is made of, too": ("avg_pool(x * exp(h), size=2) / avg_pool(exp(h), size=2)", {"h"}),
    "an average of an output": ("avg_pool(h, size=2) / sum(x * x), h", {"h"}),
    "an average of what the host reads": ("avg_pool(h, size=2) / sum(x * x), softmax(h)", {"h"}),
    "an average of what the host has": ("avg_pool(x * softmax(x), size=2) / avg_pool(softmax(x), size=2), h", {"h"}),
    "the largest of quotients": ("conv2d(max_pool(h / sqrt(h * h + 0.1), size=2), k)", {"h", "conv2d"}),
}


@each(POOLED)
def test_windows_of_a_numerator_are_the_devices_as_the_host_would_get_all_that_is_in_them(text: str, expected: set[str]) -> None:
    head = "weights random(seed=0)\nmodel m(x: f32[2, 4, 6, 3]):\n    weight k: f32[1, 1, 3, 3]\n"
    assert on_device(built(f"{head}    h = conv2d(x, k)\n    return {text}\n")) == expected


@each(
    [
        ("tanh(h @ v) / sqrt(sum(tanh(h @ v) * tanh(h @ v), axis=1, keepdims=True) + 0.000001)", {"h", "matmul"}),
        ("sigmoid(relu(h) @ v + b) / sum(sigmoid(relu(h) @ v + b), axis=1, keepdims=True)", {"relu", "add"}),
        ("log(sum(exp(h), axis=1))", {"h"}),
        ("exp(h) / sum(exp(h), axis=1, keepdims=True)", {"h"}),
        ("tanh(h / sum(exp(h), axis=1, keepdims=True)) @ v", {"h", "matmul"}),
    ]
)
def test_a_product_stays_on_the_device_though_the_function_of_it_is_the_hosts(text: str, expected: set[str]) -> None:
    graph = of_a_layer(text)
    fused = applied(graph, common_subexpressions, place, calibrate, fuse_bias, fuse_activation)
    assert {node.name for node in fused if node.on_device} == expected


@each(
    {
        "squares": ("h / sqrt(mean(s, axis=1, keepdims=True) + 0.000001), s @ v", "s = h * h", ["s.1"]),
        "an output, too": ("s / sum(s, axis=1, keepdims=True), s @ v, s", "s = exp(h)", ["s.1"]),
        "one after the other": ("1.0 / s, s @ v, t @ v", "t = h * h\n    s = exp(t)", ["t.1", "s.1"]),
        "of what the host has": ("s / sum(s, axis=1, keepdims=True), s @ v", "s = exp(x * x)", ["mul.1", "s.1"]),
        "a layer, as it is": ("1.0 / s, s @ v", "s = relu(h)", []),
        "a numerator, as the device has it": ("s / sum(x * x), s @ v", "s = tanh(h)", []),
    }
)
def test_a_divisor_that_the_device_reads_as_well_is_computed_by_both(results: str, values: str, copies: list[str]) -> None:
    graph = of_a_layer(results, values)
    placed = applied(graph, place)
    assert [node.name for node in placed if node.name not in graph.by_name] == copies
    assert placement(graph) == {node.name: node.place for node in placed if node.name not in copies}
    assert not any(placed[name].on_device or any(reader.on_device for reader in placed.users[name]) for name in copies)
    assert not placed.output_nodes & {name.removesuffix(".1") for name in copies}
    assert all(f"a copy of {name.removesuffix('.1')}" in "".join(placed.notes) for name in copies)
    assert applied(placed, place) is placed


@each(
    {
        "alone": ("1.0 / a", "a = clip(h, 0.001, 2.0)", {"h": "", "a.1": (0.0, 2.0)}),
        "below 0": ("a / sum(a)", "a = clip(h + b, -2.0, -0.001)", {"h": "", "add": "", "a.1": (-2.0, 0.0)}),
        "that the device reads": (
            "1.0 / a, a @ v",
            "a = clip(h, 0.001, 2.0)",
            {"h": "", "a.1": (0.0, 2.0), "a": (0.001, 2.0), "matmul": ""},
        ),
        "of what is read elsewhere": ("h / a", "a = clip(h, 0.001, 2.0)", {"h": ""}),
        "of a layer with its clamp": ("1.0 / a", "a = clip(relu6(h), 0.001, 2.0)", {"h": "", "relu6": "", "a.1": (0.0, 2.0)}),
    }
)
def test_a_layer_has_the_clamp_of_a_guard_with_0(results: str, values: str, expected: dict[str, object]) -> None:
    placed = applied(of_a_layer(results, values), place)
    clamps = {node.name: node.attributes for node in placed if node.on_device}
    assert {name: (a.low, a.high) if isinstance(a, ClipAttributes) else "" for name, a in clamps.items()} == expected
    assert applied(placed, place) is placed


def test_an_operator_beside_a_host_one_stays_on_the_device() -> None:
    model = Model()
    h = product(model, model.input("x", 2, 3), "h")
    soft = model.op("softmax", h, name="soft")
    other = model.op("sigmoid", h, name="other")
    assert on_device(model.build(model.op("concat", soft, other, axis=0))) == {"h", "other"}


def test_without_products_a_host_operator_ends_the_devices_work_or_comes_before_it() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    first = model.op("relu", model.op("softmax", x, name="soft"), name="after")
    last = model.op("softmax", model.op("relu", x, name="before"), name="soft2")
    both = model.op("tanh", model.op("softmax", model.op("relu", x, name="r"), name="soft3"), name="t")
    assert on_device(model.build(first, last, both)) == {"after", "before", "r"}


def test_integers_and_constants_are_the_hosts() -> None:
    model = Model()
    ids = model.input("ids", 2, dtype="i32", range=(0, 4))
    table = model.op("relu", model.constant("table", np.ones((5, 3))), name="folded")
    y = product(model, model.op("embedding", ids, table, name="rows"), "y")
    assert on_device(model.build(y)) == {"y"}


@each([((2, 2, 4), True), ((4, 4), True), ((1, 4, 4), True), ((16,), False), ((8, 2), False), ((4, 4, 1), False)])
def test_reshape_is_a_view_only_while_the_last_size_stays(shape: tuple[int, ...], is_kept: bool) -> None:
    model = Model()
    h = product(model, model.input("x", 4, 3), "h")
    y = model.op("reshape", h, shape=shape, name="view")
    y = model.op("matmul", y, model.constant("w2", np.ones((shape[-1], 2))), name="y")
    graph = model.build(y)
    assert on_device(graph) == {"h", "y", *(["view"] if is_kept else [])}
    assert ("last size" in needs_host(graph["view"], graph.operands(graph["view"]))) is not is_kept


def test_scalars_have_one_column() -> None:
    assert keeps_rows((), (1,))
    assert keeps_rows((1, 1), ())
    assert keeps_rows((5, 1), (5, 1, 1))
    assert not keeps_rows((5,), (5, 1))


def test_views_at_the_edges_stay_on_the_host() -> None:
    model = Model()
    x = model.op("reshape", model.input("x", 4, 3), shape=(2, 2, 3), name="before")
    y = model.op("reshape", product(model, x, "h"), shape=(4, 4), name="after")
    assert on_device(model.build(y)) == {"h"}


def test_flatten_of_rows_and_columns_is_a_step_of_the_host() -> None:
    model = Model()
    h = product(model, model.input("x", 2, 2, 3), "h")
    assert on_device(model.build(product(model, model.op("flatten", h, name="flat"), "y"))) == {"h", "y"}


@each(
    [
        ("transpose", {"perm": (1, 0, 2)}, (2, 3, 4), True),
        ("transpose", {"perm": (0, 1, -1)}, (2, 3, 4), True),
        ("transpose", {"perm": (0, 2, 1)}, (2, 4, 4), False),
        ("transpose", {"perm": (2, 1, 0)}, (4, 3, 4), False),
        ("slice", {"starts": (0, 1, 0), "stops": (2, 3, 4)}, (2, 3, 4), True),
        ("slice", {"starts": (0, 0, 1), "stops": (2, 3, 3)}, (2, 3, 4), True),
        ("slice", {"starts": (0, 1, 0), "stops": (2, 2, 4), "squeeze": (1,)}, (2, 3, 4), True),
        ("slice", {"starts": (0, 0, 1), "stops": (2, 3, 2), "squeeze": (2,)}, (2, 3, 4), False),
        ("slice", {"starts": (0, 0, 3), "stops": (2, 3, -1), "steps": (1, 2, -1)}, (2, 3, 4), True),
        ("slice", {"starts": (0, 2, 0), "stops": (2, -1, 4), "steps": (1, -1, 1)}, (2, 3, 4), False),
        ("pad", {"pads": ((0, 0), (1, 0), (0, 0))}, (2, 3, 4), True),
        ("pad", {"pads": ((0, 0), (0, 0), (0, 3))}, (2, 3, 4), True),
    ]
)
def test_what_moves_values_between_products_is_the_devices_unless_lanes_become_rows(
    op: str, attributes: dict[str, Any], shape: tuple[int, ...], is_device: bool
) -> None:
    model = Model()
    h = product(model, model.input("x", *shape[:-1], 3), "h")
    graph = model.build(product(model, model.op(op, h, name="moved", **attributes), "y"))
    assert on_device(graph) == {"h", "y", *(["moved"] if is_device else [])}


def test_what_moves_values_at_the_edges_is_the_hosts() -> None:
    model = Model()
    x = model.op("pad", model.input("x", 4, 3), pads=((1, 1), (0, 0)), name="before")
    y = model.op("slice", product(model, x, "h"), starts=(0, 0), stops=(2, 4), name="after")
    assert on_device(model.build(model.op("concat", y, y, axis=0, name="twice"))) == {"h"}


def test_pools_and_convolutions_go_on_the_device() -> None:
    model = Model()
    x = model.op("max_pool", model.input("x", 1, 8, 8, 3), size=2, name="first")
    h = model.op("conv2d", x, model.constant("k", np.ones((3, 3, 3, 5))), name="h")
    y = model.op("global_avg_pool", model.op("avg_pool", h, size=2, name="mean"), name="all")
    assert on_device(model.build(y)) == {"first", "h", "mean", "all"}


def test_boundaries_near_the_device_are_its_own() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    x = model.op("dequantize", model.op("quantize", x, name="q", scale=0.1), name="d")
    h = product(model, x, "h")
    soft = model.op("softmax", h, name="soft")
    model.op("quantize", soft, name="host_q", scale=0.1)
    graph = model.build(model.op("quantize", h, name="last_q", scale=0.1), "host_q")
    assert on_device(graph) == {"q", "d", "h", "last_q"}


def test_boundaries_and_views_alone_are_no_work_for_the_device() -> None:
    model = Model()
    q = model.op("quantize", model.op("reshape", model.input("x", 4, 3), shape=(2, 2, 3), name="view"), name="q", scale=0.1)
    assert on_device(model.build(q)) == set()


def test_a_host_operator_between_products_is_a_step_and_what_is_near_a_product_stays_on_the_device() -> None:
    model = Model()
    h = product(model, model.input("x", 2, 3), "above")
    soft = model.op("softmax", model.op("relu", h, name="r"), name="soft")
    graph = model.build(product(model, model.op("tanh", soft, name="t"), "below"))
    assert on_device(graph) == {"above", "r", "t", "below"}


def test_between_host_operators_alone_nothing_goes_to_the_device() -> None:
    """The device would be asked for one table between two steps, and the values would cross twice for it."""
    model = Model()
    h = product(model, model.input("x", 2, 3), "above")
    first = model.op("softmax", h, name="first")
    second = model.op("softmax", model.op("relu", first, name="enclosed"), name="second")
    assert on_device(model.build(product(model, second, "below"))) == {"above", "below"}


def test_a_product_between_host_operators_is_the_devices_with_what_is_around_it() -> None:
    model = Model()
    soft = model.op("softmax", product(model, model.input("x", 2, 3), "above"), name="soft")
    middle = model.op("relu", product(model, model.op("tanh", soft, name="before"), "middle"), name="after")
    y = product(model, model.op("softmax", middle, name="again"), "below")
    assert on_device(model.build(y)) == {"above", "before", "middle", "after", "below"}


def test_a_view_beside_a_host_operator_in_the_middle_is_the_hosts() -> None:
    model = Model()
    view = model.op("reshape", product(model, model.input("x", 4, 3), "h"), shape=(2, 2, 4), name="view")
    y = product(model, model.op("softmax", view, name="soft"), "y")
    assert on_device(model.build(y)) == {"h", "y"}


def convolved(model: Model, x: str, name: str) -> str:
    """A convolution of a map [1, 4, 4, 4] with a kernel that is computed from it."""
    kernel = model.op("reshape", model.op("softmax", x, name=f"{name}.s"), shape=(2, 2, 4, 4), name=f"{name}.k")
    return model.op("conv2d", x, kernel, padding="same", name=name)


def test_a_product_of_two_computed_values_is_the_hosts_and_a_note_says_so() -> None:
    model = Model()
    h = product(model, model.input("x", 2, 4), "h")
    scores = model.op("matmul", h, model.op("transpose", h, perm=(1, 0), name="turned"), name="scores")
    graph = model.build(product(model, model.op("matmul", scores, h, name="mixed"), "y"))
    assert on_device(graph) == {"h", "y"}
    (note,) = applied(graph, place).notes
    assert note == "TPU v1 reads weights only from weight memory: h @ turned (line 5) and scores @ h (line 6) are computed on the host"


def test_a_note_names_three_products_and_counts_the_others() -> None:
    model = Model()
    x = model.input("x", 4, 4)
    for number in range(5):
        x = model.op("matmul", x, x, name=f"square{number}")
    (note,) = applied(model.build(x), place).notes
    assert note.endswith(
        "memory: x @ x (line 2), square0 @ square0 (line 3), square1 @ square1 (line 4) and 2 others are computed on the host"
    )


def test_an_unrolled_loop_is_noted_once() -> None:
    model = Model()
    x = model.input("x", 4, 4)
    for number in range(3):
        x = model.op("matmul", x, x, name=f"square{number}")
    graph = model.build(x)
    same = graph.with_nodes(replace(node, origin=graph["square0"].origin) for node in graph)
    assert applied(same, place).notes[0].endswith(": x @ x (line 2) is computed on the host")


def test_a_product_with_several_constant_matrices_is_the_hosts() -> None:
    model = Model()
    h = product(model, model.input("x", 3, 2, 4), "h")
    y = model.op("matmul", h, model.constant("w", np.ones((3, 4, 5))), name="y")
    graph = model.build(y)
    assert on_device(graph) == {"h"}
    assert applied(graph, place).notes == ("the device multiplies rows by one matrix: h @ w (line 5) is computed on the host",)


def test_a_convolution_with_a_computed_kernel_is_the_hosts() -> None:
    model = Model()
    h = product(model, model.input("x", 1, 4, 4, 4), "h")
    graph = model.build(convolved(model, h, "y"))
    assert on_device(graph) == {"h"}
    assert applied(graph, place).notes == ("TPU v1 reads weights only from weight memory: conv2d(h, y.k) (line 6) is computed on the host",)


def test_a_host_operator_in_the_middle_that_nothing_needs_below_is_no_error() -> None:
    model = Model()
    h = product(model, model.input("x", 2, 3), "h")
    model.op("softmax", h, name="side")
    assert on_device(model.build(product(model, h, "y"), "side")) == {"h", "y"}


def test_a_layer_graph_has_no_placement() -> None:
    from tests.support.device_graphs import chain

    with pytest.raises(ProgramError) as caught:
        placement(chain(2, 3, 4))
    assert caught.value.diagnostics[0].code == "E0806"


@pytest.mark.soak
def test_thousands_of_steps_are_placed_in_linear_time() -> None:
    model = Model()
    x = product(model, model.input("x", 2, 4), "h")
    w = model.constant("w", W44)
    for number in range(7_000):
        x = model.op("matmul", model.op("softmax", model.op("relu", x, name=f"r{number}"), name=f"s{number}"), w, name=f"p{number}")
    graph = model.build(x)
    assert len(on_device(graph)) == 14_001


@pytest.mark.soak
def test_20_000_nodes_are_placed_in_linear_time() -> None:
    model = Model()
    x = product(model, model.input("x", 2, 4), "h")
    w = model.constant("w", W44)
    for number in range(10_000):
        x = model.op("relu", model.op("matmul", x, w, name=f"p{number}"), name=f"r{number}")
    graph = model.build(x)
    assert len(on_device(graph)) == 20_001


def three_layers() -> Graph:
    """tanh(x @ one.w + b), relu(… @ two.w), … @ three.w, of which the sum and the functions belong to the product before them."""
    model = Model()
    h = model.op(
        "tanh", model.op("add", product(model, model.input("x", 2, 3), "one"), model.constant("b", np.ones(4)), name="s"), name="t"
    )
    return model.build(product(model, model.op("relu", product(model, h, "two"), name="r"), "three"))


@each(
    [
        (("one",), {"two", "r", "three"}),
        (("two",), {"one", "s", "t", "three"}),
        (("three",), {"one", "s", "t", "two", "r"}),
        (("one", "three"), {"two", "r"}),
        (("t",), {"two", "r", "three"}),
        (("s", "r"), {"three"}),
        (("one", "two", "three"), set()),
    ]
)
def test_a_layer_that_is_kept_is_the_hosts_with_what_is_fused_into_it(kept: tuple[str, ...], device: set[str]) -> None:
    graph = three_layers()
    placed = place.run(graph, replace(context(), on_host=kept))
    assert {node.name for node in placed if node.on_device} == device
    line = graph["two"].origin.line
    by_line = place.run(graph, replace(context(), on_host=(str(line),)))
    assert {"two", "r"}.isdisjoint(node.name for node in by_line if node.on_device)


@each(
    [
        ("twoo", "no layer is named twoo", "did you mean two?", 8),
        ("zzzz", "no layer is named zzzz", "there are one, s, t, two, r and three", 3),
        ("9999", "line 9999 has no layer", "layers come from lines 3, 5, 6, 8, 9 and 11; a line in a def keeps", 0),
        ("x.i8", "no layer is named x.i8", "x.i8 is where x becomes integers; keep the layers that read it", 0),
    ]
)
def test_a_layer_that_is_not_there_cannot_be_kept(name: str, message: str, help: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        place.run(three_layers(), replace(context(), on_host=(name,)))
    (found,) = caught.value.diagnostics
    assert found.code == "E0534"
    assert message in found.message
    assert help in found.help[0]
    others = (
        "later passes divide layers, and tpucc profile names these parts: with --error it says what --keep takes for each",
        "tpucc compile MODEL --stop-after place --print-after place prints all names, those of layers and of their operators",
        f"--keep {line}=host keeps all layers of line {line}",
    )
    assert found.help[1:] == (others if line else ())


def test_of_many_layers_and_lines_a_message_names_the_nearest() -> None:
    """Those of one name and a number, as of an unrolled loop, once."""
    model = Model()
    x = model.input("x", 2, 4)
    for number in range(20):
        x = product(model, x, f"block{number}")
        x = model.op("tanh", x, name="h" if not number else f"h.{number}")
    graph = model.build(x)
    for asked, help in (
        ("zb", "there are 40 names; the nearest are block9, block8, block7 and block6"),
        ("1000", "the nearest lines with layers are 57, 58, 60 and 61; a line in a def keeps"),
    ):
        with pytest.raises(UsageError) as caught:
            place.run(graph, replace(context(), on_host=(asked,)))
        assert caught.value.diagnostics[0].help[0].startswith(help)


def test_what_only_moves_values_cannot_be_kept_but_what_makes_them_can() -> None:
    model = Model()
    x = model.input("x", 2, 4)
    h = model.op("relu", product(model, x, "one"), name="h")
    both = model.op("concat", h, model.op("concat", h, product(model, x, "two"), axis=1, name="inner"), axis=1, name="both")
    graph = model.build(model.op("matmul", both, model.constant("v", np.ones((12, 2))), name="three"))
    with pytest.raises(UsageError) as caught:
        place.run(graph, replace(context(), on_host=("both",)))
    (found,) = caught.value.diagnostics
    assert found.help == ("both computes nothing: it has values in other places", "the layers that make them can be kept: h and two")
    for name, what in (("x", "an input"), ("v", "a weight or another constant")):
        with pytest.raises(UsageError) as caught:
            place.run(graph, replace(context(), on_host=(name,)))
        read = "one and two" if name == "x" else "three"
        assert caught.value.diagnostics[0].help == (f"{name} is {what}, and no layer", f"the layers that read it can be kept: {read}")


def test_the_whole_layer_is_meant_by_the_name_of_a_part_that_a_later_pass_makes() -> None:
    """Also where another layer's name is more like it."""
    model = Model()
    graph = model.build(product(model, product(model, model.input("x", 2, 3), "lstm"), "lstm.21"))
    with pytest.raises(UsageError) as caught:
        place.run(graph, replace(context(), on_host=("lstm.2",)))
    assert caught.value.diagnostics[0].help[0] == "did you mean lstm?"


def test_a_note_says_what_is_kept_and_what_no_cycles_count() -> None:
    model = Model()
    x = product(model, model.input("x", 2, 4), "one")
    h = model.op("tanh", model.op("add", x, model.op("tanh", x, name="t"), name="s"), name="h")
    graph = model.build(product(model, h, "two"))
    notes = {name: place.run(graph, replace(context(), on_host=(name,))).notes for name in ("one", "s", "two", "h")}
    before, after = (
        f"not timed: {when}"
        for when in ("one (line 3) is computed before the device starts", "two (line 8) is computed after the device has finished")
    )
    assert notes["one"] == ("kept in float32: one (line 3) is computed on the host", before)
    assert notes["two"] == ("kept in float32: two (line 8) is computed on the host", after)
    assert notes["h"] == ("kept in float32: h (line 6) with s is computed on the host",)
    assert notes["s"] == ("kept in float32: s (line 5) with h is computed on the host",)


def test_a_note_names_a_kept_layer_by_what_was_asked_for_and_by_its_last_node_for_a_line() -> None:
    model = Model()
    h = model.op("add", product(model, model.input("x", 2, 4), "one"), model.constant("b", np.ones(4)), name="sum")
    graph = model.build(product(model, model.op("tanh", h, name="h"), "two"))
    for asked, said in (
        (("one",), "one (line 3) with sum and h"),
        (("sum", "h"), "sum (line 5) with one and h"),
        (("3", "sum"), "h (line 6) with one and sum"),
        (("h",), "h (line 6) with one and sum"),
    ):
        notes = place.run(graph, replace(context(), on_host=asked)).notes
        assert notes == (f"kept in float32: {said} is computed on the host", f"not timed: {said} is computed before the device starts")


def test_what_is_kept_where_no_cycles_count_it_is_said_by_its_place() -> None:
    """Several layers of one name may be in part there; and nothing is said where the device has nothing to do."""
    model = Model()
    x = model.input("x", 2, 4)
    names = ["one", "two", "mid", "three", "four"]
    for name in names:
        x = product(model, x, name)
    graph = model.build(x)
    edges = "not timed: one (line 3) and two (line 5) are computed before the device starts; four (line 11) is computed after the device"
    assert place.run(graph, replace(context(), on_host=("one", "two", "four"))).notes[1:] == (f"{edges} has finished",)
    assert not any("not timed" in note for note in place.run(graph, replace(context(), on_host=tuple(names))).notes)
    source = 'weights random(seed=0)\nmodel m(x: f32[4, 4]):\n    weight w: f32[4, 4] = "rnn.w"\n    weight v: f32[4, 4] = "v.w"\n'
    looped = built(f"{source}    h = x\n    for i in range(2):\n        h = tanh(h @ w) @ v\n    return h\n")
    notes = place.run(looped, replace(context(), on_host=("rnn",))).notes
    assert notes[1] == "not timed: a part of rnn is computed before the device starts"


def test_what_is_the_hosts_anyway_is_not_said_to_be_kept() -> None:
    model = Model()
    h = model.op("softmax", product(model, model.input("x", 2, 4), "one"), name="s")
    graph = model.build(product(model, h, "two"))
    anyway = "also without --keep: s (line 4) is computed on the host"
    for asked, said in (("s", anyway), ("one", "kept in float32: one (line 3) is computed on the host")):
        assert place.run(graph, replace(context(), on_host=(asked,))).notes[0] == said
    assert anyway in place.run(graph, replace(context(), on_host=("s", "one"))).notes


def test_each_kept_layer_is_named_though_several_are_of_one_line() -> None:
    """By the name of its weights' keys; a layer that is several products has its name once, a product by shared weights its own."""
    lines = (
        'weights random(seed=0)\ndef dense(x, name):\n    weight w: f32[4, 4] = "{name}.w"\n    return relu(x @ w)\n',
        'model m(x: f32[4, 4]):\n    weight v: f32[4, 4] = "v.w"\n    h = x\n    for i in range(14):',
        '        h = dense(h, "fc{i}")\n    one = h @ v\n    return one @ v\n',
    )
    graph = built("\n".join(lines))
    for names, said in (
        (("fc1", "fc0"), "fc0 and fc1 are"),
        (("v",), "v is"),
        (("one", "fc3"), "fc3 and one (line 11) are"),
        (tuple(f"fc{i}" for i in range(14)), f"{', '.join(f'fc{i}' for i in range(12))} and 2 others are"),
    ):
        notes = place.run(graph, replace(context(), on_host=names)).notes
        assert notes[0] == f"kept in float32: {said} computed on the host", names


def test_a_layer_is_not_kept_in_another_width_and_the_message_says_what_is_possible() -> None:
    with pytest.raises(UsageError) as caught:
        options_of(keep={"fc1": "16"})
    (found,) = caught.value.diagnostics
    assert found.message == "a layer is kept on the host, in float32; fc1 can't be kept as 16"
    (help,) = found.help
    assert help == "a program has one width: --activation-bits 16 is for all its layers; --keep fc1=host computes it in float32"


def residual(model: Model, x: str, name: str) -> str:
    """x + layer_norm(x) @ w + b: a block with a sum past it."""
    ones = model.constant(f"{name}.ones", np.ones(4))
    h = model.op("add", product(model, model.op("layer_norm", x, ones, ones), name), model.constant(f"{name}.b", np.ones(4)))
    return model.op("add", x, h, name=f"{name}.sum")


def test_sums_that_only_the_host_reads_stay_in_float32_when_asked_for() -> None:
    model = Model()
    x = model.op("add", product(model, model.input("x", 2, 3), "first"), model.constant("rows", np.ones((2, 4))), name="x0")
    x = residual(model, residual(model, x, "one"), "two")
    model.op("relu", x, name="unread")
    ones = model.constant("ones", np.ones(4))
    y = product(model, model.op("layer_norm", x, ones, ones), "last")
    graph = model.build(model.op("add", y, model.op("relu", y), name="kept"))
    before, after = (
        {node.name for node in place(float_sums=asked).run(graph, context()) if node.on_device and not node.name.startswith("add")}
        for asked in (False, True)
    )
    assert before - after == {"x0", "one.sum", "two.sum"}
    assert after == before - {"x0", "one.sum", "two.sum"}
