"""Charts: what is drawn has the size that the numbers say, and is named."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.pictures import HOSTILE, SVG, assert_readable, chain_program, steady_times, text_boxes
from tpucc.explain.names import shortened, shown
from tpucc.explain.occupancy import Handover
from tpucc.explain.quantities import bandwidth_text, number, numbers, rate_text, size
from tpucc.explain.roofs import RooflinePoint, ridge
from tpucc.explain.segments import matrix_segments
from tpucc.isa.program import LayerInfo, Program
from tpucc.machines.v1 import Opcode
from tpucc.prose import folded, percent
from tpucc.see.charts import memory
from tpucc.see.charts.chart import WAITS, Scale, coverage, ticks
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.roofline import LARGEST, PALE, SMALLEST, roofline_svg
from tpucc.see.charts.tiles import largest_layers, tiles_svg
from tpucc.see.charts.timeline import STRETCH, Stretch, Times, headline, layer_spans, stretches, timeline_svg
from tpucc.see.kit import NARROW
from tpucc.see.palette import Kind
from tpucc.see.text import SMALL, fitted_name, shortened_to, text_width
from tpucc.sim.timing import time_program
from tpucc.target import load_target

LANES = ("host", "weights", "shift", "matrix", "activation")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}title")]


def hostile_program() -> Program:
    program = chain_program("iris", 150, [4, 256, 3])
    layers = tuple(replace(layer, name=HOSTILE) for layer in program.layers)
    residents = tuple(replace(resident, name=HOSTILE) for resident in program.residents)
    return replace(program, name=HOSTILE, layers=layers, residents=residents)


ALL_KINDS = ("timeline", "memory", "tiles", "roofline", "narrow timeline", "narrow memory")


def all_charts(program: Program) -> dict[str, str]:
    times = steady_times(program)
    work = [RooflinePoint(layer.name, layer.macs, 65536, 1000) for layer in program.layers]
    return {
        "timeline": timeline_svg(program, times),
        "memory": memory_svg(program, times.starts, times.ends, times.cycles),
        "narrow timeline": timeline_svg(program, times, across=NARROW),
        "narrow memory": memory_svg(program, times.starts, times.ends, times.cycles, wide=NARROW),
        "tiles": tiles_svg(program),
        "roofline": roofline_svg(program.target, work[0], work),
    }


@each(["timeline", "memory", "tiles", "roofline"])
def test_charts_are_well_formed_escaped_and_always_the_same(kind: str) -> None:
    svg = all_charts(hostile_program())[kind]
    root = ET.fromstring(svg)
    assert "<script" not in svg.lower()
    assert svg == all_charts(hostile_program())[kind]
    assert root.get("id") == kind
    assert all(float(element.get("font-size", "0")) >= 12 for element in root.iter(f"{SVG}text"))
    assert any(HOSTILE in text for text in texts(svg))


@each(product(ALL_KINDS, [chain_program("hello", 8, [256, 256]), chain_program("tiny", 6, [9, 7, 3], "tiny")]))
def test_no_text_leaves_the_picture(kind: str, program: Program) -> None:
    root = ET.fromstring(all_charts(program)[kind])
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for element in root.iter(f"{SVG}text"):
        if element.get("transform"):
            continue
        long = text_width(element.text or "", float(element.get("font-size", "")))
        x = float(element.get("x", "")) - long * {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", ""), 0.0)
        assert x >= 0, element.text
        assert x + long <= width + 1, element.text
        assert 0 <= float(element.get("y", "")) <= height


def test_the_timeline_says_what_takes_most_of_the_time() -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    times = steady_times(program)
    assert headline("iris", times) == "iris: 150 cycles, 86.7 % of them: waits for weight memory"
    assert headline("iris", replace_stalls(times)) == "iris: 150 cycles, 100.0 % of them: array active"


@each(
    [
        ("aabbcc", [(0, 20, "a"), (20, 40, "b"), (40, 60, "c")]),
        ("aaaabbc", [(0, 40, "a"), (40, 70, "b …")]),
        ("aaaabccbca", [(0, 40, "a"), (40, 70, "c …"), (70, 100, "b …")]),
        ("abcabbc", [(0, 20, "a …"), (20, 40, "c …"), (40, 70, "b …")]),
        ("abbbbbab", [(0, 60, "b …"), (60, 80, "a …")]),
        ("abbabb", [(0, 30, "b …"), (30, 60, "b …")]),
        ("a", []),
    ]
)
def test_the_names_of_layers_have_room(owners: str, found: list[tuple[float, float, str]]) -> None:
    """Each letter is the layer of 10 cycles; a name takes 15 of them, with dots 20."""
    program = chain_program("chain", 8, [256, 256, 256, 256], "tpu_v1")
    code = np.repeat(program.instructions[program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY][:1], len(owners))
    layers = tuple(replace(layer, name=name) for layer, name in zip(program.layers, "abc", strict=True))
    program = replace(program, instructions=code, layer_of=np.array(["abc".index(o) for o in owners], np.uint32), layers=layers)
    made = stretches(program, steady_times(program), float, lambda words: {1: 15, 3: 20}[len(words)])
    assert [(stretch.start, stretch.end, stretch.words) for stretch in made] == found


def test_a_stretch_of_several_layers_has_the_name_of_the_largest() -> None:
    """Most of it is `c`, which neither begins nor ends it."""
    layers = {"a": 20, "b": 10, "c": 50, "d": 20}
    stretch = Stretch(0, 100, layers)
    assert (stretch.words, stretch.listed) == ("c …", "c 50 cycles, a 20 cycles, d 20 cycles, b 10 cycles")
    assert stretch.with_next(Stretch(100, 200, {"a": 40})).words == "a …"


def test_a_layer_has_the_cycles_of_the_table_of_layers() -> None:
    """The wait for the model's inputs is theirs, and no layer's: their name stands at cycle 0."""
    program = chain_program("chain", 200, [64, 256, 128, 10])
    timeline = time_program(program)
    segments = matrix_segments(program, timeline)
    spans = layer_spans(Times.of(timeline, segments))
    assert (spans[0][:2], spans[-1][2]) == ((len(program.layers), 0), timeline.makespan)
    cycles = [sum(end - start for layer, start, end in spans if layer == own) for own in range(len(program.layers) + 1)]
    assert cycles == np.bincount(segments.layer, segments.cycles).tolist()


def replace_stalls(times: Times) -> Times:
    return replace(times, waits={})


def test_every_instruction_with_time_is_a_bar_on_its_lane() -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    svg = timeline_svg(program, steady_times(program))
    swatch, *bars = [element for element in ET.fromstring(svg).iter(f"{SVG}rect") if element.get("class", "").startswith("s-")]
    assert (swatch.get("class"), swatch.get("height"), "array active" in texts(svg)) == ("s-matrix", "12", True), "the legend"
    kinds = [element.get("class") for element in bars]
    assert {kind: kinds.count(f"s-{kind}") for kind in ("host", "weights", "matrix", "vector")} == {
        "host": 2,
        "weights": 4,
        "matrix": 2,
        "vector": 4,
    }
    assert [text for text in texts(svg) if text in LANES] == list(LANES)
    assert any(text.startswith("214 ns at 700 MHz on tpu_v1; ") for text in texts(svg))
    named = [title.split(" · cycles")[0] for title in titles(svg)]
    assert {
        "read_host_memory · input · instruction 0",
        "read_weights · fc2 · instruction 8",
        "weight shift",
        "matrix_multiply · fc2 · instruction 9",
        "activate · fc1 · instruction 6",
        "write_host_memory · fc2 · instruction 13",
    } <= {*named}, named
    assert any(re.fullmatch(r"waits for weight memory · cycles \d+–\d+", title) for title in titles(svg))


def test_many_instructions_become_shares_of_time() -> None:
    program = chain_program("deep", 8, [256] * int(800 / STRETCH))
    svg = timeline_svg(program, steady_times(program))
    root = ET.fromstring(svg)
    assert len(list(root.iter(f"{SVG}rect"))) < 4000
    [work] = [path for path in root.iter(f"{SVG}path") if path.get("class") == "s-matrix"]
    assert 0 < area(work) < 26 * 800
    assert re.fullmatch(r"matrix: [\d.]+ % of the time", str(work.findtext(f"{SVG}title")))
    waits = [path for path in root.iter(f"{SVG}path") if str(path.get("fill", "")).startswith("url(#timeline-")]
    assert waits
    assert all(0 < area(path) < 26 * 800 for path in waits)
    assert "as high as the share of them" in "".join(texts(svg))


def area(shape: ET.Element) -> float:
    """The pixels of a rectangle, or of a path of vertical and horizontal lines."""
    if shape.get("height"):
        return float(shape.get("width", "")) * float(shape.get("height", ""))
    found = re.fullmatch(r"M(\S+) (\S+?)([VH].*)Z", shape.get("d", ""))
    assert found
    x, y, whole = float(found[1]), float(found[2]), 0.0
    for way, end in re.findall(r"([VH])([-\d.e]+)", found[3]):
        if way == "V":
            y = float(end)
        else:
            whole, x = whole - (float(end) - x) * y, float(end)
    return whole


@pytest.mark.parametrize("count", [1, 20, 60, 150, 400])
def test_a_lane_is_coloured_for_as_much_of_it_as_its_unit_works(count: int) -> None:
    """Whatever the number of intervals: all bars together are as wide, or all columns as high, as the share of the time."""
    program = chain_program("deep", 8, [256] * (count + 1))
    times = steady_times(program)
    lengths = np.arange(len(times.starts)) % 7 + 1
    starts = np.cumsum(lengths * 31) + 5
    times = replace(times, starts=starts, ends=starts + lengths, cycles=int(starts[-1]) + 40, waits={})
    root = ET.fromstring(timeline_svg(program, times))
    _, *bars = [shape for name in ("rect", "path") for shape in root.iter(f"{SVG}{name}") if shape.get("class") == "s-matrix"]
    coloured = sum(map(area, bars))
    busy = (
        times.ends[program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY]
        - times.starts[program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY]
    )
    whole = next(
        float(rect.get("width", "")) for rect in root.iter(f"{SVG}rect") if rect.get("height") == "26" and rect.get("class") == "f-band"
    )
    assert coloured / whole / 26 == pytest.approx(int(busy.sum()) / times.cycles, abs=0.005)


def test_coverage_is_the_exact_share_of_each_stretch() -> None:
    generator = np.random.default_rng(0)
    cuts = np.sort(generator.choice(1000, 60, replace=False)).astype(np.int64)
    starts, ends, edges = cuts[::2], cuts[1::2], np.linspace(0, 1000, 26)
    busy = np.zeros(1000)
    for start, end in zip(starts, ends, strict=True):
        busy[start:end] = 1
    np.testing.assert_allclose(coverage(starts, ends, edges), busy.reshape(25, 40).mean(axis=1), atol=1e-12)
    assert coverage(starts[:0], ends[:0], edges).tolist() == [0.0] * 25


def test_memory_rectangles_have_their_rows_and_times() -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    times = steady_times(program)
    svg = memory_svg(program, times.starts, times.ends, times.cycles)
    rects = [e for e in ET.fromstring(svg).iter(f"{SVG}rect") if e.get("class", "").startswith("k-") and e.find(f"{SVG}title") is not None]
    assert len(rects) == len(program.residents) == 3
    heights = {round(float(rect.get("height", ""))) for rect in rects}
    assert len(heights) == 1
    widths = [float(rect.get("width", "")) for rect in rects]
    lasting = [r.last + 1 - r.first for r in program.residents]
    assert widths == pytest.approx([688 * length / 15 for length in lasting], abs=0.2)
    assert {"h0.0", "h1.0", "y.0", "peak 450 rows", "needed at once 225 rows"} <= set(texts(svg))
    assert [rect.get("class") for rect in rects] == ["k-host", "k-matrix", "k-matrix"]
    assert {"values of layers whose products the matrix unit computes", "values from the host"} <= set(texts(svg))
    assert "matrix unit" not in texts(svg), "the activation unit writes them"


def test_a_name_stands_where_no_other_rectangle_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    times = steady_times(program)
    first, second, _ = program.residents
    over = Handover(first, replace(second, first=first.first), 10)
    monkeypatch.setattr(memory, "handovers", lambda *_: iter([over]))
    written = texts(memory_svg(program, times.starts, times.ends, times.cycles))
    assert first.name not in written
    assert second.name in written
    assert "One drawn over another takes rows that the other is done with." in " ".join(written)


def test_a_program_without_residents_has_a_map() -> None:
    program = replace(chain_program("iris", 150, [4, 256, 3]), residents=(), lower_bound_rows=0)
    times = steady_times(program)
    assert ET.fromstring(memory_svg(program, times.starts, times.ends, times.cycles)) is not None


def test_tiles_show_fill_and_order() -> None:
    svg = tiles_svg(chain_program("ragged", 8, [300, 260]))
    cells = [t for t in titles(svg) if t.startswith("tile")]
    assert cells == [
        "tile 0 · rows 0–255 and columns 0–255 · 100 % full · turn 1",
        "tile 1 · rows 0–255 and columns 256–259 · 1.6 % full · turn 3",
        "tile 2 · rows 256–299 and columns 0–255 · 17 % full · turn 2",
        "tile 3 · rows 256–299 and columns 256–259 · 0.3 % full · turn 4",
    ]
    used = [e for e in ET.fromstring(svg).iter(f"{SVG}rect") if e.get("class") == "k-weights"][1:]
    sizes = [(float(e.get("width", "")), float(e.get("height", ""))) for e in used]
    assert sizes[1][0] == pytest.approx(58 * 4 / 256, abs=0.7)
    assert sizes[2] == pytest.approx((58, 58 * 44 / 256), abs=0.1)
    assert "ragged: 4 weight tiles, 30 % full" in texts(svg)
    assert any(text.endswith("the number is the tile's turn in its layer.") for text in texts(svg))


def test_the_title_counts_each_tile_once_and_the_subtitle_the_layers_that_are_not_drawn() -> None:
    program = chain_program("four", 4, [4, 4, 4, 4, 4], "tiny")
    assert "four: 4 weight tiles, 100 % full" in texts(tiles_svg(program))
    shared = replace(program, layers=tuple(replace(layer, tile_fills=((0, 4, 4),)) for layer in program.layers))
    assert "four: 1 weight tile, 100 % full" in texts(tiles_svg(shared))
    assert "The layers' counts add up to 4: equal tiles are stored once" in " ".join(texts(tiles_svg(shared)))
    assert "add up" not in tiles_svg(program)
    assert "Drawn" not in tiles_svg(program)


def test_the_tiles_that_are_drawn_are_those_that_are_counted() -> None:
    """All layers while they fit; then the sentence counts what is there, and names what isn't."""
    few, many = (
        chain_program("few", 4, [4, 8, 4, 12, 4], "tiny"),
        chain_program("many", 4, [4, *(8 + 4 * (i % 3) for i in range(30))], "tiny"),
    )
    assert len(titles(tiles_svg(few))) == len({tile for layer in few.layers for tile, _, _ in layer.tile_fills})
    svg = tiles_svg(many)
    said = re.search(
        r"Drawn: the (\d+) of 30 layers that have the most tiles, (\d+) tiles in all\. Not drawn: (\w+), (\w+), (\w+) and (\d+) others\.",
        " ".join(texts(svg)),
    )
    assert said is not None
    layers, drawn = int(said[1]), int(said[2])
    assert (len(titles(svg)), int(said[6])) == (drawn, 30 - layers - 3)
    names = [text for text in texts(svg) if re.fullmatch(r"fc\d+", text)]
    assert len(names) == layers
    assert not set(said.groups()[2:5]) & set(names)
    assert float(ET.fromstring(svg).get("height", "0")) <= 1400


