"""Random graphs: each has a placement, quantises, divides into parts, and gives what the whole layer graph gives."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.operator_graphs import Model, layers_of, outputs_of
from tests.support.placing import placement
from tpucc.ir import Graph
from tpucc.ir.dataflow import constant_values, needed_values
from tpucc.layers.partition import Partition, partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

FUNCTIONS = ("relu", "relu6", "tanh", "sigmoid", "gelu")
HOST = ("softmax", "softmax", "transpose", "pad")
MOVES = ("rows", "lanes", "joined rows", "joined lanes", "padded", "turned")


def random_graph(seed: int) -> Graph:
    """A graph of f32[4, 4] values; about a third have host operators where the device must stop."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    model = Model()
    values = [model.input("x", 4, 4), model.input("y", 4, 4), model.constant("c", numbers.standard_normal((4, 4)))]
    for number in range(choose.randint(1, 30)):
        x = choose.choice(values[-choose.randint(1, 3) :])
        match choose.choice(("product", "product", "function", "two", "view", "pair", "host", "host", "number", "move")):
            case "product":
                weights = model.constant(f"fc{number}.w", numbers.standard_normal((4, 4)) / 2)
                made = model.op("matmul", x, weights, name=f"p{number}")
            case "function":
                made = model.op(choose.choice(FUNCTIONS), x, name=f"f{number}")
            case "two":
                made = model.op(choose.choice(("add", "sub", "mul")), x, choose.choice(values), name=f"t{number}")
            case "view":
                made = model.op("reshape", model.op("reshape", x, shape=choose.choice(((2, 2, 4), (16,))), name=f"v{number}"), shape=(4, 4))
            case "pair":
                made = model.op("quantize", x, name=f"q{number}", scale=choose.choice((0.02, 0.05)), zero_point=choose.choice((0, 9)))
                made = model.op("dequantize", made, name=f"d{number}")
            case "host":
                made = host_operator(model, choose.choice(HOST), x, f"h{number}")
            case "move":
                made = moved(model, choose.choice(MOVES), x, choose.choice(values), f"m{number}")
            case _:
                made = model.op("mul", x, model.constant(f"k{number}", choose.choice((0.5, -2.0))), name=f"n{number}")
        values.append(made)
    model.op("quantize", values[-1], name="integers", scale=0.03)
    return model.build(*dict.fromkeys([values[-1], choose.choice(values), *(["integers"] if choose.random() < 0.5 else [])]))


def host_operator(model: Model, op: str, x: str, name: str) -> str:
    if op == "pad":
        padded = model.op("pad", x, pads=((1, 0), (0, 0)), name=f"{name}_padded")
        return model.op("slice", padded, starts=(0, 0), stops=(4, 4), name=name)
    return model.op(op, x, name=name, **({"perm": (1, 0)} if op == "transpose" else {}))


def moved(model: Model, kind: str, x: str, other: str, name: str) -> str:
    """Values of two others, or of one, in other places; what is cut off is filled up again."""
    if kind == "turned":
        blocks = model.op("reshape", x, shape=(2, 2, 4), name=f"{name}_blocks")
        turned = model.op("transpose", blocks, perm=(1, 0, 2), name=f"{name}_turned")
        return model.op("reshape", turned, shape=(4, 4), name=name)
    axis = 1 if "lanes" in kind else 0
    starts, stops = [0, 0], [4, 4]
    starts[axis], stops[axis] = 1, 3
    part = model.op("slice", x, starts=tuple(starts), stops=tuple(stops), name=f"{name}_part")
    if kind == "padded":
        return model.op("pad", part, pads=((1, 1), (0, 0)), name=name)
    half = model.op("slice", other, starts=(0, 0), stops=(4, 2) if axis else (2, 4), name=f"{name}_half")
    return model.op("concat", part, half if "joined" in kind else part, axis=axis, name=name)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("block", one_of(8, range(8)))
def test_random_graphs(block: int, fused: bool) -> None:
    steps = 0
    for seed in range(block * 40, block * 40 + 40):
        graph = random_graph(seed)
        inputs = {node.name: np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32) for node in graph.inputs}
        sides = placement(graph)
        products = {node.name for node in graph if node.op == "matmul"} & needed_values(graph) - constant_values(graph)
        assert all(sides[name] == "device" for name in products)
        parts = check(graph, layers_of(graph, inputs, fused=fused), inputs)
        steps += len(parts.middle)
    assert steps > 2


def check(graph: Graph, layers: Graph, inputs: dict[str, np.ndarray]) -> Partition:
    whole, parts = outputs_of(layers, inputs), partition(layers)
    after = in_parts(parts, inputs)
    assert [output.name for output in parts.epilogue.outputs] == [output.name for output in graph.outputs]
    for output, value, exact in zip(parts.epilogue.outputs, whole, outputs_of(graph, inputs), strict=True):
        np.testing.assert_array_equal(after[output.node], value)
        assert value.shape == exact.shape
        assert value.dtype == exact.dtype
    return parts


def in_parts(parts: Partition, inputs: dict[str, np.ndarray]) -> dict[str, AnyArray]:
    """Host and device in turn; the device knows in each segment only what the host made before."""
    values: dict[str, AnyArray] = dict(evaluate(parts.prologue, inputs))
    for segment in range(len(parts.middle) + 1):
        if segment:
            values |= evaluate(parts.middle[segment - 1].graph, values)
        nodes = tuple(node for node in parts.device if parts.segments.get(node.name, 0) <= segment)
        known = {node.name for node in nodes}
        outputs = tuple(output for output in parts.device.outputs if output.node in known)
        values |= evaluate(replace(parts.device, nodes=nodes, outputs=outputs), values, LAYER_REFERENCES)
    return evaluate(parts.epilogue, values)
