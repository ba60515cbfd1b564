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
All numbers are little endian. Arrays are their raw bytes; what describes them is JSON in one canonical form, so that equal programs have
equal bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from tpucc.diagnostics import Diagnostic, Origin, ProgramError, Source, misfit
from tpucc.ir.dtypes import DEFAULT_FORMAT, IntegerFormat
from tpucc.isa.program import Division, HostBuffer, HostWork, LayerInfo, Port, Program, Resident, array_types
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT, MACHINES
from tpucc.numerics import AnyArray
from tpucc.target import Target

SECTIONS = ("metadata", "code", "layer_of", "tiles", "blocks", "constant", "resident", "steps", "source", "prologue", "epilogue")
"""Names of at most 8 bytes, in the order of the file."""
_T = TypeVar("_T")
LAYER_OF = np.dtype("<u4")
_ARRAYS = {"instructions": "code", "tiles": "tiles", "blocks": "blocks", "constants": "constant"}
"""The sections of a program's arrays."""
_RESIDENT = tuple[str, int, int, int, int, int]
_OWN = ("inputs", "outputs", "layers", "host", "machine_name")
"""The fields of the metadata that a program has in another form."""
_STEP = tuple[str, tuple[str, ...], tuple[str, ...], int]
MAGIC = b"\x89TPUB\r\n\x1a"
VERSION = 3
ALIGNMENT = 64
_HEADER = struct.Struct("<8sHHIQII")
_ENTRY = struct.Struct("<8sQQII")
_TABLE_END = _HEADER.size + len(SECTIONS) * _ENTRY.size


class _Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `Port` as the file has it: of its format, whether a value has more than one byte."""

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    splits: tuple[int, ...]
    blocks: tuple[int, ...]
    wide: bool

    def port(self, machine: Machine) -> Port | None:
        """The port, in that format of the machine; None where the machine has none for ports."""
        formats = (row.format for row in machine.formats if isinstance(row.format, IntegerFormat))
        format = next((each for each in formats if (each.bytes_per_value > 1) is self.wide), None)
        return None if format is None else Port(self.name, self.shape, self.scale, self.zero_point, self.splits, self.blocks, format)


class _Buffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A `HostBuffer` as the file has it: it says `half` only if it is."""

    name: str
    kind: str
    start: int
    rows: int
    half: bool = False


class _Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A `LayerInfo` as the file has it: with a group only where there is one."""

    name: str
    kind: str
    origin: Origin
    macs: int
    weights: tuple[int, int]
    tile_fills: tuple[tuple[int, int, int], ...]
    choice: str
    group: tuple[int, int] = (0, 0)


class _Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a program's arrays, by the names of its fields. Written tiles, a division, expressions and another machine than
    the usual one stand there only when there are some."""

    name: str
    source: str
    target: Target
    layers: tuple[_Layer, ...]
    host: tuple[_Buffer, ...]
    inputs: tuple[_Port, ...]
    outputs: tuple[_Port, ...]
    lower_bound_rows: int
    notes: tuple[str, ...]
    cores: int
    written_tiles: int = 0
    division: Division | None = None
    expressions: tuple[str, ...] = ()
    machine_name: str = msgspec.field(name="machine", default=DEFAULT.name)


def encode(program: Program) -> bytes:
    """The bytes of a `.tpub`. Raises `ProgramError` E0707 when a value has no place in the format (an infinite scale, a negative layer)."""
    sections = _section_bytes(program)
    offsets, end = [], _TABLE_END
    for data in sections:
        offsets.append(_aligned(end))
        end = offsets[-1] + len(data)
    table = b"".join(
        _ENTRY.pack(name.encode(), offset, len(data), zlib.crc32(data), 0)
        for name, offset, data in zip(SECTIONS, offsets, sections, strict=True)
    )
    parts: list[bytes | memoryview] = [_header(end, table), table]
    position = _TABLE_END
    for offset, data in zip(offsets, sections, strict=True):
        parts += [bytes(offset - position), data]
        position = offset + len(data)
    return b"".join(parts)


def decode(data: bytes, name: str, machine: Machine | None = None) -> Program:
    """The program for a machine in the bytes of a `.tpub`, or for the one that the file names; `name` (the file's) stands in messages.

    Raises `ProgramError`: E0701 no `.tpub`, E0702 another version, E0703 wrong length, E0704 checksum, E0705 table of sections, E0706 a
    section's content. Takes no more memory than a few times the length of `data`. The result is well formed, but not yet checked: see
    `verify`.
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
    return _read_program(sections, name, machine)


def _header(length: int, table: bytes) -> bytes:
    blank = _HEADER.pack(MAGIC, VERSION, 0, len(SECTIONS), length, 0, 0)
    return _HEADER.pack(MAGIC, VERSION, 0, len(SECTIONS), length, zlib.crc32(blank + table), 0)


def _check_header(data: bytes, name: str) -> None:
    if data[: len(MAGIC)] != MAGIC:
        raise _error(
            "E0701", name, "this is no .tpub: it doesn't begin with the format's magic bytes", "tpucc compile MODEL.tpu writes one"
        )
    if len(data) < _HEADER.size:
        raise _error("E0703", name, f"the file has {len(data)} bytes, fewer than its header")
    _, version, reserved, count, length, _, reserved2 = _HEADER.unpack_from(data)
    if version != VERSION:
        mend = "compile the model again with this tpucc, or read the file with the one that wrote it"
        raise _error("E0702", name, f"the file has version {version} of the format; this tpucc reads version {VERSION}", mend)
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


def _section_bytes(program: Program) -> list[bytes | memoryview]:
    """The program's sections in the order of `SECTIONS`. Raises `ProgramError` E0707 when it has no binary form."""
    residents = [(r.name, r.layer, r.start, r.rows, r.first, r.last) for r in program.residents]
    steps = [(s.graph, s.reads, s.writes, s.elements) for s in program.host_steps]
    try:
        metadata = msgspec.convert(program, _Metadata, from_attributes=True)
        encoded = _json(metadata, _Metadata, "metadata"), _json(residents, list[_RESIDENT], "resident"), _json(steps, list[_STEP], "steps")
        texts = [text.encode("utf-8") for text in (program.source_text, program.prologue, program.epilogue)]
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, TypeError) as error:
        why = misfit(error).replace("not nothing", "not infinity, NaN or None")  # JSON writes all three as null
        raise _error("E0707", program.name, f"the program has no binary form: {why}") from None
    return [encoded[0], *_array_bytes(program), *encoded[1:], *texts]


