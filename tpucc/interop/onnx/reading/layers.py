"""Layers that `tpucc export --quantized` has written out, as float32 operators between DequantizeLinear and QuantizeLinear again.

The export writes what the device does step by step: sums of integers, a product with the multiplier, QuantizeLinear with the scale 1. The
metadata of the last node say which scale and zero point its result really has. With them the steps are operators on real values, from which
the compiler makes the same integers. They say which function a table is of, too, which is believed if its table is the same
(`functions.py`). Steps that ONNX has no single operator for are joined before (`steps.py`), so that layers of 16 bits have the forms of
those of 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from tpucc.interop.onnx.functions import ARITHMETIC, Function, Step
from tpucc.interop.onnx.reading.layer_steps import UnknownSteps, described
from tpucc.interop.onnx.reading.layer_writer import LayerWriter
from tpucc.interop.onnx.reading.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.own_names import with_own_names
from tpucc.interop.onnx.reading.problems import malformed
from tpucc.interop.onnx.reading.shared_weights import common_values, of_one_bias
from tpucc.interop.onnx.reading.steps import FLOAT32, REAL_VALUES, TABLE, with_joined_steps
from tpucc.interop.onnx.reading.weight_forms import KERNEL_OF_ONNX, Shared
from tpucc.interop.onnx.reading.window_shares import Shares
from tpucc.interop.onnx.scales import Use, bias_integers, common_bias, scales_with_one_bias, weight_scales
from tpucc.ir.types import Quantisation
from tpucc.numerics import AnyArray, Float32, multiplier
from tpucc.numerics import weight_scales as columns_of
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


class _Layers(LayerWriter):
    def __init__(
        self,
        graph: OnnxGraph,
        joined: OnnxGraph,
        scales: Mapping[str, Float32],
        biases: Mapping[str, Float32],
        shared: Mapping[str, Shared] | None = None,
    ) -> None:
        """`joined` has one node in the place of the last of several steps of `graph`. `scales` and `biases` are those of columns that all
        products with the weights of this name have, where that is known, and `shared` the weights of which constants are several forms."""
        super().__init__(joined)
        self.written = graph.nodes
        self.common_scales, self.common_biases = scales, biases
        self.shared = shared or {}
        self.biases: dict[str, list[tuple[AnyArray, float]]] = {}
        """By the names of weights, the integers of their products' biases, and the scales of the values that are multiplied."""
        self.bias_names: dict[str, str] = {}
        """By the names of weights, the constant that is the bias of all their products."""

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
            raise malformed(f"{node.title}: {described(said)}, of integers that have others")
        held = self.held.get(node.inputs[0]) if node.op == "DequantizeLinear" and node.inputs else None
        if held is None or not self.constants.keys() >= set(node.inputs[1:]):
            return
        scale, *zero = (self.constants[name] for name in node.inputs[1:])
        found = Quantisation(float(scale.flat[0]), int(zero[0].flat[0]) if zero else 0) if scale.size == 1 else None
        if found != held:
            raise malformed(f"{node.title}: {described(found) if found else 'several scales'}, of integers that have {described(held)}")

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
        if node.held is None:
            raise UnknownSteps
        self.own = Quantisation(*node.held)
        reading = {TABLE: self._looked_up, "Concat": self._joined, "Pad": self._surrounded}.get(node.op)
        self._quantised(reading(node) if reading else self._steps(node, node.function))

    def _joined(self, node: OnnxNode) -> str:
        self._require_moved(node.inputs)
        return self._put_together(node)

    def _put_together(self, node: OnnxNode) -> str:
        """Integers of one scale behind one another: said again, as the compiler would find another scale for the whole."""
        return self._put("Concat", self._parts(node.inputs), **node.attributes)

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
            raise malformed(f"{node.title}: its table isn't that of {said}, as its metadata say")
        if node.before is not None:
            end = self._step(source)
            self.own = self.held[source] = x
            real = self._steps(end)
            self.nodes.append(replace(end, op="QuantizeLinear", inputs=(real, self._scale(), self._integer(x.zero_point)), attributes={}))
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

    def _scaled(self, node: OnnxNode) -> str:
        """A product of integers with the real scales, where the file may have the multiplier in their place."""
        x, weights = node.inputs[0], node.inputs[3]
        columns = self.constants[weights].shape[0 if node.op == "QLinearConv" else -1]
        found = multiplier(self._number(node.inputs[1]), self.constants[node.inputs[4]], self._number(node.inputs[6]))
        factors = np.broadcast_to(found, (columns,))
        if (factors <= 0).any():
            raise malformed(f"{node.title}: a scale that isn't above zero")
        zero = self._number(node.inputs[2])
        if zero == 0 and self._joins(node, factors):
            return self._put_together(self.made[x])
        own = self.held[x].zero_point
        if node.op == "QLinearConv":
            name, bias = (node.inputs[8], self.constants[node.inputs[8]]) if len(node.inputs) > 8 else ("", np.zeros(1))
            if zero != own:
                bias = bias + self._folded(node, x, int(zero))
            return self._convolved(node, x, weights, factors, (name, bias))
        self._require_zero(node, zero, x)
        real = self._real_weights(weights, self._weight_scales(factors, x, weights))
        return self._put("MatMul", [self._dequantised(x), real])

    def _folded(self, node: OnnxNode, x: str, zero: int) -> AnyArray:
        """What the zero point of x adds to a convolution of single pixels that takes another one off it, as it has the rest in its bias.
        Raises `ProgramError` E1001 for other windows."""
        weights = self.constants[node.inputs[3]]
        if weights.shape[2:] != (1, 1) or any(node.attributes.get("pads", ())):
            self._require_zero(node, zero, x)
        return np.asarray((self.held[x].zero_point - zero) * weights.sum(axis=(1, 2, 3), dtype=np.int64))

    def _joins(self, node: OnnxNode, factors: AnyArray) -> bool:
        """Whether a convolution only puts channels on one scale: each column has a one, and its part's scale and zero point."""
        if not self._selects(node):
            return False
        names = self.made[node.inputs[0]].inputs
        columns = zip(factors.tolist(), (-self.constants[node.inputs[8]]).tolist(), strict=True)
        parts = ((factor, self._held(name).zero_point) for name, factor in zip(names, self._shares(names), strict=True))
        return _runs(columns) == _runs(parts)

    def _selects(self, node: OnnxNode) -> bool:
        """Whether each column of a convolution of several values side by side is one channel of them."""
        concat, weights = self.made.get(node.inputs[0]), self.constants[node.inputs[3]]
        if concat is None or concat.op != "Concat" or concat.attributes["axis"] != 1 or len(node.inputs) < 9:
            return False
        if node.attributes != {"kernel_shape": (1, 1)} or weights.size != len(weights) ** 2:
            return False
        return np.array_equal(weights.reshape(len(weights), -1), np.eye(len(weights)))

    def _joins_parts(self, products: Sequence[OnnxNode], factors: AnyArray, bias: AnyArray) -> bool:
        """Likewise of products of matrices, where each part has the rows of its channels."""
        names, rows = zip(*(product.inputs for product in products), strict=True)
        counts = [len(self.constants[name]) for name in rows]
        wanted, zeros = np.repeat(self._shares(names), counts), np.repeat([self._held(name).zero_point for name in names], counts)
        return self._selects_rows(products) and np.array_equal(factors, wanted.astype(np.float32)) and np.array_equal(bias, -zeros)

    def _selects_rows(self, products: Sequence[OnnxNode]) -> bool:
        """Whether each column of a sum of products is one channel of one of the values."""
        weights = [self.constants[product.inputs[1]] for product in products]
        rows = sum(map(len, weights))
        return {array.shape[1:] for array in weights} == {(rows,)} and np.array_equal(np.concatenate(weights), np.eye(rows))

    def _shares(self, names: Sequence[str]) -> list[float]:
        """The scales of integers as shares of the result's."""
        return [float(multiplier(self._held(name).scale, 1.0, self.own.scale)) for name in names]

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

    def _dense(self, total: OnnxNode, factors: AnyArray) -> str:
        """Products of integers, their sum and a bias, times the multiplier. The bias has the zero points of all operands in it."""
        bias = self.constants[total.inputs[1]].astype(np.int64)
        if bias.shape != factors.shape:
            raise UnknownSteps
        products = self._terms(self._step(total.inputs[0]))
        if len({product.op for product in products}) > 1:
            raise UnknownSteps
        if products[0].op == "ConvInteger":
            (product,) = products
            x, weights = product.inputs
            attributes = dict(product.attributes)
            outside = attributes.pop("outside", 0)
            zero = self.held[x].zero_point
            if (any(attributes["pads"]) and outside != zero) or bias.shape[1:] != (1, 1):
                raise UnknownSteps
            own = bias.reshape(-1) + zero * self.constants[weights].sum(axis=(1, 2, 3), dtype=np.int64)
            return self._convolved(replace(product, attributes=attributes), x, weights, factors.reshape(-1), (total.inputs[1], own))
        if products[0].inputs[1] in self.held:
            return self._of_computed(products, factors, bias)
        if len(products) > 1 and self._joins_parts(products, factors, bias):
            return self._put("Concat", self._parts([product.inputs[0] for product in products]), axis=-1)
        terms: list[str] = []
        first: tuple[str, str, Float32] | None = None
        bias = bias + self._zero_points(products, factors)
        for x, weights in (product.inputs for product in products):
            scales = self._weight_scales(factors, x, weights, None if first else (total.inputs[1], bias))
            real = self._real_weights(weights, scales)
            terms.append(self._put("MatMul", [self._dequantised(x), real]))
            first = first or (weights, x, scales)
        made = terms[0]
        for term in terms[1:]:
            made = self._put("Add", [made, term])
        if not bias.any() or first is None:
            return made
        op, added = self._bias((total.inputs[1], bias), *first)
        return self._put(op, [made, added])

    def _zero_points(self, products: Sequence[OnnxNode], factors: AnyArray) -> AnyArray:
        """What the zero points of the operands take off the bias. Raises `UnknownSteps` for weights of other columns."""
        if any(self.constants[product.inputs[1]].shape[1:] != factors.shape for product in products):
            raise UnknownSteps
        operands = [product.inputs for product in products]
        folded: AnyArray = sum(self.held[x].zero_point * self.constants[w].sum(axis=0, dtype=np.int64) for x, w in operands)
        return folded

    def _of_computed(self, products: Sequence[OnnxNode], factors: AnyArray, bias: AnyArray) -> str:
        """A product whose weights the network computes. Both sides have the zero point 0, so that there is no bias."""
        (product,) = products
        left, right = (self.held[name] for name in product.inputs)
        if bias.any() or left.zero_point or right.zero_point or (factors != multiplier(left.scale, right.scale, self.own.scale)).any():
            raise UnknownSteps
        return self._put("MatMul", [self._dequantised(name) for name in product.inputs])

    def _convolved(self, node: OnnxNode, x: str, weights: str, factors: AnyArray, bias: tuple[str, AnyArray]) -> str:
        """A convolution with weights that have these multipliers, and a bias: its name and its integers."""
        self.forms.kernels.add(weights)
        scales = self._weight_scales(factors, x, weights, bias)
        real = self._real_weights(weights, scales)
        inputs = [self._dequantised(x), real]
        if not bias[1].any():
            return self._put("Conv", inputs, **node.attributes)
        op, added = self._bias(bias, weights, x, scales)
        if op == "Add" and self.constants[added].shape == scales.shape:
            return self._put("Conv", [*inputs, added], **node.attributes)
        return self._put(op, [self._put("Conv", inputs, **node.attributes), added])

    def _bias(self, bias: tuple[str, AnyArray], weights: str, x: str, scales: Float32) -> tuple[str, str]:
        """The operator that adds a bias to a product with weights, or takes it off, and its real values: those of all products with them,
        where they have these integers, else the float32 numbers nearest to the integers."""
        (name, integers), scale = bias, self.held[x].scale
        self.biases.setdefault(weights, []).append((integers, scale))
        self.forms.biases.setdefault(name, []).append((integers, scale, scales))
        shared, weight = self.shared.get(name), self.weights.get(name)
        if weight is not None and weight.is_single:
            claim = of_one_bias(integers, scale, scales, weight.is_subtracted)
            tried = shared.values.reshape(1) if shared is not None else None
            if (value := tried if tried is not None and claim.has(tried) else common_values([claim])) is not None:
                return "Sub" if weight.is_subtracted else "Add", self._weight(weight.plain, value.reshape(weight.shape))
        elif shared is not None:
            values = shared.values.reshape(integers.shape)
            if np.array_equal(bias_integers(values, scale, scales), integers):
                return "Add", self._weight(shared.weight, values)
        common = self.common_biases.get(weights)
        if common is None or not np.array_equal(bias_integers(common, scale, scales), integers):
            return "Add", self._own_bias(name, (integers * (scale * scales.astype(np.float64))).astype(np.float32))
        if weights not in self.bias_names:
            self.bias_names[weights] = self._own_bias(name, common)
        return "Add", self.bias_names[weights]

    def _own_bias(self, name: str, values: Float32) -> str:
        """Real values of a bias. Those of columns are no weight of one value, whatever the file says."""
        is_other = name in self.weights and self.weights[name].is_single and values.size > 1
        return self._constant(values, "bias") if is_other else self._in_place_of(name, values)

    def _terms(self, node: OnnxNode) -> list[OnnxNode]:
        if node.op in ("ConvInteger", "MatMulInteger"):
            return [node]
        if node.op != "Add":
            raise UnknownSteps
        return [term for name in node.inputs for term in self._terms(self._step(name))]

    def _real_weights(self, weights: str, scales: Float32) -> str:
        """The real values of weights with these scales of their columns: those of the source, where several layers read them."""
        is_kernel = weights in self.forms.kernels
        if (shared := self.shared.get(weights)) is None:
            return self._put("DequantizeLinear", [weights, self._constant(scales, "scales")], axis=0 if is_kernel else 1)
        if is_kernel:
            return self._weight(shared.weight, shared.values.transpose(KERNEL_OF_ONNX))
        return self._source_weight(shared, shared.turned)

    def _weight_scales(self, factors: AnyArray, x: str, weights: str, bias: tuple[str, AnyArray] | None = None) -> Float32:
        """The scales of weights with which the product with x has these multipliers: those that they have in all their products, where
        there are such, or those with which a bias is one value, if it is a weight of one. Raises `UnknownSteps` where there are none."""
        if factors.shape != (self.constants[weights].shape[0 if weights in self.forms.kernels else -1],):
            raise UnknownSteps
        use = Use(factors, np.float32(self.held[x].scale), np.float32(self.own.scale))
        self.forms.products.setdefault(weights, []).append(use)
        if weights in self.shared:
            values = self.shared[weights].turned
            return columns_of(values.reshape(-1, values.shape[-1]), per_channel=True)
        if (common := self.common_scales.get(weights)) is not None and use.gives(common).all():
            return common
        scales = self._scales_with_bias(use, bias, self.held[x].scale) if bias else None
        if scales is None and (scales := weight_scales([use])) is None:
            raise UnknownSteps
        return scales

    def _scales_with_bias(self, use: Use, bias: tuple[str, AnyArray], x: float) -> Float32 | None:
        """The scales of weights with which a bias is that of the source, if this is a weight of one value; None where it is no such."""
        name, integers = bias
        weight, shared = self.weights.get(name), self.shared.get(name)
        if weight is None or not weight.is_single or not integers.any():
            return None
        wanted = None if shared is None else np.float32(shared.values.reshape(()) * (-1 if weight.is_subtracted else 1))
        return scales_with_one_bias(use, integers, x, wanted)


def _bounded(step: Step) -> tuple[str, Sequence[float], Mapping[str, object]]:
    """A step as ONNX's operator, its numbers and attributes: a clamp whose other bound is the largest float32 number is Max or Min."""
    if step.name == "Clip" and FLOAT32_MAX in map(abs, step.numbers):
        low, high = step.numbers
        return ("Max", (low,), {}) if high == FLOAT32_MAX else ("Min", (high,), {})
    return step.name, step.numbers, {}


def _unknown(node: OnnxNode) -> OnnxNode:
    """What stands for a layer that can't be read back, which may be one with a table."""
    return replace(node, op=LAYER, inputs=(), attributes={"table": node.op in (TABLE, "Gather")})


def _runs(values: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """The values without those that are equal to the one before."""
    return [value for value, _ in groupby(values)]
