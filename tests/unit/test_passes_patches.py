"""The host packs pixels for convolutions of few channels: the same numbers, in the way that takes the least time, the host's included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.placing import placement
from tests.support.rewrites import body, check
from tpucc.ir import Graph, Quantisation, Range
from tpucc.ir.dtypes import I8, I16, DeviceFormat
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.ops.patches import PatchesAttributes
from tpucc.ops.windows import Pair
from tpucc.passes.base import GOALS, Context
from tpucc.passes.pack_patches import pack_patches
from tpucc.passes.place import place
from tpucc.runtime.check import random_inputs
from tpucc.target import Target, load_target, with_overrides

TINY, V1 = load_target("tiny"), load_target("tpu_v1")
Sides = tuple[int, int, int, int]


@dataclass(frozen=True)
class Geometry:
    """A convolution of an image [batch, height, width, channels] with `filters` kernels."""

    image: tuple[int, int, int, int]
    kernel: tuple[int, int]
    filters: int
    stride: tuple[int, int] = (1, 1)
    sides: Sides = (0, 0, 0, 0)

    @property
    def padded(self) -> tuple[int, int]:
        top, bottom, left, right = self.sides
        return self.image[1] + top + bottom, self.image[2] + left + right

    @property
    def outputs(self) -> tuple[int, int]:
        return tuple((n - k) // s + 1 for n, k, s in zip(self.padded, self.kernel, self.stride, strict=True))  # type: ignore[return-value]

    def graph(self, seed: int = 0) -> Graph:
        """Small integers, of which float32 sums are exact."""
        random, model = np.random.default_rng(seed), Model()
        kernel = model.constant("stem.k", random.integers(-8, 9, (*self.kernel, self.image[3], self.filters)))
        return model.build(model.op("conv2d", model.input("x", *self.image), kernel, name="y", stride=self.stride, padding=self.sides))

    def ways(self, target: Target, bytes_per_value: int, goal: str = "latency") -> Mapping[str, int]:
        """Estimated cycles of each way, from the definition: values that the host writes and quantises, rows over the link, and rows
        through the unit for each tile, the shorter of both by half. The image as it is gets its border on the device. In a stream the
        longest."""
        _, height, width, channels = self.image
        (rows, columns), (down, across) = self.kernel, self.outputs
        around = self.padded
        size = target, bytes_per_value
        found = {
            "as it is": self._cycles((height, width, channels), rows * columns, *size),
            "padded": self._cycles((*around, channels), rows * columns, *size),
            "lines": self._cycles((around[0], across, columns * channels), rows, *size),
            "whole": self._cycles((down, across, rows * columns * channels), 1, *size),
        }
        if any(self.sides):
            blocks = -(-channels // target.mxu)
            host, link, matrix = found["as it is"]
            found["as it is"] = host, link, matrix + self.image[0] * prod(around) * blocks * bytes_per_value
        if goal == "stream":
            return {way: max(parts) for way, parts in found.items()}
        return {way: host + max(link, matrix) + min(link, matrix) // 2 for way, (host, link, matrix) in found.items()}

    def _cycles(self, image: tuple[int, int, int], positions: int, target: Target, bytes_per_value: int) -> tuple[int, int, int]:
        """Of the host, the link and the matrix unit."""
        height, width, lanes = image
        blocks, batch = -(-lanes // target.mxu), self.image[0]
        given, values = prod(self.image), batch * height * width * lanes
        written = values if image == self.image[1:] else values + max(values, given)
        host = round((target.host_step_seconds + written / target.host_elements_per_second) * target.clock_hz)
        link = round(batch * height * width * blocks * bytes_per_value * target.mxu * target.clock_hz / target.host_bandwidth)
        products = positions * blocks * -(-self.filters // target.mxu)
        down, across = self.outputs
        latency = round(target.host_latency_seconds * target.clock_hz)
        return max(1, host), latency + max(1, link), products * max(batch * down * across * bytes_per_value, target.mxu)

    def cheapest(self, target: Target, format: DeviceFormat = I8, goal: str = "latency") -> str:
        costs = self.ways(target, format.bytes_per_value, goal)
        return min(costs, key=costs.__getitem__)


def drawn(seed: int) -> Geometry:
    """Odd sizes, all paddings, strides up to 3, and channel counts at both ends and about a tile's edge."""
    random = np.random.default_rng(seed)
    kernel = tuple(random.integers(1, 5, 2).tolist())
    size = tuple((random.integers(0, 7, 2) + kernel).tolist())
    channels = int(random.choice([1, 2, 3, 4, 5, 9]))
    sides = tuple(random.integers(0, 3, 4).tolist()) if random.random() < 0.6 else (0, 0, 0, 0)
    stride = tuple(random.integers(1, 4, 2).tolist())
    return Geometry((int(random.integers(1, 4)), *size, channels), kernel, int(random.integers(1, 7)), stride, sides)  # type: ignore[arg-type]


