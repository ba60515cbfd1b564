"""One accounting of time: every table adds up, each figure is a row, and the words are the same everywhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tpucc.api import Executable
from tpucc.explain.accounting import ROWS, TABLE_3, WAIT_ROWS, cycles_by_row
from tpucc.explain.critical import Limit
from tpucc.explain.segments import Cause
from tpucc.explain.summary import by_lines, facts
from tpucc.explain.tables import MOST_ROWS, breakdown_table, layer_table, line_table, spent_percent, timeline_table
from tpucc.see.charts.chart import WAITS
from tpucc.see.charts.peak import UNUSED, USEFUL
from tpucc.see.pictures import peak_of, roofline_of

pytestmark = pytest.mark.usefixtures("any_ranges")

ROOT = Path(__file__).resolve().parents[2]
NO_WAITS = dict.fromkeys(WAIT_ROWS, 0)
POOL = "model m(x: f32[1, 64, 64, 8] in [-1.0, 1.0]):\n    return max_pool(x, size=2)\n"
STEP = """
weights random(seed=0)
model m(x: f32[8, 64] in [-1.0, 1.0]):
    weight w: f32[64, 64]
    weight v: f32[64, 64]
    return softmax(x @ w) @ v
"""
MODELS = {
    "iris": ("programs/02_iris.tpu", "tpu_v1", 2),
    "iris on tiny": ("programs/02_iris.tpu", "tiny", 2),
    "convolutions": ("programs/05_digits_cnn.tpu", "tpu_v1", 2),
    "plain": ("programs/04_digits_mlp.tpu", "tpu_v1", 0),
    "recurrent": ("programs/06_digits_lstm.tpu", "tpu_v1", 2),
    "no product": (POOL, "tpu_v1", 2),
    "host step": (STEP, "tpu_v1", 2),
    "nothing": ("model m(x: f32[8, 8]):\n    return softmax(x)\n", "tpu_v1", 2),
}


@cache
def compiled(name: str) -> Executable:
    source, target, level = MODELS[name]
    if source.endswith(".tpu"):
        return tpucc.compile(ROOT / source, target=target, level=level)
    return tpucc.compile_source(source, target=target, level=level)


def table_rows(text: str) -> dict[str, float]:
    """The figures of a table by their labels, indentation included."""
    found = [re.fullmatch(r"( *\S.*?) +([\d.]+)", line) for line in text.split("\n")[1:]]
    return {match[1]: float(match[2]) for match in found if match}


def test_the_rows_mean_what_the_documentation_says() -> None:
    text = (ROOT / "docs" / "accounting.md").read_text("utf-8")
    found = re.findall(r"^\| (.+?) \| `([a-z ]+)` \| (\w) \| (.+?) \|$", text, re.MULTILINE)
    chain = "the matrix unit waits; at the end of the chain of waits "
    assert found == [(row.name, limit.value, row.letter, row.meaning.removeprefix(chain)) for limit, row in WAIT_ROWS.items()]
    keys = re.findall(r"^\| `(\w+)` \| \d? ?\| ", text, re.MULTILINE)
    assert [key for key in keys if key != "non_matrix"] == list(TABLE_3.values())


@pytest.mark.parametrize("name", MODELS)
def test_the_rows_of_the_numbers_add_up(name: str) -> None:
    """In the model, in each layer and in a stream: the rows of Table 3 to 100, parts of non-matrix to it; waits and work to all cycles."""
    stats = compiled(name).stats
    for found in (stats, stats["stream"], *stats["layers"]):
        shares, whole = found["breakdown"], 100 if found["cycles"] else 0
        assert sum(shares[key] for key in TABLE_3.values()) == pytest.approx(whole)
        assert sum(shares[key] for cause, key in TABLE_3.items() if cause >= Cause.RAW_STALL) == pytest.approx(shares["non_matrix"])
        assert min(shares.values()) >= -1e-9
        rows = cycles_by_row(found)
        assert rows[Limit.MATRIX_UNIT] == pytest.approx(found["cycles"] * shares["array_active"] / 100)
        assert min(rows.values()) >= 0
    layers = [cycles_by_row(layer) for layer in stats["layers"]]
    assert cycles_by_row(stats) == {limit: sum(layer[limit] for layer in layers) for limit in ROWS}
    assert stats["useful_share"] == pytest.approx(stats["breakdown"]["useful_macs"] / 100)


@each(list(MODELS))
def test_each_figure_of_the_tables_is_rounded_by_itself(name: str) -> None:
    """So the same share is the same text everywhere; the whole is 100.0, whatever the rounded rows add up to."""
    stats = compiled(name).stats
    rows = table_rows(breakdown_table(stats))
    assert rows.pop("in all") == (100.0 if stats["cycles"] else 0.0)
    assert rows == {name: round(share, 1) for name, share in spent_percent(stats).items() if share}
    lines = [line for line in layer_table(stats).split("\n")[1:] if not line.startswith("(")]
    pairs = [re.search(r" ([\d,]+) +(\d+\.\d)(?: |$)", line) for line in lines]
    cycles = [int(pair[1].replace(",", "")) for pair in pairs if pair]
    assert [pair[2] for pair in pairs if pair] == [f"{100 * own / max(1, stats['cycles']):.1f}" for own in cycles]
    assert sum(cycles[:-1]) == cycles[-1] == stats["cycles"]


@each(["recurrent", "host step"])
def test_lines_are_the_sums_of_their_layers(name: str) -> None:
    """The figures of a line are those of a single layer that takes all its cycles."""
    stats = compiled(name).stats
    lines = by_lines(stats["layers"])
    assert sum(line["layers"] for line in lines) == len(stats["layers"])
    assert len(lines) < len(stats["layers"]) or name != "recurrent"
    for line in lines:
        layers = [layer for layer in stats["layers"] if layer["line"] == line["line"]]
        assert line["cycles"] == sum(layer["cycles"] for layer in layers)
        assert line["macs"] == pytest.approx(line["tops"] * line["cycles"] * stats["macs"] / max(1e-9, stats["tops"] * stats["cycles"]))
        assert cycles_by_row(line) == {limit: sum(cycles_by_row(layer)[limit] for layer in layers) for limit in ROWS}
        assert line["name"] in [layer["name"] for layer in layers if layer["cycles"] == max(each["cycles"] for each in layers)]
    text = line_table(stats)
    assert max(map(len, text.split("\n"))) <= 80
    assert f"in all {stats['cycles']:,} 100.0" in " ".join(text.split())
    assert ("--by line" in layer_table(stats)) is (len(stats["layers"]) > MOST_ROWS)


def test_rows_that_add_up_to_something_else_as_printed_have_a_note() -> None:
    """Sixteen layers of 6.25 % are 6.2 % each, 99.2 in all; four of 25 % are 100."""
    layer = {
        "name": "a",
        "kind": "fc",
        "line": 1,
        "cycles": 1,
        "macs": 1,
        "tiles": 1,
        "instructions": 1,
        "tops": 1.0,
        "waits_by_root": NO_WAITS,
    }
    note = "(Each row is rounded by itself; as printed they add up to 99.2.)"
    assert [note in layer_table({"cycles": count, "layers": [layer] * count}) for count in (16, 4)] == [True, False]
    found = {"cycles": 700, "waits_by_root": dict.fromkeys(WAIT_ROWS, 100), "breakdown": {"useful_macs": 1.0, "unused_macs": 2.0}}
    assert "as printed array active and the waits add up to 100.1" not in " ".join(breakdown_table(found).split())
    found |= {"cycles": 1_200, "waits_by_root": dict.fromkeys(WAIT_ROWS, 184)}
    assert "as printed array active and the waits add up to 99.8" in " ".join(breakdown_table(found).split())


@each(list(MODELS))
def test_the_areas_of_the_peak_add_up_and_have_the_table_s_figures(name: str) -> None:
    runtime = compiled(name).runtime
    stats = runtime.stats
    svg = "{http://www.w3.org/2000/svg}"
    areas = {title.text or "": path.get("d", "") for path in ET.fromstring(peak_of(runtime)).iter(f"{svg}path") for title in path}
    found = dict(words.removesuffix(" %").rsplit(", ", 1) for words in areas)
    rows = {ROWS[limit].name: 100 * cycles / max(1, stats["cycles"]) for limit, cycles in cycles_by_row(stats).items()}
    rows |= {USEFUL: 100 * stats["useful_share"], UNUSED: rows.pop(ROWS[Limit.MATRIX_UNIT].name) - 100 * stats["useful_share"]}
    assert {name: float(share) for name, share in found.items()} == {
        name: pytest.approx(share, abs=0.051) for name, share in rows.items() if share > 1e-9
    }
    drawn = {words: area(path) for words, path in areas.items()}
    whole = sum(drawn.values())
    assert {words.rsplit(", ", 1)[0]: 100 * own / max(1e-9, whole) for words, own in drawn.items()} == {
        name: pytest.approx(rows[name], abs=0.2) for name in found
    }


@each(list(MODELS))
def test_the_bar_above_the_peak_is_the_time_from_end_to_end(name: str) -> None:
    """Its parts are as wide as they take time, and lines lead from those without the host's work to the ends of the plot."""
    runtime = compiled(name).runtime
    whole, svg = runtime.stats["end_to_end"], "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(peak_of(runtime))
    parts = [rect for rect in root.iter(f"{svg}rect") if rect.get("height") == "16" and len(rect)]
    assert [(rect[0].text or "").rsplit(" ", 2)[0] for rect in parts] == ["host before", "link in", "device", "link out", "host after"]
    widths = [float(rect.get("width", "")) for rect in parts]
    seconds = [whole[key] for key in ("host_before", "link_in", "device", "link_out", "host_after")]
    assert widths == [pytest.approx(sum(widths) * own / whole["seconds"], abs=0.2) for own in seconds]
    left, right = float(parts[0].get("x", "")), float(parts[0].get("x", "")) + sum(widths)
    ways = [line for line in root.iter(f"{svg}line") if line.get("class") == "l-rule" and line.get("y1") != line.get("y2")]
    ends = [
        (float(line.get("x1", "")), float(line.get("x2", "")))
        for line in ways
        if float(line.get("y1", "")) == float(parts[0].get("y", "")) + 16
    ]
    assert ends == [
        (pytest.approx(left + widths[0], abs=0.2), left),
        (pytest.approx(right - widths[-1], abs=0.2), pytest.approx(right, abs=0.2)),
    ]


