"""The directives of a listing: everything of a program but its instructions and stays, as lines and back.

A directive that follows from the fields of a dataclass has a row of entries, by which it is written and read. The others have a function
for each of the two.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import LineError, Origin, UsageError, did_you_mean, listed, printable
from tpucc.ir.digests import Known, Missing, digest_of, with_data, without_data
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat
from tpucc.ir.textdata import quote
from tpucc.isa.listing.data import READABLE, block_lines, data_lines, matrix_lines, read_block, read_bytes, read_digest, read_matrix
from tpucc.isa.listing.lines import IN_CODE, Arguments, Directive, Errors
from tpucc.isa.listing.schema import COUNT, INTEGERS, NAME, QUOTED, REAL, SHAPE, SIZES, SPANS, WORD, Codec, Entry, read, shown, taken
from tpucc.isa.listing.words import Word, integer, label_in, line_error, name, name_text, number, sizes, string, zero
from tpucc.isa.program import KINDS, ORDERS, Division, HostBuffer, HostWork, LayerInfo, Port, Program, array_types, bare_program
from tpucc.isa.tilegrid import TileGrid, tile_grid
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import AnyArray, Int8
from tpucc.target import NEEDED, Target, load_target, number_fields, target_names, target_of

DEFAULT_TARGET = "tpu_v1"
_FILLS = 8
"""Tiles of a layer on one line."""


def _kind(word: Word) -> str:
    if word.text not in KINDS:
        word.fail("E0716", f"{printable(word.text)} isn't a kind of host buffer", f"the kinds are {listed(KINDS)}")
    return word.text


def _order(word: Word) -> str:
    if word.text not in ORDERS:
        word.fail("E0716", f"{printable(word.text)} isn't an order of parts", f"the orders are {listed(ORDERS)}")
    return word.text


def _format(word: Word) -> DeviceFormat:
    if word.text not in DEVICE_FORMATS:
        word.fail("E0713", f"{printable(word.text)} isn't a type of a port", f"the types are {listed([*DEVICE_FORMATS])}")
    return DEVICE_FORMATS[word.text]


_TITLE = Entry("name", NAME, what="a name")
_PLAIN = {
    "cores": Entry("cores", COUNT, what="a number of cores", default=1),
    "source": Entry("source", NAME, what="a file name", default=""),
    "lower_bound": Entry("lower_bound_rows", COUNT, what="a number of rows", default=0),
    "written_tiles": Entry("written_tiles", COUNT, what="a number of tiles", default=0),
}
"""Directives that are one field of the program."""
_LAYER = (
    _TITLE,
    Entry("kind", NAME, what="a kind"),
    Entry("macs", COUNT, default=0, brief=True),
    Entry("weights", SIZES, default=(0, 0), brief=True),
    Entry("origin.spans", SPANS, "at", default=(), brief=True),
    Entry("origin.calls", SPANS, "calls", default=(), brief=True),
    Entry("origin.made_by", QUOTED, "made_by", default="", brief=True),
    Entry("choice", QUOTED, default="", brief=True),
    Entry("group", SIZES, default=(0, 0), brief=True),
)
_DIVISION = (
    Entry("parts", COUNT),
    Entry("items", COUNT),
    Entry("order", Codec(str, _order), default=ORDERS[0]),
    Entry("until", NAME, default="", brief=True),
)
_HOST = (_TITLE, Entry("kind", Codec(str, _kind), what="a kind"), Entry("start", COUNT, default=None), Entry("rows", COUNT))
_PORT = (
    _TITLE,
    Entry("shape", SHAPE, what="a shape such as 8x4"),
    Entry("scale", REAL, default=1.0),
    Entry("zero_point", WORD, "zero", default=None),
    Entry("splits", INTEGERS, default=None),
    Entry("blocks", INTEGERS, default=None),
    Entry("format", Codec(lambda format: format.name, _format), "type", default=DEFAULT_FORMAT, brief=True),
)
_ELEMENTS = (Entry("elements", COUNT, default=0),)


@dataclass(slots=True)
class Parts:
    """A program in the making: what the directives have said so far."""

    target: Target
    known: Known | None
    """The constants that stand in the text by their digests."""
    machine: Machine
    said: dict[str, Any]
    """Names, numbers and texts, by the fields of `Program`."""
    notes: list[str] = field(default_factory=list)
    layers: list[LayerInfo] = field(default_factory=list)
    host: list[HostBuffer] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    tiles: list[Int8] = field(default_factory=list)
    blocks: list[AnyArray] = field(default_factory=list)
    constants: list[Int8] = field(default_factory=list)
    host_steps: list[HostWork] = field(default_factory=list)
    fills: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """The tiles of each layer."""
    free_row: int = 0
    """The first row of host memory after all buffers."""
    _names: set[str] = field(default_factory=set)

    def add_buffer(self, buffer: HostBuffer, directive: Directive) -> int:
        """Adds a host buffer and gives its index. Raises `LineError` E0718 when its name is taken."""
        if buffer.name in self._names:
            raise line_error("E0718", f"two host buffers are named {printable(buffer.name)}", directive.head.span)
        self._names.add(buffer.name)
        self.host.append(buffer)
        self.free_row = max(self.free_row, buffer.end)
        return len(self.host) - 1

    def add_layer(self, layer: LayerInfo) -> None:
        self.layers.append(layer)
        self.fills.append([])

    @property
    def program(self) -> Program:
        """All that the directives say, as a program without instructions."""
        types = array_types(self.machine, self.target.mxu)
        joined = {
            array: np.concatenate([np.zeros((0, *types[array][1]), types[array][0]), *getattr(self, array)])
            for array in ("tiles", "blocks", "constants")
        }
        listed = {part: tuple(getattr(self, part)) for part in ("notes", "host", "inputs", "outputs", "host_steps")}
        layers = tuple(replace(layer, tile_fills=tuple(fills)) for layer, fills in zip(self.layers, self.fills, strict=True))
        return bare_program(target=self.target, machine=self.machine, layers=layers, **self.said, **listed, **joined)


def read_directives(
    directives: list[Directive], stem: str, errors: Errors, known: Known | None = None, machine: Machine = DEFAULT
) -> Parts:
    """All directives of a listing; the target first, since the others' sizes depend on it. `stem` is the name of a program without one.

    `known` has the constants that stand in the listing by their digests.
    """
    parts = Parts(load_target(DEFAULT_TARGET), known, machine, {"name": stem})
    for directive in sorted(directives, key=lambda directive: directive.name != "target"):
        errors.attempt(_apply, directive, parts)
    return parts


def _apply(directive: Directive, parts: Parts) -> None:
    handler = _HANDLERS.get(directive.name)
    if handler is None:
        raise unknown(directive)
    handler(Arguments(directive), parts)


def unknown(directive: Directive) -> LineError:
    """The error of a directive that this kind of text doesn't have."""
    names = [*_HANDLERS, *IN_CODE]
    near = did_you_mean(directive.name, names)
    choices = f"the directives are {listed(['.' + name for name in names])}"
    return line_error("E0715", f"no directive is named {directive.head}", directive.head.span, near or choices)


