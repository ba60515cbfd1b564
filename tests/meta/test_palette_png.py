"""The PNG files of the book's screenshots, read back by their chunks."""

from __future__ import annotations

import struct
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def png() -> ModuleType:
    spec = spec_from_file_location("palette_png", Path(__file__).resolve().parents[2] / "docs" / "palette_png.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(data: bytes) -> np.ndarray:
    """The pixels of a PNG with a palette, whose rows are not filtered."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(kind + body),)
        chunks[kind], at = body, at + 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 3, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


@pytest.mark.parametrize("colours", [1, 2, 256])
def test_few_colours_come_back_as_they_are(png: ModuleType, colours: int) -> None:
    random = np.random.default_rng(colours)
    pixels = random.integers(0, 256, (colours, 3), np.uint8)[random.integers(0, colours, (37, 53))]
    np.testing.assert_array_equal(read(png.palette_png(pixels)), pixels)


def test_rare_colours_become_the_nearest_frequent_one(png: ModuleType) -> None:
    frequent = np.array([[index, 255 - index, 7] for index in range(256)], np.uint8)
    rare = np.array([[3, 252, 9], [201, 200, 0], [0, 255, 0]], np.uint8)
    pixels = np.concatenate([np.repeat(frequent, 2, axis=0), rare])[np.newaxis]
    np.testing.assert_array_equal(read(png.palette_png(pixels))[0, -3:], frequent[[3, 128, 0]])