def test_equal_tiles_take_their_turns_one_after_the_other() -> None:
    program = chain_program("same", 8, [512, 256])
    layer = replace(program.layers[0], tile_fills=((0, 256, 256), (0, 256, 256)))
    instructions = program.instructions.copy()
    instructions["index"][instructions["opcode"] == 3] = 0
    cells = titles(tiles_svg(replace(program, layers=(layer,), instructions=instructions)))
    assert [cell.rsplit(" ", 1)[1] for cell in cells if cell.startswith("tile")] == ["1", "2"]


def test_the_largest_layers_are_shown_and_a_vast_one_is_not_drawn_tile_by_tile() -> None:
    program = chain_program("three", 4, [8, 4, 16, 4, 4], "tiny")
    assert largest_layers(program)[:2] == [1, 2]
    narrow = replace(program.layers[3], tile_fills=program.layers[3].tile_fills * 20)
    assert largest_layers(replace(program, layers=(*program.layers[:3], narrow)))[0] == 3, "by tiles, as a depthwise layer has many"
    vast = LayerInfo("vast", "fc", program.layers[0].origin, 1, (400, 400), tuple((0, 4, 4) for _ in range(10000)))
    svg = tiles_svg(replace(program, layers=(vast,)))
    assert "100 × 100 tiles" in texts(svg)
    assert len(svg) < 20000


