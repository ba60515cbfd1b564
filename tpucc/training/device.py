"""A step or a model executed by the machine's instructions: a program of `tpucc.training.lowering`, run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.diagnostics import InputError
from tpucc.numerics import AnyArray, Float32
from tpucc.sim.timing import time_program
from tpucc.training.in_rows import put_rows, rows_of
from tpucc.training.lowering.lower import Lowered, input_buffer, result_buffer, state_buffer
from tpucc.training.lowering.values import matrix_of
from tpucc.training.repeated import Repeated, run_together


class Device:
    """Cores that run one program again and again, each time in as many `cycles`, with the same states and inputs of their own.

    Lanes of HBM past the last column of a value hold anything. `padding` is what they have at first, and all of vector memory.
    """

    def __init__(self, lowered: Lowered, padding: float = 0.0) -> None:
        self.lowered = lowered
        self._cores = [Repeated(lowered.program) for _ in range(lowered.program.cores)]
        for core in self._cores if padding else ():  # memories begin with zeros, and take no room until something else is written
            for rows in core.memories.rows.values():
                rows[...] = padding

    @property
    def cycles(self) -> int:
        return time_program(self.lowered.program).makespan

    @property
    def seconds(self) -> float:
        """The time of a run on the machine."""
        return self.cycles / self.lowered.program.target.clock_hz

    def run(self, given: Mapping[str, AnyArray], parts: Sequence[Mapping[str, AnyArray]]) -> dict[str, AnyArray]:
        """The results and the new states, by the names of their nodes: what `Plan.run` gives of these outputs, with the same bits.

        Of N cores, core c computes the parts c, c + N, …: what it adds up of them, the tree over all parts adds first. Raises
        `InputError` E0454, with the node's place, for a label or an index that doesn't exist.
        """
        for number, core in enumerate(self._cores):
            for name, shape in self.lowered.states.items():
                self._put(core, state_buffer(name), given[name], matrix_of(shape))
            self._put_inputs(core, parts[number :: len(self._cores)])
        run_together(self._cores)
        values = {node: self._taken(result_buffer(node), shape) for node, shape in self.lowered.results.items()}
        moved = self.lowered.moved.items()
        return values | {node: self._taken(state_buffer(name), self.lowered.states[name]) for name, node in moved}

    def _put_inputs(self, core: Repeated, parts: Sequence[Mapping[str, AnyArray]]) -> None:
        for part, inputs in enumerate(parts):
            for name, shape in self.lowered.inputs.items():
                array, buffer = inputs[name], input_buffer(name, part, len(parts))
                self._require_numbers(buffer, array)
                held = array.astype(np.uint32).view(np.float32) if buffer in self.lowered.words else array
                self._put(core, buffer, held, matrix_of(shape) if array.dtype == np.float32 else (array.size, 1))

    def _require_numbers(self, buffer: str, array: AnyArray) -> None:
        for numbers in self.lowered.numbers:
            try:
                if numbers.buffer == buffer:
                    numbers.require(array.reshape(-1)[numbers.places])
            except InputError as error:
                raise error.at(numbers.node.origin.trail()) from None

    def _put(self, core: Repeated, name: str, array: AnyArray, size: tuple[int, int]) -> None:
        """Puts a value into its rows of a core's HBM."""
        put_rows(self._buffer(core, name), array.reshape(size))

    def _taken(self, name: str, shape: tuple[int, ...]) -> Float32:
        """A value from its rows of the first core's HBM, as all cores have it: a new array."""
        return rows_of(self._buffer(self._cores[0], name), *matrix_of(shape)).reshape(shape)

    def _buffer(self, core: Repeated, name: str) -> Float32:
        rows: Float32 = core.memories.buffers[self.lowered.rows(name)]  # type: ignore[assignment]
        return rows
