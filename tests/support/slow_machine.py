"""The machine in Python integers: slow, independent of the simulator's arithmetic, to compare with.

Memories hold bytes. With the flag `wide` a value is `low + 256 * high`, of a row of low bytes without sign and of the row after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor
from operator import mul
from typing import Any

import numpy as np

from tpucc.ir.dtypes import I16
from tpucc.isa.program import Program
from tpucc.machines.v1 import Flag, Function, Opcode
from tpucc.numerics import Int8

HIGH_BYTES = 1
WITHOUT_VALUES = (Opcode.NOP, Opcode.SYNCHRONIZE, Opcode.SYNCHRONIZE_HOST, Opcode.DEBUG_TAG, Opcode.HALT)
"""They change no values. All other instructions have a method."""
"""Rows from the low bytes of 16-bit values to their high bytes."""
Host = Callable[[int, Mapping[str, Int8]], Mapping[str, Int8]]


def slow_run(program: Program, inputs: Mapping[str, Int8], host: Host | None = None) -> dict[str, list[list[int]]]:
    """The program on a machine of Python integers; outputs as lists of rows. Only for ports of one block (see `Writer`)."""
    return _SlowMachine(program, host).run(inputs)


class _Memory(dict[int, list[int]]):
    """`rows` rows of zeros, of which one is made when it is first used: a buffer has 24 MiB."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self._rows, self._width = rows, width

    def __missing__(self, row: int) -> list[int]:
        if not 0 <= row < self._rows:
            raise IndexError(row)
        return self.setdefault(row, [0] * self._width)


