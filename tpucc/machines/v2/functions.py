"""The computations of v2's units, and the functions of `vector` and `reduce`.

What they mean is the float arithmetic of `tpucc.floating`: a product is the exact sum of at most `mxu` products of bfloat16 values, rounded
once to float32; a sum of lanes is a halving tree; an expression is single float32 operations in the order of its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from tpucc.floating.all_reduce import all_reduce_steps
from tpucc.floating.matrix_unit import Rounded, product, rounded
from tpucc.floating.reduction import tree_sum
from tpucc.machine.instruction import DecodedInstruction, FunctionSpec, one_row_each
from tpucc.machine.parts import NOWHERE
from tpucc.machines.v2.expressions import Expression
from tpucc.machines.v2.places import Flag, Place
from tpucc.numerics import AnyArray, Float32, Int64

ZERO = np.array(0, np.float32)
HALF, TURNED, CLEAR = (int(flag) for flag in (Flag.HALF, Flag.TURNED, Flag.CLEAR))


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """What an instruction computes with: its flags and `fields`, the machine's number of `lanes`, and what it reads: rows [n, lanes], or
    [n, 1] where lane 0 stands for all; the tile in use; the expression. Of an instruction of all cores, `hbm` is
    [cores, n, lanes]."""

    flags: int
    fields: Mapping[str, int]
    lanes: int
    a: Any = None
    b: Any = None
    c: Any = None
    old: Any = None
    sums: Any = None
    hbm: Any = None
    table: Any = None
    indices: Any = None
    tile: Rounded | None = None
    expression: Expression | None = None


class Function(IntEnum):
    """The functions of `vector` and `reduce`."""

    OF_NONE = 0
    OF_A = 1
    OF_AB = 2
    OF_ABC = 3
    SUM = 4
    LARGEST = 5


def evaluated(x: Operands) -> AnyArray:
    """The expression, element by element."""
    assert x.expression is not None
    sources = {"a": x.a, "b": x.b, "c": x.c}
    return x.expression(sources, x.fields["outer"] * x.fields["inner"], x.lanes)


def sum_of_lanes(x: Operands) -> Float32:
    """The sum of the first lanes of each row, a halving tree."""
    sums: Float32 = tree_sum(x.a[:, : x.fields["window_inner"]], (1,))
    return sums[:, np.newaxis]


def largest_lane(x: Operands) -> Float32:
    """The largest of the first lanes of each row."""
    found: Float32 = np.maximum.reduce(x.a[:, : x.fields["window_inner"]], 1, keepdims=True)
    return found


def moved(x: Operands) -> Float32:
    """The rows as they are (`load`, `store`). With the flag `half`, the lower 16 bits of each value become 0: what is left is a bfloat16
    value, held as float32."""
    rows: Float32 = x.a if x.hbm is None else x.hbm
    return (rows.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) if x.flags & HALF else rows


def pushed(x: Operands) -> Any:
    """The tile that `push_weights` adds to the queue: a block of rows and lanes, rounded to bfloat16. With the flag `turned` the block is
    transposed."""
    block = x.a[:, : x.fields["window_inner"]]
    return rounded(np.ascontiguousarray(block.T if x.flags & TURNED else block))


def multiplied(x: Operands) -> Float32:
    """The rows times the tile in use, added to the sums that are read. Lanes that the tile hasn't become 0."""
    assert x.tile is not None
    depth, width = x.tile.shape
    passed = product(rounded(x.a[:, :depth]), x.tile, depth)
    total = np.zeros((len(passed), x.lanes), np.float32)
    with np.errstate(all="ignore"):
        np.add(passed, ZERO if x.sums is None else x.sums[:, :width], out=total[:, :width])
    return total


def turned(x: Operands) -> Float32:
    """The block of rows and lanes with rows as lanes. Lanes past the block's rows become 0."""
    result = np.zeros((x.fields["inner"], x.lanes), np.float32)
    result[:, : len(x.a)] = x.a[:, : x.fields["inner"]].T
    return result


def shifted(x: Operands) -> AnyArray:
    """Lanes `from`… of each row at the lanes `to`… of the result, whose other lanes are kept, or 0."""
    start, to, count = x.fields["window_outer"], x.fields["index"], x.fields["window_inner"]
    result: Float32 = np.zeros_like(x.old) if x.flags & CLEAR else x.old.copy()
    result[:, to : to + count] = x.a[:, start : start + count]
    return result


def gathered(x: Operands) -> Float32:
    """The rows of the table with these indices."""
    rows: Float32 = x.table[_indices(x)]
    return rows


def scattered(x: Operands) -> Float32:
    """The table, to whose rows with these indices other rows were added, one after the other."""
    table: Float32 = x.table.copy()
    with np.errstate(all="ignore"):
        np.add.at(table, _indices(x), x.a)
    return table


def _indices(x: Operands) -> Int64:
    """The indices, in lane 0. One outside of the table stands for the nearest row, and NaN for the first."""
    nearest: Float32 = np.fmin(np.fmax(x.indices[:, 0], 0), len(x.table) - 1)
    return nearest.astype(np.int64)


def copied_lanes(instruction: DecodedInstruction) -> tuple[slice, slice] | None:
    """The lanes of the source that `shifted` copies, and the lanes of the result that they go to. None with the flag `clear`: then it also
    writes zeros, so that it is more than a copy."""
    start, to, count = (instruction[field] for field in ("window_outer", "index", "window_inner"))
    return None if instruction.flags & CLEAR else (slice(start, start + count), slice(to, to + count))


def averaged(x: Operands) -> Float32:
    """The mean of the rows of all cores, as each core has it in the end: [cores, n, lanes]. `index` is the number of
    microbatches that each core has added up."""
    return np.stack(all_reduce_steps(x.hbm, x.fields["index"]))


FUNCTIONS: Mapping[Function, FunctionSpec] = one_row_each(
    "FUNCTIONS (tpucc/machines/v2/functions.py)",
    Function,
    (
        FunctionSpec(Function.OF_NONE, NOWHERE, "an expression without sources", evaluated),
        FunctionSpec(Function.OF_A, Place.A, "an expression of a", evaluated),
        FunctionSpec(Function.OF_AB, Place.A | Place.B, "an expression of a and b", evaluated),
        FunctionSpec(Function.OF_ABC, Place.A | Place.B | Place.C, "an expression of a, b and c", evaluated),
        FunctionSpec(Function.SUM, Place.ROWS, "the sum of the first lanes of each row, in lane 0 and all others", sum_of_lanes),
        FunctionSpec(Function.LARGEST, Place.ROWS, "the largest of the first lanes of each row, in lane 0 and all others", largest_lane),
    ),
    lambda row: Function(row.function),
)
EXPRESSIONS = (Function.OF_NONE, Function.OF_A, Function.OF_AB, Function.OF_ABC)
"""The functions of `vector`, by the number of sources."""


def functions(*chosen: Function) -> Mapping[IntEnum, FunctionSpec]:
    """The entries of `FUNCTIONS` for the functions that an instruction has."""
    return MappingProxyType({function: FUNCTIONS[function] for function in chosen})


def operands(flags: Any, **read: Any) -> Operands:
    """The operands of an instruction, by their names."""
    return Operands(int(flags), **read)
