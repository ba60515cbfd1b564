"""The tensors of an ONNX file as arrays: those in the file itself, and those in files beside it.

The sizes that a tensor claims are compared with the bytes that are there before an array is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.files import inside, opened, why
from tpucc.interop.onnx.reading.files.problems import malformed, named, refused, shortened
from tpucc.numerics import AnyArray

MAX_RANK = 32
MAX_SIZE = 2**31 - 1
MAX_BYTES = 4 * 2**30
"""The largest tensor, and the sum of all."""
FLOAT, INT32, INT64, STRING, BOOL, BFLOAT16 = 1, 6, 7, 8, 9, 16
FLOATS = (FLOAT, 10, 11, BFLOAT16)
_NAMES = {FLOAT: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", INT32: "<i4", INT64: "<i8", BOOL: "?"}
_NAMES |= {10: "<f2", 11: "<f8", 12: "<u4", 13: "<u8", BFLOAT16: "<u2"}
TYPES: Mapping[int, np.dtype[Any]] = {number: np.dtype(name) for number, name in _NAMES.items()}
"""NumPy's types of the elements that are read, by ONNX's number; bfloat16 is the upper half of a float32."""
_UNREAD = "complex64 complex128 - float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 float8e8m0 uint2 int2"
NAMES: Mapping[int, str] = {
    STRING: "strings",
    **{number: name for number, name in enumerate(f"{_UNREAD} float6e2m3 float6e3m2".split(), 14) if name != "-"},
}
"""Those that aren't read."""
NO_NUMBERS = "numbers are float, integer or boolean"
"""What to do about a tensor of another type."""
FIELDS: Mapping[int, str] = {FLOAT: "float_data", INT64: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
"""The fields of values that aren't raw bytes, by the type; of the other types int32_data."""


@dataclass
class Files:
    """Where a model's tensors are: `folder` has the files beside it; `left` bytes may still be read."""

    folder: Path | None
    left: int = MAX_BYTES


def tensor(proto: Any, files: Files, texts: bool = False) -> AnyArray:
    """The values of a TensorProto; with `texts` also one of texts, an array of objects.

    Raises `ProgramError` E1001 for one that is malformed, E1004 for one whose file can't be used, `CompileError` E1006 for a type that
    tpucc doesn't know.
    """
    what = f"the tensor {named(proto.name) or 'without a name'}"
    if proto.HasField("segment"):
        raise malformed(f"{what} is in segments, which nobody writes")
    dtype = np.dtype(object) if texts and proto.data_type == STRING else _dtype(proto, what)
    size = _size(proto, what)
    if size * dtype.itemsize > files.left:
        raise malformed(f"{what} claims {size * dtype.itemsize:,} bytes; a model has at most {MAX_BYTES:,}", code="E1003")
    files.left -= size * dtype.itemsize
    values = _values(proto, dtype, size, files, what)
    if len(values) != size:
        raise malformed(f"{what} claims {size:,} values, and there are {len(values):,}")
    if proto.data_type == BFLOAT16:
        values = (values.astype("<u4") << 16).view("<f4")
    return values.reshape(tuple(proto.dims))


def _dtype(proto: Any, what: str) -> np.dtype[Any]:
    if proto.data_type in NAMES:
        raise refused("E1006", f"{what} has values of the type {NAMES[proto.data_type]}", NO_NUMBERS)
    if proto.data_type not in TYPES:
        raise malformed(f"{what} has the unknown type {proto.data_type}")
    return TYPES[proto.data_type]


def _size(proto: Any, what: str) -> int:
    dims = list(proto.dims)
    if len(dims) > MAX_RANK:
        raise refused("E1007", f"{what} has {len(dims):,} axes; the limit is {MAX_RANK}")
    if any(size < 0 for size in dims):
        raise malformed(f"{what} has a negative size: {shortened(dims)}")
    if 0 in dims and max(dims) > MAX_SIZE:  # NumPy refuses an array without values, too, if its other sizes are too large
        raise malformed(f"{what} claims a size of {max(dims):,}; the limit is {MAX_SIZE:,}", code="E1003")
    return math.prod(dims)


def _values(proto: Any, dtype: np.dtype[Any], size: int, files: Files, what: str) -> AnyArray:
    if dtype.kind == "O":
        return np.array([text.decode("utf-8", "replace") for text in proto.string_data], object)
    if proto.data_location == 1:
        return _outside(proto, dtype, size, files, what)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) % dtype.itemsize:
            raise malformed(f"{what} has {len(proto.raw_data):,} bytes, which are no whole number of values")
        return np.frombuffer(proto.raw_data, dtype)
    numbers = np.array(getattr(proto, FIELDS.get(proto.data_type, "int32_data")))
    return numbers.astype(np.uint16).view(dtype) if dtype == np.float16 else numbers.astype(dtype)


def _outside(proto: Any, dtype: np.dtype[Any], size: int, files: Files, what: str) -> AnyArray:
    """Values from a file beside the model, which may not lie outside its folder, links included."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    name = entries.get("location", "")
    if files.folder is None:
        raise malformed(f"{what} lies in the file {named(name)}, and the model was given without its folder", code="E1004")
    path = files.folder / name
    if not name or "\0" in name or Path(name).is_absolute() or not inside(path, files.folder):
        mend = "data lies in the model's own folder: onnx.save(model, path, save_as_external_data=True) writes it there"
        raise malformed(f"{what} lies in {named(name) or 'no file'}, outside of the model's folder", mend, "E1004")
    wanted = size * dtype.itemsize
    start, length = (_number(entries.get(key, default), what) for key, default in (("offset", "0"), ("length", str(wanted))))
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
