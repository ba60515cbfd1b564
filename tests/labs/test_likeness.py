"""Submissions that are nearly tpucc's own text are named for instructors, and no others are."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic

import pytest

from tests.support.cases import one_of
from tests.support.lab_solutions import files_of, mistakes, reference
from tpucc.guest.jails import NONE
from tpucc.labs import find, labs
from tpucc.labs.classes import Row, as_csv
from tpucc.labs.grading import check, grade
from tpucc.labs.lab import AS_WRITTEN, Lab, Term
from tpucc.labs.likeness import MOST, _functions_of, likeness
from tpucc.labs.results import as_json

OWN = Path(find(0).folder).parent


def like(lab: Lab, text: str) -> tuple[str, ...]:
    return likeness(lab, {lab.file: text.encode()})


@pytest.mark.long
@pytest.mark.parametrize("lab", one_of(3, labs()), ids=lambda lab: lab.name)
def test_solutions_of_their_own_are_like_the_reference_alone(lab: Lab) -> None:
    """Right and wrong ones; what a student begins with is like nothing. A reference is found where a function is long enough."""
    own = f"like tpucc/labs/{lab.name}/material/reference.py: "
    for path in (reference(lab), *mistakes(lab)):
        files = {name: lab.filled(text, Term("spring")).encode() for name, text in files_of(lab, path).items()}
        said = likeness(lab, files)
        assert all(words.startswith(own) for words in said), path.stem
        assert bool(said) or path != reference(lab) or not list(_functions_of(files))
    assert likeness(lab, {name: text.encode() for name, text in lab.files(AS_WRITTEN).items()}) == ()


@pytest.mark.parametrize(
    ("lab", "path"),
    [
        ("front_end", "labs/front_end/material/reference.py"),
        ("passes", "labs/passes/material/reference.py"),
        ("quantisation", "numerics.py"),
        ("allocation", "schedule/allocate.py"),
        ("order", "labs/order/material/reference.py"),
        ("waits", "schedule/synchronise.py"),
        ("break_it", "labs/break_it/material/reference.py"),
    ],
)
def test_a_copy_with_other_names_and_comments_is_named(lab: str, path: str) -> None:
    text = (OWN.parent / path).read_text("utf-8")
    renamed = re.sub(r"\b(found|rules|program|work|node|value|each|taken|rounded|low)\b", r"my_\1", text)
    (told,) = [words for words in like(find(lab), f"# mine\nMORE = 1\n{renamed}") if f"tpucc/{path}:" in words]
    equal, of = map(int, re.findall(r"\d+", told.partition(": ")[2]))
    assert of - max(1, of // 10) <= equal <= of


@pytest.mark.parametrize(
    "text",
    [
        "def f(:",
        "(" * 90_000,
        "-" * 90_000 + "1",
        "a" + ".b" * 45_000,
        "if a: pass\n" + "elif a: pass\n" * 7_000,
        "\0",
        "def f():\n" + " x = 1\n" * 2 * MOST,
        "def f():\n" + " x = [1, 2]\n" * MOST + "def g():\n x = 1\n" * 100,
        "#" * 200_000,
        "# coding: punycode\n" + "é" * 40_000,
        "# coding: latin-1\n" + "é = 1\n" * 10_000,
    ],
    ids=range(11),
)
def test_a_file_that_is_hard_to_read_is_like_nothing(text: str) -> None:
    begun = monotonic()
    assert like(find("order"), text) == ()
    assert monotonic() - begun < 5


@pytest.mark.long
@pytest.mark.usefixtures("made_before")
def test_the_hint_is_for_instructors(tmp_path: Path) -> None:
    """It changes no points, and is in no results that students read."""
    lab = find("allocation")
    (tmp_path / lab.file).write_text((OWN.parent / "schedule" / "allocate.py").read_text("utf-8").replace("def allocate", "def other"))
    done = grade(lab, tmp_path, AS_WRITTEN, 1, NONE, only=[lab.public(AS_WRITTEN)[0].name])
    (words,) = done.like
    assert words.startswith("like tpucc/schedule/allocate.py: ")
    assert "like" not in as_json(done)["extra_data"]
    told = as_json(done, details=True)
    assert told["extra_data"]["like"] == [words]
    assert as_csv([Row("ada", told)]).splitlines()[1].endswith(f',"{words}"')
    assert check(lab, tmp_path).like == ()
