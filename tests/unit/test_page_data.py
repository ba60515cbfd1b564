"""The data that the page's scripts work on, part by part: packed columns, owners of rows, origins, stages."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tpucc
from tests.support.cases import each
from tests.support.machine import Writer
from tests.support.pictures import BIDI, chain_program
from tpucc.diagnostics import Origin, Span, printable
from tpucc.explain.attribution import owners
from tpucc.explain.recording import MOST, recorded
from tpucc.interop.programs import folder
from tpucc.ir import GraphBuilder, NoAttributes, Node, TensorType
from tpucc.isa.effects import effects
from tpucc.isa.program import Program, Resident
from tpucc.language import literals
from tpucc.machines.v1 import V1, Function, Opcode
from tpucc.runtime.check import random_inputs
from tpucc.see.page import KEYWORDS, coloured
from tpucc.see.page.columns import plain
from tpucc.see.page.machine import BOX_OF, machine_payload
from tpucc.see.page.payload import sentences_payload, source_lines
from tpucc.see.page.stages import LONGEST, Origins, Stage, stages_payload


def packed(value: int) -> bytes:
    """One number by the words of `columns`: zigzag, then groups of seven bits, the lowest first, all but the last marked."""
    rest = 2 * value if value >= 0 else -2 * value - 1
    groups = [rest & 127]
    while rest := rest >> 7:
        groups.append(rest & 127)
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_a_column_takes_every_integer_of_64_bits(values: list[int]) -> None:
    assert base64.b64decode(plain(np.array(values, np.int64))) == b"".join(map(packed, values))


def in_place() -> Program:
    """A buffer `a` that a sum of it and of `b` replaces, read once more, and one that the last instruction but HALT brings."""
    writer = Writer()
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=4)
    writer.add(Opcode.READ_HOST_MEMORY, host=4, dest=4, inner=4)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    both = {"ub_stride": 1, "ub2_stride": 1, "dest_stride": 1, "outer": 1, "inner": 4}
    writer.add(Opcode.VECTOR, function=Function.ADD, ub=4, ub2=0, dest=0, **both)
    writer.add(Opcode.VECTOR, function=Function.ADD, ub=0, ub2=4, dest=4, **both)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=4, host=16, inner=4)
    stays = (
        Resident("back", 0, 4, 4, 4, 5), Resident("sum", 0, 0, 4, 3, 4), Resident("b", 0, 4, 4, 1, 4), Resident("a", 0, 0, 4, 0, 3),
    )  # fmt: skip
    return replace(writer.program(), residents=stays)


def test_an_instruction_reads_what_was_there_before_what_it_brings() -> None:
    """By hand, for stays in any order: 0 is `back`, 1 the sum, 2 `b` and 3 `a`; -1 where an instruction has no such operand."""
    program = in_place()
    found = owners(program, effects(program.instructions))
    assert found.source.tolist() == [-1, -1, -1, 2, 1, 0, -1]
    assert found.source2.tolist() == [-1, -1, -1, 3, 2, -1, -1]
    assert found.target.tolist() == [3, 2, -1, 1, 0, -1, -1]


def test_a_transfer_of_several_buffers_has_all_of_them() -> None:
    """Nine blocks of five rows cross in one transfer, four in another; of what is written, each block by itself."""
    program = tpucc.compile_source("weights random(seed=0)\nmodel m(x: f32[5, 3300]):\n    weight w: f32[3300, 300]\n    return x @ w\n")
    code, stays = program.program.value.instructions, program.program.value.residents
    found = owners(program.program.value, effects(code))
    reads = np.flatnonzero(code["opcode"] == Opcode.READ_HOST_MEMORY).tolist()
    assert code["inner"][reads].tolist() == [45, 20]
    blocks = [
        [stays[found.target[index]].name, *(stays[other].name for at, other in found.others.tolist() if at == index)] for index in reads
    ]
    assert blocks == [[f"x.i8.{block}" for block in range(9)], [f"x.i8.{block}" for block in range(9, 13)]]
    assert set(found.others[:, 0].tolist()) == set(reads)


def test_what_the_last_instruction_writes_has_an_owner() -> None:
    program = in_place()
    program = replace(program, instructions=program.instructions[:5], layer_of=program.layer_of[:5])
    assert owners(program, effects(program.instructions)).target.tolist() == [3, 2, -1, 1, 0]


def test_an_origin_has_its_places_and_its_calls_apart() -> None:
    """The line is that of the outermost call; lines ascend, whatever order a set has them in."""
    origins, places, calls = Origins(), (Span(2, 5, 2, 9), Span(33, 1, 34, 2)), (Span(70, 3, 70, 8), Span(50, 1, 50, 4))
    assert [origins.number(origin) for origin in (Origin(places, calls, BIDI), Origin(calls[:1]), Origin(places, calls, BIDI))] == [0, 1, 0]
    one, other = origins.payload()
    assert (one["spans"], one["calls"], other["spans"]) == ([0, 1], [2, 3], [2]), "equal spans have one number"
    assert (one["line"], one["lines"], one["by"]) == (50, [2, 33, 34, 50, 70], printable(BIDI))
    assert (other["line"], other["lines"], other["calls"]) == (70, [70], [])


def stage(*names: str, line: int = 1, title: str = "", about: str = "") -> Stage:
    """A stage whose graph has an input for each name."""
    builder = GraphBuilder("g", "")
    for name in names:
        builder.add(Node(name, "input", (), NoAttributes(), TensorType("f32", (2,)), Origin((Span(line, 1, line, 2),))))
    return Stage(title, about, builder.build())


def numbers(column: str) -> list[int]:
    """A packed column of small steps as its values."""
    steps = [octet // 2 if octet % 2 == 0 else -(octet + 1) // 2 for octet in base64.b64decode(column)]
    assert all(octet < 128 for octet in base64.b64decode(column))
    return np.cumsum(steps).tolist() if steps else []


def test_a_line_that_stays_is_linked_to_where_its_node_comes_from_now() -> None:
    """The same stage gives the nodes other places and adds one: the kept line has the new places."""
    origins = Origins()
    found = stages_payload([stage("a", line=1), stage("a", "b", line=7)], origins)
    (kept, kind), (added, _) = (divmod(value, 3) for value in numbers(found["shown"][1]["rows"]))
    assert (kind, found["texts"].split("\n")[numbers(found["text"])[kept]][0]) == (0, "a")
    lines = [origins.payload()[number]["lines"] for number in numbers(found["origin"])]
    assert (lines[kept], lines[added]) == ([7], [7])


@each([-1, 0, 1, 50])
def test_a_long_line_is_cut(beyond: int) -> None:
    (whole,) = stages_payload([stage("x")], Origins())["texts"].split("\n")
    name = "x" * (LONGEST + beyond - len(whole) + 1)
    (text,) = stages_payload([stage(name)], Origins())["texts"].split("\n")
    assert len(text) == min(LONGEST, LONGEST + beyond)
    assert text.endswith("…") == (beyond > 0)
    assert text[:-1] == whole.replace("x", name, 1)[: len(text) - 1]


def test_names_in_stages_are_harmless() -> None:
    found = stages_payload([stage(BIDI, title=BIDI, about=BIDI)], Origins())
    assert found["shown"][0]["name"] == found["shown"][0]["summary"] == printable(BIDI)
    assert printable(found["texts"]) == found["texts"]
    assert "\n" not in found["texts"]


def test_lines_of_the_source_keep_their_tabs_and_nothing_else_that_acts() -> None:
    assert source_lines("a\tb\r\n\x1b[0m\r\n\n") == ["a\tb", printable("\x1b[0m"), ""]
    assert source_lines("") == [""]
    assert source_lines("x") == source_lines("x\n") == ["x"]


@each(
    [
        ('# a 1 "b"', [("comment", '# a 1 "b"')]),
        ("param batch = 200", [("keyword", "param"), ("number", "200")]),
        (
            '    weight k: f32[3] = "{n}.k"  # why',
            [("keyword", "    weight"), ("number", "3"), ("string", '"{n}.k"'), ("comment", "# why")],
        ),
        ("    y = relu(x2) if n else .5", [("call", "relu"), ("keyword", "if"), ("keyword", "else"), ("number", ".5")]),
        ("weight = 1e-3", [("number", "1e-3")]),
        ("<b>'#'</b>", [("string", "'#'")]),
    ]
)
def test_the_tokens_of_a_line_have_their_classes(line: str, tokens: list[tuple[str, str]]) -> None:
    markup = ET.fromstring(f"<code>{coloured(line)}</code>")
    assert "".join(markup.itertext()) == line
    assert [((span.get("class") or "").removeprefix("t-"), span.text) for span in markup] == tokens


def test_all_keywords_of_the_language_are_coloured() -> None:
    assert set(KEYWORDS) == literals.KEYWORDS


def test_sentences_are_those_of_the_instructions() -> None:
    program = chain_program("two", 600, [300, 260, 20])
    found = sentences_payload(program)
    packed = base64.b64decode(found["numbers"])
    groups = re.findall(rb"[\x80-\xff]*[\x00-\x7f]", packed)
    values = iter([sum((octet & 127) << 7 * place for place, octet in enumerate(group)) // 2 for group in groups])
    said = [re.sub("#", lambda _: f"{next(values):,}", found["forms"][form]) for form in numbers(found["form"])]
    assert said == [str(V1.read(record)) for record in program.instructions]
    assert next(values, None) is None
    assert len(found["forms"]) < len(said) / 2


def test_the_machine_view_has_a_box_for_the_rows_of_every_place() -> None:
    """A program may use any of them."""
    assert {rows.place for rows in V1.rows} <= BOX_OF.keys()


def test_the_machine_view_takes_few_bytes_for_each_instruction() -> None:
    """So that a page grows by 3 MB at most, whatever its window: `MOST` instructions with values, and the corners of the array."""
    runtime = tpucc.compile(folder() / "05_digits_cnn.tpu", params={"batch": 20}).runtime
    program, window = runtime.program, np.arange(len(runtime.program.instructions))
    found = recorded(runtime.begun(random_inputs(runtime)), window, "random inputs")
    given = (program, effects(program.instructions), runtime.waiting)
    made, bare = machine_payload(*given, found), machine_payload(*given, None)
    arrays = len(msgspec.json.encode(made.pop("arrays")))
    assert len(msgspec.json.encode(made)) / len(window) * MOST + arrays < 3_000_000
    assert len(msgspec.json.encode(bare)) < 4000 + 40 * len(window)
