"""The sizes of the hardware, which follow from a target; and the targets that the hardware isn't built for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.target import Target

QUEUE_BITS = 10
"""Each unit's queue holds 2^10 instructions."""
HOST_BITS = 16
TILE_BITS = 10
BLOCK_BITS = 8
STEP_BITS = 8
COUNT_BITS = 16
"""Bits of the rows of a walk, of its steps and of a window."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the hardware. Rates are in cycles."""

    lanes: int
    """Rows and columns of the array; bytes of a row."""
    buffer_rows: int
    accumulator_rows: int
    fifo_tiles: int
    fetch_cycles: int
    """Cycles that a tile takes from weight memory."""
    row_cycles: int
    """Cycles that a row takes on the host link."""
    latency_cycles: int
    """Cycles that a transfer takes before its first row."""

    @property
    def row_bits(self) -> int:
        """Bits of a row of values."""
        return 8 * self.lanes

    @property
    def buffer_bits(self) -> int:
        """Bits of a row's number in the unified buffer."""
        return (self.buffer_rows - 1).bit_length()

    @property
    def accumulator_bits(self) -> int:
        """Bits of a row's number in the accumulators."""
        return (self.accumulator_rows - 1).bit_length()

    @property
    def lane_bits(self) -> int:
        """Bits of a row's number in a tile."""
        return max(1, (self.lanes - 1).bit_length())

    @property
    def drain_cycles(self) -> int:
        """Cycles from the last row's entry until all its sums can be read: its way through the setup, the array, and the last column."""
        return 2 * self.lanes


def shape_of(target: Target) -> Shape:
    """The hardware of a target. Raises `UsageError` E0960 for a target that it can't be built for."""
    row_cycles = target.mxu * target.clock_hz / target.host_bandwidth if not target.obstacle else 1
    if wrong := next(_obstacles(target, row_cycles), ""):
        raise refused(wrong, *(() if target.name.startswith("tiny") else ("tiny is a machine that can be built: --target tiny",)))
    return Shape(
        target.mxu,
        target.unified_buffer_rows,
        target.accumulator_rows,
        target.weight_fifo_tiles,
        target.tile_fetch_cycles,
        int(row_cycles),
        round(target.host_latency_seconds * target.clock_hz),
    )


def _obstacles(target: Target, row_cycles: float) -> Iterator[str]:
    """Why the hardware of a target can't be built."""
    name = target.name
    if target.obstacle:
        yield f"the machine {name} {target.obstacle}"
    if target.mxu < 2 or target.mxu & (target.mxu - 1):
        yield f"{name} has {target.mxu} lanes, and the hardware numbers lanes by whole bits: 2, 4, 8, 16, …"
    if row_cycles != int(row_cycles) or row_cycles < 1:
        yield f"a row takes {row_cycles:g} cycles on the host link of {name}, and the hardware moves a row in whole cycles"
    if target.host_row_bytes not in (0, target.mxu):
        whole = f"--set host_row_bytes={target.mxu}"
        yield f"rows are padded to {target.host_row_bytes} bytes on the host link of {name}, and the hardware moves whole rows ({whole})"
    if target.tile_fetch_cycles < target.mxu:
        yield f"a tile arrives in {target.tile_fetch_cycles} cycles on {name}, and the FIFO takes one row a cycle"


def refused(what: str, *help: str) -> UsageError:
    """What the hardware doesn't have, E0960."""
    return UsageError(Diagnostic("E0960", f"{what}: tpucc rtl can't build it", help=help))
