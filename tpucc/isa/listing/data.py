"""A program's arrays in a listing: tiles, constants and parameter blocks.

Small matrices are rows of numbers; large ones stand by their digests (`tpucc.ir.digests`) or as base64. All are read anywhere. Rows and
lanes left out are zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from tpucc.diagnostics import counted, listed, printable
from tpucc.ir.codec import decode, encode, line_error
from tpucc.ir.digests import Known, digest_of, found
from tpucc.isa.listing.lines import Arguments, BlockLine, Directive
from tpucc.isa.listing.words import Word, signed_in
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Register
from tpucc.numerics import AnyArray, Int8

HAS_TABLE = "has_table"
"""The field of a parameter block that says whether its tables are in use."""
READABLE = 16
"""Matrices and vectors up to this many lanes are shown as numbers."""
_DIGEST = re.compile("[0-9a-f]{16}")


def matrix_lines(matrix: AnyArray) -> Iterator[str]:
    """The rows of a small integer matrix, in columns, as lines of a block."""
    width = max((len(str(value)) for value in matrix.ravel().tolist()), default=1)
    for row in matrix.tolist():
        yield "| " + " ".join(f"{value:>{width}}" for value in row)


def data_lines(data: bytes | memoryview, tag: str = "") -> Iterator[str]:
    """Bytes as base64 lines of a block, which begin with the tag if there is one."""
    yield from (f"| {tag} {line}" if tag else f"| {line}" for line in encode(data).splitlines())


def read_matrix(directive: Directive, mxu: int, rows: int) -> Int8:
    """[rows given, mxu] int8 from lines of numbers; at most `rows` of them. Raises `LineError` E0717."""
    if len(directive.block) > rows:
        raise line_error("E0717", f"{directive.head} has {counted(len(directive.block), 'row')}; at most {rows:,} fit", directive.head.span)
    matrix = np.zeros((len(directive.block), mxu), np.int8)
    for row, line in enumerate(directive.block):
        matrix[row] = _lanes(line, mxu)
    return matrix


def _lanes(line: BlockLine, mxu: int) -> Int8:
    lanes = np.zeros(mxu, np.int8)
    texts = line.text.replace(",", " ").split()
    if len(texts) > mxu:
        raise line_error("E0717", f"the row has {len(texts):,} numbers; there are {mxu} lanes", line.span)
    for lane, text in enumerate(texts):
        value = signed_in(text)
        if value is None or not -128 <= value <= 127:
            raise line_error("E0717", f"expected numbers from -128 to 127, found {printable(text)}", line.span)
        lanes[lane] = value
    return lanes


def read_bytes(directive: Directive, text: str, multiple: int) -> bytes:
    """Base64 whose length is a multiple of `multiple`. Raises `LineError` E0717."""
    try:
        data = decode(text)
    except ValueError as error:
        raise line_error("E0717", f"the data of {directive.head} isn't base64: {error}", directive.head.span) from None
    if len(data) % multiple:
        raise line_error("E0717", f"{directive.head} has {len(data):,} bytes, no multiple of {multiple:,}", directive.head.span)
    return data


def read_digest(word: Word, what: str, size: int, known: Known | None) -> bytes:
    """The `size` bytes of `sha256=3f2a9c1d04b7e6a8`. Raises `LineError`: E0713 no digest, E0760 and E0761 when they can't be had."""
    if not _DIGEST.fullmatch(word.text):
        word.fail("E0713", f"expected the 16 hexadecimal digits of a digest, found {printable(word.text)}")
    return found(what, word.text, size, known, word.span)


