"""`source_of`: the text of a model, checked by the front end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from tpucc.diagnostics import Error, Source
from tpucc.ir import Graph, Node
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.language.types import DECLARABLE
from tpucc.source.blocks import with_functions
from tpucc.source.functions import written
from tpucc.source.lines import Lines, clearest
from tpucc.source.names import RESERVED, Unwritable, escaped, required
from tpucc.source.scope import Scope
from tpucc.source.statements import Statements
from tpucc.source.statics import Statics
from tpucc.source.steps import body_of, same_model

WIDTH = 100
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[(\[)\]]|,(?= )')
"""A string, a bracket or a comma."""


def source_of(
    graph: Graph,
    *,
    comments: Sequence[str] = (),
    weights: str | None = None,
    activations: str | None = None,
    params: Mapping[str, int] | None = None,
    values: Mapping[str, int] | None = None,
) -> str:
    """The source text of a graph of operators, as the front end makes it: elaborated again, the text gives the same model (`same_model`).

    `comments` are the text's first lines, `weights` the file of its weights, `activations` their format if it is said. `params` are
    primes that the graph was made with: each size that is a multiple of one becomes a multiple of that param. The text has these `values`
    of them, or the primes.

    A text with functions and loops that doesn't give it makes way for one with an operator a line. Raises `Unwritable` for a graph that the
    language can't say.
    """
    params = params or {}
    values = {**params, **(values or {})}
    head = [*(f"# {line}".rstrip() for line in comments), *(f"param {required(name, 'a param')} = {values[name]}" for name in params)]
    head += [f'weights "{escaped(weights)}"'] if weights is not None else []
    head += [f"activations {activations}"] if activations is not None else []
    refused = Unwritable("")
    for structured in (True, False):
        try:
            text = "\n".join([*head, *([""] if head else []), *lines_of(graph, structured, params)]) + "\n"
        except Unwritable as error:
            refused = error
            continue
        if not (fault := _fault(text, graph, params)):
            return text
        refused = Unwritable(fault)
    raise refused


def _fault(text: str, graph: Graph, params: Mapping[str, int]) -> str:
    """Why the front end doesn't make the graph of the text; empty if it does."""
    try:
        found = graph_of(text, params, graph.source)
    except Error as error:
        return f"the front end refuses the text of the graph: {error.diagnostics[0].message}"
    return "" if same_model(found, graph) else "the text of the graph would mean another one"


def graph_of(text: str, params: Mapping[str, int], name: str = "") -> Graph:
    """The graph of a text with these values of its params. Raises the errors of the front end."""
    source = Source(name or "model.tpu", text)
    return elaborate(parse(source), source, {name: str(value) for name, value in params.items()}).graph


def lines_of(graph: Graph, structured: bool, params: Mapping[str, int] | None = None) -> Iterator[str]:
    """The lines of the functions and of the model, unchecked. Without structure each operator has a line of its own."""
    params = params or {}
    body = body_of(graph)
    inputs = [required(node.name, "an input") for node in graph.inputs]
    outputs = [required(output.name, "an output") for output in graph.outputs]
    functions = written(with_functions(body) if structured else [], params, {graph.name, *params})
    for function in functions.values():
        yield from _block(function.head, function.lines)
        yield ""
    scope = Scope(params, taken={*RESERVED, *params, *(function.name for function in functions.values())} - {*inputs, *outputs})
    ports = (f"{node.name}: {_type(node, scope)}{_range(node)}" for node in graph.inputs)
    head = f"model {required(graph.name, 'a model')}({', '.join(ports)})"
    if all(graph[output.node].type.dtype in DECLARABLE for output in graph.outputs):
        results = ", ".join(_type(graph[output.node], scope) for output in graph.outputs)
        head += f" -> ({results})" if len(head) + len(results) > WIDTH - 5 else f" -> {results}"
    statics = Statics(body, scope, inputs, functions)
    if structured:
        lines = clearest(body, statics, outputs)
    else:
        lines = list(Lines(Statements(body, body.results, None, lists=False), statics, outputs).lines())
    yield from _block(f"{head}:", lines)


def _type(node: Node, scope: Scope) -> str:
    dtype = node.type.dtype
    if dtype not in DECLARABLE:
        raise Unwritable(f"the language has no inputs of the type {dtype}")
    return f"{dtype}[{', '.join(scope.text((size,), 'size') for size in node.type.shape)}]"


def _range(node: Node) -> str:
    if node.type.range is None:
        return ""
    low, high = (str(int(end)) if node.type.dtype == "i32" else repr(end) for end in (node.type.range.low, node.type.range.high))
    return f" in [{low}, {high}]"


def _block(head: str, lines: Sequence[str]) -> Iterator[str]:
    """A head and, indented, the lines under it."""
    yield from wrapped(head, 0)
    for line in lines:
        text = line.lstrip()
        yield from wrapped(text, 4 + len(line) - len(text))


def wrapped(line: str, indent: int) -> Iterator[str]:
    """The line in several, if it is too long: broken behind commas in brackets, in as few brackets as will do."""
    lead, start, depth = " " * indent, 0, 0
    breaks: list[tuple[int, int]] = []
    for found in TOKEN.finditer(line):
        depth += (found[0] in "([") - (found[0] in ")]")
        breaks += [(found.end(), depth)] if found[0] == "," and depth else []
    ends = [end for end, _ in breaks]
    while len(lead) + len(line) - start > WIDTH and (first := bisect_right(ends, start)) < len(ends):
        fitting = breaks[first : max(first + 1, bisect_right(ends, start + WIDTH - len(lead)))]
        end, _ = max(fitting, key=lambda each: (-each[1], each[0]))
        yield lead + line[start:end]
        lead, start = " " * (indent + 4), end + 1
    yield lead + line[start:]
