"""What fits a machine depends on its sizes, not on how fast it is; and what fits computes the reference's integers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.cases import LONG, each, one_of, titled
from tests.support.networks import PICTURES, network
from tests.support.seeds import at_length
from tpucc.diagnostics import LimitError, Source
from tpucc.driver import SPARING, check_source, compile_source
from tpucc.options import Options
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.target import Target, load_target

SPEEDS: tuple[dict[str, float], ...] = (
    {"host_bandwidth": 40e9, "weight_bandwidth": 136e9},
    {"host_bandwidth": 1e5},
    {"weight_bandwidth": 1e5},
    {"host_bandwidth": 1e10, "weight_bandwidth": 1e10, "clock_hz": 1e6},
    {"host_latency_seconds": 1e-3},
    {"host_step_seconds": 1e-8, "host_elements_per_second": 1e12},
    {"clock_hz": 1e9},
)
"""Numbers that aren't sizes."""

RESNET = """
param batch = 3
weights random(seed=0)

def conv(x, filters, name, stride=1):
    weight k: f32[3, 3, x.shape[3], filters] = "{name}"
    return conv2d(x, k, stride=stride, padding="same")

model m(image: f32[batch, 8, 8, 1] in [0.0, 1.0]):
    x = relu(conv(image, 16, "stem"))
    x = relu(x + conv(relu(conv(x, 16, "a")), 16, "b"))
    x = relu(conv(x, 32, "down", stride=2))
    weight w: f32[32, 10]
    return global_avg_pool(x) @ w
"""
RAGGED = """
weights random(seed=0)
model m(x: f32[2, 7, 5, 3] in [-1.0, 1.0]):
    weight a: f32[3, 2, 3, 5]
    weight b: f32[3, 3, 5, 5]
    h = relu(conv2d(x, a, padding="same"))
    h = max_pool(h + conv2d(h, b, padding="same"), 3, stride=2)
    weight c: f32[30, 7]
    return flatten(h) @ c
"""
DENSE = """
weights random(seed=0)
model m(x: f32[13, 7] in [-1.0, 1.0]):
    weight a: f32[7, 9]
    weight b: f32[9, 5]
    h = tanh(x @ a)
    return h * sigmoid(h) @ b
"""
DEPTHWISE = """
weights random(seed=0)
model m(x: f32[1, 7, 6, 4] in [-1.0, 1.0]):
    weight a: f32[1, 1, 4, 6]
    weight b: f32[3, 3, 1, 6]
    h = conv2d(x, a)
    return relu(conv2d(h, b, padding="same", groups=6)) + h
"""


def machine(target: str, rows: int, speed: dict[str, float]) -> Target:
    return msgspec.structs.replace(load_target(target), unified_buffer_rows=rows, **speed)


def fits(text: str, target: Target) -> bool:
    try:
        check_source(Source("m.tpu", text), Path(), Options(target))
    except LimitError as error:
        if any(found.code == "E0621" for found in error.diagnostics):
            return False
        raise
    return True


def verdicts(text: str, target: str, rows: tuple[int, ...], speeds: Sequence[dict[str, float]]) -> list[bool]:
    """Whether the model fits in each of these numbers of rows, which no speed changes; in more rows fits all that fits in fewer."""
    found = [{fits(text, machine(target, count, speed)) for speed in speeds} for count in rows]
    assert all(len(each) == 1 for each in found), dict(zip(rows, found, strict=True))
    told = [each.pop() for each in found]
    assert told == sorted(told), dict(zip(rows, told, strict=True))
    return told


def assert_computes(text: str, target: Target) -> bool:
    """The machine's integers are the reference's. Returns whether the passes had to be sparing."""
    made = compile_source(Source("m.tpu", text), Path(), Options(target))
    assert made.program is not None
    assert made.layers is not None
    runtime = Runtime(made.program)
    assert not [each for each in compare_with_reference(runtime, made.layers, random_inputs(runtime)) if each.unequal]
    return SPARING in made.warnings


