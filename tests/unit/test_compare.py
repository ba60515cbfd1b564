"""Two compiles side by side: differences that add up, and the cause that the numbers have."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tests.support.command_line import run
from tpucc.explain.accounting import TABLE_3
from tpucc.explain.comparison.compare import compare
from tpucc.explain.comparison.layers import LayerDifference, layer_rows
from tpucc.explain.comparison.pairs import Pair, Seconds
from tpucc.explain.comparison.reasons import BYTES, GROUPS, bytes_sent
from tpucc.explain.comparison.tables import comparison_table, equal_layers
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.interop.programs import folder
from tpucc.isa.program import Division
from tpucc.see.comparison.page import comparison_page
from tpucc.target import with_overrides

MATRIX_ALONE = {"depthwise": {"unit": "matrix"}}
PAIRS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any], tuple[str, ...]]] = {
    "levels": (
        *("05_digits_cnn", {"level": 0}, {}),
        (
            "B takes 239 µs less than A from end to end (504.8 µs instead of 743.5 µs, -32.1 %). On the device B takes 167,088 cycles",
            "84,453 fewer are spent waiting for the host link: with 3,328,256 bytes across the link instead of 3,585,536, 69,861",
            "are hidden behind other work or other waits. 42,840 fewer are spent waiting for host work: 0 cycles of host steps instead of",
            "Of all layers, input (line 16) has the most of the difference: -65,695 cycles.",
        ),
    ),
    "batches": (
        *("04_digits_mlp", {"params": {"batch": 8}}, {}),
        (
            "The batch is 200 instead of 8: an item takes 0.261 µs instead of 3.596 µs from end to end; 54.1 cycles an item instead of",
            "708.1. B is better for throughput, A for latency. Before the device starts the host takes 22.80 µs (12,800 elements) instead",
            "After the device has finished the host takes 14.00 µs (softmax, 4,000 elements) instead of 10.16 µs (softmax, 160 elements).",
            "than A (10,812 instead of 5,665, +90.9 %). 7,242 more are",
            "102,400 bytes across the link instead of",
            "with 3 tiles fetched in both, 4,047 cycles of that instead of 528 are hidden behind other work or other waits.",
        ),
    ),
    "weight memory": (
        *("04_digits_mlp", {}, {"overrides": {"weight_bandwidth": "3e9"}}),
        (
            "44,964 more are spent waiting for weight memory: 3 tiles fetched in both",
            "3 tiles fetched in both, 15,292 cycles each instead of 1,349 cycles each.",
        ),
    ),
    "weight memory, another way to compute": (
        *("04_digits_mlp", {}, {"target": "tpu_v1_prime"}),
        (
            "1,648 fewer are spent waiting for the host link: the first product ",
            "begins in cycle 2,369 instead of 4,038, after 25,600 bytes from the host instead of 51,200.",
            "On the other hand, 512 more are spent waiting for sums to come out.",
            "Of all layers, fc3 (line 14) has the most of the difference: -1,024 cycles.",
        ),
    ),
    "a pass left out": (
        *("06_digits_lstm", {}, {"omit": ["batch-products"]}),
        (
            "B takes 29.2 µs more than A from end to end (174.6 µs instead of 145.4 µs, +20.0 %). Before the device starts the host takes "
            "35.60 µs (slice, 25,600 elements) instead of 22.80 µs (12,800 elements). On the device B takes 11,447 cycles more than A",
            "32,766 more are spent waiting for weight memory: 61 tiles fetched instead of 33",
            "18,869 fewer are spent waiting for the host link: ",
            "the first product begins in cycle 4,038 instead of 27,403, after 51,200 bytes from the host instead of 409,600.",
            "waits for sums to come out -512, waits for activation -10,874. Of all layers, lstm.3 and 106",
            "more (line 24) have the most of the difference: +32,505 cycles. B has 32 layers of other products there than the 4 of A.",
        ),
    ),
    "wider values": (
        "12_mlp_mixer_block",
        {},
        {"activation_bits": 16},
        ("59,863 more are spent waiting for the host link: 1,974,272 bytes across the link instead of 987,136",),
    ),
    "a batch alone, and a stream": (
        *("06_digits_lstm", {"level": 0}, {}),
        (
            "B takes 3,437 cycles more than A (76,048 instead of 72,611, +4.7 %).",
            "For each batch of a stream B takes 28.8 µs less than A (63.72 µs instead of 92.50 µs, -31.1 %).",
        ),
    ),
    "sooner in a stream": (
        *("05_digits_cnn", {}, {"goal": "stream"}),
        (
            "B takes 106 µs more than A from end to end (611.0 µs instead of 504.8 µs, +21.0 %).",
            "The batch of A is computed in two halves of at most 100 that take turns, that of B in one piece.",
            "For each batch of a stream B takes 2 µs less than A (313.0 µs instead of 315.0 µs, -0.6 %).",
        ),
    ),
    "layers that one side fuses": (
        *("04_digits_mlp", {"level": 0}, {}),
        ("Of all layers, fc1 (line 12; in A fc1, add, h) has the most of the difference: -402 cycles, as has 1 other.",),
    ),
    "a host step, which is a layer": (
        *("12_mlp_mixer_block", {}, {"overrides": {"host_elements_per_second": "2e9"}}),
        ("Of all layers, host step 0 (line 39) has the most of the difference",),
    ),
    "host steps": (
        *("08_fashion_cnn", {}, {"omit": ["flatten-to-convolution"]}),
        ("128,139 more are spent waiting for host work: 128,139 cycles of host steps instead of 0.",),
    ),
    "rows that are spilled": (
        *("14_digits_resnet", {"params": {"batch": 1}}, {"params": {"batch": 1}, "overrides": {"unified_buffer_rows": 90}}),
        (
            "29,595 more are spent waiting for the host link: 40 transfers instead of 3, 700 cycles of latency each",
            "74 tiles fetched instead of 29",
        ),
    ),
    "an activation of its own": (
        *("05_digits_cnn", {}, {"omit": ["fuse-activation"]}),
        ("16,507 more are spent waiting for the activation unit: 72,600 cycles of that unit's work instead of 56,400",),
    ),
    "cores": (
        *("04_digits_mlp", {}, {"cores": 8}),
        ("8 cores instead of 1: rows, tiles and instructions are those of each core", "75 rows multiplied instead of 600."),
    ),
    "less room": (
        *("05_digits_cnn", {"overrides": {"unified_buffer_rows": 15_500}}, {}),
        (
            "The batch of A is computed in 3 parts of at most 67 until fc1, that of B in two halves of at most 100 that take turns.",
            "48,093 fewer are spent waiting for the host link: with 3,328,256 bytes across the link in both, 69,861 cycles of that",
            "For each batch of a stream B takes 230 µs less than A (315.0 µs instead of 544.6 µs, -42.2 %).",
        ),
    ),
    "results that leave later": (
        *("paper/mlp0", {}, {"level": 0}),
        ("28,266 more are spent waiting for the host link: with 819,200 bytes across the link in both, 1,400 cycles of that",),
    ),
    "depthwise convolutions on another unit": (
        *("gallery/digits_mobilenet", {"settings": {"depthwise": {"unit": "matrix"}}}, {"settings": {"depthwise": {"unit": "vector"}}}),
        (
            "4 of the depthwise convolutions in B, none in A: those that move take 172,708 cycles instead of 190,064.",
            "176,145 more are spent waiting for the activation unit: 299,000 cycles of that unit's work instead of 139,000, 2.2 a",
            "instead of 1 a row; 180,000 of them for depthwise convolutions instead of 0.",
        ),
    ),
    "another clock": (
        *("04_digits_mlp", {}, {"target": "tpu_edge"}),
        (
            "At their clocks that is 55.20 µs instead of 15.45 µs.",
            "across the link instead of 102,400, 0.5 GB/s instead of 10.7",
        ),
    ),
}
"""A program, the options of both sides, and what the cause says."""


@cache
def compiled(program: str, options: str) -> tpucc.Executable:
    """`options` are those of `tpucc.compile` as a Python dictionary."""
    return tpucc.compile(folder() / f"{program}.tpu", **ast.literal_eval(options))


@pytest.mark.parametrize("name", one_of(4, one_of(3, PAIRS), LONG))
def test_the_cause_is_that_of_the_numbers(name: str) -> None:
    program, first, second, words = PAIRS[name]
    a, b = (compiled(program, repr(options)) for options in (first, second))
    found = tpucc.compare(a, b)
    for word in words:
        assert word in found.cause, found.cause
    spent = re.findall(r"([\d,]+) (more|fewer) are spent", found.cause)
    others = re.findall(r" ([-+][\d,]+)", found.cause.partition("Other rows:")[2].partition(".")[0])
    named = [*(f"{'+' if way == 'more' else '-'}{count}" for count, way in spent), *others]
    assert sum(int(change.replace(",", "")) for change in named) == found.difference == b.stats["cycles"] - a.stats["cycles"] != 0
    assert sum(pair.difference for pair in found.rows.values()) == found.difference
    for side, name in ((a, "a"), (b, "b")):
        assert {limit: getattr(pair, name) for limit, pair in found.rows.items() if limit is not Limit.MATRIX_UNIT} == side.stats[
            "waits_by_root"
        ]
    assert sum(layer.cycles.difference for layer in found.layers) == found.difference
    for side, place in ((a, 0), (b, 1)):
        own = [name for layer in found.layers for name in (layer.names[place], *layer.parts[place]) if name]
        assert sorted(own) == sorted(layer["name"] for layer in side.stats["layers"])
    assert sum(pair.b for pair in found.rows.values()) == b.stats["cycles"]
    back = tpucc.compare(b, a)
    assert back.difference == -found.difference
    assert {layer.names[::-1]: layer.cycles.difference for layer in back.layers} == {
        layer.names: -layer.cycles.difference for layer in found.layers
    }


def test_the_division_of_a_batch_is_that_of_the_program_whatever_its_notes_say() -> None:
    exe = tpucc.compile(folder() / "04_digits_mlp.tpu")
    parts = {
        "in 4 parts of at most 50": Division(4, 50),
        "in 4 parts of at most 50, whose inputs are read ahead": Division(4, 50, "ahead"),
        "in 3 parts of at most 80 until fc2": Division(3, 80, until="fc2"),
    }
    for words, division in parts.items():
        notes = ("the batch is split into 7 parts of at most 9: it says so",)
        other = Timed(replace(exe.runtime.program, division=division, notes=notes))
        assert f"The batch of A is computed in one piece, that of B {words}." in compare(exe.runtime, other).cause
        assert "The batch" not in compare(other, other).cause


@pytest.mark.long
def test_layers_belong_together_by_what_they_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The products of all steps at once are no product of one step; that of a state by its weights is the same in both, by another name."""
    lstm = "06_digits_lstm"
    first, second = compiled(lstm, "{}"), compiled(lstm, repr({"omit": ["batch-products"]}))
    found = tpucc.compare(first, second)
    own = {layer.names: layer for layer in found.layers}
    assert [own[names].only for names in (("lstm", ""), ("", "lstm"))] == ["a", "b"]
    assert (own["lstm.4", "lstm.8"].name, own["lstm.4", "lstm.8"].only) == ("lstm.8 (A: lstm.4)", "")
    assert {names for names in own if "lstm.8" in names} == {("lstm.4", "lstm.8"), ("lstm.8", "lstm.16")}
    assert all(own[f"{name}.{step}", f"{name}.{step}"] for name in "ifgo" for step in range(1, 8))
    row = layer_rows(found.layers)[0]
    assert (row.name, row.only, row.cycles.difference) == ("lstm.3 and 106 more", "", 32_505)
    page = comparison_page(found, first.runtime, second.runtime)
    before, _, after = page.partition("<details><summary>each of the 109</summary>")
    assert before.count("<td>+32,505</td>") == 1
    assert "<td>lstm.8 (A: lstm.4)</td>" in after
    monkeypatch.setattr("tpucc.see.comparison.page.MOST", 50)
    page = comparison_page(found, first.runtime, second.runtime)
    assert "<summary>the 50 with the largest differences, of 109; tpucc compare --json has all</summary>" in page


