"""The host's part of a program: its prologue, its steps and its epilogue, and the source that all of it comes from."""

from __future__ import annotations

from dataclasses import replace

from tpucc.diagnostics import Source
from tpucc.ir.graph import Graph
from tpucc.isa.program import HostWork, Program
from tpucc.layers.partition import partition


def with_host_part(program: Program, layers: Graph, source: Source, declared: Graph, cores: int = 1) -> Program:
    """The scheduled program with the host's part and the source.

    The prologue's inputs have the types that the source declares, in the sizes of one core's part: a range there is the user's, not one
    that was measured.
    """
    parts = partition(layers)
    types = {node.name: replace(node.type, shape=layers[node.name].type.shape) for node in declared.inputs}
    prologue = parts.prologue.with_nodes(replace(n, type=types[n.name]) if n.is_input else n for n in parts.prologue)
    return replace(
        program,
        name=layers.name,
        source=source.name,
        source_text=source.text,
        prologue=str(prologue),
        epilogue=str(parts.epilogue),
        host_steps=tuple(HostWork(str(step.graph), step.reads, step.writes, step.elements) for step in parts.middle),
        cores=cores,
    )