NETWORKS = {
    "a residual network": (RESNET, "tpu_v1", (37, 38, 101)),
    "convolutions and a pool": (RAGGED, "tiny", (25, 26, 47)),
    "dense layers": (DENSE, "tiny", (2, 3, 9)),
    "a depthwise convolution": (DEPTHWISE, "tiny", (29, 30, 61)),
}
"""Each with a number of rows that are too few, the fewest that aren't, and more."""


@pytest.mark.soak
@pytest.mark.parametrize(("text", "target", "rows"), one_of(4, NETWORKS.values(), LONG), ids=NETWORKS)
def test_what_fits_does_not_depend_on_speeds(text: str, target: str, rows: tuple[int, ...]) -> None:
    assert verdicts(text, target, rows, SPEEDS[:2]) == [False, True, True]


@pytest.mark.soak
@pytest.mark.parametrize("target", ["tiny", "tpu_edge", "tpu_v1"])
@pytest.mark.parametrize("text", [RESNET, RAGGED, DENSE, DEPTHWISE])
def test_what_fits_does_not_depend_on_any_speed(text: str, target: str) -> None:
    verdicts(text, target, (*range(2, 64, 3), *range(64, 128, 8)), ({}, *SPEEDS))


@pytest.mark.soak
@each(titled(NETWORKS))
def test_the_fewest_rows_compute_the_same(network: tuple[str, str, tuple[int, ...]]) -> None:
    text, target, (_, fewest, _) = network
    assert_computes(text, machine(target, fewest, SPEEDS[0]))


def test_passes_that_ran_for_nothing_are_in_no_result() -> None:
    """Here passes run twice, and the second time they choose what takes fewest rows."""
    made = compile_source(Source("m.tpu", RESNET), Path(), Options(machine("tpu_v1", 38, {})))
    assert made.warnings.count(SPARING) == 1
    usual = compile_source(Source("m.tpu", RESNET), Path(), Options(machine("tpu_v1", 101, SPEEDS[0])))
    assert SPARING not in usual.warnings
    assert [each.stage for each in made.snapshots] == [each.stage for each in usual.snapshots]


@pytest.mark.long
def test_rows_are_saved_where_the_fastest_way_has_no_room() -> None:
    assert assert_computes(RESNET, machine("tpu_v1", 38, {}))
    assert not assert_computes(RESNET, machine("tpu_v1", 101, SPEEDS[0]))


def test_small_parts_of_a_batch_where_larger_ones_leave_instructions_no_room() -> None:
    """Parts of a fourth of the buffer would be two items, and a sum works on three values."""
    text = "weights random(seed=0)\nmodel m(x: f32[200, 24, 4] in [-1.0, 1.0]):\n    h = tanh(x)\n    return h * sigmoid(h)\n"
    assert verdicts(text, "tiny", (71, 72, 100, 140), ({},)) == [False, True, True, True]


def test_patches_are_not_packed_where_only_the_image_has_room() -> None:
    """A random network, whose patches take 48 rows in bands of lines: of 36 rows. On a slow link they aren't packed in the first place."""
    text = """\
weights random(seed=0)
model net(x: f32[2, 9, 7, 2]) -> i32[2, 6, 7], f32[2, 6, 7, 1]:
    weight w1: f32[63, 63]
    h2 = reshape(transpose(transpose(reshape(x, (2, 63, 2)), (0, 2, 1)) @ w1, (0, 2, 1)), (2, 9, 7, 2))
    weight w4: f32[3, 1, 2, 1]
    h5 = abs(conv2d(h2[:, 3:, :, :], w4, padding="same"))
    h7 = h5
    for i in range(3):
        weight k: f32[3, 3, h7.shape[3], 2] = "n6.{i}"
        h7 = conv2d(h7, k, padding="same")
        if i == 0:
            h7 = sigmoid(h7)
    return argmax(h7), h5
"""
    assert verdicts(text, "tiny", (36,), SPEEDS) == [True]


@at_length(60, 1)
def test_random_networks_fit_at_all_speeds_or_at_none(seeds: range) -> None:
    verdicts(network(seeds.start, PICTURES), "tiny", (12, 24, 36, 48, 64, 96), SPEEDS)
