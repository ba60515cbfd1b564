"""Layers that `tpucc export --quantized` has written out, as float32 operators between DequantizeLinear and QuantizeLinear again.

The export writes what the device does step by step: sums of integers, a product with the multiplier, QuantizeLinear with the scale 1. The
metadata of the last node say which scale its result really has. With it the steps are one operator on real values, from which the compiler
makes the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.scales import weight_scales
from tpucc.numerics import AnyArray, Float32

MOVES = frozenset({"Concat", "Identity", "MaxPool", "Pad", "Reshape", "Slice", "Transpose"})
"""What the export does with integers that keep their scale."""


class _Unknown(Exception):
    """The steps are none that are read back."""


def with_layers(graph: OnnxGraph) -> OnnxGraph:
    """The graph with layers as operators of real values. One whose steps aren't known stays as it is."""
    if all(node.scale is None for node in graph.nodes):
        return graph
    return _Layers(graph).read()


class _Layers:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.constants = dict(graph.constants)
        self.made = {name: node for node in graph.nodes for name in node.outputs}
        self.scales: dict[str, float] = {}
        """Of the integers."""
        self.nodes: list[OnnxNode] = []
        self.last = OnnxNode("", (), ())
        """The last node of the layer that is being read."""

    def read(self) -> OnnxGraph:
        for node in self.graph.nodes:
            start, self.last = len(self.nodes), node
            try:
                self._layer(node)
            except (_Unknown, KeyError):
                del self.nodes[start:]
                self.nodes.append(node)
            self._note(node)
        return replace(self.graph, nodes=self._needed(), constants=self.constants)

    def _note(self, node: OnnxNode) -> None:
        """Notes the scale of a node's integers."""
        if node.scale is not None:
            self.scales[node.outputs[0]] = node.scale
        elif node.op == "QuantizeLinear" and node.inputs[1] in self.constants:
            self.scales[node.outputs[0]] = float(self.constants[node.inputs[1]])
        elif node.op in MOVES and node.inputs[0] in self.scales:
            self.scales[node.outputs[0]] = self.scales[node.inputs[0]]

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
        if node.scale is None:
            raise _Unknown
        if node.op in ("QLinearConv", "QLinearMatMul"):
            self._scaled(node)
        elif node.op == "QuantizeLinear":
            real, clip = self._step(node.inputs[0]), None
            if real.op == "Clip":
                real, clip = self._step(real.inputs[0]), real
            self._quantised(self._clipped(self._real(real), clip))
        else:
            raise _Unknown

    def _scaled(self, node: OnnxNode) -> None:
        """The product with the real scales, where the file has the multiplier in their place."""
        x, y = self.scales[node.inputs[0]], self._own()
        named = [self.constants[node.inputs[index]] for index in (1, 4, 6)]
        scales = weight_scales(named[0] * named[1] / named[2], np.float32(x), np.float32(y))
        if scales is None:
            raise _Unknown
        x_scale, w_scale, y_scale = (
            self._constant(value, name) for value, name in ((np.float32(x), "x"), (scales, "w"), (np.float32(y), "y"))
        )
        inputs = node.inputs
        self.nodes.append(replace(node, inputs=(inputs[0], x_scale, *inputs[2:4], w_scale, inputs[5], y_scale, *inputs[7:])))

    def _real(self, node: OnnxNode) -> str:
        """The operator of the layer, on real values, whose steps end in this product or sum. Raises `_Unknown`."""
        if node.op in ("Add", "Sub"):
            return self._sum(node)
        factor = self.constants[node.inputs[1]]
        before = self._step(node.inputs[0])
        if before.op == "Mul":
            return self._product(before, float(factor))
        if before.op == "Conv" or self._step(before.inputs[0]).op == "ReduceSum":
            return self._average(before, factor)
        return self._dense(before, factor)

    def _sum(self, node: OnnxNode) -> str:
        """left · s + right · t, where s and t are the scales of both as shares of the result's."""
        scaled = [self._step(name) for name in node.inputs]
        factors = [float(self.constants[each.inputs[1]]) for each in scaled]
        operands = [self._centred(each.inputs[0], factor * self._own()) for each, factor in zip(scaled, factors, strict=True)]
        return self._put(node.op, operands)

    def _product(self, node: OnnxNode, factor: float) -> str:
        known = [self.scales[name] for name in (self._integers(each)[0] for each in node.inputs) if name in self.scales]
        scale = factor * self._own() / known[0]
        return self._put("Mul", [self._centred(name, scale) for name in node.inputs])

    def _average(self, node: OnnxNode, factors: AnyArray) -> str:
        """The sums of windows times the share of each; windows at an edge may have fewer pixels."""
        if node.op == "Cast":
            values = self._step(self._step(node.inputs[0]).inputs[0])
            return self._put("GlobalAveragePool", [self._centred(values.outputs[0])])
        pads = {"count_include_pad": int(factors.size == 1 or bool((factors == factors.reshape(-1)[0]).all()))}
        windows = {name: node.attributes[name] for name in ("kernel_shape", "strides", "pads")}
        return self._put("AveragePool", [self._centred(node.inputs[0])], **windows, **pads)

    def _dense(self, node: OnnxNode, multiplier: AnyArray) -> str:
        """Products of integers, their sum and a bias, times the multiplier. The bias has the zero points of all operands in it."""
        total = self._step(node.inputs[0])
        bias = self.constants[total.inputs[1]].astype(np.int64)
        products = self._terms(self._step(total.inputs[0]))
        terms: list[str] = []
        steps: Float32 | None = None
        for product in products:
            x, weights = product.inputs
            scales = weight_scales(multiplier, np.float32(self.scales[x]), np.float32(self._own()))
            zero = self.constants[self._zero(x)]
            if scales is None:
                raise _Unknown
            bias = bias + int(zero) * self.constants[weights].sum(axis=0, dtype=np.int64)
            real = self._put("DequantizeLinear", [weights, self._constant(scales, "scales")], axis=1)
            terms.append(self._put("MatMul", [self._dequantised(x), real]))
            steps = np.float32(self.scales[x]) * scales if steps is None else steps
        assert steps is not None
        made = terms[0]
        for term in terms[1:]:
            made = self._put("Add", [made, term])
        inputs = [self._constant(bias.astype(np.int32), "bias"), self._constant(steps, "steps")]
        return self._put("Add", [made, self._put("DequantizeLinear", inputs, axis=0)]) if bias.any() else made

    def _terms(self, node: OnnxNode) -> list[OnnxNode]:
        if node.op == "MatMulInteger":
            return [node]
        if node.op != "Add":
            raise _Unknown
        return [term for name in node.inputs for term in self._terms(self._step(name))]

    def _step(self, name: str) -> OnnxNode:
        return self.made[name]

    def _integers(self, name: str) -> tuple[str, str]:
        """The integers of which a value is, Sub(Cast(integers), zero), and the zero point."""
        centred = self._step(name)
        if centred.op != "Sub" or self._step(centred.inputs[0]).op != "Cast":
            raise _Unknown
        return self._step(centred.inputs[0]).inputs[0], centred.inputs[1]

    def _zero(self, name: str) -> str:
        """The constant that is the zero point of integers."""
        node = self.made[name]
        while node.op in MOVES:
            node = self.made[node.inputs[0]]
        return node.inputs[{"QuantizeLinear": 2, "QLinearConv": 7, "QLinearMatMul": 7}[node.op]]

    def _own(self) -> float:
        assert self.last.scale is not None
        return self.last.scale

    # what is written

    def _centred(self, name: str, scale: float | None = None) -> str:
        """The real values that Sub(Cast(integers), zero) are; `scale` is that of integers which are constant."""
        integers, zero = self._integers(name)
        if integers in self.scales:
            return self._dequantised(integers)
        if integers not in self.constants or scale is None:
            raise _Unknown
        values = (self.constants[integers].astype(np.float32) - self.constants[zero]) * np.float32(scale)
        return self._constant(values.astype(np.float32), "values")

    def _dequantised(self, name: str) -> str:
        scale = self._constant(np.float32(self.scales[name]), "scale")
        return self._put("DequantizeLinear", [name, scale, self._zero(name)])

    def _clipped(self, real: str, clip: OnnxNode | None) -> str:
        if clip is None:
            return real
        low, high = (float(self.constants[name]) * self._own() for name in clip.inputs[1:])
        zero = int(self.constants[self.last.inputs[2]])
        if low == 0 and high == (np.iinfo(np.int8).max - zero) * self._own():
            return self._put("Relu", [real])
        return self._put("Clip", [real, *(self._constant(np.float32(end), name) for end, name in ((low, "low"), (high, "high")))])

    def _quantised(self, real: str) -> None:
        scale = self._constant(np.float32(self._own()), "scale")
        self.nodes.append(replace(self.last, op="QuantizeLinear", inputs=(real, scale, self.last.inputs[2])))

    def _put(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = self._fresh(op)
        self.nodes.append(OnnxNode(op, tuple(inputs), (name,), attributes, name))
        return name

    def _constant(self, value: AnyArray | np.float32, role: str) -> str:
        name = self._fresh(role)
        self.constants[name] = np.asarray(value)
        return name

    def _fresh(self, role: str) -> str:
        return f"{self.last.outputs[0]}.{role}.{len(self.nodes)}.{len(self.constants)}"
