"""A compiled model that runs: the host's prologue, then the simulated machine with the host's steps in between, then the host's epilogue.

Each core of a program for several cores runs all three on its part of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, ProgramError, UsageError
from tpucc.files import MODELS, read_file
from tpucc.ir import Graph, TensorType
from tpucc.isa.container import decode
from tpucc.isa.program import Port, Program
from tpucc.isa.verify import check
from tpucc.machines import DEFAULT
from tpucc.numerics import AnyArray, DeviceInts
from tpucc.ops.evaluate import evaluate, require_computable
from tpucc.runtime.batches import Arrays, Batches, BatchObserver, joined, parts, whole_type
from tpucc.runtime.connections import HostParts, host_parts
from tpucc.runtime.inputs import Given, accepted, by_name
from tpucc.sim.fast.backends import Backend
from tpucc.sim.fast.execute import Simulator
from tpucc.sim.interpret import Interpreter
from tpucc.sim.ports import Host
from tpucc.sim.timing import Timeline, time_program


@dataclass(frozen=True, eq=False)
class DevicePart:
    """One core's part of one batch: its inputs, by name, and the integers that the device returned, by the output port's name, which is
    the name of the layer that computes them. Of a last batch that is filled up, the rows that fill it are there, too."""

    inputs: Arrays
    integers: Arrays


@dataclass(frozen=True)
class Runtime:
    """A program that the verifier has accepted, ready to run. Immutable; running it twice gives the same bits twice."""

    program: Program
    batch_begins: BatchObserver = field(default=lambda done, total: None, compare=False, repr=False)
    """Called before each batch with the number of batches that are done and the number of all. Not called where the inputs have
    exactly the model's shapes; for fewer rows than a batch it is, with 0 and 1."""
    backend: Backend = "auto"
    """The backend for large products: see `tpucc.sim.fast.backends`. The bits are the same."""

    def __post_init__(self) -> None:
        """Raises `UsageError` E0951 for a program of another machine than `DEFAULT`, the only one that the simulator here executes."""
        if self.program.machine is not DEFAULT:
            mend = "tpucc run, profile, debug, disasm and viz --kind timeline take it"
            message = f"{self.program.name} is a program of the machine {self.program.machine.name}"
            raise UsageError(Diagnostic("E0951", f"{message}, and this is about programs for TPU v1", help=(mend,)))

    @cached_property
    def host(self) -> HostParts:
        """The host's graphs, verified. Raises `ProgramError` where a graph is malformed, and E0708 where it doesn't fit the others or the
        device, or where there is none (see `has_host_part`): so does everything that has to know them, `run` and `inputs` too."""
        if not self.has_host_part:
            mend = "tpucc profile says how long it takes; a program that tpucc compile makes has this part"
            message = f"{self.program.name} has no part for the host, which makes integers of the inputs"
            raise ProgramError(Diagnostic("E0708", message, help=(mend,)))
        return host_parts(self.program)

    @property
    def has_host_part(self) -> bool:
        """Whether the program has graphs of the host. One that was typed as a listing may have none: it can be timed, but not run here."""
        return bool(self.program.prologue or self.program.epilogue or self.program.host_steps)

    @cached_property
    def simulator(self) -> Simulator:
        return Simulator(self.program, self.backend)

    @cached_property
    def timeline(self) -> Timeline:
        """When every instruction starts and ends, in cycles."""
        return time_program(self.program)

    @property
    def inputs(self) -> dict[str, TensorType]:
        """The types of the model's inputs by name, for all cores together."""
        return {node.name: whole_type(node.name, node.type, self.program.cores) for node in self.host.prologue.inputs}

    @property
    def outputs(self) -> dict[str, TensorType]:
        """The types of the model's outputs by name, for all cores together."""
        cores = self.program.cores
        return {output.name: whole_type(output.name, self.host.epilogue[output.node].type, cores) for output in self.host.epilogue.outputs}

    @property
    def integers(self) -> str:
        """The format of the device's values: "int8" or "int16"."""
        return str(self.program.format.numpy)

    @cached_property
    def batches(self) -> Batches:
        """The batches that inputs of any number of rows are divided into."""
        return Batches.of(self.inputs, self.outputs.values())

    @property
    def batch(self) -> int | None:
        """The leading size that all inputs and outputs share; None where they share none."""
        return self.batches.size

    def run(self, inputs: Given | npt.ArrayLike | None = None, /, **named: npt.ArrayLike) -> dict[str, AnyArray]:
        """Runs the model: an array for each input, by name, or the array itself for a model of one input; returns an array for each output.

        Numbers of another type are converted. Where every input and output has the model's batch as its leading size, inputs of any other
        number of rows run batch after batch, and the last batch is filled up with its own last row. Raises `InputError` where names,
        shapes or values don't fit, and `UsageError` E0529 for an input that is given twice, in `inputs` and by its keyword.
        """
        return self.in_batches(self._run_part, self.accepted(by_name(self.inputs, inputs, named)))

    def run_with_integers(self, inputs: Given) -> tuple[dict[str, AnyArray], list[DevicePart]]:
        """The outputs, as of `run`, and what each core got and returned: batch by batch, core by core."""
        seen: list[DevicePart] = []

        def run_part(part: Arrays) -> dict[str, AnyArray]:
            values = self._prologue(part)
            seen.append(DevicePart(part, self._device(values)))
            return _evaluated(self.host.epilogue, {**values, **seen[-1].integers})

        return self.in_batches(run_part, self.accepted(inputs)), seen

    def parts(self, inputs: Arrays) -> list[Arrays]:
        """The inputs of each core, from those of the model's own batch."""
        return parts(inputs, self.inputs, self.program.cores)

    def ports(self, inputs: Arrays, *, plain: bool = False) -> dict[str, AnyArray]:
        """The arrays of the output ports: the integers that one core returns for its part of the inputs, by the layer's name.

        With `plain`, the interpreter executes instruction after instruction.
        """
        return self._device(self._prologue(inputs), plain)

    def begun(self, inputs: Arrays) -> Interpreter:
        """The plain interpreter before the first instruction of one core, for its part of the inputs."""
        values, interpreter = self._prologue(inputs), Interpreter(self.program)
        interpreter.begin(_shaped(self.program.prologue_ports, values), self._host_of(values))
        return interpreter

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a `.tpub` file.

        Raises `UsageError` when it can't be read, and E0951 when it is for another machine; `ProgramError` when it is malformed or fails a
        verifier, the machine's or that of operators; and `LimitError` for values of the host that no memory should be filled with. A
        program without any host's part, as of a listing that was typed, is loaded, for it can be timed.
        """
        program = decode(read_file(Path(path), suffixes=MODELS), str(path))
        check(program)
        runtime = cls(program)
        if runtime.has_host_part:
            require_computable(*(node for graph in runtime.host.all for node in graph))
            _ = runtime.outputs, runtime.inputs  # raises E0708 for a scalar, which several cores can't divide
        return runtime

    def _run_part(self, inputs: Arrays) -> dict[str, AnyArray]:
        values = self._prologue(inputs)
        values.update(self._device(values))
        return _evaluated(self.host.epilogue, values)

    def _prologue(self, inputs: Arrays) -> dict[str, AnyArray]:
        return _by_output(self.host.prologue, evaluate(self.host.prologue, inputs))

    def _device(self, values: dict[str, AnyArray], plain: bool = False) -> dict[str, AnyArray]:
        """The arrays of the output ports. `values` has the host's values so far; the results of its steps are added to `values`."""
        feeds, host = _shaped(self.program.prologue_ports, values), self._host_of(values)
        return Interpreter(self.program).run(feeds, host=host) if plain else self.simulator.run(feeds, host)

    def _host_of(self, values: dict[str, AnyArray]) -> Host:
        """What the machine calls at each of its interrupts: it evaluates the host's step of this number, adds its results to `values`, and
        gives the arrays of the ports that the device reads next."""

        def host(number: int, ports: Mapping[str, DeviceInts]) -> dict[str, AnyArray]:
            values.update(_evaluated(self.host.steps[number], {**values, **ports}))
            return _shaped(self.program.step_ports[number][1], values)

        return host

    def accepted(self, given: Mapping[str, npt.ArrayLike]) -> dict[str, AnyArray]:
        """The inputs as arrays of the model's types; values of another type are converted where nothing but precision is lost."""
        return accepted(self.batches, given)

    def in_batches(self, run_part: Callable[[Arrays], dict[str, AnyArray]], arrays: dict[str, AnyArray]) -> dict[str, AnyArray]:
        """The results for all rows of `arrays`: batch after batch, each divided among the cores. `run_part` gets one core's part."""

        def run(batch: Arrays) -> dict[str, AnyArray]:
            return joined([run_part(part) for part in self.parts(batch)])

        return self.batches.run(run, arrays, self.batch_begins)


def _evaluated(graph: Graph, values: Arrays) -> dict[str, AnyArray]:
    """The outputs of a graph by name. `values` has the graph's inputs; a scalar that crossed a port has the shape [1] there."""
    return _by_output(graph, evaluate(graph, {node.name: values[node.name].reshape(node.type.shape) for node in graph.inputs}))


def _by_output(graph: Graph, results: Arrays) -> dict[str, AnyArray]:
    """Results by the names of the outputs, which the other parts of a program read."""
    return {output.name: results[output.node] for output in graph.outputs}


def _shaped(ports: Sequence[Port], values: Arrays) -> dict[str, AnyArray]:
    """The ports' arrays among `values`."""
    return {port.name: values[port.name].reshape(port.shape) for port in ports}
