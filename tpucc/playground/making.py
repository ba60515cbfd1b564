"""Compiles what a request has, with its files in a folder of their own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tpucc.compilation import Compilation
from tpucc.diagnostics import Error, Source
from tpucc.driver import compile_source
from tpucc.explain.timed import Timed
from tpucc.interop.programs import folder as programs_folder
from tpucc.options import Options
from tpucc.output_files import write_files
from tpucc.playground.requests import Model
from tpucc.user_options import read_options

PASS = "pass.py"
KEPT = 3
"""Compilations that are kept: a comparison has one side again and again, and the other has often just been compiled."""
_PARAM = re.compile(r"-D (\w+)=(\S+)")
_OWN_WORDS = {
    ", -D name='\"relu\"'": "",
    " --plugin-timeout gives it more seconds": "",
    " or with --calibrate": "",
    "docs/python.md shows one": "Original shows one",
}
"""What a page says in the place of words that speak of the command line, or of files that it hasn't."""
_ARCHIVE = re.compile(r'"([\w.-]+\.npz)"', re.ASCII)

Made = tuple[Compilation, Timed]


@contextmanager
def made(model: Model) -> Iterator[Made]:
    """The compiled model; for as long as it is used, its files are there, from which passes and stages of the visitor's are read. A model
    without any is kept. Raises what compiling raises."""
    if not model.passes and not model.stages:
        yield _kept(msgspec.json.encode(Model(*msgspec.structs.astuple(model))))
        return
    with TemporaryDirectory() as place:
        yield _compiled(model, Path(place))


@lru_cache(maxsize=KEPT)
def _kept(request: bytes) -> Made:
    with TemporaryDirectory() as place:
        return _compiled(msgspec.json.decode(request, type=Model), Path(place))


def _compiled(model: Model, folder: Path) -> Made:
    write_files(folder, {**_known_archives(model.source), **model.files})
    try:
        compilation = compile_source(Source(model.name, model.source), folder, _options(model, folder))
    except Error as error:
        found = [
            replace(each, message=_called(each.message.replace(f"{folder}{os.sep}", ""), model), help=tuple(map(for_page, each.help)))
            for each in error.diagnostics
        ]
        source = error.source and replace(error.source, name=error.source.name.removeprefix("-D "))
        raise type(error)(found, source) from None
    assert compilation.program is not None
    return compilation, Timed(compilation.program)


def _called(message: str, model: Model) -> str:
    """A message that calls the visitor's Python so, and not by the name of a file that the visitor hasn't seen."""
    for name in (PASS, *(f"{stage}.py" for stage in model.stages)):
        message = message.replace(f"the file {name}", "your Python").replace(name, "your Python")
    return for_page(message)


def for_page(text: str) -> str:
    """A text of the compiler in the words of the page, which has fields and no command line."""
    for words, own in _OWN_WORDS.items():
        text = text.replace(words, own)
    return _PARAM.sub(r"\1 = \2", text)


def _options(model: Model, folder: Path) -> Options:
    files = {folder / f"{stage}.py": text for stage, text in model.stages.items()}
    files |= {folder / PASS: model.passes} if model.passes else {}
    for path, text in files.items():
        path.write_text(text, "utf-8")
    given = {name: getattr(model, name) for name in ("target", "level", "params")} | {"trust": True}
    passes = [folder / PASS] if model.passes else []
    return read_options({**given, "passes": passes, "stages": {stage: folder / f"{stage}.py" for stage in model.stages}}, installed=False)


def _known_archives(source: str) -> dict[str, bytes]:
    """The archives of tpucc's own programs that a source names."""
    paths = [place / name for name in _ARCHIVE.findall(source) for place in (programs_folder(), programs_folder() / "gallery")]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}
