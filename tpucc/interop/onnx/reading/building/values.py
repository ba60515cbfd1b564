"""Values while a model is read: constants, and tensors whose axes may lie in another order than the file's.

ONNX's images are [N, C, H, W] and tpucc's [N, H, W, C]. So a tensor knows for each axis of the file which axes of its node it is. A
transpose then only renames axes, and so does a reshape that joins axes or drops those of size 1: no node is made before an operator needs
its values in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Literal, TypeVar

import numpy as np

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.files.problems import named
from tpucc.ir import Node
from tpucc.numerics import AnyArray, Float32, dequantise

BITS: Mapping[str, tuple[int, int]] = {"int8": (8, 0), "uint8": (8, 128), "int16": (16, 0), "uint16": (16, 32768)}
"""The types of quantised integers: their bits, and what is taken from unsigned ones."""
Axes = tuple[tuple[int, ...], ...]
"""For each axis of the file the node's axes that it is made of, the slowest first; none for an axis of size 1."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The integers that a quantised tensor has in the file; in tpucc it is f32, and its values are multiples of the scale.

    `zero_point` is that of signed integers; `shift` is what is taken from the file's to make them so.
    """

    scale: float
    zero_point: int
    bits: int
    shift: int = 0

    @classmethod
    def of(cls, scale: AnyArray, zero: AnyArray) -> Grid:
        """The grid that a scale and a zero point of one value say."""
        bits, shift = BITS[zero.dtype.name]
        return cls(float(scale.reshape(())), int(zero.reshape(())) - shift, bits, shift)

    @property
    def type(self) -> str:
        """The name of the type of the integers."""
        return next(name for name, found in BITS.items() if found == (self.bits, self.shift))

    @property
    def in_words(self) -> str:
        """How the file's integers stand for real values, in a comment."""
        zero = self.zero_point + self.shift
        apart = f"(integer {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "integer"
        return f"of which they are {np.float32(self.scale)!s} · {apart}"

    def real(self, integers: AnyArray) -> Float32:
        """The real values of integers of the file."""
        return dequantise(integers.astype(np.int32) - self.shift, self.scale, self.zero_point)


Class = int | str
CLASSES = 20
"""Classes that a comment names."""


@dataclass(frozen=True, slots=True)
class Classes:
    """The numbers of classes, i32 in tpucc, where the file has their `names`: texts, or other numbers than 0, 1, 2 and so on."""

    names: tuple[Class, ...]


def is_counted(classes: Sequence[object]) -> bool:
    """Whether classes are the numbers 0, 1, 2 and so on: the name of each is its number."""
    return all(isinstance(name, int) and name == number for number, name in enumerate(classes))


def class_names(classes: Sequence[Class], numbered: bool = False) -> str:
    """Classes in a comment, the first of many."""
    shown = [named(f"{number} for {name}" if numbered else str(name)) for number, name in enumerate(classes[:CLASSES])]
    return listed([*shown, *([f"{len(classes) - CLASSES:,} more"] if len(classes) > CLASSES else [])])


@dataclass(frozen=True, slots=True, eq=False)
class OfRows:
    """What is computed of numbers of rows, which are those of the node: the `values` for each row."""

    values: AnyArray


Kind = Literal["float", "bool", "whole", "int"] | Grid | Classes | OfRows
"""What the file's elements are. A boolean is f32 in tpucc, 0.0 or 1.0; whole numbers are f32, too, and numbers of rows ("int") i32."""


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """A value that is known: `name` becomes its key if it is a weight."""

    array: AnyArray
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    def turned(self, order: Sequence[int]) -> Static:
        """The value with its axes in this order."""
        return Static(self.array.transpose(order), self.name)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that is computed. Axes of the node that no axis of the file names have size 1."""

    node: Node
    axes: Axes
    kind: Kind = "float"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in the file's order."""
        sizes = self.node.type.shape
        return tuple(math.prod(sizes[part] for part in axis) for axis in self.axes)

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def size(self) -> int:
        return self.node.type.size

    @property
    def order(self) -> tuple[int, ...]:
        """The node's axes in the file's order."""
        return tuple(part for axis in self.axes for part in axis)

    def turned(self, order: Sequence[int]) -> Tensor:
        """The value with the file's axes in this order."""
        return replace(self, axes=tuple(self.axes[axis] for axis in order))

    def atoms(self, axis: int) -> tuple[int, ...]:
        """The sizes that an axis of the file is made of."""
        return tuple(self.node.type.shape[part] for part in self.axes[axis])


Value = Static | Tensor
V = TypeVar("V", bound=Value)


def plain(node: Node, kind: Kind = "float") -> Tensor:
    """A tensor whose axes are those of its node."""
    return Tensor(node, tuple((axis,) for axis in range(node.type.rank)), kind)


def groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[range, range]]:
    """The smallest runs of the sizes of two shapes of one size that have the same product, in order."""
    found, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        start, other, left, right = i, j, 1, 1
        while (i, j) == (start, other) or left != right:
            if left <= right and i < len(before):
                left *= before[i]
                i += 1
            else:
                right *= after[j]
                j += 1
        found.append((range(start, i), range(other, j)))
    return found


def without_ones(array: AnyArray) -> AnyArray:
    """Without the first axes of size 1, which broadcasting adds."""
    return array.reshape(own_sizes(array.shape) or (1,) * min(array.ndim, 1))


def own_sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes from the first that isn't 1."""
    return tuple(dropwhile(lambda size: size == 1, shape))


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that several have together; None where they don't fit."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def size_in_memory(array: AnyArray) -> int:
    """The values that an array has in memory."""
    return math.prod(size for size, step in zip(array.shape, array.strides, strict=True) if step)


def repeated_axes(array: AnyArray) -> tuple[int, ...]:
    """The axes along which the values repeat, of an array that was made by broadcasting."""
    return tuple(axis for axis, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)) if size > 1 and step == 0)


def without_repetition(array: AnyArray) -> AnyArray:
    """The array with size 1 along axes where its values repeat, as those of a mask that was computed for a whole batch. A state of one
    value stays."""
    made = array
    for axis in range(array.ndim):
        first = made[(slice(None),) * axis + (slice(1),)]
        made = first if made.shape[axis] > 1 and (made == first).all() else made
    return made if made.size > 1 else array


def is_same(a: AnyArray, b: AnyArray) -> bool:
    """Whether two arrays have the same shape and the same values."""
    return a is b or (a.shape == b.shape and np.array_equal(a, b))


def is_count(array: AnyArray) -> bool:
    """Whether the numbers 0, 1, 2 and so on stand along the last axis: what is compared with them becomes rows of one 1."""
    return (
        array.dtype.kind in "iu"
        and array.size > 1
        and array.shape[-1] == array.size
        and np.array_equal(array.reshape(-1), np.arange(array.size))
    )


def axes_of(order: Sequence[int]) -> Axes:
    """The axes of a tensor whose node's axes are the file's in this order."""
    places = {axis: place for place, axis in enumerate(order)}
    return tuple((places[axis],) for axis in range(len(order)))


def order_of(t: Tensor) -> tuple[int, ...]:
    """The file's axes in the order of the node's; those without a place of their own stay behind the one before them."""
    found: dict[int, tuple[int, int]] = {}
    last = -1
    for axis in range(t.rank):
        last = min(t.axes[axis], default=last)
        found[axis] = (last, axis)
    return tuple(sorted(range(t.rank), key=lambda axis: found[axis]))


def order_of_result(t: Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """The order of the axes of a result that none of its operands has the shape of, `t` being the largest of them. Channels that come to
    pixels, [N, 1, H, W], are the last axis."""
    comes = t.rank == 4 and t.shape[1] == 1 < shape[1] and not t.axes[1] and order_of(t) == (0, 1, 2, 3)
    return (0, 2, 3, 1) if comes else order_of(t)


def ranked(t: Tensor, rank: int) -> Tensor:
    """The tensor with axes of size 1 before its own."""
    return t if t.rank == rank else Tensor(t.node, (*(() for _ in range(rank - t.rank)), *t.axes), t.kind)


def split_axes(t: Tensor, shape: Sequence[int]) -> tuple[list[list[tuple[int, int]]] | None, list[list[int]]]:
    """How the axes of a shape are made of pieces of the node's axes: (axis, piece) for each, and the sizes of all pieces.

    None where a size isn't made of whole pieces.
    """
    sizes = t.node.type.shape
    pieces: list[list[int]] = [[] for _ in sizes]
    parts: list[list[tuple[int, int]]] = [[] for _ in shape]
    ones: list[int] = []
    for before, after in groups(t.shape, shape):
        waiting = [(part, sizes[part]) for axis in before for part in t.axes[axis]]
        ones += [part for part, size in waiting if size == 1]
        waiting = [found for found in waiting if found[1] != 1]
        for axis in after:
            if shape[axis] == 1:
                if ones:
                    parts[axis].append((ones.pop(0), 0))
                continue
            if not _fill(shape[axis], waiting, pieces, parts[axis]):
                return None, []
    return parts, [found or [size] for found, size in zip(pieces, sizes, strict=True)]


def _fill(need: int, waiting: list[tuple[int, int]], pieces: list[list[int]], parts: list[tuple[int, int]]) -> bool:
    """Takes pieces of the product `need` from those that wait."""
    while need > 1:
        part, size = waiting.pop(0)
        taken = size if need % size == 0 else need
        if size % taken:
            return False
        if taken < size:
            waiting.insert(0, (part, size // taken))
        parts.append((part, len(pieces[part])))
        pieces[part].append(taken)
        need //= taken
    return True


def refined(size: int, atoms: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of an axis in the parts that an axis of another tensor has."""
    return (1,) * len(atoms) if size == 1 else atoms
