"""Whose work each instruction is: the inputs' way over the link and their copies are no layer's, everywhere."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.reports import executable_of
from tpucc.explain.attribution import INPUT, attribution
from tpucc.explain.critical import LIMITS, Limit
from tpucc.explain.nesting import Source, nesting
from tpucc.explain.segments import matrix_segments
from tpucc.explain.summary import rows_of_layers
from tpucc.isa.effects import effects
from tpucc.see.charts.timeline import Times, layer_spans, stretches
from tpucc.see.page.summary import layer_table
from tpucc.see.pictures import peak_of

pytestmark = pytest.mark.annex

STEMS = ["02_iris", "05_digits_cnn", "06_digits_lstm"]
COPIED = """weights random(seed=0)
model m(x: f32[2, 4, 6, 8] in [-1.0, 1.0]):
    weight w: f32[8, 8]
    weight v: f32[3, 3, 8, 8]
    return conv2d({}, v, padding="same")
"""


@each(STEMS)
def test_layers_and_the_input_have_all_cycles_and_instructions(stem: str) -> None:
    stats = executable_of(stem).stats
    for key in ("cycles", "instructions", "tile_fetches"):
        assert sum(layer[key] for layer in stats["layers"]) == stats[key]
    assert {root: sum(layer["waits_by_root"][root] for layer in stats["layers"]) for root in stats["waits_by_root"]} == stats[
        "waits_by_root"
    ]
    assert [layer["kind"] == INPUT for layer in stats["layers"]] == [False] * len(executable_of(stem).runtime.program.layers) + [True]


@each(STEMS)
def test_no_layer_waits_for_the_inputs(stem: str) -> None:
    """Until the input is there, the array waits for the link on behalf of nobody's layer."""
    runtime = executable_of(stem).runtime
    program, whose = runtime.program, attribution(runtime.program)
    segments, touched = matrix_segments(program, runtime.timeline), effects(program.instructions)
    last = max(runtime.timeline.end[touched.host_reads & (whose.of == len(program.layers))].tolist())
    linked = (segments.root == LIMITS.index(Limit.HOST_LINK)) & (segments.end <= last)
    assert set(segments.layer[linked].tolist()) <= {len(program.layers)}
    assert linked.any() == (stem != "02_iris"), "a small input crosses while the first tile is fetched"


@each([("x", [2, 1]), ("reshape(x @ w, (2, 6, 4, 8))", [0, 1, 2]), ("(x @ w)[:, 1:3]", [0, 1, 2])])
def test_a_copy_of_an_input_is_the_input_s_and_one_of_a_layer_s_result_is_not(value: str, places: list[int]) -> None:
    program = tpucc.compile_source(COPIED.format(value)).runtime.program
    found = attribution(program)
    assert sum(layer.is_copy for layer in program.layers) == 1
    assert found.places.tolist() == places
    assert (found.of == np.where(found.of < len(program.layers), found.places[program.layer_of], len(program.layers))).all()


def test_a_program_without_inputs_has_the_layers_alone() -> None:
    program = tpucc.compile_source(
        "weights random(seed=0)\nmodel m() -> f32[2, 3]:\n    weight w: f32[2, 3]\n    return w\n"
    ).runtime.program
    found = attribution(program)
    assert (found.layers, found.of.tolist()) == (program.layers, program.layer_of.tolist())
    bare = replace(executable_of("02_iris").runtime.program, layers=())
    assert (attribution(bare).layers, attribution(bare).of.tolist()) == ((), bare.layer_of.tolist())


def test_tables_the_band_the_timeline_and_the_peak_chart_have_the_same_input() -> None:
    runtime = executable_of("05_digits_cnn").runtime
    stats, program, times = runtime.stats, runtime.program, Times.of(runtime.timeline, matrix_segments(runtime.program, runtime.timeline))
    cycles = stats["layers"][-1]["cycles"]
    assert 100 * cycles / stats["cycles"] == pytest.approx(49.5, abs=0.1)
    assert sum(end - start for layer, start, end in layer_spans(times) if layer == len(program.layers)) == cycles
    drawn = stretches(program, times, float, lambda _: 0)
    assert sum(stretch.layers.get("input", 0) for stretch in drawn) == cycles
    table = str(layer_table(stats))
    assert table.index(f"<td>input</td><td>16</td><td>{cycles:,}</td>") < table.index("conv1")
    assert "#copy" not in table
    assert [stats["layers"][place]["name"] for place in rows_of_layers(stats["layers"])][:2] == ["input", "conv1"]
    assert ">input …</text>" in peak_of(runtime)
    assert "image.i8#copy0" in json.dumps(stats), "each layer of the program keeps its entry"


def test_what_is_computed_once_for_all_steps_is_in_none_of_them() -> None:
    program = executable_of("06_digits_lstm").runtime.program
    paths = nesting([layer.origin for layer in program.layers], Source.of(program.source_text.split("\n")))
    steps: dict[int, list[str]] = {}
    for layer, path in zip(program.layers, paths, strict=True):
        for turn in path:
            assert turn.count == 8
            steps.setdefault(turn.number, []).append(layer.name)
    assert list(steps) == list(range(9))
    assert steps[0] == ["lstm", "lstm.1", "lstm.2", "lstm.3"]
    assert steps[1][0] == "i"
    assert {len(steps[step]) for step in range(2, 8)} == {13}
