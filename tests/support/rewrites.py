"""What tests of rewriting passes need: graphs written as text, or drawn from a seed, and what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, NoAttributes, Node, f32
from tpucc.ir.constants import Random, random_array
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.ir.verify import verify_graph
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import evaluate
from tpucc.ops.full import FullAttributes
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Context, Pass
from tpucc.target import load_target

ATTRIBUTES: Mapping[str, type] = {name: operator.attributes for name, operator in OPS.items()}
CONTEXT = Context(load_target("tiny"))
UNARY = ("relu", "relu", "relu6", "sigmoid", "tanh", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish", "softmax")


def graph_of(lines: str) -> Graph:
    """A graph from its nodes and its `return` as text; verified."""
    graph = parse_graph(f"graph g\n{lines}", "test.graph", ATTRIBUTES)
    check(graph)
    return graph


def check(graph: Graph) -> None:
    verify_graph(graph)
    verify_operators(graph)


def body(graph: Graph) -> str:
    """A graph's text without its first line, blank lines and origins."""
    return "\n".join(line for line in print_graph(graph, origins=False).splitlines()[1:] if line)


def ran(optimisation: Pass, lines: str) -> str:
    """The body of what a pass makes of a graph in text form; checks its interface and its values, and that a second run changes nothing."""
    graph = graph_of(lines)
    result = optimisation.run(graph, CONTEXT)
    check(result)
    assert [output.name for output in result.outputs] == [output.name for output in graph.outputs]
    assert result.inputs == graph.inputs
    assert_close(graph, result)
    assert print_graph(optimisation.run(result, CONTEXT)) == print_graph(result)
    return body(result)


def lines(text: str) -> str:
    """Expected text, written indented in a test."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def inputs_of(graph: Graph, seed: int) -> dict[str, AnyArray]:
    generator = np.random.default_rng(seed)
    return {node.name: generator.standard_normal(node.type.shape).astype(np.float32) for node in graph.inputs}


def results(graph: Graph, seed: int = 0) -> list[AnyArray]:
    """The outputs in order, for inputs drawn from the seed."""
    values = evaluate(graph, inputs_of(graph, seed))
    return [values[output.node] for output in graph.outputs]


def magnitude(graph: Graph, seed: int = 0) -> float:
    """The largest magnitude of any value of the graph: what rounding errors are measured by."""
    values = evaluate(graph, inputs_of(graph, seed), keep=graph.by_name)
    return max(float(np.abs(value).max()) for value in values.values())


def assert_close(before: Graph, after: Graph, seed: int = 0) -> None:
    """The outputs are equal but for rounding errors of reassociated sums."""
    bound = 1e-5 * (1 + magnitude(before, seed))
    for a, b in zip(results(before, seed), results(after, seed), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def assert_equal(before: Graph, after: Graph, seed: int = 0) -> None:
    """The outputs are equal in every element."""
    for a, b in zip(results(before, seed), results(after, seed), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


class Drawing:
    """Draws graphs of every kind of node that the passes rewrite, in every order."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"drawn{seed}", "drawn.tpu")
        self.values: list[Node] = []

    def graph(self, size: int) -> Graph:
        for _ in range(int(self.random.integers(1, 3))):
            shape = tuple(int(extent) for extent in self.random.integers(1, 6, self.random.integers(2, 4)))
            line = len(self.values) + 1
            self.values.append(self.builder.add(Node("x", "input", (), NoAttributes(), f32(*shape), Origin((Span(line, 1, line, 2),)))))
        steps = (self._product, self._left_product, self._arithmetic, self._with_constant, self._unary, self._move, self._slice)
        while len(self.builder.nodes) < size:
            self.values.append(steps[self.random.integers(len(steps))](self._pick()))
        for number, name in enumerate(dict.fromkeys([self._pick().name, self._pick().name, self.values[-1].name])):
            self.builder.output(f"out{number}", name)
        return self.builder.build()

    def _pick(self) -> Node:
        """A value, the later the likelier."""
        return self.values[-1 - int(self.random.integers(len(self.values)) * self.random.random())]

    def _add(self, op: str, operands: Sequence[Node], attributes: Attributes) -> Node:
        line = len(self.builder.nodes) + 1
        inferred = OPS[op].infer(attributes, [operand.type for operand in operands])
        origin = Origin((Span(line, 1, line, 2 + line),))
        return self.builder.add(Node(op[0], op, tuple(operand.name for operand in operands), attributes, inferred, origin))

    def _constant(self, *shape: int) -> Node:
        if self.random.random() < 0.2:
            return self._add("full", (), FullAttributes(shape, float(self.random.integers(-1, 2))))
        value = random_array(shape, Random(int(self.random.integers(3)), "key"))
        return self._add(
            "constant", (), ConstantAttributes(value if self.random.random() < 0.5 else Constant(value.data - np.float32(0.5)))
        )

    def _product(self, x: Node) -> Node:
        return self._add("matmul", (x, self._constant(x.type.columns, int(self.random.integers(1, 7)))), NoAttributes())

    def _left_product(self, x: Node) -> Node:
        if x.type.rank != 2:
            return self._product(x)
        rows = int(self.random.integers(1, 6))
        shapes = [(rows, x.type.shape[0])] * 3 + [(2, rows, x.type.shape[0]), (x.type.shape[0],)]
        product = self._add("matmul", (self._constant(*shapes[self.random.integers(5)]), x), NoAttributes())
        return product if product.type.rank > 1 else self._add("reshape", (product,), ReshapeAttributes((1, -1)))

    def _operator(self) -> str:
        return str(self.random.choice(["add", "sub", "mul"]))

    def _arithmetic(self, x: Node) -> Node:
        same = [value for value in self.values if value.type.shape == x.type.shape]
        return self._add(self._operator(), (x, same[self.random.integers(len(same))]), NoAttributes())

    def _with_constant(self, x: Node) -> Node:
        """A constant of the value's shape, with sizes made 1 or left out."""
        shape = tuple(size if self.random.random() < 0.6 else 1 for size in x.type.shape)
        constant = self._constant(*shape[self.random.integers(x.type.rank + 1) :])
        operands = (x, constant) if self.random.random() < 0.5 else (constant, x)
        return self._add(self._operator(), operands, NoAttributes())

    def _unary(self, x: Node) -> Node:
        if self.random.random() < 0.2:
            return self._add("leaky_relu", (x,), LeakyReluAttributes(0.25))
        op = str(self.random.choice(UNARY))
        return self._add(op, (x,), OPS[op].attributes())

    def _move(self, x: Node) -> Node:
        if self.random.random() < 0.5:
            return self._add("transpose", (x,), TransposeAttributes(tuple(map(int, self.random.permutation(x.type.rank)))))
        if self.random.random() < 0.5:
            return self._add("flatten", (x,), NoAttributes())
        return self._add("reshape", (x,), ReshapeAttributes((-1, x.type.columns)))

    def _slice(self, x: Node) -> Node:
        starts = tuple(int(self.random.integers(size)) for size in x.type.shape)
        stops = tuple(int(self.random.integers(start, size)) + 1 for start, size in zip(starts, x.type.shape, strict=True))
        single = [axis for axis in range(x.type.rank) if stops[axis] - starts[axis] == 1]
        squeeze = tuple(single[: min(x.type.rank - 2, int(self.random.integers(2)))])
        return self._add("slice", (x,), SliceAttributes(starts, stops, squeeze))


def drawn_graph(seed: int, size: int = 24) -> Graph:
    """A random operator graph of about `size` nodes; every one has a value that NumPy can compute."""
    graph = Drawing(seed).graph(size)
    check(graph)
    return graph
