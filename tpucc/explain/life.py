"""The life of one byte: from an element of an input through the places of the machine to an integer of an output.

It is followed backwards, from the integer of the first item's last output that changes most if the element is 0. Of all that an instruction
reads and that changes then, the life goes on with what has the largest part in the change of the result: in a product by the change times
the weight, elsewhere by the change itself. A step of the host is one box: of what it reads, the life goes on with what changes most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from shlex import quote
from typing import NamedTuple

import numpy as np

from tpucc.compilation import Compilation
from tpucc.diagnostics import counted, printable
from tpucc.explain.accounting import ROWS
from tpucc.explain.changes import TILES, At, Move, SideBySide, cells
from tpucc.explain.critical import LIMITS, Activities, Limit, activities, drains_of
from tpucc.explain.names import shown
from tpucc.explain.quantities import number
from tpucc.explain.recording import first_part
from tpucc.explain.slices import Slice
from tpucc.explain.timed import Timed
from tpucc.interop.sources import file_of
from tpucc.ir import Graph
from tpucc.isa.effects import Bools, effects
from tpucc.isa.program import Port, Program
from tpucc.machines.v1 import Engine
from tpucc.numerics import AnyArray
from tpucc.prose import percent
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs, random_inputs
from tpucc.sim.durations import duration
from tpucc.sim.ports import column_blocks, unpack

MOST_MACS, MOST_ASKED, MOST_INSTRUCTIONS = 300_000_000, 5_000_000_000, 20_000
"""Of larger programs no byte is followed: that would take as long as to compile them. More products are executed for who asks for values
of a run."""
HOST, LINK, WEIGHTS, BUFFER, ARRAY, SUMS, ACTIVATION = (
    "host", "host link", "weight memory", "unified buffer", "matrix unit", "accumulators", "activation unit"
)  # fmt: skip
PLACES = (HOST, LINK, WEIGHTS, BUFFER, ARRAY, SUMS, ACTIVATION)
"""Where a byte can be: the memories, in which it lies, and the units, which work on it."""
_MEMORIES = {"host": HOST, TILES: WEIGHTS, "ub": BUFFER, "acc": SUMS}
_UNITS = {Engine.HOST: LINK, Engine.MATRIX: ARRAY, Engine.ACTIVATION: ACTIVATION}
MEMORIES = "memories"
_SPENT = {
    MEMORIES: "lying in memories", LINK: "on the host link", HOST: "with the host",
    ARRAY: "in the matrix unit", ACTIVATION: "in the activation unit",
}  # fmt: skip
MOST_FIELDS = 60
"""Layers of which the fields are looked for: a slice has a bit for each."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor, by its name and its index."""

    name: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return f"{shown(self.name)}[{', '.join(map(str, self.index))}]"


@dataclass(frozen=True, slots=True)
class Route:
    """`start` is the element that is followed, with its number; `sent` is where the host puts it into host memory, None where the host
    keeps it until a step. `end` is the element of an output port, and its number by the port's scale."""

    start: Element
    number: float
    sent: Element | None
    moves: Sequence[Move]
    end: Element
    answer: float


def followed(runtime: Timed, inputs: Arrays, most: int = MOST_ASKED) -> Route | str:
    """The route of an element of the first input's first item: the largest one, or else the last one that isn't 0; of integers, which
    name things, the last one first. Where none can be followed, a sentence that says why.

    `inputs` are those of one core, for a batch of the program's size. `most` are the products that are executed.
    """
    program, name = runtime.program, next(iter(inputs))
    macs, items = sum(layer.macs for layer in program.layers), len(inputs[name]) if runtime.batch is not None else 1
    if len(program.instructions) > MOST_INSTRUCTIONS or macs > most:
        size = f"it has {len(program.instructions):,} instructions and {macs:,} products"
        if macs > MOST_ASKED or len(program.instructions) > MOST_INSTRUCTIONS:
            return f"The program is too large to be executed for a page: {size}."
        command = f"tpucc report {quote(printable(file_of(program.source)))} --values 0"
        return f"The program is too large to be executed for each page: {size}. {command} follows a byte."
    if program.format.bytes_per_value > 1:
        return "Its values have 16 bits: they are no bytes."
    first = (inputs[name][:1] if items > 1 else inputs[name]).astype(np.float64)
    places = np.flatnonzero(first)
    if not len(places):
        return f"The first item of {name} is 0 everywhere."
    largest, last = int(np.abs(first).argmax()), int(places[-1])
    order = dict.fromkeys((largest, last) if inputs[name].dtype.kind == "f" else (last, largest))
    tried = [_element(name, first.shape, place) for place in order]
    found = (_route(runtime, inputs, start, items) for start in tried)
    none = f"No integer of the outputs changes if {' or '.join(map(str, tried))} is 0."
    return next((route for route in found if route is not None), none)


