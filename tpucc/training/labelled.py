"""Archives of labelled rows: what is read of them, and what is said of one without labels."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

import numpy as np

from tpucc.data.archive import Archive
from tpucc.diagnostics import printable, some
from tpucc.numerics import AnyArray

LABELS = "labels"
"""The key of the labels in an archive of labelled rows."""


def read_taken(path: Path, taken: Container[str]) -> dict[str, AnyArray]:
    """The arrays of an archive: those that are `taken`, and in place of any other, which isn't unpacked, an empty array."""
    with Archive(path) as archive:
        return {key: archive.read(key) if key in taken else np.empty(0) for key in archive.members}


def without_labels(path: Path, keys: Iterable[str]) -> str:
    """The message about a file of labelled rows without labels."""
    found = printable(some(sorted(keys), 4)) or "no arrays"
    return f"{printable(path.name)} has no array {LABELS}, which accuracy is measured by; it has {found}"