def packed(graph: Graph, target: Target = TINY, **options: object) -> tuple[Graph, list[str]]:
    """What the pass makes, and its notes."""
    context = Context(target, **options)  # type: ignore[arg-type]
    result = pack_patches.run(place.run(graph, context), context)
    check(result)
    assert placement(result) == {node.name: node.place for node in result}
    assert [node.name for node in result.inputs] == [node.name for node in graph.inputs]
    return result, list(result.notes)


def way_of(graph: Graph, geometry: Geometry) -> str:
    """Which way a packed graph took, by what its patches are."""
    found = [node.attributes for node in graph if node.op == "patches"]
    if not found:
        return "as it is"
    (attributes,) = found
    assert isinstance(attributes, PatchesAttributes)
    assert attributes.padding == geometry.sides
    whole, lines = (geometry.kernel, geometry.stride), ((1, geometry.kernel[1]), (1, geometry.stride[1]))
    found_way = {whole: "whole", lines: "lines", (1, 1): "padded"}
    return found_way[attributes.size, attributes.stride]  # type: ignore[index]


def values(graph: Graph, seed: int = 3) -> list[AnyArray]:
    random = np.random.default_rng(seed)
    inputs = {node.name: random.integers(-9, 10, node.type.shape).astype(np.float32) for node in graph.inputs}
    found = evaluate(graph, inputs)
    return [found[output.node] for output in graph.outputs]


@pytest.mark.parametrize("seed", range(40))
def test_the_numbers_stay_and_the_cheapest_way_wins(seed: int) -> None:
    geometry = drawn(seed)
    graph = geometry.graph(seed)
    for target in (TINY, V1):
        for format in (I8, I16):
            for goal in GOALS:
                result, _ = packed(graph, target, format=format, goal=goal)
                np.testing.assert_array_equal(values(result)[0], values(graph)[0], strict=True)
                costs, way = geometry.ways(target, format.bytes_per_value, goal), way_of(result, geometry)
                assert costs[way] == costs[geometry.cheapest(target, format, goal)], (way, costs)


def test_every_way_is_among_the_drawn() -> None:
    found = {drawn(seed).cheapest(target, goal=goal) for seed in range(40) for target in (TINY, V1) for goal in GOALS}
    assert found >= {"as it is", "padded", "whole", "lines"}


