"""Lowering: tiles, parameter blocks, buffers, ports and splits; that the machine computes what the reference says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tpucc
from tests.support.cases import each
from tests.support.device_graphs import TINY, V1, Device, assert_computes, chain, compiled, lstm
from tests.support.examples import examples
from tpucc.diagnostics import InternalError, LimitError, UsageError
from tpucc.ir import Constant, Graph, Node
from tpucc.lowering.liveness import buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.lower import drafts_of, lower
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Flag, Opcode
from tpucc.ops.constant import ConstantAttributes
from tpucc.target import Target

RAGGED = [1, 3, 4, 5, 7, 8, 9, 13]


def tiny(**changes: int) -> Target:
    return msgspec.structs.replace(TINY, name="small", **changes)


def count(tiles: TileProgram, opcode: Opcode) -> int:
    return int((tiles.instructions["opcode"] == opcode).sum())


@each(product([1, 4, 5, 15, 16, 17], [1, 4, 5, 9], [1, 4, 7]))
def test_every_ragged_layer_computes_its_reference(rows: int, depth: int, width: int) -> None:
    graph = chain(rows, depth, width, seed=rows * 100 + depth * 10 + width)
    tiles, program = compiled(graph, TINY)
    verify_tiles(tiles)
    assert_computes(graph, program)


@each([(255, 257), (256, 256), (257, 255), (511, 1), (1, 513)])
def test_layers_around_the_unit_s_size(depth: int, width: int) -> None:
    graph = chain(3, depth, width, depth, seed=depth)
    _, program = compiled(graph, V1)
    assert_computes(graph, program)


@examples(15, 1_000)
@given(
    rows=st.integers(1, 40),
    widths=st.lists(st.sampled_from(RAGGED), min_size=2, max_size=5),
    parts=st.none() | st.integers(1, 5),
    seed=st.integers(0, 2**16),
)
def test_random_chains_on_the_tiny_machine(rows: int, widths: list[int], parts: int | None, seed: int) -> None:
    graph = chain(rows, *widths, seed=seed)
    tiles, program = compiled(graph, TINY, None if parts is None else min(parts, rows))
    verify_tiles(tiles)
    assert_computes(graph, program, seed)


@each([slice(0, 4), slice(4, 8), slice(0, 8)])
def test_tiles_of_zeros_are_skipped_and_a_block_of_nothing_but_zeros_is_a_sum_all_the_same(columns: slice) -> None:
    graph = chain(5, 9, 8)
    weights = graph.by_name["h1.w"]
    assert isinstance(weights.attributes, ConstantAttributes)
    data = weights.attributes.value.data.copy()
    data[:, columns] = 0
    graph = graph.with_nodes(replace(node, attributes=ConstantAttributes(Constant(data))) if node is weights else node for node in graph)
    tiles, program = compiled(graph, TINY)
    assert count(tiles, Opcode.MATRIX_MULTIPLY) == 6 - 2 * len(range(8)[columns]) // 4
    assert_computes(graph, program)


def test_tiles_are_the_weights_cut_and_padded_with_zeros() -> None:
    device = Device()
    graph = device.build(device.fc("y", device.input("x", 3, 9), 6))
    attributes = graph["y.w"].attributes
    assert isinstance(attributes, ConstantAttributes)
    tiles = lower(graph, TINY)
    padded = np.zeros((12, 8), np.int8)
    padded[:9, :6] = attributes.value.data
    (layer,) = tiles.layers
    assert [fill[1:] for fill in layer.tile_fills] == [(4, 4), (4, 2), (4, 4), (4, 2), (1, 4), (1, 2)]
    for position, (index, _, _) in enumerate(layer.tile_fills):
        k, n = divmod(position, 2)
        np.testing.assert_array_equal(tiles.tiles[index], padded[4 * k : 4 * k + 4, 4 * n : 4 * n + 4])
    assert (layer.macs, layer.weights) == (3 * 9 * 6, (9, 6))


def test_each_tile_is_multiplied_once_by_each_row_group() -> None:
    tiles = lower(chain(5, 9, 7), TINY)
    multiplies = tiles.instructions[tiles.instructions["opcode"] == Opcode.MATRIX_MULTIPLY]
    assert len(multiplies) == 3 * 2
    assert sorted(multiplies["index"].tolist()) == list(range(6))
    assert ((multiplies["flags"] & Flag.SWITCH) != 0).all()
    np.testing.assert_array_equal((multiplies["flags"] & Flag.ACCUMULATE) != 0, [False, True, True] * 2)


def test_the_chunks_of_a_group_use_a_tile_one_after_the_other() -> None:
    """Twenty rows are two parts of two chunks: a tile is fetched once for each part, and multiplies both chunks of it."""
    tiles = lower(chain(20, 9, 7), TINY)
    multiplies = tiles.instructions[tiles.instructions["opcode"] == Opcode.MATRIX_MULTIPLY]
    assert ((multiplies["flags"] & Flag.SWITCH) != 0).tolist() == [True, False] * 12


def test_equal_tiles_are_stored_once() -> None:
    """Layers with the same weights share their tiles, and so do different weights where they are equal."""
    device = Device()
    weights = device.weights("w", 8, 8)
    h = device.fc("a", device.input("x", 2, 8), 8, weights=weights)
    shared = lower(device.build(device.fc("b", h, 8, weights=weights)), TINY)
    assert len(shared.tiles) == 4
    assert shared.layers[0].tile_fills == shared.layers[1].tile_fills
    zeros = Device()
    zeros.random = np.random.default_rng(0)
    x = zeros.input("x", 2, 8)
    name = zeros._constant("z", np.zeros((8, 8), np.int8))
    assert len(lower(zeros.build(zeros.fc("y", x, 8, weights=name)), TINY).tiles) == 1


def test_tiles_are_equal_where_their_weights_are_at_the_same_places() -> None:
    """Zeros at the end of a matrix are the tile's own; the same weights in one column and in one row are two tiles."""
    column, row = np.ones((4, 1), np.int8), np.ones((1, 4), np.int8)
    device = Device()
    x = device.input("x", 2, 4)
    for number, matrix in enumerate([column, np.hstack([column, 0 * column]), np.pad(row, ((0, 3), (0, 0)))]):
        device.fc(f"y{number}", x, matrix.shape[1], weights=device._constant(f"w{number}", matrix))
    tiles = lower(device.build(*(f"y{number}" for number in range(3))), TINY)
    assert [fill[0] for layer in tiles.layers for fill in layer.tile_fills] == [0, 0, 1]
    np.testing.assert_array_equal(tiles.tiles, [np.pad(column, ((0, 0), (0, 3))), np.pad(row, ((0, 3), (0, 0)))])


