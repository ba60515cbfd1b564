"""Products of two computed values: which way they take and what the user hears, and moves of integers around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model
from tpucc.api import Executable
from tpucc.diagnostics import ProgramError
from tpucc.ir import Graph, Node, Quantisation
from tpucc.ir.dtypes import I16
from tpucc.layers.verify import verify_layers
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Opcode
from tpucc.passes.base import Context
from tpucc.passes.move_integers import move_integers
from tpucc.passes.write_weights import write_weights
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.sim.timing import time_program
from tpucc.target import load_target

V1 = Context(load_target("tpu_v1"))
DEVICE = {"write-weights": {"computed_products": "device"}}
HOST = {"write-weights": {"computed_products": "host"}}
HEADS = """
weights random(seed=3)
model m(x: f32[2, 6, 8]):
    weight w: f32[8, 8] = "q.w"
    weight v: f32[8, 8] = "k.w"
    weight o: f32[{last}, 4] = "o.w"
    h = x @ w
    k = x @ v
    return ({product}) @ o
"""

FLOAT = "; we trade precision for speed only when it at least halves the time."


def attention(tokens: int, depth: int, *, weights: bool = True) -> Graph:
    """q @ k' in the middle of the device's work, or at its edges where the products around it have no weights."""
    model = Model()
    x = model.input("x", 2, tokens, depth)
    square = np.ones((depth, depth), np.float32)
    q, k = model.dense(x, square, key="q"), model.dense(x, square, key="k")
    scores = model.op("matmul", q, model.op("transpose", k, name="turned", perm=(0, 2, 1)), name="scores")
    return model.build(model.dense(scores, np.ones((tokens, 3), np.float32), key="o") if weights else scores)


def chosen(graph: Graph, context: Context = V1, **options: str) -> tuple[bool, tuple[str, ...]]:
    made = write_weights(**options).run(graph, context)
    return any(node.op == "as_weights" for node in made), made.notes


def test_large_products_are_the_matrix_units_and_small_ones_the_hosts() -> None:
    large, notes = chosen(attention(200, 64))
    assert large
    assert notes[0].startswith("q_product @ turned (line 7) runs on the matrix unit in 8 bits (about ")
    small, notes = chosen(attention(6, 4))
    assert not small
    assert notes[0].startswith("q_product @ turned (line 7) runs on the host in float32 (about ")
    assert FLOAT not in notes[0]


def test_a_note_says_why_the_host_computes_what_takes_longer_there() -> None:
    """With twice the cycles or fewer; by the way that is asked for the reason is this."""
    kept, notes = chosen(attention(16, 16))
    assert not kept
    assert notes[0].endswith(FLOAT)
    assert FLOAT not in chosen(attention(16, 16), computed_products="host")[1][0]


def test_what_a_product_with_weights_reads_stays_on_the_device() -> None:
    """No crossing counts for it, so that the matrix unit takes less than half of the host's cycles."""
    assert chosen(attention(20, 16))[0]


def test_a_slow_host_stops_only_for_what_is_worth_it() -> None:
    """With a second for each stop, a product is the matrix unit's only if the host's way has as many."""
    slow = Context(load_target("tpu_v1", {"host_step_seconds": 1.0}))
    assert chosen(attention(200, 64), slow)[0]
    model = Model()
    x, square = model.input("x", 2, 200, 64), np.ones((64, 64), np.float32)
    q = model.dense(x, square, key="q")
    scores = model.op("softmax", model.op("matmul", q, model.op("transpose", q, name="turned", perm=(0, 2, 1))))
    mixed = model.build(model.dense(model.op("matmul", scores, q), square, key="o"))
    assert sum(node.op == "as_weights" for node in write_weights.run(mixed, V1)) == 2
    assert not chosen(mixed, slow)[0]


def test_one_way_can_be_chosen_for_all() -> None:
    assert chosen(attention(6, 4), computed_products="device")[0]
    assert not chosen(attention(200, 64), computed_products="host")[0]
    with pytest.raises(tpucc.UsageError) as caught:
        chosen(attention(6, 4), computed_products="fast")
    assert caught.value.diagnostics[0].code == "E0517"


@each(
    [
        ("relu(h @ transpose(k, (0, 2, 1))) @ k", 8),
        ("softmax(softmax(h @ transpose(k, (0, 2, 1))) @ k) @ reshape(h, (2, 8, 6))", 6),
    ]
)
def test_the_estimates_have_the_stops_that_the_program_has(product: str, last: int) -> None:
    """Stops that the host's way has as well, and those that several products share, aren't counted again."""
    text = HEADS.format(product=product, last=last)
    overrides = ({"host_step_seconds": 1e-5}, {"host_step_seconds": 1e-4})
    made = [tpucc.compile_source(text, settings=DEVICE, overrides=numbers) for numbers in overrides]
    by_host = tpucc.compile_source(text, settings={"write-weights": {"computed_products": "host"}})
    stops = len(made[0].program.value.host_steps) - len(by_host.program.value.host_steps)
    assert cycles_of_device(made[1]) - cycles_of_device(made[0]) == stops * 63_000


