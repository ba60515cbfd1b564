"""The units of TPU v2's core, and the time that work takes each of them.

Published: the array of 128×128 cells, its clock, the memory's bandwidth and the links (Jouppi et al., "A Domain-Specific Supercomputer for
Training Deep Neural Networks", CACM 2020), and the vector unit of 8 sublanes of 128 lanes with two ALUs each (Norrie et al., "The Design
Process for Google's Training Chips: TPUv2 and TPUv3", IEEE Micro 2021). Assumed: the cycles in which lanes are turned, moved and added up;
and that nothing else takes time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from math import prod

from tpucc.machines.v2.links import all_reduce, core_bandwidth
from tpucc.target import Target

VALUE_BYTES = 4
"""Bytes of a value of a step: float32."""


class Unit(StrEnum):
    """What limits a step: a unit of the core, its memory, or the links to other cores."""

    ARRAY = "array"
    VECTOR = "vector"
    LANES = "lanes"
    MEMORY = "memory"
    LINKS = "links"


def tree_steps(target: Target) -> int:
    """The steps of a halving tree over all lanes."""
    return (target.mxu - 1).bit_length()


def row_bytes(target: Target) -> int:
    """The bytes of a row of lanes."""
    return VALUE_BYTES * target.mxu


def rows_of(shape: tuple[int, ...], lanes: int) -> int:
    """The rows of a value: its last axis is cut into columns of `lanes`, and the last of these is padded. A scalar has a row."""
    return prod(shape[:-1]) * -(-shape[-1] // lanes) if shape else 1


def packed_rows_of(shape: tuple[int, ...], lanes: int) -> int:
    """The rows of an input, which lies as the host has it: the values of its last two axes side by side."""
    return rows_of((*shape[:-2], prod(shape[-2:])), lanes) if len(shape) > 2 else rows_of(shape, lanes)


class Work:
    """The work of operators that are computed together, on one core of a target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._cycles = dict.fromkeys(Unit, 0.0)
        self._exchange = 0.0
        self.bytes: Counter[str] = Counter()
        """The bytes that cross the memory's interface, by what they are."""

    def seconds(self) -> Mapping[Unit, float]:
        """The seconds for which each unit is at work."""
        found = {unit: cycles / self._target.clock_hz for unit, cycles in self._cycles.items()}
        memory = self.bytes.total() / core_bandwidth(self._target)
        links = self._exchange + memory if self._exchange else 0.0
        return found | {Unit.MEMORY: memory, Unit.LINKS: links}

    def add_product(self, rows: int, depth: int, columns: int, *, weights: bool) -> None:
        """A product [rows, depth] × [depth, columns], the way in which the slower of array and lanes is done first.

        One side is stationary, cut into tiles; the other streams, a row a cycle. A tile is pushed a row a cycle, while the one before is in
        use. The columns of tiles are dealt to the matrix units in turn. With `weights` the right side is stationary, as it is or turned,
        which costs nothing. Without, either may be: the lanes turn the rows that stream, block by block, and with the left side stationary
        they turn the result back.
        """
        target, size = self._target, self._target.mxu
        high, deep, wide = (-(-extent // size) for extent in (rows, depth, columns))
        right = deep * -(-wide // target.matrix_units) * max(rows, size), 0 if weights else high * deep * size
        left = deep * -(-high // target.matrix_units) * max(columns, size), wide * (deep + high) * size
        cycles, turning = min([right] if weights else [right, left], key=lambda way: (max(way), way))
        self._cycles[Unit.ARRAY] += cycles
        self._cycles[Unit.LANES] += turning

    def add_patches(self, rows: int, lines: int, pixels: int, channels: int, *, packed: bool) -> None:
        """Patches as rows, one for each window of each image, of `lines` of neighbouring pixels. The lanes put their pieces side by side.

        A piece is a pixel; whole columns stay where they are. Of an input, whose lines are `packed`, a piece is a line of the patch, which
        touches one column more than it fills.
        """
        lanes = self._target.mxu
        moves = lines * (-(-pixels * channels // lanes) + 1) if packed else lines * pixels * -(-channels // lanes)
        if lines * pixels > 1 and (packed or channels % lanes):
            self._cycles[Unit.LANES] += moves * rows / self._target.sublanes

    def add_elements(self, rows: int, operations: int) -> None:
        """So many operations on every value of `rows` rows."""
        self._cycles[Unit.VECTOR] += rows * operations / (self._target.sublanes * self._target.vector_alus)

    def add_sums_of_lanes(self, results: int) -> None:
        """So many rows, each of the sums of whole columns, whose lanes are added up by a halving tree: a step a cycle for as many rows as
        there are sublanes."""
        self._cycles[Unit.LANES] += tree_steps(self._target) * results / self._target.sublanes

    def add_exchange(self, size: int, cores: int) -> None:
        """The mean over the cores of so many bytes, which come from memory and go there, before and after."""
        self._exchange += all_reduce(size, cores, self._target).seconds
