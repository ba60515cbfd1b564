"""The text form of graphs: it reads back as what was printed, whatever the graph says, and explains what it can't read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tests.support.rewrites import ATTRIBUTES, drawn_graph
from tpucc.diagnostics import Origin, ProgramError, Span
from tpucc.ir import Constant, Graph, NoAttributes, Node, Output, Quantisation, Range, TensorType, f32
from tpucc.ir.codec import decode, encode, quote, unquote
from tpucc.ir.constants import Random, random_array
from tpucc.ir.dtypes import FORMATS
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.ir.verify import verify_graph
from tpucc.layers.kinds import Fc, Requantise, Vector, VectorFunction
from tpucc.ops.constant import ConstantAttributes

IRIS = """\
graph iris "iris.tpu"

x = input : f32[150, 4] in [0.0, 8.0]                           @ 13:12-28
fc1.w = weight(key="fc1.w") : f32[4, 256]                       @ 8:5-40 via 14:17-35
h.1 = matmul(x, fc1.w) : f32[150, 256]                          @ 11:12-17 via 14:17-35
h = leaky_relu(h.1, alpha=0.25) : f32[150, 256]                 @ 14:9-40 15:3-16:9
k = constant(value=f32[2]{1.0, -inf}) : f32[2]                  @ by constant-folding 3:1-4
w = constant(value=f32[40, 50] random(7, "w1")) : f32[40, 50]   @ 4:1-2
v = constant(value=f32[5, 4] data d0) : f32[5, 4]               @ 5:1-2
n = constant(value=i32[2]{-2147483648, 7}) : i32[2]             @ 6:1-2
q = constant(value=i8[1]{-128}) : i8[1] scale 0.5 zero -3       @ 7:1-2
u = constant(value=f32[5, 4] data d0) : f32[5, 4]               @ 8:1-2

return h as "h", k as "out1"

data d0
AAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAABAQQAAUEEAAGBBAABwQQAAgEEAAIhBAACQQQAAmEE=
"""


@dataclass(frozen=True, slots=True)
class Inner:
    """A dataclass in an attribute."""

    word: str
    real: float = 0.0
    array: Constant | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """One that holds others."""

    parts: tuple[Inner, ...] = ()


@dataclass(frozen=True, slots=True)
class Everything:
    """An attribute of each kind."""

    whole: int = 0
    real: float = 0.0
    text: str = ""
    flag: bool = False
    sizes: tuple[int, ...] = ()
    pair: tuple[str, float] | None = None
    interval: Range | None = None
    either: int | tuple[int, int] = 1
    nested: tuple[tuple[float, ...], ...] = ()
    array: Constant | None = None
    record: Inner | Outer | None = None


KNOWN = {**ATTRIBUTES, "fc": Fc, "vector": Vector, "everything": Everything, "none": NoAttributes}


def read(text: str) -> Graph:
    return parse_graph(text, "test.graph", KNOWN)


def errors(text: str) -> list[tuple[str, str]]:
    """The codes and places of a text's errors."""
    with pytest.raises(ProgramError) as caught:
        read(text)
    assert all(diagnostic.span is not None for diagnostic in caught.value.diagnostics)
    return [(diagnostic.code, str(diagnostic.span)) for diagnostic in caught.value.diagnostics]


def origins(graph: Graph) -> list[Origin]:
    return [node.origin for node in graph]


def test_text_is_read_and_printed_as_it_was() -> None:
    graph = read(IRIS)
    assert print_graph(graph) == IRIS
    assert graph["h"].origin == Origin((Span(14, 9, 14, 40), Span(15, 3, 16, 9)))
    assert graph["fc1.w"].origin.calls == (Span(14, 17, 14, 35),)
    assert graph["k"].origin.made_by == "constant-folding"
    assert graph["x"].type.range == Range(0.0, 8.0)
    assert graph["q"].type.quantisation == Quantisation(0.5, -3)
    assert graph.outputs == (Output("h", "h"), Output("out1", "k"))
    assert graph.source == "iris.tpu"


def test_constants_are_what_the_text_says() -> None:
    graph = read(IRIS)
    values = {node.name: node.attributes.value for node in graph if isinstance(node.attributes, ConstantAttributes)}
    assert values["w"] == random_array((40, 50), Random(7, "w1"))
    assert values["w"].drawn == Random(7, "w1")
    np.testing.assert_array_equal(values["v"].data, np.arange(20, dtype=np.float32).reshape(5, 4), strict=True)
    assert values["u"] is values["v"]
    np.testing.assert_array_equal(values["k"].data, np.array([1, -np.inf], np.float32), strict=True)
    np.testing.assert_array_equal(values["n"].data, np.array([-(2**31), 7], np.int32), strict=True)