def test_a_program_without_weights_says_so() -> None:
    program = chain_program("iris", 150, [4, 3])
    bare = replace(program, layers=(replace(program.layers[0], tile_fills=(), weights=(0, 0)),))
    assert "iris: no layer has weights, so there are no tiles" in texts(tiles_svg(bare))


def test_the_roofline_puts_points_where_the_numbers_say() -> None:
    target = load_target("tpu_v1")
    assert ridge(target) == pytest.approx(1349.3, abs=0.1)
    layers = [RooflinePoint("slow", 10**6, 10**4, 10**5), RooflinePoint("fast", 10**9, 10**5, 10**5)]
    svg = roofline_svg(target, RooflinePoint("model", 2 * 10**9, 2 * 10**5, 3 * 10**5), layers)
    circles = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in ET.fromstring(svg).iter(f"{SVG}circle")]
    assert len(circles) == 2
    decade = (780 - 92) / (math.ceil(4.3) - math.floor(2 - 0.3))
    assert circles[1][0] - circles[0][0] == pytest.approx(2 * decade, abs=0.2)
    rates = [work.rate(target) for work in layers]
    assert rates == [2 * 10**6 * 7000.0, 2 * 10**9 * 7000.0]
    assert {"slow", "fast", "model, all layers", "matrix unit: 91.8 TOPS", "weight memory: 34 GB/s"} <= set(texts(svg))
    assert len(list(ET.fromstring(svg).iter(f"{SVG}polygon"))) == 1


