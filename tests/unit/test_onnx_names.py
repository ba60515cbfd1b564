"""What stands in the source of an imported model: names of weights and of values, and no more than is meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tpucc.data.weights import bind_arrays
from tpucc.diagnostics import Source
from tpucc.interop.onnx.reading import Imported
from tpucc.interop.onnx.reading.files.decoding import decoded
from tpucc.ir import Graph
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.ops.evaluate import evaluate
from tpucc.source.scope import head

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
FOLDED = "pkg.onnxscript.optimizer.folded_from"


def drawn(name: str, *shape: int) -> Any:
    values = np.random.default_rng(list(name.encode())).normal(0, 0.5, shape)
    return array(values.astype(np.float32), name)


def whole(name: str, *numbers: int) -> Any:
    return array(np.array(numbers, np.int64), name)


def imported(model: Any, tmp_path: Path, **params: int) -> Any:
    onnx.save(model, tmp_path / "net.onnx")
    return tpucc.import_onnx(tmp_path / "net.onnx", params=params)


def folded(model: Any, name: str, sources: str) -> Any:
    """The model, which says of a constant of what it was computed."""
    value = model.graph.value_info.add()
    value.name = name
    entry = value.metadata_props.add()
    entry.key, entry.value = FOLDED, sources
    return model


def cell(op: str, x: str, *states: str, name: str = "cell", results: int = 1, **attributes: Any) -> tuple[Any, list[Any]]:
    """A recurrent layer of two features and three units, and its constants."""
    gates, directions = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * 3, 2 if attributes else 1
    constants = [drawn(f"val_{name}_w", directions, gates, 2), drawn(f"val_{name}_r", directions, gates, 3)]
    names = [constant.name for constant in constants]
    outputs = [f"{name}_{index}" for index in range(results)]
    return node(op, [x, *names, "", "", *states], outputs, name=name, hidden_size=3, **attributes), constants


def computed_as_in_the_file(model: Any) -> Graph:
    """The graph of a model, whose float32 values on random inputs are those of the file."""
    made = Imported("m", "m.onnx", decoded(model.SerializeToString(), None), "nchw").built({})
    draw = np.random.default_rng(0)
    given = {value.name: draw.normal(size=value.type.shape).astype(np.float32) for value in made.graph.inputs}
    found = evaluate(bind_arrays(made.graph, made.weights), given)
    wanted = reference.ReferenceEvaluator(model).run(None, given)
    for output, expected in zip(made.graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(found[output.node], expected, atol=1e-6)
    return made.graph


# keys of weights


@each(["LSTM", "GRU", "RNN"])
def test_a_state_that_is_expanded_to_the_batch_keeps_its_name(op: str, tmp_path: Path) -> None:
    """As of `self.h0.expand(1, batch, 3)`, by the names that PyTorch's exporters give to results."""
    states = ["h0", "c0"][: 2 if op == "LSTM" else 1]
    nodes = [node("Shape", ["x"], ["s"], start=1, end=2), node("Concat", ["val_1", "s", "val_3"], ["size"], axis=0)]
    nodes += [node("Expand", [state, "size"], [f"/Expand_{state}_output_0"]) for state in states]
    layer, constants = cell(op, "x", *(f"/Expand_{state}_output_0" for state in states))
    constants += [whole("val_1", 1), whole("val_3", 3), *(drawn(state, 1, 1, 3) for state in states)]
    made = imported(model_of([*nodes, layer], constants, {"x": (2, "batch", 2)}, ("cell_0",)), tmp_path, batch=4)
    assert {*states} < made.weights.keys()
    assert len(made.weights) == 2 + len(states)
    assert all(made.weights[state].shape == (1, 1, 3) for state in states)


def test_a_token_and_places_keep_their_names(tmp_path: Path) -> None:
    """A class token is expanded to the batch; of a table of places as many rows are taken as there are."""
    nodes = [
        node("Shape", ["x"], ["s"], start=0, end=1),
        node("Concat", ["s", "one", "width"], ["size"], axis=0),
        node("Expand", ["cls_token", "size"], ["expand"]),
        node("Concat", ["expand", "x"], ["all"], axis=1),
        node("Slice", ["places", "zero", "three", "one"], ["slice_1"]),
        node("Add", ["all", "slice_1"], ["y"]),
    ]
    numbers = [whole("zero", 0), whole("one", 1), whole("three", 3), whole("width", 4)]
    constants = [drawn("cls_token", 1, 1, 4), drawn("places", 1, 6, 4), *numbers]
    made = imported(model_of(nodes, constants, {"x": ("batch", 2, 4)}), tmp_path)
    assert {key: made.weights[key].shape for key in made.weights} == {"cls_token": (1, 1, 4), "places": (3, 4)}


