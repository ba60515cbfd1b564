"""Pictures of the layers' errors: the headline's facts, marks of the size that the numbers say, hostile names."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.pictures import HOSTILE, SVG, assert_readable
from tpucc.diagnostics import Origin, Span
from tpucc.explain.histogram import Histogram
from tpucc.explain.layer_error import ErrorMeter, LayerError
from tpucc.ir import Quantisation
from tpucc.ir.dtypes import I8
from tpucc.numerics import quantise
from tpucc.see.charts import errors as error_picture
from tpucc.see.charts import histograms
from tpucc.see.charts.errors import error_svg
from tpucc.see.charts.histograms import histogram_svg, histograms_svg
from tpucc.see.diagrams.collapse import LARGEST
from tpucc.see.palette import INKS

DRAWN = pytest.mark.parametrize("draw", [error_svg, histograms_svg], ids=["error", "histograms"])


def measured(name: str, kind: str = "fc", spread: float = 1.0, scale: float = 1 / 32, line: int = 5) -> LayerError:
    """The error of normal values of this spread that are quantised and no more; they saturate from a spread of about 1 on."""
    x = (np.random.default_rng(len(name)).standard_normal(500) * spread).astype(np.float32)
    meter = ErrorMeter(Quantisation(scale, 0), I8)
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
    assert histograms.histograms_headline("net", quiet) == f"net: h is the noisiest layer ({quiet[2].sqnr:.1f} dB). Nothing saturates."
    assert error_picture.headline("net", quiet) == (
        f"net: the last layer keeps {quiet[2].sqnr:.1f} dB. h is the noisiest layer ({quiet[2].own_sqnr:.1f} dB even with exact inputs). "
        "Nothing saturates."
    )
    [rows] = {error.rows for error in quiet}
    assert error_picture.reading(quiet).endswith(
        f"Measured on {rows} rows of the calibration inputs. What each layer costs the outputs: tpucc profile --error."
    )
    loud = network()
    share = loud[3].saturated
    assert share > 0.1
    assert histograms.histograms_headline("net", loud).endswith(f"). {share:.0%} of fc2 saturates.".replace("%", " %"))
    twice = [*loud, replace(loud[3], name="fc3", below=0.5, above=0.25)]
    assert histograms.histograms_headline("net", twice).endswith("). 2 layers saturate, most of all 75 % of fc3.")
    exact = [replace(error, sqnr=math.inf, own_sqnr=math.inf) for error in quiet]
    assert error_picture.headline("net", exact) == "net: the last layer loses nothing. Nothing saturates."
    assert histograms.histograms_headline("net", exact) == "net: every layer is exact. Nothing saturates."


def test_bars_of_the_ratios_are_in_proportion() -> None:
    errors = network()
    rects = [e for e in ET.fromstring(error_svg("net", errors)).iter(f"{SVG}rect") if e.get("class", "").startswith("s-")]
    legend, rects = rects[:3], rects[3:]
    assert [rect.get("class") for rect in legend] == ["s-matrix", "s-vector", "s-boundary"], "in the colours of the bars"
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
    assert names == ranked[: histograms.MOST]
    assert any("The 18 worst of 100 values, the worst first." in text for text in texts(histograms_svg("net", errors)))
    names = [text for text in texts(error_svg("net", errors)) if re.fullmatch(r"layer\d+", text)]
    assert sorted(names) == sorted(ranked[: error_picture.MOST])
    assert names == [error.name for error in errors if error.name in names]


def by_hand(**other: object) -> LayerError:
    """Ten bins of 8 from -40 to 40, integers from -24 to 24: two bins lie below them and two above."""
    shape = Histogram(-40.0, 8.0, (1, 0, 3, 15, 255, 63, 7, 0, 1, 1))
    held, place = Quantisation(0.25, -7), Origin((Span(5, 1, 5, 2),))
    made = LayerError(
        name="h", layer=2, kind="vector", origin=place, rows=4, values=1346, quantisation=held, seen=(-39.5, 38.0), limits=(-24.0, 24.0),
        below=0.125, above=0.25, mean_error=0.5, largest_error=16.0, sqnr=30.0, own_sqnr=35.0, histogram=shape,
    )  # fmt: skip
    return replace(made, **other)  # type: ignore[arg-type]


def shapes(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}{name}"))


def place_of(shape: ET.Element, *names: str) -> list[float]:
    return [float(shape.get(name, "nan")) for name in names]


@each([(0.125, 0.25), (0.125, 0.0), (0.0, 0.25), (0.0, 0.0)])
def test_a_bar_stands_in_its_bin_and_is_logarithmic(below: float, above: float) -> None:
    """All stand on one line; those beyond an end of the integers are marked if values lie beyond that end."""
    error = by_hand(below=below, above=above)
    bars = [bar for bar in shapes(histogram_svg(error, "one"), "rect") if bar.get("class") in ("s-vector", "f-alarm")]
    filled = [(index, count) for index, count in enumerate(error.histogram.counts) if count]
    step = histograms.CELL / 10
    assert [place_of(bar, "x")[0] for bar in bars] == pytest.approx([index * step for index, _ in filled], abs=0.06)
    assert [place_of(bar, "width")[0] for bar in bars] == pytest.approx([step - 0.5] * len(bars), abs=0.06)
    heights = [place_of(bar, "height")[0] for bar in bars]
    assert heights == pytest.approx([histograms.BARS * math.log2(count + 1) / 8 for _, count in filled], abs=0.06)
    assert {round(sum(place_of(bar, "y", "height")), 0) for bar in bars} == {histograms.TOP + histograms.BARS}
    marked = [index for (index, _), bar in zip(filled, bars, strict=True) if bar.get("class") == "f-alarm"]
    assert marked == [*([0] if below else []), *([8, 9] if above else [])]


@each([(-31.0, 31.0), (-25.0, 25.0), (-31.0, 25.0)])
def test_no_bar_reaches_beyond_the_bracket_where_nothing_saturates(lowest: float, highest: float) -> None:
    """Of eight bins from -32 to 32 the first and the last are cut."""
    shape = Histogram(-32.0, 8.0, (1, 2, 3, 4, 5, 6, 7, 8))
    drawn = histogram_svg(by_hand(below=0.0, above=0.0, limits=(lowest, highest), histogram=shape), "one")
    bars = [place_of(bar, "x", "width", "height") for bar in shapes(drawn, "rect") if bar.get("class") == "s-vector"]
    assert len(bars) == 8
    low, high = ((limit + 32) / 64 * histograms.CELL for limit in (lowest, highest))
    assert bars[0][0] == pytest.approx(low, abs=0.06)
    assert bars[-1][0] + bars[-1][1] == pytest.approx(high - 0.5, abs=0.06)
    assert max(height for *_, height in bars) == histograms.BARS


def test_the_bracket_ends_where_the_integers_do() -> None:
    """At -24 and 24 of -40…40: a fifth and four fifths of the cell. An end beyond which values lie is red. Between are ticks at tens."""
    cell = histograms.CELL
    svg = histogram_svg(by_hand(above=0.0), "one")
    upright = [(place_of(one, "x1")[0], one.get("class")) for one in shapes(svg, "line") if one.get("x1") == one.get("x2")]
    assert [round(x / cell, 3) for x, _ in upright] == [0.2, 0.8, 0.25, 0.375, 0.5, 0.625, 0.75]
    assert [ink for _, ink in upright] == ["l-alarm", *["l-ink"] * 6]
    other = shapes(histogram_svg(by_hand(below=0.0), "one"), "line")
    assert [one.get("class") for one in other if one.get("x1") == one.get("x2")] == ["l-ink", "l-alarm", *["l-ink"] * 5]
    numbers = {text.text: (place_of(text, "x")[0] / cell, text.get("text-anchor")) for text in shapes(svg, "text")}
    assert numbers["−24"] == (pytest.approx(0.2, abs=1e-3), None)
    assert numbers["24"] == (pytest.approx(0.8, abs=1e-3), "end")
    assert {"−10", "0", "10"} <= numbers.keys(), "those that have room between the ends"
    assert not {"−20", "20"} & numbers.keys()
    assert "scale 0.25 · zero point −7" in numbers
    narrow = by_hand(histogram=replace(by_hand().histogram, start=-240.0, width=48.0))
    assert "−24 … 24" in texts(histogram_svg(narrow, "one"))
    positive = by_hand(limits=(0.0, 24.0))
    assert len([one for one in shapes(histogram_svg(positive, "one"), "line") if one.get("x1") == one.get("x2")]) == 4, "and 10, 20"


def test_as_many_layers_as_there_is_room_for_stay_in_their_order() -> None:
    errors = many(histograms.MOST)
    assert [text for text in texts(histograms_svg("net", errors)) if text.startswith("layer")] == [error.name for error in errors]
    assert not any("worst" in text for text in texts(histograms_svg("net", errors)))


def test_bars_and_rings_begin_at_zero_decibels() -> None:
    """The axis reaches from -20 to 50 · 1.04 dB: ratios that are not finite end with it."""
    errors = [
        by_hand(sqnr=50.0, own_sqnr=math.inf), by_hand(sqnr=-12.0, own_sqnr=20.0), by_hand(sqnr=-math.inf, own_sqnr=-3.0),
    ]  # fmt: skip
    svg = error_svg("net", errors)
    bars = [bar for bar in shapes(svg, "rect") if bar.get("class") == "s-vector"][-3:]
    zero, whole = place_of(bars[0], "x", "width")
    pixel = whole / 50
    assert place_of(bars[1], "x", "width") == pytest.approx([zero - 12 * pixel, 12 * pixel], abs=0.2)
    assert place_of(bars[2], "x", "width") == pytest.approx([zero - 20 * pixel, 20 * pixel], abs=0.2)
    rings = [place_of(ring, "cx")[0] for ring in shapes(svg, "circle")]
    assert rings == pytest.approx([zero + 52 * pixel, zero + 20 * pixel, zero - 3 * pixel], abs=0.2)
    joins = [place_of(one, "x1", "x2") for one in shapes(svg, "line") if one.get("y1") == one.get("y2")]
    ends = [zero + 50 * pixel, zero - 12 * pixel, zero - 20 * pixel]
    assert joins[-3:] == [pytest.approx(pair, abs=0.2) for pair in zip(ends, rings, strict=True)]
    ticks = {text.text: place_of(text, "x")[0] for text in shapes(svg, "text")}
    assert (ticks["−20"], ticks["0"]) == pytest.approx((zero - 20 * pixel, zero), abs=0.2)


def test_the_facts_of_a_layer() -> None:
    assert error_picture.facts(by_hand(name=HOSTILE + "\n")).split("\n") == [
        f"{HOSTILE}\\x0a · vector",
        "scale 0.25, zero point -7",
        "integers −24…24, values −39.5…38",
        "error 2.00 steps in the mean, 64.0 at most",
        "13 % below the range, 25 % above",
        "30.0 dB, alone 35.0 dB",
        "1,346 values",
    ]


def test_headlines_name_the_lowest_ratio_of_own_values_and_what_is_left() -> None:
    first, last = by_hand(name="first", sqnr=40.0, own_sqnr=10.0, below=0.5, above=0.0), by_hand(name="last", below=0.0)
    saturates = "2 layers saturate, most of all 50 % of first"
    assert error_picture.headline("net", [first, last]) == (
        "net: the last layer keeps 30.0 dB. first is the noisiest layer with exact inputs (10.0 dB), last as it runs (30.0 dB). "
        f"{saturates}."
    )
    silent = replace(last, sqnr=-math.inf)
    assert error_picture.headline("net", [first, silent]).startswith("net: the last layer keeps only noise. first is the noisiest layer ")


def test_pictures_of_many_layers_are_as_high_as_a_diagram_at_most() -> None:
    errors = many(104)
    for svg in (error_svg("digits_lstm", errors), histograms_svg("digits_lstm", errors)):
        assert float(ET.fromstring(svg).get("height", "")) <= LARGEST[1]
