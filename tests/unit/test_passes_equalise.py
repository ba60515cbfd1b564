"""Cross-layer equalisation: values in float32 stay equal to the last bit, channels become alike, and pairs that mustn't change don't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model, context
from tpucc.explain.noise import noise_of
from tpucc.ir import Graph
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.passes.equalise import equalise
from tpucc.passes.rewriter import constant_of
from tpucc.runtime.check import float_reference

UNEVEN = 2.0 ** np.array([6, -5, 0, 3, -2, 1])
"""Factors of six channels that are far from alike."""


def drawn(seed: int, *shape: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights(graph: Graph, name: str) -> AnyArray:
    constant = constant_of(graph[name])
    assert constant is not None
    return constant.data


def dense_pair(model: Model, between: Callable[[Model, str], str] = lambda model, h: model.op("relu", h)) -> str:
    x = model.input("x", 5, 4)
    h = model.op("add", model.op("matmul", x, model.constant("w1", drawn(1, 4, 6) * UNEVEN)), model.constant("b1", drawn(2, 6)))
    return model.op("matmul", between(model, h), model.constant("w2", drawn(3, 6, 3)), name="y")


def image_chain(model: Model, act: str = "relu") -> str:
    """A convolution, a depthwise one with two filters a channel, a pool, and a grouped convolution."""
    h = model.op("conv2d", model.input("x", 2, 6, 6, 3), model.constant("k1", drawn(1, 3, 3, 3, 6) * UNEVEN), padding="same")
    h = model.op(act, model.op("sub", h, model.constant("b1", drawn(2, 6))))
    h = model.op("conv2d", h, model.constant("k2", drawn(3, 3, 3, 1, 12)), padding="same", groups=6)
    h = model.op("max_pool", model.op(act, h), size=2)
    return model.op("conv2d", h, model.constant("k3", drawn(4, 1, 1, 4, 9)), groups=3, name="y")


def equal(before: Graph, after: Graph) -> bool:
    x = {"x": drawn(9, *before.inputs[0].type.shape)}
    return all(np.array_equal(value, evaluate(after, x)[name]) for name, value in evaluate(before, x).items())


@each(
    [
        lambda model, h: model.op("relu", h),
        lambda model, h: model.op("leaky_relu", h, alpha=0.25),
        lambda model, h: h,
        lambda model, h: model.op("add", model.op("relu", h), model.constant("late", drawn(5, 1))),
    ]
)
def test_channels_become_alike_and_values_stay_the_same(between: Callable[[Model, str], str]) -> None:
    model = Model()
    graph = model.build(dense_pair(model, between))
    after = equalise.run(graph, context())
    assert equal(graph, after)
    before, behind = np.abs(weights(after, "w1")).max(axis=0), np.abs(weights(after, "w2")).max(axis=1)
    assert (before / behind).max() < 2
    assert (before / behind).min() >= 0.5
    assert after.notes == ("1 pair of layers is equalised",)
    assert equalise.run(after.without_notes(), context()).with_nodes(after.nodes).nodes == after.nodes


def test_a_chain_of_images_with_groups_is_equalised_as_a_whole() -> None:
    model = Model()
    graph = model.build(image_chain(model))
    after = equalise.run(graph, context())
    assert equal(graph, after)
    for first, second, groups in (("k1", "k2", 6), ("k2", "k3", 3)):
        outputs = np.abs(weights(after, first)).max(axis=(0, 1, 2))
        kernel = weights(after, second)
        each = kernel.shape[3] // groups
        inputs = [
            np.abs(kernel[:, :, c % kernel.shape[2], (g := c // kernel.shape[2]) * each : (g + 1) * each]).max()
            for c in range(len(outputs))
        ]
        assert all(0.5 <= ratio < 2 for ratio in outputs / inputs)


def test_relu6_is_left_and_becomes_relu_on_request() -> None:
    model = Model()
    graph = model.build(image_chain(model, "relu6"))
    after = equalise.run(graph, context())
    assert after.nodes == graph.nodes
    assert after.notes == ("2 pairs with relu6 between are left: relu6(s·x) isn't s·relu6(x); --equalise-relu6 true makes relu of it",)
    changed = equalise(relu6=True).run(graph, context())
    model = Model()
    assert equal(model.build(image_chain(model, "relu")), changed)
    assert changed.notes == ("2 pairs of layers are equalised", "2 relu6 are relu now, and let values above 6 pass")


def two_readers(model: Model) -> str:
    return dense_pair(model, lambda model, h: model.op("add", model.op("relu", h), model.op("relu", h)))


def not_homogeneous(model: Model) -> str:
    return dense_pair(model, lambda model, h: model.op("tanh", h))


def shared_weights(model: Model) -> str:
    w = model.constant("w", drawn(1, 4, 4) * UNEVEN[:4])
    return model.op("matmul", model.op("relu", model.op("matmul", model.input("x", 5, 4), w)), w, name="y")


def other_rows(model: Model) -> str:
    return dense_pair(model, lambda model, h: model.op("reshape", model.op("reshape", model.op("relu", h), shape=(3, 10)), shape=(5, 6)))


@each([two_readers, not_homogeneous, shared_weights, other_rows])
def test_what_scales_do_not_pass_is_left_alone(build: Callable[[Model], str]) -> None:
    model = Model()
    graph = model.build(build(model))
    assert equalise.run(graph, context()).nodes == graph.nodes


def test_channels_without_weights_and_far_ones_are_scaled_no_further_than_the_limit() -> None:
    model = Model()
    w1, w2 = drawn(1, 4, 6), drawn(2, 6, 3)
    w1[:, 0], w2[1], w1[:, 2] = 0, 0, 1e-30
    h = model.op("matmul", model.input("x", 5, 4), model.constant("w1", w1))
    graph = model.build(model.op("matmul", h, model.constant("w2", w2), name="y"))
    after = equalise.run(graph, context())
    assert equal(graph, after)
    assert np.array_equal(weights(after, "w1")[:, :2], w1[:, :2])


def test_it_runs_when_it_is_asked_for_and_gains_where_channels_are_uneven(tmp_path: Path) -> None:
    """With one scale for all weights, channels that differ by 2¹¹ leave the smallest without bits."""
    source = """weights "w.npz"
calibration "x.npz"
model net(x: f32[64, 16]) -> f32[64, 8]:
    weight a: f32[16, 6]
    weight b: f32[6, 8]
    return relu(x @ a) @ b
"""
    np.savez(tmp_path / "w.npz", a=drawn(1, 16, 6) * UNEVEN.astype(np.float32), b=drawn(2, 6, 8) / UNEVEN[:, None].astype(np.float32))
    np.savez(tmp_path / "x.npz", x=drawn(3, 64, 16))
    ratios = []
    for include in ((), ("equalise",)):
        exe = tpucc.compile_source(source, folder=tmp_path, include=include, settings={"quantise": {"granularity": "per_tensor"}})
        assert exe.compilation is not None
        assert exe.compilation.meant is not None
        inputs = {"x": drawn(3, 64, 16)}
        (found,) = noise_of(exe.runtime.run(inputs), float_reference(exe.compilation.meant, inputs)).values()
        ratios.append(found.sqnr)
    assert ratios[0] < 25
    assert ratios[1] > ratios[0] + 12
