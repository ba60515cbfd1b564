"""Weights as people have them: float64, in PyTorch's layout, in safetensors files; and hostile files of these."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.data.safetensors import DTYPES, Safetensors
from tpucc.diagnostics import InputError, UsageError
from tpucc.numerics import AnyArray

SOURCE = """
weights "w.npz"
model m(x: f32[4, 3] in [-1.0, 1.0]):
    weight w: f32[3, 2]
    weight b: f32[2]
    return x @ w + b
"""
CONV = """
weights "w.npz"
model m(x: f32[1, 8, 8, 3] in [-1.0, 1.0]):
    weight k: f32[5, 4, 3, 2]
    return conv2d(x, k)
"""
W = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
B = np.array([0.5, -0.25], np.float32)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def compiled(folder: Path, source: str = SOURCE, file: str = "w.npz", **arrays: AnyArray) -> tpucc.Executable:
    if file.endswith(".npz"):
        np.savez(folder / file, **arrays)  # type: ignore[arg-type]
    return tpucc.compile_source(source, folder=folder)


def tensors(arrays: dict[str, tuple[str, list[int], bytes]], **more: Any) -> bytes:
    """A safetensors file of arrays as type, shape and bytes."""
    header, data = dict(more), b""
    for name, (kind, shape, values) in arrays.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def of(array: AnyArray, kind: str) -> tuple[str, list[int], bytes]:
    return kind, list(array.shape), array.astype(DTYPES[kind]).tobytes()


def test_a_weight_of_a_def_is_shown_with_the_calls_that_led_there(tmp_path: Path) -> None:
    source = """weights "w.npz"
def layer(x, name):
    weight w: f32[3, 3] = name + ".w"
    return x @ w
def two(x):
    return layer(x, "a")
model m(x: f32[4, 3] in [-1.0, 1.0]):
    return two(x)
