"""The rules V0106 to V0108, of ports: a tensor that crosses between host and device lies in host buffers of its own, which one host step at
most fills.

A port has `splits`, parts of so many rows each, and of each part one host buffer a block of `mxu` columns, in this order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial

from tpucc.diagnostics import printable
from tpucc.isa.program import Port, Program
from tpucc.isa.verify.rules import Context, Rule, Violation, for_each, named_twice

RULES = (
    Rule("V0106", "ports", "A port's parts and column blocks are host buffers of its kind with its rows; each belongs to one port."),
    Rule("V0107", "port scales", "A port's scale is finite and positive, its zero point one of its format's integers."),
    Rule(
        "V0108",
        "host steps",
        "A host step reads outputs of the program and fills inputs of it, each named once; an input is filled by one step at most. It "
        "computes from 0 to 2^48 elements.",
    ),
)
MOST_ELEMENTS = 2**48
"""No model computes as many; a file that was damaged or written by hand may say so."""


def check(context: Context) -> Iterator[Violation]:
    """The violations of the rules for ports."""
    program = context.program
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        yield from named_twice("V0106", f"{kind} ports", kind, ports)
        yield from for_each("V0106", kind, f"{kind} port", ports, partial(_port, program, kind))
        yield from for_each("V0107", kind, f"{kind} port", ports, _scale)
        owners = Counter(block for port in ports for block in port.blocks)
        for index, buffer in enumerate(program.host):
            if buffer.kind == kind and owners[index] != 1 and program.machine.ports:
                message = f"the {kind} host buffer {printable(buffer.name)} belongs to {owners[index]} ports instead of one"
                yield Violation("V0106", message, about=("host", buffer.name))
    yield from _steps(program)


def _port(program: Program, kind: str, port: Port) -> Iterator[str]:
    """The faults of a port's format, parts and host buffers, as the words after `input port NAME`."""
    if port.format not in [row.format for row in program.machine.formats]:
        yield f"has values of {port.format.name}, and {program.machine.name} has none"
        return
    if not port.shape or min(port.shape) <= 0 or any(rows <= 0 for rows in port.splits) or sum(port.splits) != math.prod(port.shape[:-1]):
        yield f"has the shape {list(port.shape)}, but parts of {list(port.splits)} rows"
        return
    columns = -(-port.shape[-1] // program.target.mxu)
    if len(port.blocks) != len(port.splits) * columns:
        yield f"needs {len(port.splits)}×{columns} host buffers and has {len(port.blocks):,}"
        return
    for position, index in enumerate(port.blocks):
        rows = port.splits[position // columns] * port.format.bytes_per_value
        if not 0 <= index < len(program.host):
            yield f"lies in host buffer {index}; there are {len(program.host):,}"
            continue
        buffer = program.host[index]
        if (buffer.kind, buffer.rows) != (kind, rows):
            yield f"needs {rows:,} {kind} rows in the host buffer {printable(buffer.name)}, which has {buffer.rows:,} {buffer.kind} rows"


def _scale(port: Port) -> Iterator[str]:
    """The fault of a port's scale and zero point, in the same words."""
    if not (math.isfinite(port.scale) and port.scale > 0 and port.zero_point in port.format.zero_points):
        yield f"has scale {port.scale!r} and zero point {port.zero_point}"


def _steps(program: Program) -> Iterator[Violation]:
    inputs, outputs = ({port.name for port in ports} for ports in (program.inputs, program.outputs))
    filled = Counter(name for step in program.host_steps for name in step.writes)
    for number, step in enumerate(program.host_steps):
        about = ("host_step", str(number))
        for name, count in Counter(step.reads).items():
            if name not in outputs or count > 1:
                fault = "twice" if name in outputs else "which isn't an output of the program"
                yield Violation("V0108", f"host step {number} reads {printable(name)}, {fault}", about=about)
        for name in dict.fromkeys(step.writes):
            if name not in inputs or filled[name] > 1:
                fault = "which is filled more than once" if name in inputs else "which isn't an input of the program"
                yield Violation("V0108", f"host step {number} fills {printable(name)}, {fault}", about=about)
        if not 0 <= step.elements <= MOST_ELEMENTS:
            yield Violation("V0108", f"host step {number} computes {step.elements:,} elements, not 0 to 2^48", about=about)
