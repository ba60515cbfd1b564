"""A machine program: everything that executing or timing a model needs, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.ir.dtypes import DEFAULT_FORMAT, FORMATS, DeviceFormat
from tpucc.ir.types import as_float32
from tpucc.machine.instruction import RECORD, Records
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Contents
from tpucc.machines import DEFAULT
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.target import Target, machine_name


def array_types(machine: Machine, mxu: int, weights: str = DEFAULT_FORMAT.weights) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """For each array of a program its data type, and its shape without the first axis."""
    return {
        "instructions": (RECORD, ()),
        "tiles": (FORMATS[weights].numpy, (mxu, mxu)),
        "blocks": (np.dtype("V1") if machine.register is None else machine.register.dtype(mxu), ()),
        "constants": (np.dtype("i1") if (held := machine.holding(Contents.BUFFERS)) is None else held.dtype, (mxu,)),
    }


HOST_ROWS = 2**26
"""The most rows of host memory that are simulated."""
CORES = 2**12
"""The most cores that share a batch: twice those of the largest TPU v3 pod."""
KINDS = ("input", "output", "constant", "scratch", "state")


@dataclass(frozen=True, slots=True)
class HostBuffer:
    """A named stretch of host memory, or of the memory that holds a machine's buffers, in rows.

    `kind` is one of `KINDS`: "input" or "output" (a tensor of the model's interface with the device, packed by the host), "constant" (its
    rows are part of the program), "scratch" (where values spill) or "state" (there when a run starts, and replaced by the next one when it
    ends). The values of a `half` buffer are bfloat16, the upper halves of float32.
    """

    name: str
    kind: str
    start: int
    rows: int
    half: bool = False

    @property
    def end(self) -> int:
        return self.start + self.rows


def stretch_ends(host: Sequence[HostBuffer], rows: Int64) -> Int64:
    """The end of each host row's stretch: int64 [rows]. A stretch is neighbouring buffers of one kind, and of values of one size, without a
    gap between them. The end of a row in no buffer is the row itself."""
    order = sorted(host, key=lambda buffer: buffer.start)
    ends = [0] * len(order)
    for index in range(len(order) - 1, -1, -1):
        buffer, after = order[index], order[index + 1] if index + 1 < len(order) else None
        goes_on = after is not None and (after.kind, after.half, after.start) == (buffer.kind, buffer.half, buffer.end)
        ends[index] = ends[index + 1] if goes_on else buffer.end
    found = np.searchsorted(np.array([buffer.start for buffer in order], np.int64), rows, side="right") - 1
    return np.where(found >= 0, np.maximum(np.array([*ends, 0], np.int64)[found], rows), rows)


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that crosses between host and device: a matrix [rows, columns] of integers of `format`, packed into column blocks.

    It lies in the host buffers `blocks`: buffer (p, c), in row-major order of parts and column blocks, holds rows of part p and the
    columns c * mxu…; lanes past the last column hold anything. `splits` has the number of rows of each part. A row of values is
    `format.bytes_per_value` rows of the host buffer, the row of the lowest bytes first. `scale` is rounded to float32.
    """

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    splits: tuple[int, ...]
    blocks: tuple[int, ...]
    format: DeviceFormat = DEFAULT_FORMAT

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_float32(self.scale))

    @property
    def wide(self) -> bool:
        """Whether a value has more than one byte."""
        return self.format.bytes_per_value > 1


