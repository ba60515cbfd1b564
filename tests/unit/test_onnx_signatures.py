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
from tpucc.interop.onnx.reading.building.values import Static
from tpucc.interop.onnx.reading.building.weights import Called
from tpucc.interop.onnx.reading.files.model import OPSETS, OPTIMISED, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit
from tpucc.interop.onnx.reading.operators.rows import CONSTANT, ROWS, Number, Positive

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


@each(
    [
        (helper.make_node("Identity", [""], ["y"]), {}, "onnx.checker says: Node"),
        (helper.make_node("Split", ["x"], ["z", "w", "y"], axis=1, num_outputs=2), {}, "don't fit each other"),
        (helper.make_node("Split", ["x"], ["y", "z"], num_outputs=2**40), {}, "don't fit each other"),
        (helper.make_node("Split", ["c", "s"], ["z", "w", "y"]), {"c": np.ones(4), "s": [2, 2]}, "don't fit each other"),
        (
            helper.make_node("Pad", ["x", "s"], ["y"], mode="VALID"),
            {"s": [0, 0, 1, 1]},
            "don't fit each other",
        ),
        (helper.make_node("Pad", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Expand", ["x", "s"], ["y"]), {"s": [3, 4]}, "don't fit each other"),
        (helper.make_node("DepthToSpace", ["x"], ["y"]), {}, "onnx.checker says: Required attribute"),
        (helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=0), {}, "don't fit each other"),
        (helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2), {}, "don't fit each other"),
        (
            helper.make_node("ConvTranspose", ["i", "w"], ["y"], group=2**30),
            {"i": np.ones((1, 4, 3)), "w": np.ones((4, 1, 1))},
            "don't fit each other",
        ),
        (helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"]), {"s": np.ones(4)}, "onnx.checker says: Required attribute"),
        (helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=0), {"s": np.ones(4)}, "don't fit each other"),
        (
            helper.make_node("RNN", ["i", "w", "w"], ["y"], direction="up"),
            {"i": np.ones((2, 1, 2)), "w": np.ones((1, 2, 2))},
            "don't fit each other",
        ),
        (
            helper.make_node("Slice", ["x", "s", "e"], ["y"], note="long " * 20),
            {"s": [0], "e": [1, 2]},
            "onnx.checker says: Unrecognized attribute: note",
        ),
        (helper.make_node("Slice", ["x", "s", "e"], ["y"]), {"s": [0], "e": [1, 2]}, "don't fit each other"),
        (helper.make_node("Add", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Where", ["x", "", "x"], ["y"]), {}, "onnx.checker says: Node"),
        (helper.make_node("Clip", ["x", "", "", "x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Relu", ["x"], ["y", "z"]), {}, "onnx.checker says: Node with schema"),
        (helper.make_node("Softmax", ["x"], ["y"], axis="a"), {}, "onnx.checker says: Mismatched attribute type"),
        (helper.make_node("LeakyRelu", ["x"], ["y"], alpha=1), {}, "onnx.checker says: Mismatched attribute type"),
        (helper.make_node("Softmax", ["x"], ["y"], axes=1), {}, "onnx.checker says: Unrecognized attribute: axes"),
        (helper.make_node("", ["x"], ["y"]), {}, "y has no operator"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": np.ones((5, 3))}, "don't fit each other"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": 1.0}, "don't fit each other"),
        (helper.make_node("MatMul", ["i", "w"], ["y"]), {"i": np.ones((2, 3, 4)), "w": np.ones((3, 4, 5))}, "don't fit each other"),
        (helper.make_node("Gemm", ["x", "w", "b"], ["y"]), {"w": np.ones((4, 3)), "b": np.ones(2)}, "don't fit each other"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), {"w": np.ones((4, 3))}, "don't fit each other"),
        (helper.make_node("Add", ["x", "w"], ["y"]), {"w": np.ones(3)}, "don't fit each other"),
        (helper.make_node("PRelu", ["x", "w"], ["y"]), {"w": np.ones((3, 1, 4))}, "don't fit each other"),
        (helper.make_node("Concat", ["x", "w"], ["y"], axis=0), {"w": np.ones((2, 3))}, "don't fit each other"),
        (helper.make_node("Squeeze", ["x", "a"], ["y"]), {"a": [1]}, "don't fit each other"),
        (helper.make_node("Unsqueeze", ["x"], ["y"]), {}, "onnx.checker says: Node with schema"),
        (
            helper.make_node("Conv", ["i", "w", "b"], ["y"]),
            {"i": np.ones((1, 3, 4, 4)), "w": np.ones((2, 3, 2, 2)), "b": np.ones(3)},
            "don't fit each other",
        ),
        (helper.make_node("GatherND", ["x", "i"], ["y"]), {"i": [[0, 9]]}, "don't fit each other"),
        (
            helper.make_node("GatherND", ["c", "i"], ["y"]),
            {"c": np.ones((2, 4)), "i": [[-3, 0]]},
            "don't fit each other",
        ),
        (helper.make_node("GatherND", ["x", "i"], ["y"]), {"i": [[0, 0, 0]]}, "don't fit each other"),
        (helper.make_node("Slice", ["x", "i"], ["y"]), {"i": [0]}, "onnx.checker says: Node with schema"),
        (helper.make_node("Slice", ["x", "i", "i"], ["y"]), {"i": [0, 0, 0]}, "don't fit each other"),
        (helper.make_node("Split", ["x"], ["y", "z"]), {}, "don't fit each other"),
        (helper.make_node("Trilu", ["c"], ["y"]), {"c": np.ones(3)}, "don't fit each other"),
        (helper.make_node("Resize", ["x", "", "s", "n"], ["y"]), {"s": np.float32([2, 2]), "n": [4, 8]}, "don't fit each other"),
        (helper.make_node("Resize", ["x", "", "", "n"], ["y"]), {"n": [4, 8, 1]}, "don't fit each other"),
        (helper.make_node("Reshape", ["x", "s"], ["y"]), {"s": [3, -1]}, "don't fit each other"),
        (helper.make_node("Clip", ["x", "w"], ["y"]), {"w": np.ones(2)}, "don't fit each other"),
        (helper.make_node("LayerNormalization", ["x", "w"], ["y"]), {"w": np.ones(3)}, "don't fit each other"),
        (
            helper.make_node("BatchNormalization", ["x", *"vvv", "w"], ["y"]),
            {"v": np.ones(4), "w": np.ones(3)},
            "don't fit each other",
        ),
        (helper.make_node("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik"), {"w": np.ones((5, 3))}, "don't fit each other"),
        (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij->ij"), {}, "don't fit each other"),
        (helper.make_node("Einsum", ["x"], ["y"], equation="ij->iz"), {}, "don't fit each other"),
        (helper.make_node("QuantizeLinear", ["x", "w"], ["y"]), {"w": np.ones(3)}, "don't fit each other"),
        (helper.make_node("LpNormalization", ["x"], ["y"], p=3), {}, "don't fit each other"),
        (helper.make_node("LRN", ["i"], ["y"], size=2), {"i": np.ones((1, 4, 3, 3))}, "don't fit each other"),
        (helper.make_node("Constant", [], ["y"], value_int=2, value_float=1.0), {}, "don't fit each other"),
        (helper.make_node("Constant", [], ["y"]), {}, "don't fit each other"),
        (
            helper.make_node("LSTM", ["i", "w", "w"], ["y"], activations=["Sigmoid"] * 2),
            {"i": np.ones((2, 1, 2)), "w": np.ones((1, 8, 2))},
            "don't fit each other",
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
        assert "don't fit each other" in text


NUMBERS = [(op, name, row.attributes[name].kind) for op, row in ROWS.items() for name in row.attributes]


@each([(op, name, kind) for op, name, kind in NUMBERS if kind in (bool, Positive)])
def test_a_number_that_an_attribute_can_not_be(op: str, name: str, kind: Any) -> None:
    """ONNX Runtime reads flags of other numbers as it likes: a keepdims of 7 as 0."""
    x = Static(np.ones((2, 4), np.float32), "x")
    network = Network("m", {}, Called.of(OnnxGraph("m", (), {}, (), ())))
    for number in (-1, 7, 2**40) if kind is bool else (0, -(2**40)):
        node = OnnxNode(op, ("x",), ("y",), {name: number})
        others = [other for other, found in ROWS[op].attributes.items() if found.default is type(found.default) and other != name]
        assert not others
        with pytest.raises(Misfit):
            ROWS[op].require_kinds(Call(network, node, [x], 21, frozenset()))


@each(
    [
        ("QLinearMul", ["b", "s", "b"], {}, "don't fit each other"),
        ("QLinearSigmoid", ["b", "b", "b", "s", "b"], {}, "don't fit each other"),
        ("QLinearSigmoid", ["b", "s", "b", "s", "b", "b"], {}, "don't fit each other"),
        ("QLinearAveragePool", ["b", "s", "b", "s", "b"], {}, "don't fit each other"),
        ("QGemm", [*["b", "s", "b"] * 2, "s", "s", "b"], {}, "don't fit each other"),
        ("DequantizeLinear", ["f", "s"], {}, "don't fit each other"),
    ]
)
def test_nodes_that_onnx_runtime_does_not_have(op: str, operands: list[str], attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    """Its own operators, which the package onnx doesn't check."""
    arrays = {"s": np.float32(0.5), "b": np.ones((1, 1), np.int8), "f": np.ones((1, 1))}
    node = helper.make_node(op, operands, ["y"], domain=OPTIMISED, **attributes)
    codes, text, status = refused(of_node(node, arrays), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({OPTIMISED}.{op}" in text
    assert says in text


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
    network = Network("m", {}, Called.of(OnnxGraph("m", (), {}, (), ())))
    for index in range(6):
        network.note("Columns of {} are quantised anew", f"w{index}")
        network.note("Something else")
    assert list(network.notes) == [
        "Columns of w0 are quantised anew. The same is true of w1, w2, w3 and 2 others",
        "Something else",
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
        ("Conv", {"strides": [0, 1]}, "don't fit each other"),
        ("Conv", {"dilations": [1, -1]}, "don't fit each other"),
        ("Conv", {"pads": [1, 1, 1]}, "don't fit each other"),
        ("Conv", {"group": 2}, "don't fit each other"),
        ("Conv", {"auto_pad": "SAME"}, "don't fit each other"),
        ("Conv", {"auto_pad": "VALID", "pads": [1] * 4}, "don't fit each other"),
        ("Conv", {"kernel_shape": [3, 3]}, "don't fit each other"),
        ("ConvTranspose", {"auto_pad": "SAME_UPPER", "pads": [0] * 4}, "don't fit each other"),
        ("ConvTranspose", {"dilations": [0, -1]}, "don't fit each other"),
        ("ConvTranspose", {"output_shape": [3]}, "don't fit each other"),
        ("MaxPool", {"kernel_shape": [0, 2]}, "don't fit each other"),
        ("MaxPool", {"kernel_shape": [2] * 3}, "don't fit each other"),
        ("MaxPool", {}, "onnx.checker says: Required attribute"),
    ]
)
def test_windows_that_no_sound_file_has(op: str, attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    node = helper.make_node(op, ["i", "w"][: 1 if op == "MaxPool" else 2], ["y"], **attributes)
    codes, text, status = refused(of_node(node, {"i": np.ones((1, 3, 4, 4)), "w": np.ones((3, 3, 2, 2))}), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({op}): " in text
    assert says in text


def test_shapes_that_fit_for_other_values_of_open_sizes_are_no_damage(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [5, 3], np.ones(15))
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    says = r"E1007: m.onnx: y \(MatMul\): operands of the shapes \[2, 4\] and \[5, 3\] don't fit each other, .*with features = 4"
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
            operands = {operand.name.rstrip("_") for operand in row.operands}
            assert there <= {*row.attributes, *row.ignored, *operands}, op
            assert {*row.attributes, *row.ignored} <= there, op
            assert len(row.operands) >= min(max(schema.max_input for schema in schemas), 1), op
