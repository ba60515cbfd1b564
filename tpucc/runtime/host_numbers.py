"""The numbers of `stats.json` about the host's part. They come from its graphs, which timing a program doesn't need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tpucc.isa.instructions import Opcode
from tpucc.isa.program import Program
from tpucc.layers.partition import operators_in
from tpucc.ops.products import multiply_accumulates
from tpucc.runtime.connections import HostParts


def with_host(stats: Mapping[str, Any], program: Program, host: HostParts | None) -> dict[str, Any]:
    """The machine's numbers with `host_macs`, and with the `operators` of each layer that is a step of the host.

    `host` is None for a program without a host's part: nothing is computed there.
    """
    if host is None:
        return {**stats, "host_macs": 0}
    operators = {layer: operators_in(host.steps[step]) for layer, step in _steps(program)}
    layers = [{**layer, "operators": operators[index]} if index in operators else layer for index, layer in enumerate(stats["layers"])]
    return {**stats, "layers": layers, "host_macs": program.cores * sum(map(multiply_accumulates, host.all))}


def _steps(program: Program) -> Iterator[tuple[int, int]]:
    """Each layer that stands for a step of the host, with the number of the step."""
    code = program.instructions
    for index in np.flatnonzero((code["opcode"] == Opcode.INTERRUPT_HOST) & (code["index"] < len(program.host_steps))).tolist():
        layer = int(program.layer_of[index])
        if program.layers[layer].is_host_step:
            yield layer, int(code["index"][index])
