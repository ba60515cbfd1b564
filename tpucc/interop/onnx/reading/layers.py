"""Layers that `tpucc export --quantized` has written out, as float32 operators between DequantizeLinear and QuantizeLinear again.

The export writes what the device does step by step: sums of integers, a product with the multiplier, QuantizeLinear with the scale 1. The
metadata of the last node say which scale and zero point its result really has. With them the steps are operators on real values, from which
the compiler makes the same integers. A table is compared with those of our functions (`tables.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.tables import function_and_scales, function_of
from tpucc.interop.onnx.scales import Scaled, result_scale, weight_scales
from tpucc.ir.dtypes import I8
from tpucc.ir.types import Quantisation
from tpucc.numerics import AnyArray, Float32, multiplier

MOVES = frozenset({"Concat", "Identity", "MaxPool", "Pad", "Reshape", "Slice", "Transpose"})
"""What the export does with integers that keep their scale."""
ENDS = {"QLinearConv": 7, "QLinearMatMul": 7, "QuantizeLinear": 2}
"""What makes integers of sums, and the operand that is their zero point."""
LAYER = "Layer"
"""What stands for a layer that can't be read back: no operator of ONNX."""


class _Unknown(Exception):
    """The steps are none that are read back."""


def with_layers(graph: OnnxGraph) -> OnnxGraph:
    """The graph with layers as operators of real values. One whose steps don't say which becomes a node `Layer`."""
    return _Layers(graph).read() if any(node.held for node in graph.nodes) else graph


