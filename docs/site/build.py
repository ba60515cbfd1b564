"""Builds the book as a site: `make site`. Any fault fails it: a page that isn't what the code says, a broken link, a missing or unused
picture.

The pages are those of docs/, in the order of docs/README.md. The live pages in them (a report, waves to step through) are made anew. The
site asks no other one for anything.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
WORK, SITE = ROOT / "build" / "site-pages", ROOT / "build" / "site"
LINK = re.compile(r"\]\((?P<to>[^)#\s]+\.md)(?P<part>#[^)\s]*)?\)")
LIVE = {
    "report.html": ("report", "programs/05_digits_cnn.tpu", "-o"),
    "waves.html": ("systolic", "-o"),
}
"""Pages that tpucc writes itself, and how."""
EMBED = re.compile(r"^<!-- live (?P<file>[\w.-]+): (?P<title>.+) -->$", re.MULTILINE)
SOURCE = re.compile(r"^\[`(?P<path>tpucc/[\w/]+\.py)`\]\(\.\./(?P=path)\)$", re.MULTILINE)
"""A link to a file of the code that is a paragraph of its own: the site shows the file, whole."""
PLAYGROUND = "<!-- the playground -->"
"""Where a page leads to the playground, which `docs/playground/build_playground.py` puts beside the book."""
OUTSIDE = re.compile(r"\[(?P<words>[^\]]+)\]\((?:\.\./)+(?:programs|tests|tpucc|benchmarks)/[^)]+\)")
"""Links to the repository's other files, which the site doesn't have."""


def main() -> int:
    """Lays out, checks and builds. Returns the exit status."""
    subprocess.run([sys.executable, str(DOCS / "generate.py"), "--check", *sys.argv[1:]], check=True)
    faults = [*unused_pictures(), *unlisted_pages()]
    lay_out()
    for fault in faults:
        print(fault, file=sys.stderr)
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html", str(WORK), str(SITE)]
    if subprocess.run(words, check=False).returncode or faults:
        return 1
    print(f"{SITE.relative_to(ROOT)}/index.html")
    return 0


def pages() -> list[Path]:
    """The pages of the book: all of docs/ but the solutions and the examinations, which `conf.py` leaves out too."""
    return sorted(path for path in DOCS.rglob("*.md") if not {"site", "solutions", "exams.md"} & set(path.relative_to(DOCS).parts))


def unused_pictures() -> Iterator[str]:
    """Pictures that no page shows."""
    texts = "\n".join(path.read_text("utf-8") for path in (*pages(), ROOT / "README.md"))
    yield from (f"{path.relative_to(ROOT)} is shown on no page" for path in sorted((DOCS / "pictures").iterdir()) if path.name not in texts)


def unlisted_pages() -> Iterator[str]:
    """Pages that docs/README.md doesn't lead to."""
    listed = {DOCS / found["to"] for found in LINK.finditer((DOCS / "README.md").read_text("utf-8"))}
    single = [path for path in pages() if path.parent == DOCS or path.parent.name in ("reference", "instructors")]
    yield from (f"{path.relative_to(ROOT)} is not in docs/README.md" for path in single if path not in listed and path.name != "README.md")


def lay_out() -> None:
    """Writes Sphinx's sources: the pages, with the contents that the first one lists, and what is live."""
    for folder in (WORK, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, WORK, ignore=shutil.ignore_patterns("site", "playground", "solutions", "__pycache__", "*.py"))
    shutil.copytree(DOCS / "stages", WORK / "stages", dirs_exist_ok=True)
    shutil.copyfile(DOCS / "site" / "conf.py", WORK / "conf.py")
    (WORK / "_static").mkdir()
    for name in ("tpucc.css", "icon.svg"):
        shutil.copyfile(DOCS / "site" / name, WORK / "_static" / name)
    (WORK / "live" / "live").mkdir(parents=True)
    for name, (command, *arguments) in LIVE.items():
        words = [sys.executable, "-m", "tpucc", command, *arguments, str(WORK / "live" / "live" / name)]
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    for page in WORK.rglob("README.md"):
        page.rename(page.with_name("index.md"))
    for page in WORK.rglob("*.md"):
        page.write_text(prepared(page), "utf-8")


def prepared(page: Path) -> str:
    """A page as Sphinx reads it: with what is live in a frame, and the first one with the table of contents."""
    text = page.read_text("utf-8")
    up = "../" * len(page.relative_to(WORK).parents[:-1])
    frame = rf'<iframe class="live" src="{up}live/\g<file>" title="\g<title>" loading="lazy"></iframe>'
    text = EMBED.sub(rf'{frame}\n<p><a href="{up}live/\g<file>">\g<title>, on a page of its own</a></p>', text)
    listing = f"`\\g<path>`\n\n```{{literalinclude}} {up}../../\\g<path>\n:language: python\n:lineno-match:\n```"
    text = SOURCE.sub(listing, text)
    text = text.replace(PLAYGROUND, f'<p><a href="{up}playground/index.html">Open the playground</a></p>')
    text = OUTSIDE.sub(r"\g<words>", text).replace("](README.md", "](index.md").replace("/README.md", "/index.md")
    return f"{text}\n{contents()}" if page == WORK / "index.md" else text


def contents() -> str:
    """The table of contents, hidden on the page and shown beside every one: a part for each heading of docs/README.md."""
    parts, caption = [], ""
    lines: list[str] = []
    for line in (DOCS / "README.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            parts.append((caption, lines))
            caption, lines = line[3:], []
        lines += [found["to"].replace("README.md", "index.md") for found in LINK.finditer(line)]
        lines += re.findall(r"\]\(([\w/.-]+\.ipynb)\)", line)
    parts.append((caption, lines))
    trees = (_tree(caption or "The book", lines) for caption, lines in parts if lines)
    return "\n\n".join((*trees, _tree("Decisions", ["decisions/*"])))


def _tree(caption: str, lines: list[str]) -> str:
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n:glob:\n\n" + "\n".join(lines) + "\n```"


if __name__ == "__main__":
    sys.exit(main())
