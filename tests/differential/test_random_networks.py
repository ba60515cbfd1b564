"""Random convolutional and recurrent networks, from source text to the machine's integers.

The machine equals the layers' integer reference bit for bit, on three machines; the fast executor equals the one that takes instruction by
instruction; every pass keeps what the network means in float32; and what the integers mean is near it.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tests.support.networks import BLACKBOARD, MIDDLE, ORDINARY, PICTURES, Bounds, drawn, elaborated, network, results, seeds_of_reals
from tests.support.seeds import at_length
from tpucc.api import Executable
from tpucc.compilation import Snapshot
from tpucc.diagnostics import Source
from tpucc.driver import compile_source
from tpucc.explain.noise import noise_of
from tpucc.ir import Graph
from tpucc.options import Options
from tpucc.passes.pipeline import PASSES
from tpucc.runtime.check import compare_executors, compare_with_reference, float_reference, random_inputs
from tpucc.target import Target, load_target

COUNT = 32
PER_TEST = 16
LUCK = 0.2
"""By so much fewer than usual may fit a machine, of those that nobody has looked at."""
REALS = seeds_of_reals(0, 24)
"""Networks of the tests that are about passes and about accuracy."""
LEVELS = (0, 1, 2, 2, 2, 2)
"""Levels of optimisation, in turn by the seed."""
MEMORIES = {"E0621", "E0622", "E0623"}
"""Codes of what doesn't fit the unified buffer, the weight memory and the accumulators."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A target, networks of a size for it, and the least share of them that must fit its memories.

    Every network of as many as `plain` says is executed instruction by instruction too, which is slow where tiles are large.
    """

    target: Target
    bounds: Bounds
    share: float
    plain: int


def middle(tiny: Target) -> Target:
    """A machine on which layers take several tiles, chunks and column blocks without being large."""
    memories = {"accumulator_rows": 64, "unified_buffer_rows": 1024, "weight_fifo_tiles": 3, "weight_memory_bytes": 2**24}
    return msgspec.structs.replace(tiny, name="middle", description="a 16×16 matrix unit", mxu=16, **memories)


MACHINES = {
    "tpu_v1": Machine(load_target("tpu_v1"), ORDINARY, 1.0, 5),
    "middle": Machine(middle(load_target("tiny")), MIDDLE, 0.9, 1),
    "tiny": Machine(load_target("tiny"), BLACKBOARD, 0.9, 1),
    "tiny in bands": Machine(load_target("tiny"), PICTURES, 0.6, 1),
}


def built(seed: int, machine: Machine, bits: int = 8) -> Executable | None:
    """The network of this seed, compiled for activations of so many bits; None when it doesn't fit the machine's memories."""
    source = network(seed, machine.bounds)
    try:
        return tpucc.compile_source(source, target=machine.target, level=LEVELS[seed % len(LEVELS)], activation_bits=bits)
    except tpucc.Error as error:
        if any(d.code not in MEMORIES for d in error.diagnostics):
            raise AssertionError(f"seed {seed}: {error}\n{source}") from error
        return None


def check(exe: Executable, seed: int, plain: bool) -> None:
    """Every integer that the device hands over is the reference's; with `plain`, by both executors."""
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, seed)
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, inputs)
    if plain:
        compared += compare_executors(exe.runtime, inputs)
    assert not [c for c in compared if c.unequal], f"{compared}\n{exe.compilation.source.text}"


def check_all(name: str, seeds: range, luck: float = 0.0) -> None:
    machine, fitting = MACHINES[name], 0
    for seed in seeds:
        exe = built(seed, machine)
        if exe is not None:
            check(exe, seed, seed % machine.plain == 0)
            fitting += 1
    least = machine.share if machine.share == 1 else machine.share - luck
    assert fitting >= least * len(seeds), f"{fitting} of {len(seeds)} networks fit {name}"


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("first", one_of(2, range(0, COUNT, PER_TEST), LONG))
def test_simulator_equals_reference(first: int, name: str) -> None:
    check_all(name, range(first, first + PER_TEST))


@at_length(2_500, 50)
@pytest.mark.parametrize("name", MACHINES)
def test_simulator_equals_reference_at_length(name: str, seeds: range) -> None:
    check_all(name, seeds, LUCK)


def odd(seed: int) -> Target:
    """A small machine of any sizes and rates, so that whatever depends on them comes out in every way."""
    choose = random.Random(seed)
    mxu = choose.choice((1, 2, 3, 4, 5, 7, 8, 16))
    return msgspec.structs.replace(
        load_target("tiny"),
        name="odd",
        mxu=mxu,
        accumulator_rows=choose.randint(max(2, mxu), 12 * mxu + 20),
        unified_buffer_rows=choose.randint(48, 600),
        weight_fifo_tiles=choose.randint(1, 5),
        weight_memory_bytes=2**24,
        weight_bandwidth=choose.choice((2e5, 2e6, 16e6, 1e9)),
        host_bandwidth=choose.choice((1e6, 4e6, 64e6)),
        host_latency_seconds=choose.choice((0.0, 1e-6, 9e-6, 1e-4)),
    )


