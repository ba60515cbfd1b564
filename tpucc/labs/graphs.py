"""Graphs that a submission has handed back as text, in place of one that it was given."""

from __future__ import annotations

from tpucc.diagnostics import Error
from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.ir.parser import parse_graph
from tpucc.labs.answers import said
from tpucc.layers.kinds import ATTRIBUTES
from tpucc.passes.pipeline import verify_stage
from tpucc.plugins.failures import Failed

LONGEST = 2**20
"""Characters of the longest text that is read."""
ELEMENTS = 2**16
"""Elements of all values that a graph may have more than twice those of the one that was given: the grader computes them."""


def read_graph(answer: Plain, given: Graph, who: str = "") -> Graph:
    """The graph that a function made of `given`: valid, and of bounded size. Raises `Failed`; `who` begins its messages, as `rewrite `."""
    if not isinstance(answer, str) or not answer.startswith("graph "):
        raise Failed("result", f"{who}returned {said(answer)}; expected a graph")
    if len(answer) > LONGEST:
        raise Failed("result", f"{who}returned a graph of {len(answer):,} characters; at most {LONGEST:,} are read")
    most = 2 * elements(given) + ELEMENTS
    try:
        made = parse_graph(answer, "result.graph", ATTRIBUTES, most=most)
        verify_stage(made)
    except Error as error:
        first = error.diagnostics[0]
        raise Failed("wrong", f"{who}made a graph that is not valid: {first.code}: {first.message}") from None
    if elements(made) > most:
        raise Failed("wrong", f"{who}made values with {elements(made):,} elements in all; at most {most:,} are computed")
    return made


def elements(graph: Graph) -> int:
    """The elements of all values of a graph."""
    return sum(node.type.size for node in graph)
