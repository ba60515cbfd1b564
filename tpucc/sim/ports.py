"""Tensors of a program's ports to rows of host memory, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.isa.program import HostBuffer, Port, Program
from tpucc.numerics import AnyArray, DeviceInts, Int8
from tpucc.sim.memories import halves, joined

Host = Callable[[int, Mapping[str, DeviceInts]], Mapping[str, DeviceInts]]
"""The host at an interrupt: a function from the number of the step and the arrays of the output ports that the step reads to the arrays of
the input ports that it fills. Each array has its port's integers and shape."""


def pack(port: Port, tensor: DeviceInts, buffers: Sequence[HostBuffer], host: Int8) -> None:
    """Writes `tensor` (the port's integers and shape) into its column blocks in `host` [rows, mxu].

    Lanes past the last column stay as they are.
    """
    matrix = tensor.reshape(_matrix_shape(port))
    for rows, columns, stretch in column_blocks(port, buffers, host.shape[1]):
        part, lines = matrix[rows, columns], host[stretch]
        if port.format.bytes_per_value > 1:
            lines[::2, : part.shape[1]], lines[1::2, : part.shape[1]] = halves(part)
        else:
            lines[:, : part.shape[1]] = part


def unpack(port: Port, buffers: Sequence[HostBuffer], host: Int8) -> DeviceInts:
    """The tensor [*port.shape] whose column blocks lie in `host`: a new array."""
    matrix = np.empty(_matrix_shape(port), port.format.numpy)
    for rows, columns, stretch in column_blocks(port, buffers, host.shape[1]):
        part = matrix[rows, columns]
        lines = host[stretch, : part.shape[1]]
        part[...] = joined(lines[::2], lines[1::2]) if port.format.bytes_per_value > 1 else lines
    return matrix.reshape(port.shape)


def fill(ports: Sequence[Port], tensors: Mapping[str, DeviceInts], program: Program, memory: Int8) -> None:
    """Packs a tensor for each port into host memory [rows, mxu]. Raises `InputError` E0480 when they don't fit the ports."""
    check_inputs(ports, tensors)
    for port in ports:
        pack(port, tensors[port.name], program.host, memory)


def interrupt(program: Program, step: int, memory: Int8, host: Host) -> None:
    """Runs a host step: calls `host` with the ports that the step reads from host memory, and packs the result into the ports that it
    fills.

    Raises `InputError` E0480 where the result doesn't fit the ports.
    """
    reads, writes = program.step_ports[step]
    fill(writes, host(step, {port.name: unpack(port, program.host, memory) for port in reads}), program, memory)


def no_host(step: int, values: Mapping[str, DeviceInts]) -> Mapping[str, DeviceInts]:
    """The host of a program that has no steps for it."""
    raise InputError(Diagnostic("E0480", f"the program stops for the host's step {step}, and there is no host"))


def check_inputs(ports: Sequence[Port], inputs: Mapping[str, AnyArray]) -> None:
    """Raises `InputError` E0480 unless there is exactly an array of the port's integers and shape for each port."""
    known = {port.name for port in ports}
    problems = [f"there is no input {name}" for name in inputs if name not in known]
    problems += [problem for port in ports for problem in _problems(port, inputs.get(port.name))]
    if problems:
        raise InputError([Diagnostic("E0480", problem) for problem in problems])


def _problems(port: Port, tensor: AnyArray | None) -> Iterator[str]:
    wanted = f"{port.format.numpy}{list(port.shape)}"
    if tensor is None:
        yield f"the input {port.name} is missing: expected {wanted}"
    elif tensor.dtype != port.format.numpy or tensor.shape != port.shape:
        yield f"the input {port.name} is {tensor.dtype}{list(tensor.shape)}, expected {wanted}"


def _matrix_shape(port: Port) -> tuple[int, int]:
    return prod(port.shape[:-1]), port.shape[-1] if port.shape else 1


def column_blocks(port: Port, buffers: Sequence[HostBuffer], mxu: int) -> Iterator[tuple[slice, slice, slice]]:
    """For each host buffer of the port, in order: the matrix's rows, its columns, and the rows of host memory."""
    _, width = _matrix_shape(port)
    blocks, first = iter(port.blocks), 0
    for rows in port.splits:
        for column in range(0, width, mxu):
            start = buffers[next(blocks)].start
            stretch = slice(start, start + rows * port.format.bytes_per_value)
            yield slice(first, first + rows), slice(column, min(column + mxu, width)), stretch
        first += rows
