"""The view of the machine at work: its floor plan, and the data by which the scripts say what each part does in each cycle.

Times and waits are there for all instructions. Values are there for a window of them, its recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted, printable
from tpucc.explain.recording import EACH, FIRST, ROWS, SIDE, Recording, Step
from tpucc.explain.waiting import Waiting, reason_words, shifter
from tpucc.interop.sources import file_of
from tpucc.isa.effects import Effects
from tpucc.isa.program import Program
from tpucc.machine.instruction import Spec
from tpucc.machines.v1 import SPECS, V1, Engine, Flag, Opcode, Place
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.see.page.columns import deltas, octets, plain
from tpucc.see.palette import Kind
from tpucc.see.svg import Markup, escaped, joined, tag
from tpucc.see.waves.page import waves_frame, work_parts
from tpucc.systolic.work import Demo

HOST, MEMORY, FIFO, MATRIX, SUMS, ACTIVATION, BUFFER = ("host", "memory", "fifo", "matrix", "accumulators", "activation", "buffer")
"""The boxes of the plan."""
BOX_OF = dict.fromkeys((Place.UB, Place.UB2, Place.WINDOWS, Place.KERNEL, Place.DEST), BUFFER) | {
    Place.ACC: SUMS, Place.HOST: HOST, Place.MEMORY: MEMORY
}  # fmt: skip
"""The box in which the rows of a place are."""
BOXES = {"host": HOST, "ub": BUFFER, "acc": SUMS}
"""The box of each memory of rows."""
ARRAYS = 6
"""Layers of which a product can be opened in the array: each takes some 17 kB."""
SHIFTER = shifter(V1)
"""What shifts tiles into the shadow of the matrix unit, among the numbers of units."""
WORKERS = {
    Engine.HOST: ("host link", HOST),
    Engine.WEIGHTS: ("weight fetch", MEMORY),
    Engine.MATRIX: ("matrix unit", MATRIX),
    Engine.ACTIVATION: ("activation unit", ACTIVATION),
    SHIFTER: ("weight shift", FIFO),
}
"""The name of each unit, and the box that shows what it does."""


READ = "A strip is a whole memory: filled is read, outlined written. A cell is a value: coloured above 0, grey below."


def boxes(program: Program) -> Iterator[tuple[str, Kind, str, str]]:
    """The parts of the machine: the key of each, its colour, its title, and what it is for."""
    target = program.target
    tiles = counted(program.tile_count, "tile")
    side, rows = f"{target.mxu} × {target.mxu}", counted(target.accumulator_rows, "row")
    yield HOST, Kind.HOST, "Host", "Brings inputs and takes results."
    yield MEMORY, Kind.WEIGHTS, "Weight memory", f"{tiles} of {side}."
    yield FIFO, Kind.WEIGHTS, "Weight FIFO", f"Fetched tiles, in {counted(target.weight_fifo_tiles, 'place')}."
    yield MATRIX, Kind.MATRIX, "Matrix unit", "Multiplies rows by the weights in use; the shadow has the next."
    yield SUMS, Kind.MATRIX, "Accumulators", f"The sums of products, in {rows} of {target.mxu}."
    yield ACTIVATION, Kind.VECTOR, "Activation unit", "Makes values of sums; pools, adds."
    yield BUFFER, Kind.VECTOR, "Unified buffer", "Inputs and results of layers."


def machine_view(program: Program) -> Markup:
    """The plan without a program's state, which the scripts fill in, under the controls."""
    parts = joined(_box(*box) for box in boxes(program))
    canvas = tag("canvas", Markup(" "), attributes={"aria-hidden": "true"})
    controls = tag("div", Markup(" "), attributes={"role": "toolbar", "aria-label": "steps through the program"}, class_="steps")
    now = tag("div", Markup(" "), attributes={"aria-live": "polite"}, class_="now")
    plan = tag("div", canvas, parts, canvas, attributes={"role": "group", "aria-label": "floor plan of the machine"}, class_="plan")
    return joined([controls, now, tag("div", plan, class_="floor"), tag("p", Markup(" "), class_="soft left-out")])


