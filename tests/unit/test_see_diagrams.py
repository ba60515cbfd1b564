"""Diagrams: what has a box, what is on the edges, what belongs together, and what is collapsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tests.support.pictures import branching, chain_program, dense_chain, hostile, layer_chain, recurrent
from tpucc.ir import Graph
from tpucc.ops import OPS
from tpucc.see.diagrams.collapse import collapse
from tpucc.see.diagrams.dataflow import SMALL_PROGRAM, program_diagram
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.operators import UNPLACED, clusters, kind_of, known_kinds, operator_diagram
from tpucc.see.diagrams.render import dot_source
from tpucc.see.palette import Kind

GOLDEN = Path(__file__).parent.parent / "golden" / "dot"
READABLE = 200
"""Boxes that a diagram may have before it is collapsed here."""


def boxes(diagram: Diagram, title: str) -> list[int]:
    return [index for index, box in enumerate(diagram.boxes) if box.title == title]


GOLDENS: Mapping[str, Callable[[], Diagram]] = {
    "iris_operators": lambda: operator_diagram(dense_chain("iris", 150, [4, 256, 3], "sigmoid")),
    "iris_layers": lambda: layer_diagram(layer_chain("iris", 150, [4, 256, 3])),
    "iris_program": lambda: program_diagram(chain_program("iris", 150, [4, 256, 3])),
    "branching_operators": lambda: operator_diagram(branching()),
    "hostile_operators": lambda: operator_diagram(hostile()),
    "large_program": lambda: program_diagram(chain_program("large", 200, [800] * 4), [300, 200, 100]),
    "recurrent_collapsed": lambda: collapse(operator_diagram(recurrent(100)), READABLE).diagram,
}


@pytest.mark.parametrize("name", GOLDENS)
def test_dot_is_the_golden_file(name: str, request: pytest.FixtureRequest) -> None:
    path, found = GOLDEN / f"{name}.dot", dot_source(GOLDENS[name]())
    if request.config.getoption("--update-golden", default=False):
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8")


def test_numbers_of_the_source_are_no_weights() -> None:
    source = "weights random(seed=0)\nmodel m(x: f32[4, 8]):\n    weight w: f32[8, 2]\n    return 0.25 * (x @ w) + 3.0\n"
    graph = tpucc.compile_source(source).compilation.graph
    assert graph is not None
    assert operator_diagram(graph).title == "m: 1 matrix product, 2 other operators and 16 weights"


def test_a_product_of_computed_values_counts_as_the_host_s() -> None:
    source = "weights random(seed=0)\nmodel m(x: f32[4, 8]):\n    weight w: f32[8, 2]\n    h = x @ w\n    return h @ transpose(h, (1, 0))\n"
    graph = tpucc.compile_source(source).compilation.graph
    assert graph is not None
    assert (
        operator_diagram(graph, known={"matmul": Kind.HOST}).title
        == "m: 1 matrix product, 1 product on the host, 1 other operator and 16 weights"
    )


def test_every_operator_has_a_box_and_every_value_an_edge_with_its_shape() -> None:
    graph = dense_chain("iris", 150, [4, 256, 3])
    diagram = operator_diagram(graph)
    operators = [node for node in graph if node.op != "weight"]
    assert len(diagram.main_boxes) == len(operators) + 1
    assert [diagram.boxes[index].title for index in diagram.main_boxes] == [*(node.op for node in operators), "output"]
    main = [edge for edge in diagram.edges if not diagram.boxes[edge.tail].small]
    shapes = [("f32[150, 4]",), *[("f32[150, 256]",)] * 3, *[("f32[150, 3]",)] * 3]
    assert sorted(edge.label for edge in main) == sorted(shapes)


def test_weights_are_small_and_beside_their_reader() -> None:
    diagram = operator_diagram(dense_chain("iris", 150, [4, 256, 3]))
    small = {box.title: diagram.boxes[box.beside].title for box in diagram.boxes if box.small}
    assert small == {"fc1.w f32[4, 256]": "matmul", "fc1.b f32[256]": "add", "fc2.w f32[256, 3]": "matmul", "fc2.b f32[3]": "add"}
    assert all(box.kind is Kind.WEIGHTS for box in diagram.boxes if box.small)


def test_a_shared_weight_stands_beside_each_reader() -> None:
    diagram = operator_diagram(recurrent(3))
    readers = [diagram.boxes[box.beside].details[0] for box in diagram.boxes if box.small and box.title == "k f32[4, 3]"]
    assert readers == ["a", "a.1", "a.2"]


def test_layers_are_clusters_of_product_bias_and_activation() -> None:
    graph = dense_chain("iris", 150, [4, 256, 3])
    cluster_of, found = clusters(graph)
    assert [cluster.label for cluster in found] == ["fc1 · line 9", "fc2 · line 9"]
    assert {name: cluster_of[name] for name in cluster_of} == {"product": 0, "sum": 0, "h": 0, "product.1": 1, "sum.1": 1}


def test_two_products_summed_are_one_layer_and_a_product_of_two_layers_is_none() -> None:
    cluster_of, found = clusters(recurrent(2))
    assert len(found) == 2
    assert [cluster_of[name] for name in ("a", "b", "z", "h", "a.1", "b.1", "z.1", "h.1")] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert "joined" not in clusters(branching())[0]


@each(sorted(OPS))
def test_every_operator_has_a_kind(op: str) -> None:
    assert kind_of(op) in Kind


def test_unknown_operators_are_the_hosts() -> None:
    assert kind_of("of a plug-in") is Kind.HOST


def test_layer_graph_shows_scales_and_frames_the_device() -> None:
    diagram = layer_diagram(layer_chain("iris", 150, [4, 256, 3]))
    labels = [edge.label for edge in diagram.edges if edge.quantised]
    assert labels == [("i8[150, 4]", "0.03137 · (q + 3)"), ("i8[150, 256]", "0.003906 · (q - 5)"), ("i8[150, 3]", "0.003906 · (q - 5)")]
    assert [diagram.boxes[i].details[0] for i in diagram.main_boxes if diagram.boxes[i].cluster == 0] == ["fc1", "fc2"]
    assert diagram.title == "iris: 2 layers on the device in int8, 1 operator on the host in float32"


def test_a_subtitle_speaks_of_frames_where_there_are_some() -> None:
    plain = Graph("plain", tuple(node for node in dense_chain("iris", 4, [4, 8]) if node.is_input), ())
    framed = operator_diagram(dense_chain("iris", 4, [4, 8]), "Mine").subtitle
    assert framed == f"Mine; the arrows are tensors, the frames are layers.{UNPLACED}"
    assert operator_diagram(plain, "Mine").subtitle == "Mine; the arrows are tensors."


MOVED = """weights random(seed=0)
model m(x: f32[2, 4, 4], y: f32[2, 3]):
    weight w: f32[4, 3]
    weight v: f32[4, 3]
    moved = transpose(relu(x @ w), (0, 2, 1))
    return relu(moved @ v), relu(y)
