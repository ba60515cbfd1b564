"""Instructions one by one, in plain words: what a student's stage reads.

The scheduler and the verifier ask the same of whole programs at once: see `effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.isa.instructions import Engine, Records
from tpucc.numerics import Int64


class Rows(NamedTuple):
    """Rows of the unified buffer and of the accumulators, each ascending."""

    buffer: Int64
    accumulators: Int64


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its number, its line in a listing, the engine that does it, its layer, and the rows that it reads and writes.

    A multiply that accumulates reads and writes its accumulators.
    """

    index: int
    text: str
    engine: Engine
    layer: int
    reads: Rows
    writes: Rows


class Instructions:
    """`records` as a sequence of `Instruction`. `text` gives the line of one, by its number."""

    def __init__(self, records: Records, layer: Int64, text: Callable[[int], str]) -> None:
        self._touched: Effects = effects(records)
        self._layer = layer
        self._text = text

    def __len__(self) -> int:
        return len(self._touched)

    def __iter__(self) -> Iterator[Instruction]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Instruction:
        index = range(len(self))[index]
        touched, none = self._touched, np.zeros(0, np.int64)
        sums = np.arange(touched.acc_start[index], touched.acc_end[index], dtype=np.int64)
        sources = np.union1d(touched.source.rows(index), touched.source2.rows(index))
        return Instruction(
            index,
            self._text(index),
            Engine(int(touched.engine[index])),
            int(self._layer[index]),
            Rows(sources, sums if touched.acc_reads[index] else none),
            Rows(touched.target.rows(index), sums if touched.acc_writes[index] else none),
        )
