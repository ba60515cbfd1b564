"""The numbered programs are the networks that they say they are: shapes, weights, multiplications, and accuracy where they are trained."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tests.support.float_models import PROGRAMS, elaborated, load
from tpucc.interop.weights import weights_of
from tpucc.ir.graph import Graph
from tpucc.runtime.check import float_reference

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.tpu"))


def dense(*sizes: int) -> int:
    return sum(m * n + n for m, n in pairwise(sizes))


def conv(size: int, inputs: int, filters: int) -> int:
    return (size * size * inputs + 1) * filters


def conv_bn(size: int, inputs: int, filters: int) -> int:
    """A kernel without bias; scale, shift, mean and variance of each channel."""
    return (size * size * inputs + 4) * filters


def lstm(inputs: int, units: int) -> int:
    return 4 * units * (inputs + units + 1)


def cifar_resnet(n: int) -> int:
    """He et al., section 4.2: 6n + 2 layers with weights, three stages of 16, 32 and 64 filters; two projections."""
    stages = sum(conv_bn(3, before, f) + (2 * n - 1) * conv_bn(3, f, f) for before, f in ((16, 16), (16, 32), (32, 64)))
    return conv_bn(3, 3, 16) + stages + conv_bn(1, 16, 32) + conv_bn(1, 32, 64) + dense(64, 10)


MIXER = dense(196, 256, 196) + dense(512, 2048, 512) + 4 * 512
TORCHVISION_RESNET50 = 25_557_032
STATISTICS_RESNET50 = 2 * (64 + 3 * (64 + 64 + 256) + 256 + 4 * (128 + 128 + 512) + 512 + 6 * (256 + 256 + 1024) + 1024)
STATISTICS_RESNET50 += 2 * (3 * (512 + 512 + 2048) + 2048)

WEIGHTS = {
    "01_hello": 256 * 256,
    "02_iris": dense(4, 256, 3),
    "03_wine": dense(13, 64, 32, 3),
    "04_digits_mlp": dense(64, 256, 128, 10),
    "05_digits_cnn": conv(3, 1, 16) + conv(3, 16, 32) + dense(2 * 2 * 32, 64, 10),
    "06_digits_lstm": lstm(8, 64) + dense(64, 10),
    "07_mnist_cnn": conv(2, 1, 64) + conv(2, 64, 32) + dense(7 * 7 * 32, 256, 10),
    "08_fashion_cnn": conv(3, 1, 64) + dense(13 * 13 * 64, 10),
    "09_cifar_resnet": cifar_resnet(3),
    "10_imdb_lstm": 15_000 * 32 + lstm(32, 100) + dense(100, 1),
    "11_resnet50": TORCHVISION_RESNET50 + STATISTICS_RESNET50,
    "12_mlp_mixer_block": MIXER,
    "13_quadric": 0,
}
TYPES = {
    "01_hello": ("f32[8, 256]", "f32[8, 256]"),
    "02_iris": ("f32[51, 4]", "f32[51, 3]"),
    "03_wine": ("f32[60, 13]", "f32[60, 3]"),
    "04_digits_mlp": ("f32[200, 64]", "f32[200, 10]"),
    "05_digits_cnn": ("f32[200, 8, 8, 1]", "f32[200, 10]"),
    "06_digits_lstm": ("f32[200, 8, 8]", "f32[200, 10]"),
    "07_mnist_cnn": ("f32[8, 28, 28, 1]", "f32[8, 10]"),
    "08_fashion_cnn": ("f32[8, 28, 28, 1]", "f32[8, 10]"),
    "09_cifar_resnet": ("f32[8, 32, 32, 3]", "f32[8, 10]"),
    "10_imdb_lstm": ("i32[8, 250]", "f32[8, 1]"),
    "11_resnet50": ("f32[1, 224, 224, 3]", "f32[1, 1000]"),
    "12_mlp_mixer_block": ("f32[1, 196, 512]", "f32[1, 196, 512]"),
    "13_quadric": ("f32[4, 4]", "f32[4, 4]"),
}
TRAINED = {"02_iris": 0.96, "03_wine": 0.96, "04_digits_mlp": 0.97, "05_digits_cnn": 0.97, "06_digits_lstm": 0.95}


def weights_in(graph: Graph) -> int:
    return sum(node.type.size for node in weights_of(graph).values())


def macs_in(graph: Graph) -> int:
    """Multiplications of all products for one row of the batch, from the shapes alone."""
    products = [node for node in graph if node.op in ("conv2d", "matmul")]
    total = sum(node.type.size * math.prod(graph[node.operands[1]].type.shape[:-1]) for node in products)
    return total // graph.inputs[0].type.shape[0]


def maps(graph: Graph) -> dict[tuple[int, ...], int]:
    """How many convolutions make maps of each (height, width, channels)."""
    return Counter(node.type.shape[1:] for node in graph if node.op == "conv2d")


def test_every_program_is_here() -> None:
    assert list(WEIGHTS) == list(TYPES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_types_and_weights(name: str) -> None:
    graph = elaborated(name)
    (given,), (made,) = graph.inputs, graph.outputs
    assert (given.type.brief, graph[made.node].type.brief) == TYPES[name]
    assert weights_in(graph) == WEIGHTS[name]


@pytest.mark.parametrize("name", [name for name in NAMES if WEIGHTS[name] and name not in TRAINED and name != "01_hello"])
def test_headers_say_what_is_drawn(name: str) -> None:
    """Untrained programs say so, and a comment that counts weights counts them rightly."""
    text = (PROGRAMS / f"{name}.tpu").read_text("utf-8")
    head = text[: text.index("param")]
    assert "drawn at random" in head
    assert "\nweights random(seed=" in text
    counted = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) weights", head)]
    assert counted in ([], [TORCHVISION_RESNET50 if name == "11_resnet50" else WEIGHTS[name]])


@pytest.mark.parametrize(("n", "layers", "millions"), [(3, 20, 0.27), (5, 32, 0.46), (9, 56, 0.85)])
def test_residual_networks_of_the_paper(n: int, layers: int, millions: float) -> None:
    """Depth by `n`, and the weights of table 6, whose shortcuts have none."""
    graph = elaborated("09_cifar_resnet", n=n)
    assert sum(node.op in ("conv2d", "matmul") for node in graph) == layers + 2
    assert weights_in(graph) == cifar_resnet(n)
    assert weights_in(graph) / 1e6 == pytest.approx(millions, abs=0.02)


def test_maps_of_resnet_20() -> None:
    assert maps(elaborated("09_cifar_resnet")) == {(32, 32, 16): 7, (16, 16, 32): 7, (8, 8, 64): 7}


def test_maps_of_resnet_50() -> None:
    """Table 1 of the paper: the sizes of the maps, and of version 1.5, whose first 1×1 convolutions keep their block's size."""
    wide = {(56, 56, 256): 4, (28, 28, 512): 5, (14, 14, 1024): 7, (7, 7, 2048): 4}
    narrow = {(56, 56, 64): 6, (28, 28, 128): 7, (14, 14, 256): 11, (7, 7, 512): 5}
    first = {(56, 56, 128): 1, (28, 28, 256): 1, (14, 14, 512): 1}
    assert maps(elaborated("11_resnet50")) == {(112, 112, 64): 1, **wide, **narrow, **first}