"""


@pytest.mark.usefixtures("any_ranges")
def test_boxes_of_layers_stand_in_the_order_of_the_machine() -> None:
    """The host quantises both inputs before the device begins. It moves the integers between two segments, in no frame, and is no layer."""
    layers = tpucc.compile_source(MOVED).compilation.layers
    assert layers is not None
    diagram = layer_diagram(layers)
    frames = [diagram.boxes[index].cluster for index in diagram.main_boxes]
    assert list(dict.fromkeys(pairwise(frames))) == [(-1, -1), (-1, 0), (0, 0), (0, -1), (-1, 1), (1, -1)]
    assert [diagram.boxes[index].cluster for index in boxes(diagram, "transpose")] == [-1]
    assert {diagram.noun_of([index]) for index in diagram.main_boxes if diagram.boxes[index].cluster < 0} == {"operator"}


ON_HOST = """weights random(seed=0)
model m(x: f32[2, 3, 4] in [-1.0, 1.0]):
    weight w: f32[4, 4]
    h = relu(x @ w)
    products = h @ transpose(h, [0, 2, 1])
    return softmax(relu(products + 1.0))
"""


@pytest.mark.usefixtures("any_ranges")
def test_what_the_host_computes_has_its_colour_where_the_place_is_known() -> None:
    """In the layers, in the operators that they were made of, and after the pass `place`; before it the subtitle says what colours mean."""
    compilation = tpucc.compile_source(ON_HOST).compilation
    graph, layers = compilation.graph, compilation.layers
    assert graph is not None
    assert layers is not None
    stages = {snapshot.stage: snapshot.value for snapshot in compilation.snapshots}
    known, plain = operator_diagram(graph, known=known_kinds(graph, layers)), operator_diagram(graph)
    for diagram in (layer_diagram(layers), known, operator_diagram(stages["place"])):
        kinds = {box.name: box.kind for box in diagram.boxes}
        assert (kinds["products"], diagram.boxes[boxes(diagram, "softmax")[0]].kind) == (Kind.HOST, Kind.HOST)
        assert UNPLACED not in diagram.subtitle
    assert [known.boxes[index].kind for index in boxes(known, "relu")] == [Kind.VECTOR, Kind.HOST]
    assert [known.boxes[index].kind for index in boxes(known, "matmul")] == [Kind.MATRIX, Kind.HOST]
    assert [cluster.label for cluster in known.clusters] == ["matmul · line 4"]
    assert [plain.boxes[index].kind for index in boxes(plain, "matmul")] == [Kind.MATRIX, Kind.MATRIX]
    assert UNPLACED in plain.subtitle


FOLDED = """weights random(seed=0)
model m(x: f32[2, 4] in [-1.0, 1.0]):
    weight w: f32[4, 4]
    weight token: f32[1, 4]
    return relu((x + (token + zeros([2, 4]))) @ (w * 2.0))
