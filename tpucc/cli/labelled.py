"""The labelled rows that lie beside a source."""

from __future__ import annotations

from pathlib import Path

from tpucc.interop.archive import read_arrays
from tpucc.numerics import AnyArray

LABELS = "labels"


def held_out(path: Path) -> tuple[dict[str, AnyArray], AnyArray] | None:
    """Inputs and labels from the archive `STEM_test.npz` beside a source, where there is one that has labels."""
    place = path.with_name(f"{path.stem}_test.npz")
    if not place.is_file():
        return None
    arrays = read_arrays(place)
    labels = arrays.pop(LABELS, None)
    return None if labels is None else (arrays, labels)
