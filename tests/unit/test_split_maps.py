"""Maps too large for the unified buffer, in bands: the values stay the same, and the integers too."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tests.support.networks import PICTURES, network
from tests.support.operator_graphs import Model, placed
from tests.support.placing import placement
from tests.support.rewrites import assert_close, check
from tpucc.compilation import Compilation
from tpucc.diagnostics import LimitError, Source
from tpucc.driver import compile_source
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.lowering.bands.maps import Maps
from tpucc.lowering.bands.sizes import ImageSizes
from tpucc.ops.windows import Padding, Pair
from tpucc.options import Options
from tpucc.passes.base import Context
from tpucc.passes.split_maps import split_maps
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.target import Target, load_target

TINY, V1 = load_target("tiny"), load_target("tpu_v1")


def with_rows(rows: int, target: Target = TINY) -> Target:
    return msgspec.structs.replace(target, unified_buffer_rows=rows)


def split(graph: Graph, target: Target) -> tuple[Graph, list[str]]:
    """The graph in bands, verified and with the same values; and the notes."""
    context = Context(target)
    graph = placed(graph)
    result = split_maps.run(graph, context)
    check(result)
    assert placement(result) == {node.name: node.place for node in result}
    assert result.outputs == graph.outputs
    assert result.inputs == graph.inputs
    assert_close(graph, result)
    return result, list(result.notes)


def needed(graph: Graph) -> int:
    """The rows that the largest operator by lines needs."""
    sizes = ImageSizes(Maps(placed(graph)), TINY)
    return max(sizes.whole(graph[name])[1] for name in sizes.maps.by_line)


def weights(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def windowed(op: str, size: Pair, stride: Pair, padding: Padding, shape: tuple[int, ...] = (2, 13, 7, 3)) -> Graph:
    """A convolution of the host's image, a window over its result, and a product that reads that."""
    model = Model()
    h = model.op("conv2d", model.input("x", *shape), model.constant("a.k", weights(0, 1, 1, shape[3], 2)))
    height, width = (size, size) if isinstance(size, int) else size
    if op == "conv2d":
        h = model.op("conv2d", h, model.constant("b.k", weights(1, height, width, 2, 3)), stride=stride, padding=padding)
    else:
        h = model.op(op, h, size=size, stride=stride, padding=padding)
    depth = model.builder.nodes[h].type.columns
    return model.build(model.op("conv2d", model.op("relu", h), model.constant("c.k", weights(2, 1, 1, depth, 2))))


SIZES: tuple[Pair, ...] = (1, 2, 3, 4, 5, 6, 7, (3, 1), (1, 4), (5, 2))
STRIDES: tuple[Pair, ...] = (1, 2, 3, (2, 1), (1, 3))
PADDINGS: tuple[Padding, ...] = ("same", "valid", 1, (2, 0, 1, 3), (0, 2, 0, 0))


def windows() -> Iterator[Any]:
    """Every size with every stride and every padding: each two of them together, all three together in `make soak`."""
    for (i, size), (j, stride), (k, padding) in itertools.product(*map(enumerate, (SIZES, STRIDES, PADDINGS))):
        marks = pytest.mark.soak if (i + j + k) % 5 else ()
        yield pytest.param(size, stride, padding, marks=marks, id=f"{size}-{stride}-{padding}")


