"""Look-ups that follow a layer become its table: the integers stay, and so does whatever can't be composed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from tests.support.cases import each
from tests.support.device_graphs import Device, Graph, assert_computes, compiled, random_inputs, reference
from tests.support.mixed import Mixed
from tpucc.diagnostics import Source
from tpucc.driver import compile_source
from tpucc.explain.stats import stats
from tpucc.ir.verify import verify_graph
from tpucc.layers.kinds import Vector
from tpucc.layers.verify import verify_layers
from tpucc.options import Options
from tpucc.passes.base import Context
from tpucc.passes.compose_tables import compose_tables
from tpucc.runtime.check import compare_with_reference
from tpucc.runtime.check import random_inputs as model_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.timing import time_program
from tpucc.target import load_target

TINY = load_target("tiny")
CHAIN = """weights random(seed=0)
model chain(x: f32[37, 30]):
    weight w: f32[30, 41]
    h = x @ w
    return 1.0 - tanh(h) * 0.5
"""


def composed(graph: Graph) -> Graph:
    """What the pass makes; checks that it is valid, and that all outputs have their integers, scales and names."""
    result = compose_tables.run(graph, Context(TINY))
    verify_graph(result)
    verify_layers(result)
    assert result.inputs == graph.inputs
    before, after = (reference(g, random_inputs(graph)) for g in (graph, result))
    assert list(before) == list(after)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    kinds = [[g[output.node].type for output in g.outputs] for g in (graph, result)]
    assert kinds[0] == kinds[1]
    return result


def layers_of(graph: Graph) -> list[str]:
    return [node.name for node in graph if node.op in ("fc", "conv", "pool", "vector", "move")]


def root(device: Device, kind: str, *, table: bool) -> str:
    """A layer of a ragged shape, whose clamp cuts off what the int8 values could hold."""
    match kind:
        case "fc":
            return device.fc("root", device.input("x", 3, 5, 7), 19, table=table)
        case "conv":
            return device.conv("root", device.input("x", 1, 3, 4, 3), (2, 3), 9, stride=(2, 1), sides=(1, 0, 1, 1), table=table)
        case "add" | "subtract" | "multiply":
            return device.vector(
                "root",
                kind,
                device.input("a", 2, 3, 11),
                device.input(
                    "b",
                    3,
                    1,
                ),
                table=table,
            )
    return device.look_up("root", device.input("x", 5, 13))


@each(product(["fc", "conv", "add", "subtract", "multiply", "look_up"], [False, True], [1, 2, 5]))
def test_a_chain_of_any_length_is_one_layer(kind: str, table: bool, length: int) -> None:
    device = Device(seed=length)
    h = root(device, kind, table=table)
    for number in range(length):
        h = device.look_up(f"f{number}", h)
    result = composed(device.build(h))
    assert layers_of(result) == ["root" if kind in ("fc", "conv") else h]
    assert_computes(result, compiled(result, TINY)[1])


@each(range(12))
def test_random_graphs_keep_their_integers(seed: int) -> None:
    """Chains that branch anywhere, with layers between that take no table, and outputs at any place."""
    random = np.random.default_rng(seed)
    device = Device(seed=seed)
    values = [device.input("x", 3, 10)]
    for number in range(25):
        x = values[-1 - int(random.integers(min(len(values), 3)))]
        match random.integers(8):
            case 0:
                made = device.fc(f"n{number}", x, 10, table=bool(random.integers(2)))
            case 1:
                made = device.vector(f"n{number}", "add", x, values[int(random.integers(len(values)))], table=bool(random.integers(2)))
            case 2:
                made = device.reshape(f"n{number}", x, 3, 10)
            case _:
                made = device.look_up(f"n{number}", x)
        values.append(made)
    picked = random.choice(values[1:], 3, replace=False).tolist()
    graph = device.build(*dict.fromkeys([*picked, values[-1]]))
    result = composed(graph)
    assert len(layers_of(result)) < len(layers_of(graph))
    assert compose_tables.run(result, Context(TINY)) == result, "a second run finds nothing"


def test_two_readers_keep_both_look_ups() -> None:
    device = Device()
    h = device.fc("h", device.input("x", 4, 6), 8)
    graph = device.build(device.look_up("a", h), device.look_up("b", h))
    assert composed(graph) == graph


def test_one_reader_that_reads_twice_is_no_look_up() -> None:
    device = Device()
    h = device.look_up("h", device.input("x", 4, 6))
    graph = device.build(device.vector("y", "multiply", h, h))
    assert composed(graph) == graph


def test_an_output_stays() -> None:
    device = Device()
    h = device.fc("h", device.input("x", 4, 6), 8)
    graph = device.build(device.look_up("y", h), h)
    assert composed(graph) == graph


def test_pools_moves_and_inputs_take_no_table() -> None:
    device = Device()
    image = device.input("x", 2, 4, 4, 5)
    pooled = device.look_up("p.f", device.pool("p", "max", image, (2, 2)))
    moved = device.look_up("m.f", device.concat("m", 1, pooled, device.slice("s", pooled, (0, 2), (0, 1), (0, 3))))
    graph = device.build(moved)
    assert composed(graph) == graph


def test_a_host_step_between_keeps_them_apart() -> None:
    """The look-up of what the host computed is no reader of the layer before the host."""
    mixed = Mixed()
    x = mixed.quantised(mixed.input("x", 4, 6))
    second = mixed.add("h", x, x)
    step = mixed.step(second)
    graph = mixed.build(mixed.add("y", step, step))
    looked = [node for node in graph if isinstance(node.attributes, Vector)]
    assert compose_tables.run(graph, Context(TINY)) == graph
    assert len(looked) == 2


def test_origins_and_constants() -> None:
    device = Device()
    h = device.fc("h", device.input("x", 4, 6), 8, table=True)
    graph = device.build(device.look_up("g", device.look_up("f", h)))
    result = composed(graph)
    assert result["h"].origin == graph["h"].origin.merged(graph["f"].origin, graph["g"].origin)
    names = [node.name for node in result]
    assert not {"h.t", "f.t", "g.t"} & set(names)
    table = result["h"].operands[-1]
    assert names.index(table) == names.index("h") - 1
    assert result[table].origin.made_by == "compose-tables"
    assert result["h"].type == graph["g"].type


def test_the_clamp_stays_before_the_table() -> None:
    """Device's fc clamps at -120: entries below are never looked up, though the second table has others there."""
    device = Device()
    result = composed(device.build(device.look_up("y", device.fc("h", device.input("x", 50, 40), 8))))
    assert result["h"].attributes.epilogue.low == -120  # type: ignore[union-attr]
    assert result["h"].attributes.epilogue.table  # type: ignore[union-attr]


