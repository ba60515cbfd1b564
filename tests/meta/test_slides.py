"""`make slides`: all of a chapter stands in its deck, and a deck is a page by itself."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import slides  # noqa: E402

pytestmark = pytest.mark.annex
CHAPTER = """\
# A title

One sentence. Another one.

## A section

The first sentence. A *term* is defined here. More is said. So this follows.

<a id="x"></a>Also.

| a | b |
|---|---|
| 1 | 2 |

1. First, with [a link](other.md). Details.
2. Second.

## Questions

<details><summary>1. Is <code>x</code> seen?</summary>

Only its question.
</details>

<details><summary>2. And y?</summary>No.</details>
"""


def words_of(markup: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", markup)))


def test_slides_have_the_words_figures_and_questions_of_a_chapter(tmp_path: Path) -> None:
    (tmp_path / "chapter.md").write_text(CHAPTER, "utf-8")
    title, deck = slides.deck(tmp_path / "chapter.md")
    assert (title, [slide.heading for slide in deck]) == ("A title", ["A title", "A section", "1. Is x seen?", "2. And y?"])
    shown = [words_of("".join(part.shown + " " for part in slide.parts)).strip() for slide in deck]
    section = "• The first sentence. A term is defined here. More is said. So this follows. • Also. a b 1 2 "
    assert shown == ["• One sentence. Another one.", section + "1. First, with a link. Details. 2. Second.", "", ""]
    notes = [words_of(" ".join(slide.notes)) for slide in deck]
    assert all(text in notes[1] for text in ("More is said.", "Details."))
    assert ["Only its question." in notes[2], "No." in notes[3]] == [True, True]


def test_a_long_paragraph_is_shortened_to_what_stands_alone() -> None:
    told = "One. Left out. A *term* is this. Left out too. A reason. So it follows. The end."
    assert slides.shortened(told) == "One. A *term* is this. A reason. So it follows."
    assert slides.shortened("One. Two. It is so. This is *named*. End.") == "One. Two. It is so. This is *named*."


def test_what_does_not_fit_goes_on_and_takes_the_words_before_a_figure_with_it(tmp_path: Path) -> None:
    lines = "\n".join(f"line {at}" for at in range(30))
    rows = "\n".join(f"| row {at} |" for at in range(14))
    text = f"# T\n\nA.\n\n## S\n\nBefore.\n\nBetween.\n\nThis prints it:\n\n```text\n{lines}\n```\n\n| head |\n|---|\n{rows}\n"
    (tmp_path / "chapter.md").write_text(text, "utf-8")
    _, deck = slides.deck(tmp_path / "chapter.md")
    shown = [[words_of(part.shown).strip() for part in slide.parts] for slide in deck[1:]]
    assert {slide.heading for slide in deck[1:]} == {"S"}
    assert shown[0] == ["• Before.", "• Between."]
    assert shown[1][0] == "• This prints it:"
    assert shown[1][1].endswith("line 23")
    assert [words.count("line") + words.count("row") for part in shown[2:] for words in part] == [6, 10, 4]
    assert all(words.startswith("head") for part in shown[3:] for words in part)


def test_each_week_has_the_decks_of_its_reading() -> None:
    pages = slides.decks()
    contents = pages.pop("index")
    assert re.findall(r"<b>(\d+)\.</b>", contents) == [*list("123456789"), "10", "11", "12"]
    assert set(re.findall(r'href="([\w-]+)\.html"', contents)) == pages.keys()
    for name, page in pages.items():
        chapter = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        assert page.count("<img") >= len(re.findall(r"!\[", chapter)), name
        assert page.count("<section>") > chapter.count("\n## "), name
        assert all(address.startswith("data:image/") for address in re.findall(r'(?:src|href)="([^"]*)"', page)), name