@pytest.mark.parametrize(("size", "stride", "padding"), one_of(3, one_of(2, list(windows())), LONG))
def test_convolutions_in_bands(size: Pair, stride: Pair, padding: Padding) -> None:
    graph = windowed("conv2d", size, stride, padding)
    largest = needed(graph)
    results = [split(graph, with_rows(rows)) for rows in (largest - 1, largest // 3)]
    assert any(notes for _, notes in results)


def dilated() -> Iterator[Any]:
    """Groups, dilations and strides: each two of them together, all three together in `make soak`."""
    strides: Sequence[tuple[int, Padding]] = ((1, "same"), (2, "valid"), (1, (2, 0, 1, 3)))
    dilations: Sequence[Pair] = (2, (3, 1), (2, 4))
    for (i, groups), (j, dilation), (k, (stride, padding)) in itertools.product(
        enumerate((1, 2, 4)), enumerate(dilations), enumerate(strides)
    ):
        marks = pytest.mark.soak if (i + j + k) % 3 else ()
        yield pytest.param(groups, dilation, stride, padding, marks=marks, id=f"{groups}-{dilation}-{stride}-{padding}")


@pytest.mark.parametrize(("groups", "dilation", "stride", "padding"), list(dilated()))
def test_dilated_and_grouped_convolutions_in_bands(groups: int, dilation: Pair, stride: int, padding: Padding) -> None:
    model = Model()
    h = model.op("conv2d", model.input("x", 2, 13, 9, 3), model.constant("a.k", weights(0, 1, 1, 3, 4)))
    kernel = model.constant("b.k", weights(1, 3, 2, 4 // groups, 4))
    h = model.op("relu", model.op("conv2d", h, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups))
    graph = model.build(model.op("conv2d", h, model.constant("c.k", weights(2, 1, 1, 4, 2))))
    largest = needed(graph)
    results = [split(graph, with_rows(rows)) for rows in (largest - 1, largest // 2, largest // 3)]
    assert any(notes for _, notes in results)


def pools() -> Iterator[Any]:
    """Every operator with every size, stride and padding: each three of them together, all four together in `make soak`."""
    sides: tuple[Sequence[Any], ...] = (("max_pool", "avg_pool"), (3, (3, 4), 5), (1, 2, (3, 1)), ("same", "valid", 1, (2, 0, 1, 1)))
    for (h, op), (i, size), (j, stride), (k, padding) in itertools.product(*map(enumerate, sides)):
        marks = pytest.mark.soak if (h + i + j + k) % 2 else ()
        yield pytest.param(op, size, stride, padding, marks=marks, id=f"{op}-{size}-{stride}-{padding}")


@pytest.mark.parametrize(("op", "size", "stride", "padding"), one_of(2, list(pools())))
def test_pools_in_bands(op: str, size: Pair, stride: Pair, padding: Padding) -> None:
    graph = windowed(op, size, stride, padding)
    results = [split(graph, with_rows(rows)) for rows in (needed(graph) - 1, needed(graph) // 2)]
    assert any(notes for _, notes in results)


@pytest.mark.parametrize(("op", "given"), one_of(3, [("max_pool", {}), ("avg_pool", {}), ("avg_pool", {"count_padding": True})]))
@pytest.mark.parametrize("padding", [0, 1, (2, 0, 1, 1)], ids=str)
@pytest.mark.parametrize(("size", "stride"), [(3, 2), ((3, 4), 3), (5, 2)])
def test_pools_that_reach_beyond_the_end_in_bands(op: str, given: dict[str, Any], padding: Padding, size: Pair, stride: Pair) -> None:
    """An average of which only some of the padding counts is computed whole."""
    model = Model()
    h = model.op("conv2d", model.input("x", 2, 14, 8, 3), model.constant("a.k", weights(0, 1, 1, 3, 2)))
    h = model.op(op, h, size=size, stride=stride, padding=padding, ceil=True, **given)
    graph = model.build(model.op("conv2d", h, model.constant("c.k", weights(2, 1, 1, 2, 2))))
    results = [split(graph, with_rows(rows)) for rows in (needed(graph) - 1, needed(graph) // 2)]
    assert given or any(notes for _, notes in results)


def residual(lines: int = 16, blocks: int = 2, *, outputs: int = 1) -> Graph:
    """Residual blocks with a scale, a shift, and channels joined; `outputs` of 2 returns a map in the middle, too."""
    model = Model()
    h = model.op("conv2d", model.input("x", 1, lines, 5, 3), model.constant("stem.k", weights(0, 3, 3, 3, 4)), padding="same")
    middle = h
    for block in range(blocks):
        a = model.op("conv2d", h, model.constant(f"{block}.a.k", weights(block, 3, 3, 4, 2)), padding=1)
        a = model.op("relu", model.op("mul", a, model.constant(f"{block}.scale", weights(block, 2))))
        b = model.op("avg_pool", h, size=3, stride=1, padding="same")
        joined = model.op("concat", a, b, axis=-1)
        c = model.op("conv2d", joined, model.constant(f"{block}.c.k", weights(block + 9, 1, 1, 6, 4)))
        h = model.op("relu", model.op("add", c, h))
        middle = middle if block else h
    last = model.op("max_pool", h, size=2, stride=2)
    return model.build(*((last, middle)[:outputs]))


@pytest.mark.long
@pytest.mark.parametrize(("rows", "outputs"), one_of(2, [pytest.param(60, 1, marks=pytest.mark.soak), (60, 2), (100, 1)]))
def test_residual_blocks_in_bands(rows: int, outputs: int) -> None:
    graph = residual(10, outputs=outputs)
    result, notes = split(graph, with_rows(rows))
    assert notes
    assert any(node.op == "concat" and node.attributes.axis == 1 for node in result)  # type: ignore[attr-defined]


def test_what_fits_stays() -> None:
    graph = placed(residual())
    assert split_maps.run(graph, Context(with_rows(10_000))) is graph
    assert split_maps(most=1).run(graph, Context(with_rows(60))) is graph


def test_what_not_even_a_line_of_fits_stays() -> None:
    graph = placed(windowed("conv2d", 3, 1, "same", (1, 3, 60, 3)))
    assert split_maps.run(graph, Context(with_rows(40))) is graph


CNN = """
param size = 12
weights random(seed=3)
def conv(x, f, name):
    weight k: f32[3, 3, x.shape[3], f] = "{name}.kernel"
    weight b: f32[f] = "{name}.bias"
    return relu(conv2d(x, k, padding="same") + b)
model small(x: f32[1, size, size, 1]) -> f32[1, 3]:
    h = max_pool(conv(x, 4, "c1"))
    h = max_pool(conv(h, 4, "c2"))
    weight w: f32[size * size // 16 * 4, 3] = "d.w"
    out = flatten(h) @ w
    return out
"""


def compiled(text: str, target: Target, **settings: object) -> Compilation:
    return compile_source(Source("net.tpu", text), Path(), Options(target=target, settings={"split-maps": settings}))


def assert_equals_reference(made: Compilation) -> Timed:
    assert made.program is not None
    assert made.layers is not None
    runtime = Timed(made.program)
    assert not [c for c in compare_with_reference(runtime, made.layers, random_inputs(runtime)) if c.unequal]
    return runtime


@pytest.mark.long
def test_an_image_of_three_times_the_memory_runs_on_the_blackboard() -> None:
    with pytest.raises(LimitError) as raised:
        compiled(CNN, TINY, most=1)
    assert [d.code for d in raised.value.diagnostics] == ["E0621"]
    made = compiled(CNN, TINY)
    assert_equals_reference(made)
    note = next(w for w in made.warnings if w.startswith("c1 (line ") and "computed" in w)
    assert note == (
        "c1 (line 9): computed in 12 bands of at most 1 line, because whole images take 312 rows at once, and the unified buffer has 48; "
        "no rows are computed twice"
    )


def in_bands(text: str) -> Compilation | None:
    """The network for a small machine; None when no part of it was split, or when it has no room there even so."""
    try:
        made = compiled(text, TINY)
    except tpucc.Error as error:
        assert {d.code for d in error.diagnostics} <= {"E0621", "E0622", "E0623"}  # noqa: PT017
        return None
    return made if any("computed in" in warning for warning in made.warnings) else None


@pytest.mark.long
@pytest.mark.parametrize("first", one_of(100, range(0, 1000, 10)))
def test_integers_are_those_of_a_machine_with_room(first: int) -> None:
    """A band has the scale and zero point of the whole: not one integer differs."""
    compared = 0
    for seed in range(first, first + 10):
        text = network(seed, PICTURES)
        bands = in_bands(text)
        if bands is not None:
            assert_equal_integers(compiled(text, with_rows(100_000)), bands, seed)
            compared += 1
    assert compared >= 1


def assert_equal_integers(whole: Compilation, bands: Compilation, seed: int) -> None:
    assert whole.program is not None
    assert bands.program is not None
    first, second = Timed(whole.program), Timed(bands.program)
    inputs = random_inputs(first, seed)
    expected, found = first.run(inputs), second.run(inputs)
    assert expected
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, f"seed {seed}: {name}")


VGG = """
param size = 224
weights random(seed=3)
def conv(x, f, name):
    weight k: f32[3, 3, x.shape[3], f] = "{name}.kernel"
    weight b: f32[f] = "{name}.bias"
    return relu(conv2d(x, k, padding="same") + b)
model vgg(x: f32[1, size, size, 3]) -> f32[1, 10]:
    h = max_pool(conv(conv(x, 64, "conv1_1"), 64, "conv1_2"))
    h = max_pool(conv(conv(h, 128, "conv2_1"), 128, "conv2_2"))
    weight w: f32[128, 10] = "d.w"
    out = global_avg_pool(h) @ w
    return out
"""


@pytest.mark.soak
def test_the_first_blocks_of_vgg() -> None:
    """Simonyan and Zisserman, arXiv 1409.1556, table 1: whole, its maps of 224×224×64 come and go with each chunk of the accumulators."""
    bands, whole = compiled(VGG, V1), compiled(VGG, V1, most=1)
    assert bands.program is not None
    assert whole.program is not None
    assert Timed(bands.program).stats["cycles"] * 50 < Timed(whole.program).stats["cycles"]
    assert any("computed in 2 bands of at most 56 lines" in warning for warning in bands.warnings)


WIDE = """
weights random(seed=3)
model wide(x: f32[1, 600, 600, 3]) -> f32[1, 600, 600, 64]:
    weight k: f32[3, 3, 3, 64] = "c.kernel"
    h = relu(conv2d(x, k, padding="same"))
    return h
"""


@pytest.mark.soak
def test_a_map_larger_than_the_memory_goes_out_band_by_band() -> None:
    """360,000 rows come in and go out; the host cuts and joins them, so that nothing is computed twice, and nothing spilled."""
    made = compiled(WIDE, V1)
    assert_equals_reference(made)
    assert any("computed in 8 bands of at most 75 lines" in warning for warning in made.warnings)
    assert not any("spilled" in warning for warning in made.warnings)


def test_a_batch_is_split_before_its_images() -> None:
    """Bands of every image: the program can still be split along the batch."""
    text = CNN.replace("f32[1,", "f32[6,")
    assert_equals_reference(compiled(text, with_rows(96)))


@pytest.mark.soak
def test_long_chains_take_time_in_proportion() -> None:
    """The least of several times: a machine with other work can stretch one of them."""
    seconds = []
    for blocks in (1, 3):
        graph, found = placed(residual(8, blocks)), list[float]()
        for _ in range(3):
            started = time.process_time()
            split_maps.run(graph, Context(with_rows(40)))
            found.append(time.process_time() - started)
        seconds.append(min(found))
    assert seconds[1] < 7 * seconds[0] + 0.2
