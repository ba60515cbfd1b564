"""Every block of the README and of the book's pages runs as a reader types it, page by page, or its language says that it is only shown.

| language | what happens here |
|---|---|
| `tpu` | compiled; when the paragraph before names a file, it is written under that name for the commands that follow |
| `python` | run, in one namespace a page, where what it imports is installed; one that a paragraph names as a file is written too |
| `sh` | each command is run; `tpucc watch`, which never ends, and commands of other programs are looked at only |
| `text` | shown; below "prints", what the Python block before it prints; below `$ tpucc …`, what `docs/generate.py` made |
| `diff` | shown here; tests/unit/test_worked.py applies it |
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.command_line import run

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w/-]+\.(?:tpu|py|toml))`[^`]*\Z")
RUN, SHOWN = {"tpu", "python", "sh"}, {"text", "diff", "javascript", "verilog"}
FRAMEWORKS = {"keras", "skl2onnx", "sklearn", "torch"}
OTHERS = {"source", "make", "python", "pip", "cd", "git"}


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    before: str
    """The paragraph before it."""

    @property
    def file(self) -> str | None:
        """The file that the paragraph before says to put the block into."""
        found = NAMED.search(self.before)
        return found[1] if found and found[1].endswith("." + {"python": "py"}.get(self.language, self.language)) else None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in BLOCK.finditer(text):
        yield Block(found[1], found[2], text[: found.start()].strip().rpartition("\n\n")[2])


BLOCKS = [(page, block) for page in PAGES for block in blocks(page)]
TYPED = [page for page in PAGES if any(block.language in RUN for block in blocks(page))]


def test_every_block_says_its_language() -> None:
    assert {block.language for _, block in BLOCKS} <= RUN | SHOWN
    assert len(TYPED) >= 7


def test_what_is_only_shown_is_no_command() -> None:
    """What a command prints may name another one."""
    shown = [block.text for _, block in BLOCKS if block.language == "text" and not block.text.startswith("$ tpucc")]
    assert [text for text in shown if re.search(r"^(tpucc|import|from) ", text, re.MULTILINE)] == []


def test_the_page_of_stages_shows_the_file_that_it_names() -> None:
    (shown,) = [block.text for block in blocks(ROOT / "docs/stages.md") if block.language == "python"]
    assert shown in (ROOT / "docs/stages/first_fit.py").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with what a page expects of the project's."""
    for name in ("programs", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody types more
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as Python has it in the folder that it is started in
    return tmp_path


@pytest.mark.parametrize("page", one_of(2, TYPED), ids=lambda page: page.stem)
def test_a_page_as_it_is_typed(page: Path, folder: Path) -> None:
    namespace: dict[str, Any] = {}
    printed = ""
    for block in blocks(page):
        if block.language in RUN:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                type_in(block, folder, namespace)
            printed = stream.getvalue()
        elif block.before.endswith("prints"):
            assert block.text == printed


def type_in(block: Block, folder: Path, namespace: dict[str, Any]) -> None:
    if block.file:
        (folder / block.file).parent.mkdir(exist_ok=True)
        (folder / block.file).write_text(block.text, "utf-8")
    if block.language == "tpu":
        tpucc.compile_source(block.text, folder=folder)
    elif block.language == "python" and installed(block.text):
        exec(compile(block.text, str(block.file), "exec"), namespace)
    elif block.language == "sh":
        for line in block.text.splitlines():
            command(line)


def installed(text: str) -> bool:
    """Whether the other frameworks that a block imports are there; all else must be."""
    return all(importlib.util.find_spec(name) for name in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) if name in FRAMEWORKS)


def command(line: str) -> None:
    """Runs a line of a shell, if it is one of `tpucc`'s that ends."""
    words = shlex.split(line, comments=True)
    if not words:
        return
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), line
    elif words[:2] == ["tpucc", "watch"]:
        assert run("check", *words[2:]) == 0, line
    elif words[0] == "tpucc":
        assert run(*words[1:]) == 0, line
    else:
        assert words[0] in OTHERS, line
