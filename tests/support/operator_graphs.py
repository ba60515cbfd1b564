"""Operator graphs for tests, built as the front end would: each node has its place, a line of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin, Source, Span
from tpucc.driver import front
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, NoAttributes, Node, Range, TensorType
from tpucc.ir.verify import verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.layers.verify import verify_layers
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import evaluate
from tpucc.ops.verify import verify_operators
from tpucc.options import options_of
from tpucc.passes.base import Context, Pass
from tpucc.passes.calibrate import calibrate
from tpucc.passes.explicit_quantisation import explicit_quantisation
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias
from tpucc.passes.place import place
from tpucc.passes.quantise import quantise
from tpucc.target import load_target

FUSIONS: tuple[Pass, ...] = (fuse_bias, fuse_activation)


class Model:
    """Adds nodes by operator; shapes follow from the operators' rules."""

    def __init__(self, name: str = "model") -> None:
        self.builder = GraphBuilder(name, "model.tpu")

    def input(self, name: str, *shape: int, dtype: str = "f32", range: tuple[float, float] | None = None) -> str:
        return self._node(name, "input", (), NoAttributes(), TensorType(dtype, shape, Range(*range) if range else None))

    def constant(self, name: str, values: Any) -> str:
        array = Constant(np.asarray(values, np.float32))
        return self._node(name, "constant", (), ConstantAttributes(array), TensorType("f32", array.shape))

    def op(self, op: str, *operands: str, name: str = "", **attributes: Any) -> str:
        operator = OPS[op]
        values = operator.attributes(**attributes)
        types = [self.builder.nodes[operand].type for operand in operands]
        return self._node(name or op, op, operands, values, operator.infer(values, types))

    def dense(self, x: str, weights: Any, bias: Any = None, *, key: str = "fc", activation: str = "") -> str:
        """Separate nodes for product, bias and activation, with weights named after the layer."""
        h = self.op("matmul", x, self.constant(f"{key}.w", weights), name=f"{key}_product")
        h = h if bias is None else self.op("add", h, self.constant(f"{key}.b", bias), name=f"{key}_sum")
        return self.op(activation, h, name=f"{key}_{activation}") if activation else h

    def build(self, *outputs: str) -> Graph:
        for node in outputs:
            self.builder.output(f"out_{node}", node)
        return self.builder.build()

    def _node(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> str:
        line = len(self.builder.nodes) + 1
        return self.builder.add(Node(name, op, operands, attributes, type_, Origin((Span(line, 5, line, 9),)))).name


def context(calibration: Mapping[str, AnyArray] | None = None) -> Context:
    return Context(load_target("tiny"), calibration)


def applied(graph: Graph, *passes: Pass, calibration: Mapping[str, AnyArray] | None = None) -> Graph:
    """The graph after the passes, verified after each."""
    for step in passes:
        graph = step.run(graph, context(calibration))
        verify_graph(graph)
        verify_operators(graph, LAYERS)
    return graph


def placed(graph: Graph) -> Graph:
    """The graph whose nodes say who computes them."""
    return applied(graph, place)


def layers_of(graph: Graph, calibration: Mapping[str, AnyArray] | None = None, *, fused: bool = False, **options: str) -> Graph:
    """The layer graph, verified."""
    passes = (place, explicit_quantisation, calibrate, *(FUSIONS if fused else ()), quantise(**options))
    layers = applied(graph, *passes, calibration=calibration)
    verify_layers(layers)
    return layers


def outputs_of(graph: Graph, inputs: Mapping[str, AnyArray]) -> list[AnyArray]:
    """The outputs in order, of an operator graph or a layer graph."""
    values = evaluate(graph, inputs, LAYER_REFERENCES)
    return [values[output.node] for output in graph.outputs]


def value_of(graph: Graph, name: str) -> AnyArray:
    """The array of a constant."""
    attributes = graph[name].attributes
    assert isinstance(attributes, ConstantAttributes)
    return attributes.value.data


def built(source: str) -> Graph:
    """The operator graph of a source, before any pass."""
    graph = front(Source("m.tpu", source), Path(), options_of()).graph
    assert graph is not None
    return graph
