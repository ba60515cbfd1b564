"""One axis of an image under windows: which pixels each output sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np

from tpucc.numerics import AnyArray

Ends = tuple[int, int]
"""Start and stop along an axis."""
Pads = tuple[int, int]
"""How many pixels of padding lie before and after."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an image under windows: pixels, positions and stride of the window, and padding at both ends; all in pixels.

    The positions of a window are `dilation` pixels apart. Negative padding, which only `phases` makes, leaves pixels out. `counted` is how
    much of the padding before and after counts in an average, as zeros.
    """

    size: int
    window: int
    stride: int
    before: int
    after: int
    dilation: int = 1
    counted: Pads = (0, 0)

    @property
    def extent(self) -> int:
        """The pixels from a window's first position to its last."""
        return (self.window - 1) * self.dilation + 1

    @property
    def outputs(self) -> int:
        return (self.size + self.before + self.after - self.extent) // self.stride + 1

    @property
    def positions(self) -> range:
        """The kernel positions at which some output may see a real pixel."""
        first = -(((self.outputs - 1) * self.stride - self.before) // self.dilation)
        return range(max(0, first), min(self.window, -(-(self.before + self.size) // self.dilation)))

    def tap(self, position: int) -> tuple[slice, slice]:
        """The outputs that see a real pixel at this kernel position, and those pixels: two slices of one length."""
        pixel = position * self.dilation - self.before
        first = max(0, -(pixel // self.stride))
        last = min(self.outputs - 1, (self.size - 1 - pixel) // self.stride)
        count = max(0, last - first + 1)
        start = first * self.stride + pixel
        return slice(first, first + count), slice(start, start + count * self.stride, self.stride)

    def read(self, outputs: Ends) -> tuple[Ends, Pads]:
        """The pixels that some of the outputs see, and the padding before and after these.

        Outputs that see padding alone give pixels whose stop isn't after their start (it may be less), and a padding of no meaning.

        All outputs together read the axis as it is, even where no window reaches its last pixels.
        """
        if outputs == (0, self.outputs):
            return (0, self.size), (self.before, self.after)
        return self.span(outputs)

    def span(self, outputs: Ends) -> tuple[Ends, Pads]:
        """The pixels from the first to the last that the outputs see, and the padding before and after these."""
        first = outputs[0] * self.stride - self.before
        stop = (outputs[1] - 1) * self.stride - self.before + self.extent
        return (max(first, 0), min(stop, self.size)), (max(-first, 0), max(stop - self.size, 0))

    @property
    def reached(self) -> Ends:
        """The outputs whose windows, first to last position, reach a real pixel; they are neighbours. Start is stop if none do."""
        first = max(0, -((self.extent - 1 - self.before) // self.stride))
        return first, max(first, min(self.outputs, (self.size - 1 + self.before) // self.stride + 1))

    def phases(self) -> Iterator[tuple[slice, slice, Axis]]:
        """The transposed convolution along this axis, as convolutions of stride 1: each gives some pixels as sums over outputs.

        Pixels that are a multiple of the stride apart see the same kernel positions; they are one phase. Each phase has its pixels, its
        kernel positions in descending order, and the axis whose pixels are the outputs and whose windows have those positions. From one
        position to the next the output is `back` further back. Pixels that no position sees are in no phase.
        """
        step = self.stride // gcd(self.stride, self.dilation)
        back = self.dilation * step // self.stride
        for first in range(min(self.stride, self.size)):
            met = (p for p in range(min(step, self.window)) if (first + self.before - p * self.dilation) % self.stride == 0)
            if (position := next(met, None)) is not None:
                output = (first + self.before - position * self.dilation) // self.stride
                taps, count = len(range(position, self.window, step)), len(range(first, self.size, self.stride))
                kernel = slice(position + (taps - 1) * step, None, -step)
                before, after = (taps - 1) * back - output, output + count - self.outputs
                yield slice(first, None, self.stride), kernel, Axis(self.outputs, taps, 1, before, after, back)

    def pixels(self) -> AnyArray:
        """How many pixels of each output's window are real or counted, without dilation; each must have one: int64 [outputs]."""
        start = np.arange(self.outputs) * self.stride - self.before
        return np.minimum(start + self.window, self.size + self.counted[1]) - np.maximum(start, -self.counted[0])


def sides(height: Axis, width: Axis) -> tuple[int, int, int, int]:
    """The padding of an image: pixels at the top, the bottom, the left and the right."""
    return height.before, height.after, width.before, width.after


def counted(height: Axis, width: Axis) -> tuple[int, int, int, int]:
    """The part of the padding that counts in an average, in the order of `sides`."""
    return *height.counted, *width.counted
