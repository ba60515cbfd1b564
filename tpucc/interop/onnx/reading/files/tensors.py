"""The tensors of an ONNX file: constants, in the file itself or in files beside it.

The sizes that a tensor claims are compared with the bytes that are there before an array is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.files import inside, opened, why
from tpucc.interop.onnx.reading.files.problems import malformed, named, refused, shortened
from tpucc.interop.onnx.reading.files.wire import BYTES, Field, Reader, WireError, signed, text, varints, view
from tpucc.numerics import AnyArray

MAX_RANK = 32
MAX_SIZE = 2**31 - 1
MAX_BYTES = 4 * 2**30
"""The largest tensor, and the sum of all."""
FLOAT, INT32, INT64, STRING, BOOL, BFLOAT16 = 1, 6, 7, 8, 9, 16
FLOATS = (FLOAT, 10, 11, BFLOAT16)
TYPES: Mapping[int, np.dtype[Any]] = {
    code: np.dtype(name)
    for code, name in {
        FLOAT: "<f4",
        2: "u1",
        3: "i1",
        4: "<u2",
        5: "<i2",
        INT32: "<i4",
        INT64: "<i8",
        BOOL: "?",
        10: "<f2",
        11: "<f8",
        12: "<u4",
        13: "<u8",
        BFLOAT16: "<u2",
    }.items()
}
"""NumPy's types of the elements that are read, by ONNX's number; bfloat16 is the upper half of a float32."""
NAMES: Mapping[int, str] = {
    STRING: "strings",
    14: "complex64",
    15: "complex128",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
    27: "float6e2m3",
    28: "float6e3m2",
}
"""Those that aren't read."""
NO_NUMBERS = "numbers are float, integer or boolean"
"""What to do about a tensor of another type."""


@dataclass
class Files:
    """Where a model's tensors are: `folder` has the files beside it; `left` bytes may still be read."""

    reader: Reader
    folder: Path | None
    left: int = MAX_BYTES


