"""An oral sheet: the same for a seed, true of what the submission did, and a page in which nothing of the submission's is markup."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.command_line import run
from tests.support.lab_solutions import handed_in, main_file
from tpucc.guest.jails import NONE
from tpucc.ir.parser import parse_graph
from tpucc.labs import allocation, find, order, passes, quantisation, tiling, waits
from tpucc.labs.allocation.families import layered
from tpucc.labs.grading import Contents, Grade, contents_of, grade_contents
from tpucc.labs.here import Here, executed
from tpucc.labs.lab import Exchange, Lab, Question, Term
from tpucc.labs.oral import Examined, _of_changes, different, examined, returned
from tpucc.labs.oral_page import oral_page
from tpucc.labs.waits.families import chains
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.lowering.liveness import largest_live_sum
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives
from tpucc.schedule.listing import Listing

TERM = Term("2027-spring")


def solution(lab: Lab, wrong: str = "") -> Here:
    """A lab's reference in this process, or a wrong solution."""
    return executed(main_file(lab, wrong, TERM), lab.material_folder / "reference.py")


def asked(lab: str, ask: Any, function: str, *arguments: Any, seed: int = 1, wrong: str = "") -> tuple[Question, Any]:
    """A question on a call of a solution, and the call's answer."""
    found = find(lab)
    submission = solution(found, wrong)
    answer = submission.call(function, *arguments)
    return ask(Exchange(function, arguments, answer), Examined(found, TERM, Random(seed), submission)), answer


def numbers(text: str) -> list[int]:
    return [int(word.replace(",", "")) for word in re.findall(r"-?\d[\d,]*", text)]


def written(folder: Path, lab: str, wrong: str = "") -> Path:
    for name, text in handed_in(find(lab), wrong, TERM).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


# What a sheet is


@pytest.mark.soak
def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = written(tmp_path / "anna", "puzzles")
    made = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run("lab", "oral", 0, folder, "--term", TERM.name, "--seed", seed, "-o", tmp_path / f"{name}.html") == 0
        made.append((tmp_path / f"{name}.html").read_bytes())
    assert made[0] == made[1] != made[2]


@pytest.mark.soak
def test_an_instruction_that_is_left_out_loses_these_points(tmp_path: Path) -> None:
    lab, folder = find("puzzles"), written(tmp_path / "anna", "puzzles")
    done, questions = examined(lab, folder, TERM, 1, NONE)
    assert done.score == 100
    assert len(questions) == 4
    for question in questions:
        name, line = re.fullmatch(r"(.*), line (\d+)", question.about).groups()  # type: ignore[union-attr]
        lines = (folder / name).read_text().splitlines()
        assert question.given == f"{lines[int(line) - 1].strip()}\n→ (left out)"
        kept, lines[int(line) - 1] = (folder / name).read_text(), ""
        (folder / name).write_text("\n".join(lines))
        graded = grade_contents(lab, contents_of(lab, folder, TERM), 1, NONE)
        failed = next(result for result in graded.results if not result.outcome.passed)
        assert question.answer.startswith(f"`{failed.test.name}` loses points: {failed.outcome.message.splitlines()[0]}")
        (folder / name).write_text(kept)


@pytest.mark.long
@pytest.mark.usefixtures("made_before")
def test_a_sheet_of_functions_has_three_calls_a_change_and_what_failed(tmp_path: Path) -> None:
    folder = written(tmp_path / "anna", "allocation", "first_fit_in_time")
    made = [examined(find("allocation"), folder, TERM, seed, NONE) for seed in (3, 3, 4)]
    pages = [oral_page(*each, "anna") for each in made]
    assert pages[0] == pages[1] != pages[2]
    done, questions = made[0]
    assert len(questions) == 5
    assert len({question.asked for question in questions}) == 5
    assert questions[3].about.startswith("allocation.py, line ")
    first = next(result for result in done.results if not result.outcome.passed)
    assert questions[4].about == first.test.name
    assert questions[4].answer.startswith(first.outcome.message)
    assert all(question.picture for question in questions if question.about == first.test.name)
    head, answers = pages[0].split('id="answers"')
    assert "For the examiner, not for students." in answers
    for question in questions[:4]:
        assert question.answer.split("\n")[0][:40].replace("'", "&#39;") not in head