def surroundings(program: Program, with_data: bool) -> tuple[list[str], list[str]]:
    """The directives that stand before the code of a listing, and those after it: all of a program but its instructions and stays."""
    before = [*_head_lines(program), "", *_layer_lines(program), "", *_host_lines(program)]
    return before, list(chain.from_iterable(part(program, with_data) for part in (_block_lines, _tile_lines, _constant_lines, _text_lines)))


def _program(arguments: Arguments, parts: Parts) -> None:
    parts.said["name"], stage = read((_TITLE, Entry("stage", WORD, default=None)), arguments)
    if stage is not None and stage.text != "tile":
        stage.fail("E0716", f"{printable(stage.text)} isn't a stage; the text of a tile program says stage=tile")


def _plain(arguments: Arguments, parts: Parts) -> None:
    entry = _PLAIN[arguments.directive.name]
    (parts.said[entry.field],) = read((entry,), arguments)


def _note(arguments: Arguments, parts: Parts) -> None:
    parts.notes += read((Entry("note", QUOTED, what="a text in quotes"),), arguments)


def _division(arguments: Arguments, parts: Parts) -> None:
    parts.said["division"] = Division(*read(_DIVISION, arguments))


def _head_lines(program: Program) -> Iterator[str]:
    yield shown("program", (_TITLE,), program)
    yield f".target {_target_text(program.target)}"
    yield from (shown(name, (entry,), program) for name, entry in _PLAIN.items() if getattr(program, entry.field) != entry.default)
    if program.division is not None:
        yield shown("division", _DIVISION, program.division)
    yield from (f".note {quote(note)}" for note in program.notes)


