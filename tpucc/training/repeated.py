"""A program that is executed again and again on the same memories: what is the same each time is prepared once.

Each instruction becomes a call. Rows that a slice names are views of the memories, made once; only rows that repeat are gathered each time.
It is for machines whose instructions move and compute rows, and push entries of a queue: without a register, and without a host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.sim.memories import Memories, applied

Call = Callable[[], None]


class Repeated:
    """A program with its memories, which stay as a run leaves them. The program must have passed the verifier.

    Raises `TypeError` for a program of a machine with a register or ports.
    """

    def __init__(self, program: Program) -> None:
        machine = program.machine
        if machine.register is not None or machine.ports:
            raise TypeError(f"programs of {machine.name} can't be prepared")
        self.program, self.memories = program, Memories.of(program)
        self._queue: deque[Any] = deque()
        self._entry: Any = None
        instructions = (machine.read(record) for record in program.instructions)
        self._calls = [call for instruction in instructions for call in self._calls_of(instruction)]

    def run(self) -> None:
        """Executes all instructions: the bits are those of `tpucc.sim.interpret`."""
        for call in self._calls:
            call()

    def _calls_of(self, instruction: DecodedInstruction) -> list[Call]:
        """What an instruction does: it takes an entry of the queue, and computes rows or an entry."""
        machine, queue = self.program.machine, self.program.machine.queue
        action = applied(self.program, instruction, None, -1)
        if action is None:
            return []
        named = [(machine.rows_at(place), rows) for place, rows in action.reads]
        held = [
            (of.operand, self.memories[of.memory][:, :1] if of.splat & int(action.flags) else self.memories[of.memory], rows)
            for of, rows in named
        ]
        views = {name: memory[rows] for name, memory, rows in held if isinstance(rows, slice)}
        gathered = [(name, memory, rows) for name, memory, rows in held if not isinstance(rows, slice)]
        make, flags, compute, constants = machine.operands, action.flags, action.compute, action.constants | views
        uses = queue.operand if queue is not None and instruction.reads & queue.used else ""
        prepared = None if uses or gathered else make(flags, **constants)

        def computed() -> Any:
            if prepared is not None:
                return compute(prepared)
            entry = {uses: self._entry} if uses else {}
            return compute(make(flags, **(constants | entry), **{name: memory[rows] for name, memory, rows in gathered}))

        calls: list[Call] = [self._take] if queue is not None and instruction.reads & queue.place else []
        if queue is not None and instruction.writes & queue.place:
            return [*calls, lambda: self._queue.append(computed())]
        place, rows = action.writes
        return [*calls, _writing(self.memories[machine.rows_at(place).memory], rows, computed)]

    def _take(self) -> None:
        self._entry = self._queue.popleft()


def _writing(memory: Any, rows: Any, computed: Callable[[], Any]) -> Call:
    """The call that writes what is computed to rows of a memory."""
    if not isinstance(rows, slice):
        return lambda: memory.__setitem__(rows, computed())
    view = memory[rows]
    return lambda: view.__setitem__(..., computed())
