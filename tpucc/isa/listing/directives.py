"""The directives of a listing, written and read: everything of a program but its instructions and stays. A stay is the time that a value
has rows of the unified buffer, and stands between instructions.

A directive that follows from the fields of a dataclass is written and read by its `Fields`. Every other one has a function that writes it
and one that reads it.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import LineError, Origin, UsageError, did_you_mean, listed, printable
from tpucc.ir.codec import Errors, line_error, quote
from tpucc.ir.digests import Known, abbreviated, digest_of, expanded
from tpucc.ir.dtypes import DEVICE_FORMATS
from tpucc.isa.listing.data import READABLE, BlockText, data_lines, matrix_lines, read_bytes, read_digest, read_matrix
from tpucc.isa.listing.lines import IN_CODE, Arguments, Directive
from tpucc.isa.listing.schema import QUOTED, SHAPE, WORD, Codec, Entry, Fields
from tpucc.isa.listing.words import Word, integer, label_in, name, name_text, number, one_of, string, two_sizes, zero
from tpucc.isa.program import KINDS, ORDERS, Division, HostBuffer, HostWork, LayerInfo, Port, Program, array_types, bare_program
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Contents
from tpucc.machines import DEFAULT, machine_for
from tpucc.target import NEEDED, Target, load_target, number_fields, target_names, target_of

DEFAULT_TARGET = "tpu_v1"
_FILLS = 8
"""Tiles of a layer on one line."""
_NAME = Entry("name", what="a name")
_PLAIN = {
    "cores": Fields(Program, Entry("cores", what="a number of cores")),
    "source": Fields(Program, Entry("source", what="a file name", default="")),
    "lower_bound": Fields(Program, Entry("lower_bound_rows", what="a number of rows")),
    "written_tiles": Fields(Program, Entry("written_tiles", what="a number of tiles")),
}
"""Directives that are one field of the program."""
_PROGRAM = Fields(Program, _NAME)
_LAYER = Fields(
    LayerInfo,
    _NAME,
    Entry("kind", what="a kind"),
    "macs",
    "weights",
    Entry("origin.spans", "at"),
    Entry("origin.calls", "calls"),
    Entry("origin.made_by", "made_by", codec=QUOTED),
    Entry("choice", codec=QUOTED),
    "group",
)
_ORDER = Codec(str, partial(one_of, choices=ORDERS, code="E0716", what="an order of parts", which="orders"))
_DIVISION = Fields(Division, "parts", "items", Entry("order", codec=_ORDER, default=ORDERS[0]), "until")
_KIND = Codec(str, partial(one_of, choices=KINDS, code="E0716", what="a kind of host buffer", which="kinds"))
_HALF = Codec(lambda half: "bf16" if half else "f32", lambda word: one_of(word, ("bf16", "f32"), "E0713", "a format", "formats") == "bf16")
_HOST = Fields(
    HostBuffer, _NAME, Entry("kind", what="a kind", codec=_KIND), Entry("start", default=None), "rows", Entry("half", "format", codec=_HALF)
)
_FORMAT = Codec(
    lambda format: format.name,
    lambda word: DEVICE_FORMATS[one_of(word, DEVICE_FORMATS, "E0713", "a type of a port", "types")],
)
_PORT = Fields(
    Port,
    _NAME,
    Entry("shape", what="a shape such as 8x4", codec=SHAPE),
    Entry("scale", default=1.0),
    Entry("zero_point", "zero", codec=WORD, default=None),
    Entry("splits", default=None),
    Entry("blocks", default=None),
    Entry("format", "type", codec=_FORMAT),
)
_STEP = Fields(HostWork, Entry("elements", default=0))


@dataclass(slots=True)
class ProgramDraft:
    """What the directives have said of a program so far."""

    target: Target
    known: Known | None
    """The constants that stand in the text by their digests."""
    machine: Machine
    by_target: bool
    """Whether the target says the machine."""
    said: dict[str, Any]
    """Names, numbers and texts, by the fields of `Program`."""
    lists: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """The values of fields that are tuples, by the fields of `Program`: `notes`, `layers`, `host`, …"""
    fills: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """Of each layer, what its weight tiles hold: the tile's number, and how many of its rows and columns are weights."""
    free_row: int = 0
    """The first row of host memory after all buffers."""
    buffers: dict[str, int] = field(default_factory=dict)
    """The index of each host buffer, by its name."""

    def add_buffer(self, buffer: HostBuffer, directive: Directive) -> int:
        """Adds a host buffer and gives its index. Raises `LineError` E0718 when its name is taken."""
        if buffer.name in self.buffers:
            raise line_error("E0718", f"two host buffers are named {printable(buffer.name)}", directive.head.span)
        self.buffers[buffer.name] = len(self.buffers)
        self.lists["host"].append(buffer)
        self.free_row = max(self.free_row, buffer.end)
        return self.buffers[buffer.name]

    def add_layer(self, layer: LayerInfo) -> None:
        self.lists["layers"].append(layer)
        self.fills.append([])

    def program(self) -> Program:
        """The program of the directives, without instructions. Its arrays (tiles, constants and parameter blocks) are joined."""
        arrays = array_types(self.machine, self.target.mxu).items()
        none = {array: np.zeros((0, *shape), dtype) for array, (dtype, shape) in arrays}
        joined = {array: np.concatenate([empty, *self.lists[array]]) for array, empty in none.items()}
        layers = [replace(layer, tile_fills=tuple(fills)) for layer, fills in zip(self.lists["layers"], self.fills, strict=True)]
        parts = {part: tuple(values) for part, values in (self.lists | {"layers": layers}).items()}
        return bare_program(target=self.target, machine=self.machine, **self.said, **{**parts, **joined})


