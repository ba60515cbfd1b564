"""Convolutions, pools, moves and views lowered: that the machine computes what the reference says, and in how many instructions."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.device_graphs import TINY, V1, Device, assert_computes, assert_counted, compiled, lstm
from tests.support.examples import examples
from tpucc.diagnostics import UsageError
from tpucc.ir import Graph
from tpucc.isa.program import LayerInfo
from tpucc.layers.kinds import LAYERS, Sides
from tpucc.lowering.lower import lower, make_plan
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Function, Opcode
from tpucc.numerics import AnyArray
from tpucc.ops.opdef import RuleError
from tpucc.ops.windows import axes
from tpucc.target import Target

SMALL = msgspec.structs.replace(TINY, name="small", unified_buffer_rows=600, accumulator_rows=20)
PADDED = msgspec.structs.replace(SMALL, unified_buffer_rows=700)
"""Holds three maps of 7×7 pixels with four more at each side, which are what one instruction may need."""
Shape = tuple[int, ...]
MULTIPLIES = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE)


def checked(graph: Graph, target: Target = SMALL, parts: int | None = None) -> TileProgram:
    """The tile program, which is sound, computes the reference, and has as many instructions as are counted before."""
    tiles, program = compiled(graph, target, parts)
    assert_counted(graph, target, parts)
    verify_tiles(tiles)
    assert_computes(graph, program)
    return tiles


def of(tiles: TileProgram, *opcodes: Opcode) -> AnyArray:
    return tiles.instructions[np.isin(tiles.instructions["opcode"], opcodes)]


def copies(tiles: TileProgram) -> AnyArray:
    vectors = of(tiles, Opcode.VECTOR)
    return vectors[vectors["function"] == Function.COPY]


def layer(tiles: TileProgram, name: str) -> LayerInfo:
    return next(layer for layer in tiles.layers if layer.name == name)


def fits(image: Shape, window: Shape, stride: Shape, sides: Shape) -> bool:
    """Whether a window fits into images with these sides."""
    try:
        axes(image, (window[0], window[1]), (stride[0], stride[1]), sides)
    except RuleError:
        return False
    return True


@pytest.mark.long
@examples(25, 1_000)
@given(
    image=st.tuples(*[st.integers(1, 3), st.integers(1, 7), st.integers(1, 7), st.sampled_from([1, 3, 4, 5, 9])]),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    sides=st.tuples(*[st.integers(0, 4)] * 4),
    filters=st.sampled_from([1, 4, 6]),
    seed=st.integers(0, 99),
)
def test_convolutions(
    image: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int], sides: Sides, filters: int, seed: int
) -> None:
    """Of the host's value, which is copied to where a border is around it, and of one that was computed there."""
    assume(fits(image, kernel, stride, sides))
    device = Device(seed=seed)
    x = device.input("x", *image)
    first = device.conv("first", x, kernel, filters, stride=stride, sides=sides, table=seed % 2 == 0)
    second = device.conv("second", device.vector("h", "add", x, x), kernel, filters, stride=stride, sides=sides)
    checked(device.build(device.vector("y", "subtract", first, second)), PADDED)


