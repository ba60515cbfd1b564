"""Instructions as lines of text and back: `matrix_multiply ub=h.0+8 acc=0 rows=8, switch, accumulate`.

The machine's listing and the tile program's share this: what differs is the operands that an instruction has, and how rows are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NoReturn

import numpy as np

from tpucc.diagnostics import did_you_mean, listed, printable
from tpucc.isa.fields import MAXIMUM, kinds, names_of, well_formed
from tpucc.isa.instructions import RECORD, SPECS, Flag, Opcode, OperandSpec, Records, Space, Spec
from tpucc.isa.listing.words import Word, line_error, place_of
from tpucc.numerics import Int64

NUMBER_COLUMN = 64
"""Where the numbers of instructions stand, in lines that aren't longer."""
_MNEMONICS = {opcode.mnemonic: opcode for opcode in Opcode}

Operands = Callable[[Opcode, int], Sequence[OperandSpec]]
"""The operands of an opcode with a function, in the order of the text."""
Texts = Callable[[OperandSpec, Int64, Int64], list[str]]
"""The texts of an operand's values: from the operand, the instructions' indices, and the values."""
Resolve = Callable[[OperandSpec, Word], int]
"""The number that an operand's text, a number or a label, stands for. Raises `LineError`."""


def machine_operands(opcode: Opcode, function: int) -> Sequence[OperandSpec]:
    """The operands of the machine's instructions, as `SPECS` has them."""
    return SPECS[opcode].operands_for(function)


def instruction_texts(records: Records, operands: Operands = machine_operands, texts: Texts | None = None) -> list[str]:
    """One line of text for each record, without its end; records must be well formed.

    Operands at their default and flags that are clear are left out. `texts` shows values, `plain_texts` unless said.
    """
    lines = [""] * len(records)
    for code, function, indices in kinds(records):
        opcode = Opcode(code)
        columns = [_column(operand, records, indices, texts or plain_texts) for operand in operands(opcode, function)]
        columns.append(_flags(opcode, function, records, indices))
        mnemonic = opcode.mnemonic
        for index, words in zip(indices.tolist(), zip(*columns, strict=True), strict=True):
            lines[index] = mnemonic + "".join(words)
    return lines


def instruction_text(record: Records) -> str:
    """One record as text; one that is no well-formed instruction as its bytes."""
    row = record.reshape(1)
    return instruction_texts(row)[0] if well_formed(row)[0] else raw_text(row)


def raw_text(record: Records) -> str:
    """A record that no instruction has: `raw` and its bytes in hexadecimal."""
    return f"raw {record.tobytes().hex()}"


def numbered(line: str, index: int) -> str:
    """An instruction as a line of a listing, its number in the comment. Readers of the text don't look at the number."""
    return f"    {line:<{NUMBER_COLUMN - 5}} ; {index}"


def plain_texts(operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
    """Words for engines and functions, numbers for everything else."""
    names = names_of(operand.space)
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


def _flags(opcode: Opcode, function: int, records: Records, indices: Int64) -> list[str]:
    names = SPECS[opcode].flags_for(function)
    texts: dict[int, str] = {}
    flags = records["flags"][indices].tolist()
    for value in set(flags):
        texts[value] = "".join(f", {name}" for flag, name in names if Flag(value) & flag)
    return [texts[value] for value in flags]


def instruction_fields(line: Sequence[Word], resolve: Resolve, operands: Operands = machine_operands) -> dict[str, int]:
    """The fields of the instruction whose words are `line` (at least one); those that it doesn't name have their default.

    Raises `LineError`: E0710 unknown mnemonic, E0711 unknown operand or flag, E0712 missing operand, E0713 bad value, E0714 given twice.
    """
    if line[0].text == "raw" and not line[0].key:
        return _raw(line)
    opcode = _opcode(line[0])
    given, flags = _given(line[1:])
    function = _function(opcode, given)
    fields = {"opcode": int(opcode), "flags": 0}
    used = operands(opcode, function)
    keys = [operand.key for operand in used]
    for word in given.values():
        if word.key not in keys:
            _require_other_function(word, line[0], given, SPECS[opcode])
            _unknown(word, line[0], keys)
    for operand in used:
        fields[operand.field] = _value(operand, given, line[0], resolve)
    if "inner" in fields:
        fields.setdefault("outer", 1)
    for word in flags:
        fields["flags"] |= _flag(word, line[0], _flag_names(opcode, function), keys)
    return fields


def _opcode(word: Word) -> Opcode:
    opcode = _MNEMONICS.get(word.text) if not word.key else None
    if opcode is None:
        near = "a comment begins with ;" if word.text.startswith(("#", "//")) else did_you_mean(word.text, _MNEMONICS)
        raise line_error("E0710", f"no instruction is named {word}", word.span, near or f"the instructions are {listed(list(_MNEMONICS))}")
    return opcode


def _given(line: Sequence[Word]) -> tuple[dict[str, Word], list[Word]]:
    given: dict[str, Word] = {}
    flags = []
    for word in line:
        if not word.key:
            flags.append(word)
        elif word.key in given:
            raise line_error("E0714", f"{word.key} is given twice", word.span)
        else:
            given[word.key] = word
    return given, flags


def _function(opcode: Opcode, given: Mapping[str, Word]) -> int:
    """The function, read first because it decides which operands there are."""
    functions = SPECS[opcode].functions
    if not functions or "function" not in given:
        return 0
    word = given["function"]
    names = {function.name.lower(): function.value for function in functions}
    if word.text not in names:
        word.fail("E0713", f"{opcode.mnemonic} has no function {printable(word.text)}", f"its functions are {listed([*names])}")
    return names[word.text]


def _value(operand: OperandSpec, given: Mapping[str, Word], mnemonic: Word, resolve: Resolve) -> int:
    word = given.get(operand.key)
    if word is None:
        if operand.default is None:
            raise line_error("E0712", f"{mnemonic} needs {operand.key}: {operand.meaning}", mnemonic.span)
        return operand.default
    value = _number(operand, word, resolve)
    if not 0 <= value <= MAXIMUM[operand.field]:
        word.fail("E0713", f"{operand.key} must be from 0 to {MAXIMUM[operand.field]:,}")
    return value


def _number(operand: OperandSpec, word: Word, resolve: Resolve) -> int:
    words = _values_of(operand.space)
    if operand.space == "engines":
        return sum({1 << _engine(word, text, words) for text in word.text.split("|")})
    if operand.space == "engine":
        return _engine(word, word.text, words)
    return words[word.text] if words else resolve(operand, word)


@cache
def _values_of(space: Space) -> Mapping[str, int]:
    return {name: value for value, name in names_of(space).items()}


def _engine(word: Word, text: str, engines: Mapping[str, int]) -> int:
    if text not in engines:
        near = did_you_mean(text, engines)
        word.fail("E0713", f"no engine is named {printable(text)}", near or f"the engines are {listed([*engines])}, several joined by |")
    return engines[text]


def _flag(word: Word, mnemonic: Word, known: Mapping[str, int], keys: Sequence[str]) -> int:
    if word.text not in known:
        _unknown(word, mnemonic, [*known, *keys])
    return known[word.text]


@cache
def _flag_names(opcode: Opcode, function: int) -> Mapping[str, int]:
    return {text: int(flag) for flag, text in SPECS[opcode].flags_for(function)}


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
