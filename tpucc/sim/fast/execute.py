"""Execution: what a program computes, bit for bit.

There are two executors. `Interpreter` does one instruction after the other and defines the result. `Simulator` prepares the program
first: it joins multiplies to large exact float32 products and requantises whole layers at once. Both give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import V1, Flag, Place
from tpucc.machines.v1.formats import format_of
from tpucc.numerics import AnyArray, DeviceInts, Int8
from tpucc.sim.fast.backends import Backend, chosen, require
from tpucc.sim.fast.binding import bind
from tpucc.sim.fast.groups import Chain, ChainGroup, find_groups
from tpucc.sim.fast.lanes import Lanes
from tpucc.sim.fast.product import Activation, JoinedProduct, Output, Requantisation, Scratch, Source, rounds_once, tail_lanes
from tpucc.sim.fast.weights import WeightStore, spans
from tpucc.sim.memories import AppliedInstruction, Memories, RowIndex, applied, rows_of
from tpucc.sim.ports import Host, fill, interrupt, no_host, unpack


class PreparedStep(Protocol):
    """A part of a prepared program that changes the machine's memories."""

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        """The function that runs the step on these memories; rows are looked up once."""


@dataclass(frozen=True, eq=False, slots=True)
class GroupProducts:
    """The products of one group. All of them run before any result is written: a result may overwrite an input."""

    products: tuple[JoinedProduct, ...]

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        multiplies, finishes = zip(*(bind(product, memories, scratch) for product in self.products), strict=True)

        def run() -> None:
            for half in multiplies + finishes:
                half()

        return run


@dataclass(frozen=True, eq=False, slots=True)
class SingleInstruction:
    """One instruction that fits no group."""

    action: AppliedInstruction

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        return partial(self.action.run, memories)


@dataclass(frozen=True, eq=False, slots=True)
class TileStore:
    """The write of a weight tile from rows of host memory."""

    tile: int
    rows: slice

    def bind(self, memories: Memories, scratch: Scratch) -> Callable[[], None]:
        return partial(memories.write_tile, self.tile, memories.buffers[self.rows])


def prepare(program: Program, backend: Backend = "numpy", tiles: Int8 | None = None) -> list[list[PreparedStep]]:
    """The steps of a verified program: a list for each segment between the host's steps.

    `tiles` are the tiles of the machine that will run the program: the program's own tiles where it writes none.
    """
    segments = _Preparation(program, backend, program.tiles if tiles is None else tiles).segments()
    lanes = Lanes(program)
    lanes.filled(program.prologue_ports)
    for number, steps in enumerate(segments):
        if number:
            lanes.filled(program.step_ports[number - 1][1])
        for index, step in enumerate(steps):
            if isinstance(step, GroupProducts):
                lanes.multiplied(step.products)
            elif isinstance(step, SingleInstruction) and (narrow := lanes.narrowed(step.action)) is not None:
                steps[index] = narrow
    return segments


