"""What the page is given, and what of it its scripts get: every column against the program, the timeline and the statistics."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tpucc
from tpucc.api import Executable
from tpucc.artifacts import _notes, artifacts
from tpucc.diagnostics import Origin
from tpucc.explain.attribution import attribution, owners
from tpucc.explain.critical import LIMITS, Limit
from tpucc.explain.histogram import Histogram
from tpucc.explain.layer_error import LayerError
from tpucc.explain.quality import Accuracy
from tpucc.explain.segments import Segments
from tpucc.ir import Quantisation
from tpucc.ir.codec import stamped
from tpucc.ir.printer import print_graph
from tpucc.isa.assembler import disassemble
from tpucc.isa.effects import effects
from tpucc.lowering.tiletext import print_tiles
from tpucc.machines.v1 import V1, Engine, Opcode
from tpucc.see import pictures
from tpucc.see.diagrams.insides import Inside
from tpucc.see.page.payload import PageInput, _error, _inside, _waits, payload

SOURCE = """
weights random(seed=1)
calibration "c.npz"
model both(x: f32[4, 300], y: f32[4, 300]):
    weight w: f32[300, 300]
    h = relu(x @ w) * y
    return softmax(h @ w)
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    folder = tmp_path_factory.mktemp("both")
    drawn = np.random.default_rng(0).standard_normal((2, 4, 300)).astype(np.float32)
    np.savez(folder / "c.npz", x=drawn[0], y=drawn[1])
    return tpucc.compile_source(SOURCE, folder=folder)


@pytest.fixture
def given(both: Executable, monkeypatch: pytest.MonkeyPatch) -> PageInput:
    """What the page is drawn from, diagrams left out."""
    kept: list[PageInput] = []
    monkeypatch.setattr(importlib.import_module("tpucc.artifacts"), "page", lambda found: (kept.append(found), "")[1])
    assert both.compilation is not None
    assert both.compilation.graph is not None
    drawn = {"graph": pictures.render(pictures.operator_diagram(both.compilation.graph))}
    monkeypatch.setattr(pictures, "draw_diagrams", lambda *_: drawn)
    artifacts(both.compilation, both.runtime, "both", ("report",), Accuracy(8, 0.75, 0.5))
    return kept[0]


