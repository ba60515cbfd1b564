"""PNG files with a palette: a screenshot of text in a few colours is a third as large as in true colour."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

Octets = npt.NDArray[np.uint8]
MOST = 256
"""Colours of a palette."""


def palette_png(pixels: Octets) -> bytes:
    """A PNG of `pixels`, uint8 [height, width, 3], in their `MOST` most frequent colours; the others become the nearest of those."""
    height, width, _ = pixels.shape
    wide = pixels.astype(np.uint32)
    colours, places, counts = np.unique(wide @ np.array([1 << 16, 1 << 8, 1], np.uint32), return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST])
    indices = _nearest(_channels(colours), _channels(colours[kept]))[places].reshape(height, width)
    rows = np.hstack([np.zeros((height, 1), np.uint8), indices])
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", _channels(colours[kept]).astype(np.uint8).tobytes()),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _channels(colours: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Red, green and blue of colours 0xRRGGBB: int32 [count, 3]."""
    return np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], axis=-1).astype(np.int32)


def _nearest(colours: npt.NDArray[np.int32], kept: npt.NDArray[np.int32]) -> Octets:
    """For each colour the index of the kept one at the least squared distance, through |a|² + |b|² - 2·a·b."""
    distances = (kept * kept).sum(axis=1) - 2 * colours @ kept.T
    return distances.argmin(axis=1).astype(np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
