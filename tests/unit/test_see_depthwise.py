"""A depthwise convolution of the vector unit: the activation unit's colour in every picture, and equal to none of another kind."""

from __future__ import annotations

from functools import cache

import pytest

import tpucc
from tests.support.cases import each
from tests.support.reports import PROGRAMS
from tpucc.explain.attribution import attribution
from tpucc.explain.fidelity import fidelity
from tpucc.ir import Graph
from tpucc.see.charts import errors, memory
from tpucc.see.diagrams import dataflow
from tpucc.see.diagrams.collapse import sized
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.see.diagrams.diagram import Box, Diagram
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.operators import known_kinds, operator_diagram
from tpucc.see.page.payload import BY_LANES, untiled
from tpucc.see.palette import Kind, kind_of_layer

MOVES = """weights random(seed=0)
model m(x: f32[4, 6, 8] in [-1.0, 1.0]):
    weight w: f32[8, 8]
    h = relu(x @ w)
    g = concat([h[:, 0:2], h[:, 3:5]], axis=1)
    return g @ w
"""


@cache
def compiled(stem: str) -> tpucc.Executable:
    return tpucc.compile(PROGRAMS / "gallery" / f"{stem}.tpu")


def layers_of(stem: str) -> Graph:
    compilation = compiled(stem).compilation
    assert compilation is not None
    assert compilation.layers is not None
    return compilation.layers


def wanted(name: str) -> Kind:
    return Kind.VECTOR if name.endswith("depthwise") else Kind.MATRIX


def convolutions(diagram: Diagram) -> dict[str, Box]:
    return {box.layers[0]: box for box in diagram.boxes if box.layers and ("depthwise" in box.layers[0] or "pointwise" in box.layers[0])}


def test_a_layer_has_one_colour_in_every_diagram_and_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "SMALL_PROGRAM", 0)
    program = compiled("mlperf_ds_cnn").runtime.program
    for diagram in (layer_diagram(layers_of("mlperf_ds_cnn")), program_diagram(program)):
        found = convolutions(diagram)
        assert len(found) == 8
        assert {name: box.kind for name, box in found.items()} == {name: wanted(name) for name in found}
    stays = [stay for stay in program.residents if "wise.0" in stay.name]
    assert {wanted(program.layers[stay.layer].name) for stay in stays} == {Kind.MATRIX, Kind.VECTOR}
    assert all(memory.kind_of(program, attribution(program), stay) is wanted(program.layers[stay.layer].name) for stay in stays)
    by_lanes = [layer for layer in program.layers if layer.is_by_lanes]
    assert [layer.name for layer in by_lanes] == [f"block{block}.depthwise" for block in range(4)]
    assert {kind_of_layer(layer.kind, layer.multiplies) for layer in by_lanes} == {Kind.VECTOR}
    assert {untiled(layer) for layer in by_lanes} == {BY_LANES}


@each(["mlperf_ds_cnn", "digits_mobilenet"])
def test_its_operator_has_that_colour_where_the_unit_is_known(stem: str) -> None:
    """Also where one line of the source makes all convolutions."""
    compilation = compiled(stem).compilation
    assert compilation is not None
    assert compilation.graph is not None
    known = known_kinds(compilation.graph, layers_of(stem))
    by_lanes = {node.name for node in compilation.graph if node.op == "conv2d" and node.attributes.groups > 1}
    kinds = {box.name: box.kind for box in operator_diagram(compilation.graph, known=known).boxes if box.title == "conv2d"}
    assert kinds == {name: Kind.VECTOR if name in by_lanes else Kind.MATRIX for name in kinds}


def test_the_title_counts_what_the_matrix_unit_computes() -> None:
    compilation = compiled("mlperf_ds_cnn").compilation
    assert compilation is not None
    assert compilation.graph is not None
    said = operator_diagram(compilation.graph, known=known_kinds(compilation.graph, layers_of("mlperf_ds_cnn"))).title
    assert ": 6 matrix products, 4 depthwise convolutions on the activation unit, " in said


def test_a_normalisation_behind_a_product_is_none_of_the_host() -> None:
    compilation = compiled("mlperf_ds_cnn").compilation
    assert compilation is not None
    graph = next(snapshot.value for snapshot in compilation.snapshots if snapshot.stage == "elaborate")
    assert isinstance(graph, Graph)
    assert {box.kind for box in operator_diagram(graph).boxes if box.title == "batch_norm"} == {Kind.VECTOR}


def test_no_operator_has_it_where_the_matrix_unit_computes_all() -> None:
    executable = tpucc.compile(PROGRAMS / "gallery" / "mlperf_ds_cnn.tpu", omit=["depthwise"])
    graph = executable.graph.value
    known = known_kinds(graph, executable.layers.value)
    assert not [node.name for node in graph if node.op == "conv2d" and node.name in known]


def test_what_moves_rows_has_the_colour_of_the_unit_that_copies_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "SMALL_PROGRAM", 0)
    executable = tpucc.compile_source(MOVES)
    diagrams = (layer_diagram(executable.layers.value), program_diagram(executable.runtime.program))
    assert [{box.kind for box in diagram.boxes if box.layers == ("g",)} for diagram in diagrams] == [{Kind.VECTOR}] * 2


def test_the_bar_of_its_error_has_that_colour_too() -> None:
    executable = compiled("digits_mobilenet")
    assert executable.compilation is not None
    found = {error.name: errors.kind_of(error) for error in fidelity(executable.compilation, executable.runtime) if error.kind == "conv"}
    assert set(found.values()) == {Kind.MATRIX, Kind.VECTOR}
    assert found == {name: wanted(name) for name in found}


def test_equal_steps_have_equal_kernels_groups_and_units() -> None:
    """The stem's result has the shape of all others'; so have depthwise and pointwise convolutions."""
    boxes = {box.layers[0]: box.signature for box in layer_diagram(layers_of("mlperf_ds_cnn")).boxes if box.layers}
    stem, *others = (boxes[name] for name in ("stem", "block0.depthwise", "block0.pointwise"))
    assert len({stem, *others}) == 3
    assert others == [boxes["block3.depthwise"], boxes["block3.pointwise"]]


def test_the_blocks_are_periods_of_two_layers() -> None:
    diagram = layer_diagram(layers_of("mlperf_ds_cnn"))
    found = [box for picture in sized(diagram, 10) for box in picture.diagram.boxes if box.title == "4 × 2 layers"]
    assert found
    assert found[0].details[0] == "depthwise conv, conv"
    assert found[0].layers == tuple(f"block{block}.{kind}wise" for block in range(4) for kind in ("depth", "point"))


def test_operators_on_other_kernels_are_not_equal() -> None:
    compilation = compiled("mlperf_ds_cnn").compilation
    assert compilation is not None
    graph = next(snapshot.value for snapshot in compilation.snapshots if snapshot.stage == "elaborate")
    assert isinstance(graph, Graph)
    found = [box.signature for box in operator_diagram(graph).boxes if box.title == "conv2d"]
    assert len(found) == 9
    assert len(set(found)) == 3
