"""What each layer costs: against a float computation with one layer's integers in it, by hand; and the command that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.operator_graphs import built
from tests.unit.test_fidelity import ByHand, dense, drawn, sqnr
from tpucc.cli.main import main
from tpucc.data.archive import npz_bytes
from tpucc.explain.noise import noise_of
from tpucc.explain.sensitivity import losses
from tpucc.passes.kept_layers import kept_layers
from tpucc.runtime.check import float_reference

ROOT = Path(__file__).resolve().parents[2]


def test_a_network_by_hand(tmp_path: Path) -> None:
    """relu(x @ a + b) @ c: with only x, only the first product or only the second in integers, and the rest in float64."""
    exe = dense(tmp_path)
    inputs = drawn(4, 7, 6).clip(-3, 3)
    assert exe.compilation is not None
    found = losses(exe.compilation, exe.runtime, {"x": inputs})
    assert found is not None
    by_name = {loss.error.name: loss for loss in found.layers}
    x, a, b, c = (array.astype(np.float64) for array in (inputs, drawn(1, 6, 5), drawn(2, 5), drawn(3, 5, 3)))
    h = np.maximum(x @ a + b, 0)
    hand = ByHand([by_name[name].error for name in ("x.i8", "one", "two")], -128, 127)

    def real(q: object, held: tuple[float, int]) -> object:
        return held[0] * (np.asarray(q) - held[1])

    quantised_x, quantised_h = hand.quantised(x, hand.x), hand.quantised(h, hand.one)
    first = real(hand.product(quantised_x, hand.x, a, b, hand.one, hand.one[1]), hand.one)
    second = real(hand.product(quantised_h, hand.one, c, np.zeros(3), hand.two, -128), hand.two)
    outputs = {"x.i8": np.maximum(np.asarray(real(quantised_x, hand.x)) @ a + b, 0) @ c, "one": np.asarray(first) @ c, "two": second}
    for name, output in outputs.items():
        assert by_name[name].output_sqnr == pytest.approx(sqnr(h @ c, np.asarray(output)), abs=1e-3)
    ratios = [loss.output_sqnr for loss in found.layers]
    assert ratios == sorted(ratios)
    reference = float_reference(exe.compilation.graph, {"x": inputs})  # type: ignore[arg-type]
    assert found.output_sqnr == pytest.approx(next(iter(noise_of(exe.runtime.run({"x": inputs}), reference).values())).sqnr)
    assert (found.rows, found.accuracy, found.float_accuracy) == (7, None, None)


def test_labels_give_the_accuracy_with_each_layer(tmp_path: Path) -> None:
    """With the float classes as labels, the float accuracy is 1; rows that fill the last round don't count."""
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu", params={"batch": 8})
    held = np.load(ROOT / "programs" / "02_iris_test.npz")
    inputs = {"x": held["x"][:21]}
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    labels = next(iter(float_reference(exe.compilation.graph, inputs).values())).argmax(axis=1)
    labels[3] = (labels[3] + 1) % 3
    found = losses(exe.compilation, exe.runtime, inputs, labels)
    assert found is not None
    assert found.float_accuracy == pytest.approx(20 / 21)
    assert all(loss.accuracy is not None and round(loss.accuracy * 21, 6).is_integer() for loss in found.layers)