def _route(runtime: Timed, inputs: Arrays, start: Element, items: int) -> Route | None:
    """The route of an element; None where no integer of the outputs changes if it is 0."""
    program, other = runtime.program, inputs[start.name].copy()
    other[start.index] = 0
    final = {node.name for node in runtime.host.epilogue.inputs}
    ports = [port for port in program.outputs if port.name in final]
    both = SideBySide(program, runtime.begun(inputs), runtime.begun({**inputs, start.name: other}))
    both.run(rows for rows, _ in cells(program, ports, items))
    changed = (both.largest(cells(program, [port], items)) for port in reversed(ports))  # what leaves last has the longest way
    last = next((found for found in changed if found is not None), None)
    if last is None:
        return None
    moves, at = list[Move](), last
    for change in reversed(both.changes):
        if (move := change.move(at)) is not None:
            moves.append(move)
            if move.source is None:
                break
            at = move.source
    sent = element_at(program, program.prologue_ports, at) if moves and moves[-1].source is not None else None
    found = element_at(program, ports, last)
    if not moves or found is None:
        return None
    port, end = found
    answer = np.float32(port.scale) * np.float32(last.value - port.zero_point)
    return Route(start, float(inputs[start.name][start.index]), sent and sent[1], moves[::-1], end, float(answer))


def element_at(program: Program, ports: Sequence[Port], at: At) -> tuple[Port, Element] | None:
    """The port, and the element of its tensor, that is in a place of host memory; None where no port has it."""
    for port in ports:
        for rows, columns, stretch in column_blocks(port, program.host, program.target.mxu):
            if stretch.start <= at.row < stretch.stop and columns.start + at.lane < columns.stop:
                row = rows.start + at.row - stretch.start
                return port, _element(port.name, port.shape, row * (port.shape[-1] if port.shape else 1) + columns.start + at.lane)
    return None


def _element(name: str, shape: Sequence[int], place: int) -> Element:
    return Element(name, tuple(int(i) for i in np.unravel_index(place, tuple(shape))))