def test_layers_of_another_size_or_source_belong_together_by_their_names(tmp_path: Path) -> None:
    """With two widths `h` is the same layer; in a source with one layer more, each has that of its name."""
    head = "weights random(seed=0)\n"
    text = head + "model m(x: f32[4, 8]) -> f32[4, {wide}]:\n    weight w: f32[8, {wide}]\n    weight v: f32[{wide}, {wide}]\n"
    more = "    h = relu(x @ w)\n    y = h @ v\n    return y\n"
    small, large = ((text + more).format(wide=wide) for wide in (8, 16))
    deeper = (text + "    h = relu(x @ w)\n    g = relu(h @ v)\n    y = g @ v\n    return y\n").format(wide=8)
    param = "param n = 8\n" + (text + more).format(wide="n")
    made = {}
    for name, source in {"small": small, "large": large, "deeper": deeper, "param": param}.items():
        (tmp_path / f"{name}.tpu").write_text(source)
        made[name] = tpucc.compile(tmp_path / f"{name}.tpu")
    wider = tpucc.compile(tmp_path / "param.tpu", params={"n": 16})
    for a, b in ((made["small"], made["large"]), (made["param"], wider)):
        assert not [layer.names for layer in tpucc.compare(a, b).layers if layer.only]
    only = [layer for layer in tpucc.compare(made["small"], made["deeper"]).layers if layer.only]
    assert [layer.only for layer in only] == ["b"]
    assert {layer.line for layer in tpucc.compare(made["small"], made["deeper"]).layers if not layer.only} >= {"A 6 / B 7"}
    assert all("/" not in layer.line for layer in tpucc.compare(made["small"], made["large"]).layers)