@pytest.mark.long
@pytest.mark.usefixtures("made_before")
def test_a_changed_line_is_the_students_and_loses_these_points(tmp_path: Path) -> None:
    lab, folder = find("quantisation"), written(tmp_path / "anna", "quantisation")
    given = {line.strip() for line in lab.files(TERM)["quantisation.py"].splitlines()}
    for seed in (1, 2):
        _, questions = examined(lab, folder, TERM, seed, NONE)
        (question,) = (each for each in questions if each.about.startswith("quantisation.py, line "))
        lines, number = (folder / "quantisation.py").read_text().splitlines(), int(question.about.rpartition(" ")[2])
        old, new = question.given.split("\n→ ")
        assert old.splitlines()[0] == lines[number - 1].strip()
        assert old.splitlines()[0] not in given
        blanks = lines[number - 1][: len(lines[number - 1]) - len(lines[number - 1].lstrip())]
        lines[number - 1 : number - 1 + len(old.splitlines())] = [blanks + new.replace("(left out)", "pass")]
        changed = written(tmp_path / f"changed{seed}", "quantisation")
        (changed / "quantisation.py").write_text("\n".join(lines))
        graded = grade_contents(lab, contents_of(lab, changed, TERM), seed, NONE)
        failed = next(result for result in graded.results if not result.outcome.passed)
        assert question.answer.startswith(f"`{failed.test.name}` loses points: {failed.outcome.message.splitlines()[0]}")


# What fails


@pytest.mark.long
def test_what_cannot_be_asked_has_no_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "sheet.html"
    assert run("lab", "oral", 5, tmp_path / "nobody", "-o", sheet) == 2
    assert "E0551" in capsys.readouterr().err
    (tmp_path / "anna").mkdir()
    assert run("lab", "oral", 5, tmp_path / "anna", "--trust", "-o", sheet) == 1
    assert "the submission has no allocation.py\nfor that reason there is nothing to ask" in capsys.readouterr().out
    assert not sheet.exists()


def test_options_that_belong_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("lab", "oral", 0, tmp_path, "--per-student", "-o", tmp_path / "sheet.html") == 2
    assert "--per-student and --key FILE belong together" in capsys.readouterr().err


@pytest.mark.soak
def test_a_student_has_the_own_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("a secret of sixteen bytes and more")
    given = ("--term", "spring", "--key", tmp_path / "key", "--per-student", "--seed", 1)
    assert run("lab", "oral", 0, written(tmp_path / "anna", "puzzles"), *given, "-o", tmp_path / "sheet.html") == 0
    assert re.search(r"term spring-[0-9a-f]{16}", capsys.readouterr().out)


@each(["raise RuntimeError('<b>mine')", "raise SystemExit(0)", "import os; os._exit(0)", "return '</pre><script>alert(1)</script>'"])
@pytest.mark.soak
@pytest.mark.usefixtures("made_before")
def test_a_submission_that_always_fails_is_asked_why(body: str, tmp_path: Path) -> None:
    (tmp_path / "allocation.py").write_text(f"def allocate(lives, rows):\n    {body}\n")
    done, questions = examined(find("allocation"), tmp_path, TERM, 1, NONE)
    assert done.score == 0
    assert questions[-1].about == "three buffers"
    assert len(questions) == (4 if body.startswith("return") else 1), "an answer of the wrong form can be asked for"
    page = oral_page(done, questions, "<i>anna</i>")
    assert not re.search(r"<script>alert|<b>mine|<i>anna", page)


