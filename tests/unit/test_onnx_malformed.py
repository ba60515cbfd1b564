"""ONNX files that aren't what they say: every one is refused with a message, before anything large is made."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import add_model, model_of, wire
from tpucc.interop.onnx.reading import Imported
from tpucc.interop.onnx.reading.files.bounds import MAX_DEPTH, MAX_NODES
from tpucc.interop.onnx.reading.files.decoding import decoded

helper = pytest.importorskip("onnx").helper
TensorProto = pytest.importorskip("onnx").TensorProto


def refused(data: bytes, folder: Path) -> tuple[list[str], str, int]:
    """The codes of the errors of a file with these bytes, their text, and the exit status."""
    path = folder / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(path)
    return [d.code for d in raised.value.diagnostics], str(raised.value), raised.value.exit_status


def test_a_model_of_another_framework_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(tpucc.Error, match=r"m\.pt is a model of PyTorch, not a model in ONNX's format") as raised:
        tpucc.import_onnx(tmp_path / "m.pt")
    assert "torch.onnx.export" in str(raised.value)


@each(
    [
        (b"", "it has no graph"),
        (b"\x00", "number 0"),
        (b"\xff" * 20, "more than ten bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "it is a pointer of Git LFS"),
        (b"\x89PNG\r\n\x1a\n", "not a model"),
        (wire((7, wire((1, wire((4, b"\xff\xfe")))))), "not UTF-8"),
        (wire((7, b"\x0a\xff\xff\xff\xff\x0f")), "ends inside a field"),
        (wire((7, 3)), "it has no graph"),
        (wire((7, wire((5, wire((2, b"float")))))), "the unknown type 0"),
        (wire((7, wire((5, wire((1, 4), (3, b"")))))), "segments"),
    ]
)
def test_bytes_that_are_no_model(data: bytes, says: str, tmp_path: Path) -> None:
    codes, text, status = refused(data, tmp_path)
    assert codes == ["E1001"]
    assert status == 3
    assert says in text


def test_reading_without_the_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(add_model(np.ones(4, np.float32)).SerializeToString())
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(tpucc.UsageError, match=r"E1020: .* isn't installed: onnx") as raised:
        tpucc.import_onnx(path)
    assert raised.value.diagnostics[0].help == ("python -m pip install 'tpucc[onnx]' installs it",)


def test_a_model_that_is_cut_off_is_refused() -> None:
    data = add_model(np.ones(4, np.float32)).SerializeToString()
    whole = data.rindex(b"com.microsoft") - 4  # what follows is one field more, which a file may lack
    for end in range(whole):
        with pytest.raises(tpucc.Error):
            decoded(data[:end], None)


def test_random_bytes_in_a_model_make_no_other_error(tmp_path: Path) -> None:
    data, draw = bytearray(add_model(np.ones(4, np.float32)).SerializeToString()), np.random.default_rng(0)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] = int(draw.integers(256))
        with contextlib.suppress(tpucc.CompileError, tpucc.ProgramError, tpucc.UsageError):
            made = Imported("m", "m.onnx", decoded(bytes(changed), tmp_path), "nhwc")
            made.built(made.sizes({}))


def tensor(**fields: object) -> Any:
    return TensorProto(**{"name": "w", "data_type": TensorProto.FLOAT, **fields})


@each(
    [
        (tensor(dims=[2**40]), "E1003", "4,398,046,511,104 bytes"),
        (tensor(dims=[2**62, 2**62]), "E1003", "claims"),
        (tensor(dims=[2**62, 0]), "E1003", "claims a size of"),
        (tensor(dims=[-4]), "E1001", "negative size"),
        (tensor(dims=[1] * 40, raw_data=bytes(4)), "E1007", "the tensor w has 40 axes; the limit is 32"),
        (tensor(dims=[4]), "E1001", "claims 4 values, and there are 0"),
        (tensor(dims=[4], raw_data=bytes(15)), "E1001", "no whole number"),
        (tensor(dims=[4], raw_data=bytes(12)), "E1001", "claims 4 values, and there are 3"),
        (tensor(dims=[2], data_type=TensorProto.STRING, string_data=[b"a", b"b"]), "E1007", "the names of its classes"),
        (tensor(dims=[2], data_type=TensorProto.INT4, raw_data=bytes(1)), "E1006", "int4"),
        (tensor(dims=[2], data_type=99, raw_data=bytes(1)), "E1001", "unknown type 99"),
        (tensor(dims=[4], raw_data=np.array([1, 2, np.nan, 4], "<f4").tobytes()), "E1007", "not a number"),
    ]
)
def test_constants_that_claim_what_is_not_there(constant: Any, code: str, says: str, tmp_path: Path) -> None:
    codes, text, status = refused(model_of([helper.make_node("Add", ["x", "w"], ["y"])], [constant]).SerializeToString(), tmp_path)
    assert codes == [code]
    assert status == (1 if code in ("E1006", "E1007") else 3)
    assert says in text


def outside(location: str, **entries: str) -> bytes:
    found = tensor(dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        found.external_data.add(key=key, value=value)
    data: bytes = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [found]).SerializeToString()
    return data


@each(
    [
        ("../w.bin", {}, "outside of the model's folder"),
        ("/etc/passwd", {}, "outside of the model's folder"),
        ("", {}, "no file"),
        ("a\0b", {}, "outside"),
        ("link.bin", {}, "outside of the model's folder"),
        ("missing.bin", {}, "no such file"),
        ("pipe", {}, "pipe"),
        ("w.bin", {"offset": "8"}, "has 16 bytes"),
        ("w.bin", {"offset": "-8"}, "has 16 bytes"),
        ("w.bin", {"length": "999999999999"}, "claims 16 bytes"),
        ("w.bin", {"length": "-1"}, "claims 16 bytes, and -1"),
        ("w.bin", {"offset": "one"}, "no number"),
        ("w.bin", {"offset": "9" * 400}, "no number"),
    ]
)
def test_external_data_stays_in_the_folder_and_in_its_file(location: str, entries: dict[str, str], says: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(16))
    (folder / "w.bin").write_bytes(bytes(16))
    os.symlink(tmp_path / "w.bin", folder / "link.bin")
    os.mkfifo(folder / "pipe")
    codes, text, status = refused(outside(location, **entries), folder)
    assert codes == ["E1004"]
    assert status == 3
    assert says in text


def test_external_data_beside_the_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8) + np.arange(4, dtype="<f4").tobytes())
    (tmp_path / "m.onnx").write_bytes(outside("w.bin", offset="8", length="16"))
    assert tpucc.import_onnx(tmp_path / "m.onnx").weights["w"].tolist() == [0, 1, 2, 3]


@each(
    [
        ([("Relu", ["y"], ["y"])], "y reads its own result"),
        (
            [("Add", ["x", "b"], ["a"]), ("Neg", ["a"], ["b"]), ("Neg", ["b"], ["y"])],
            "a and b are in a circle: each reads what the next one",
        ),
        ([("Relu", ["a"], ["y"])], "nothing computes"),
        ([("Relu", ["x"], ["x"])], "defined twice"),
        ([("Relu", ["x"], ["y"]), ("Neg", ["x"], ["y"])], "defined twice"),
        ([("Relu", ["x"], ["z"])], "nothing computes"),
    ]
)
def test_names_that_nothing_defines_once(nodes: list[tuple[str, list[str], list[str]]], says: str, tmp_path: Path) -> None:
    codes, text, status = refused(model_of([helper.make_node(*node) for node in nodes]).SerializeToString(), tmp_path)
    assert codes == ["E1002"]
    assert status == 3
    assert says in text


def test_nested_graphs_have_a_depth(tmp_path: Path) -> None:
    inner = wire((2, b"g"))
    for _ in range(MAX_DEPTH + 2):
        inner = wire((1, wire((4, b"If"), (5, wire((1, b"then_branch"), (6, inner), (20, 5))))))
    assert refused(wire((8, wire((2, 21))), (7, inner)), tmp_path)[0] == ["E1003"]
    inner = wire((2, b"g"))
    for _ in range(500):
        inner = wire((1, wire((5, wire((6, inner))))))
    assert refused(wire((7, inner)), tmp_path)[0] == ["E1003"]


@pytest.mark.long
def test_too_many_nodes_and_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(wire((7, wire((1, b"")) * (MAX_NODES + 1))), tmp_path)[0] == ["E1003"]
    monkeypatch.setattr("tpucc.interop.onnx.reading.files.bounds.MAX_FIELDS", 50)
    assert "more than 50 fields" in refused(wire((7, wire((13, b"")) * 60)), tmp_path)[1]
    monkeypatch.setattr("tpucc.interop.onnx.reading.files.bounds.MAX_PACKED", 50)
    assert "more than 50 bytes of packed integers" in refused(wire((7, wire((1, wire((5, wire((8, bytes(60))))))))), tmp_path)[1]


@each(
    [
        (
            [("ConstantOfShape", ["n"], ["b"]), ("Add", ["x", "b"], ["y"])],
            "E1003: m.onnx: b (ConstantOfShape): its result has 1,099,511,627,776",
        ),
        (
            [("Expand", ["one", "t1"], ["b"]), ("Gather", ["x", "b"], ["y"])],
            "E1003: m.onnx: b (Expand): its result has 1,099,511,627,776 values; the limit is 2,147,483,647",
        ),
        ([("Expand", ["one", "k"], ["b"]), ("Gather", ["x", "b"], ["y"])], "a constant of 1,073,741,824 values is computed"),
        ([("Expand", ["f", "k"], ["b"]), ("Neg", ["b"], ["c"]), ("Add", ["x", "c"], ["y"])], "values is computed"),
        ([("ReduceMax", ["x"], ["m"]), ("Expand", ["m", "n"], ["y"])], "E1003: m.onnx: y (Expand): its result has"),
        ([("Tile", ["x", "n"], ["y"])], "E1003: m.onnx: y (Tile): its result has 8,796,093,022,208 values"),
        ([("Tile", ["x", "few"], ["y"])], "copies along the axes"),
        ([("Tile", ["n", "t1"], ["y"])], "E1003: m.onnx: y (Tile): its result has 2,199,023,255,552 values"),
        ([("Tile", ["n", "r"], ["y"])], "values is computed"),
        ([("Range", ["zero", "many", "one"], ["y"])], "E1003: m.onnx: y (Range): its result has 1,099,511,627,776 values"),
        ([("Range", ["zero", "k", "one"], ["y"])], "values is computed"),
        ([("Reshape", ["x", "n"], ["y"])], "E1003: m.onnx: y (Reshape): its result has 1,099,511,627,776 values"),
        ([("Reshape", ["x", "few"], ["y"])], "E1001: m.onnx: y (Reshape): operands of the shapes [2, 4] and [2] with [1048576, 1]"),
        ([("OneHot", ["n", "many", "v"], ["y"])], "E1003: m.onnx: y (OneHot): its result has 2,199,023,255,552 values"),
        ([("OneHot", ["n", "r", "v"], ["y"])], "values is computed"),
        ([("Pad", ["row", "p"], ["b"]), ("Add", ["x", "b"], ["y"])], "a constant of 33,554,436 values is computed"),
    ]
)
def test_small_files_that_would_make_large_constants(nodes: list[tuple[str, list[str], list[str]]], says: str, tmp_path: Path) -> None:
    import tracemalloc

    arrays = {
        "n": np.array([2**20, 2**20]),
        "few": np.array([2**20, 1]),
        "r": np.array([2**29]),
        "t1": np.array([2**40]),
        "k": np.array([2**30]),
        "f": np.float32([2]),
        "zero": np.array(0),
        "one": np.array(1),
        "many": np.array(2**40),
        "v": np.array([0.0, 1.0], np.float32),
        "row": np.ones((1, 4), np.float32),
        "p": np.array([0, 0, 2**23, 0]),
    }
    read_ = {name for _, inputs, _ in nodes for name in inputs}
    constants = [pytest.importorskip("onnx").numpy_helper.from_array(array, name) for name, array in arrays.items() if name in read_]
    tracemalloc.start()
    try:
        _, text, status = refused(of_any_type(model_of([helper.make_node(*node) for node in nodes], constants)), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()
    assert status == (3 if says.startswith("E") else 1)
    assert says in text


NAN, INFINITE = np.float32(np.nan), np.float32(np.inf)
DAMAGED = [
    (("ConstantOfShape", ["a"]), [[2.0, 4.0]], "don't fit each other"),
    (("ConstantOfShape", ["a"]), [[2, -4]], "don't fit each other"),
    (("Expand", ["x", "a"]), [[-3, 4]], "don't fit each other"),
    (("Expand", ["x", "a"]), [[2**40, 2, 1]], "its result has 8,796,093,022,208 values"),
    (("OneHot", ["a", "b", "c"]), [[1, 2], NAN, np.ones(2)], "don't fit each other"),
    (("OneHot", ["a", "b", "c"]), [[1, 2], -5, np.ones(2)], "don't fit each other"),
    (("OneHot", ["a", "b", "c"]), [[1, 2], 5, np.ones(3)], "don't fit each other"),
    (("Pad", ["x", "a"]), [[0, 1, 2]], "don't fit each other"),
    (("Pad", ["x", "a"]), [[0.0, 0.0, 1.0, 1.0]], "don't fit each other"),
    (("Pad", ["x", "a"]), [[0, -3, 0, -3]], "don't fit each other"),
    (("Pad", ["x", "a"]), [[0, 2**40, 0, 0]], "its result has 2,199,023,255,560 values"),
    (("Pad", ["x", "a", "", "b"]), [[2**40, 0], [1]], "its result has"),
    (("Range", ["a", "b", "c"]), [np.float32(0), INFINITE, np.float32(1)], "don't fit each other"),
    (("Range", ["a", "b", "c"]), [0, 4, 0], "don't fit each other"),
    (("Range", ["a", "b", "c"]), [0, 4, [1, 1]], "don't fit each other"),
    (("Reshape", ["x", "a"]), [[-1, -1]], "don't fit each other"),
    (("Reshape", ["x", "a"]), [[4, -2]], "don't fit each other"),
    (("Resize", ["x", "", "a"]), [np.float32([1, NAN])], "don't fit each other"),
    (("Resize", ["x", "", "a"]), [np.float32([-1, 2])], "don't fit each other"),
    (("Resize", ["x", "", "", "a"]), [[2, 0]], "don't fit each other"),
    (("Resize", ["x", "", "", "a"]), [[2, 2**40]], "its result has 2,199,023,255,552 values"),
    (("Slice", ["x", "a", "b", "c", "d"]), [[0], [4], [1], [0]], "don't fit each other"),
    (("Split", ["x", "a"]), [[3, -1]], "don't fit each other"),
    (("Tile", ["x", "a"]), [[1, -2]], "don't fit each other"),
    (("Tile", ["x", "a"]), [[2]], "don't fit each other"),
    (("Tile", ["x", "a"]), [[NAN, 1]], "don't fit each other"),
    (("Unsqueeze", ["x", "a"]), [[0, -4]], "don't fit each other"),
    (("Unsqueeze", ["x", "a"]), [[7]], "don't fit each other"),
    (("Gather", ["x", "a"]), [[0, 2**40]], "don't fit each other"),
    (("Gather", ["x", "a"]), [-99], "don't fit each other"),
    (("Concat", ["x", "x"]), [], "onnx.checker says: Required attribute 'axis' is missing"),
]
"""Nodes whose constants can't be what they stand for."""


