"""Layer graphs with host work between device segments: as few steps as the graph allows, and the same results."""

from __future__ import annotations

import random
from collections.abc import Mapping

import networkx as nx
import numpy as np
import pytest

from tests.support.cases import each, one_of
from tests.support.mixed import Mixed, random_inputs
from tpucc.ir import Graph
from tpucc.ir.verify import verify_graph
from tpucc.layers.kinds import LAYERS, is_layer
from tpucc.layers.partition import Partition, partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import compute, evaluate
from tpucc.ops.verify import verify_operators


def run(parts: Partition, inputs: Mapping[str, AnyArray]) -> list[AnyArray]:
    """The parts in turn, the device a segment at a time; every part is given only what is known by then."""
    values = dict(evaluate(parts.prologue, inputs))
    for segment in range(len(parts.middle) + 1):
        if segment:
            step = parts.middle[segment - 1]
            assert {node.name for node in step.graph.inputs} <= values.keys()
            values |= evaluate(step.graph, values)
        values |= device_segment(parts, segment, values)
    results = evaluate(parts.epilogue, values)
    return [results[output.node] for output in parts.epilogue.outputs]


def device_segment(parts: Partition, segment: int, values: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    made: dict[str, AnyArray] = {}
    for node in parts.device:
        if node.op == "constant":
            made[node.name] = compute(node, (), ())
        elif node.op != "input" and parts.segments[node.name] == segment:
            operands = [made[name] if name in made else values[name] for name in node.operands]
            types = [parts.device[name].type for name in node.operands]
            made[node.name] = LAYER_REFERENCES[node.op](node, operands) if is_layer(node) else compute(node, types, operands)
    return made


def least_steps(graph: Graph, parts: Partition) -> int:
    """The most often that one way through the graph comes back from the host to the device."""
    device = {node.name for node in parts.device if node.op not in ("input", "constant")}
    ways = nx.DiGraph()
    ways.add_weighted_edges_from((name, node.name, name in device and node.name not in device) for node in graph for name in node.operands)
    before = device.union(*(nx.ancestors(ways, name) for name in device))
    return int(nx.dag_longest_path_length(ways.subgraph(before)))


def checked(graph: Graph) -> Partition:
    """The partition of a graph, after checking what must hold of every one."""
    verify_graph(graph)
    parts = partition(graph)
    hosts = (parts.prologue, *(step.graph for step in parts.middle), parts.epilogue)
    for part in (*hosts, parts.device):
        if part.nodes and part.outputs:
            verify_graph(part)
            verify_operators(part, LAYERS)
    for step in parts.middle:
        assert step.writes
        assert set(step.reads) <= {output.name for output in parts.device.outputs}
        assert set(step.writes) <= {node.name for node in parts.device.inputs}
        assert set(step.writes) <= {output.name for output in step.graph.outputs}
    assert not any(is_layer(node) for host in hosts for node in host)
    order = [parts.segments[node.name] for node in parts.device if node.op != "constant"]
    assert order == sorted(order)
    assert len(parts.middle) == least_steps(graph, parts)
    inputs = random_inputs(graph)
    whole = evaluate(graph, inputs, LAYER_REFERENCES)
    for found, output in zip(run(parts, inputs), graph.outputs, strict=True):
        np.testing.assert_array_equal(found, whole[output.node])
    return parts


def names(graph: Graph) -> list[str]:
    return [output.name for output in graph.outputs]


def test_device_host_device() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 2, 3))
    h = model.add("h", x, x)
    s = model.step(h)
    parts = checked(model.build(model.real(model.add("y", s, h))))
    (step,) = parts.middle
    assert (step.reads, step.writes) == (("h",), ("soft.i8",))
    assert [node.op for node in step.graph] == ["input", "dequantize", "softmax", "quantize"]
    assert step.elements == 3 * 6
    assert parts.segments == {"x.i8": 0, "h": 0, "soft.i8": 1, "y": 1}
    assert [node.name for node in parts.device] == ["x.i8", "h", "soft.i8", "y"]
    assert (names(parts.prologue), names(parts.device)) == (["x.i8"], ["h", "y"])
    assert [node.op for node in parts.epilogue] == ["input", "dequantize"]


def test_two_steps_and_a_value_that_is_carried_past_one() -> None:
    """`first`, which the host makes in step 0, is read in step 1 and after the end; `z`, an input, everywhere."""
    model = Mixed()
    z = model.input("z", 2, 4)
    a = model.add("a", model.quantised(z), model.quantised(z))
    first = model.op("softmax", model.real(a), name="first")
    b = model.add("b", model.quantised(first), a)
    joined = model.op("add", model.op("mul", model.real(b), first, name="scaled"), z, name="joined")
    c = model.add("c", model.quantised(joined), b)
    last = model.op("concat", model.real(c), first, z, axis=1, name="last")
    parts = checked(model.build(last))
    one, two = parts.middle
    assert names(one.graph) == ["first", "first.i8"]
    assert ([node.name for node in two.graph.inputs], two.reads, two.writes) == (["z", "first", "b"], ("b",), ("joined.i8",))
    assert names(parts.prologue) == ["z", "z.i8", "z.i8.1"]
    assert [node.name for node in parts.epilogue.inputs] == ["z", "first", "c"]


def test_work_that_the_device_does_not_wait_for_is_the_epilogues() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 2, 3))
    h = model.add("h", x, x)
    aside = model.op("softmax", model.real(h), name="aside")
    y = model.add("y", model.step(h, "soft"), h)
    parts = checked(model.build(aside, model.real(y)))
    assert [node.name for node in parts.middle[0].graph] == ["h", "h.f32.1", "soft", "soft.i8"]
    assert {"aside", "h.f32"} <= {node.name for node in parts.epilogue}