CALLS = """weights random(seed=0)
def dense(x, name):
    weight w: f32[8, 8] = "{name}.w"
    weight b: f32[8] = "{name}.b"
    return x @ w + b
def positive(x):
    return relu(x)
def block(x, name):
    return positive(dense(x, name))
model m(x: f32[4, 8] in [-1.0, 1.0]) -> f32[4, 8]:
    x = block(x, "a")
    return block(x, "b")
"""


def test_what_one_side_fuses_belongs_to_the_fused_layer_which_is_at_its_line_of_the_model() -> None:
    """The sums and the relus are of two calls of one `def`, the activation's own calls are others than the product's."""
    plain, fused = (tpucc.compile_source(CALLS, level=level) for level in (0, 2))
    assert [layer["line"] for layer in fused.stats["layers"]] == [11, 12, 10]
    found = sorted(tpucc.compare(plain, fused).layers, key=lambda layer: layer.line)
    assert [(layer.names, layer.parts, layer.line) for layer in found] == [
        (("input", "input"), ((), ()), "10"),
        (("a", "a"), (("add", "x.1"), ()), "11"),
        (("b", "b"), (("add.1", "relu"), ()), "12"),
    ]
    assert [layer.brief for layer in found[1:]] == ["a (A: 3 layers)", "b (A: 3 layers)"]
    back = sorted(tpucc.compare(fused, plain).layers, key=lambda layer: layer.line)
    assert [layer.name for layer in back[1:]] == ["a (B: a, add, x.1)", "b (B: b, add.1, relu)"]


