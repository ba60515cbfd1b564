"""Every rule of layer graphs: a graph that keeps it, and the smallest ones that don't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import Device
from tests.support.operator_graphs import value_of
from tpucc.diagnostics import ProgramError
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Quantisation, TensorType
from tpucc.layers.kinds import Conv, Fc, Move, Pool, Requantise, Vector
from tpucc.layers.verify import verify_layers
from tpucc.ops.constant import ConstantAttributes

I8 = Quantisation(0.5, 1)


def sound() -> Graph:
    device = Device()
    h = device.fc("h", device.input("x", 4, 5), 3, table=True)
    g = device.fc("g", "x", 3)
    s = device.vector("s", "add", h, g, table=True)
    m = device.vector("m", "multiply", s, device.constant("c", 3))
    device.fc_sum("j", [h, g, m], 2)
    device.look_up("t", device.reshape("r", m, 2, 2, 3))
    image = device.conv("k", device.input("i", 2, 5, 6, 3), (3, 2), 4, stride=(2, 1), sides=(1, 1, 0, 1), table=True)
    device.pool("p", "max", image, (2, 3), stride=(1, 2), sides=(1, 0, 0, 2))
    device.pool("a", "average", image, (3, 3), sides=(1, 1, 1, 1))
    rows = device.concat("n", 1, device.slice("cut", image, (0, 2), (1, 3), (0, 6)), image)
    device.pad("d", device.transpose("turned", rows, 1, 0, 2, 3), (0, 1), (2, 0), (0, 0))
    graph = device.build("t", "j", "p", "a", "d")
    return graph.with_nodes(replace(node, type=node.type.with_quantisation(I8)) if node.name == "c" else node for node in graph)


def changed(name: str, change: Callable[[Node], Node]) -> Graph:
    graph = sound()
    return graph.with_nodes(change(node) if node.name == name else node for node in graph)


def typed(**fields: object) -> Callable[[Node], Node]:
    return lambda node: replace(node, type=replace(node.type, **fields))  # type: ignore[arg-type]


def with_attributes(attributes: Attributes) -> Callable[[Node], Node]:
    return lambda node: replace(node, attributes=attributes)


def reading(*operands: str) -> Callable[[Node], Node]:
    return lambda node: replace(node, operands=operands)


def valued(values: object, dtype: type) -> Callable[[Node], Node]:
    array = Constant(np.asarray(values, dtype))
    return lambda node: replace(node, attributes=ConstantAttributes(array), type=TensorType(array.dtype, array.shape))


def computed(node: Node) -> Node:
    return replace(node, op="softmax", attributes=NoAttributes())


def codes(graph: Graph) -> set[str]:
    with pytest.raises(ProgramError) as caught:
        verify_layers(graph)
    assert all(diagnostic.span is not None for diagnostic in caught.value.diagnostics)
    return {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_a_sound_graph_passes() -> None:
    verify_layers(sound())


CONV = sound()["k"].attributes
MEAN = sound()["a"].attributes
assert isinstance(CONV, Conv)
assert isinstance(MEAN, Pool)
AVERAGE = MEAN.epilogue
assert AVERAGE is not None
ONE, TWO = Requantise(scales=(1.0,), zeros=(0, 0)), Requantise(scales=(1.0, 1.0), zeros=(0, 0))
CASES: list[tuple[str, str, Callable[[Node], Node]]] = [
    ("E0820", "x", computed),
    ("E0821", "h", with_attributes(Vector("add", TWO))),
    ("E0821", "h", reading("x", "h.w", "h.b", "h.m")),
    ("E0821", "g", reading("x", "g.w", "g.b", "g.m", "h.t")),
    ("E0821", "s", with_attributes(Vector("divide", TWO))),
    ("E0821", "s", reading("h", "g")),
    ("E0821", "t", reading("r")),
    ("E0821", "s", with_attributes(Vector("add", replace(ONE, table=True)))),
    ("E0821", "m", with_attributes(Vector("multiply"))),
    ("E0821", "m", with_attributes(Vector("multiply", TWO))),
    ("E0821", "t", with_attributes(Vector("table", Requantise()))),
    ("E0821", "g", with_attributes(Fc(Requantise(zeros=(0,))))),
    ("E0821", "a", with_attributes(replace(MEAN, epilogue=None))),
    ("E0821", "p", with_attributes(Pool("max", (2, 3), (1, 2), (1, 0, 0, 2), Requantise()))),
    ("E0822", "x", typed(quantisation=None)),
    ("E0822", "x", typed(dtype="f32")),
    ("E0822", "t", typed(quantisation=None)),
    ("E0822", "c", typed(quantisation=None)),
    ("E0823", "x", typed(shape=(4, 6))),
    ("E0823", "x", typed(shape=())),
    ("E0823", "h", typed(shape=(4, 4))),
    ("E0823", "h.b", valued([0, 0], np.int32)),
    ("E0823", "h.b", valued([0, 0, 0], np.float32)),
    ("E0823", "h.m", valued([1], np.float32)),
    ("E0823", "h.t", valued(np.zeros(255), np.int8)),
    ("E0823", "s.t", valued(np.zeros(256), np.float32)),
    ("E0823", "s.t", computed),
    ("E0823", "h.w", computed),
    ("E0823", "h.t", computed),
    ("E0823", "c", typed(shape=(4,))),
    ("E0823", "m", typed(shape=(4, 1))),
    ("E0824", "g", with_attributes(Fc(Requantise(128)))),
    ("E0824", "g", with_attributes(Fc(Requantise(low=5, high=4)))),
    ("E0824", "g", with_attributes(Fc(Requantise(low=-129)))),
    ("E0824", "m", with_attributes(Vector("multiply", replace(ONE, zeros=(-129, 0))))),
    ("E0824", "m", with_attributes(Vector("multiply", replace(ONE, high=128)))),
    ("E0825", "g.m", valued([1, 0, 1], np.float32)),
    ("E0825", "g.m", valued([1, np.inf, 1], np.float32)),
    ("E0825", "g.m", valued([1, np.nan, 1], np.float32)),
    ("E0825", "m", with_attributes(Vector("multiply", replace(ONE, scales=(float("nan"),))))),
    ("E0825", "s", with_attributes(Vector("add", replace(TWO, scales=(1.0, -0.5), table=True)))),
    ("E0820", "i", computed),
    ("E0820", "cut", computed),
    ("E0821", "j", with_attributes(Fc(Requantise(), sources=2))),
    ("E0821", "j", with_attributes(Fc(Requantise(), sources=0))),
    ("E0821", "j", with_attributes(Fc(Requantise(table=True), sources=3))),
    ("E0821", "k", reading("i", "k.w", "k.b", "k.m")),
    ("E0821", "k", with_attributes(replace(CONV, epilogue=replace(CONV.epilogue, table=False)))),
    ("E0821", "k", with_attributes(Fc(Requantise()))),
    ("E0821", "p", with_attributes(Pool("least", (2, 3), (1, 2), (1, 0, 0, 2)))),
    ("E0821", "p", reading("k", "k")),
    ("E0821", "n", with_attributes(Move("swap", 1))),
    ("E0821", "d", reading("turned", "turned")),
    ("E0821", "n", reading()),
    ("E0822", "k", typed(quantisation=None)),
    ("E0822", "p", typed(dtype="i16")),
    ("E0822", "turned", typed(quantisation=None)),
    ("E0823", "j.w1", valued(np.zeros((4, 2)), np.int8)),
    ("E0823", "j.w2", valued(np.zeros((3, 3)), np.int8)),
    ("E0823", "j.w0", computed),
    ("E0823", "j", typed(shape=(4, 1, 2))),
    ("E0823", "k.w", valued(np.zeros((3, 2, 4, 4)), np.int8)),
    ("E0823", "k.w", valued(np.zeros((3, 2, 3, 4)), np.int16)),
    ("E0823", "k.w", valued(np.zeros((6, 12)), np.int8)),
    ("E0823", "k.w", valued(np.zeros((3, 2, 3, 5)), np.int8)),
    ("E0823", "k.w", computed),
    ("E0823", "k.b", valued([0] * 3, np.int32)),
    ("E0823", "k", typed(shape=(2, 2, 7, 4))),
    ("E0823", "k", with_attributes(replace(CONV, stride=(0, 1)))),
    ("E0823", "k", with_attributes(replace(CONV, stride=(1, 1)))),
    ("E0823", "k", with_attributes(replace(CONV, sides=(1, 1, 1, 1)))),
    ("E0823", "k", with_attributes(replace(CONV, sides=(2, 1, -1, 2)))),
    ("E0823", "p", with_attributes(Pool("max", (2, 3), (1, 2), (2, 0, 0, 2)))),
    ("E0823", "p", with_attributes(Pool("max", (2, 3), (1, 1), (1, 0, 0, 2)))),
    ("E0823", "p", with_attributes(Pool("max", (1, 3), (2, 2), (1, 1, 0, 2)))),
    ("E0823", "p", typed(quantisation=Quantisation(0.25, 1))),
    ("E0823", "a", with_attributes(replace(MEAN, size=(9, 9), sides=(0, 0, 0, 0)))),
    ("E0823", "n", typed(quantisation=Quantisation(0.5, 2))),
    ("E0823", "n", with_attributes(Move("concat", 3))),
    ("E0823", "n", with_attributes(Move("concat", -1))),
    ("E0823", "n", with_attributes(Move("concat", 0))),
    ("E0823", "d", with_attributes(Move("pad", pads=((0, 1), (2, 0), (0, 0))))),
    ("E0823", "d", with_attributes(Move("pad", pads=((0, 1), (2, 0), (0, 0), (0, 1))))),
    ("E0823", "d", with_attributes(Move("pad", pads=((0, 1), (3, -1), (0, 0), (0, 0))))),
    ("E0824", "j", with_attributes(Fc(Requantise(-129), sources=3))),
    ("E0824", "k", with_attributes(replace(CONV, outside=0))),
    ("E0824", "k", with_attributes(replace(CONV, epilogue=replace(CONV.epilogue, zero=128)))),
    ("E0824", "k", with_attributes(replace(CONV, epilogue=replace(CONV.epilogue, low=100)))),
    ("E0824", "a", with_attributes(replace(MEAN, epilogue=replace(AVERAGE, zero=-129)))),
    ("E0824", "a", with_attributes(replace(MEAN, epilogue=replace(AVERAGE, zeros=(128,))))),
    ("E0824", "d", with_attributes(Move("pad", pads=((0, 1), (2, 0), (0, 0), (0, 0)), value=128))),
    ("E0825", "j.m", valued([1, -1], np.float32)),
    ("E0825", "k.m", valued([1, 1, np.inf, 1], np.float32)),
    ("E0825", "a", with_attributes(replace(MEAN, epilogue=replace(AVERAGE, scales=(0.0,))))),
    ("E0825", "a", with_attributes(replace(MEAN, epilogue=replace(AVERAGE, scales=(float("nan"),))))),
    ("E0803", "k.b", valued([0, 2**31 - 1, 0, 0], np.int32)),
    ("E0803", "j.b", valued([2**31 - 1, 0], np.int32)),
    ("E0803", "g.b", valued([0, 2**31 - 1, 0], np.int32)),
    ("E0803", "g.b", valued([0, 0, -(2**31)], np.int32)),
]


@each(CASES)
def test_each_rule_refuses(code: str, name: str, change: Callable[[Node], Node]) -> None:
    assert codes(changed(name, change)) == {code}


def test_the_accumulators_may_just_hold() -> None:
    graph = sound()
    weights = graph["g.w"].attributes
    assert isinstance(weights, ConstantAttributes)
    largest = 128 * np.abs(weights.value.data.astype(np.int64)).sum(axis=0)
    room = 2**31 - 1 - largest
    verify_layers(changed("g.b", valued(room, np.int32)))
    verify_layers(changed("g.b", valued(-room, np.int32)))
    assert codes(changed("g.b", valued(np.add(room, [0, 1, 0]), np.int32))) == {"E0803"}


@pytest.mark.parametrize(("layer", "weights"), [("k", ("k.w",)), ("j", ("j.w0", "j.w1", "j.w2"))])
def test_the_accumulators_take_in_all_positions_and_all_sources(layer: str, weights: tuple[str, ...]) -> None:
    graph = sound()
    matrices = [value_of(graph, name) for name in weights]
    largest = 128 * sum(np.abs(matrix.astype(np.int64)).reshape(-1, matrix.shape[-1]).sum(axis=0) for matrix in matrices)
    room = 2**31 - 1 - largest
    verify_layers(changed(f"{layer}.b", valued(room, np.int32)))
    one = np.arange(len(room)) == 1
    assert codes(changed(f"{layer}.b", valued(room + one, np.int32))) == {"E0803"}


def test_views_that_no_layer_reads_are_the_host_s() -> None:
    """They may turn lanes into rows; only what layers read and make is held to these rules."""
    device = Device()
    device.transpose("turned", device.input("x", 2, 3), 1, 0)
    verify_layers(device.build("turned"))


def test_all_faults_are_told_at_once() -> None:
    graph = sound()
    bad = {
        "g": with_attributes(Fc(Requantise(128))),
        "m": with_attributes(Vector("multiply", replace(ONE, zero=1000))),
        "h.t": valued(np.zeros(3), np.int8),
    }
    assert codes(graph.with_nodes(bad.get(node.name, lambda n: n)(node) for node in graph)) == {"E0823", "E0824"}


def test_shapes_of_absurd_size_are_only_numbers() -> None:
    device = Device()
    a = device.input("a", 2**40, 1)
    b = device.input("b", 1, 2**40)
    node = Node("y", "vector", (a, b), Vector("add", TWO), TensorType("i8", (2**40, 2**40), None, I8), device.builder.nodes[a].origin)
    device.builder.add(node)
    verify_layers(device.build("y"))
