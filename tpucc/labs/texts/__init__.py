"""The texts that are the same for all labs: files of this folder, with words for what stands in double braces."""

from __future__ import annotations

from pathlib import Path

from tpucc.labs.lab import filled


def text(name: str, /, **words: str) -> str:
    """The file of this name with these words. Raises `KeyError` for a word that is missing."""
    return filled((Path(__file__).parent / name).read_text("utf-8"), words)
