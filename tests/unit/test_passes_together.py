"""The rewriting passes in any order, in any number, and on large graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.rewrites import ATTRIBUTES, CONTEXT, assert_close, check, drawn_graph
from tests.support.seeds import at_length
from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, f32
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Pass
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.dead_code import dead_code
from tpucc.passes.folding import fold_scales
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias
from tpucc.passes.push_slices import push_slices
from tpucc.passes.sink_transposes import sink_transposes

PASSES: tuple[Pass, ...] = (
    constant_folding,
    sink_transposes,
    fold_scales,
    push_slices,
    common_subexpressions,
    dead_code,
    fuse_bias,
    fuse_activation,
)

ATTENTION = """\
weights random(seed=1)
model attention(x: f32[4, 3, 6]) -> f32[4, 3, 2]:
    weight w: f32[6, 6]
    weight b: f32[6]
    h = x @ w + b
    k = h[:, :, 2:4] * 0.7
    return softmax((h[:, :, :2] * 0.7) @ transpose(k, (0, 2, 1))) @ h[:, :, 4:]
"""


def run(graph: Graph, passes: Iterator[Pass]) -> Graph:
    for optimisation in passes:
        result = optimisation.run(graph, CONTEXT)
        check(result)
        assert [output.name for output in result.outputs] == [output.name for output in graph.outputs]
        assert set(result.inputs) == set(graph.inputs)
        graph = result
    return graph


@pytest.mark.parametrize("part", one_of(2, range(4)))
def test_any_passes_in_any_order_keep_the_results(part: int) -> None:
    check_orders(range(50 * part, 50 * part + 50))


@at_length(10_000, 500)
def test_any_passes_in_any_order_keep_the_results_at_length(seeds: range) -> None:
    check_orders(seeds)


def check_orders(seeds: range) -> None:
    for seed in seeds:
        random = np.random.default_rng([seed, 1])
        graph = drawn_graph(seed, int(random.integers(4, 40)))
        chosen = random.integers(len(PASSES), size=int(random.integers(1, 12)))
        before = print_graph(graph)
        result = run(graph, (PASSES[index] for index in chosen))
        assert_close(graph, result, seed)
        assert print_graph(graph) == before
        text = print_graph(result)
        assert print_graph(parse_graph(text, "again.graph", ATTRIBUTES)) == text


def test_passes_say_what_they_are() -> None:
    assert all(isinstance(optimisation, Pass) and optimisation.summary for optimisation in PASSES)
    assert len({optimisation.name for optimisation in PASSES}) == len(PASSES)


ORIGIN = Origin((Span(1, 1, 1, 2),))
COUNT = 1_000

Step = tuple[str, tuple[str, ...], Attributes]


def chain(steps: Sequence[Step], shape: tuple[int, ...] = (2, 2)) -> Graph:
    """A graph of `COUNT` nodes in a row that repeats the steps; the operand "" is the node before."""
    constants = {
        "w": np.eye(2, dtype=np.float32),
        "b": np.array([1, -1], np.float32),
        "one": np.array(1, np.float32),
    }
    nodes = [Node("n0", "input", (), NoAttributes(), f32(*shape), ORIGIN)]
    nodes += [
        Node(name, "constant", (), ConstantAttributes(Constant(value)), f32(*value.shape), ORIGIN) for name, value in constants.items()
    ]
    for number in range(COUNT):
        op, operands, attributes = steps[number % len(steps)]
        read = tuple(operand or f"n{number}" for operand in operands)
        nodes.append(Node(f"n{number + 1}", op, read, attributes, f32(*shape), Origin((Span(number + 2, 1, number + 2, 2),))))
    return Graph("chain", tuple(nodes), (Output("y", f"n{COUNT}"), Output("half", f"n{COUNT // 2}")))


NONE = NoAttributes()
CHAINS: dict[str, tuple[Step, ...]] = {
    "sums": (("add", ("", "b"), NONE),),
    "factors": (("mul", ("", "b"), NONE),),
    "identities": (("mul", ("one", ""), NONE),),
    "views": (("reshape", ("",), ReshapeAttributes((2, 2))), ("flatten", ("",), NONE)),
    "transposes": (("transpose", ("",), TransposeAttributes((1, 0))),),
    "left products": (("matmul", ("w", ""), NONE), ("relu", ("",), NONE)),
    "layers": (("matmul", ("", "w"), NONE), ("add", ("", "b"), NONE), ("mul", ("", "b"), NONE), ("tanh", ("",), NONE)),
    "slices": (("matmul", ("", "w"), NONE), ("slice", ("",), SliceAttributes((0, 0), (2, 2))), ("relu", ("",), NONE)),
    "squares": (("mul", ("", ""), NONE),),
    "equal nodes": (("relu", ("n0",), NONE),),
    "constants": (("add", ("w", "b"), NONE), ("add", ("", "b"), NONE)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CHAINS)
def test_large_graphs_take_time_in_proportion(name: str) -> None:
    """A quadratic step would take a quarter of a minute here."""
    graph = chain(CHAINS[name])
    result = run(graph, iter(PASSES))
    assert result.inputs == graph.inputs
    assert len(result.nodes) <= len(graph.nodes) + 5


def test_the_scale_of_queries_is_in_their_weights() -> None:
    """The three slices of one product become products of their own, and what scales two of them folds then: no table is left."""
    assert ".table" not in tpucc.compile_source(ATTENTION).layers.text()


@each([1, 2])
def test_what_no_output_needs_changes_no_layer(level: int) -> None:
    """Every pass sees a value's readers among the outputs' values only."""
    text = (
        "weights random(seed=1)\nmodel m(x: f32[2, 4, 4, 3] in [-1.0, 1.0]):\n    weight k: f32[3, 3, 3, 5]\n    weight s: f32[5]\n"
        "    weight w: f32[5, 6]\n    c = conv2d(pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), k)\n    p = max_pool(c * s, 2)\n"
        "    q = reshape(p, [2, 4, 5])\n    h = q @ w\n    t = h[:, :, :3]\n{}    return relu(t), relu(p)\n"
    )
    unused = "".join(f"    u{name} = tanh({name})\n" for name in "xcpqht")
    with_unused, without = (tpucc.compile_source(text.format(more), level=level).compilation.layers for more in (unused, ""))
    assert [(n.name, n.op, n.operands, n.type) for n in with_unused] == [(n.name, n.op, n.operands, n.type) for n in without]
