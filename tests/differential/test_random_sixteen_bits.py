"""Random networks with 16-bit activations: machine, plain interpreter and layer reference agree in every bit."""

from __future__ import annotations

import pytest

import tpucc
from tests.differential.test_random_networks import MACHINES, built, check
from tests.support.networks import network
from tpucc.checking import error_statistics, float_reference, random_inputs

SEEDS = {"tpu_v1": range(1000, 1012), "middle": range(1000, 1012), "tiny": range(1000, 1016)}
FEWEST = 0.5
"""The share that must fit the memories, in which values take twice the rows."""


@pytest.mark.parametrize("name", SEEDS)
def test_simulator_equals_reference(name: str) -> None:
    machine, fitting = MACHINES[name], 0
    for seed in SEEDS[name]:
        exe = built(seed, machine, 16)
        if exe is not None:
            check(exe, seed, name != "tpu_v1" or seed % 4 == 0)
            fitting += 1
    assert fitting >= FEWEST * len(SEEDS[name])


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_integers_mean_what_float32_says(seed: int) -> None:
    """Weights have 8 bits still, and calibration's inputs are others than these; all else is near."""
    exe = tpucc.compile_source(network(seed), activation_bits=16)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    inputs = random_inputs(exe.runtime)
    for output in error_statistics(exe.run(inputs), float_reference(exe.compilation.graph, inputs)):
        assert output.snr > 12, f"{output}\n{exe.compilation.source.text}"
