"""What is said of ONNX files that are damaged or beyond tpucc: the file, the node as the file has it, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import tpucc
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
        model_of([helper.make_node("TopK", ["x", "x"], ["a", "b"]), helper.make_node("Det", ["x"], ["y"])]).SerializeToString(),
        "E1006",
        ["tpucc has nothing for the operator TopK", "tpucc has nothing for the operator Det"],
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
    assert "E1006: b.onnx: tpucc has nothing for the operator TopK" in capsys.readouterr().err
