"""Every rule of layer graphs: a graph that keeps it, and the smallest ones that don't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.device_graphs import Device
from tpucc.diagnostics import ProgramError
from tpucc.ir.array import Array
from tpucc.ir.graph import Attributes, Graph, NoAttributes, Node
from tpucc.ir.types import Quantisation, TensorType
from tpucc.layers.kinds import Fc, Vector
from tpucc.layers.verify import verify_layers
from tpucc.ops.constant import ConstantAttributes

I8 = Quantisation(0.5, 1)


def sound() -> Graph:
    device = Device()
    h = device.fc("h", device.input("x", 4, 5), 3, table=True)
    g = device.fc("g", "x", 3)
    s = device.vector("s", "add", h, g, table=True)
    m = device.vector("m", "multiply", s, device.constant("c", 3))
    graph = device.build(device.look_up("t", device.reshape("r", m, 2, 2, 3)))
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
    array = Array(np.asarray(values, dtype))
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


CASES: list[tuple[str, str, Callable[[Node], Node]]] = [
    ("E0820", "x", computed),
    ("E0821", "h", with_attributes(Vector("add"))),
    ("E0821", "h", reading("x", "h.w", "h.b", "h.m")),
    ("E0821", "g", reading("x", "g.w", "g.b", "g.m", "h.t")),
    ("E0821", "s", with_attributes(Vector("divide", table=True))),
    ("E0821", "s", reading("h", "g")),
    ("E0821", "t", reading("r")),
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
    ("E0824", "g", with_attributes(Fc(zero=128))),
    ("E0824", "g", with_attributes(Fc(zero=0, low=5, high=4))),
    ("E0824", "g", with_attributes(Fc(zero=0, low=-129))),
    ("E0824", "m", with_attributes(Vector("multiply", zero_a=-129))),
    ("E0824", "m", with_attributes(Vector("multiply", high=128))),
    ("E0825", "g.m", valued([1, 0, 1], np.float32)),
    ("E0825", "g.m", valued([1, np.inf, 1], np.float32)),
    ("E0825", "g.m", valued([1, np.nan, 1], np.float32)),
    ("E0825", "m", with_attributes(Vector("multiply", scale_a=float("nan")))),
    ("E0825", "s", with_attributes(Vector("add", scale_b=-0.5, table=True))),
    ("E0803", "g.b", valued([0, 2**31 - 1, 0], np.int32)),
    ("E0803", "g.b", valued([0, 0, -(2**31)], np.int32)),
]


@pytest.mark.parametrize(("code", "name", "change"), CASES, ids=[f"{code}-{name}-{n}" for n, (code, name, _) in enumerate(CASES)])
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


def test_all_faults_are_told_at_once() -> None:
    graph = sound()
    bad = {"g": with_attributes(Fc(zero=128)), "m": with_attributes(Vector("multiply", zero=1000)), "h.t": valued(np.zeros(3), np.int8)}
    assert codes(graph.with_nodes(bad.get(node.name, lambda n: n)(node) for node in graph)) == {"E0823", "E0824"}


def test_shapes_of_absurd_size_are_only_numbers() -> None:
    device = Device()
    a = device.input("a", 2**40, 1)
    b = device.input("b", 1, 2**40)
    node = Node("y", "vector", (a, b), Vector("add"), TensorType("i8", (2**40, 2**40), None, I8), device.builder.nodes[a].origin)
    device.builder.add(node)
    verify_layers(device.build("y"))
