"""Large constants are printed in text forms as digests: `data d0 bytes=1024 sha256=3f2a9c1d04b7e6a8`.

This keeps a text short. Its reader finds the constants by length and digest in the model that the text was printed from. The digest is the
first 64 bits of SHA-256 over the bytes: enough to find a change, but no protection against an attack.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Protocol

from tpucc.diagnostics import Span, printable
from tpucc.ir.codec import WITHOUT_DATA, decode, encode, line_error

CHANGED = "E0761"
HEADER = re.compile(r"\s*data\s+([A-Za-z0-9_.]+)(?:\s+bytes=(\d{1,12})\s+sha256=([0-9a-f]{16}))?\s*")
"""The first line of a data section: its name, and for one without data its length and its digest."""


class Known(Protocol):
    """The constants of a model."""

    @property
    def name(self) -> str:
        """The model's, for messages."""

    def find(self, digest: str, size: int) -> bytes | None:
        """The constant of `size` bytes with this digest; None when the model has none."""


def digest_of(data: bytes | memoryview) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:16]


def header(name: str, data: bytes | memoryview) -> str:
    """The one line of a section without data."""
    return f"data {name} bytes={len(data)} sha256={digest_of(data)}\n"


def found(what: str, digest: str, size: int, known: Known | None, span: Span) -> bytes:
    """The constant with this digest. Raises `LineError` E0760 or E0761 where it can't be had: `what` names it, and `span` is its place."""
    data = known.find(digest, size) if known is not None else None
    if data is not None:
        return data
    if known is None:
        mend = "name the model that the text was printed from: --like MODEL.tpu; or print the text with --with-data"
        raise line_error(WITHOUT_DATA, f"{what} stands here by its digest alone", span, mend)
    message = f"{what} is none of the constants of {printable(known.name)}: none of this length has the digest {digest}"
    raise line_error(CHANGED, message, span, "a text goes on from the model that it was printed from, with the same weights")


def abbreviated(text: str) -> str:
    """The text of a graph with a header alone for each section of data. `expanded` gives the text back."""
    return "".join(part if data is None else header(name, data) + _end(part) for part, name, data in _sections(text))


def expanded(text: str, known: Known | None, span: Span) -> str:
    """The text with the data of all sections that have none. Raises what `found` does, at the place of the text."""
    return "".join(_full(part, known, span) for part, _, _ in _sections(text))


def data_of(text: str) -> Iterator[bytes]:
    """The data that stand in the text of a graph."""
    return (data for _, _, data in _sections(text) if data is not None)


def _full(part: str, known: Known | None, span: Span) -> str:
    head, _, rest = part.partition("\n")
    match = HEADER.fullmatch(head)
    if match is None or match[3] is None:
        return part
    data = found(f"the constant {match[1]}", match[3], int(match[2]), known, span)
    return f"data {match[1]}\n{encode(data)}{rest}"


def _sections(text: str) -> Iterator[tuple[str, str, bytes | None]]:
    """The text in parts: before the sections of data, and each section; its name and data when it is as `encode` writes it."""
    parts = re.split(r"(?m)^(?=data )", text)
    yield parts[0], "", None
    for part in parts[1:]:
        head, _, body = part.partition("\n")
        match = HEADER.fullmatch(head)
        yield part, match[1] if match else "", _data(body) if match and match[2] is None else None


def _data(body: str) -> bytes | None:
    try:
        data = decode(body)
    except ValueError:
        return None
    return data if encode(data) == body.removesuffix(_end(body)) else None


def _end(part: str) -> str:
    """The empty lines at the end of a section."""
    return part[len(part.rstrip("\n")) + 1 :]
