"""The numbered programs in float32: elaborated, with their weights, evaluated by the operators' references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tpucc.data.sources import bind_weights
from tpucc.data.weights import weights_of
from tpucc.driver import front_end
from tpucc.interop.sources import read_source
from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import evaluate
from tpucc.options import Options

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


@dataclass(frozen=True)
class FloatModel:
    """A program's graph with its weights bound, and the weights by key."""

    graph: Graph
    weights: Mapping[str, AnyArray]

    def inputs(self, seed: int = 0) -> dict[str, AnyArray]:
        """Uniform in the inputs' ranges, standard normal where there is none."""
        generator = np.random.default_rng(seed)
        return {node.name: _drawn(generator, node) for node in self.graph.inputs}

    def run(self, inputs: Mapping[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
        """The only output, and what its last operator reads: the logits below a softmax."""
        (output,) = self.graph.outputs
        below = self.graph[output.node].operands[0]
        values = evaluate(self.graph, inputs, keep=[below])
        return values[output.node], values[below]


def elaborated(name: str, **params: object) -> Graph:
    """The program's graph, in which weights are still keys."""
    return front_end(read_source(PROGRAMS / f"{name}.tpu"), _options(params)).graph


def load(name: str, **params: object) -> FloatModel:
    """The program `name`, with `params` as -D gives them."""
    model = front_end(read_source(PROGRAMS / f"{name}.tpu"), _options(params))
    graph = bind_weights(model, PROGRAMS, None)
    return FloatModel(graph, {key: _value(graph[node.name]) for key, node in weights_of(model.graph).items()})


def _options(params: Mapping[str, object]) -> Options:
    return Options(params={name: str(value) for name, value in params.items()})


def _value(node: Node) -> AnyArray:
    assert isinstance(node.attributes, ConstantAttributes)
    return node.attributes.value.data


def _drawn(generator: np.random.Generator, node: Node) -> AnyArray:
    known = node.type.range
    if node.type.dtype == "i32":
        assert known is not None
        return generator.integers(int(known.low), int(known.high), node.type.shape, np.int32, endpoint=True)
    if known is None:
        return generator.standard_normal(node.type.shape, np.float32)
    return generator.uniform(known.low, known.high, node.type.shape).astype(np.float32)