def test_equal_layers_share_a_point_and_a_name() -> None:
    target = load_target("tpu_v1")
    layers = [RooflinePoint(f"fc{i}", 10**6, 65536, 1349) for i in range(300)]
    svg = roofline_svg(target, RooflinePoint("deep", 300 * 10**6, 300 * 65536, 300 * 1349), layers)
    assert "fc0 … fc299 (300)" in texts(svg)
    assert len(list(ET.fromstring(svg).iter(f"{SVG}circle"))) == 1


def test_a_model_without_products_has_an_empty_roofline() -> None:
    svg = roofline_svg(load_target("tiny"), RooflinePoint("sum", 0, 0, 10), [])
    assert "sum: no matrix products, so no point on the roofline" in texts(svg)


@each([1e-3, 0.7, 1, 7, 8, 9, 72, 150, 999, 1000, 453063, 2.7e6, 1e12])
def test_ticks_are_round_and_few(high: float) -> None:
    found = ticks(high)
    assert 2 <= len(found) <= 9
    assert found[0] == 0
    assert found[-1] <= high * (1 + 1e-9)
    step = found[1]
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9), 6) in (1, 2, 5)


def test_numbers_and_names_in_words() -> None:
    assert [number(v) for v in (0, 1349.0, 0.003906, 1234.5, 2.5e-7, -3, 1e7, 2.5e9, 1e11)] == [
        "0", "1,349", "0.003906", "1,234", "2.5e-07", "-3", "10 M", "2.5 G", "100 G",
    ]  # fmt: skip
    assert [percent(*p) for p in ((1, 2), (1, 1000), (999, 1000), (0, 0), (0, 5), (1, 10**4), (1, 8), (1, 400))] == [
        "50 %", "0.1 %", "100 %", "0 %", "0 %", "under 0.1 %", "13 %", "0.3 %",
    ]  # fmt: skip
    assert [rate_text(v) for v in (91.75e12, 8e6, 1e9, 12)] == ["91.8 TOPS", "8 MOPS", "1 GOPS", "12 OPS"]
    assert [size(v) for v in (512, 38400, 2457600)] == ["512 bytes", "37.5 KiB", "2.344 MiB"]
    assert shown("x" * 100) == "x" * 26 + "…" + "x" * 13
    assert [fitted_name(f"block.attention.{part}", 12, 50) for part in ("query", "value")] == ["bloc…ry", "bloc…ue"]
    assert fitted_name("fc", 12, 50) == "fc"
    assert fitted_name("a long name", 12, 15) == ""
    assert [fitted_name("h.2.10.0", 12, width) for width in (44, 40, 33)] == ["h.2.10.0", "…10.0", ""], "no gap beside dots"
    assert fitted_name("enc.0.0", 12, text_width("enc.0.0", 12) - 1) == "", "a gap in the place of a letter or two saves nothing"


