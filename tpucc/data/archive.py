"""NPZ archives: read without trusting them, and written so that the same arrays, in the same memory order, give the same bytes.

An archive is looked at before it is read: names, types and shapes come from the members' headers, and only members that are wanted, and
whose header says what is expected, are unpacked. Pickled objects are never loaded.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, Self

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, printable, reason
from tpucc.files import opened, unreadable
from tpucc.numerics import AnyArray

MAX_MEMBERS = 100_000
MAX_BYTES = 16 * 2**30
MAX_RANK = 32
MAX_HEADER = 10_000
PIECE = 2**20
SMALL, MAX_RATIO = 2**28, 100
"""An array of more than `SMALL` bytes must take at least 1/`MAX_RATIO` of them in the file: one that takes less is made to fill memory."""
MEMBER_SUFFIX = ".npy"
SUFFIXES = (".npz", ".safetensors")
"""How the names of files of arrays end."""
NO_HINTS: Mapping[str, str] = {}
ARRAY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, slots=True)
class Member:
    """An array as its header describes it."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran_order: bool

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"

    @property
    def size(self) -> int:
        """Bytes, as an unbounded integer."""
        return math.prod(self.shape) * self.dtype.itemsize


class ArrayFile(ABC):
    """An open file of arrays: `members` by key, `read(key)` for the values. Use as a context manager.

    Raises `UsageError` when the file is missing or unreadable, `InputError` when it is malformed.
    """

    path: Path
    members: Mapping[str, Member]

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            try:
                stream = stack.enter_context(opened(path))
                self.members = self._opened(stream, stack)
            except (OSError, ValueError) as error:
                raise unreadable(path, error, "E0420", suffixes=SUFFIXES) from None
            self._files = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @abstractmethod
    def _opened(self, stream: BinaryIO, stack: ExitStack) -> Mapping[str, Member]:
        """The arrays as the file's headers describe them. Resources that are entered into `stack` are closed with the file."""

    @abstractmethod
    def read(self, key: str) -> AnyArray:
        """The values of `key`."""

    def malformed(self, what: str, mend: str = "") -> InputError:
        return InputError(Diagnostic("E0421", f"{self.path}: {what}", help=(mend,)))


class Archive(ArrayFile):
    """An npz archive."""

    def _opened(self, stream: BinaryIO, stack: ExitStack) -> Mapping[str, Member]:
        try:
            self._zip = stack.enter_context(zipfile.ZipFile(stream))
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
            stream.seek(0)
            if stream.read(len(ARRAY_MAGIC)) == ARRAY_MAGIC:
                raise self.malformed("a single array, which has no name", "np.savez('x.npz', x=array) saves it as x") from None
            raise self.malformed(f"not an npz archive ({_why(error)})", "np.savez('x.npz', x=array) writes one") from None
        return self._headers()

    def read(self, key: str) -> AnyArray:
        """The array `key`, in the memory order of the file (C or Fortran). It has as many bytes as its header says, or is malformed."""
        member, packed = self.members[key], self._zip.getinfo(key + MEMBER_SUFFIX).compress_size
        if member.size > MAX_BYTES:
            raise self.malformed(f"{printable(key)} has {member.size:,} bytes; the limit is {MAX_BYTES:,}")
        if member.size > max(SMALL, MAX_RATIO * packed):
            mend = "np.savez writes it without compression"
            raise self.malformed(f"{printable(key)} has {member.size:,} bytes in {packed:,}, as no array of values does; {mend}")
        data = np.empty(member.size, np.uint8)
        try:
            with self._zip.open(key + MEMBER_SUFFIX) as stream:
                _header(stream)
                if not _filled(data, stream):
                    raise self.malformed(f"{printable(key)} has not the {member.size:,} bytes that its header promises")
            values = data.view(member.dtype)
            return values.reshape(member.shape, order="F" if member.fortran_order else "C")
        except InputError:
            raise
        except Exception as error:  # each kind of compression has errors of its own, and NumPy has some for shapes that none can have
            raise self.malformed(f"{printable(key)} can't be unpacked ({_why(error)})") from None

    def _headers(self) -> Mapping[str, Member]:
        entries = self._zip.infolist()
        if len(entries) > MAX_MEMBERS:
            raise self.malformed(f"{len(entries):,} members; the limit is {MAX_MEMBERS:,}")
        found: dict[str, Member] = {}
        for entry in entries:
            key = self._key(entry.filename)
            if key in found:
                raise self.malformed(f"{printable(key)} is there twice")
            found[key] = self._member(key)
        return found

    def _key(self, name: str) -> str:
        if not name.endswith(MEMBER_SUFFIX):
            raise self.malformed(f"{printable(name)} isn't an array; members are named KEY.npy")
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise self.malformed(f"{printable(name)} is a path that leaves the archive")
        return name.removesuffix(MEMBER_SUFFIX)

    def _member(self, key: str) -> Member:
        try:
            with self._zip.open(key + MEMBER_SUFFIX) as stream:
                shape, fortran_order, dtype = _header(stream)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError) as error:
            raise self.malformed(f"{printable(key)} can't be unpacked ({_why(error)})") from None
        except Exception:  # NumPy reads headers with Python's tokenizer and parser: their words say nothing here
            raise self.malformed(f"{printable(key)} has no readable array header") from None
        if dtype.hasobject:
            raise self.malformed(f"{printable(key)} holds pickled objects, which are never loaded; save numbers")
        if not dtype.itemsize:
            raise self.malformed(f"{printable(key)} holds elements of no bytes; save numbers")
        if len(shape) > MAX_RANK:
            raise self.malformed(f"{printable(key)} has {len(shape)} dimensions; the limit is {MAX_RANK}")
        if any(size < 0 for size in shape):
            raise self.malformed(f"{printable(key)} has a negative size")
        return Member(key, dtype, shape, fortran_order)


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """All arrays of an archive."""
    with Archive(path) as archive:
        return {key: archive.read(key) for key in archive.members}


@contextmanager
def naming(path: Path, hints: Mapping[str, str] = NO_HINTS) -> Iterator[None]:
    """Puts the path of the arrays' file before each message of an `InputError`; `hints` has the help to add to a message, by its code."""
    try:
        yield
    except InputError as error:
        named = [replace(d, message=f"{path}: {d.message}", help=(*d.help, hints.get(d.code, ""))) for d in error.diagnostics]
        raise InputError(named, error.source) from None


def npz_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """An uncompressed npz archive with one member for each array, in their order; the date of each is 1980-01-01.

    `np.savez` writes the same bytes, but takes no array with the name of one of its own parameters.
    """
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for key, array in arrays.items():
            with archive.open(key + MEMBER_SUFFIX, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def _why(error: Exception) -> str:
    return reason(error) if isinstance(error, OSError) else str(error)


def _filled(data: AnyArray, stream: IO[bytes]) -> bool:
    """Fills `data` from the stream, piece by piece. False if the stream has fewer bytes than `data`, or more."""
    done = 0
    while done < len(data) and (piece := stream.read(min(PIECE, len(data) - done))):
        data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return done == len(data) and not stream.read(1)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, order and type from an NPY header, which is parsed as a literal and bounded in length. Nobody sees its errors' words."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("unknown version")
    length = stream.read(2 if version == (1, 0) else 4)
    if (size := int.from_bytes(length, "little")) > MAX_HEADER:
        raise ValueError("too long")
    text = BytesIO(length + stream.read(size))
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(text, max_header_size=MAX_HEADER)
