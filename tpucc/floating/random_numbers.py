"""Random numbers that are a function of their place: Threefry-2x32 with 20 rounds.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the constants are those of the Random123 library.
There is no state: whatever the order, the number of cores or the tiling, an element draws the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.numerics import Float32

Words = npt.NDArray[np.uint32]

PARITY = np.array([0x1BD11BDA], np.uint32)
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
    seed, step, which = (np.array([number], np.uint32) for number in (*key, use))
    for start in range(0, count, CHUNK):
        counter = np.arange(first + start, first + min(start + CHUNK, count), dtype=np.int64).astype(np.uint32)
        numbers[start : start + CHUNK] = uniform_of(seed, step, counter, which)
    return numbers


def uniform_of(seed: Words, step: Words, counter: Words, use: Words) -> Float32:
    """The number of [0, 1) of each counter and use, with the key (seed, step); the four broadcast."""
    word, _ = threefry((seed, step), counter, use)
    number: Float32 = (word >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return number


def threefry(key: tuple[Words, Words], first: Words, second: Words) -> tuple[Words, Words]:
    """The two random words of each counter (first, second); uint32, of the shape to which all broadcast."""
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    x, y = first + keys[0], second + keys[1]
    for group in range(GROUPS):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return x, y
