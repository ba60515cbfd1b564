"""16-bit activations: for random networks machine, plain interpreter and layer reference agree in every bit.

For single layers the reference agrees with loops over Python's numbers, as does the machine for random programs in `test_sim_execute`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tpucc
from tests.differential.test_random_layers import CHECKS, Draw, computed
from tests.differential.test_random_networks import MACHINES, built, check
from tests.support.cases import LONG, one_of
from tests.support.networks import network, seeds_of_reals
from tests.support.slow_machine import between
from tpucc.explain.noise import noise_of
from tpucc.layers.kinds import Vector
from tpucc.runtime.check import float_reference, random_inputs

SEEDS = {"tpu_v1": range(1000, 1012), "middle": range(1000, 1012), "tiny": range(1000, 1016)}
LAYERS = 20
FEWEST = 0.5
"""The share that must fit the memories, in which values take twice the rows."""


@pytest.mark.parametrize("first", one_of(2, range(0, 5 * LAYERS, LAYERS)))
@pytest.mark.parametrize("check_layer", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_reference_equals_loops(check_layer: Callable[[Draw], None], first: int) -> None:
    for seed in range(first, first + LAYERS):
        check_layer(Draw(seed, 16))


def test_a_function_between_its_points_by_hand() -> None:
    """Points rise by 3 each 256 integers: 85 integers on are 0.996, 128 are 1.5, which goes up, and 171 are 2.004."""
    points = np.arange(257, dtype=np.int16) * 3
    values = np.array([-32768, -32683, -32640, -32597, -32512, 0, 32767], np.int16)
    found = computed(Vector("table"), values.shape, values, points)
    assert found.tolist() == [0, 1, 2, 2, 3, 384, 768]
    assert [between(points.tolist(), value) for value in values.tolist()] == found.tolist()


@pytest.mark.parametrize("name", one_of(3, reversed(SEEDS), LONG))
def test_simulator_equals_reference(name: str) -> None:
    machine, fitting = MACHINES[name], 0
    for seed in SEEDS[name]:
        exe = built(seed, machine, 16)
        if exe is not None:
            check(exe, seed, name != "tpu_v1" or seed % 4 == 0)
            fitting += 1
    assert fitting >= FEWEST * len(SEEDS[name])


@pytest.mark.parametrize("seed", one_of(4, seeds_of_reals(1000, 8)))
def test_integers_mean_what_float32_says(seed: int) -> None:
    """Weights have 8 bits still, and calibration's inputs are others than these; all else is near."""
    exe = tpucc.compile_source(network(seed), activation_bits=16)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    inputs = random_inputs(exe.runtime)
    outputs = noise_of(exe.run(inputs), float_reference(exe.compilation.graph, inputs))
    assert outputs
    for name, noise in outputs.items():
        assert noise.sqnr > 12, f"{name}\n{exe.compilation.source.text}"
