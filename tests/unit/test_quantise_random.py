"""Random graphs: whatever has a placement quantises, divides into three, and gives what the whole layer graph gives."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest

from tests.support.operator_graphs import Model, layers_of, outputs_of
from tpucc.diagnostics import CompileError
from tpucc.ir.graph import Graph
from tpucc.layers.partition import partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.ops.evaluate import evaluate
from tpucc.passes.place import constant_values, needed_values, placement

FUNCTIONS = ("relu", "relu6", "tanh", "sigmoid", "gelu")
HOST = ("softmax", "transpose", "pad")


def random_graph(seed: int) -> Graph:
    """A graph of f32[4, 4] values; about a third have host operators in places where the device can't stop."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    model = Model()
    values = [model.input("x", 4, 4), model.input("y", 4, 4), model.constant("c", numbers.standard_normal((4, 4)))]
    for number in range(choose.randint(1, 14)):
        x = choose.choice(values[-4:])
        match choose.choice(("product", "product", "function", "two", "view", "pair", "host", "number")):
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


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("block", range(8))
def test_random_graphs(block: int, fused: bool) -> None:
    placed = 0
    for seed in range(block * 40, block * 40 + 40):
        graph = random_graph(seed)
        inputs = {node.name: np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32) for node in graph.inputs}
        sides = sides_of(graph)
        if sides is None:
            continue
        placed += 1
        products = {node.name for node in graph if node.op == "matmul"} & needed_values(graph) - constant_values(graph)
        assert all(sides[name] == "device" for name in products)
        check(graph, layers_of(graph, inputs, fused=fused), inputs)
    assert placed > 10


def sides_of(graph: Graph) -> Mapping[str, str] | None:
    """The placement, or None when the graph has none."""
    try:
        return placement(graph)
    except CompileError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
    return None if codes == {"E0801"} else pytest.fail(f"{codes}")


def check(graph: Graph, layers: Graph, inputs: dict[str, np.ndarray]) -> None:
    whole = outputs_of(layers, inputs)
    parts = partition(layers)
    before = evaluate(parts.prologue, inputs)
    device = evaluate(parts.device, before, LAYER_REFERENCES)
    after = evaluate(parts.epilogue, {**before, **device})
    assert [output.name for output in parts.epilogue.outputs] == [output.name for output in graph.outputs]
    for output, value, exact in zip(parts.epilogue.outputs, whole, outputs_of(graph, inputs), strict=True):
        np.testing.assert_array_equal(after[output.node], value)
        assert value.shape == exact.shape
        assert value.dtype == exact.dtype