class _Layers:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.constants = dict(graph.constants)
        self.made = {name: node for node in graph.nodes for name in node.outputs}
        self.held: dict[str, Quantisation] = {}
        """How integers stand for real values."""
        self.nodes: list[OnnxNode] = []
        self.last = OnnxNode("", (), ())
        """The last node of the layer that is being read."""
        self.own = Quantisation(1.0, 0)
        """How its integers are held."""

    def read(self) -> OnnxGraph:
        for node in self.graph.nodes:
            start, self.last = len(self.nodes), node
            try:
                self._layer(node)
            except (_Unknown, ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # other files may say anything
                del self.nodes[start:]
                self.nodes.append(node if node.held is None or node.op in MOVES else replace(node, op=LAYER, inputs=()))
            self._note(node)
        return replace(self.graph, nodes=self._needed(), constants=self.constants)

    def _note(self, node: OnnxNode) -> None:
        """Notes how a node's integers are held."""
        if node.held is not None:
            self.held[node.outputs[0]] = Quantisation(*node.held)
        elif node.op == "QuantizeLinear" and len(node.inputs) == 3 and self.constants.keys() >= set(node.inputs[1:]):
            scale, zero = (self.constants[name] for name in node.inputs[1:])
            if scale.size == zero.size == 1:
                self.held[node.outputs[0]] = Quantisation(float(scale.reshape(())), int(zero.reshape(())))
        elif node.op in MOVES:
            parts = node.inputs if node.op == "Concat" else node.inputs[:1]
            held = {self.held.get(name) for name in parts}
            if len(held) == 1 and (of_all := held.pop()) is not None:
                self.held[node.outputs[0]] = of_all

    def _needed(self) -> tuple[OnnxNode, ...]:
        """The nodes without the steps that nothing reads any more."""
        alive, kept = {value.name for value in self.graph.outputs}, list[OnnxNode]()
        for node in reversed(self.nodes):
            if not alive.isdisjoint(node.outputs):
                alive.update(node.inputs)
                kept.append(node)
        return tuple(reversed(kept))

    # what is read

    def _layer(self, node: OnnxNode) -> None:
        """Puts the operators of a layer in the place of its last node. Raises `_Unknown`."""
        if node.held is None:
            raise _Unknown
        self.own = Quantisation(*node.held)
        if node.op == "Gather":
            self._quantised(self._looked_up(node))
            return
        if node.op not in ENDS or self.constants[node.inputs[ENDS[node.op]]].dtype != I8.numpy:
            raise _Unknown
        self._quantised(self._steps(node))

    def _looked_up(self, node: OnnxNode) -> str:
        """A function whose table this is, of integers or of the sums of a layer, which have a scale of their own. Raises `_Unknown`."""
        table, own, source = self.constants[node.inputs[0]], self.own, self._step(self._step(node.inputs[1]).inputs[0]).inputs[0]
        if (
            table.shape != (I8.high - I8.low + 1,)
            or table.dtype != I8.numpy
            or self.constants[self._step(node.inputs[1]).inputs[1]] != I8.low
        ):
            raise _Unknown
        if source in self.held and (op := function_of(table, self.held[source], own)) is not None:
            return self._put(op, [self._dequantised(source)])
        end = self._step(source)
        zero = int(self.constants[end.inputs[ENDS[end.op]]])
        if (found := function_and_scales(table, zero, own)) is None:
            raise _Unknown
        op, low, high = found
        if (scale := result_scale(low, high, self._scaled_operands(end))) is None:
            raise _Unknown
        self.own = self.held[source] = Quantisation(scale, zero)
        real = self._steps(end)
        self.nodes.append(replace(end, op="QuantizeLinear", inputs=(real, self._scale(), self._zero()), attributes={}))
        self.own = own
        return self._put(op, [self._dequantised(source)])

    def _scaled_operands(self, end: OnnxNode) -> list[Scaled]:
        """The scales and multipliers of what a layer multiplies by weights, or adds. Raises `_Unknown`."""
        if end.op != "QuantizeLinear":
            x, w, y = (self.constants[end.inputs[index]] for index in (1, 4, 6))
            return [Scaled(self.held[end.inputs[0]].scale, multiplier(float(x), w, float(y)), True)]
        last = self._step(end.inputs[0])
        last = self._step(last.inputs[0]) if last.op == "Clip" else last
        if last.op in ("Add", "Sub"):
            parts = [self._step(name).inputs for name in last.inputs]
            named = [(self._integers(part)[0], self.constants[factor]) for part, factor in parts]
            return [Scaled(self.held[name].scale, factor, False) for name, factor in named if name in self.held]
        if (product := self._step(last.inputs[0])).op == "Mul":
            left, right = (np.float32(self.held[self._integers(name)[0]].scale) for name in product.inputs)
            return [Scaled(float(left * right), self.constants[last.inputs[1]], False)]
        sums = self._step(self._step(product.inputs[0]).inputs[0])
        return [Scaled(self.held[term.inputs[0]].scale, self.constants[last.inputs[1]], True) for term in self._terms(sums)]

    def _steps(self, end: OnnxNode) -> str:
        """The real values of which the integers are, as QuantizeLinear or a product of integers ends them. Raises `_Unknown`."""
        if end.op == "QuantizeLinear":
            last = self._step(end.inputs[0])
            return self._clipped(self._real(self._step(last.inputs[0])), last) if last.op == "Clip" else self._real(last)
        return self._scaled(end)

    def _scaled(self, node: OnnxNode) -> str:
        """A product of integers with the real scales, where the file may have the multiplier in their place."""
        x, weights = node.inputs[0], node.inputs[3]
        named = [self.constants[node.inputs[index]] for index in (1, 4, 6)]
        factors = multiplier(float(named[0]), named[1], float(named[2]))
        if self._joins(node, factors):
            concat = self.made[x]
            return self._put("Concat", [self._dequantised(part) for part in concat.inputs], **concat.attributes)
        if int(self.constants[node.inputs[2]]) != self.held[x].zero_point:
            raise _Unknown
        scales = self._weight_scales(factors, x)
        axis = 0 if node.op == "QLinearConv" else 1
        real = self._put("DequantizeLinear", [weights, self._constant(scales, "scales")], axis=axis)
        if node.op == "QLinearMatMul":
            return self._put("MatMul", [self._dequantised(x), real])
        inputs = [self._dequantised(x), real]
        if len(node.inputs) > 8:
            steps = self._constant(np.float32(self.held[x].scale) * scales, "steps")
            inputs.append(self._put("DequantizeLinear", [node.inputs[8], steps], axis=0))
        return self._put("Conv", inputs, **node.attributes)

    def _joins(self, node: OnnxNode, factors: AnyArray) -> bool:
        """Whether a convolution only puts channels on one scale: each column has a one, and its part's scale and zero point."""
        concat, weights = self.made.get(node.inputs[0]), self.constants[node.inputs[3]]
        if concat is None or concat.op != "Concat" or len(node.inputs) < 9 or weights.size != len(weights) ** 2:
            return False
        columns = zip(factors.tolist(), (-self.constants[node.inputs[8]]).tolist(), strict=True)
        held = [self.held[part] for part in concat.inputs]
        parts = ((float(multiplier(each.scale, 1.0, self.own.scale)), each.zero_point) for each in held)
        return np.array_equal(weights.reshape(len(weights), -1), np.eye(len(weights))) and _runs(columns) == _runs(parts)

    def _real(self, node: OnnxNode) -> str:
        """The operator of the layer, on real values, whose steps end in this product or sum. Raises `_Unknown`."""
        if node.op in ("Add", "Sub"):
            return self._sum(node)
        if node.op != "Mul":
            raise _Unknown
        factor = self.constants[node.inputs[1]]
        before = self._step(node.inputs[0])
        if before.op == "Mul":
            return self._product(before, float(factor))
        if before.op == "Sub":
            return self._centred(node.inputs[0], float(factor))
        if before.op == "Conv" or self._step(before.inputs[0]).op == "ReduceSum":
            return self._average(before, factor)
        return self._dense(before, factor)

    def _sum(self, node: OnnxNode) -> str:
        """left · s + right · t, where s and t are the scales of both as shares of the result's."""
        scaled = [self._step(name) for name in node.inputs]
        factors = [float(self.constants[each.inputs[1]]) for each in scaled]
        return self._put(node.op, [self._centred(each.inputs[0], factor) for each, factor in zip(scaled, factors, strict=True)])

    def _product(self, node: OnnxNode, factor: float) -> str:
        """left · right · factor. Where one side is constant, its scale follows from the other's."""
        names = [self._integers(name)[0] for name in node.inputs]
        scales = [self.held[name].scale for name in names if name in self.held]
        if len(scales) == len(names):
            if float(multiplier(scales[0], scales[1], self.own.scale)) != factor:
                raise _Unknown
            return self._put("Mul", [self._dequantised(name) for name in names])
        sides = zip(names, node.inputs, strict=True)
        real = [self._dequantised(name) if name in self.held else self._centred(side, factor / scales[0]) for name, side in sides]
        return self._put("Mul", real)

    def _average(self, node: OnnxNode, factors: AnyArray) -> str:
        """The sums of windows times the share of each; windows at an edge may have fewer pixels."""
        if node.op == "Cast":
            values = self._step(self._step(node.inputs[0]).inputs[0])
            return self._put("GlobalAveragePool", [self._dequantised(self._step(values.inputs[0]).inputs[0])])
        windows = {name: node.attributes[name] for name in ("kernel_shape", "strides", "pads")}
        same = int((factors == factors.reshape(-1)[0]).all())
        return self._put("AveragePool", [self._dequantised(self._integers(node.inputs[0])[0])], count_include_pad=same, **windows)

    def _dense(self, node: OnnxNode, factors: AnyArray) -> str:
        """Products of integers, their sum and a bias, times the multiplier. The bias has the zero points of all operands in it."""
        total = self._step(node.inputs[0])
        bias = self.constants[total.inputs[1]].astype(np.int64)
        terms: list[str] = []
        steps: Float32 | None = None
        for product in self._terms(self._step(total.inputs[0])):
            x, weights = product.inputs
            if {self.constants[weights].shape[1:], bias.shape} != {factors.shape}:
                raise _Unknown
            scales = self._weight_scales(factors, x)
            bias = bias + self.held[x].zero_point * self.constants[weights].sum(axis=0, dtype=np.int64)
            real = self._put("DequantizeLinear", [weights, self._constant(scales, "scales")], axis=1)
            terms.append(self._put("MatMul", [self._dequantised(x), real]))
            steps = np.float32(self.held[x].scale) * scales if steps is None else steps
        made = terms[0]
        for term in terms[1:]:
            made = self._put("Add", [made, term])
        if not bias.any() or steps is None:
            return made
        inputs = [self._constant(bias.astype(np.int32), "bias"), self._constant(steps, "steps")]
        return self._put("Add", [made, self._put("DequantizeLinear", inputs, axis=0)])

    def _terms(self, node: OnnxNode) -> list[OnnxNode]:
        if node.op == "MatMulInteger":
            return [node]
        if node.op != "Add":
            raise _Unknown
        return [term for name in node.inputs for term in self._terms(self._step(name))]

    def _weight_scales(self, factors: AnyArray, x: str) -> Float32:
        """The scales of weights with which the product with x has these multipliers. Raises `_Unknown` where there are none."""
        ends = np.float32(self.held[x].scale), np.float32(self.own.scale)
        if (scales := weight_scales(factors, *ends)) is None:
            raise _Unknown
        return scales

    def _step(self, name: str) -> OnnxNode:
        return self.made[name]

    def _integers(self, name: str) -> tuple[str, str]:
        """The integers of which a value is, Sub(Cast(integers), zero), and the zero point."""
        centred = self._step(name)
        if centred.op != "Sub" or self._step(centred.inputs[0]).op != "Cast":
            raise _Unknown
        return self._step(centred.inputs[0]).inputs[0], centred.inputs[1]

    # what is written

    def _centred(self, name: str, factor: float) -> str:
        """The real values that Sub(Cast(integers), zero) are, which are `factor` of the result's; integers may be constant."""
        integers, zero = self._integers(name)
        if integers in self.held:
            if float(multiplier(self.held[integers].scale, 1.0, self.own.scale)) != factor:
                raise _Unknown
            return self._dequantised(integers)
        if self.constants[zero].size != 1:
            raise _Unknown
        scale = np.float32(factor * self.own.scale)
        return self._constant((self.constants[integers].astype(np.float32) - self.constants[zero]) * scale, "values")

    def _dequantised(self, name: str) -> str:
        scale, zero = self.held[name].scale, self.held[name].zero_point
        return self._put("DequantizeLinear", [name, self._constant(np.float32(scale), "scale"), self._constant(np.int8(zero), "zero")])

    def _clipped(self, real: str, clip: OnnxNode) -> str:
        low, high = (float(self.constants[name]) for name in clip.inputs[1:])
        if low == 0 and high == I8.high - self.own.zero_point:
            return self._put("Relu", [real])
        ends = [self._constant(np.float32(end * self.own.scale), role) for end, role in ((low, "low"), (high, "high"))]
        return self._put("Clip", [real, *ends])

    def _quantised(self, real: str) -> None:
        self.nodes.append(replace(self.last, op="QuantizeLinear", inputs=(real, self._scale(), self._zero()), attributes={}))

    def _scale(self) -> str:
        return self._constant(np.float32(self.own.scale), "scale")

    def _zero(self) -> str:
        return self._constant(np.int8(self.own.zero_point), "zero")

    def _put(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = self._fresh(op)
        self.nodes.append(OnnxNode(op, tuple(inputs), (name,), attributes, name))
        return name

    def _constant(self, value: AnyArray | np.float32 | np.int8, role: str) -> str:
        name = self._fresh(role)
        self.constants[name] = np.asarray(value)
        return name

    def _fresh(self, role: str) -> str:
        return f"{self.last.outputs[0]}.{role}.{len(self.nodes)}.{len(self.constants)}"


def _runs(values: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """The values without those that are equal to the one before."""
    return [value for value, _ in groupby(values)]
