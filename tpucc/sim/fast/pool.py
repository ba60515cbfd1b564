"""Weighted pools whose windows lie regularly, as a depthwise convolution's do: in float32, some lines of an image at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.machines.v1.functions import ParameterBlock
from tpucc.numerics import EXACT, Int8
from tpucc.sim.fast.product import Requantisation, Scratch
from tpucc.sim.fast.walks import Grid, Windows, as_grid, looker, regular, taken, windows_of
from tpucc.sim.memories import AppliedInstruction, Memories, RowIndex

CACHED = 2**16
"""Sums that are computed at once, so that caches hold them and the rows that they are computed from."""


@dataclass(frozen=True, eq=False, slots=True)
class RegularPool:
    """The sums of `windows` times the rows `weights`, requantised as `block` says, on the lanes below `used`; `tail` in all others.

    The rows of an image are widened once for all windows. float32 holds the sums.
    """

    windows: Windows
    weights: RowIndex
    dest: Grid
    used: int
    tail: Int8
    block: ParameterBlock

    @classmethod
    def of(cls, action: AppliedInstruction, used: int, tail: Int8) -> RegularPool | None:
        """The weighted pool; None where its rows don't lie regularly, where it writes among the rows of its windows, and where float32 may
        not hold its sums."""
        (_, rows), (_, weights) = action.reads
        assert isinstance(rows, np.ndarray)
        block, (_, written), windows = action.constants["block"], action.writes, windows_of(rows)
        if windows is None or rows.shape[1] * 128**2 >= EXACT or (np.abs(block["bias"].astype(np.int64)) >= EXACT).any():
            return None
        dest = None if isinstance(regular(written), np.ndarray) else as_grid(written, windows.first.outer, windows.first.inner)
        if dest is None or (dest.start < windows.rows.stop and windows.rows.start <= dest.last):
            return None
        return cls(windows, weights, dest, used, tail, block)

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        memory, block, (first, window), used = memories["ub"], self.block, self.windows, self.used
        lanes, weights, tail, rest = slice(used), self.weights, self.tail, taken(memories["ub"], self.dest, slice(used, None))
        side = first.inner if first.stride == 1 else 1  # windows side by side, whose lanes lie in the image like those of one row
        bias, multiplier = (np.tile(block[name][:used].astype(np.float32), side) for name in ("bias", "multiplier"))
        requantisation = Requantisation.of(multiplier, block["zero"], block["low"], block["high"])
        look_up = looker(block) if block["has_table"] else None
        parts = []
        for top in range(0, first.outer, lines := max(1, CACHED // (first.inner * used))):
            windows, dest = self.windows._replace(first=first.lines(top, lines)), taken(memory, self.dest.lines(top, lines), lanes)
            image = scratch.inputs(windows.height, used)
            sums = scratch.results(0, dest.size).reshape(len(dest), -1, side * used)
            view = windows.of(image).transpose(0, 2, 3, 1, 4).reshape(len(dest), window.outer, window.inner, *sums.shape[1:])
            parts.append((memory[windows.rows, lanes], image, view, sums, dest))

        def run() -> None:
            kernel = np.tile(taken(memory, weights, lanes), side).reshape(window.outer, window.inner, -1).astype(np.float32)
            for rows, image, view, sums, dest in parts:
                image[...] = rows
                np.einsum("ohwil,hwl->oil", view, kernel, out=sums)
                np.add(sums, bias, out=sums)
                requantisation.apply(sums)
                values = sums.astype(np.int8)
                dest[...] = (values if look_up is None else look_up(values)).reshape(dest.shape)
            if len(tail):
                rest[...] = tail

        return run
