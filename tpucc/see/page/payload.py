"""The data of the page: what its scripts need to link everything to everything, as JSON values.

Names and source lines are escaped here (`printable`), so that the scripts only ever handle text that is safe to show. Numbers of which
there is one for each instruction are packed: see `columns`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tpucc.diagnostics import counted, printable
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.attribution import INPUT, Attribution, attribution, owners
from tpucc.explain.by_pass import Step
from tpucc.explain.critical import LIMITS
from tpucc.explain.layer_error import LayerError, alone, as_it_runs, unmeasured
from tpucc.explain.life import Life
from tpucc.explain.names import shortened, shown
from tpucc.explain.nesting import Source, Turn, nesting
from tpucc.explain.quality import Accuracy
from tpucc.explain.quantities import layer_rate, number
from tpucc.explain.recording import Recording
from tpucc.explain.segments import matrix_segments
from tpucc.explain.summary import Stats, useful_cells
from tpucc.explain.terms import COLOURS, GLOSSARY, SPOKEN, lanes
from tpucc.explain.tilegrid import tile_grid
from tpucc.explain.timed import Timed
from tpucc.isa.assembler import code_lines
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import HOST, LayerInfo, Program
from tpucc.machines.v1 import SPECS, V1, Engine, Opcode
from tpucc.prose import percent
from tpucc.see.charts.chart import WAITS
from tpucc.see.charts.memory import kind_of
from tpucc.see.charts.tiles import order_of, places_of
from tpucc.see.charts.timeline import Times, layer_spans
from tpucc.see.diagrams.diagram import Box
from tpucc.see.diagrams.insides import Inside, insides
from tpucc.see.diagrams.render import Rendered
from tpucc.see.diagrams.rewrites import Rewrite, rewrites
from tpucc.see.page.columns import deltas, octets, plain
from tpucc.see.page.hardware import Trace, hardware_payload
from tpucc.see.page.machine import machine_payload
from tpucc.see.page.stages import Origins, Stage, stages_payload
from tpucc.see.page.what_if import retiming_payload
from tpucc.see.palette import kind_of_layer
from tpucc.see.pictures import times_of


@dataclass(frozen=True, eq=False)
class PageInput:
    """All that the page shows.

    `diagrams` have a tab each, by its name; `stages` are the graphs after each pass, `errors` the layers' where they are known, `notes`
    sentences, `recording` the values of a run, `life` that of a byte, or why there is none.
    """

    runtime: Timed
    diagrams: Mapping[str, Rendered] = field(default_factory=dict)
    stages: Sequence[Stage] = ()
    errors: Sequence[LayerError] = ()
    accuracy: Accuracy | None = None
    notes: Sequence[str] = ()
    recording: Recording | None = None
    quantised: bool = False
    """Whether the source quantises values itself."""
    steps: Sequence[Step] = ()
    """The programs without the later passes, where they were made."""
    life: Life | str = ""
    hardware: Trace | None = None
    """The registers of the hardware in each cycle."""

    @property
    def program(self) -> Program:
        return self.runtime.program

    @cached_property
    def times(self) -> Times:
        return times_of(self.runtime)

    @cached_property
    def insides(self) -> Sequence[Inside]:
        """What opens in the diagrams."""
        return insides([(drawn.full, drawn.collapsed) for drawn in self.diagrams.values()])

    @cached_property
    def rewrites(self) -> Sequence[Rewrite]:
        """What the passes rewrote."""
        return rewrites([stage.graph for stage in self.stages])

    @property
    def boxes(self) -> Iterator[tuple[str, Sequence[Box]]]:
        """The boxes of each diagram, and of each that opens in one, by its name: number n is the element `NAME-bn`."""
        yield from ((name, drawn.diagram.boxes) for name, drawn in self.diagrams.items() if drawn.diagram.boxes)
        yield from ((inside.name, inside.diagram.boxes) for inside in self.insides if inside.diagram)


INSTEAD = {
    "pool": "the activation unit pools its windows",
    "vector": "the activation unit computes it, value by value",
    "move": "it moves values and computes none",
    HOST: "the host computes it",
    INPUT: "it crosses the host link, and may be copied in the unified buffer: no layer's work",
}
"""What layers without multiply-accumulates do, by their kinds."""
BY_LANES = "the activation unit multiplies by its weights lane by lane, and reads them from the unified buffer"
"""How a layer has weights, but no tiles of them."""
BRIEF = 10
"""Characters of a layer's name in the list of instructions, if that many tell the names apart."""
SWITCH = 128
"""Added to the opcode of a multiply that takes the next tile."""