@each(
    [
        ("expand_1", "['c0', 'clone', 'val_3', 'expand', 'unsqueeze_2']", "c0"),
        ("val_8", "['proj.in_weight']", "proj.in_weight"),
        ("embedding_1", "['arange', 'places.weight', 'val_1']", "places.weight"),
        ("val_9", "['head.weight', 'head.bias', 'val_2']", "mat_mul_7.weight"),
        ("val_9", "['mul_2', 'exp', 'val_2']", "mat_mul_7.weight"),
        ("val_9", "['cls_token', 'm.lifted_tensor_0']", "cls_token"),
        ("val_9", "", "mat_mul_7.weight"),
    ]
)
def test_a_folded_constant_is_called_after_its_parameter(name: str, sources: str, wanted: str, tmp_path: Path) -> None:
    """PyTorch's export calls what it has computed after the operation, and says of what it was computed."""
    model = model_of([node("MatMul", ["x", name], ["y"], name="node_MatMul_7")], [drawn(name, 4, 5)])
    assert set(imported(folded(model, name, sources), tmp_path).weights) == {wanted}


def test_states_without_a_name_are_called_after_their_layer(tmp_path: Path) -> None:
    layer, constants = cell("LSTM", "x", "val_1", "val_2", name="/enc/LSTM")
    made = imported(
        model_of([layer], [*constants, drawn("val_1", 1, 2, 3), drawn("val_2", 1, 2, 3)], {"x": (2, 2, 2)}, ("/enc/LSTM_0",)), tmp_path
    )
    assert set(made.weights) == {"enc.kernel", "enc.recurrent", "enc.h0", "enc.c0"}


def test_a_part_has_a_number_where_the_whole_is_read_too(tmp_path: Path) -> None:
    """Whichever comes first."""
    nodes = [
        node("Slice", ["scale", "zero", "one", "zero"], ["first"]),
        node("Mul", ["x", "first"], ["a"]),
        node("Mul", ["a", "scale"], ["y"]),
    ]
    made = imported(model_of(nodes, [drawn("scale", 2, 4), whole("zero", 0), whole("one", 1)]), tmp_path)
    assert {key: made.weights[key].shape for key in made.weights} == {"scale": (2, 4), "scale.1": (4,)}


def test_a_file_may_say_anything_of_its_constants(tmp_path: Path) -> None:
    for sources in ("['x']", "['y']", "['val_3', 'val_3']", "['']", "['a', 'a']"):
        model = model_of([node("Add", ["x", "val_3"], ["y"], name="n")], [drawn("val_3", 2, 4)])
        assert len(imported(folded(model, "val_3", sources), tmp_path).weights) == 1


def test_a_constant_with_only_the_shape_of_a_value_is_none_of_its_forms(tmp_path: Path) -> None:
    """The value is an input, as that of `torch.ones_like(x)`, and no parameter."""
    model = model_of([node("Mul", ["x", "ones_like"], ["y"])], [array(np.ones((2, 4), np.float32), "ones_like")])
    made = imported(folded(model, "ones_like", "['a_0', 'val_1']"), tmp_path)
    assert not made.weights
    assert "*" not in made.source.partition("model")[2]


# terms and factors that change nothing