def test_loosely_typed_text_is_read() -> None:
    text = (
        "\ufeff# a comment\r\n\tgraph g # another\r\n  x=input:f32 [ 2,3 ]\r\n"
        '"y"  =  leaky_relu( x , alpha = 1) : f32[2,3]\r\nreturn y, x as "in # put"\r\n'
    )
    graph = read(text)
    assert print_graph(graph, origins=False) == (
        'graph g\n\nx = input : f32[2, 3]\ny = leaky_relu(x, alpha=1.0) : f32[2, 3]\n\nreturn y as "y", x as "in # put"\n'
    )
    assert graph.source == "test.graph"
    assert graph["x"].origin == Origin((Span(3, 3, 3, 4),))
    assert read(print_graph(graph)) == graph


def test_a_line_added_to_a_printed_graph_is_by_text() -> None:
    graph = read('graph g "m.tpu"\nx = input : f32[2] @ 1:1-2\ny = relu(x) : f32[2]\nreturn y')
    assert graph["y"].origin == Origin(made_by="text")
    verify_graph(graph)


def test_words_of_the_text_form_are_good_names() -> None:
    text = "graph graph\ngraph = input : f32[1]\nreturn = relu(graph) : f32[1]\ndata = relu(return) : f32[1]\ninf = relu(data) : f32[1]\n"
    graph = read(text + "return return as return, data, inf as inf")
    assert [output.node for output in graph.outputs] == ["return", "data", "inf"]
    assert read(print_graph(graph)) == graph


HOSTILE = st.text(st.characters(), max_size=12) | st.sampled_from(
    ['"', "\\", "a\\", '\\"', "\n", "\r\n", "\u202e", "\ud800", "\ud83d\ude00", "😀", "<script>", "\0", "#", "é", "\x1b[2J", "\u2028", ""]
)
FLOATS = st.floats(allow_nan=False) | st.just(math.nan)
SIZES = st.integers(-(10**18), 10**18)
SPANS = st.builds(Span, st.integers(0, 10**9), st.integers(0, 99), st.integers(0, 10**9), st.integers(0, 99))
ORIGINS = st.builds(
    Origin, st.lists(SPANS, min_size=1, max_size=3).map(tuple), st.lists(SPANS, max_size=2).map(tuple), st.just("") | HOSTILE
)
RANGES = st.tuples(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30)).map(lambda ends: Range(min(ends), max(ends)))
TYPES = st.builds(
    TensorType,
    st.sampled_from(list(FORMATS)),
    st.lists(st.integers(1, 2**40), max_size=4).map(tuple),
    st.none() | RANGES,
    st.none() | st.builds(Quantisation, st.floats(1e-30, 1e30), st.integers(-128, 127)),
)


@st.composite
def arrays(draw: st.DrawFn) -> Constant:
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    dtype = draw(st.sampled_from(list(FORMATS.values()))).numpy
    if dtype.kind == "f" and draw(st.booleans()):
        return random_array(shape, Random(draw(st.integers(0, 2**60)), draw(HOSTILE)))
    size = int(np.prod(shape)) * dtype.itemsize
    return Constant(np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape))


INNERS = st.builds(Inner, HOSTILE, FLOATS, st.none() | arrays())
EVERYTHING = st.builds(
    Everything,
    SIZES,
    FLOATS,
    HOSTILE,
    st.booleans(),
    st.lists(SIZES, max_size=3).map(tuple),
    st.none() | st.tuples(HOSTILE, FLOATS),
    st.none() | RANGES,
    SIZES | st.tuples(SIZES, SIZES),
    st.lists(st.lists(FLOATS, max_size=3).map(tuple), max_size=3).map(tuple),
    st.none() | arrays(),
    st.none() | INNERS | st.builds(Outer, st.lists(INNERS, max_size=2).map(tuple)),
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(st.text("abcABC019_.", min_size=1, max_size=6), min_size=1, max_size=6, unique=True))
    nodes: list[Node] = []
    for index, name in enumerate(names):
        operands = tuple(draw(st.lists(st.sampled_from(names[:index]), max_size=3))) if index else ()
        op, attributes = draw(st.tuples(st.just("everything"), EVERYTHING) | st.just(("none", NoAttributes())))
        nodes.append(Node(name, op, operands, attributes, draw(TYPES), draw(ORIGINS)))
    publics = draw(st.lists(HOSTILE, min_size=1, max_size=3, unique=True))
    outputs = tuple(Output(public, draw(st.sampled_from(names))) for public in publics)
    return Graph(draw(HOSTILE), tuple(nodes), outputs, draw(HOSTILE))


