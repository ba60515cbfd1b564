"""What is asked for wrongly, from Python or by files: one message that names what was meant, never a fault of tpucc."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NoReturn

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.diagnostics import Diagnostic, UsageError, reason
from tpucc.output_files import write_files
from tpucc.target import load_target, with_overrides

SMALL = "param n = 3\nmodel small(x: f32[n, 5]):\n    return relu(x)\n"
STORED = 'weights "w.npz"\nmodel stored(x: f32[3, 5]):\n    weight w: f32[5, 2]\n    return x @ w\n'


def refused(kind: type[tpucc.Error], text: str = SMALL, **options: Any) -> Diagnostic:
    """The first diagnostic of a compilation that fails."""
    with pytest.raises(kind) as caught:
        tpucc.compile_source(text, **options)
    return caught.value.diagnostics[0]


@each(
    [
        ({"level": 7}, "found 7"),
        ({"level": -1}, "found -1"),
        ({"activation_bits": 4}, "found 4"),
        ({"settings": {"calibrate": {"method": 3}}}, "method of calibrate is like 'minmax', found 3"),
        ({"settings": {"calibrate": {"rows": "all"}}}, "found 'all'"),
    ]
)
def test_options_out_of_their_bounds(options: Mapping[str, Any], found: str) -> None:
    error = refused(UsageError, **options)
    assert (error.code, found in error.message) == ("E0518", True)


@each(["methd", "name", "level"])
def test_an_unknown_option_of_a_pass_names_those_that_there_are(name: str) -> None:
    error = refused(UsageError, settings={"calibrate": {name: "percentile"}})
    assert error.code == "E0509"
    assert error.help[-1] == "there are method, percentile, rows"


def test_a_whole_number_will_do_where_a_number_is_wanted() -> None:
    settings = {"calibrate": {"method": "percentile", "percentile": 99}}
    assert tpucc.compile_source(SMALL, settings=settings).stats["model"] == "small"


@each([np.int64(7), np.int8(7), 7])
def test_params_take_numpy_s_integers(value: object) -> None:
    assert tpucc.compile_source(SMALL, params={"n": value}).run(x=np.ones((7, 5)))["out"].shape == (7, 5)


def test_params_take_lists_of_strings_and_numpy_s_numbers() -> None:
    text = 'param sizes = ["", 0]\nmodel m(x: f32[sizes[1]]):\n    weight w: f32[sizes[1], 1] = sizes[0]\n    return x @ w\n'
    made = tpucc.compile_source(f"weights random(seed=0)\n{text}", params={"sizes": ('a"{b}', np.int32(4))}).compilation
    assert made is not None
    assert made.model is not None
    assert [(n.attributes.key, n.type.shape) for n in made.model.graph if n.op == "weight"] == [('a"{b}', (4, 1))]


@pytest.mark.parametrize(("name", "mend"), [("X", "did you mean x?"), ("image", "its inputs are x")])
def test_an_unknown_input_names_those_that_there_are(name: str, mend: str) -> None:
    with pytest.raises(tpucc.InputError) as caught:
        tpucc.compile_source(SMALL).run({name: np.ones((3, 5))})
    assert caught.value.diagnostics[0].help == (mend,)


# Files that the source names


def test_a_missing_archive_is_shown_where_the_source_names_it(tmp_path: Path) -> None:
    error = refused(UsageError, STORED, folder=tmp_path)
    assert (error.code, error.labels[0].span.line, error.labels[0].span.column) == ("E0420", 1, 9)


def test_a_key_too_many_is_shown_where_the_source_names_the_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", w=np.ones((5, 2), np.float32), v=np.ones(2, np.float32))
    error = refused(tpucc.InputError, STORED, folder=tmp_path)
    assert (error.code, error.labels[0].span.line) == ("E0424", 1)


def test_a_missing_key_keeps_the_place_of_its_weight(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", W=np.ones((5, 2), np.float32))
    error = refused(tpucc.InputError, STORED, folder=tmp_path)
    assert (error.code, error.labels[0].span.line, error.help) == ("E0423", 3, ("did you mean W?",))


@each(
    [
        ({}, "E0441"),
        ({"x": np.ones((3, 4))}, "E0443"),
        ({"x": np.full((3, 5), np.nan)}, "E0445"),
        ({"x": np.ones((3, 5)), "z": np.ones(2)}, "E0442"),
    ]
)
def test_calibration_arrays_that_do_not_fit_are_shown_where_the_source_names_them(
    arrays: Mapping[str, np.ndarray[Any, Any]], code: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "c.npz", **arrays)  # type: ignore[arg-type]
    error = refused(tpucc.InputError, f'{SMALL}calibration "c.npz"\n', folder=tmp_path)
    assert (error.code, [(label.span.line, label.span.column) for label in error.labels]) == (code, [(4, 13)])
    error = refused(tpucc.InputError, SMALL, folder=tmp_path, calibration=tmp_path / "c.npz")
    assert (error.code, error.labels) == (code, ())


def test_a_malformed_calibration_is_shown_where_the_source_names_it(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_text("no archive")
    error = refused(tpucc.InputError, f'{SMALL}calibration "c.npz"\n', folder=tmp_path)
    assert (error.code, error.labels[0].span.line) == ("E0421", 4)


def test_an_empty_calibration_says_so(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x=np.ones((0, 5), np.float32))
    error = refused(tpucc.InputError, f'{SMALL}calibration "c.npz"\n', folder=tmp_path)
    assert (error.code, error.message) == ("E0443", "the calibration's x has no rows")


def test_a_program_given_as_a_source_is_named(tmp_path: Path) -> None:
    tpucc.compile_source(SMALL).save(tmp_path / "small.tpub")
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.compile(tmp_path / "small.tpub")
    assert caught.value.diagnostics[0].help == ("tpucc run, profile and disasm take it, under a name that ends in .tpub",)


def test_what_can_t_be_written_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UsageError) as caught:
        write_files(tmp_path / "taken", {"a": b""})
    assert caught.value.diagnostics[0].message == f"can't write {tmp_path / 'taken'}: not a directory"


# Memory


@dataclass(frozen=True)
class Hungry:
    """A pass that finds no memory."""

    name: ClassVar[str] = "hungry"
    summary: ClassVar[str] = "asks for too much"
    level: ClassVar[int] = 0

    def run(self, graph: tpucc.Graph, _context: tpucc.Context) -> tpucc.Graph:
        raise MemoryError


def test_a_pass_without_memory_is_named() -> None:
    error = refused(tpucc.PluginError, passes=(Hungry(),))
    assert (error.code, error.message) == ("E0613", "the pass hungry takes more memory than there is")


def test_an_input_past_memory_is_a_limit_at_its_place() -> None:
    error = refused(tpucc.LimitError, params={"n": 10**9})
    assert (error.code, error.labels[0].span.line) == ("E0640", 2)


def refuse_to_draw(*_: object) -> NoReturn:
    raise AssertionError("weights are drawn before the limit is found")


@pytest.mark.parametrize(
    ("code", "line", "text"),
    [
        ("E0640", 2, "model m(x: f32[100000000, 8]):\n    weight w: f32[8, 4]\n    return x @ w\n"),
        ("E0640", 4, "model m(x: f32[30000, 8]):\n    weight w: f32[8, 30000]\n    return x @ w\n"),
        pytest.param(
            "E0605",
            5,
            "model m(x: f32[8, 8]):\n    weight w: f32[8, 8]\n    for i in range(100000):\n        x = x @ w\n    return x\n",
            marks=pytest.mark.long,
        ),
        ("E0610", 3, "model m(x: f32[1, 20000]):\n    weight w: f32[20000, 20000]\n    return x @ w\n"),
    ],
)
def test_what_is_too_large_is_found_before_anything_is_drawn(code: str, line: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.data.weights.random_array", refuse_to_draw)
    error = refused(tpucc.LimitError, f"weights random(seed=0)\n{text}")
    assert (error.code, error.labels[0].span.line) == (code, line)


def test_what_compiles_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One limit for the host's values, of the model as the passes have made it: a program that could not be run is not written."""
    text = "weights random(seed=0)\nmodel m(x: f32[4, 8]):\n    weight w: f32[8, 4]\n    return softmax(x @ w)\n"
    made = tpucc.compile_source(text)
    made.save(tmp_path / "m.tpub")
    monkeypatch.setattr("tpucc.ops.evaluate.MAX_BYTES", 127)
    words = r"f32\[4, 8\] takes 128 bytes, and a value has at most 127"
    with pytest.raises(tpucc.LimitError, match=words):
        tpucc.load(tmp_path / "m.tpub")
    with pytest.raises(tpucc.LimitError, match=words):
        tpucc.compile_source(text)


