"""The directives of a listing: everything of a program but its instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import LineError, Origin, UsageError, did_you_mean, listed, printable
from tpucc.ir.digests import Known, Missing, with_data
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat
from tpucc.isa.listing.data import read_block, read_bytes, read_digest, read_matrix
from tpucc.isa.listing.lines import IN_CODE, Arguments, Directive, Errors
from tpucc.isa.listing.parts import Parts
from tpucc.isa.listing.texts import read_text
from tpucc.isa.listing.values import integers, number, real, sizes, spans, zero
from tpucc.isa.listing.words import Word, integer, line_error, name
from tpucc.isa.program import KINDS, HostBuffer, HostWork, LayerInfo, Port
from tpucc.target import PROGRAM_SIZES, Target, load_target, number_fields, target_names

DEFAULT_TARGET = "tpu_v1"


def read_directives(directives: list[Directive], stem: str, errors: Errors, known: Known | None = None) -> Parts:
    """All directives of a listing; the target first, since the others' sizes depend on it. `stem` is the name of a program without one.

    `known` has the constants that stand in the listing by their digests.
    """
    parts = Parts(stem, load_target(DEFAULT_TARGET), known)
    ordered = sorted(directives, key=lambda directive: directive.name != "target")
    for directive in ordered:
        if not errors.full:
            with errors:
                _apply(directive, parts)
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


def _program(arguments: Arguments, parts: Parts) -> None:
    parts.name = arguments.name("a name")
    stage = arguments.take("stage")
    arguments.done()
    if stage is not None and stage.text != "tile":
        stage.fail("E0716", f"{printable(stage.text)} is no stage; the text of a tile program says stage=tile")


def _source(arguments: Arguments, parts: Parts) -> None:
    parts.source = arguments.name("a file name")
    arguments.done()


def _target(arguments: Arguments, parts: Parts) -> None:
    word = arguments.next("a target")
    if not arguments.keyed:
        parts.target = _built_in(word)
        arguments.done()
        return
    fields: dict[str, object] = {"name": name(word), "description": arguments.text("description")}
    required = {f.name for f in msgspec.structs.fields(Target) if f.required} | {*PROGRAM_SIZES, "host_bandwidth"}
    for key in number_fields():
        value = arguments.need(key) if key in required else arguments.take(key)
        fields |= {} if value is None else {key: number(value)}
    arguments.done()
    try:
        parts.target = msgspec.convert(fields, Target, strict=True)
    except msgspec.ValidationError as error:
        raise line_error("E0716", f"this is no target: {error}", arguments.directive.head.span) from None
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


def _cores(arguments: Arguments, parts: Parts) -> None:
    parts.cores = integer(arguments.next("a number of cores"))
    arguments.done()


def _lower_bound(arguments: Arguments, parts: Parts) -> None:
    parts.lower_bound_rows = integer(arguments.next("a number of rows"))
    arguments.done()


def _note(arguments: Arguments, parts: Parts) -> None:
    parts.notes.append(arguments.name("a text in quotes"))
    arguments.done()


def _layer(arguments: Arguments, parts: Parts) -> None:
    title, kind = arguments.name("a name"), arguments.name("a kind")
    origin = Origin(spans(arguments.take("at")), spans(arguments.take("calls")), arguments.text("made_by"))
    macs, weights = arguments.integer("macs", 0), arguments.take("weights")
    size = (0, 0) if weights is None else sizes(weights, 2)
    choice = arguments.text("choice")
    arguments.done()
    parts.add_layer(LayerInfo(title, kind, origin or Origin(made_by="assembler"), macs, (size[0], size[1]), (), choice))


def _fills(arguments: Arguments, parts: Parts) -> None:
    if not parts.layers:
        raise line_error("E0716", ".fills stands after no .layer", arguments.directive.head.span)
    for word in arguments.rest():
        tile, _, size = word.text.partition(":")
        middle = word.start + len(tile)
        rows, columns = sizes(Word("", size, word.line, middle + 1, word.end), 2)
        parts.fills[-1].append((integer(Word("", tile, word.line, word.start, middle)), rows, columns))
    arguments.done()


def _host(arguments: Arguments, parts: Parts) -> None:
    title, word = arguments.name("a name"), arguments.next("a kind")
    if word.text not in KINDS:
        word.fail("E0716", f"{printable(word.text)} is no kind of host buffer", f"the kinds are {listed(KINDS)}")
    start, rows = arguments.integer("start", parts.free_row), arguments.integer("rows")
    arguments.done()
    _add_buffer(arguments, parts, HostBuffer(title, word.text, start, rows))


def _add_buffer(arguments: Arguments, parts: Parts, buffer: HostBuffer) -> int:
    try:
        return parts.add_buffer(buffer)
    except ValueError as error:
        raise line_error("E0718", str(error), arguments.directive.head.span) from None


def _port(kind: str) -> Callable[[Arguments, Parts], None]:
    def handler(arguments: Arguments, parts: Parts) -> None:
        title, shape = arguments.name("a name"), sizes(arguments.next("a shape such as 8x4"))
        word = arguments.take("scale")
        scale = 1.0 if word is None else real(word)
        zero_point, splits, blocks = arguments.take("zero"), arguments.take("splits"), arguments.take("blocks")
        rows = (math.prod(shape[:-1]),) if splits is None else integers(splits)
        format = _format(arguments.take("type"))
        arguments.done()
        stretches = tuple(count * format.bytes_per_value for count in rows)
        held = _own_buffers(arguments, parts, kind, title, shape[-1], stretches) if blocks is None else integers(blocks)
        parts.ports[kind].append(Port(title, shape, scale, 0 if zero_point is None else zero(zero_point, format), rows, held, format))

    return handler


def _format(word: Word | None) -> DeviceFormat:
    if word is None:
        return DEFAULT_FORMAT
    if word.text not in DEVICE_FORMATS:
        word.fail("E0713", f"{printable(word.text)} is no type of a port", f"the types are {listed([*DEVICE_FORMATS])}")
    return DEVICE_FORMATS[word.text]


def _own_buffers(arguments: Arguments, parts: Parts, kind: str, title: str, columns: int, rows: tuple[int, ...]) -> tuple[int, ...]:
    """New host buffers for a port that names none: `x.0`, `x.1`, … one for each part and column block, after all others."""
    blocks = -(-columns // parts.target.mxu)
    if len(rows) * blocks > 2**16:
        raise line_error("E0716", f"{title} would need {len(rows) * blocks:,} host buffers", arguments.directive.head.span)
    numbers = count()
    return tuple(
        _add_buffer(arguments, parts, HostBuffer(f"{title}.{next(numbers)}", kind, parts.free_row, part))
        for part in rows
        for _ in range(blocks)
    )


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
    mxu = parts.target.mxu
    parts.tiles.append(
        np.frombuffer(read_bytes(arguments.directive, arguments.directive.block_text, mxu * mxu), np.int8).reshape(-1, mxu, mxu)
    )


def _block(arguments: Arguments, parts: Parts) -> None:
    parts.blocks.append(read_block(arguments.directive, parts.target.mxu, len(parts.blocks), parts.known))


def _constant(arguments: Arguments, parts: Parts) -> None:
    title = arguments.name("a name")
    arguments.done(block=True)
    rows = read_matrix(arguments.directive, parts.target.mxu, len(arguments.directive.block))
    _add_buffer(arguments, parts, HostBuffer(title, "constant", parts.free_row, len(rows)))
    parts.constants.append(rows)


def _constants(arguments: Arguments, parts: Parts) -> None:
    mxu, rows, word = parts.target.mxu, arguments.integer("rows", 0), arguments.take("sha256")
    arguments.done(block=word is None)
    if word is None:
        data = read_bytes(arguments.directive, arguments.directive.block_text, mxu)
    else:
        data = read_digest(word, "the constant rows of host memory", rows * mxu, parts.known)
    parts.constants.append(np.frombuffer(data, np.int8).reshape(-1, mxu))


def _text(arguments: Arguments, parts: Parts) -> None:
    name = arguments.directive.name
    parts.texts[name] = read_text(arguments) if name == "source_text" else _graph(arguments, parts)


def _graph(arguments: Arguments, parts: Parts) -> str:
    """A text that is a graph, with its data."""
    try:
        return with_data(read_text(arguments), parts.known)
    except Missing as error:
        raise line_error(error.code, error.message, arguments.directive.head.span, error.help) from None


def _host_step(arguments: Arguments, parts: Parts) -> None:
    elements = arguments.integer("elements", 0)
    parts.host_steps.append(HostWork(_graph(arguments, parts), (), (), elements))


def _step_ports(which: str) -> Callable[[Arguments, Parts], None]:
    def handler(arguments: Arguments, parts: Parts) -> None:
        if not parts.host_steps:
            raise line_error("E0716", f".{which} stands after no .host_step", arguments.directive.head.span)
        step, names = parts.host_steps[-1], tuple(name(word) for word in arguments.rest())
        arguments.done()
        more: dict[str, Any] = {which: getattr(step, which) + names}
        parts.host_steps[-1] = replace(step, **more)

    return handler


TEXTS = ("source_text", "prologue", "epilogue")
_HANDLERS: Mapping[str, Callable[[Arguments, Parts], None]] = MappingProxyType(
    {
        "program": _program,
        "target": _target,
        "source": _source,
        "cores": _cores,
        "lower_bound": _lower_bound,
        "note": _note,
        "layer": _layer,
        "fills": _fills,
        "host": _host,
        "input": _port("input"),
        "output": _port("output"),
        "constant": _constant,
        "host_step": _host_step,
        "reads": _step_ports("reads"),
        "writes": _step_ports("writes"),
        "block": _block,
        "tile": _tile,
        "tiles": _tiles,
        "constants": _constants,
        **dict.fromkeys(TEXTS, _text),
    }
)
