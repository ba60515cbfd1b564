"""The wire format of protobuf, as far as ONNX files have it: numbered fields, one after the other.

Nothing is copied: a field of bytes is a view of the file, and what nobody asks for is skipped. Every field is counted, so a small file
can't make much work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.numerics import AnyArray

MAX_FIELDS = 5_000_000
"""Fields of all messages of a file; the largest networks have some hundred thousands."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Field = int | memoryview


class WireError(Exception):
    """Bytes that aren't fields; the text says why."""


class Reader:
    """Reads messages, and counts their fields."""

    def __init__(self) -> None:
        self.left = MAX_FIELDS

    def fields(self, data: memoryview) -> Iterator[tuple[int, int, Field]]:
        """The fields of a message in order: number, kind, and a number or a view. Fixed sizes are views too. Raises `WireError`."""
        place, end = 0, len(data)
        while place < end:
            self.left -= 1
            if self.left < 0:
                raise WireError(f"it has more than {MAX_FIELDS:,} fields")
            key, place = _varint(data, place)
            number, kind = key >> 3, key & 7
            if not number:
                raise WireError("a field has the number 0")
            value: Field
            if kind == VARINT:
                value, place = _varint(data, place)
                yield number, kind, value
                continue
            if kind == BYTES:
                size, place = _varint(data, place)
            elif kind in (FIXED32, FIXED64):
                size = 4 if kind == FIXED32 else 8
            else:
                raise WireError(f"a field of the unknown kind {kind}")
            if size > end - place:
                raise WireError("it ends inside a field")
            yield number, kind, data[place : place + size]
            place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, seven bits a byte, and the place behind it."""
    number = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (2**64 - 1), place
        shift += 7
    raise WireError("it ends inside a number" if shift < 70 else "a number of more than ten bytes")


def signed(number: Field) -> int:
    """A number as an int64. Raises `WireError` for a field of another kind."""
    if isinstance(number, memoryview):
        raise WireError("bytes where a number is expected")
    return number - 2**64 if number >= 2**63 else number


def view(field: Field) -> memoryview:
    """The bytes of a field. Raises `WireError` for a number."""
    if isinstance(field, int):
        raise WireError("a number where bytes are expected")
    return field


def text(field: Field) -> str:
    """A string. Raises `WireError` when it isn't UTF-8."""
    try:
        return str(view(field), "utf-8")
    except UnicodeDecodeError:
        raise WireError("a name is not UTF-8") from None


def float32(field: Field) -> float:
    """A float32, as the shortest decimal number that is rounded to it. Raises `WireError` for a field of another size."""
    data = view(field)
    if len(data) != 4:
        raise WireError("a number of other than four bytes")
    return float(str(np.frombuffer(data, "<f4")[0]))


def varints(data: memoryview) -> AnyArray:
    """The numbers that are packed in a field: int64. Raises `WireError`."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise WireError("it ends inside a number")
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]) if len(ends) else np.zeros(0, np.int64)
    sizes = ends - starts + 1
    if len(sizes) and sizes.max() > 10:
        raise WireError("a number of more than ten bytes")
    numbers = np.zeros(len(ends), np.uint64)
    for index in range(int(sizes.max()) if len(sizes) else 0):
        there = sizes > index
        numbers[there] |= (octets[starts[there] + index] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * index)
    return numbers.view(np.int64)