class Stop(NamedTuple):
    """A byte is in a place, in the cycles [start, end): it lies in a memory until `instruction` reads it, or `instruction` works on it. The
    value is the one that it has in the end. -1 is no instruction.

    `root` is what most of the time goes to in which it lies: the limit at the ends of the chains of waits. It is None where it doesn't
    wait.
    """

    place: str
    start: int
    end: int
    value: int
    instruction: int
    words: str
    root: Limit | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """What the byte depends on, of the integers that the host sends for the first item. `masks` has them [rows, columns] by the name of a
    layer, of whose result the byte is one then: first itself, and then each that is larger. `pixels` are the integers, and `shape` is
    their shape in the tensor."""

    masks: Mapping[str, Bools]
    pixels: AnyArray
    shape: tuple[int, ...]

    def grids(self, name: str, most: int) -> tuple[AnyArray, Bools, Bools]:
        """The pixels' mean over their channels, where the field of a layer is, and where the byte itself is, each [height, width]: at most
        so many in a row and in a column, of which each stands for several then."""
        shape = self.shape[-3:] if len(self.shape) > 2 else (*self.pixels.shape, 1)
        masks: Bools = np.logical_or.reduce(self.masks[name].reshape(-1, *shape), axis=-1)
        owns: Bools = np.logical_or.reduce(next(iter(self.masks.values())).reshape(-1, *shape), axis=-1)
        here = int(owns.any(axis=(1, 2)).argmax())  # of several images, the one that the byte is of
        mask, own, values = masks[here], owns[here], self.pixels.reshape(-1, *shape)[here].mean(axis=-1)
        for axis, size in enumerate(shape[:2]):
            starts = np.arange(0, size, -(-size // most))
            mask, own = (np.logical_or.reduceat(each, starts, axis=axis) for each in (mask, own))
            values = values.take(starts, axis=axis)
        return values, mask, own


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """The stops of a route, in the order of time; `origin` says what the inputs are."""

    route: Route
    stops: Sequence[Stop]
    fields: Fields | None
    origin: str

    @property
    def spent(self) -> Mapping[str, int]:
        """The cycles in each place, the most first; those in memories, where it waits, are together: `MEMORIES`."""
        found = Counter[str]()
        for stop in self.stops:
            found[stop.place if stop.root is None else MEMORIES] += stop.end - stop.start
        return dict(found.most_common())

    def words(self, clock_hz: float) -> tuple[str, str]:
        """Where its time goes, and what becomes of it: two sentences."""
        route, whole, value = self.route, self.stops[-1].end, signed(self.route.moves[-1].target.value)
        parts = ", ".join(f"{percent(cycles, whole)} {_SPENT[place]}" for place, cycles in self.spent.items() if cycles and place in _SPENT)
        sent = f", and crosses as {signed(self.stops[0].value)}" if route.sent is not None else ""
        begins, ends = f"{route.start} is {signed(route.number)}{sent}", f"{route.end} is {value} then, for {signed(route.answer)}"
        took = f"From input to output a byte takes {duration(whole / clock_hz)} on the device: {parts}".replace(" %", "\u00a0%")
        return took, f"{begins}; {ends} (on {self.origin})."


def life(compilation: Compilation, runtime: Timed, asked: bool = True) -> Life | str:
    """The life of a byte of the calibration inputs, or else of random ones; a sentence where none can be followed. `asked` says whether
    somebody wants values of a run, and so waits for a larger one."""
    if not runtime.has_host_part or not runtime.inputs:
        return "The program has no part of the host's, and so no inputs."
    given = calibrated_inputs(compilation)
    inputs, _ = first_part(runtime, runtime.accepted(random_inputs(runtime) if given is None else given))
    route = followed(runtime, inputs, MOST_ASKED if asked else MOST_MACS)
    if isinstance(route, str):
        return route
    origin = "random inputs" if given is None else "the calibration inputs"
    return Life(route, [*stops(runtime, route)], _fields(runtime, inputs, route), origin)


def stops(runtime: Timed, route: Route) -> Iterator[Stop]:
    """From the start of the program to the last integer in host memory."""
    program, times = runtime.program, runtime.timeline
    touched, known = effects(program.instructions), activities(program, times)
    done, at, added = times.end + drains_of(program, touched), 0, 0
    for move in route.moves:
        index, source = move.instruction, move.source
        if source is not None and _MEMORIES[source.memory] == _MEMORIES[move.target.memory] == SUMS:
            added += 1
            continue
        unit, start = int(touched.engine[index]), int(times.start[index])
        root, value = _root(known, index, at, start), move.target.value if source is None else source.value
        words = _lies(runtime, move, start - at, unit, root, added)
        yield Stop(HOST if source is None else _MEMORIES[source.memory], at, start, value, index, words, root)
        at, added = int(done[index]), 0
        place = HOST if touched.interrupts[index] else _UNITS[Engine(unit)]
        yield Stop(place, start, at, move.target.value, index, _works(program, move))
    yield Stop(HOST, at, at, route.moves[-1].target.value, -1, f"It is {route.end}, and stands for {signed(route.answer)}.")


def root_words(root: Limit) -> str:
    return "the matrix unit" if root is Limit.MATRIX_UNIT else ROWS[root].root


def _root(known: Activities, index: int, since: int, start: int) -> Limit | None:
    """What most of the cycles [since, start) go to, by the chain of what ends the wait of an instruction; None where there are none."""
    if start <= since:
        return None
    spent = np.zeros(len(LIMITS), np.int64)
    numbers = np.array([*known.chain(index, since)])
    np.add.at(spent, known.limit[numbers], np.maximum(0, np.minimum(known.end[numbers], start) - np.maximum(known.start[numbers], since)))
    return LIMITS[int(spent.argmax())]


def _lies(runtime: Timed, move: Move, cycles: int, unit: int, root: Limit | None, added: int) -> str:
    """Where it lies until an instruction reads it, and why that doesn't begin earlier."""
    index, source = move.instruction, move.source
    memory = "" if source is None else _MEMORIES[source.memory]
    called = {HOST: "host memory", WEIGHTS: "the tiles"}.get(memory, f"the {memory}")
    where = "with the host" if source is None else f"in row {source.row:,}, lane {source.lane:,} of {called}"
    more = f", while {counted(added, 'product')} {'is' if added == 1 else 'are'} added" if added else ""
    if root is None:
        return f"Instruction {index:,} reads it {where} at once."
    waits = runtime.waiting.before(index, unit)
    why = f" The unit waits for {waits[-1].words}." if waits else ""
    return f"Lies {counted(cycles, 'cycle')} {where}{more}. Most of that goes to {root_words(root)}. Instruction {index:,} reads it.{why}"


def _works(program: Program, move: Move) -> str:
    record, source, target = program.instructions[move.instruction], move.source, signed(move.target.value)
    said = f"Instruction {move.instruction:,} {program.machine.read(record)}."
    if source is None:
        return f"{said} It makes {target} of what the host has kept."
    if move.factor is not None:
        times = f"{signed(source.value)} times the weight {signed(move.factor)}"
        return f"{said} {times} is {signed(source.value * move.factor)} of the sum, which is {target} then."
    return f"{said} {signed(source.value)} becomes {target}." if source.value != move.target.value else f"{said} It stays {target}."


def signed(value: float) -> str:
    """A number with a minus sign, which is as wide as a digit."""
    return (f"{value:,}" if isinstance(value, int) else number(value)).replace("-", "\u2212")


def _sends_each_once(prologue: Graph, name: str, port: Port) -> bool:
    """Whether all that the host sends of an input is one tensor, of as many elements: not in parts, and in no patches."""
    made = {name}
    for node in prologue:
        if not made.isdisjoint(node.operands):
            made.add(node.name)
    return sum(output.node in made for output in prologue.outputs) == 1 and prod(port.shape) == prologue[name].type.size


def _fields(runtime: Timed, inputs: Arrays, route: Route) -> Fields | None:
    """None where the host computes in between, as a step of it is one box; and where it doesn't send each element of the input once."""
    program = runtime.program
    port = next((port for port in program.prologue_ports if route.sent is not None and port.name == route.sent.name), None)
    if port is None or route.sent is None or program.host_steps or not _sends_each_once(runtime.host.prologue, route.start.name, port):
        return None
    whole = unpack(port, program.host, runtime.begun(inputs).memories.buffers)
    shape = port.shape[1:] if runtime.batch is not None else port.shape
    own, reached = np.zeros(whole.shape, np.bool_), np.zeros((prod(port.shape[:-1]), port.shape[-1]), np.uint64)
    own[route.sent.index] = True
    last = {int(program.layer_of[move.instruction]): move for move in route.moves if _MEMORIES[move.target.memory] == BUFFER}
    asked = [(layer, move, 2 << bit) for bit, (layer, move) in enumerate([*last.items()][:MOST_FIELDS]) if layer < len(program.layers)]
    if asked:
        wanted = {move.instruction: [(slice(move.place, move.place + 1), bit)] for _, move, bit in asked}
        back = Slice(program, wanted, max(wanted))
        back.places()
        for lines, columns, stretch in column_blocks(port, program.host, program.target.mxu):
            reached[lines, columns] = back.host[stretch, None]
    rows = prod(shape[:-1])
    found: dict[str, Bools] = {port.name.removesuffix(".i8"): own.reshape(reached.shape)[:rows]}
    for layer, _, bit in asked:
        mask: Bools = reached[:rows] & np.uint64(bit) > 0
        if mask.sum() > next(reversed(found.values())).sum():
            found[program.layers[layer].name] = mask
    return Fields(found, whole.reshape(reached.shape)[:rows], shape)
