"""Instructions as lines of text and back: `matrix_multiply ub=h.0+8 acc=0 rows=8, switch, accumulate`.

The machine's listing and the tile program's share this: what differs is the operands that an instruction has, and how rows are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NoReturn

import numpy as np

from tpucc.diagnostics import did_you_mean, listed, printable
from tpucc.ir.codec import line_error
from tpucc.isa.fields import kinds, names_of, well_formed
from tpucc.isa.listing.words import Word, keyed, place_of
from tpucc.machine.instruction import MAXIMUM, RECORD, OperandSpec, Records, Space, Spec
from tpucc.machine.machine import Machine
from tpucc.machines import machine_for
from tpucc.numerics import Int64
from tpucc.target import Target, load_target, target_names

NUMBER_COLUMN = 64
"""Where the numbers of instructions stand, in lines that aren't longer."""

Operands = Callable[[Spec, int], Sequence[OperandSpec]]
"""The operands of an instruction with a function, in the order of the text."""
Texts = Callable[[OperandSpec, Int64, Int64], list[str]]
"""The texts of an operand's values: from the operand, the instructions' indices, and the values."""
Resolve = Callable[[OperandSpec, Word], int]
"""The number that an operand's text, a number or a label, stands for. Raises `LineError`."""


def instruction_texts(machine: Machine, records: Records, operands: Operands = Spec.operands_for, texts: Texts | None = None) -> list[str]:
    """One line of text for each record, without its end; records must be well formed.

    Operands at their default and flags that are clear are left out. `texts` shows values, `plain_texts` unless said.
    """
    lines = [""] * len(records)
    shown = texts or partial(plain_texts, machine)
    for code, function, indices in kinds(records):
        spec = machine.by_opcode[code]
        columns = [_column(operand, records, indices, shown) for operand in operands(spec, function)]
        columns.append(_flags(spec, function, records, indices))
        for index, words in zip(indices.tolist(), zip(*columns, strict=True), strict=True):
            lines[index] = spec.mnemonic + "".join(words)
    return lines


def instruction_text(machine: Machine, record: Records) -> str:
    """One record as text: as an instruction, or as its bytes where it isn't a well-formed instruction."""
    row = record.reshape(1)
    return instruction_texts(machine, row)[0] if well_formed(machine, row)[0] else raw_text(row)


def raw_text(record: Records) -> str:
    """A record that no instruction has: `raw` and its bytes in hexadecimal."""
    return f"raw {record.tobytes().hex()}"


def numbered(line: str, index: int) -> str:
    """An instruction as a line of a listing, its number in the comment. Readers of the text don't look at the number."""
    return f"    {line:<{NUMBER_COLUMN - 5}} ; {index}"


