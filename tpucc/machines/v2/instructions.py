"""The instruction set of v2: one row for each mnemonic, with all facts about it.

An instruction is a loop over registers of `sublanes` rows. The cycles of transposes, sums of lanes and moves are assumed; what the others
take follows from the published units (`units.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from tpucc.machine.control import halt, synchronize
from tpucc.machine.instruction import OperandSpec, Spec, one_row_each
from tpucc.machine.parts import NOWHERE, Workload
from tpucc.machines.v2.functions import (
    EXPRESSIONS,
    Function,
    averaged,
    copied_lanes,
    functions,
    gathered,
    moved,
    multiplied,
    pushed,
    scattered,
    shifted,
    turned,
)
from tpucc.machines.v2.links import all_reduce, core_bandwidth
from tpucc.machines.v2.places import Engine, Flag, Place, flag_rows
from tpucc.machines.v2.sentences import averages, computes, gathers, loads, multiplies, pushes, reduces, scatters, shifts, stores, turns
from tpucc.machines.v2.units import row_bytes, tree_steps
from tpucc.numerics import Int64
from tpucc.target import Target


class Opcode(IntEnum):
    HALT = 0
    SYNCHRONIZE = 1
    LOAD = 2
    STORE = 3
    PUSH_WEIGHTS = 4
    MATRIX_MULTIPLY = 5
    VECTOR = 6
    MOVE_LANES = 7
    TRANSPOSE = 8
    REDUCE = 9
    ALL_REDUCE = 10
    GATHER = 11
    SCATTER_ADD = 12


# Durations. The first sentence of a docstring stands in the reference of the instruction set.


def _transfer(work: Workload) -> Int64:
    """Takes the latency of HBM, and the time of its bytes at a core's share of the bandwidth."""
    return _moved(work.link_bytes, work.target)


def _gather(work: Workload) -> Int64:
    """Takes the latency of HBM, and the time of a row for each index, at a core's share of the bandwidth."""
    return _moved(work.rows * row_bytes(work.target), work.target)


def _scatter(work: Workload) -> Int64:
    """Takes the latency of HBM, and the time of three rows for each index, at a core's share of the bandwidth (assumed)."""
    return _moved(3 * work.rows * row_bytes(work.target), work.target)


def _moved(link_bytes: Int64, target: Target) -> Int64:
    """The latency of HBM, and the time of so many bytes."""
    latency, bandwidth = round(target.hbm_latency_seconds * target.clock_hz), core_bandwidth(target)
    sizes, which = np.unique(link_bytes, return_inverse=True)
    return np.array([latency + target.transfer_cycles(size, bandwidth) for size in sizes.tolist()], np.int64)[which]


def _exchange(work: Workload) -> Int64:
    """Takes the exchange of its bytes among the cores, and the time in which HBM gives them and takes them again."""
    sizes, which = np.unique(work.link_bytes, return_inverse=True)
    between = [round(all_reduce(size, work.cores, work.target).seconds * work.target.clock_hz) for size in sizes.tolist()]
    memory = [work.target.transfer_cycles(2 * size, core_bandwidth(work.target)) for size in sizes.tolist()]
    return np.array([sum(both) for both in zip(between, memory, strict=True)], np.int64)[which]


def _a_tile(work: Workload) -> int:
    """Takes a cycle for each row of the matrix unit."""
    return work.target.mxu


def _a_row(work: Workload) -> Int64:
    """Takes one cycle for each row that streams."""
    return work.rows


def _expression(work: Workload) -> Int64:
    """Takes the bundles of its expression for each register of rows."""
    return _registers(work) * work.bundles


