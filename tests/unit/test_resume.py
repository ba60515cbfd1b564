"""Compiling goes on from the text of any stage: unchanged to the same bytes, edited to what the edit says, or refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import run
from tests.support.networks import BLACKBOARD, MIDDLE, network
from tpucc.api import Executable
from tpucc.compilation import Snapshot
from tpucc.diagnostics import ProgramError, Source
from tpucc.guest.files import passes_of_file
from tpucc.ir import Graph
from tpucc.ir.codec import stamped
from tpucc.ir.digests import digest_of
from tpucc.isa.container import encode
from tpucc.target import load_target
from tpucc.texts.resume import kind_of

ROOT = Path(__file__).parents[2]
IRIS = ROOT / "programs" / "02_iris.tpu"
SOURCES = (
    IRIS,
    ROOT / "programs" / "06_digits_lstm.tpu",
    *(ROOT / "tests" / "programs" / f"{name}.tpu" for name in ("broadcasts", "explicit_quantisation", "host_only", "no_inputs", "scalars")),
)
DRAWN = """weights random(seed=0)

model m(x: f32[{batch}, {n}]):
    weight w: f32[{n}, {n}]
    h = relu(x @ w)
    return {result}
"""
SQUARE = """weights random(seed=0)

model m(x: f32[4, 16]):
    weight v: f32[16, 16]
    weight w: f32[16, 16]
    return relu(relu(x @ v) @ w)