def cycles_of_device(exe: Executable) -> int:
    """What the note says of the matrix unit's way."""
    (said,) = (note for note in exe.notes if "on the matrix unit in 8 bits" in note)
    return int(said.partition("(about ")[2].split()[0].replace(",", ""))


PAIRS = """
weights random(seed=0)
model pairs(x: f32[4, 40, 64] in [-1.0, 1.0]):
    weight w: f32[64, 64]
    h = x @ w
    found = h[:, 0, :]
    for i in range(1, 8):
        found = concat([found, reshape(h[:, 5 * i:5 * i + 5, :] @ transpose(h[:, 0:5 * i, :], (0, 2, 1)), (4, 25 * i))])
    weight top: f32[764, 4]
    return found @ top
"""


def test_products_that_share_their_stop_are_chosen_together() -> None:
    """Seven products in one step: a stop for each would make the host's way look cheaper."""
    slow = {"host_step_seconds": 1e-4, "host_elements_per_second": 6e7}
    cheaper, host, device = (
        tpucc.compile_source(PAIRS, settings={"write-weights": {"computed_products": way}}, overrides=slow)
        for way in ("cheaper", "host", "device")
    )
    assert cheaper.stats["cycles"] <= device.stats["cycles"] < host.stats["cycles"]
    (note,) = (note for note in host.notes if "on the host in float32" in note)
    assert note.startswith(
        "7 products (like slice @ transpose (line 8)) run on the host in float32, as --write-weights-computed-products asks (about "
    )


@pytest.mark.parametrize(
    "context",
    [replace(V1, format=I16), Context(load_target("tpu_v1", {"unified_buffer_rows": 700}))],
    ids=["16 bits", "rows that don't fit"],
)
def test_what_the_matrix_unit_cannot_do_is_the_hosts(context: Context) -> None:
    assert chosen(attention(200, 64), context) == (False, ())


def test_products_at_the_edges_of_the_devices_work_have_the_choice_too() -> None:
    """The host's time counts before the device starts and after it has finished, too."""
    assert chosen(attention(200, 64, weights=False))[0]
    assert not chosen(attention(6, 4, weights=False))[0]


@pytest.mark.long
@each([(size, body) for size in (8, 16, 40, 64) for body in ("return x @ y", "return (x @ y) @ w", "h = x @ v\n    return h @ y")])
def test_the_choice_never_loses_end_to_end(case: tuple[int, str]) -> None:
    """Also where the device has nothing else to do, and its results would be the host's only work after it."""
    size, body = case
    weights = f'    weight {{0}}: f32[{size}, {size}] = "{{0}}"'
    used = "\n".join(weights.format(name) for name in "vw" if f"@ {name}" in body)
    source = f"weights random(seed=0)\nmodel m(x: f32[{size}, {size}], y: f32[{size}, {size}]):\n{used}\n    {body}"
    own, host = (tpucc.compile_source(source, settings=settings).stats["end_to_end"]["seconds"] for settings in ({}, HOST))
    assert own <= host


@each(
    [
        ("h @ transpose(k, (0, 2, 1))", 6),
        ("reshape(h, (2, 8, 6)) @ k", 8),
        ("h[:, 0:5] @ reshape(k, (2, 8, 6))", 6),
        ("reshape(h, (4, 3, 8)) @ transpose(reshape(k, (4, 3, 8)), (0, 2, 1))", 3),
        ("h @ transpose(h, (0, 2, 1)) @ relu(k)", 8),
        ("reshape(h, (4, 8, 3)) @ reshape(k, (4, 3, 8))", 8),
        ("reshape(relu(h), (3, 4, 8)) @ transpose(reshape(k, (3, 4, 8)), (0, 2, 1)) + [1.0, -2.0, 3.0, 0.5]", 4),
    ]
)
def test_views_of_the_devices_values_become_weights(product: str, last: int) -> None:
    """Also those that the device could walk, and values that others read as well."""
    text = HEADS.format(product=product.replace("[1.0, -2.0, 3.0, 0.5]", "constant([1.0, -2.0, 3.0, 0.5])"), last=last)
    exe = tpucc.compile_source(text, settings=DEVICE)
    assert exe.program.written_tiles
    compared = compare_with_reference(exe.runtime, layers_of(exe), random_inputs(exe.runtime, 0))
    assert not [c for c in compared if c.unequal]


def layers_of(exe: Executable) -> Graph:
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    return exe.compilation.layers


