"""Layer normalisation along the last axis, in the forms in which exporters take it apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tpucc.ir import Node
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes


class LayerNorms:
    """Looks among nodes, by their names, behind a sum that may be the last of a layer normalisation."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes

    def better(self, node: Node) -> Node:
        """The node, or `layer_norm` in its place."""
        x, gamma, beta, epsilon = self._scaled(node) or self._shifted(node) or ("", "", "", 0.0)
        return one_operator(node, "layer_norm", x, gamma, beta, epsilon=short(epsilon)) if x else node

    def _scaled(self, node: Node) -> tuple[str, str, str, float] | None:
        """(x - mean) / root · gamma + beta, as of PyTorch: x, gamma, beta and epsilon."""
        for scaled, beta in self._vectors(node):
            for quotient, gamma in self._vectors(self.nodes[scaled], "mul"):
                apart, below = self._quotient(quotient)
                x, epsilon = self._root(below)
                if x and self._centred(apart) == x:
                    return x, gamma, beta, epsilon
        return None

    def _shifted(self, node: Node) -> tuple[str, str, str, float] | None:
        """x · s + (-mean · s + beta), where s is 1 / root · gamma, as of TensorFlow."""
        for product, rest in _both(node):
            for shift, beta in self._vectors(self.nodes[rest], "add"):
                for x, scale in _both(self.nodes[product], "mul"):
                    for reciprocal, gamma in self._vectors(self.nodes[scale], "mul"):
                        one, below = self._quotient(reciprocal)
                        found, epsilon = self._root(below)
                        if found == x and number_of(self.nodes[one]) == 1 and self._is_negative_mean(shift, scale, x):
                            return x, gamma, beta, epsilon
        return None

    def _vectors(self, node: Node, op: str = "") -> Iterator[tuple[str, str]]:
        """The two operands of a node with this operator, where the second is a weight with one value a column."""
        for x, weight in _both(node, op):
            if self.nodes[weight].op in ("weight", "full") and self.nodes[weight].type.shape == node.type.shape[-1:]:
                yield x, weight

    def _quotient(self, name: str) -> tuple[str, str]:
        node = self._unshaped(name)
        return (node.operands[0], node.operands[1]) if node.op == "div" else ("", "")

    def _root(self, name: str) -> tuple[str, float]:
        """x and epsilon, of sqrt(variance of x + epsilon); x is empty of anything else."""
        root = self._unshaped(name) if name else None
        total = self._unshaped(root.operands[0]) if root is not None and root.op == "sqrt" else None
        for variance, other in _both(total, "add") if total is not None else ():
            if (epsilon := number_of(self.nodes[other])) and (x := self._varied(variance) or self._varied_by_squares(variance)):
                return x, epsilon
        return "", 0.0

    def _varied(self, name: str) -> str:
        """x, of the mean of the square of (x - mean)."""
        square = self._squared(self._averaged(name))
        return self._centred(square) if square else ""

    def _varied_by_squares(self, name: str) -> str:
        """x, of max(mean of x² - mean², 0), as of Flax."""
        node = self._unshaped(name)
        positive = [x for x, zero in _both(node, "maximum") if number_of(self.nodes[zero]) == 0]
        difference = self._unshaped(positive[0]) if positive else node
        if difference.op != "sub":
            return ""
        x, mean = self._squared(self._averaged(difference.operands[0])), self._squared(difference.operands[1])
        return x if x and mean and self._averaged(mean) == x else ""

    def _squared(self, name: str) -> str:
        """x, of x · x."""
        node = self._unshaped(name) if name else None
        return node.operands[0] if node is not None and node.op == "mul" and len({*node.operands}) == 1 else ""

    def _centred(self, name: str) -> str:
        """x, of x - mean."""
        node = self.nodes[name] if name else None
        return node.operands[0] if node is not None and node.op == "sub" and self._averaged(node.operands[1]) == node.operands[0] else ""

    def _is_negative_mean(self, name: str, scale: str, x: str) -> bool:
        """Whether this is -mean of x · scale."""
        return any(
            factor == scale and number_of(self.nodes[one]) == -1 and self._averaged(mean) == x
            for negative, factor in _both(self.nodes[name], "mul")
            for mean, one in _both(self._unshaped(negative), "mul")
        )

    def _averaged(self, name: str) -> str:
        """x, of its mean along the last axis, which may stay with size 1."""
        node = self._unshaped(name)
        if node.op != "mean":
            return ""
        (x,) = node.operands
        return x if node.attributes.axis in (-1, self.nodes[x].type.rank - 1) else ""  # type: ignore[attr-defined]

    def _unshaped(self, name: str) -> Node:
        """A node, or that of which it is a reshape."""
        node = self.nodes[name]
        return self.nodes[node.operands[0]] if node.op == "reshape" else node


def _both(node: Node, op: str = "") -> Iterator[tuple[str, str]]:
    """The two operands of a node with this operator, in both orders."""
    if len(node.operands) == 2 and op in ("", node.op):
        yield node.operands[0], node.operands[1]
        yield node.operands[1], node.operands[0]


def one_operator(node: Node, op: str, *operands: str, **attributes: object) -> Node:
    """The node with this operator in the place of its own."""
    return replace(node, op=op, operands=operands, attributes=OPS[op].attributes(**attributes))


def number_of(node: Node) -> float | None:
    """The value of a constant of one element."""
    if isinstance(node.attributes, ConstantAttributes) and node.type.size == 1:
        return float(node.attributes.value.data.reshape(()))
    return None


def short(number: float) -> float:
    """The shortest number that is this one in float32: a product of constants of a file has last digits that nobody wrote."""
    return float(str(np.float32(number)))
