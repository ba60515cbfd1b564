"""Going on from the text of a stage: `tpucc compile FILE.tile --like MODEL.tpu`, and whatever else compiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tpucc.compilation import Compilation, Observer
from tpucc.diagnostics import Diagnostic, ProgramError, Source, printable
from tpucc.files import MODELS, read_file
from tpucc.options import Options

TEXT_SUFFIXES = (".graph", ".tile", ".asm")
_LATER: Mapping[str, tuple[str, ...]] = {
    ".graph": ("layers", "tile", "asm"),
    ".layers.graph": ("tile", "asm"),
    ".tile": ("asm",),
    ".asm": (),
}
"""The text forms of the stages after the one that a file is of."""


def resumed(path: Path, like: Path | None, options: Options, observer: Observer) -> Compilation:
    """The compilation that goes on from the text at `path`. A model is compiled with the same options; a program has its own."""
    from tpucc.texts.resume import base_at, kind_of, resume  # a source needs none of it

    text = read_text(path)
    kind_of(text)
    base = None if like is None else base_at(like, options)
    if base is not None and base.compilation is None:
        options = replace(options, target=base.program.target, cores=base.program.cores)
    return resume(text, base, options, observer)


def read_text(path: Path) -> Source:
    """A text form. Raises `ProgramError` E0101 when it isn't UTF-8."""
    try:
        return Source(printable(path.name), read_file(path, suffixes=MODELS).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ProgramError(Diagnostic("E0101", f"{path.name} is not a text file: byte {error.start:,} is not UTF-8")) from None


def source_of(path: Path, given: Mapping[str, Any]) -> Path:
    """The source whose files lie beside it: of a text that goes on from a model, the model."""
    like: Path | None = given.get("like")
    return like if like is not None and like.suffix != ".tpub" else path


def stem_of(path: Path) -> str:
    """`iris` of iris.tpu, iris.tile and iris.layers.graph."""
    return path.stem.removesuffix(".layers") if path.suffix == ".graph" else path.stem


def kinds_after(path: Path, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Of the kinds of files those that come after the text at `path`: what was edited isn't written over."""
    suffix = ".layers.graph" if path.name.endswith(".layers.graph") else path.suffix
    if suffix not in _LATER:
        return kinds
    return tuple(kind for kind in kinds if kind not in ("graph", "layers", "tile", "asm") or kind in _LATER[suffix])


def refuse_like(given: Mapping[str, Any]) -> None:
    if given.get("like") is not None:
        raise click.UsageError(f"--like is for the text of a stage ({', '.join(TEXT_SUFFIXES)}), which goes on from a model")
