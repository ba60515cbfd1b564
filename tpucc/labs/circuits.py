"""What labs of hardware do alike: a submission's circuit as gates, driven cycle by cycle, and a chip with it beside the simulator.

A circuit is asked for in the submission's process, and comes back as a list of gates (`tpucc.rtl.netlist`). PyRTL is imported where it is
needed: `tpucc lab list` works without.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from tpucc.diagnostics import counted
from tpucc.explain.tables import table
from tpucc.labs.lab import ASKED, Outcome, Submission, Wrong
from tpucc.plugins.failures import Failed
from tpucc.sim.interpret import Interpreter

if TYPE_CHECKING:
    from pyrtl import WireVector

    from tpucc.rtl.chip import Chip

LINES = 8
"""Cycles of a drawing, the last one the one that differs."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """The gates that a function of a submission has made, which nobody has looked at. `bits` are those of its outputs, and `returns` says
    what it should return."""

    function: str
    gates: Mapping[str, Any]
    bits: Mapping[str, int]
    returns: str
    registers: bool = True
    """Whether it may have any."""

    def placed(self, given: Mapping[str, WireVector]) -> list[WireVector]:
        """The circuit in the present block, with these inputs: its outputs. Raises `Failed` for what is no circuit."""
        from tpucc.rtl.netlist import placed

        with _failing(self.function):
            found = placed(self.gates, given, f"{self.function}_")
            if found.keys() != self.bits.keys():
                raise ValueError(f"returns {_in_words(list(found))}, and should return {self.returns}")
            if not self.registers and any(gate[0] == "r" for gate in self.gates["gates"]):
                raise ValueError("makes a register: a lane computes in one cycle")
            for name, bits in self.bits.items():
                if len(found[name]) != bits:
                    raise ValueError(f"{name or 'the result'} has {len(found[name])} bits, and should have {bits}")
        return [found[name] for name in self.bits]


def _in_words(names: Sequence[str]) -> str:
    """What a function has returned, by the names of its outputs."""
    if names in ([], [""]):
        return "one wire" if names else "no wires"
    return f"a list of {counted(len(names), 'wire')}" if all(map(str.isdecimal, names)) else f"the wires {', '.join(names)[:100]}"


def asked(
    submission: Submission, function: str, arguments: Sequence[Any], bits: Mapping[str, int], returns: str, *, registers: bool = True
) -> Circuit:
    """What a function of the submission makes of arguments with a `Port` in the place of each wire. Raises `Failed`."""
    try:
        gates = submission.call("tpucc.rtl.netlist:netlist", function, arguments)
    finally:
        if (noted := ASKED.get()) is not None:
            noted.call = function, tuple(each for each in arguments if isinstance(each, int))  # the others are wires
    if not isinstance(gates, dict):
        raise Failed("result", f"{function} gave no circuit")
    return Circuit(function, gates, bits, returns, registers)


@contextmanager
def _failing(function: str) -> Iterator[None]:
    """Raises `Failed` where the body meets values that are no circuit."""
    from pyrtl import PyrtlError, PyrtlInternalError

    try:
        with redirect_stdout(StringIO()):  # PyRTL prints the loops that it finds
            yield
    except (PyrtlError, PyrtlInternalError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise Failed("wrong", f"{function}: {str(error)[:300]}") from None


class Driven:
    """A circuit in simulation. Inputs that a cycle doesn't name are 0; `ports` are their bits."""

    def __init__(self, circuit: Circuit, ports: Mapping[str, int]) -> None:
        import pyrtl
        from pyrtl import Block, FastSimulation, Input

        from tpucc.rtl.ports import outputs

        self._ports, self._outputs = ports, dict(zip(map("out_{}".format, range(len(circuit.bits))), circuit.bits, strict=True))
        block = Block()
        with pyrtl.set_working_block(block, no_sanity_check=True):
            made = circuit.placed({name: Input(bits, f"in_{name}") for name, bits in ports.items()})
            outputs(**dict(zip(self._outputs, made, strict=True)))
        with _failing(circuit.function):
            block.sanity_check()
            self._simulation = FastSimulation(tracer=None, block=block)
        self._present = {wire.name for wire in block.wirevector_subset(Input)}

    def step(self, **given: int) -> dict[str, int]:
        """The outputs in one cycle, as bits; negative numbers go in as their bits."""
        whole = {f"in_{name}": given.get(name, 0) & ((1 << bits) - 1) for name, bits in self._ports.items()}
        self._simulation.step({name: value for name, value in whole.items() if name in self._present})
        return {name: self._simulation.inspect(wire) for wire, name in self._outputs.items()}


def signed(value: int, bits: int) -> int:
    """The integer of these bits."""
    return value - (1 << bits) if value >> (bits - 1) else value


def drawn(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The last cycles as a table of characters."""
    return table(names, [tuple(map(str, row)) for row in rows[-LINES:]], left=0, width=sys.maxsize)


def on_chip(made: Chip, begun: Interpreter, what: str, text: str) -> Outcome:
    """The program of an interpreter that has begun, on a chip with a submission's unit and by the interpreter. `text` is the program's
    source. Raises `Wrong` with the first signal that differs."""
    from tpucc.cosimulation.compare import cosimulate

    with _failing("the chip"):
        both = cosimulate(begun, made)
    if both.equal:
        return Outcome(1, f"{what}: {both.rows} rows as the simulator writes them, in {both.run.cycles} cycles as it counts")
    first, *others = both.differences
    more = "; ".join(f"{each.unit}.{each.signal} in cycle {each.cycle}" for each in others[:3])
    message = f"{what}: {first}" + (f". Later differ {more}" if more else "")
    raise Wrong(message, given=text, expected=first.simulator, found=first.hardware)
