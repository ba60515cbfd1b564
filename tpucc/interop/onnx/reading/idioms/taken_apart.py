"""What exporters take apart is put together again: the logistic function, softplus, GELU, SiLU, hard swish, normalisation of layers, and
local response normalisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.idioms.layer_norms import LayerNorms, number_of, one_operator, short
from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops.lrn import LrnAttributes, summed
from tpucc.ops.pad import PadAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.dead_code import live

CLOSE = 1e-4
"""The relative difference of a constant that is still meant: exporters round them."""
PAST_ONE = 17.0
"""From here on 1 + exp(-x) is 1 in float32, and log(1 + exp(x)) is x."""
DEEP = 5
"""Products and roots, one in another, that a power is made of: x^1.75 has four."""


def recognised(graph: Graph, erf: Mapping[str, str], weights: Mapping[str, AnyArray]) -> Graph:
    """The graph with these functions as one operator each, and without what nothing reads any more. `erf` are the nodes that compute the
    error function, and their operands; `weights` the arrays of weights by their keys."""
    found = _Idioms(graph, erf, weights)
    for node in graph:
        found.nodes[node.name] = found.better(node)
    return live(graph.with_nodes(found.nodes.values()))


class _Idioms:
    def __init__(self, graph: Graph, erf: Mapping[str, str], weights: Mapping[str, AnyArray]) -> None:
        self.nodes: dict[str, Node] = {}
        self.erf = erf
        self.weights = weights
        self.graph = graph

    def better(self, node: Node) -> Node:
        """The node, or one operator in its place."""
        if node.op == "mul":
            made = self._gate(node)
            return self._response_norm(node) if made is node else made
        if node.op == "div":
            made = self._logistic(node)
            return self._response_norm(node) if made is node else made
        if node.op == "add":
            return LayerNorms(self.nodes).better(node)
        if node.op == "where":
            return self._softplus(node)
        return node

    def _softplus(self, node: Node) -> Node:
        """Softplus, of the choice of x where it is above a limit, and else softplus of x: PyTorch's exporter writes it so."""
        condition, x, other = (self.nodes[name] for name in node.operands)
        if condition.op == "greater" and condition.operands[0] == x.name and other.type.shape == node.type.shape:
            limit = number_of(self.nodes[condition.operands[1]])
            if limit is not None and limit >= PAST_ONE and self._is_softplus(other, x.name):
                return replace(other, name=node.name)
        return node

    def _is_softplus(self, node: Node, x: str) -> bool:
        """Whether this is max(x, 0) + log(1 + exp(-|x|))."""
        positive, log = (self.nodes[name] for name in node.operands) if node.op == "add" else (node, node)
        if positive.op != "maximum" or positive.operands[0] != x or number_of(self.nodes[positive.operands[1]]) != 0 or log.op != "log":
            return False
        power = self._plus(log.operands[0], 1.0)
        if not power or self.nodes[power].op != "exp":
            return False
        factor, factors = self._factors(self.nodes[self.nodes[power].operands[0]])
        return factor == -1 and len(factors) == 1 and self.nodes[factors[0]].op == "abs" and self.nodes[factors[0]].operands == (x,)

    def _logistic(self, node: Node) -> Node:
        """1 / (1 + exp(-x)), whose parts are infinite where x is far from 0."""
        above, below = node.operands
        if number_of(self.nodes[above]) == 1 and (power := self._plus(below, 1.0)) and self.nodes[power].op == "exp":
            factor, factors = self._factors(self.nodes[self.nodes[power].operands[0]])
            if factor == -1 and len(factors) == 1:
                return one_operator(node, "sigmoid", factors[0])
        return node

    def _gate(self, node: Node) -> Node:
        factor, factors = self._factors(node)
        if len(factors) == 1 and _is(factor, 1 / 6) and self._shifted(factors[0]):
            return one_operator(node, "hard_sigmoid", self._shifted(factors[0]))
        for other in factors:
            for op, x, share, attributes in self._gated(other):
                found, values = self._factors(node, x)
                if _is(found, share) and sorted(values) == sorted((x, other)):
                    return one_operator(node, op, x, **attributes)
        return node

    def _gated(self, name: str) -> Iterator[tuple[str, str, float, dict[str, bool]]]:
        """What a product of x and this value is, if it has this factor, too: the operator, x, the factor, and attributes."""
        of = self.nodes[name]
        if of.op == "sigmoid":
            yield "silu", of.operands[0], 1, {}
        elif of.op == "hard_sigmoid":
            yield "hard_swish", of.operands[0], 1, {}
        elif x := self._shifted(name):
            yield "hard_swish", x, 1 / 6, {}
        elif rest := self._plus(name, 1.0):
            if x := self._halved(self.erf.get(rest, "")):
                yield "gelu", x, 0.5, {}
            elif self.nodes[rest].op == "tanh" and (x := self._cubed(self.nodes[rest].operands[0])):
                yield "gelu", x, 0.5, {"approximate": True}

    def _shifted(self, name: str) -> str:
        """x, of relu6(x + 3)."""
        node = self.nodes[name]
        return self._plus(node.operands[0], 3.0) if node.op == "relu6" else ""

    def _halved(self, name: str) -> str:
        """x, of x / √2."""
        for x in self.nodes[name].operands if name else ():
            factor, factors = self._factors(self.nodes[name], x)
            if factors == [x] and _is(factor, math.sqrt(0.5)):
                return x
        return ""

    def _cubed(self, name: str) -> str:
        """x, of √(2/π) · (x + 0.044715 · x³)."""
        factor, factors = self._factors(self.nodes[name])
        if len(factors) != 1 or not _is(factor, math.sqrt(2 / math.pi)) or self.nodes[factors[0]].op != "add":
            return ""
        for x, cube in (self.nodes[factors[0]].operands, self.nodes[factors[0]].operands[::-1]):
            share, parts = self._factors(self.nodes[cube], x)
            if _is(share, 0.044715) and parts == [x, x, x]:
                return x
        return ""

    def _factors(self, node: Node, whole: str = "") -> tuple[float, list[str]]:
        """A product as a number and the values that it multiplies, not more than a few deep; `whole` is one of these, if it is a product,
        too."""
        found: list[str] = []
        number, waiting = 1.0, [node.name]
        while waiting:
            name = waiting.pop(0)
            inner = node if name == node.name else self.nodes[name]
            if (scalar := number_of(inner)) is not None:
                number *= scalar
            elif inner.op == "mul" and name != whole and len(waiting) + len(found) < 4:
                waiting = [*inner.operands, *waiting]
            else:
                found.append(name)
        return number, found

    def _plus(self, name: str, number: float) -> str:
        """x, of x + number; else empty."""
        node = self.nodes[name]
        if node.op == "add":
            for x, other in (node.operands, node.operands[::-1]):
                if (scalar := number_of(self.nodes[other])) is not None and _is(scalar, number):
                    return x
        return ""

    def _response_norm(self, node: Node) -> Node:
        """x / (k + share · sums of x² over neighbouring channels)^beta, or times the reciprocal."""
        for x, below in self._quotients(node):
            total, beta = self._power(below)
            if self.nodes[total].op != "add" or self.nodes[x].type.shape != node.type.shape:
                continue
            for terms, other in (self.nodes[total].operands, self.nodes[total].operands[::-1]):
                bias = number_of(self.nodes[other])
                share, sums = self._factors(self.nodes[terms])
                if bias and bias > 0 and len(sums) == 1 and (found := self._window(sums[0], x)):
                    size, weight = found
                    alpha = short(share * weight * size)
                    if alpha >= 0:
                        return one_operator(node, "lrn", x, size=size, alpha=alpha, beta=beta, bias=short(bias))
        return node

    def _quotients(self, node: Node) -> list[tuple[str, str]]:
        """x and v, of x / v, and of a product with the reciprocal of v."""
        a, b = node.operands
        if node.op == "div":
            return [(a, b)]
        inner = [(x, self.nodes[self._unshaped(other)]) for x, other in ((a, b), (b, a))]
        return [(x, of.operands[1]) for x, of in inner if of.op == "div" and number_of(self.nodes[of.operands[0]]) == 1]

    def _power(self, name: str, deep: int = DEEP) -> tuple[str, float]:
        """A base and the power of it that a value is, as products, roots, or exp and log make them, not more than a few deep."""
        name = self._unshaped(name)
        node = self.nodes[name]
        if deep and node.op == "sqrt":
            base, exponent = self._power(node.operands[0], deep - 1)
            return base, exponent / 2
        if deep and node.op == "mul":
            (base, first), (other, second) = (self._power(operand, deep - 1) for operand in node.operands)
            return (base, first + second) if base == other else (name, 1.0)
        if node.op == "exp":
            number, factors = self._factors(self.nodes[node.operands[0]])
            if len(factors) == 1 and self.nodes[factors[0]].op == "log":
                return self._unshaped(self.nodes[factors[0]].operands[0]), short(number)
        return name, 1.0

    def _window(self, name: str, x: str) -> tuple[int, float] | None:
        """How many neighbouring channels of the squares of x a product adds up, and with which weight: its matrix is a band around the
        diagonal. A band of more than all channels is that of the fewest that reach as far."""
        product = self.nodes[self._unshaped(name)]
        channels = product.type.shape[-1] if product.op == "matmul" else 0
        known = self.nodes[product.operands[1]].attributes if channels else None
        if not isinstance(known, WeightAttributes) or self.weights[known.key].ndim != 2:
            return None
        padded = self.nodes[self._unshaped(product.operands[0])]
        widths = padded.attributes.pads if isinstance(padded.attributes, PadAttributes) else ((0, 0),)
        square = self.nodes[self._unshaped(padded.operands[0])] if padded.op == "pad" else padded
        if square.op != "mul" or set(square.operands) != {x} or square.type.shape[-1] != channels or any(map(any, widths[:-1])):
            return None
        return band(self.weights[known.key][widths[-1][0] :][:channels])

    def _unshaped(self, name: str) -> str:
        """What a value was before it got another shape with the same last axis."""
        while (node := self.nodes[name]).op == "reshape" and self.nodes[node.operands[0]].type.shape[-1:] == node.type.shape[-1:]:
            (name,) = node.operands
        return name


def band(matrix: AnyArray) -> tuple[int, float] | None:
    """The size and the weight of which a matrix, [channels, channels], is the sum of neighbours that `lrn` has; else None."""
    weight = float(matrix[0, 0])
    size = int(np.count_nonzero(matrix[0]) + np.count_nonzero(matrix[:, 0])) - 1
    wanted = summed(LrnAttributes(size), len(matrix)) * np.float32(weight) if weight > 0 else None
    return (size, weight) if wanted is not None and np.array_equal(matrix, wanted) else None


def _is(number: float, wanted: float) -> bool:
    return math.isclose(number, wanted, rel_tol=CLOSE)
