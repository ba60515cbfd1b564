"""The page: one file, self-contained, with everything in it and every name escaped; and the data that its scripts work on."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tpucc
from tests.support.cases import each
from tests.support.examples import examples
from tests.support.pictures import BIDI, HOSTILE
from tests.support.stats import made_up
from tpucc.artifacts import artifacts
from tpucc.diagnostics import Origin, Span
from tpucc.explain import nesting as nesting_module
from tpucc.explain.attribution import attribution, owners
from tpucc.explain.nesting import Source, calls_of, nesting
from tpucc.explain.quality import Accuracy
from tpucc.explain.summary import facts
from tpucc.explain.terms import GLOSSARY, TERMS
from tpucc.ir.parser import parse_graph
from tpucc.isa.effects import effects
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.see.kit import SCRIPTS as KIT
from tpucc.see.kit import scripts
from tpucc.see.page import SCRIPTS
from tpucc.see.page.columns import deltas, plain
from tpucc.see.page.machine import _left_out
from tpucc.see.page.stages import Origins, Stage, stages_payload
from tpucc.see.page.summary import HEADS, MOST_LAYERS, layer_table, summary

PROGRAMS = Path(__file__).parents[2] / "programs"
VOID = {"meta", "input"}
DENSE = """
weights random(seed=1)
def dense(x, n, name):
\tweight w: f32[x.shape[-1], n] = "{name}.w"  # "<b>" & co
    return x @ w
model small(x: f32[8, 300]) -> f32[8, 5]:
    return dense(relu(dense(x, 270, "a")), 5, "b")