def payload(given: PageInput) -> dict[str, Any]:
    """The dictionary that the page carries."""
    program, whose, origins = given.program, attribution(given.program), Origins()
    touched = effects(program.instructions)
    found = {
        "machine": _machine(program),
        "cycles": given.times.cycles,
        "useful": useful_cells(given.runtime.stats),
        "useful_share": given.runtime.stats["useful_share"],
        "lines": source_lines(program.source_text),
        "rows": [{"name": row.name, "meaning": row.meaning} for row in ROWS.values()],
        "lanes": lanes(program.target),
        "terms": {**{word: GLOSSARY[word] for word in ("unified buffer", "peak", "lower bound")}, "colours": COLOURS},
        "spoken": {word: GLOSSARY[word] for word in SPOKEN},
        "layers": _layers(given, whose, origins),
        "calls": _calls(program, whose),
        "units": [str(engine) for engine in Engine],
        "opcodes": [
            {"name": opcode.mnemonic, "unit": int(V1.engine_of[opcode]), "operands": operands_payload(opcode)} for opcode in Opcode
        ],
        "code": _code(program, whose, touched, given.times),
        "text": _texts([*map(printable, code_lines(program))]),
        "sentences": sentences_payload(program),
        "places": plain(_places(program, touched)),
        "shifts": deltas(given.times.shift_starts),
        "layer_spans": layer_spans(given.times),
        "waits": _waits(given),
        "buffers": _buffers(program, whose),
        "machine_view": machine_payload(program, touched, given.runtime.waiting, given.recording),
        "retiming": retiming_payload(program, touched, given.runtime.edges),
        **({} if given.hardware is None else {"hardware": hardware_payload(given.hardware, program, touched, given.runtime.timeline)}),
        "hosts": [
            at for name, boxes in given.boxes if name == "layers" for at, box in enumerate(boxes) if not box.layers and box.cluster < 0
        ],
        "diagrams": {name: [[origins.number(origin) for origin in box.origins] for box in boxes] for name, boxes in given.boxes},
        "box_layers": _box_layers(given, whose),
        "box_instructions": _box_instructions(given),
        "beside": {name: [box.beside for box in boxes] for name, boxes in given.boxes},
        "insides": {inside.name: _inside(inside) for inside in given.insides},
        "stages": stages_payload(given.stages, origins),
        "steps": {step.stage: step.cycles for step in given.steps if step.cycles is not None},
        "rewrites": [_rewrite(each) for each in given.rewrites],
    }
    return {**found, "origins": origins.payload()}


def _texts(lines: Sequence[str]) -> dict[str, str]:
    """The instructions as text: the different words of all lines, the numbers of these words in order, and how many each line has."""
    known: dict[str, int] = {}
    split = [line.split(" ") for line in lines]
    numbers = [known.setdefault(word, len(known)) for words in split for word in words]
    return {"words": "\n".join(known), "numbers": plain(numbers), "counts": plain([*map(len, split)])}


def _rewrite(rewrite: Rewrite) -> dict[str, Any]:
    """`names` are those of the boxes before and after it, by their numbers, and `small` those of small boxes."""
    sides = [part.boxes if part else () for part in (rewrite.before, rewrite.after)]
    names = [[printable(box.called) for box in boxes] for boxes in sides]
    small = [printable(box.called) for boxes in sides for box in boxes if box.small]
    return {"stage": rewrite.stage, "rule": rewrite.rule, "alike": rewrite.alike, "names": names, "small": small}


def source_lines(text: str) -> list[str]:
    """The lines of the source as they are shown: tabs stay, other control characters are escaped."""
    return ["\t".join(map(printable, line.rstrip("\r").split("\t"))) for line in text.removesuffix("\n").split("\n")]


