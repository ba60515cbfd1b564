"""What a layer of a quantised export multiplies the sums of windows by: it must follow from the scales and from the windows' pixels.

How many pixels a window has is only known with the image's shape. So the layer's operator has the factors as an attribute, which its rule
holds against the shape. They say which padding counts, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tpucc.diagnostics import ProgramError
from tpucc.interop.onnx.reading.files.problems import changed
from tpucc.numerics import AnyArray, Float32
from tpucc.ops.opdef import RuleError
from tpucc.ops.windows import PoolAttributes, pool_axes

SHARES = "shares"
"""The attribute; that of no file, whose attributes are numbers, words and arrays."""


@dataclass(frozen=True)
class Shares:
    """The factors [H', W'] of the sums of windows, and that of a window of one pixel: the scale of x as a share of the result's. `title` is
    that of the node that multiplies."""

    title: str
    pixel: Float32
    factors: AnyArray

    def of_image(self, height: int, width: int) -> None:
        """Raises `ProgramError` E1001 where the factors aren't those of windows as large as the image."""
        if not self._are_of(np.asarray([[height * width]])):
            raise self._wrong(f"images of {height}×{width} pixels")

    def padding(self, image: tuple[int, ...], size: tuple[int, int], stride: tuple[int, int], sides: tuple[int, ...]) -> Mapping[str, Any]:
        """The attributes of a pool of an image [N, H, W, C] that say which padding counts. Raises `ProgramError` E1001 for factors that are
        those of none."""
        for padding, ceil, counted in _candidates(size, sides):
            try:
                axes = pool_axes(PoolAttributes(size, stride, padding, ceil), image, counted)
            except RuleError:
                continue
            height, width = axes
            same = (height.before, height.after, width.before, width.after) == sides
            if same and self._are_of(np.multiply.outer(height.pixels(), width.pixels())):
                return {"padding": padding, "ceil": ceil, "count_padding": counted}
        raise self._wrong(f"windows of {size[0]}×{size[1]} pixels")

    def _are_of(self, counts: AnyArray) -> bool:
        """Whether these are the numbers of pixels of the windows."""
        return np.array_equal(self.pixel / counts.astype(np.float32), self.factors)

    def _wrong(self, what: str) -> ProgramError:
        return changed(f"{self.title}: its factors aren't those of {what}, with the scales in the metadata")


def _candidates(size: tuple[int, int], sides: tuple[int, ...]) -> Iterator[tuple[tuple[int, int, int, int], bool, bool]]:
    """Paddings, whether a last window reaches beyond it, and whether it counts: of padding that doesn't count, that does, and that does but
    for what a last window needs."""
    top, bottom, left, right = sides
    yield (top, bottom, left, right), False, False
    if any(sides):
        yield (top, bottom, left, right), False, True
    if bottom < size[0] and right < size[1]:  # else there is no such pool
        for below, beside in product(range(bottom + 1), range(right + 1)):
            yield (top, below, left, beside), True, True
