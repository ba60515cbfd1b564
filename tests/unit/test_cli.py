"""The command line: what it prints, the files it writes, and its exit statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import SMALL, run
from tpucc.cli.commands import COMMANDS
from tpucc.data.archive import npz_bytes
from tpucc.explain.noise import ROUNDED
from tpucc.sim.fast.execute import Simulator

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def test_help_lists_every_command_without_importing_numpy() -> None:
    code = "import sys, tpucc.cli.main as m; m.main(['--help']); assert 'numpy' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in result.stdout for name in COMMANDS)


@each(list(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help") == 0
    assert "Usage: tpucc" in capsys.readouterr().out


def test_compile_writes_the_files_of_the_contract(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", small) == 0
    wanted = {"small.graph", "small.layers.graph", "small.tile", "small.asm", "small.tpub", "stats.json", "report.html"}
    wanted |= {"graph.svg", "graph.dot", "layers.svg", "layers.dot", "memory.svg", "timeline.svg"}
    assert wanted <= {path.name for path in Path("build/small").iterdir()}
    out = capsys.readouterr().out
    assert "report.html" in out
    assert "bottleneck" in out
    assert max(map(len, out.splitlines())) <= 80


def test_compile_draws_errors_where_there_are_examples(small: Path) -> None:
    np.savez("x.npz", x=np.ones((8, 6), np.float32))
    assert run("compile", small, "--quiet", "-o", "without") == run("compile", small, "--quiet", "-o", "with", "--calibrate", "x.npz") == 0
    without, found = ({path.name for path in Path(folder).iterdir()} for folder in ("without", "with"))
    assert found - without == {"histograms.svg", "error.svg"}


def test_stats_have_the_keys_of_the_contract(small: Path) -> None:
    run("compile", small, "--quiet", "-o", "out")
    stats = json.loads(Path("out/stats.json").read_text())
    top = "model target tpucc cycles seconds macs tops utilization instructions tiles weight_bytes ub_peak_bytes ub_lower_bound_bytes"
    assert set(top.split()) | {"host_bytes", "breakdown", "bottleneck", "layers"} <= set(stats)
    parts = stats["breakdown"]
    assert parts["array_active"] + parts["weight_stall"] + parts["weight_shift"] + parts["non_matrix"] == pytest.approx(100)
    assert sum(layer["cycles"] for layer in stats["layers"]) == stats["cycles"]
    assert stats["macs"] == 4 * (6 * 8 + 8 * 3)
    assert [(layer["line"], layer["kind"]) for layer in stats["layers"]] == [(8, "fc"), (8, "fc"), (5, "input")]


def test_emit_writes_only_what_was_asked(small: Path) -> None:
    assert run("compile", small, "--emit", "stats,tpub", "-o", "out", "--quiet") == 0
    assert {path.name for path in Path("out").iterdir()} == {"stats.json", "small.tpub"}
    assert run("compile", small, "--emit", "stuff") == 2


def test_json_is_the_only_thing_on_standard_output(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--json")
    assert json.loads(capsys.readouterr().out)["model"] == "small"
    run("run", small, "--check", "--json")
    assert json.loads(capsys.readouterr().out)["check"]["integer"]


def test_a_program_and_its_source_give_the_same_outputs(small: Path) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (4, 6)).astype(np.float32)
    Path("x.npz").write_bytes(npz_bytes({"x": x}))
    run("compile", small, "--quiet")
    assert run("run", small, "--input", "x.npz", "--output", "a.npz", "--quantized-output", "q.npz", "--quiet") == 0
    assert run("run", "build/small/small.tpub", "--input", "x.npz", "--output", "b.npz", "--check", "--quiet") == 0
    assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes()
    outputs = np.load("a.npz")
    assert outputs["out"].shape == (4, 3)
    np.testing.assert_allclose(outputs["out"].sum(axis=1), 1, rtol=1e-6)


def test_what_ran_is_what_is_checked(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device runs once for each round, with --check too: what the user gets is what is compared."""
    ran: list[int] = []
    simulate = Simulator.run
    monkeypatch.setattr(Simulator, "run", lambda self, *given: ran.append(1) or simulate(self, *given))
    Path("x.npz").write_bytes(npz_bytes({"x": np.ones((10, 6), np.float32)}))
    run("compile", small, "--quiet")
    for model in (small, "build/small/small.tpub"):
        ran.clear()
        assert run("run", model, "--input", "x.npz", "--output", "y.npz", "--check", "--quiet") == 0
        assert len(ran) == 3, model