STEPS = """weights random(seed=0)
param steps = 5
def cell(x, h):
    weight w: f32[8, 8]
    weight u: f32[8, 8]
    z = sigmoid(x @ w + h @ u)
    return z * h + (1.0 - z) * x
model m(x: f32[4, steps, 8] in [-1.0, 1.0]) -> f32[4, 8]:
    h = x[:, 0]
    for t in range(1, steps):
        h = cell(x[:, t], h)
    return h
"""


def test_steps_that_one_side_alone_has_are_no_parts_of_others_and_not_equal() -> None:
    whole, fewer, plain = (tpucc.compile_source(STEPS, params={"steps": n}, level=level) for n, level in ((5, 2), (4, 2), (5, 0)))
    found = tpucc.compare(whole, fewer)
    assert {layer.names[0]: layer.parts for layer in found.layers if any(layer.parts)} == {}
    assert {layer.names[0] for layer in found.layers if layer.only == "a"} >= {"z.3", "mul.7", "h.4"}
    assert "\n16 layers take as many cycles in both\n" in comparison_table(found)
    parts = {layer.name: layer.parts for layer in tpucc.compare(whole, plain).layers if any(layer.parts)}
    assert parts == {f"add{n} (B: add{n}, z{n})": ((), (f"z{n}",)) for n in ("", ".1", ".2", ".3")}


def test_a_layer_without_cycles_that_one_side_alone_has_is_equal_to_none() -> None:
    layers = [LayerDifference(names, "fc", (1, 1), "", Pair(0, 0), {}) for names in (("a", "a"), ("b", ""), ("", "c"))]
    compiled = tpucc.compile_source(CALLS)
    assert equal_layers(replace(tpucc.compare(compiled, compiled), layers=tuple(layers))) == "1 layer takes as many cycles in both"


