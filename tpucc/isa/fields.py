"""Which fields of a record may hold what: the encoding's own rules, for whole programs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple, assert_never

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.instructions import RECORD, SPECS, UNITS, Function, Opcode, Records, Space
from tpucc.numerics import Int64

FIELDS: tuple[str, ...] = RECORD.names or ()
OPERANDS = tuple(field for field in FIELDS if field not in ("opcode", "flags"))
ALL_UNITS = sum(1 << unit for unit in UNITS)
MAXIMUM = {field: int(np.iinfo(RECORD[field]).max) for field in FIELDS}


def kinds(records: Records) -> list[tuple[int, int, Int64]]:
    """The instructions by opcode and function: (opcode, function, indices in order), in the order of these."""
    if not len(records):
        return []
    key = records["opcode"].astype(np.int64) * 256 + records["function"]
    order = np.argsort(key, kind="stable")
    found, starts = np.unique(key[order], return_index=True)
    return [(int(k) // 256, int(k) % 256, part) for k, part in zip(found, np.split(order, starts[1:]), strict=True)]


@cache
def constants(opcode: Opcode, function: int) -> tuple[tuple[str, int], ...]:
    """The fields that an instruction doesn't use, each with the one value it may have.

    That is zero, but one for `outer` where rows are counted by `inner` alone.
    """
    used = {operand.field for operand in SPECS[opcode].operands_for(function)}
    return tuple((field, int(field == "outer" and "inner" in used)) for field in OPERANDS if field not in used)


@cache
def names_of(space: Space) -> Mapping[int, str]:
    """The words that stand for the values of an operand of this kind, a bit each of `engines`; none where values are numbers."""
    match space:
        case "engine" | "engines":
            return {unit.value: unit.name.lower() for unit in UNITS}
        case "function":
            return {function.value: function.name.lower() for function in Function}
        case "ub" | "acc" | "host" | "count" | "step" | "tile" | "block" | "host step" | "tag":
            return {}
        case _:
            assert_never(space)


class Fault(NamedTuple):
    """Why some records aren't instructions: the rule of the verifier's group 2, the field and its key, which records, and the flags that
    may be set (V0202) or the one value (V0203)."""

    rule: str
    field: str
    key: str
    wrong: Bools
    allowed: int = 0


def faults(opcode: Opcode, function: int, records: Records) -> Iterator[Fault]:
    """The possible faults of records of one opcode and function."""
    spec = SPECS[opcode]
    flags = sum(flag for flag, _ in spec.flags_for(function))
    yield Fault("V0202", "flags", "flags", (records["flags"] & ~np.uint8(flags)) != 0, flags)
    for field, value in constants(opcode, function):
        yield Fault("V0203", field, field, records[field] != value, value)
    for operand in spec.operands_for(function):
        if names := names_of(operand.space):
            values = records[operand.field]
            known = spec.functions if operand.space == "function" else [*names]
            wrong = (values == 0) | (values > ALL_UNITS) if operand.space == "engines" else ~np.isin(values, known)
            yield Fault("V0204", operand.field, operand.key, wrong)


def well_formed(records: Records) -> Bools:
    """Whether each record is an instruction in its one encoding: known opcode, flags and enumerations, unused fields at their constant."""
    good = np.zeros(len(records), np.bool_)
    for code, function, indices in kinds(records):
        if code in SPECS:
            good[indices] = ~np.logical_or.reduce([fault.wrong for fault in faults(Opcode(code), function, records[indices])])
    return good
