"""Channels in another order: reshape, transpose and reshape as one product of the device."""

from __future__ import annotations

from itertools import product

import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model, applied, outputs_of
from tpucc.passes.device_forms import shuffle_lanes
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs

NET = """
param batch = 4
weights random(seed=5)
model net(x: f32[batch, 3, 2, 12]):
    weight a: f32[1, 1, 4, 12] = "a.w"
    weight b: f32[1, 1, 6, 6] = "b.w"
    h = relu(conv2d(x, a, groups=3))
    h = reshape(transpose(reshape(h, (batch, 3, 2, 3, 4)), (0, 1, 2, 4, 3)), (batch, 3, 2, 12))
    return conv2d(h, b, groups=2)
"""
"""Two grouped convolutions with a shuffle between them."""


@each(product(["tiny", "tpu_v1"], [1, 2]))
def test_a_shuffle_between_convolutions_needs_no_host_step(target: str, cores: int) -> None:
    exe = tpucc.compile_source(NET, target=target, cores=cores)
    assert exe.program.host_steps == ()
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, 2)
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, inputs) + compare_executors(exe.runtime, inputs)
    assert not [c for c in compared if c.unequal]


def test_the_device_moves_the_integers_as_they_are() -> None:
    with_host = tpucc.compile_source(NET, omit=("shuffle-lanes",))
    assert with_host.program.host_steps
    inputs = random_inputs(with_host.runtime, 3)
    (meant,), (found,) = with_host.run(inputs).values(), tpucc.compile_source(NET).run(inputs).values()
    assert (meant == found).all()


@each(
    [
        ((2, 3, 4), (0, 2, 1), (2, 12), True),
        ((2, 2, 3, 2), (0, -1, 1, 2), (2, 12), True),
        ((2, 3, 4), (1, 0, 2), (2, 12), False),
        ((2, 3, 4), (0, 2, 1), (4, 6), False),
        ((4, 3, 2), (0, 2, 1), (2, 12), False),
    ]
)
def test_only_lanes_of_one_row_are_shuffled(divided: tuple[int, ...], perm: tuple[int, ...], joined: tuple[int, ...], made: bool) -> None:
    model = Model()
    turned = model.op("transpose", model.op("reshape", model.input("x", 2, 12), name="divided", shape=divided), perm=perm)
    before = model.build(model.op("reshape", turned, name="joined", shape=joined))
    after = applied(before, shuffle_lanes)
    assert ("shuffle_lanes" in {node.op for node in after}) is made
    inputs = {"x": np.arange(24, dtype=np.float32).reshape(2, 12)}
    np.testing.assert_array_equal(outputs_of(after, inputs), outputs_of(before, inputs))