@dataclass
class _Found:
    """The fields of a tensor."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    type: int = 0
    raw: memoryview | None = None
    floats: list[memoryview] = field(default_factory=list)
    integers: list[AnyArray] = field(default_factory=list)
    external: dict[str, str] = field(default_factory=dict)
    outside: bool = False
    strings: list[str] = field(default_factory=list)
    metadata: list[memoryview] = field(default_factory=list)


def tensor(data: memoryview, files: Files, texts: bool = False) -> tuple[str, AnyArray, Sequence[memoryview]]:
    """A tensor's name, values and metadata, with `texts` also one of texts: an array of objects.

    Raises `ProgramError` E1001 for one that is malformed, E1004 for one whose file can't be used, `CompileError` E1006 for a type that
    tpucc doesn't know.
    """
    found = _fields(data, files.reader)
    what = f"the tensor {named(found.name) or 'without a name'}"
    dtype = np.dtype(object) if texts and found.type == STRING else _dtype(found, what)
    size = _size(found, what)
    if size * dtype.itemsize > files.left:
        raise malformed(f"{what} claims {size * dtype.itemsize:,} bytes; a model has at most {MAX_BYTES:,}", code="E1003")
    files.left -= size * dtype.itemsize
    values = _values(found, dtype, size, files, what)
    if len(values) != size:
        raise malformed(f"{what} claims {size:,} values, and there are {len(values):,}")
    if found.type == BFLOAT16:
        values = (values.astype("<u4") << 16).view("<f4")
    return found.name, values.reshape(found.dims), found.metadata


def _fields(data: memoryview, reader: Reader) -> _Found:
    found = _Found()
    for number, kind, value in reader.fields(data):
        match number:
            case 1:
                found.dims += integers(kind, value).tolist()
            case 2:
                found.type = signed(value)
            case 4 | 10:
                found.floats.append(view(value))
            case 5 | 7 | 11:
                found.integers.append(integers(kind, value))
            case 6:
                found.strings.append(str(view(value), "utf-8", "replace"))
            case 8:
                found.name = text(value)
            case 9:
                found.raw = view(value)
            case 16:
                found.metadata.append(view(value))
            case _:
                _place(found, number, value, reader)
    return found


def _place(found: _Found, number: int, value: Field, reader: Reader) -> None:
    """The fields that say where the values lie."""
    if number == 13:
        found.external.update([_entry(view(value), reader)])
    elif number == 14:
        found.outside = signed(value) == 1
    elif number == 3:
        raise WireError("a tensor in segments, which nobody writes")


def _entry(data: memoryview, reader: Reader) -> tuple[str, str]:
    """A key and its value."""
    entry = {number: text(part) for number, _, part in reader.fields(data) if number in (1, 2)}
    return entry.get(1, ""), entry.get(2, "")


def integers(kind: int, value: Field) -> AnyArray:
    """The numbers of a field that has one, or several packed."""
    return varints(view(value)) if kind == BYTES else np.array([signed(value)])


def _dtype(found: _Found, what: str) -> np.dtype[Any]:
    if found.type in NAMES:
        raise refused("E1006", f"{what} has values of the type {NAMES[found.type]}", NO_NUMBERS)
    if found.type not in TYPES:
        raise malformed(f"{what} has the unknown type {found.type}")
    return TYPES[found.type]


def _size(found: _Found, what: str) -> int:
    if len(found.dims) > MAX_RANK:
        raise refused("E1007", f"{what} has {len(found.dims):,} axes; the limit is {MAX_RANK}")
    if any(size < 0 for size in found.dims):
        raise malformed(f"{what} has a negative size: {shortened(found.dims)}")
    if 0 in found.dims and max(found.dims) > MAX_SIZE:  # NumPy refuses an array without values, too, if its other sizes are too large
        raise malformed(f"{what} claims a size of {max(found.dims):,}; the limit is {MAX_SIZE:,}", code="E1003")
    return math.prod(found.dims)


def _values(found: _Found, dtype: np.dtype[Any], size: int, files: Files, what: str) -> AnyArray:
    if dtype.kind == "O":
        return np.array(found.strings, object)
    if found.outside:
        return _outside(found, dtype, size, files, what)
    if found.raw is not None:
        if len(found.raw) % dtype.itemsize:
            raise malformed(f"{what} has {len(found.raw):,} bytes, which are no whole number of values")
        return np.frombuffer(found.raw, dtype)
    if dtype.kind == "f" and dtype.itemsize >= 4:
        data = b"".join(found.floats)
        if len(data) % dtype.itemsize:
            raise malformed(f"{what} has {len(data):,} bytes, which are no whole number of values")
        return np.frombuffer(data, dtype)
    numbers = np.concatenate(found.integers) if found.integers else np.zeros(0, np.int64)
    return numbers.astype(np.uint16).view(dtype) if dtype == np.float16 else numbers.astype(dtype)


def _outside(found: _Found, dtype: np.dtype[Any], size: int, files: Files, what: str) -> AnyArray:
    """Values from a file beside the model, which may not lie outside its folder, links included."""
    name = found.external.get("location", "")
    if files.folder is None:
        raise malformed(f"{what} lies in the file {named(name)}, and the model was given without its folder", code="E1004")
    path = files.folder / name
    if not name or "\0" in name or Path(name).is_absolute() or not inside(path, files.folder):
        mend = "data lies in the model's own folder: onnx.save(model, path, save_as_external_data=True) writes it there"
        raise malformed(f"{what} lies in {named(name) or 'no file'}, outside of the model's folder", mend, "E1004")
    wanted = size * dtype.itemsize
    start, length = (_number(found.external.get(key, default), what) for key, default in (("offset", "0"), ("length", str(wanted))))
    if length != wanted:
        raise malformed(f"{what} claims {wanted:,} bytes, and {length:,} in {named(name)}", code="E1004")
    try:
        with opened(path) as stream:
            there = stream.seek(0, 2)
            if start < 0 or there - start < wanted:
                raise malformed(f"{named(name)} has {there:,} bytes, and {what} is at {start:,} and has {wanted:,}", code="E1004")
            stream.seek(start)
            data = stream.read(wanted)
    except (OSError, ValueError) as error:
        raise malformed(f"can't read {named(name)}, in which {what} lies: {why(error)}", code="E1004") from None
    return np.frombuffer(data, dtype)


def _number(written: str, what: str) -> int:
    if len(written) > 18 or not written.removeprefix("-").isdecimal():
        raise malformed(f"{what} has a place that is no number: {named(written)}", code="E1004")
    return int(written)
