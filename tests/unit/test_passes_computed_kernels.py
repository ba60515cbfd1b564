"""Convolutions with computed kernels become products of two computed values."""

from __future__ import annotations

from tests.support.cases import each, titled
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_close, check, graph_of, lines, ran
from tpucc.ir import Graph
from tpucc.ops import OPS
from tpucc.ops.opdef import Example
from tpucc.passes.device_forms import computed_kernels


def convolution(example: Example) -> Graph:
    """A convolution of one of the operator's examples, image and kernel both inputs."""
    model = Model()
    x, k = (model.input(name, *type_.shape) for name, type_ in zip("xk", example.operands, strict=True))
    steps = {name: getattr(example.attributes, name) for name in ("stride", "padding", "dilation", "groups")}
    return model.build(model.op("conv2d", x, k, name="y", **steps))


def test_patches_times_the_kernel() -> None:
    text = """
        x = input : f32[2, 4, 5, 3]
        k = input : f32[3, 2, 3, 4]
        y = conv2d(x, k, stride=2, padding=1) : f32[2, 2, 3, 4]
        return y"""
    assert ran(computed_kernels, text) == lines("""
        x = input : f32[2, 4, 5, 3]
        k = input : f32[3, 2, 3, 4]
        x.patches.1 = patches(x, size=(3, 2), stride=2, padding=1) : f32[2, 2, 3, 18]
        k.1 = reshape(k, shape=(18, 4)) : f32[18, 4]
        y = matmul(x.patches.1, k.1) : f32[2, 2, 3, 4]
        return y as "y"
        """)


def test_windows_of_one_pixel_need_no_patches() -> None:
    text = """
        x = input : f32[2, 3, 3, 3]
        k = input : f32[1, 1, 3, 4]
        y = conv2d(x, k) : f32[2, 3, 3, 4]
        z = conv2d(x, k, stride=2, padding=1) : f32[2, 3, 3, 4]
        return y, z"""
    found = ran(computed_kernels, text)
    assert "y = matmul(x, k." in found
    assert "z = matmul(x.patches." in found


@each(titled({example.title: example for example in OPS["conv2d"].examples}))
def test_the_values_are_those_of_the_convolution(example: Example) -> None:
    graph = convolution(example)
    made = computed_kernels.run(graph, CONTEXT)
    check(made)
    assert "conv2d" not in {node.op for node in made}
    assert_close(graph, made)


def test_constant_kernels_stay() -> None:
    graph = graph_of("""
        x = input : f32[1, 3, 3, 1]
        w = constant(value=f32[1, 1, 1, 1]{2}) : f32[1, 1, 1, 1]
        k = tanh(w) : f32[1, 1, 1, 1]
        y = conv2d(x, k) : f32[1, 3, 3, 1]
        return y""")
    assert computed_kernels.run(graph, CONTEXT) is graph
