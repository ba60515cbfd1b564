"""Lab 0: what a verdict says, how a puzzle shows itself, and playing at the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import tpucc
from tests.support.cases import one_of
from tests.support.lab_solutions import reference
from tpucc.cli import lab_command, lab_shared
from tpucc.cli.main import main
from tpucc.isa.assembler import assemble
from tpucc.isa.verify import check as check_program
from tpucc.labs import find
from tpucc.labs.grading import check
from tpucc.labs.here import Here
from tpucc.labs.lab import Term
from tpucc.labs.puzzles import solved
from tpucc.labs.puzzles.puzzle import puzzles
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program

LAB = find("puzzles")


def solution(number: int, **changes: str) -> str:
    """The reference's text, with other words in it."""
    text = LAB.filled((reference(LAB) / tpucc.lab.puzzle(number).file).read_text("utf-8"), Term())
    for old, new in changes.items():
        text = text.replace(old.replace("_is_", "="), new)
    return text


def texts(files: Mapping[str, str]) -> Here:
    """A submission of texts."""
    return Here({}, Path(), {name: text.encode() for name, text in files.items()})


def test_a_solved_puzzle_says_its_size() -> None:
    verdict = tpucc.lab.puzzle(4).check(solution(4))
    assert verdict.solved
    assert str(verdict).splitlines() == ["puzzle 4: one product: solved", "10 instructions, as few as the best known; 29 cycles"]


@pytest.mark.parametrize("term", one_of(2, [Term(), Term("spring")]), ids=["as written", "spring"])
def test_the_best_known_is_what_the_reference_has(term: Term) -> None:
    for puzzle in puzzles(term):
        text = LAB.filled((reference(LAB) / puzzle.file).read_text("utf-8"), term)
        assert puzzle.check(text, 1).instructions == puzzle.best


WRONG = {
    "a wrong value": (1, "read_host_memory host=x.0 ub=0 rows=1\nwrite_host_memory ub=0 host=y.0 rows=1\nhalt", 1, "made it", "y[0, 0] is"),
    "tiles in another order": (
        5,
        solution(5, tile_is_0="tile=9", tile_is_1="tile=0").replace("tile=9", "tile=1"),
        9,
        "`activate acc=0 ub=0 inner=3` made it of the sums of lines 6 (tile 1) and 7 (tile 0)",
        "y[0, 0] is",
    ),
    "a second part of other rows": (
        11,
        solution(11).replace("matrix_multiply ub=3", "matrix_multiply ub=2"),
        11,
        "inner=3` made it of the sums of line 9 (tile 0)",
        "y[3, 0] is",
    ),
    "a race": (
        2,
        "\n\n" + solution(2).replace("synchronize engine=activation wait=host", ""),
        6,
        "Here the activation engine may start",
        "V0801: line 6",
    ),
    "a row as if it were a part": (1, "read_host_memory host=x.1 ub=0 rows=1\nhalt", 1, "row 1 of x.0 is x.0+1", "E0713: line 1"),
    "a row of no part": (5, "read_host_memory host=x ub=0 rows=1\nhalt", 1, "x.0 to x.1; the last of its 3 rows is x.0+2", "E0713"),
    "an output written as an input": (1, solution(1, host_is_y="host=x"), 2, "Inputs stay as they are", "V1004: line 2"),
    "a halt in a tile program": (13, "halt", 1, "tpucc adds them", "E0751: line 1 `halt`"),
    "no such instruction": (
        1,
        "; hm\n  reed x\n  halt",
        2,
        "The handout's table has the instructions.",
        "E0710: line 2 `reed x`: no instruction is named reed",
    ),
    "a comment of Python's": (1, "\n    # move it\n    halt", 2, "a comment begins with ;", "E0710: line 2"),
    "rows beyond an output": (
        1,
        solution(1, host_is_y="host=y").replace("ub=0 host=y.0 rows=1", "ub=0 host=y.0 rows=5"),
        2,
        "",
        ": y.0 has 1 row",
    ),
    "a tile where there is none": (
        1,
        "read_weights tile=0\nhalt",
        1,
        "",
        "`read_weights tile=0` asks for tile 0, and the program has none",
    ),
    "a block where there is none": (1, "set_configuration block=0\nhalt", 1, "", "chooses block 0, and the program has none"),
    "an operand of other functions": (3, "vector function=table a=0 b=0 ub=0 inner=3\nhalt", 1, "", "E0711: line 1"),
    "a directive": (1, "halt\n.target tpu_v1", 2, "", ".target is part of the puzzle"),
    "a directive after a byte-order mark": (1, "\ufeff.target tpu_v1\nhalt", 1, "", ".target is part of the puzzle"),
    "nothing": (1, "", 0, "A program ends with halt", "V1001: "),
    "too long": (1, "nop\n" * 300 + "halt", 0, "", "more than 200 lines"),
    "an overflow": (7, ".block bias=[2147483647 0 0 0]\n" + solution(7).split("\n", 1)[1], 9, "int32", "line 9 `activate"),
    "a tile program": (13, solution(13).replace("tile=3, switch, accumulate", "tile=3, switch"), 12, "A sum begins", "line 12"),
    "no tile program": (13, tpucc.lab.puzzle(13).text, 0, "", "E0758: row 0 of the output y.0 is never written"),
    "one buffer too few": (13, solution(13).replace(".buffer right rows=3", ""), 7, "", "no buffer is named right"),
    "more than waits": (
        9,
        solution(9).replace("ub=0 rows=3\n    set", "ub=6 rows=3\n    set").replace("b=0", "b=6"),
        0,
        "is `read_host",
        "more than waits",
    ),
    "too many cycles": (8, tpucc.lab.puzzle(8).text, 0, "Somewhere an engine waits", "has 88 cycles, and 64 are allowed"),
}