@pytest.mark.parametrize(
    ("name", "millions"),
    [("07_mnist_cnn", 2.21), ("08_fashion_cnn", 0.498), ("09_cifar_resnet", 40.8), ("10_imdb_lstm", 13.2), ("11_resnet50", 4089.2)],
)
def test_multiplications(name: str, millions: float) -> None:
    """ResNet-50 v1.5 has 4.09 billion, as torchvision states; ResNet-20 0.041 billion; the others by hand."""
    assert macs_in(elaborated(name)) / 1e6 == pytest.approx(millions, rel=2e-3)


def test_an_lstm_shares_the_weights_of_its_steps() -> None:
    graph = elaborated("10_imdb_lstm", time=20)
    assert sum(node.op == "matmul" for node in graph) == 2 * 20 + 1
    assert len(weights_of(graph)) == 6


@pytest.mark.parametrize("name", TRAINED)
def test_trained_programs_are_right_on_held_out_data(name: str) -> None:
    graph = load(name).graph
    with np.load(PROGRAMS / f"{name}_test.npz") as archive:
        arrays = dict(archive)
    labels = arrays.pop("labels")
    (output,) = float_reference(graph, arrays).values()
    assert (output.argmax(axis=1) == labels).mean() >= TRAINED[name]


@pytest.mark.parametrize("name", TRAINED)
def test_held_out_rows_are_not_for_calibration(name: str) -> None:
    """No row that measures accuracy has been seen before; among iris flowers there are equal ones."""
    with np.load(PROGRAMS / f"{name}_test.npz") as test, np.load(PROGRAMS / f"{name}_calibration.npz") as seen:
        (key,) = seen.files
        rows = {row.tobytes() for row in seen[key]}
        shared = sum(row.tobytes() in rows for row in test[key])
    assert shared <= (2 if name == "02_iris" else 0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "11_resnet50"])
def test_drawn_weights_keep_values_in_reach(name: str) -> None:
    """Outputs depend on the inputs, and no probability is exactly 0 or 1: nothing has saturated or died on the way."""
    model = load(name, **({"n": 9} if name == "09_cifar_resnet" else {}))
    first, below = model.run(model.inputs(seed=1))
    assert np.isfinite(first).all()
    assert np.abs(below).max() < 100
    other, _ = model.run(model.inputs(seed=2))
    assert np.abs(first - other).max() > 1e-3


def test_a_sphere_becomes_its_outline() -> None:
    model = load("13_quadric")
    seen, _ = model.run({"q": np.diag([1, 1, 1, -1]).astype(np.float32)})
    np.testing.assert_allclose(seen, np.diag([1, 1, 1 / 3, -1 / 3]), atol=1e-7)


def test_a_quadric_vanishes_on_the_screen_where_it_does_in_the_world() -> None:
    """pᵀ·Q·p = 0 is kept by PV, here built from the camera as it is described."""
    model = load("13_quadric")
    q = np.diag([0.25, 1.0, 0.5, -1.0]).astype(np.float32)
    seen, _ = model.run({"q": q})
    view = np.eye(4)
    view[2, 3] = -2
    near, far = 1, 3
    projection = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, (near + far) / (near - far), 2 * near * far / (near - far)], [0, 0, -1, 0]])
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (2, 50))
    points = np.array([2 * np.cos(angles[0]), np.sin(angles[0]) * np.cos(angles[1]), np.sqrt(2) * np.sin(angles[0]) * np.sin(angles[1])])
    points = np.concatenate([points, np.ones((1, 50))])
    np.testing.assert_allclose(np.einsum("ip,ij,jp->p", points, q, points), 0, atol=1e-6)
    screen = projection @ view @ points
    np.testing.assert_allclose(np.einsum("ip,ij,jp->p", screen, seen, screen), 0, atol=1e-5)
