"""Layers that `tpucc export --quantized` has written out, as float32 operators between DequantizeLinear and QuantizeLinear again.

The export writes what the device does step by step: sums of integers, a product with the multiplier, QuantizeLinear with the scale 1. The
metadata of the last node say which scale and zero point its result really has. With them the steps are operators on real values, from which
the compiler makes the same integers. They say which function a table is of, too, which is believed if its table is the same
(`functions.py`). Steps that ONNX has no single operator for are joined before (`steps.py`), so that layers of 16 bits have the forms of
those of 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.functions import ARITHMETIC, Function, Step
from tpucc.interop.onnx.reading.exported.layer_products import ProductLayers
from tpucc.interop.onnx.reading.exported.layer_steps import UnknownSteps, described
from tpucc.interop.onnx.reading.exported.own_names import with_own_names
from tpucc.interop.onnx.reading.exported.steps import FLOAT32, REAL_VALUES, TABLE, with_joined_steps
from tpucc.interop.onnx.reading.exported.weight_forms import Shared
from tpucc.interop.onnx.reading.exported.window_shares import Shares
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import changed
from tpucc.interop.onnx.scales import common_bias, weight_scales
from tpucc.ir.types import Quantisation
from tpucc.numerics import Float32, multiplier
from tpucc.ops.rules import FLOAT32_MAX

MOVES = frozenset({"Concat", "Identity", "MaxPool", "Pad", "Reshape", "Slice", "Squeeze", "Transpose"})
"""What the export does with integers that keep their scale."""
WRITTEN: Mapping[str, tuple[str, Sequence[float], Mapping[str, object]]] = {
    "GeluTanh": ("Gelu", (), {"approximate": "tanh"}),
    "HardSigmoid": ("HardSigmoid", (), {"alpha": 1 / 6}),
    "Relu6": ("Clip", (0, 6), {}),
}
"""Steps of functions that are no operators of ONNX with its default attributes, as operators, numbers and attributes."""
LAYER = "Layer"
"""What stands for a layer that can't be read back: no operator of ONNX."""


def with_layers(graph: OnnxGraph) -> OnnxGraph:
    """The graph with layers as operators of real values. One whose steps don't say which becomes a node `Layer`.

    A weight that several layers read has several forms: where these have values in common, the layers are read a second time, with these.
    Steps of a recurrence have the same weights, and multipliers and integers of biases of their own. Where one scale gives all of these
    multipliers it is the weights', and one bias that gives all of these integers is that of all steps: likewise.
    """
    if not any(node.held for node in graph.nodes):
        real = with_joined_steps(graph, REAL_VALUES)
        same = all(node is other for node, other in zip(real.nodes, graph.nodes, strict=True))
        return graph if same else _Layers(graph, real, {}, {}).read()
    joined = with_joined_steps(graph)
    first = _Layers(graph, joined, {}, {})
    found = first.read()
    shared = first.forms.shared(first.constants, joined.weights, first.format)
    products = {weights: uses for weights, uses in first.forms.products.items() if len(uses) > 1 and weights not in shared}
    scales = {weights: common for weights, uses in products.items() if (common := weight_scales(uses)) is not None}
    if not scales and not shared:
        return found
    biases = {weights: common_bias(uses, scales[weights]) for weights, uses in first.biases.items() if weights in scales}
    return _Layers(graph, joined, scales, biases, shared).read()