@pytest.mark.parametrize(("number", "text", "line", "why", "message"), WRONG.values(), ids=WRONG)
def test_a_verdict_says_why_not(number: int, text: str, line: int, why: str, message: str) -> None:
    verdict = tpucc.lab.puzzle(number).check(text, 5)
    assert not verdict.solved
    assert verdict.line == line
    assert why in f"{verdict.message}\n{verdict.why}"
    assert message in verdict.message


def test_a_wrong_value_is_shown_with_what_was_given() -> None:
    verdict = tpucc.lab.puzzle(4).check(solution(4, acc_is_0="acc=0").replace("ub=0 acc=0 rows=3", "ub=0 acc=0 rows=3, unsigned"), 5)
    assert verdict.given.startswith("x = [[")
    assert verdict.expected != verdict.found
    assert "`activate acc=0 ub=0 inner=3` made it" in verdict.message


def test_numbers_are_fresh() -> None:
    """A block that gives the goal of one draw is wrong in the next."""
    text = solution(7).replace("multiplier=0.0625", "multiplier=0")
    assert not tpucc.lab.puzzle(7).check(text).right
    draws = [tpucc.lab.puzzle(1).check("halt\n", seed) for seed in (1, 2)]
    assert draws[0].message == draws[1].message


@pytest.mark.parametrize("term", [Term(), Term("fall"), Term("spring")], ids=str)
def test_no_file_earns_anything_as_it_is_begun(term: Term) -> None:
    assert [solved(each, 1, texts({each.file: each.begun})).share for each in puzzles(term)] == [0] * 14


def test_puzzle_8_earns_half_once_it_is_faster() -> None:
    asked = tpucc.lab.puzzle(8)
    first_wait = "    synchronize engine=weights wait=matrix\n"
    shares = [solved(asked, 1, texts({asked.file: text})).share for text in (asked.text, asked.text.replace(first_wait, "", 1))]
    assert (shares, asked.check(asked.text, 1).cycles) == ([0, 0.5], asked.slow)


@pytest.mark.parametrize("term", [Term(), Term("fall"), Term("spring")], ids=str)
def test_the_handout_defines_every_word_of_a_solution(term: Term) -> None:
    handout = LAB.material("handout.md", term)
    defined = set(re.findall(r"\w+", " ".join(re.findall(r"^\| (`[^|]*`) \|", handout, re.MULTILINE))))
    for puzzle in puzzles(term):
        text = LAB.filled((reference(LAB) / puzzle.file).read_text("utf-8"), term)
        code = "\n".join(line.partition(";")[0] for line in text.splitlines() if line[:1] != ".")
        assert {found[1] for found in re.finditer(r"(?:^ +|, | )(\w+)(?==|[ ,\n]|$)", code, re.MULTILINE)} <= defined


def test_a_puzzle_shows_itself() -> None:
    for puzzle in puzzles():
        text = str(puzzle)
        assert max(len(line) for line in text.splitlines() if line) <= 78
        assert f"Puzzle {puzzle.number}" in text
        assert "the goal, output y" in text
        assert max(map(len, puzzle.begun.splitlines())) <= 140
    with pytest.raises(tpucc.UsageError, match="E0550: there is no puzzle 99"):
        tpucc.lab.puzzle(99)


@pytest.mark.parametrize("term", [Term(), Term("fall")], ids=str)
def test_a_task_says_what_its_goal_is(term: Term) -> None:
    """A product is scaled; a difference is no sum."""
    for puzzle in puzzles(term):
        scaled = any(block.multiplier == 0.125 for block in puzzle.draw(Random(0)).blocks)
        assert ("each sum times the block's multiplier, rounded" in puzzle.task) is scaled
    assert "sum" not in puzzles(term)[1].task


def test_terms_have_their_own_puzzles() -> None:
    assert str(tpucc.lab.puzzle(7)) != str(tpucc.lab.puzzle(7, "spring"))