def steps(product: str, state: Any) -> Any:
    """Two steps of a plain LSTM without biases, whose first states are zeros: f and i, then g, are the sum of two products."""
    nodes = [node("Split", ["x"], ["x0", "x1"], axis=0, num_outputs=2), state]
    for index, (h, c) in enumerate((("zeros", "zeros"), ("h0", "c0"))):
        name = f"{{}}{index}".format
        nodes += [
            node("MatMul", [name("x"), "w"], [name("xw")]),
            node(product, [h, "r"], [name("hr")]),
            node("Add", [name("xw"), name("hr")], [name("z")]),
            node("Sigmoid", [name("z")], [name("f")]),
            node("Mul", [name("f"), c], [name("fc")]),
            node("Add", [name("fc"), name("z")], [name("c")]),
            node("Tanh", [name("c")], [name("t")]),
            node("Mul", [name("t"), "one"], [name("h")]),
        ]
    constants = [drawn("w", 3, 4), drawn("r", 4, 4), array(np.array(1, np.float32), "one")]
    return model_of(nodes, constants, {"x": (4, 3)}, ("h1",))


def test_a_first_state_of_zeros_whose_product_was_computed(tmp_path: Path) -> None:
    state = node("ConstantOfShape", ["shape"], ["zeros"])
    model = steps("MatMul", state)
    model.graph.initializer.append(whole("shape", 2, 4))
    computed_as_in_the_file(model)
    source = imported(model, tmp_path).source
    graph = elaborate(parse(Source("", source)), Source("", source)).graph
    given = {"x": np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)}
    found = evaluate(bind_arrays(graph, imported(model, tmp_path).weights), given)
    (wanted,) = reference.ReferenceEvaluator(model).run(None, given)
    np.testing.assert_allclose(found[graph.outputs[0].node], wanted, atol=1e-6)


def test_a_first_state_of_zeros_stays_where_its_product_is_there() -> None:
    model = steps("Gemm", node("ConstantOfShape", ["shape"], ["zeros"]))
    model.graph.initializer.append(whole("shape", 2, 4))
    ops = [made.op for made in computed_as_in_the_file(model)]
    assert (ops.count("matmul"), ops.count("mul")) == (4, 2)
    assert "constant" not in ops


def test_what_an_exporter_has_computed_of_a_first_state_is_the_bias(tmp_path: Path) -> None:
    """PyTorch's has folded `zeros @ w + b`, which has the bias in each row; and zeros have a name as of a weight."""
    bias = drawn("cell.bias", 4)
    rows = array(np.tile(onnx.numpy_helper.to_array(bias), (2, 1)), "linear")
    nodes = [
        node("Add", ["x", "linear"], ["a"]),
        node("Mul", ["a", "zeros_1"], ["b"]),
        node("Add", ["a", "b"], ["c"]),
        node("Gemm", ["c", "cell.weight", "cell.bias"], ["y"]),
    ]
    model = model_of(nodes, [bias, rows, array(np.zeros((2, 4), np.float32), "zeros_1"), drawn("cell.weight", 4, 4)])
    folded(model, "linear", "['cell.bias', 'cell.weight', 'val_2', 'zeros']")
    folded(model, "zeros_1", "['val_2', 'val_3']")
    computed_as_in_the_file(model)
    made = imported(model, tmp_path)
    assert set(made.weights) == {"cell.bias", "cell.weight"}


# parts of what a recurrence has computed


def both_ways(op: str, what: str) -> Any:
    """A layer in both directions over four steps, as PyTorch writes it with the batch first, and a part of its results as the output."""
    layer, constants = cell(op, "t", results=2, direction="bidirectional")
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), layer]
    if what == "the last state":
        nodes.append(node("Gather", ["cell_1", "last"], ["y"], axis=0))
    else:
        nodes += [
            node("Transpose", ["cell_0"], ["u"], perm=[0, 2, 1, 3]),
            node("Reshape", ["u", "flat"], ["v"]),
            node("Transpose", ["v"], ["a"], perm=[1, 0, 2]),
        ]
    if what == "a step forwards":
        nodes += [node("Gather", ["a", "one"], ["s"], axis=1), node("Slice", ["s", "zero", "three", "axis"], ["y"])]
    if what == "all steps forwards":
        nodes += [node("Slice", ["a", "zero", "three", "two"], ["y"])]
    if what == "the last step":
        nodes += [node("Gather", ["a", "last"], ["s"], axis=1), node("MatMul", ["s", "w"], ["y"])]
    numbers = {"last": -1, "one": 1}
    constants += [array(np.array(number), name) for name, number in numbers.items()]
    constants += [whole("flat", 4, -1, 6), whole("zero", 0), whole("three", 3), whole("axis", 1), whole("two", 2), drawn("w", 6, 2)]
    return model_of(nodes, constants, {"x": (2, 4, 2)})


