"""Stages that can be replaced: the built-in ones go through the same doors, results are checked, and what is wrong is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tests.support.command_line import SMALL, run
from tpucc.guest.files import stages_of_files
from tpucc.isa.container import encode
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule.synchronise import Wait

ROOT = Path(__file__).resolve().parents[2]
STAGES = ROOT / "docs" / "stages"
BUILT_IN = tpucc.Stages()
NAMES = ("lower_fc", "lower_conv", "allocate", "order", "synchronise")
RESIDUAL = SMALL.replace("relu(x @ w) @ v)", "relu(x @ w) @ v + relu(x @ w))").replace("units = 8", "units = 3")
PROGRAMS = ("02_iris", "05_digits_cnn", "06_digits_lstm")


def wrapped(stage: Callable[..., Any]) -> Callable[..., Any]:
    """The same stage as the user's own."""
    return lambda *arguments: stage(*arguments)


@pytest.mark.parametrize(("name", "bits"), one_of(2, one_of(2, [(name, 8) for name in PROGRAMS] + [(PROGRAMS[0], 16)]), LONG))
def test_the_built_in_stages_through_the_doors_give_the_same_bytes(name: str, bits: int) -> None:
    path, target = ROOT / "programs" / f"{name}.tpu", tpucc.load_target("tpu_v1", {"mxu": 32})
    stages = tpucc.Stages(**{stage: wrapped(getattr(BUILT_IN, stage)) for stage in NAMES})
    assert set(stages.replaced) == set(NAMES)
    plain, through = (tpucc.compile(path, target=target, activation_bits=bits, stages=s, params={"batch": 24}) for s in (BUILT_IN, stages))
    told = {layer.choice for layer in through.program.value.layers}
    assert any("replaced stage lower_" in choice for choice in told)
    assert encode(with_choices_of(plain, through)) == encode(plain.program.value)


def with_choices_of(plain: tpucc.Executable, through: tpucc.Executable) -> tpucc.Program:
    """The program, its layers' words about how they were lowered taken from the other."""
    return replace(through.program.value, layers=plain.program.value.layers)


BOOK = {"allocate": "first_fit.py", "lower_fc": "plain_fc.py", "lower_conv": "plain_fc.py"}
SPILLED: dict[str, Any] = {"overrides": {"unified_buffer_rows": 700}}
REPLACED = [
    pytest.param(stage, file, options, id=f"{stage}-{way}", marks=pytest.mark.soak if (row + column) % 2 else ())
    for row, (stage, file) in enumerate(BOOK.items())
    for column, (way, options) in enumerate({"plain": {}, "spilled": SPILLED, "O0": {"level": 0}}.items())
]
"""Every stage with some of the options, and every option with some of the stages; in `make soak`, all with all."""