@examples(60, 1_000)
@given(graphs())
def test_what_is_printed_reads_back(graph: Graph) -> None:
    verify_graph(graph)
    text = print_graph(graph)
    again = read(text)
    assert print_graph(again) == text
    assert origins(again) == origins(graph)
    assert again.source == graph.source
    if "nan" not in text:
        assert again == graph


@pytest.mark.long
@examples(40, 1_500)
@given(graphs())
def test_printed_text_is_harmless(graph: Graph) -> None:
    assert all(character.isprintable() or character == "\n" for character in print_graph(graph))


@each(range(20))
def test_drawn_graphs_read_back(seed: int) -> None:
    graph = drawn_graph(seed)
    again = read(print_graph(graph))
    assert again == graph
    assert origins(again) == origins(graph)


def test_layer_graphs_read_back() -> None:
    text = """\
graph layers "m.tpu"

x = input : i8[2, 3] scale 0.5 zero 1                           @ 1:1-2
w = constant(value=i8[3, 2]{1, 2, 3, -4, 5, -128}) : i8[3, 2]   @ 2:1-2
y = fc(x, w, w, w, epilogue=requantise(zero=3, low=-5, table=true)) : i8[2, 2] scale 0.25 zero -3 @ 3:1-2
z = vector(y, y, function="multiply", epilogue=requantise(scales=(0.125,), zeros=(0, 0))) : i8[2, 2] scale 0.25 zero 0 @ by quantise

return z as "z"
"""
    text = text.replace(" zero -3 @", " zero -3  @").replace(" zero 0 @", " zero 0  @").replace("  @", " @")
    graph = read(text)
    assert graph["y"].attributes == Fc(Requantise(3, -5, table=True))
    assert read(print_graph(graph)) == graph


def test_a_function_is_a_member_of_its_enumeration() -> None:
    text = 'graph g\nx = input : i8[2]\ny = vector(x, x, function="add") : i8[2]\nreturn y'
    graph = read(text)
    assert graph["y"].attributes.function is VectorFunction.ADD
    assert 'function="add"' in print_graph(graph)
    with pytest.raises(ProgramError, match="function must be 'add', 'subtract', 'multiply'"):
        read(text.replace("add", "divide"))


def test_records_say_what_is_wrong_with_them() -> None:
    with pytest.raises(ProgramError, match=r"epilogue must be requantise\(zero=…, low=…, high=…, table=…, scales=…, zeros=…\)"):
        read("graph g\nx = input : f32[2]\ny = fc(x, x, x, x, epilogue=requantize(zero=3)) : f32[2]\nreturn y")


def test_values_that_compare_equal_but_differ_are_kept_apart() -> None:
    attributes = Everything(real=-0.0, sizes=(1, 2), nested=((-0.0,),))
    graph = Graph("g", (Node("x", "everything", (), attributes, f32(1), Origin(made_by="test")),), (Output("x", "x"),))
    text = print_graph(graph)
    assert "real=-0.0, sizes=(1, 2), nested=((-0.0,),)" in text
    again = read(text)["x"].attributes
    assert isinstance(again, Everything)
    assert math.copysign(1, again.real) == -1


def test_every_bit_of_small_arrays_is_kept() -> None:
    """Payloads of NaN, signed zeros, denormal numbers, and decimals whose double lies halfway between two float32."""
    bits = np.array([0x7FC00001, 0x80000000, 1, 0x7F7FFFFF, 0xFF800000, 0x3DCCCCCD], np.uint32)
    for part in (bits, bits[1:]):
        graph = read("graph g\nx = input : f32[1]\nreturn x")
        node = replace(graph["x"], op="constant", attributes=ConstantAttributes(Constant(part.view(np.float32))), type=f32(len(part)))
        text = print_graph(graph.with_nodes([node]))
        value = read(text)["x"].attributes
        assert isinstance(value, ConstantAttributes)
        np.testing.assert_array_equal(value.value.data.view(np.uint32), part, strict=True)
    assert "f32[5]{-0.0, 1e-45, 3.4028235e+38, -inf, 0.1}" in text