def test_a_wait_that_got_another_name_makes_no_difference() -> None:
    """Of those that changed as the layer did."""
    for rows, name in (
        ({Limit.WEIGHT_MEMORY: 5_000, Limit.WEIGHT_SHIFT: -3_000, Limit.MATRIX_UNIT: 600}, "waits for weight memory"),
        ({Limit.WEIGHT_MEMORY: -5_000, Limit.HOST_LINK: 4_990, Limit.MATRIX_UNIT: 100}, "waits for the host link"),
        ({Limit.ACTIVATION: 0, Limit.HOST_LINK: 0}, ""),
    ):
        assert LayerDifference(("h", "h"), "fc", (1, 1), "", Pair(0, sum(rows.values())), rows).cause == name


def test_hidden_cycles_of_fetching_are_those_without_the_weight_stall(tmp_path: Path) -> None:
    """Not without the shift, in which the next tile may be fetched."""
    text = "weights random(seed=0)\nmodel net(x: f32[{batch}, 8]):\n"
    text += "".join(f"    weight {name}: f32[{shape}]\n" for name, shape in (("w", "8, 12"), ("v", "12, 3")))
    sides = []
    for batch in (16, 160):
        (tmp_path / f"{batch}.tpu").write_text(text.format(batch=batch) + "    return relu(x @ w) @ v\n")
        sides.append(tpucc.compile(tmp_path / f"{batch}.tpu"))
    found = tpucc.compare(*sides)
    fetched = [side.stats["tile_fetches"] * side.runtime.program.target.tile_fetch_cycles for side in sides]
    stall = found.rows[Limit.WEIGHT_MEMORY]
    assert stall.a > 0 == stall.b, found.rows
    assert f"{fetched[1]:,} cycles of that instead of {fetched[0] - stall.a:,} are hidden" in found.cause, found.cause


def test_each_row_of_the_accounting_is_in_one_group() -> None:
    assert {group.limit for group in GROUPS} == set(Limit)
    assert len(GROUPS) == len(Limit)


def waterfall(html: str) -> list[list[float]]:
    """The numbers of each row of the page's table of cycles: of A, of B, and their difference; 0 where there is none."""
    rows = re.search(r'id="rows".*?</table>', html, re.DOTALL)[0].split("<tr>")[2:]
    return [[float(cell.replace(",", "") or 0) for cell in re.findall(r"<td>([-+\d,.]*)\u00a0?</td>", row)] for row in rows]


@each([("-O0", "-O2"), ("-O2", "-O0"), ("-D batch=8", "-D batch=9")])
def test_a_waterfall_leads_from_a_to_b(a: str, b: str, tmp_path: Path) -> None:
    """Each bar begins where the one above it ends; the last one is B's. What doesn't change has none."""
    page = tmp_path / "page.html"
    assert run("compare", folder() / "04_digits_mlp.tpu", f"--a={a}", f"--b={b}", "--quiet", "-o", page) == 0
    html = page.read_text("utf-8")
    first, *parts, last = re.findall(r'<i class="(\w+)" style="margin-left:([\d.]+)%;width:([\d.]+)%">', html[: html.index('id="layers"')])
    assert (first[0], last[0], first[1], last[1]) == ("a", "b", "0.0", "0.0")
    end = float(first[2])
    for kind, *sides in parts:
        left, width = map(float, sides)
        assert end == pytest.approx(left if kind == "more" else left + width, abs=0.2)
        end = left + width if kind == "more" else left
    assert end == pytest.approx(float(last[2]), abs=0.2)
    assert len(parts) == sum(row[2] != 0 for row in waterfall(html)[1:-1])


