"""What is computed while compiling has the same bits on every processor: products, functions, and all that is written."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.kernels import KERNELS, environment, printed
from tpucc.cli.main import main
from tpucc.floating import double, exact
from tpucc.floating.arithmetic import PORTABLE
from tpucc.floating.exact import matmul
from tpucc.floating.nan import NAN
from tpucc.interop.folded_functions import cos, power, sin
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static
from tpucc.interop.onnx.reading.building.weights import Called
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.folding import known_results
from tpucc.numerics import AnyArray, Float32

ROOT = Path(__file__).resolve().parents[2]
NETWORK = """
weights random(seed=3)
model m(x: f32[8, 12, 12, 3] in [-1.0, 1.0], h: f32[8, 40] in [-2.0, 2.0]):
    weight k: f32[3, 3, 3, 8]
    weight d: f32[3, 3, 1, 8]
    weight g: f32[3, 3, 4, 8]
    weight w: f32[40, 24]
    weight u: f32[24, 30]
    weight v: f32[8, 30]
    image = relu(conv2d(conv2d(relu(conv2d(x, k)), d, groups=8), g, groups=2))
    row = gelu(tanh(h @ w @ u) + global_avg_pool(image) @ v)
    return softmax(sigmoid(row) * silu(row)), log(1.0 + exp(row)), elu(row) @ transpose(softmax(u @ transpose(u, (1, 0))) @ u, (1, 0))
"""
"""Products of constants, which are folded, convolutions of each kind, and functions: on the device, on the host, and in ranges."""
FUNCTIONS = ("Cos", "Exp", "Log", "Sigmoid", "Sin", "Tanh")
PROGRAMS = ("06_digits_lstm", "14_digits_resnet", "gallery/digits_vit")


def rounded(exact: Fraction) -> np.float32:
    """The nearest float32, of two as near the even one."""
    low = np.float32(float(exact))  # rounds twice: at most one step away
    near = [np.nextafter(low, np.float32(-np.inf)), low, np.nextafter(low, np.float32(np.inf))]
    return min(near, key=lambda number: (abs(Fraction(float(number)) - exact), int(number.view(np.uint32)) & 1)) + np.float32(0)


def by_fractions(a: Float32, b: Float32) -> Float32:
    left, right = ([[Fraction(number) for number in row] for row in matrix.tolist()] for matrix in (a, b.T))
    return np.array([[rounded(sum((x * y for x, y in zip(row, column, strict=True)), Fraction())) for column in right] for row in left])


def same(found: AnyArray, expected: AnyArray) -> None:
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@each([1, 2, 9, 100, 300])
def test_elements_of_products_are_exact_sums_rounded_once(depth: int) -> None:
    random = np.random.default_rng(depth)
    spread = np.exp2(random.integers(-20, 20, (2, depth))).astype(np.float32)
    a, b = random.standard_normal((7, depth), np.float32) * spread[0], random.standard_normal((depth, 5), np.float32) * spread[1][:, None]
    a[1], b[:, 1] = np.rint(a[1] * 4) / 16, 0.0
    same(PORTABLE.product(a, b), by_fractions(a, b))
    again = np.concatenate([a, -a], axis=1), np.concatenate([b, b + np.float32(2.0**-30)])
    same(PORTABLE.product(*again), by_fractions(*again))


@pytest.mark.parametrize("deep", [1, 2, 16, 299, 300])
def test_deep_products_are_sums_of_pieces(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that cancel, near the middle between two float32 numbers."""
    monkeypatch.setattr(exact, "DEEP", deep)
    random = np.random.default_rng(deep)
    for _ in range(40):
        row, column = random.standard_normal((1, 149), np.float32), random.standard_normal((149, 1), np.float32)
        ends = np.array([[1.0, random.choice([-1.0, 1.0]) * (2.0**-24 + random.choice([-1.0, 0.0, 1.0]) * 2.0**-47)]], np.float32)
        order = random.permutation(300)
        a, b = np.concatenate([row, -row, ends], axis=1)[:, order], np.concatenate([column, column, np.ones((2, 1), np.float32)])[order]
        same(PORTABLE.product(a, b), by_fractions(a, b))
    with pytest.raises(ValueError, match=r"size|dimension"):
        PORTABLE.product(np.ones((1, deep), np.float32), np.ones((deep + 1, 1), np.float32))
    with np.errstate(all="ignore"):
        same(PORTABLE.product(np.full((1, 3), np.inf, np.float32), np.eye(3, dtype=np.float32) + 1), np.full((1, 3), np.inf, np.float32))


