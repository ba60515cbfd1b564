"""The dataflow of programs written down row by row: which arrows there are, and how many rows pass."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import tpucc
from tests.support.machine import Writer
from tpucc.diagnostics import Origin
from tpucc.ir import Constant, Node, Quantisation, TensorType
from tpucc.isa.program import HostBuffer, Program
from tpucc.machines.v1 import Flag, Function, Opcode
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.see.diagrams import dataflow
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.see.diagrams.diagram import Box
from tpucc.see.diagrams.operators import attribute_label, constant_label, edge_label
from tpucc.see.palette import Kind


class Steps(Writer):
    """Reads, copies and sums of rows of the unified buffer, each for a layer."""

    def read(self, layer: int, host: int, dest: int, rows: int) -> None:
        self.layer = layer
        self.add(Opcode.READ_HOST_MEMORY, host=host, dest=dest, inner=rows)

    def copy(self, layer: int, source: int, dest: int, rows: int, stride: int = 1) -> None:
        self.layer = layer
        walk = {"ub_stride": stride, "dest_stride": 1, "outer": 1, "inner": rows}
        self.add(Opcode.VECTOR, function=Function.COPY, ub=source, dest=dest, **walk)

    def sum(self, layer: int, one: int, other: int, dest: int, rows: int) -> None:
        self.layer = layer
        walk = {"ub_stride": 1, "ub2_stride": 1, "dest_stride": 1, "outer": 1, "inner": rows}
        self.add(Opcode.VECTOR, function=Function.ADD, ub=one, ub2=other, dest=dest, **walk)

    def write(self, layer: int, source: int, rows: int) -> None:
        self.layer = layer
        self.add(Opcode.WRITE_HOST_MEMORY, ub=source, host=16, inner=rows)


def arrows(program: Program) -> set[tuple[str, str, tuple[str, ...]]]:
    """The arrows of a program as it is drawn: from box to box, and what passes."""
    diagram = program_diagram(program)
    names = [" ".join([box.title, *box.details]) if diagram.noun == "instruction" else box.title for box in diagram.boxes]
    return {(names[edge.tail], names[edge.head], edge.label) for edge in diagram.edges}


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "SMALL_PROGRAM", 0)


@pytest.mark.usefixtures("coarse")
def test_rows_that_pass_are_counted_once() -> None:
    """The second layer reads rows 2–3, 5–7 and all eight, in this order, and the last two once more; the third reads one of its rows."""
    steps = Steps()
    steps.read(0, 0, 0, 8)
    for source, rows in ((2, 2), (5, 3), (0, 8), (0, 8), (2, 2)):
        steps.copy(1, source, 16, rows)
    steps.copy(2, 19, 30, 1)
    steps.write(2, 30, 1)
    assert arrows(steps.program()) == {
        ("host input", "layer0", ("8 rows",)),
        ("layer0", "layer1", ("8 rows",)),
        ("layer1", "layer2", ("1 row",)),
        ("layer2", "host output", ("1 row",)),
    }


@pytest.mark.usefixtures("coarse")
def test_rows_count_again_when_they_are_written_anew() -> None:
    """Two halves of a batch have the same rows. The second layer reads those of each half in two parts, between which the third reads."""
    steps = Steps()
    steps.read(0, 0, 0, 16)
    for half in (0, 8):
        steps.copy(1, half, 16, 8)
        for layer, source, rows in ((2, 16, 5), (3, 20, 2), (2, 19, 5)):
            steps.copy(layer, source, 8 * layer + 16, rows)
    steps.write(3, 40, 2)
    found = {(tail, head): label for tail, head, label in arrows(steps.program())}
    assert found["layer0", "layer1"] == ("16 rows",)
    assert found["layer1", "layer2"] == ("16 rows",)
    assert found["layer1", "layer3"] == ("4 rows",)


@pytest.mark.usefixtures("coarse")
def test_rows_between_the_steps_of_a_walk_do_not_pass() -> None:
    """Of what the first layer wrote, the third reads rows 0, 4 and 8, and what the second wrote lies between; the last one walks twice."""
    steps = Steps()
    steps.read(0, 0, 0, 9)
    steps.copy(1, 0, 1, 2)
    steps.copy(2, 0, 16, 3, stride=4)
    steps.copy(3, 0, 24, 5, stride=2)
    steps.copy(3, 0, 24, 3, stride=4)
    steps.write(3, 24, 3)
    found = {(tail, head): label for tail, head, label in arrows(steps.program())}
    assert found["layer0", "layer2"] == ("3 rows",)
    assert ("layer1", "layer2") not in found
    assert found["layer0", "layer3"] == ("4 rows",)
    assert found["layer1", "layer3"] == ("1 row",)


def test_an_arrow_between_instructions_says_how_many_rows_of_a_stretch_pass() -> None:
    steps = Steps()
    steps.read(0, 0, 0, 9)
    steps.copy(0, 0, 16, 3, stride=4)
    assert {label for _, _, label in arrows(steps.program())} == {("3 of ub 0–8",)}


@pytest.mark.usefixtures("coarse")
def test_layers_that_alternate_own_what_they_wrote_last_and_arrows_run_forwards() -> None:
    """Layer 1 writes rows 8–11, layer 2 changes them, layer 1 once more; layer 3 begins before layer 2, and reads layer 1's last ones."""
    steps = Steps()
    steps.read(0, 0, 0, 4)
    steps.copy(1, 0, 8, 4)
    steps.copy(3, 8, 20, 4)
    steps.copy(2, 8, 8, 4)
    steps.copy(1, 8, 8, 4)
    steps.sum(3, 8, 20, 24, 4)
    steps.write(3, 24, 4)
    found = program_diagram(steps.program())
    assert [box.title for box in found.boxes] == ["host input", "layer0", "layer1", "layer3", "layer2", "host output"]
    assert {(tail, head) for tail, head, _ in arrows(steps.program())} == {
        ("host input", "layer0"), ("layer0", "layer1"), ("layer1", "layer3"), ("layer1", "layer2"), ("layer3", "host output"),
    }  # fmt: skip


