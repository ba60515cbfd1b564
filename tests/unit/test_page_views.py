"""The page's tabs that need no script, and the colours of its pictures: what stands in each cell, against numbers chosen by hand."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.support.pictures import BIDI
from tests.support.stats import made_up
from tpucc.diagnostics import Origin, Span, printable
from tpucc.explain.histogram import Histogram
from tpucc.explain.layer_error import LayerError
from tpucc.explain.quality import Accuracy
from tpucc.explain.retiming import Retimed
from tpucc.ir import Quantisation
from tpucc.see.charts.errors import MOST
from tpucc.see.page.losses import error_view, ranges_view
from tpucc.see.page.summary import MOST_LAYERS, left_out, summary
from tpucc.see.palette import picture_rules, style_sheet
from tpucc.see.svg import ink_rect, inlined, picture

LAYER = {
    "name": "fc", "kind": "conv", "line": 7, "cycles": 500, "macs": 3, "tiles": 1234, "tops": 0.25, "instructions": 9,
    "waits_by_root": {"weight_memory": 150, "weight_shift": 100, "activation": 50},
}  # fmt: skip
PATH = {"host_link": 37.5, "weight_memory": 62.5, "activation": 0.0}
STREAM = {"cycles": 1500, "seconds": 1.5e-6, "bottleneck": "activation", "fits": True}
STATISTICS = {
    "model": "iris", "target": "tpu_v1", "tpucc": "9.8", "cycles": 2000, "seconds": 2e-6, "macs": 1000, "tops": 1.25, "utilization": 0.25,
    "instructions": 4200, "tiles": 3, "weight_bytes": 2048, "ub_peak_bytes": 4096, "ub_lower_bound_bytes": 1024,
    "host_bytes": {"in": 256, "out": 512}, "bottleneck": "weight memory", "tile_fetches": 7, "stream": STREAM,
    "explanation": "why; a mend", "advice": "a mend",
    "critical_path": PATH,
    "end_to_end": {
        "seconds": 4e-6, "host_before": 1.5e-6, "device": 2e-6, "host_after": 5e-7, "stream_seconds": 2e-6, "bottleneck": "host work",
        "stream_bottleneck": "host work", "explanation": "The host; larger", "advice": "larger",
    },
    "waits_by_root": {"weight_memory": 600, "activation": 300, "dependencies": 100},
    "layers": [LAYER],
}  # fmt: skip


def statistics(**other: Any) -> dict[str, Any]:
    return made_up(**{**STATISTICS, **other})


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(f"<all>{markup}</all>")


def words(element: ET.Element) -> str:
    return "".join(element.itertext())


def rows(markup: str) -> list[tuple[str | None, list[str]]]:
    """Of each row of a table's body what it lights up, and its cells."""
    return [
        (row.get("data-layers"), [words(cell).strip() for cell in row.iter("td")])
        for row in parsed(markup).iter("tr")
        if row.find("td") is not None
    ]


def test_each_number_of_a_layer_is_under_its_head() -> None:
    layers = [LAYER, {**LAYER, "name": "h", "line": 0, "cycles": 1500, "waits_by_root": {}}]
    markup = summary(statistics(layers=layers), None, ())
    heads = [words(head) for head in parsed(markup).iter("th")]
    assert [dict(zip(heads, cells, strict=True)) for _, cells in rows(markup)] == [
        {
            "layer": "fc (conv)", "line": "7", "tiles": "1,234", "cycles": "500", "share": "25.0 %", "TOPS": "0.25",
            "array active": "40.0 %", "waits": "60.0 %", "mostly for": "weight memory",
        },
        {
            "layer": "h (conv)", "line": "–", "tiles": "1,234", "cycles": "1,500", "share": "75.0 %", "TOPS": "0.25",
            "array active": "100.0 %", "waits": "0.0 %", "mostly for": "–",
        },
        {
            "layer": "in all", "line": "", "tiles": "", "cycles": "2,000", "share": "100.0 %", "TOPS": "",
            "array active": "50.0 %", "waits": "50.0 %", "mostly for": "weight memory",
        },
    ]  # fmt: skip