HOST = "host"
"""The kind of a step of the host among the layers."""
COPY_MARK = "#copy"
"""Stands between the name of a value and the number of its copy in the name of a layer that copies it."""


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """The facts about a layer that a program keeps: its name and kind, its origin, and its size."""

    name: str
    kind: str
    origin: Origin
    macs: int = 0
    """Multiply-accumulates of the model, padding not counted."""
    weights: tuple[int, int] = (0, 0)
    """K and N of the layer's weights; zeros when it has none."""
    tile_fills: tuple[tuple[int, int, int], ...] = ()
    """For each of its weight tiles: the index of the tile, the used rows, the used columns."""
    choice: str = ""
    """The blocking and its reason, in words."""
    group: tuple[int, int] = (0, 0)
    """The inputs of a group at one position of the kernel, and its outputs, for a convolution in groups; zeros for other layers."""

    def stack(self, mxu: int) -> tuple[int, tuple[int, ...]]:
        """The number of matrices that the layer multiplies by, whose weights lie one below the other in its tiles; and the matrix that each
        tile begins in, counted from 0."""
        depth, width = self.weights
        across = max(1, -(-width // mxu))
        *starts, whole = accumulate((rows for _, rows, _ in self.tile_fills[::across]), initial=0)
        in_groups = all(self.group) and width // self.group[1] > 1
        count = whole // depth if depth and whole and whole % depth == 0 and not in_groups else 1
        return count, tuple(start // depth if count > 1 else 0 for start in starts for _ in range(across))[: len(self.tile_fills)]

    @property
    def multiplies(self) -> bool:
        """Whether the matrix unit computes products for it."""
        return bool(self.tile_fills)

    @property
    def is_by_lanes(self) -> bool:
        """Whether the vector unit multiplies by its weights, lane by lane."""
        return self.weights[0] > 0 and not self.tile_fills

    @property
    def is_copy(self) -> bool:
        """Whether lowering added it to copy a value onto rows of its own; `#` stands in no name of a node."""
        return COPY_MARK in self.name

    @property
    def is_host_step(self) -> bool:
        """Whether it stands for a step of the host, which the device waits for."""
        return self.kind == HOST


def host_layer(step: int) -> LayerInfo:
    """The layer of a step of the host. Its origin is added with the host's part of the program."""
    return LayerInfo(f"host step {step}", HOST, Origin(made_by="lower"))


@dataclass(frozen=True, slots=True)
class HostWork:
    """The host's work at one interrupt, in the middle of the program.

    `graph` is a graph in text form. Its inputs are the output ports `reads` and values that earlier parts of the host made; its outputs are
    the input ports `writes` and values for later parts. `elements` is the number of values that it computes, from which its time follows.
    """

    graph: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    elements: int


ORDERS = ("in-turn", "ahead", "alternating")
"""The orders of parts: one part after the other, because they don't fit together; one after the other with the inputs of the next part read
ahead, to hide transfers; two parts step by step."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a batch is divided: into `parts` parts of at most `items` items, which are computed in one of the `ORDERS`.

    From the layer `until` on all items are computed together; without one the last layer is computed part by part, too.
    """

    parts: int
    items: int
    order: str = ORDERS[0]
    until: str = ""


StepPorts = tuple[tuple[Port, ...], tuple[Port, ...]]
"""The output ports that a host step reads, and the input ports that it fills."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceProgram:
    """Instructions, constants and the description of their surroundings, for programs of a machine and for tile programs.

    `division` is None where the batch is in one piece.
    """

    name: str
    source: str
    target: Target
    instructions: Records
    layers: tuple[LayerInfo, ...]
    tiles: Int8
    """[tiles, mxu, mxu], in the format of the weights of its values."""
    blocks: AnyArray
    """Parameter blocks: structured array of the machine's register; without one there are none."""
    host: tuple[HostBuffer, ...]
    constants: Int8
    """[rows, mxu]: the rows of the host buffers of kind "constant", one after the other."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    written_tiles: int = 0
    """Tiles of weight memory after `tiles`, which the program writes before it reads them."""
    expressions: tuple[str, ...] = ()
    """What its instructions compute, on a machine with expressions."""
    notes: tuple[str, ...] = ()
    division: Division | None = None
    machine: Machine = DEFAULT
    """The machine that its instructions are for."""

    @property
    def format(self) -> DeviceFormat:
        """The format of its values: the format of its ports, which all have the same format by rule V0904."""
        return next((port.format for port in (*self.inputs, *self.outputs)), DEFAULT_FORMAT)

    @property
    def tile_count(self) -> int:
        """The number of tiles of weight memory: the tiles with weights, and the tiles that the program writes."""
        return len(self.tiles) + self.written_tiles


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(DeviceProgram):
    """A program of a machine.

    `layer_of` gives each instruction its layer (an index into `layers`). `prologue` and `epilogue` are the host's part, as graphs in text
    form: the prologue turns the model's inputs into the input ports' tensors, the epilogue turns the output ports' into the model's
    outputs. Between them stand the `host_steps`, one for each `interrupt_host` but the last: the input ports that they fill are none of
    the prologue's. `residents` is the memory map (see `Resident`). Each of the `cores` runs the program, host's part included, on its
    part of the batch; the model's inputs and outputs are those of all cores, one after the other along their first axis.
    """

    source_text: str
    layer_of: AnyArray
    prologue: str
    epilogue: str
    residents: tuple[Resident, ...] = ()
    lower_bound_rows: int = 0
    host_steps: tuple[HostWork, ...] = ()
    cores: int = 1

    @cached_property
    def step_ports(self) -> tuple[StepPorts, ...]:
        """The ports of each host step. The program must keep rule V0108."""
        outputs, inputs = ({port.name: port for port in ports} for ports in (self.outputs, self.inputs))
        return tuple((tuple(outputs[n] for n in step.reads), tuple(inputs[n] for n in step.writes)) for step in self.host_steps)

    @property
    def device_layers(self) -> int:
        """The number of layers that the device computes: all layers except the steps of the host."""
        return sum(not layer.is_host_step for layer in self.layers)

    @cached_property
    def prologue_ports(self) -> tuple[Port, ...]:
        """The input ports that are filled before the program starts: the ports that no host step fills."""
        filled = {name for step in self.host_steps for name in step.writes}
        return tuple(port for port in self.inputs if port.name not in filled)

    @property
    def peak_rows(self) -> int:
        """The highest unified-buffer row in use at any time, plus one."""
        return max((r.end for r in self.residents), default=0)

    @property
    def machine_name(self) -> str:
        return self.machine.name

    @property
    def machine_title(self) -> str:
        return machine_name(self.target.name, self.cores)

    @property
    def title(self) -> str:
        """The program's name; with several cores, it says that this is the program of one core."""
        return self.name if self.cores == 1 else f"{self.name}, one of {self.cores:,} cores"

    @property
    def host_rows(self) -> int:
        return max((b.end for b in self.host), default=0)

    def __eq__(self, other: object) -> bool:
        """Whether all parts are equal."""
        return isinstance(other, Program) and all(_same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    def __hash__(self) -> int:
        return hash((self.name, len(self.instructions)))


def _same(one: Any, other: Any) -> bool:
    """Whether two parts of programs are the same. Arrays of one type are compared by their bytes: 0.0 isn't -0.0."""
    if isinstance(one, np.ndarray):
        equal = one.tobytes() == other.tobytes() if one.dtype == other.dtype else np.array_equal(one, other)
        return one.shape == other.shape and bool(equal)
    return bool(one == other)


def bare_program(**parts: Any) -> Program:
    """A program with these parts, by their names, and without instructions. Parts that aren't given are empty; name and target must be
    given."""
    arrays = {
        name: np.zeros((0, *shape), dtype)
        for name, (dtype, shape) in array_types(parts.get("machine", DEFAULT), parts["target"].mxu).items()
    }
    texts = dict.fromkeys(("source", "source_text", "prologue", "epilogue"), "")
    rows: dict[str, tuple[()]] = dict.fromkeys(("layers", "host", "inputs", "outputs"), ())
    return Program(**{**arrays, **texts, **rows, "layer_of": np.zeros(0, np.uint32), **parts})


@dataclass(frozen=True, slots=True)
class Resident:
    """A stay of a buffer in the unified buffer: rows `start`… from instruction `first` to instruction `last`, both inclusive."""

    name: str
    layer: int
    start: int
    rows: int
    first: int
    last: int

    @property
    def end(self) -> int:
        return self.start + self.rows