@pytest.mark.usefixtures("coarse")
def test_a_constant_belongs_to_no_layer() -> None:
    steps = Steps()
    steps.read(0, 0, 0, 4)
    steps.read(0, 32, 4, 1)
    steps.copy(1, 0, 8, 4)
    steps.sum(2, 8, 4, 12, 1)
    steps.write(2, 12, 1)
    program = steps.program()
    constant = replace(program, host=(*program.host, HostBuffer("zero", "constant", 32, 1)), constants=np.zeros((1, 4), np.int8))
    pairs = {(tail, head) for tail, head, _ in arrows(constant)}
    assert pairs == {("host input", "layer0"), ("layer0", "layer1"), ("layer1", "layer2"), ("layer2", "host output")}
    known = replace(program, host=(*program.host, HostBuffer("zero", "spill", 32, 1)))
    assert ("layer0", "layer2") in {(tail, head) for tail, head, _ in arrows(known)}


@pytest.mark.usefixtures("coarse")
def test_a_layer_s_box_has_the_colour_of_its_unit() -> None:
    steps = Steps()
    for layer in range(5):
        steps.copy(layer, 0, 0, 1)
    program = steps.program()
    fills = ((0, 3, 2),)
    kinds = (("fc", (3, 2), fills), ("move", (0, 0), ()), ("host", (0, 0), ()), ("pool", (0, 0), ()), ("conv", (9, 2), ()))
    own_kinds = zip(program.layers, kinds, strict=True)
    layers = tuple(replace(layer, kind=kind, weights=weights, tile_fills=own) for layer, (kind, weights, own) in own_kinds)
    found = program_diagram(replace(program, layers=layers), [10, 20, 10, 0, 0])
    own = [box for box in found.boxes if box.title.startswith("layer")]
    assert [box.kind for box in own] == [Kind.MATRIX, Kind.VECTOR, Kind.HOST, Kind.VECTOR, Kind.VECTOR]
    assert [box.details[2:] for box in own] == [("10 cycles, 25 %",), ("20 cycles, 50 %",), ("10 cycles, 25 %",), (), ()]
    assert own[0].details[0] == "fc 3 → 2"