@pytest.fixture
def found(given: PageInput, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the scripts get, with columns as lists."""
    module = importlib.import_module("tpucc.see.page.payload")
    for name in ("deltas", "plain", "octets"):
        monkeypatch.setattr(module, name, lambda values: [int(value) for value in values])
    return payload(given)


def test_the_page_is_given_all_that_was_made(both: Executable, given: PageInput) -> None:
    assert both.compilation is not None
    assert both.compilation.graph is not None
    assert [stage.name for stage in given.stages][:2] == ["elaborate", "weights"]
    assert [error.layer for error in given.errors] == [-1, 0, -1, 1, 2]
    assert given.accuracy == Accuracy(8, 0.75, 0.5)
    assert list(given.diagrams) == ["graph"]
    assert {inside.name.split("-")[0] for inside in given.insides} <= {"graph"}
    assert {rewrite.stage for rewrite in given.rewrites} <= set(range(len(given.stages)))
    tiles = both.runtime.timeline.tiles
    assert (given.times.shift_starts.tolist(), given.times.shift_ends.tolist()) == (tiles.shifting.tolist(), tiles.shifted.tolist())


def test_instructions_have_their_buffers_and_tiles_their_places(both: Executable, found: dict[str, Any]) -> None:
    program, code = both.runtime.program, found["code"]
    records = program.instructions
    touched = effects(records)
    reads = np.flatnonzero(records["opcode"] == Opcode.READ_WEIGHTS)
    fills = [program.layers[program.layer_of[read]].tile_fills[place] for read, place in zip(reads, found["places"], strict=True)]
    assert [fill[0] for fill in fills] == records["index"][reads].tolist()
    held = owners(program, touched)
    assert [code[name] for name in ("source", "source2", "target")] == [held.source.tolist(), held.source2.tolist(), held.target.tolist()]
    assert code["source2"] != code["source"]
    assert found["shifts"] == both.runtime.timeline.tiles.shifting.tolist()


def test_each_wait_is_before_the_product_that_waits(both: Executable, found: dict[str, Any]) -> None:
    waits, start = found["waits"], both.runtime.timeline.start
    products = np.flatnonzero(V1.engine_of[both.runtime.program.instructions["opcode"]] == Engine.MATRIX)
    ends = np.add(waits["start"], waits["length"])
    before = ends <= start[products[-1]]
    assert before.sum() > 3
    wanted = products[np.searchsorted(start[products], ends[before])]
    assert np.array(waits["instruction"])[before].tolist() == wanted.tolist()


def test_stays_layers_and_the_machine(both: Executable, found: dict[str, Any]) -> None:
    program, stats = both.runtime.program, both.stats
    buffers = found["buffers"]
    layers = attribution(program).of[[stay.first for stay in program.residents]].tolist()
    columns = [buffers[name] for name in ("layer", "start", "rows", "first", "last")]
    assert list(zip(*columns, strict=True)) == [
        (layer, s.start, s.rows, s.first, s.last) for s, layer in zip(program.residents, layers, strict=True)
    ]
    assert buffers["name"].split("\n") == [stay.name for stay in program.residents]
    for layer, counts, info in zip(found["layers"], stats["layers"], program.layers, strict=False):
        assert (layer["cycles"], tuple(layer["weights"])) == (counts["cycles"], info.weights)
        assert layer["error"].startswith("Its scale is ")
    machine, target = found["machine"], program.target
    assert (machine["mxu"], machine["shift"], machine["buffer_rows"]) == (256, 256, target.unified_buffer_rows)
    assert (machine["peak_rows"], machine["lower_bound_rows"]) == (program.peak_rows, program.lower_bound_rows)


def test_the_peak_and_its_lower_bound_are_told_apart(given: PageInput) -> None:
    machine = payload(replace(given, runtime=replace(given.runtime, program=replace(given.program, lower_bound_rows=3))))["machine"]
    assert (machine["peak_rows"], machine["lower_bound_rows"]) == (given.program.peak_rows, 3)
    assert given.program.peak_rows > 3


def test_a_layer_without_an_error_has_no_sentence(given: PageInput) -> None:
    some = payload(replace(given, errors=[error for error in given.errors if error.layer == 0]))
    assert [bool(layer["error"]) for layer in some["layers"]] == [True, *(False for _ in some["layers"][1:])]


@pytest.mark.parametrize(("beyond", "end"), [(0.0, "exact inputs."), (0.25, "exact inputs; 25 % of its values saturate.")])
def test_what_quantising_costs_in_a_sentence(beyond: float, end: str) -> None:
    error = LayerError(
        "h", 0, "fc", Origin(()), 4, 12, Quantisation(0.5, 0), (0, 1), (0, 1), beyond, 0.0, 0.1, 0.2, 30.0, 40.0, Histogram(0, 1, (1,))
    )
    said = _error(error)
    assert said.startswith("Its scale is 0.5. It keeps 30.0 dB, 40.0 dB with ")
    assert said.endswith(end)


def test_a_box_opens_if_there_is_a_picture(given: PageInput) -> None:
    closed = Inside("graph-0", "two", "operator", 2, ("a", "b"), None)
    assert _inside(closed)["opens"] is False
    assert _inside(replace(closed, diagram=pictures.operator_diagram(given.stages[0].graph)))["opens"] is True


def test_waits_of_one_root_before_one_instruction_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing lies between them. Roots are numbered as the page's legend has them."""
    a, w, s, r, i, o = Limit.MATRIX_UNIT, Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT, Limit.ACTIVATION, Limit.HOST_WORK, Limit.HOST_LINK
    parts = [(10, a, 2), (5, w, 3), (5, w, 3), (5, w, 4), (5, s, 4), (5, a, 4), (5, s, 4), (5, o, 7), (5, r, 7), (5, i, 8)]
    ends = np.cumsum([cycles for cycles, _, _ in parts])
    instruction = np.array([number for _, _, number in parts], np.int64)
    root = np.array([LIMITS.index(root) for _, root, _ in parts], np.int8)
    made = Segments(np.concatenate([[0], ends[:-1]]), ends, root, instruction, instruction, root)
    module = importlib.import_module("tpucc.see.page.payload")
    monkeypatch.setattr(module, "matrix_segments", lambda *_: made)
    for name in ("deltas", "plain", "octets"):
        monkeypatch.setattr(module, name, lambda values: values.tolist())
    waits = _waits(SimpleNamespace(program=None, runtime=SimpleNamespace(timeline=None)))  # type: ignore[arg-type]
    assert list(zip(*(waits[name] for name in ("start", "length", "root", "instruction")), strict=True)) == [
        (10, 10, 0, 3), (20, 5, 0, 4), (25, 5, 1, 4), (35, 5, 1, 4), (40, 5, 4, 7), (45, 5, 2, 7), (50, 5, 3, 8),
    ]  # fmt: skip


def test_fetches_count_for_the_model_s_bytes_each_time(both: Executable) -> None:
    """Both products have the same four tiles, fetched for each."""
    runtime = both.runtime
    assert (len(runtime.program.tiles), runtime.stats["tile_fetches"]) == (4, 8)
    assert [work.weight_bytes for work in pictures.works_of(runtime)] == [n * 65536 for n in (8, 4, 0, 4)]


def test_diagrams_of_a_program_say_its_cycles_and_its_name() -> None:
    source = "weights random(seed=1)\nmodel m(x: f32[8, 2000]):\n    weight w: f32[2000, 1200]\n    return x @ w\n"
    runtime = tpucc.compile_source(source).runtime
    drawn = pictures.draw_diagrams(("program",), None, None, runtime)["program"].diagram
    assert any(f"{runtime.timeline.makespan:,} cycles, 100 %" in box.details for box in drawn.boxes)


def test_the_layers_diagram_has_the_model_s_name(both: Executable) -> None:
    assert both.compilation is not None
    assert both.compilation.layers is not None
    named = replace(both.runtime.program, name="another")
    runtime = SimpleNamespace(program=named, stats=both.runtime.stats, host=both.runtime.host, has_host_part=both.runtime.has_host_part)
    drawn = pictures.draw_diagrams(("layers", "program"), None, both.compilation.layers, runtime)  # type: ignore[arg-type]
    assert drawn["layers"].diagram.title.startswith("another: ")
    assert list(drawn) == ["layers", "program"]


def test_charts_have_the_timeline_s_times(both: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "memory_svg", lambda *given: given)
    program, times = both.runtime.program, both.runtime.timeline
    assert pictures.memory_of(both.runtime) == (program, times.start, times.end, times.makespan)


def test_files_hold_what_their_names_say(both: Executable) -> None:
    made, runtime = both.compilation, both.runtime
    assert made is not None
    assert made.graph is not None
    assert made.layers is not None
    assert made.tiles is not None
    found = artifacts(made, runtime, "both", ("graph", "layers", "tile", "asm", "tpub", "stats"))
    texts = {
        "both.graph": stamped(print_graph(made.graph, with_data=False), "#"),
        "both.layers.graph": stamped(made.layers_text(with_data=False), "#"),
        "both.tile": stamped(print_tiles(made.tiles, with_data=False), ";"),
        "both.asm": stamped(disassemble(runtime.program, with_data=False), ";"),
    }
    assert {name: found.files[name].decode() for name in texts} == texts
    assert len(set(texts.values())) == 4
    whole = artifacts(made, runtime, "both", ("graph", "layers", "tile", "asm"), with_data=True).files
    assert whole["both.graph"].decode() == stamped(str(made.graph), "#")
    assert whole["both.layers.graph"].decode() == stamped(made.layers_text(with_data=True), "#")
    assert whole["both.tile"].decode() == stamped(print_tiles(made.tiles), ";")
    assert whole["both.asm"].decode() == stamped(disassemble(runtime.program), ";")
    assert json.loads(found.files["stats.json"]) == {**runtime.stats, "what_if": [asdict(each) for each in runtime.faster]}
    assert found.files["stats.json"].endswith(b"}\n")
    assert list(found.files) == [*texts, "both.tpub", "stats.json"]
    assert found.seconds == 0.0


def test_notes_begin_with_the_params_that_were_given(both: Executable) -> None:
    assert both.compilation is not None
    made = both.compilation
    said = replace(made, options=replace(made.options, params={"n": "3", "m": "4"}), warnings=["that is wide"])
    assert _notes(said) == ["compiled with n = 3, m = 4", "that is wide"]
    assert _notes(replace(said, options=made.options)) == ["that is wide"]


def test_drawing_a_report_takes_time(both: Executable) -> None:
    made = both.compilation
    assert made is not None
    assert made.graph is not None
    found = artifacts(made, both.runtime, "both", ("report",))
    assert list(found.files) == ["report.html"]
    assert found.seconds > 0