def test_lstm_steps_share_tiles_and_inputs_are_read_at_their_first_use() -> None:
    graph = lstm(3, 2, 5, 6)
    tiles, program = compiled(graph, TINY)
    assert len(tiles.tiles) == 4 * (2 * 2 + 2 * 2)
    assert_computes(graph, program)
    code = tiles.instructions
    first, _ = live_ranges(code, len(tiles.buffers))
    for index, buffer in enumerate(tiles.buffers):
        if buffer.home >= 0:
            position = int(first[index])
            assert code["opcode"][position] == Opcode.READ_HOST_MEMORY
            follows = code[position + 1 : position + 3]
            assert index in follows["ub_buffer"] or index in follows["ub2_buffer"], f"{buffer.name} is read long before its use"


def test_configuration_is_set_only_when_it_changes() -> None:
    tiles = lower(chain(200, 4, 8), tiny(unified_buffer_rows=4000))
    configured = tiles.instructions[tiles.instructions["opcode"] == Opcode.SET_CONFIGURATION]["index"].tolist()
    assert configured == [0, 1]
    assert count(tiles, Opcode.ACTIVATE) > 10
    again = lower(chain(200, 8, 8), tiny(unified_buffer_rows=4000)).instructions
    turns = again[again["opcode"] == Opcode.SET_CONFIGURATION]["index"].tolist()
    assert len(turns) > 2
    assert all(a != b for a, b in pairwise(turns))