def plain_texts(machine: Machine, operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
    """Words for engines and functions, numbers for everything else."""
    names = names_of(machine, operand.space)
    if operand.space == "engines":
        return ["|".join(name for engine, name in names.items() if mask >> engine & 1) for mask in values.tolist()]
    return [names[value] for value in values.tolist()] if names else list(map(str, values.tolist()))


def _column(operand: OperandSpec, records: Records, indices: Int64, texts: Texts) -> list[str]:
    values = records[operand.field][indices].astype("i8")
    shown = [f" {operand.key}={text}" for text in texts(operand, indices, values)]
    if operand.default is not None:
        for position in (values == operand.default).nonzero()[0].tolist():
            shown[position] = ""
    return shown


def _flags(spec: Spec, function: int, records: Records, indices: Int64) -> list[str]:
    names = spec.flags_for(function)
    texts: dict[int, str] = {}
    flags = records["flags"][indices].tolist()
    for value in set(flags):
        texts[value] = "".join(f", {name}" for flag, name in names if value & flag)
    return [texts[value] for value in flags]


def _runs(target: Target, mnemonic: str) -> bool:
    """Whether programs for a target may have an instruction of this name."""
    machine = machine_for(target)
    return mnemonic in machine.by_mnemonic and not machine.obstacle(target)


def instruction_fields(machine: Machine, line: Sequence[Word], resolve: Resolve, operands: Operands = Spec.operands_for) -> dict[str, int]:
    """The fields of the instruction whose words are `line` (at least one word); fields that it doesn't name have their defaults.

    Raises `LineError`: E0710 unknown mnemonic, E0711 unknown operand or flag, E0712 missing operand, E0713 bad value, E0714 given twice.
    """
    head = line[0]
    if head.text == "raw" and not head.key:
        return _raw(line)
    spec = machine.by_mnemonic.get(head.text) if not head.key else None
    if spec is None:
        near = "a comment begins with ;" if head.text.startswith(("#", "//")) else did_you_mean(head.text, machine.by_mnemonic)
        others = [target.name for target in map(load_target, target_names()) if _runs(target, head.text)]
        elsewhere = f"on {listed(others, 'or')} there is one: .target says which machine the listing is for" if others else ""
        choices = f"the instructions are {listed([*machine.by_mnemonic])}"
        raise line_error("E0710", f"no instruction is named {head}", head.span, elsewhere or near or choices)
    given, flags = keyed(line[1:]), [word for word in line[1:] if not word.key]
    function = _number(machine, spec, "function", given["function"]) if spec.functions and "function" in given else 0
    fields = {"opcode": spec.opcode.value, "flags": 0}
    used, known = operands(spec, function), _flag_names(spec, function)
    keys = [operand.key for operand in used]
    for word in given.values():
        if word.key not in keys:
            _require_other_function(word, head, given, spec)
            _unknown(word, head, keys)
    for operand in used:
        fields[operand.field] = _value(machine, spec, operand, given.get(operand.key), head, resolve)
    if "inner" in fields:
        fields.setdefault("outer", 1)
    for word in flags:
        if word.text not in known:
            _unknown(word, head, [*known, *keys])
        fields["flags"] |= known[word.text]
    return fields


def _value(machine: Machine, spec: Spec, operand: OperandSpec, word: Word | None, mnemonic: Word, resolve: Resolve) -> int:
    if word is None:
        if operand.default is None:
            raise line_error("E0712", f"{mnemonic} needs {operand.key}: {operand.meaning}", mnemonic.span)
        return operand.default
    value = _number(machine, spec, operand.space, word) if names_of(machine, operand.space) else resolve(operand, word)
    if not 0 <= value <= MAXIMUM[operand.field]:
        word.fail("E0713", f"{operand.key} must be from 0 to {MAXIMUM[operand.field]:,}")
    return value


def _number(machine: Machine, spec: Spec, space: Space, word: Word) -> int:
    """The value that a function's name stands for, or an engine's, or several engines' names joined by a bar."""
    known = _values(machine, spec, space)
    texts = word.text.split("|") if space == "engines" else [word.text]
    for text in texts:
        if text not in known and space == "function":
            word.fail("E0713", f"{spec.mnemonic} has no function {printable(text)}", f"its functions are {listed([*known])}")
        elif text not in known:
            several = [name for name in re.split(r"\W", text) if name in known]
            near = f"several engines are joined by |: {'|'.join(several)}" if len(several) > 1 else did_you_mean(text, known)
            choices = f"the engines are {listed([*known])}, several joined by |"
            word.fail("E0713", f"no engine is named {printable(text)}", near or choices)
    return sum({1 << known[text] for text in texts}) if space == "engines" else known[texts[0]]


@cache
def _values(machine: Machine, spec: Spec, space: Space) -> Mapping[str, int]:
    """The numbers of an instruction's functions, or of the machine's engines, by their names."""
    names = names_of(machine, space)
    return {names[value]: int(value) for value in (spec.functions if space == "function" else names)}


@cache
def _flag_names(spec: Spec, function: int) -> Mapping[str, int]:
    return {text: int(flag) for flag, text in spec.flags_for(function)}


def _require_other_function(word: Word, mnemonic: Word, given: Mapping[str, Word], spec: Spec) -> None:
    """Raises `LineError` E0711 for an operand that another function of the instruction has."""
    if "function" in given and word.key in {operand.key for operand in spec.operands}:
        function = f"function={given['function'].text}"
        raise line_error("E0711", f"{function} has no {word.key}", word.span, f"{mnemonic} has {word.key} with another function")


def _unknown(word: Word, mnemonic: Word, known: Sequence[str]) -> NoReturn:
    what = "operand" if word.key else "flag"
    near = did_you_mean(word.key or word.text, known)
    choices = f"it has {listed(list(known))}" if known else "it has none"
    raise line_error("E0711", f"{mnemonic} has no {what} {printable(word.key or word.text)}", word.span, near or choices)


def _raw(line: Sequence[Word]) -> dict[str, int]:
    """A record by its bytes, for listings of programs that the verifier will refuse."""
    text = line[1].text if len(line) == 2 and not line[1].key else ""
    try:
        row = np.frombuffer(bytes.fromhex(text), RECORD)
    except ValueError:
        row = np.zeros(0, RECORD)
    if len(row) != 1 or text.lower() != text:
        raise line_error("E0713", "raw takes the 64 bytes of a record in hexadecimal", place_of(line))
    return {field: int(row[0][field]) for field in RECORD.names or ()}


def records_of(rows: Sequence[Mapping[str, int]], dtype: np.dtype[np.void]) -> Records:
    """Records from the fields of lines; fields that a line lacks are zero."""
    names = dtype.names or ()
    return np.array([tuple([row.get(name, 0) for name in names]) for row in rows], dtype)