def _machine(program: Program) -> dict[str, Any]:
    target = program.target
    return {
        "mxu": target.mxu,
        "weight_tiles": len(program.tiles),
        "clock_hz": target.clock_hz,
        "shift": target.tile_shift_cycles,
        "buffer_rows": target.unified_buffer_rows,
        "peak_rows": program.peak_rows,
        "lower_bound_rows": program.lower_bound_rows,
    }


def _layers(given: PageInput, whose: Attribution, origins: Origins) -> list[dict[str, Any]]:
    lost = {error.layer: error for error in given.errors}
    briefs = shortened([printable(layer.name) for layer in whose.layers], BRIEF)
    return [
        {
            "name": printable(layer.name),
            "brief": briefs[index],
            "kind": printable(layer.kind),
            "colour": kind_of_layer(layer.kind, layer.multiplies),
            "origin": origins.number(layer.origin),
            "weights": layer.weights,
            **_tiles(layer, given.program.target.mxu),
            "untiled": untiled(layer),
            "choice": printable(layer.choice),
            "cycles": counts["cycles"],
            "spent": list(cycles_by_row(counts).values()),
            "rate": _rate(counts),
            "error": _error(lost[index]) if index in lost else "",
        }
        for index, (layer, counts) in enumerate(zip(whose.layers, given.runtime.stats["layers"], strict=True))
    ]


def untiled(layer: LayerInfo) -> str:
    """Why a layer has no weight tiles; empty where it has some."""
    if layer.tile_fills:
        return ""
    return BY_LANES if layer.is_by_lanes else INSTEAD.get(layer.kind, "it has no weights")


def _rate(counts: Stats) -> str:
    """How fast a layer is in its multiply-accumulates, or what it does that has none."""
    if counts["macs"]:
        return f"{layer_rate(counts['tops'], counts['macs'])} TOPS"
    return INSTEAD.get(counts["kind"], "it has no multiply-accumulates")


def _tiles(layer: LayerInfo, mxu: int) -> dict[str, Any]:
    """The layer's tiles, each with its rows, columns and the cells that hold weights; of how many matrices, in how many groups."""
    grid = tile_grid(layer, mxu)
    fills = [(*fill, used) for fill, used in zip(layer.tile_fills, grid.used.tolist(), strict=True)]
    return {"fills": fills, "matrices": grid.matrices, "groups": grid.groups}


def _calls(program: Program, whose: Attribution) -> dict[str, Any]:
    """The calls that layers are in: their names, their lines and those of their `def`s, and of those that a loop repeats which time it is
    (empty: a loop doesn't); and for each layer the numbers of its calls, the outermost first.

    A call in a `def` that is itself called twice is two calls.
    """
    known: dict[tuple[Turn, ...], int] = {}
    source = Source.of(program.source_text.split("\n"))
    nested = nesting([layer.origin for layer in whose.layers], source)
    paths = [[known.setdefault(turns[: depth + 1], len(known)) for depth in range(len(turns))] for turns in nested]
    last = [path[-1] for path in known]
    steps = [
        (f"step {turn.number:,} of {turn.count:,}" if turn.number else f"all {turn.count:,} steps") if turn.count > 1 else ""
        for turn in last
    ]
    return {
        "name": [turn.call.name for turn in last],
        "line": [turn.call.span.line for turn in last],
        "def": [source.line_of_def(turn.call.name) for turn in last],
        "step": steps,
        "of": paths,
    }


def _places(program: Program, touched: Effects) -> list[int]:
    """For each `read_weights` its tile's place in the grid of its layer, or -1."""
    places = {layer: iter(places_of(program.layers[layer], order)) for layer, order in order_of(program).items()}
    return [next(places[layer]) for layer in program.layer_of[touched.pushes].tolist()]


def _error(error: LayerError) -> str:
    """The error of quantising in the layer, in a sentence."""
    beyond = f"; {percent(error.saturated, 1)} of its values saturate" if error.saturated else ""
    kept = f"It keeps {as_it_runs(error)}, {alone(error)} with exact inputs"
    if why := unmeasured(error.sqnr, error.constant):
        kept = f"It has no signal to noise, as its values are {why}"
    return f"Its scale is {number(error.scale)}. {kept}{beyond}."


