"""Random dense networks: what the simulated machine computes equals the layers' integer reference, bit for bit."""

from __future__ import annotations

import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tests.support.dense import DenseNetwork
from tests.support.seeds import at_length
from tpucc.runtime.check import compare_with_reference, random_inputs

COUNT = 120  # beside those of the other families: over 500 in all
PER_TEST = 20


def check(seed: int, target: str = "tpu_v1") -> None:
    source = DenseNetwork(seed).source()
    exe = tpucc.compile_source(source, target=target)
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, random_inputs(exe.runtime, seed))
    assert compared
    assert not [c for c in compared if c.unequal], f"seed {seed}\n{source}"


@pytest.mark.parametrize("first", one_of(6, range(0, COUNT, PER_TEST), LONG))
def test_simulator_equals_reference(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        check(seed)


@at_length(20_000, 200)
def test_simulator_equals_reference_at_length(seeds: range) -> None:
    for seed in seeds:
        check(seed)