def _box(name: str, kind: Kind, title: str, sentence: str) -> Markup:
    head = tag("h3", escaped(title))
    about = tag("p", escaped(sentence), class_="about")
    worker = next((unit for unit, (_, box) in WORKERS.items() if box == name), None)
    does = [] if worker is None else [tag("p", Markup(" "), tabindex=0, class_="does", data_unit=int(worker))]
    role = None if name in (FIFO, ACTIVATION, MEMORY) else "img"
    holds = [tag("div", Markup(" "), role=role, tabindex=role and 0, class_="holds")]
    holds += [tag("div", Markup(" "), class_="opener")] if name == MATRIX else []
    return tag("section", head, about, *does, *holds, attributes={"aria-label": title}, class_=f"part p-{kind}", data_part=name)


def machine_payload(program: Program, touched: Effects, waiting: Waiting, recording: Recording | None) -> dict[str, Any]:
    """What the scripts know of the machine at work, as JSON values: its parts, the rows that instructions touch, why units wait, and the
    recorded values where there are some."""
    records = program.instructions
    return {
        "fifo": program.target.weight_fifo_tiles,
        "pipeline": program.target.pipeline_cycles,
        "tiles": deltas(records["index"][touched.pushes]),
        "rows": plain(touched.rows),
        "memories": list(BOXES.values()),
        "reaches": _reaches(touched),
        "sizes": {SUMS: program.target.accumulator_rows, HOST: max(1, program.host_rows), MEMORY: max(1, program.tile_count)},
        "wide": program.format.bytes_per_value > 1,
        "paths": [_paths(SPECS[opcode]) for opcode in Opcode],
        "units": {int(unit): {"name": name, "box": box} for unit, (name, box) in WORKERS.items()},
        "waiting": _waiting(waiting),
        "left_out": _left_out(program, recording),
        **({} if recording is None else _recorded(program, recording)),
    }


def _paths(spec: Spec) -> list[tuple[str, str]]:
    """The ways on which an instruction moves data: from box to box, through the unit that works on it."""
    if spec.opcode is Opcode.READ_WEIGHTS:
        return [(MEMORY, FIFO)]
    reads, writes = (
        list(dict.fromkeys(box for place, box in BOX_OF.items() if places & place)) for places in (spec.reads_for(-1), spec.writes)
    )
    if not reads or not writes:
        return []
    if spec.engine in (Engine.MATRIX, Engine.ACTIVATION):
        _, through = WORKERS[spec.engine]
        return [*((source, through) for source in reads), (through, writes[0])]
    return [(reads[0], writes[0])]


def _waiting(waiting: Waiting) -> dict[str, Any]:
    return {
        "words": [*reason_words(waiting.machine)],
        "unit": octets(waiting.unit),
        "instruction": deltas(waiting.instruction),
        "start": deltas(waiting.start),
        "length": plain(waiting.end - waiting.start),
        "reason": octets(waiting.reason),
        "number": deltas(waiting.number),
        "span": plain(waiting.end - waiting.begin),
    }


def _reaches(touched: Effects) -> dict[str, Any]:
    """The rows that instructions touch, by operand: the memory, whether they are read (0) or written (1), and the interval around them."""
    places = [memory.name for memory, _ in touched.touches]
    columns = [
        (index, np.full_like(index, 2 * list(BOXES).index(name) + way), walks.low[index], walks.high[index] - walks.low[index])
        for name, (_, walks) in zip(places, touched.touches, strict=True)
        for way, own in enumerate((walks.reads, walks.writes))
        for index in (np.flatnonzero(own & walks.used),)
    ]
    instruction, kind, low, span = np.concatenate(columns, axis=1)
    order = np.argsort(instruction, kind="stable")
    numbers = {"instruction": deltas(instruction[order]), "low": deltas(low[order]), "span": plain(span[order])}
    return {**numbers, "kind": octets(kind[order].astype(np.uint8))}