Handler = Callable[[Arguments, ProgramDraft], None]
"""Reads one directive into the program in the making."""


def read_directives(
    directives: list[Directive],
    stem: str,
    errors: Errors,
    known: Known | None = None,
    machine: Machine | None = DEFAULT,
    own: Mapping[str, Handler] = MappingProxyType({}),
) -> ProgramDraft:
    """What all directives of a listing say. `stem` is the name of a program without one.

    `known` has the constants that stand in the listing by their digests. Without a machine the target says it. The target is read first,
    since the others' sizes depend on it; the directives of `own`, which only this text has, are read last; all others in the order of the
    text. What is wrong goes to `errors`.
    """
    draft = ProgramDraft(load_target(DEFAULT_TARGET), known, machine or DEFAULT, machine is None, {"name": stem})
    for directive in sorted(directives, key=lambda directive: (directive.name != "target", directive.name in own)):
        errors.attempt(_apply, directive, draft, own)
    return draft


def _apply(directive: Directive, draft: ProgramDraft, own: Mapping[str, Handler]) -> None:
    handler = own.get(directive.name) or _HANDLERS.get(directive.name)
    if handler is None:
        raise unknown(directive, own)
    handler(Arguments(directive), draft)


def unknown(directive: Directive, own: Iterable[str] = ()) -> LineError:
    """The error of a directive that this kind of text doesn't have; `own` are those that only this kind has."""
    names = [*_HANDLERS, *own, *IN_CODE]
    near = did_you_mean(directive.name, names)
    choices = f"the directives are {listed(['.' + name for name in names])}"
    return line_error("E0715", f"no directive is named {directive.head}", directive.head.span, near or choices)


def surroundings(program: Program, with_data: bool) -> tuple[list[str], list[str]]:
    """The directives that stand before the code of a listing, and those after it: all of a program but its instructions and stays."""
    before = [*_head_lines(program), "", *_layer_lines(program), "", *_host_lines(program)]
    return before, list(
        chain.from_iterable(lines(program, with_data) for lines in (_block_lines, _tile_lines, _constant_lines, _text_lines))
    )


def _program(arguments: Arguments, draft: ProgramDraft) -> None:
    (draft.said["name"],), stage = _PROGRAM.taken(arguments), arguments.take("stage")
    arguments.done()
    if stage is not None and stage.text != "tile":
        stage.fail("E0716", f"{printable(stage.text)} isn't a stage; the text of a tile program says stage=tile")


