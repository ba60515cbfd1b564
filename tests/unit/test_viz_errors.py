"""Pictures of the layers' errors: the headline's facts, marks of the size that the numbers say, hostile names."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.support.pictures import HOSTILE, SVG, assert_readable
from tpucc.diagnostics import Origin, Span
from tpucc.ir.types import Quantisation
from tpucc.layers.error import ErrorMeter, LayerError
from tpucc.numerics import INT8, quantise
from tpucc.viz.charts import errors as error_picture
from tpucc.viz.charts import histograms
from tpucc.viz.charts.errors import error_svg
from tpucc.viz.charts.histograms import histograms_svg
from tpucc.viz.palette import INKS

DRAWN = pytest.mark.parametrize("draw", [error_svg, histograms_svg], ids=["error", "histograms"])


def measured(name: str, kind: str = "fc", spread: float = 1.0, scale: float = 1 / 32, line: int = 5) -> LayerError:
    """The error of normal values of this spread that are quantised and no more; they saturate from a spread of about 1 on."""
    x = (np.random.default_rng(len(name)).standard_normal(500) * spread).astype(np.float32)
    meter = ErrorMeter(Quantisation(scale, 0), INT8)
    for add in (meter.add, meter.add_alone):
        add(x, quantise(x, scale, 0))
    return meter.result(name, 0, kind, Origin((Span(line, 1, line, 2),)), 64)


def network() -> list[LayerError]:
    return [measured("x.i8", "quantize"), measured("fc1", spread=0.5), measured("h", "vector", 0.25), measured("fc2", spread=3.0)]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def many(count: int) -> list[LayerError]:
    return [replace(measured(f"layer{n}", "conv", 0.4), sqnr=40.0 - (n * 7 % count) / 4, name=f"layer{n}") for n in range(count)]


@DRAWN
@pytest.mark.parametrize("case", ["network", "hostile", "many", "long", "endless"])
def test_no_text_is_small_or_cut_or_lies_on_another(draw: Callable[[str, Sequence[LayerError]], str], case: str) -> None:
    cases = {
        "network": network(),
        "hostile": [replace(error, name=HOSTILE) for error in network()],
        "many": many(100),
        "long": [measured("very_long_name" * 9, spread=s, scale=s / 31.3) for s in (1.2345e-20, 1.2345e17, 123.45, 1e-3)],
        "endless": [replace(network()[3], sqnr=math.inf, own_sqnr=-math.inf), replace(network()[2], sqnr=-12.3, own_sqnr=math.inf)],
    }
    svg = draw("net", cases[case])
    assert_readable(svg)
    assert svg == draw("net", cases[case])
    assert "<script" not in svg.lower()


def test_headlines_say_what_is_left_and_what_saturates() -> None:
    quiet = network()[:3]
    assert histograms.histograms_headline("net", quiet) == f"net: h is the least exact, {quiet[2].sqnr:.1f} dB; nothing saturates"
    assert error_picture.headline("net", quiet) == (
        f"net: {quiet[2].sqnr:.1f} dB are left at h, which loses the most, {quiet[2].own_sqnr:.1f} dB alone; nothing saturates"
    )
    loud = network()
    share = loud[3].saturated
    assert share > 0.1
    assert histograms.histograms_headline("net", loud).endswith(f"; {share:.0%} of fc2 saturates".replace("%", " %"))
    twice = [*loud, replace(loud[3], name="fc3", below=0.5, above=0.25)]
    assert histograms.histograms_headline("net", twice).endswith("; 2 layers saturate, most of all 75 % of fc3")
    exact = [replace(error, sqnr=math.inf, own_sqnr=math.inf) for error in quiet]
    assert error_picture.headline("net", exact) == "net: nothing is lost at h; nothing saturates"
    assert histograms.histograms_headline("net", exact) == "net: every layer is exact; nothing saturates"


def test_bars_of_the_ratios_are_in_proportion() -> None:
    errors = network()
    rects = [e for e in ET.fromstring(error_svg("net", errors)).iter(f"{SVG}rect") if e.get("class", "").startswith("s-")]
    assert [rect.get("class") for rect in rects] == ["s-boundary", "s-matrix", "s-vector", "s-matrix"]
    widths = [float(rect.get("width", "")) for rect in rects]
    assert [width / widths[0] for width in widths] == pytest.approx([e.sqnr / errors[0].sqnr for e in errors], abs=1e-3)


def test_values_beyond_the_integers_are_marked() -> None:
    """Bars are in the alarm colour exactly where the values saturate."""
    quiet, loud = network()[0], network()[3]
    assert alarmed([quiet]) == 0
    low, high = loud.limits
    shape = loud.histogram
    starts = [shape.start + n * shape.width for n in range(len(shape.counts))]
    beyond = [n for n, start in enumerate(starts) if shape.counts[n] and (start + shape.width <= low or start >= high)]
    assert len(beyond) > 4
    assert alarmed([loud]) == len(beyond)


def alarmed(errors: Sequence[LayerError]) -> int:
    root = ET.fromstring(histograms_svg("net", errors))
    return len([e for e in root.iter(f"{SVG}rect") if e.get("fill") == INKS["alarm"].light])


def test_of_many_layers_the_worst_are_drawn() -> None:
    errors = many(100)
    ranked = [error.name for error in sorted(errors, key=lambda error: error.sqnr)]
    names = [text for text in texts(histograms_svg("net", errors)) if text.startswith("layer")]
    assert names == ranked[:24]
    assert any("The 24 worst of 100 layers, the worst first." in text for text in texts(histograms_svg("net", errors)))
    names = [text for text in texts(error_svg("net", errors)) if text.startswith("layer")]
    assert sorted(names) == sorted(ranked[:60])
    assert names == [error.name for error in errors if error.name in names]
