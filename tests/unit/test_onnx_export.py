"""`tpucc export`, `tpucc.export_onnx` and `tpucc judge --against onnxruntime`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import SMALL, run
from tests.support.onnxruntime import session as session_of
from tpucc.compilation import Compilation
from tpucc.driver import compile_source
from tpucc.interop.export import exported
from tpucc.interop.onnx.writing import file, layers
from tpucc.interop.outside import Session
from tpucc.interop.sources import read_source
from tpucc.layers.kinds import is_layer
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.ops.evaluate import evaluate
from tpucc.options import Options
from tpucc.passes.input_arrays import random_array
from tpucc.runtime import check

PROGRAMS = Path(__file__).parents[2] / "programs"
OTHERS = Path(__file__).parents[1] / "programs"
SMALLER = {
    "09_cifar_resnet": {"batch": "2", "n": "1"},
    "10_imdb_lstm": {"batch": "2", "time": "4", "words": "100"},
    "11_resnet50": {"size": "32", "classes": "10"},
    "14_digits_resnet": {"batch": "4"},
    "06_digits_lstm": {"batch": "4"},
    "12_mlp_mixer_block": {"patches": "20", "channels": "24"},
    "imdb_lstm": {"batch": "2", "time": "4"},
    "resnet": {"batch": "1", "blocks": "1"},
}
"""The params with which large programs have the same layers, and fewer of them."""
SOAK = {"11_resnet50", "08_fashion_cnn", "imdb_lstm", "mnist_cnn", "resnet"}
"""A program that takes seconds all the same, and those whose layers others have too."""
ALL = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.soak] if path.stem in SOAK else [])
    for folder in (PROGRAMS, OTHERS)
    for path in sorted(folder.glob("*.tpu"))
]
EIGHT = {"explicit_quantisation"}
"""Programs that say themselves that their integers have 8 bits."""
FLOAT_STEPS = {"attention": "layer_norm, softmax and products of two computed values are host steps between layers"}
"""Programs in whose layers integers differ, and why: float32 host steps come before them. docs/onnx-export.md has the operators."""
CLOSE = 1e-5
BLOCKS = """
weights random(seed=1)
model m(image: f32[2, 9, 9, 3] in [-1.0, 1.0]) -> f32[2, 5]:
    weight k: f32[3, 3, 3, 8] = "stem.kernel"
    weight b: f32[8] = "stem.bias"
    weight d: f32[3, 3, 1, 8]
    weight p: f32[1, 1, 8, 8]
    weight w: f32[8, 5] = "head.w"
    h = relu(conv2d(image, k, stride=2, padding="same") + b)
    g = relu6(conv2d(h, d, padding=1, groups=8))
    h = max_pool(concat([h + conv2d(g, p), g * 0.5]), 2)[:, :, :, 0:8]
    return global_avg_pool(avg_pool(h, 2, 1)) @ w
"""
PRODUCT = """
weights random(seed=1)
model m(x: f32[4, 30] in [-1.0, 1.0]):
    weight w: f32[30, 7]
    return x @ w
