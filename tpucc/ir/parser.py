"""Reads the text form of graphs, also typed by hand; `tpucc.ir.printer` shows what it looks like.

A node typed without an origin gets its own place in the text when the graph names no other source, and is "by text" otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from tpucc.collector import collector_paused
from tpucc.diagnostics import Label, LineError, Origin, Source, Span, did_you_mean, listed, printable
from tpucc.ir.attributes import Misfit, Value, conform, described, required, schema
from tpucc.ir.codec import MOST_ERRORS, Errors
from tpucc.ir.digests import HEADER, Known
from tpucc.ir.dtypes import FORMATS
from tpucc.ir.graph import Graph
from tpucc.ir.literals import MAX_ELEMENTS, DataReader, Section, parse_float, parse_range, parse_shape, parse_value
from tpucc.ir.node import SIDES, Attributes, Node, Output, Side
from tpucc.ir.tokens import SYNTAX, Cursor, Token
from tpucc.ir.types import Quantisation, TensorType
from tpucc.ir.verify import Problem, problems

_START = Span(1, 1, 1, 2)
OPERATOR, ATTRIBUTE, VALUE, TYPE, DATA = "E0731", "E0732", "E0733", "E0734", "E0736"


@dataclass(frozen=True, slots=True)
class GraphSpans:
    """Where the parts of a graph stand in the text that it was read from, for messages about them."""

    source: Source
    head: Span
    nodes: Mapping[str, Span]
    outputs: Mapping[str, Span]

    def of(self, kind: str, name: str) -> tuple[Label, ...]:
        """Where an "output" is named in the return, and anything else is defined; the graph's name where the text has no such thing."""
        return (Label((self.outputs if kind == "output" else self.nodes).get(name, self.head)),)


def parse_graph(text: str, name: str, attributes: Mapping[str, type], known: Known | None = None, most: int = MAX_ELEMENTS) -> Graph:
    """The graph of a text. Takes and raises what `read_graph` does."""
    return read_graph(text, name, attributes, known, most)[0]


def read_graph(
    text: str, name: str, attributes: Mapping[str, type], known: Known | None = None, most: int = MAX_ELEMENTS
) -> tuple[Graph, GraphSpans]:
    """The graph of a text, and where its parts stand.

    `name` stands in messages; `attributes` has the operators that are known and the dataclass of each one's attributes; `known` the
    constants that stand in the text by their digests; drawn constants may have at most `most` elements in all. Raises `ProgramError` with
    every independent error (20 at most), each with its place in the text.
    """
    source = Source(name, text.removeprefix("\ufeff"))
    reader = _Reader(name, attributes)
    with collector_paused():
        graph = reader.read(source.text.split("\n"), known, most)
    reader.errors.require_none(source)
    nodes = {line.node.name: line.place for line in reader.nodes}
    return graph, GraphSpans(source, reader.head.span, nodes, {output.name: span for output, span in reader.outputs})


def parse_nodes(text: str, attributes: Mapping[str, type], known: Known | None = None) -> list[Node]:
    """The nodes of lines that stand in no graph, as those of a rule that fired. Raises `ProgramError`."""
    reader, source = _Reader("", attributes), Source("", text)
    reader.read_lines(text.split("\n"), known, MAX_ELEMENTS)
    reader.errors.require_none(source)
    return [line.node for line in reader.nodes]


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a graph: `graph NAME "SOURCE" after PASS`.

    `after` is the pass that made the graph, empty if the text doesn't name it. `which` numbers passes of the same name; 0 is the last.
    """

    name: str = ""
    source: str = ""
    after: str = ""
    which: int = 0
    span: Span = _START
    """The place of the name."""


def head_of(text: str) -> Head:
    """The head of a graph's text; an empty one when there is none that can be read."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        cursor = Cursor(line, number)
        if cursor.next.kind != "end":
            try:
                return _header(cursor) if cursor.next.text == "graph" else Head()
            except LineError:
                return Head()
    return Head()


class _NodeLine(NamedTuple):
    """A node and the places of its name and operands."""

    node: Node
    place: Span
    operands: tuple[Span, ...]