BAD_LINES = [
    ("x = rely(a) : f32[2]", "E0731", "3:5-9"),
    ("x = relu(a, alpha=1) : f32[2]", "E0732", "3:13-18"),
    ("x = leaky_relu(a, alpha=1, alpha=2) : f32[2]", "E0732", "3:28-33"),
    ("x = slice(a, starts=(0,)) : f32[2]", "E0732", "3:5-10"),
    ('x = leaky_relu(a, alpha="1") : f32[2]', "E0733", "3:25-28"),
    ("x = gelu(a, approximate=1) : f32[2]", "E0733", "3:25-26"),
    ("x = slice(a, starts=(0.5,), stops=(1,)) : f32[2]", "E0733", "3:21-22"),
    ("x = relu(a) : f33[2]", "E0734", "3:15-18"),
    ("x = relu(a) : f32[-2]", "E0730", "3:19-21"),
    ("x = relu(a) : f32[2", "E0730", "3:20-21"),
    ("x = relu(a)", "E0730", "3:12-13"),
    ("x = relu(a) : f32[2] in [3, 1]", "E0730", "3:26-27"),
    ("x = relu(a) : f32[2] in [0, nan]", "E0730", "3:26-27"),
    ("x = relu(a) : f32[2] scale 0.1", "E0730", "3:31-32"),
    ("x = relu(a) : f32[2] on devise", "E0730", "3:25-31"),
    ("x = relu(a) : f32[2] on device on host", "E0730", "3:32-34"),
    ("x = relu(a) : f32[2] on host", "E0749", "2:1-2"),
    ("x = relu(a) : f32[2] holds", "E0730", "3:27-28"),
    ("x = relu(a) : f32[2] holds h on device", "E0730", "3:30-32"),
    ("x = relu(a) : f32[2] @ 13:1", "E0730", "3:24-26"),
    ("x = relu(a) : f32[0]", "E0746", "3:1-2"),
    ("x = relu(a) : f32[2] scale 0 zero 0", "E0746", "3:1-2"),
    ("x = relu(b) : f32[2]", "E0741", "3:10-11"),
    ("x = relu(x) : f32[2]", "E0741", "3:10-11"),
    ("a = relu(a) : f32[2]", "E0740", "3:1-2"),
    ('"a b" = relu(a) : f32[2]', "E0747", "3:1-6"),
    ("x = constant(value=f32[2]{1}) : f32[2]", "E0735", "3:26-27"),
    ("x = constant(value=i8[1]{128}) : i8[1]", "E0735", "3:26-29"),
    ("x = constant(value=f32[1]{1e39}) : f32[1]", "E0735", "3:27-31"),
    ("x = constant(value=f32[1]{1e999}) : f32[1]", "E0730", "3:27-32"),
    ("x = constant(value=f32[2] data d7) : f32[2]", "E0736", "3:32-34"),
    ("x = constant(value=f32[2] data d0) : f32[2]", "E0736", "3:32-34"),
    ("x = constant(value=f32[2] data d1) : f32[2]", "E0736", "3:32-34"),
    ("x = constant(value=f32[2] date d1) : f32[2]", "E0735", "3:27-31"),
    ('x = constant(value=f32[65536, 65536] random(1, "x")) : f32[1]', "E0735", "3:38-44"),
    ('x = constant(value=i8[2] random(1, "x")) : i8[2]', "E0735", "3:26-32"),
    ('x = weight(key="a\\q") : f32[2]', "E0730", "3:16-21"),
    ('x = weight(key="a) : f32[2]', "E0730", "3:16-28"),
    ("x = relu(alpha=1, a) : f32[2]", "E0732", "3:10-15"),
    ("x = leaky_relu(alpha=1, a) : f32[2]", "E0730", "3:25-26"),
    ("x = relu(a) : f32[2] % 3", "E0730", "3:22-23"),
    ("x relu(a)", "E0730", "3:1-2"),
    ("graph h", "E0730", "3:1-6"),
    (f"x = relu(a) : f32[{'9' * 5000}]", "E0730", "3:19-5019"),
    (f"x = leaky_relu(a, alpha={'9' * 5000}.0) : f32[1]", "E0730", "3:25-5027"),
    (f"x = everything(sizes={'(' * 5000}) : f32[1]", "E0730", "3:38-39"),
    ("x = everything(record=inner()) : f32[1]", "E0733", "3:23-28"),
    ('x = everything(record=inner(word="a", wrod=1)) : f32[1]', "E0733", "3:23-28"),
    ("x = everything(record=inner(word=1)) : f32[1]", "E0733", "3:23-28"),
    ('x = everything(record=inner(word="a", word="b")) : f32[1]', "E0730", "3:39-43"),
    ('x = everything(record=inner("a")) : f32[1]', "E0730", "3:32-33"),
    ('x = everything(record=inner(word="a") : f32[1]', "E0730", "3:39-40"),
    ("x = everything(record=range(low=0, high=1)) : f32[1]", "E0733", "3:23-28"),
    ("x = everything(interval=range(low=0, high=1)) : f32[1]", "E0733", "3:25-30"),
    ("x = everything(record=other(a=1)) : f32[1]", "E0733", "3:23-28"),
    (f"x = everything(record={'inner(word=' * 5000}) : f32[1]", "E0730", "3:199-204"),
]