def test_arrows_between_instructions_name_the_first_rows_that_pass() -> None:
    """A sum reads twice what one copy wrote; a single row is one number."""
    steps = Steps()
    steps.read(0, 0, 0, 8)
    steps.copy(0, 0, 8, 6)
    steps.sum(0, 8, 11, 20, 3)
    steps.copy(0, 22, 30, 1)
    steps.sum(0, 0, 30, 34, 1)
    assert {(tail.split(" instruction ")[-1], head.split(" instruction ")[-1], label) for tail, head, label in arrows(steps.program())} == {
        ("0", "1", ("ub 0–5",)), ("1", "2", ("ub 8–10, …",)), ("2", "3", ("ub 22",)), ("0", "4", ("ub 0",)), ("3", "4", ("ub 30",)),
    }  # fmt: skip


def test_parameters_are_named_where_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many boxes as fit are still drawn one by one."""
    writer = Writer()
    one, two = writer.block(), writer.block()
    tile = writer.tile(np.eye(3, 2))
    writer.add(Opcode.READ_WEIGHTS, index=tile)
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=4)
    for block in (one, None, two, one):
        if block is not None:
            writer.add(Opcode.SET_CONFIGURATION, index=block)
        writer.add(Opcode.ACTIVATE, acc=0, dest=8, inner=4)
    program = writer.program()
    monkeypatch.setattr(dataflow, "SMALL_PROGRAM", 5)
    found = program_diagram(program)
    assert [box.title for box in found.boxes if box.small] == ["tile 0 · 4×4", "parameters 0", "parameters 1", "parameters 0"]
    assert [box.beside for box in found.boxes if box.small] == [0, 1, 3, 4]
    monkeypatch.setattr(dataflow, "SMALL_PROGRAM", 4)
    assert program_diagram(program).noun == "layer"


@dataclass(frozen=True)
class Settings:
    """Attributes of every kind that is written, each with a default."""

    axis: int = 0
    keep_size: bool = False
    scale: float = 1.0
    mode: str = "same"
    window: tuple[int, ...] = (1, 1)
    empty: tuple[int, ...] = (3,)
    flag: bool = True


def test_attributes_that_say_something_are_written() -> None:
    kind = TensorType("f32", (2, 3))
    assert attribute_label(Node("x", "pool", (), Settings(), kind, Origin())) == ()
    given = Settings(-1, True, 0.5, "valid", (2, 3), (), False)
    assert attribute_label(Node("x", "pool", (), given, kind, Origin())) == (
        "axis -1, keep size yes, scale 0.5, mode valid, window 2×3, flag no",
    )
    part = SliceAttributes((0, 4, 1), (2, 5, 9), (1,))
    assert attribute_label(Node("x", "slice", ("y",), part, kind, Origin())) == ("[0:2, 4, 1:9]",)
    part = SliceAttributes((0, 4, 8), (9, 5, -1), (1,), (2, 1, -1))
    assert attribute_label(Node("x", "slice", ("y",), part, kind, Origin())) == ("[0:9:2, 4, 8::-1]",)


def test_a_constant_is_its_key_or_its_name_and_a_number_itself() -> None:
    kind = TensorType("f32", (2, 3))
    assert constant_label(Node("w.1", "weight", (), WeightAttributes("one.w"), kind, Origin())) == "one.w f32[2, 3]"
    for values, words in ((np.float32([[0.5]]), "0.5"), (np.float32([0.5, 1.0]), "c f32[2, 3]")):
        assert constant_label(Node("c", "constant", (), ConstantAttributes(Constant(values)), kind, Origin())) == words


def test_a_value_without_a_zero_point_is_a_product() -> None:
    labels = [edge_label(TensorType("i8", (2,), None, Quantisation(0.5, zero)))[1] for zero in (0, 3, -3)]
    assert labels == ["0.5 · q", "0.5 · (q - 3)", "0.5 · (q + 3)"]


STEPPED = """weights random(seed=1)