def test_parameters_of_unused_lanes_are_harmless() -> None:
    tiles = lower(chain(2, 4, 5), TINY)
    last = tiles.blocks[-1]
    assert last["bias"].tolist()[1:] == [0, 0, 0]
    assert last["multiplier"].tolist()[1:] == [1, 1, 1]
    for name in ("scale_a", "scale_b", "multiplier"):
        assert np.isfinite(tiles.blocks[name]).all()
        assert (tiles.blocks[name] > 0).all()


SHAPES = [
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((3, 5), (3, 1)),
    ((3, 1), (1, 5)),
    ((3, 9), (1,)),
    ((4, 1, 5), (1, 3, 5)),
    ((2, 3, 5), (3, 5)),
    ((2, 3, 5), (2, 1, 5)),
    ((2, 3, 2, 5), (2, 1, 2, 1)),
    ((2, 1, 3, 1, 5), (1, 2, 1, 3, 5)),
    ((2, 1, 2, 1, 2, 3), (1, 2, 1, 2, 1, 1)),
    ((1, 1), (1, 1)),
]


FUNCTIONS = ("add", "subtract", "multiply")


@each([(*pair, function, (row + column) % 2 > 0) for row, pair in enumerate(SHAPES) for column, function in enumerate(FUNCTIONS)])
def test_broadcasting_of_every_kind(a: tuple[int, ...], b: tuple[int, ...], function: str, constant: bool) -> None:
    for left, right in ((a, b), (b, a)):
        device = Device()
        first = device.input("a", *left)
        second = device.constant("b", *right) if constant else device.input("b", *right)
        graph = device.build(device.vector("y", function, first, second, table=function == "add"))
        tiles, program = compiled(graph, V1)
        verify_tiles(tiles)
        assert_computes(graph, program)


def test_a_broadcast_takes_one_instruction_for_two_dimensions() -> None:
    device = Device()
    graph = device.build(device.vector("y", "add", device.input("a", 7, 1, 5), device.input("b", 1, 9, 5)))
    tiles = lower(graph, tiny(unified_buffer_rows=200))
    vectors = tiles.instructions[tiles.instructions["opcode"] == Opcode.VECTOR]
    assert vectors["outer"].tolist() == [7, 7]
    assert vectors["inner"].tolist() == [9, 9]
    assert (vectors["ub_pitch"][0], vectors["ub_stride"][0]) == (1, 0)
    assert (vectors["ub2_pitch"][0], vectors["ub2_stride"][0]) == (0, 1)


def test_square_of_a_tensor_and_a_look_up() -> None:
    device = Device()
    x = device.input("x", 6, 9)
    graph = device.build(device.look_up("y", device.vector("s", "multiply", x, x)))
    _, program = compiled(graph, TINY)
    assert_computes(graph, program)


def test_views_share_buffers() -> None:
    device = Device()
    x = device.input("x", 6, 5)
    h = device.fc("h", device.reshape("v", device.reshape("u", x, 2, 3, 5), 6, 5), 7)
    graph = device.build(device.vector("y", "add", device.reshape("w", h, 2, 3, 7), device.constant("c", 3, 7)), "w")
    tiles, program = compiled(graph, V1)
    assert sorted(buffer.name for buffer in tiles.buffers) == ["c.0", "h.0", "x.0", "y.0"]
    assert [port.shape for port in tiles.outputs] == [(2, 3, 7), (2, 3, 7)]
    assert_computes(graph, program)