@pytest.mark.parametrize("count", [MOST_LAYERS, MOST_LAYERS + 1])
def test_the_table_is_in_the_order_of_the_program_and_says_what_is_left_out(count: int) -> None:
    layers = [{**LAYER, "cycles": 100 + index * 37 % count} for index in range(count)]
    markup = summary(statistics(layers=layers, cycles=sum(layer["cycles"] for layer in layers)), None, ())
    fastest = min(range(count), key=lambda index: index * 37 % count)
    wanted = [index for index in range(count) if count == MOST_LAYERS or index != fastest]
    found = rows(markup)
    assert [int(number) for number, _ in found if number] == wanted
    assert [cells[0] for number, cells in found if not number] == [*["1 more layer"][: count - MOST_LAYERS], "in all"]
    *parts, whole = ((int(cells[2].replace(",", "")), float(cells[3].removesuffix(" %"))) for _, cells in found)
    assert sum(cycles for cycles, _ in parts) == whole[0]
    assert [part for _, part in parts] == [round(100 * cycles / whole[0], 1) for cycles, _ in parts]
    assert whole[1] == 100.0
    assert ("that take the most cycles" in markup) == (count > MOST_LAYERS)
    idle = {**LAYER, "instructions": 0}
    assert (left_out(statistics(layers=[*layers, idle])) == "") == (count == MOST_LAYERS), "what has no instructions has no row anywhere"


def test_host_steps_are_counted_beside_the_layers() -> None:
    """They have rows of the table too."""
    step = {**LAYER, "kind": "host", "cycles": 1}
    hidden = {**LAYER, "cycles": 1}
    many = [LAYER] * MOST_LAYERS
    for layers, all_of_them, others in (
        ([*many, step], f"{MOST_LAYERS} layers and 1 host step", "1 more host step"),
        (
            [*many, hidden, step, step],
            f"{MOST_LAYERS + 1} layers and 2 host steps",
            "1 more layer and 2 more host steps",
        ),
    ):
        markup = summary(statistics(layers=layers), None, ())
        facts = {words(fact[0]): list(fact[1].itertext()) for fact in parsed(markup).iterfind("dl/div")}
        assert facts["instructions"] == ["4,200", all_of_them]
        assert f"{all_of_them}; the {MOST_LAYERS} that take the most cycles" in markup
        assert [cells[0] for number, cells in rows(markup) if not number] == [others, "in all"]


def test_the_facts_and_the_sentences_of_the_summary() -> None:
    root = parsed(summary(statistics(tpucc=f"9.8{BIDI}"), Accuracy(8, 0.875, 0.75), (BIDI,)))
    facts = {words(fact[0]): list(fact[1].itertext()) for fact in root.iterfind("dl/div")}
    assert facts == {
        "end to end": ["4 µs", "host before 1.5 µs, device 2 µs, host after 500 ns"],
        "device": ["2,000 cycles", "2 µs"],
        "speed": ["1.25 TOPS", "25 % of the target's peak"],
        "bottleneck": ["host work", "of the device's critical path, %: weight memory 62.5, host link 37.5"],
        "work": ["1,000", "multiply-accumulates"],
        "instructions": ["4,200", "1 layer"],
        "in a stream": ["2 µs", "for each batch; 1,500 cycles of the device; bottleneck: host work"],
        "weight tiles": ["3 distinct", "2 KiB with padding; 7 fetches"],
        "unified buffer": ["4 KiB", "at the peak; needed at once 1 KiB"],
        "host transfers": ["256 bytes in", "512 bytes out"],
    }
    alone = parsed(summary(statistics(stream=STREAM | {"fits": False}), None, ()))
    assert any(text.endswith("; the unified buffer has no room for two") for text in alone.itertext())
    [footer], [note] = ([words(part) for part in root.iterfind(path)] for path in ("p[@class='footer']", "ul[@class='notes']/li"))
    asked, told = ([words(part) for part in root.iterfind(f"dl[@class='answers']/{name}")] for name in ("dt", "dd"))
    assert dict(zip(asked, told, strict=True)) == {
        "time": "4 µs from inputs to outputs, 2,000 cycles of that on the device.",
        "why": "Bottleneck: host work. The host. Of the device: why.",
        "try": "Larger.",
        "or": "A mend.",
        "accuracy": "75.0 % of 8 held-out rows; in float32 87.5 %.",
    }
    best = Retimed("clock_hz", 2e9, 3_000, 3e-6, "host work")
    tried = parsed(summary(statistics(), None, (), found=(best,)))
    told = [words(part) for part in tried.iterfind("dl[@class='answers']/dd")]
    faster = "Twice the clock of the units: the same program takes 3 µs, 25 % less."
    assert told[2:] == ["Larger.", "A mend."], "what a user can do comes before another machine"
    machine = parsed(summary(statistics(advice="--set mxu=8 mends", explanation="why; --set mxu=8 mends"), None, (), found=(best,)))
    assert [words(part) for part in machine.iterfind("dl[@class='answers']/dd")][2:] == ["Larger.", faster]
    assert note == printable(BIDI).replace("\uffff", "\\uffff")
    assert printable(footer) == footer