def test_names_that_differ_are_shortened_to_such_that_differ() -> None:
    alike = [f"features.{stage}.conv.0.0" for stage in (15, 16, 17)]
    assert shortened([*alike, "fc"], 11) == ["…5.conv.0.0", "…6.conv.0.0", "…7.conv.0.0", "fc"]
    assert shortened(["fc1.weight", "fc2.weight"], 6) == ["fc1.w…", "fc2.w…"]
    assert shortened(["batch_norm.3", "batch_norm.12", "fc"], 10, middle=True) == ["batch_…m.3", "batch_….12", "fc"]
    assert shortened(alike, 11, middle=True) == ["…5.conv.0.0", "…6.conv.0.0", "…7.conv.0.0"], "alike at both ends"
    assert shortened_to(alike, 12, 60) == ["f.15.c.0.0", "f.16.c.0.0", "f.17.c.0.0"]
    assert shortened_to(alike, 12, 40) == [fitted_name(name, 12, 40) for name in alike], "no room to tell them apart"
    assert shortened_to(["a\u202eb", "fc"], 12, 100) == ["a\\u202eb", "fc"]


def test_a_line_does_not_end_between_a_number_and_its_unit() -> None:
    for words in ("36.9 dB", "12.5 GOPS", "0.1 %", "446 ns", "10.7 GB/s", "12 bytes"):
        lines = folded(f"a sentence with {words} in it", 15 + len(words), "", "  ")
        assert lines == ["a sentence with", f"  {words} in it"], "there is room for the number alone"
    assert folded("the layers are 12 sums", 18) == ["the layers are 12", "sums"]