class _Reader:
    """A graph in the making, line by line."""

    def __init__(self, name: str, attributes: Mapping[str, type]) -> None:
        self.name, self.attributes, self.errors = name, attributes, Errors()
        self.nodes: list[_NodeLine] = []
        self.outputs: list[tuple[Output, Span]] = []
        self.head, self.seen, self.failed = Head(), set[str](), set[str]()
        """`seen` has "graph" and "return" once the text has them, `failed` the first words of lines that can't be read."""

    def read(self, lines: Sequence[str], known: Known | None, most: int) -> Graph:
        end = self.read_lines(lines, known, most)
        graph = self._graph()
        if self.errors.are_enough:
            return graph
        if "graph" in self.seen:
            for problem in islice(problems(graph), MOST_ERRORS):
                self._problem(problem, end)
        elif not self.errors.found:
            self.errors.add(SYNTAX, "expected a line such as: graph NAME", _START)
        return graph

    def read_lines(self, lines: Sequence[str], known: Known | None, most: int) -> int:
        """Reads all lines, or those before too many errors; returns the number of lines before the first data section."""
        end, sections = self._sections(lines)
        self.data = DataReader(sections, known, most)
        for number, line in enumerate(lines[:end], 1):
            cursor = Cursor(line, number)
            if cursor.next.kind != "end" and not self.errors.attempt(self._line, cursor):
                self.failed.add(cursor.first.text.strip('"'))
                self.seen.add(cursor.first.text)
            if self.errors.are_enough:
                break
        return end

    def _sections(self, lines: Sequence[str]) -> tuple[int, dict[str, Section]]:
        """The number of lines before the first data section, and the sections."""
        starts = [(index, match) for index, line in enumerate(lines) if (match := HEADER.fullmatch(line))]
        ends = [*(index for index, _ in starts), len(lines)][1:]
        sections: dict[str, Section] = {}
        for (start, match), end in zip(starts, ends, strict=False):
            name = match[1]
            if name in sections:
                self.errors.add(DATA, f"two sections are named data {name}", Span(start + 1, 1, start + 1, len(lines[start]) + 1))
            sections.setdefault(name, Section("".join(lines[start + 1 : end]), int(match[2] or 0), match[3] or ""))
        return (starts[0][0] if starts else len(lines)), sections

    def _line(self, cursor: Cursor) -> None:
        if cursor.after_next.text == "=":
            self.nodes.append(self._node(cursor))
        elif cursor.next.text == "graph" and "graph" not in self.seen:
            self.head = _header(cursor)
            self.seen.add("graph")
        elif cursor.next.text == "return":
            if "return" in self.seen:
                raise cursor.error("a graph has one return, which names all outputs")
            self.seen.add("return")
            self.outputs += _outputs(cursor)
        else:
            raise cursor.error("expected NAME = OPERATOR(...) : TYPE, or return NAME, ...")

    def _graph(self) -> Graph:
        name, source = self.head.name, self.head.source
        placed = any(line.node.on_device for line in self.nodes)
        nodes = [_completed(line, named=bool(source), placed=placed) for line in self.nodes]
        own = not source and any(not line.node.origin for line in self.nodes)
        return Graph(name, tuple(nodes), tuple(output for output, _ in self.outputs), self.name if own else source)

    def _problem(self, problem: Problem, end: int) -> None:
        """Reports a problem of the graph unless it follows from a line that couldn't be read."""
        if problem.name in self.failed or (problem.node is None and problem.output is None and "return" in self.failed):
            return
        span = Span(end, 1, end, 2)
        if problem.node is not None:
            line = self.nodes[problem.node]
            span = line.place if problem.operand is None else line.operands[problem.operand]
        elif problem.output is not None:
            span = self.outputs[problem.output][1]
        self.errors.add(problem.code, problem.message, span, problem.help)

    def _node(self, cursor: Cursor) -> _NodeLine:
        """Reads `NAME = OPERATOR(OPERANDS, KEY=VALUE, ...) : TYPE on PLACE holds VALUES @ ORIGIN`."""
        name, place = cursor.name("the name of a node")
        cursor.expect("=", "after the name of a node")
        op, token = cursor.name("an operator")
        if op not in self.attributes:
            raise cursor.error(f"no operator is named {printable(op)}", token, OPERATOR, did_you_mean(op, self.attributes))
        operands: list[tuple[str, Token]] = []
        given: dict[str, Value] = {}
        for _ in cursor.until(")", "an argument") if cursor.accept("(") else ():
            if cursor.after_next.text == "=":
                self._attribute(cursor, self.attributes[op], given)
            elif given:
                raise cursor.error("operands come before attributes")
            else:
                operands.append(cursor.name("the name of an operand, or NAME = VALUE"))
        attributes = _made(cursor, self.attributes[op], given, token)
        cursor.expect(":", "and the type of the result")
        type_ = _type(cursor)
        side = _side(cursor) if cursor.accept("on") else None
        held = tuple(name for name, _ in _names(cursor, "a value")) if cursor.accept("holds") else ()
        origin = _origin(cursor) if cursor.accept("@") else Origin()
        cursor.done()
        node = Node(name, op, tuple(name for name, _ in operands), attributes, type_, origin, side, held)
        return _NodeLine(node, place.span, tuple(token.span for _, token in operands))

    def _attribute(self, cursor: Cursor, kind: type, given: dict[str, Value]) -> None:
        known = schema(kind)
        key, token = cursor.name("the name of an attribute")
        cursor.expect("=", "after the name of an attribute")
        if key not in known:
            has = f"its attributes are {', '.join(known)}" if known else "it has no attributes"
            raise cursor.error(f"the operator has no attribute {printable(key)}", token, ATTRIBUTE, did_you_mean(key, known) or has)
        if key in given:
            raise cursor.error(f"{key} is given twice", token, ATTRIBUTE)
        start, (type_, _) = cursor.next, known[key]
        value = parse_value(cursor, self.data)
        try:
            given[key] = conform(value, type_)
        except Misfit:
            raise cursor.error(f"{key} must be {described(type_)}", start, VALUE) from None


