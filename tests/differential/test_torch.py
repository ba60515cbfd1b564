"""The float evaluation against PyTorch, an implementation that is not ours: operators and whole networks, with the same weights.

PyTorch in float64 is the judge, so that what differs is the rounding of our float32 alone; a whole network may round about as much as
PyTorch in float32 does. Needs the extra `torch`; `pytest -m torch` runs only this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.support.float_models import load
from tpucc.numerics import AnyArray
from tpucc.ops import OPS

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it comes with the extra: pip install -e '.[dev,torch]'")

import torch.nn.functional as F  # noqa: E402  only where there is torch

from tests.support import torch_models  # noqa: E402

pytestmark = pytest.mark.torch

EPSILON = float(np.finfo(np.float32).eps)
WORSE = 8
"""How many times the error of PyTorch's sums those of NumPy's BLAS may have, by their order: 6 of 10,816 products on one processor."""
SMALLER: Mapping[str, Mapping[str, object]] = {
    "05_digits_cnn": {"batch": 64},
    "06_digits_lstm": {"batch": 64},
    "11_resnet50": {"batch": 2, "size": 72, "classes": 37},
    "12_mlp_mixer_block": {"batch": 3},
}
NETWORKS: Mapping[str, Callable[..., Any]] = {
    "05_digits_cnn": torch_models.digits_cnn,
    "06_digits_lstm": torch_models.digits_lstm,
    "07_mnist_cnn": torch_models.mnist_cnn,
    "08_fashion_cnn": torch_models.fashion_cnn,
    "09_cifar_resnet": torch_models.cifar_resnet,
    "10_imdb_lstm": torch_models.imdb_lstm,
    "11_resnet50": torch_models.resnet50,
    "12_mlp_mixer_block": torch_models.mlp_mixer_block,
}


def tensor(array: AnyArray, precision: Any = torch.float64) -> Any:
    """Floats in the given precision, indices as they are."""
    return torch.from_numpy(np.array(array)).to(precision if array.dtype.kind == "f" else torch.int64)


def error(ours: Any, exact: Any) -> float:
    """The largest difference, in float32 roundings of the largest value."""
    assert ours.shape == exact.shape
    difference = np.abs(np.asarray(ours, np.float64) - exact.numpy())
    return float(difference.max() / exact.abs().max() / EPSILON)


def require_equal_but_for_rounding(network: Callable[..., Any], name: str, **params: object) -> None:
    """Compares the logits, which the last softmax or sigmoid reads; of the mixer block its result."""
    model = load(name, **params)
    given = model.inputs(seed=3)
    output, logits = model.run(given)
    ours = output if name == "12_mlp_mixer_block" else logits
    results = []
    for precision in (torch.float64, torch.float32):
        weights = {key: tensor(value, precision) for key, value in model.weights.items()}
        results.append(network(weights, *(tensor(array, precision) for array in given.values())))
    exact, rounded = results
    assert ours.dtype == np.float32
    assert error(ours, exact) < WORSE * error(rounded, exact) + 4


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    require_equal_but_for_rounding(NETWORKS[name], name, **SMALLER.get(name, {}))


def test_resnet_56() -> None:
    require_equal_but_for_rounding(torch_models.cifar_resnet, "09_cifar_resnet", n=9, batch=2)


@pytest.mark.parametrize("size", [33, 64, 97])
def test_resnet_50_of_odd_sizes(size: int) -> None:
    """Maps of odd sizes, down to single pixels, at every stride."""
    require_equal_but_for_rounding(torch_models.resnet50, "11_resnet50", size=size, classes=10)


def reference(op: str, *operands: AnyArray, **attributes: object) -> AnyArray:
    return np.asarray(OPS[op].reference(OPS[op].attributes(**attributes), operands))


def drawn(seed: int, *shape: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


GEOMETRIES = [
    (height, width, window, stride)
    for height, width in ((7, 8), (12, 5), (1, 9))
    for window in ((1, 1), (2, 2), (3, 3), (2, 5), (4, 3), (7, 7))
    for stride in ((1, 1), (2, 2), (3, 1), (2, 3))
]


@pytest.mark.parametrize(("height", "width", "window", "stride"), GEOMETRIES)
def test_same_padding(height: int, width: int, window: tuple[int, int], stride: tuple[int, int]) -> None:
    """Convolution, maximum and average; the average counts real pixels only, so torch's sums are divided by sums of ones."""
    x = drawn(0, 2, height, width, 3)
    image, ones = torch_models.nchw(tensor(x)), torch.ones(1, 1, height, width, dtype=torch.float64)

    kernel = drawn(1, *window, 3, 4)
    wanted = F.conv2d(torch_models.padded(image, window, stride), tensor(kernel).permute(3, 2, 0, 1), stride=stride)
    assert error(reference("conv2d", x, kernel, stride=stride, padding="same"), torch_models.nhwc(wanted)) < 16

    wanted = F.max_pool2d(torch_models.padded(image, window, stride, -torch.inf), window, stride)
    assert error(reference("max_pool", x, size=window, stride=stride, padding="same"), torch_models.nhwc(wanted)) == 0

    sums, counts = (F.avg_pool2d(torch_models.padded(a, window, stride), window, stride, divisor_override=1) for a in (image, ones))
    assert error(reference("avg_pool", x, size=window, stride=stride, padding="same"), torch_models.nhwc(sums / counts)) < 16


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [3, 5, 7])
def test_padding_of_all_sides(window: int, stride: int, padding: int) -> None:
    """Here torch's own padding and counting are compared."""
    padding = min(padding, window // 2)
    x, kernel = drawn(0, 2, 11, 8, 3), drawn(1, window, window, 3, 4)
    image = torch_models.nchw(tensor(x))
    wanted = F.conv2d(image, tensor(kernel).permute(3, 2, 0, 1), stride=stride, padding=padding)
    assert error(reference("conv2d", x, kernel, stride=stride, padding=padding), torch_models.nhwc(wanted)) < 16
    wanted = F.max_pool2d(image, window, stride, padding)
    assert error(reference("max_pool", x, size=window, stride=stride, padding=padding), torch_models.nhwc(wanted)) == 0
    wanted = F.avg_pool2d(image, window, stride, padding, count_include_pad=False)
    assert error(reference("avg_pool", x, size=window, stride=stride, padding=padding), torch_models.nhwc(wanted)) < 16


@pytest.mark.parametrize("stride", [1, 2, (2, 3)])
@pytest.mark.parametrize("dilation", [1, 2, (3, 1)])
@pytest.mark.parametrize(("channels", "filters", "groups"), [(6, 6, 6), (6, 12, 6), (6, 4, 2), (6, 9, 3)])
def test_groups_and_dilation(channels: int, filters: int, groups: int, dilation: Any, stride: Any) -> None:
    x, kernel = drawn(0, 2, 11, 9, channels), drawn(1, 3, 2, channels // groups, filters)
    image, turned = torch_models.nchw(tensor(x)), tensor(kernel).permute(3, 2, 0, 1)
    wanted = F.conv2d(image, turned, stride=stride, padding=2, dilation=dilation, groups=groups)
    found = reference("conv2d", x, kernel, stride=stride, padding=2, dilation=dilation, groups=groups)
    assert error(found, torch_models.nhwc(wanted)) < 16


@pytest.mark.parametrize("size", [2, 5, 6, 7, 10])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(("window", "padding"), [(2, 0), (2, 1), (3, 0), (3, 1), (5, 2)])
def test_pools_with_ceil_and_counted_padding(window: int, padding: int, stride: int, size: int) -> None:
    if size + 2 * padding - window <= -stride:
        return
    x, given = drawn(0, 2, size, 8, 3), {"size": window, "stride": stride, "padding": padding, "ceil": True}
    image = torch_models.nchw(tensor(x))
    wanted = F.max_pool2d(image, window, stride, padding, ceil_mode=True)
    assert error(reference("max_pool", x, **given), torch_models.nhwc(wanted)) == 0
    for count in (False, True):
        wanted = F.avg_pool2d(image, window, stride, padding, ceil_mode=True, count_include_pad=count)
        assert error(reference("avg_pool", x, **given, count_padding=count), torch_models.nhwc(wanted)) < 16


@pytest.mark.parametrize(("window", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (4, 2, 1), (3, 1, 1), (5, 3, 2), (3, 3, 0)])
def test_transposed_convolutions(window: int, stride: int, padding: int) -> None:
    x, kernel = drawn(0, 2, 5, 7, 3), drawn(1, window, window, 3, 4)
    wanted = F.conv_transpose2d(torch_models.nchw(tensor(x)), tensor(kernel).permute(2, 3, 0, 1), stride=stride, padding=padding)
    assert error(reference("conv_transpose2d", x, kernel, stride=stride, padding=padding), torch_models.nhwc(wanted)) < 16


@pytest.mark.parametrize("size", [(5, 7), (10, 14), (15, 9), (3, 20), (1, 1)])
def test_resize(size: tuple[int, int]) -> None:
    x = drawn(0, 2, 5, 7, 3)
    wanted = F.interpolate(torch_models.nchw(tensor(x)), size, mode="nearest")
    assert error(reference("resize", x, size=size), torch_models.nhwc(wanted)) == 0
    wanted = F.interpolate(torch_models.nchw(tensor(x)), size, mode="bilinear", align_corners=False)
    assert error(reference("resize", x, size=size, mode="bilinear"), torch_models.nhwc(wanted)) < 16


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_normalisation(size: int) -> None:
    x = drawn(0, 2, 5, 7, 9)
    wanted = F.local_response_norm(torch_models.nchw(tensor(x)), size, 0.5, 0.75, 2.0)
    assert error(reference("lrn", x, size=size, alpha=0.5, beta=0.75, bias=2.0), torch_models.nhwc(wanted)) < 16


ELEMENTWISE: Mapping[str, tuple[str, dict[str, object], Callable[[Any], Any]]] = {
    "relu": ("relu", {}, F.relu),
    "relu6": ("relu6", {}, F.relu6),
    "sigmoid": ("sigmoid", {}, torch.sigmoid),
    "tanh": ("tanh", {}, torch.tanh),
    "leaky_relu": ("leaky_relu", {"alpha": 0.2}, lambda x: F.leaky_relu(x, 0.2)),
    "elu": ("elu", {}, F.elu),
    "gelu": ("gelu", {}, F.gelu),
    "gelu by tanh": ("gelu", {"approximate": True}, lambda x: F.gelu(x, approximate="tanh")),
    "silu": ("silu", {}, F.silu),
    "hard_sigmoid": ("hard_sigmoid", {}, F.hardsigmoid),
    "hard_swish": ("hard_swish", {}, F.hardswish),
    "softmax": ("softmax", {"axis": 1}, lambda x: torch.softmax(x, 1)),
    "global_avg_pool": ("global_avg_pool", {}, lambda x: x.mean((1, 2))),
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_functions(case: str) -> None:
    op, attributes, theirs = ELEMENTWISE[case]
    x = 4 * drawn(2, 3, 5, 7, 11)
    assert error(reference(op, x, **attributes), theirs(tensor(x))) < 4


def test_batch_norm() -> None:
    x, gamma, beta, mean = drawn(0, 3, 5, 4, 7), drawn(1, 7), drawn(2, 7), drawn(3, 7)
    variance = np.abs(drawn(4, 7))
    wanted = F.batch_norm(torch_models.nchw(tensor(x)), *map(tensor, (mean, variance, gamma, beta)), eps=0.001)
    assert error(reference("batch_norm", x, gamma, beta, mean, variance), torch_models.nhwc(wanted)) < 4


def test_layer_norm() -> None:
    x, gamma, beta = 3 * drawn(0, 3, 5, 57) + 2, drawn(1, 57), drawn(2, 57)
    wanted = F.layer_norm(tensor(x), (57,), tensor(gamma), tensor(beta))
    assert error(reference("layer_norm", x, gamma, beta), wanted) < 4


def test_attention() -> None:
    """Products of computed values, with batch dimensions that broadcast."""
    q, k, v = drawn(0, 2, 3, 7, 5), drawn(1, 3, 5, 7), drawn(2, 2, 1, 7, 4)
    weights = reference("softmax", reference("matmul", q, k))
    wanted = torch.softmax(tensor(q) @ tensor(k), -1) @ tensor(v)
    assert error(reference("matmul", weights, v), wanted) < 16
