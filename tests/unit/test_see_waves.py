"""Waves in the array: every number that is drawn is one of the simulator's, in the terminal, in the picture, on the page."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.see.palette import WAVES
from tpucc.see.waves import MOST, SCRIPTS, Demo, random_work, waves_page, waves_svg
from tpucc.see.waves.geometry import Geometry, Lattice, fitting, roomy
from tpucc.see.waves.motion import Film, Show
from tpucc.see.waves.page import REGISTERS
from tpucc.see.waves.terminal import conclusion, terminal_frame
from tpucc.systolic import NONE, Cycle, Multiply, Tile, simulate

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "waves"
RAGGED = [(4, 4, 6, 1), (3, 2, 4, 1), (2, 5, 1, 1), (6, 3, 2, 2), (3, 4, 5, 3), (5, 2, 1, 4)]
"""Rows, columns, rows of input, tiles; some inputs are shorter than the array is deep."""
SVG = "{http://www.w3.org/2000/svg}"
SAID = re.compile(r"element \((\d+),(\d+)\), cycle (\d+): (−?\d+) × (−?\d+) \+ (−?\d+) = (−?\d+)")
SHAPES = pytest.mark.parametrize("shape", RAGGED, ids=str)


def drawn_work(shape: tuple[int, int, int, int], values: str = "int8") -> Demo:
    return random_work(*shape, seed=sum(shape), values=values)


def simulated(work: Demo) -> list[Cycle]:
    """The cycles of the array, from the matrices alone."""
    x, w, rows = work.x.tolist(), work.w.tolist(), work.rows
    parts = [(np.array([line[t * rows : (t + 1) * rows] for line in x]), np.array(w[t * rows : (t + 1) * rows])) for t in range(work.tiles)]
    multiplies = [Multiply(part, Tile(tile), accumulate=t > 0) for t, (part, tile) in enumerate(parts)]
    return list(simulate(multiplies, rows=rows, columns=work.columns))


def products(work: Demo) -> list[list[int]]:
    """X @ W by integers of Python."""
    return [[sum(a * b for a, b in zip(line, column, strict=True)) for column in work.w.T.tolist()] for line in work.x.tolist()]


@SHAPES
def test_frames_are_the_simulator_s_cycles(shape: tuple[int, int, int, int]) -> None:
    work = drawn_work(shape)
    cycles = simulated(work)
    assert len(work.frames) == len(cycles)
    for frame, cycle in zip(work.frames, cycles, strict=True):
        for name in REGISTERS:
            np.testing.assert_array_equal(getattr(frame.cycle, name), getattr(cycle, name), name)
    assert work.frames[-1].cycle.accumulators.tolist() == products(work) == work.product.tolist()


@SHAPES
def test_what_comes_from_above_adds_up(shape: tuple[int, int, int, int]) -> None:
    for frame in drawn_work(shape).frames:
        busy, cycle = frame.cycle.busy, frame.cycle
        np.testing.assert_array_equal((frame.above + cycle.x * cycle.weights)[busy], cycle.sums[busy])


@SHAPES
def test_accumulators_fill_tile_by_tile(shape: tuple[int, int, int, int]) -> None:
    """After n tiles an accumulator holds the sum of their products, and changes only when it is fresh."""
    work = drawn_work(shape)
    x, w = (part.astype(np.int64) for part in (work.x, work.w))
    partial = [x[:, : n * work.rows] @ w[: n * work.rows] for n in range(work.tiles + 1)]
    for frame in work.frames:
        expected = np.choose(frame.summed, partial)
        np.testing.assert_array_equal(frame.cycle.accumulators[: work.count], expected)
    for before, after in pairwise(work.frames):
        np.testing.assert_array_equal(after.summed - before.summed, after.fresh)
    assert (work.frames[-1].summed == work.tiles).all()


@each([((1, 4, 4), "rows is 1"), ((4, 33, 4), "columns is 33"), ((4, 4, 0), "count is 0")])
def test_sizes_have_bounds(sizes: tuple[int, int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        random_work(*sizes)


def test_the_text_is_as_it_was(update_golden: bool) -> None:
    work = random_work(3, 2, 4)
    text = "\n\n".join(terminal_frame(work, number).plain for number in range(len(work.frames))) + f"\n\n{conclusion(work)}\n"
    path = GOLDEN / "3x2.txt"
    if update_golden:
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@SHAPES
def test_the_text_has_the_registers_of_its_cycle(shape: tuple[int, int, int, int]) -> None:
    """Each element's two lines, read back from between the bars."""
    work = drawn_work(shape)
    for frame in work.frames:
        lines = [line.split("│")[1:-1] for line in terminal_frame(work, frame.cycle.number).plain.split("\n") if "│" in line]
        assert len(lines) == 2 * work.rows
        for row in range(work.rows):
            for column, (top, low) in enumerate(zip(lines[2 * row], lines[2 * row + 1], strict=True)):
                if frame.cycle.row[row, column] == NONE:
                    assert "×" not in top
                    continue
                x, w = map(int, top.split("×"))
                assert (x, w) == (frame.cycle.x[row, column], frame.cycle.weights[row, column])
                assert int(low.split()[-1]) == frame.cycle.sums[row, column]


