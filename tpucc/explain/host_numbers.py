"""The numbers of `stats.json` about the host's part. They come from its graphs, which timing a program doesn't need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.isa.program import Program
from tpucc.layers.partition import computing, elements_in, elements_of
from tpucc.machines.v1 import Opcode
from tpucc.ops.evaluate import multiply_accumulates
from tpucc.runtime.connections import HostParts
from tpucc.sim.durations import Edges

NOTHING: Mapping[str, Any] = {"operators": [], "lines": [], "macs": 0, "elements": 0}
"""What the host computes where it has no part."""


def edges_of(host: HostParts | None) -> Edges:
    """The measure of the host's work before the device starts and after it has finished: none for a program without such parts."""
    return (0, 0) if host is None else (elements_in(host.prologue), elements_in(host.epilogue))


def with_host(stats: Mapping[str, Any], program: Program, host: HostParts | None) -> dict[str, Any]:
    """The machine's numbers with `host_macs` and `untimed`, and with the `operators` of each layer that is a step of the host.

    `host` is None for a program without a host's part: nothing is computed there.
    """
    if host is None:
        return {**stats, "host_macs": 0, "untimed": {"before": {**NOTHING}, "after": {**NOTHING}}}
    operators = {layer: operators_in(host.steps[step]) for layer, step in _steps(program)}
    layers = [{**layer, "operators": operators[index]} if index in operators else layer for index, layer in enumerate(stats["layers"])]
    macs = program.cores * sum(map(multiply_accumulates, host.all))
    untimed = {"before": _part(host.prologue, program.cores), "after": _part(host.epilogue, program.cores)}
    return {**stats, "layers": layers, "host_macs": macs, "untimed": untimed}


def working(graph: Graph) -> list[Node]:
    """The nodes of a part of the host's that compute and take time: a view of a value takes none."""
    return [node for node in computing(graph) if elements_of(graph, node)]


def operators_in(graph: Graph) -> list[str]:
    """The operators of the nodes that compute, each once, those first that take the most time."""
    elements: dict[str, int] = {}
    for node in computing(graph):
        elements[node.op] = elements.get(node.op, 0) + elements_of(graph, node)
    return sorted(elements, key=lambda name: -elements[name])


def _part(graph: Graph, cores: int) -> dict[str, Any]:
    """What the host computes in a part that the program's cycles leave out, and the measure of its time."""
    found = working(graph)
    operators = [name for name in operators_in(graph) if name in {node.op for node in found}]
    lines = sorted({node.origin.line for node in found} - {0})
    return {"operators": operators, "lines": lines, "macs": cores * multiply_accumulates(graph), "elements": cores * elements_in(graph)}


def _steps(program: Program) -> Iterator[tuple[int, int]]:
    """Each layer that stands for a step of the host, with the number of the step."""
    code = program.instructions
    for index in np.flatnonzero((code["opcode"] == Opcode.INTERRUPT_HOST) & (code["index"] < len(program.host_steps))).tolist():
        layer = int(program.layer_of[index])
        if program.layers[layer].is_host_step:
            yield layer, int(code["index"][index])
