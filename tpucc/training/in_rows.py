"""A program whose values lie in named rows of a memory, as those for the training machine: arrays go into these rows, and come out of them.

No part of the host converts them. A listing that was typed by hand is such a program, and so is a step of training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, InputError, LimitError, UsageError, counted, did_you_mean, listed, printable
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.isa.program import HostBuffer, Program
from tpucc.numerics import AnyArray, Float32
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import Timeline, time_program
from tpucc.training.repeated import Repeated, run_together

MOST_ROWS = 2**23
"""The most rows of HBM that are simulated: 4 GiB of 128 lanes."""


def put_rows(held: AnyArray, matrix: AnyArray) -> None:
    """Puts a matrix into the rows of a buffer: its first columns into the first rows, and so on, as many as the buffer has lanes."""
    rows, columns = matrix.shape
    for block, first in enumerate(range(0, columns, held.shape[1])):
        own = matrix[:, first : first + held.shape[1]]
        held[block * rows : (block + 1) * rows, : own.shape[1]] = own


def rows_of(held: AnyArray, rows: int, columns: int) -> AnyArray:
    """The matrix in the rows of a buffer: a new array."""
    blocks = [held[first : first + rows] for first in range(0, rows * -(-columns // held.shape[1]), rows)]
    return np.array(np.concatenate(blocks, axis=1)[:, :columns])


@dataclass(frozen=True)
class InRows:
    """A verified program of a machine for floats, on one core."""

    program: Program

    def __post_init__(self) -> None:
        """Raises `UsageError` E0951 for a program of several cores, and `LimitError` E0640 for one with more rows than are simulated."""
        if self.program.cores > 1:
            message = f"{self.program.name} is for {self.program.cores:,} cores, which exchange values: one alone can't run it"
            raise UsageError(Diagnostic("E0951", message, help=("tpucc train --executor machine runs the steps of all cores",)))
        if self.program.host_rows > MOST_ROWS:
            message = f"{self.program.name} has {self.program.host_rows:,} rows of memory, and at most {MOST_ROWS:,} rows are simulated"
            raise LimitError(Diagnostic("E0640", message, help=("smaller buffers need fewer rows",)))

    @cached_property
    def timeline(self) -> Timeline:
        """When every instruction starts and ends, in cycles."""
        return time_program(self.program)

    @cached_property
    def inputs(self) -> dict[str, HostBuffer]:
        """The buffers whose values are there when a run starts: inputs and states."""
        return {buffer.name: buffer for buffer in self.program.host if buffer.kind in ("input", "state")}

    def accepted(self, given: Mapping[str, npt.ArrayLike]) -> dict[str, Float32]:
        """For each buffer of `inputs` its matrix in float32. All dimensions of an array but the last are the rows of its matrix. The bits
        of uint32 are kept, for they are indices; other numbers are converted.

        Raises `InputError`: E0432 for an array that is no input, E0450 for one that is missing, E0433 for values that are no numbers, E0451
        for a matrix that doesn't fill its buffer.
        """
        problems = [self._unknown(name) for name in given if name not in self.inputs]
        problems += [
            Diagnostic("E0450", f"the input {printable(name)} is missing: {counted(buffer.rows, 'row')} of {self.lanes} lanes")
            for name, buffer in self.inputs.items()
            if name not in given
        ]
        arrays = {}
        for name, buffer in self.inputs.items():
            if name in given:
                found = self._matrix(buffer, np.asarray(given[name]))
                if isinstance(found, Diagnostic):
                    problems.append(found)
                else:
                    arrays[name] = found
        if problems:
            raise InputError(problems)
        return arrays

    def random(self, seed: int = 0) -> dict[str, Float32]:
        """Standard normal values in all lanes of all inputs."""
        generator = np.random.default_rng(seed)
        return {name: generator.standard_normal((each.rows, self.lanes), np.float32) for name, each in self.inputs.items()}

    def begun(self, inputs: Mapping[str, Float32]) -> Interpreter:
        """The plain interpreter before the first instruction."""
        interpreter = Interpreter(self.program)
        self._put(interpreter.memories.buffers, inputs)
        return interpreter

    def run(self, inputs: Mapping[str, Float32]) -> dict[str, Float32]:
        """The rows of all outputs and new states: float32 [rows, lanes] by their names. Lanes that the program doesn't write hold 0."""
        core = Repeated(self.program)
        self._put(core.memories.buffers, inputs)
        run_together([core])
        return self.outputs(core.memories.buffers)

    def run_plain(self, inputs: Mapping[str, Float32]) -> dict[str, Float32]:
        """What `run` gives, computed instruction by instruction."""
        interpreter = self.begun(inputs)
        for index in range(len(self.program.instructions)):
            interpreter.execute(index)
        return self.outputs(interpreter.memories.buffers)

    def outputs(self, memory: AnyArray) -> dict[str, Float32]:
        """The rows of all outputs and states in the memory of buffers."""
        return {each.name: np.array(memory[each.start : each.end]) for each in self.program.host if each.kind in ("output", "state")}

    @property
    def lanes(self) -> int:
        return self.program.target.mxu

    def _put(self, memory: AnyArray, inputs: Mapping[str, Float32]) -> None:
        for name, matrix in inputs.items():
            put_rows(memory[self.inputs[name].start : self.inputs[name].end], matrix)

    def _unknown(self, name: str) -> Diagnostic:
        mend = did_you_mean(name, self.inputs) or (
            f"its inputs are {listed([*map(printable, self.inputs)])}" if self.inputs else "it has none"
        )
        return Diagnostic("E0432", f"the program has no input {printable(name)}", help=(mend,))

    def _matrix(self, buffer: HostBuffer, array: AnyArray) -> Float32 | Diagnostic:
        """The matrix of an array for a buffer, or what is wrong with the array."""
        if array.dtype.kind not in "biuf":
            return Diagnostic("E0433", f"input {printable(buffer.name)} is {array.dtype}, expected numbers")
        matrix = array.reshape(-1, array.shape[-1] if array.ndim else 1) if array.size else np.zeros((0, 1))
        rows, columns = matrix.shape
        if rows * -(-columns // self.lanes) != buffer.rows:
            message = (
                f"input {printable(buffer.name)} has the shape {list(array.shape)}, which fills {rows * -(-columns // self.lanes):,} rows"
            )
            mend = f"a row of memory has {self.lanes} lanes: an array fills its rows again for each further {self.lanes} columns"
            return Diagnostic("E0451", f"{message}; its buffer has {buffer.rows:,}", help=(mend,))
        if matrix.dtype == np.uint32:
            return np.ascontiguousarray(matrix).view(np.float32)
        values = matrix.astype(np.float32)
        return round_to_bfloat16(values) if buffer.half else values
