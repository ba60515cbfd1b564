"""Whether a program's parts fit each other: every value that one of them needs comes from one before it.

The verifier knows the device's part; the host's parts are graphs in text form, which are read only when a program is about to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from tpucc.diagnostics import Diagnostic, ProgramError, printable
from tpucc.ir.graph import Graph
from tpucc.isa.program import Port, Program

Kind = tuple[str, int]
"""Data type and number of elements: shapes may differ between a port and the host's view of it."""


def require_handover(program: Program, prologue: Graph, steps: Sequence[Graph], epilogue: Graph) -> None:
    """Raises `ProgramError` E0708 with every value that a part of the program needs and no part before it makes."""
    known = _results(prologue)
    found = list(_missing("the device", _kinds(program.prologue_ports), known))
    for number, (graph, (reads, writes)) in enumerate(zip(steps, program.step_ports, strict=True)):
        found += _missing(f"host step {number}", _inputs(graph), {**known, **_kinds(reads)})
        known |= _results(graph)
        found += _missing(f"the device after host step {number}", _kinds(writes), known)
    found += _missing("the epilogue", _inputs(epilogue), {**known, **_kinds(program.outputs)})
    if found:
        raise ProgramError([Diagnostic("E0708", text) for text in found])


def _missing(part: str, needed: Mapping[str, Kind], known: Mapping[str, Kind]) -> Iterator[str]:
    for name, kind in needed.items():
        if name not in known:
            yield f"{part} needs {printable(name)}, which nothing before it makes"
        elif known[name] != kind:
            yield f"{part} needs {printable(name)} as {_text(kind)}, and what comes before makes {_text(known[name])}"


def _results(graph: Graph) -> dict[str, Kind]:
    types = {output.node: graph[output.node].type for output in graph.outputs}
    return {name: (type_.dtype, type_.size) for name, type_ in types.items()}


def _inputs(graph: Graph) -> dict[str, Kind]:
    return {node.name: (node.type.dtype, node.type.size) for node in graph.inputs}


def _kinds(ports: Iterable[Port]) -> dict[str, Kind]:
    return {port.name: (port.format.name, prod(port.shape)) for port in ports}


def _text(kind: Kind) -> str:
    return f"{kind[1]:,} elements of {kind[0]}"