@each(
    [
        (channels, groups, dilation, padding)
        for channels, groups in [(1, 1), (4, 1), (9, 1), (4, 2), (3, 3)]
        for dilation in [1, 2, (3, 1), (1, 2)]
        for padding in [0, 2]
    ]
)
def test_dilated_and_grouped_convolutions_are_packed(channels: int, groups: int, dilation: Pair, padding: int) -> None:
    """Groups of channels keep their pixels: the host only pads them."""
    model, random = Model(), np.random.default_rng(4)
    kernel = model.constant("stem.k", random.integers(-8, 9, (2, 3, channels // groups, 6)))
    x = model.input("x", 2, 8, 9, channels)
    graph = model.build(model.op("conv2d", x, kernel, name="y", stride=(1, 2), padding=padding, dilation=dilation, groups=groups))
    result, _ = packed(graph)
    np.testing.assert_array_equal(values(result)[0], values(graph)[0], strict=True)
    if groups > 1:
        assert all(node.attributes.size == 1 for node in result if isinstance(node.attributes, PatchesAttributes))


def test_one_channel_is_packed_whole() -> None:
    """9 rows of 4 lanes over the link and 9 through one tile are 18 cycles; 16 pixels and four positions would be 52. The host takes 10
    cycles to begin, and each of its values a thousandth of one; half of the shorter part is hidden."""
    geometry = Geometry((1, 4, 4, 1), (2, 2), 4)
    assert geometry.ways(TINY, 1) == {"as it is": 54, "padded": 54, "lines": 34, "whole": 23}
    result, _ = packed(geometry.graph())
    assert way_of(result, geometry) == "whole"
    assert result["y"].attributes.stride == (1, 1)  # type: ignore[union-attr]
    assert result[result["y"].operands[1]].type.shape == (1, 1, 4, 4)


def test_full_lanes_are_left_alone() -> None:
    """With as many channels as the unit has rows, packing would only repeat pixels on the link: 64 cycles against 54."""
    geometry = Geometry((1, 4, 4, 4), (2, 2), 4)
    assert (geometry.ways(TINY, 1)["as it is"], geometry.ways(TINY, 1)["whole"]) == (54, 64)
    graph = geometry.graph()
    result, notes = packed(graph)
    assert body(result) == body(place.run(graph, Context(TINY)))
    assert not notes


def test_full_lanes_are_padded_without_a_note() -> None:
    """The host's values take next to nothing on this machine; with a slow host the device adds the border."""
    geometry = replace(Geometry((1, 4, 4, 4), (2, 2), 4), sides=(0, 1, 0, 1))
    result, notes = packed(geometry.graph())
    assert way_of(result, geometry) == "padded"
    assert result["y"].operands[1] == "stem.k", "the kernel is as it was"
    assert not notes
    result, _ = packed(geometry.graph(), with_overrides(TINY, {"host_elements_per_second": 1e6}))
    assert way_of(result, geometry) == "as it is"


def test_in_a_stream_the_host_works_beside_the_link() -> None:
    """Alone, 9-fold writing takes longer than it saves; side by side it takes no longer than the link."""
    geometry = Geometry((8, 24, 24, 1), (3, 3), 8)
    alone, stream = (geometry.ways(V1, 1, goal) for goal in GOALS)
    assert min(alone, key=alone.__getitem__) == "lines"
    assert min(stream, key=stream.__getitem__) == "whole"
    assert [way_of(packed(geometry.graph(), V1, goal=goal)[0], geometry) for goal in GOALS] == ["lines", "whole"]


def test_sixteen_bits_choose_for_themselves() -> None:
    """A row of 16 bits takes two cycles in the unit and twice as long on the link, but a tile's shift takes as long as before."""
    geometry = Geometry((3, 6, 4, 64), (3, 2), 1, (1, 2))
    free = with_overrides(V1, {"host_step_seconds": 0, "host_elements_per_second": 1e18, "host_latency_seconds": 0})
    ways = [way_of(packed(geometry.graph(), free, format=format)[0], geometry) for format in (I8, I16)]
    assert ways == [geometry.cheapest(free, format) for format in (I8, I16)] == ["whole", "lines"]


def test_the_choice_is_the_same_for_several_cores() -> None:
    """Cores give one core's bits, so that no pass before `divide-batch` may ask how many there are."""
    for seed in range(10):
        graph = drawn(seed).graph()
        alone, divided = (packed(graph, V1, cores=cores) for cores in (1, 4))
        assert body(alone[0]) == body(divided[0])
        assert alone[1] == divided[1]


def test_the_note_says_what_it_gained() -> None:
    """The stem of ResNet: 7×7 pixels of three channels."""
    geometry = Geometry((1, 224, 224, 3), (7, 7), 64, (2, 2), (3, 3, 3, 3))
    _, notes = packed(geometry.graph(), V1)
    assert notes == ["stem (line 3): the host packs 1×7 pixels into a row, so that 21 of 256 lanes are in use instead of 3"]


def test_the_note_counts_all_column_blocks() -> None:
    """Two channels on a unit of four: 5 pixels are 10 lanes of three column blocks."""
    geometry = Geometry((2, 1, 12, 2), (1, 5), 4)
    _, notes = packed(geometry.graph())
    assert notes == ["stem (line 3): the host packs 1×5 pixels into a row, so that 10 of 12 lanes are in use instead of 2"]


def test_a_value_of_the_device_is_left_alone() -> None:
    model = Model()
    x = model.input("x", 1, 5, 5, 1)
    first = model.op("conv2d", x, model.constant("a.k", np.ones((2, 2, 1, 1))), name="a")
    second = model.op("conv2d", first, model.constant("b.k", np.ones((2, 2, 1, 3))), name="b", padding=1)
    result, notes = packed(model.build(second))
    assert [node.name for node in result if node.op == "patches"] == ["x.patches.1"]
    assert result["b"].operands == ("a", "b.k")
    assert len(notes) == 1


def test_a_value_that_the_host_computes_is_packed() -> None:
    model = Model()
    soft = model.op("softmax", model.input("x", 1, 4, 4, 1), name="soft")
    result, _ = packed(model.build(model.op("conv2d", soft, model.constant("k", np.ones((2, 2, 1, 1))), name="y")))
    assert result["soft.patches.1"].operands == ("soft",)


def test_two_convolutions_of_an_image_are_packed_each() -> None:
    model = Model()
    x = model.input("x", 1, 5, 6, 1)
    names = [model.op("conv2d", x, model.constant(f"{n}.k", np.full((n, 2, 1, 3), n)), name=f"y{n}", stride=n) for n in (1, 2)]
    graph = model.build(*names)
    result, notes = packed(graph)
    assert len([node for node in result if node.op == "patches"]) == 2
    assert len(notes) == 2
    for found, expected in zip(values(result), values(graph), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def with_pinned(name: str) -> Graph:
    graph = Geometry((1, 4, 4, 1), (2, 2), 4).graph()
    pinned = Quantisation(0.5, 0)
    nodes = [replace(node, type=node.type.with_quantisation(pinned)) if node.name == name else node for node in graph]
    return place.run(graph.with_nodes(nodes), Context(TINY))


def test_pinned_images_are_left_alone() -> None:
    other = with_pinned("x")
    assert pack_patches.run(other, Context(TINY)) == other


def test_pinned_kernels_stay_so() -> None:
    result = pack_patches.run(with_pinned("stem.k"), Context(TINY))
    assert result["stem.k.1"].type.quantisation == Quantisation(0.5, 0)
    assert result["y"].operands == ("x.patches.1", "stem.k.1")


def test_patches_have_the_range_and_the_place() -> None:
    graph = Geometry((1, 4, 4, 1), (2, 2), 4).graph()
    nodes = [replace(node, type=node.type.with_range(Range(-1.0, 2.0))) if node.name == "x" else node for node in graph]
    result, _ = packed(graph.with_nodes(nodes))
    patches = result["x.patches.1"]
    assert patches.type.range == Range(-1.0, 2.0)
    assert patches.origin == graph["y"].origin.by("pack-patches")
    assert result["y"].origin == graph["y"].origin
    assert result["y"].type == graph["y"].type


HELD = """
weights random(seed=2)
model m(x: f32[2, 9, 8, 3] in [-1.0, 2.0]):
    weight k: f32[3, 3, 3, 8]
    q = dequantize(quantize(x, 0.012, zero_point=-41))
    return {text}
"""


@pytest.mark.long
@each(
    {
        "image": ("conv2d(q, k)", True),
        "image and kernel": ("conv2d(q, dequantize(quantize(k, 0.01)), stride=2)", True),
        "two readers": ("conv2d(q, k, stride=(2, 1)), max_pool(q, 2)", True),
        "of the device": ("conv2d(dequantize(quantize(relu(q), 0.01, zero_point=-128)), k)", False),
    }
)
def test_an_image_that_the_source_quantises_is_packed(text: str, packed: bool) -> None:
    """The host quantises the pixels of patches as those of the image: not an integer changes."""
    exe = tpucc.compile_source(HELD.format(text=text))
    whole = tpucc.compile_source(HELD.format(text=text), omit=("pack-patches",))
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    assert any(node.op == "patches" for node in exe.compilation.layers) == packed
    inputs = random_inputs(exe.runtime, 3)
    for one, other in zip(exe.run(inputs).values(), whole.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (exe.stats["cycles"] < whole.stats["cycles"]) == packed


IMAGES = """
weights random(seed=0)
model m(x: f32[{batch}, {size}, {size}, {channels}]):
    weight k: f32[{kernel}, {kernel}, {channels}, 32] = "k"
    weight w: f32[32, 10] = "w"
    return global_avg_pool(relu(conv2d(x, k, padding={padding}, stride={stride}))) @ w
"""


@pytest.mark.soak
@each(
    [
        (1, 64, 3, 3, 1, 1),
        (1, 64, 3, 7, 3, 2),
        (1, 100, 3, 3, 1, 2),
        (8, 32, 3, 5, 2, 1),
        (50, 16, 1, 3, 1, 1),
        (16, 28, 1, 5, 0, 1),
        (2, 64, 2, 4, 0, 4),
        (1, 160, 3, 5, 2, 1),
    ],
    usual=3,
)
def test_packing_never_loses_end_to_end(batch: int, size: int, channels: int, kernel: int, padding: int, stride: int) -> None:
    source = IMAGES.format(batch=batch, size=size, channels=channels, kernel=kernel, padding=padding, stride=stride)
    for goal, key in (("latency", "seconds"), ("stream", "stream_seconds")):
        own, without = (tpucc.compile_source(source, goal=goal, omit=omit).stats["end_to_end"][key] for omit in ((), ("pack-patches",)))
        assert own <= without