class _SlowMachine:
    def __init__(self, program: Program, host: Host | None) -> None:
        self.host_step = host
        self.program, self.mxu = program, program.target.mxu
        self.host = [[0] * self.mxu for _ in range(program.host_rows)]
        self.ub = _Memory(program.target.unified_buffer_rows, self.mxu)
        self.acc = _Memory(program.target.accumulator_rows, self.mxu)
        self.asked: list[int] = []
        self.columns: list[list[int]] = []
        self.block: Any = None

    def run(self, inputs: Mapping[str, Int8]) -> dict[str, list[list[int]]]:
        self._fill_ports(inputs)
        for instruction in self.program.instructions:
            fields = {name: int(instruction[name]) for name in instruction.dtype.names}
            if Opcode(fields["opcode"]) not in WITHOUT_VALUES:
                getattr(self, f"_{Opcode(fields['opcode']).mnemonic}")(fields)
        return self._outputs([port.name for port in self.program.outputs])

    def _fill_ports(self, tensors: Mapping[str, Int8]) -> None:
        for port in self.program.inputs:
            start = self.program.host[port.blocks[0]].start
            for row, values in enumerate(tensors[port.name].tolist() if port.name in tensors else ()):
                if port.format is I16:
                    self.host[start + 2 * row], self.host[start + 2 * row + HIGH_BYTES] = halves(values)
                else:
                    self.host[start + row] = values

    def _outputs(self, names: Sequence[str]) -> dict[str, list[list[int]]]:
        found = {}
        for port in self.program.outputs:
            buffer = self.program.host[port.blocks[0]]
            rows = self.host[buffer.start : buffer.start + buffer.rows]
            found[port.name] = list(map(joined, rows[::2], rows[HIGH_BYTES::2])) if port.format is I16 else rows
        return {name: found[name] for name in names}

    def _interrupt_host(self, f: dict[str, int]) -> None:
        if f["index"] < len(self.program.host_steps) and self.host_step is not None:
            read = self._outputs(self.program.host_steps[f["index"]].reads)
            self._fill_ports(self.host_step(f["index"], {name: np.array(rows, np.int8) for name, rows in read.items()}))

    @staticmethod
    def _walk(f: dict[str, int], name: str) -> list[int]:
        return [f[name] + o * f[f"{name}_pitch"] + i * f[f"{name}_stride"] for o in range(f["outer"]) for i in range(f["inner"])]

    def _load(self, f: dict[str, int], row: int) -> list[int]:
        """The values that begin in a row."""
        return joined(self.ub[row], self.ub[row + HIGH_BYTES]) if f["flags"] & Flag.WIDE else list(self.ub[row])

    def _store(self, f: dict[str, int], row: int, values: list[int]) -> None:
        if f["flags"] & Flag.WIDE:
            self.ub[row], self.ub[row + HIGH_BYTES] = halves(values)
        else:
            self.ub[row] = values

    def _read_host_memory(self, f: dict[str, int]) -> None:
        for row in range(f["inner"]):
            self.ub[f["dest"] + row] = list(self.host[f["host"] + row])

    def _write_host_memory(self, f: dict[str, int]) -> None:
        for row in range(f["inner"]):
            self.host[f["host"] + row] = list(self.ub[f["ub"] + row])

    def _read_weights(self, f: dict[str, int]) -> None:
        self.asked.append(f["index"])

    def _matrix_multiply(self, f: dict[str, int]) -> None:
        self._convolve({**f, "ub_pitch": 0, "ub_stride": 2 if f["flags"] & Flag.WIDE else 1, "outer": 1})

    def _convolve(self, f: dict[str, int]) -> None:
        if f["flags"] & Flag.SWITCH:
            self.columns = self.program.tiles[self.asked.pop(0)].T.tolist()
        values = 65536 if f["flags"] & Flag.WIDE else 256
        for number, row in enumerate(self._walk(f, "ub")):
            x = [v % values if f["flags"] & Flag.UNSIGNED else v for v in self._load(f, row)]
            sums = [sum(map(mul, x, column)) for column in self.columns]
            old = self.acc[f["acc"] + number] if f["flags"] & Flag.ACCUMULATE else [0] * self.mxu
            self.acc[f["acc"] + number] = [a + b for a, b in zip(old, sums, strict=True)]

    def _set_configuration(self, f: dict[str, int]) -> None:
        block = self.program.blocks[f["index"]]
        self.block = {name: block[name].tolist() for name in block.dtype.names}

    def _activate(self, f: dict[str, int]) -> None:
        for number, row in enumerate(self._walk(f, "dest")):
            self._requantise(f, row, self.acc[f["acc"] + number])

    def _requantise(self, f: dict[str, int], row: int, sums: Sequence[int]) -> None:
        biased = [a + b for a, b in zip(sums, self.block["bias"], strict=True)]
        products = [single(single(a) * m) for a, m in zip(biased, self.block["multiplier"], strict=True)]
        self._store(f, row, [self._placed(f, p) for p in products])

    def _vector(self, f: dict[str, int]) -> None:
        names = ("ub", "ub") if f["function"] in (Function.COPY, Function.TABLE) else ("ub", "ub2")
        sources = [[self._load(f, row) for row in self._walk(f, name)] for name in names]
        for rows, flag in zip(sources, (Flag.SPLAT, Flag.SPLAT2), strict=True):
            if f["flags"] & flag:
                rows[:] = [[row[0]] * self.mxu for row in rows]
        for row, a, b in zip(self._walk(f, "dest"), *sources, strict=True):
            self._store(f, row, [self._combined(f, x, y) for x, y in zip(a, b, strict=True)])

    def _combined(self, f: dict[str, int], a: int, b: int) -> int:
        function, block = f["function"], self.block
        if function == Function.COPY:
            return a
        if function == Function.TABLE:
            return self._looked_up(f, a)
        x, y = a - block["zero_a"], b - block["zero_b"]
        if function == Function.MULTIPLY:
            return self._placed(f, single(block["scale_a"] * single(x * y)))
        left, right = single(block["scale_a"] * x), single(block["scale_b"] * y)
        sums = {Function.ADD: left + right, Function.SUBTRACT: left - right}
        return self._placed(f, single(sums[Function(function)]))

    def _pool(self, f: dict[str, int]) -> None:
        offsets = [o * f["ub2_pitch"] + i * f["ub2_stride"] for o in range(f["window_outer"]) for i in range(f["window_inner"])]
        windows = [[self._load(f, start + offset) for offset in offsets] for start in self._walk(f, "ub")]
        weights = zip(*(self._load(f, f["ub2"] + number) for number in range(len(offsets))), strict=True)
        by_lane = [*weights] if f["function"] == Function.WEIGHTED else []
        for row, window in zip(self._walk(f, "dest"), windows, strict=True):
            lanes = list(zip(*window, strict=True))
            if f["function"] == Function.MAX:
                self._store(f, row, [max(lane) for lane in lanes])
            elif f["function"] == Function.WEIGHTED:
                products = ([v * w for v, w in zip(*each, strict=True)] for each in zip(lanes, by_lane, strict=True))
                self._requantise(f, row, [sum(lane) for lane in products])
            else:
                sums = [sum(v - self.block["zero_a"] for v in lane) for lane in lanes]
                means = [single(self.block["scale_a"] * single(total)) for total in sums]
                self._store(f, row, [self._placed(f, mean, table=False) for mean in means])

    def _placed(self, f: dict[str, int], value: float, table: bool = True) -> int:
        """Rounded, moved by the zero point, clamped, looked up."""
        block = self.block
        result = min(max(round(Fraction(value)) + block["zero"], block["low"]), block["high"])
        return self._looked_up(f, result) if table and block["has_table"] else int(result)

    def _looked_up(self, f: dict[str, int], value: int) -> int:
        """The entry of a byte, or what lies on the line between the two points that a 16-bit value is between."""
        if f["flags"] & Flag.WIDE:
            return between(self.block["points"], value)
        return int(self.block["table"][value + 128])


def joined(low: Sequence[int], high: Sequence[int]) -> list[int]:
    """16-bit values of their bytes, all given as -128…127."""
    return [byte % 256 + 256 * above for byte, above in zip(low, high, strict=True)]


def halves(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """The bytes of 16-bit values, as -128…127: low, high."""
    return [(value + 128) % 256 - 128 for value in values], [value // 256 for value in values]


def between(points: Sequence[int], value: int) -> int:
    """The function of -32768…32767 with these values at every 256th integer, straight between two, rounded to the nearest, ties up."""
    index, part = divmod(value + 32768, 256)
    left, right = Fraction(points[index]), Fraction(points[index + 1])
    return floor(left + (right - left) * Fraction(part, 256) + Fraction(1, 2))


def single(value: float) -> float:
    """The float32 nearest to a float64 that is exact, or the rounded sum or product of two float32 (which rounds alike twice)."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
