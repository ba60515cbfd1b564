"""A term's rules, and what a pass of a submission made of a graph: read as text, verified, compared node by node, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random

import numpy as np

from tpucc import api
from tpucc.diagnostics import counted
from tpucc.ir import Graph, Node
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph, print_name
from tpucc.labs.judging import read_graph, verdict_on
from tpucc.labs.lab import Outcome, Submission, Term, Wrong, judging_seed
from tpucc.labs.solutions import Solution
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops import OPS
from tpucc.ops.evaluate import evaluate
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.opdef import Clamp
from tpucc.passes.base import Context, GraphPass
from tpucc.passes.rewriter import is_pinned
from tpucc.plugins.failures import Failed
from tpucc.see.pictures import graph_svg

FUNCTIONS = ("relu6", "tanh", "sigmoid", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish")


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's rules: the elements of the largest constant that folding makes of smaller ones, the functions that a product takes in, and
    whether it takes in a second bias."""

    limit: int = 64
    functions: tuple[str, ...] = ("leaky_relu", "relu", "sigmoid", "tanh")
    second: bool = True

    @property
    def others(self) -> tuple[str, ...]:
        """Functions that stay."""
        return tuple(sorted({*FUNCTIONS, "relu", "leaky_relu"}.difference(self.functions)))

    @property
    def names(self) -> str:
        """The functions as a tuple of the submission's."""
        return str(self.functions).replace("'", '"')

    @property
    def solution(self) -> Solution:
        """The lab's own passes under these rules."""
        return Solution.of(Path(__file__).parent, self)


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("passes")
    if draw is None:
        return Rules()
    functions = sorted(["relu", "leaky_relu", *draw.sample(FUNCTIONS, 2)])
    return Rules(draw.choice((24, 30, 36, 40, 48, 54, 60)), tuple(functions), draw.random() < 0.5)


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


def rewritten(function: str, rules: Rules, graph: Graph, submission: Submission) -> Outcome:
    """One graph: what the pass leaves of it, the values, and that another run changes nothing more."""
    expected, made = wanted(function, graph, rules), ask(function, graph, submission)
    picture = partial(graph_svg, made, f"What {function} made of the graph")
    problem = different(graph, made, expected) or _other_values(graph, made, Random(judging_seed()))
    if not problem and ask(function, made, submission) != made:
        problem = "the pass changes its own result: once it has run, there should be nothing left to do"
    if problem:
        raise Wrong(problem, given=listing(graph), found="the same graph" if made == graph else listing(made), picture=picture)
    return Outcome(1, f"{len(graph)} nodes became {len(made)}", picture=picture)


def ask(function: str, graph: Graph, submission: Submission) -> Graph:
    """What the submission's pass returns. Raises `Failed` where that is no graph, or one that breaks the rules of graphs."""
    return read_graph(submission.call(function, graph), graph, f"{function} ")


def different(graph: Graph, made: Graph, wanted: Graph | None) -> str:
    """The first node that isn't as it should be, in words; nothing when all are, or when nobody knows."""
    if wanted is None:
        return ""
    kept = [_nameless(node, wanted, graph) for node in wanted if node.name in graph.by_name]
    for node in kept:
        if problem := _differs(node, made):
            operands = (_product_words(name, graph, made) for name in graph[node.name].operands)
            return problem + _product_words(node.name, graph) + "".join(operands)
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
        return f"{wanted.name} is gone; it should be {node_words(wanted)}"
    if wanted.op == found.op == "constant":
        return "" if wanted.type == found.type else f"{wanted.name} is of type {found.type}, expected {wanted.type}"
    places = zip_longest(wanted.operands[: len(found.operands)], found.operands)
    operands = tuple(ANY if of == ANY and _is_constant(made, name) else name for of, name in places)
    if comparable(replace(found, operands=operands)) != comparable(wanted):
        return f"{wanted.name} is {node_words(found)}\nand should be {node_words(wanted)}"
    return ""


def _product_words(name: str, *graphs: Graph) -> str:
    """What decides whether a product is fused, in a line, of the first graph where the node is a product; nothing where it is none."""
    graph = next((each for each in graphs if name in each.by_name and OPS[each[name].op].facts.fuses_into == "linear"), None)
    if graph is None:
        return ""
    product, activation = graph[name], getattr(graph[name].attributes, "activation", "")
    reads = [*(operand for node in graph for operand in node.operands), *(output.node for output in graph.outputs)].count(name)
    said = [f"activation={activation!r}", f"read {counted(reads, 'time')}"]
    said += [f"{print_name(of)} is {'a' if _is_constant(graph, of) else 'no'} constant" for of in product.operands[1:]]
    said += [f"{print_name(each)} is pinned" for each in (name, *product.operands[1:]) if is_pinned(graph[each])]
    return f"\nthe product {print_name(name)}: {', '.join(said)}"


def _is_constant(graph: Graph, name: str) -> bool:
    return graph[name].op == "constant"


def node_words(node: Node) -> str:
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
            place = place_of_largest(~near)
            return f"the output {old.name} differs: at {list(place)} it was {expected[place]:g} and is {found[place]:g}"
    return ""


def drawn(graph: Graph, draw: Random) -> Mapping[str, AnyArray]:
    """Values for the inputs of a graph."""
    generator = np.random.default_rng(draw.randrange(2**32))
    return {node.name: generator.standard_normal(node.type.shape, np.float32) for node in graph.inputs}


def listing(graph: Graph) -> str:
    """A graph as lines that can be read back."""
    return "\n".join(line for line in print_graph(graph, origins=False, with_data=True).splitlines() if line)


PASSES = {"constant-folding": "fold_constants", "fuse-bias": "fuse_bias", "fuse-activation": "fuse_activation"}
"""The functions of a submission that stand in for built-in passes."""


def compiled(rules: Rules, batch: int, submission: Submission) -> Outcome:
    """What the submission's passes leave of the graphs that the lab's own get in a program; then the program, compiled with the
    submission's and judged. So an archive, which has recorded what the lab's own passes leave, has the grader's verdict."""
    for function, graph in _graphs_of_a_program(rules, batch):
        if problem := different(graph, ask(function, graph, submission), wanted(function, graph, rules)):
            raise Failed("wrong", f"{problem}\nin the graph\n{listing(graph)}")
    exe = _program(batch, lambda function, graph: ask(function, graph, submission))
    verdict = verdict_on(exe, given=f"-D batch={batch}")
    return Outcome(1, f"compiled and equal: {len(exe.layers.value)} nodes of layers, {verdict.cycles:,} cycles")


def _graphs_of_a_program(rules: Rules, batch: int) -> Sequence[tuple[str, Graph]]:
    """The graphs that the lab's own passes get while the program is compiled, each with the function that gets it."""
    graphs: list[tuple[str, Graph]] = []

    def own(function: str, graph: Graph) -> Graph:
        graphs.append((function, graph))
        return read_graph(rules.solution.expected(function, graph), graph)

    _program(batch, own)
    return graphs


def _program(batch: int, leave: Callable[[str, Graph], Graph]) -> api.Executable:
    """The program, compiled with what `leave` makes of graphs in the place of built-in passes."""
    passes = tuple(GraphPass(name, "of the lab", 0, partial(_run, leave, function), {}) for name, function in PASSES.items())
    return api.compile_source(MODEL, params={"batch": batch}, target="tiny", passes=passes)


def _run(leave: Callable[[str, Graph], Graph], function: str, graph: Graph, _: Context) -> Graph:
    return leave(function, graph)


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")
