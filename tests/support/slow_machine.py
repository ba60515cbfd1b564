"""The machine in Python integers: slow, independent of the simulator's arithmetic, to compare with."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tpucc.isa.instructions import Flag, Function, Opcode
from tpucc.isa.program import Program
from tpucc.numerics import Int8

Host = Callable[[int, Mapping[str, Int8]], Mapping[str, Int8]]


def slow_run(program: Program, inputs: Mapping[str, Int8], host: Host | None = None) -> dict[str, list[list[int]]]:
    """The program on a machine of Python integers; outputs as lists of rows. Only for ports of one block (see `Writer`)."""
    return _SlowMachine(program, host).run(inputs)


class _SlowMachine:
    def __init__(self, program: Program, host: Host | None) -> None:
        self.host_step = host
        self.program, self.mxu = program, program.target.mxu
        self.host = [[0] * self.mxu for _ in range(program.host_rows)]
        self.ub = [[0] * self.mxu for _ in range(program.target.unified_buffer_rows)]
        self.acc = [[0] * self.mxu for _ in range(program.target.accumulator_rows)]
        self.asked: list[int] = []
        self.tile: list[list[int]] = []
        self.block: Any = None

    def run(self, inputs: Mapping[str, Int8]) -> dict[str, list[list[int]]]:
        self._fill(inputs)
        for instruction in self.program.instructions:
            fields = {name: int(instruction[name]) for name in instruction.dtype.names}
            getattr(self, f"_{Opcode(fields['opcode']).mnemonic}", lambda f: None)(fields)
        return self._outputs([port.name for port in self.program.outputs])

    def _fill(self, tensors: Mapping[str, Int8]) -> None:
        for port in self.program.inputs:
            start = self.program.host[port.blocks[0]].start
            for row, values in enumerate(tensors[port.name].tolist() if port.name in tensors else ()):
                self.host[start + row] = values

    def _outputs(self, names: Sequence[str]) -> dict[str, list[list[int]]]:
        buffers = {port.name: self.program.host[port.blocks[0]] for port in self.program.outputs}
        return {name: self.host[buffers[name].start : buffers[name].start + buffers[name].rows] for name in names}

    def _interrupt_host(self, f: dict[str, int]) -> None:
        if f["index"] < len(self.program.host_steps) and self.host_step is not None:
            read = self._outputs(self.program.host_steps[f["index"]].reads)
            self._fill(self.host_step(f["index"], {name: np.array(rows, np.int8) for name, rows in read.items()}))

    @staticmethod
    def _walk(f: dict[str, int], name: str) -> list[int]:
        return [f[name] + o * f[f"{name}_pitch"] + i * f[f"{name}_stride"] for o in range(f["outer"]) for i in range(f["inner"])]

    def _read_host_memory(self, f: dict[str, int]) -> None:
        for row in range(f["inner"]):
            self.ub[f["dest"] + row] = list(self.host[f["host"] + row])

    def _write_host_memory(self, f: dict[str, int]) -> None:
        for row in range(f["inner"]):
            self.host[f["host"] + row] = list(self.ub[f["ub"] + row])

    def _read_weights(self, f: dict[str, int]) -> None:
        self.asked.append(f["index"])

    def _matrix_multiply(self, f: dict[str, int]) -> None:
        self._convolve({**f, "ub_pitch": 0, "ub_stride": 1, "outer": 1})

    def _convolve(self, f: dict[str, int]) -> None:
        if f["flags"] & Flag.SWITCH:
            self.tile = self.program.tiles[self.asked.pop(0)].tolist()
        for number, row in enumerate(self._walk(f, "ub")):
            x = [v % 256 if f["flags"] & Flag.UNSIGNED else v for v in self.ub[row]]
            sums = [sum(x[k] * self.tile[k][n] for k in range(self.mxu)) for n in range(self.mxu)]
            old = self.acc[f["acc"] + number] if f["flags"] & Flag.ACCUMULATE else [0] * self.mxu
            self.acc[f["acc"] + number] = [a + b for a, b in zip(old, sums, strict=True)]

    def _set_configuration(self, f: dict[str, int]) -> None:
        block = self.program.blocks[f["index"]]
        self.block = {name: block[name].tolist() for name in block.dtype.names}

    def _activate(self, f: dict[str, int]) -> None:
        block = self.block
        for number, row in enumerate(self._walk(f, "dest")):
            sums = [a + b for a, b in zip(self.acc[f["acc"] + number], block["bias"], strict=True)]
            products = [single(single(a) * m) for a, m in zip(sums, block["multiplier"], strict=True)]
            self.ub[row] = [self._placed(p) for p in products]

    def _vector(self, f: dict[str, int]) -> None:
        sources = [[list(self.ub[row]) for row in self._walk(f, name)] for name in ("ub", "ub2")]
        for rows, flag in zip(sources, (Flag.SPLAT, Flag.SPLAT2), strict=True):
            if f["flags"] & flag:
                rows[:] = [[row[0]] * self.mxu for row in rows]
        for row, a, b in zip(self._walk(f, "dest"), *sources, strict=True):
            self.ub[row] = [self._combined(f["function"], x, y) for x, y in zip(a, b, strict=True)]

    def _combined(self, function: int, a: int, b: int) -> int:
        if function == Function.COPY:
            return a
        block = self.block
        if function == Function.TABLE:
            return int(block["table"][a + 128])
        x, y = a - block["zero_a"], b - block["zero_b"]
        if function == Function.MULTIPLY:
            return self._placed(single(block["scale_a"] * (x * y)))
        left, right = single(block["scale_a"] * x), single(block["scale_b"] * y)
        return self._placed(single(left + right if function == Function.ADD else left - right))

    def _pool(self, f: dict[str, int]) -> None:
        offsets = [o * f["ub2_pitch"] + i * f["ub2_stride"] for o in range(f["window_outer"]) for i in range(f["window_inner"])]
        windows = [[list(self.ub[start + offset]) for offset in offsets] for start in self._walk(f, "ub")]
        for row, window in zip(self._walk(f, "dest"), windows, strict=True):
            lanes = list(zip(*window, strict=True))
            if f["function"] == Function.MAX:
                self.ub[row] = [max(lane) for lane in lanes]
            else:
                sums = [sum(v - self.block["zero_a"] for v in lane) for lane in lanes]
                self.ub[row] = [self._placed(single(self.block["scale_a"] * single(total)), table=False) for total in sums]

    def _placed(self, value: float, table: bool = True) -> int:
        """Rounded, moved by the zero point, clamped, looked up."""
        block = self.block
        result = min(max(round(Fraction(value)) + block["zero"], block["low"]), block["high"])
        return int(block["table"][result + 128]) if table and block["has_table"] else int(result)


def single(value: float) -> float:
    """The float32 nearest to a float64 that is exact, or the rounded sum or product of two float32 (which rounds alike twice)."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