def _made(cursor: Cursor, kind: type, given: Mapping[str, Value], operator: Token) -> Attributes:
    if missing := [key for key in required(kind) if key not in given]:
        raise cursor.error(f"{operator} needs {listed(missing)}", operator, ATTRIBUTE)
    try:
        made: Attributes = kind(**given)
    except (ValueError, TypeError) as error:
        raise cursor.error(f"{operator}: {error}", operator, VALUE) from None
    return made


def _header(cursor: Cursor) -> Head:
    """Reads `graph NAME "SOURCE" after PASS`, or `after PASS 1` for the first of several passes by this name."""
    cursor.take()
    name, token = cursor.name("the name of the graph")
    source = cursor.string_of(cursor.take()) if cursor.next.kind == "string" else ""
    after, which = "", 0
    if cursor.accept("after"):
        after, _ = cursor.name("the name of a pass")
        which = cursor.integer("which of the passes by this name", 1) if cursor.next.kind == "number" else 0
    cursor.done()
    return Head(name, source, after, which, token.span)


def _outputs(cursor: Cursor) -> Iterator[tuple[Output, Span]]:
    """Reads `return h as "h", y`."""
    cursor.take()
    for node, token in _names(cursor, "a node") if cursor.next.kind != "end" else ():
        public = cursor.name("the name of an output")[0] if cursor.accept("as") else node
        yield Output(public, node), token.span
    cursor.done()


def _type(cursor: Cursor) -> TensorType:
    """Reads `f32[150, 4] in [0.0, 8.0] scale 0.1 zero 3`."""
    token = cursor.take()
    if token.text not in FORMATS:
        raise cursor.error(f"expected a type such as f32[2, 3], found {token}", token, TYPE, did_you_mean(token.text, FORMATS))
    shape = parse_shape(cursor)
    known = None
    if cursor.accept("in"):
        cursor.expect("[", "after in")
        known = parse_range(cursor)
    quantisation = _quantisation(cursor) if cursor.accept("scale") else None
    return TensorType(token.text, shape, known, quantisation)


def _quantisation(cursor: Cursor) -> Quantisation:
    scale = parse_float(cursor, "a scale")
    cursor.expect("zero", "and the zero point after the scale")
    return Quantisation(scale, cursor.integer("a zero point", -(2**31)))


def _side(cursor: Cursor) -> Side:
    """Reads `device` or `host`."""
    token = cursor.take()
    for side in SIDES:
        if token.text == side:
            return side
    raise cursor.error(f"expected device or host after on, found {token}", token, help=did_you_mean(token.text, SIDES))


def _names(cursor: Cursor, what: str) -> Iterator[tuple[str, Token]]:
    """Reads `h, y`: one name, and more where commas follow; what stands between a name and its comma is the caller's to read."""
    more = True
    while more:
        yield cursor.name(f"the name of {what}")
        more = cursor.accept(",")


def _origin(cursor: Cursor) -> Origin:
    """Reads `by PASS SPANS via CALLS`."""
    made_by = cursor.name("the name of a pass")[0] if cursor.accept("by") else ""
    spans = _spans(cursor)
    calls = _spans(cursor) if cursor.accept("via") else ()
    return Origin(spans, calls, made_by)


def _spans(cursor: Cursor) -> tuple[Span, ...]:
    spans: list[Span] = []
    while cursor.next.kind == "span":
        token = cursor.take()
        span = Span.parse(token.text)
        if span is None:
            raise cursor.error("expected a place such as 13:12-28", token)
        spans.append(span)
    return tuple(spans)


def _completed(line: _NodeLine, named: bool, placed: bool) -> Node:
    """The node with what the text leaves out.

    Without an origin it has its own place in the text or, when the text speaks of another source, is "by text". In a graph in which the
    device computes something, the nodes of which nothing is said are the host's.
    """
    node = line.node
    if not node.origin:
        node = replace(node, origin=Origin(made_by="text") if named else Origin((line.place,)))
    return replace(node, place="host") if placed and node.place is None else node