@pytest.mark.long
def test_text_of_a_submission_is_no_markup(tmp_path: Path) -> None:
    folder = written(tmp_path / "anna", "puzzles")
    for file in folder.glob("*.asm"):
        file.write_text("".join(f"{line} ; </pre><script>alert(1)</script>\u202e`\n" for line in file.read_text().splitlines()))
    page = oral_page(*examined(find("puzzles"), folder, TERM, 1, NONE), "<i>anna</i>")
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"<script>alert|<i>anna|\u202e", page)


# What questions say


@each([("[1, 2]", "[1, 3]", "These entries change: [1] from 2 to 3"), ("[1]", "[1]", ""), ("'a\\nb'", "'b\\nc'", "new: `c`, gone: `a`")])
def test_how_answers_differ(before: str, after: str, told: str) -> None:
    assert different(eval(before), eval(after)) == told


@each([("None", "3"), ("[None]", "{1: 2}"), ("[2**63, 'a']", "[[]]"), ("[]", "[1.0]"), ("True", "''")])
def test_answers_of_any_form_differ(before: str, after: str) -> None:
    assert different(eval(before), eval(after))
    assert not different(eval(before), eval(before))


def asked_of(body: str, lives: Lives, rows: int, ask: Any) -> Question:
    """A question on a call of an allocator that is written here."""
    defined: dict[str, Any] = {}
    exec(body, defined)
    lab, submission = find("allocation"), Here(defined, Path("allocation.py"))
    return ask(Exchange("allocate", (lives, rows), submission.call("allocate", lives, rows)), Examined(lab, TERM, Random(1), submission))


ONE_AFTER_THE_OTHER = "import numpy as np\ndef allocate(lives, rows):\n    return np.cumsum(lives.rows) - lives.rows"
BY_DICE = "import numpy as np\nturn = []\ndef allocate(lives, rows):\n    turn.append(0)\n    return np.cumsum(lives.rows) + len(turn)"


def test_the_reference_says_why_it_returns_nothing() -> None:
    both = Lives(*np.array([[0, 9, 8], [0, 9, 8]], np.int64).T)
    assert "The reference: " in (told := asked_of(ONE_AFTER_THE_OTHER, both, 12, returned).answer)
    assert "TooLarge" in told


def test_no_change_is_blamed_for_what_differs_without_it() -> None:
    question = asked_of(BY_DICE, lives_of(1), 2**17, allocation.larger)
    assert question.answer == "Called again without a change, it returns something else than before."
    assert question.dull


LATIN = """# -*- coding: latin-1 -*-
NAME = 'é'

def allocate(lives, rows):
    try: print('')
    except OSError: raise
    return [1]
"""


def test_a_changed_file_is_python_in_its_own_encoding(tmp_path: Path) -> None:
    (tmp_path / "allocation.py").write_bytes(LATIN.encode("latin-1"))
    lab, tried = find("allocation"), list[bytes]()
    done = Grade(lab, TERM, "")

    def again(changed: Contents, *_: Any) -> Grade:
        tried.append(changed.files["allocation.py"])
        return done

    for seed in range(9):
        _of_changes(contents_of(lab, tmp_path, TERM), again, done, Random(seed), 9)
    assert tried
    for content in tried:
        assert "NAME = 'é'".encode("latin-1") in content
        compile(content, "allocation.py", "exec")


def lives_of(seed: int) -> Lives:
    """Lives of few buffers."""
    align = find("allocation").rules(TERM).alignment
    return next(lives for n in range(99) if 4 <= len((lives := layered(Random(100 * seed + n), align)).rows) <= 24)


def free(lives: Lives, starts: Int64, b: int, row: int) -> bool:
    """Whether buffer b may begin at a row, by looking at each row that others have."""
    taken = {
        r
        for n in range(len(starts))
        if n != b and lives.first[n] <= lives.last[b] and lives.last[n] >= lives.first[b]
        for r in range(starts[n], starts[n] + lives.rows[n])
    }
    return not taken & set(range(row, row + int(lives.rows[b])))


