"""Terminal sessions in the book: what stands under a line `$ tpucc …` in a `text` block is what the command prints,
with what is typed behind its prompt `(tpucc)`.

A page's commands run in a folder of their own, which holds the files that the page tells the reader to write. The seconds of a training are
others on each computer, and are shown as `…`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from tpucc.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
SECONDS = re.compile(r"(?<= )\d+\.\d\d$", re.MULTILINE)
"""In the table that `tpucc train` prints: its last column."""
NAMED = re.compile(r"`([\w/-]+\.(?:tpu|py))`[^`]*\Z")
PROMPTED = re.compile(r"^\(tpucc\) (.*)$", re.MULTILINE)
VERDICTS = ("lab check ", "lab grade ")
"""Commands whose status 1 is a verdict, which the page shows, and no failure."""


def with_outputs(page: str, name: str = "page") -> str:
    """The page with the output of each of its commands. Python's errors name the page and the line in it."""
    with folder():
        return BLOCK.sub(partial(_typed, {}, name), page)


@contextlib.contextmanager
def as_typed(page: str, name: str = "page") -> Iterator[dict[str, Any]]:
    """In the folder of a page after its last block; gives the names that its Python blocks have defined."""
    namespace: dict[str, Any] = {}
    with folder():
        BLOCK.sub(partial(_typed, namespace, name), page)
        yield namespace


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """A new folder in which a page's commands find what they expect of the project's."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for name in ("programs", "docs"):
            Path(name).symlink_to(ROOT / name)
        sys.path.insert(0, place)
        try:
            yield
        finally:
            sys.path.remove(place)


def _typed(namespace: dict[str, Any], page: str, block: re.Match[str]) -> str:
    """A block with what it prints: writes it if the paragraph before it names a file, and runs Python and `$ tpucc`."""
    language, text = block["language"], block["text"]
    found = NAMED.search(block.string[: block.start()].strip().rpartition("\n\n")[2])
    if found and language in ("tpu", "python"):
        Path(found[1]).write_text(text, "utf-8")
    if language == "python":
        names = dict(namespace) if found else namespace  # a file has names of its own, which a later file of the page can't change
        with contextlib.redirect_stdout(io.StringIO()):
            lines_above = "\n" * (block.string[: block.start()].count("\n") + 1)
            exec(compile(lines_above + text, page, "exec"), names)
        namespace.update(names)
    if language == "text" and text.startswith("$ tpucc"):
        commands = text.split("$ tpucc ")[1:]
        return "```text\n" + "".join(_answered(command, page) for command in commands) + "```"
    return block[0]


def _answered(text: str, page: str) -> str:
    """A command with what it prints; lines below it that begin with a prompt are typed to it."""
    command, _, below = text.partition("\n")
    typed = "".join(f"{line}\n" for line in PROMPTED.findall(below))
    try:
        return f"$ tpucc {command}\n{printed(command, typed)}"
    except RuntimeError as error:
        error.add_note(f"on the page {page}")
        raise


def printed(command: str, typed: str = "") -> str:
    """What `tpucc COMMAND` prints on standard output. Raises `RuntimeError` when it fails, other than with a verdict."""
    narrow = mock.patch.dict(os.environ, COLUMNS="80")
    with narrow, contextlib.redirect_stdout(io.StringIO()) as stream, mock.patch.object(sys, "stdin", io.StringIO(typed)):
        status = main(shlex.split(command))
    if status and not (status == 1 and command.startswith(VERDICTS)):
        raise RuntimeError(f"tpucc {command} ends with status {status}\n{stream.getvalue()}")
    text = stream.getvalue()
    return SECONDS.sub(lambda found: "…".rjust(len(found[0])), text) if command.startswith("train ") else text
