"""Safetensors files: read without trusting them, in the way of `archive.Archive`.

The file begins with the length of its header in eight little-endian bytes. The header is JSON: for each array its type, its shape and where
its bytes lie in the rest of the file (`data_offsets`: the first, and the one after the last). The arrays cover that rest without gaps and
without overlaps, in C order. https://github.com/huggingface/safetensors describes the format.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from tpucc.data.archive import MAX_BYTES, MAX_MEMBERS, MAX_RANK, ArrayFile, Member
from tpucc.diagnostics import printable
from tpucc.files import unreadable
from tpucc.numerics import AnyArray

SUFFIX = ".safetensors"
MAX_HEADER = 16 * 2**20
LENGTH = 8
BFLOAT16 = "BF16"
DTYPES: Mapping[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    BFLOAT16: "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}
"""How each type lies in the file. NumPy has no bfloat16: its 16 bits are the upper half of a float32, which such an array is read as."""


class Safetensors(ArrayFile):
    """A safetensors file."""

    def _opened(self, stream: BinaryIO, stack: ExitStack) -> Mapping[str, Member]:
        self._stream, self._size = stream, os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(LENGTH), "little")
        header = stream.read(min(length, MAX_HEADER))
        self._begin = LENGTH + length
        if length > MAX_HEADER or self._begin > self._size:
            raise self.malformed(f"not a safetensors file (its header would have {length:,} bytes)")
        return self._members(header)

    def read(self, key: str) -> AnyArray:
        """The array `key`; its size is the size of its part of the file."""
        member, (kind, start) = self.members[key], self._places[key]
        stored = np.dtype(DTYPES[kind])
        count = math.prod(member.shape)
        try:
            self._stream.seek(self._begin + start)
            data = self._stream.read(count * stored.itemsize)
        except OSError as error:
            raise unreadable(self.path, error, "E0420") from None
        if len(data) != count * stored.itemsize:
            raise self.malformed(f"{printable(key)} is cut off")
        values: AnyArray = np.frombuffer(data, stored)
        if kind == BFLOAT16:
            values = (values.astype("<u4") << 16).view("<f4")
        return values.reshape(member.shape)

    def _members(self, header: bytes) -> Mapping[str, Member]:
        entries = self._entries(header)
        entries.pop("__metadata__", None)
        if len(entries) > MAX_MEMBERS:
            raise self.malformed(f"{len(entries):,} arrays; the limit is {MAX_MEMBERS:,}")
        found: dict[str, Member] = {}
        self._places: dict[str, tuple[str, int]] = {}
        ends: list[tuple[int, int]] = []
        for key, entry in entries.items():
            kind, shape, start, end = self._entry(key, entry)
            stored = np.dtype(DTYPES[kind])
            found[key] = Member(key, np.dtype("<f4") if kind == BFLOAT16 else stored, shape, False)
            promised = math.prod(shape) * stored.itemsize
            if end - start != promised:
                raise self.malformed(f"{printable(key)} has {end - start:,} bytes, and {kind} of shape {list(shape)} takes {promised:,}")
            if math.prod(filter(None, shape)) > MAX_BYTES:  # beside a size of 0: no bytes, but NumPy makes no such array
                raise self.malformed(f"{printable(key)} has no readable shape")
            self._places[key] = kind, start
            ends.append((start, end))
        self._require_covered(sorted(ends))
        return found

    def _entries(self, header: bytes) -> dict[str, Any]:
        """The header's table. A key that is there twice would hide an array."""

        def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if len({key for key, _ in pairs}) != len(pairs):
                raise ValueError("a name is there twice")
            return dict(pairs)

        try:
            entries = json.loads(header.decode("utf-8"), object_pairs_hook=table)
        except (ValueError, RecursionError) as error:
            raise self.malformed(f"not a safetensors file (its header isn't JSON: {error})") from None
        if not isinstance(entries, dict):
            raise self.malformed("not a safetensors file (its header isn't a table)")
        return entries

    def _entry(self, key: str, entry: object) -> tuple[str, tuple[int, ...], int, int]:
        """Type, shape, start and end of one array."""
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise self.malformed(f"{printable(key)} needs dtype, shape and data_offsets, and nothing else")
        kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(kind, str) or kind not in DTYPES:
            raise self.malformed(
                f"{printable(key)} has the data type {printable(str(kind))[:40]}, which tpucc doesn't read; save it as float32"
            )
        if not _sizes(shape) or len(shape) > MAX_RANK:
            raise self.malformed(f"{printable(key)} has no readable shape")
        if not _sizes(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1]:
            raise self.malformed(f"{printable(key)} has no readable data_offsets")
        return kind, tuple(shape), offsets[0], offsets[1]

    def _require_covered(self, parts: list[tuple[int, int]]) -> None:
        """The arrays lie side by side and fill the file: none reads another's bytes, and none lies outside."""
        at = 0
        for start, end in parts:
            if start != at:
                raise self.malformed(f"its arrays {'overlap' if start < at else 'leave a gap'} at byte {min(start, at):,}")
            at = end
        if self._begin + at != self._size:
            what = "has something at its end" if self._begin + at < self._size else "is cut off"
            raise self.malformed(f"the file {what}: it has {self._size:,} bytes, not {self._begin + at:,}")


def _sizes(values: object) -> bool:
    """Whether it is a list of whole numbers from 0 up that a file can have."""
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= MAX_BYTES for value in values)
