"""What a pass of a submission made of a graph: read as text, verified, compared node by node, and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from random import Random

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph, print_name
from tpucc.labs.graphs import read_graph
from tpucc.labs.lab import Outcome, Submission, judging_seed
from tpucc.labs.passes.rules import Rules
from tpucc.layers.kinds import ATTRIBUTES
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.evaluate import evaluate
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.opdef import Clamp
from tpucc.plugins.failures import Failed
from tpucc.see.pictures import graph_svg

ANY = "*"
"""An operand that may be any constant."""
NEAR = 1e-5
"""How far a value may be from what it was, of the largest value: the sum of two biases is rounded in another order."""


def wanted(function: str, graph: Graph, rules: Rules) -> Graph | None:
    """What the lab's own pass leaves of a graph; None in an archive for students where it isn't recorded."""
    text = rules.solution.answer(function, graph)
    return None if text is None else parse_graph(text, "wanted.graph", ATTRIBUTES)


def comparable(node: Node) -> Node:
    """The node without what may differ: the range that a clamp was given, which needs none."""
    attributes = node.attributes
    if isinstance(attributes, LinearAttributes) and attributes.activation:
        operator = OPS.get(attributes.activation)
        if operator is not None and isinstance(operator.legalisation, Clamp):
            return replace(node, attributes=replace(attributes, pre=None))
    return node


def rewritten(function: str, rules: Rules, graph: Graph, key: str, submission: Submission) -> Outcome:
    """One graph: what the pass leaves of it, the values, and that another run changes nothing more."""
    expected = wanted(function, graph, rules)
    try:
        made = ask(function, graph, submission)
        if problem := different(graph, made, expected):
            return _shown(function, graph, made, problem)
        if problem := _other_values(graph, made, Random(f"{key}/{judging_seed()}")):
            return _shown(function, graph, made, problem)
        if ask(function, made, submission) != made:
            return _shown(function, graph, made, "the pass changes its own result: once it has run, there should be nothing left to do")
    except Failed as failure:
        return Outcome(0, f"{function}: {failure.words}", listing(graph))
    return Outcome(1, f"{len(graph)} nodes became {len(made)}", picture=partial(graph_svg, made, _heading(function)))


def ask(function: str, graph: Graph, submission: Submission) -> Graph:
    """What the submission's pass returns. Raises `Failed` where that is no graph, or one that breaks the rules of graphs."""
    made = read_graph(submission.call(function, graph), graph)
    if made.inputs != graph.inputs:
        raise Failed("wrong", "changed the inputs of the model")
    if [output.name for output in made.outputs] != [output.name for output in graph.outputs]:
        raise Failed("wrong", "changed the outputs of the model")
    return made


def different(graph: Graph, made: Graph, wanted: Graph | None) -> str:
    """The first node that isn't as it should be, in words; nothing when all are, or when nobody knows."""
    if wanted is None:
        return ""
    kept = [_nameless(node, wanted, graph) for node in wanted if node.name in graph.by_name]
    for node in kept:
        if problem := _differs(node, made):
            return problem
    names = {node.name for node in kept}
    read = {operand for node in made for operand in node.operands} | made.output_nodes
    for node in made:
        if node.name not in read and not node.is_input:
            return f"{node.name} is still there, and nobody reads it any more"
        if node.name not in names and node.op != "constant":
            return f"{node.name} = {node.op}(…) should not be there" + ("" if node.name in graph.by_name else ": the pass made it")
    if [output.node for output in made.outputs] != [output.node for output in graph.outputs]:
        return "an output is another node than before"
    return ""


def _nameless(node: Node, wanted: Graph, graph: Graph) -> Node:
    """A node in which the constants that the pass has made are operands without a name: any constants may stand there."""
    operands = (name if name in graph.by_name or not _is_constant(wanted, name) else ANY for name in node.operands)
    return replace(node, operands=tuple(operands))


def _differs(wanted: Node, made: Graph) -> str:
    """How the node of this name differs from the one that is wanted, in words; nothing when it doesn't."""
    found = made.by_name.get(wanted.name)
    if found is None:
        return f"{wanted.name} is gone; it should be {_words(wanted)}"
    if wanted.op == found.op == "constant":
        return "" if wanted.type == found.type else f"{wanted.name} is of type {found.type}, expected {wanted.type}"
    places = zip_longest(wanted.operands[: len(found.operands)], found.operands)
    operands = tuple(ANY if of == ANY and _is_constant(made, name) else name for of, name in places)
    if comparable(replace(found, operands=operands)) != comparable(wanted):
        return f"{wanted.name} is {_words(found)}\nand should be {_words(wanted)}"
    return ""


def _is_constant(graph: Graph, name: str) -> bool:
    return graph[name].op == "constant"


def _words(node: Node) -> str:
    """A node as the text form has it, without a constant's value."""
    operands = ", ".join("a constant" if name == ANY else print_name(name) for name in node.operands)
    if node.op == "constant":
        return f"a constant : {node.type}"
    more = {key: getattr(node.attributes, key) for key in node.attributes.__dataclass_fields__}
    said = "".join(f", {key}={value!r}" for key, value in more.items() if value not in ("", (), None))
    return f"{node.op}({operands}{said}) : {node.type}"


def _other_values(graph: Graph, made: Graph, draw: Random) -> str:
    """The first output whose values differ, on inputs that are drawn now."""
    inputs = drawn(graph, draw)
    before, after = evaluate(graph, inputs), evaluate(made, inputs)
    for old, new in zip(graph.outputs, made.outputs, strict=True):
        expected, found = before[old.node], after[new.node]
        near = np.abs(found - expected) <= NEAR * max(1.0, float(np.abs(expected).max()))
        if not near.all():
            place = tuple(int(k) for k in np.argwhere(~near)[0])
            return f"the output {old.name} differs: at {list(place)} it was {expected[place]:g} and is {found[place]:g}"
    return ""


def drawn(graph: Graph, draw: Random) -> Mapping[str, AnyArray]:
    """Values for the inputs of a graph."""
    generator = np.random.default_rng(draw.randrange(2**32))
    return {node.name: generator.standard_normal(node.type.shape, np.float32) for node in graph.inputs}


def _shown(function: str, graph: Graph, made: Graph, problem: str) -> Outcome:
    """A failure with the graph before and after."""
    found = "the same graph" if made == graph else listing(made)
    return Outcome(0, problem, listing(graph), "", found, picture=partial(graph_svg, made, _heading(function)))


def _heading(function: str) -> str:
    return f"What {function} made of the graph"


def listing(graph: Graph) -> str:
    """A graph as lines that can be read back."""
    return "\n".join(line for line in print_graph(graph, origins=False, with_data=True).splitlines() if line)