def _plain(arguments: Arguments, draft: ProgramDraft) -> None:
    fields = _PLAIN[arguments.directive.name]
    (draft.said[fields.entries[0].field],) = fields.read(arguments)


def _note(arguments: Arguments, draft: ProgramDraft) -> None:
    draft.lists["notes"].append(name(arguments.next("a text in quotes")))
    arguments.done()


def _division(arguments: Arguments, draft: ProgramDraft) -> None:
    draft.said["division"] = Division(*_DIVISION.read(arguments))


def _head_lines(program: Program) -> Iterator[str]:
    yield _PROGRAM.line("program", program)
    yield f".target {_target_text(program.target)}"
    for directive, fields in _PLAIN.items():
        if getattr(program, fields.entries[0].field) != fields.entries[0].default:
            yield fields.line(directive, program)
    if program.division is not None:
        yield _DIVISION.line("division", program.division)
    yield from (f".note {quote(note)}" for note in program.notes)


def _target(arguments: Arguments, draft: ProgramDraft) -> None:
    word = arguments.next("a target")
    draft.target = _own_target(word, arguments) if arguments.keyed else _built_in(word)
    arguments.done()
    if draft.by_target:
        draft.machine = machine_for(draft.target)
    if obstacle := draft.machine.obstacle(draft.target):
        word.fail("E0716", f"no program can be for {printable(draft.target.name)}: it {obstacle}")


def _own_target(word: Word, arguments: Arguments) -> Target:
    """A target by its numbers."""
    description = arguments.take("description")
    fields: dict[str, object] = {"name": name(word), "description": name(description) if description is not None else ""}
    if (kind := arguments.take("data_type")) is not None:
        fields["data_type"] = name(kind)
    required = {f.name for f in msgspec.structs.fields(Target) if f.required} | ({*NEEDED} if kind is None else set())
    for key in number_fields():
        value = arguments.need(key) if key in required else arguments.take(key)
        fields |= {} if value is None else {key: number(value)}
    arguments.done()
    try:
        return target_of(fields)
    except ValueError as error:
        raise line_error("E0716", f"this isn't a target: {error}", arguments.directive.head.span) from None


def _built_in(word: Word) -> Target:
    wanted = name(word)
    try:
        return load_target("" if wanted.endswith(".toml") else wanted)
    except UsageError:
        near = did_you_mean(wanted, target_names())
        word.fail("E0716", f"no target is named {printable(wanted)}", near or f"the targets are {listed(target_names())}")


def _target_text(target: Target) -> str:
    """A built-in target's name; another one's numbers. Where it multiplies no int8, that is said, and numbers it lacks are left out."""
    if target.name in target_names() and load_target(target.name) == target:
        return name_text(target.name)
    of_integers, defaults = target.data_type == "int8", {field.name: field.default for field in msgspec.structs.fields(Target)}
    known = (key for key in number_fields() if of_integers or getattr(target, key) != defaults[key])
    fields = [*([] if of_integers else [f"data_type={target.data_type}"]), *(f"{key}={getattr(target, key)}" for key in known)]
    return f"{name_text(target.name)} {' '.join(fields)} description={quote(target.description)}"


def _layer(arguments: Arguments, draft: ProgramDraft) -> None:
    title, kind, macs, weights, *origin, choice, group = _LAYER.read(arguments)
    made = Origin(*origin) or Origin(made_by="assembler")  # one that says nothing is false
    draft.add_layer(LayerInfo(title, kind, made, macs, weights, tile_fills=(), choice=choice, group=group))


def _fills(arguments: Arguments, draft: ProgramDraft) -> None:
    if not draft.fills:
        raise line_error("E0716", ".fills stands after no .layer", arguments.directive.head.span)
    for word in arguments.rest():
        tile, size = word.split_at(":")
        draft.fills[-1].append((integer(tile), *two_sizes(size)))
    arguments.done()