def test_the_cycles_of_an_item_are_the_same_in_text_json_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two batches the larger one takes longer, and less for an item; with a link of half the rate it takes more for an item too."""
    mlp, page = folder() / "04_digits_mlp.tpu", tmp_path / "page.html"
    batches = ("compare", mlp, "--a=-D batch=8", "--quiet")
    assert run(*batches, "-o", page) == 0
    text = capsys.readouterr().out
    assert run(*batches, "--json") == 0
    items = json.loads(capsys.readouterr().out)["items"]
    a, b, difference = (items["cycles"][key] for key in ("a", "b", "difference"))
    assert items["batch"] == {"a": 8, "b": 200}
    assert items["better"] == {"throughput": "b", "throughput_in_a_stream": "b", "latency": "a"}
    assert re.search(rf"^an item of the batch +{a:,.1f} +{b:,.1f} +{difference:+,.1f}$", text, re.MULTILINE)
    html = page.read_text("utf-8")
    assert f"; {b:,.1f} cycles an item instead of {a:,.1f}." in html
    seconds = [1e6 * items["end_to_end"][key] for key in ("a", "b")]
    assert seconds == [pytest.approx(28.76457 / 8, rel=1e-5), pytest.approx(52.24571 / 200, rel=1e-5)]
    told = f"{seconds[1]:.3f} µs instead of {seconds[0]:.3f} µs"
    assert f"<h1>End to end {told} for an item (-92.7 %), 52.25 µs instead of 28.76 µs (+81.6 %) for a batch of 200 instead of 8" in html
    assert f"an item takes {told} from end to end" in " ".join(text.split())
    assert re.search(r"^end to end +28.76 µs  52.25 µs    \+23.5 µs$", text, re.MULTILINE).start() < text.index("\ncycles ")
    assert waterfall(html)[0][0] == pytest.approx(a, abs=0.05)
    assert waterfall(html)[-1][1:] == [pytest.approx(b, abs=0.05), pytest.approx(difference, abs=0.1)]
    host = "Before the device starts the host takes 22.80 µs (12,800 elements) instead of 10.51 µs (512 elements)."
    assert f"{host} After the device has finished the host takes 14.00 µs (softmax, 4,000 elements) instead of" in " ".join(text.split())
    small, large = tpucc.compile(mlp, params={"batch": 8}), tpucc.compile(mlp, overrides={"host_bandwidth": "1e8"})
    found = tpucc.compare(small, large)
    assert found.items is not None
    assert found.items.stream_seconds.a == small.stats["end_to_end"]["stream_seconds"] / 8
    assert "A is better for throughput and for latency." in found.cause
    assert tpucc.compare(tpucc.compile(mlp), tpucc.compile(mlp, level=0)).items is None


OTHER = """weights random(seed={seed})
model m(x: f32[8, 6]):
    weight w: f32[6, 6]
    return {f}(x @ w)