"""


def made(text: str, quantised: bool, **options: Any) -> onnx.ModelProto:
    exe = tpucc.compile_source(text, **options)
    assert exe.compilation is not None
    return onnx.load_from_string(exported(exe.compilation, quantised)[1])


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def compiled_at(path: Path, stage: str, bits: int = 8) -> Compilation:
    params = SMALLER.get(path.stem, {})
    return compile_source(read_source(path), path.parent, Options(stop_after=stage, activation_bits=bits, params=params))


@pytest.mark.parametrize("path", ALL)
def test_programs_in_float32(path: Path) -> None:
    compiled = compiled_at(path, "weights")
    assert compiled.graph is not None
    generator = np.random.default_rng(0)
    inputs = {node.name: random_array(generator, node.type) for node in compiled.graph.inputs}
    expected, found = evaluate(compiled.graph, inputs), Session(*exported(compiled, quantised=False)).run(inputs)
    for output, value in zip(compiled.graph.outputs, found.values(), strict=True):
        wanted = expected[output.node]
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        assert np.abs(value - wanted).max() <= CLOSE * np.abs(wanted).max()


INTEGERS = [
    pytest.param(*given.values, bits, id=f"{given.id}-{bits}", marks=[*given.marks, *([pytest.mark.soak] if (row + column) % 2 else [])])
    for row, given in enumerate(ALL)
    for column, bits in enumerate((8, 16))
    if bits == 8 or given.id not in EIGHT
]
"""Every program in one of the formats; in `make soak`, in both."""


@pytest.mark.parametrize(("path", "bits"), one_of(2, INTEGERS))
def test_programs_in_integers(path: Path, bits: int) -> None:
    """Every layer's integers, of the whole exported model; and they are the same with ONNX Runtime's optimizer, as a user has it."""
    compiled = compiled_at(path, "divide-batch", bits)
    assert compiled.layers is not None
    generator = np.random.default_rng(0)
    inputs = {node.name: random_array(generator, node.type) for node in compiled.layers.inputs}
    model, data = exported(compiled, quantised=True)
    shown = onnx.load_from_string(data)
    results = [node.name for node in compiled.layers if is_layer(node)]
    made = {node.name: node.output[0] for node in shown.graph.node if node.name in results}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made.values() if name not in model.outputs)
    session = session_of(shown, optimised=False)
    values = session.run([*made.values()], inputs) if made else []
    expected = evaluate(compiled.layers, inputs, LAYER_REFERENCES, keep=[*results, *compiled.layers.output_nodes])
    unequal = []
    for (name, value), found in zip(made.items(), values, strict=True):
        turned = found.transpose(0, 2, 3, 1) if value.endswith(".nchw") else found
        assert (turned.shape, turned.dtype) == (expected[name].shape, expected[name].dtype)
        unequal += [name] if not np.array_equal(turned, expected[name]) else []
    assert path.stem in FLOAT_STEPS or not unequal
    optimized = session_of(data).run(None, inputs)
    for output, value in zip(compiled.layers.outputs, optimized, strict=True):
        wanted = expected[output.node]
        assert np.abs(value - wanted).max() <= (0.05 if path.stem in FLOAT_STEPS else CLOSE) * np.abs(wanted).max()
    assert len(made) == len(results)


def test_a_network_of_images_is_turned_once() -> None:
    """Images are channels last outside and channels first inside; the first input is turned, and pooling over the image ends it."""
    floats, integers = made(BLOCKS, quantised=False), made(BLOCKS, quantised=True)
    assert kinds(floats)["Transpose"] == 1
    assert kinds(integers)["Transpose"] == 2, "the host packs pixels before the first, and the last has one pixel"
    for model in (floats, integers):
        assert [port.name for port in model.graph.input] == ["image"]
        assert [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim] == [2, 9, 9, 3]
        assert [port.name for port in model.graph.output] == ["out"]
        assert model.opset_import[0].version == 21
        assert (model.ir_version, model.producer_name, model.producer_version) == (10, "tpucc", tpucc.__version__)
        assert "model m(image: f32[2, 9, 9, 3]" in model.doc_string
    exe = tpucc.compile_source(BLOCKS)
    assert exe.compilation is not None
    inputs = {"image": np.random.default_rng(0).uniform(-1, 1, (2, 9, 9, 3)).astype(np.float32)}
    np.testing.assert_array_equal(Session(*exported(exe.compilation, quantised=True)).run(inputs)["out"], exe.run(inputs)["out"])
    assert kinds(integers) >= Counter(QLinearConv=5, MaxPool=1, QuantizeLinear=1, DequantizeLinear=1)


def test_weights_have_their_keys_and_convolutions_their_biases() -> None:
    model = made(BLOCKS, quantised=False)
    shapes = {constant.name: tuple(constant.dims) for constant in model.graph.initializer}
    assert shapes["stem.kernel"] == (8, 3, 3, 3)
    assert shapes["stem.bias"] == (8,)
    assert shapes["head.w"] == (8, 5)
    stem = next(node for node in model.graph.node if node.op_type == "Conv")
    assert [*stem.input][1:] == ["stem.kernel", "stem.bias"]
    assert stem.doc_string == "9:14-60", "what it comes from, in the source"


def test_scales_of_a_product_are_the_real_ones() -> None:
    """A reader of the file finds the scale of every value, and weights that are what they were."""
    exe = tpucc.compile_source(PRODUCT)
    assert exe.compilation is not None
    model, _ = exported(exe.compilation, quantised=True)
    (product,) = (node for node in model.nodes if node.op == "QLinearMatMul")
    x_scale, w, w_scale, y_scale = (model.initializers[product.inputs[index]] for index in (1, 3, 4, 6))
    (quantised,) = (node for node in model.nodes if node.op == "QuantizeLinear")
    assert x_scale == model.initializers[quantised.inputs[1]]
    real = exe.compilation.graph["w"].attributes.value.data
    np.testing.assert_allclose(w * w_scale, real, atol=float(w_scale.max()) / 2 * 1.001)
    assert y_scale == np.float32(exe.run_quantized(np.zeros((4, 30), np.float32))["out"].scale)


def test_the_same_bytes_for_the_same_model_and_any_number_of_cores(tmp_path: Path) -> None:
    first, second = (tpucc.compile_source(SMALL, cores=cores) for cores in (1, 2))
    for exe, name in ((first, "a.onnx"), (first, "b.onnx"), (second, "c.onnx")):
        tpucc.export_onnx(exe, tmp_path / name, quantized=True)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()


def test_an_output_with_the_name_of_an_input_has_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.tpu"
    source.write_text("model m(x: f32[2, 3]):\n    x = relu(x)\n    return x, x\n")
    assert run("export", source) == 0
    model = onnx.load(tmp_path / "m.onnx")
    names = [port.name for port in model.graph.output]
    assert len({"x", *names}) == 3
    assert f"x is an input too: ONNX's output is {names[0]}" in capsys.readouterr().err


def test_a_file_in_float32_that_rounds_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.tpu"
    source.write_text("model m(x: f32[2, 3]) -> f32[2, 3]:\n    return relu(dequantize(quantize(x, 0.5)))\n")
    for arguments, noted in (([], True), (["--quantized"], False)):
        assert run("export", source, *arguments) == 0
        assert ("ORT_DISABLE_ALL of its graph_optimization_level keeps them" in " ".join(capsys.readouterr().err.split())) is noted


@each(["x.npz", "x", "x.tpu", "x.onnx.txt"])
def test_an_onnx_file_has_such_a_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(SMALL)
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / name) == 2
    assert f"error E0505: can't write {tmp_path / name}: an ONNX file ends in .onnx" in capsys.readouterr().err
    with pytest.raises(tpucc.UsageError, match=r"an ONNX file ends in \.onnx"):
        tpucc.export_onnx(tpucc.compile(tmp_path / "m.tpu"), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_the_command_writes_a_file_with_the_usual_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(SMALL)
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / "q.onnx", "--quantized", "-D", "units=5", "--target", "tiny") == 0
    assert "q.onnx: " in capsys.readouterr().out
    model = onnx.load(tmp_path / "q.onnx")
    assert sorted(tuple(constant.dims) for constant in model.graph.initializer if len(constant.dims) == 2) == [(5, 3), (6, 5)]
    assert run("export", tmp_path / "m.tpu", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "m.onnx").exists()


def test_a_model_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(b"precious")
    assert run("export", tmp_path / "m.onnx") == 2
    assert "m.onnx: it is an input" in capsys.readouterr().err
    assert (tmp_path / "m.onnx").read_bytes() == b"precious"


def test_a_program_has_no_graph_to_export(tmp_path: Path) -> None:
    tpucc.compile_source(SMALL).save(tmp_path / "m.tpub")
    with pytest.raises(tpucc.UsageError, match="E0515"):
        tpucc.export_onnx(tpucc.load(tmp_path / "m.tpub"), tmp_path / "m.onnx")
    with pytest.raises(tpucc.UsageError, match="E0515"):
        tpucc.judge(tpucc.load(tmp_path / "m.tpub"), against="onnxruntime")


def test_a_file_needs_no_package_and_the_judge_says_which_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exe = tpucc.compile_source(SMALL)
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    tpucc.export_onnx(exe, tmp_path / "m.onnx")
    with pytest.raises(tpucc.UsageError, match=r"E1020.*onnxruntime") as found:
        tpucc.judge(exe, against="onnxruntime")
    assert "tpucc[onnxruntime]" in found.value.diagnostics[0].help[0]


def test_a_model_past_two_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file, "MOST_BYTES", 100)
    with pytest.raises(tpucc.LimitError, match=r"E1023.*288 bytes.*at most 100"):
        tpucc.export_onnx(tpucc.compile_source(SMALL), tmp_path / "m.onnx")


def test_sums_that_float32_does_not_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "EXACT", 9 * 255)
    text = "model m(x: f32[1, 5, 5, 2] in [-1.0, 1.0]):\n    return avg_pool(x, {}, 1)\n"
    assert made(text.format("(2, 4)"), quantised=True)
    with pytest.raises(tpucc.UsageError, match=r"E1022.*windows of 3×3 pixels have sums up to 2,295"):
        made(text.format("(3, 3)"), quantised=True)
    assert made(text.format("(5, 5)"), quantised=True), "over the whole image, sums are int32"


def test_the_outside_judge_agrees_and_finds_what_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that tpucc's reference and its machine have in common shows nowhere else."""
    exe = tpucc.compile_source(SMALL, cores=2)
    assert tpucc.judge(exe, against="onnxruntime").equal
    ports = type(exe.runtime).ports
    monkeypatch.setattr(type(exe.runtime), "ports", lambda *given, **named: {k: v ^ 1 for k, v in ports(*given, **named).items()})
    monkeypatch.setattr("tpucc.runtime.judge.compare_with_reference", lambda *_: list[check.Comparison]())
    assert tpucc.judge(exe).equal
    verdict = tpucc.judge(exe, against="onnxruntime")
    assert not verdict.equal
    assert verdict.first_difference is not None
    assert verdict.first_difference.stage == "ONNX Runtime"
    assert verdict.first_difference.line == 8


