"""Instructions from text: one line to the values of a record's fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NoReturn, assert_never

from tpucc.diagnostics import Span, did_you_mean, listed, printable
from tpucc.isa.fields import MAXIMUM
from tpucc.isa.instructions import RECORD, SPECS, UNITS, Engine, Function, Opcode, OperandSpec
from tpucc.isa.listing.printing import Operands, machine_operands
from tpucc.isa.listing.words import Word, line_error, number_in

MNEMONICS = {opcode.mnemonic: opcode for opcode in Opcode}
_ENGINES = {engine.name.lower(): engine for engine in UNITS}
_FUNCTIONS = {function.name.lower(): function for function in Function}

Resolve = Callable[[OperandSpec, Word], int]
"""The number that an operand's text stands for when it is no plain number: a label. Raises `LineError`."""


def no_labels(operand: OperandSpec, word: Word) -> int:
    """For texts without labels: everything must be a number."""
    word.fail("E0713", f"expected a number for {word.key}, found {printable(word.text)}")


def instruction_fields(
    line: Sequence[Word], operands: Operands = machine_operands, resolve: Resolve = no_labels, limits: Mapping[str, int] = MAXIMUM
) -> dict[str, int]:
    """The fields of the instruction whose words are `line` (at least one); those that it doesn't name have their default.

    Raises `LineError`: E0710 unknown mnemonic, E0711 unknown operand or flag, E0712 missing operand, E0713 bad value, E0714 given twice.
    `limits` has the largest value of each field.
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
            _unknown(word, line[0], keys)
    for operand in used:
        fields[operand.field] = _value(operand, given, line[0], resolve, limits)
    if "inner" in fields:
        fields.setdefault("outer", 1)
    for word in flags:
        fields["flags"] |= _flag(word, line[0], _flag_names(opcode, function), keys)
    return fields


def _opcode(word: Word) -> Opcode:
    opcode = MNEMONICS.get(word.text) if not word.key else None
    if opcode is None:
        near = did_you_mean(word.text, MNEMONICS)
        raise line_error("E0710", f"no instruction is named {word}", word.span, near or f"the instructions are {listed(list(MNEMONICS))}")
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
    names = [function.name.lower() for function in functions]
    if word.text not in names:
        word.fail("E0713", f"{opcode.mnemonic} has no function {printable(word.text)}", f"its functions are {listed(names)}")
    return _FUNCTIONS[word.text]


def _value(operand: OperandSpec, given: Mapping[str, Word], mnemonic: Word, resolve: Resolve, limits: Mapping[str, int]) -> int:
    word = given.get(operand.key)
    if word is None:
        if operand.default is None:
            raise line_error("E0712", f"{mnemonic} needs {operand.key}: {operand.meaning}", mnemonic.span)
        return operand.default
    value = _number(operand, word, resolve)
    if not 0 <= value <= limits[operand.field]:
        word.fail("E0713", f"{operand.key} must be from 0 to {limits[operand.field]:,}")
    return value


def _number(operand: OperandSpec, word: Word, resolve: Resolve) -> int:
    match operand.space:
        case "engine":
            return _engine(word, word.text)
        case "engines":
            return sum(1 << engine for engine in {_engine(word, text) for text in word.text.split("|")})
        case "function":
            return _FUNCTIONS[word.text]
        case "ub" | "acc" | "host" | "count" | "step" | "tile" | "block" | "host step" | "tag":
            number = number_in(word.text)
            return resolve(operand, word) if number is None else number
        case _:
            assert_never(operand.space)


def _engine(word: Word, text: str) -> Engine:
    if text not in _ENGINES:
        near = did_you_mean(text, _ENGINES)
        word.fail(
            "E0713", f"no engine is named {printable(text)}", near or f"the engines are {listed(list(_ENGINES))}, several joined by |"
        )
    return _ENGINES[text]


def _flag(word: Word, mnemonic: Word, known: Mapping[str, int], keys: Sequence[str]) -> int:
    if word.text not in known:
        _unknown(word, mnemonic, [*known, *keys])
    return known[word.text]


@cache
def _flag_names(opcode: Opcode, function: int) -> Mapping[str, int]:
    return {text: int(flag) for flag, text in SPECS[opcode].flags_for(function)}


def _unknown(word: Word, mnemonic: Word, known: Sequence[str]) -> NoReturn:
    what = "operand" if word.key else "flag"
    near = did_you_mean(word.key or word.text, known)
    choices = f"it has {listed(list(known))}" if known else "it has none"
    raise line_error("E0711", f"{mnemonic} has no {what} {printable(word.key or word.text)}", word.span, near or choices)


def _raw(line: Sequence[Word]) -> dict[str, int]:
    """A record by its bytes, for listings of programs that the verifier will refuse."""
    import numpy as np

    text = line[1].text if len(line) == 2 and not line[1].key else ""
    try:
        row = np.frombuffer(bytes.fromhex(text), RECORD)
    except ValueError:
        row = np.zeros(0, RECORD)
    if len(row) != 1 or text.lower() != text:
        end = line[-1].end
        raise line_error("E0713", "raw takes the 64 bytes of a record in hexadecimal", Span(line[0].line, line[0].start, line[0].line, end))
    return {field: int(row[0][field]) for field in RECORD.names or ()}