class _Layers(ProductLayers):
    def __init__(
        self,
        graph: OnnxGraph,
        joined: OnnxGraph,
        scales: Mapping[str, Float32],
        biases: Mapping[str, Float32],
        shared: Mapping[str, Shared] | None = None,
    ) -> None:
        """`joined` has one node in the place of the last of several steps of `graph`; the others are as in `ProductLayers`."""
        super().__init__(joined, scales, biases, shared)
        self.written = graph.nodes

    def read(self) -> OnnxGraph:
        for node, written in zip(self.graph.nodes, self.written, strict=True):
            start, self.last = len(self.nodes), node
            self._require_one_scale(node)
            try:
                self._layer(node)
            except (UnknownSteps, ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # other files may say anything
                del self.nodes[start:]
                kept = node if node.op in MOVES or node.op == "DequantizeLinear" else written  # what is joined may be no operator of ONNX
                self.nodes.append(kept if node.held is None or node.op in MOVES else _unknown(node))
            self._note(node)
        weights = {name: weight for name, weight in self.weights.items() if weight == weight.plain}
        made = replace(self.graph, nodes=self._needed(), constants=self.constants, weights=weights)
        return with_own_names(made, self.own_names)

    def _require_one_scale(self, node: OnnxNode) -> None:
        """What makes real values of integers, or moves them with a scale of its own, has the scale and the zero point that the layer before
        says. Raises `ProgramError` E1001 where it hasn't."""
        if node.op == "MaxPool" and node.held is not None and self.held.get(node.inputs[0], said := Quantisation(*node.held)) != said:
            raise changed(f"{node.title}: {described(said)}, of integers that have others")
        held = self.held.get(node.inputs[0]) if node.op == "DequantizeLinear" and node.inputs else None
        if held is None or not self.constants.keys() >= set(node.inputs[1:]):
            return
        scale, *zero = (self.constants[name] for name in node.inputs[1:])
        found = Quantisation(float(scale.flat[0]), int(zero[0].flat[0]) if zero else 0) if scale.size == 1 else None
        if found != held:
            raise changed(f"{node.title}: {described(found) if found else 'several scales'}, of integers that have {described(held)}")

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
        """The nodes without the steps that nothing reads any more, and each value by the last node that was made for it."""
        alive, kept = {value.name for value in self.graph.outputs}, list[OnnxNode]()
        for node in reversed(self.nodes):
            if not alive.isdisjoint(node.outputs):
                alive.difference_update(node.outputs)
                alive.update(node.inputs)
                kept.append(node)
        return tuple(reversed(kept))

    # what is read

    def _layer(self, node: OnnxNode) -> None:
        """Puts the operators of a layer in the place of its last node. Raises `UnknownSteps`."""
        if node.held is None or node.domain:
            raise UnknownSteps
        self.own = Quantisation(*node.held)
        reading = {TABLE: self._looked_up, "Concat": self._joined, "Pad": self._surrounded}.get(node.op)
        self._quantised(reading(node) if reading else self._steps(node, node.function))

    def _joined(self, node: OnnxNode) -> str:
        self._require_moved(node.inputs)
        return self._put_together(node)

    def _surrounded(self, node: OnnxNode) -> str:
        """Likewise of integers with zeros around."""
        x, pads, value = node.inputs
        if node.attributes:
            raise UnknownSteps
        self._require_moved([x])
        return self._put("Pad", [self._dequantised(x), pads, self._constant(self._own(value), "value")])

    def _require_moved(self, names: Sequence[str]) -> None:
        """Integers that are only moved are held as before. Raises `UnknownSteps`."""
        if any(self.held.get(name, self.own) != self.own for name in names):
            raise UnknownSteps

    def _looked_up(self, node: OnnxNode) -> str:
        """The function that the file says, of integers or of the sums of a layer, which have a scale of their own. Raises `UnknownSteps`
        where it says none, and `ProgramError` E1001 where the table is that of another one."""
        table, own, source, function = self.constants[node.inputs[0]], self.own, node.inputs[1], node.function
        x = self.held.get(source) if node.before is None else Quantisation(*node.before)
        if table.dtype != self.format.numpy or function is None or x is None:
            raise UnknownSteps
        if not function.has_table(table, x, own, self.format):
            said = f"{function.text!r} from {described(x)} to {described(own)}"
            raise changed(f"{node.title}: its table isn't that of {said}, as its metadata say")
        if node.before is not None:
            end = self._step(source)
            self.own = self.held[source] = x
            real = self._steps(end)
            self.nodes.append(end.read_as("QuantizeLinear", (real, self._scale(), self._integer(x.zero_point)), {}))
            self.own = own
        real = self._dequantised(source)
        for index, step in enumerate(function.steps):
            real = self._applied(step, real, node if index == 0 else None)
        return real

    def _applied(self, step: Step, real: str, of: OnnxNode | None = None) -> str:
        """A function of a value, which has numbers where it needs them, or the weight that a node says."""
        if of is not None and of.number is not None and step.name in ARITHMETIC:
            number = -step.numbers[0] if of.is_subtracted else step.numbers[0]
            values = np.asarray(number, np.float32)
            self.forms.numbers.setdefault(of.number, []).append(values)
            weight = self._weight(of.number, values)
            if of.is_subtracted:
                return self._put("Sub", [real, weight])
            return self._put(step.name, [weight, real] if step.name == "Sub" else [real, weight])
        if step.name in ("Elu", "LeakyRelu"):
            return self._put(step.name, [real], alpha=step.numbers[0])
        if step.name == "Sub" and step.numbers == (0,):
            return self._put("Neg", [real])
        op, numbers, attributes = WRITTEN.get(step.name) or _bounded(step)
        named = [self._constant(np.float32(number), "number") for number in numbers]
        return self._put(op, [*named, real] if op == "Sub" else [real, *named], **attributes)

    def _steps(self, end: OnnxNode, function: Function | None = None) -> str:
        """The real values of which the integers are, as QuantizeLinear or a product of integers ends them, perhaps with a clamp that is
        this function. Raises `UnknownSteps`."""
        clip = end if end.op == "Clip" else None
        end = self._step(end.inputs[0]) if clip else end
        self._require_end(end)
        if end.op != "QuantizeLinear":
            return self._clamped(self._scaled(end), clip, function)
        last = self._step(end.inputs[0])
        if last.op == "Clip":
            if clip is not None:
                raise UnknownSteps
            clip, last = last, self._step(last.inputs[0])
        return self._clamped(self._real(last), clip, function)

    def _clamped(self, real: str, clip: OnnxNode | None, function: Function | None) -> str:
        """Values between bounds, which a Clip has in units of the result, or as its integers."""
        zero, low, high = self.own.zero_point, float(self.format.low), float(self.format.high)
        if clip is not None:
            bounds = [(self._number(name), self.constants[name].dtype) for name in clip.inputs[1:]]
            low, high = (bound + zero * (dtype != self.format.numpy) for bound, dtype in bounds)
            if not (low.is_integer() and high.is_integer()):
                raise UnknownSteps
        if function is not None and function.has_bounds(int(low), int(high), self.own, self.format):
            return self._applied(function.steps[0], real)
        if clip is None:
            return real
        if low == zero and high == self.format.high:
            return self._put("Relu", [real])
        ends = [((bound - zero) * self.own.scale, role) for bound, role in ((low, "low"), (high, "high"))]
        return self._put("Clip", [real, *(self._constant(np.float32(end), role) for end, role in ends)])

    def _real(self, node: OnnxNode) -> str:
        """The operator of the layer, on real values, whose steps end in this product or sum. Raises `UnknownSteps`."""
        if node.op in ("Add", "Sub"):
            return self._sum(node)
        if node.op != "Mul":
            raise UnknownSteps
        sums, factor = node.inputs
        before = self._step(sums)
        if before.op == "Mul":
            return self._product(before, self._number(factor))
        if before.op == "Sub":
            return self._centred(sums, self._number(factor))
        if before.op == "Conv" or self._step(before.inputs[0]).op == "ReduceSum":
            return self._average(node, before)
        return self._dense(self._step(self._cast(sums, FLOAT32), "Add"), self.constants[factor])

    def _sum(self, node: OnnxNode) -> str:
        """left · s + right · t, where s and t are the scales of both as shares of the result's."""
        scaled = [self._step(name, "Mul") for name in node.inputs]
        factors = [self._number(each.inputs[1]) for each in scaled]
        return self._put(node.op, [self._centred(each.inputs[0], factor) for each, factor in zip(scaled, factors, strict=True)])

    def _product(self, node: OnnxNode, factor: float) -> str:
        """left · right · factor. Where one side is constant, its scale follows; a product with 1 only changes the scale."""
        names, zeros = zip(*map(self._integers, node.inputs), strict=True)
        scales = [self.held[name].scale for name in names if name in self.held]
        if len(scales) == len(names):
            if float(multiplier(scales[0], scales[1], self.own.scale)) != factor:
                raise UnknownSteps
            return self._put("Mul", [self._dequantised(name) for name in names])
        x, other = names
        if x in self.held and self.constants[other].size == 1 and int(self.constants[other].reshape(())) - zeros[1] == 1:
            if float(multiplier(scales[0], 1.0, self.own.scale)) != factor:
                raise UnknownSteps
            return self._dequantised(x)
        sides = zip(names, node.inputs, strict=True)
        real = [self._dequantised(name) if name in self.held else self._centred(side, factor, scales[0]) for name, side in sides]
        return self._put("Mul", real)

    def _average(self, node: OnnxNode, sums: OnnxNode) -> str:
        """The sums of windows times the share of each; windows at an edge may have fewer pixels. The operator's rule knows the image."""
        if sums.op == "Conv":
            op, (x, windows) = "AveragePool", self._sums_of_windows(sums)
        else:
            op, x, windows = "GlobalAveragePool", self._sums_of_image(node.inputs[0]), {}
        pixel = multiplier(self.held[x].scale, 1.0, self.own.scale)
        return self._put(op, [self._dequantised(x)], **windows, shares=Shares(node.title, pixel, self.constants[node.inputs[1]]))


def _bounded(step: Step) -> tuple[str, Sequence[float], Mapping[str, object]]:
    """A step as ONNX's operator, its numbers and attributes: a clamp whose other bound is the largest float32 number is Max or Min."""
    if step.name == "Clip" and FLOAT32_MAX in map(abs, step.numbers):
        low, high = step.numbers
        return ("Max", (low,), {}) if high == FLOAT32_MAX else ("Min", (high,), {})
    return step.name, step.numbers, {}


def _unknown(node: OnnxNode) -> OnnxNode:
    """What stands for a layer that can't be read back, which may be one with a table."""
    return node.read_as(LAYER, (), {"table": node.op in (TABLE, "Gather")})