# The two ends of the device: nothing to do, too much to hold


def test_a_model_without_device_work_is_bound_by_nothing() -> None:
    idle = tpucc.compile_source("model idle(x: f32[3, 5]):\n    return softmax(x, axis=0)\n")
    texts = (" ".join(str(idle.timeline).split()), idle._repr_html_())
    assert "nothing runs on the device" in texts[0]
    assert all("host work" in text for text in texts), "it takes all the time from end to end"
    assert not any("nothing bound" in text for text in texts)


def test_a_model_without_operators_has_no_bottleneck() -> None:
    empty = tpucc.compile_source("model empty(x: f32[3, 5]):\n    return x\n")
    assert empty.stats["end_to_end"]["bottleneck"] == "nothing"
    host = tpucc.compile_source("model host(x: f32[3, 5]):\n    return softmax(x)\n")
    assert "(10.02 µs instead of 0.00 µs)." in tpucc.compare(empty, host).cause


def test_weights_past_the_weight_memory_are_shown_at_their_declaration() -> None:
    text = "weights random(seed=0)\nmodel m(x: f32[2, 9000]):\n    weight w: f32[9000, 300]\n    return x @ w\n"
    error = refused(tpucc.LimitError, text, target="tiny")
    assert (error.code, error.labels[0].span.line) == ("E0622", 3)


