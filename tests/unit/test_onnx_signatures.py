"""Nodes of ONNX that no sound file has: other operands, attributes or shapes than their operators have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tests.unit.test_onnx_malformed import of_node, of_nodes, refused
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.own_keys import Called
from tpucc.interop.onnx.reading.building.values import Static
from tpucc.interop.onnx.reading.files.model import OPSETS, OPTIMISED, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Damaged
from tpucc.interop.onnx.reading.operators.rows import CONSTANT, ROWS, Number, Positive
from tpucc.interop.onnx.reading.text import grouped

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


@each(
    [
        (helper.make_node("Identity", [""], ["y"]), {}, "onnx.checker says: Node"),
        (helper.make_node("Split", ["x"], ["z", "w", "y"], axis=1, num_outputs=2), {}, "num_outputs is 2, and it has 3 results"),
        (helper.make_node("Split", ["x"], ["y", "z"], num_outputs=2**40), {}, "num_outputs is 1,099,511,627,776, and it has 2 results"),
        (helper.make_node("Split", ["c", "s"], ["z", "w", "y"]), {"c": np.ones(4), "s": [2, 2]}, "it has 2 results, and the node names 3"),
        (
            helper.make_node("Pad", ["x", "s"], ["y"], mode="VALID"),
            {"s": [0, 0, 1, 1]},
            "mode is 'VALID', and ONNX has constant, edge, reflect or wrap",
        ),
        (helper.make_node("Pad", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Expand", ["x", "s"], ["y"]), {"s": [3, 4]}, "[2, 4] doesn't broadcast to [3, 4]"),
        (helper.make_node("DepthToSpace", ["x"], ["y"]), {}, "onnx.checker says: Required attribute"),
        (helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=0), {}, "blocksize is 0, and it is at least 1"),
        (helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2), {}, "blocks of the size 2 in an image [2, 4]"),
        (
            helper.make_node("ConvTranspose", ["i", "w"], ["y"], group=2**30),
            {"i": np.ones((1, 4, 3)), "w": np.ones((4, 1, 1))},
            "weights [4, 1, 1] in 1,073,741,824 groups, of an image [1, 4, 3] with 4 channels",
        ),
        (helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"]), {"s": np.ones(4)}, "onnx.checker says: Required attribute"),
        (helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=0), {"s": np.ones(4)}, "num_groups is 0, and"),
        (
            helper.make_node("RNN", ["i", "w", "w"], ["y"], direction="up"),
            {"i": np.ones((2, 1, 2)), "w": np.ones((1, 2, 2))},
            "direction is 'up', and ONNX has bidirectional, forward or reverse",
        ),
        (
            helper.make_node("Slice", ["x", "s", "e"], ["y"], note="long " * 20),
            {"s": [0], "e": [1, 2]},
            "ONNX has no attribute note of it",
        ),
        (helper.make_node("Slice", ["x", "s", "e"], ["y"]), {"s": [0], "e": [1, 2]}, "are lists of different lengths"),
        (helper.make_node("Add", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Where", ["x", "", "x"], ["y"]), {}, "onnx.checker says: Node"),
        (helper.make_node("Clip", ["x", "", "", "x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Relu", ["x"], ["y", "z"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Softmax", ["x"], ["y"], axis="a"), {}, "onnx.checker says: Mismatched attribute type"),
        (helper.make_node("LeakyRelu", ["x"], ["y"], alpha=1), {}, "onnx.checker says: Mismatched attribute type"),
        (helper.make_node("Softmax", ["x"], ["y"], axes=1), {}, "no attribute axes of it\nhelp: did you mean axis?"),
        (helper.make_node("Cast", ["x"], ["y"], to=99), {}, "it makes elements of the unknown type 99"),
        (helper.make_node("", ["x"], ["y"]), {}, "y has no operator"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": np.ones((5, 3))}, "a product of [2, 4] and [5, 3]"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": 1.0}, "a product of [2, 4] and []: one of them is a single number"),
        (helper.make_node("MatMul", ["i", "w"], ["y"]), {"i": np.ones((2, 3, 4)), "w": np.ones((3, 4, 5))}, "a product of [2, 3, 4]"),
        (helper.make_node("Gemm", ["x", "w", "b"], ["y"]), {"w": np.ones((4, 3)), "b": np.ones(2)}, "what is added has the shape [2]"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), {"w": np.ones((4, 3))}, "a product of [2, 4] and [3, 4], where"),
        (helper.make_node("Add", ["x", "w"], ["y"]), {"w": np.ones(3)}, "shapes that don't broadcast: [2, 4], [3]"),
        (helper.make_node("PRelu", ["x", "w"], ["y"]), {"w": np.ones((3, 1, 4))}, "the slope has the shape [3, 1, 4]"),
        (helper.make_node("Concat", ["x", "w"], ["y"], axis=0), {"w": np.ones((2, 3))}, "shapes that differ beside axis 0: [2, 4], [2, 3]"),
        (helper.make_node("Squeeze", ["x", "a"], ["y"]), {"a": [1]}, "the axes [1] of [2, 4] are dropped, and their sizes aren't 1"),
        (helper.make_node("Unsqueeze", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (
            helper.make_node("Conv", ["i", "w", "b"], ["y"]),
            {"i": np.ones((1, 3, 4, 4)), "w": np.ones((2, 3, 2, 2)), "b": np.ones(3)},
            "the bias has the shape [3], and the result 2 channels",
        ),
        (helper.make_node("GatherND", ["x", "i"], ["y"]), {"i": [[0, 9]]}, "the place [0, 9] of axes of the sizes [2, 4]"),
        (
            helper.make_node("GatherND", ["c", "i"], ["y"]),
            {"c": np.ones((2, 4)), "i": [[-3, 0]]},
            "the place [-3, 0] of axes of the sizes [2, 4]",
        ),
        (helper.make_node("GatherND", ["x", "i"], ["y"]), {"i": [[0, 0, 0]]}, "lists of 3 places in 2 axes"),
        (helper.make_node("Slice", ["x", "i"], ["y"]), {"i": [0]}, "onnx.checker says: Node with schema"),
        (helper.make_node("Slice", ["x", "i", "i"], ["y"]), {"i": [0, 0, 0]}, "it cuts 3 axes of [2, 4]"),
        (helper.make_node("Split", ["x"], ["y", "z"]), {}, "the sizes of its parts, or num_outputs"),
        (helper.make_node("Trilu", ["c"], ["y"]), {"c": np.ones(3)}, "a triangle of [3], where ONNX has matrices"),
        (helper.make_node("Resize", ["x", "", "s", "n"], ["y"]), {"s": np.float32([2, 2]), "n": [4, 8]}, "it has scales and sizes"),
        (helper.make_node("Resize", ["x", "", "", "n"], ["y"]), {"n": [4, 8, 1]}, "the sizes are [4, 8, 1], of 2 axes"),
        (helper.make_node("Reshape", ["x", "s"], ["y"]), {"s": [3, -1]}, "[2, 4] in the shape [3, -1]"),
        (helper.make_node("Gather", ["x", "s"], ["y"]), {"s": 1.0}, "operand 2 is float32, and ONNX has int32 or int64 there"),
        (helper.make_node("Clip", ["x", "w"], ["y"]), {"w": np.ones(2)}, "the least value has the shape [2]"),
        (helper.make_node("LayerNormalization", ["x", "w"], ["y"]), {"w": np.ones(3)}, "operand 2 has the shape [3]"),
        (
            helper.make_node("BatchNormalization", ["x", *"vvv", "w"], ["y"]),
            {"v": np.ones(4), "w": np.ones(3)},
            "operand 5 has the shape [3]",
        ),
        (helper.make_node("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik"), {"w": np.ones((5, 3))}, "the axes j of the equation"),
        (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij->ij"), {}, "has 1 operand, and the node 2"),
        (helper.make_node("Einsum", ["x"], ["y"], equation="ij->iz"), {}, "letters in its result that stand in no operand"),
        (helper.make_node("QuantizeLinear", ["x", "w"], ["y"]), {"w": np.ones(3)}, "scales of the shape [3] along axis 1 of [2, 4]"),
        (helper.make_node("LpNormalization", ["x"], ["y"], p=3), {}, "p is 3, and ONNX has 1 or 2"),
        (helper.make_node("LRN", ["i"], ["y"], size=2), {"i": np.ones((1, 4, 3, 3))}, "size is 2, and ONNX has an odd number there"),
        (helper.make_node("Constant", [], ["y"], value_int=2, value_float=1.0), {}, "it has value_float and value_int, and ONNX has one"),
        (helper.make_node("Constant", [], ["y"]), {}, "it has no value, and ONNX has one value"),
        (
            helper.make_node("GRU", ["i", "w", "w"], ["y"], activations=["sigmoid", "Sigmoids"]),
            {"i": np.ones((2, 1, 2)), "w": np.ones((1, 6, 2))},
            "activations has 'Sigmoids', and ONNX has Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, Softplus, Softsign, "
            "Tanh or ThresholdedRelu\nhelp: did you mean Sigmoid?",
        ),
        (
            helper.make_node("LSTM", ["i", "w", "w"], ["y"], activations=["Sigmoid"] * 2),
            {"i": np.ones((2, 1, 2)), "w": np.ones((1, 8, 2))},
            "it has 2 functions, and 1 direction of it 3",
        ),
    ]
)
def test_a_node_that_no_sound_file_has(node: Any, arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    codes, text, status = refused(of_node(node, arrays), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert says in text


READING = {
    "Gemm": ["x", "matrix"],
    "OneHot": ["list", "count", "two"],
    "Pad": ["x", "pads", "value", "list"],
    "Resize": ["x", "", "scales", "list"],
    "Slice": ["x", "list", "list", "list", "list"],
    "Upsample": ["x", "scales"],
}
"""Operands of operators; of others they are a value and a list."""
LISTED = [
    (op, index, operand.kind != Number)
    for op, row in ROWS.items()
    for index, operand in enumerate(row.operands)
    if row.build is not None and operand.kind in CONSTANT and operand.kind not in (np.ndarray, Static) and "." not in op
]
"""Operands that are lists, and those that are numbers, of the operators whose other operands are simple."""


@each([case for case in LISTED if case[0] not in ("GRU", "LSTM", "RNN", "GatherElements", "GatherND", "Scatter", "ScatterElements")])
def test_a_list_or_a_number_with_other_axes(op: str, index: int, is_list: bool, tmp_path: Path) -> None:
    """ONNX Runtime refuses most of them, too."""
    arrays = {"count": 1, "list": [1], "pads": [0, 0], "scales": np.float32([1, 1]), "two": np.float32([0, 1]), "value": np.float32(1)}
    inputs = READING.get(op, ["x", "list"])
    if ROWS[op].operands[index].kind not in CONSTANT[1:4]:
        return  # an array of any shape
    for shape in ((), (1, 2), (2, 1)) if is_list else ((1, 1), (2,)):
        if op == "Unsqueeze" and not shape:
            continue  # which ONNX Runtime takes
        operands = [*inputs[:index], "wrong", *inputs[index + 1 :]]
        given = {name: array for name, array in arrays.items() if name in operands}
        given["wrong"] = np.ones(shape, np.asarray(arrays[inputs[index]]).dtype)
        node = helper.make_node(op, operands, ["y"])
        codes, text, status = refused(of_node(node, given, 9 if op == "Upsample" else 21), tmp_path)
        assert (codes, status) == (["E1001"], 3)
        wanted = "have the shape {}, and ONNX has a list there" if is_list else "has the shape {}, and ONNX has one number there"
        assert wanted.format([*shape]) in text


NUMBERS = [(op, name, row.attributes[name].kind) for op, row in ROWS.items() for name in row.attributes]


@each([(op, name, kind) for op, name, kind in NUMBERS if kind in (bool, Positive)])
def test_a_number_that_an_attribute_can_not_be(op: str, name: str, kind: Any) -> None:
    """ONNX Runtime reads flags of other numbers as it likes: a keepdims of 7 as 0."""
    says = "and ONNX has 0 or 1" if kind is bool else "and it is at least 1"
    x = Static(np.ones((2, 4), np.float32), "x")
    network = Network("m", {}, Called.of(OnnxGraph("m", (), {}, (), ())))
    for number in (-1, 7, 2**40) if kind is bool else (0, -(2**40)):
        node = OnnxNode(op, ("x",), ("y",), {name: number})
        others = [other for other, found in ROWS[op].attributes.items() if found.default is type(found.default) and other != name]
        assert not others
        with pytest.raises(Damaged, match=f"{name} is .*{says}|it has no "):
            ROWS[op].require_kinds(Call(network, node, [x], 21, frozenset()))


@each(
    [
        ("Gather", ["x", "yes"], {}, "operand 2 is bool, and ONNX has int32 or int64 there"),
        ("GatherND", ["x", "row"], {}, "operand 2 is float32, and ONNX has int64 there"),
        ("Unsqueeze", ["x", "one"], {}, "operand 2 is float32, and ONNX has int64 there"),
        ("Squeeze", ["x", "one"], {}, "operand 2 is float32, and ONNX has int64 there"),
        ("ReduceSum", ["x", "one"], {}, "operand 2 is float32, and ONNX has int64 there"),
        ("Trilu", ["x", "one"], {}, "operand 2 is float32, and ONNX has int64 there"),
        ("CumSum", ["x", "one"], {}, "operand 2 is float32, and ONNX has int32 or int64 there"),
        ("Range", ["one", "four", "one"], {}, "operands 1 and 2 are float32 and int64, and ONNX has one type for both"),
        ("And", ["yes", "x"], {}, "operand 2 is float32, and ONNX has bool there"),
        ("Not", ["x"], {}, "operand 1 is float32, and ONNX has bool there"),
        ("Where", ["x", "x", "x"], {}, "operand 1 is float32, and ONNX has bool there"),
        ("Where", ["yes", "x", "four"], {}, "operands 2 and 3 are float32 and int64, and ONNX has one type for both"),
        ("Concat", ["x", "x", "four"], {"axis": 0}, "operands 1 and 3 are float32 and int64"),
        ("Relu", ["yes"], {}, "operand 1 is bool, and ONNX has float16, float32"),
        ("Add", ["yes", "yes"], {}, "operand 1 is bool, and ONNX has floats or integers there"),
        ("Sigmoid", ["four"], {}, "operand 1 is int64, and ONNX has floats there"),
        ("DequantizeLinear", ["x", "one"], {}, "operand 1 is float32, and ONNX has"),
        ("DequantizeLinear", ["four", "one"], {}, "operand 1 is int64, and ONNX has"),
        ("DequantizeLinear", ["i8", "four"], {}, "operand 2 is int64, and ONNX has"),
        ("QuantizeLinear", ["x", "one", "one"], {}, "operand 3 is float32, and ONNX has"),
        ("QuantizeLinear", ["i8", "one", "i8"], {}, "operand 1 is int8, and ONNX has"),
        ("QuantizeLinear", ["x", "four", "i8"], {}, "operand 2 is int64, and ONNX has"),
        ("QuantizeLinear", ["x", "one", "i32"], {}, "operand 3 is int32, and ONNX has"),
        ("QuantizeLinear", ["x", "one", "z8"], {"output_dtype": 2}, "output_dtype is uint8, and the zero point is int8"),
        ("MatMulInteger", ["i8", "i32"], {}, "operand 2 is int32, and ONNX has int8 or uint8 there"),
        ("MatMulInteger", ["i16", "i8"], {}, "operand 1 is int16, and ONNX has int8 or uint8 there"),
        ("ConvInteger", ["x", "i8"], {}, "operand 1 is float32, and ONNX has int8 or uint8 there"),
        ("ConvInteger", ["i8", "i8", "u8"], {}, "operands 1 and 3 are int8 and uint8"),
        ("QLinearMatMul", ["i8", "one", "i8", "i16", "one", "i16", "one", "i8"], {}, "operand 4 is int16, and ONNX has int8 or uint8"),
        ("QLinearConv", ["i8", "one", "u8", "i8", "one", "i8", "one", "i8"], {}, "operands 1 and 3 are int8 and uint8"),
        ("QLinearConv", [*["i8", "one"] * 3, "one", "i8"], {}, "operand 4 is float32, and ONNX has int8 or uint8 there"),
        ("QLinearConv", [*["i8", "one", "i8"] * 2, "one", "i8", "i8"], {}, "operand 9 is int8, and ONNX has int32 there"),
    ]
)
def test_types_that_no_sound_file_has(op: str, operands: list[str], attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    arrays = {"yes": np.array([True]), "row": np.ones((1, 2)), "one": np.array(1.0), "four": np.array(4)}
    arrays |= {"i8": np.ones((1, 1, 1, 1), np.int8), "u8": np.ones((), np.uint8), "i16": np.int16(1), "i32": np.int32(1), "z8": np.int8(1)}
    codes, text, status = refused(of_node(helper.make_node(op, operands, ["y"], **attributes), arrays), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({op}): {says}" in text


@each(
    [
        ("QLinearMul", ["b", "s", "b"], {}, "operand 4 is missing"),
        ("QLinearSigmoid", ["b", "b", "b", "s", "b"], {}, "the scale is int8, and it is a float"),
        ("QLinearSigmoid", ["b", "s", "b", "s", "b", "b"], {}, "it has 6 operands, and at most 5 are possible"),
        ("QLinearAveragePool", ["b", "s", "b", "s", "b"], {}, "an image [1, 1], where ONNX has [N, C, …]"),
        ("QGemm", [*["b", "s", "b"] * 2, "s", "s", "b"], {}, "quantised values are float32, and they are integers"),
        ("QGemm", [*["b", "s", "b"] * 2], {"alpha": 1}, "alpha is 1, and ONNX has a float there"),
        ("QGemm", [*["b", "s", "b"] * 2], {"alphas": 1.0}, "it has no attribute alphas"),
        ("DequantizeLinear", ["f", "s"], {}, "quantised values are float32, and they are integers"),
    ]
)
def test_nodes_that_onnx_runtime_does_not_have(op: str, operands: list[str], attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    """Its own operators, which the package onnx doesn't check."""
    arrays = {"s": np.float32(0.5), "b": np.ones((1, 1), np.int8), "f": np.ones((1, 1))}
    node = helper.make_node(op, operands, ["y"], domain=OPTIMISED, **attributes)
    codes, text, status = refused(of_node(node, arrays), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({OPTIMISED}.{op}): {says}" in text


def test_types_that_the_file_says_of_values(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Greater", ["x", "x"], ["more"]),
        helper.make_node("Where", ["more", "x", "x"], ["kept"]),
        helper.make_node("Frobnicate", ["kept"], ["unknown"]),
        helper.make_node("Cast", ["unknown"], ["y"], to=TensorProto.FLOAT),
    ]
    right = {"more": TensorProto.BOOL, "kept": TensorProto.FLOAT, "unknown": TensorProto.INT64, "y": TensorProto.FLOAT}
    for name, type_ in (("", 0), ("more", TensorProto.FLOAT), ("kept", TensorProto.INT64), ("y", TensorProto.BOOL)):
        model = model_of(nodes)
        said = {**right, **({name: type_} if name else {})}
        model.graph.value_info.extend(helper.make_tensor_value_info(each, said[each], None) for each in ("more", "kept", "unknown"))
        model.graph.output[0].type.tensor_type.elem_type = said["y"]
        codes, text, _ = refused(model.SerializeToString(), tmp_path)
        assert codes == ["E1001" if name else "E1006"]
        assert (f"the file says that {name} is " in text) == bool(name)


def test_types_inside_of_branches_and_loops(tmp_path: Path) -> None:
    value, yes = helper.make_tensor_value_info, helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    whole = helper.make_graph([helper.make_node("Shape", ["x"], ["s"])], "a", [], [value("s", TensorProto.INT64, None)])
    real = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [value("r", TensorProto.FLOAT, None)])
    wrong = helper.make_graph([helper.make_node("And", ["x", "x"], ["r"])], "c", [], [value("r", TensorProto.BOOL, None)])
    for then, other, says in (
        (whole, real, "y (If): its result 1 is int64 in one branch, and float32 in the other"),
        (wrong, whole, "r (And)"),
    ):
        node = helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
        assert says in refused(model_of([node], [yes]).SerializeToString(), tmp_path)[1]
    steps = [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Identity", ["x"], ["each"])]
    inputs = [value("step", TensorProto.INT64, []), value("going", TensorProto.BOOL, [])]
    body = helper.make_graph(steps, "d", inputs, [value("on", TensorProto.BOOL, []), value("each", TensorProto.FLOAT, None)])
    nodes = [helper.make_node("Loop", ["count", "yes"], ["all"], body=body), helper.make_node("Not", ["all"], ["y"])]
    count = helper.make_tensor("count", TensorProto.INT64, [], [2])
    assert "y (Not): operand 1 is float32" in refused(model_of(nodes, [yes, count]).SerializeToString(), tmp_path)[1]
    nodes[0].input[0] = "x"
    assert "all (Loop): operand 1 is float32, and ONNX has int64" in refused(model_of(nodes, [yes]).SerializeToString(), tmp_path)[1]


@each(
    [
        (helper.make_node("Frobnicate", ["x"], ["y"]), {}, "E1006: m.onnx: tpucc has nothing for the operator Frobnicate (1 node: y)"),
        (
            helper.make_node("BatchNorm", ["x"], ["y"]),
            {},
            "E1006: m.onnx: tpucc has nothing for the operator BatchNorm (1 node: y)\nhelp: did you mean",
        ),
        (helper.make_node("Pow", ["x", "a"], ["y"]), {"a": -1e9}, "E1007: m.onnx: Pow: the exponent -1e+09 (1 node: y)"),
        (
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            {"w": np.ones((4, 0))},
            "E1007: m.onnx: MatMul: the weight w has the shape [4, 0] (1 node",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]),
            {"s": 0.0, "z": np.int8(0)},
            "the scale s is 0, and the smallest one here",
        ),
    ]
)
def test_sound_nodes_that_have_no_counterpart(node: Any, arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    _, text, status = refused(of_node(node, arrays), tmp_path)
    assert status == 1
    assert says in text
    assert "did you mean" not in text or "did you mean" in says


def test_weights_of_a_scale_that_integers_have_not_are_read_all_the_same(tmp_path: Path) -> None:
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["real"]), helper.make_node("MatMul", ["x", "real"], ["y"])]
    integers = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    for scale in (0.0, -0.25):
        constants = [onnx.numpy_helper.from_array(integers, "w"), onnx.numpy_helper.from_array(np.float32(scale), "s")]
        (tmp_path / "m.onnx").write_bytes(model_of(nodes, constants).SerializeToString())
        found = tpucc.import_onnx(tmp_path / "m.onnx")
        assert np.array_equal(found.weights["w"], integers.astype(np.float32) * np.float32(scale))
        assert f"w, whose scale is {scale:g}, is quantised anew" in found.source
        found.compile()