"""


def test_equal_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    iris = folder() / "02_iris.tpu"
    assert run("compare", iris) == 0
    printed, said = capsys.readouterr()
    assert printed.startswith("A: 02_iris.tpu\nB: 02_iris.tpu\n")
    assert "note: A and B are one model with the same options" in said
    assert "Both take 27.82 µs from end to end. On the device both take 5,119 cycles, with the same instructions." in " ".join(
        printed.split()
    )
    tpucc.compile(iris).save(tmp_path / "iris.tpub")
    assert run("compare", iris, tmp_path / "iris.tpub") == 0
    assert "with the same instructions." in " ".join(capsys.readouterr().out.split())
    (tmp_path / "weights.tpu").write_text(OTHER.format(seed=1, f="relu"))
    (tmp_path / "other.tpu").write_text(OTHER.format(seed=2, f="sigmoid"))
    a, b = (tpucc.compile(tmp_path / name) for name in ("weights.tpu", "other.tpu"))
    assert "with the same instructions; weights, biases, scales and tables differ." in tpucc.compare(a, b).cause
    upside_down = tpucc.Stages(allocate=lambda lives, rows: rows - tpucc.Stages().allocate(lives, rows) - lives.rows)
    found = tpucc.compare(tpucc.compile(iris), tpucc.compile(iris, stages=upside_down))
    whole = "Both take 27.82 µs from end to end. On the device both take 5,119 cycles, with the same instructions at other addresses."
    reach = "The buffers of B reach up to 25,165,824 bytes of the unified buffer, those of A to 13,056."
    assert found.cause == f"{whole} {reach}", "the host's work takes longer than the device's, of which a stream would have one less"


@pytest.mark.soak
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options of one side count more than those of both; the text fits a terminal; JSON has the contract's keys."""
    cnn, page = folder() / "05_digits_cnn.tpu", tmp_path / "page.html"
    assert run("compare", cnn, "--a=-O0 -D batch=20", "--b=-D batch=10", "-D", "batch=40", "-o", page) == 0
    printed = capsys.readouterr().out
    assert "A: 05_digits_cnn.tpu -O0 -D batch=20\nB: 05_digits_cnn.tpu -D batch=10" in printed
    assert "The batch is 10 instead of 20" in " ".join(printed.split())
    assert max(map(len, printed.replace(str(page), "").split("\n"))) <= 80
    text = page.read_text("utf-8")
    assert text.count("<svg") == 8, "each picture is there for a wide window and for a narrow one"
    assert text.count(">array active</text>") == 4, "the legends of both timelines"
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert text.count('id="timeline"') == text.count('id="timeline-narrow"') == text.count('id="memory-narrow"') == 2
    hatches = set(re.findall(r"url\(#(timeline-[\w-]+)", text))
    assert {name.startswith("timeline-narrow-") for name in hatches} == {True, False}
    assert hatches <= set(re.findall(r'id="([\w-]+)"', text))
    assert "<details>" not in text
    assert text.count('id="rows"') == text.count("<th>cycles of an item</th>") == 1
    assert run("compare", cnn, "--a=-O1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"cycles", "difference", "cause", "notes", "layers"} <= found.keys()
    assert found["breakdown"].keys() == set(TABLE_3.values())
    assert found["by_root"].keys() == set(Limit)
    assert sum(found["by_root"].values()) == found["difference"]
    assert found["cycles"]["b"] - found["cycles"]["a"] == found["difference"]
    whole = found["end_to_end"]
    assert whole["difference"] == pytest.approx(whole["b"]["seconds"] - whole["a"]["seconds"], abs=1e-12)
    assert whole["b"] == tpucc.compile(cnn).stats["end_to_end"]
    assert found["stream"] == {"a": 220_479, "b": 220_479, "difference": 0}
    assert sum(layer["difference"] for layer in found["layers"]) == found["difference"]


@pytest.mark.long
def test_notes_of_one_side_name_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of passes too, which the program doesn't keep. What is true of both sides stands on standard error once."""
    cnn, page, note = folder() / "05_digits_cnn.tpu", tmp_path / "page.html", "conv1 (line 17): the host packs 3×3 pixels into a row"
    quick = ("--set", "host_elements_per_second=1e11")
    assert run("compare", folder() / "04_digits_mlp.tpu", cnn, *quick, "-o", page) == 0
    out, err = capsys.readouterr()
    assert f"note of B alone: {note}" in out
    assert note not in err
    text = page.read_text("utf-8")
    assert f"B: {note}" in text
    assert text.count(">15,000</text>") == 4, "both buffers have one axis of rows"
    assert run("compare", cnn, *quick, "--b=--omit pack-patches", "--json") == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [any(text.startswith(note) for text in notes[side]) for side in "ab"] == [True, False]
    assert run("compare", cnn, *quick) == 0
    assert capsys.readouterr().err.count(note) == 1


@each(
    [
        (("--a=-O7",), "--a: Invalid value for '-O'"),
        (("--b=-D batch",), "--b: Invalid value for '-D'"),
        (('--b="-O0',), "--b: No closing quotation"),
        (("--b=--help",), "--b: No such option"),
        (("--a=other.tpu",), "--a: Got unexpected extra argument"),
    ]
)
def test_options_of_a_side_that_are_none(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", folder() / "01_hello.tpu", *words) == 2
    assert says in capsys.readouterr().err


def test_a_program_takes_no_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tpucc.compile(folder() / "01_hello.tpu").save(tmp_path / "p.tpub")
    assert run("compare", tmp_path / "p.tpub", "--b=-O0") == 2
    assert "p.tpub is a program, which is compiled already" in capsys.readouterr().err


CHAIN = """\
param depth = 24
weights random(seed=0)

def layer(x, name):
    weight w: f32[16, 16] = "{name}.w"
    return relu(x @ w)

model chain(x: f32[8, 16] in [-1.0, 1.0]) -> f32[8, 16]:
    for i in range(depth):
        x = layer(x, "layer{i}")
    return x
"""
ONE = """\
weights random(seed=0)

model one(x: f32[8, 16] in [-1.0, 1.0]) -> f32[8, 4]:
    weight w: f32[16, 4] = "w"
    return x @ w
"""


def test_many_layers_of_one_side_are_one_group_in_sentence_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program that is many times larger is also told apart in a stream; a side without such layers has an empty cell; one is one."""
    chain, one = tmp_path / "chain.tpu", tmp_path / "one.tpu"
    chain.write_text(CHAIN, "utf-8")
    one.write_text(ONE, "utf-8")
    assert run("compare", chain, one, "--quiet") == 0
    printed = capsys.readouterr().out
    said = " ".join(printed.split("\n\n")[1].split())
    group = r"Of all layers, (layer\d+ and 23 more) \(line 10\), which only A has, have the most of the difference: (-[\d,]+) cycles\."
    found = re.search(group, said)
    assert found, said
    name, difference = found.groups()
    assert re.search(rf"^{name} +10 +{difference[1:]} +{difference} ", printed, re.MULTILINE), printed
    assert ": 1 tile fetched instead of 24, 1,349 cycles each" in said
    assert re.search(r"For each batch of a stream B takes [\d.]+ µs less than A \([\d.]+ µs instead of [\d.]+ µs, -5\d", said)


def test_of_machines_with_other_clocks_time_is_compared() -> None:
    """A slower machine waits fewer cycles for the same link, but no less time."""
    path = folder() / "gallery" / "mlperf_ds_cnn.tpu"
    quick = tpucc.compile(path).runtime
    slow = tpucc.compile(path, target=with_overrides(quick.program.target, {"clock_hz": 350e6})).runtime
    found = compare(quick, slow)
    assert found.seconds().difference > 0 > found.difference
    assert found.seconds("stream_seconds").difference >= 0 > found.stream.difference
    assert re.match(r"B takes [\d.]+ µs more than A from end to end .*\. On the device B takes [\d,]+ cycles fewer than A", found.cause)
    assert re.search(r" At their clocks that is [\d.]+ µs instead of [\d.]+ µs\.", found.cause)


def test_times_of_one_pair_have_one_unit_unless_one_is_much_shorter() -> None:
    assert Seconds(131.58e-6, 147.94e-6).words == "147.9 µs instead of 131.6 µs"
    assert Seconds(30.26e-6, 0.1849).takes(("A", "B")) == "B takes 185 ms more than A (185 ms instead of 30.3 µs, +610,937.7 %)"
    assert Seconds(1e-6, 1e-6 + 1e-20).takes(("A", "B"), " from end to end") == "both take 1.000 µs from end to end"
    assert Seconds(0.0, 2e-6).takes(("A", "B")).startswith("B takes 2 µs more than A (2.000 µs instead of 0.000 µs")


def test_layers_of_one_name_in_two_models_belong_together_if_their_kinds_agree() -> None:
    """`one` is a product in both, of other sizes; `two` is a product here, and a convolution there."""
    head = 'weights random(seed=0)\nmodel m(x: f32[8, 4, 4, 4]):\n    weight two: f32[{}] = "two.w"\n    weight one: f32[{}] = "one.w"\n'
    fc = head.format("64, 32", "32, 16") + "    return relu(reshape(x, (8, 64)) @ two) @ one\n"
    conv = head.format("4, 4, 4, 24", "24, 16") + "    return reshape(relu(conv2d(x, two)), (8, 24)) @ one\n"
    a, b = (tpucc.compile_source(text).runtime for text in (fc, conv))
    found = compare(a, b)
    assert "The models differ in the sizes of one, and in what kind of layer is two." in found.cause
    assert sorted((layer.name, layer.only) for layer in found.layers) == [("input", ""), ("one", ""), ("two", "a"), ("two", "b")]
    other = tpucc.compile_source(fc.replace("one", "last").replace("two", "first")).runtime
    assert "The models differ: no layer has one name and one kind on both sides." in compare(a, other).cause
    assert "The models differ" not in compare(a, a).cause


def test_models_with_few_layers_in_common_are_called_so() -> None:
    def chain(*names: str) -> tpucc.Executable:
        weights = "".join(f'    weight w{n}: f32[8, 8] = "{name}.w"\n' for n, name in enumerate(names))
        return tpucc.compile_source(f"weights random(seed=0)\nmodel m(x: f32[4, 8]):\n{weights}    return tanh(tanh(x @ w0) @ w1) @ w2\n")

    said = "The models differ: of 3 layers of {} and 3 of {}, 1 is of one name and kind on both sides."
    for other, few in ((("p", "s", "t"), True), (("p", "q", "t"), False)):
        assert (said.format("A", "B") in tpucc.compare(chain("p", "q", "r"), chain(*other)).cause) is few
    names = ("the version before", "this version")
    found = compare(chain("p", "q", "r").runtime, chain("p", "s", "t").runtime, said=names)
    assert said.format(*names) in found.cause


def test_numbers_of_the_link_are_those_of_what_crosses() -> None:
    """A slow link has a rate, too, and the rows of an image take its 64 values where they are packed."""
    exe = compiled("04_digits_mlp", repr({"overrides": {"host_row_bytes": 1, "host_bandwidth": 20e6}}))
    assert BYTES.rate(exe.runtime) == "0.02 GB/s"
    assert bytes_sent(exe.runtime, exe.stats["cycles"]) == exe.stats["host_bytes"]["in"] == 200 * 64
