"""What a submission returned: as the kind of value that was expected, or in words where it is another."""

from __future__ import annotations

import numpy as np

from tpucc.diagnostics import Error, counted
from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.ir.parser import parse_graph
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.numerics import AnyArray
from tpucc.passes.running import verify_stage
from tpucc.plugins.failures import Failed

SHOWN = 60
"""Characters of a value that are shown."""
LONGEST = 2**20
"""Characters of the longest text of a graph that is read."""
ELEMENTS = 2**16
"""Elements of all values that a graph may have more than twice those of the one that was given: the grader computes them."""


def integers(answer: Plain, shape: tuple[int, ...], expected: str) -> AnyArray:
    """An array of integers of this shape, of any of NumPy's types. Raises `Failed`, which says what was `expected`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        raise Failed("result", f"returned {said(answer)}; expected {expected}") from None
    if found.shape != shape or (found.dtype.kind not in "iu" and found.size):
        whole = ": `.astype(int)` makes integers, and `//` divides them" if found.dtype.kind == "f" and found.shape == shape else ""
        raise Failed("result", f"returned {said(answer)}; expected {expected}{whole}")
    return found


def said(answer: Plain) -> str:
    """`a str, 'here'`, `None`, `3 integers`; of other numbers in an array or in lists, their type and shape, as `float64 of shape [3]`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        found = np.asarray(None)
    if found.ndim == 1 and found.dtype.kind in "iu":
        return counted(len(found), "integer")
    if found.ndim and found.dtype.kind in "biuf":
        return f"{found.dtype} of shape {list(found.shape)}"
    if answer is None:
        return "None"
    kind = type(answer).__name__
    return f"a{'n' if kind[0] in 'aeiou' else ''} {kind}, {shortened(repr(answer))}"


def shortened(text: str) -> str:
    """At most `SHOWN` characters of a text."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


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