def _recorded(program: Program, recording: Recording) -> dict[str, Any]:
    """The operands of all steps one after the other, and their numbers in one column."""
    seen = [one for step in recording.steps for one in (*step.reads, *step.writes)]
    places = list(dict.fromkeys(one.place for one in seen))
    return {
        "steps": deltas([step.index for step in recording.steps]),
        "reads": octets(_bytes(len(step.reads) for step in recording.steps)),
        "writes": octets(_bytes(len(step.writes) for step in recording.steps)),
        "boxes": [BOX_OF[Place(place)] for place in places],
        "box": octets(_bytes(places.index(one.place) for one in seen)),
        "height": octets(_bytes(len(one.rows) for one in seen)),
        "width": octets(_bytes(one.values.shape[1] for one in seen)),
        "row": deltas(_joined([one.rows for one in seen])),
        "values": plain(_joined([one.values for one in seen])),
        "arrays": _arrays(program, recording),
        "corners": {"fetch": deltas(list(recording.tiles)), "values": plain(_joined(list(recording.tiles.values())))},
    }


def _arrays(program: Program, recording: Recording) -> dict[str, Any]:
    """Pages of waves in parts: a corner of the array at work, cycle by cycle, on one product of each of the first layers.

    It is the layer's first product with the most rows of data: at the edge of an image a product begins in the border.
    """
    products: dict[int, list[Step]] = {}
    for step in recording.steps:
        layer = int(program.layer_of[step.index])
        if step.fetch >= 0 and step.reads[0].values.dtype == np.int8 and (layer in products or len(products) < ARRAYS):
            products.setdefault(layer, []).append(step)
    chosen = [max(own, key=lambda step: int(_data(step).sum())) for own in products.values()]
    parts = {step.index: _array(program, step, recording.tiles[step.fetch]) for step in chosen}
    return {"page": waves_frame(), "parts": parts} if parts else {}


def _data(step: Step) -> npt.NDArray[np.bool_]:
    """Which of the rows that a product reads have values that differ: neither border nor blank."""
    values = step.reads[0].values[:, :SIDE]
    return np.asarray((values != values[:, :1]).any(axis=1))


def _array(program: Program, step: Step, corner: Int8) -> dict[str, str]:
    """From the first row of data on; all rows where none has any."""
    instruction, side, first = V1.read(program.instructions[step.index]), len(corner), int(_data(step).argmax())
    lanes = step.reads[0].values[first:, :side]
    values = lanes.view(np.uint8) if Flag.UNSIGNED in instruction.flags else lanes
    rows = f"rows {first} to {first + len(lanes) - 1}, counted from 0" if first else "first rows"
    words = f"Instruction {step.index:,}: the first {side} lanes of its {rows}, times a corner of its tile"
    return work_parts(Demo(values.astype(np.int32), corner.astype(np.int32)), words)


def _bytes(numbers: Iterable[int]) -> AnyArray:
    return np.fromiter(numbers, np.uint8)


def _joined(arrays: Sequence[AnyArray]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *(array.reshape(-1) for array in arrays)]).astype(np.int64)


def _left_out(program: Program, recording: Recording | None) -> str:
    """Which values the view has, and how to get others."""
    count, command = len(program.instructions), f"tpucc report {quote(printable(file_of(program.source)))} --values A:B"
    if recording is None:
        none = f"{READ} The page has no values of a run."
        return f"{none} {command} makes it with those of instructions A to B, on random inputs if the model names none."
    first, last = recording.steps[0].index, recording.steps[-1].index
    steps = len(recording.steps)
    if steps == count:
        which = f"of all {counted(count, 'instruction')}"
    elif steps == last - first + 1:
        which = f"of instructions {first:,} to {last:,} of {count:,}; others: {command}"
    else:
        which = f"of the first {FIRST} instructions and {EACH} of each layer, {steps:,} of {count:,}; others: {command}"
    parts = f"Of each operand at most {ROWS} rows, of each row the first lanes, of each tile a corner."
    return f"{READ} Values on {printable(recording.origin)}, {which}. {parts}"
