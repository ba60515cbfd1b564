"""The units of TPU v2's core, and the cycles that work takes each of them.

Published: the array of 128×128 cells, its clock, memory bandwidth and links (Jouppi et al., "A Domain-Specific Supercomputer for Training
Deep Neural Networks", CACM 2020; Norrie et al., "The Design Process for Google's Training Chips: TPUv2 and TPUv3", IEEE Micro 2021, which
also has the vector unit's 8 sublanes of 128 lanes with two ALUs each). Assumed: cycles of the lanes' moves, and that nothing else waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tpucc.target import Target


class Unit(StrEnum):
    """What limits a step: a unit of the core, its memory, or the links to other cores."""

    ARRAY = "array"
    VECTOR = "vector"
    LANES = "lanes"
    MEMORY = "memory"
    LINKS = "links"


NEEDED = ("sublanes", "vector_alus")
"""The numbers of a target without which a step can't be timed."""
VALUE_BYTES = 4
"""Bytes of a value of a step: float32."""


@dataclass(slots=True)
class Work:
    """The work of a group of operators. `array`, `lanes`: cycles. `vector`: operations, each on a row. `read` and `written`: bytes."""

    array: float = 0.0
    vector: float = 0.0
    lanes: float = 0.0
    moved: dict[str, int] = field(default_factory=dict)
    """Bytes that cross the memory's interface, by what they are."""
    link_seconds: float = 0.0

    def seconds(self, target: Target) -> dict[Unit, float]:
        """The seconds for which each unit is at work."""
        return {
            Unit.ARRAY: self.array / target.clock_hz,
            Unit.VECTOR: self.vector / (target.sublanes * target.vector_alus) / target.clock_hz,
            Unit.LANES: self.lanes / target.clock_hz,
            Unit.MEMORY: sum(self.moved.values()) / core_bandwidth(target),
            Unit.LINKS: self.link_seconds,
        }


def core_bandwidth(target: Target) -> float:
    """Bytes a second of one core's share of its chip's memory."""
    return target.weight_bandwidth / target.cores


def rows(shape: tuple[int, ...], target: Target) -> int:
    """The rows of a value: its last axis is cut into columns of `mxu` lanes; a row has a lane for each of these, and is padded."""
    *leading, last = shape or (1,)
    count = -(-last // target.mxu)
    for size in leading:
        count *= size
    return count


def row_bytes(target: Target) -> int:
    return target.mxu * VALUE_BYTES


@dataclass(frozen=True, slots=True)
class Pass:
    """How a product [rows, depth] × [depth, columns] goes through the array: cycles, and rows of operands and results that are turned."""

    cycles: int
    turned_blocks: int


def passes(rows: int, depth: int, columns: int, target: Target, *, weights: bool) -> Pass:
    """The cheaper way through the array.

    One side is stationary, cut into tiles of `mxu` × `mxu`; the other streams, a row a cycle. A tile is pushed in `mxu` cycles, while the
    one before is in use. With `weights` the right side is stationary, as it is or turned, which costs nothing. Without, either may be: the
    rows that stream are turned in blocks, and with the left side stationary the result is turned back.
    """
    size = target.mxu
    blocks = [-(-extent // size) for extent in (rows, depth, columns)]
    right = Pass(blocks[1] * -(-blocks[2] // target.matrix_units) * max(rows, size), 0 if weights else blocks[0] * blocks[1])
    if weights:
        return right
    left = Pass(blocks[1] * -(-blocks[0] // target.matrix_units) * max(columns, size), blocks[2] * (blocks[1] + blocks[0]))
    return min((right, left), key=lambda found: (found.cycles, found.turned_blocks))


def turning_cycles(blocks: int, target: Target) -> int:
    """Cycles in which the lanes turn so many blocks of `mxu` × `mxu` values: assumed, one for each row."""
    return blocks * target.mxu


def reducing_cycles(rows: int, target: Target) -> float:
    """Cycles in which the lanes of so many rows are added up: a halving tree, a step a cycle for each register of `sublanes` rows; assumed."""
    return (target.mxu - 1).bit_length() * rows / target.sublanes


def moving_cycles(rows: int, target: Target) -> float:
    """Cycles in which lanes of so many rows are moved to other lanes: one for each register of `sublanes` rows; assumed."""
    return rows / target.sublanes


def largest(seconds: dict[Unit, float]) -> Unit:
    """The unit that is at work longest."""
    return max(Unit, key=lambda unit: seconds[unit])


def total(parts: Iterable[dict[Unit, float]]) -> dict[Unit, float]:
    """The sums, unit by unit."""
    found = dict.fromkeys(Unit, 0.0)
    for part in parts:
        for unit, value in part.items():
            found[unit] += value
    return found
