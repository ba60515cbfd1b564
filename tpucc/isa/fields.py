"""Which fields of a record may hold what: the encoding's own rules, for whole programs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.machine.instruction import OPERANDS, Records, Space, Spec
from tpucc.machine.machine import Machine
from tpucc.numerics import Int64


def kinds(records: Records) -> list[tuple[int, int, Int64]]:
    """The instructions by opcode and function: (opcode, function, indices in order), in the order of these."""
    if not len(records):
        return []
    key = records["opcode"].astype(np.int64) * 256 + records["function"]
    order = np.argsort(key, kind="stable")
    found, starts = np.unique(key[order], return_index=True)
    return [(int(k) // 256, int(k) % 256, part) for k, part in zip(found, np.split(order, starts[1:]), strict=True)]


@cache
def constants(spec: Spec, function: int) -> tuple[tuple[str, int], ...]:
    """The fields that an instruction doesn't use, each with the one value it may have.

    That is zero, but one for `outer` where rows are counted by `inner` alone.
    """
    used = {operand.field for operand in spec.operands_for(function)}
    return tuple((field, int(field == "outer" and "inner" in used)) for field in OPERANDS if field not in used)


@cache
def names_of(machine: Machine, space: Space) -> Mapping[int, str]:
    """The words that stand for the values of an operand of this kind, a bit each of `engines`; none where values are numbers."""
    if space in ("engine", "engines"):
        return {unit.engine.value: unit.word for unit in machine.units}
    if space == "function":
        return {number: row.function.name.lower() for number, row in machine.functions.items()}
    return {}


class Fault(NamedTuple):
    """Why some records aren't instructions: the rule of the verifier's group 2, the field and its key, which records, and the flags that
    may be set (V0202) or the one value (V0203)."""

    rule: str
    field: str
    key: str
    wrong: Bools
    allowed: int = 0


def faults(machine: Machine, spec: Spec, function: int, records: Records) -> Iterator[Fault]:
    """The possible faults of records of one mnemonic and function."""
    flags = sum(flag for flag, _ in spec.flags_for(function))
    yield Fault("V0202", "flags", "flags", (records["flags"] & ~np.uint8(flags)) != 0, flags)
    for field, value in constants(spec, function):
        yield Fault("V0203", field, field, records[field] != value, value)
    for operand in spec.operands_for(function):
        if names := names_of(machine, operand.space):
            values = records[operand.field]
            known = [*spec.functions] if operand.space == "function" else [*names]
            most = (1 << len(machine.units)) - 1
            wrong = (values == 0) | (values > most) if operand.space == "engines" else ~np.isin(values, known)
            yield Fault("V0204", operand.field, operand.key, wrong)


def well_formed(machine: Machine, records: Records) -> Bools:
    """Whether each record is an instruction in its one encoding: known opcode, flags and enumerations, unused fields at their constant."""
    good = np.zeros(len(records), np.bool_)
    for code, function, indices in kinds(records):
        if (spec := machine.by_opcode.get(code)) is not None:
            good[indices] = ~np.logical_or.reduce([fault.wrong for fault in faults(machine, spec, function, records[indices])])
    return good