class _Preparation:
    def __init__(self, program: Program, backend: Backend, tiles: Int8) -> None:
        self._program, self._tiles = program, tiles
        self._effects = effects(program.instructions)
        resolved = resolve(program.instructions, self._effects)
        self._tile, self._block = resolved.tile.tolist(), resolved.block.tolist()
        self._store = WeightStore(tiles)
        self._backend = chosen(backend, self._multiplications)

    def _multiplications(self) -> int:
        """The multiplications of a run, by the used rows and columns of the program's tiles."""
        tiles = ((index, self._tile[index]) for index in np.flatnonzero(self._effects.multiplies).tolist())
        known = ((index, tile) for index, tile in tiles if tile < len(self._program.tiles))
        return sum(int(self._effects.rows[index]) * math.prod(self._store.used_size(tile)) for index, tile in known)

    def segments(self) -> list[list[PreparedStep]]:
        code = self._program.instructions
        stops = np.flatnonzero(self._effects.interrupts & (code["index"] < len(self._program.host_steps))).tolist()
        segments: list[list[PreparedStep]] = [[]]
        for item in find_groups(self._effects, self._program.target, stops):
            if isinstance(item, tuple):
                segments[-1] += self._one_by_one(item) if self._is_late(item) else [self._products(item)]
            elif self._effects.interrupts[item]:
                segments.append([])
            elif self._effects.stores[item]:
                segments[-1].append(TileStore(int(code["index"][item]), _dense(self._instruction(item), Place.HOST)))
            else:
                segments[-1] += self._single(item)
        return segments

    def _single(self, index: int) -> list[PreparedStep]:
        """The step of one instruction; none for one that neither moves nor computes anything."""
        action = self._action(index)
        return [] if action is None else [SingleInstruction(action)]

    def _action(self, index: int) -> AppliedInstruction | None:
        tile = self._tiles[self._tile[index]] if self._tile[index] >= 0 else None
        return applied(self._program, self._instruction(index), tile, self._block[index])

    def _instruction(self, index: int) -> DecodedInstruction:
        return V1.read(self._program.instructions[index])

    def _is_late(self, group: ChainGroup) -> bool:
        """Whether a group multiplies by a tile that the program writes."""
        return any(self._tile[index] >= len(self._program.tiles) for chain in group for index in chain.multiplies)

    def _one_by_one(self, group: ChainGroup) -> list[PreparedStep]:
        """The steps of a group whose weights are known only when it runs: its instructions in the order of the program."""
        indices = sorted(index for chain in group for index in (*chain.multiplies, chain.activate) if index >= 0)
        return [step for index in indices for step in self._single(index)]

    def _products(self, group: ChainGroup) -> GroupProducts:
        """One product for each set of input rows. Their results have memory side by side."""
        products: list[JoinedProduct] = []
        offset = 0
        for chains in self._alike(group):
            products.append(product := self._product(chains, offset))
            offset += product.scratch_size
        return GroupProducts(tuple(products))

    def _alike(self, chains: Sequence[Chain]) -> Iterator[list[Chain]]:
        """The chains by the walks of their input rows, in order of appearance."""
        fields = ["flags", "opcode", "ub", "outer", "inner", "ub_pitch", "ub_stride"]
        by_rows: dict[bytes, list[Chain]] = {}
        for chain in chains:
            records = self._program.instructions[list(chain.multiplies)]
            columns = [records[name] & (Flag.UNSIGNED | Flag.WIDE) if name == "flags" else records[name] for name in fields]
            by_rows.setdefault(b"".join(column.tobytes() for column in columns), []).append(chain)
        yield from by_rows.values()

    def _product(self, chains: list[Chain], offset: int) -> JoinedProduct:
        multiplies = [self._instruction(index) for index in chains[0].multiplies]
        sources = tuple(
            Source(_rows(multiply, Place.UB), format_of(multiply.flags), Flag.UNSIGNED in multiply.flags) for multiply in multiplies
        )
        largest = tuple(V1.largest_inputs[[multiply.flags for multiply in multiplies]].tolist())
        tiles = tuple(tuple(self._tile[index] for index in chain.multiplies) for chain in chains)
        weights = self._store.weights(tiles, largest, self._backend)
        outputs = tuple(self._output(chain, slice(*span)) for chain, span in zip(chains, spans(weights.widths), strict=True))
        bias = _of_columns(outputs, "bias").astype(np.int32)
        rows = _dense(multiplies[0], Place.ACC)
        return JoinedProduct(
            rows=rows.stop - rows.start,
            sources=sources,
            weights=weights,
            outputs=outputs,
            bias=bias,
            requantisation=Requantisation.of(*(_of_columns(outputs, name) for name in ("multiplier", "zero", "low", "high"))),
            rounds_once=rounds_once(weights.parts, bias),
            offset=offset,
        )

    def _output(self, chain: Chain, columns: slice) -> Output:
        rows = _dense(self._instruction(chain.multiplies[0]), Place.ACC) if chain.live else None
        return Output(columns, rows, self._activation(chain.activate, columns) if chain.activate >= 0 else None)

    def _activation(self, index: int, columns: slice) -> Activation:
        block, activate = self._program.blocks[self._block[index]], self._instruction(index)
        to = format_of(activate.flags)
        return Activation(_rows(activate, Place.DEST), block, to, tail_lanes(block, columns.stop - columns.start, to))


def _of_columns(outputs: Sequence[Output], name: str) -> AnyArray:
    """A number of the outputs' blocks for each column; 0 for outputs that aren't activated."""
    numbers = ((output.activation.block[name] if output.activation else 0, output.columns) for output in outputs)
    return np.concatenate([np.resize(number, columns.stop - columns.start) for number, columns in numbers])


def _rows(instruction: DecodedInstruction, place: Place) -> RowIndex:
    """The rows that an instruction visits at a place."""
    return rows_of(V1, instruction, V1.rows_at(place))


def _dense(instruction: DecodedInstruction, place: Place) -> slice:
    """The rows that an instruction visits at a place whose rows are dense."""
    rows = _rows(instruction, place)
    assert isinstance(rows, slice)
    return rows


class Simulator:
    """A program prepared once, to be run many times. The program must have passed the verifier.

    Memory: the machine's own, the weights in float32 (four times their size), and up to four times the largest layer's inputs and results.
    """

    def __init__(self, program: Program, backend: Backend = "numpy") -> None:
        require(backend)
        self.program = program
        self._memories, scratch = Memories.of(program), Scratch()
        segments = prepare(program, backend, self._memories.tiles)
        self._segments = [[step.bind(self._memories, scratch) for step in steps] for steps in segments]

    @np.errstate(over="ignore")  # a scaled sum may be infinite: it is clamped
    def run(self, inputs: Mapping[str, DeviceInts], host: Host = no_host) -> dict[str, DeviceInts]:
        """Runs the program. `inputs` has an array of integers for each port of the prologue; the result has a new array for each output
        port.

        `host` is called between the device's segments, once for each of the program's host steps; it must not run this simulator again.
        Raises `InputError` E0480 when arrays don't fit their ports. A run leaves nothing behind that a later one could see, because a
        verified program writes each row before it reads it.
        """
        program, memories = self.program, self._memories
        fill(program.prologue_ports, inputs, program, memories.buffers)
        for number, segment in enumerate(self._segments):
            if number:
                interrupt(program, number - 1, memories.buffers, host)
            for step in segment:
                step()
        return {port.name: unpack(port, program.host, memories.buffers) for port in program.outputs}