def _registers(work: Workload) -> Int64:
    """Takes one cycle for each register of rows."""
    return -(-work.rows // max(1, work.target.sublanes))


def _tree(work: Workload) -> Int64:
    """Takes the steps of a halving tree over all lanes for each register of rows."""
    return _registers(work) * tree_steps(work.target)


_LANES = OperandSpec("window_inner", "lanes", "extent", "how many of their lanes, from lane 0 on")
_ROWS = OperandSpec("inner", "rows", "count", "how many rows, one after the other")
_A = OperandSpec("ub", "a", "vmem", "first source row")
_Y = OperandSpec("dest", "y", "vmem", "first row of the result")
_HBM = OperandSpec("host", "hbm", "hbm", "first row in HBM")
_HALF = flag_rows(Flag.HALF)
_INDICES = OperandSpec("ub2", "indices", "vmem", "first row of the indices, each in lane 0 of a row")
_TABLE = (
    OperandSpec("host", "hbm", "hbm", "first row of the table in HBM"),
    OperandSpec("index", "height", "count", "how many rows the table has"),
)


def _walk(field: str, key: str, meaning: str, of: Place = NOWHERE) -> tuple[OperandSpec, ...]:
    return (
        OperandSpec(field, key, "vmem", meaning, of=of),
        OperandSpec(f"{field}_pitch", f"{key}_pitch", "step", f"rows from one outer step to the next of {key}", 0, of),
        OperandSpec(f"{field}_stride", f"{key}_stride", "step", f"rows from one inner step to the next of {key}; 0 repeats a row", 1, of),
    )


SPECS: Mapping[Opcode, Spec] = one_row_each(
    "SPECS (tpucc/machines/v2/instructions.py)",
    Opcode,
    (
        halt(Opcode.HALT, Engine.CONTROL),
        synchronize(Opcode.SYNCHRONIZE, Engine.CONTROL),
        Spec(
            Opcode.LOAD,
            Engine.MEMORY,
            "HBM to vector memory.",
            _transfer,
            loads,
            (_HBM, _Y, _ROWS),
            _HALF,
            reads=Place.HBM,
            writes=Place.Y,
            compute=moved,
        ),
        Spec(
            Opcode.STORE,
            Engine.MEMORY,
            "Vector memory to HBM.",
            _transfer,
            stores,
            (_A, _HBM, _ROWS),
            _HALF,
            reads=Place.ROWS,
            writes=Place.HBM,
            compute=moved,
        ),
        Spec(
            Opcode.PUSH_WEIGHTS,
            Engine.WEIGHTS,
            "A block of rows and lanes as the matrix unit's next tile. Nothing is multiplied beyond the block.",
            _a_tile,
            pushes,
            (_A, OperandSpec("inner", "rows", "extent", "how many rows, one after the other"), _LANES),
            flag_rows(Flag.TURNED),
            reads=Place.ROWS,
            writes=Place.FIFO,
            compute=pushed,
        ),
        Spec(
            Opcode.MATRIX_MULTIPLY,
            Engine.MATRIX,
            "Rows times the tile in use: operands rounded to bfloat16, each sum of products exact and rounded once to float32.",
            _a_row,
            multiplies,
            (_A, OperandSpec("acc", "y", "vmem", "first row of the sums; the others follow it"), _ROWS),
            flag_rows(Flag.SWITCH | Flag.ACCUMULATE),
            reads=Place.ROWS | Place.TILE,
            writes=Place.SUMS,
            compute=multiplied,
        ),
        Spec(
            Opcode.VECTOR,
            Engine.VECTOR,
            "An expression, element by element.",
            _expression,
            computes,
            (
                OperandSpec("function", "function", "function", "which sources it has"),
                OperandSpec("index", "expression", "expression", "expression of the program"),
                *_walk("ub", "a", "first row of source a", Place.A),
                *_walk("ub2", "b", "first row of source b", Place.B),
                OperandSpec("acc", "c", "vmem", "first row of source c; the others follow it", of=Place.C),
                *_walk("dest", "y", "first row of the result"),
                OperandSpec("outer", "outer", "count", "outer steps of the walks", 1),
                OperandSpec("inner", "inner", "count", "inner steps of the walks"),
            ),
            flag_rows(Flag.SPLAT_A | Flag.SPLAT_B | Flag.SPLAT_C),
            functions(*EXPRESSIONS),
            reads=Place.EXPRESSION,
            writes=Place.Y,
        ),
        Spec(
            Opcode.MOVE_LANES,
            Engine.LANES,
            "Lanes of rows to other lanes.",
            _registers,
            shifts,
            (
                *_walk("ub", "a", "first source row"),
                *_walk("dest", "y", "first row of the result"),
                OperandSpec("outer", "outer", "count", "outer steps of the walks", 1),
                OperandSpec("inner", "inner", "count", "inner steps of the walks"),
                OperandSpec("window_outer", "from", "lane", "first lane of the source"),
                OperandSpec("index", "to", "lane", "first lane of the result"),
                OperandSpec("window_inner", "lanes", "extent", "how many lanes"),
            ),
            flag_rows(Flag.CLEAR),
            reads=Place.A | Place.OLD,
            writes=Place.Y,
            by_rows=True,
            copied=copied_lanes,
            compute=shifted,
        ),
        Spec(
            Opcode.TRANSPOSE,
            Engine.LANES,
            "A block of at most `mxu` rows, whose lanes become rows.",
            _a_tile,
            turns,
            (
                _A,
                OperandSpec("window_inner", "rows", "extent", "how many rows"),
                _Y,
                OperandSpec("inner", "lanes", "extent", "how many lanes"),
            ),
            reads=Place.BLOCK,
            writes=Place.Y,
            compute=turned,
        ),
        Spec(
            Opcode.REDUCE,
            Engine.LANES,
            "One value of the first lanes of each row.",
            _tree,
            reduces,
            (OperandSpec("function", "function", "function", "what is computed"), _A, _Y, _ROWS, _LANES),
            functions=functions(Function.SUM, Function.LARGEST),
            writes=Place.Y,
        ),
        Spec(
            Opcode.ALL_REDUCE,
            Engine.LINKS,
            "The mean of rows over the cores, on each of them. It begins when all cores have come to it.",
            _exchange,
            averages,
            (_HBM, _ROWS, OperandSpec("index", "microbatches", "count", "of how many parts of the batch each core has the sum", 1)),
            reads=Place.HBM | Place.CORES,
            writes=Place.HBM,
            compute=averaged,
        ),
        Spec(
            Opcode.GATHER,
            Engine.MEMORY,
            "Rows of a table in HBM to vector memory, by their indices.",
            _gather,
            gathers,
            (_INDICES, *_TABLE, _Y, _ROWS),
            reads=Place.INDICES | Place.TABLE,
            writes=Place.Y,
            compute=gathered,
        ),
        Spec(
            Opcode.SCATTER_ADD,
            Engine.MEMORY,
            "Rows of vector memory added to rows of a table in HBM, by the indices of these, one after the other.",
            _scatter,
            scatters,
            (_A, _INDICES, *_TABLE, _ROWS),
            reads=Place.ROWS | Place.INDICES | Place.TABLE,
            writes=Place.TABLE,
            compute=scattered,
        ),
    ),
    lambda row: Opcode(row.opcode),
)
