"""What passes decide is in the graph: who computes a node, who holds a value, what the user should hear. They write nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import FUSIONS, Model, context, layers_of, placed
from tests.support.placing import placement
from tests.support.rewrites import graph_of
from tpucc.compilation import Compilation
from tpucc.diagnostics import ProgramError, Source
from tpucc.driver import compile_source
from tpucc.ir import Graph, Node
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.ir.verify import verify_graph
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.layers.partition import partition
from tpucc.layers.verify import verify_layers
from tpucc.ops.constant import ConstantAttributes
from tpucc.options import Options
from tpucc.passes.base import Context, Pass
from tpucc.passes.calibrate import calibrate
from tpucc.passes.explicit_quantisation import explicit_quantisation
from tpucc.passes.pack_patches import pack_patches
from tpucc.passes.pipeline import PASSES, run_pass
from tpucc.passes.place import place
from tpucc.passes.quantise import quantise
from tpucc.passes.sink_transposes import sink_transposes
from tpucc.passes.split_maps import split_maps
from tpucc.target import load_target

ROOT = Path(__file__).parents[2]
SHIPPED = ("01_hello", "02_iris", "03_wine", "05_digits_cnn", "12_mlp_mixer_block", "13_quadric")
SMALL = ("broadcasts", "explicit_quantisation", "host_only", "left_constants", "scalars")
PROGRAMS = [ROOT / f"programs/{name}.tpu" for name in SHIPPED] + [ROOT / f"tests/programs/{name}.tpu" for name in SMALL]
CNN = """
x = input : f32[1, 8, 8, 1]
k = constant(value=f32[2, 2, 1, 1]{1, 2, 3, 4}) : f32[2, 2, 1, 1]
y = conv2d(x, k) : f32[1, 7, 7, 1]
q = quantize(y, scale=0.5, zero_point=0) : i8[1, 7, 7, 1] scale 0.5 zero 0
z = dequantize(q, scale=0.5, zero_point=0) : f32[1, 7, 7, 1]
return z
"""


def read(text: str) -> Graph:
    return parse_graph(text, "test.graph", ATTRIBUTES)


def dense() -> Graph:
    model = Model()
    h = model.dense(model.input("x", 2, 3), np.eye(3), np.ones(3), activation="tanh")
    return model.build(model.op("softmax", h, name="p"))


def compiled(path: Path, **options: Any) -> Compilation:
    return compile_source(Source(path.name, path.read_text()), path.parent, Options(stop_after="divide-batch", **options))


# Places


def test_the_text_says_what_the_device_computes_and_reads_it_back() -> None:
    graph = placed(dense())
    text = print_graph(graph, origins=False)
    assert "fc_tanh = tanh(fc_sum) : f32[2, 3] on device\n" in text
    assert "x = input : f32[2, 3]\n" in text
    assert " on host" not in text
    assert read(print_graph(graph)) == graph != dense()
    assert read(print_graph(dense())) == dense()


def test_where_the_device_has_nothing_to_do_the_text_says_so() -> None:
    graph = placed(graph_of("x = input : f32[2, 3]\ny = softmax(x) : f32[2, 3]\nreturn y"))
    assert print_graph(graph).count(" on host") == 2
    assert read(print_graph(graph)) == graph


def test_a_place_typed_for_one_node_makes_the_others_the_hosts() -> None:
    graph = read("graph g\nx = input : f32[2]\ny = relu(x) : f32[2] on device\nreturn y")
    assert [node.place for node in graph] == ["host", "device"]


UNPLACED: list[Pass] = [explicit_quantisation, pack_patches, calibrate, split_maps, quantise]


@each(UNPLACED)
def test_a_pass_that_needs_places_says_so_at_the_first_node(step: Pass) -> None:
    graph = graph_of(CNN)
    with pytest.raises(ProgramError) as caught:
        step.run(graph, context())
    (error,) = caught.value.diagnostics
    assert (error.code, error.span) == ("E0806", graph["x"].origin.spans[0])
    assert "computes x: graphs are placed before" in error.message


def test_a_pass_that_runs_after_placing_all_the_same_gives_its_nodes_places() -> None:
    constant = "c = constant(value=f32[2, 4]{1, 2, 3, 4, 5, 6, 7, 8}) : f32[2, 4]"
    graph = placed(graph_of(f"x = input : f32[4, 3]\n{constant}\ny = matmul(c, x) : f32[2, 3]\nreturn y"))
    result = sink_transposes.run(graph, context())
    assert [node.op for node in result if node.op in ("matmul", "transpose")] == ["transpose", "matmul", "transpose"]
    verify_graph(result)
    assert result.is_placed


def test_a_layer_graph_has_no_places() -> None:
    layers = layers_of(dense(), fused=True)
    assert not layers.is_placed
    with pytest.raises(ProgramError) as caught:
        verify_layers(layers.with_nodes(replace(node, place="host") for node in layers))
    assert caught.value.diagnostics[0].code == "E0749"


@dataclass(frozen=True)
class Doubled:
    """A pass that makes nodes as it was done before there were places."""

    name: ClassVar[str] = "doubled"
    summary: ClassVar[str] = "adds a relu to each relu"
    level: ClassVar[int] = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        nodes: list[Node] = []
        for node in graph:
            if node.op == "relu":
                nodes.append(Node(f"{node.name}.0", "relu", node.operands, node.attributes, node.type, node.origin.by(self.name)))
                node = replace(node, operands=(nodes[-1].name,))
            nodes.append(node)
        return graph.with_nodes(nodes).noting(f"{len(graph)} nodes", "and more")


class DoubledLate(Doubled):
    after: ClassVar[str] = "calibrate"


MODEL = "model small(x: f32[3, 5]):\n    return relu(x)\n"


def test_a_students_pass_that_forgets_a_place_is_told_so_by_name() -> None:
    with pytest.raises(tpucc.Error) as caught:
        tpucc.compile_source(MODEL, passes=(DoubledLate(),))
    text = str(caught.value)
    assert "the pass doubled" in text
    assert "error E0749: nothing says whether the host or the device computes" in text
    assert "place=node.place" in text


def test_a_students_pass_comes_before_places_unless_it_asks_for_another_and_is_heard() -> None:
    made = tpucc.compile_source(MODEL, passes=(Doubled(),), level=0)
    assert made.warnings[:2] == ("2 nodes", "and more")
    assert made.compilation is not None
    assert made.compilation.layers is not None
    assert sum(node.op == "vector" for node in made.compilation.layers) == 2


# Holders


def test_a_node_of_the_layer_graph_says_what_it_holds_and_its_text_reads_back() -> None:
    layers = layers_of(dense(), fused=True)
    assert {value: layers.holders[value] for value in ("x", "fc_tanh", "p")} == {"x": "x.i8", "fc_tanh": "fc", "p": "p"}
    text = print_graph(layers)
    assert " holds fc_tanh" in text
    assert text.count(" holds ") == sum(bool(node.holds) for node in layers)
    assert read(text) == layers
    assert read(text).holders == layers.holders


def test_a_value_held_under_its_own_name_needs_no_words() -> None:
    layers = layers_of(graph_of("x = input : f32[2, 3]\ny = relu(x) : f32[2, 3]\nreturn y"))
    assert layers["y"].holds == ()
    assert layers.holders["y"] == "y"


def test_the_parts_of_a_program_speak_of_their_own_values_only() -> None:
    parts = partition(layers_of(dense(), fused=True))
    graphs = (parts.prologue, parts.device, parts.epilogue)
    assert not [node.name for graph in graphs for node in graph if node.holds]


# Passes write nothing but their result


def state_of(graph: Graph) -> list[object]:
    """All that a graph says, constants by their bytes as they are now."""
    values = [node.attributes.value.data.tobytes() for node in graph if isinstance(node.attributes, ConstantAttributes)]
    return [print_graph(graph), tuple(map(id, graph.nodes)), graph.notes, hash(tuple(values))]


def context_of(context: Context) -> dict[str, object]:
    """All that a context says, arrays by their bytes."""
    given = {name: array.tobytes() for name, array in (context.calibration or {}).items()}
    return {field.name: getattr(context, field.name) for field in fields(context)} | {"calibration": given}


@pytest.mark.long
def test_every_pass_on_every_program_leaves_graph_and_context_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()

    def watched(step: Pass, graph: Graph, context: Context) -> Graph:
        before = state_of(graph), context_of(context), vars(step) if hasattr(step, "__dict__") else None
        result = run_pass(step, graph, context)
        assert (state_of(graph), context_of(context), vars(step) if hasattr(step, "__dict__") else None) == before, step.name
        assert step.run(graph, context) == result, f"{step.name} remembers something"
        ran.add(step.name)
        return result

    monkeypatch.setattr("tpucc.driver.run_pass", watched)
    for path in PROGRAMS:
        compiled(path)
    assert ran == {step.name for step in PASSES}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_place_that_a_node_was_given_is_the_one_it_would_be_given_at_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes after `place` keep it true, so that nothing needs to compute it again."""
    seen: list[Mapping[str, object]] = []
    run = quantise.run

    def checked(graph: Graph, context: Context) -> Graph:
        seen.append(placement(graph))
        assert {node.name: node.place for node in graph} == seen[-1]
        return run(graph, context)

    monkeypatch.setattr(quantise, "run", checked)
    compiled(path, level=0)
    compiled(path)
    assert len(seen) == 2


def test_a_context_cannot_be_written_to() -> None:
    given = {"x": np.zeros((2, 3), np.float32)}
    frozen: Any = Context(load_target("tiny"), given)
    for change in (lambda: setattr(frozen, "cores", 2), lambda: frozen.calibration.update(x=0), lambda: frozen.calibration["x"].fill(1)):
        with pytest.raises((FrozenInstanceError, AttributeError, ValueError)):
            change()
    given["x"][0, 0] = 1
    assert given["x"].flags.writeable


def test_what_a_pass_notes_is_its_own() -> None:
    graph = dense()
    assert graph.noting("a").noting("b", "c").notes == ("a", "b", "c")
    assert graph.noting("a") == graph
    assert graph.noting() is graph
    assert graph.without_notes() is graph
    calibrated = calibrate.run(placed(graph), context())
    assert len(quantise.run(calibrated, context()).notes) == 1
    assert all(step.run(calibrated, context()).notes == () for step in (place, *FUSIONS))