"""


@pytest.mark.usefixtures("any_ranges")
def test_what_becomes_a_constant_before_anything_runs_has_the_colour_of_constants() -> None:
    """Of constants alone: neither the host nor the activation unit computes it."""
    compilation = tpucc.compile_source(FOLDED).compilation
    graph, layers = compilation.graph, compilation.layers
    assert graph is not None
    assert layers is not None
    diagram = operator_diagram(graph, known=known_kinds(graph, layers))
    kinds = {box.name: box.kind for box in diagram.boxes if box.name}
    folded = {"zeros", "add", "mul"}
    assert {kinds[name] for name in folded} == {Kind.WEIGHTS}
    assert {kind for name, kind in kinds.items() if name not in folded} == {Kind.HOST, Kind.VECTOR, Kind.MATRIX}


def test_layers_have_the_colours_of_their_units_among_operators_too() -> None:
    diagram = operator_diagram(layer_chain("iris", 150, [4, 256, 3]))
    assert {diagram.boxes[index].kind for index in boxes(diagram, "fc")} == {Kind.MATRIX}


def test_a_small_program_is_drawn_by_instructions() -> None:
    diagram = program_diagram(chain_program("iris", 150, [4, 256, 3]))
    titles = [diagram.boxes[index].title for index in diagram.main_boxes]
    assert titles == ["read host memory", *["matrix multiply", "activate"] * 2, "write host memory"]
    assert [edge.label for edge in diagram.edges if edge.label] == [
        ("ub 0–149",), ("acc 0–149",), ("ub 150–299",), ("acc 0–149",), ("ub 300–449",),
    ]  # fmt: skip
    assert [box.title for box in diagram.boxes if box.small] == ["tile 0 · 4×256", "parameters 0", "tile 1 · 256×3", "parameters 1"]


def test_accumulating_multiplies_are_chained() -> None:
    diagram = program_diagram(chain_program("deep", 8, [600, 10]))
    multiplies = boxes(diagram, "matrix multiply")
    chained = {(edge.tail, edge.head) for edge in diagram.edges}
    assert len(multiplies) == 3
    assert {(multiplies[0], multiplies[1]), (multiplies[1], multiplies[2]), (multiplies[2], boxes(diagram, "activate")[0])} <= chained


def test_a_larger_program_is_drawn_by_layers() -> None:
    program = chain_program("large", 200, [800] * 4)
    assert (program.instructions["inner"] > 0).sum() > SMALL_PROGRAM
    diagram = program_diagram(program, [300, 200, 100])
    assert [box.title for box in diagram.boxes] == ["host input", "fc1", "fc2", "fc3", "host output"]
    assert [(edge.tail, edge.head, edge.label) for edge in diagram.edges] == [
        (0, 1, ("800 rows",)), (1, 2, ("800 rows",)), (2, 3, ("800 rows",)), (3, 4, ("800 rows",)),
    ]  # fmt: skip
    assert diagram.boxes[1].details == ("fc 800 → 800", "16 tiles, 49 instructions", "300 cycles, 50 %")


def test_up_to_the_limit_nothing_is_collapsed() -> None:
    diagram = operator_diagram(dense_chain("deep", 8, [16] * 66))
    assert len(diagram.main_boxes) == 3 * 65 + 2 <= READABLE
    assert collapse(diagram, READABLE).diagram is diagram


def test_past_the_limit_a_box_is_a_layer() -> None:
    sizes = [16 + (index % 7) * index for index in range(70)]
    diagram = collapse(operator_diagram(dense_chain("deep", 8, sizes)), READABLE).diagram
    assert len(diagram.main_boxes) == 69 + 3
    layer = diagram.boxes[1]
    assert (layer.title, layer.details[0], layer.stands_for) == ("fc1 · line 9", "matmul, add, relu", 3)
    assert layer.shares == ((Kind.MATRIX, 1), (Kind.VECTOR, 2))
    assert "drawn as 72;" in diagram.subtitle


def test_repeated_layers_are_one_box() -> None:
    diagram = collapse(operator_diagram(dense_chain("deep", 8, [16] * 301)), READABLE).diagram
    assert [diagram.boxes[i].title for i in diagram.main_boxes] == ["input", "299 × 3 operators", "fc300 · line 9", "softmax", "output"]
    assert diagram.boxes[1].stands_for == 897


def test_an_unrolled_loop_is_one_box() -> None:
    diagram = collapse(operator_diagram(recurrent(100)), READABLE).diagram
    assert len(diagram.main_boxes) < 12
    assert max(box.stands_for for box in diagram.boxes) > 400


@pytest.mark.parametrize("limit", [1, 2, 7, 40, 150])
@pytest.mark.parametrize("graph", [recurrent(60), dense_chain("deep", 8, [7 + i * i % 31 for i in range(90)])], ids=["loop", "chain"])
def test_collapsing_keeps_the_limit_every_box_and_the_order(graph: Graph, limit: int) -> None:
    full = operator_diagram(graph)
    diagram = collapse(full, limit).diagram
    assert len(diagram.main_boxes) <= limit
    assert sum(diagram.boxes[i].stands_for for i in diagram.main_boxes) == len(full.main_boxes)
    main = [edge for edge in diagram.edges if not diagram.boxes[edge.tail].small]
    assert all(edge.tail < edge.head for edge in main)
    assert limit == 1 or {edge.head for edge in main} | {edge.tail for edge in main} == set(diagram.main_boxes)


@pytest.mark.soak
def test_large_graphs_are_quick() -> None:
    diagram = collapse(operator_diagram(recurrent(4000)), READABLE).diagram
    assert len(diagram.main_boxes) <= READABLE


PROGRAMS = Path(__file__).parents[2] / "programs"


def test_rows_of_constants_are_no_layers_values() -> None:
    """One layer brings the row of zero points that all borders are filled from; no arrow says that they read it from that layer."""
    program = tpucc.compile(PROGRAMS / "05_digits_cnn.tpu").runtime.program
    assert any(buffer.kind == "constant" for buffer in program.host)
    diagram = program_diagram(program)
    names = [box.title for box in diagram.boxes]
    ends = {(names[edge.tail], names[edge.head]) for edge in diagram.edges}
    layers = ["host input", *(layer.name for layer in program.layers if layer.name in names), "host output"]
    assert ends == set(pairwise(layers))