"""
FC2_B = "fc2.b = constant(value=f32[2]{1, 2}) : f32[2]"
STAGES = ("graph", "layers", "tiles", "program")


@cache
def compiled(path: Path = IRIS) -> Executable:
    return tpucc.compile(path)


def binary(exe: Executable) -> bytes:
    return encode(exe.runtime.program)


def text_of(stage: str, path: Path = IRIS, with_data: bool = False) -> str:
    shown: str = getattr(compiled(path), stage).text(with_data)
    return shown


def stages_of(exe: Executable) -> list[Snapshot]:
    assert exe.compilation is not None
    return [s for s in exe.compilation.snapshots if s.stage not in ("parse", "elaborate", "verify")]


def refused(text: str, like: Executable | None = None, name: str = "edited") -> ProgramError:
    with pytest.raises(ProgramError) as error:
        tpucc.resume(text, like or compiled(), name=name)
    return error.value


TEXTS = [
    pytest.param(path, stage, with_data, marks=pytest.mark.soak if (row + column + with_data) % 2 else ())
    for row, path in enumerate(SOURCES)
    for column, stage in enumerate(STAGES)
    for with_data in (False, True)
]
"""Every stage of every source, with its data or without; in `make soak`, both."""


@pytest.mark.long
@pytest.mark.parametrize(("path", "stage", "with_data"), one_of(2, TEXTS))
def test_an_unchanged_text_gives_the_same_bytes(path: Path, stage: str, with_data: bool) -> None:
    exe = compiled(path)
    assert binary(tpucc.resume(text_of(stage, path, with_data), exe)) == binary(exe)


@pytest.mark.long
def test_every_stage_goes_on_from_where_it_was_printed() -> None:
    exe = compiled()
    texts = [stage.text() for stage in stages_of(exe)]
    assert len(texts) == len(set(texts))
    for stage, text in zip(stages_of(exe), texts, strict=True):
        again = tpucc.resume(text, exe)
        assert binary(again) == binary(exe), stage.stage
        assert [s.stage for s in stages_of(again)] == [s.stage for s in stages_of(exe)]
        assert again.stats == exe.stats


@pytest.mark.parametrize(("bounds", "target"), [(BLACKBOARD, "tiny"), (MIDDLE, "tpu_v1")], ids=["tiny", "tpu_v1"])
def test_random_networks_go_on_from_a_stage_of_their_own(bounds: object, target: str) -> None:
    for seed in range(3):
        try:
            exe = tpucc.compile_source(network(seed, bounds), target=target, level=seed % 3)
        except tpucc.LimitError:
            continue
        stages = stages_of(exe)
        for stage in (stages[seed % len(stages)], stages[3 * seed % len(stages)], *stages[-2:]):
            assert binary(tpucc.resume(stage.text(), exe)) == binary(exe), (seed, stage.stage)


def test_a_program_is_enough_for_what_comes_after_it(tmp_path: Path) -> None:
    compiled().save(tmp_path / "iris.tpub")
    loaded = tpucc.load(tmp_path / "iris.tpub")
    for text in (text_of("tiles"), text_of("program"), text_of("layers", with_data=True)):
        assert binary(tpucc.resume(text, loaded)) == binary(compiled())
    assert refused(text_of("layers"), loaded).diagnostics[0].code == "E0767"


def test_a_graph_of_drawn_weights_stands_alone() -> None:
    source = DRAWN.format(batch=4, n=70, result="h")
    exe = tpucc.compile_source(source)
    text = str(exe.graph)
    assert "data" not in text
    again = tpucc.resume(text)
    x = np.linspace(-1, 1, 280, dtype=np.float32).reshape(4, 70)
    assert [y.tobytes() for y in again.run(x=x).values()] == [y.tobytes() for y in exe.run(x=x).values()]
    slower = tpucc.resume(text, level=0, target=load_target("tpu_v1", {"host_bandwidth": "1e9"}))
    assert slower.stats["cycles"] > again.stats["cycles"]


def test_a_listing_with_its_data_stands_alone() -> None:
    assert binary(tpucc.resume(text_of("program", with_data=True))) == binary(compiled())


def test_an_edit_of_the_listing_is_what_is_different() -> None:
    text = re.sub(r"(?m)^(    matrix_multiply .*)$", r"    debug_tag tag=5\n\1", text_of("program"), count=1)
    made, before = tpucc.resume(text, compiled()).runtime.program, compiled().runtime.program
    assert len(made.instructions) == len(before.instructions) + 1
    assert made.instructions[4]["opcode"] != before.instructions[4]["opcode"]
    assert (np.delete(made.instructions, 4) == before.instructions).all()
    assert replace(made, instructions=before.instructions, layer_of=before.layer_of, residents=before.residents) == before


def test_an_edit_of_the_tiles_is_what_is_different() -> None:
    lines = text_of("tiles").split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith("    set_configuration"))
    lines[place - 1 : place + 1] = [lines[place], "    nop", lines[place - 1]]
    exe = tpucc.resume("\n".join(lines), compiled())
    assert len(exe.runtime.program.instructions) == len(compiled().runtime.program.instructions) + 1
    x = np.ones((51, 4), np.float32)
    assert exe.run(x=x)["species"].tobytes() == compiled().run(x=x)["species"].tobytes()


def test_an_edit_of_a_graph_is_what_is_different() -> None:
    exe = tpucc.resume(text_of("graph").replace("= softmax(add.1)", "= relu(add.1)"), compiled())
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    assert [node.op for node in exe.compilation.graph][-1] == "relu"
    y = exe.run(x=np.full((51, 4), 3, np.float32))["species"]
    assert y.min() >= 0
    assert y.max() > 1
    layers = tpucc.resume(text_of("layers").replace("= softmax(fc2.f32)", "= relu(fc2.f32)"), compiled())
    assert np.abs(layers.run(x=np.full((51, 4), 3, np.float32))["species"] - y).max() < 0.2


def test_a_fault_of_an_edited_listing_is_shown_in_it() -> None:
    lines = text_of("program").split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith("    synchronize"))
    shown = refused("\n".join(lines[:place] + lines[place + 1 :]), name="iris.asm").render()
    assert shown.startswith(f"iris.asm:{place + 1}:5: error V0801")
    assert "02_iris.tpu:12:17: note: compiled from here" in shown
    tiles = "\n".join(line for line in text_of("tiles").split("\n") if not line.startswith("    set_configuration"))
    shown = refused(tiles, name="iris.tile").render()
    assert "error E0756: tile instruction 2 `activate" in shown
    assert "02_iris.tpu:12:17: note: compiled from here" in shown


@each(
    [
        ("graph", "graph iris", "graph isis", "E0762", "of the model isis"),
        ("graph", 'as "species"', 'as "kind"', "E0763", "no output kind"),
        ("graph", "f32[3]{0.029358555", "f32[3]{0.129358555", "E0761", "the constant of fc2.b"),
        ("graph", "64bcab205fcc5c95", "64bcab205fcc5c96", "E0761", "the constant of fc1.w is none"),
        ("graph", '"02_iris.tpu"', '"02_iris.tpu" after fuse-bia', "E0768", "no pass fuse-bia"),
        ("layers", "i32[3]{115306", "i32[3]{115307", "E0761", "the constant of fc2.bias"),
        ("tiles", ".program iris", ".program isis", "E0762", "of the model isis"),
        ("tiles", "x.i8 51x4 scale=0.03", "x.i8 51x4 scale=0.04", "E0763", "the input x.i8 is i8"),
        ("tiles", "x.i8 51x4", "z.i8 51x4", "E0763", "no input z.i8"),
        ("tiles", ".target tpu_v1", ".target tpu_edge", "E0764", "but the model is for tpu_v1"),
        ("tiles", ".tile sha256=", ".tile sha256=0000000000000000 ; ", "E0761", "weight tile 0 is none"),
        ("tiles", "| bias sha256=", "| bias sha256=0000000000000000\n| bias sha256=", "E0761", "the bias of parameter block 0 is none"),
        ("tiles", ".block zero=12", ".block zero=13", "E0761", "parameter block 0 is none"),
        ("program", "| species = softmax", "| species = relu", "E0765", "the epilogue"),
        ("program", ".program iris", ".cores 2\n.program iris", "E0765", "the number of cores"),
        ("program", ".output fc2 51x3", ".output fc3 51x3", "E0763", "no output fc3"),
    ]
)
def test_what_an_edit_may_not_change_is_refused_by_name(stage: str, old: str, new: str, code: str, message: str) -> None:
    text = text_of(stage)
    assert old in text
    found = refused(text.replace(old, new, 1)).diagnostics
    assert any(d.code == code and message in d.message for d in found), found


@each(
    [
        ("graph", "h = sigmoid(add) : f32[51, 256]", "h = sigmoid(add) : f32[51, 255]", "E0783", "h = sigmoid", 12),
        ("graph", "fc2.b = constant(value=f32[3]{0.029358555, ", "fc2.b = constant(value=f32[2]{", "E0783", "fc2.b = constant", 13),
        ("graph", "fc2.b = constant(value=f32[3]{0.029358555, 0.013667148, -0.0430256}) : f32[3]", FC2_B, "E0302", "add.1 = add", 13),
        ("layers", "dequantize(fc2, scale=", "dequantize(fc2, scale=1", "E0315", "fc2.f32 = dequantize", 13),
        ("layers", "quantize(x, scale=0.0", "quantize(x, scale=0.1", "E0783", "x.i8 = quantize", 11),
        ("layers", "scale 0.003921568859368563 zero -128 holds h", "holds h", "E0822", "fc1 = ", 12),
        ("layers", "fc(x.i8, fc1.w, fc1.bias", "fc(x.i8, fc1.w, fc1.multiplier", "E0823", "fc1 = fc", 12),
        ("layers", "requantise(zero=12)", "requantise(zero=3)", "E0824", "fc2 = fc", 0),
        ("layers", "graph iris", "graph isis", "E0762", "graph isis", 0),
        ("layers", 'as "species"', 'as "kind"', "E0763", "return species", 0),
        ("tiles", ".program iris", ".program isis", "E0762", ".program isis", 0),
        ("tiles", ".target tpu_v1", ".target tpu_edge", "E0764", ".target tpu_edge", 0),
        ("tiles", ".input x.i8 51x4", ".input y.i8 51x4", "E0763", ".input y.i8", 0),
        ("tiles", ".block zero=12", ".block zero=13", "E0761", ".block zero=13", 0),
        ("tiles", "    write_host_memory", "    ; write_host_memory", "E0758", ".host output:fc2.0", 0),
        ("tiles", ".buffer fc1.0 rows=51 layer=0", ".buffer fc1.0 rows=51 layer=7", "E0750", ".buffer fc1.0", 0),
        ("tiles", "output start=51 rows=51", "output start=50 rows=51", "E0750", ".host output:fc2.0", 0),
        ("program", "output start=51 rows=51", "output start=50 rows=51", "V0103", ".host output:fc2.0", 0),
        ("program", "    write_host_memory", "    ; write_host_memory", "V1002", ".host output:fc2.0", 0),
        ("program", ".source", ".cores 2\n.source", "E0765", ".cores 2", 0),
    ]
)
def test_what_is_wrong_is_shown_in_the_text_and_in_the_model(stage: str, old: str, new: str, code: str, line: str, model: int) -> None:
    text = text_of(stage)
    assert old in text
    text = text.replace(old, new, 1)
    error = refused(text)
    found = next(d for d in error.diagnostics if d.code == code)
    assert found.span is not None
    assert text.split("\n")[found.span.line - 1].startswith(line)
    assert error.source is not None
    assert error.source.name == "edited"
    lines = [label.span.line for label in found.labels if label.source is not None and label.source.name == IRIS.name]
    assert lines == [model] * bool(model)


@each([("layers", "data d"), ("tiles", ".tile sha256="), ("program", ".tile sha256=")])
def test_two_constants_in_each_others_place_are_refused(stage: str, line: str) -> None:
    """Each is one of the model's, by its digest; the name is another's."""
    square = tpucc.compile_source(SQUARE)
    text = str(getattr(square, stage))
    one, other = re.findall(rf"(?m)^{line}.*?([0-9a-f]{{16}})", text)[:2]
    swapped = text.replace(one, "?").replace(other, one).replace("?", other)
    found = refused(swapped, square).diagnostics
    assert {d.code for d in found} == {"E0761"}
    assert all(d.span is not None for d in found)
    assert len(found) == 2


def test_a_scale_of_the_text_is_a_float32_wherever_it_is_read() -> None:
    """0.05 is no float32: written by hand it means the nearest one, to the type, to quantize and to a port."""
    exe = tpucc.compile_source("weights random(seed=0)\nmodel m(x: f32[4, 8]):\n    return relu(dequantize(quantize(x, 0.05)))\n")
    rounded, x = repr(float(np.float32(0.05))), np.linspace(-7, 7, 32, dtype=np.float32).reshape(4, 8)
    for stage in ("layers", "tiles", "program"):
        text = str(getattr(exe, stage))
        head, mark, rest = text.partition(".prologue")
        assert rounded in head
        edited = tpucc.resume(head.replace(rounded, "0.05") + mark + rest, exe)
        assert edited.program.inputs == exe.program.inputs
        assert [y.tobytes() for y in edited.run(x).values()] == [y.tobytes() for y in exe.run(x).values()]
        assert tpucc.judge(edited).equal


def test_the_numbers_of_an_edited_listing_are_those_of_now() -> None:
    lines = text_of("program").split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith("    synchronize"))
    assert "numbers in its comments are from before" in str(refused("\n".join(lines[:place] + lines[place + 1 :])))
    unnumbered = re.sub(r" *; \d+$", "", "\n".join(lines[:place] + lines[place + 1 :]), flags=re.MULTILINE)
    assert "numbers in its comments" not in str(refused(unnumbered))


def test_a_text_says_what_it_needs() -> None:
    for stage in ("graph", "program"):
        with pytest.raises(ProgramError) as error:
            tpucc.resume(text_of(stage))
        assert [d.code for d in error.value.diagnostics] == ["E0760"], "it is said once"
        assert "--like" in error.value.diagnostics[0].help[0]
    with pytest.raises(ProgramError, match="E0767"):
        tpucc.resume(text_of("tiles"))
    with pytest.raises(ProgramError, match="E0767"):
        tpucc.resume(text_of("layers", with_data=True))
    with pytest.raises(ProgramError, match="E0766"):
        tpucc.resume(IRIS.read_text(), compiled())


@each([("graph\tm", "graph"), ("nop;nothing\nhalt\n", "asm"), ("nop\t; nothing\nhalt\n", "asm"), ("  .program\tm stage=tile\n", "tile")])
def test_the_first_word_ends_at_any_blank_or_comment(text: str, kind: str) -> None:
    assert kind_of(Source("typed", text)) == kind


def test_constants_are_short_unless_asked_for() -> None:
    for stage in STAGES:
        short, whole = text_of(stage), text_of(stage, with_data=True)
        assert len(short) < 4000 < 7000 < len(whole)
        assert str(getattr(compiled(), stage)) == short
    tile = compiled().runtime.program.tiles[1]
    assert f".tile sha256={digest_of(tile.tobytes())} ; 1: fc2, 256x3\n" in text_of("program")


def test_the_host_part_of_a_program_has_its_data() -> None:
    numbers = ", ".join(str(k + 1.5) for k in range(40))
    source = DRAWN.format(batch=2, n=40, result=f"softmax(h) * constant([{numbers}])")
    exe = tpucc.compile_source(source)
    program = exe.runtime.program
    assert any(len(line) > 200 for line in (program.prologue + program.epilogue).split("\n")), "base64 stands in the host's part"
    short = str(exe.program)
    assert "| data d0 bytes=160 sha256=" in short
    assert max(map(len, short.split("\n"))) < 300
    assert binary(tpucc.resume(short, exe)) == binary(exe)


@pytest.mark.long
def test_commands_go_on_from_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("compile", IRIS, "--quiet", "--emit", "graph,layers,tile,asm,tpub", "-o", "made") == 0
    texts = {"graph": "02_iris.graph", "layers": "02_iris.layers.graph", "tile": "02_iris.tile", "asm": "02_iris.asm"}
    later = {"graph": {"layers", "tile", "asm"}, "layers": {"tile", "asm"}, "tile": {"asm"}, "asm": set()}
    for kind, file in texts.items():
        assert run("compile", f"made/{file}", "--like", IRIS, "--quiet", "-o", kind) == 0
        assert (tmp_path / kind / "02_iris.tpub").read_bytes() == binary(compiled())
        written = {known for known, name in texts.items() if (tmp_path / kind / name).is_file()}
        assert written == later[kind], "what was edited isn't written over"
    capsys.readouterr()
    assert run("run", "made/02_iris.tile", "--like", IRIS, "--check") == 0
    assert "equal to the layers' integer reference" in capsys.readouterr().out
    assert run("profile", "made/02_iris.asm", "--like", "made/02_iris.tpub", "--no-chart") == 0
    assert run("asm", "made/02_iris.asm", "--like", "made/02_iris.tpub", "-o", "again.tpub") == 0
    assert (tmp_path / "again.tpub").read_bytes() == binary(compiled())


def test_commands_say_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.tile").write_text(text_of("tiles"))
    assert run("compile", "iris.tile") == 3
    assert "--like MODEL.tpu" in capsys.readouterr().err
    assert run("compile", "iris.tile", "--like", ROOT / "programs" / "01_hello.tpu") == 3
    assert "E0762" in capsys.readouterr().err
    assert run("compile", "iris.tile", "--like", "nowhere.tpu") == 2
    assert run("compile", IRIS, "--like", IRIS) == 2
    assert "--like is for the text of a stage" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()


def test_options_print_with_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for more, size in ((), 4000), (("--with-data",), 100_000):
        assert run("compile", IRIS, "--quiet", "--emit", "asm", "--dump-dir", "dump", "--print-after", "schedule", "-o", "made", *more) == 0
        printed = capsys.readouterr().out
        dumped = next((tmp_path / "dump").glob("*-schedule.asm")).read_text()
        assert dumped == (tmp_path / "made" / "02_iris.asm").read_text() == stamped(text_of("program", with_data=bool(more)), ";")
        assert (len(dumped) > size) == bool(more)
        assert dumped.split("\n", 1)[1] in printed


@pytest.mark.parametrize("kind", ["graph", "layers.graph", "tile", "asm"])
def test_a_text_of_another_version_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("compile", IRIS, "--quiet", "--emit", "graph,layers,tile,asm", "-o", "made", "--with-data") == 0
    path = tmp_path / "made" / f"02_iris.{kind}"
    reader = {"graph": "opt", "layers.graph": "opt", "asm": "asm"}.get(kind, "check")
    like = ("--like", str(IRIS)) if reader == "check" else ()
    assert run(reader, path, *like) == 0
    text = path.read_text()
    assert text.split("\n")[0].endswith("a text of tpucc, version 1")
    path.write_text(text.replace("version 1", "version 2", 1))
    capsys.readouterr()
    for command, more in ((reader, like), ("compile", ("--like", str(IRIS)))):
        assert run(command, path, *more) == 3
        assert "error E0702: the text has version 2 of the text forms; this tpucc reads version 1" in capsys.readouterr().err


def test_a_graph_says_after_which_pass_it_was_printed() -> None:
    heads = [stage.text().split("\n")[0] for stage in stages_of(compiled()) if isinstance(stage.value, Graph)]
    assert heads[0] == 'graph iris "02_iris.tpu"'
    assert heads[1] == 'graph iris "02_iris.tpu" after dead-code 1'
    assert 'graph iris "02_iris.tpu" after constant-folding' in heads[2:]
    assert heads[-1] == 'graph iris "02_iris.tpu" after divide-batch'


UNPARTED = """from dataclasses import replace
from tpucc.passes.base import Pass

