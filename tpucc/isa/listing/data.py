"""A program's arrays in a listing: tiles, constants and parameter blocks.

Small matrices are rows of numbers, large ones base64; both are read anywhere. Rows and lanes left out are zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.diagnostics import counted, printable
from tpucc.ir.textdata import decode, encode
from tpucc.isa.listing.lines import Arguments, BlockLine, Directive
from tpucc.isa.listing.words import Word, line_error, number_in
from tpucc.isa.program import block_dtype
from tpucc.numerics import AnyArray, Int8

READABLE = 16
"""Matrices and vectors up to this many lanes are shown as numbers."""
_SCALARS = {"zero": 0, "low": -128, "high": 127, "zero_a": 0, "zero_b": 0, "scale_a": 1.0, "scale_b": 1.0}
_VECTORS = {"bias": 0, "multiplier": 1.0}
_TABLES = ("table", "points")
"""Of functions of 8-bit and of 16-bit values."""


def matrix_lines(matrix: AnyArray) -> Iterator[str]:
    """The rows of a small integer matrix, in columns, as lines of a block."""
    width = max((len(str(value)) for value in matrix.ravel().tolist()), default=1)
    for row in matrix.tolist():
        yield "| " + " ".join(f"{value:>{width}}" for value in row)


def data_lines(data: bytes) -> Iterator[str]:
    """Bytes as base64 lines of a block."""
    for line in encode(data).splitlines():
        yield f"| {line}"


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
        value = number_in(text.removeprefix("-"))
        signed = -value if value is not None and text.startswith("-") else value
        if signed is None or not -128 <= signed <= 127:
            raise line_error("E0717", f"expected numbers from -128 to 127, found {printable(text)}", line.span)
        lanes[lane] = signed
    return lanes


def read_bytes(directive: Directive, text: str, multiple: int) -> bytes:
    """Base64 whose length is a multiple of `multiple`. Raises `LineError` E0717."""
    try:
        data = decode(text)
    except ValueError as error:
        raise line_error("E0717", f"the data of {directive.head} is no base64: {error}", directive.head.span) from None
    if len(data) % multiple:
        raise line_error("E0717", f"{directive.head} has {len(data):,} bytes, no multiple of {multiple:,}", directive.head.span)
    return data


def block_lines(block: AnyArray) -> Iterator[str]:
    """One parameter block: its numbers in the directive, long vectors and the table as base64 after it."""
    if not _plain(block):
        yield ".block"
        yield from _tagged("raw", block.tobytes())
        return
    words = [f"{name}={text}" for name, default in _VECTORS.items() if (text := _vector_text(block[name], default))]
    words += [
        f"{name}={block[name]}" for name, default in _SCALARS.items() if block[name] != default or np.signbit(block[name]) != (default < 0)
    ]
    yield " ".join([".block", *words])
    for name, default in _VECTORS.items():
        if _vector_text(block[name], default) is None:
            yield from _tagged(name, block[name].tobytes())
    if block["has_table"]:
        tables = [tag for tag in _TABLES if block[tag].any()]
        for tag in tables or ["table"]:
            yield from _tagged(tag, block[tag].tobytes())


def _plain(block: AnyArray) -> bool:
    """Whether the directive's numbers can say all of a block."""
    finite = all(np.isfinite(block[name]).all() for name in ("multiplier", "scale_a", "scale_b"))
    return bool(finite and (block["has_table"] == 1 or (block["has_table"] == 0 and not any(block[tag].any() for tag in _TABLES))))


def _vector_text(vector: AnyArray, default: float) -> str | None:
    """Nothing for the default, a number for equal lanes, a list for few lanes, None for what needs base64."""
    if (vector.view(np.uint32) == vector.view(np.uint32)[0]).all():
        return "" if vector[0] == default and not np.signbit(vector[0]) else str(vector[0])
    return f"[{' '.join(str(value) for value in vector)}]" if len(vector) <= READABLE else None


def _tagged(tag: str, data: bytes) -> Iterator[str]:
    for line in encode(data).splitlines():
        yield f"| {tag} {line}"


def read_block(directive: Directive, mxu: int) -> AnyArray:
    """One parameter block [1]. Raises `LineError`: E0713 a bad number, E0716 unknown words, E0717 bad data."""
    block = np.zeros(1, block_dtype(mxu))
    parts = _parts(directive)
    if "raw" in parts:
        data = read_bytes(directive, parts["raw"], block.dtype.itemsize)
        if len(data) != block.dtype.itemsize or len(parts) > 1:
            raise line_error("E0717", f"raw takes all {block.dtype.itemsize:,} bytes of one parameter block", directive.head.span)
        return np.frombuffer(data, block.dtype)
    arguments = Arguments(directive)
    for name, scalar in _SCALARS.items():
        word = arguments.take(name)
        block[name] = scalar if word is None else _numbers(word, block[name].dtype, 1)
    for name, default in _VECTORS.items():
        block[name] = _vector(directive, arguments.take(name), parts.get(name), block[name][0], default)
    for tag in _TABLES:
        if tag in parts:
            block["has_table"], block[tag] = 1, _exactly(directive, parts[tag], block[tag][0])
    arguments.done(block=True)
    return block


def _parts(directive: Directive) -> dict[str, str]:
    """The block's data by tag."""
    parts: dict[str, str] = {}
    for line in directive.block:
        tag, _, data = line.text.partition(" ")
        if tag not in ("raw", *_TABLES, *_VECTORS):
            raise line_error("E0717", f"this line begins with raw, bias, multiplier, table or points, not {printable(tag)}", line.span)
        parts[tag] = parts.get(tag, "") + data
    return parts


def _vector(directive: Directive, word: Word | None, data: str | None, like: AnyArray, default: float) -> AnyArray:
    if data is not None:
        return _exactly(directive, data, like)
    return np.full_like(like, default) if word is None else _numbers(word, like.dtype, len(like))


def _exactly(directive: Directive, text: str, like: AnyArray) -> AnyArray:
    data = read_bytes(directive, text, 1)
    if len(data) != like.nbytes:
        raise line_error("E0717", f"a part of {directive.head} has {len(data):,} bytes instead of {like.nbytes:,}", directive.head.span)
    return np.frombuffer(data, like.dtype)


def _numbers(word: Word, dtype: np.dtype[np.generic], lanes: int) -> AnyArray:
    """`0.5` for all lanes, or `[1 2 3]` for the first ones, the rest zero."""
    listed = word.text.startswith("[")
    texts = word.text.strip("[]").replace(",", " ").split()
    values = np.zeros(lanes, dtype)
    try:
        numbers = np.array([float(text) if dtype.kind == "f" else int(text[:20]) for text in texts])
    except ValueError:
        word.fail("E0713", f"expected a number for {word.key}, found {printable(word.text)}")
    if len(numbers) > lanes or (not listed and len(numbers) != 1):
        word.fail("E0713", f"{word.key} has {len(numbers):,} numbers; there are {lanes}")
    if dtype.kind == "i" and len(numbers) and not -(2**31) <= numbers.min() <= numbers.max() < 2**31:
        word.fail("E0713", f"{word.key} must be from -2,147,483,648 to 2,147,483,647")
    values[: len(numbers) if listed else lanes] = numbers
    return values