def spoken(words: str) -> tuple[int, ...]:
    """Row, column, cycle, activation, weight, sum from above, sum."""
    found = SAID.fullmatch(words)
    assert found is not None, words
    return tuple(int(number.replace("−", "-")) for number in found.groups())


@SHAPES
def test_the_picture_is_well_formed_and_says_each_computation_once(shape: tuple[int, int, int, int]) -> None:
    work = drawn_work(shape)
    root = ET.fromstring(waves_svg(work))
    said = [spoken(title.text or "") for title in root.iter(f"{SVG}title")]
    found = {(i, j, n): numbers for i, j, n, *numbers in said}
    assert len(found) == len(said) == sum(int(cycle.busy.sum()) for cycle in simulated(work))
    for cycle in simulated(work):
        for i, j in np.argwhere(cycle.busy).tolist():
            x, w, above, total = found[i, j, cycle.number]
            assert (x, w, total) == (cycle.x[i, j], cycle.weights[i, j], cycle.sums[i, j])
            assert x * w + above == total


@SHAPES
def test_a_still_shows_one_cycle(shape: tuple[int, int, int, int]) -> None:
    """Numbers of activations, sums and complete results, counted in a picture of each cycle."""
    work = drawn_work(shape)
    for cycle in simulated(work)[:: max(1, 2 * work.count - 1)]:
        text = waves_svg(work, cycle.number)
        assert "animation" not in text
        root = ET.fromstring(text)
        shown = [title.text or "" for title in root.iter(f"{SVG}title")]
        assert len(shown) == cycle.busy.sum()
        assert all(f"cycle {cycle.number}:" in words for words in shown)
        assert f"cycle {cycle.number}" in [label.text for label in root.iter(f"{SVG}text")]


def test_every_group_that_moves_has_its_motion() -> None:
    text = waves_svg(drawn_work((3, 2, 4, 2)))
    named = set(re.findall(r'<g class="(s[0-9m_pf]+)"', text))
    assert named
    assert named == set(re.findall(r"@keyframes (s[0-9m_pf]+)\{", text))
    assert "prefers-reduced-motion" in text
    assert "<script" not in text


def test_motions_hide_what_is_not_of_their_cycles() -> None:
    film = Film(cycles=7, still=2)
    css = film.style_sheet([Show(2, 4, 10.0), Show(0, 7), Show(3, 7)])
    assert css.startswith(".s2_4_10_0{animation:s2_4_10_0 12s infinite step-end}@keyframes s2_4_10_0{0%{opacity:0}20.000%{opacity:1;")
    assert "40.000%{opacity:0;transform:none}to{opacity:0;" in css
    assert "@keyframes s3_7_0_0{0%{opacity:0}30.000%{opacity:1;transform:none}to{opacity:1;transform:none}}" in css
    assert css.count("@keyframes") == 2