class BlockText:
    """How the parameter blocks of a machine stand in a listing: their numbers in the directive, long vectors and tables after it."""

    def __init__(self, machine: Machine, register: Register, lanes: int) -> None:
        self.dtype, self._defaults = register.dtype(lanes), register.defaults
        names = self.dtype.names or ()
        self._tables = [row.table for row in machine.formats if row.table in names]
        self._numbers = [name for name in names if name not in (*self._tables, HAS_TABLE)]
        vectors = [name for name in self._numbers if self.dtype[name].shape]
        self._sizes = {"raw": self.dtype.itemsize} | {name: self.dtype[name].itemsize for name in (*vectors, *self._tables)}

    def lines(self, block: AnyArray, with_data: bool) -> Iterator[str]:
        """The lines of one block; its data are base64, or stand by their digests."""
        lines = data_lines if with_data else _digest_lines
        if not self._is_plain(block):
            yield ".block"
            yield from lines(block.tobytes(), "raw")
            return
        texts = {name: _text(block[name], self._defaults.get(name, 0)) for name in self._numbers}
        yield " ".join([".block", *(f"{name}={text}" for name, text in texts.items() if text)])
        tags = [name for name, text in texts.items() if text is None]
        if self._tables and block[HAS_TABLE]:
            tags += [tag for tag in self._tables if block[tag].any()] or self._tables[:1]
        for tag in tags:
            yield from lines(block[tag].tobytes(), tag)

    def _is_plain(self, block: AnyArray) -> bool:
        """Whether the directive's numbers can say all of a block."""
        finite = all(np.isfinite(block[name]).all() for name in self._numbers)
        used = block[HAS_TABLE] if self._tables else 0
        return bool(finite and (used == 1 or (used == 0 and not any(block[tag].any() for tag in self._tables))))

    def read(self, arguments: Arguments, number: int, known: Known | None) -> AnyArray:
        """Parameter block `number`, [1] of the register's type.

        Raises `LineError`: E0713 a bad number, E0716 unknown words, E0717 bad data, E0760 or E0761 data that stand by their digest and
        can't be had.
        """
        block, directive = np.zeros(1, self.dtype), arguments.directive
        parts = _parts(directive, self._sizes, number, known)
        if "raw" in parts:
            if len(parts["raw"]) != self.dtype.itemsize or len(parts) > 1:
                raise line_error("E0717", f"raw takes all {self.dtype.itemsize:,} bytes of one parameter block", directive.head.span)
            return np.frombuffer(parts["raw"], self.dtype)
        for name in self._numbers:
            word, values = arguments.take(name), block[name].reshape(-1)
            if name in parts:
                values[:] = _exactly(directive, parts[name], values)
            else:
                values[:] = self._defaults.get(name, 0) if word is None else _numbers(word, values.dtype, len(values))
        for tag in (tag for tag in self._tables if tag in parts):
            block[HAS_TABLE], block[tag] = 1, _exactly(directive, parts[tag], block[tag][0])
        arguments.done(block=True)
        return block


def _text(values: AnyArray, default: float) -> str | None:
    """Nothing for the default, a number for equal lanes, a list for few lanes, None for what needs base64."""
    lanes = np.atleast_1d(values)
    if (lanes.view(np.uint32) == lanes.view(np.uint32)[0]).all():
        return "" if lanes[0] == default and np.signbit(lanes[0]) == (default < 0) else str(lanes[0] if values.ndim else values.item())
    return f"[{' '.join(map(str, lanes))}]" if len(lanes) <= READABLE else None


def _digest_lines(data: bytes, tag: str) -> Iterator[str]:
    yield f"| {tag} sha256={digest_of(data)}"


def _parts(directive: Directive, sizes: Mapping[str, int], number: int, known: Known | None) -> dict[str, bytes]:
    """The block's data by tag."""
    texts: dict[str, str] = {}
    parts: dict[str, bytes] = {}
    for line in directive.block:
        tag, _, data = line.text.partition(" ")
        if tag not in sizes:
            raise line_error("E0717", f"this line begins with {listed([*sizes], 'or')}, not {printable(tag)}", line.span)
        if data.startswith("sha256=") and _DIGEST.fullmatch(digest := data.removeprefix("sha256=").strip()):
            parts[tag] = found(f"the {tag} of parameter block {number:,}", digest, sizes[tag], known, line.span)
        else:
            texts[tag] = texts.get(tag, "") + data
    return parts | {tag: read_bytes(directive, text, 1) for tag, text in texts.items()}


def _exactly(directive: Directive, data: bytes, like: AnyArray) -> AnyArray:
    if len(data) != like.nbytes:
        raise line_error("E0717", f"a part of {directive.head} has {len(data):,} bytes instead of {like.nbytes:,}", directive.head.span)
    return np.frombuffer(data, like.dtype)


def _numbers(word: Word, dtype: np.dtype[np.generic], lanes: int) -> AnyArray:
    """`0.5` for all lanes, or `[1 2 3]` for the first ones, the rest zero."""
    bracketed = word.text.startswith("[")
    texts = word.text.strip("[]").replace(",", " ").split()
    values = np.zeros(lanes, dtype)
    try:
        numbers = np.array([float(text) if dtype.kind == "f" else int(text[:20]) for text in texts])
    except ValueError:
        word.fail("E0713", f"expected a number for {word.key}, found {printable(word.text)}")
    if len(numbers) > lanes or (not bracketed and len(numbers) != 1):
        word.fail("E0713", f"{word.key} has {len(numbers):,} numbers; there are {lanes}")
    if dtype.kind == "i" and len(numbers) and not -(2**31) <= numbers.min() <= numbers.max() < 2**31:
        word.fail("E0713", f"{word.key} must be from -2,147,483,648 to 2,147,483,647")
    values[: len(numbers) if bracketed else lanes] = numbers
    return values
