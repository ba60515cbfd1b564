"""One verdict: a stage that computes something else, and a pass that changes the model's values, are found; what only rounds is not."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tpucc
from tests.support.command_line import SMALL, run
from tpucc import Context, Graph
from tpucc.passes.folding import fold_scales
from tpucc.passes.quantise import quantise


@dataclass(frozen=True)
class Mine:
    """A pass of the user's whose rewriting of each node is given."""

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "rewrites nodes"
    level: ClassVar[int] = 0
    rewrite: Any = None

    def run(self, graph: Graph, context: Context) -> Graph:
        return graph.with_nodes(self.rewrite(node) for node in graph)


def tanh_for_relu(node: Any) -> Any:
    return replace(node, op="tanh") if node.op == "relu" else node


def doubled(node: Any) -> Any:
    """The weight v, twice as large: too little for the int8 comparison alone, which only sees the graph after it."""
    if node.name != "v":
        return node
    value = node.attributes.value
    return replace(node, attributes=replace(node.attributes, value=type(value)(value.data * np.float32(1.01))))


def renamed(node: Any) -> Any:
    return replace(node, origin=node.origin.by("mine"))


@pytest.mark.parametrize("rewrite", [tanh_for_relu, doubled])
def test_a_pass_that_changes_the_values_is_named(rewrite: Any) -> None:
    verdict = tpucc.judge(tpucc.compile_source(SMALL, passes=(Mine(rewrite),)))
    assert not verdict.equal
    assert verdict.first_difference is not None
    assert verdict.first_difference.stage == "the pass mine"
    assert verdict.first_difference.expected != verdict.first_difference.found
    assert verdict.findings == ()
    assert verdict.cycles > 0


def test_a_pass_that_changes_nothing_is_equal() -> None:
    assert tpucc.judge(tpucc.compile_source(SMALL, passes=(Mine(renamed),))).equal


@dataclass(frozen=True)
class MyQuantise:
    """The built-in pass as the user's own, on a graph whose ranges are so wide that little of them is used."""

    name, summary, level = quantise.name, quantise.summary, quantise.level
    factor: float = 1.0

    def run(self, graph: Graph, context: Context) -> Graph:
        wide = {name: array * np.float32(self.factor) for name, array in (context.calibration or {}).items()}
        return quantise.run(graph, replace(context, calibration=wide or None))


def test_a_quantisation_of_ones_own_may_be_as_good_as_the_built_in_one() -> None:
    assert tpucc.judge(tpucc.compile_source(SMALL, passes=(MyQuantise(),))).equal


@dataclass(frozen=True)
class WideRanges:
    """Multiplies every calibrated range by a hundred: the graph means the same, and the integers say little of it."""

    name: ClassVar[str] = "wide-ranges"
    summary: ClassVar[str] = "widens ranges"
    level: ClassVar[int] = 0
    after: ClassVar[str] = "calibrate"

    def run(self, graph: Graph, context: Context) -> Graph:
        def wide(node: Any) -> Any:
            held = node.type.range
            if held is None or node.op == "input":
                return node
            return replace(node, type=replace(node.type, range=replace(held, low=held.low * 100, high=held.high * 100)))

        return graph.with_nodes(map(wide, graph))


def test_ranges_that_are_far_too_wide_are_more_noise_than_quantisation_explains() -> None:
    verdict = tpucc.judge(tpucc.compile_source(SMALL, passes=(WideRanges(),)))
    assert verdict.first_difference is not None
    assert "quantisation" in verdict.first_difference.stage


def test_a_stage_that_computes_something_else_is_found_at_its_instruction() -> None:
    """Two tiles in each other's place: valid, as the verifiers see it, and wrong."""

    def swapped(layer: Any) -> list[str]:
        lines = tpucc.Stages().lower_fc(layer)
        return [line.replace("tile=0", "tile=X").replace("tile=1", "tile=0").replace("tile=X", "tile=1") for line in lines]

    exe = tpucc.compile_source(SMALL, stages=tpucc.Stages(lower_fc=swapped), overrides={"mxu": 4})
    difference = tpucc.judge(exe).first_difference
    assert difference is not None
    assert difference.instruction is not None
    assert difference.text.startswith("activate")
    assert difference.line == 8
    assert difference.expected != difference.found
    assert "line 8" in str(difference)


@pytest.mark.parametrize("stage", ["tiles", "program"])
def test_a_difference_is_found_at_its_line_of_the_text(stage: str) -> None:
    """The first activation's parameters for the second one: valid, and wrong. A line more shows that the text's own lines are meant."""
    exe = tpucc.compile_source(SMALL)
    text = "; one line more\n" + str(getattr(exe, stage)).replace("set_configuration block=1", "set_configuration block=0")
    difference = tpucc.judge(tpucc.resume(text, exe, name="small.tile")).first_difference
    assert difference is not None
    name, line = difference.place.split(":")
    assert name == "small.tile"
    assert text.split("\n")[int(line) - 1].split()[0] == difference.text.split()[0] == "activate"
    assert f"small.tile:{line}, line 8 of the model" in str(difference)
    assert tpucc.judge(exe).first_difference is None


