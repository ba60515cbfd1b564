"""Likeness within a class: copies are found whatever their names, comments and order; solutions of one's own aren't like each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cases import each
from tests.support.lab_solutions import reference
from tpucc.cli.main import main
from tpucc.labs import find
from tpucc.labs.lab import Term
from tpucc.labs.likeness import Group, groups_of, read_class
from tpucc.labs.likeness_page import likeness_page
from tpucc.labs.submissions import Variants

LAB = find("allocation")
TERM = Term("")
VARIANTS = Variants(LAB, TERM)
GREEDY = '''
import numpy as np
import tpucc


def overlap(lives, a, b):
    return lives.first[a] <= lives.last[b] and lives.first[b] <= lives.last[a]


def allocate(lives, rows):
    """Largest first, each at the lowest place."""
    starts = np.zeros(len(lives.rows), np.int64)
    done = []
    for buffer in sorted(range(len(lives.rows)), key=lambda index: -lives.rows[index]):
        row = 0
        moved = True
        while moved:
            moved = False
            for other in done:
                if overlap(lives, buffer, other) and starts[other] < row + lives.rows[buffer] and row < starts[other] + lives.rows[other]:
                    row = starts[other] + lives.rows[other]
                    moved = True
        starts[buffer] = row
        if row + lives.rows[buffer] > rows:
            raise tpucc.TooLarge
        done.append(buffer)
    return starts
'''
INTERVALS = '''
import numpy as np
import tpucc


def allocate(lives, rows):
    """A list of free intervals of rows, as time goes on."""
    free = [(0, rows)]
    held = {}
    starts = [0] * len(lives.rows)
    events = [(int(t), 1, i) for i, t in enumerate(lives.first)] + [(int(t) + 1, 0, i) for i, t in enumerate(lives.last)]
    for time, begins, index in sorted(events):
        if not begins:
            free.append(held.pop(index))
            free.sort()
            joined = [free[0]]
            for low, high in free[1:]:
                if joined[-1][1] == low:
                    joined[-1] = (joined[-1][0], high)
                else:
                    joined.append((low, high))
            free = joined
            continue
        size = int(lives.rows[index])
        fits = [(high - low, low, high) for low, high in free if high - low >= size]
        if not fits:
            raise tpucc.TooLarge
        width, low, high = min(fits)
        free.remove((low, high))
        if low + size < high:
            free.append((low + size, high))
        held[index] = (low, low + size)
        starts[index] = low
    return np.array(starts)
'''


def disguised(text: str) -> str:
    """The same with other names, comments, annotations and blank lines, and its functions the other way round."""
    head, *functions = re.split(r"\n\n\n(?=def )", text.strip())
    renamed = "\n\n\n".join([head, *reversed(functions)])
    for old, new in (
        ("buffer", "piece"),
        ("starts", "result"),
        ("moved", "again"),
        ("overlap", "clash"),
        ("row ", "place "),
        ("other", "rival"),
    ):
        renamed = re.sub(rf"\b{old.strip()}\b", new.strip(), renamed)
    return "# my own work\n" + re.sub(r'\n    """.*"""', "", renamed).replace(
        "\n    done = []", "\n    # what is placed\n    done: list = []"
    )


def class_of(folder: Path, **texts: str) -> list[Group]:
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / LAB.file).write_text(text)
    own, _ = read_class(VARIANTS, folder)
    return groups_of(own)


def test_a_disguised_copy_is_found_and_other_ideas_are_not(tmp_path: Path) -> None:
    own = LAB.filled(reference(LAB).read_text(), TERM)
    (group,) = class_of(tmp_path / "class", anna=GREEDY, ben=disguised(GREEDY), carl=INTERVALS, dora=own)
    assert group.names == ("anna", "ben")
    assert group.pairs[0].percent >= 90
    places = [(left.line, right.line) for left, right in group.pairs[0].common]
    assert len(places) >= 12
    assert any(left != right for left, right in places), "the order doesn't count"


def test_a_part_that_is_copied_is_found(tmp_path: Path) -> None:
    """The half of a solution, within another one."""
    half = INTERVALS + GREEDY.replace("def allocate", "def second").replace("import numpy as np\nimport tpucc\n", "")
    (group,) = class_of(tmp_path / "class", anna=GREEDY, ben=half, carl=LAB.filled(reference(LAB).read_text(), TERM))
    assert group.names == ("anna", "ben")


def test_fourteen_copies_are_one_group(tmp_path: Path) -> None:
    copies = {f"student{number:02}": f"# {number}\n{GREEDY}" for number in range(14)}
    (group,) = class_of(tmp_path / "class", **copies, other=INTERVALS)
    assert group.names == tuple(copies)
    assert [pair.percent for pair in group.pairs] == [100] * 13


def test_what_the_lab_gives_is_no_likeness(tmp_path: Path) -> None:
    """Skeletons that nobody changed, and a line of one's own in each."""
    begun = dict(LAB.files(TERM))[LAB.file]
    assert class_of(tmp_path / "class", anna=begun, ben=begun + "\nMINE = 1\n", carl=begun + "\nMINE = 1\n") == []


