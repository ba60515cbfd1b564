"""Tensors of the device, and values as ways of walking their rows.

A tensor is stored as column blocks of rows: one row for each index of its leading sizes, the last one fastest. A feature map [N, H, W, C]
may have a border: rows of pixels around each image that hold its zero point, so that windows may reach over the edge. A value is an
`Access` to a tensor: reshapes, slices, transposes and windows of it are other accesses to the same rows, and move nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tpucc.ir import Graph, TensorType
from tpucc.layers.kinds import LAYERS, Conv, Sides
from tpucc.numerics import DeviceInts

Shape = tuple[int, ...]
NO_SIDES: Sides = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A matrix of integers [rows, columns] that is an input, a constant with its `data`, or the result of a step.

    `sides` is the border of a feature map, in pixels. Every tensor is one value: two are the same when they are the same object.
    """

    name: str
    type: TensorType
    is_input: bool = False
    data: DeviceInts | None = None
    sides: Sides = NO_SIDES

    @property
    def grid(self) -> Shape:
        """The leading sizes as they are stored, with the border."""
        return stored(self.type.shape, self.sides)

    @property
    def rows(self) -> int:
        return prod(self.grid)

    @property
    def items(self) -> int:
        """The first leading size: the size of the batch if the tensor has one."""
        return self.grid[0] if self.grid else 1

    @property
    def columns(self) -> int:
        return self.type.columns

    @property
    def comes_from_host(self) -> bool:
        """Whether host memory holds it before a step needs it."""
        return self.is_input or self.data is not None

    def column_blocks(self, mxu: int) -> int:
        """Column blocks of at most `mxu` lanes."""
        return -(-self.columns // mxu)


def stored(shape: Shape, sides: Sides) -> Shape:
    """The leading sizes in which a value is stored. A value with a border of `sides` pixels is an image [N, H, W, C]."""
    if sides == NO_SIDES:
        return shape[:-1]
    images, height, width, _ = shape
    top, bottom, left, right = sides
    return images, top + height + bottom, left + width + right


@dataclass(frozen=True, slots=True)
class Access:
    """A value with the leading sizes `shape`: its row at an index is row `start + Σ index · steps` of the tensor."""

    tensor: Tensor
    shape: Shape
    steps: Shape
    start: int = 0

    @property
    def rows(self) -> int:
        return prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether the value is all rows of the tensor in their order, those of the border too (`whole` leaves these out)."""
        return self.rows == self.tensor.rows and (self.rows == 1 or regrouped(self.shape, self.steps, (self.rows,)) == (1,))

    def reshaped(self, shape: Shape) -> Access | None:
        """The value under other leading sizes; None where no steps, one for each size, visit its rows in this order."""
        steps = regrouped(self.shape, self.steps, shape)
        return None if steps is None else replace(self, shape=shape, steps=steps)

    def sliced(self, starts: Sequence[int], stops: Sequence[int]) -> Access:
        """The slice `starts[i]:stops[i]` of each axis i."""
        return self.taken(tuple(map(range, starts, stops)))

    def taken(self, places: Sequence[range], squeeze: Sequence[int] = ()) -> Access:
        """The indices `places[i]` of each axis; the axes of `squeeze`, of each of which one index is taken, are dropped."""
        start = self.start + sum(place.start * step for place, step in zip(places, self.steps, strict=True))
        kept = [axis for axis in range(len(self.shape)) if axis not in squeeze]
        steps = tuple(self.steps[axis] * (places[axis].step if len(places[axis]) > 1 else 1) for axis in kept)
        return Access(self.tensor, tuple(len(places[axis]) for axis in kept), steps, start)

    def transposed(self, perm: Sequence[int]) -> Access:
        """Axis `perm[i]` becomes axis i."""
        return replace(self, shape=tuple(self.shape[axis] for axis in perm), steps=tuple(self.steps[axis] for axis in perm))

    def broadcast(self, shape: Shape) -> Access:
        """The value repeated to `shape` by NumPy's rules: axes that it lacks and axes of size 1 have the step 0."""
        missing = len(shape) - len(self.shape)
        steps = (0,) * missing + tuple(0 if size == 1 else step for size, step in zip(self.shape, self.steps, strict=True))
        return replace(self, shape=shape, steps=steps)

    def windows(self, first: tuple[int, int], stride: tuple[int, int], outputs: tuple[int, int]) -> Access:
        """One pixel of each window of a feature map [N, H, W]: pixel `first`, then pixels `stride` apart. Pixels of the border have
        negative numbers."""
        images, rows, columns = self.steps
        start = self.start + first[0] * rows + first[1] * columns
        return Access(self.tensor, (self.shape[0], *outputs), (images, rows * stride[0], columns * stride[1]), start)


def whole(tensor: Tensor) -> Access:
    """The tensor's value: its rows in their order, without those of the border."""
    steps = tuple(prod(tensor.grid[axis + 1 :]) for axis in range(len(tensor.grid)))
    shape = tensor.type.shape[:-1]
    return Access(tensor, shape, steps, tensor.sides[0] * steps[1] + tensor.sides[2] if tensor.sides != NO_SIDES else 0)


def regrouped(shape: Shape, steps: Shape, new: Shape) -> Shape | None:
    """The steps with which the leading sizes `new` visit the same rows in the same order; None where there are none.

    NumPy finds them: they are the strides of a view of a pretended array, whose elements are never read.
    """
    rows = as_strided(np.zeros(1, np.int8), shape, steps, writeable=False)
    try:
        return np.reshape(rows, new, copy=False).strides
    except ValueError:
        return None


def borders(device: Graph) -> Mapping[str, Sides]:
    """The border of each layer whose result convolutions read with padding: as wide as the widest padding.

    The device writes such a result inside its border. Values that the host gives or takes have no border: convolutions of these, and of
    other views of a value, read a copy.
    """
    found: dict[str, Sides] = {}
    for node in device:
        if isinstance(node.attributes, Conv) and node.attributes.sides != NO_SIDES:
            source = device[node.operands[0]]
            if source.op in LAYERS and source.name not in device.output_nodes:
                found[source.name] = wider(found.get(source.name, NO_SIDES), node.attributes.sides)
    return found


def wider(first: Sides, second: Sides) -> Sides:
    """The larger of each side."""
    top, bottom, left, right = map(max, first, second)
    return top, bottom, left, right


def widest(sides: Iterable[Sides]) -> Sides:
    """The largest of each side."""
    return reduce(wider, sides, NO_SIDES)


def border_rows(tensor: Tensor) -> Iterator[Access]:
    """The rows of the border."""
    top, bottom, left, right = tensor.sides
    with_border = Access(tensor, tensor.grid, whole(tensor).steps)
    return padding_rows(with_border, ((0, 0), (top, bottom), (left, right)))


def padding_rows(value: Access, pads: Sequence[tuple[int, int]]) -> Iterator[Access]:
    """The rows of a value among the first `pads[i][0]` or the last `pads[i][1]` of some axis i, slab after slab. These must not overlap."""
    starts, stops = [0] * len(pads), list(value.shape)
    for axis, (before, after) in enumerate(pads):
        size = value.shape[axis]
        for first, last in ((0, before), (size - after, size)):
            if last > first:
                yield value.sliced((*starts[:axis], first, *starts[axis + 1 :]), (*stops[:axis], last, *stops[axis + 1 :]))
        starts[axis], stops[axis] = before, size - after