def _target(arguments: Arguments, parts: Parts) -> None:
    word = arguments.next("a target")
    if not arguments.keyed:
        parts.target = _built_in(word)
        arguments.done()
        return
    fields: dict[str, object] = {"name": name(word), "description": Entry("description", QUOTED, default="").value(arguments)}
    required = {f.name for f in msgspec.structs.fields(Target) if f.required} | {*NEEDED}
    for key in number_fields():
        value = arguments.need(key) if key in required else arguments.take(key)
        fields |= {} if value is None else {key: number(value)}
    arguments.done()
    try:
        parts.target = target_of(fields)
    except ValueError as error:
        raise line_error("E0716", f"this isn't a target: {error}", arguments.directive.head.span) from None
    _require_no_obstacle(parts.target, word)


def _built_in(word: Word) -> Target:
    wanted = name(word)
    try:
        target = load_target("" if wanted.endswith(".toml") else wanted)
    except UsageError:
        near = did_you_mean(wanted, target_names())
        word.fail("E0716", f"no target is named {printable(wanted)}", near or f"the targets are {listed(target_names())}")
    _require_no_obstacle(target, word)
    return target


def _require_no_obstacle(target: Target, word: Word) -> None:
    if target.obstacle:
        word.fail("E0716", f"no program can be for {printable(target.name)}: it {target.obstacle}")


def _target_text(target: Target) -> str:
    """A built-in target's name; another one's numbers."""
    if target.name in target_names() and load_target(target.name) == target:
        return name_text(target.name)
    fields = (f"{key}={getattr(target, key)}" for key in number_fields())
    return f"{name_text(target.name)} {' '.join(fields)} description={quote(target.description)}"


def _layer(arguments: Arguments, parts: Parts) -> None:
    title, kind, macs, weights, *origin, choice, group = read(_LAYER, arguments)
    parts.add_layer(LayerInfo(title, kind, Origin(*origin) or Origin(made_by="assembler"), macs, weights, (), choice, group))


def _fills(arguments: Arguments, parts: Parts) -> None:
    if not parts.layers:
        raise line_error("E0716", ".fills stands after no .layer", arguments.directive.head.span)
    for word in arguments.rest():
        tile, _, size = word.text.partition(":")
        middle = word.start + len(tile)
        rows, columns = sizes(Word("", size, word.line, middle + 1, word.end), 2)
        parts.fills[-1].append((integer(Word("", tile, word.line, word.start, middle)), rows, columns))
    arguments.done()


def _layer_lines(program: Program) -> Iterator[str]:
    for layer in program.layers:
        yield shown("layer", _LAYER, layer)
        fills = [f"{tile}:{rows}x{columns}" for tile, rows, columns in layer.tile_fills]
        grid = tile_grid(layer, program.target.mxu)
        for start in range(0, len(fills), _FILLS):
            yield f".fills {' '.join(fills[start : start + _FILLS])}{_stacked(grid, start, min(start + _FILLS, len(fills)) - 1)}"


def _stacked(grid: TileGrid, first: int, last: int) -> str:
    """A comment that says which matrices of a stack these tiles are of; empty if the layer has one matrix."""
    if grid.matrices == 1:
        return ""
    numbers = sorted({int(grid.matrix[first]) + 1, int(grid.matrix[last]) + 1})
    which = f"matrix {numbers[0]:,}" if len(numbers) == 1 else f"matrices {numbers[0]:,}–{numbers[1]:,}"
    return f" ; {which} of {grid.matrices:,}"


def _host(arguments: Arguments, parts: Parts) -> None:
    title, kind, start, rows = read(_HOST, arguments)
    parts.add_buffer(HostBuffer(title, kind, parts.free_row if start is None else start, rows), arguments.directive)


