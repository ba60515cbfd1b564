"""The text of a source as the front end reads it."""

from __future__ import annotations

from tpucc.diagnostics import Source


def without_mark(source: Source) -> Source:
    """The source without a byte-order mark, which counts as no column."""
    return Source(source.name, source.text[1:]) if source.text.startswith("\ufeff") else source
