"""Layer graphs whose work goes back and forth between host and device, written down node by node: no pass is needed to make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, NoAttributes, Node, Quantisation, TensorType, f32
from tpucc.layers.kinds import Requantise, Vector
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.quantize import QuantizeAttributes

SCALE, ZERO = 0.03125, 3
PARAMETERS = Quantisation(SCALE, ZERO)
ADD = Vector("add", Requantise(ZERO, scales=(0.5, 0.75), zeros=(ZERO, ZERO)))


class Mixed:
    """The device adds int8 values, all with the same parameters; the host does whatever operators there are."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("mixed", "mixed.tpu")

    def input(self, name: str, *shape: int) -> str:
        return self._node(name, "input", (), NoAttributes(), f32(*shape))

    def constant(self, name: str, values: Any) -> str:
        array = Constant(np.asarray(values, np.float32))
        return self._node(name, "constant", (), ConstantAttributes(array), f32(*array.shape))

    def quantised(self, x: str, name: str = "") -> str:
        """The host's value for the device."""
        return self._node(name or f"{x}.i8", "quantize", (x,), QuantizeAttributes(SCALE, ZERO), self._held(x))

    def real(self, x: str) -> str:
        """The device's value for the host."""
        attributes = DequantizeAttributes(SCALE, ZERO)
        return self._node(f"{x}.f32", "dequantize", (x,), attributes, f32(*self.builder.nodes[x].type.shape))

    def add(self, name: str, a: str, b: str) -> str:
        """A layer of the device."""
        return self._node(name, "vector", (a, b), ADD, self._held(a))

    def op(self, op: str, *operands: str, name: str, **attributes: Any) -> str:
        """An operator of the host, or a view."""
        operator, types = OPS[op], [self.builder.nodes[operand].type for operand in operands]
        values = operator.attributes(**attributes)
        inferred = operator.infer(values, types)
        kept = PARAMETERS if inferred.dtype == "i8" else None
        return self._node(name, op, operands, values, inferred.with_quantisation(kept))

    def step(self, x: str, name: str = "soft") -> str:
        """What stops the device: its value x through a softmax of the host, and back."""
        return self.quantised(self.op("softmax", self.real(x), name=name))

    def build(self, *outputs: str) -> Graph:
        for node in outputs:
            self.builder.output(f"out_{node}", node)
        return self.builder.build()

    def _held(self, x: str) -> TensorType:
        return TensorType("i8", self.builder.nodes[x].type.shape, quantisation=PARAMETERS)

    def _node(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> str:
        line = len(self.builder.nodes) + 1
        return self.builder.add(Node(name, op, operands, attributes, type_, Origin((Span(line, 1, line, 2),)))).name


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, AnyArray]:
    """Standard normal numbers for each input."""
    generator = np.random.default_rng(seed)
    return {node.name: generator.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}
