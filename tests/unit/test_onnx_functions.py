"""The functions that quantised files say of their layers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.interop.onnx.functions import OPERATORS, Function, Step, function_of
from tpucc.interop.onnx.reading.exported.layers import WRITTEN
from tpucc.interop.onnx.reading.rules import RULES
from tpucc.ir.dtypes import I8
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import function_table
from tpucc.ops import OPS
from tpucc.ops.opdef import Clamp, Table
from tpucc.runtime.check import random_inputs

onnx = pytest.importorskip("onnx")


def test_every_function_of_the_device_has_a_name_that_is_read() -> None:
    """A new operator with a table or a clamp needs a row in `OPERATORS`."""
    assert {op for op, *_ in OPERATORS.values()} == {name for name, op in OPS.items() if isinstance(op.legalisation, Table | Clamp)}
    assert all((WRITTEN[name][0] if name in WRITTEN else name) in RULES for name in OPERATORS)


@each([op for op, *_ in OPERATORS.values()])
def test_a_step_of_an_operator_is_that_operator(op: str) -> None:
    numbers = {"alpha": 0.3, "low": -0.25, "high": 0.7}
    operator = OPS[op]
    fields = {name: numbers[name] for name in numbers if name in operator.attributes.__dataclass_fields__}
    attributes = operator.attributes(**fields)
    step = Step.of_operator(op, attributes)
    assert step is not None
    x = np.linspace(0.01, 9.0, 77)
    expected = operator.legalisation.function(attributes, x) if isinstance(operator.legalisation, Table) else None
    found = Function((step,)).of(x)
    np.testing.assert_array_equal(found, np.clip(x, *operator.legalisation.bounds(attributes)) if expected is None else expected)
    assert function_of(Function((Step("Sub", (-0.1,)), step)).text) == Function((Step("Sub", (-0.1,)), step))


@each(
    [
        "",
        "Foo",
        "Relu 1.0",
        "Elu",
        "Clip 1.0",
        "Add",
        "Add nan",
        "Add inf",
        "Add 1.0 2.0",
        "Relu,Relu",
        "Relu, ",
        " Relu",
        "Relu\n",
        "Add 0x1",
        ", ".join(["Relu"] * 5),
        "Identity, Relu",
    ]
)
def test_other_texts_are_no_functions(text: str) -> None:
    assert function_of(text) is None


def test_numbers_of_any_size_are_read() -> None:
    assert function_of("Add 1e400, Clip -3.4e+38 5") == Function((Step("Add", (np.inf,)), Step("Clip", (-3.4e38, 5.0))))
    assert function_of("Identity") == Function()


TEXT = """
weights random(seed=1)
model m(x: f32[4, 6] in [-1.0, 1.0]):
    weight w: f32[6, 5] = "w"
    weight v: f32[6, 5] = "v"
    return elu(abs(x @ w) - 0.5), {}(x @ v)
