"""`source_of`: the text of a model, checked by the front end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from tpucc.diagnostics import Error, Source
from tpucc.interop.decompile.bodies import Writer, Written
from tpucc.interop.decompile.bounds import shortened
from tpucc.interop.decompile.functions import written
from tpucc.interop.decompile.lines import WIDTH
from tpucc.interop.decompile.literals import escaped
from tpucc.interop.decompile.loops import rolled
from tpucc.interop.decompile.names import required
from tpucc.interop.decompile.orders import orders
from tpucc.interop.decompile.program import Function, Program, Unwritable, program_of
from tpucc.interop.decompile.repeats import with_functions
from tpucc.interop.decompile.same import same_model
from tpucc.interop.decompile.statics import Scope
from tpucc.ir import Graph, Node, Output, TensorType
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.language.types import DECLARABLE

SHORTER = 0.87
"""To what part of its lines a model must come down, that another order of its nodes is taken."""
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[(\[)\]]|,(?= )')
"""A string, a bracket or a comma."""


class Style(Enum):
    """How much structure a text has, in the order in which they are tried."""

    LOOPS = "functions and loops for what is repeated"
    FUNCTIONS = "functions for what is repeated"
    NESTED = "expressions in each other"
    FLAT = "one operator a line"


Sample = tuple[Mapping[str, int], Graph]
"""The values of a model's params, and its graph for them."""


def source_of(
    graph: Graph,
    *,
    comments: Sequence[str] = (),
    weights: str | None = None,
    activations: str | None = None,
    params: Mapping[str, int] | None = None,
    samples: Sequence[Sample] = (),
) -> str:
    """The source text of a graph of operators, as the front end makes it: elaborated again, the text gives the same model (`same_model`).

    `comments` are the text's first lines, `weights` the file of its weights, `activations` their format if it is said. `params` are
    the values of the model's params for which the graph was made. Each of `samples` has other values of the same
    params, and the model's graph for them; so sizes become expressions of the params. The text gives the same model for these values, too.

    Of several orders of the nodes that is taken which makes the model clearly shorter.

    Raises `Unwritable` for a graph that the language can't say.
    """
    given = params or {}
    refused = Unwritable("")
    for style in Style:
        texts: list[str] = []
        for ordered in _ordered(graph, samples) if style is Style.LOOPS else [(graph, samples)]:
            try:
                texts.append(text_of(ordered[0], style, comments, weights, activations, given, ordered[1]))
            except Unwritable as error:
                refused = error
        for text in [best := _clearest(texts), *(text for text in texts if text is not best)] if texts else ():
            faults = (_fault(text, sample, others) for others, sample in [({}, graph), *samples])
            if not (fault := next(filter(None, faults), "")):
                return text
            refused = Unwritable(fault)
    raise refused


def _clearest(texts: Sequence[str]) -> str:
    """The text whose model has the fewest lines, the first of those that aren't clearly longer: in it more is steps of one function."""
    best = texts[0]
    for text in texts[1:]:
        if _model_lines(text) < SHORTER * _model_lines(best):
            best = text
    return best


def _model_lines(text: str) -> int:
    """The lines of the model, without those that go on with one that is too long: lists of scales are as long in any order."""
    lines = text[text.rindex("\nmodel ") if "\nmodel " in text else 0 :].splitlines()
    return sum(not line.endswith(",") for line in lines)


def _ordered(graph: Graph, samples: Sequence[Sample]) -> Iterator[tuple[Graph, list[Sample]]]:
    """The graph and the samples, with their nodes in several orders."""
    for ordered, *others in zip(*(orders(each) for each in (graph, *(sample for _, sample in samples))), strict=False):
        yield ordered, [(values, other) for (values, _), other in zip(samples, others, strict=True)]


def first_unwritable(graph: Graph) -> Node | None:
    """The first node that makes a graph one that the language can't say; None where it is the whole, as by the name of an output."""

    def fails(stop: int) -> bool:
        part = replace(graph, nodes=graph.nodes[:stop], outputs=(Output("out", graph.nodes[stop - 1].name),))
        try:
            return bool(_fault(text_of(part, Style.FLAT), part, {}))
        except Unwritable:
            return True

    found = bisect_left(range(1, len(graph.nodes) + 1), True, key=fails)
    return graph.nodes[found] if found < len(graph.nodes) else None


def text_of(
    graph: Graph,
    style: Style,
    comments: Sequence[str] = (),
    weights: str | None = None,
    activations: str | None = None,
    params: Mapping[str, int] | None = None,
    samples: Sequence[Sample] = (),
) -> str:
    """The text of a graph in a style, as for `source_of`, but not checked."""
    given = params or {}
    values = {name: (given[name], *(others[name] for others, _ in samples)) for name in given}
    program = program_of((graph, *(sample for _, sample in samples)), values)
    return "\n".join([*_head(comments, weights, activations, given), *_text(program, style)]) + "\n"