STEPS = {"the last state": 4, "a step forwards": 2, "all steps forwards": 4, "the last step": 5}
"""How many steps of both directions are used, by what of the layer's results is."""


@each([(op, what, count) for op in ("LSTM", "GRU", "RNN") for what, count in STEPS.items()])
def test_of_both_directions_there_is_what_is_used(op: str, what: str, count: int) -> None:
    graph = computed_as_in_the_file(both_ways(op, what))
    ops = [made.op for made in graph]
    assert ops.count("tanh") == count * {"LSTM": 2, "GRU": 1, "RNN": 1}[op]
    assert ops.count("reshape") == (count if what == "all steps forwards" else 0)
    assert ops.count("concat") == (what in ("all steps forwards", "the last step"))


def test_a_final_state_is_read_without_the_axis_of_directions() -> None:
    layer, constants = cell("GRU", "x", results=2)
    last = [node("Gather", ["cell_1", "last"], ["a"], axis=0), node("Slice", ["cell_1", "zero", "one", "zero"], ["b"])]
    numbers = [array(np.array(-1), "last"), whole("zero", 0), whole("one", 1)]
    model = model_of([layer, *last], [*constants, *numbers], {"x": (3, 2, 2)}, ("a", "b"))
    graph = computed_as_in_the_file(model)
    assert [made.op for made in graph].count("reshape") == 1
    assert graph[graph.outputs[0].node].op == "add"


# names of values


def lstm_by_hand() -> Any:
    """Five steps of a cell, in the order in which PyTorch has its operators, with its names for nodes."""
    states = ["val_1", "val_2"]
    nodes = [node("Constant", [], [name], value=array(np.zeros((2, 4), np.float32), name)) for name in states]
    nodes += [node("Gather", ["x", f"at{index}"], [f"x{index}"], axis=1) for index in range(5)]
    for index in range(5):
        name = f"{{}}{index}".format
        nodes += [
            node("Gemm", [states[0], "cell.r", "cell.b"], [name("p")]),
            node("Gemm", [name("x"), "cell.w", "cell.d"], [name("q")]),
            node("Add", [name("p"), name("q")], [name("z")]),
            node("Split", [name("z")], [name("zi"), name("zf"), name("zg"), name("zo")], axis=1, num_outputs=4),
            *(node("Sigmoid", [name(f"z{gate}")], [name(gate)]) for gate in "ifo"),
            node("Tanh", [name("zg")], [name("g")]),
            node("Mul", [name("f"), states[1]], [name("fc")]),
            node("Mul", [name("i"), name("g")], [name("ig")]),
            node("Add", [name("fc"), name("ig")], [name("c")]),
            node("Tanh", [name("c")], [name("t")]),
            node("Mul", [name("o"), name("t")], [name("h")]),
        ]
        states = [name("h"), name("c")]
    nodes.append(node("Gemm", ["h4", "head.w", "head.b"], ["y"]))
    for index, made in enumerate(nodes):
        made.name = f"node_{made.op_type}_{index}"
    times = [array(np.array(index), f"at{index}") for index in range(5)]
    shapes = {"cell.w": (3, 16), "cell.r": (4, 16), "cell.b": (16,), "cell.d": (16,), "head.w": (4, 2), "head.b": (2,)}
    return model_of(nodes, [*(drawn(name, *shape) for name, shape in shapes.items()), *times], {"x": (2, 5, 3)})


def test_the_steps_of_a_cell_are_a_loop(tmp_path: Path) -> None:
    source = imported(lstm_by_hand(), tmp_path).source
    assert "def cell_step(h, x, h2):" in source
    assert "    h = zeros([2, 4])\n    h2 = zeros([2, 4])\n    for t in range(5):\n        h, h2 = cell_step(h, x[:, t], h2)\n" in source