def _box_layers(given: PageInput, whose: Attribution) -> dict[str, list[list[int]]]:
    """For each box of a picture of layers, which of the program's it stands for. An operator is a part of layers, and stands for none."""
    number = dict(zip([layer.name for layer in given.program.layers], whose.places.tolist(), strict=True))
    pictures = [(name, boxes) for name, boxes in given.boxes if not name.startswith("graph")]
    return {name: [[number[layer] for layer in box.layers if layer in number] for box in boxes] for name, boxes in pictures}


def _box_instructions(given: PageInput) -> dict[str, dict[int, str]]:
    """For each picture, and each of its boxes that the host has a part in, the instructions of that part."""
    parts = ((name, {at: deltas(box.instructions) for at, box in enumerate(boxes) if box.instructions}) for name, boxes in given.boxes)
    return {name: own for name, own in parts if own}


def _inside(inside: Inside) -> dict[str, Any]:
    return {
        "title": shown(inside.title),
        "size": counted(inside.count, inside.noun),
        "count": inside.count,
        "members": [shown(name) for name in inside.members],
        "opens": inside.diagram is not None,
    }


def _code(program: Program, whose: Attribution, touched: Effects, times: Times) -> dict[str, Any]:
    """The instructions as columns."""
    records, held = program.instructions, owners(program, touched)
    return {
        "count": len(records),
        "opcode": octets(records["opcode"] + np.where(touched.pops, SWITCH, 0).astype(np.uint8)),
        "layer": deltas(whose.of),
        "start": deltas(times.starts),
        "length": plain(times.ends - times.starts),
        "source": deltas(held.source),
        "source2": deltas(held.source2),
        "target": deltas(held.target),
        "others": {"instruction": deltas(held.others[:, 0]), "buffer": deltas(held.others[:, 1])},
    }


def _waits(given: PageInput) -> dict[str, Any]:
    """The matrix unit's waits. Stretches of one root that follow each other before one instruction are one. `instruction` is the multiply
    that waits; at the end of the program the one that finishes last."""
    segments = matrix_segments(given.program, given.runtime.timeline)
    places = np.array([list(WAITS).index(limit) if limit in WAITS else -1 for limit in LIMITS], np.int64)[segments.root]
    own = np.flatnonzero(places >= 0)
    start, end, instruction, root = (column[own] for column in (segments.start, segments.end, segments.instruction, places))
    begins = np.ones(len(own), np.bool_)
    begins[1:] = (start[1:] != end[:-1]) | (root[1:] != root[:-1]) | (instruction[1:] != instruction[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(own))[: len(first)] - 1
    return {
        "roots": [{"name": limit, "root": ROWS[limit].root, "meaning": ROWS[limit].name, **asdict(WAITS[limit])} for limit in WAITS],
        "start": deltas(start[first]),
        "length": plain(end[last] - start[first]),
        "root": octets(root[first].astype(np.uint8)),
        "instruction": deltas(instruction[first]),
    }


def _buffers(program: Program, whose: Attribution) -> dict[str, Any]:
    """The stays of buffers as columns; names are many, and one text."""
    stays = program.residents
    return {
        "name": "\n".join(printable(stay.name) for stay in stays),
        "kind": " ".join(kind_of(program, whose, stay) for stay in stays),
        "layer": deltas([whose.of[stay.first] for stay in stays]),
        "start": deltas([stay.start for stay in stays]),
        "rows": plain([stay.rows for stay in stays]),
        "first": deltas([stay.first for stay in stays]),
        "last": deltas([stay.last for stay in stays]),
    }


PLACE = "#"
"""Stands in a form where a number belongs."""
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")


def sentences_payload(program: Program) -> dict[str, Any]:
    """The forms of sentences; for each instruction the number of its form, and the numbers in all of them in order."""
    forms: dict[str, int] = {}
    used: list[int] = []
    numbers: list[int] = []
    for record in program.instructions:
        sentence = str(V1.read(record))
        used.append(forms.setdefault(_NUMBER.sub(PLACE, sentence), len(forms)))
        numbers += [int(found.replace(",", "")) for found in _NUMBER.findall(sentence)]
    return {"forms": list(forms), "form": deltas(used), "numbers": plain(numbers)}


def operands_payload(opcode: Opcode) -> dict[str, str]:
    """What each operand of a mnemonic means, by its key in the text."""
    return {operand.key: printable(operand.meaning) for operand in SPECS[opcode].operands}