def _array_bytes(program: Program) -> list[memoryview]:
    """Code, layers, tiles, parameter blocks and constant rows, in the types and shapes that the format has. They aren't copied."""
    for name, (dtype, shape) in array_types(program.machine, program.target.mxu, program.format.weights).items():
        array = getattr(program, name)
        if array.dtype != dtype or array.shape[1:] != shape or array.ndim != 1 + len(shape):
            expected = f"[n{''.join(f', {size}' for size in shape)}] of {dtype if dtype.names is None else 'records'}"
            raise _error("E0707", program.name, f"the program has no binary form: {name} must be {expected}, not {list(array.shape)}")
    layer_of = program.layer_of
    if layer_of.ndim != 1 or (layer_of.size and not 0 <= int(layer_of.min()) <= int(layer_of.max()) < 2**32):
        raise _error("E0707", program.name, "the program has no binary form: layer_of must be a row of numbers from 0 up")
    parts = (program.instructions, layer_of.astype(LAYER_OF), program.tiles, program.blocks, program.constants)
    return [np.ascontiguousarray(part).reshape(-1).view(np.uint8).data for part in parts]


def _read_program(sections: Mapping[str, memoryview], name: str, wanted: Machine | None) -> Program:
    """A program from its sections. Raises `ProgramError` E0706 when one is malformed."""
    metadata = _decoded(sections["metadata"], _Metadata, "metadata", name)
    machine = wanted or MACHINES.get(metadata.machine_name, DEFAULT)
    if metadata.machine_name != machine.name:
        raise _error("E0706", name, f"the program is for the machine {metadata.machine_name}, and not for {machine.name}")
    if obstacle := machine.obstacle(metadata.target):
        raise _error("E0706", name, f"no program can be for {metadata.target.name}: it {obstacle}")
    residents = _decoded(sections["resident"], list[_RESIDENT], "resident", name)
    steps = _decoded(sections["steps"], list[_STEP], "steps", name)
    made = [[port.port(machine) for port in ports] for ports in (metadata.inputs, metadata.outputs)]
    inputs, outputs = (tuple(port for port in ports if port is not None) for ports in made)
    if None in (*made[0], *made[1]):
        raise _error("E0706", name, f"it has ports of integers, and {machine.name} has none")
    format = next((port.format for port in (*inputs, *outputs)), DEFAULT_FORMAT)
    types = array_types(machine, metadata.target.mxu, format.weights)
    arrays: dict[str, Any] = {array: _array(sections, section, *types[array], name) for array, section in _ARRAYS.items()}
    return Program(
        **{field: getattr(metadata, field) for field in _Metadata.__struct_fields__ if field not in _OWN},
        machine=machine,
        layers=msgspec.convert(metadata.layers, tuple[LayerInfo, ...], from_attributes=True),
        host=msgspec.convert(metadata.host, tuple[HostBuffer, ...], from_attributes=True),
        inputs=inputs,
        outputs=outputs,
        source_text=_text(sections, "source", name),
        **arrays,
        layer_of=_array(sections, "layer_of", LAYER_OF, (), name),
        prologue=_text(sections, "prologue", name),
        epilogue=_text(sections, "epilogue", name),
        residents=tuple(Resident(*resident) for resident in residents),
        host_steps=tuple(HostWork(*step) for step in steps),
    )


def _json(value: object, kind: type[_T], section: str) -> bytes:
    """JSON that reads back as the same bytes; a NaN, which JSON writes as null, does not."""
    data = msgspec.json.encode(value)
    if msgspec.json.encode(msgspec.json.decode(data, type=kind)) != data:
        raise TypeError(f"{section} doesn't read back")
    return data


def _decoded(data: memoryview, kind: type[_T], section: str, name: str) -> _T:
    try:
        value = msgspec.json.decode(data, type=kind)
        canonical = msgspec.json.encode(value) == data
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError) as error:
        raise _error("E0706", name, f"the section {section} is malformed: {misfit(error)}") from None
    if not canonical:
        raise _error("E0706", name, f"the section {section} is not in its canonical form")
    return value


def _text(sections: Mapping[str, memoryview], section: str, name: str) -> str:
    try:
        return str(sections[section], "utf-8")
    except UnicodeDecodeError as error:
        raise _error("E0706", name, f"the section {section} isn't UTF-8: {error.reason} at byte {error.start}") from None


def _array(sections: Mapping[str, memoryview], section: str, dtype: np.dtype[np.generic], shape: Sequence[int], name: str) -> AnyArray:
    """The section as a read-only array [n, *shape], without a copy."""
    data, item = sections[section], dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if len(data) % item:
        raise _error("E0706", name, f"the section {section} has {len(data):,} bytes, no multiple of {item:,}")
    return np.frombuffer(data, dtype).reshape(len(data) // item, *shape)


def _error(code: str, name: str, message: str, mend: str = "") -> ProgramError:
    return ProgramError(Diagnostic(code, message, help=(mend,)), Source(name, ""))