BORDERED = """weights random(seed=0)
model m(x: f32[1, 3, 400, 1]):
    weight w: f32[3, 3, 1, 8]
    weight v: f32[1200, 8]
    return conv2d(x, w, padding="same"), flatten(x) @ v
"""


def test_operands_that_do_not_fit_have_the_names_of_the_source() -> None:
    """What doesn't fit is our own copy of x; neither its name nor that of x's integers is one that the source has."""
    error = refused(tpucc.LimitError, BORDERED, target="tiny", level=0)
    assert error.code == "E0621"
    assert error.message.startswith("copying x for a band of lines of conv2d takes ")
    assert not set("#.") & set(error.message)
    assert [(label.span.line, label.text) for label in error.labels] == [
        (2, ""),
        (5, "a band of lines of conv2d reads a copy with a border of zero points"),
    ]


def test_weights_that_fit_without_their_parameter_blocks_only_are_shown_at_the_directive(tmp_path: Path) -> None:
    text = "weights random(seed=0)\nmodel m(x: f32[2, 4]):\n    weight w: f32[4, 4]\n    return x @ w\n"
    small = with_overrides(load_target("tiny"), {"weight_memory_bytes": 16})
    error = refused(tpucc.LimitError, text, target=small)
    assert (error.code, [(label.span.line, label.span.column) for label in error.labels]) == ("E0622", [(1, 9)])
    np.savez(tmp_path / "w.npz", w=np.ones((4, 4), np.float32))
    error = refused(tpucc.LimitError, text, target=small, weights=tmp_path / "w.npz")
    assert (error.code, error.labels) == ("E0622", ())


def test_weights_too_large_to_draw_are_shown_where_the_largest_is_declared() -> None:
    weights = "    weight v: f32[2, 60000]\n    weight w: f32[60000, 60000]\n"
    error = refused(tpucc.LimitError, f"weights random(seed=0)\nmodel m(x: f32[2, 2]):\n{weights}    return x @ v @ w\n")
    assert (error.code, error.labels[0].span.line) == ("E0610", 4)


# Files that can't be had: why, in the same words wherever a file is read or written