def lost(name: str, layer: int, sqnr: float, own: float, kind: str = "fc", above: float = 0.0, line: int = 9) -> LayerError:
    origin = Origin((Span(line, 1, line, 2),) if line else ())
    shape = Histogram(-2.0, 0.5, (1, 2, 3, 4, 3, 2, 1))
    held = Quantisation(0.25, 0)
    return LayerError(name, layer, kind, origin, 4, 16, held, (-1.0, 1.0), (-32.0, 31.75), 0.0, above, 0.1, 0.2, sqnr, own, shape)


LOST = [
    lost("x.i8", -1, 20.0, 50.0, "quantize", line=0),
    lost("one", 0, 40.0, math.inf, above=0.015),
    lost("two", 3, -5.0, 25.0, "vector"),
    lost("three", 4, -math.inf, -3.0, "conv"),
]


def test_a_layer_s_error_is_a_row_with_a_bar_and_a_ring() -> None:
    """The scale ends at the largest finite ratio; what is beyond it or below zero ends where the scale does."""
    markup = error_view("net", LOST)
    heads = {words(head) for head in parsed(markup).iter("th")}
    assert {"own SNR, as it runs", "own SNR, alone"} <= heads, "other values than those of profile --error, under other names"
    assert "of the calibration inputs." in markup
    assert "of the calibration inputs." in ranges_view("net", LOST)
    assert "tpucc profile --error" in words(parsed(markup))
    assert rows(markup) == [
        (None, ["x.i8 (quantize)", "–", "", "20.0 dB", "50.0 dB", "0.25", "–"]),
        ("0", ["one (fc)", "9", "", "40.0 dB", "exact", "0.25", "1.5 %"]),
        ("3", ["two (vector)", "9", "", "-5.0 dB", "25.0 dB", "0.25", "–"]),
        ("4", ["three (conv)", "9", "", "only noise", "-3.0 dB", "0.25", "–"]),
    ]
    marks = re.findall(r'class="bar (\w+)" style="width:([\d.]+)%"/><i style="left:([\d.]+)%"', markup)
    assert marks == [("boundary", "40.0", "100.0"), ("matrix", "80.0", "100.0"), ("vector", "0.0", "50.0"), ("matrix", "0.0", "0.0")]
    small = re.findall(r"width:([\d.]+)%", error_view("net", [lost("y", 0, 5.0, 4.0)]))
    assert small == ["50.0"], "a scale has 10 dB at least"


def test_of_many_errors_the_lowest_are_listed_with_a_note() -> None:
    many = [lost(f"n{index}", index, 90.0 - index, 99.0) for index in range(MOST + 1)]
    found = [cells[0] for _, cells in rows(error_view("net", many))]
    assert found == [f"n{index} (fc)" for index in range(1, MOST + 1)]
    note = f"The {MOST} lowest of {MOST + 1} values, in the order of the program."
    assert note in error_view("net", many)
    assert "lowest of" not in error_view("net", many[:MOST])
    assert note in ranges_view("net", many)


def test_each_histogram_has_an_id_of_its_own_and_its_layer() -> None:
    root = parsed(ranges_view("net", LOST))
    cells = next(part for part in root if part.get("class") == "cells")
    assert [cell.get("data-layers") for cell in cells] == [None, "0", "3", "4"]
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids)) == len(LOST)


def declared(rules: str, selector: str) -> str:
    found = re.search(re.escape(selector) + r"\{([^}]*)\}", rules)
    return found[1] if found else ""


def test_pictures_on_the_page_have_the_page_s_colours() -> None:
    """Each class of a shape takes its own variables: fills for areas and marks, strokes for lines."""
    wanted = {
        ".k-host": "fill:var(--host);stroke:var(--host-line)",
        ".s-host": "fill:var(--host-line)",
        ".t-host": "stroke:var(--host-line)",
        ".f-ink": "fill:var(--ink)",
        ".l-ink": "stroke:var(--ink)",
    }
    assert {selector: declared(picture_rules(), selector) for selector in wanted} == wanted


def test_the_page_has_its_own_rules_alone() -> None:
    svg = picture("key", "a name", 10, 10, ink_rect("band", 0, 0, 5, 5))
    assert style_sheet() in svg
    assert "<style" not in inlined(svg)
    assert inlined(svg).count("<rect") == svg.count("<rect") == 2