@each(DAMAGED)
def test_constants_that_no_sound_file_has(node: tuple[str, list[str]], arrays: list[Any], says: str, tmp_path: Path) -> None:
    codes, text, status = refused(of_node(helper.make_node(*node, ["y"]), dict(zip("abcd", arrays, strict=False))), tmp_path)
    assert status == 3
    assert codes == ["E1003" if "its result" in says else "E1001"]
    assert f"y ({node[0]}): " in text
    assert says in text


@each(
    [
        ("Conv", {"group": 0}, "don't fit each other"),
        ("Conv", {"group": "two"}, "onnx.checker says: Mismatched attribute type"),
        ("Conv", {"kernel_shape": [9, 9]}, "don't fit each other"),
        ("Transpose", {"perm": [0, 0, 2, 3]}, "don't fit each other"),
        ("Transpose", {"perm": [0, 2**62, 1, 3]}, "don't fit each other"),
        ("Softmax", {"axis": 77}, "don't fit each other"),
        ("ArgMax", {"axis": -5}, "don't fit each other"),
        ("Flatten", {"axis": 2**50}, "don't fit each other"),
    ]
)
def test_attributes_that_no_sound_file_has(op: str, attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    weights = pytest.importorskip("onnx").numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")
    node = helper.make_node(op, ["x", *(["w"] if op == "Conv" else [])], ["y"], **attributes)
    codes, text, status = refused(of_any_type(model_of([node], [weights], {"x": (2, 4, 6, 6)})), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"y ({op}): " in text
    assert says in text


def test_opsets(tmp_path: Path) -> None:
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    assert refused(model_of(relu, opset=99).SerializeToString(), tmp_path)[0] == ["E1005"]
    assert refused(model_of(relu, opset=6).SerializeToString(), tmp_path)[0] == ["E1005"]
    model = model_of(relu)
    del model.opset_import[:]
    codes, text, status = refused(model.SerializeToString(), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert "no opset" in text
    again = model_of(relu, opset=21)
    again.opset_import.append(helper.make_opsetid("ai.onnx", 21))
    (tmp_path / "again.onnx").write_bytes(again.SerializeToString())
    assert tpucc.import_onnx(tmp_path / "again.onnx").source
    again.opset_import[-1].version = 13
    codes, text, status = refused(again.SerializeToString(), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert "two opsets of ai.onnx, 21 and 13" in text


def test_all_unsupported_operators_are_named_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["a", "i"], name="top"),
        helper.make_node("Sin", ["x"], ["b"], name="s1"),
        helper.make_node("Sin", ["b"], ["c"], name="s2"),
        helper.make_node("Nothing", ["x"], ["d"], name="ours", domain="example.org"),
        helper.make_node("Nothing", ["c"], ["e"], name="behind", domain="example.org"),
        helper.make_node("Pow", ["x", "p"], ["y"], name="power"),
        helper.make_node("NonZero", ["e"], ["f"], name="of a value"),
        helper.make_node("Shape", ["e"], ["g"], name="known all the same"),
        helper.make_node("ConstantOfShape", ["g"], ["h"], name="of a shape"),
    ]
    constants = [helper.make_tensor("k", TensorProto.INT64, [1], [2]), helper.make_tensor("p", TensorProto.FLOAT, [], [9.0])]
    codes, text, status = refused(model_of(nodes, constants).SerializeToString(), tmp_path)
    assert status == 1
    assert codes == ["E1006", "E1006", "E1006", "E1007", "E1006"]
    assert "TopK (1 node: top)" in text
    assert "end the model before TopK" in text
    assert "Sin (2 nodes: s1 and s2)" in text
    assert "NonZero (1 node: of a value)" in text
    assert "example.org.Nothing (2 nodes: ours and behind)" in text
    assert "the exponent 9 (1 node: power)" in text


def test_computed_branches_of_other_shapes_and_conditions_of_several_values_are_refused(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "b", [], [value])
    other = helper.make_graph([helper.make_node("Flatten", ["x"], ["z"], axis=0)], "b", [], [value])
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
    ]
    codes, text, _ = refused(model_of(nodes).SerializeToString(), tmp_path)
    assert codes == ["E1007"]
    assert "results of other shapes" in text
    codes, text, _ = refused(
        model_of([helper.make_node("Cast", ["x"], ["c"], to=TensorProto.BOOL), nodes[-1]]).SerializeToString(), tmp_path
    )
    assert codes == ["E1007"]
    assert "its condition isn't one value" in text


@each(
    [
        (helper.make_node("Pad", ["x", "p"], ["y"], mode="wrap"), {"p": [0, 2**28, 0, 0]}, "wrap padding to 268,435,4"),
        (helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear"), {"s": np.float32([1, 2_000_000])}, "an axis of"),
        (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij,kl->ijklijkl"), {}, "the equation 'ij,kl->ijklijkl' (1 node"),
        (helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij,kl->" + "ijkl" * 99), {}, "ijkl… (1 node: y)"),
        (helper.make_node("(", ["x"], ["y"]), {}, "tpucc has nothing for the operator ( (1 node: y)"),
        (helper.make_node("(a+)+", ["x"], ["y"], name="a" * 60 + "!"), {}, "tpucc has nothing for the operator (a+)+ (1 node"),
        (helper.make_node("Div", ["a", "b"], ["y"]), {"a": [2, 4], "b": [1, 0]}, "Div: it divides integers by 0 (1 node: y)"),
        (helper.make_node("Mod", ["a", "b"], ["y"]), {"a": [2, 4], "b": [1, 0]}, "Mod: it divides integers by 0 (1 node: y)"),
        (helper.make_node("Div", ["a", "b"], ["y"]), {"a": [-(2**63)], "b": [-1]}, "divides the smallest int64 by -1"),
        (helper.make_node("MatMul", ["a", "b"], ["y"]), {"a": np.ones((1, 9999, 1)), "b": np.ones((9999, 1, 1))}, "99,980,001 values"),
        (helper.make_node("GatherND", ["a", "b"], ["y"]), {"a": np.ones((1, 9999)), "b": [[0]] * 9999}, "99,980,001 values"),
        (
            helper.make_node("ConvTranspose", ["i", "w"], ["y"], output_padding=[9999, 9999], strides=[10000, 10000]),
            {"i": np.ones((1, 1, 4, 4)), "w": np.ones((1, 1, 3, 3))},
            "values is computed, and all such constants",
        ),
    ]
)
def test_an_operator_that_would_make_much(node: Any, arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    codes, text, status = refused(of_node(node, arrays), tmp_path)
    assert codes == ["E1006" if "has nothing" in says else "E1007"]
    assert status == 1
    assert says in text


@each(
    [
        ("Unsqueeze", ["x", "a"], {"a": [*range(40)]}, 42),
        ("Reshape", ["x", "a"], {"a": [1] * 3000 + [-1, 4]}, 3002),
        ("Expand", ["x", "a"], {"a": [1] * 98 + [2, 4]}, 100),
        ("OneHot", ["i", "d", "v"], {"i": np.zeros((1,) * 32, np.int64), "d": 3, "v": np.array([0.0, 1.0])}, 33),
        ("Gather", ["c", "i"], {"c": np.ones((2, 1)), "i": np.zeros((1,) * 32, np.int64)}, 33),
    ]
)
def test_a_result_of_too_many_axes(op: str, inputs: list[str], arrays: dict[str, Any], count: int, tmp_path: Path) -> None:
    """Also where it is an output of which the file says no shape."""
    codes, text, status = refused(of_node(helper.make_node(op, inputs, ["y"]), arrays), tmp_path)
    assert (codes, status) == (["E1007"], 1)
    assert f"{op}: its result has {count:,} axes; the limit is 32" in text


@each([(where, number) for where in ("input", "output") for number in (0, 99)])
def test_a_value_of_elements_that_there_are_none_of(where: str, number: int, tmp_path: Path) -> None:
    """ONNX Runtime refuses them all; a value may have no type at all, which is another matter."""
    model = model_of([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])])
    getattr(model.graph, where)[0].type.tensor_type.elem_type = number
    codes, text, status = refused(model.SerializeToString(), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert f"the unknown type {number}" in text


def test_an_input_of_too_many_axes(tmp_path: Path) -> None:
    codes, text, status = refused(model_of([helper.make_node("Relu", ["x"], ["y"])], inputs={"x": [1] * 33}).SerializeToString(), tmp_path)
    assert (codes, status) == (["E1007"], 1)
    assert "an input, x, has 33 axes; the limit is 32" in text


LONG = "long" * 50_000


@each(
    [
        ([(LONG, ["x"], ["y"], {})], f"nothing for the operator {LONG[:160]}… (1 node: y)"),
        ([("Nothing", ["x"], ["y"], {"domain": LONG})], f"not those of {LONG[:160]}…: export"),
        ([("Tan", ["x"], ["y"], {"name": LONG})], f"(1 node: {LONG[:160]}…)"),
        ([("Relu", [LONG], ["y"], {})], f"reads {LONG[:160]}…, which nothing computes"),
        ([("Relu", ["x"], [LONG], {}), ("Relu", ["x"], [LONG], {}), ("Neg", [LONG], ["y"], {})], f"{LONG[:160]}… is defined twice"),
        ([("Relu", ["x"], ["y"], {LONG: 1})], "onnx.checker says: Unrecognized attribute: longlong"),
        ([("QuantizeLinear", ["x", LONG], ["q"], {}), ("DequantizeLinear", ["q", LONG], ["y"], {})], f"the scale {LONG[:160]}… is inf"),
    ]
)
def test_messages_cut_names(nodes: list[tuple[str, list[str], list[str], dict[str, Any]]], says: str, tmp_path: Path) -> None:
    made = [helper.make_node(op, operands, results, **more) for op, operands, results, more in nodes]
    scale = [helper.make_tensor(LONG, TensorProto.FLOAT, [], [INFINITE])] if "scale" in says else []
    text = refused(model_of(made, scale).SerializeToString(), tmp_path)[1]
    assert says in text
    assert len(text) < 1000


def test_comments_cut_names(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [LONG, "x"], ["a"]), helper.make_node("Relu", ["a"], [LONG + "y"], name="a/" * 9999)]
    model = model_of(nodes, inputs={LONG: (LONG + "s", 4), "x": (LONG + "t", 4)}, outputs=(LONG + "y",))
    model.producer_name = LONG
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    assert len(source) < 3000
    assert f"which {LONG[:80]}" in source.replace("\n# ", "")


def of_any_type(model: Any) -> bytes:
    """The bytes of a model that doesn't say of what type its result is."""
    model.graph.output[0].ClearField("type")
    data: bytes = model.SerializeToString()
    return data


def of_node(node: Any, arrays: dict[str, Any], opset: int = 21) -> bytes:
    """A model of one node that reads x[2, 4] and constants, floats as float32; it doesn't say of what type y is."""
    return of_nodes([node], arrays, opset)


def of_nodes(nodes: list[Any], arrays: dict[str, Any], opset: int = 21) -> bytes:
    numpy_helper = pytest.importorskip("onnx").numpy_helper
    given = {name: np.asarray(array) for name, array in arrays.items()}
    typed = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in given.items()}
    model = model_of(nodes, [numpy_helper.from_array(array, name) for name, array in typed.items()])
    model.opset_import[0].version = opset
    return of_any_type(model)


def test_convolutions_whose_result_grows_by_a_stride_or_more(tmp_path: Path) -> None:
    from_array = pytest.importorskip("onnx").numpy_helper.from_array
    constants = [from_array(np.ones((1, 1, 4, 4), np.float32), "i"), from_array(np.ones((1, 1, 3, 3), np.float32), "w")]
    for more, given in ((1, {}), (2, {"strides": [2, 2]}), (-1, {"dilations": [2, 2]})):
        node = helper.make_node("ConvTranspose", ["i", "w"], ["y"], output_padding=[0, more], **given)
        codes, text, status = refused(model_of([node], constants).SerializeToString(), tmp_path)
        assert (codes, status) == (["E1001"], 3)
        assert "y (ConvTranspose): operands of the shapes [1, 1, 4, 4] and [1, 1, 3, 3] don't fit each other" in text


def test_what_has_no_text_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.interop.onnx.reading.files.names.member", str)  # which leaves no such key
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Add", ["a", "w\x01"], ["b"], name="/mend/Add")]
    nodes += [helper.make_node(f"{op}", [before], [after]) for op, before, after in (("Relu", "b", "c"), ("Exp", "c", "y"))]
    constant = pytest.importorskip("onnx").numpy_helper.from_array(np.arange(4, dtype=np.float32), "w\x01")
    codes, text, _ = refused(model_of(nodes, [constant]).SerializeToString(), tmp_path)
    assert codes == ["E1007"]
    assert "can't be written as text: a string of the language can't have the characters of 'w\\x01'" in text


def test_a_result_that_is_no_number_is_refused(tmp_path: Path) -> None:
    damaged = pytest.importorskip("onnx").numpy_helper.from_array(np.float32([np.nan]), "y")
    codes, text, _ = refused(model_of([], [damaged]).SerializeToString(), tmp_path)
    assert codes == ["E1007"]
    assert "the output y is a constant that can't be read: a constant is not a number (NaN)" in text


def bomb(*nodes: Any, reader: str = "Add") -> bytes:
    """A model whose nodes make much of little, of which the last one's result meets the input."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    return model_of([*nodes, helper.make_node(reader, ["x", nodes[-1].output[0]], ["y"])], [one]).SerializeToString()


def test_much_that_is_made_of_little_is_not_made(tmp_path: Path) -> None:
    size = helper.make_tensor("size", TensorProto.INT64, [2], [4, 50_000_000])
    repeated = [helper.make_node("Constant", [], ["s"], value=size), helper.make_node("ConstantOfShape", ["s"], ["k"])]
    joined = [helper.make_node("Concat", ["one" if not n else f"k{n - 1}"] * 16, [f"k{n}"], axis=0) for n in range(8)]
    doubled = [helper.make_node("Concat", ["one" if not n else f"k{n - 1}"] * 2, [f"k{n}"], axis=0) for n in range(26)]
    for nodes, reader in ((repeated, "MatMul"), (joined, "Add"), (doubled, "Add")):
        codes, text, status = refused(bomb(*nodes, reader=reader), tmp_path)
        assert (codes, status) == (["E1007"], 1)
        assert "values is computed" in text


def test_a_value_without_a_name(tmp_path: Path) -> None:
    unnamed = wire((7, wire((12, b""))))
    assert "an output has no name" in refused(unnamed, tmp_path)[1]


def test_a_result_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], outputs=("y", "y"))
    codes, text, status = refused(model.SerializeToString(), tmp_path)
    assert (codes, status) == (["E1002"], 3)
    assert "y is defined twice, the second time by the list of results" in text


def test_a_result_of_another_size_than_the_file_says_is_noted(tmp_path: Path) -> None:
    """ONNX Runtime warns, and computes."""
    for declared, noted in (([2, 5], True), ([2, 4], False), (["n", 4], False), ([2, 4, 1], True)):
        model = model_of([helper.make_node("Relu", ["x"], ["y"])])
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, declared))
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        assert ("it is [2, 4]" in tpucc.import_onnx(tmp_path / "m.onnx").source) is noted


@each(["Cast", "Reshape", "Sub", "QLinearAdd", "DequantizeLinear", "QLinearConcat", "QGemm"])
def test_nodes_without_their_operands_beside_an_input_of_integers(op: str, tmp_path: Path) -> None:
    domain = "com.microsoft" if op.startswith("Q") else ""
    for operands in ([], ["x"]):
        model = model_of([helper.make_node(op, operands, ["y"], domain=domain, name="bare")])
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        codes, text, _ = refused(model.SerializeToString(), tmp_path)
        assert set(codes) <= {"E1001", "E1006", "E1007"}
        assert "bare" in text


@each(["Where", "Squeeze", "Unsqueeze"])
def test_operands_that_are_all_left_out(op: str, tmp_path: Path) -> None:
    model = model_of([helper.make_node(op, [""] * 3, ["y"], name="bare")])
    codes, text, _ = refused(model.SerializeToString(), tmp_path)
    assert codes == ["E1001"]
    assert "bare" in text
    assert "onnx.checker says: Node" in text


@each([0.0, float("inf"), float("nan"), -1.0, 1e-45])
def test_a_scale_of_an_input_that_is_none(scale: float, tmp_path: Path) -> None:
    model = model_of([helper.make_node("DequantizeLinear", ["x", "s"], ["y"])])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT8
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.FLOAT, [], [scale]))
    codes, text, _ = refused(model.SerializeToString(), tmp_path)
    assert codes == ["E1007"]
    assert "the input x" in text


@each(
    [
        (
            "LSTM",
            {"hidden_size": 8},
            {},
            "don't fit each other",
        ),
        ("GRU", {"hidden_size": "5"}, {}, "cell (GRU): onnx.checker says: Mismatched attribute type"),
        ("RNN", {"direction": "bidirectional"}, {}, "don't fit each other"),
        ("LSTM", {}, {"r": (20, 5)}, "don't fit each other"),
        ("LSTM", {}, {"w": (1, 16, 3)}, "don't fit each other"),
        ("GRU", {}, {"b": (1, 15)}, "don't fit each other"),
        ("LSTM", {}, {"c": (1, 2, 6)}, "don't fit each other"),
        ("RNN", {}, {"h": (1, 3, 5)}, "don't fit each other"),
    ]
)
def test_the_weights_of_a_recurrent_network_have_its_units(
    op: str, attributes: dict[str, Any], shapes: dict[str, tuple[int, ...]], says: str, tmp_path: Path
) -> None:
    gates = {"LSTM": 20, "GRU": 15, "RNN": 5}[op]
    wanted = {"w": (1, gates, 3), "r": (1, gates, 5), "b": (1, 2 * gates)} | shapes
    constants = [pytest.importorskip("onnx").numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in wanted.items()]
    states = ["", *(name if name in wanted else "" for name in "hc")]
    cell = helper.make_node(op, ["x", "w", "r", "b", *states[: None if op == "LSTM" else 2]], ["y"], name="cell", **attributes)
    codes, text, status = refused(model_of([cell], constants, {"x": (7, 2, 3)}).SerializeToString(), tmp_path)
    assert (codes, status) == (["E1001"], 3)
    assert says in text
