"""The binary form of a program, a `.tpub`: a header, a table of sections, and the sections.

| bytes | header |
|---|---|
| 8 | magic: `\\x89TPUB\\r\\n\\x1a`, which no text file begins with and no conversion of line ends leaves alone |
| 2 | version |
| 2 | reserved, zero |
| 4 | number of sections |
| 8 | length of the file |
| 4 | CRC-32 of the header (these four bytes zero) and the table |
| 4 | reserved, zero |

Then one row of the table for each section, in the order of `SECTIONS`: name (8 bytes, padded with zeros), offset (8), length (8), CRC-32
(4), reserved (4, zero). A section begins at the next multiple of 64; the bytes between are zero, and the file ends with the last section.
All numbers are little endian. Equal programs have equal bytes.
"""

from __future__ import annotations

import struct
import zlib

from tpucc.diagnostics import Diagnostic, ProgramError, Source
from tpucc.isa.program import Program
from tpucc.isa.sections import SECTIONS, read_program, section_bytes

MAGIC = b"\x89TPUB\r\n\x1a"
VERSION = 3
ALIGNMENT = 64
_HEADER = struct.Struct("<8sHHIQII")
_ENTRY = struct.Struct("<8sQQII")
_TABLE_END = _HEADER.size + len(SECTIONS) * _ENTRY.size


def encode(program: Program) -> bytes:
    """The bytes of a `.tpub`. Raises `ProgramError` E0707 when a value has no place in the format (an infinite scale, a negative layer)."""
    sections = section_bytes(program)
    offsets, end = [], _TABLE_END
    for data in sections:
        offsets.append(_aligned(end))
        end = offsets[-1] + len(data)
    table = b"".join(
        _ENTRY.pack(name.encode(), offset, len(data), zlib.crc32(data), 0)
        for name, offset, data in zip(SECTIONS, offsets, sections, strict=True)
    )
    parts = [_header(end, table), table]
    position = _TABLE_END
    for offset, data in zip(offsets, sections, strict=True):
        parts += [bytes(offset - position), data]
        position = offset + len(data)
    return b"".join(parts)


def decode(data: bytes, name: str) -> Program:
    """The program in the bytes of a `.tpub`; `name` (the file's) stands in messages.

    Raises `ProgramError`: E0701 no `.tpub`, E0702 another version, E0703 wrong length, E0704 checksum, E0705 table of sections, E0706 a
    section's content. Takes no more memory than a few times the length of `data`. What is read is well formed, not yet valid: see `verify`.
    """
    _check_header(data, name)
    sections: dict[str, memoryview] = {}
    position = _TABLE_END
    for index, section in enumerate(SECTIONS):
        offset, length = _entry(data, index, section, position, name)
        sections[section] = memoryview(data)[offset : offset + length]
        position = offset + length
    if position != len(data):
        raise _error("E0703", name, f"{len(data) - position:,} bytes follow the last section")
    return read_program(sections, name)


def _header(length: int, table: bytes) -> bytes:
    blank = _HEADER.pack(MAGIC, VERSION, 0, len(SECTIONS), length, 0, 0)
    return _HEADER.pack(MAGIC, VERSION, 0, len(SECTIONS), length, zlib.crc32(blank + table), 0)


def _check_header(data: bytes, name: str) -> None:
    if data[: len(MAGIC)] != MAGIC:
        raise _error("E0701", name, "this is no .tpub: it doesn't begin with the format's magic bytes")
    if len(data) < _HEADER.size:
        raise _error("E0703", name, f"the file has {len(data)} bytes, fewer than its header")
    _, version, reserved, count, length, _, reserved2 = _HEADER.unpack_from(data)
    if version != VERSION:
        raise _error("E0702", name, f"the file has version {version} of the format; this tpucc reads version {VERSION}")
    if length != len(data):
        raise _error("E0703", name, f"the header says {length:,} bytes, but the file has {len(data):,}")
    if count != len(SECTIONS) or reserved or reserved2:
        raise _error("E0705", name, f"the header has {count} sections, or reserved bits that are set; expected {len(SECTIONS)} and zeros")
    if length < _TABLE_END:
        raise _error("E0703", name, "the file ends inside its table of sections")
    if _header(length, data[_HEADER.size : _TABLE_END]) != data[: _HEADER.size]:
        raise _error("E0704", name, "the header's checksum is wrong: the file was damaged")


def _entry(data: bytes, index: int, section: str, position: int, name: str) -> tuple[int, int]:
    """Offset and length of a section that must follow `position`; its padding and checksum are right."""
    tag, offset, length, checksum, reserved = _ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size)
    if tag != section.encode().ljust(8, b"\0") or reserved or offset != _aligned(position):
        raise _error("E0705", name, f"the table's row {index} is wrong: expected the section {section} at byte {_aligned(position):,}")
    if length > len(data) - offset:
        raise _error("E0703", name, f"the section {section} has {length:,} bytes from byte {offset:,}, past the end of the file")
    if any(data[position:offset]):
        raise _error("E0705", name, f"the bytes before the section {section} are not zero")
    if zlib.crc32(memoryview(data)[offset : offset + length]) != checksum:
        raise _error("E0704", name, f"the checksum of the section {section} is wrong: the file was damaged")
    return offset, length


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _error(code: str, name: str, message: str) -> ProgramError:
    return ProgramError(Diagnostic(code, message), Source(name, ""))