def test_widths_are_those_of_helvetica() -> None:
    assert text_width("matmul", 1000) == 833 + 556 + 278 + 833 + 556 + 222
    assert text_width("界", 10) == 10.0
    assert text_width("e\u0301", 1000) == 556.0


def test_scales_and_hatches() -> None:
    assert Scale(0, 10, 100, 200)(2.5) == 125
    assert {wait.kind for wait in WAITS.values()} <= set(Kind)


@pytest.mark.long
@each(
    product(
        ALL_KINDS,
        [
            chain_program("hello", 8, [256, 256]),
            chain_program("tiny", 6, [9, 7, 3], "tiny"),
            chain_program("many", 8, [256] * 30),
            replace(chain_program("near", 150, [4, 256, 3]), lower_bound_rows=449),
            replace(chain_program("far", 150, [4, 256, 3]), lower_bound_rows=1),
        ],
    )
)
def test_charts_are_readable(kind: str, program: Program) -> None:
    assert_readable(all_charts(program)[kind])


def test_a_map_names_its_limits_above_it() -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    times = steady_times(program)
    for bound, names in (
        (225, ["peak 450 rows", "needed at once 225 rows"]),
        (450, ["peak = needed at once 450 rows"]),
        (0, ["peak 450 rows"]),
    ):
        svg = memory_svg(replace(program, lower_bound_rows=bound), times.starts, times.ends, times.cycles, wide=NARROW)
        assert_readable(svg)
        map_begins = min(float(e.get("y1", "")) for e in ET.fromstring(svg).iter(f"{SVG}line") if e.get("class") == "l-grid")
        boxes = [box for box in text_boxes(svg) if box[0].startswith(("peak", "needed at once"))]
        assert [box[0] for box in boxes] == names
        assert all(box[4] < map_begins for box in boxes)
        assert len([e for e in ET.fromstring(svg).iter(f"{SVG}line") if "alarm" in e.get("class", "")]) == 2 * len(names)


