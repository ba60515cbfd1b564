"""Makes slides of the book's chapters: `make slides`, a page for each chapter that the twelve weeks of docs/instructors/README.md read.

A slide is a part of a section that fits one. Slides show lists, tables, programs, pictures and short paragraphs whole. Of a longer
paragraph they show the first sentence, those that define a term, and conclusions with what they rest on. The whole text stands in the notes
below the slide. Each question has its own slide, with the answer in the notes. Pages need no network and no other file, so links are text.
"""

from __future__ import annotations

import base64
import html
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

DOCS = Path(__file__).resolve().parents[1]
SLIDES = DOCS.parent / "build" / "slides"
WEEK = re.compile(r"^\| (?P<number>\d+) \| (?P<lecture>[^|]+) \| (?P<reading>[^|]+) \|", re.MULTILINE)
CHAPTER = re.compile(r"\]\(\.\./(?P<page>[\w-]+)\.md")
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z*`])")
TOLD = re.compile(r"^So |(?<!\*)\*[A-Za-z][^*]*\*(?!\*)")
"""A conclusion, or the definition of a term, which the book sets in italics."""
LEANS = re.compile(r"^(?:So|Then|Therefore|Instead|Otherwise|After that|But|This|That|These|Those|It|They|Both|Here|There)\b")
"""How a sentence begins that needs the sentence before it."""
FOLDED = re.compile(r"<details><summary>(?P<question>.*?)</summary>\s*(?P<answer>.*?)</details>", re.DOTALL)
UNSEEN = re.compile(r"^<!--.*?-->$|<a id=[^>]*></a>", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
LINES = 13
"""The lines of a slide."""
FIGURE = LINES - 2
"""The lines of a picture, and at most of a table or a program: there is room for a sentence before it."""
WIDTH = 88
"""The characters of a line."""
PROGRAM, ROWS = 24, 10
"""The lines of a program, and the rows of a table, above which it goes on on the next slide."""
SHORT = 330
"""The characters of a paragraph that is shown whole."""
KEYS = "→ and ← turn slides, N shows the notes. Printed, each slide is a page; with the notes shown, they follow it."
PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{style}</style><body>{body}<script>{script}</script></body></html>
"""
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, slots=True)
class Part:
    """What a slide shows of a block, as HTML; the lines that it takes; whether it is words, which may introduce the next part."""

    shown: str
    lines: int
    words: bool = False


@dataclass(slots=True)
class Slide:
    """A heading, what is shown below it, and the notes as HTML."""

    heading: str
    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        return sum(part.lines for part in self.parts)


def main() -> int:
    """Writes the decks, and a page that lists them by weeks. Returns the exit status."""
    shutil.rmtree(SLIDES, ignore_errors=True)
    SLIDES.mkdir(parents=True)
    pages = decks()
    for name, text in pages.items():
        (SLIDES / f"{name}.html").write_text(text, "utf-8")
    print(f"{SLIDES.relative_to(DOCS.parent)}/index.html: {len(pages) - 1} decks")
    return 0


def decks() -> dict[str, str]:
    """The pages by their names: a deck for each chapter, and `index`, which lists them by weeks."""
    plan = (DOCS / "instructors" / "README.md").read_text("utf-8").partition("\n## Twelve weeks\n")[2].partition("\n## ")[0]
    weeks = list(WEEK.finditer(plan))
    made, rows = {}, {}
    for name in dict.fromkeys(name for week in weeks for name in CHAPTER.findall(week["reading"])):
        title, slides = deck(DOCS / f"{name}.md")
        made[name] = page(title, slides)
        rows[name] = f'<a href="{name}.html">{html.escape(title)}</a> ({len(slides)})'
    return {"index": index(weeks, rows), **made}


def deck(path: Path) -> tuple[str, list[Slide]]:
    """The title and the slides of a chapter."""
    tree = SyntaxTreeNode(MARKDOWN.parse(FOLDED.sub(_unfolded, UNSEEN.sub("", path.read_text("utf-8")))))
    title, slides = "", [Slide("")]
    for node in tree.children:
        if node.type == "heading" and node.tag == "h1":
            title = text_of(node)
            slides[-1].heading = title
        elif node.type == "heading":
            slides.append(Slide(text_of(node)))
        else:
            add(slides, node, path.parent)
    return title, [slide for slide in slides if slide.parts or slide.notes]


def _unfolded(found: re.Match[str]) -> str:
    """A question with a folded answer as a section: the answer, quoted, goes to the notes alone."""
    quoted = found["answer"].strip().replace("\n", "\n> ")
    question = re.sub(r"</?code>", "`", found["question"])
    return f"### {question}\n\n> {quoted}\n"


