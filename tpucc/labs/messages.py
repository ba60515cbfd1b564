"""Answers of a child, as MessagePack: decoded only once their values are counted."""

from __future__ import annotations

from typing import Any

import msgspec

from tpucc.labs.guest import MOST
from tpucc.labs.lab import Failed

VALUES = 4 * MOST
"""Values of an answer as it is sent, where an array has several: `guest` counts the submission's own."""
LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""First bytes of a value that its length follows, and in how many bytes."""
FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
FIXED |= {0xC7: 1, 0xC8: 1, 0xC9: 1, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
"""Bytes that follow others: of numbers, and the types of extensions, with their data where the first byte says how long these are."""


def decoded(answer: bytes) -> dict[str, Any]:
    """An answer of a child. Raises `Failed` for one of more than `VALUES` values before any is made: an empty list is one byte here, and
    takes sixty in memory."""
    if not fits(answer):
        raise Failed("result", f"the answer has more than {VALUES:,} values")
    try:
        found = msgspec.msgpack.decode(answer)
    except Exception:
        found = None
    if not isinstance(found, dict):
        raise Failed("result", "the answer can't be read")
    return found


def fits(answer: bytes) -> bool:
    """Whether an answer has at most `VALUES` values, by what its lists and maps say of their lengths."""
    at, count, passed = 0, 1, 0
    while at < len(answer) and passed < count <= VALUES:
        head = answer[at]
        size = LENGTHS.get(head, 0)
        length = int.from_bytes(answer[at + 1 : at + 1 + size], "big")
        at, passed = at + 1 + size + FIXED.get(head, 0), passed + 1
        if 0x80 <= head <= 0x8F or head in (0xDE, 0xDF):  # a map
            count += 2 * (length if size else head & 0x0F)
        elif 0x90 <= head <= 0x9F or head in (0xDC, 0xDD):  # a list
            count += length if size else head & 0x0F
        else:  # text or bytes, or a value without a length
            at += length if size else head & 0x1F if 0xA0 <= head <= 0xBF else 0
    return count <= VALUES
