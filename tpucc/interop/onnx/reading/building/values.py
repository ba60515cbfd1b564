"""Values while a model is read: constants, and tensors whose axes may lie in another order than the file's.

ONNX's images are [N, C, H, W] and tpucc's [N, H, W, C]. So a tensor knows for each axis of the file which axes of its node it is. A
transpose then only renames axes, and so does a reshape that joins axes or drops those of size 1: no node is made before an operator needs
its values in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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

    `zero_point` is that of signed integers; `shift` is what is taken from the file's to make them so. `measured`: each run of the file
    finds the scale anew.
    """

    scale: float
    zero_point: int
    bits: int
    shift: int = 0
    measured: bool = False

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


Kind = Literal["float", "bool", "whole", "int"] | Grid | Classes
"""What the file's elements are. A boolean is f32 in tpucc, 0.0 or 1.0; whole numbers are f32, too, and numbers of rows ("int") i32."""


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """A value that is known: `name` becomes its key if it is a weight."""

    array: AnyArray
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


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

    def atoms(self, axis: int) -> tuple[int, ...]:
        """The sizes that an axis of the file is made of."""
        return tuple(self.node.type.shape[part] for part in self.axes[axis])


Value = Static | Tensor


@dataclass(frozen=True, slots=True)
class Listed:
    """A sequence of values, which exists only while the file is read."""

    values: tuple[Value, ...]


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
