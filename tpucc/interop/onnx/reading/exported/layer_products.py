"""Products of integers with weights, as the layers of a quantised export end in them, as products of real values.

The scales of weights follow from the multipliers, and the values of biases from their integers. What several layers read has values, and
scales, that all of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from tpucc.interop.onnx.reading.exported.layer_steps import UnknownSteps
from tpucc.interop.onnx.reading.exported.layer_writer import LayerWriter
from tpucc.interop.onnx.reading.exported.shared_weights import common_values, of_one_bias
from tpucc.interop.onnx.reading.exported.weight_forms import KERNEL_OF_ONNX, Shared
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import changed, named
from tpucc.interop.onnx.scales import Use, bias_integers, scales_with_one_bias, weight_scales
from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32, multiplier
from tpucc.numerics import weight_scales as columns_of


class ProductLayers(LayerWriter):
    """Reads products, in the form of one operator, QLinearConv and QLinearMatMul, and written out."""

    def __init__(
        self,
        joined: OnnxGraph,
        scales: Mapping[str, Float32],
        biases: Mapping[str, Float32],
        shared: Mapping[str, Shared] | None = None,
    ) -> None:
        """`scales` and `biases` are those of columns that all products with the weights of this name have, where that is known, and
        `shared` the weights of which constants are several forms."""
        super().__init__(joined)
        self.common_scales, self.common_biases = scales, biases
        self.shared = shared or {}
        self.biases: dict[str, list[tuple[AnyArray, float]]] = {}
        """By the names of weights, the integers of their products' biases, and the scales of the values that are multiplied."""
        self.bias_names: dict[str, str] = {}
        """By the names of weights, the constant that is the bias of all their products."""

    def _scaled(self, node: OnnxNode) -> str:
        """A product of integers with the real scales, where the file may have the multiplier in their place."""
        x, weights = node.inputs[0], node.inputs[3]
        self._require_scales(node)
        columns = self.constants[weights].shape[0 if node.op == "QLinearConv" else -1]
        found = multiplier(self._number(node.inputs[1]), self.constants[node.inputs[4]], self._number(node.inputs[6]))
        factors = np.broadcast_to(found, (columns,))
        if (factors <= 0).any():
            raise changed(f"{node.title}: a scale that isn't above zero")
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

    def _require_scales(self, node: OnnxNode) -> None:
        """The scales of the values and of the result are those that these have, or both are 1, where that of the weights is the multiplier.
        Raises `ProgramError` E1001 for other ones."""
        x, y = (self._number(node.inputs[at]) for at in (1, 6))
        held = self.held.get(node.inputs[0])
        if (x, y) not in ((1.0, 1.0), (held and held.scale, self.own.scale)):
            have = f"the scale {held.scale:g}" if held else "several scales"
            raise changed(f"{node.title}: the scales {x:g} and {y:g}, of values that have {have}, and a result that has {self.own.scale:g}")

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

    def _put_together(self, node: OnnxNode) -> str:
        """Integers of one scale behind one another: said again, as the compiler would find another scale for the whole."""
        return self._put("Concat", self._parts(node.inputs), **node.attributes)

    def _shares(self, names: Sequence[str]) -> list[float]:
        """The scales of integers as shares of the result's."""
        return [float(multiplier(self._held(name).scale, 1.0, self.own.scale)) for name in names]

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
            return self._weight(shared.weight, shared.of_product(self.constants[weights], is_kernel).transpose(KERNEL_OF_ONNX))
        return self._source_weight(shared, self.constants[weights])

    def _weight_scales(self, factors: AnyArray, x: str, weights: str, bias: tuple[str, AnyArray] | None = None) -> Float32:
        """The scales of weights with which the product with x has these multipliers: those that they have in all their products, where
        there are such, or those with which a bias is one value, if it is a weight of one. Raises `UnknownSteps` where there are none."""
        if factors.shape != (self.constants[weights].shape[0 if weights in self.forms.kernels else -1],):
            raise UnknownSteps
        use = Use(factors, np.float32(self.held[x].scale), np.float32(self.own.scale))
        self.forms.products.setdefault(weights, []).append(use)
        if weights in self.shared:
            values = self.shared[weights].of_product(self.constants[weights], weights in self.forms.kernels)
            return columns_of(values.reshape(-1, values.shape[-1]), per_channel=True)
        if (common := self.common_scales.get(weights)) is not None and use.gives(common).all():
            return common
        scales = self._scales_with_bias(use, bias, self.held[x].scale) if bias else None
        if scales is None and (scales := weight_scales([use])) is None:
            scales = weight_scales([self._with_any_of_zeros(use, weights, bias)])
        if scales is None:
            raise UnknownSteps
        self._require_finite(weights, scales)
        return scales

    def _with_any_of_zeros(self, use: Use, weights: str, bias: tuple[str, AnyArray] | None) -> Use:
        """With the multiplier of the scale 1 where a column's weights and bias are zeros, as in lanes of a `pad`: any gives 0."""
        columns = self.constants[weights] if weights in self.forms.kernels else self.constants[weights].T
        is_zero = ~columns.reshape(len(columns), -1).any(axis=1)
        if bias is not None:
            is_zero = is_zero & (np.asarray(bias[1]) == 0)
        return replace(use, multiplier=np.where(is_zero, use.x / use.y, use.multiplier))

    def _require_finite(self, weights: str, scales: Float32) -> None:
        """Weights with these scales of their columns are finite float32 numbers. Raises `ProgramError` E1001."""
        with np.errstate(over="ignore"):
            largest = scales * np.float32(WEIGHT_MAX)
        if not np.isfinite(largest).all():
            raise changed(
                f"{self.last.title}: the scale {scales[~np.isfinite(largest)][0]:g} of a column of {named(weights)}, as no weights have it"
            )

    def _scales_with_bias(self, use: Use, bias: tuple[str, AnyArray], x: float) -> Float32 | None:
        """The scales of weights with which a bias is that of the source, if this is a weight of one value; None where it is no such."""
        name, integers = bias
        weight, shared = self.weights.get(name), self.shared.get(name)
        if weight is None or not weight.is_single or not integers.any():
            return None
        wanted = None if shared is None else np.float32(shared.values.reshape(()) * (-1 if weight.is_subtracted else 1))
        return scales_with_one_bias(use, integers, x, wanted)


def _runs(values: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """The values without those that are equal to the one before."""
    return [value for value, _ in groupby(values)]
