"""Transposes move down, out of the middle of the device's work, in a walk over the graph that keeps them back.

The device multiplies rows by a constant matrix on the right. A constant on the left needs transposes: `C @ x` is
`transpose(transpose(x) @ transpose(C))`. In a chain such as `W2 @ relu(W1 @ x + b)` the inner transposes meet and cancel. The
others move to the edges of the graph, where the host computes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tpucc.ir import Constant, Graph, NoAttributes, Node
from tpucc.ops import facts_of
from tpucc.ops.names import matmul, transpose
from tpucc.ops.names import slice as slice_
from tpucc.ops.rules import swapped
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter, after_products, array_of, as_reshape, constant_of

Permutation = tuple[int, ...]
SWAPPED = (1, 0)


@graph_pass("sink-transposes", "transposes products whose constant is on the left, and moves transposes to the graph's edges", level=0)
def sink_transposes(graph: Graph, context: Context) -> Graph:
    """Makes every product one with its constant on the right, and cancels transposes below products in pairs."""
    sinker = _Sinker(graph, "sink-transposes")
    for node in sinker:
        sinker.visit(node)
    for output in graph.outputs:
        sinker.straight(output.node)
    return sinker.build()


class _Turned(NamedTuple):
    """A value of the old graph that is not computed as it is: it is `transpose(base, perm)`."""

    base: str
    perm: Permutation


class _Sinker(Rewriter):
    """Visits the nodes in order and keeps back every transpose that follows a product, until something needs it."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self._turned: dict[str, _Turned] = {}
        self._turns: dict[tuple[str, Permutation], str] = {}
        self._below = after_products(graph)
        """Values that depend on a product: their transposes are worth moving. The others' are the host's, and free."""

    def visit(self, node: Node) -> None:
        turned = any(name in self._turned for name in node.operands)
        if matmul.made(node) and self._has_left_constant(node):
            self._turn_product(node)
        elif matmul.made(node) and self._turns_rows_only(node):
            base, perm = self._turned[node.operands[0]]
            self._put_turned(node, (base, *node.operands[1:]), perm)
        elif facts_of(node.op).elementwise and turned:
            self._sink_through(node)
        elif slice_.made(node) and turned:
            self._sink_slice(node)
        elif transpose.made(node):
            self._transpose(node)
        else:
            self._keep(node)

    def straight(self, name: str) -> None:
        """Makes sure that the new graph has the value itself."""
        turned = self._turned.get(name)
        if turned is not None and name not in self.nodes:
            self.put(self.in_place(self.graph[name], transpose(self.nodes[turned.base], perm=turned.perm)))

    def _keep(self, node: Node) -> None:
        for name in node.operands:
            self.straight(name)
        self.put(node)

    def _turns_rows_only(self, node: Node) -> bool:
        """Whether a product's rows come in another order, and nothing else is turned: its result is then turned likewise."""
        turned = self._turned.get(node.operands[0])
        columns = node.type.rank - 1
        if turned is None or turned.perm[-1] != columns or any(name in self._turned for name in node.operands[1:]):
            return False
        return self.nodes[node.operands[1]].type.rank == 2

    def _has_left_constant(self, node: Node) -> bool:
        """Whether a product has a constant on its left only, and batch dimensions on one side at most: those of rows, or of a matrix."""
        left, right = self.graph.operands(node)
        return constant_of(left) is not None and constant_of(right) is None and 2 in (left.type.rank, right.type.rank)

    def _turn_product(self, node: Node) -> None:
        """`C @ x` [R, N] as the transpose of `transpose(x) @ transpose(C)` [N, R], each item of x alone; other ranks of C, where x is a
        matrix, are reshaped to two."""
        left = self.nodes[node.operands[0]]
        weights = self._turned_constant(left, (left.type.rows, left.type.columns))
        perm = swapped(self.graph[node.operands[1]].type.rank)
        x = self.turn(node.operands[1], perm)
        type_ = replace(node.type, shape=(*self.nodes[x].type.shape[:-1], left.type.rows))
        product = self.put(matmul.node(self.fresh(node.name), (x, weights), NoAttributes(), type_, node.origin))
        if node.type.rank == len(perm):
            self._turned[node.name] = _Turned(product.name, perm)
            return
        back = self.turn(product.name, SWAPPED)
        self.put(as_reshape(node, back))

    def _sink_through(self, node: Node) -> None:
        """`f(transpose(a), transpose(b))` as `transpose(f(a, b))`, when each operand can be turned for nothing."""
        perm = next(self._turned[name].perm for name in node.operands if name in self._turned)
        if len(perm) != node.type.rank or not all(self._turns_freely(name, perm) for name in node.operands):
            self._keep(node)
            return
        inverse = _inverse(perm)
        operands = tuple(self._operand(name, inverse, node.type.rank) for name in node.operands)
        self._put_turned(node, operands, perm)

    def _sink_slice(self, node: Node) -> None:
        """A part of a transpose as the transpose of a part; one that drops an axis stays."""
        turned, part = self._turned[node.operands[0]], slice_.attributes_of(node)
        if part.squeeze:
            self._keep(node)
            return
        starts, stops, steps = (_permuted(each, _inverse(turned.perm)) if each else () for each in (part.starts, part.stops, part.steps))
        self._put_turned(replace(node, attributes=slice_.attributes(starts, stops, (), steps)), (turned.base,), turned.perm)

    def _put_turned(self, node: Node, operands: tuple[str, ...], perm: Permutation) -> None:
        type_ = replace(node.type, shape=_permuted(node.type.shape, _inverse(perm)))
        base = self.put(replace(node, name=self.fresh(node.name), operands=operands, type=type_))
        self._turned[node.name] = _Turned(base.name, perm)

    def _transpose(self, node: Node) -> None:
        """A transpose of the source: joins the one before it; is kept back below a product."""
        name = node.operands[0]
        perm = tuple(axis % node.type.rank for axis in transpose.attributes_of(node).perm)
        turned = self._turned.get(name)
        if turned is None and name not in self._below:
            self._keep(node)
            self._turns[node.name, _inverse(perm)] = name
            return
        self._turned[node.name] = _Turned(turned.base, _permuted(turned.perm, perm)) if turned else _Turned(name, perm)

    def _turns_freely(self, name: str, perm: Permutation) -> bool:
        """Whether the transpose of an operand costs nothing: it is there, or the value is constant, or the host's."""
        turned = self._turned.get(name)
        return turned.perm == perm if turned else name not in self._below

    def _operand(self, name: str, perm: Permutation, rank: int) -> str:
        """An operand of an element-wise operator in turned form; NumPy's broadcasting first gives it all axes."""
        if name in self._turned:
            return self.turn(name, perm)
        node = self.nodes[name]
        full = (1,) * (rank - node.type.rank) + node.type.shape
        if node.type.size == 1 and node.type.rank <= 1:
            return name
        if constant_of(node) is not None:
            return self._turned_constant(node, full, perm)
        if full != node.type.shape:
            name = self.reshape(node, full).name
        return self.turn(name, perm)

    def turn(self, name: str, perm: Permutation) -> str:
        """The name of `transpose(name, perm)`: an existing node, or a new one."""
        if (turned := self._turned.get(name)) is not None:
            name, perm = turned.base, _permuted(turned.perm, perm)
        if perm == tuple(range(len(perm))):
            return name
        if (name, perm) not in self._turns:
            node = self.nodes[name]
            self._turns[name, perm] = self.add(transpose(node, perm=perm), node).name
        return self._turns[name, perm]

    def _turned_constant(self, node: Node, shape: tuple[int, ...], perm: Permutation = SWAPPED) -> str:
        """A constant, reshaped and transposed; one node for each permutation."""
        if (node.name, perm) not in self._turns:
            value = Constant(array_of(node).reshape(shape).transpose(perm))
            self._turns[node.name, perm] = self.constant(node.name, value, node.origin).name
        return self._turns[node.name, perm]


def _permuted(values: tuple[int, ...], perm: Permutation) -> tuple[int, ...]:
    return tuple(values[axis] for axis in perm)


def _inverse(perm: Permutation) -> Permutation:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))
