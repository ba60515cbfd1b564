"""Tensors of a program's ports to rows of host memory, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.isa.program import HostBuffer, Port
from tpucc.numerics import AnyArray, Int8


def pack(port: Port, tensor: Int8, buffers: Sequence[HostBuffer], host: Int8) -> None:
    """Writes `tensor` (int8, `port.shape`) into its column blocks in `host` [rows, mxu]; lanes past the last column stay as they are."""
    matrix = tensor.reshape(_matrix_shape(port))
    for rows, columns, stretch in _blocks(port, buffers, host.shape[1]):
        part = matrix[rows, columns]
        host[stretch, : part.shape[1]] = part


def unpack(port: Port, buffers: Sequence[HostBuffer], host: Int8) -> Int8:
    """The tensor [*port.shape] whose column blocks lie in `host`: a new array."""
    matrix = np.empty(_matrix_shape(port), np.int8)
    for rows, columns, stretch in _blocks(port, buffers, host.shape[1]):
        part = matrix[rows, columns]
        part[...] = host[stretch, : part.shape[1]]
    return matrix.reshape(port.shape)


def check_inputs(ports: Sequence[Port], inputs: Mapping[str, AnyArray]) -> None:
    """Raises `InputError` E0480 unless there is exactly an int8 array of the port's shape for each port."""
    problems = [f"there is no input {name}" for name in inputs if name not in {port.name for port in ports}]
    problems += [problem for port in ports for problem in _problems(port, inputs.get(port.name))]
    if problems:
        raise InputError([Diagnostic("E0480", problem) for problem in problems])


def _problems(port: Port, tensor: AnyArray | None) -> Iterator[str]:
    wanted = f"int8{list(port.shape)}"
    if tensor is None:
        yield f"the input {port.name} is missing: expected {wanted}"
    elif tensor.dtype != np.int8 or tensor.shape != port.shape:
        yield f"the input {port.name} is {tensor.dtype}{list(tensor.shape)}, expected {wanted}"


def _matrix_shape(port: Port) -> tuple[int, int]:
    return prod(port.shape[:-1]), port.shape[-1] if port.shape else 1


def _blocks(port: Port, buffers: Sequence[HostBuffer], mxu: int) -> Iterator[tuple[slice, slice, slice]]:
    """For each host buffer of the port, in order: the matrix's rows, its columns, and the rows of host memory."""
    width = -(-_matrix_shape(port)[1] // mxu)
    first = 0
    for part, rows in enumerate(port.splits):
        for block in range(width):
            buffer = buffers[port.blocks[part * width + block]]
            yield slice(first, first + rows), slice(block * mxu, (block + 1) * mxu), slice(buffer.start, buffer.start + rows)
        first += rows
