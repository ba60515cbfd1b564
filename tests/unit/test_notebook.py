"""What a compiled model shows of itself in a notebook."""

from __future__ import annotations

import html
import re
from importlib import import_module
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tests.support.pictures import HOSTILE
from tpucc.api import Executable
from tpucc.see import notebook
from tpucc.see.notebook import Page

SOURCE = """weights random(seed=1)
model small(x: f32[4, 300] in [-1.0, 1.0]) -> f32[4, 3]:
    weight w: f32[300, 500]
    weight v: f32[500, 3]
    return softmax(relu(x @ w) @ v)
"""
VIEWS = ("graph", "layers", "tiles", "program", "timeline", "memory", "roofline")


@pytest.fixture(scope="module")
def small() -> Executable:
    return tpucc.compile_source(SOURCE)


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", text)
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)] for row in rows]


def test_an_executable_shows_its_numbers_and_its_layers(small: Executable) -> None:
    stats = small.stats
    found = cells(small._repr_html_())
    assert next(row for row in found if row[0] == "bottleneck")[1] == stats["end_to_end"]["bottleneck"]
    assert next(row for row in found if row[0] == "device")[1] == f"{stats['cycles']:,} cycles"
    layers = found[found.index(next(row for row in found if row[0] == "layer")) + 1 :]
    *own, entry = stats["layers"]
    wanted = [("input", str(entry["line"]), f"{entry['cycles']:,}")]
    wanted += [(f"{x['name']} ({x['kind']})", str(x["line"]), f"{x['cycles']:,}") for x in own]
    assert [(row[0], row[1], row[2]) for row in layers[:-1]] == wanted
    assert sum(float(row[3].removesuffix(" %")) for row in layers[:-1]) == pytest.approx(100)
    assert (layers[-1][0], layers[-1][3]) == ("in all", "100.0 %")


def test_a_large_model_shows_the_layers_of_most_cycles(small: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tpucc.see.page.summary"), "MOST_LAYERS", 1)
    text = small._repr_html_()
    largest = max(small.stats["layers"], key=lambda layer: layer["cycles"])
    assert [row[0] for row in cells(text)][-3:] == [f"{largest['name']} ({largest['kind']})", "1 more layer", "in all"]
    assert "2 layers; the 1 that take the most cycles have rows of their own." in text


@each(VIEWS)
def test_every_stage_has_a_short_name_a_text_and_a_picture(name: str, small: Executable) -> None:
    shown = getattr(small, name)
    assert re.fullmatch(r"<the [a-z ]+ of small>", repr(shown))
    assert len(str(shown)) > 20
    assert shown._repr_svg_().startswith("<svg ")


def test_the_roofline_is_that_of_the_layers(small: Executable) -> None:
    model, *layers = small.roofline.value
    assert (model.macs, model.cycles) == (small.stats["macs"], small.stats["cycles"])
    assert [layer.macs for layer in layers] == [4 * 300 * 500, 4 * 500 * 3]
    assert [layer.weight_bytes for layer in layers] == [4 * 65536, 2 * 65536]  # whole tiles of 256 × 256
    text = str(small.roofline)
    assert ("its speed is over them" in " ".join(text.split())) is any(
        layer.is_fetched_early(small.runtime.program.target) for layer in layers
    )
    row = next(line for line in text.splitlines() if line.startswith("small  ")).split()
    assert row[:2] == ["small", f"{model.macs / (6 * 65536):.1f}"]
    assert float(row[3]) == pytest.approx(2 * model.macs / (6 * 65536) * 34e9 / 1e12, abs=0.006)


@pytest.mark.long
def test_two_pictures_on_one_page_mean_the_same_by_the_same_id(small: Executable) -> None:
    other = tpucc.compile_source(SOURCE.replace("500", "90"))
    for name in VIEWS:
        one, two = (dict(re.findall(r'<pattern[^>]* id="([^"]*)"(.*?)</pattern>', getattr(e, name)._repr_svg_())) for e in (small, other))
        assert {key: one[key] for key in one.keys() & two.keys()} == {key: two[key] for key in one.keys() & two.keys()}
        assert set(re.findall(r"url\(#([^)]*)\)", getattr(small, name)._repr_svg_())) <= one.keys()


def test_the_report_is_the_page_in_a_frame_that_reaches_nothing(small: Executable, tmp_path: Path) -> None:
    page = small.report()
    assert repr(page) == "<the report of small on tpu_v1>"
    match = re.fullmatch(r'<iframe sandbox="allow-scripts" [^<>]* srcdoc="([^"<>]*)">[^<>]*</iframe>', page._repr_html_())
    assert match is not None
    assert html.unescape(match.group(1)) == page.html
    page.save(tmp_path / "deep" / "report.html")
    assert (tmp_path / "deep" / "report.html").read_text("utf-8") == page.html
    assert page.html.startswith("<!doctype html>")


def test_a_report_that_would_flood_the_notebook_is_named_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MOST_PAGE", 10)
    shown = Page(HOSTILE, "x" * 11)._repr_html_()
    assert "<iframe" not in shown
    assert "11 bytes" in shown
    assert "<script" not in shown


def test_a_loaded_program_has_no_report_and_says_so(small: Executable, tmp_path: Path) -> None:
    small.save(tmp_path / "small.tpub")
    loaded = tpucc.load(tmp_path / "small.tpub")
    assert loaded._repr_html_() == small._repr_html_()
    assert loaded.roofline.value == small.roofline.value
    with pytest.raises(tpucc.UsageError, match="E0515"):
        loaded.report()


def test_hostile_names_stay_text() -> None:
    text = SOURCE.replace("weight w: f32[300, 500]", 'weight w: f32[300, 500] = "<b>\'{1}&\\""')
    executable = tpucc.compile_source(text, name=HOSTILE)
    assert "<script" not in executable._repr_html_() + executable.report()._repr_html_()
    assert "<b>" not in executable._repr_html_()
