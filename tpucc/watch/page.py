"""The page of `tpucc watch`: an editor with the source, and beside it, in a frame, the report that follows it.

The editor is CodeMirror where the archive `EDITOR` is: `make editor` fetches it, and a wheel has it if it was there. Without it the editor
is a text area. Both have the same interface (`editor.js`, `plain.js`).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tpucc.diagnostics import printable
from tpucc.language.words import STATEMENTS, TOP_LEVEL
from tpucc.ops import INTERNAL, OPS
from tpucc.see.kit import page_template
from tpucc.see.palette import theme
from tpucc.see.svg import escaped
from tpucc.watch.loopback import HTML, Content, content_of

FOLDER = Path(__file__).parent / "page"
EDITOR = FOLDER / "codemirror.zip"
"""Modules of CodeMirror, their licences, and `imports.json`: the file of each module by the name that scripts import it by."""
IMPORTS = "imports.json"
PARTS = "/page/"
SCRIPTS = ("page.js", "editor.js", "plain.js", "boxes.js")
STYLES = ("editor.css", "page.css")
WORDS = ("and", "or", "not", "in", "range", "True", "False")
NUMBERS = ("f32", "i8", "i16", "i32")


def page(name: str) -> Mapping[str, Content]:
    """The page for a source of this name, and its parts, by their paths."""
    parts = dict(_parts())
    imports = {"editor": f".{PARTS}plain.js"}
    if f"{PARTS}{IMPORTS}" in parts:
        found = json.loads(parts[f"{PARTS}{IMPORTS}"].body)
        imports = {"editor": f".{PARTS}editor.js"} | {word: f".{PARTS}{file}" for word, file in found.items()}
    text = page_template(__package__, "page/page.html").substitute(
        head=head(f"{printable(name)} – tpucc watch", imports, PARTS[1:]),
        name=escaped(printable(name)),
        words=json.dumps(language()),
    )
    return parts | {"/": Content(HTML, text.encode())}


def head(title: str, imports: Mapping[str, str], parts: str = "") -> str:
    """What a page with an editor has in its head: `imports` are the modules' addresses, `parts` is the folder of the style sheet."""
    given = {"title": escaped(title), "theme": theme(), "imports": json.dumps({"imports": imports}), "parts": parts}
    return page_template(__package__, "page/head.html").substitute(given)


def language() -> dict[str, list[str]]:
    """The words that an editor colours."""
    return {"keywords": [*TOP_LEVEL, *STATEMENTS, *WORDS], "functions": sorted(set(OPS) - INTERNAL), "types": list(NUMBERS)}


def _parts() -> Iterator[tuple[str, Content]]:
    for name in (*SCRIPTS, *STYLES):
        yield _part(name, (FOLDER / name).read_bytes())
    if EDITOR.is_file():
        with zipfile.ZipFile(EDITOR) as archive:
            yield from (_part(name, archive.read(name)) for name in archive.namelist())


def _part(name: str, body: bytes) -> tuple[str, Content]:
    return PARTS + name, content_of(name, body)
