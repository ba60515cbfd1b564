"""Small pictures of tensors: a grid of cells in shades."""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.numerics import AnyArray, Float64
from tpucc.see.palette import ink_fill
from tpucc.see.svg import Markup, joined, tag

LEVELS = 4
"""The shades, of which the first is none."""


def shaded(parts: Float64, side: float, high: float) -> Markup:
    """Cells [rows, columns] of the size `side` times `high`, each as dark as its part, from 0 to 1."""
    shades = np.minimum(LEVELS - 1, parts * LEVELS).astype(np.int64)
    paths = ((runs(shades == level, side, high), level) for level in range(1, LEVELS))
    return joined(tag("path", attributes=ink_fill("ink"), d=path, fill_opacity=f"{0.2 * level:g}") for path, level in paths)


def runs(mask: Bools | AnyArray, side: float, high: float) -> str:
    """The cells of a grid as a path: neighbours of a row are one rectangle."""
    change = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    (rows, starts), (_, ends) = np.nonzero(change == 1), np.nonzero(change == -1)
    return "".join(
        f"M{start * side:g} {row * high:g}h{(end - start) * side:g}v{high:g}h{(start - end) * side:g}z"
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )
