"""Charts for the terminal: each character against a count cycle by cycle, widths, characters and colours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import run
from tests.support.pictures import BIDI, HOSTILE, chain_program
from tests.support.terminal import on_a_terminal
from tpucc.explain.accounting import ROWS
from tpucc.explain.critical import Limit
from tpucc.explain.occupancy import rows_in_use
from tpucc.explain.timed import Timed
from tpucc.isa.program import Program, Resident
from tpucc.machines.v1 import V1, Engine, Opcode
from tpucc.see.charts.chart import WAITS
from tpucc.see.charts.textcharts import (
    ASCII,
    BLOCKS,
    COLUMNS,
    NAMES,
    SHARES,
    Canvas,
    buffer_lines,
    lane_lines,
    marks_for,
    most_in_cells,
    placed,
    plain,
    rows_text,
    timeline_lines,
)
from tpucc.see.charts.timeline import Times
from tpucc.see.pictures import times_of

ROOT = Path(__file__).resolve().parents[2]
LANES = {"host": Engine.HOST, "weights": Engine.WEIGHTS, "matrix": Engine.MATRIX, "activation": Engine.ACTIVATION}
CELLS = COLUMNS - NAMES - SHARES
"""Of a line in a terminal of 80 columns."""
NETWORKS = {"iris": [4, 300, 3], "deep": [600, 520, 300, 10], "narrow": [3, 3]}


def charts(program: Program, columns: int = COLUMNS) -> list[str]:
    runtime = Timed(program)
    times, canvas = times_of(runtime), Canvas(runtime.timeline.makespan, program.target.clock_hz, columns)
    return [plain(line) for line in (*timeline_lines(program, times, canvas), *buffer_lines(program, times, canvas))]


def lane(lines: list[str], name: str, cells: int) -> str:
    found = next(line for line in lines if line.startswith(f"{name:<{NAMES}}"))
    return found.ljust(NAMES + cells)[NAMES : NAMES + cells]


def busy_cycles(starts: np.ndarray, ends: np.ndarray, cycles: int, fine: int) -> np.ndarray:
    """1 for each of `fine` parts of each cycle in which something runs, by painting interval after interval."""
    busy = np.zeros(cycles * fine)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        busy[start * fine : end * fine] = 1
    return busy


@each(product(NETWORKS, [80, 57], ["tpu_v1", "tiny"]))
def test_the_height_of_a_block_is_the_share_of_busy_cycles(name: str, columns: int, target: str) -> None:
    sizes = NETWORKS[name] if target == "tpu_v1" else [size % 9 + 1 for size in NETWORKS[name]]
    program = chain_program(name, 5, sizes, target)
    timeline, cells = Timed(program).timeline, columns - NAMES - SHARES
    engine = V1.engine_of[program.instructions["opcode"]]
    lines = charts(program, columns)
    for unit, number in LANES.items():
        own = engine == number
        shares = busy_cycles(timeline.start[own], timeline.end[own], timeline.makespan, cells).reshape(cells, -1).mean(axis=1)
        wanted = "".join(" ▁▂▃▄▅▆▇█"[int(np.ceil(round(8 * share, 6)))] for share in shares)
        assert lane(lines, unit, cells) == wanted


@each(list(NETWORKS))
def test_a_letter_is_the_root_that_takes_most_of_a_cell(name: str) -> None:
    program = chain_program(name, 5, NETWORKS[name])
    runtime = Timed(program)
    times, cells = times_of(runtime), CELLS
    shares = {
        root: busy_cycles(*times.waits[root], times.cycles, cells).reshape(cells, -1).mean(axis=1) for root in WAITS if root in times.waits
    }
    lines = charts(program)
    for cell, letter in enumerate(lane(lines, "  waits", cells)):
        here = {root: share[cell] for root, share in shares.items()}
        if not any(here.values()):
            assert letter == " "
            continue
        assert here[next(root for root in WAITS if ROWS[root].letter == letter.lower())] == pytest.approx(max(here.values()))
        assert letter.isupper() == (sum(here.values()) > 0.5 + 1e-9)
    text = "\n".join(lines)
    assert all((f"{ROWS[root].letter} {ROWS[root].name}" in text) == bool(share.any()) for root, share in shares.items())


def test_rows_in_use_are_those_of_the_residents_alive() -> None:
    """A row counts for the last resident that took it: its cells are painted, resident by resident."""
    generator = np.random.default_rng(3)
    start = np.sort(generator.integers(0, 90, 40)).astype(np.int64)
    end = start + generator.integers(1, 30, 40)
    taken, owned = np.zeros((40, 24), np.bool_), np.zeros((24, 140), np.bool_)
    residents = []
    for first in sorted(generator.integers(0, 35, 60).tolist()):
        row, rows, last = (int(generator.integers(*bounds)) for bounds in ((0, 16), (1, 9), (first, first + 5)))
        if not taken[first : last + 1, row : row + rows].any():
            taken[first : last + 1, row : row + rows] = True
            residents.append(Resident("r", 0, row, rows, first, last))
            owned[row : row + rows, start[first] :] = False
            owned[row : row + rows, start[first] : end[last]] = True
    assert len(residents) > 20
    counts = owned.sum(axis=0)[:101]
    moments, rows = rows_in_use(residents, start, end)
    assert (np.diff(moments) > 0).all()
    assert rows[-1] == 0
    np.testing.assert_array_equal(np.concatenate([[0], rows])[np.searchsorted(moments, np.arange(101), "right")], counts)
    edges = np.linspace(0, 100, 21)
    np.testing.assert_array_equal(most_in_cells(moments, rows, edges), counts[:100].reshape(20, 5).max(axis=1))
    assert [len(part) for part in rows_in_use([], start, end)] == [0, 0]


def test_the_buffer_chart_ends_at_the_most_rows_in_use() -> None:
    exe = tpucc.compile(ROOT / "programs" / "05_digits_cnn.tpu")
    runtime = exe.runtime
    moments, rows = rows_in_use(runtime.program.residents, runtime.timeline.start, runtime.timeline.end)
    assert 0 < rows.max() <= runtime.program.peak_rows
    lines = charts(runtime.program)
    head = next(index for index, line in enumerate(lines) if line.startswith("unified buffer"))
    assert f"{rows.max():,} rows in use at once" in lines[head]
    chart = [line.ljust(COLUMNS)[NAMES : NAMES + CELLS] for line in lines[-4:]]
    heights = np.array([[" ▁▂▃▄▅▆▇█".index(c) for c in line] for line in chart]).sum(axis=0)
    wanted = most_in_cells(moments, rows, np.linspace(0, runtime.timeline.makespan, CELLS + 1))
    np.testing.assert_array_equal(heights, np.ceil(wanted * 32 / rows.max()))
    assert heights.max() == 32


def test_the_chart_stands_on_row_zero_and_says_how_high_buffers_lie() -> None:
    """Ten rows from the start on, and ten more, at the top of a hundred, for the last instruction that takes time."""
    program = chain_program("iris", 5, [4, 3])
    timeline = Timed(program).timeline
    last = int(np.flatnonzero(timeline.end > timeline.start)[-1])
    share = (timeline.end - timeline.start)[last] / timeline.makespan
    stays = (Resident("low", 0, 0, 10, 0, last), Resident("high", 0, 90, 10, last, last))
    lines = charts(replace(program, residents=stays))[-5:]
    assert lines[0].startswith("unified buffer: at most 20 rows in use at once, below row 100 of 98,304, 0.1 %")
    top, upper, lower, bottom = (line.ljust(COLUMNS)[NAMES : NAMES + CELLS] for line in lines[1:])
    assert lines[1].split()[0] == "20"
    assert lines[4].split()[0] == "0"
    assert bottom.rstrip() == lower.rstrip() == "█" * len(bottom.rstrip())
    assert len(top.strip()) == pytest.approx(share * CELLS, abs=2)
    assert top == upper
    assert top[0] == " "


def test_a_cell_has_the_value_from_its_first_moment_on() -> None:
    moments, values = np.array([0, 10, 15], np.int64), np.array([5, 1, 3], np.int64)
    assert most_in_cells(moments, values, np.array([0.0, 10.0, 15.0, 30.0])).tolist() == [5, 1, 3]
    assert [rows_text(rows) for rows in (999_999, 10**6, 1_250_000)] == ["999,999", "1 M", "1.25 M"]


def test_letters_and_shares_by_hand() -> None:
    """620 cycles in 62 cells of ten: half a cell of waiting is a small letter, more a capital; three cycles are less than a percent."""
    program = chain_program("iris", 5, [4, 3])
    first = np.flatnonzero(program.instructions["opcode"] == Opcode.READ_HOST_MEMORY)[0]
    for cycles, words in ((0, "0 %"), (3, "<1 %"), (4, "1 %"), (310, "50 %")):
        ends = np.where(np.arange(len(program.instructions)) == first, cycles, 0).astype(np.int64)
        waits = {Limit.WEIGHT_MEMORY: (np.int64([0]), np.int64([5])), Limit.ACTIVATION: (np.int64([10]), np.int64([16]))}
        none = np.zeros(0, np.int64)
        times = Times(np.zeros_like(ends), ends, none, none, waits, 620, (none, none))
        lines = [plain(line) for line in lane_lines(program, times, Canvas(620, 1e6))]
        assert [line[:NAMES].strip() for line in lines] == ["host", "weights", "shift", "matrix", "waits", "activation"]
        assert lines[0].endswith(f" {words}")
        assert lines[4][NAMES : NAMES + 3] == "wA "


def test_marks_suit_the_encoding() -> None:
    assert marks_for("utf-8") is BLOCKS
    assert all(marks_for(name) is ASCII for name in ("ascii", "latin-1", "cp1252", "no such thing", None))
    assert len(ASCII.heights) == len(BLOCKS.heights) == 9


def test_names_stay_text_and_lines_stay_narrow() -> None:
    program = chain_program("iris", 150, [4, 256, 3])
    layers = tuple(replace(layer, name=name) for layer, name in zip(program.layers, ("\x1b[31m層層層層" + HOSTILE, BIDI), strict=True))
    for columns in (80, 60, 40, 10, 400):
        lines = charts(replace(program, layers=layers), columns)
        assert max(map(cell_len, lines)) <= min(80, max(40, columns))
        assert not any(c in line for line in lines for c in "\x1b\x00\u202e\n")


def test_words_stand_at_their_places_and_never_touch() -> None:
    assert placed([0, 4, 9], ["abc", "x", "yy"], 12) == "|abc     |yy"
    assert placed([0, 5, 10], ["abc", "x", "yy"], 12) == "|abc |x"
    assert placed([0, 5], ["層層", "x"], 12) == "|層層"


def test_a_program_without_time_says_so() -> None:
    program = tpucc.compile(ROOT / "tests" / "programs" / "host_only.tpu").runtime.program
    assert charts(program) == ["nothing runs on the device, so there is no timeline", "nothing is in the unified buffer"]


def profile(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "tpucc", "profile", str(ROOT / "programs" / "02_iris.tpu"), "--quiet", *arguments]
    return subprocess.run(command, capture_output=True, check=True, env={**os.environ, **environment}).stdout.decode()


@pytest.mark.long
def test_a_pipe_gets_the_table_alone_unless_a_chart_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    iris = ROOT / "programs" / "02_iris.tpu"
    assert run("profile", iris, "--quiet") == 0
    bare = capsys.readouterr().out
    assert run("profile", iris, "--quiet", "--chart") == 0
    chart = capsys.readouterr().out
    assert chart.startswith(bare)
    assert "timeline:" not in bare
    assert "█" in chart
    assert "\x1b" not in chart
    assert "█" not in profile("--chart", PYTHONIOENCODING="ascii")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
@pytest.mark.parametrize("without", one_of(2, ["", "1"]))
def test_a_terminal_gets_the_chart_in_colours_unless_told_not_to(without: str) -> None:
    text = on_a_terminal(["-m", "tpucc", "profile", str(ROOT / "programs" / "02_iris.tpu")], NO_COLOR=without)
    assert "timeline:" in text
    colours = re.compile(r"\x1b\[[0-9;]+m")  # progress, if the machine is slow, moves the cursor whatever NO_COLOR says
    assert bool(colours.search(text)) != bool(without)
    assert "host" in colours.sub("", text)
