"""What is said of ONNX files that are damaged or beyond tpucc: the file, the node as the file has it, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.differential.test_onnx_damaged import IMAGES, written
from tests.support.cases import each
from tests.support.onnx_files import model_of, wire
from tpucc.cli.main import main

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


def functions() -> bytes:
    """A model with a function of its own."""
    data: bytes = model_of([helper.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    return data + wire((25, b""))


FILES: dict[str, tuple[bytes, str, list[str]]] = {
    "bytes": (b"no model", "E1001", ["not a model in ONNX's format"]),
    "functions": (functions(), "E1006", ["the model defines functions of its own"]),
    "opset": (model_of([helper.make_node("Relu", ["x"], ["y"])], opset=99).SerializeToString(), "E1005", ["the model has the operators"]),
    "operators": (
        model_of([helper.make_node("Tan", ["x"], ["a"]), helper.make_node("Det", ["x"], ["y"])]).SerializeToString(),
        "E1006",
        ["tpucc has nothing for the operator Tan", "tpucc has nothing for the operator Det"],
    ),
    "uses": (
        model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], dilations=[2])], inputs={"x": (1, 2, 8)}).SerializeToString(),
        "E1007",
        ["MaxPool: windows with dilation"],
    ),
}


@each(FILES.values())
def test_each_message_begins_with_the_file(data: bytes, code: str, says: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.onnx").write_bytes(data)
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(tmp_path / "b.onnx")
    found = raised.value.diagnostics
    assert [each.code for each in found] == [code] * len(says)
    assert [each.message.startswith(f"b.onnx: {text}") for each, text in zip(found, says, strict=True)] == [True] * len(says)


def test_of_two_files_the_one_is_named_that_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model_of([helper.make_node("Relu", ["x"], ["y"])]), tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(FILES["operators"][0])
    assert main(["compare", str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]) == 1
    assert "E1006: b.onnx: tpucc has nothing for the operator Tan" in capsys.readouterr().err


SCALES = {
    "zero": (0.0, "is 0, and the smallest one here is 1.17549e-38", "what it measured is always 0"),
    "tiny": (1e-45, "is 1.4013e-45, and the smallest", "what it measured is always 0"),
    "below zero": (-0.25, "is -0.25, and the smallest", "what it measured is always 0"),
    "infinite": (np.inf, "is inf", "its quantiser saw an infinite value"),
    "no number": (np.nan, "is nan", "its quantiser saw an infinite value or NaN"),
}


@each(SCALES)
def test_scales_that_values_can_not_have_are_named_with_the_node_and_what_to_do(scale: float, says: str, mend: str, tmp_path: Path) -> None:
    """ONNX takes any number, and ONNX Runtime computes with it: the file isn't damaged."""
    constants = [onnx.numpy_helper.from_array(np.float32(scale), "s"), onnx.numpy_helper.from_array(np.int8(0), "z")]
    back = helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="back")
    quantised = model_of([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="there"), back], constants)
    integers = model_of([back], constants, inputs={"q": (2, 4)})
    integers.graph.input[0].type.tensor_type.elem_type = TensorProto.INT8
    for model, node in ((quantised, "QuantizeLinear: the scale s"), (integers, "back: the scale s")):
        onnx.save(model, tmp_path / "m.onnx")
        with pytest.raises(tpucc.CompileError) as raised:
            tpucc.import_onnx(tmp_path / "m.onnx")
        (found,) = raised.value.diagnostics
        assert found.message.startswith(f"m.onnx: {node} {says}")
        assert ("(1 node: there)" in found.message) or "of the integers of the input q" in found.message
        assert mend in found.help[0]


@each([7, 11, 21])
def test_a_clip_whose_bounds_are_the_other_way_round_gives_the_upper_one(opset: int, tmp_path: Path) -> None:
    """As ONNX says: Min(max, Max(input, min))."""
    bounds = {"low": np.float32(2), "high": np.float32(1)}
    constants = [] if opset < 11 else [onnx.numpy_helper.from_array(value, name) for name, value in bounds.items()]
    attributes = {"min": 2.0, "max": 1.0} if opset < 11 else {}
    node = helper.make_node("Clip", ["x", *(value.name for value in constants)], ["y"], **attributes)
    onnx.save(model_of([node], constants, opset=opset), tmp_path / "m.onnx")
    (found,) = tpucc.import_onnx(tmp_path / "m.onnx").compile().run(x=np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)).values()
    np.testing.assert_allclose(found, np.ones((2, 4)), atol=0.0125)  # half a step of the integers of x