@pytest.mark.long
@pytest.mark.parametrize(("stage", "file", "options"), one_of(3, REPLACED))
def test_the_stages_of_the_book(stage: str, file: str, options: dict[str, Any], tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text((STAGES / file).read_text().replace("def lower_fc", f"def {stage}"))
    exe = tpucc.compile(ROOT / "programs" / "05_digits_cnn.tpu", stages=stages_of_files({stage: mine}), params={"batch": 24}, **options)
    verdict = tpucc.judge(exe)
    assert verdict.equal
    assert verdict.findings == ()
    assert verdict.peak_rows >= verdict.lower_bound > 0
    assert verdict.cycles == exe.stats["cycles"]


def test_the_book_shows_the_real_file() -> None:
    shown = (ROOT / "docs" / "stages.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    assert shown in (STAGES / "first_fit.py").read_text("utf-8")


def test_an_allocator_that_finds_no_place_leads_to_spilling() -> None:
    asked = []

    def never(lives: Any, rows: int) -> np.ndarray:
        asked.append((len(lives.rows), rows))
        raise tpucc.TooLarge

    exe = tpucc.compile_source(SMALL, stages=tpucc.Stages(allocate=never), level=0)
    assert len(asked) == 2
    assert tpucc.judge(exe).equal


def test_waits_may_be_written_plainly() -> None:
    """Every instruction waits for both other engines: correct, and slow."""

    def everything(listing: Any) -> list[tuple[int, str, list[str]]]:
        names = ["host", "matrix", "activation"]
        found = []
        for instruction in listing:
            engine = instruction.engine.name.lower()
            if engine in names:
                found.append((instruction.index, engine, [name for name in names if name != engine]))
        return found

    slow, fast = (tpucc.compile_source(SMALL, stages=stages) for stages in (tpucc.Stages(synchronise=everything), BUILT_IN))
    assert tpucc.judge(slow).equal
    assert slow.stats["cycles"] >= fast.stats["cycles"]
    assert slow.stats["instructions"] > fast.stats["instructions"]


def test_a_student_finds_hazards_by_the_rows_that_are_read_and_written() -> None:
    """Waits from the plain view alone: each instruction waits for the last one of another engine that it collides with."""

    def naive(listing: Any) -> list[Wait | tuple[int, Any, tuple[Any, ...]]]:
        waits = []
        done = list(listing)
        for later in done:
            for earlier in done[: later.index]:
                touches = any(
                    len(np.intersect1d(one, other))
                    for mine, theirs in ((later.reads, earlier.writes), (later.writes, earlier.reads), (later.writes, earlier.writes))
                    for one, other in zip(mine, theirs, strict=True)
                )
                if touches and earlier.engine != later.engine:
                    waits.append((later.index, later.engine, (earlier.engine,)))
        return waits

    assert tpucc.judge(tpucc.compile_source(SMALL, stages=tpucc.Stages(synchronise=naive))).equal


def test_an_order_of_independent_instructions() -> None:
    def reads_first(tiles: Any) -> list[int]:
        return sorted(range(len(tiles)), key=lambda i: not tiles[i].text.startswith("read_host"))

    exe = tpucc.compile_source(RESIDUAL, stages=tpucc.Stages(order=reads_first))
    assert tpucc.judge(exe).equal
    assert exe.tiles.value[0].text.startswith("read_host")


@each(
    [
        ("allocate", lambda lives, rows: np.zeros(len(lives.rows), np.int64), "E0523", "put two buffers on the same rows: buffer"),
        ("allocate", lambda lives, rows: [0.5] * len(lives.rows), "E0523", "integers: the first row of each buffer"),
        ("allocate", lambda lives, rows: [0], "E0523", "int64 of shape [1], expected "),
        ("allocate", lambda lives, rows: count(), "E0523", "expected "),
        ("synchronise", lambda listing: repeat((1, "matrix", "host")), "E0523", "waits, which is one for each two engines"),
        ("allocate", lambda lives, rows: [rows] * len(lives.rows), "E0523", "the unified buffer has rows 0 to"),
        ("allocate", lambda lives, rows: [[], 1, 2], "E0523", "isn't a list of integers"),
        ("allocate", lambda lives, rows: lives.rows.sort(), "E0521", "read-only"),
        ("order", lambda tiles: [0] * len(tiles), "E0523", "left out instruction 1"),
        ("order", lambda tiles: range(1, len(tiles) + 1), "E0523", "there are 0 to"),
        ("order", lambda tiles: range(len(tiles))[::-1], "E0525", "E075"),
        ("synchronise", lambda listing: [], "E0525", "V08"),
        ("synchronise", lambda listing: [(0, "matrix")], "E0523", "expected (before instruction"),
        ("synchronise", lambda listing: [(0, "matrix", "weights")], "E0523", "expected one of host, matrix, activation"),
        ("synchronise", lambda listing: [(0, "matrix", "matrix")], "E0523", "a wait of an engine for itself"),
        ("synchronise", lambda listing: [(99, "matrix", "host")], "E0523", "before instruction 99"),
        ("synchronise", lambda listing: 7, "E0523", "returned 7, expected a list of waits"),
        ("lower_fc", lambda layer: None, "E0523", "returned None, expected a list of lines"),
        ("lower_fc", lambda layer: [1], "E0523", "returned 1 among its lines"),
        ("lower_fc", lambda layer: "nothing here=3", "E0523", "line 1, `nothing here=3`"),
        (
            "lower_fc",
            lambda layer: "nothing " * 10**5,
            "E0523",
            "line 1, `nothing nothing nothing nothing nothing nothing nothing noth…`: ",
        ),
        ("lower_fc", lambda layer: "halt", "E0523", "E071"),
        ("lower_fc", lambda layer: f"activate acc=g0 ub={layer.results[0]} inner=1", "E0523", "no accumulator group is named g0"),
        ("lower_fc", lambda layer: "", "E0525", "E075"),
    ]
)
def test_what_is_wrong_is_said(stage: str, function: Any, code: str, words: str) -> None:
    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(RESIDUAL, stages=tpucc.Stages(**{stage: function}))
    error = caught.value
    assert error.diagnostics[0].code == code
    assert stage in error.diagnostics[0].message
    assert words in "\n".join(f"{found.code} {found.message}" for found in error.diagnostics)  # the source's own line would have them
    assert error.source is not None
    assert error.source.name == Path(__file__).name
    assert error.diagnostics[0].span is not None


@pytest.mark.soak
def test_the_command_line_replaces_wherever_it_compiles(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("def allocate(lives, rows):\n    open('called', 'a').close()\n    raise KeyError\n")
    for command in ("compile", "run", "profile", "report", "viz", "check", "judge"):
        assert run(command, small, "--replace", "allocate=mine.py") == 1, command
        assert Path("called").exists(), command
        Path("called").unlink()
        assert "E0521" in "".join(capsys.readouterr()), command


def test_judge_prints_its_verdict(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("judge", small, "--replace", f"allocate={STAGES / 'first_fit.py'}", "--replace", f"lower_fc={STAGES / 'plain_fc.py'}") == 0
    assert "small.tpu: equal" in capsys.readouterr().out
    Path("mine.py").write_text("def synchronise(listing):\n    return []\n")
    assert run("judge", small, "--replace", "synchronise=mine.py", "--json") == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["equal"] is False
    assert verdict["findings"][0]["code"] == "E0525"
    assert any(found["code"].startswith("V08") for found in verdict["findings"])


def test_resuming_goes_through_the_stages_of_the_book() -> None:
    """From the tile program on, the student's allocator; from the layers on, the student's lowering too."""
    allocate = stages_of_files({"allocate": STAGES / "first_fit.py"}).allocate
    lower_fc = stages_of_files({"lower_fc": STAGES / "plain_fc.py"}).lower_fc
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu", target=tpucc.load_target("tpu_v1", {"mxu": 16}))
    asked: list[int] = []

    def counted(lives: Any, rows: int) -> Any:
        asked.append(rows)
        return allocate(lives, rows)

    resumed = tpucc.resume(str(exe.tiles), like=exe, stages=tpucc.Stages(allocate=counted))
    assert asked
    assert tpucc.judge(resumed).equal
    relowered = tpucc.resume(str(exe.layers), like=exe, stages=tpucc.Stages(lower_fc=lower_fc))
    assert any("replaced stage lower_fc" in layer.choice for layer in relowered.program.value.layers)
    assert tpucc.judge(relowered).equal


def test_an_invalid_program_is_told_in_the_numbers_of_the_listing_that_the_stage_got() -> None:
    got: list[Any] = []

    def one_less(listing: Any) -> list[Wait]:
        got[:] = listing
        return list(BUILT_IN.synchronise(listing))[1:]

    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, stages=tpucc.Stages(synchronise=one_less))
    message = caught.value.diagnostics[1].message
    found = re.search(
        r"instruction \d+ `(\w+) .*instruction \d+ `(\w+) .*without waits .* these are the instructions (\d+) and (\d+)", message
    )
    assert found is not None
    assert [got[int(number)].text.split()[0] for number in found.groups()[2:]] == list(found.groups()[:2])


TWO = """
weights random(seed=1)
model two(x: f32[8, 4] in [-1.0, 1.0]):
    weight w: f32[4, 4]
    weight v: f32[4, 4]
    return x @ w, x @ v
"""


def test_an_order_may_move_multiplies_that_stay_with_a_tile() -> None:
    """A lowering need not name the tile that is in use already. Behind a multiply of another tile it must be switched to again."""

    def lower_fc(layer: tpucc.ProductLayer) -> list[str]:
        level, result, start = layer.levels[0], layer.results[0], layer.start
        return [
            ".groups [4, 4]",
            f"matrix_multiply ub={level.buffer}+{level.start} acc=g0 rows=4 tile={level.tiles[0]}, switch",
            f"matrix_multiply ub={level.buffer}+{level.start + 4} acc=g1 rows=4",
            f"set_configuration block={layer.blocks[0]}",
            f"activate acc=g0 ub={result}+{start} inner=4",
            f"activate acc=g1 ub={result}+{start + 4} inner=4",
        ]

    def in_turns(tiles: TileProgram) -> list[int]:
        one, same, other, same_other = (number for number, each in enumerate(tiles) if each.engine.name == "MATRIX")
        moved = [one, other, same, same_other]
        return [*range(one), *moved, *(number for number in range(one, len(tiles)) if number not in moved)]

    exe = tpucc.compile_source(TWO, level=0, stages=tpucc.Stages(lower_fc=lower_fc, order=in_turns))
    assert tpucc.judge(exe).equal
    assert exe.stats["tile_fetches"] == 4


def test_an_invalid_order_is_told_in_the_numbers_that_order_got() -> None:
    def last_first(tiles: Any) -> Iterator[int]:
        yield len(tiles) - 1
        yield from range(len(tiles) - 1)

    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, stages=tpucc.Stages(order=last_first))
    assert re.search(r"tile instruction 0 .* in the tile program that order got, it is instruction [1-9]", str(caught.value))


def test_a_lowering_that_leaves_a_line_out_is_told_the_layer_s_line() -> None:
    stages = tpucc.Stages(lower_fc=lambda layer: BUILT_IN.lower_fc(layer)[:-1])
    with pytest.raises(tpucc.PluginError, match=r"error E0755: tile instruction \d+ .* \(line 8 of model.tpu\)"):
        tpucc.compile_source(SMALL, stages=stages)


def test_a_stage_sees_the_names_of_engines_and_layers() -> None:
    seen: set[tuple[str, str]] = set()

    def look(listing: Any) -> Any:
        seen.update((str(instruction.engine), instruction.layer_name) for instruction in listing)
        return BUILT_IN.synchronise(listing)

    exe = tpucc.compile_source(SMALL, stages=tpucc.Stages(synchronise=look))
    assert {engine for engine, _ in seen} == {"host", "weights", "matrix", "activation"}
    assert {name for _, name in seen} == {layer.name for layer in exe.program.layers} == {i.layer_name for i in exe.tiles.value}


def test_a_lowering_without_a_layer_is_said_not_to_be_called(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict says nothing of it. One that is called gets a layer of its own."""
    Path("mine.py").write_text(
        "import tpucc\nbuilt_in = tpucc.Stages().lower_fc\n"
        "def lower_conv(layer): raise ValueError\n"
        "def lower_fc(layer):\n    lines = built_in(layer)\n    object.__setattr__(layer, 'levels', None)\n"
        "    object.__setattr__(layer, 'buffers', None)\n    return lines\n"
    )
    assert run("judge", small, "--replace", "lower_conv=mine.py", "--replace", "lower_fc=mine.py") == 0
    printed = capsys.readouterr()
    assert "small.tpu: equal" in printed.out
    assert printed.err.count("not called") == 1
    assert "lower_conv is not called: the model has no layer of the kind conv" in printed.err


def test_a_stage_is_replaced_once(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", small, "--replace", "allocate=a.py", "--replace", "allocate=b.py") == 2
    assert "allocate is given twice: a.py and b.py" in capsys.readouterr().err