def test_the_handouts_example_is_what_the_machine_does() -> None:
    (tile, code) = re.findall(r"```\n(.*?)```", LAB.material("handout.md", Term()), re.DOTALL)
    listing = f"{code}.target tiny\n.input x 1x4\n.output y 1x4\n.tile\n{tile}.block multiplier=0.5\n"
    program = assemble(listing, "handout.asm")
    check_program(program)
    assert Interpreter(program).run({"x": np.array([[1, 2, 0, 1]], np.int8)})["y"].tolist() == [[2, 1, 2, 0]]
    assert f"way back: {time_program(program).makespan}." in " ".join(LAB.material("handout.md", Term()).split())


def test_the_numbers_of_puzzle_8_add_up() -> None:
    """Each of its waits costs what the verdict says, where the sums are activated product by product."""
    asked, wait = tpucc.lab.puzzle(8), "    synchronize engine=weights wait=matrix\n"
    cycles = [asked.check(asked.text.replace(wait, "", count), 1).cycles for count in range(3)]
    assert (cycles, asked.check(asked.text, 1).why[-21:]) == ([88, 72, 56], "such a wait costs 16.")


def test_a_puzzle_at_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "puzzle01.asm"
    file.write_text(solution(1))
    (tmp_path / "lab.toml").write_text('lab = 0\nterm = ""\n')
    run = CliRunner().invoke
    shown = run(lab_command.command, ["puzzle", "1", "--term", "spring"], standalone_mode=False)
    assert shown.return_value == 0
    assert "Puzzle 1: move a row" in shown.output
    done = run(lab_command.command, ["puzzle", "1", str(file)], standalone_mode=False)
    assert (done.return_value, done.output.splitlines()[0]) == (0, "puzzle 1: move a row: solved")
    assert re.fullmatch(r"as written, without a term; --seed \d+", done.output.splitlines()[-1])
    done = run(lab_command.command, ["puzzle", "1", str(file), "--term", "spring", "--seed", "7"], standalone_mode=False)
    assert done.output.splitlines()[-1] == "term spring; --seed 7"
    file.write_text("halt")
    assert run(lab_command.command, ["puzzle", "1", str(file)], standalone_mode=False).return_value == 1


def test_a_puzzle_is_shown_of_the_folders_term_and_where_there_is_none_this_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "start", "0", "lab0", "--term", "spring"]) == 0
    for name in ("handout.md", "puzzle03.asm"):
        assert "`tpucc lab puzzle 3`" in " ".join((tmp_path / "lab0" / name).read_text("utf-8").replace("; ", "").split())
    told = {}
    for asked in (("lab0",), (), ("--term", "spring")):
        capsys.readouterr()
        assert main(["lab", "puzzle", "3", *asked]) == 0
        told[asked] = capsys.readouterr().out.splitlines()
    assert [lines[0] for lines in told.values()] == [f"lab 0 (puzzles), {term}" for term in (Term("spring"), Term(), Term("spring"))]
    assert "the current folder is no lab's: tpucc lab start 0 writes one, with a file for each puzzle." in " ".join(
        line.strip() for line in told[()][1:4]
    )
    ends = ("lab0/puzzle03.asm", "puzzle03.asm", "puzzle03.asm --term spring")
    assert [lines[-1] for lines in told.values()] == [f"tpucc lab puzzle 3 {end}" for end in ends]
    assert [sum(line.startswith("note:") for line in lines) for lines in told.values()] == [0, 1, 0]
    monkeypatch.chdir(tmp_path / "lab0")
    assert main(["lab", "puzzle", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == told["lab0",][:-1]


def test_so_is_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "puzzle03.asm").write_text("    activate acc=0 ub=0 rows=4\n    halt\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["lab", "puzzle", "3", str(tmp_path / "puzzle03.asm")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def test_what_a_terminal_gets_of_a_lab_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 80 columns, save commands; a message that several tests give stands there once. The folder has the lab's name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab_shared, "room_of", lambda _: 80)
    for arguments, status in ((("list",), 0), (("start", "0"), 0), (("start", "99"), 2), (("check", "puzzles"), 1), (("puzzle",), 0)):
        assert main(["lab", *arguments]) == status
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if len(line) > 80 and " again: " not in line] == []
    assert said.count("write_host_memory writes an output's rows; all of them must be written.") == 1
    assert "\nFAIL      0 of 3  puzzle 3: relu of rows\n      the same as in `puzzle 1: move a row`\n" in said
    assert "\npuzzle 14: the fewest instructions\n\ntpucc lab puzzle N shows one" in said


def test_a_lab_of_texts_needs_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.labs.grading.workshop", None)
    (tmp_path / "puzzle01.asm").write_text(solution(1))
    (tmp_path / "puzzle02.asm").write_bytes(b"\xff")
    (tmp_path / "Puzzle04 (1).asm").write_text(solution(4))
    grade = check(LAB, tmp_path, Term())
    assert [result.score for result in grade.results][:3] == [3, 0, 0]
    assert [result.outcome.message for result in grade.results][1:4] == [
        "puzzle02.asm is no text in UTF-8",
        "the submission has no puzzle03.asm",
        "the submission has no puzzle04.asm; it has Puzzle04 (1).asm",
    ]