def test_what_adding_pieces_rounds_off_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 ones are lost beside 2^53, one by one. The bound of a piece is 4, and the float32 numbers there are 64 apart."""
    monkeypatch.setattr(exact, "DEEP", 1)
    a, b = np.ones((1, 204), np.float32), np.ones((204, 1), np.float32)
    a[0, [0, 201, 202, 203]], b[[0, 201, 203], 0] = [2.0**27, 2.0**20, 4, -(2.0**27)], [2.0**26, 2.0**9, 2.0**26]
    assert PORTABLE.product(a, b) == 2.0**29 + 192 == by_fractions(a, b)


def test_a_tie_and_what_cancels() -> None:
    """Half a last bit beside 1, and a bit less and more; a sum that is lost in float64, too."""
    a = np.array([[1, 2.0**-24, 0], [1, 2.0**-24, -(2.0**-60)], [1, 2.0**-24, 2.0**-60], [2.0**60, 1, -(2.0**60)]], np.float32)
    assert PORTABLE.product(a, np.ones((3, 1), np.float32))[:, 0].tolist() == [1.0, 1.0, 1.0 + 2.0**-23, 1.0]


def test_a_product_of_many_rows_is_that_of_each() -> None:
    """By way of parts of the rows, and of batches of matrices: equal rows have equal results, with any number of them."""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((3000, 40), np.float32), random.standard_normal((40, 33), np.float32)
    a[1000:2000] = a[0]
    found = PORTABLE.product(a, b)
    same(found, np.concatenate([PORTABLE.product(row[None], b) for row in a]))
    same(PORTABLE.products(a.reshape(3, 1000, 40), np.stack([b] * 3)).reshape(3000, 33), found)
    assert (found[1000:2000] == found[0]).all()


def test_infinities_and_nan() -> None:
    infinity = np.float32(np.inf)
    a = np.array([[infinity, 1], [infinity, -infinity], [0, np.nan], [0, 2], [3e38, 3e38]], np.float32)
    with np.errstate(all="ignore"):
        found = PORTABLE.product(a, np.array([[1, 0], [1, 1]], np.float32))
    same(found, np.array([[infinity, NAN], [NAN, NAN], [NAN, NAN], [2, 2], [infinity, 3e38]], np.float32))


@each([((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)), ((5, 1, 2, 4), (3, 4, 6)), ((2, 0), (0, 3))])
def test_products_of_constants_have_the_shapes_of_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    for kind in (np.float32, np.float64, np.int32):
        a, b = (random.integers(-9, 10, shape).astype(kind) for shape in (left, right))
        found, expected = matmul(a, b), a @ b
        assert (found.shape, found.dtype) == (np.shape(expected), expected.dtype)
        np.testing.assert_array_equal(found, expected)


@each(
    [
        (double.exp, math.exp, -700, 700, 1),
        (double.log, math.log, 1e-300, 1e300, 1),
        (double.expm1, math.expm1, -30, 30, 2),
        (double.tanh, math.tanh, -12, 12, 4),
        (double.sigmoid, lambda x: 1 / (1 + math.exp(-x)), -300, 300, 4),
        (sin, math.sin, -1.5, 1.5, 1),
        (cos, math.cos, -1.5, 1.5, 1),
    ]
)
def test_functions_in_float64(found: Callable[..., AnyArray], expected: Callable[..., float], low: float, high: float, ulps: int) -> None:
    """`ulps` are the units in the last place by which they may differ from the C library's, which may be wrong by one itself."""
    x = np.concatenate([np.random.default_rng(0).uniform(low, high, 20_000), np.geomspace(1e-12, high, 2_000)])
    exact = np.array([expected(float(number)) for number in x])
    assert (np.abs(found(x) - exact) <= (ulps + 1) * np.spacing(np.abs(exact))).all()