@each(BAD_LINES)
def test_errors_are_found_in_their_place(line: str, code: str, place: str) -> None:
    assert errors(f"graph g\na = input : f32[2]\n{line}\nreturn a\ndata d0\nAAAA\ndata d1\nA=A\n") == [(code, place)]


@each(
    [
        ("", "E0730", "1:1-2"),
        ("a = input : f32[2]\nreturn a", "E0730", "1:1-2"),
        ("graph g\na = input : f32[2]", "E0742", "2:1-2"),
        ("graph g\na = input : f32[2]\nreturn", "E0742", "3:1-2"),
        ("graph g\na = input : f32[2]\nreturn b", "E0743", "3:8-9"),
        ("graph g\na = input : f32[2]\nreturn a, a", "E0744", "3:11-12"),
        ("graph g\na = input : f32[2]\nreturn a\nreturn a", "E0730", "4:1-7"),
        ("graph g\na = input : f32[2]\nreturn a as", "E0730", "3:12-13"),
        ("graph g\na = input : f32[2]\nreturn a\ndata d0\ndata d0\n", "E0736", "5:1-8"),
    ]
)
def test_errors_of_the_frame(text: str, code: str, place: str) -> None:
    assert errors(text) == [(code, place)]


def test_independent_errors_are_reported_together_and_consequences_are_not() -> None:
    text = "graph g\na = input : f33[2]\nb = rely(a) : f32[2]\nc = relu(b) : f32[2]\nd = relu(e) : f32[2]\nreturn c, b"
    assert errors(text) == [("E0734", "2:13-16"), ("E0731", "3:5-9"), ("E0741", "5:10-11")]


def test_messages_suggest_and_point() -> None:
    with pytest.raises(ProgramError) as caught:
        read("graph g\nimage = input : f32[2]\ny = sigmod(image) : f32[2]\nz = relu(imgae) : f32[2]\nreturn z")
    assert str(caught.value) == (
        "test.graph:3:5: error E0731: no operator is named sigmod\n"
        "   3 | y = sigmod(image) : f32[2]\n"
        "     |     ^^^^^^\n"
        "help: did you mean sigmoid?\n"
        "\n"
        "test.graph:4:10: error E0741: z reads imgae, which no node defines\n"
        "   4 | z = relu(imgae) : f32[2]\n"
        "     |          ^^^^^\n"
        "help: did you mean image?"
    )


@pytest.mark.long
def test_many_errors_end() -> None:
    bad = "\n".join(f"n{i} = relu(m{i}) : f32[1]" for i in range(10_000))
    assert len(errors(f"graph g\n{bad}\nreturn n1")) == 20
    worse = "\n".join(f"n{i} = relv(m{i}) : f32[1]" for i in range(10_000))
    assert len(errors(f"graph g\n{worse}\nreturn n1")) == 20


@pytest.mark.parametrize("line", ['"' + '\\"' * 100_000, '"\\' * 100_000, "(" * 100_000, "1:1-" * 100_000, "-" * 100_000, "1" * 100_000])
def test_hostile_lines_are_refused(line: str) -> None:
    assert errors(f"graph g\nx = {line}\nreturn x")[0][0] == "E0730"