def _layer_lines(program: Program) -> Iterator[str]:
    for layer in program.layers:
        yield _LAYER.line("layer", layer)
        fills = [f"{tile}:{rows}x{columns}" for tile, rows, columns in layer.tile_fills]
        count, matrices = layer.stack(program.target.mxu)
        for start in range(0, len(fills), _FILLS):
            yield f".fills {' '.join(fills[start : start + _FILLS])}{_stacked(count, matrices[start : start + _FILLS])}"


def _stacked(count: int, matrices: Sequence[int]) -> str:
    """A comment that says which of `count` matrices of a stack these tiles are of; empty if the layer has one matrix."""
    if count == 1:
        return ""
    first, last = matrices[0] + 1, matrices[-1] + 1
    return f" ; {f'matrix {first:,}' if first == last else f'matrices {first:,}–{last:,}'} of {count:,}"


def _host(arguments: Arguments, draft: ProgramDraft) -> None:
    title, kind, start, rows, half = _HOST.read(arguments)
    draft.add_buffer(HostBuffer(title, kind, draft.free_row if start is None else start, rows, half), arguments.directive)


def _port(arguments: Arguments, draft: ProgramDraft, kind: str, ports: str) -> None:
    title, shape, scale, zero_point, splits, blocks, format = _PORT.read(arguments)
    rows = (math.prod(shape[:-1]),) if splits is None else splits
    if blocks is None:
        sizes = [count * format.bytes_per_value for count in rows]  # the bytes of a value lie in rows of their own
        blocks = _own_buffers(arguments.directive, draft, kind, title, -(-shape[-1] // draft.target.mxu), sizes)
    point = 0 if zero_point is None else zero(zero_point, format)
    draft.lists[ports].append(Port(title, shape, scale, point, rows, blocks, format))


def _own_buffers(directive: Directive, draft: ProgramDraft, kind: str, title: str, columns: int, sizes: list[int]) -> tuple[int, ...]:
    """New host buffers for a port that names none: `x.0`, `x.1`, … after all others. For each part, of `sizes[part]` rows, there is one a
    column block."""
    if len(sizes) * columns > 2**16:
        raise line_error("E0716", f"{title} would need {len(sizes) * columns:,} host buffers", directive.head.span)
    each = (rows for rows in sizes for _ in range(columns))
    return tuple(draft.add_buffer(HostBuffer(f"{title}.{index}", kind, draft.free_row, rows), directive) for index, rows in enumerate(each))


def _expression(arguments: Arguments, draft: ProgramDraft) -> None:
    """`.expression 3 "max(a + b, 0.0)"`: they are numbered in order."""
    expected, number = len(draft.lists["expressions"]), arguments.next("a number")
    if integer(number) != expected:
        number.fail("E0716", f"expressions are numbered in order: this one is {expected}")
    draft.lists["expressions"].append(name(arguments.next("an expression in quotes")))
    arguments.done()


def _host_lines(program: Program) -> Iterator[str]:
    held = program.machine.holding(Contents.BUFFERS)
    directive = "host" if held is None or held.name == "host" else "memory"
    yield from (_HOST.line(directive, buffer) for buffer in program.host)
    yield from (f".expression {number} {quote(text)}" for number, text in enumerate(program.expressions))
    yield from (_PORT.line("input", port) for port in program.inputs)
    yield from (_PORT.line("output", port) for port in program.outputs)


def _tile(arguments: Arguments, draft: ProgramDraft) -> None:
    mxu, word, tiles = draft.target.mxu, arguments.take("sha256"), draft.lists["tiles"]
    arguments.done(block=word is None)
    if word is not None:
        data = read_digest(word, f"weight tile {sum(map(len, tiles)):,}", mxu * mxu, draft.known)
        tiles.append(np.frombuffer(data, np.int8).reshape(1, mxu, mxu))
    else:
        rows = read_matrix(arguments.directive, mxu, mxu)
        tiles.append(np.pad(rows, ((0, mxu - len(rows)), (0, 0)))[np.newaxis])


def _tiles(arguments: Arguments, draft: ProgramDraft) -> None:
    arguments.done(block=True)
    mxu, directive = draft.target.mxu, arguments.directive
    draft.lists["tiles"].append(np.frombuffer(read_bytes(directive, directive.block_text, mxu * mxu), np.int8).reshape(-1, mxu, mxu))


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


def _block(arguments: Arguments, draft: ProgramDraft) -> None:
    register = draft.machine.register
    if register is None:
        raise line_error("E0716", f"{draft.machine.name} has no parameter blocks", arguments.directive.head.span)
    text = BlockText(draft.machine, register, draft.target.mxu)
    draft.lists["blocks"].append(text.read(arguments, len(draft.lists["blocks"]), draft.known))


def _block_lines(program: Program, with_data: bool) -> Iterator[str]:
    register = program.machine.register
    if len(program.blocks) and register is not None:
        text = BlockText(program.machine, register, program.target.mxu)
        yield from ("", *(line for block in program.blocks for line in text.lines(block, with_data)))


def _constant(arguments: Arguments, draft: ProgramDraft) -> None:
    title, directive = name(arguments.next("a name")), arguments.directive
    arguments.done(block=True)
    rows = read_matrix(directive, draft.target.mxu, len(directive.block))
    draft.add_buffer(HostBuffer(title, "constant", draft.free_row, len(rows)), directive)
    draft.lists["constants"].append(rows)


def _constants(arguments: Arguments, draft: ProgramDraft) -> None:
    mxu, directive = draft.target.mxu, arguments.directive
    count, word = arguments.take("rows"), arguments.take("sha256")
    arguments.done(block=word is None)
    rows = integer(count) if count is not None else 0
    if word is None:
        data = read_bytes(directive, directive.block_text, mxu)
    else:
        data = read_digest(word, "the constant rows of host memory", rows * mxu, draft.known)
    draft.lists["constants"].append(np.frombuffer(data, np.int8).reshape(-1, mxu))


def _constant_lines(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.constants):
        data = np.ascontiguousarray(program.constants).view(np.uint8).reshape(-1).data
        short = f".constants rows={len(program.constants)} sha256={digest_of(data)}"
        yield from ("", *((".constants", *data_lines(data)) if with_data else (short,)))


def _text(arguments: Arguments, draft: ProgramDraft) -> None:
    which = arguments.directive.name
    draft.said[which] = _read_text(arguments) if which == "source_text" else _graph(arguments, draft)


def _host_step(arguments: Arguments, draft: ProgramDraft) -> None:
    (elements,) = _STEP.taken(arguments)
    draft.lists["host_steps"].append(HostWork(_graph(arguments, draft), (), (), elements))


def _step_ports(arguments: Arguments, draft: ProgramDraft) -> None:
    which = arguments.directive.name
    if not draft.lists["host_steps"]:
        raise line_error("E0716", f".{which} stands after no .host_step", arguments.directive.head.span)
    step, names = draft.lists["host_steps"][-1], tuple(name(word) for word in arguments.rest())
    arguments.done()
    more: dict[str, Any] = {which: getattr(step, which) + names}
    draft.lists["host_steps"][-1] = replace(step, **more)


def _graph(arguments: Arguments, draft: ProgramDraft) -> str:
    """A text that is a graph, with its data."""
    return expanded(_read_text(arguments), draft.known, arguments.directive.head.span)


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
    texts = {text: getattr(program, text) if with_data else abbreviated(getattr(program, text)) for text in ("prologue", "epilogue")}
    yield from _lines_of_text(".source_text", program.source_text)
    yield from _lines_of_text(".prologue", texts["prologue"])
    for index, step in enumerate(program.host_steps):
        yield from ("", f"; step {index}")
        yield from _block_or_quoted(_STEP.line("host_step", step), step.graph if with_data else abbreviated(step.graph))
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
        yield from (f"| {line}" if line else "|" for line in (text.split("\n") if text else ()))


_HANDLERS: Mapping[str, Handler] = MappingProxyType(
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
        "memory": _host,
        "expression": _expression,
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