def test_submissions_of_earlier_terms_are_compared_with_this_term_s(tmp_path: Path) -> None:
    for place, names in (("class", {"anna": GREEDY, "carl": INTERVALS}), ("spring", {"old": disguised(GREEDY), "older": GREEDY})):
        for name, text in names.items():
            (tmp_path / place / name).mkdir(parents=True)
            (tmp_path / place / name / LAB.file).write_text(text)
    own, earlier = read_class(VARIANTS, tmp_path / "class", [tmp_path / "spring"])
    (group,) = groups_of(own, earlier)
    assert group.names == ("anna", "spring/old", "spring/older")
    assert {pair.one.name for pair in group.pairs} == {"anna"}, "two of earlier terms aren't compared"


@each(
    [
        ("exec(open('x').read())", "uses exec"),
        ("run = eval", "uses eval"),
        ("import base64", "imports base64"),
        ("from importlib import import_module", "imports importlib"),
        (f"DATA = {'ab12' * 100!r}", "has a text of 400 characters"),
        (f'TEXT = """{"words of a docstring, which are prose " * 12}"""', ""),
        ("def f(:", "is no Python"),
        ("\n".join(f"Z = [{n}]" for n in range(2000)), "of which the first 1,500 are compared"),
    ]
)
def test_what_is_unusual_is_named_with_its_line(line: str, remark: str, tmp_path: Path) -> None:
    folder = tmp_path / remark.replace(" ", "_")
    class_of(folder, anna=f"{GREEDY}\n{line}\n")
    own, _ = read_class(VARIANTS, folder)
    assert [remark in said for said in own[0].remarks] == [True] * len(own[0].remarks)
    assert bool(own[0].remarks) == bool(remark)


@each(
    [
        ("a mark of the byte order", "\ufeff" + GREEDY),
        ("another encoding", "# coding: latin-1\n" + GREEDY),
        ("annotations", re.sub(r"(?m)^( +)(\w+) = ", r"\1\2: object = ", GREEDY)),
        ("form feeds in a comment", "# a\f b\n" + GREEDY),
    ]
)
def test_disguises_that_cost_nothing_hide_nothing(title: str, text: str, tmp_path: Path) -> None:
    folder = tmp_path / title.replace(" ", "_")
    (group,) = class_of(folder, anna=GREEDY, ben=text, carl=INTERVALS)
    assert group.names == ("anna", "ben")
    (pair,) = group.pairs
    assert pair.percent >= 90
    shown = [(left, right) for left, right in pair.common if left.text == right.text]
    assert pair.other.lines is not None
    assert all("starts[buffer] = row" in pair.other.lines[right.file, right.line] for left, right in shown if left.line == 27)


@each(
    [
        ("a number of many digits", "X = 0x" + "f" * 6000),
        ("branches without end", "if X:\n    pass\n" + "".join(f"elif X == {n}:\n    pass\n" for n in range(1500))),
        ("brackets without end", "X = " + "(" * 3000 + ")" * 3000),
        ("bytes of no encoding", "# coding: idna\n"),
    ]
)
def test_a_submission_that_cannot_be_compared_stops_nobody(title: str, text: str, tmp_path: Path) -> None:
    groups = class_of(tmp_path / title.replace(" ", "_"), anna=GREEDY, ben=disguised(GREEDY), eve=text)
    assert [group.names for group in groups] == [("anna", "ben")]


def test_labs_of_texts_are_compared_by_their_lines(tmp_path: Path) -> None:
    lab = find("puzzles")
    lines = "\n".join(f"read_host_memory host={8 * n} ub={n} rows={n + 1}" for n in range(20))
    for name, text in (
        ("anna", lines),
        ("ben", re.sub(r"host=(\d+) (ub=\d+)", lambda found: f"{found[2]}   host={int(found[1]):#x}", lines) + " ; mine"),
        ("carl", lines.replace("rows=", "rows=1")),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p1.asm").write_text(text)
    own, _ = read_class(Variants(lab, TERM), tmp_path)
    (group,) = groups_of(own)
    assert group.names == ("anna", "ben")


@pytest.mark.soak
def test_the_command_writes_a_page_that_shows_the_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"anna": GREEDY, "ben <b>": disguised(GREEDY), "carl": INTERVALS + "\nexec('1')\n"}
    for name, text in names.items():
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / LAB.file).write_text(text)
    page = tmp_path / "likeness.html"
    given = ["lab", "grade", str(tmp_path / "class"), "--lab", "5", "--all", "--trust", "--seed", str(10**12), "--jobs", "1"]
    assert main([*given, "--likeness", str(page)]) == 0
    assert "1 group of submissions that are alike" in capsys.readouterr().out
    text = page.read_text()
    for words in ("anna and ben &lt;b&gt;", "never a verdict", "uses exec", "allocation.py:", "done.append(buffer)"):
        assert words in text
    assert "<b>" not in text.replace("<b>allocation.py", "")
    own, _ = read_class(VARIANTS, tmp_path / "class")
    assert likeness_page(LAB, TERM, own, groups_of(own), 0) == text, "the same bytes again"


@each(
    [
        (["--likeness", "x.html"], "--likeness compares the submissions of a class"),
        (["--all", "--earlier", "."], "--earlier says with which"),
    ]
)
def test_options_without_their_others_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "grade", ".", "--lab", "5", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