"""
    for arrays in ({"a.w": W}, {"b.w": W}, {"a.w": np.full((3, 3), np.nan, np.float32)}):
        with pytest.raises(InputError) as caught:
            compiled(tmp_path, source, **arrays)
        assert [label.span.line for label in caught.value.diagnostics[0].labels] == [3, 6, 8]


def test_float64_is_rounded_and_said_once(tmp_path: Path) -> None:
    exe, exact = compiled(tmp_path, w=W.astype(np.float64), b=B.astype(np.float64)), compiled(tmp_path, w=W, b=B)
    (note,) = [text for text in exe.warnings if "float64" in text]
    assert note.startswith("w.npz: all weights are float64 and are rounded to float32")
    np.testing.assert_array_equal(exe.run(X)["out"], exact.run(X)["out"])
    assert not [text for text in exact.warnings if "float" in text]


def test_some_weights_of_float64_are_named(tmp_path: Path) -> None:
    exe = compiled(tmp_path, w=W, b=B.astype(np.float64))
    assert any("1 weight (b) is float64 and is rounded" in text for text in exe.warnings)


def test_other_floats_are_taken_as_they_are(tmp_path: Path) -> None:
    exe = compiled(tmp_path, w=W.astype(">f4"), b=B.astype(np.float16))
    np.testing.assert_array_equal(exe.run(X)["out"], compiled(tmp_path, w=W, b=B).run(X)["out"])
    assert not [text for text in exe.warnings if "float" in text]


@each([(-1e300, r"-1e\+300, beyond what float32 holds"), (np.inf, "infinite"), (np.nan, "NaN")])
def test_float64_that_float32_has_no_number_for(value: float, found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"E0427.*b\[1\] is {found}\n"):
        compiled(tmp_path, w=W, b=np.array([0, value]))


def test_integers_are_no_weights(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E0426") as caught:
        compiled(tmp_path, w=np.ones((3, 2), np.int64), b=B)
    assert "w is int64[3, 2]" in str(caught.value)
    assert "astype('float32')" in str(caught.value)
    for kind, words in ((np.complex64, "array.real are the real parts"), (np.str_, "save numbers, not text")):
        with pytest.raises(InputError, match=f"(?s)E0426.*{words}"):
            compiled(tmp_path, w=np.ones((3, 2), kind), b=B)


@each(
    [
        (SOURCE, {"w": W.T, "b": B}, "transposed it fits: save array.T"),
        (SOURCE, {"w": W, "b": B.reshape(2, 1)}, "save array.reshape(2)"),
        (CONV, {"k": np.zeros((2, 3, 5, 4), np.float32)}, "save array.transpose(2, 3, 1, 0)"),
    ]
)
def test_another_layout_is_named(source: str, arrays: dict[str, AnyArray], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E0425") as caught:
        compiled(tmp_path, source, **arrays)
    assert words in str(caught.value)


def test_a_shape_that_no_order_of_axes_mends_gets_no_such_help(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E0425") as caught:
        compiled(tmp_path, w=np.zeros((4, 2), np.float32), b=B)
    assert "array." not in str(caught.value)
    assert "for other sizes write weights random(seed=0)" in str(caught.value)


@pytest.mark.parametrize("kind", ["F64", "F32", "F16", "BF16"])
def test_safetensors(tmp_path: Path, kind: str) -> None:
    """Values that every type holds exactly give what an npz archive of float32 gives."""
    w, b = np.array([[1.5, -2], [0.25, 3], [-0.5, 1]], np.float32), np.array([0.5, -1], np.float32)

    def stored(array: AnyArray) -> tuple[str, list[int], bytes]:
        if kind == "BF16":
            return kind, list(array.shape), (array.view(np.uint32) >> 16).astype("<u2").tobytes()
        return of(array, kind)

    (tmp_path / "w.safetensors").write_bytes(tensors({"b": stored(b), "w": stored(w)}, __metadata__={"format": "pt"}))
    exe = compiled(tmp_path, SOURCE.replace("w.npz", "w.safetensors"), "")
    np.testing.assert_array_equal(exe.run(X)["out"], compiled(tmp_path, w=w, b=b).run(X)["out"])
    assert any("float64" in text for text in exe.warnings) == (kind == "F64")


def test_safetensors_that_do_not_fit_are_refused_as_npz_is(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(tensors({"w": of(W.T, "F32"), "c": of(B, "I32")}))
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, SOURCE.replace("w.npz", "w.safetensors"), "")
    assert [d.code for d in caught.value.diagnostics] == ["E0423", "E0424", "E0425"]


def test_another_model_s_file_is_one_error(tmp_path: Path) -> None:
    """And not one for each key of either."""
    names = "abcde"
    declared = "".join(f"    weight {name}: f32[3, 3]\n" for name in names)
    source = f'weights "w.npz"\nmodel m(x: f32[2, 3]):\n{declared}    return x @ a @ b @ c @ d @ e\n'
    np.savez(tmp_path / "w.npz", **{f"layer{index}": np.ones((3, 3), np.float32) for index in range(7)})
    with pytest.raises(InputError) as caught:
        tpucc.compile_source(source, folder=tmp_path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message.endswith("has none of the model's 5 weights")) == ("E0423", True)
    assert found.help == (
        "is it another model's file? It has layer0, layer1, layer2 and 4 others; the model declares a, b, c and 2 others",
    )


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="E0420"):
        Safetensors(tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match="E0420"):
        Safetensors(tmp_path)


def header(text: str | bytes, data: bytes = b"") -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw + data


def one(entry: str, count: int) -> bytes:
    return header('{"w": ' + entry + "}", bytes(count))


GOOD = '{"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}'


@each(
    [
        (b"", "not a safetensors file"),
        (b"PK\x03\x04 an npz archive", "its header would have"),
        (struct.pack("<Q", 2**63) + b"{}", "its header would have"),
        (struct.pack("<Q", 20 * 2**20) + b" " * 100, "its header would have"),
        (header("nonsense"), "JSON"),
        (header(b"\xff\xfe"), "JSON"),
        (header("[" * 100_000), "JSON"),
        (header("9" * 10_000), "JSON"),
        (header("[]"), "a table"),
        (header(f'{{"w": {GOOD}, "w": {GOOD}}}', bytes(8)), "there twice"),
        (header('{"w": 3}'), "needs dtype, shape and data_offsets"),
        (header('{"w": {"dtype": "F32", "shape": [2]}}'), "needs dtype, shape and data_offsets"),
        (one(GOOD.replace("F32", "F8_E4M3"), 8), "F8_E4M3, which tpucc doesn't read"),
        (one(GOOD.replace('"F32"', "[]"), 8), "data type"),
        (one(GOOD.replace("[2]", "[-2]"), 8), "no readable shape"),
        (one(GOOD.replace("[2]", "[2.0]"), 8), "no readable shape"),
        (one(GOOD.replace("[2]", "[true, 2]"), 8), "no readable shape"),
        (one(GOOD.replace("[2]", str([1] * 40)), 8), "no readable shape"),
        (one(GOOD.replace("[2]", "[1073741824, 1073741824]"), 8), "has 8 bytes, and F32"),
        (one(GOOD.replace("[2]", "[0, 8589934592, 8589934592]").replace("[0, 8]", "[0, 0]"), 0), "no readable shape"),
        (one(GOOD.replace("[0, 8]", "[8, 0]"), 8), "no readable data_offsets"),
        (one(GOOD.replace("[0, 8]", "[0, 8, 9]"), 8), "no readable data_offsets"),
        (one(GOOD.replace("[0, 8]", "[0, 7]"), 8), "has 7 bytes, and F32"),
        (header(f'{{"w": {GOOD}, "v": {GOOD}}}', bytes(8)), "overlap"),
        (one(GOOD.replace("[0, 8]", "[4, 12]"), 12), "leave a gap"),
        (one(GOOD, 7), "cut off"),
        (one(GOOD, 9), "something at its end"),
    ]
)
def test_a_malformed_file_is_refused_before_anything_is_read(content: bytes, words: str, tmp_path: Path) -> None:
    (path := tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="E0421") as caught:
        Safetensors(path)
    assert words in str(caught.value)


def test_every_cut_and_every_changed_byte_ends_in_a_message_or_in_values(tmp_path: Path) -> None:
    good = tensors({"w": of(W, "F32"), "b": of(B, "F32")})
    path = tmp_path / "w.safetensors"
    for content in [*(good[:length] for length in range(len(good))), *(good[:i] + b"}" + good[i + 1 :] for i in range(len(good)))]:
        path.write_bytes(content)
        try:
            with Safetensors(path) as file:
                for key in file.members:
                    file.read(key)
        except InputError:
            continue
        assert len(content) == len(good)