@pytest.mark.parametrize("value", ["0.0", "0.7"])
def test_a_constant_output_has_no_ratio_wherever_one_is_shown(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tpu").write_text(f"model m(x: f32[4, 3]):\n    return x @ full((3, 2), 0.0) + {value}\n")
    np.savez("x.npz", x=drawn(0, 4, 3))
    assert main(["run", "m.tpu", "--check", "--calibrate", "x.npz"]) == 0
    assert "no signal to noise, as it is constant in float32" in " ".join(capsys.readouterr().out.split())
    assert main(["run", "m.tpu", "--check", "--json", "--calibrate", "x.npz"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["check"]["float"].values()
    assert (found["snr_db"], found["is_constant"]) == (None, True)
    assert main(["profile", "m.tpu", "--error", "--calibrate", "x.npz"]) == 0
    text = capsys.readouterr().out
    assert "the outputs have no signal to noise: they are constant in float32" in text
    assert re.search(r"fc +2 +one value +one value +one value", text)
    assert main(["compile", "m.tpu", "--calibrate", "x.npz", "--quiet", "-o", "out"]) == 0
    page = Path("out", "report.html").read_text()
    assert re.search(r"m: the last layer has no signal to noise: it is constant in float32", page)
    assert "It has no signal to noise, as its values are constant in float32." in page


def test_the_command_prints_a_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    iris = str(ROOT / "programs" / "02_iris.tpu")
    assert main(["profile", iris, "--error", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "in float32, " in text
    assert "only it" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["profile", iris, "--error", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [layer["only_snr_db"] for layer in found["layers"]] == sorted(layer["only_snr_db"] for layer in found["layers"])
    assert {"name", "kind", "line", "only_snr_db", "alone_snr_db", "snr_db", "accuracy", "keep"} == set(found["layers"][0])
    assert found["inputs"] == "02_iris_test.npz"
    Path("m.tpu").write_text("weights random(seed=0)\nmodel m(x: f32[4, 3]):\n    weight w: f32[3, 2]\n    return x @ w\n")
    assert main(["profile", "m.tpu", "--error"]) == 2
    assert "E0533: m.tpu has no examples" in capsys.readouterr().err
    Path("x.npz").write_bytes(npz_bytes({"x": drawn(1, 9, 3)}))
    assert main(["profile", "m.tpu", "--error", "--calibrate", "x.npz"]) == 0
    assert "9 rows of the calibration" in capsys.readouterr().out
    assert main(["profile", "m.tpu", "--error", "--cores", "1,2"]) == 2


def test_rows_beside_the_source_need_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the inputs of such a file are taken; a note says where they don't fit. The heading says which rows of how many are taken."""
    monkeypatch.chdir(tmp_path)
    Path("m.tpu").write_text("weights random(seed=0)\nmodel m(x: f32[4, 3]):\n    weight w: f32[3, 2]\n    return x @ w\n")
    Path("x.npz").write_bytes(npz_bytes({"x": drawn(1, 9, 3)}))
    command = ["profile", "m.tpu", "--error", "--calibrate", "x.npz"]
    Path("m_test.npz").write_bytes(npz_bytes({"x": drawn(2, 300, 3), "y": drawn(3, 300, 2)}))
    assert main(command) == 0
    assert "on 256 of 300 rows of m_test.npz, evenly spread\n" in capsys.readouterr().out.replace("\n  ", " ")
    for arrays, why in (({"y": drawn(3, 5, 2)}, "has no array x"), ({"x": drawn(2, 5, 4)}, "x has shape [5, 4]")):
        Path("m_test.npz").write_bytes(npz_bytes(arrays))
        assert main(command) == 0
        told = capsys.readouterr()
        assert re.search(rf"note: m_test.npz isn't measured on: .*{re.escape(why)}", told.err), told.err
        assert "on 9 rows of the calibration inputs" in told.out.replace("\n  ", " ")
    Path("m_test.npz").write_bytes(npz_bytes({"x": drawn(2, 5, 3), "y": drawn(3, 5, 2), "labels": np.zeros(5, np.int32)}))
    assert main(command) == 3
    assert "E0442: m_test.npz: the example set has an array y, but the model has no such input" in capsys.readouterr().err


LOOPED = """
weights random(seed=0)
def step(x, h):
    weight u: f32[6, 6] = "rnn.u"
    weight w: f32[6, 6] = "rnn.w"
    return tanh(x @ u + h @ w)
model m(x: f32[4, 3, 6]):
    h = zeros([4, 6])
    hs = []
    for t in range(3):
        h = step(x[:, t], h)
        hs = hs + [h]
    weight k: f32[2, 2, 2, 3] = "up.k"
    up = conv_transpose2d(reshape(concat(hs, axis=1), (4, 3, 3, 2)), k, stride=2)
    return relu(up)
"""


def test_each_row_says_what_keep_takes_for_its_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts of layers, values that are moved and integers that are made have names that `--keep` refuses."""
    monkeypatch.chdir(tmp_path)
    Path("m.tpu").write_text(LOOPED)
    Path("x.npz").write_bytes(npz_bytes({"x": drawn(1, 8, 3, 6)}))
    command = ["profile", "m.tpu", "--error", "--calibrate", "x.npz", "--quiet"]
    assert main([*command, "--json"]) == 0
    rows = {layer["name"]: layer["keep"] for layer in json.loads(capsys.readouterr().out)["layers"]}
    read = built(LOOPED)
    assert all(kept_layers(read, [name]) for keep in rows.values() for name in keep)
    assert all(rows.values())
    others = {name for name, keep in rows.items() if keep != [name]}
    assert len(others) > 3
    assert rows["relu.10"] == ["up"], "a transposed convolution's row is named after its activation"
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "keep: what --keep takes" in text
    for line in text.splitlines():
        if (row := line.split()) and row[0] in rows:
            assert (row[-1] in rows[row[0]]) is (row[0] in others), line
    Path("m.tpu").write_text(LOOPED.replace("rnn", "a_long_name_of_a_layer.rnn"))
    assert main(command) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "as it runs keep" not in words, "it would cut the names"
    assert re.search(r"a_long_name_of_a_layer\.rnn\.1: matmul\.\d+", words)
