"""Lab 2: what is said of a product that should have been fused, or shouldn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tpucc.ir.parser import parse_graph
from tpucc.labs.passes.comparing import different
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.passes.rewriter import Rewriter

ROOT = Path(__file__).parents[2]

GRAPH = """graph lab2
x = input : f32[2, 2]
w = constant(value=f32[2, 2]{1.0, 2.0, 3.0, 4.0}) : f32[2, 2]
c = constant(value=f32[2]{1.0, 2.0}) : f32[2]
p = matmul(x, w) : f32[2, 2]
s = add(p, c) : f32[2, 2]
y = relu(s) : f32[2, 2]

return y as "out"
"""
BIAS = "s = linear(x, w, c) : f32[2, 2]"
BOTH = 'y = linear(x, w, c, activation="relu") : f32[2, 2]'


def graph(*nodes: str, **changes: str) -> str:
    """The graph, in which other lines define these nodes; without those that a change leaves empty."""
    names = {line.split(" = ")[0]: line for line in nodes} | changes
    lines = (names.get(line.split(" = ")[0], line) for line in GRAPH.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


SAID = {
    "no bias is seen in a product of its own": (
        graph(BIAS, p=""),
        graph(BIAS, p=""),
        graph(BOTH, p="", s=""),
        "the product s: activation='', read 1 time, w is a constant, c is a constant",
    ),
    "one that the pass has made": (
        GRAPH,
        graph(BIAS, p=""),
        graph(BOTH, p="", s=""),
        "the product s: activation='', read 1 time, w is a constant, c is a constant",
    ),
    "weights that are no constants": (
        graph("w = tanh(x) : f32[2, 2]"),
        graph("w = tanh(x) : f32[2, 2]", BIAS, p=""),
        graph("w = tanh(x) : f32[2, 2]"),
        "the product p: activation='', read 1 time, w is no constant",
    ),
    "another reader": (
        graph("y = mul(s, p) : f32[2, 2]"),
        graph(BIAS, "y = mul(s, p) : f32[2, 2]"),
        graph("y = mul(s, p) : f32[2, 2]"),
        "the product p: activation='', read 2 times, w is a constant",
    ),
    "a pinned product with an activation": (
        graph('p = linear(x, w, activation="tanh") : f32[2, 2] scale 0.5 zero 3'),
        graph(BIAS, p=""),
        graph('p = linear(x, w, activation="tanh") : f32[2, 2] scale 0.5 zero 3'),
        "the product p: activation='tanh', read 1 time, w is a constant, p is pinned",
    ),
}


@pytest.mark.parametrize(("given", "made", "wanted", "said"), SAID.values(), ids=SAID)
def test_a_message_says_what_decides_about_a_product(given: str, made: str, wanted: str, said: str) -> None:
    graphs = (parse_graph(text, "lab2.graph", ATTRIBUTES) for text in (given, made, wanted))
    assert different(*graphs).splitlines()[-1] == said


def test_the_rewriter_has_all_that_handouts_and_pages_name() -> None:
    """A method that goes would be an AttributeError in a student's pass."""
    rewriter = Rewriter(parse_graph(GRAPH, "g.graph", ATTRIBUTES), "test")
    texts = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tpucc" / "labs").rglob("material/*"),
        *(ROOT / "tests/labs/submissions").rglob("*.*"),
    ]
    named = {name for text in texts if text.is_file() for name in re.findall(r"\brewriter\.(?!py\b)(\w+)", text.read_text("utf-8"))}
    assert {"reads", "is_free", "put", "nodes"} <= named
    assert [name for name in sorted(named) if not hasattr(rewriter, name)] == []
