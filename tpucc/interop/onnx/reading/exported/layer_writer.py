"""Operators of real values in the place of a layer's steps: what they are written with, under names that nothing has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.exported.layer_steps import LayerSteps, UnknownSteps
from tpucc.interop.onnx.reading.exported.weight_forms import Forms, Shared
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode, Weight
from tpucc.interop.onnx.scales import Use, of_constant, weight_scales
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import quantisation_of
from tpucc.numerics import AnyArray, Float32, dequantise, multiplier


class LayerWriter(LayerSteps):
    """The nodes and constants that are written, and the layer for which they are."""

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__(graph)
        self.nodes: list[OnnxNode] = []
        self.taken = {*self.constants, *(name for node in graph.nodes for name in node.outputs), *(value.name for value in graph.inputs)}
        self.weights = dict(graph.weights)
        """What constants are, where tpucc's export says so, by their names."""
        self.made_weights: dict[tuple[Weight, tuple[int, ...], bytes], str] = {}
        self.forms = Forms()
        self.shared: Mapping[str, Shared] = {}
        """The weights of which constants are several forms, by the names of these."""
        self.own_names: dict[str, str] = {}
        """Constants of the file in the place of which real values stand, by the names of these."""
        self.numbers = Counter[str]()
        """How often names have been taken already, by what they are for."""
        self.last = OnnxNode("", (), ())
        """The last node of the layer that is being read."""

    def _centred(self, name: str, factor: float, source: float = 1.0) -> str:
        """The real values that Sub(Cast(integers), zero) are, whose scale times `source` is `factor` of the result's. Integers may be
        constant: then they have a scale that they have again, if there is one with this factor."""
        integers, zero = self._integers(name)
        if integers in self.held:
            if float(multiplier(self.held[integers].scale, 1.0, self.own.scale)) != factor:
                raise UnknownSteps
            return self._dequantised(integers)
        use = Use(np.asarray([factor], np.float32), np.float32(source), np.float32(self.own.scale))
        again = of_constant(self.constants[integers], zero, self.format)
        self.forms.elements.setdefault(integers, []).append(use)
        self.forms.zeros[integers] = zero
        if integers in self.shared and self._has_again(self.shared[integers], use, zero):
            return self._source_weight(self.shared[integers], self.constants[integers])
        found = weight_scales([use], again)
        scale = np.float32(factor * self.own.scale / source) if found is None else found[0]
        return self._in_place_of(integers, (self.constants[integers].astype(np.float32) - zero) * scale)

    def _has_again(self, shared: Shared, use: Use, zero: int) -> bool:
        """Whether the values of a weight, beside a value of one scale, have a scale that gives this product, and this zero point."""
        held = quantisation_of(shared.values, self.format)
        return held.zero_point == zero and bool(use.gives(np.asarray([held.scale], np.float32)).all())

    def _dequantised(self, name: str) -> str:
        scale, zero = self.held[name].scale, self.held[name].zero_point
        return self._put("DequantizeLinear", [name, self._constant(np.float32(scale), "scale"), self._integer(zero)])

    def _parts(self, names: Sequence[str]) -> list[str]:
        """The real values of integers that stand side by side: constant ones are held as the result is."""
        return [self._dequantised(name) if name in self.held else self._part(name) for name in names]

    def _part(self, name: str) -> str:
        """The real values of a constant that is held as the result is."""
        self.forms.held.setdefault(name, []).append(self.own)
        if name in self.shared:
            return self._source_weight(self.shared[name], self.constants[name])
        return self._in_place_of(name, self._own(name))

    def _held(self, name: str) -> Quantisation:
        """How integers that stand side by side with others are held: constant ones as the result."""
        return self.own if name in self.constants else self.held[name]

    def _quantised(self, real: str) -> None:
        self.nodes.append(self.last.read_as("QuantizeLinear", (real, self._scale(), self._integer(self.own.zero_point)), {}))

    def _own(self, name: str) -> Float32:
        """The real values of constant integers of the result."""
        return dequantise(self.constants[name], self.own.scale, self.own.zero_point)

    def _scale(self) -> str:
        return self._constant(np.float32(self.own.scale), "scale")

    def _integer(self, zero: int) -> str:
        return self._constant(np.asarray(zero, self.format.numpy), "zero")

    def _put(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{self.last.outputs[0]}.{op}.{len(self.nodes)}.{len(self.constants)}"
        self.nodes.append(OnnxNode(op, tuple(inputs), (name,), attributes, name, of=self.last.of or self.last))
        return name

    def _in_place_of(self, integers: str, values: AnyArray) -> str:
        """Real values of a constant of the file, whose name they get if nothing reads it any more."""
        name = self._constant(values, "values")
        self.own_names[name] = integers
        if integers in self.weights:
            self.weights[name] = self.weights[integers]
        return name

    def _weight(self, weight: Weight, values: AnyArray) -> str:
        """A constant that is a weight of the source: one for all its uses with the same values."""
        content = weight, values.shape, values.tobytes()
        if content not in self.made_weights:
            name = self.made_weights[content] = self._constant(np.ascontiguousarray(values).reshape(values.shape), "values")
            self.weights[name] = weight
        return self.made_weights[content]

    def _source_weight(self, shared: Shared, form: AnyArray) -> str:
        """The weight in the place of a form of it, transposed where that is."""
        if shared.is_turned:
            return self._put("Transpose", [self._weight(shared.weight, shared.values)], perm=(1, 0))
        return self._weight(shared.weight, shared.laid_as(form))

    def _constant(self, value: AnyArray | np.float32, role: str) -> str:
        """A constant under a name that nothing has: the layer's with what it is for, and a number where that is taken."""
        wanted = name = f"{self.last.name or self.last.outputs[0]}.{role}"
        while name in self.taken:
            self.numbers[wanted] += 1
            name = f"{wanted}.{self.numbers[wanted]}"
        self.taken.add(name)
        self.constants[name] = np.asarray(value)
        return name