class Leave(Pass):
    name = "leave"
    summary = "leaves a node unused"
    after = "depthwise"

    def run(self, graph, context):
        return graph.with_nodes((*graph.nodes, replace(graph.nodes[-1], name="unused")))
"""


@pytest.mark.parametrize("cores", [1, 2])
def test_a_layer_graph_without_layers_goes_through_no_pass_again(cores: int) -> None:
    exe = tpucc.compile_source("model m(x: f32[8, 16]):\n    return softmax(x)\n", cores=cores)
    assert str(exe.layers).split("\n")[0].endswith(" after divide-batch")
    assert binary(tpucc.resume(exe.layers, like=exe)) == binary(exe)


def test_what_a_pass_leaves_unused_is_left_out_where_the_batch_is_divided(tmp_path: Path) -> None:
    (tmp_path / "leave.py").write_text(UNPARTED)
    exe, plain = (tpucc.compile_source(SQUARE, cores=2, passes=passes) for passes in (passes_of_file(tmp_path / "leave.py"), []))
    assert str(exe.layers) == str(plain.layers)


def test_notes_of_a_text_that_is_checked_do_not_wait_for_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings are told while the display is away; telling one must not ask for that again."""
    (tmp_path / "m.graph").write_text(str(tpucc.compile_source("model m(x: f32[4, 8]):\n    return relu(x) + x\n").graph))
    assert run("check", tmp_path / "m.graph") == 0
    assert "note: no calibration inputs" in capsys.readouterr().err


def test_stages_that_come_before_the_text_are_said_not_to_be_called() -> None:
    def mine(lives: object, rows: int) -> object:
        raise AssertionError

    exe = tpucc.compile(IRIS)
    stages = tpucc.Stages(allocate=mine, lower_fc=mine)  # type: ignore[arg-type]
    again = tpucc.resume(exe.program, like=exe, stages=stages)
    assert "lower_fc and allocate are not called: the text is of a later stage" in again.warnings
    stages = tpucc.Stages(lower_fc=mine)  # type: ignore[arg-type]
    assert "lower_fc is not called: the text is of a later stage" in tpucc.resume(exe.tiles, like=exe, stages=stages).warnings