def test_the_judge_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(SMALL)
    assert run("judge", tmp_path / "m.tpu", "--against", "onnxruntime", "--quiet") == 0
    assert run("judge", tmp_path / "m.tpu", "--against", "onnxruntime") == 0
    printed = capsys.readouterr().out
    assert "m.tpu: equal to ONNX Runtime, too" in printed
    assert "own export" not in printed
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / "m.onnx") == 0
    assert run("judge", tmp_path / "m.onnx", "--against", "onnxruntime") == 0
    assert "note: ONNX Runtime has computed tpucc's own export of the layers" in capsys.readouterr().out


def test_a_layer_that_is_kept_must_be_there_in_a_float_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It changes nothing: all layers are in float32."""
    (tmp_path / "m.tpu").write_text("model m(x: f32[2, 3]):\n    return relu(x * 2.0)\n")
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / "a.onnx") == 0
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / "b.onnx", "--keep", "relu=host") == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert run("export", tmp_path / "m.tpu", "-o", tmp_path / "c.onnx", "--keep", "nosuch=host") == 2
    assert "E0534" in capsys.readouterr().err
    assert not (tmp_path / "c.onnx").exists()


@pytest.mark.parametrize("bits", [8, 16])
def test_onnxruntime_optimizes_the_file(bits: int) -> None:
    """Its optimizer makes an invalid node of DequantizeLinear where a maximum, say, follows: there it is written as what it computes."""
    text = """
