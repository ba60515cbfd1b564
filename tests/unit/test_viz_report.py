"""The report: one page, self-contained, with everything in it and every name escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
import pytest

from tests.support.pictures import BIDI, HOSTILE
from tpucc.viz.report import MOST_LAYERS, Picture, ReportInput, report
from tpucc.viz.statistics import Statistics, read_statistics

SOURCE = 'model iris(x: f32[8, 4]):\n\treturn x @ w  # "<b>" & co\n'
VOID = {"meta"}


def statistics(count: int = 2, name: str = "iris") -> Statistics:
    layers = [
        {
            "name": f"{name}{i}",
            "kind": "fc",
            "line": 2,
            "cycles": 100 + i,
            "macs": 5,
            "tiles": 1,
            "tops": 0.5,
            "breakdown": {"weight_stall": 61.0},
        }
        for i in range(count)
    ]
    return read_statistics(
        {
            "model": name, "target": "tpu_v1", "tpucc": "0.1.0", "cycles": 12345, "seconds": 1.7636e-5, "macs": 1000, "tops": 1.25,
            "utilization": 0.0136, "instructions": 42, "tiles": 3, "weight_bytes": 196608, "ub_peak_bytes": 38400,
            "ub_lower_bound_bytes": 38400, "host_bytes": {"in": 256, "out": 512}, "bottleneck": "weight memory", "explanation": "Why.",
            "breakdown": {"array_active": 20.0, "weight_stall": 61.0, "weight_shift": 10.0, "non_matrix": 9.0, "raw_stall": 4.0},
            "layers": layers,
        }
    )  # fmt: skip


def page(stats: Statistics | None = None, source: str = SOURCE, name: str = "iris.tpu") -> str:
    pictures = (Picture("graph", '<svg id="graph"><text>g</text></svg>'), Picture("timeline", '<svg id="timeline"/>'))
    return report(ReportInput(name, source, stats or statistics(), pictures, ("98.2 % right in int8",), ("a note",), "dot"))


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
    assert {"section-summary", "section-graph", "section-timeline", "line-1", "line-2", "graph", "timeline", "breakdown"} <= set(reader.ids)
    assert all(link.startswith("#") and link[1:] in reader.ids for link in reader.links)


def test_nothing_is_fetched() -> None:
    html = page().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//|@import|<script|<link|<img", html.replace("</", "<"))


def test_source_numbers_and_layers_are_on_the_page() -> None:
    text = "".join(read(page()).text)
    assert 'return x @ w  # "<b>" & co' in text
    for words in (
        "12,345 cycles",
        "17.6 µs",
        "1.25 TOPS",
        "weight memory",
        "37.5 KiB",
        "iris0 (fc)",
        "61 %",
        "98.2 % right in int8.",
        "a note",
    ):
        assert words in text


def test_the_bar_of_a_line_is_its_share_of_the_cycles() -> None:
    line = next(part for part in page().split("\n") if 'id="line-2"' in part)
    assert "201 cycles, 1.6 %" in line
    assert "width:100.0%" in line
    assert "<span" not in next(part for part in page().split("\n") if 'id="line-1"' in part)


def test_hostile_names_are_escaped() -> None:
    html = page(statistics(name=HOSTILE), f"# {BIDI}\n# {HOSTILE}\n", HOSTILE)
    assert "<script" not in html
    assert not re.search("[\u202e\x00\uffff]", html)
    assert HOSTILE in "".join(read(html).text)


def test_a_large_model_shows_its_slowest_layers() -> None:
    html = page(statistics(500))
    assert html.count("<tr>") == MOST_LAYERS + 1
    assert "iris499 (fc)" in html
    assert "iris3 (fc)" not in html


def test_the_breakdown_is_a_bar_that_is_full() -> None:
    svg = re.search(r'<svg [^>]*id="breakdown".*?</svg>', page(), re.DOTALL)
    assert svg is not None
    root = ET.fromstring(svg.group())
    bars = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("y") == "0" and not r.get("class", "").startswith("f-")]
    assert sum(float(bar.get("width", "")) for bar in bars) == pytest.approx(600, abs=0.5)
    assert len(bars) == 5


def test_the_same_page_every_time() -> None:
    assert page() == page()


def test_wrong_statistics_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_statistics({"model": "iris"})
