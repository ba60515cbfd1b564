"""Constants as values: arrays that are frozen, compared by content, and may know how they were drawn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import FORMATS, OF_NUMPY

_HASHED = 64
"""Elements that a hash looks at."""


@dataclass(frozen=True, slots=True)
class Random:
    """How a random constant was drawn: from `seed` and its own `key`, so that adding one constant changes no other."""

    seed: int
    key: str


@dataclass(frozen=True, eq=False)
class Constant:
    """A frozen NumPy array (C order, little endian, read only). Equal when type, shape and every byte are equal.

    `drawn` says that `random_array` gives the same array from this recipe; the text form then needs no data.
    """

    data: npt.NDArray[Any]
    drawn: Random | None = field(default=None)

    def __post_init__(self) -> None:
        dtype = self.data.dtype.newbyteorder("<")
        if dtype not in OF_NUMPY:
            raise TypeError(f"a constant of type {self.data.dtype} is none of {', '.join(FORMATS)}")
        data = np.array(self.data, dtype=dtype, order="C", copy=True if self.data.flags.writeable else None)
        data.setflags(write=False)
        object.__setattr__(self, "data", data)

    @property
    def dtype(self) -> str:
        return OF_NUMPY[self.data.dtype].name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of type, shape and bytes."""
        head = f"{self.dtype}{self.shape}".encode()
        return hashlib.sha256(head + np.ascontiguousarray(self.data).data.cast("B") if self.data.size else head).digest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return self.data is other.data or (self.dtype == other.dtype and self.shape == other.shape and self.digest == other.digest)

    def __hash__(self) -> int:
        """From type, shape and the first bytes: equal arrays have equal hashes, and a large one isn't read to find its own."""
        return hash((self.dtype, self.shape, self.data.flat[:_HASHED].tobytes()))

    def __repr__(self) -> str:
        return f"Constant({self.dtype}{list(self.shape)})"


def random_array(shape: tuple[int, ...], recipe: Random) -> Constant:
    """Draws a float32 weight: He-normal from two dimensions up (fan-in: all sizes but the last), uniform in 0.5…1.5 for less.

    He et al., "Delving Deep into Rectifiers", ICCV 2015: standard deviation sqrt(2 / fan_in).
    """
    key = int.from_bytes(hashlib.sha256(recipe.key.encode("utf-8", "surrogatepass")).digest()[:8], "little")
    generator = np.random.default_rng([recipe.seed, key])
    if len(shape) < 2:
        return Constant(generator.random(shape, np.float32) + np.float32(0.5), recipe)
    deviation = np.float32(np.sqrt(2.0 / max(1, int(np.prod(shape[:-1], dtype=object)))))
    return Constant(generator.standard_normal(shape, np.float32) * deviation, recipe)