def test_each_point_of_a_crowded_roofline_has_its_name() -> None:
    """Points of one intensity, a few pixels from each other; the model's star among them."""
    target = load_target("tpu_v1")
    layers = [RooflinePoint(f"stage{i}.block.convolution", 10**8, 10**5, 3000 + 900 * i**2) for i in range(7)]
    svg = roofline_svg(target, RooflinePoint("crowd", 10**8, 10**5, 9000), layers)
    assert_readable(svg)
    written = texts(svg)
    assert all(any(layer.name in text for text in written) for layer in layers)
    assert "crowd, all layers" in written
    marks = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in ET.fromstring(svg).iter(f"{SVG}circle")]
    for words, left, top, end, bottom in text_boxes(svg):
        assert not any(left - 5 < x < end + 5 and top - 5 < y < bottom + 5 for x, y in marks), words


def test_a_layer_whose_weights_came_before_it_is_on_the_roof_and_pale() -> None:
    """65,536 bytes take 1,349 cycles. The layer that takes 700 itself is drawn with the rate of its fetches, and says so."""
    target = load_target("tpu_v1")
    below, early = RooflinePoint("below", 10**6, 65536, 1400), RooflinePoint("early", 10**6, 65536, 700)
    assert early.rate(target) == pytest.approx(early.roof(target)) == pytest.approx(2e6 / 65536 * 34e9)
    assert PALE.strip() not in " ".join(texts(roofline_svg(target, below, [below])))
    svg = roofline_svg(target, below, [below, early])
    assert PALE.strip() in " ".join(texts(svg))
    pale = [circle for circle in ET.fromstring(svg).iter(f"{SVG}circle") if circle.get("class") == "k-matrix"]
    assert ["".join(circle.itertext()) for circle in pale] == [
        "early\n1.04 TOPS at 15.26 MACs a byte · 700 cycles\n100 % of the 1.04 TOPS that weight memory allows"
        "\nIts weights' fetches take 1,349 cycles, part of them in other layers' time. The rate is over these."
    ]