def add(slides: list[Slide], node: SyntaxTreeNode, folder: Path) -> None:
    """Puts a block on slides, and in the notes of the last of them."""
    if node.type == "blockquote":
        slides[-1].notes.append(rendered(node, folder))
        return
    listed = node.type.endswith("_list")
    for at, block in enumerate(node.children if listed else [node], 1):
        mark = f"{at}." if node.type == "ordered_list" else "•"
        for part in outline(block, mark, folder, whole=listed or len(slides) == 1):
            place(slides, part)
        slides[-1].notes.append(rendered(block, folder))


def place(slides: list[Slide], part: Part) -> None:
    """Puts a part on the last slide, or on a new one."""
    slide = slides[-1]
    if slide.parts and slide.lines + part.lines > LINES:
        last = slide.parts[-1]
        carried = [slide.parts.pop()] if not part.words and last.words and len(slide.parts) > 1 and last.lines + part.lines <= LINES else []
        slide = Slide(slide.heading, carried)
        slides.append(slide)
    slide.parts.append(part)


def outline(block: SyntaxTreeNode, mark: str, folder: Path, whole: bool) -> Iterator[Part]:
    """What slides show of a block. With `whole` it is all of a paragraph."""
    if block.type in ("fence", "code_block"):
        lines = block.content.splitlines()
        for start in range(0, len(lines), PROGRAM):
            some = lines[start : start + PROGRAM]
            yield Part(f"<pre>{html.escape(chr(10).join(some))}</pre>", min(len(some) * 2 // 3 + 1, FIGURE))
    elif block.type == "table":
        head, *rows = ROW.findall(rendered(block, folder))
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            yield Part(f"<table>{head}{''.join(some)}</table>", min(len(some) + 2, FIGURE))
    elif any(found.type == "image" for found in block.walk()):
        yield Part(rendered(block, folder), FIGURE)
    else:
        source = next((found.content for found in block.walk() if found.type == "inline"), "").replace("\n", " ")
        said = source if whole or len(source) <= SHORT else shortened(source)
        spans = MARKDOWN.renderInline(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", said))
        yield Part(f'<p class="point"><b>{mark}</b> {spans}</p>', -(-len(said) // WIDTH), words=True)


def shortened(source: str) -> str:
    """The first sentence of a paragraph, those that are `TOLD`, and those before them on which they lean."""
    texts = SENTENCE.split(source)
    told = {at for at, text in enumerate(texts) if at == 0 or TOLD.search(text)}
    for at in range(len(texts) - 1, 0, -1):
        if at in told and LEANS.search(texts[at]):
            told.add(at - 1)
    return " ".join(texts[at] for at in sorted(told))


def text_of(node: SyntaxTreeNode) -> str:
    return "".join(found.content for found in node.walk() if found.type in ("text", "code_inline"))


def rendered(node: SyntaxTreeNode, folder: Path) -> str:
    """The HTML of a block: pictures are in it, and links are text."""
    made = MARKDOWN.renderer.render(node.to_tokens(), MARKDOWN.options, {})
    made = re.sub(r"<a [^>]*>(.*?)</a>", r"\1", made, flags=re.DOTALL)
    return re.sub(r'src="([^"]+)"', lambda found: f'src="{data_of(folder / found[1])}"', made)


def data_of(path: Path) -> str:
    kind = {".svg": "image/svg+xml", ".png": "image/png"}[path.suffix]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def page(title: str, slides: list[Slide]) -> str:
    """A deck as one page. A heading that slides share is numbered."""
    parts: list[str] = []
    for _, group in groupby(slides, key=lambda slide: slide.heading):
        same = list(group)
        for at, slide in enumerate(same, 1):
            level = "h2" if parts else "h1"
            heading = f"<{level}>{html.escape(slide.heading)}{f' <small>{at} of {len(same)}</small>' if len(same) > 1 else ''}</{level}>"
            shown = f'<div class="shown">{"".join(part.shown for part in slide.parts)}</div>'
            footer = f"<footer>{html.escape(title)} · {len(parts) + 1} of {len(slides)}</footer>"
            notes = f"<aside>{''.join(slide.notes)}</aside>"
            parts.append(f'<section><div class="slide">{heading}{shown}{footer}</div>{notes}</section>')
    return PAGE.format(title=html.escape(title), body="\n".join(parts), style=beside("css"), script=beside("js"))


def beside(ending: str) -> str:
    return Path(__file__).with_suffix(f".{ending}").read_text("utf-8")


def index(weeks: list[re.Match[str]], rows: dict[str, str]) -> str:
    lines = [
        f'<p class="point"><b>{week["number"]}.</b> {html.escape(week["lecture"])}<br>'
        + ", ".join(rows[name] for name in dict.fromkeys(CHAPTER.findall(week["reading"])))
        + "</p>"
        for week in weeks
    ]
    keys = f"<p>The numbers of slides are in brackets. {KEYS}</p>"
    body = f'<section class="now contents"><h1>Slides by weeks</h1>{"".join(lines)}{keys}</section>'
    return PAGE.format(title="Slides of the book", body=body, style=beside("css"), script="")


if __name__ == "__main__":
    sys.exit(main())