@each(
    [
        ({"s": [0, 0], "e": [1], "a": [0]}, "don't fit each other"),
        ({"s": [0, 0], "e": [1, 1], "a": [0]}, "don't fit each other"),
        ({"s": [0, 0], "e": [1, 1], "a": [1, -1]}, "don't fit each other"),
        ({"s": [0] * 3, "e": [1] * 3, "a": [0, 1, 0]}, "don't fit each other"),
        ({"s": [[0]], "e": [1], "a": [0]}, "don't fit each other"),
        ({"s": [0], "e": [1], "a": [2]}, "don't fit each other"),
    ]
)
def test_a_slice_that_no_sound_file_has_is_damage_whatever_the_open_sizes_are(lists: dict[str, Any], says: str, tmp_path: Path) -> None:
    constants = [onnx.numpy_helper.from_array(np.array(numbers), name) for name, numbers in lists.items()]
    onnx.save(model_of([helper.make_node("Slice", ["x", *lists], ["y"])], constants, inputs={"x": ("batch", 4)}), tmp_path / "m.onnx")
    with pytest.raises(tpucc.ProgramError) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert [found.code for found in raised.value.diagnostics] == ["E1001"]
    assert "m.onnx: y (Slice): " in str(raised.value)
    assert says in str(raised.value)


def numbers_changed(model: Any) -> Iterator[Any]:
    """The model with other lists of integers in its attributes, one after the other, each taken back."""
    for attribute in (attribute for node in model.graph.node for attribute in node.attribute if attribute.ints):
        kept = list(attribute.ints)
        for number in (99_999_999, 0, -1):
            attribute.ints[:] = [number] * len(kept)
            yield model
        attribute.ints[:] = kept


@pytest.mark.parametrize("bits", [8, 16])
def test_nodes_that_are_read_as_others_are_named_as_in_the_file(bits: int, tmp_path: Path) -> None:
    """Of a quantised export several nodes are read as one, which may have another operator and a name of its own."""
    model = written(IMAGES, bits, tmp_path)
    operators = {node.name: node.op_type for node in model.graph.node}
    found: set[str] = set()
    for changed in numbers_changed(model):
        onnx.save(changed, tmp_path / "m.onnx")
        try:
            tpucc.import_onnx(tmp_path / "m.onnx")
        except tpucc.Error as error:
            found.update(problem.message for problem in error.diagnostics)
    named = [re.fullmatch(r"m\.onnx: (?P<op>\w+)(?:, read as \w+)?: .* \(1 node: (?P<node>[\w.]+)\)", message) for message in found]
    named += [re.match(r"m\.onnx: (?P<node>[\w.]+) \((?P<op>\w+)[,)]", message) for message in found]
    pairs = {(match["node"], match["op"]) for match in named if match is not None}
    assert len(pairs) >= 2
    assert {(node, operators.get(node)) for node, _ in pairs} == pairs


@each(["bool", "comparison", "float"])
def test_rows_by_numbers_that_are_computed_are_refused_in_words_of_onnx(of: str, tmp_path: Path) -> None:
    before = {"bool": ["Cast", "Cast"], "comparison": ["Greater", "Cast"], "float": ["Abs", "Cast"]}[of]
    nodes, name = [], "x"
    for place, op in enumerate(before):
        to = TensorProto.INT64 if place == len(before) - 1 else TensorProto.BOOL
        nodes.append(helper.make_node(op, [name, name][: 1 + (op == "Greater")], [f"v{place}"], **({"to": to} if op == "Cast" else {})))
        name = f"v{place}"
    table = onnx.numpy_helper.from_array(np.ones((5, 4), np.float32), "table")
    onnx.save(model_of([*nodes, helper.make_node("Gather", ["table", name], ["y"], name="pick")], [table]), tmp_path / "m.onnx")
    with pytest.raises(tpucc.CompileError) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx")
    (found,) = raised.value.diagnostics
    of_floats, of_conditions = (
        "Cast: it makes integers of computed values (1 node: v1)",
        "Gather: the network computes its numbers of rows or classes (1 node: pick)",
    )
    assert found.message == f"m.onnx: {of_floats if of == 'float' else of_conditions}"
    assert "give them to the model as an input" in found.help[0]
    assert "i32" not in str(raised.value)


@each(
    [
        (["MatMul", ["x", "w"]], {"w": np.ones((5, 3))}, "don't fit each other"),
        (["Gemm", ["x", "w"]], {"w": np.ones((5, 3))}, "don't fit each other"),
        (["Gemm", ["x", "w", "b"]], {"w": np.ones((4, 3)), "b": np.ones(2)}, "don't fit each other"),
        (["Add", ["x", "w"]], {"w": np.ones(3)}, "don't fit each other"),
        (["PRelu", ["x", "w"]], {"w": np.ones(3)}, "don't fit each other"),
        (["BatchNormalization", ["x", *"wwww"]], {"w": np.ones(3)}, "don't fit each other"),
        (["Squeeze", ["x", "a"]], {"a": np.array([1])}, "don't fit each other"),
        (["Conv", ["x", "w"]], {"w": np.ones((2, 3, 2, 2))}, "don't fit each other"),
    ]
)
def test_what_no_batch_mends_is_damage_in_a_file_that_leaves_the_batch_open(
    node: tuple[str, list[str]], arrays: dict[str, Any], says: str, tmp_path: Path
) -> None:
    typed = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in arrays.items()}
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in typed.items()]
    onnx.save(model_of([helper.make_node(*node, ["y"])], constants, inputs={"x": ("batch", 4)}), tmp_path / "m.onnx")
    with pytest.raises(tpucc.ProgramError) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert f"E1001: m.onnx: y ({node[0]}): " in str(raised.value)
    assert says in str(raised.value)
    assert "-D" not in str(raised.value)