"""


def written(folder: Path, activation: str = "gelu", **options: int) -> tuple[Path, tpucc.Executable]:
    exe = tpucc.compile_source(TEXT.format(activation), **options)
    tpucc.export_onnx(exe, folder / "m.onnx", quantized=True)
    return folder / "m.onnx", exe


def changed(folder: Path, before: bytes, after: bytes) -> Path:
    path, _ = written(folder)
    assert before in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(before, after))
    return path


@each(
    {
        "another function": (b"Gelu", b"Tanh"),
        "another number": (b"Add -0.5", b"Add -0.6"),
        "too large a number": (b"Add -0.5", b"Add 1e09"),
        "one without values": (b"Gelu", b"Sqrt"),
    }
)
def test_a_table_of_another_function_than_the_file_says_is_damage(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = changed(tmp_path, before, after)
    name, said = ("gelu", after.decode()) if before == b"Gelu" else ("elu", f"Add {float(after[4:])}, Elu 1.0")
    with pytest.raises(tpucc.ProgramError, match=rf"m\.onnx: {name}: its table isn't that of '{said}' from the scale"):
        tpucc.import_onnx(path)


@each({"the scale before": (b"scale_and_zero_point_before", b"scale_and_zero_point_beforE"), "the function": (b"Gelu", b"gelu")})
def test_a_table_of_which_the_file_does_not_say(before: bytes, after: bytes, tmp_path: Path) -> None:
    with pytest.raises(tpucc.CompileError, match=r"E1006(.|\n)*which function this table has, or one that tpucc hasn't"):
        tpucc.import_onnx(changed(tmp_path, before, after))


@each([(8, "relu"), (16, "relu"), (8, "relu6"), (16, "relu6")])
def test_a_clamp_that_is_said_wrongly_is_read_of_the_integers(bits: int, activation: str, tmp_path: Path) -> None:
    path, exe = written(tmp_path, activation, activation_bits=bits)
    said = {"relu": (b"Relu", b"Tanh"), "relu6": (b"Relu6", b"Relu7")}[activation]
    assert said[0] in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(*said))
    inputs = random_inputs(exe.runtime, 3)
    again = tpucc.import_onnx(path).compile().run(inputs)
    for one, other in zip(again.values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_clamp_of_other_bounds_is_none() -> None:
    held = Quantisation(0.02, -128)
    assert Function((Step("Relu6"),)).has_bounds(-128, 127, held, I8)
    assert not Function((Step("Clip", (0.0, 2.0)),)).has_bounds(-128, 127, held, I8)
    assert not Function((Step("Relu"), Step("Relu"))).has_bounds(-128, 127, held, I8)
    assert not Function((Step("Tanh"),)).has_bounds(-128, 127, held, I8)


def test_a_table_of_no_steps_is_that_of_a_new_scale() -> None:
    x, y = Quantisation(0.02, -3), Quantisation(0.05, 4)
    assert Function().has_table(function_table(lambda value: value, x, y, I8), x, y, I8)
    assert not Function((Step("Relu"),)).has_table(function_table(lambda value: value, x, y, I8), x, y, I8)


SAID = re.compile(rb"\n\x14scale_and_zero_point\x12(.)([-0-9. e]+)")


def with_said(data: bytes, change: Callable[[str], str], number: int) -> bytes:
    """The file in which one entry says another scale and zero point, of the same number of letters."""
    found = list(SAID.finditer(data))[number]
    start, length = found.start(2), found[1][0]
    before = data[start : start + length].decode()
    return data[:start] + change(before)[:length].ljust(length, "0").encode() + data[start + length :]


@each(
    {
        f"{title} of layer {number}": (change, number)
        for title, change in {
            "another zero point": lambda text: f"{text.split()[0]} {'1' * len(text.split()[1])}",
            "another scale": lambda text: f"9{text[1:]}",
        }.items()
        for number in range(6)
    }
)
def test_another_scale_than_the_files_is_damage_or_changes_nothing(change: Callable[[str], str], number: int, tmp_path: Path) -> None:
    """The scale between two layers is nowhere else in the file, and the weights follow it: then the integers are the same."""
    text = (
        "weights random(seed=2)\nmodel m(x: f32[2, 6, 6, 3] in [-1.0, 1.0]) -> f32[2, 3, 3, 8], f32[2, 8]:\n    weight k: f32[3, 3, 3, 4]\n"
        "    weight w: f32[8, 8]\n    h = conv2d(x, k, padding=1)\n    h = concat([max_pool(h, 2), avg_pool(sigmoid(h), 2)], axis=3)\n"
        "    return h, softmax(global_avg_pool(h @ w))\n"
    )
    exe = tpucc.compile_source(text)
    tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
    (tmp_path / "m.onnx").write_bytes(with_said((tmp_path / "m.onnx").read_bytes(), change, number))
    inputs = random_inputs(exe.runtime, 3)
    try:
        again = tpucc.import_onnx(tmp_path / "m.onnx").compile().run(inputs)
    except (tpucc.CompileError, tpucc.ProgramError):
        return
    for one, other in zip(again.values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)


@each(["-0.1 0", "nan 0", "0.1", "0.1 0.5", "x", "0.1 99999", "0 0"])
def test_metadata_that_are_no_scale_are_damage(text: str, tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(with_said(data, lambda before: text.ljust(len(before)), 0))
    with pytest.raises(tpucc.ProgramError, match=r"E1001.*scale_and_zero_point is .*, which is no scale and zero point"):
        tpucc.import_onnx(path)


@each([("node", "scale_and_zero_point"), ("node", "function"), ("initializer", "weight"), ("initializer", "shape")])
def test_what_metadata_say_twice_is_damage(where: str, key: str, tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    model = onnx.load(path)
    said = next(holder.metadata_props for holder in getattr(model.graph, where) if key in [entry.key for entry in holder.metadata_props])
    said.add(key=key, value=said[0].value)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(tpucc.ProgramError, match=rf"E1001: m.onnx: .* has {key} twice"):
        tpucc.import_onnx(path)
