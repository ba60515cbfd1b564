"""Graphs made by hand, node by node; names say nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, Quantisation, Range, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes

ORIGIN = Origin(made_by="lab")
PINNED = Quantisation(0.0625, 3)


class Sketch:
    """A graph that grows. Each method returns the new node; `rows` and `columns` are sizes of the model's input `x`."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.rows, self.columns = draw.randrange(2, 5), draw.randrange(2, 5)
        self._numbers = draw.sample(range(100, 1000), 400)
        self._nodes: list[Node] = []
        self._outputs: list[Output] = []
        self.x = self._added("x", "input", (), NoAttributes(), f32(self.rows, self.columns))

    def constant(self, *shape: int) -> Node:
        """Eighths, none of which is 0."""
        generator = np.random.default_rng(self.draw.randrange(2**32))
        value = Constant(np.asarray(generator.integers(2, 16, shape) / 8 * generator.choice([-1, 1], shape), np.float32))
        return self._added(self._name(), "constant", (), ConstantAttributes(value), f32(*shape))

    def op(self, op: str, *operands: Node, attributes: Attributes | None = None) -> Node:
        """A node of an operator, by its rule."""
        given = attributes if attributes is not None else OPS[op].attributes()
        type_ = OPS[op].infer(given, [node.type for node in operands])
        return self._added(self._name(), op, tuple(node.name for node in operands), given, type_)

    def product(self, columns: int = 0) -> Node:
        """A product of the input, or of something like it, with constant weights."""
        weights = self.constant(self.columns, columns or self.draw.randrange(2, 6))
        return self.op("matmul", self.value(), weights)

    def value(self) -> Node:
        """Something that depends on the input, of its shape."""
        return self.op("tanh", self.x) if self.draw.random() < 0.3 else self.x

    def pinned(self, node: Node) -> Node:
        """The node, whose quantisation the source fixes."""
        return self._changed(node, node.type.with_quantisation(PINNED))

    def ranged(self, node: Node) -> Node:
        """The node, of which calibration has found the range."""
        return self._changed(node, node.type.with_range(Range(-self.draw.randrange(1, 9) / 2, self.draw.randrange(1, 9) / 4)))

    def output(self, node: Node) -> Node:
        self._outputs.append(Output(f"y{len(self._outputs)}", node.name))
        return node

    def graph(self) -> Graph:
        return Graph("lab2", tuple(self._nodes), tuple(self._outputs))

    def _changed(self, node: Node, type_: TensorType) -> Node:
        index = next(k for k, other in enumerate(self._nodes) if other is node)
        self._nodes[index] = replace(node, type=type_)
        return self._nodes[index]

    def _added(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> Node:
        self._nodes.append(Node(name, op, operands, attributes, type_, ORIGIN))
        return self._nodes[-1]

    def _name(self) -> str:
        return f"v{self._numbers.pop()}"