def _port(arguments: Arguments, parts: Parts, kind: str, ports: str) -> None:
    title, shape, scale, zero_point, splits, blocks, format = read(_PORT, arguments)
    rows = (math.prod(shape[:-1]),) if splits is None else splits
    if blocks is None:
        stretches = [count * format.bytes_per_value for count in rows]
        blocks = _own_buffers(arguments.directive, parts, kind, title, -(-shape[-1] // parts.target.mxu), stretches)
    point = 0 if zero_point is None else zero(zero_point, format)
    getattr(parts, ports).append(Port(title, shape, scale, point, rows, blocks, format))


def _own_buffers(directive: Directive, parts: Parts, kind: str, title: str, columns: int, stretches: list[int]) -> tuple[int, ...]:
    """New host buffers for a port that names none: `x.0`, `x.1`, … one for each part and column block, after all others."""
    if len(stretches) * columns > 2**16:
        raise line_error("E0716", f"{title} would need {len(stretches) * columns:,} host buffers", directive.head.span)
    rows = (part for part in stretches for _ in range(columns))
    return tuple(parts.add_buffer(HostBuffer(f"{title}.{index}", kind, parts.free_row, part), directive) for index, part in enumerate(rows))


def _host_lines(program: Program) -> Iterator[str]:
    yield from (shown("host", _HOST, buffer) for buffer in program.host)
    yield from (shown("input", _PORT, port) for port in program.inputs)
    yield from (shown("output", _PORT, port) for port in program.outputs)


def _tile(arguments: Arguments, parts: Parts) -> None:
    mxu, word = parts.target.mxu, arguments.take("sha256")
    arguments.done(block=word is None)
    if word is not None:
        data = read_digest(word, f"weight tile {sum(map(len, parts.tiles)):,}", mxu * mxu, parts.known)
        parts.tiles.append(np.frombuffer(data, np.int8).reshape(1, mxu, mxu))
        return
    tile = np.zeros((1, mxu, mxu), np.int8)
    rows = read_matrix(arguments.directive, mxu, mxu)
    tile[0, : len(rows)] = rows
    parts.tiles.append(tile)


def _tiles(arguments: Arguments, parts: Parts) -> None:
    arguments.done(block=True)
    mxu, directive = parts.target.mxu, arguments.directive
    parts.tiles.append(np.frombuffer(read_bytes(directive, directive.block_text, mxu * mxu), np.int8).reshape(-1, mxu, mxu))


def _tile_lines(program: Program, with_data: bool) -> Iterator[str]:
    if not len(program.tiles):
        return
    yield ""
    if program.target.mxu <= READABLE:
        for tile in program.tiles:
            yield from (".tile", *matrix_lines(tile))
    elif with_data:
        yield from (".tiles", *data_lines(program.tiles.tobytes()))
    else:
        fills = {tile: f" ; {tile}: {printable(layer.name)}, {k}x{n}" for layer in program.layers for tile, k, n in layer.tile_fills}
        yield from (f".tile sha256={digest_of(tile.tobytes())}{fills.get(index, '')}" for index, tile in enumerate(program.tiles))


def _block(arguments: Arguments, parts: Parts) -> None:
    register = parts.machine.register
    if register is None:
        raise line_error("E0716", f"{parts.machine.name} has no parameter blocks", arguments.directive.head.span)
    parts.blocks.append(read_block(arguments, register.dtype(parts.target.mxu), len(parts.blocks), parts.known))


def _block_lines(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.blocks):
        yield from ("", *(line for block in program.blocks for line in block_lines(block, with_data)))


def _constant(arguments: Arguments, parts: Parts) -> None:
    title, directive = name(arguments.next("a name")), arguments.directive
    arguments.done(block=True)
    rows = read_matrix(directive, parts.target.mxu, len(directive.block))
    parts.add_buffer(HostBuffer(title, "constant", parts.free_row, len(rows)), directive)
    parts.constants.append(rows)


def _constants(arguments: Arguments, parts: Parts) -> None:
    mxu, directive = parts.target.mxu, arguments.directive
    rows, word = taken((Entry("rows", COUNT, default=0), Entry("sha256", WORD, default=None)), arguments)
    arguments.done(block=word is None)
    if word is None:
        data = read_bytes(directive, directive.block_text, mxu)
    else:
        data = read_digest(word, "the constant rows of host memory", rows * mxu, parts.known)
    parts.constants.append(np.frombuffer(data, np.int8).reshape(-1, mxu))


def _constant_lines(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.constants):
        data = np.ascontiguousarray(program.constants).view(np.uint8).reshape(-1).data
        short = f".constants rows={len(program.constants)} sha256={digest_of(data)}"
        yield from ("", *((".constants", *data_lines(data)) if with_data else (short,)))


def _text(arguments: Arguments, parts: Parts) -> None:
    name = arguments.directive.name
    parts.said[name] = _read_text(arguments) if name == "source_text" else _graph(arguments, parts)


def _host_step(arguments: Arguments, parts: Parts) -> None:
    (elements,) = taken(_ELEMENTS, arguments)
    parts.host_steps.append(HostWork(_graph(arguments, parts), (), (), elements))


def _step_ports(arguments: Arguments, parts: Parts) -> None:
    which = arguments.directive.name
    if not parts.host_steps:
        raise line_error("E0716", f".{which} stands after no .host_step", arguments.directive.head.span)
    step, names = parts.host_steps[-1], tuple(name(word) for word in arguments.rest())
    arguments.done()
    more: dict[str, Any] = {which: getattr(step, which) + names}
    parts.host_steps[-1] = replace(step, **more)


def _graph(arguments: Arguments, parts: Parts) -> str:
    """A text that is a graph, with its data."""
    try:
        return with_data(_read_text(arguments), parts.known)
    except Missing as error:
        raise line_error(error.code, error.message, arguments.directive.head.span, error.help) from None


def _read_text(arguments: Arguments) -> str:
    """The text of a directive whose other words have been taken: in a block, or in quotes. Raises `LineError` E0716."""
    directive = arguments.directive
    quoted = arguments.positional.pop(0) if arguments.positional else None
    arguments.done(block=True)
    if quoted is None:
        return directive.block_text
    if directive.block or label_in(quoted) is None:
        raise line_error("E0716", f"{directive.head} takes a text in quotes or lines with a bar", directive.head.span)
    return string(quoted, quoted.text)


def _text_lines(program: Program, with_data: bool) -> Iterator[str]:
    texts = {text: getattr(program, text) if with_data else without_data(getattr(program, text)) for text in ("prologue", "epilogue")}
    yield from _lines_of_text(".source_text", program.source_text)
    yield from _lines_of_text(".prologue", texts["prologue"])
    for index, step in enumerate(program.host_steps):
        yield from ("", f"; step {index}")
        yield from _block_or_quoted(shown("host_step", _ELEMENTS, step), step.graph if with_data else without_data(step.graph))
        for ports, names in (("reads", step.reads), ("writes", step.writes)):
            yield from [f".{ports} {' '.join(map(name_text, names))}"] if names else ()
    yield from _lines_of_text(".epilogue", texts["epilogue"])


def _lines_of_text(head: str, text: str) -> Iterator[str]:
    if text:
        yield from ("", *_block_or_quoted(head, text))


def _block_or_quoted(head: str, text: str) -> Iterator[str]:
    """A directive that begins with `head` and its text: as it is in a block, or in quotes where characters in it wouldn't be shown."""
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in set(text) - {"\n", "\t"}):
        yield f"{head} {quote(text)}"
    else:
        yield head
        yield from (f"| {line}" if line else "|" for line in text.split("\n") if text)


_HANDLERS: Mapping[str, Callable[[Arguments, Parts], None]] = MappingProxyType(
    {
        "program": _program,
        "target": _target,
        "source": _plain,
        "cores": _plain,
        "lower_bound": _plain,
        "written_tiles": _plain,
        "division": _division,
        "note": _note,
        "layer": _layer,
        "fills": _fills,
        "host": _host,
        "input": partial(_port, kind="input", ports="inputs"),
        "output": partial(_port, kind="output", ports="outputs"),
        "constant": _constant,
        "host_step": _host_step,
        "reads": _step_ports,
        "writes": _step_ports,
        "block": _block,
        "tile": _tile,
        "tiles": _tiles,
        "constants": _constants,
        **dict.fromkeys(("source_text", "prologue", "epilogue"), _text),
    }
)
