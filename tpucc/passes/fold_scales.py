"""Scales and offsets fold: into weights, into each other, and away when they change nothing.

Sums and products are reassociated in float32, so that results may differ in the last bits. Constants that would overflow aren't folded.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, Node
from tpucc.numerics import Float32
from tpucc.ops import facts_of
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.fuse_bias import is_open_product
from tpucc.passes.rewriter import Rewriter, as_columns, as_reshape, constant_of, is_pinned, is_view


@dataclass(frozen=True)
class FoldScales(Pass):
    """Folds what only scales, shifts, reshapes or transposes.

    | before | after |
    |---|---|
    | `(x @ w) * s`, one s a column or one for all | `x @ (w * s)`; likewise for `conv2d(x, w)` |
    | `(x @ w + b) * s` | `x @ (w * s) + b * s` |
    | `(x + a) - b`, `a - (b - x)`, `(x * a) * b` | `x + (a - b)`, `x + (a - b)`, `x * (a * b)` |
    | `x + 0`, `x - 0`, `x * 1`, a reshape to the same shape | `x` |
    | a reshape of a reshape, a transpose of a transpose | one of them, or none |
    """

    name = "fold-scales"
    summary = "multiplies scales into weights, and joins neighbouring constants, reshapes and transposes"
    level = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        return _Folder(graph, self.name).rewrite(_Folder.fold)


@dataclass(frozen=True, slots=True)
class _WithConstant:
    """An element-wise operator with one constant operand: `x * values`, or `sign * x + values`."""

    x: Node
    constant: Node
    values: Float32
    sign: int = 1


Folded = tuple[Node, ...]
"""A node in another form, and behind it the nodes that it swallowed: those that nothing else reads."""


class _Folder(Rewriter):
    """Brings one node after the other into its simplest form."""

    def fold(self, node: Node) -> bool:
        """Applies rules until none holds; each swallows a node or drops this one, so that this ends."""
        # lab 9 begin: leave out what changes no value, and join constants
        swallowed: list[Node] = []
        while (folded := self._simpler(node)) is not None:
            if isinstance(folded, str):
                self.alias(node, folded)
                return True
            node, *others = folded
            swallowed += others
        self.put(node, *swallowed)
        return True
        # lab 9 end

    def _simpler(self, node: Node) -> Folded | str | None:
        """The node in a simpler form, or the name of the one that takes its place; None when no rule holds."""
        if facts_of(node.op).signs:
            return self._offset(node)
        if node.op == "mul":
            return self._scale(node)
        if is_view(node):
            return self._reshape(node)
        return self._transpose(node) if isinstance(node.attributes, TransposeAttributes) else None

    def _offset(self, node: Node) -> Folded | str | None:
        """`x + 0` and `(x + a) + b`, with their subtractions: `s2 * (s1 * x + c1) + c2 = (s2 * s1) * x + (s2 * c1 + c2)`."""
        outer = self._sum(node)
        if outer is None:
            return None
        if outer.sign > 0 and not outer.values.any() and _stays(node, outer.x):
            return outer.x.name
        inner = self._sum(outer.x) if self.is_free(outer.x) else None
        if inner is None or (constant := self._joined(np.float32(outer.sign) * inner.values, outer, inner, np.add)) is None:
            return None
        if outer.sign * inner.sign > 0:
            return (replace(node, op="add", operands=(inner.x.name, constant.name)), outer.x)
        return (replace(node, op="sub", operands=(constant.name, inner.x.name)), outer.x)

    def _scale(self, node: Node) -> Folded | str | None:
        """`x * 1`, `(x * a) * b`, `(x @ w) * s` and `(x @ w + b) * s`."""
        outer = self._product(node)
        if outer is None:
            return None
        if (outer.values == 1).all() and _stays(node, outer.x):
            return outer.x.name
        if is_open_product(self, outer.x):
            return self._into_weights(node, outer)
        if facts_of(outer.x.op).signs:
            return self._past_bias(node, outer)
        inner = self._product(outer.x) if self.is_free(outer.x) else None
        if inner is None or (constant := self._joined(inner.values, outer, inner, np.multiply)) is None:
            return None
        return (replace(node, operands=(inner.x.name, constant.name)), outer.x)

    def _into_weights(self, node: Node, scale: _WithConstant) -> Folded | None:
        product = scale.x
        if product.type.shape != node.type.shape or (names := self._scaled_weights(product, scale.constant)) is None:
            return None
        return (replace(node, op=product.op, operands=(product.operands[0], *names), attributes=product.attributes), product)

    def _past_bias(self, node: Node, scale: _WithConstant) -> Folded | None:
        """`(x @ w + b) * s` as the sum of a product with `w * s` and `b * s`; `b - x @ w` stays."""
        total = scale.x
        inner = self._sum(total) if self.is_free(total) else None
        if inner is None or inner.sign < 0 or not is_open_product(self, inner.x):
            return None
        if not node.type.shape == total.type.shape == inner.x.type.shape:
            return None
        bias = self._joined(inner.values, scale, inner, np.multiply)
        names = self._scaled_weights(inner.x, scale.constant) if bias is not None else None
        if bias is None or names is None:
            return None
        scaled = replace(inner.x, operands=(inner.x.operands[0], *names), origin=inner.x.origin.merged(scale.constant.origin))
        if (scale.values == 0).all():
            return (replace(scaled, name=node.name, type=node.type, origin=node.origin), total, inner.x)
        product = self.put(replace(scaled, name=self.fresh(scaled.name)))
        return (replace(node, op="add", operands=(product.name, bias.name)), total, inner.x)

    def _scaled_weights(self, product: Node, factor: Node) -> tuple[str, ...] | None:
        """The names of a product's weights, and its bias if it has one, with their columns scaled; None when that can't be."""
        value = constant_of(factor)
        columns = None if value is None else as_columns(value, product.type)
        if columns is None:
            return None
        scaled = [self._scaled_columns(self.nodes[name], columns, factor) for name in product.operands[1:]]
        names = tuple(name for name in scaled if name is not None)
        return names if len(names) == len(scaled) else None

    def _scaled_columns(self, node: Node, columns: Constant, factor: Node) -> str | None:
        """The name of a constant with its columns scaled, made once however many products share it; None when that overflows."""

        def make() -> str | None:
            value = constant_of(node)
            scaled = None if value is None else _finite(np.multiply, value.data, columns.data)
            return None if scaled is None else self.constant(node.name, Constant(scaled), node.origin.merged(factor.origin)).name

        return self.once((node.name, factor.name), make)

    def _reshape(self, node: Node) -> Folded | str | None:
        (x,) = self.operands(node)
        if _stays(node, x):
            return x.name
        return self._past(x, as_reshape(node, x.name)) if is_view(x) and not is_pinned(x) else None

    def _transpose(self, node: Node) -> Folded | str | None:
        (x,) = self.operands(node)
        perm = _perm(node)
        if perm == tuple(range(len(perm))) and _stays(node, x):
            return x.name
        if not isinstance(x.attributes, TransposeAttributes) or is_pinned(x):
            return None
        inner = _perm(x)
        return self._past(x, replace(node, attributes=TransposeAttributes(tuple(inner[axis] for axis in perm))))

    def _past(self, x: Node, node: Node) -> Folded:
        """The node reads what its operand `x` reads."""
        return (replace(node, operands=x.operands), *((x,) if self.is_free(x) else ()))

    def _sum(self, node: Node) -> _WithConstant | None:
        signs = facts_of(node.op).signs
        found = self._with_constant(node) if signs else None
        if found is None or min(signs) > 0:
            return found
        turned = node.operands[1] == found.constant.name
        return replace(found, values=np.negative(found.values)) if turned else replace(found, sign=-1)

    def _product(self, node: Node) -> _WithConstant | None:
        return self._with_constant(node) if node.op == "mul" else None

    def _with_constant(self, node: Node) -> _WithConstant | None:
        for x, constant in itertools.permutations(self.operands(node)):
            if (value := constant_of(constant)) is not None and constant_of(x) is None:
                return _WithConstant(x, constant, value.data)
        return None

    def _joined(self, first: Float32, outer: _WithConstant, inner: _WithConstant, function: np.ufunc) -> Node | None:
        """One constant for two, named after the outer; None when it would be larger than both, or not finite."""
        size = np.broadcast(first, outer.values).size
        values = _finite(function, first, outer.values) if size <= max(first.size, outer.values.size) else None
        if values is None:
            return None
        return self.constant(outer.constant.name, Constant(values), inner.constant.origin.merged(outer.constant.origin))


def _stays(node: Node, x: Node) -> bool:
    """Whether a node that computes nothing can be dropped for its operand."""
    return node.type.shape == x.type.shape and node.type.dtype == x.type.dtype and not is_pinned(node)


def _perm(node: Node) -> tuple[int, ...]:
    attributes = node.attributes
    assert isinstance(attributes, TransposeAttributes)
    return tuple(axis % len(attributes.perm) for axis in attributes.perm)


def _finite(function: np.ufunc, a: Float32, b: Float32) -> Float32 | None:
    with np.errstate(all="ignore"):
        result = np.asarray(function(a, b), np.float32)
    return result if np.isfinite(result).all() else None
