"""Random machine programs."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np

from tests.support.machine import TINY, Writer
from tpucc.ir.dtypes import I8, I16
from tpucc.isa.program import Program
from tpucc.machines.v1 import Flag, Opcode, Place
from tpucc.machines.v1.functions import functions
from tpucc.numerics import AnyArray
from tpucc.target import Target

EXTREMES = (-128, -127, -1, 0, 1, 126, 127)


class RandomProgram:
    """A random valid program: nothing is read before it is written, the FIFO is never empty nor too full; rows overlap as they like.

    The shapes that compilers make (chains of multiplies, an activate) are common, so is whatever may come between them. In a `wide` program
    every instruction that computes has 16-bit values, each of two rows that may begin anywhere.
    """

    def __init__(self, seed: int, target: Target = TINY, length: int = 60, wide: bool = False) -> None:
        self.choose, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.writer = Writer(target, rows=min(24, target.unified_buffer_rows), wide=wide)
        self.wide, self.bytes_per_value = (Flag.WIDE, 2) if wide else (Flag(0), 1)
        """The flag of instructions that compute, and the rows of a value."""
        self.format = I16 if wide else I8
        self.target, self.length = target, length
        self.sums = np.zeros(target.accumulator_rows, np.int64)
        """Products added to each accumulator row; 0: undefined."""
        self.fifo: deque[int] = deque()
        self.switched = False

    def make(self) -> Program:
        add = self.writer.add
        for _ in range(self.choose.randint(1, 5)):
            self.writer.tile(self._tile())
        for _ in range(self.choose.randint(1, 4)):
            self.writer.block(**self._block())
        for start in range(0, self.target.unified_buffer_rows, self.writer.rows):
            add(Opcode.READ_HOST_MEMORY, host=0, dest=start, inner=min(self.writer.rows, self.target.unified_buffer_rows - start))
        add(Opcode.WRITE_HOST_MEMORY, ub=0, host=self.writer.rows, inner=self.writer.rows)
        add(Opcode.SET_CONFIGURATION, index=self.choose.randrange(len(self.writer.blocks)))
        while len(self.writer.records) < self.length:
            self.choose.choice(
                (self._layer, self._layer, self._multiply, self._activate, self._vector, self._pool, self._host, self._quiet)
            )()
        add(
            Opcode.WRITE_HOST_MEMORY,
            ub=self.choose.randint(0, self.target.unified_buffer_rows - self.writer.rows),
            host=self.writer.rows,
            inner=self.writer.rows,
        )
        return self.writer.program()

    def _tile(self) -> AnyArray:
        mxu = self.target.mxu
        kind = self.choose.randrange(4)
        if kind == 0:
            return np.full((mxu, mxu), self.choose.choice((-128, 127, 0)))
        rows, columns = (mxu, mxu) if kind == 1 else self.numbers.integers(1, mxu + 1, 2)
        return self.numbers.integers(-128, 128, (rows, columns))

    def _block(self) -> dict[str, Any]:
        mxu = self.target.mxu
        held = self.format
        low, high = sorted(self.choose.sample(range(held.low, held.high + 1), 2)) if self.choose.random() < 0.4 else (held.low, held.high)
        big = self.choose.random() < 0.2
        return {
            "bias": self.numbers.integers(-(2**26), 2**26, mxu) if big else self.numbers.integers(-2000, 2000, mxu),
            "multiplier": self.choose.choice((2**-18, 0.5, 2**-8, 0.0123, 1e-6)) * self.numbers.choice([1.0, 0.75], mxu),
            "zero": self.choose.choice(EXTREMES),
            "low": low,
            "high": high,
            "zero_a": self.choose.choice(EXTREMES),
            "zero_b": self.choose.choice(EXTREMES),
            "scale_a": self.choose.choice((0.5, 1.0, 0.0371, 1e-3, 1.3e-5)),
            "scale_b": self.choose.choice((0.5, 1.0, 0.7253)),
            "has_table": self.choose.randrange(2),
            "table": self.numbers.integers(-128, 128, 256),
            "points": self.numbers.integers(held.low, held.high + 1, I16.table_entries),
        }

    def _layer(self) -> None:
        """Some column blocks of one layer on the same rows, each followed by its activate or after the next one's multiplies."""
        rows, depth, blocks = self.choose.randint(1, 4), self.choose.randint(1, 3), self.choose.randint(1, 3)
        sources = [self._start(rows * self.bytes_per_value) for _ in range(depth)]
        unsigned = Flag.UNSIGNED if self.choose.random() < 0.2 else 0
        late = None
        for block in range(blocks):
            acc = (block % 2) * 8 + self.choose.choice((0, 0, 0, 1))
            for level, source in enumerate(sources):
                self._emit_multiply(source, acc, rows, level > 0, unsigned)
                if self.choose.random() < 0.1:
                    self.choose.choice((self._vector, self._host, self._quiet, self._pool))()
            if late is not None:
                self._emit_activate(*late)
            late = (acc, rows)
            if self.choose.random() < 0.5:
                self._emit_activate(*late)
                late = None
        if late is not None and self.choose.random() < 0.8:
            self._emit_activate(*late)

    def _multiply(self) -> None:
        rows = self.choose.randint(1, 5)
        self._emit_multiply(
            self._start(rows * self.bytes_per_value),
            self.choose.randint(0, self.target.accumulator_rows - rows),
            rows,
            self.choose.random() < 0.5,
            0,
        )

    def _emit_multiply(self, source: int, acc: int, rows: int, accumulate: bool, unsigned: int) -> None:
        flags = self.wide | unsigned | (self._next_tile() if not self.switched or self.choose.random() < 0.8 else 0)
        region = self.sums[acc : acc + rows]
        if accumulate and region.all() and region.max() < 20:
            flags |= Flag.ACCUMULATE
            region += 1
        else:
            region[...] = 1
        if self.choose.random() < 0.2:
            half = 2 if rows % 2 == 0 else 1
            stride = self.bytes_per_value * self.choose.choice((0, 1, 2))
            pitch = self.bytes_per_value * self.choose.choice((0, 1, rows // half))
            start = self._start((half - 1) * pitch + (rows // half - 1) * stride + self.bytes_per_value)
            self.writer.add(Opcode.CONVOLVE, flags, ub=start, ub_pitch=pitch, ub_stride=stride, acc=acc, outer=half, inner=rows // half)
        else:
            self.writer.add(Opcode.MATRIX_MULTIPLY, flags, ub=source, acc=acc, inner=rows)

    def _next_tile(self) -> Flag:
        while not self.fifo or (len(self.fifo) < self.target.weight_fifo_tiles and self.choose.random() < 0.5):
            tile = self.choose.randrange(len(self.writer.tiles))
            self.writer.add(Opcode.READ_WEIGHTS, index=tile)
            self.fifo.append(tile)
        self.fifo.popleft()
        self.switched = True
        return Flag.SWITCH

    def _activate(self) -> None:
        defined = np.flatnonzero(self.sums)
        if len(defined):
            acc = int(self.choose.choice(defined))
            rows = 1
            while acc + rows < len(self.sums) and self.sums[acc + rows] and rows < 4:
                rows += 1
            self._emit_activate(acc, self.choose.randint(1, rows))

    def _emit_activate(self, acc: int, rows: int) -> None:
        if self.choose.random() < 0.6:
            self.writer.add(Opcode.SET_CONFIGURATION, index=self.choose.randrange(len(self.writer.blocks)))
        stride = self.bytes_per_value * self.choose.choice((1, 1, 1, 2))
        self.writer.add(
            Opcode.ACTIVATE,
            self.wide,
            acc=acc,
            dest=self._start((rows - 1) * stride + self.bytes_per_value),
            dest_stride=stride,
            inner=rows,
        )

    def _vector(self) -> None:
        function, row = self.choose.choice(tuple(functions(windows=False).items()))
        rows, walks = self.choose.randint(1, 4), {}
        fields = ("ub", "ub2", "dest") if row.reads & Place.UB2 else ("ub", "dest")
        for name in fields:
            stride = self.bytes_per_value * self.choose.choice((1, 1, 1, 2) if name == "dest" else (0, 1, 1, 2))
            walks |= {name: self._start((rows - 1) * stride + self.bytes_per_value), f"{name}_stride": stride}
        if self.choose.random() < 0.3:
            walks["dest_stride"] = walks["ub_stride"] = self.bytes_per_value
            walks["ub"] = walks["dest"] = self._start(rows * self.bytes_per_value)
        flags = self.wide | self.choose.choice((0, 0, Flag.SPLAT)) | (self.choose.choice((0, 0, Flag.SPLAT2)) if "ub2" in walks else 0)
        repeats = self.choose.choice((1, 1, 2))
        self.writer.add(Opcode.VECTOR, flags, function=function, inner=rows, **walks)
        if repeats == 2 and all(walks[name] + 3 * rows * self.bytes_per_value <= self.target.unified_buffer_rows for name in fields):
            again = {name: value + (rows * self.bytes_per_value if name in fields else 0) for name, value in walks.items()}
            self.writer.add(Opcode.VECTOR, flags, function=function, inner=rows, **again)

    def _pool(self) -> None:
        rows = ((function, row) for function, row in functions(windows=True).items() if not (self.wide and row.reads & Place.KERNEL))
        function, row = self.choose.choice(tuple(rows))
        walk = {"outer": self.choose.randint(1, 2), "inner": self.choose.randint(1, 2)}
        window = {"window_outer": self.choose.randint(1, 2), "window_inner": self.choose.randint(1, 3)}
        span = 3 * walk["outer"] + walk["inner"] + 4 * window["window_outer"] + window["window_inner"]
        steps = {"ub_pitch": 3, "ub_stride": 1, "ub2_pitch": 4, "ub2_stride": 1, "dest_pitch": 3, "dest_stride": 1}
        walks = {name: step * self.bytes_per_value for name, step in steps.items()}
        walks["ub"] = self._start(span * self.bytes_per_value)
        if row.reads & Place.KERNEL:
            walks["ub2"] = self._start(window["window_outer"] * window["window_inner"])
        self.writer.add(Opcode.POOL, self.wide, function=function, dest=self._start(8 * self.bytes_per_value), **walks, **walk, **window)

    def _host(self) -> None:
        rows = self.choose.randint(1, 4)
        host = self.choose.randint(0, 2 * self.writer.rows - rows)
        if self.choose.random() < 0.5:
            self.writer.add(Opcode.READ_HOST_MEMORY, host=host, dest=self._start(rows), inner=rows)
        else:
            self.writer.add(Opcode.WRITE_HOST_MEMORY, ub=self._start(rows), host=host, inner=rows)

    def _quiet(self) -> None:
        opcode = self.choose.choice((Opcode.NOP, Opcode.INTERRUPT_HOST, Opcode.SYNCHRONIZE_HOST, Opcode.SYNCHRONIZE))
        self.writer.add(
            opcode, **({"index": self.choose.randrange(4), "engines": self.choose.randint(1, 15)} if opcode == Opcode.SYNCHRONIZE else {})
        )

    def _start(self, rows: int) -> int:
        return self.choose.randint(0, self.target.unified_buffer_rows - rows)