def test_other_batches_run_in_rounds(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (10, 6)).astype(np.float32)
    Path("x.npz").write_bytes(npz_bytes({"x": x}))
    assert run("run", small, "--input", "x.npz", "--output", "y.npz", "--check") == 0
    out = capsys.readouterr().out
    assert "3 rounds" in out
    assert "(36 elements, those of the padding included)" in " ".join(out.split())
    assert np.load("y.npz")["out"].shape == (10, 3)


def test_quantised_outputs_come_with_their_parameters(small: Path) -> None:
    source = SMALL.replace("softmax(", "(")
    small.write_text(source)
    assert run("run", small, "--output", "y.npz", "--quantized-output", "q.npz", "--quiet") == 0
    q, y = np.load("q.npz"), np.load("y.npz")
    assert q["out"].dtype == np.int8
    np.testing.assert_array_equal((q["out"].astype(np.int32) - q["out.zero_point"]).astype(np.float32) * q["out.scale"], y["out"])


def test_listings_assemble_back(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--quiet")
    capsys.readouterr()
    assert run("disasm", "build/small/small.tpub") == 0
    Path("again.asm").write_text(capsys.readouterr().out)
    assert run("asm", "again.asm", "-o", "again.tpub") == 3
    assert "E0760" in capsys.readouterr().err
    assert run("asm", "again.asm", "-o", "again.tpub", "--like", small) == 0
    assert Path("again.tpub").read_bytes() == Path("build/small/small.tpub").read_bytes()
    assert Path("build/small/small.asm").read_text() == Path("again.asm").read_text()


def test_passes_run_on_graphs_in_text_form(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--quiet", "--emit", "graph", "-o", "out")
    assert run("opt", "out/small.graph", "-p", "place,calibrate{rows=16},fuse-activation,quantise{granularity=per_tensor}") == 0
    assert "fc(" in capsys.readouterr().out
    assert run("opt", "out/small.graph", "-p", "fuse-activations") == 2
    assert "did you mean fuse-activation" in capsys.readouterr().err


def test_many_errors_are_bounded_and_a_help_is_said_once(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has all of them, each with its help."""
    lines = "".join(f"    y{number} = x[1 / 2]\n" for number in range(12))
    small.write_text(SMALL.replace("    return", f"{lines}    return"))
    assert run("check", small) == 1
    said = capsys.readouterr().err
    assert (said.count(": error E"), said.count("\nhelp: ")) == (10, 1)
    assert said.endswith("\n\n… and 2 more; --json prints all\n")
    assert run("check", small, "--json") == 1
    assert [len(found["help"]) for found in json.loads(capsys.readouterr().out)] == [1] * 12


def test_more_rows_than_the_host_s_memory_has_are_told_at_the_line_of_the_value(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tpucc.driver.HOST_ROWS", 5)
    for command in ("check", "compile"):
        assert run(command, small) == 4
        assert capsys.readouterr().err.startswith("small.tpu:5:13: error E0640: host memory of 8 rows ")


def test_a_value_that_differs_is_told_at_the_line_that_computes_it(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--quiet", "--emit", "asm", "-o", "out")
    wrong = Path("out/small.asm")
    wrong.write_text(wrong.read_text().replace("block=1", "block=0"))
    assert run("run", wrong, "--like", small, "--check", "--quiet") == 1
    assert re.search(r"(?m)^small\.tpu:8:\d+: error E0910: .* elements differ; the first is .*\n   8 \| ", capsys.readouterr().err)


def test_accuracy_is_spoken_of_where_values_are_shown(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where weights are random there is none to speak of."""
    assert run("run", small) == 0
    assert "no calibration inputs" not in capsys.readouterr().err
    Path("small.npz").write_bytes(npz_bytes({"w": np.ones((6, 8), np.float32), "v": np.ones((8, 3), np.float32)}))
    small.write_text(SMALL.replace("weights random(seed=1)", 'weights "small.npz"'))
    for command, said in ((("run", "--quiet"), False), (("run",), True), (("profile",), False), (("judge",), False)):
        assert run(command[0], small, *command[1:]) == 0
        assert ("no calibration inputs" in capsys.readouterr().err) == said, command


def test_float32_of_a_source_that_quantises_values_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, wherever it is compared with; not where the source quantises weights alone, or no float32 is shown."""
    np.savez(tmp_path / "x.npz", x=np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6))
    held = "dequantize(quantize({}, 0.01))"
    for name, result, said in (("values", held.format("x @ w"), 1), ("weights", f"x @ {held.format('w')}", 0)):
        (tmp_path / f"{name}.tpu").write_text(
            f'weights random(seed=1)\ncalibration "x.npz"\nmodel {name}(x: f32[4, 6]):\n    weight w: f32[6, 5]\n    return {result}\n'
        )
        commands = (("run", "--check"), said), (("profile", "--error"), said), (("run",), 0), (("profile",), 0)
        for (command, *options), times in commands:
            assert run(command, tmp_path / f"{name}.tpu", *options, "--target", "tiny") == 0
            assert " ".join(capsys.readouterr().err.split()).count(f"note: {ROUNDED}") == times, (name, command, options)
    run("compile", tmp_path / "values.tpu", "--target", "tiny", "--emit", "report", "--quiet", "-o", tmp_path)
    assert "The source quantises values." in (tmp_path / "report.html").read_text()


def test_what_only_graphs_have_stands_apart_from_what_a_source_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops") == 0
    called, _, others = capsys.readouterr().out.partition("\nin graphs only, ")
    assert ("\nrelu " in called, "\npatches " in called) == (True, False)
    assert ("\nrelu " in others, "\npatches " in others) == (False, True)
    assert run("ops", "patches") == 0
    assert "\nin graphs only: a source can't call it\n" in capsys.readouterr().out


def test_passes_run_on_the_graph_of_a_source(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the graph that compiling writes: with the params, the weights and the calibration of the source."""
    run("compile", small, "--quiet", "-D", "batch=2", "--emit", "graph,layers,tile", "-o", "out")
    assert run("opt", small, "-D", "batch=2") == 0
    assert capsys.readouterr().out == Path("out/small.graph").read_text()
    assert run("opt", small, "-D", "batch=2", "-p", "place,calibrate,fuse-activation,quantise") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(Path("out/small.layers.graph").read_text().splitlines())
    assert run("opt", "out/small.tile") == 3
    assert "small.tile is the text of a later stage, which no pass takes\nhelp: opt takes a source" in capsys.readouterr().err
    assert run("opt", small, "--like", small) == 2
    capsys.readouterr()
    assert run("opt", small, "-p", "quantise") == 3
    assert capsys.readouterr().err.startswith("small.tpu:5:13: error E0806: ")
    assert run("opt", "out/small.layers.graph", "--like", small, "-p", "place") == 3
    assert "E0806: relu isn't an operator but fc: only operator graphs are placed" in capsys.readouterr().err


def test_a_pass_of_a_file_is_seen_also_where_it_does_nothing(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its row says so; what replaces a pass of tpucc's is said to, and what `opt` isn't asked for."""
    lines = "import dataclasses\n"
    for name in ("idle", "fuse-bias"):
        lines += f"@dataclasses.dataclass(frozen=True)\nclass {name.title().replace('-', '')}:\n    name = '{name}'\n    summary = ''\n"
        lines += "    def run(self, graph, context): return graph\n"
    Path("mine.py").write_text(lines)
    duty = "makes one operator of a product and the constant that is added to it"
    replaced = f"note: the pass fuse-bias (mine.py:11) stands in the place of tpucc's own, which {duty}\n"
    assert run("compile", small, "--pass", "mine.py", "--emit", "asm") == 0
    out, err = capsys.readouterr()
    assert re.search(r"(?m)^idle +no change +[\d.]+$", out)
    assert re.search(r"(?m)^fuse-bias +no change +[\d.]+$", out)
    assert replaced in err
    assert run("opt", small, "--pass", "mine.py", "-p", "place,fuse-bias") == 0
    assert capsys.readouterr().err == f"note: idle of mine.py does not run: --passes names what runs, as in --passes idle\n{replaced}"


@pytest.mark.parametrize(("name", "duty"), [("place", "decides what runs on"), ("calibrate", "measures the range of")])
def test_what_a_replaced_pass_does_not_do_is_said_where_it_is_missed(
    name: str, duty: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the error of the later pass that needs it: warnings of what can't be compiled aren't printed."""
    Path("mine.py").write_text(f"class Mine:\n    name, summary = '{name}', ''\n    def run(self, graph, context): return graph\n")
    assert run("compile", small, "--pass", "mine.py") == 3
    error = capsys.readouterr().err
    assert "error E0806: " in error
    assert f"help: the pass {name} (mine.py:3) stands in the place of tpucc's own, which {duty}" in error
    assert ". It must do so too: compiling needs it. A pass of another name is added to tpucc's\n" in error


def test_passes_and_operators_explain_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands for the levels is said above the list and below one pass; an operator's ONNX form once."""
    for words, expected in (
        (("passes",), "or where --with NAME asks for it dead-code -O1"),
        (("passes", "fuse-bias"), "asks for it Rewrites `x @ w + b`"),
        (("ops", "relu"), "and costs nothing. In ONNX: Relu."),
    ):
        assert run(*words) == 0
        assert expected in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("bits", "held"), [("8", "i8[4, 8]"), ("16", "i16[4, 8]")])
def test_passes_hold_values_in_as_many_bits_as_asked(small: Path, bits: str, held: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the bits and cores of a compilation, the passes make the layers of that compilation."""
    run("compile", small, "--quiet", "--emit", "graph", "-o", "out")
    assert run("opt", "out/small.graph", "-p", "place,calibrate,fuse-activation,quantise", "--activation-bits", bits) == 0
    out = capsys.readouterr().out
    assert held in out
    assert ("i16" in out) == (bits == "16")
    assert run("opt", "out/small.graph", "--activation-bits", "12") == 2


def test_passes_divide_among_cores(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--quiet", "--emit", "layers", "-o", "whole")
    run("compile", small, "--quiet", "--emit", "layers", "-o", "part", "--cores", "2")
    assert run("opt", "whole/small.layers.graph", "-p", "divide-batch", "--cores", "2", "--like", small) == 0
    assert capsys.readouterr().out == Path("part/small.layers.graph").read_text().replace(" after divide-batch\n", "\n")
    assert run("opt", "whole/small.layers.graph", "-p", "divide-batch", "--cores", "3", "--like", small) == 2
    assert "E0508" in capsys.readouterr().err
    assert run("opt", "whole/small.layers.graph", "--cores", "0") == 2


def test_stages_are_printed_dumped_and_stopped_at(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", small, "--print-after", "fuse-activation", "--dump-dir", "dump", "--stop-after", "lower", "--quiet") == 0
    assert "linear(" in capsys.readouterr().out
    names = sorted(path.name for path in Path("dump").iterdir())
    assert names[0] == "01-elaborate.graph"
    assert names[-1].endswith("-lower.tile")
    assert not Path("build").exists()
    assert run("compile", small, "--stop-after", "lowering") == 2
    assert "did you mean lower" in capsys.readouterr().err


PASS = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "says hello"
    after: ClassVar[str] = "dead-code"
    def run(self, graph, context):
        BODY
"""


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("return graph.noting('hello from mine')", 0, "hello from mine"),
        ("return None", 1, "the pass mine returned None, expected a Graph"),
        ("raise KeyError('x')", 1, "the pass mine raised KeyError: 'x'"),
        ("return graph.with_nodes(reversed(graph.nodes))", 1, "the pass mine made a graph that is not valid"),
    ],
)
def test_passes_from_a_file(small: Path, capsys: pytest.CaptureFixture[str], body: str, status: int, words: str) -> None:
    Path("mine.py").write_text(PASS.replace("BODY", body))
    assert run("compile", small, "--pass", "mine.py") == status
    assert words in capsys.readouterr().err


@each(
    [
        ("def run(graph, context):\n    return graph\n", "mine.py:1:1: error E0513: mine.py defines no pass: a function is none, run"),
        (PASS.replace("summary", "text"), "mine.py:6:1: error E0513: mine.py defines no pass: the class Mine has no summary"),
        ("x = 1\n", "mine.py defines no pass: it has no class"),
        (PASS.replace("    def run", "    level = 9\n    def run"), "E0514: mine.py: Mine with the level 9, which isn't a pass"),
        (PASS.replace("dead-code", "dead-cod"), "no pass is named dead-cod, after which the pass mine is to run (mine.py:10)"),
    ]
)
def test_a_file_without_a_pass_is_told_what_it_lacks(text: str, words: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(text.replace("BODY", "return graph"))
    assert run("check", small, "--pass", "mine.py") == 2
    assert words in capsys.readouterr().err


def test_a_fault_saves_what_reproduces_it(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.passes.dead_code.dead_code.run", lambda step, graph, context: {}["x"])
    assert run("compile", small) == 5
    saved = [path for path in small.parent.iterdir() if path.name.startswith("tpucc-fault-")]
    assert len(saved) == 1
    assert "model small" in saved[0].read_text()
    assert "Traceback" not in capsys.readouterr().err


REWRITES = """
from dataclasses import replace

from tpucc.passes.base import Pass


class Noted(Pass):
    name, summary, level = "noted", "another name", 1

    def run(self, graph, context):
        return replace(graph, name="noted")
"""


@pytest.mark.parametrize(("options", "status", "said"), [((), 5, "E0905"), (("--pass", "noted.py"), 1, "E0525: the pass noted")])
def test_a_program_that_the_verifier_refuses_is_no_fault_of_the_model(
    options: tuple[str, ...], status: int, said: str, small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its engines wait for nothing. A pass of the user's that changed the graph may be to blame; else tpucc is, and saves a reproducer."""
    Path("noted.py").write_text(REWRITES)
    monkeypatch.setattr("tpucc.schedule.pipeline.with_waits", lambda listing, waits: listing)
    assert run("compile", small, *options) == status
    shown = capsys.readouterr().err
    assert said in shown
    assert "error V08" in shown
    assert len(list(small.parent.glob("tpucc-fault-*"))) == (status == 5)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check", "small.tpu"], 0),
        (["check", "nowhere.tpu"], 2),
        (["compil", "small.tpu"], 2),
        (["compile", "small.tpu", "-D", "batch"], 2),
        (["compile", "small.tpu", "-D", "btach=3"], 2),
        (["compile", "small.tpu", "-D", "batch=)"], 2),
        (["check", "small.tpu", "-D", "batch=0"], 2),
        (["compile", "small.tpu", "-D", "batch=2.5"], 2),
        (["compile", "small.tpu", "--target", "tpu_v9"], 2),
        (["compile", "small.tpu", "--weights", "nowhere.npz"], 2),
        (["compile", "small.tpu", "--weights", "small.tpu"], 3),
        (["run", "small.tpu", "--input", "small.tpu"], 3),
        (["run", "bad.tpub"], 3),
        (["disasm", "bad.tpub"], 3),
        (["asm", "bad.asm"], 3),
        (["opt", "bad.graph"], 3),
        (["compile", "bad.tpu"], 1),
        (["compile", "latin.tpu"], 1),
        (["compile", "small.tpu", "-o", "small.tpu"], 2),
        (["explain", "E0301"], 0),
        (["explain", "301"], 0),
        (["explain", "E9999"], 2),
        (["explain", "-1"], 2),
        (["ops", "conv2d"], 0),
        (["ops", "conv3d"], 2),
        (["targets", "tpu_v1"], 0),
        (["passes"], 0),
        (["passes", "fuse-bias"], 0),
        (["passes", "fuse-bia"], 2),
        (["doctor"], 0),
    ],
)
def test_exit_statuses(small: Path, arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bad.tpub", "bad.asm", "bad.graph", "bad.tpu"):
        Path(name).write_text("nonsense here\n")
    Path("latin.tpu").write_bytes(b"# caf\xe9\n" + SMALL.encode())
    assert run(*arguments) == status
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert captured.err or status == 0


def test_weights_that_do_not_fit_are_all_listed(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.npz").write_bytes(npz_bytes({"w": np.zeros((6, 9), np.float32), "vv": np.full((8, 3), np.nan, np.float32)}))
    assert run("compile", small, "--weights", "w.npz") == 3
    err = capsys.readouterr().err
    assert "no weight v" in err
    assert "did you mean vv" in err
    assert "float32[6, 9]" in err
    Path("w.npz").write_bytes(npz_bytes({"w": np.zeros((6, 8), np.float32), "v": np.full((8, 3), np.nan, np.float32)}))
    assert run("compile", small, "--weights", "w.npz") == 3
    assert "v[0, 0] is NaN" in capsys.readouterr().err


@each(
    [
        (np.full((4, 6), "one"), "error E0433: x.npz: input x is <U3"),
        (np.zeros((4, 7), np.float32), "error E0451: x.npz: input x has the shape [4, 7], and the model takes [n, 6]"),
        (np.zeros(6, np.float32), "error E0451: x.npz: input x has the shape [6], and the model takes [n, 6]"),
        (np.zeros((0, 6), np.float32), "error E0431: x.npz: the inputs have no rows"),
        (np.full((4, 6), 1e300), "error E0434: x.npz: input x[0, 0] is infinite"),
        (np.full((4, 6), np.nan, np.float32), "x[0, 0] is NaN"),
        (np.full((4, 6), np.inf, np.float32), "x[0, 0] is infinite"),
    ]
)
def test_inputs_that_do_not_fit(array: np.ndarray, words: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.npz").write_bytes(npz_bytes({"x": array}))
    assert run("run", small, "--input", "x.npz") == 3
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "judge"])
def test_inputs_of_other_names_are_refused(small: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    Path("x.npz").write_bytes(npz_bytes({"y": np.zeros((4, 6), np.float32)}))
    assert run(command, small, "--input", "x.npz") == 3
    err = capsys.readouterr().err
    assert "error E0432: x.npz: the model has no input y" in err
    assert "an array named labels" in err
    Path("x.npz").write_bytes(npz_bytes({"labels": np.zeros(4)}))
    assert run(command, small, "--input", "x.npz") == 3
    assert "error E0450: x.npz: the input x is missing: f32[4, 6]" in capsys.readouterr().err


def test_files_are_converted_as_arrays_are(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both take numbers of any type, and both say when values change by it."""
    x = np.linspace(-1, 1, 24).reshape(4, 6)
    expected = tpucc.compile(small).run(x.astype(np.float32))["out"]
    for array, changed in ((x, False), (x.astype(">f4"), False), (x * 2**60 // 1, False), ((x * 2**60).astype(np.int64), True)):
        Path("x.npz").write_bytes(npz_bytes({"x": array}))
        assert run("run", small, "--input", "x.npz", "--output", "y.npz", "--check") == 0
        assert ("change as int64 becomes float32" in capsys.readouterr().err) == changed
        if np.abs(array).max() <= 1:
            np.testing.assert_array_equal(np.load("y.npz")["out"], expected)


@each(["check", "compile", "run"])
def test_a_held_out_set_of_another_model_is_refused_by_its_name(command: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("small_test.npz").write_bytes(npz_bytes({"x": np.zeros((4, 7), np.float32), "labels": np.zeros(4, int)}))
    assert run(command, small) == 3
    assert "small_test.npz: " in capsys.readouterr().err


def test_the_file_of_calibration_inputs_is_named(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.npz").write_bytes(npz_bytes({"x": np.zeros((4, 7), np.float32)}))
    assert run("check", small, "--calibrate", "c.npz") == 3
    assert "error E0443: c.npz: the calibration's x has shape [4, 7]" in capsys.readouterr().err
    np.save("c.npy", np.zeros((4, 6)))
    assert run("check", small, "--calibrate", "c.npy") == 3
    assert "error E0421: c.npy: a single array, which has no name\nhelp: np.savez" in capsys.readouterr().err


def test_trace_is_json_with_named_lanes(small: Path) -> None:
    assert run("profile", small, "--trace", "t.json") == 0
    events = json.loads(Path("t.json").read_text())
    assert events


@pytest.mark.parametrize("kind", ["graph", "layers", "tiles", "program", "memory", "timeline", "roofline"])
def test_see_draws_each_kind(small: Path, kind: str) -> None:
    assert run("viz", small, "--kind", kind, "-o", "p.svg", "--quiet") == 0
    assert Path("p.svg").read_text().startswith(("<svg", "<?xml"))


def test_graphviz_draws_a_diagram_where_it_is_asked_to(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the ending of the file; the DOT is that of the file `.dot`."""
    assert run("viz", small, "-o", "p.dot", "--quiet") == 0
    dot = Path("p.dot").read_bytes()
    assert run("viz", small, "--graphviz", "-o", "p.dot", "--quiet") == 2
    assert "Graphviz writes .svg, .png, .pdf" in capsys.readouterr().err
    assert run("viz", small, "--graphviz", "--kind", "memory", "--quiet") == 2
    assert "memory is no diagram" in capsys.readouterr().err
    for kind, ending, says in (
        ("layers", "png", "--graphviz writes a diagram as .png"),
        ("memory", "dot", "memory is no diagram"),
    ):
        assert run("viz", small, "--kind", kind, "-o", f"p.{ending}", "--quiet") == 2
        assert says in " ".join(capsys.readouterr().err.split())
    if find_spec("pygraphviz"):
        assert run("viz", small, "--graphviz", "-o", "p.svg", "--quiet") == 0
        assert b"Generated by graphviz" in Path("p.svg").read_bytes()
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with monkeypatch.context() as pipe:
        pipe.setattr("graphviz.pipe", lambda engine, ending, given: f"{engine} {ending} {given == dot}".encode())
        assert run("viz", small, "--graphviz", "-o", "p.png", "--quiet") == 0
    assert Path("p.png").read_bytes() == b"dot png True"
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("viz", small, "--graphviz", "-o", "q.svg", "--quiet") == 2
    assert "Graphviz isn't installed: python -m pip install pygraphviz" in capsys.readouterr().err


@pytest.mark.long
def test_the_report_has_the_values_that_are_asked_for(small: Path) -> None:
    """Without examples none; with --values those of a run on random inputs; of a model with examples the usual ones, or none."""
    texts = {}
    Path("x.npz").write_bytes(npz_bytes({"x": np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 6)}))
    for name, options in {
        "bare": (),
        "asked": ("--values", "3:7"),
        "one": ("--values", "0"),
        "usual": ("--calibrate", "x.npz"),
        "none": ("--calibrate", "x.npz", "--values", "none"),
    }.items():
        assert run("report", small, "-o", "page.html", "--quiet", *options) == 0
        texts[name] = Path("page.html").read_text()
    said = {name: re.search(r'"left_out":"([^"]*)"', text) for name, text in texts.items()}
    words = {name: found[1] for name, found in said.items() if found}
    assert all("The page has no values of a run." in words[name] for name in ("bare", "none"))
    assert " Values on random inputs, of instructions 3 to 7 of " in words["asked"]
    assert " Values on random inputs, of instructions 0 to 0 of " in words["one"]
    assert " Values on the first batch of the calibration inputs, of all " in words["usual"]
    assert len(texts["one"]) - len(texts["bare"]) < 2000


@each(
    [
        ("7:3", "there are instructions 0 to"),
        ("0:9999", "there are instructions 0 to"),
        ("a:b", "neither instructions like 400:799 nor none"),
        ("1:2:3", "neither instructions like"),
    ]
)
def test_values_that_no_program_has(values: str, says: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", small, "--values", values, "--quiet") == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["histograms", "error"])
def test_see_draws_errors_where_there_are_examples(small: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("viz", small, "--kind", kind, "-o", "p.svg") == 2
    assert "error E0533: small.tpu has no examples" in capsys.readouterr().err
    assert not Path("p.svg").exists()
    Path("x.npz").write_bytes(npz_bytes({"x": np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 6)}))
    assert run("viz", small, "--kind", kind, "-o", "p.svg", "--calibrate", "x.npz") == 0
    assert f"{kind} of small" in capsys.readouterr().out
    assert "Nothing saturates" in Path("p.svg").read_text()
    assert run("compile", small, "--emit", "tpub", "--quiet") == 0
    assert run("viz", "build/small/small.tpub", "--kind", kind) == 2
    assert "error E0533: small.tpub is a program" in capsys.readouterr().err


def test_accuracy_on_held_out_data(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("02_iris", "03_wine", "04_digits_mlp"):
        assert run("run", PROGRAMS / f"{name}.tpu", "--check", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["accuracy"]["float32"] > 0.95
        assert found["accuracy"]["int8"] >= found["accuracy"]["float32"] - 0.01
        assert all(c["unequal"] == 0 for c in found["check"]["integer"].values())


def test_the_python_api(small: Path) -> None:
    exe = tpucc.compile(small, params={"batch": 2, "units": 300})
    y = exe.run(x=np.zeros((2, 6)))
    assert y["out"].shape == (2, 3)
    assert exe.stats["macs"] == 2 * (6 * 300 + 300 * 3)
    for shown in (exe.graph, exe.layers, exe.tiles, exe.program, exe.timeline, exe.memory):
        assert str(shown)
        assert "<svg" in shown._repr_svg_()
    exe.save("small.tpub")
    np.testing.assert_array_equal(tpucc.load("small.tpub").run(x=np.zeros((2, 6)))["out"], y["out"])
    with pytest.raises(tpucc.InputError, match="E0432"):
        exe.run(z=np.zeros((2, 6)))
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.compile_source("model m(x: f32[2, 3]):\n    return y\n")
    assert caught.value.diagnostics[0].code == "E0201"


def test_module_is_the_command_line() -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    result = subprocess.run([sys.executable, "-m", "tpucc", "--version"], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.strip() == f"tpucc {tpucc.__version__}"


@each([("301", "E0301"), ("e0301", "E0301"), ("0301", "E0301"), ("E301", "E0301"), ("v301", "V0301")])
def test_a_code_may_be_typed_in_short(typed: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", typed) == 0
    assert capsys.readouterr().out.startswith(f"# {found}: ")


def test_an_unknown_code_gets_the_nearest_of_its_own_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "E9999") == 2
    assert "tpucc explain without a code lists all" in capsys.readouterr().err
    assert run("explain", "V0205") == 2
    assert "did you mean V0204?" in capsys.readouterr().err
