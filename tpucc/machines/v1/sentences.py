"""Instructions of v1 in sentences: the rows that an instruction reads, its function, and the rows of its result.

The numbers are the values of its fields. For a walk with pitches and strides, they are the number of rows and the first row.
"""

from __future__ import annotations

from tpucc.diagnostics import counted
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1.formats import format_of
from tpucc.machines.v1.functions import FUNCTIONS, Function
from tpucc.machines.v1.places import Flag, Place


def brings(instruction: DecodedInstruction) -> str:
    return f"brings {_rows(instruction, 'host')} of host memory to {_rows(instruction, 'dest')} of the unified buffer"


def takes(instruction: DecodedInstruction) -> str:
    return f"takes {_rows(instruction, 'ub')} of the unified buffer to {_rows(instruction, 'host')} of host memory"


def stores_tile(instruction: DecodedInstruction) -> str:
    return f"stores {_rows(instruction, 'host')} of host memory as tile {instruction['index']:,} of weight memory"


def activates(instruction: DecodedInstruction) -> str:
    sums = _rows(instruction, "acc", "accumulator")
    return f"makes values of {sums} as the parameter block says, into {_rows(instruction, 'dest')} of the unified buffer"


def multiplies(instruction: DecodedInstruction) -> str:
    first = "takes the next tile of the FIFO into use; " if Flag.SWITCH in instruction.flags else ""
    adds = "adding to" if Flag.ACCUMULATE in instruction.flags else "into"
    sums = _rows(instruction, "acc", "accumulator")
    return f"{first}multiplies {_rows(instruction, 'ub')} of the unified buffer by the tile in use, {adds} {sums}"


def computes(instruction: DecodedInstruction) -> str:
    function, values = FUNCTIONS[Function(instruction["function"])], instruction.values
    sources = [f"a is {_rows(instruction, 'ub')}"] + ([f"b is {_rows(instruction, 'ub2')}"] if Place.UB2 in function.reads else [])
    if Place.WINDOWS in function.reads:
        sources = [f"windows of {values['window_outer']} × {values['window_inner']} rows, {_rows(instruction, 'ub')} their first"]
    if Place.KERNEL in function.reads:
        sources.append(f"weights from row {values['ub2']:,} on")
    return f"computes {function.summary} in the unified buffer ({', '.join(sources)}), into {_rows(instruction, 'dest')}"


def _rows(instruction: DecodedInstruction, field: str, what: str = "row") -> str:
    """`rows 0 to 399`, `row 7`, and for a walk that leaves rows out `400 rows from row 9 on`."""
    values, count = instruction.values, instruction.values.get("outer", 1) * instruction["inner"]
    first, width = values[field], 1 if field in ("acc", "host") else format_of(instruction.flags).bytes_per_value
    pitch, stride = values.get(f"{field}_pitch", 0), values.get(f"{field}_stride", width)
    together = field in ("acc", "host") or (stride == width and (values.get("outer", 1) == 1 or pitch == instruction["inner"] * stride))
    if count == 1 and width == 1:
        return f"{what} {first:,}"
    if together:
        return f"{what}s {first:,} to {first + count * width - 1:,}"
    return f"{counted(count, what)} from {what} {first:,} on"