@each(["LSTM", "GRU", "RNN"])
def test_first_states_have_the_names_of_the_states(op: str, tmp_path: Path) -> None:
    """So that all steps are rounds of one loop."""
    states = ["h0", "c0"][: 2 if op == "LSTM" else 1]
    layer, constants = cell(op, "t", *states, name="net")
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), layer]
    shapes = {"x": (2, 8, 2), **dict.fromkeys(states, (1, 2, 3))}
    source = imported(model_of(nodes, constants, shapes, ("net_0",)), tmp_path).source
    assert re.search(rf"def net_step\((x, )?{', '.join(state[0] for state in states)}(, x)?\):", source)
    names = "h, c" if op == "LSTM" else r"h\d?"
    assert re.search(rf"    for t in range\([78]\):\n        {names} = net_step\(.*x\[:, t( \+ 1)?\].*\)\n", source)


def test_blocks_with_the_same_weights_are_calls_of_one_function(tmp_path: Path) -> None:
    nodes = []
    for index in range(3):
        name = f"{{}}{index}".format
        nodes += [node("Gemm", ["x" if not index else f"y{index - 1}", "w", "b"], [name("g")]), node("Sigmoid", [name("g")], [name("s")])]
        nodes += [node("Mul", [name("s"), name("g")], [name("m")]), node("Mul", [name("m"), "mask"], [name("y")])]
    model = model_of(nodes, [drawn("w", 4, 4), drawn("b", 4)], {"x": (2, 4), "mask": (2, 4)}, ("y2",))
    source = imported(model, tmp_path).source
    assert "def dense_silu_mul(h, mask):" in source
    assert source.count("dense_silu_mul(") == 4, "the function and its calls"


# numbers behind names


def test_a_function_is_called_after_its_operators(tmp_path: Path) -> None:
    nodes = []
    for index in range(6):
        before = "x" if not index else f"a{index}"
        nodes += [
            node("QuantizeLinear", [before, "s", "z"], [f"q{index}"]),
            node("DequantizeLinear", [f"q{index}", "s", "z"], [f"d{index}"]),
        ]
        nodes.append(node("Add", [f"d{index}", f"b.{index}.bias"], [f"a{index + 1}"]))
    grid = [array(np.array(0.02, np.float32), "s"), array(np.array(0, np.int8), "z")]
    model = model_of(nodes, [*(drawn(f"b.{index}.bias", 4) for index in range(6)), *grid], outputs=("a6",))
    assert re.findall(r"^def (\w+)\(", imported(model, tmp_path).source, re.M) == ["quantized_add"]


def test_the_number_of_a_layer_belongs_to_its_name() -> None:
    assert head(("net.cell_1.weight", "net.dense_1.weight")) == (("net.cell_1", "net.dense_1"), ".weight")
    assert head(("net.a_0", "net.b_0")) == (("net.a_0", "net.b_0"), "")


# tied weights


def ids(model: Any) -> Any:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


@each(
    {
        "the same constant": (node("Gemm", ["h", "embedding.weight"], ["y"], transB=1), "", ""),
        "one that is transposed": (node("MatMul", ["h", "onnx::MatMul_12"], ["y"]), "onnx::MatMul_12", ""),
        "one that was folded": (node("Gemm", ["h", "t"], ["y"]), "t", "['embedding.weight']"),
    }
)
def test_tied_weights_are_one(product: Any, other: str, sources: str, tmp_path: Path) -> None:
    table = drawn("embedding.weight", 9, 4)
    constants = [table] + [array(np.ascontiguousarray(onnx.numpy_helper.to_array(table).T), other)] * bool(other)
    nodes = [node("Gather", ["embedding.weight", "x"], ["e"]), node("Tanh", ["e"], ["h"]), product]
    model = ids(model_of(nodes, constants, {"x": (3,)}))
    made = imported(folded(model, other, sources) if sources else model, tmp_path)
    assert set(made.weights) == {"embedding.weight"}
    assert "transpose(table, (1, 0))" in made.source


def test_equal_weights_with_names_of_their_own_are_two(tmp_path: Path) -> None:
    table = drawn("embedding.weight", 9, 4)
    head = array(np.ascontiguousarray(onnx.numpy_helper.to_array(table).T), "head.weight")
    nodes = [node("Gather", ["embedding.weight", "x"], ["e"]), node("Tanh", ["e"], ["h"]), node("MatMul", ["h", "head.weight"], ["y"])]
    assert set(imported(ids(model_of(nodes, [table, head], {"x": (3,)})), tmp_path).weights) == {"embedding.weight", "head.weight"}
