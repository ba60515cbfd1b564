"""Random numbers that are a function of their place: Threefry-2x32 with 20 rounds.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the constants are those of the Random123 library.
There is no state: whatever the order, the number of cores or the tiling, an element draws the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.numerics import Float32

Words = npt.NDArray[np.uint32]

PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
GROUPS = 5
"""Groups of four rounds; a part of the key is added after each."""
CHUNK = 2**14
"""Numbers that are drawn together: they stay in a processor's cache."""


def uniform(key: tuple[int, int], use: int, first: int, count: int) -> Float32:
    """`count` numbers of [0, 1), float32 [count]: multiples of 2^-24, each equally likely.

    `key` are the seed and the step. Element i of the use number `use` has the counter (first + i, use), and its number are the upper 24
    bits of the first word. Raises OverflowError if one of them is no 32-bit number.
    """
    numbers = np.empty(count, np.float32)
    np.array([first, first + max(count - 1, 0)], np.uint32)  # refuses what doesn't fit
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        counter = np.arange(first + start, first + stop, dtype=np.int64).astype(np.uint32)
        words, _ = threefry(key, counter, np.full(stop - start, use, np.uint32))
        np.multiply(words >> np.uint32(8), np.float32(2.0**-24), out=numbers[start:stop], casting="unsafe")
    return numbers


def threefry(key: tuple[int, int], first: Words, second: Words) -> tuple[Words, Words]:
    """The two random words of each counter (first, second); uint32 [n]. Raises OverflowError for a key of more than 32 bits."""
    keys = (np.uint32(key[0]), np.uint32(key[1]), np.uint32(PARITY ^ key[0] ^ key[1]))
    x, y = first + keys[0], second + keys[1]
    scratch = np.empty_like(y)
    for group in range(GROUPS):
        for rotation in ROTATIONS[group % 2]:
            np.add(x, y, out=x)
            np.right_shift(y, np.uint32(32 - rotation), out=scratch)
            np.left_shift(y, np.uint32(rotation), out=y)
            np.bitwise_or(y, scratch, out=y)
            np.bitwise_xor(y, x, out=y)
        np.add(x, keys[(group + 1) % 3], out=x)
        np.add(y, np.uint32((int(keys[(group + 2) % 3]) + group + 1) % 2**32), out=y)
    return x, y
