"""Reads and verifies the host's parts of a program, which are graphs in text form.

The machine's verifier checks the device's part. Here every graph passes the operators' verifier, and every value that a part needs comes
from a part before it, with the same scale and zero point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tpucc.diagnostics import Diagnostic, ProgramError, printable
from tpucc.ir import Graph, Quantisation, TensorType
from tpucc.ir.parser import parse_graph
from tpucc.isa.program import Port, Program
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.ops.verify import verify_operators

Kind = tuple[str, int, Quantisation | None]
"""Data type, number of elements and meaning: shapes may differ between a port and the host's view of it."""


@dataclass(frozen=True)
class HostParts:
    """The host's graphs: before the device's first instruction, at each interrupt, and after the last."""

    prologue: Graph
    steps: tuple[Graph, ...]
    epilogue: Graph

    @property
    def all(self) -> tuple[Graph, ...]:
        return (self.prologue, *self.steps, self.epilogue)


def host_parts(program: Program) -> HostParts:
    """The host's graphs of a program. Raises `ProgramError`: for malformed texts and operators, and E0708 for parts that don't fit."""
    name = program.name
    texts = {"prologue": program.prologue, **{f"host step {k}": step.graph for k, step in enumerate(program.host_steps)}}
    texts["epilogue"] = program.epilogue
    graphs = [parse_graph(text, f"{name} {part}", ATTRIBUTES) for part, text in texts.items()]
    for graph in graphs:
        verify_operators(graph)
    parts = HostParts(graphs[0], tuple(graphs[1:-1]), graphs[-1])
    _require_values(program, parts)
    return parts


def _require_values(program: Program, parts: HostParts) -> None:
    """Raises `ProgramError` E0708 with every value that a part of the program needs and no part before it makes."""
    known = _results(parts.prologue)
    found = list(_missing("the device", _kinds(program.prologue_ports), known))
    for number, (graph, (reads, writes)) in enumerate(zip(parts.steps, program.step_ports, strict=True)):
        found += _missing(f"host step {number}", _inputs(graph), {**known, **_kinds(reads)})
        known |= _results(graph)
        found += _missing(f"the device after host step {number}", _kinds(writes), known)
    found += _missing("the epilogue", _inputs(parts.epilogue), {**known, **_kinds(program.outputs)})
    if found:
        raise ProgramError([Diagnostic("E0708", text) for text in found])


def _missing(part: str, needed: Mapping[str, Kind], known: Mapping[str, Kind]) -> Iterator[str]:
    for name, kind in needed.items():
        if name not in known:
            yield f"{part} needs {printable(name)}, which nothing before it makes"
        elif known[name] != kind:
            yield f"{part} needs {printable(name)} as {_text(kind)}, and the parts before it make {_text(known[name])}"


def _results(graph: Graph) -> dict[str, Kind]:
    """The results of a graph, by the outputs' names."""
    return {output.name: _kind(graph[output.node].type) for output in graph.outputs}


def _inputs(graph: Graph) -> dict[str, Kind]:
    return {node.name: _kind(node.type) for node in graph.inputs}


def _kind(type_: TensorType) -> Kind:
    """The kind of a value. The scale and zero point of a float value don't count: only those of integers say what the integers mean."""
    return type_.dtype, type_.size, None if type_.dtype == "f32" else type_.quantisation


def _kinds(ports: Iterable[Port]) -> dict[str, Kind]:
    return {port.name: (port.format.name, prod(port.shape), Quantisation(port.scale, port.zero_point)) for port in ports}


def _text(kind: Kind) -> str:
    dtype, size, quantisation = kind
    return f"{size:,} elements of {dtype}" + (f" with {quantisation}" if quantisation else "")
