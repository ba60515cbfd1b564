"""Buffers: where each column block of each part of each tensor lies, in the unified buffer's virtual rows and in host memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tpucc.ir import TensorType
from tpucc.isa.program import HostBuffer, Port
from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import Split
from tpucc.lowering.tensors import Tensor
from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.numerics import Int8


class BufferLayout:
    """The buffers of a plan whose batch is split.

    A tensor with rows for each item has one buffer for each part and column block. Any other tensor has one buffer for each column block,
    which belongs to part 0. The tensors `joined`, which steps for the whole batch read or compute, are stored in this way too.
    """

    def __init__(self, plan: Plan, split: Split) -> None:
        self.plan = plan
        self.part_sizes = split.sizes
        self.joined = plan.joined(split)
        self.buffers: list[VirtualBuffer] = []
        self.host: list[HostBuffer] = []
        self.exits: dict[int, list[int]] = {}
        """For each buffer of an output the first rows of the host buffers that it is written to."""
        self.together: dict[int, range] = {}
        """For each buffer that host memory holds the buffers of the column blocks that one transfer reads together."""
        self._first: dict[Tensor, int] = {}
        self._constants: list[Tensor] = []
        self._host_rows = 0
        self.homes = {tensor: self._add_host("input", tensor.name, tensor) for tensor in plan.inputs}
        """The host buffers of each input."""
        self.inputs = tuple(self._port(tensor.name, tensor.type, tensor, home) for tensor, home in self.homes.items())
        for tensor, owner in plan.owners.items():
            home = self.homes[tensor] if tensor.is_input else self._add_constant(tensor)
            self._add_buffers(tensor, plan.layer_of(owner), home)
        self.outputs = tuple(self._add_output(*output) for output in plan.outputs)

    def is_split(self, tensor: Tensor) -> bool:
        """Whether the tensor has its own buffers for each part of the batch."""
        return len(self.part_sizes) > 1 and self.plan.sharding.has_items(tensor) and tensor not in self.joined

    def parts(self, tensor: Tensor) -> tuple[int, ...]:
        """The tensor's rows in each of its parts."""
        return tuple(self.plan.sharding.rows(tensor, items) for items in self.part_sizes) if self.is_split(tensor) else (tensor.rows,)

    def column_blocks(self, tensor: Tensor, part: int) -> range:
        """The buffers of the tensor's column blocks in a part."""
        count = tensor.column_blocks(self.plan.target.mxu)
        start = self._first[tensor] + (part * count if self.is_split(tensor) else 0)
        return range(start, start + count)

    def constants(self) -> Int8:
        """The rows of the constant host buffers, one after the other: int8 [rows, mxu]."""
        homes = [home for home in self.host if home.kind == "constant"]
        rows = np.zeros((sum(home.rows for home in homes), self.plan.target.mxu), np.int8)
        start = 0
        for tensor in self._constants:
            for part in np.split(_values(tensor), np.cumsum(self.parts(tensor))[:-1]):
                start += _pack(part, rows[start:])
        return rows

    def _pieces(self, tensor: Tensor) -> Iterator[tuple[str, int]]:
        """The name and the rows of each buffer: `h.2` is column block 2, `h.2#1` is column block 2 of part 1. `#` stands in no name of a
        node."""
        for part, rows in enumerate(self.parts(tensor)):
            suffix = f"#{part}" if self.is_split(tensor) else ""
            for block in range(tensor.column_blocks(self.plan.target.mxu)):
                yield f"{tensor.name}.{block}{suffix}", rows * self.plan.format.bytes_per_value

    def _add_host(self, kind: str, name: str, tensor: Tensor) -> range:
        start = len(self.host)
        for piece, rows in self._pieces(tensor):
            self.host.append(HostBuffer(f"{kind}:{name}{piece[len(tensor.name) :]}", kind, self._host_rows, rows))
            self._host_rows += rows
        return range(start, len(self.host))

    def _add_constant(self, tensor: Tensor) -> range | None:
        if tensor.data is None:
            return None
        self._constants.append(tensor)
        return self._add_host("constant", tensor.name, tensor)

    def _add_buffers(self, tensor: Tensor, layer: int, home: Sequence[int] | None) -> None:
        self._first[tensor] = len(self.buffers)
        for index, (name, rows) in enumerate(self._pieces(tensor)):
            self.buffers.append(VirtualBuffer(name, rows, layer, -1 if home is None else home[index]))
        if home is not None:
            for part in range(len(self.parts(tensor))):
                self._join(self.column_blocks(tensor, part))

    def _join(self, blocks: range) -> None:
        """Joins the column blocks that one transfer reads: as many as it takes for their bytes to outweigh the latency."""
        count = max(1, -(-self.plan.target.half_rate_rows // self.buffers[blocks[0]].rows))
        for start in range(0, len(blocks), count):
            joined = blocks[start : start + count]
            self.together.update(dict.fromkeys(joined, joined))

    def _add_output(self, name: str, type_: TensorType, tensor: Tensor) -> Port:
        places = self._add_host("output", name, tensor)
        for offset, place in enumerate(places):
            self.exits.setdefault(self._first[tensor] + offset, []).append(self.host[place].start)
        return self._port(name, type_, tensor, places)

    def _port(self, name: str, type_: TensorType, tensor: Tensor, places: Iterable[int]) -> Port:
        quantisation = type_.quantisation
        scale, zero_point = (quantisation.scale, quantisation.zero_point) if quantisation else (1.0, 0)
        return Port(name, type_.shape or (1,), scale, zero_point, self.parts(tensor), tuple(places), self.plan.format)


def _values(tensor: Tensor) -> Int8:
    """A constant as bytes, the lowest byte of a value first: int8 [rows, columns, bytes of a value]."""
    assert tensor.data is not None
    values = tensor.data.reshape(tensor.rows, tensor.columns, 1)
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).view(np.int8)


def _pack(part: Int8, rows: Int8) -> int:
    """Writes the column blocks of a part of a constant [rows, columns, bytes] into the first of these rows [any, mxu], which are zeros: in
    each block a row for each byte of a value. Returns how many rows they take."""
    (count, columns, each), mxu = part.shape, rows.shape[1]
    start = 0
    for first in range(0, columns, mxu):
        lanes = part[:, first : first + mxu]
        block = rows[start : start + count * each].reshape(count, each, mxu)
        block[:, :, : lanes.shape[1]] = lanes.swapaxes(1, 2)
        start += len(block) * each
    return start
