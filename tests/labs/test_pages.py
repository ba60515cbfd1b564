"""The pages that handouts name: they are there, archives for students have them, and no link in them leads nowhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tpucc.labs import labs
from tpucc.labs.lab import Lab, Term
from tpucc.labs.pages import PAGES, folder, named, pages
from tpucc.labs.start import starting_files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?://)([^)\s#]+)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

pytestmark = pytest.mark.annex


def texts(lab: Lab) -> list[str]:
    return list(starting_files(lab, Term("spring")).values())


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_an_archive_has_the_pages_that_a_handout_names_with_their_pictures(lab: Lab) -> None:
    names, there = named(texts(lab)), ["tpucc/rtl/element.py"]
    found = pages(names, there)
    assert names <= {path.removeprefix(f"{PAGES}/") for path in found}
    for name in names:
        text = found[f"{PAGES}/{name}"].decode()
        linked = {f"{PAGES}/{target}" for target in LINK.findall(text)}
        assert linked <= {*found, f"{PAGES}/../{there[0]}"}
        assert HEADING.findall(text) == HEADING.findall((folder() / name).read_text("utf-8"))
    assert sum(map(len, found.values())) < 200_000


@pytest.mark.parametrize("lab", [lab for lab in labs() if lab.needs], ids=lambda lab: lab.name)
def test_the_sections_that_a_handout_names_are_there(lab: Lab) -> None:
    sections = HEADING.findall((folder() / "rtl.md").read_text("utf-8"))
    (said,) = re.findall(r"read ((?:\*[^*]+\*(?: and |, )?)+) first", texts(lab)[0])
    assert re.findall(r"\*([^*]+)\*", said)
    assert set(re.findall(r"\*([^*]+)\*", said)) <= set(sections)


def test_a_link_to_what_an_archive_has_not_is_its_text() -> None:
    text = pages(["stages.md"], [])["docs/stages.md"].decode()
    assert "[Where buffers live](allocation.md)" in (folder() / "stages.md").read_text("utf-8")
    assert "\nWhere buffers live explains the task" in text
    assert "[by a program](#a-stage-in-another-language)" in text


def test_a_wheel_has_the_pages_that_handouts_name() -> None:
    names = named(text for lab in labs() for text in texts(lab))
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {path for path in included if path.startswith(f"{PAGES}/")} == set(pages(names, []))
    assert all(included[path] == f"tpucc/{path}" for path in pages(names, []))


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_the_extra_of_a_lab_has_the_packages_that_it_needs(lab: Lab) -> None:
    packages = [re.split(r"[^\w-]", line)[0] for line in PROJECT["project"]["optional-dependencies"][lab.extra]] if lab.extra else []
    assert packages == list(lab.needs)