def test_a_written_tile_takes_the_link_as_long_as_any_transfer_and_the_fetch_waits() -> None:
    exe = tpucc.compile_source(HEADS.format(product="h @ transpose(k, (0, 2, 1))", last=6), settings=DEVICE)
    program, timeline = exe.program.value, time_program(exe.program.value)
    code = program.instructions
    for write in np.flatnonzero(code["opcode"] == Opcode.WRITE_WEIGHTS):
        assert timeline.end[write] - timeline.start[write] == program.target.host_cycles(int(code["inner"][write]))
        (fetch,) = np.flatnonzero((code["opcode"] == Opcode.READ_WEIGHTS) & (code["index"] == code["index"][write]))
        assert timeline.start[fetch] >= timeline.end[write]


@each(
    [
        ("matmul", {"operands": 1}, "E0823"),
        ("transpose.weights.1.i8", {"zero_point": 3}, "E0823"),
        ("transpose.weights.1.i8", {"reader": True}, "E0820"),
    ]
)
def test_wrong_written_weights_are_named(name: str, fields: dict[str, object], code: str) -> None:
    """A layer as weights, weights with a zero point, and weights that a layer reads from the unified buffer too."""
    graph = layers_of(tpucc.compile_source(HEADS.format(product="h @ transpose(k, (0, 2, 1))", last=6), settings=DEVICE))
    node = graph[name]
    if "operands" in fields:
        node = replace(node, operands=(node.operands[0], "k", *node.operands[2:]))
    elif "zero_point" in fields:
        node = replace(node, type=node.type.with_quantisation(Quantisation(0.5, 3)))
    product = graph["matmul"]
    reader = replace(product, name="reader", operands=(name, *product.operands[1:]))
    extra = (reader,) if "reader" in fields else ()
    wrong = graph.with_nodes([node if other.name == name else other for other in graph] + [*extra])
    with pytest.raises(ProgramError) as caught:
        verify_layers(wrong)
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_a_tile_program_writes_only_tiles_that_are_there_to_be_written() -> None:
    exe = tpucc.compile_source(HEADS.format(product="h @ transpose(k, (0, 2, 1))", last=6), settings=DEVICE)
    tiles: TileProgram = exe.tiles.value
    verify_tiles(tiles)
    code = tiles.instructions.copy()
    code["index"][np.flatnonzero(code["opcode"] == Opcode.WRITE_WEIGHTS)[0]] = 0
    with pytest.raises(ProgramError) as caught:
        verify_tiles(replace(tiles, instructions=code))
    assert "writes none of the tiles 3 to 4" in str(caught.value)


def moved(scale: float, op: str = "transpose", **attributes: object) -> tuple[Graph, Node]:
    """`quantize(op(dequantize(q)))` with another scale, after the pass; and the node that was the quantize."""
    model = Model()
    q = model.op("quantize", model.input("x", 4, 6), name="q", scale=0.5, zero_point=2)
    real = model.op(op, model.op("dequantize", q, name="real", scale=0.5, zero_point=2), name="moved", **attributes)
    graph = model.build(model.op("quantize", real, name="again", scale=scale, zero_point=2))
    made = move_integers.run(graph, V1)
    return made, made["again"]


def test_integers_move_as_they_are_where_nothing_else_changes() -> None:
    graph, node = moved(0.5, perm=(1, 0))
    assert (node.op, node.type.dtype, node.type.shape) == ("transpose", "i8", (6, 4))
    assert "real" not in graph.by_name
    assert moved(0.25, perm=(1, 0))[1].op == "quantize"
    assert moved(0.5, "relu")[1].op == "quantize"


def test_the_picture_leads_from_a_tiles_write_to_the_multiply_that_takes_it() -> None:
    exe = tpucc.compile_source(HEADS.format(product="h @ transpose(k, (0, 2, 1))", last=6), settings=DEVICE)
    diagram = program_diagram(exe.program.value)
    shown = {
        (diagram.boxes[e.tail].title, diagram.boxes[e.head].title, e.label)
        for e in diagram.edges
        if e.label[:1] in (("tile 3",), ("tile 4",))
    }
    assert shown == {("write weights", "matrix multiply", (f"tile {tile}",)) for tile in (3, 4)}


def test_more_written_tiles_than_can_be_simulated_are_a_limit_of_the_model() -> None:
    source = "model m(x: f32[4097, 1, 1], z: f32[4097, 1, 1]):\n    return relu(relu(x) @ relu(z))\n"
    with pytest.raises(tpucc.LimitError, match="E0640: the host writes 4,097 tiles while the program runs, and at most 4,096 can be sim"):
        tpucc.compile_source(source, overrides={"mxu": 1024}, settings=DEVICE)