def test_a_view_that_moves_data_is_a_fault() -> None:
    device = Device()
    with pytest.raises(InternalError, match="moves data"):
        lower(device.build(device.reshape("v", device.input("x", 6, 4), 4, 6)), TINY)


def test_outputs_that_are_inputs_constants_or_given_twice() -> None:
    device = Device()
    x, unused, c = device.input("x", 3, 5), device.input("unused", 2, 4), device.constant("c", 2, 3)
    graph = device.build(x, device.fc("y", x, 6), "y", c)
    tiles, program = compiled(graph, TINY)
    verify_tiles(tiles)
    assert_computes(graph, program)
    assert [port.name for port in tiles.inputs] == ["x", unused]
    assert [(layer.name, layer.kind) for layer in tiles.layers] == [("y", "fc"), ("c", "move")]


def test_no_device_work_is_an_empty_program() -> None:
    tiles, program = compiled(Graph("nothing", (), ()), TINY)
    assert len(tiles.instructions) == len(tiles.buffers) == len(tiles.layers) == 0
    verify_tiles(tiles)
    assert program.instructions["opcode"].tolist() == [Opcode.INTERRUPT_HOST, Opcode.HALT]


def test_a_batch_that_does_not_fit_is_split_into_the_fewest_parts() -> None:
    graph = chain(150, 6, 7, 5)
    tiles, program = compiled(graph, TINY)
    parts = len(tiles.inputs[0].splits)
    assert f"{parts} parts" in tiles.notes[0]
    assert not any("spilled" in note for note in program.notes)
    assert sum(tiles.inputs[0].splits) == sum(tiles.outputs[0].splits) == 150
    assert max(tiles.inputs[0].splits) - min(tiles.inputs[0].splits) <= 1
    assert_computes(graph, program)
    fewer = lower(graph, TINY, parts=parts - 1)
    live = largest_live_sum(*live_ranges(fewer.instructions, len(fewer.buffers)), buffer_rows(fewer.buffers))
    assert live > TINY.unified_buffer_rows


def test_a_split_keeps_what_serves_all_rows_in_one_piece() -> None:
    device = Device()
    row = device.fc("r", device.input("one", 1, 5), 6)
    h = device.vector("s", "add", device.fc("h", device.input("x", 9, 5), 6), row)
    big = device.vector("t", "add", h, device.constant("c", 9, 6))
    graph = device.build(big, row)
    tiles, program = compiled(graph, TINY, parts=4)
    assert_computes(graph, program)
    names = {buffer.name for buffer in tiles.buffers}
    assert {"r.0", "one.0", "h.0#0", "h.1#3", "c.0#2"} <= names
    assert [port.splits for port in tiles.outputs] == [(3, 2, 2, 2), (1,)]
    assert sum(tiles.instructions["layer"] == [layer.name for layer in tiles.layers].index("r")) > 0
    assert "in each of 4 parts" in next(layer.choice for layer in tiles.layers if layer.name == "h")


@each([0, -1, 6])
def test_parts_that_the_batch_does_not_have(parts: int) -> None:
    with pytest.raises(UsageError) as error:
        lower(chain(5, 4, 4), TINY, parts=parts)
    assert error.value.diagnostics[0].code == "E0520"


def test_a_batch_whose_items_meet_can_not_be_split() -> None:
    device = Device()
    turned = device.transpose("t", device.input("a", 4, 4, 5), 1, 0, 2)
    with pytest.raises(UsageError, match="computes no items one by one"):
        lower(device.build(device.vector("y", "add", turned, device.input("b", 4, 4, 5))), TINY, parts=2)


def test_weights_that_do_not_fit_weight_memory() -> None:
    with pytest.raises(LimitError) as error:
        lower(chain(2, 40, 40), tiny(weight_memory_bytes=16 * 90))
    assert error.value.diagnostics[0].code == "E0622"
    whole = lower(chain(2, 40, 40), TINY)
    needed = whole.tiles.nbytes + whole.blocks.nbytes
    assert len(lower(chain(2, 40, 40), tiny(weight_memory_bytes=needed)).tiles) == 100
    with pytest.raises(LimitError, match=f"parameter blocks take {needed:,} bytes"):
        lower(chain(2, 40, 40), tiny(weight_memory_bytes=needed - 1))