def compiled_chain(source: str, **options: object) -> tuple[int, int, list[np.ndarray]]:
    """Layers, cycles and outputs of a program; the machine equals the reference."""
    made = compile_source(Source("chain.tpu", source), Path(), Options(**options))  # type: ignore[arg-type]
    assert made.program is not None
    assert made.layers is not None
    runtime = Runtime(made.program)
    inputs = model_inputs(runtime)
    assert not [c for c in compare_with_reference(runtime, made.layers, inputs) if c.unequal]
    outputs = [np.asarray(value) for value in runtime.run(inputs).values()]
    return len(made.program.layers), stats(made.program, time_program(made.program))["cycles"], outputs


def test_from_source_to_machine() -> None:
    layers, cycles, found = compiled_chain(CHAIN)
    without = compiled_chain(CHAIN, omit=frozenset({"compose-tables"}))
    assert (layers, without[0]) == (1, 3)
    assert cycles < without[1]
    np.testing.assert_array_equal(found[0], without[2][0])


def test_requantised_operands_of_a_concat() -> None:
    """Each part gets the scale of the whole, by a table that only requantises: it becomes the product's own."""
    source = """weights random(seed=0)
model m(x: f32[6, 12]):
    weight a: f32[12, 9]
    weight b: f32[12, 9]
    weight c: f32[9, 5]
    return concat([x @ a, tanh(x @ b)], axis=0) @ c
"""
    layers, _, found = compiled_chain(source)
    without = compiled_chain(source, omit=frozenset({"compose-tables"}))
    assert layers < without[0]
    np.testing.assert_array_equal(found[0], without[2][0])


def test_sixteen_bits_are_interpolated_and_stay() -> None:
    layers, cycles, _ = compiled_chain(CHAIN, activation_bits=16)
    assert (layers, cycles) == compiled_chain(CHAIN, activation_bits=16, omit=frozenset({"compose-tables"}))[:2]
    assert layers > 1