@each([1, 2, 3])
def test_where_a_buffer_landed(seed: int) -> None:
    lives = lives_of(seed)
    question, starts = asked("allocation", allocation.landed, "allocate", lives, 2**17, seed=seed, wrong="first_fit_in_time")
    b, row = numbers(question.asked)
    assert row == starts[b]
    rules = find("allocation").rules(TERM)
    lowest = next(r for r in range(rules.first, 2**17, rules.alignment) if free(lives, np.array(starts), b, r))
    reference = solution(find("allocation")).call("allocate", lives, 2**17)
    said = numbers(question.answer.partition("The lowest gap for it begins at row ")[2])
    assert said == [lowest, starts[b], reference[b]]
    assert numbers(question.answer)[:3] == [lives.rows[b], lives.first[b], lives.last[b]]


def test_what_a_larger_buffer_moves() -> None:
    lives, rules = lives_of(1), find("allocation").rules(TERM)
    question, starts = asked("allocation", allocation.larger, "allocate", lives, 2**17)
    b, larger, rows = numbers(question.asked)
    assert (rows, larger) == (lives.rows[b], lives.rows[b] + rules.alignment)
    lives.rows[b] = larger
    after = solution(find("allocation")).call("allocate", lives, 2**17)
    moved = np.flatnonzero(np.array(starts) != np.array(after)).tolist()
    assert re.findall(r"\[(\d+)\] from (\d+) to (\d+)", question.answer) == [(str(n), str(starts[n]), str(after[n])) for n in moved][:8]
    whole = -(-lives.rows // rules.alignment) * rules.alignment
    assert f"Then: {len(starts)} buffers in" in question.answer
    assert f"{largest_live_sum(lives.first, lives.last, whole):,} are needed at one time. Before" in question.answer


def test_what_a_wait_is_for() -> None:
    given = find("waits").rules(TERM)
    for seed in range(1, 5):
        listing = chains(Random(seed))
        question, _ = asked("waits", waits.needed, "synchronise", listing, seed=seed)
        place, engine, other = re.search(r"\((\d+), '(\w+)', \['(\w+)'", question.asked).groups()  # type: ignore[union-attr]
        later, earlier = (int(n) for n in re.findall(r"instruction (\d+) `", question.answer))
        assert earlier < later >= int(place)
        rows = [rows_of(listing, n, given.page) for n in (earlier, later)]
        assert rows[0] & rows[1]
        assert {listing[n].engine.name.lower() for n in (earlier, later)} & {engine, other}


def rows_of(listing: Listing, n: int, page: int) -> set[tuple[str, int]]:
    """The rows that an instruction touches by itself; of a transfer all rows of their pages."""
    own = listing[n]
    step = page if own.engine.name == "HOST" else 1
    buffer = {row // step * step + more for row in (*own.reads.buffer, *own.writes.buffer) for more in range(step)}
    return {("buffer", row) for row in buffer} | {("accumulators", row) for row in (*own.reads.accumulators, *own.writes.accumulators)}


def test_what_orders_two_instructions_without_a_wait() -> None:
    asking = [asked("waits", waits.not_needed, "synchronise", chains(Random(seed)), seed=seed)[0] for seed in range(1, 4)]
    for question in asking:
        one, other = numbers(question.asked)[:2]
        assert question.answer.startswith(f"instruction {other} `")
        for words in re.findall(r"\(\d+, '\w+', \['\w+'\]\)", question.answer):
            assert words in question.given.partition("your waits: ")[2]
        assert f"comes after instruction {one} `" in question.answer


def test_what_an_instruction_wins_by_its_place() -> None:
    given = find("order").rules(TERM)
    tiles = order.two_tiles(given)[1].tiles
    question, answer = asked("order", order.sooner, "order", tiles)
    a, b = (int(n) for n in re.findall(r"instruction (\d+) `", question.asked))
    assert a > b
    assert answer.index(a) < answer.index(b)
    moved = [n for n in answer if n != a]
    moved.insert(moved.index(b) + 1, a)
    took, best = (order.cycles(tiles, np.array(each)) for each in (moved, answer))
    assert f"the program take {took} cycles, not {best}." in question.answer
    assert question.answer.endswith(f"The reference: {best} cycles.")


@each([1, 2, 5])
def test_which_part_of_a_product_a_line_is(seed: int) -> None:
    layers: list[Any] = []
    model = tiling.fc(find("tiling").rules(TERM), 5, 12, 6)

    class Seen:
        def call(self, function: str, layer: Any, seconds: float | None = None) -> Any:
            layers.append(layer)
            return solution(find("tiling")).call(function, layer)

        def defines(self) -> tuple[str, ...]:
            return ()

        def text(self, name: str) -> str:
            return name

    tiling.compared(find("tiling").rules(TERM), model, Seen())
    question, lines = asked("tiling", tiling.multiplied, "lower_fc", layers[0], seed=seed)
    line = re.search(r"`(.*?)`", question.asked)[1]  # type: ignore[index]
    name, start, rows = re.search(r"ub=([\w.]+)\+(\d+) .*inner=(\d+)", line).groups()  # type: ignore[union-attr]
    level = next(k for k, each in enumerate(layers[0].levels) if each.buffer == name)
    tile = int(re.search(r"tile=(\d+)", "\n".join(lines[: lines.index(line) + 1][::-1]))[1])  # type: ignore[index]
    block = layers[0].levels[level].tiles.index(tile)
    told = f"Rows {start} to {int(start) + int(rows) - 1} of column block n={block}, level k={level}."
    assert question.answer.startswith(told)
    assert ("adds to a sum" in question.answer) == ("accumulate" in line)
    assert ("switched to." in question.answer) == ("switch" in line)


def test_how_an_element_becomes_an_integer() -> None:
    values, scale, zero = np.array([0.25, 1.25, -0.75, 0.1], np.float32), 0.5, 3
    for seed in range(1, 6):
        question, answer = asked("quantisation", quantisation.element, "quantise", values, scale, zero, seed=seed)
        place = int(re.search(r"element \[(\d)\]", question.asked)[1])  # type: ignore[index]
        exact = Fraction(float(values[place])) / Fraction(scale)
        assert exact % 1 == Fraction(1, 2), "a tie is asked about"
        assert question.answer.startswith(f"{answer[place]}: the quotient {float(exact):g} is a tie. Ties go ")
        assert question.answer.endswith(f"The reference: {answer[place]}.")


def test_what_a_defect_does_to_a_range() -> None:
    samples = np.random.default_rng(1).normal(0, 1, 3000).astype(np.float32)
    for wrong, wider in (("", False), ("least_and_largest", True)):
        question, _ = asked("quantisation", quantisation.defect, "calibrate", samples, wrong=wrong)
        parts = re.findall(r"integers from .*? to [^.]*\.\d+", question.answer)
        then, before = ([float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", part)] for part in parts)
        assert (then[1] - then[0] > 5 * (before[1] - before[0])) == wider


def test_what_became_of_a_node() -> None:
    graph = next(iter(passes.graphs(Random(2), find("passes").rules(TERM), "right", ("right",))))
    question, answer = asked("passes", passes.became, "fuse_bias", graph)
    name = re.search(r"`(\w+) = ", question.asked)[1]  # type: ignore[index]
    made = parse_graph(answer, "made.graph", ATTRIBUTES).by_name.get(name)
    assert question.answer.startswith(passes.GONE if made is None else made.op)


def test_what_a_short_call_returns() -> None:
    question, answer = asked("quantisation", returned, "parameters", -1.0, 3.0)
    assert question.given == "parameters(-1.0, 3.0)"
    assert eval(question.answer.partition("\n")[0]) == answer
    with pytest.raises(Exception, match="no question"):
        asked("quantisation", returned, "quantise", np.zeros(3000, np.float32), 1.0, 0)