def test_a_value_of_the_host_that_step_and_epilogue_read_is_made_once() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 2, 3))
    real = model.real(model.add("h", x, x))
    y = model.add("y", model.quantised(model.op("softmax", real, name="soft")), x)
    parts = checked(model.build(real, model.real(y)))
    assert names(parts.middle[0].graph) == ["h.f32", "soft.i8"]
    assert [node.name for node in parts.epilogue.inputs] == ["h.f32", "y"]


def test_host_work_for_a_late_segment_that_waits_for_nothing_is_the_prologues() -> None:
    model = Mixed()
    x = model.input("x", 2, 3)
    early = model.quantised(model.op("softmax", x, name="early"))
    h = model.add("h", model.quantised(x), model.quantised(x))
    y = model.add("y", model.add("both", model.step(h), early), h)
    parts = checked(model.build(model.real(y)))
    assert "early.i8" in names(parts.prologue)
    assert parts.segments["early.i8"] == 0


def test_views_that_turn_lanes_into_rows_are_steps_and_others_walks() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 2, 3, 3))
    h = model.add("h", x, x)
    walked = model.op("transpose", h, name="walked", perm=(1, 0, 2))
    turned = model.op("transpose", model.add("k", walked, walked), name="turned", perm=(2, 1, 0))
    shown = model.op("reshape", model.add("m", turned, turned), name="shown", shape=(6, 3))
    part = model.op("slice", shown, name="part", starts=(2, 0), stops=(6, 3))
    parts = checked(model.build(model.real(model.add("y", part, part))))
    assert len(parts.middle) == 1
    assert [node.name for node in parts.middle[0].graph if node.op != "input"] == ["turned"]
    assert parts.middle[0].elements == 18
    assert {"walked", "shown", "part"} <= {node.name for node in parts.device}


@each(
    [
        ({"starts": (0, 0), "stops": (5, 4), "steps": (2, 1)}, 0),
        ({"starts": (0, 3), "stops": (5, -1), "steps": (1, -1)}, 1),
        ({"starts": (4, 0), "stops": (-1, 4), "steps": (-1, 1)}, 1),
        ({"starts": (0, 0), "stops": (5, 4), "steps": (1, 2)}, 1),
    ]
)
def test_slices_of_rows_forwards_are_walks_and_others_steps(bounds: dict[str, tuple[int, ...]], steps: int) -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 5, 4))
    part = model.op("slice", model.add("h", x, x), name="part", **bounds)
    parts = checked(model.build(model.real(model.add("y", part, part))))
    assert len(parts.middle) == steps


def test_constants_are_copied_to_the_steps_that_read_them() -> None:
    model = Mixed()
    c = model.constant("c", [[1.0, 2.0, 3.0]])
    x = model.quantised(model.op("add", model.input("x", 2, 3), c, name="shifted"))
    h = model.add("h", x, x)
    y = model.add("y", model.quantised(model.op("mul", model.real(h), c, name="scaled")), h)
    parts = checked(model.build(model.op("add", model.real(y), c, name="last"), c))
    assert all(any(node.name == "c" for node in part) for part in (parts.prologue, parts.middle[0].graph, parts.epilogue))
    assert parts.epilogue["c"].op == "input"
    assert parts.middle[0].graph["c"].op == "constant"


def test_a_product_on_the_host_costs_all_that_it_multiplies() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 5, 3))
    q, k = model.real(model.add("q", x, x)), model.real(model.add("k", x, x))
    scores = model.op("matmul", q, model.op("transpose", k, name="kt", perm=(1, 0)), name="scores")
    z = model.quantised(scores)
    parts = checked(model.build(model.real(model.add("y", z, z))))
    assert parts.middle[0].elements == 15 + 15 + 15 + 5 * 5 * 3 + 25


def random_graph(seed: int) -> Graph:
    """Values on either side, each made from some before: additions on the device, sums and softmaxes on the host."""
    choose, model = random.Random(seed), Mixed()
    host = [model.input(f"x{i}", 2, 3) for i in range(choose.randint(1, 3))]
    device: list[str] = []
    for number in range(choose.randint(3, 40)):
        kind = choose.random()
        if kind < 0.45 or not device:
            sources = [choose.choice([*device[-4:], model.quantised(choose.choice(host[-2:]))]) for _ in range(2)]
            device.append(model.add(f"d{number}", *sources))
        elif kind < 0.75:
            host.append(model.op("softmax", model.real(choose.choice(device[-4:])), name=f"s{number}"))
        else:
            host.append(model.op("add", choose.choice(host), choose.choice(host[-3:]), name=f"a{number}"))
    results = dict.fromkeys(choose.choice([*host, *map(model.real, device)]) for _ in range(3))
    return model.build(*results)


@pytest.mark.parametrize("first", one_of(2, range(0, 200, 50)))
def test_random_graphs(first: int) -> None:
    steps = [len(checked(random_graph(seed)).middle) for seed in range(first, first + 50)]
    assert max(steps) >= 3


def test_thousands_of_steps_take_linear_time() -> None:
    model = Mixed()
    x = model.quantised(model.input("x", 1, 2))
    h = x
    for number in range(3000):
        h = model.add(f"h{number}", model.step(h, f"s{number}") if number else h, x)
    graph = model.build(model.real(h))
    parts = partition(graph)
    assert len(parts.middle) == 2999
