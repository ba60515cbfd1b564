"""Sums in a defined order, over elements and over cores, against a tree in plain Python; and random numbers of Threefry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.floating.matrix_unit import Machine
from tpucc.floating.random_numbers import threefry, uniform
from tpucc.numerics import Float32
from tpucc.training.all_reduce import all_reduce_mean, all_reduce_steps
from tpucc.training.arithmetic import NUMPY

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an arithmetic leaves them to the caller

MACHINE = Machine(128)


def tree(values: Sequence[np.float32 | Float32]) -> np.float32:
    """The halving tree with its zeros written out."""
    padded = [*map(np.float32, values)] + [np.float32(0)] * ((1 << max(len(values) - 1, 0).bit_length()) - len(values))
    while len(padded) > 1:
        half = len(padded) // 2
        padded = [np.float32(low + high) for low, high in zip(padded[:half], padded[half:], strict=True)]
    return np.float32(padded[0] + np.float32(0))


def drawn(*shape: int, seed: int = 0) -> Float32:
    random = np.random.default_rng(seed)
    return np.asarray(np.ldexp(random.standard_normal(shape), random.integers(-20, 3, shape)), np.float32)


def same(found: Float32, expected: Float32) -> None:
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@each([1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 100])
def test_a_sum_is_a_halving_tree(count: int) -> None:
    x = drawn(3, count, 2, seed=count)
    same(MACHINE.sum(x, (1,)), np.array([[tree(list(x[i, :, j])) for j in range(2)] for i in range(3)], np.float32))


@each([axes for count in range(5) for axes in combinations(range(4), count)])
def test_several_axes_are_one(axes: tuple[int, ...]) -> None:
    x = drawn(3, 2, 5, 4)
    kept = [axis for axis in range(4) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(int(np.prod([x.shape[axis] for axis in kept], dtype=int)), -1)
    expected = np.array([tree(list(row)) for row in rows], np.float32).reshape([x.shape[axis] for axis in kept])
    for given in (axes, axes[::-1], tuple(axis - 4 for axis in axes)):
        same(MACHINE.sum(x, given), expected)
    same(MACHINE.sum(np.asfortranarray(x), axes), expected)
    assert NUMPY.sum(x, axes).shape == expected.shape


def test_sums_of_nothing_zeros_and_what_is_not_finite() -> None:
    same(MACHINE.sum(np.zeros((0, 3), np.float32), (0,)), np.zeros(3, np.float32))
    same(MACHINE.sum(np.zeros((0, 3), np.float32), (1,)), np.zeros(0, np.float32))
    same(MACHINE.sum(np.full((4, 2), -0.0, np.float32), (0,)), np.zeros(2, np.float32))
    x = np.array([[np.inf, 1.0], [-np.inf, np.nan], [3e38, 3e38], [np.inf, 1.0]], np.float32)
    same(MACHINE.sum(x, (1,)), np.array([np.inf, np.nan, np.inf, np.inf], np.float32))
    same(MACHINE.sum(x, (0,)), np.full(2, np.nan, np.float32))
    copied = MACHINE.sum(x, ())
    same(copied, x)
    assert not np.shares_memory(copied, x)


@each(product([1, 2, 4, 8, 16], [(3, 5), (64,), (1,), ()]))
def test_all_cores_have_the_mean_of_one_tree(cores: int, shape: tuple[int, ...]) -> None:
    parts = [drawn(*shape, seed=core) for core in range(cores)]
    places = list(np.ndindex(*shape))
    expected = np.array([tree([part[place] for part in parts]) * np.float32(1 / cores) for place in places], np.float32).reshape(shape)
    same(all_reduce_mean(parts), expected)
    for found in all_reduce_steps(parts):
        same(found, expected)


def test_eight_cores_add_as_it_is_written() -> None:
    g = [drawn(9, seed=core) for core in range(8)]
    same(all_reduce_mean(g), (((g[0] + g[4]) + (g[2] + g[6])) + ((g[1] + g[5]) + (g[3] + g[7]))) * np.float32(1 / 8))
    ring = g[0]
    for part in g[1:]:
        ring = ring + part
    assert (all_reduce_mean(g) != ring * np.float32(1 / 8)).any(), "another order would have given the same bits"


@each([0, 3, 6])
def test_other_numbers_of_cores_are_refused(cores: int) -> None:
    for reduce in (all_reduce_mean, all_reduce_steps):
        with pytest.raises(ValueError, match=f"{cores} cores: recursive halving needs a power of two"):
            reduce([np.zeros(2, np.float32)] * cores)


@each(
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
)
def test_the_known_answers_of_threefry(key: tuple[int, int], counter: tuple[int, int], words: tuple[int, int]) -> None:
    """From `kat_vectors` of the Random123 library."""
    first, second = threefry(key, np.array([counter[0]], np.uint32), np.array([counter[1]], np.uint32))
    assert (int(first[0]), int(second[0])) == words


def test_a_number_is_a_function_of_its_place() -> None:
    """A part of the numbers is the same numbers: across chunks, and up to the last counter. They are even."""
    whole = uniform((7, 3), use=2, first=0, count=40_000)
    same(uniform((7, 3), use=2, first=16_000, count=1_000), whole[16_000:17_000])
    word, _ = threefry((7, 3), np.array([20_000], np.uint32), np.array([2], np.uint32))
    assert whole[20_000] == (int(word[0]) >> 8) / 2**24
    assert whole.min() >= 0
    assert whole.max() < 1
    assert np.abs(np.histogram(whole, 16, (0, 1))[0] - 2500).max() < 250
    others = [uniform(key, use, 0, 100) for key, use in (((7, 4), 2), ((8, 3), 2), ((7, 3), 1))]
    assert all((other != whole[:100]).all() for other in others)
    assert uniform((0, 0), 0, 2**32 - 1, 1).shape == (1,)
    assert uniform((0, 0), 0, 5, 0).shape == (0,)


@each([((2**32, 0), 0, 0), ((0, -1), 0, 0), ((0, 0), 2**32, 0), ((0, 0), 0, 2**32 - 1), ((0, 0), 0, -1)])
def test_what_is_no_word_is_refused(key: tuple[int, int], use: int, first: int) -> None:
    with pytest.raises(OverflowError):
        uniform(key, use, first, 2)