def test_ports_describe_the_packing() -> None:
    tiles = lower(chain(5, 9, 3), TINY, parts=2)
    (port,) = tiles.inputs
    assert (port.shape, port.splits, port.scale, port.zero_point) == ((5, 9), (3, 2), 0.5, 1)
    held = [tiles.host[block] for block in port.blocks]
    assert [buffer.rows for buffer in held] == [3, 3, 3, 2, 2, 2]
    assert {buffer.kind for buffer in held} == {"input"}


def test_constants_are_packed_by_part_and_block() -> None:
    device = Device()
    graph = device.build(device.vector("y", "add", device.input("x", 3, 6), device.constant("c", 3, 6)))
    attributes = graph["c"].attributes
    assert isinstance(attributes, ConstantAttributes)
    tiles = lower(graph, TINY, parts=2)
    data = np.zeros((3, 8), np.int8)
    data[:, :6] = attributes.value.data
    expected = np.concatenate([data[:2, :4], data[:2, 4:], data[2:, :4], data[2:, 4:]])
    np.testing.assert_array_equal(tiles.constants, expected)


def test_instructions_know_their_layers_and_origins() -> None:
    tiles = lower(chain(3, 4, 5, 6), TINY)
    names = [tiles.layers[layer].name for layer in tiles.instructions["layer"].tolist()]
    assert names == sorted(names)
    assert all(layer.origin for layer in tiles.layers)
    assert [layer.choice[:6] for layer in tiles.layers] == ["3 rows", "3 rows"]


def test_lowering_is_deterministic_and_leaves_its_input_alone() -> None:
    graph = lstm(2, 3, 5, 6)
    before = [replace(node) for node in graph]
    first, second = lower(graph, TINY), lower(graph, TINY)
    assert first.instructions.tobytes() == second.instructions.tobytes()
    assert (first.buffers, first.host, first.layers, first.notes) == (second.buffers, second.host, second.layers, second.notes)
    assert all(isinstance(node, Node) and node == old for node, old in zip(graph, before, strict=True))


def test_drafts_say_whether_they_have_room() -> None:
    """The shortage is a value: it is raised where the programs are asked for, and not before."""
    device = Device()
    graph = device.build(device.vector("sum", "add", device.input("a", 1, 5, 6, 4), device.input("b", 6, 4)))
    short, roomy = (drafts_of(graph, tiny(unified_buffer_rows=rows)) for rows in (65, 66))
    assert roomy.shortage is None
    assert next(roomy.programs()).instructions.size
    assert short.shortage is not None
    assert "sum works on 66 rows at once, 1 more" in str(short.shortage)
    with pytest.raises(LimitError) as raised:
        short.programs()
    assert raised.value is short.shortage


@pytest.mark.annex
def test_the_first_of_several_multiplies_by_a_tile_switches_to_it() -> None:
    """A stride of two leaves each kernel position two walks over the rows of three images; the second uses the tile that is there."""
    exe = tpucc.compile_source(
        "weights random(seed=0)\nmodel m(x: f32[3, 7, 6, 2]):\n    weight w: f32[3, 3, 2, 5]\n    return conv2d(relu(x), w, stride=2)\n",
        level=0,
    )
    code = exe.tiles.value.instructions
    multiplies = code[np.isin(code["opcode"], [Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE])]
    switches = (multiplies["flags"] & Flag.SWITCH) != 0
    assert switches.tolist() == [True, False] * 9
    assert multiplies["acc"].tolist() == [0, int(multiplies["outer"][0] * multiplies["inner"][0])] * 9
    assert not multiplies["index"][~switches].any()