def test_more_elements_than_a_picture_moves() -> None:
    with pytest.raises(ValueError, match="elements are more than"):
        waves_svg(random_work(MOST + 1, 2, 1))


def page_data(work: Demo) -> dict[str, list[dict[str, object]]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', waves_page(work), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert isinstance(data, dict)
    return data


@SHAPES
def test_the_page_has_the_registers_of_every_cycle(shape: tuple[int, int, int, int]) -> None:
    work = drawn_work(shape)
    data = page_data(work)
    for state, cycle in zip(data["cycles"], simulated(work), strict=True):
        for name in REGISTERS:
            assert state[name] == getattr(cycle, name).tolist(), name
        assert (state["busy"], state["shifting"]) == (cycle.busy.sum(), cycle.shifting)
    assert data["product"] == products(work)
    assert data["cycles"][-1]["equal"] == data["cycles"][-1]["done"] == work.count * work.columns


def test_the_page_stands_alone_and_is_the_same_every_time() -> None:
    page = waves_page(random_work(4, 4, 6))
    assert page == waves_page(random_work(4, 4, 6))
    assert page != waves_page(random_work(4, 4, 6, seed=1))
    assert not re.search(r'(src|href)=|url\(|@import|innerHTML|https?://(?!www\.w3\.org/2000/svg")', page)
    assert not re.search(r"\$[a-z]", page)


def test_the_scripts_are_all_there() -> None:
    folder = Path(__file__).resolve().parents[2] / "tpucc" / "see" / "waves" / "js"
    assert sorted(path.stem for path in folder.glob("*.js")) == sorted({*SCRIPTS} - {"dom", "theme"})


def rectangle(lattice: Lattice, rows: int, columns: int) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a lattice."""
    corners = np.array([lattice.corner(i, j) for i in (0, rows - 1) for j in (0, columns - 1)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    return float(low[0]), float(low[1]), float(high[0] + lattice.width), float(high[1] + lattice.height)


@each(product([*RAGGED, (8, 8, 8, 1), (32, 32, 32, 2), (2, 32, 3, 1), (32, 2, 32, 4), (2, 2, 1, 1)], [roomy, fitting]))
def test_nothing_overlaps(shape: tuple[int, int, int, int], layout: type[Geometry]) -> None:
    work = drawn_work(shape)
    geometry = layout(work)
    rows, columns, reads = work.rows, work.columns, work.count * work.tiles
    places = {
        "input": rectangle(geometry.input, rows, reads),
        "setup": rectangle(geometry.setup, rows, rows),
        "edge": rectangle(geometry.edge, columns, columns),
        "array": rectangle(geometry.array, rows, columns),
        "accumulators": rectangle(geometry.accumulators, work.count, columns),
        "product": rectangle(geometry.product, work.count, columns),
    }
    for left, top, right, bottom in places.values():
        assert left >= 0
        assert top >= 0
        assert right <= geometry.width
        assert bottom <= geometry.height
    for one, first in places.items():
        for other, second in places.items():
            apart = first[2] <= second[0] or second[2] <= first[0] or first[3] <= second[1] or second[3] <= first[1]
            assert one == other or apart, (one, other)


def test_neighbouring_rows_differ_for_any_colour_vision() -> None:
    """Colours as a protanope and a deuteranope see them, after Viénot, Brettel and Mollon, 1999: neighbours stay apart."""
    protan = np.array([[0.1121, 0.8853, -0.0005], [0.1127, 0.8897, -0.0001], [0.0045, 0.0001, 1.0019]])
    deutan = np.array([[0.2920, 0.7054, -0.0003], [0.2934, 0.7089, 0.0000], [-0.0210, 0.0256, 1.0000]])
    for attribute in ("fill", "dark_fill"):
        srgb = np.array([[int(getattr(wave, attribute)[i : i + 2], 16) / 255 for i in (1, 3, 5)] for wave in WAVES])
        for matrix in (np.eye(3), protan, deutan):
            seen = np.clip(srgb**2.2 @ matrix.T, 0, 1) ** (1 / 2.2)
            assert np.abs(seen - np.roll(seen, 1, axis=0)).max(axis=1).min() > 0.08


def systolic(*arguments: str) -> int:
    return main(["systolic", *arguments])


def test_the_command_prints_cycles_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert systolic("--rows", "4", "--cols", "4") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("\ncycle ") == 18
    assert "equal: 24 of 24 sums are those of X @ W by NumPy" in out
    assert "\x1b" not in out
    assert systolic("--cycles", "5:6") == 0
    assert re.findall(r"^cycle (\d+)", capsys.readouterr().out, re.MULTILINE) == ["5", "6"]


@pytest.mark.parametrize(("variable", "coloured"), [(None, True), ("1", False)])
def test_colours_are_for_terminals_only(
    variable: str | None, coloured: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable:
        monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert systolic("--cycles", "9") == 0
    out = capsys.readouterr().out
    assert ("\x1b[" in out) == coloured
    assert "13 of 16 elements multiply" in out


class Keyboard(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


@each(
    [
        ("\n\nq\n", (), ["0", "1", "2"], 3),
        ("\n", (), ["0", "1"], 2),
        ("\na\n", (), [*map(str, range(18))], 2),
        ("", ("--no-pause",), [*map(str, range(18))], 0),
        ("", ("--cycles", "9"), ["9"], 0),
        ("\n", ("--cycles", "9:10"), ["9", "10"], 1),
    ]
)
def test_a_terminal_shows_one_cycle_for_each_enter(
    typed: str, options: tuple[str, ...], cycles: list[str], asked: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends at `q`, at the end of the input, and after the last cycle; `a` and `--no-pause` don't wait."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdin", Keyboard(typed))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert systolic(*options) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^.*\bcycle (\d+) of", out, re.MULTILINE) == cycles
    assert out.count("Enter: next cycle") == asked


def test_a_pipe_is_not_waited_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    assert systolic() == 0
    out = capsys.readouterr().out
    assert "Enter" not in out
    assert "equal: 24 of 24 sums" in out


@each(
    [
        (("--rows", "1"), "2<=x<=32"),
        (("--cols", "33"), "2<=x<=32"),
        (("--count", "0"), "1<=x<=32"),
        (("--rows", "8", "--cols", "8"), "-o waves.html"),
        (("--cycles", "18"), "there are cycles 0 to 17"),
        (("--cycles", "5:4"), "there are cycles 0 to 17"),
        (("--cycles", "1:2:3"), "neither a cycle"),
        (("--cycles", "-1"), "neither a cycle"),
        (("-o", "waves.png"), "ends neither in .svg nor in .html"),
        (("-o", "waves.html", "--cycles", "3"), "--cycles is for text"),
        (("-o", "waves.svg", "--cycles", "3:5"), "--cycles is for text"),
        (("-o", "waves.svg", "--rows", "13"), "-o waves.html"),
    ]
)
def test_what_the_command_refuses(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert systolic(*arguments) == 2
    captured = capsys.readouterr()
    assert words in " ".join(captured.err.split())
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_what_the_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = random_work(3, 2, 4, 2, seed=7)
    options = ("--rows", "3", "--cols", "2", "--count", "4", "--tiles", "2", "--seed", "7")
    expected = {"a.svg": waves_svg(work), "a.html": waves_page(work)}
    for name, text in expected.items():
        assert systolic(*options, "-o", str(tmp_path / name)) == 0
        assert (tmp_path / name).read_text("utf-8") == text
    assert systolic(*options, "-o", str(tmp_path / "b.svg"), "--cycles", "6") == 0
    assert (tmp_path / "b.svg").read_text("utf-8") == waves_svg(work, 6)
    assert "3 × 2 elements, 4 rows of input, 2 tiles" in capsys.readouterr().out