@examples(25, 1_000)
@given(
    image=st.tuples(*[st.integers(1, 3), st.integers(1, 8), st.integers(1, 8), st.sampled_from([1, 3, 4, 5])]),
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    function=st.sampled_from(["max", "average"]),
    data=st.data(),
)
def test_pools(image: tuple[int, ...], size: tuple[int, int], stride: tuple[int, int], function: str, data: st.DataObject) -> None:
    sides = tuple(data.draw(st.integers(0, size[place // 2] - 1)) for place in range(4))
    assume(fits(image, size, stride, sides))
    device = Device()
    checked(device.build(device.pool("y", function, device.input("x", *image), size, stride=stride, sides=sides)))  # type: ignore[arg-type]


def grown(choices: list[tuple[int, int, int]], batch: int) -> Graph:
    """A graph of images [batch, H, W, C] and of rows, a layer or a view for each choice."""
    device = Device(seed=len(choices))
    values = [device.input("x", batch, 3, 4, 5)]
    for number, (kind, which, size) in enumerate(choices):
        x, name = values[which % len(values)], f"n{number}"
        shape = device.builder.nodes[x].type.shape
        values.append(MADE[kind % len(MADE)](device, name, x, shape, size))
    return device.build(*(values[-2:] if device.builder.nodes[values[-1]].op in LAYERS else [device.look_up("y", values[-1])]))


def _convolved(device: Device, name: str, x: str, shape: Shape, size: int) -> str:
    if len(shape) != 4:
        return device.fc(name, x, size + 2)
    sides = (1, size % 2, 0, 1)
    kernel = min(2, shape[1] + 1), min(1 + size % 3, shape[2] + 1)
    return device.conv(name, x, kernel, 1 + size, stride=(1 + size % 2, 1), sides=sides)


def _pooled(device: Device, name: str, x: str, shape: Shape, size: int) -> str:
    if len(shape) != 4:
        return device.look_up(name, x)
    return device.pool(name, ("max", "average")[size % 2], x, (min(2, shape[1] + 1), min(2, shape[2] + 1)), sides=(1, 0, 0, 1))


def _cut(device: Device, name: str, x: str, shape: Shape, size: int) -> str:
    return device.slice(name, x, *[(0, n) if axis == 0 else (size % n, n) for axis, n in enumerate(shape[:-1])])


def _turned(device: Device, name: str, x: str, shape: Shape, size: int) -> str:
    if len(shape) < 3:
        return device.look_up(name, x)
    return device.transpose(name, x, *((0, 2, 1, 3) if len(shape) == 4 else (0, 1, 2)))


def _regrouped(device: Device, name: str, x: str, shape: Shape, size: int) -> str:
    if len(shape) == 4:
        return device.reshape(name, x, shape[0], shape[1] * shape[2], shape[3])
    return device.reshape(name, x, shape[0], 1, shape[1], shape[2])


MADE: list[Callable[[Device, str, str, Shape, int], str]] = [
    _convolved,
    _convolved,
    _pooled,
    _cut,
    _turned,
    _regrouped,
    lambda device, name, x, shape, size: device.concat(name, 1, x, x),
    lambda device, name, x, shape, size: device.pad(name, x, (0, 0), (size % 3, 1), *[(0, 0)] * (len(shape) - 3)),
    lambda device, name, x, shape, size: device.vector(name, "add", x, x),
    lambda device, name, x, shape, size: device.fc_sum(name, [x, x], size),
]


@pytest.mark.long
@examples(30, 1_000)
@given(
    choices=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=5),
    batch=st.integers(1, 3),
    parts=st.none() | st.integers(1, 3),
)
def test_random_graphs_of_images(choices: list[tuple[int, int, int]], batch: int, parts: int | None) -> None:
    graph = grown(choices, batch)
    possible = make_plan(graph, SMALL).sharding.batch
    checked(graph, msgspec.structs.replace(SMALL, unified_buffer_rows=8000), None if parts is None else min(parts, possible))


def test_each_position_of_the_kernel_is_multiplied_once_by_each_chunk() -> None:
    device = Device()
    h = device.vector("h", "add", device.input("x", 1, 6, 7, 5), device.constant("c", 5))
    tiles = checked(device.build(device.conv("y", h, (3, 2), 6, sides=(1, 1, 0, 1))), msgspec.structs.replace(SMALL, accumulator_rows=200))
    multiplies = of(tiles, *MULTIPLIES)
    assert len(multiplies) == 3 * 2 * 2 * 2
    assert (multiplies["outer"] * multiplies["inner"] == 42).all()
    assert (multiplies["opcode"] == Opcode.CONVOLVE).all()
    assert len(of(tiles, Opcode.ACTIVATE)) == 2
    made = layer(tiles, "y")
    assert (made.kind, made.macs, made.weights) == ("conv", 42 * 30 * 6, (30, 6))
    assert len(made.tile_fills) == 24
    assert {fill[1:] for fill in made.tile_fills} == {(4, 4), (4, 2), (1, 4), (1, 2)}


def test_a_result_is_computed_inside_its_border_and_not_copied() -> None:
    device = Device()
    h = device.conv("h", device.input("x", 1, 5, 5, 4), (1, 1), 4)
    tiles = checked(device.build(device.conv("y", h, (3, 3), 4, sides=(1, 1, 1, 1))))
    assert [entry.name for entry in tiles.layers] == ["h", "y"]
    assert (copies(tiles)["outer"] * copies(tiles)["inner"]).sum() == 7 * 7 - 5 * 5


def test_what_a_product_waits_for_crosses_the_link_first() -> None:
    """The row that fills the border of the result is the activation unit's, which has time."""
    device = Device()
    h = device.conv("h", device.input("x", 1, 5, 5, 4), (1, 1), 4)
    _, program = compiled(device.build(device.conv("y", h, (3, 3), 4, sides=(1, 1, 1, 1))), SMALL)
    code = program.instructions
    starts = code["host"][code["opcode"] == Opcode.READ_HOST_MEMORY].tolist()
    assert [buffer.kind for start in starts for buffer in program.host if buffer.start == start] == ["input", "constant"]


def test_what_the_host_gives_is_copied_once_for_all_its_convolutions() -> None:
    device = Device()
    x = device.input("x", 2, 5, 5, 3)
    branches = [device.conv(name, x, (3, 3), 4, sides=(1, 1, 1, 1)) for name in ("a", "b", "c")]
    tiles = checked(device.build(*branches))
    assert [entry.kind for entry in tiles.layers].count("move") == 1
    assert "border of zero points" in next(entry.choice for entry in tiles.layers if entry.kind == "move")


def test_a_view_of_a_value_with_a_border_is_copied() -> None:
    """Around a part, or a transposed image, there are pixels where zeros should be, or a border of another width."""
    device = Device()
    h = device.vector("h", "add", device.input("x", 1, 5, 4, 3), device.constant("c", 3))
    views = [h, device.slice("part", h, (0, 1), (1, 4), (0, 3)), device.transpose("turned", h, 0, 2, 1, 3)]
    convolved = [device.conv(f"y{number}", view, (3, 3), 4, sides=(2, 1, 0, 1)) for number, view in enumerate(views)]
    tiles = checked(device.build(*convolved))
    assert [entry.kind for entry in tiles.layers].count("move") == 2


def test_weights_of_zero_are_not_multiplied() -> None:
    device = Device()
    weights = np.zeros((2, 2, 8, 8), np.int8)
    weights[0, 1, :4, 4:], weights[1, 1, 4:, :] = 7, -3
    device._constant("w", weights)
    tiles = checked(device.build(device.conv("y", device.input("x", 1, 3, 3, 8), (2, 2), 8, weights="w")))
    assert len(of(tiles, *MULTIPLIES)) == 3
    assert len(layer(tiles, "y").tile_fills) == 2 * 2 * 2 * 2
    assert "each of 4 tiles" in layer(tiles, "y").choice


def test_a_column_block_of_zeros_is_multiplied_once() -> None:
    device = Device()
    device._constant("z", np.zeros((9, 6), np.int8))
    tiles = checked(device.build(device.fc("y", device.input("x", 5, 9), 6, weights="z")))
    assert len(of(tiles, *MULTIPLIES)) == 2


def test_sources_meet_in_the_accumulators() -> None:
    device = Device()
    xs = [device.input(name, 5, columns) for name, columns in (("a", 3), ("b", 9), ("c", 4))]
    tiles = checked(device.build(device.fc_sum("y", xs, 6)))
    assert len(of(tiles, *MULTIPLIES)) == (1 + 3 + 1) * 2
    assert len(of(tiles, Opcode.ACTIVATE)) == 2
    assert layer(tiles, "y").weights == (16, 6)


def test_pools_take_one_instruction_for_each_shape_of_window() -> None:
    device = Device()
    x = device.input("x", 1, 8, 8, 4)
    inside = checked(device.build(device.pool("y", "max", x, (2, 2), stride=(2, 2))))
    assert of(inside, Opcode.POOL)[["outer", "inner", "window_outer", "window_inner"]].tolist() == [(4, 4, 2, 2)]
    other = Device()
    edges = checked(other.build(other.pool("y", "average", other.input("x", 1, 7, 7, 4), (3, 3), stride=(2, 2), sides=(1, 1, 1, 1))))
    found = of(edges, Opcode.POOL)
    windows = list(zip(found["window_outer"].tolist(), found["window_inner"].tolist(), strict=True))
    assert windows == [(a, b) for a in (2, 3, 2) for b in (2, 3, 2)]
    assert sorted({round(float(block["scale_a"]), 5) for block in edges.blocks}) == [round(0.75 / n, 5) for n in (9, 6, 4)]


def test_views_move_nothing() -> None:
    device = Device()
    x = device.input("x", 3, 4, 5)
    turned = device.transpose("t", device.slice("s", x, (1, 3), (0, 3)), 1, 0, 2)
    tiles = checked(device.build(device.fc("y", turned, 6)))
    assert [entry.name for entry in tiles.layers] == ["y"]
    assert not len(of(tiles, Opcode.VECTOR))


def test_rows_that_no_walk_visits_in_order_are_copied_and_outputs_too() -> None:
    device = Device()
    turned = device.transpose("t", device.input("x", 3, 4, 5), 1, 0, 2)
    y = device.fc("y", device.reshape("r", turned, 12, 5), 6)
    h = device.conv("h", device.input("image", 1, 4, 4, 3), (1, 1), 3)
    tiles = checked(device.build(y, device.slice("part", h, (0, 1), (1, 3), (0, 4))))
    kinds = [entry.kind for entry in tiles.layers]
    assert kinds.count("move") == 2
    assert all("rows are in order" in entry.choice for entry in tiles.layers if entry.kind == "move")


def test_moves_take_no_more_copies_than_parts() -> None:
    device = Device()
    x = device.input("x", 2, 3, 4)
    joined = checked(device.build(device.concat("y", 1, x, x, device.constant("c", 2, 1, 4))))
    assert len(copies(joined)) == 3
    other = Device()
    padded = checked(other.build(other.pad("y", other.input("x", 2, 3, 4), (1, 0), (0, 2))))
    assert len(copies(padded)) == 3


def test_a_segment_waits_for_the_host() -> None:
    device = Device()
    first = device.fc("first", device.input("x", 3, 5), 6)
    second = device.fc("second", device.input("back", 3, 6), 4)
    graph = device.build(first, device.look_up("y", second))
    tiles = lower(graph, SMALL, segments={"x": 0, "first": 0, "back": 1, "second": 1, "y": 1})
    (stop,) = np.flatnonzero(tiles.instructions["opcode"] == Opcode.INTERRUPT_HOST)
    code = tiles.instructions
    assert code["index"][stop] == 0
    names = [tiles.layers[number].name for number in code["layer"].tolist()]
    assert set(names[:stop]) == {"first"}
    assert set(names[stop + 1 :]) == {"second", "y"}
    writes = np.flatnonzero(code["opcode"] == Opcode.WRITE_HOST_MEMORY)
    assert (writes < stop).sum() == 2


def test_all_parts_of_a_segment_come_before_the_host() -> None:
    device = Device()
    first = device.fc("first", device.input("x", 6, 5), 6)
    graph = device.build(first, device.vector("y", "add", device.input("back", 6, 6), first))
    tiles = lower(graph, SMALL, parts=3, segments={"x": 0, "first": 0, "back": 1, "y": 1})
    code = tiles.instructions
    (stop,) = np.flatnonzero(code["opcode"] == Opcode.INTERRUPT_HOST)
    assert len(of(tiles, Opcode.ACTIVATE)) == (code["opcode"][:stop] == Opcode.ACTIVATE).sum() == 6
    assert (code["opcode"][stop:] == Opcode.VECTOR).sum() == 6


def test_images_that_do_not_fit_are_done_one_by_one() -> None:
    device = Device()
    h = device.conv("h", device.input("x", 5, 4, 4, 3), (3, 3), 4, sides=(1, 1, 1, 1))
    graph = device.build(device.conv("y", h, (2, 2), 3))
    tiles = checked(graph, msgspec.structs.replace(SMALL, unified_buffer_rows=90))
    assert tiles.inputs[0].splits == (16,) * 5
    assert "5 parts of at most 1" in tiles.notes[0]
    with pytest.raises(UsageError):
        lower(graph, SMALL, parts=6)


def test_v1_and_recurrent_layers() -> None:
    """Convolutions around the unit's 256 lanes, and the many small layers of an LSTM."""
    device = Device()
    h = device.conv("h", device.input("x", 1, 5, 6, 257), (3, 3), 255, stride=(2, 1), sides=(1, 1, 1, 1))
    checked(device.build(device.pool("y", "average", h, (3, 2), stride=(1, 2), sides=(1, 0, 0, 0))), V1)
    checked(lstm(2, 3, 5, 6), TINY)