def _text(program: Program, style: Style) -> Iterator[str]:
    """The lines of the functions and of the model."""
    functions: dict[Function, Written] = {}
    if style in (Style.LOOPS, Style.FUNCTIONS):
        functions = written(program.body, with_functions(program.body), {program.name, *program.params})
    for function in functions.values():
        yield from _block(function.head, _looped(function.lines, style))
        yield ""
    yield from _model(program, functions, style)


def _looped(lines: Sequence[str], style: Style) -> Sequence[str]:
    """The lines, with loops if the style has them."""
    return rolled(lines) if style is Style.LOOPS else lines


def _block(head: str, lines: Sequence[str]) -> Iterator[str]:
    """A head and, indented, the lines under it."""
    yield from wrapped(head, 0)
    for line in map(shortened, lines):
        text = line.lstrip()
        yield from wrapped(text, 4 + len(line) - len(text))


def _fault(text: str, graph: Graph, params: Mapping[str, int]) -> str:
    """Why the front end doesn't make the graph of the text; empty if it does."""
    source = Source(graph.source or "model.tpu", text)
    try:
        found = elaborate(parse(source), source, {name: str(value) for name, value in params.items()}).graph
    except Error as error:
        return f"the front end refuses the text of the graph: {error.diagnostics[0].message}"
    return "" if same_model(found, graph) else "the text of the graph would mean another one"


def _head(comments: Sequence[str], weights: str | None, activations: str | None, params: Mapping[str, int]) -> Iterator[str]:
    yield from (f"# {line}".rstrip() for line in comments)
    yield from (f"param {required(name, 'a param')} = {value}" for name, value in params.items())
    if weights is not None:
        yield f'weights "{escaped(weights)}"'
    if activations is not None:
        yield f"activations {activations}"
    if comments or params or weights is not None or activations is not None:
        yield ""


def _model(program: Program, functions: Mapping[Function, Written], style: Style) -> Iterator[str]:
    """The lines of the model."""
    names = [required(name, "an input") for name, _ in program.inputs]
    outputs = [required(name, "an output") for name in program.outputs]
    scope = Scope(program.params, taken={*program.params, *(function.name for function in functions.values())})
    inputs = [f"{name}: {_input(types, scope)}" for name, (_, types) in zip(names, program.inputs, strict=True)]
    head, results = f"model {required(program.name, 'a model')}({', '.join(inputs)})", _results(program, scope)
    if results:
        head += f" -> ({results})" if len(head) + len(results) > WIDTH - 5 else f" -> {results}"
    writer = Writer(program.body, scope, names, functions, outputs, style is not Style.FLAT)
    lines = _looped(writer.lines(), style)
    if style is Style.LOOPS and writer.ends_a_row():
        late = _looped(writer.lines(late=True), style)
        lines = late if len(late) <= len(lines) else lines  # the last call is a round of the loop
    yield from _block(f"{head}:", lines)


def _input(types: Sequence[TensorType], scope: Scope) -> str:
    return _type(types, scope) + _range(types)


def _type(types: Sequence[TensorType], scope: Scope) -> str:
    if types[0].dtype not in DECLARABLE:
        raise Unwritable(f"the language has no inputs of the type {types[0].dtype}")
    sizes = [scope.text(sizes, "size") for sizes in zip(*(type_.shape for type_ in types), strict=True)]
    return f"{types[0].dtype}[{', '.join(sizes)}]"


def _range(types: Sequence[TensorType]) -> str:
    known = types[0].range
    if known is None:
        return ""
    integers = types[0].dtype == "i32"
    low, high = (str(int(end)) if integers else repr(end) for end in (known.low, known.high))
    return f" in [{low}, {high}]"


def _results(program: Program, scope: Scope) -> str:
    """The types of the results, if the language has words for all of them."""
    if any(types[0].dtype not in DECLARABLE for types in program.types):
        return ""
    return ", ".join(_type(types, scope) for types in program.types)


def wrapped(line: str, indent: int) -> Iterator[str]:
    """The line in several, if it is too long: broken behind commas in brackets, in as few brackets as will do."""
    lead, continued = " " * indent, " " * (indent + 4)
    places = deque(_breaks(line) if indent + len(line) > WIDTH else ())
    start = 0
    while len(lead) + len(line) - start > WIDTH and places:
        fitting = [places.popleft()]
        while places and len(lead) + places[0][0] - start <= WIDTH:
            fitting.append(places.popleft())
        outermost = min(depth for _, depth in fitting)
        chosen = max(index for index, (_, depth) in enumerate(fitting) if depth == outermost)
        places.extendleft(reversed(fitting[chosen + 1 :]))
        end = fitting[chosen][0]
        yield lead + line[start:end]
        start, lead = end + 1, continued
    yield lead + line[start:]


def _breaks(line: str) -> Iterator[tuple[int, int]]:
    """The places behind commas in brackets, each with the number of brackets around it."""
    depth = 0
    for found in TOKEN.finditer(line):
        token = found[0]
        depth += (token in "([") - (token in ")]")
        if token == "," and depth:
            yield found.end(), depth