def area(path: str) -> float:
    """Of an outline of horizontal and vertical steps, by the areas below its horizontal ones."""
    [(x, y)] = [(float(a), float(b)) for a, b in re.findall(r"^M([\d.]+) ([\d.]+)", path)]
    found = 0.0
    for way, number in re.findall(r"([VH])([\d.]+)", path):
        if way == "V":
            y = float(number)
        else:
            found += (float(number) - x) * -y
            x = float(number)
    return found


@each([name for name in MODELS if name != "nothing"])
def test_what_the_bottleneck_says_is_its_share_of_the_critical_path(name: str) -> None:
    stats = compiled(name).stats
    [share] = re.findall(r"([\d.]+) % of the critical path", stats["explanation"])
    path = " ".join(timeline_table(compiled(name).runtime).split()).split("critical path, %: ")[1]
    assert path.startswith(f"{stats['bottleneck']} {share}")
    assert sum(stats["critical_path"].values()) == pytest.approx(100)
    assert max(stats["critical_path"].values()) == stats["bottleneck_share"] == pytest.approx(float(share), abs=0.05)


@pytest.mark.parametrize("name", ["iris", "recurrent"])
def test_a_speed_is_the_same_text_in_the_terminal_the_summary_and_the_roofline(name: str) -> None:
    runtime = compiled(name).runtime
    facts_of = {fact: value for fact, value, _ in facts(runtime.stats)}
    assert f", {facts_of['speed']}, " in " ".join(timeline_table(runtime).split())
    assert f": {facts_of['speed']}, " in roofline_of(runtime)


def test_outputs_that_leave_and_host_steps_have_rows() -> None:
    assert compiled("iris").stats["breakdown"]["output"] > 25
    assert compiled("host step").stats["breakdown"]["input_stall"] > 25
    shares = compiled("no product").stats["breakdown"]
    assert shares["input"] > 0
    assert shares["input_stall"] == shares["raw_stall"] == 0


def test_charts_have_the_names_of_the_rows() -> None:
    assert list(WAITS) == list(WAIT_ROWS)
    assert list(WAITS) == list(ROWS)[1:]
    assert len({row.letter for row in ROWS.values()}) == len({row.name for row in ROWS.values()}) == len(Limit) == len(ROWS)