def test_notes_that_differ_in_a_name_are_one() -> None:
    columns = [f"Columns of w{index} whose largest integer isn't 127 are quantised anew" for index in range(6)]
    scales = [f"{name}, whose scale is {scale}, is quantised anew" for name, scale in (("a", 0), ("b", 1), ("c", 1))]
    assert list(grouped([columns[0], "Something else", *columns[1:], *scales])) == [
        f"{columns[0]}. The same is true of w1, w2, w3 and 2 others.",
        "Something else.",
        f"{scales[0]}.",
        f"{scales[1]}. The same is true of c.",
    ]


def test_attributes_that_are_there_twice_or_nowhere(tmp_path: Path) -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=1)
    node.attribute.append(helper.make_attribute("axis", 0))
    codes, text, status = refused(of_node(node, {}), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert "y (Concat): it has the attribute axis twice" in text
    del node.attribute[1]
    node.attribute[0].ref_attr_name = "which"
    codes, text, status = refused(of_node(node, {}), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert "an attribute is that of a function, which, and" in text


@each(
    [
        ("Conv", {"strides": [0, 1]}, "strides is [0, 1], and each is at least 1"),
        ("Conv", {"dilations": [1, -1]}, "dilations is [1, -1], and each is at least 1"),
        ("Conv", {"pads": [1, 1, 1]}, "pads is [1, 1, 1], of 2 axes of pixels"),
        ("Conv", {"group": 2}, "weights [3, 3, 2, 2] in 2 groups, of an image [1, 3, 4, 4] with 3 channels"),
        ("Conv", {"auto_pad": "SAME"}, "auto_pad is 'SAME', and ONNX has NOTSET, SAME_LOWER, SAME_UPPER or VALID"),
        ("Conv", {"auto_pad": "VALID", "pads": [1] * 4}, "it has auto_pad and pads, and ONNX has one of them"),
        ("Conv", {"kernel_shape": [3, 3]}, "kernel_shape is [3, 3], and the weights have the shape [3, 3, 2, 2]"),
        ("ConvTranspose", {"auto_pad": "SAME_UPPER", "pads": [0] * 4}, "it has auto_pad and pads, and ONNX has one of them"),
        ("ConvTranspose", {"dilations": [0, -1]}, "dilations is [0, -1], and each is at least 1"),
        ("ConvTranspose", {"output_shape": [3]}, "output_shape is [3], of 2 axes of pixels"),
        ("MaxPool", {"kernel_shape": [0, 2]}, "kernel_shape is [0, 2], and each is at least 1"),
        ("MaxPool", {"kernel_shape": [2] * 3}, "kernel_shape is [2, 2, 2], of 2 axes of pixels"),
        ("MaxPool", {}, "onnx.checker says: Required attribute"),
    ]
)
def test_windows_that_no_sound_file_has(op: str, attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    node = helper.make_node(op, ["i", "w"][: 1 if op == "MaxPool" else 2], ["y"], **attributes)
    codes, text, status = refused(of_node(node, {"i": np.ones((1, 3, 4, 4)), "w": np.ones((3, 3, 2, 2))}), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({op}): {says}" in text


def test_shapes_that_fit_for_other_values_of_open_sizes_are_no_damage(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [5, 3], np.ones(15))
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    says = r"E1007: m.onnx: y \(MatMul\): a product of \[2, 4\] and \[5, 3\]: the inner sizes differ, with features = 4"
    with pytest.raises(tpucc.CompileError, match=says) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx", params={"features": 4})
    assert "other sizes, by -D, may fit" in str(raised.value)
    assert tpucc.import_onnx(tmp_path / "m.onnx", params={"features": 5}).source


def test_what_tpucc_lacks_is_no_damage(tmp_path: Path) -> None:
    """Statistics for each value of an item, computed axes, windows past the image, integers of values, types that NumPy hasn't."""
    ones = {name: np.ones(shape, np.float32) for name, shape in (("i", (1, 2, 4)), ("v", (2, 4)))}
    axes = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0), helper.make_node("Cast", ["m"], ["a"], to=TensorProto.INT64)]
    axes += [helper.make_node("Unsqueeze", ["a", "zero"], ["b"]), helper.make_node("Pad", ["x", "pads", "", "b"], ["y"])]
    files = {
        "spatial": of_node(helper.make_node("BatchNormalization", ["i", *"vvvv"], ["y"], spatial=0), ones, opset=7),
        "axes": of_nodes(axes, {"zero": [0], "pads": [1, 1]}),
        "window": of_node(helper.make_node("MaxPool", ["i"], ["y"], kernel_shape=[3]), {"i": np.ones((1, 1, 2))}),
        "cast": of_nodes([helper.make_node("CastLike", ["x", "l"], ["y"])], {"l": np.int32([1])}),
        "type": of_node(helper.make_node("Cast", ["x"], ["y"], to=25), {}),
    }
    for name, data in files.items():
        codes, text, status = refused(data, tmp_path)
        assert status == 1, (name, text)
        assert {*codes} <= {"E1006", "E1007"}


@pytest.mark.long
def test_rows_have_the_attributes_that_the_onnx_package_says() -> None:
    """Each attribute of each version is read, is an operand of other versions, or is said to change nothing; and there are no others."""
    assert onnx.defs.onnx_opset_version() >= OPSETS.start
    for op, row in ROWS.items():
        *domain, name = op.rsplit(".", 1)
        history = onnx.defs.get_all_schemas_with_history()
        schemas = [schema for schema in history if (schema.name, schema.domain) == (name, "".join(domain))]
        oldest = max((schema.since_version for schema in schemas if schema.since_version <= OPSETS.start), default=0)
        there = {attribute for schema in schemas if domain or schema.since_version >= oldest for attribute in schema.attributes}
        if row.build is not None and there and "microsoft" not in op:
            assert row.unknown(sorted(there)) is None, op
            assert {*row.attributes, *row.ignored} <= there, op
            assert len(row.operands) >= min(max(schema.max_input for schema in schemas), 1), op