""".replace("\tweight", "    weight")


def statistics(count: int = 2, name: str = "iris") -> dict[str, Any]:
    layers = [
        {
            "name": f"{name}{i}", "kind": "fc", "line": 2, "cycles": 100 + i, "macs": 5, "tiles": 1, "tops": 0.5, "instructions": 9,
            "waits_by_root": {"weight_memory": 61},
        }
        for i in range(count)
    ]  # fmt: skip
    return made_up(
        model=name, target="tpu_v1", tpucc="0.1.0", cycles=12345, seconds=1.7636e-5, macs=1000, tops=1.25, utilization=0.0136,
        instructions=42, tiles=3, weight_bytes=196608, ub_peak_bytes=38400, ub_lower_bound_bytes=38400, host_bytes={"in": 256, "out": 512},
        bottleneck="weight memory", explanation="Why.", advice="", layers=layers,
        waits_by_root={"weight_memory": 7530, "weight_shift": 1235, "activation": 494, "dependencies": 617},
    )  # fmt: skip


def test_operators_of_a_host_step_have_their_whole_names() -> None:
    stats = statistics(1)
    operators = ["batch_norm", "layer_norm", "global_avg_pool", "softmax", "exp"]
    step = {**stats["layers"][0], "name": "host step 12", "kind": "host", "operators": operators}
    table = str(layer_table({**stats, "layers": [step]}))
    assert "host step 12: batch_norm, layer_norm, global_avg_pool, 2 more (host)" in table


def page_of(exe: tpucc.Executable, accuracy: Accuracy | None = None) -> str:
    assert exe.compilation is not None
    return artifacts(exe.compilation, exe.runtime, "small", ("report",), accuracy).files["report.html"].decode()


@cache
def small() -> tpucc.Executable:
    return tpucc.compile_source(DENSE)


@cache
def page() -> str:
    return page_of(small(), Accuracy(57, 0.984, 0.9825))


def data(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def numbers(text: str, steps: bool = False) -> list[int]:
    """A reader of packed columns, a number at a time."""
    values, value, weight = [], 0, 1
    for octet in base64.b64decode(text):
        value += (octet & 127) * weight
        weight *= 128
        if octet < 128:
            values.append(-(value + 1) // 2 if value % 2 else value // 2)
            value, weight = 0, 1
    return [sum(values[: i + 1]) for i in range(len(values))] if steps else values


class Reader(HTMLParser):
    """Checks that elements nest, and collects ids, links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [value or "" for key, value in attrs if key in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_nests_and_its_ids_and_links_hold_together() -> None:
    reader = read(page())
    assert len(set(reader.ids)) == len(reader.ids)
    assert {"view-summary", "view-graph", "view-roofline", "line-1", "line-7", "graph", "program", "cells", "data"} <= set(reader.ids)
    assert all(link.startswith("#") and link[1:] in reader.ids for link in reader.links)


def test_nothing_is_fetched() -> None:
    html = page().replace("http://www.w3.org/2000/svg", "")
    html = re.sub(r'^ *(//|/\*\*|\*).*$|"[^"]*// [^"]*"', "", html, flags=re.MULTILINE)
    assert not re.search(r"https?:|@import|<link|<img|\bfetch\(|XMLHttpRequest|\bsrc=|url\((?!#)", html)
    assert "default-src 'none'" in html


def test_source_numbers_and_layers_are_on_the_page() -> None:
    text = "".join(read(page()).text)
    assert '= "{name}.w"  # "<b>" & co' in text
    stats = small().stats
    for words in (
        f"{stats['cycles']:,} cycles",
        stats["bottleneck"],
        "a (fc)",
        "98.2 % right in int8 (98.4 % in float32)",
        "57 held-out rows",
    ):
        assert words in text


def test_the_bar_of_a_line_is_its_share_of_the_cycles() -> None:
    html, cycles = page(), small().stats["cycles"]
    line = next(part for part in html.split("\n") if 'id="line-7"' in part)
    assert f"{cycles:,} cycles, 100 %" in line
    assert "width:100.0%" in line
    assert "<span" not in next(part for part in html.split("\n") if 'id="line-1"' in part)
    for number in (3, 5):
        inner = next(part for part in html.split("\n") if f'id="line-{number}"' in part)
        assert f'title="{cycles:,} cycles, 100 %: the sum of all calls of the def" class="sum" style="width:100.0%"' in inner


def test_a_layer_counts_for_each_line_that_it_comes_from() -> None:
    """Line 4 is a gate of the product in line 3, whose layer is one with it."""
    text = "weights random(seed=0)\ndef gate(x, w):\n    z = x @ w\n    return sigmoid(z)\n"
    text += "model m(x: f32[4, 8]) -> f32[4, 8]:\n    weight w: f32[8, 8]\n    h = gate(x, w)\n    y = gate(h, w)\n    return y\n"
    made = tpucc.compile_source(text, name="m.tpu")
    lines = [part for part in page_of(made).split("\n") if 'id="line-' in part]
    titles = [found[1] if (found := re.search('title="([^"]*) cycles', line)) else "" for line in lines]
    whole = f"{made.stats['cycles']:,}"
    assert titles == ["", whole, whole, whole, "", whole, *(f"{layer['cycles']:,}" for layer in made.stats["layers"][:2]), ""]


def test_hostile_names_are_escaped() -> None:
    text = f"# {BIDI.replace(chr(0), '').replace(chr(10), '')}\n# {HOSTILE}\n# </script><!-- <script>\n{DENSE}"
    html = page_of(tpucc.compile_source(text, name=f"{HOSTILE}.tpu"))
    assert html.count("<script") == 2
    assert html.count("</script") == 2
    assert "<!--" not in html
    assert not re.search("[\u202e\x00]", html)
    assert HOSTILE in "".join(read(html).text)
    assert HOSTILE in data(html)["lines"][1]


def test_names_from_a_summary_are_escaped() -> None:
    html = summary(statistics(name=HOSTILE), None, (HOSTILE, BIDI))
    assert "<script" not in html
    assert HOSTILE in "".join(read(html).text)


def test_the_page_says_which_params_were_given() -> None:
    text = "param batch = 8\n" + DENSE.replace("f32[8,", "f32[batch,")
    assert "compiled with batch = 3" in page_of(tpucc.compile_source(text, params={"batch": 3}))
    assert "compiled with" not in page()


def test_a_large_model_shows_its_slowest_layers() -> None:
    html = summary(statistics(500), None, ())
    assert html.count("<tr") == 1 + MOST_LAYERS + 2  # the heads, the others, the sum
    assert "iris499 (fc)" in html
    assert "iris3 (fc)" not in html


def test_the_same_page_every_time() -> None:
    assert page() == page_of(tpucc.compile_source(DENSE), Accuracy(57, 0.984, 0.9825))


def test_every_script_is_on_the_page() -> None:
    folder = Path(tpucc.__file__).parent / "see" / "page" / "js"
    assert sorted({*SCRIPTS} - {*KIT}) == sorted(path.stem for path in folder.glob("*.js"))
    assert scripts("tpucc.see.page", SCRIPTS) in page()


@examples(50, 8_000)
@given(st.lists(st.integers(-(2**53), 2**53), max_size=40))
def test_columns_are_read_back(values: list[int]) -> None:
    assert numbers(plain(np.array(values, np.int64))) == values
    assert numbers(deltas(np.array(values, np.int64)), steps=True) == values


@each(
    [
        ("gpt.onnx as .tpu", "tpucc report gpt.onnx --values A:B"),
        ("my model.tpu", "tpucc report 'my model.tpu' --values A:B"),
        ("module as .tpu", "tpucc report MODEL.tpu --values A:B"),
    ]
)
def test_the_command_for_other_values_of_the_machine_can_be_typed(name: str, command: str) -> None:
    """An imported model has the name of a source that is no file, and a module of PyTorch has none at all."""
    assert f". {command} makes it" in _left_out(replace(small().runtime.program, source=name), None)


def test_layers_have_names_for_a_column_that_tell_them_apart() -> None:
    names = ["block.attention.query", "block.attention.value"]
    lines = [f'    weight w{i}: f32[4, 4] = "{name}.w"' for i, name in enumerate(names)]
    source = "\n".join(["weights random(seed=0)", "model m(x: f32[2, 4]):", *lines, "    return relu(x @ w0) @ w1", ""])
    found = data(page_of(tpucc.compile_source(source)))["layers"]
    assert [layer["brief"] for layer in found] == ["…ion.query", "…ion.value", "input"]


def test_the_instructions_are_those_of_the_program() -> None:
    code, program, timeline = data(page())["code"], small().runtime.program, small().runtime.timeline
    start = numbers(code["start"], steps=True)
    assert start == timeline.start.tolist()
    assert [a + b for a, b in zip(start, numbers(code["length"]), strict=True)] == timeline.end.tolist()
    assert numbers(code["layer"], steps=True) == attribution(program).of.tolist()
    octets = np.frombuffer(base64.b64decode(code["opcode"]), np.uint8)
    assert (octets % 128).tolist() == program.instructions["opcode"].tolist()
    assert (octets >= 128).tolist() == effects(program.instructions).pops.tolist()
    lines = (line.strip() for line in str(small().program).split("\n") if re.match(r" +[a-z]+", line))
    text = data(page())["text"]
    words, own = text["words"].split("\n"), iter(numbers(text["numbers"]))
    written = [" ".join(words[next(own)] for _ in range(count)) for count in numbers(text["counts"])]
    assert written == [re.sub(r" +; \d+$", "", line) for line in lines]
    assert len(words) == len(set(words)), "each is stored once"


def test_waits_are_those_of_the_numbers() -> None:
    waits, stats = data(page())["waits"], small().stats
    roots = np.frombuffer(base64.b64decode(waits["root"]), np.uint8)
    total = np.bincount(roots, numbers(waits["length"]), minlength=len(waits["roots"]))
    assert {root["name"]: cycles for root, cycles in zip(waits["roots"], total.tolist(), strict=True)} == stats["waits_by_root"]


def test_origins_link_layers_to_the_lines_of_their_weights_and_calls() -> None:
    found = data(page())
    lines = [found["origins"][layer["origin"]]["lines"] for layer in found["layers"]]
    assert lines == [[4, 5, 7], [4, 5, 7], [6]]
    calls = [found["origins"][layer["origin"]]["calls"] for layer in found["layers"]]
    assert calls[0] != calls[1]


@pytest.mark.parametrize("name", ["02_iris", "05_digits_cnn", "06_digits_lstm"])
def test_buffers_of_instructions_are_found_row_by_row(name: str) -> None:
    program = tpucc.compile(PROGRAMS / f"{name}.tpu", level=2).runtime.program
    touched = effects(program.instructions)
    found = owners(program, touched)
    for column, walks, late in (
        (found.source, touched.source, True),
        (found.source2, touched.source2, True),
        (found.target, touched.target, False),
    ):
        for index in range(len(touched)):
            row, used = int(walks.low[index]), walks.high[index] > walks.low[index]
            there = [
                number
                for number, stay in enumerate(program.residents)
                if used
                and stay.start <= row < stay.start + stay.rows
                and (stay.first < index if late else stay.first <= index)
                and index <= stay.last
            ]
            assert (column[index] in there) if there else not used or column[index] >= 0


def _stages(texts: list[list[str]]) -> list[Stage]:
    graphs = []
    for names in texts:
        body = "\n".join(f"{name} = input : f32[2] @ 1:1-2" for name in names)
        graphs.append(parse_graph(f'graph g\n\n{body}\n\nreturn {names[0]} as "y"\n', "g", ATTRIBUTES))
    return [Stage(f"pass{number}", "does", graph) for number, graph in enumerate(graphs)]


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@examples(25, 5_000)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_stage_shows_what_came_and_what_went(texts: list[list[str]]) -> None:
    found = stages_payload(_stages(texts), Origins())
    words = [text.split(" ")[0] for text in found["texts"].split("\n")]
    lines = [words[number] for number in numbers(found["text"], steps=True)]
    before: list[str] = []
    changed = [names for number, names in enumerate(texts) if number == 0 or names != texts[number - 1]]
    assert len(found["shown"]) == len(changed)
    assert found["unchanged"] == len(texts) - len(changed)
    for number, (stage, names) in enumerate(zip(found["shown"], changed, strict=True)):
        rows = [(lines[value // 3], value % 3) for value in numbers(stage["rows"], steps=True)]
        assert [line for line, kind in rows if kind != 2] == names
        if number:
            assert [line for line, kind in rows if kind != 1] == before
            assert stage["added"] == sum(kind == 1 for _, kind in rows)
        before = names


def test_a_node_that_a_pass_leaves_but_for_its_origin_has_the_new_one() -> None:
    """Fusion may only add places to a node: nothing is shown as changed, and the next stage is linked to all of them."""
    (before,) = _stages([["a", "b"]])
    moved = before.graph.with_nodes(replace(node, origin=Origin((Span(7, 1, 7, 2),))) for node in before.graph)
    (last,) = _stages([["a", "b", "c"]])
    grown = last.graph.with_nodes([*moved.nodes, last.graph["c"]])
    origins = Origins()
    found = stages_payload([before, Stage("merge", "", moved), Stage("grow", "", grown)], origins)
    assert [stage["name"] for stage in found["shown"]] == ["pass0", "grow"]
    origin = numbers(found["origin"], steps=True)
    lines = [[value // 3 for value in numbers(stage["rows"], steps=True)] for stage in found["shown"]]
    places = [[origins.payload()[origin[line]]["lines"] for line in rows] for rows in lines]
    assert places == [[[1], [1]], [[7], [7], [1]]]


NESTED = """model m(x: f32[4, 4]):
    x = outer(x)
    return outer(inner(x))

def outer(x):
    x = inner(x)
    return inner(x)

def inner(x):
    return x
"""


def test_the_calls_of_a_layer_are_a_chain_from_the_outermost() -> None:
    """The place in `inner` was reached by line 6, that by line 2; the call in line 3 belongs to another part of a fused layer."""
    place, first, second, outer, other = Span(10, 12, 10, 13), Span(6, 9, 6, 17), Span(7, 12, 7, 20), Span(2, 9, 2, 17), Span(3, 12, 3, 27)
    source = Source.of(NESTED.split("\n"))

    def path(*calls: Span) -> list[tuple[str, int]]:
        return [(call.name, call.span.line) for call in calls_of(Origin((place,), calls), source)]

    assert path(first, outer) == [("outer", 2), ("inner", 6)]
    assert path(first, second, outer, other) == [("outer", 2), ("inner", 6)]
    assert path() == path(Span(99, 1, 99, 2)) == []
    assert calls_of(Origin(), source) == calls_of(Origin((other,)), source) == []


def test_every_line_knows_its_def() -> None:
    """A `def` begins where it is first; a line that the source hasn't is in its last."""
    source = Source.of(["def a(x):", "    return x", "# b", "model m(x):", "    return a(x)", "def a(y):"])
    assert [source.definition(line) for line in range(8)] == ["", "a", "a", "a", "", "", "a", "a"]
    assert [source.line_of_def(name) for name in ("a", "m", "b")] == [1, 7, 7]


class Counted:
    """The pattern of a `def`'s first line, and how often it is tried."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.tried = pattern, 0

    def match(self, text: str) -> re.Match[str] | None:
        self.tried += 1
        return self.pattern.match(text)


def test_the_page_looks_through_a_source_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the source pane and for the calls. It looked for the `def` of each line among all those before it: 20,000 comments took 20 s."""
    count = Counted(nesting_module._DEFINITION)
    monkeypatch.setattr(nesting_module, "_DEFINITION", count)
    page_of(tpucc.compile_source(DENSE + "# a comment\n" * 500))
    assert 500 < count.tried <= 2 * (500 + DENSE.count("\n") + 1)


STEPPED = """def step(x, h):
    z = h
    return z

model m(x: f32[4, 4]):
    for row in range(3):
        x = step(x, x)
    return step(x, x)
"""


def test_the_steps_of_a_loop_are_apart_and_other_calls_are_one() -> None:
    """A step begins where the lines of the `def` go back; lines without something in common, or a loop in the `def`, make no steps.
    Where the order is another within a step, it ends at the last line, if these are as many as the loop says."""

    def steps(places: list[int], call: int, source: str = STEPPED) -> list[tuple[int, int]]:
        origins = [Origin((Span(place, 5, place, 6),), (Span(call, 13 if call == 7 else 12, call, 20),)) for place in places]
        return [(turn.number, turn.count) for (turn,) in nesting(origins, Source.of(source.split("\n")))]

    assert steps([2, 2, 3, 2, 3, 2, 2, 3], 7) == [(1, 3)] * 3 + [(2, 3)] * 2 + [(3, 3)] * 3
    assert steps([2, 3, 2, 3], 8) == steps([2, 2, 2, 2], 7) == steps([3, 2, 3, 3], 7) == [(1, 1)] * 4
    mixed = [1, 2, 1, 3, 3, 2, 1, 2, 3, 2, 1, 3]
    for loop in ("range(3)", "range(2, -1, -1)", "range( 1,4 )"):
        assert steps(mixed, 7, STEPPED.replace("range(3)", loop)) == [(1, 3)] * 5 + [(2, 3)] * 4 + [(3, 3)] * 3
    for loop in ("range(4)", "range(n)", "range(0, 3, 0)", "range()"):
        assert steps(mixed, 7, STEPPED.replace("range(3)", loop)) == [(1, 1)] * 12
    assert steps([2, 3, 2, 3], 7, STEPPED.replace("z = h", "for z in range(2):")) == [(1, 1)] * 4


def test_words_mean_what_the_glossary_says() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", (PROGRAMS.parent / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)
    glossary = {word: meaning.replace("*", "") for word, meaning in rows}
    assert {word: glossary.get(word) for word in GLOSSARY} == GLOSSARY
    assert set(HEADS) | {name for name, _, _ in facts(statistics())} <= set(TERMS)


def test_a_layer_s_cycles_are_given_row_by_row() -> None:
    found, stats = data(page()), small().stats
    for layer, counts in zip(found["layers"], stats["layers"], strict=True):
        assert sum(layer["spent"]) == counts["cycles"]
        assert layer["spent"][1:] == list(counts["waits_by_root"].values())
    assert [row["name"] for row in found["rows"][1:]] == [root["meaning"] for root in found["waits"]["roots"]]
    assert found["calls"] == {"name": ["dense", "dense"], "line": [7, 7], "def": [3, 3], "step": ["", ""], "of": [[0], [1], []]}


def test_moving_one_node_keeps_the_others() -> None:
    found = stages_payload(_stages([list("abcdefgh"), list("bcdefgha")]), Origins())
    assert found["shown"][1]["added"] == found["shown"][1]["removed"] == 1