@pytest.mark.long
def test_a_large_graph_reads_back() -> None:
    nodes = [Node("n0", "input", (), NoAttributes(), f32(2), Origin((Span(1, 1, 1, 2),)))]
    nodes += [Node(f"n{i}", "relu", (f"n{i - 1}",), NoAttributes(), f32(2), Origin((Span(i, 1, i, 2),))) for i in range(1, 10_000)]
    graph = Graph("g", tuple(nodes), (Output("y", "n9999"),))
    assert read(print_graph(graph)) == graph


def test_a_constant_that_many_nodes_have_is_written_once() -> None:
    value = ConstantAttributes(Constant(np.arange(1000, dtype=np.float32)))
    equal = ConstantAttributes(Constant(np.arange(1000, dtype=np.float32)))
    origin = Origin(made_by="test")
    nodes = [Node(f"n{i}", "constant", (), (value, equal)[i % 2], f32(1000), origin) for i in range(100)]
    text = print_graph(Graph("g", tuple(nodes), (Output("y", "n0"),)))
    assert text.count("data d0\n") == 1
    assert "data d1" not in text


def test_the_verifier_names_what_a_pass_did_wrong() -> None:
    place = Origin((Span(3, 1, 3, 2),))
    x = Node("x", "input", (), NoAttributes(), f32(2), place)

    def codes(graph: Graph) -> list[str]:
        with pytest.raises(ProgramError) as caught:
            verify_graph(graph)
        return [diagnostic.code for diagnostic in caught.value.diagnostics]

    good = Graph("g", (x,), (Output("x", "x"),))
    verify_graph(good)
    assert codes(replace(good, outputs=())) == ["E0742"]
    assert codes(replace(good, outputs=(Output("x", "y"),))) == ["E0743"]
    assert codes(replace(good, outputs=(Output("x", "x"), Output("x", "x")))) == ["E0744"]
    assert codes(replace(good, nodes=(x, x))) == ["E0740"]
    assert codes(replace(good, nodes=(x, replace(x, name="y", operands=("z", "y"))))) == ["E0741", "E0741"]
    assert codes(replace(good, nodes=(replace(x, origin=Origin()),))) == ["E0745"]
    assert codes(replace(good, nodes=(replace(x, type=f32(2, 0)),))) == ["E0746"]
    assert codes(replace(good, nodes=(replace(x, type=TensorType("f64", (1,))),))) == ["E0746"]
    assert codes(replace(good, nodes=(replace(x, type=f32(1).with_range(Range(0, math.inf))),))) == ["E0746"]
    assert codes(replace(good, nodes=(x, replace(x, name="y\n")))) == ["E0747"]
    assert codes(replace(good, nodes=(replace(x, attributes=Everything(text=Path("."))),))) == ["E0748"]  # type: ignore[arg-type]
    assert codes(replace(good, nodes=(replace(x, attributes=Everything(whole=10**30)),))) == ["E0748"]
    assert codes(replace(good, nodes=(replace(x, attributes=Everything(record=Inner(Path(".")))),))) == ["E0748"]  # type: ignore[arg-type]
    deep: tuple[object, ...] = ()
    for _ in range(100_000):
        deep = (deep,)
    assert codes(replace(good, nodes=(replace(x, attributes=Everything(sizes=deep)),))) == ["E0748"]  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_bytes_read_back(data: bytes) -> None:
    text = encode(data)
    assert decode(text) == data
    assert decode(text.replace("\n", "\r\n  ")) == data
    assert all(len(line) <= 1024 for line in text.splitlines())


@each(["A", "AB=", "AB==x", "QQ==QQ==", "QR==", "QUF=", "Q===", "é", "====", "QQ==\0", "Q-=="])
def test_text_that_is_not_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


@given(st.text(st.characters()))
def test_strings_read_back(text: str) -> None:
    quoted = quote(text)
    assert unquote(quoted) == text
    assert quoted.isprintable()


@each(["", '"', "a", '"a', '"\\x"', '"\\"', '"a"b"', '"\\U00110000"', '"\\u12"'])
def test_text_that_is_not_a_string_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unquote(text)


def test_equal_arrays_have_equal_hashes() -> None:
    drawn = random_array((40, 50), Random(1, "k"))
    assert drawn == Constant(drawn.data.copy())
    assert hash(drawn) == hash(Constant(drawn.data.copy()))
