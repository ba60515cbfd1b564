"""The pages of `tpucc explain`: complete, and their programs show what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tpucc
from tpucc.explain import codes, explain

PACKAGE = Path(tpucc.__file__).parent
PROGRAM = re.compile(r"## (Wrong|Mended)\n\n```tpu\n(.*?)```", re.DOTALL)
PAGES = {code: text for code in codes() if (text := explain(code)) is not None}
SHOWN = [code for code, text in PAGES.items() if PROGRAM.search(text)]


def emitted() -> set[str]:
    """Every code that stands in the package's own files as a string."""
    text = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    return set(re.findall(r'"([EVW]\d{4})"', text)) | set(re.findall(r"error (E\d{4})", text))


def errors_of(source: str, cores: int) -> list[str]:
    """The codes of the errors, or else of the warnings."""
    try:
        made = tpucc.compile_source(source, cores=cores).compilation
    except tpucc.Error as error:
        return [d.code for d in error.diagnostics]
    assert made is not None
    assert made.model is not None
    return [d.code for d in made.model.warnings]


def test_every_code_that_can_be_emitted_has_a_page() -> None:
    assert emitted() - set(PAGES) == set()


def test_every_page_is_of_a_code_that_can_be_emitted() -> None:
    assert set(PAGES) - emitted() == set()


def test_no_two_pages_have_one_title() -> None:
    titles = [text.splitlines()[0].partition(": ")[2] for code, text in PAGES.items() if code.startswith("E0") and code < "E05"]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("code", PAGES)
def test_a_page_has_a_title_and_some_words(code: str) -> None:
    head, _, body = PAGES[code].partition("\n")
    assert head.startswith(f"# {code}: ")
    assert len(body.split()) >= 4


@pytest.mark.parametrize("code", SHOWN)
def test_the_programs_of_a_page(code: str) -> None:
    programs = dict(PROGRAM.findall(PAGES[code]))
    option = re.search(r"`--cores (\d+)`", PAGES[code])
    cores = int(option[1]) if option else 1
    assert set(errors_of(programs["Wrong"], cores)) == {code}
    assert errors_of(programs["Mended"], cores) == []


def test_unknown_codes_have_no_page() -> None:
    assert explain("E9999") is None
    assert explain("../__init__") is None