weights random(seed=1)
model m(x: f32[2, 16] in [-1.0, 1.0]):
    weight w: f32[16, 16]
    h = reshape(x @ w, (2, 4, 4, 1))
    return softmax(transpose(max_pool(h, 3, 2, "same"), (0, 3, 1, 2))[:, 0])
"""
    data = made(text, quantised=True, activation_bits=bits).SerializeToString()
    x = np.random.default_rng(0).uniform(-1, 1, (2, 16)).astype(np.float32)
    (found,) = session_of(data).run(None, {"x": x})
    np.testing.assert_allclose(found, tpucc.compile_source(text, activation_bits=bits).run(x)["out"], rtol=CLOSE)


@each(["x @ w + b", "softmax(b + x @ w)", "max_pool(reshape(x, (2, 3, 2, 2)), 2)"])
def test_onnxruntime_optimizes_what_is_done_with_dequantised_values(text: str, tmp_path: Path) -> None:
    """So where Gemm would be put in the place of a product of more than two axes. Such a file is imported as others are."""
    lines = [
        "weights random(seed=1)",
        "model m(given: f32[2, 3, 4] in [-2.0, 2.0]):",
        "    weight w: f32[4, 5]",
        "    weight b: f32[5]",
        "    x = dequantize(quantize(given, 0.02, zero_point=3))",
        f"    return {text}",
    ]
    path = tmp_path / "model.onnx"
    path.write_bytes(made("\n".join(lines), quantised=False).SerializeToString())
    given = np.random.default_rng(0).uniform(-2, 2, (2, 3, 4)).astype(np.float32)
    found, wanted = (session_of(path, optimised=optimised).run(None, {"given": given})[0] for optimised in (True, False))
    np.testing.assert_allclose(found, wanted, rtol=CLOSE)
    assert "dequantize(quantize(given, 0.02, zero_point=3))" in tpucc.import_onnx(path).source


def test_a_value_that_is_dequantised_in_both_layouts_has_two_nodes_of_different_names() -> None:
    """ONNX Runtime refuses two nodes of one name. `resize` has images channels first, `softmax` as the language has them."""
    text = """
weights random(seed=1)
model m(x: f32[1, 4, 4, 2] in [-1.0, 1.0]):
    weight k: f32[3, 3, 2, 3]
    h = conv2d(x, k)
    return softmax(h), resize(h, 5, "bilinear")
"""
    model = made(text, quantised=True)
    assert kinds(model)["DequantizeLinear"] == 2
    assert len({node.name for node in model.graph.node}) == len(model.graph.node)
    session_of(model)


COMPUTED = """
param batch = 2
weights random(seed=3)

model mixed(x: f32[batch, 5, 8] in [-1.0, 1.0]) -> f32[batch, 5, 3]:
    weight q: f32[8, 6]
    weight k: f32[8, 6]
    weight bias: f32[5]
    weight out: f32[5, 3]
    h = relu(x @ q @ transpose(x @ k, (0, 2, 1)) + bias)
    return h @ out
"""


def test_a_product_by_a_computed_matrix_has_its_bias() -> None:
    """The host writes the matrix to weight memory, and the bias that was fused is added to the sums."""
    exe = tpucc.compile_source(COMPUTED, settings={"write-weights": {"computed_products": "device"}})
    assert exe.runtime.program.written_tiles
    verdict = tpucc.judge(exe, against="onnxruntime")
    assert verdict.equal, verdict