model steps(x: f32[8, 16] in [-1.0, 1.0]) -> f32[8, 3]:
    weight w: f32[16, 32]
    weight v: f32[32, 32]
    weight u: f32[32, 3]
    h = relu(x @ w)
    s = softmax(h)
    g = relu(s @ v)
    t = softmax(g)
    return t @ u
"""


def drawn(host_is_known: bool = True) -> tuple[Program, list[Box], dict[tuple[str, str], tuple[str, ...]]]:
    """The boxes and the arrows of a program whose host computes a `softmax` twice between its products."""
    runtime = tpucc.compile_source(STEPPED).runtime
    found = program_diagram(runtime.program, host=runtime.host.all if host_is_known else ())
    boxes = list(found.boxes)
    return runtime.program, boxes, {(boxes[edge.tail].title, boxes[edge.head].title): edge.label for edge in found.edges}


@pytest.mark.usefixtures("coarse")
def test_host_steps_stand_between_the_layers_that_they_read_and_feed() -> None:
    program, boxes, edges = drawn()
    assert [box.title for box in boxes] == ["host input", "h", "host step 0", "g", "host step 1", program.layers[-1].name, "host output"]
    assert edges == {(one.title, other.title): ("8 rows",) for one, other in itertools.pairwise(boxes)}
    assert [box.details for box in boxes if "step" in box.title] == [("softmax", "768 values"), ("softmax", "768 values")]
    timed = program_diagram(program, [each["cycles"] for each in tpucc.compile_source(STEPPED).stats["layers"]]).boxes
    assert [box.details[-1].partition(" ")[0] for box in timed if "step" in box.title] == ["7,538", "7,538"]


@pytest.mark.usefixtures("coarse")
def test_a_box_of_the_host_has_its_own_instructions_and_lines() -> None:
    program, boxes, _ = drawn()
    names = [[Opcode(int(program.instructions["opcode"][at])).mnemonic for at in box.instructions] for box in boxes]
    step = ["write_host_memory", "interrupt_host", "read_host_memory"]
    assert names == [["read_host_memory"], [], step, [], step, [], ["write_host_memory"]]
    assert [box.lines for box in boxes if box.instructions] == [(3,), (8,), (10,), (11,)]
    assert [box.layers for box in boxes if box.instructions] == [(), ("host step 0",), ("host step 1",), ()]


@pytest.mark.usefixtures("coarse")
def test_a_host_step_of_which_only_the_ports_are_known_names_what_it_makes() -> None:
    _, boxes, edges = drawn(host_is_known=False)
    assert len(edges) == 6
    assert [box.details[0] for box in boxes if "step" in box.title] == ["makes s.i8", "makes t.i8"]
    assert not any(box.lines for box in boxes if box.instructions and not box.layers)


def test_host_steps_are_boxes_among_the_instructions_of_a_small_program() -> None:
    program, boxes, edges = drawn()
    interrupts = np.flatnonzero(program.instructions["opcode"] == Opcode.INTERRUPT_HOST)[:2].tolist()
    steps = [box for box in boxes if box.title.startswith("host step")]
    assert [box.instructions for box in steps] == [(at,) for at in interrupts]
    assert [box.details[-1] for box in steps] == [f"instruction {at}" for at in interrupts]
    labels = {edge: label for edge, label in edges.items() if edge[1].startswith("host step") or edge[0].startswith("host step")}
    assert set(labels) == {
        (tail, head) for step in ("host step 0", "host step 1") for tail, head in (("write host memory", step), (step, "read host memory"))
    }
    assert all(label[0].startswith("host ") for label in labels.values())
    transfers = [box for box in boxes if box.kind is Kind.HOST and box not in steps]
    assert [box.lines for box in transfers] == [(3,), (7,), (8,), (9,), (10,), (11,)]
    assert all(len(box.instructions) == 1 for box in transfers)
