"""Messages of protocol buffers, of which ONNX files are made: fields are a number and a kind, then a value. No package is needed for them.

https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The kinds of values of fields."""
SIZES = {FIXED64: 8, FIXED32: 4}
LONGEST = 70
"""Bits of a number, in groups of seven."""


class WireError(ValueError):
    """Bytes that aren't fields; the text says why."""


def fields(data: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message in order: the number of each, and its value, an integer or bytes. Raises `WireError`."""
    view, place = memoryview(data), 0
    while place < len(view):
        key, place = _varint_at(view, place)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError("a field has the number 0")
        if kind == VARINT:
            value, place = _varint_at(view, place)
            yield number, value
            continue
        if kind != BYTES and kind not in SIZES:
            raise WireError(f"a field of the unknown kind {kind}")
        size, place = (SIZES[kind], place) if kind in SIZES else _varint_at(view, place)
        if size > len(view) - place:
            raise WireError("it ends inside a field")
        yield number, view[place : place + size]
        place += size


def _varint_at(data: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, seven bits a byte, and the place behind it."""
    number = shift = 0
    while place < len(data) and shift < LONGEST:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (2**64 - 1), place
        shift += 7
    raise WireError("it ends inside a number" if shift < LONGEST else "a number of more than ten bytes")


def message(*parts: bytes) -> bytes:
    """A message of these fields."""
    return b"".join(parts)


def text_field(number: int, text: str) -> bytes:
    """A field of text."""
    return bytes_field(number, text.encode("utf-8", "replace"))


def bytes_field(number: int, content: bytes) -> bytes:
    """A field of bytes, or of a message."""
    return _key(number, BYTES) + _varint(len(content)) + content


def float_field(number: int, value: float) -> bytes:
    """A field of a float32."""
    return _key(number, FIXED32) + struct.pack("<f", value)


def integer_field(number: int, value: int) -> bytes:
    """A field of an integer of 64 bits; negative ones are two's complements."""
    return _key(number, VARINT) + _varint(value % 2**64)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last have their highest bit set."""
    parts: list[int] = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
