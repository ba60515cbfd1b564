"""The host's part of a program as boxes of its dataflow: what it packs and takes, and the steps that it computes between instructions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Origin, counted
from tpucc.explain.host_numbers import operators_in
from tpucc.explain.names import first_names
from tpucc.ir import Graph
from tpucc.isa.effects import Effects
from tpucc.isa.program import Port, Program
from tpucc.layers.partition import computing
from tpucc.numerics import Int64
from tpucc.see.diagrams.diagram import Box
from tpucc.see.palette import Kind


@dataclass(frozen=True)
class HostPart:
    """The host's part of `program`. `graphs` are the prologue, the host steps and the epilogue, or none where they aren't known.

    `ports` are those of the prologue and those that the epilogue takes, which have boxes of their own. `transfers` are the instructions
    that bring or take rows of a port, by its name; an input and an output of one name have them apart.
    """

    program: Program
    graphs: Sequence[Graph]
    transfers: Mapping[tuple[str, str], list[int]]

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The input ports that are filled before the program starts."""
        return self.program.prologue_ports

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The output ports that the epilogue takes; where its graph isn't known, those that no host step reads."""
        if self.graphs:
            taken = {node.name for node in self.graphs[-1].inputs}
            return tuple(port for port in self.program.outputs if port.name in taken)
        read = {name for step in self.program.host_steps for name in step.reads}
        return tuple(port for port in self.program.outputs if port.name not in read)

    def port_box(self, kind: str, port: Port) -> Box:
        """A port of this kind ("input" or "output"), with the transfers of its rows."""
        details = (port.name, f"{port.format.name}[{', '.join(map(str, port.shape))}]")
        own, title = tuple(self.transfers.get((kind, port.name), ())), f"host {kind}"
        return Box(title, Kind.HOST, details, origins=self.origins(kind, port.name), signature=title, instructions=own)

    def origins(self, kind: str, name: str) -> tuple[Origin, ...]:
        """Where a port of this kind comes from: an input from the node of the host that makes it, an output from its layer."""
        if kind == "output":
            return tuple(dict.fromkeys(node.origin for graph in self.graphs for node in graph.inputs if node.name == name))
        made = ((graph, output) for graph in self.graphs for output in graph.outputs)
        return tuple(dict.fromkeys(graph[output.node].origin for graph, output in made if output.name == name))

    def step_box(self, number: int, instructions: Sequence[int]) -> Box:
        """A host step: its operators, how many values it computes, and the instructions that the box stands for."""
        step = self.program.host_steps[number]
        nodes = computing(self.graphs[number + 1]) if self.graphs else []
        names = operators_in(self.graphs[number + 1]) if self.graphs else []
        details = [first_names(names) or f"makes {first_names(step.writes)}", counted(step.elements, "value")]
        details += [f"instruction {instructions[0]:,}"] if len(instructions) == 1 else []
        origins = tuple(dict.fromkeys(node.origin for node in nodes))
        signature, title = f"host step {' '.join(names)} {step.elements}", f"host step {number:,}"
        return Box(title, Kind.HOST, tuple(details), origins=origins, signature=signature, instructions=tuple(instructions))

    def instructions_of(self, number: int, interrupt: int) -> list[int]:
        """The interrupt of a host step, and the transfers that bring what it reads and take what it fills."""
        step = self.program.host_steps[number]
        ports = [*(("output", name) for name in step.reads), *(("input", name) for name in step.writes)]
        return sorted({interrupt, *(index for port in ports for index in self.transfers.get(port, ()))})


def host_part(program: Program, touched: Effects, graphs: Sequence[Graph]) -> HostPart:
    """The host's part of a program, with the transfers of each port. Linear in the rows that cross the link."""
    owners = [("input", port) for port in program.inputs] + [("output", port) for port in program.outputs]
    owner = np.full(program.host_rows + 1, -1, np.int64)
    for number, (_, port) in enumerate(owners):
        owner[port_rows(program, port)] = number
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index in np.flatnonzero(touched.host_reads | touched.host_writes).tolist():
        own = owner[int(touched.host.low[index]) : int(touched.host.high[index])]
        for number in np.unique(own).tolist():
            kind, port = owners[number]
            if number >= 0 and (kind == "input") is bool(touched.host_reads[index]):
                found[kind, port.name].append(index)
    return HostPart(program, graphs, found)


def port_rows(program: Program, port: Port) -> Int64:
    """The host rows of a port, in the order of its blocks."""
    blocks = [program.host[block] for block in port.blocks]
    return np.concatenate([np.arange(buffer.start, buffer.end, dtype=np.int64) for buffer in blocks] or [np.empty(0, np.int64)])