def test_functions_in_float64_at_their_ends() -> None:
    with np.errstate(all="ignore"):
        assert double.exp(np.array([-np.inf, -746, 0, 710, np.inf])).tolist() == [0, 0, 1, math.inf, math.inf]
        assert double.log(np.array([0.0, 1, np.inf])).tolist() == [-math.inf, 0, math.inf]
        assert np.isnan([*double.log(np.array([-1, np.nan])), double.exp(np.nan), sin(np.inf), double.tanh(np.nan)]).all()
        assert double.tanh(np.array([-np.inf, -0.0, 40])).tolist() == [-1, 0, 1]
        assert power(np.array([2, 3, -2, 0, 0, 4, 9]), np.array([3, -2, 3, 0, -1, -0.5, 1.5])).tolist() == [
            8,
            1 / 9,
            -8,
            1,
            math.inf,
            0.5,
            27,
        ]
        angles = np.array([1e5, -3e4, 1234.5])
        np.testing.assert_allclose(sin(angles), [math.sin(x) for x in angles.tolist()], rtol=1e-12)


def written(*paths: Path) -> str:
    """A digest of all files that compiling these models writes."""
    hashed = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        own = Path(folder) / "network.tpu"
        own.write_text(NETWORK)
        for number, (path, method) in enumerate(product(paths or (own,), ("minmax", "percentile"))):
            out = Path(folder) / str(number)
            assert main(["compile", str(path), "-o", str(out), "--calibrate-method", method]) == 0
            hashed.update(b"".join(file.read_bytes() for file in sorted(out.iterdir())))
    return hashed.hexdigest()


def of_programs() -> str:
    return written(*(ROOT / "programs" / f"{name}.tpu" for name in PROGRAMS))


def of_results() -> str:
    """Of the results of a model whose host computes in float32, and of what is folded while a file is read."""
    exe = tpucc.compile_source(NETWORK, keep={"row": "host"})
    draw = np.random.default_rng(0)
    results = exe.run({name: draw.uniform(-1, 1, port.shape).astype(np.float32) for name, port in exe.runtime.inputs.items()})
    x = draw.normal(0, 3, 5000).astype(np.float32)
    network = Network("m", {"x": x}, Called.of(OnnxGraph("m", (), {}, (), ())))
    operands = {name: Static(np.abs(x) if name == "Log" else x, "x") for name in FUNCTIONS}
    calls = [Call(network, OnnxNode(name, ("x",), ("y",)), [operand], 13, frozenset()) for name, operand in operands.items()]
    folded = [array for call in calls for array in known_results(call) or ()]
    return hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in (*results.values(), *folded))).hexdigest()


@pytest.mark.soak
@KERNELS
def test_other_processors_write_the_same_files(kernel: str, threads: int) -> None:
    assert printed(__file__, written.__name__, kernel, threads) == written()
    assert printed(__file__, of_results.__name__, kernel, threads) == of_results()


@pytest.mark.soak
@KERNELS
def test_other_processors_write_the_same_files_of_programs(kernel: str, threads: int) -> None:
    assert printed(__file__, of_programs.__name__, kernel, threads) == of_programs()


def test_a_kernel_that_the_processor_cannot_run_is_left_to_openblas(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel SkylakeX a processor without AVX-512 stops at an illegal instruction."""
    assert environment("SkylakeX", 1, {"AVX512_SKX": False}).get("OPENBLAS_CORETYPE") is None
    assert environment("SkylakeX", 1, {"AVX512_SKX": True})["OPENBLAS_CORETYPE"] == "SkylakeX"
    assert environment("Prescott", 1, {})["OPENBLAS_CORETYPE"] == "Prescott"