@each(
    [
        (what, *wrong)
        for what in ("source", "weights", "calibration", "target", "pass", "input")
        for wrong in (("nowhere", "no such file"), ("folder", "is a directory"))
    ]
)
def test_the_reason_is_plain(what: str, name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, wrong = tmp_path / "m.tpu", tmp_path / f"{name}{'.toml' if what == 'target' else ''}"
    source.write_text(SMALL)
    if name == "folder":
        wrong.mkdir()
    option = {"weights": "--weights", "calibration": "--calibrate", "target": "--target", "pass": "--pass", "input": "--input"}.get(what)
    assert main(["run", str(source), option, str(wrong)] if option else ["run", str(wrong)]) == 2
    printed = capsys.readouterr().err
    assert f"{wrong}: {why}\n" in printed
    assert "Errno" not in printed


def test_a_target_that_is_no_text_says_where() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_bytes(b'name = "\xff"')
        with pytest.raises(UsageError, match=r"E0503.*machine\.toml: byte 8 is not UTF-8"):
            load_target(str(path))


@each([errno.EACCES, errno.ENOSPC, errno.ENOTDIR, errno.EADDRINUSE, 0])
def test_a_reason_has_no_number(number: int) -> None:
    words = reason(OSError(number, "Something Else") if number else OSError("no number at all"))
    assert words in {"permission denied", "the disk is full", "not a directory", "Something Else", "no number at all"}


# Another kind of file in the place of a source: one message, which says what takes it

LISTING = "".join(f"read_host ub={n} host={n} rows=1\n" for n in range(30))


KINDS = [
    ("M.ASM", LISTING.encode(), "M.ASM is a listing,", "tpucc asm makes a program of it"),
    ("w.npz", b"PK\x03\x04\x14\0", "an archive of arrays", "--weights"),
    ("w", b"PK\x03\x04\x14\0", "an archive of arrays", "--weights"),
    ("w.npy", b"\x93NUMPY\x01\0", "a single array", "np.savez"),
    ("m.tflite", b"\x08\x07\x12\x07pytorch", "a model of TensorFlow Lite", "tf2onnx"),
    ("m.pt", b"PK\x03\x04\x14\0", "a model of PyTorch", "torch.onnx.export"),
    ("m.keras", b"PK\x03\x04\x14\0", "a model of Keras", "tpucc import"),
    ("m.tpu", b"\x89TPUB\r\n\x1a", "a compiled program", ".tpub"),
    ("m.svg", b"<svg xmlns='x'>", "a picture", ".tpu"),
    ("m.tpu", b"<?xml version='1.0'?>\n<svg/>", "a picture or a document", ".tpu"),
    ("m.tpu", b"\n<SVG xmlns='x'>", "a picture", ".tpu"),
    ("report", b"\xef\xbb\xbf<!DOCTYPE html>", "a page", "browser"),
    ("m.py", b"import torch\n\nclass Net:\n    pass\n", "is Python,", "--pass"),
    ("m.ipynb", b'{"cells": []}', "a notebook", "Jupyter"),
    ("m.tpu", b"\x7fELF\x02\x01", "a machine's program", ".tpu"),
]
"""A file's name, its bytes, what it is taken for, and what helps."""


@each([(command, *kind) for kind in KINDS for command in ("run", "check")])
def test_another_kind_of_file_is_one_message(
    command: str, name: str, data: bytes, says: str, helps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert main([command, str(tmp_path / name)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error E") == 1
    assert ("E0121" in printed, says in printed, helps in printed) == (True, True, True)


@each(
    [
        ("m.asm", LISTING.encode(), "m.asm is a listing,", "tpucc asm makes a program of it"),
        ("m.graph", b"graph m\n", "a graph in text form", "tpucc opt"),
        ("m.tile", b".program m stage=tile\n", "a tile program in text form", "tpucc compile goes on from it"),
    ]
)
def test_the_text_of_a_stage_is_no_source(
    name: str, data: bytes, says: str, helps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But compile and check go on from it."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(tpucc.CompileError, match="E0121") as caught:
        tpucc.compile(tmp_path / name)
    assert (says in str(caught.value), helps in str(caught.value)) == (True, True)
    for command in ("run", "check"):
        assert main([command, str(tmp_path / name)]) == 3
        assert "E0121" not in capsys.readouterr().err


def test_a_large_file_of_another_kind_is_named_before_its_size(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"PK\x03\x04" + bytes(9 * 2**20))
    with pytest.raises(tpucc.CompileError, match="E0121"):
        tpucc.compile(tmp_path / "w.npz")


def test_what_is_no_text_and_of_no_known_kind_is_one_message_too(tmp_path: Path) -> None:
    (tmp_path / "m.tpu").write_bytes(b"\0\x01\xfe\xff" * 99)
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.compile(tmp_path / "m.tpu")
    assert [(d.code, d.help) for d in caught.value.diagnostics] == [("E0101", ("a source is text and ends in .tpu",))]