def test_points_grow_with_the_cycles_and_gaps_end_at_the_lowest_roof() -> None:
    """A quarter of the cycles is half the growth of the radius. With more than a dozen points there are no lines of gaps."""
    target, model = load_target("tpu_v1"), RooflinePoint("m", 10**7, 655_360, 80_000)
    layers = [RooflinePoint("quarter", 10**6, 65536, 20_000), RooflinePoint("all", 10**6, 655_360, 80_000)]
    svg = roofline_svg(target, model, layers)
    sizes = [float(circle.get("r", "")) for circle in ET.fromstring(svg).iter(f"{SVG}circle")]
    assert sizes == [LARGEST, (SMALLEST + LARGEST) / 2]
    gaps = [line for line in ET.fromstring(svg).iter(f"{SVG}line") if line.get("class") == "l-rule" and line.get("x1") == line.get("x2")]
    circle = next(circle for circle in ET.fromstring(svg).iter(f"{SVG}circle") if float(circle.get("r", "")) != LARGEST)
    [gap] = [line for line in gaps if line.get("x1") == circle.get("cx") and line.get("y1") == circle.get("cy")]
    up = sorted({float(line.get("y1", "")) for line in ET.fromstring(svg).iter(f"{SVG}line") if line.get("class") == "l-grid"})
    decade = next(b - a for a, b in pairwise(up) if b - a > 20)
    assert float(gap.get("y1", "")) - float(gap.get("y2", "")) == pytest.approx(decade * math.log10(20_000 / (65536 * 7 / 340)), abs=0.3)
    assert "from a point to the lowest of its roofs" in texts(svg)
    crowd = [RooflinePoint(f"l{i}", 10**6, 65536 + 1000 * i, 20_000 + 900 * i) for i in range(12)]
    assert "from a point to the lowest of its roofs" not in texts(roofline_svg(target, model, crowd))


def test_bandwidths_in_words() -> None:
    assert [bandwidth_text(v) for v in (34e9, 1.5e12, 2e6, 999.0)] == ["34 GB/s", "1,500 GB/s", "2 MB/s", "999 B/s"]


def test_the_turns_of_tiles_are_numbers_or_a_direction() -> None:
    deep = texts(tiles_svg(chain_program("deep", 8, [18 * 256, 512])))
    assert [text for text in deep if text.isdigit()] == [str(n) for row in range(18) for n in (row + 1, row + 19)]
    program = chain_program("wide", 8, [256 * 30, 256 * 20])
    wide = texts(tiles_svg(program))
    assert not [text for text in wide if text.isdigit()]
    assert any(text.endswith("100 % full, column by column") for text in wide)
    fills = program.layers[0].tile_fills
    equal = replace(program, layers=(replace(program.layers[0], tile_fills=(*fills[:-1], fills[0])),))
    assert ", column by column" in " ".join(texts(tiles_svg(equal))), "the last tile is equal to the first"


def test_a_tile_that_is_still_there_says_so() -> None:
    program = chain_program("same", 8, [4, 4, 4], "tiny")
    owners = np.where(program.instructions["opcode"] == 3, 0, program.layer_of).astype(np.uint32)
    assert "1 tile, 100 % full, kept from an earlier layer" in texts(tiles_svg(replace(program, layer_of=owners)))


def test_the_numbers_of_an_axis_have_one_unit() -> None:
    assert numbers([0, 6e6, 12e6]) == ["0", "6 M", "12 M"]
    assert numbers([0, 4e6, 8e6]) == ["0", "4,000,000", "8,000,000"]
    svg = memory_svg(chain_program("iris", 150, [4, 3]), np.zeros(99, np.int64), np.ones(99, np.int64), 14_190_452)
    assert {"2 M", "14 M", "2.86 ms", "20 ms"} <= {*texts(svg)}
    assert not [text for text in texts(svg) if "000,000" in text]


def test_the_names_of_a_memory_map_keep_off_the_line_of_the_lower_bound() -> None:
    """The line runs through the middle of the buffer; its name stands in the larger half, whether across or upwards."""
    program = chain_program("iris", 150, [4, 256, 3])
    [first, *_] = program.residents
    for cycles, turned in ((10, False), (200, True)):
        long = replace(first, name="a" * 12, start=0, rows=400)
        lone = replace(program, residents=(long,), lower_bound_rows=190)
        times = steady_times(program)
        svg = ET.fromstring(memory_svg(lone, times.starts * 0, times.ends * 0 + 10, cycles))
        [name] = [text for text in svg.iter(f"{SVG}text") if "".join(text.itertext()) == long.name]
        *_, bound = (float(line.get("y1", "")) for line in svg.iter(f"{SVG}line") if line.get("stroke-dasharray") == "6 4")
        half = text_width(long.name, SMALL) / 2 if turned else SMALL
        assert (name.get("transform") is not None) == turned
        assert abs(float(name.get("y", "")) - bound) > half
