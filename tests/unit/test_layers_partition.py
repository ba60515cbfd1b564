"""The three parts of a layer graph: together they compute what the whole does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.operator_graphs import Model, layers_of, outputs_of
from tpucc.ir import Graph
from tpucc.ir.verify import verify_graph
from tpucc.layers.kinds import LAYERS, is_layer
from tpucc.layers.partition import Partition, partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.ops.verify import verify_operators

GENERATOR = np.random.default_rng(0)


def drawn(*shape: int) -> AnyArray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def run(parts: Partition, inputs: dict[str, AnyArray]) -> list[AnyArray]:
    """What the runtime does, with the reference in the device's place."""
    before = evaluate(parts.prologue, inputs)
    device = evaluate(parts.device, before, LAYER_REFERENCES)
    after = evaluate(parts.epilogue, {**before, **device})
    return [after[output.node] for output in parts.epilogue.outputs]


def checked(graph: Graph) -> Partition:
    """The partition of a quantised graph, after checking what must hold of every one."""
    layers = layers_of(graph)
    parts = partition(layers)
    for part in (parts.prologue, parts.device, parts.epilogue):
        if part.nodes and part.outputs:
            verify_graph(part)
            verify_operators(part, LAYERS)
    assert parts.prologue.inputs == graph.inputs or [n.name for n in parts.prologue.inputs] == [n.name for n in graph.inputs]
    assert all(output.name == output.node for output in (*parts.prologue.outputs, *parts.device.outputs))
    assert [output.name for output in parts.epilogue.outputs] == [output.name for output in graph.outputs]
    assert not any(is_layer(node) for node in (*parts.prologue, *parts.epilogue))
    assert all(is_layer(node) or node.op in ("input", "constant", "reshape", "slice", "transpose") for node in parts.device)
    inputs = {node.name: drawn(*node.type.shape) for node in graph.inputs}
    for found, expected in zip(run(parts, inputs), outputs_of(layers, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
    return parts


def names(graph: Graph) -> list[str]:
    return [output.name for output in graph.outputs]


def test_host_before_and_after() -> None:
    model = Model()
    x = model.op("transpose", model.input("x", 5, 3), perm=(1, 0), name="t")
    parts = checked(model.build(model.op("softmax", model.dense(x, drawn(5, 4), drawn(4)), name="y")))
    assert names(parts.prologue) == ["t.i8"]
    assert [node.name for node in parts.device.inputs] == ["t.i8"]
    assert [node.op for node in parts.epilogue] == ["input", "dequantize", "softmax"]
    assert parts.epilogue.inputs[0].type.quantisation is not None


def test_values_of_the_host_are_carried_past_the_device() -> None:
    model = Model()
    x, z = model.input("x", 2, 3), model.input("z", 2, 4)
    soft = model.op("softmax", z, name="soft")
    h = model.op("softmax", model.dense(x, drawn(3, 4)), name="h")
    both = model.op("concat", h, soft, axis=1, name="both")
    parts = checked(model.build(both, z))
    assert sorted(names(parts.prologue)) == ["soft", "x.i8", "z"]
    assert sorted(node.name for node in parts.epilogue.inputs) == ["fc", "soft", "z"]


def test_a_model_without_work_for_the_device() -> None:
    model = Model()
    x = model.input("x", 2, 3)
    parts = checked(model.build(model.op("softmax", x, name="y"), x))
    assert len(parts.device) == 0
    assert names(parts.prologue) == ["x", "y"]


def test_constants_and_unused_inputs() -> None:
    model = Model()
    model.input("unused", 7)
    c = model.constant("c", drawn(2, 2))
    parts = checked(model.build(c))
    assert names(parts.prologue) == ["c"]
    assert [node.name for node in parts.prologue.inputs] == ["unused"]


def test_a_constant_is_copied_to_every_part_that_reads_it() -> None:
    model = Model()
    c = model.constant("c", drawn(2, 3))
    x = model.input("x", 2, 3)
    first = model.op("concat", x, c, axis=0, name="first")
    last = model.op("concat", model.op("add", model.dense(first, drawn(3, 3)), model.constant("k", drawn(4, 3))), c, axis=0)
    parts = checked(model.build(last))
    assert [any(node.name.startswith("c") and node.op == "constant" for node in part) for part in (parts.prologue, parts.epilogue)] == [
        True,
        True,
    ]


def test_a_value_of_the_device_that_both_sides_read() -> None:
    model = Model()
    h = model.dense(model.input("x", 2, 3), drawn(3, 4), drawn(4), activation="relu")
    y = model.dense(h, drawn(4, 2), key="fc2")
    parts = checked(model.build(h, y, model.op("softmax", y)))
    assert names(parts.device) == ["fc_relu", "fc2"]
    assert sum(node.op == "dequantize" for node in parts.epilogue) == 2


def test_views_between_layers_are_the_devices() -> None:
    model = Model()
    h = model.op("reshape", model.dense(model.input("x", 4, 3), drawn(3, 5)), shape=(2, 2, 5), name="view")
    parts = checked(model.build(model.op("reshape", model.dense(h, drawn(5, 2), key="fc2"), shape=(4, 2), name="last")))
    assert [node.name for node in parts.device if node.op == "reshape"] == ["view"]
    assert [node.name for node in parts.epilogue if node.op == "reshape"] == ["last"]


def test_a_layer_behind_work_of_the_host_is_in_the_next_segment() -> None:
    model = Model()
    layers = layers_of(model.build(model.dense(model.dense(model.input("x", 2, 3), drawn(3, 3)), drawn(3, 3), key="fc2")))
    host = layers["fc2.f32"]
    away = replace(host, name="away", operands=("fc",), type=host.type)
    back = replace(layers["x.i8"], name="back", operands=("away",))
    nodes = []
    for node in layers:
        nodes += [away, back] if node.name == "fc2" else []
        nodes.append(replace(node, operands=("back", *node.operands[1:])) if node.name == "fc2" else node)
    parts = partition(layers.with_nodes(nodes))
    assert [(step.reads, step.writes) for step in parts.middle] == [(("fc",), ("back",))]
    assert parts.segments == {"x.i8": 0, "fc": 0, "back": 1, "fc2": 1}