def check_odd(seeds: range, luck: float = 0.0) -> None:
    compiled = [(seed, built(seed, Machine(odd(seed), BLACKBOARD, 0.9, 1), 16 if seed % 5 == 0 else 8)) for seed in seeds]
    fitting = [(seed, exe) for seed, exe in compiled if exe is not None]
    assert len(fitting) >= (0.9 - luck) * len(compiled)
    for seed, exe in fitting:
        check(exe, seed, plain=True)


@pytest.mark.parametrize("first", one_of(2, range(0, COUNT, PER_TEST), LONG))
def test_machines_of_any_size(first: int) -> None:
    check_odd(range(first, first + PER_TEST))


@at_length(6_000, 60)
def test_machines_of_any_size_at_length(seeds: range) -> None:
    check_odd(seeds, LUCK)


NAMES = [step.name for step in PASSES]
LAST_IN_FLOAT = NAMES[NAMES.index("quantise") - 1]
"""The pass before quantisation."""


@pytest.mark.parametrize("seed", one_of(3, REALS))
def test_every_pass_keeps_the_meaning(seed: int) -> None:
    """The graph after each pass computes in float32 what the graph of the source does, but for the order of its roundings."""
    source = Source("net.tpu", network(seed))
    graphs: list[tuple[str, Graph]] = []

    def keep(snapshot: Snapshot) -> None:
        if snapshot.changed and snapshot.stage != "elaborate" and isinstance(snapshot.value, Graph):
            graphs.append((snapshot.stage, snapshot.value))

    compile_source(source, Path(), Options(stop_after=LAST_IN_FLOAT), keep)
    inputs = drawn(graphs[0][1], seed)
    wanted = results(graphs[0][1], inputs)
    assert len(graphs) > 1
    assert any(value.dtype == np.float32 for value in wanted.values())
    for stage, graph in graphs[1:]:
        for name, value in results(graph, inputs).items():
            if value.dtype == np.float32:
                error = np.abs(value - wanted[name]).max()
                assert error <= 1e-5 * max(1.0, np.abs(wanted[name]).max()), f"{stage}: {name} by {error}\n{source.text}"


@pytest.mark.parametrize("seed", one_of(3, REALS))
def test_integers_mean_what_float32_says(seed: int) -> None:
    """The reference can't see a layer graph that is wrong in itself; the size of its error can. Chains of 8 bits lose much, but noise isn't
    half as strong as the signal."""
    exe = tpucc.compile_source(network(seed))
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    inputs = random_inputs(exe.runtime)
    outputs = noise_of(exe.run(inputs), float_reference(exe.compilation.graph, inputs))
    assert outputs
    for name, noise in outputs.items():
        assert noise.sqnr > 6, f"{name}\n{exe.compilation.source.text}"


def test_networks_have_what_they_promise() -> None:
    """The generator draws every kind of thing that the other tests are meant to see, within a few hundred seeds."""
    texts = "\n".join(network(seed) for seed in range(300))
    kernels = {tuple(map(int, sizes)) for sizes in re.findall(r"weight w\d+: f32\[(\d), (\d), \d+, \d+\]", texts)}
    assert {side for sizes in kernels for side in sizes} == set(range(1, 8))
    assert any(height != width for height, width in kernels)
    assert set(re.findall(r"stride=(\d)", texts)) >= set("123")
    assert {'"same"', '"valid"', "1", "2"} <= set(re.findall(r'padding=("\w+"|\d)', texts))
    assert re.search(r"padding=\(\d, \d, \d, \d\)", texts)
    assert {"1", "3", "5", "16", "255", "256", "257"} <= set(re.findall(r"weight w\d+: f32\[\d, \d, (\d+), ", texts))
    called = set(re.findall(r"(\w+)\(", texts))
    assert called >= {
        "max_pool",
        "avg_pool",
        "global_avg_pool",
        "batch_norm",
        "concat",
        "pad",
        "transpose",
        "reshape",
        "flatten",
        "softmax",
    }
    assert called >= {"lstm", "late_lstm", "gru", "rnn", "block", "highway", "excite", "embedding", "sigmoid", "tanh", "gelu"}


@pytest.mark.parametrize(
    "bounds", one_of(2, [ORDINARY, MIDDLE, BLACKBOARD, PICTURES]), ids=["ordinary", "middle", "blackboard", "pictures"]
)
def test_networks_keep_to_their_bounds(bounds: Bounds) -> None:
    """No value and no weight is far beyond what the bounds allow; the same seed gives the same text."""
    for seed in range(50):
        text = network(seed, bounds)
        assert text == network(seed, bounds)
        assert max(prod(node.type.shape) for node in elaborated(text) if node.op != "constant") <= 4 * bounds.elements