def test_given_inputs_and_a_seed() -> None:
    exe = tpucc.compile_source(SMALL)
    assert tpucc.judge(exe, {"x": np.zeros((4, 6), np.float32)}, seed=7).equal
    with pytest.raises(tpucc.InputError):
        tpucc.judge(exe, {"y": np.zeros((4, 6), np.float32)})


def test_calibration_inputs_of_another_type_are_converted_as_other_inputs_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", ids=np.array([[0, 4, 1]]), scale=np.ones(1))
    (tmp_path / "m.tpu").write_text(
        "weights random(seed=0)\nmodel m(ids: i32[1, 3] in [0, 4], scale: f32[1]) -> f32[1, 3, 4]:\n"
        "    weight table: f32[5, 4]\n    return embedding(ids, table) * scale\n"
    )
    assert run("judge", tmp_path / "m.tpu", "--calibrate", tmp_path / "x.npz", "--quiet") == 0


def test_a_model_that_runs_in_no_rounds_is_judged_on_the_first_of_its_calibration_inputs(tmp_path: Path) -> None:
    """Its input and its output have no first size in common; the file has four rows, and the model takes two."""
    np.savez(tmp_path / "x.npz", x=np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    source = "weights random(seed=0)\nmodel m(x: f32[2, 3]):\n    weight w: f32[3, 5]\n    return transpose(x @ w, (1, 0))\n"
    (tmp_path / "m.tpu").write_text(source, encoding="utf-8")
    exe = tpucc.compile(tmp_path / "m.tpu", calibration=tmp_path / "x.npz")
    assert tpucc.judge(exe).equal
    for command in ("compile", "run"):
        assert run(command, tmp_path / "m.tpu", "--calibrate", tmp_path / "x.npz", "--quiet") == 0


def test_a_program_without_its_source_and_one_that_is_not_valid(tmp_path: Path) -> None:
    exe = tpucc.compile_source(SMALL)
    exe.save(tmp_path / "p.tpub")
    loaded = tpucc.load(tmp_path / "p.tpub")
    verdict = tpucc.judge(loaded)
    assert verdict.equal
    program = loaded.runtime.program
    waits = program.instructions["opcode"] == 10
    broken = program.instructions.copy()
    broken["opcode"][waits] = 0
    for field in ("index", "engines"):
        broken[field][waits] = 0
    loaded.runtime = replace(loaded.runtime, program=replace(program, instructions=broken))
    verdict = tpucc.judge(loaded)
    assert not verdict.equal
    assert {found.code[:3] for found in verdict.findings} == {"V08"}


def test_the_command_line_exits_with_1_and_says_where(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(
        "from dataclasses import dataclass, replace\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    summary = 'drops relu'\n"
        "    def run(self, graph, context):\n"
        "        return graph.with_nodes(replace(n, op='tanh') if n.op == 'relu' else n for n in graph)\n"
    )
    assert run("judge", small, "--pass", "mine.py") == 1
    assert "NOT EQUAL" in capsys.readouterr().out
    assert run("judge", small, "--pass", "mine.py", "--json", "--seed", "3") == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["first_difference"]["stage"] == "the pass mine"
    assert run("judge", small, "--json") == 0
    verdict = json.loads(capsys.readouterr().out)
    assert set(verdict) == {"equal", "first_difference", "cycles", "peak_rows", "lower_bound", "findings", "notes", "against"}
    assert (verdict["equal"], verdict["first_difference"], verdict["findings"], verdict["against"]) == (True, None, [], None)


def test_a_pass_of_the_built_in_name_is_the_users() -> None:
    class Scales:
        name, summary, level = fold_scales.name, fold_scales.summary, fold_scales.level

        def run(self, graph: Graph, context: Context) -> Graph:
            return fold_scales.run(graph, context)

    assert tpucc.judge(tpucc.compile_source(SMALL, passes=(Scales(),))).equal


@pytest.mark.long
def test_a_note_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The program keeps the note of a batch in two halves, and compiling told it."""
    program = Path(__file__).parents[2] / "programs" / "05_digits_cnn.tpu"
    assert run("judge", program) == 0
    notes = [line[:60] for line in "".join(capsys.readouterr()).splitlines() if line.startswith("note: ")]
    assert any("batch in two" in note for note in notes)
    assert len(notes) == len(set(notes))
