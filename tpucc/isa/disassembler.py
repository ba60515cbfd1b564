"""From a program to its listing, which assembles back to an equal program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tpucc.diagnostics import Source, counted, printable
from tpucc.ir.digests import digest_of, without_data
from tpucc.ir.dtypes import DEFAULT_FORMAT
from tpucc.ir.textdata import quote
from tpucc.isa.fields import well_formed
from tpucc.isa.listing.data import READABLE, block_lines, data_lines, matrix_lines
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.printing import instruction_texts, name_text, numbered, raw_text
from tpucc.isa.listing.stays import NO_STAYS, StayLines, stay_lines
from tpucc.isa.listing.texts import text_lines
from tpucc.isa.program import LayerInfo, Port, Program
from tpucc.target import Target, load_target, number_fields, target_names

_FILLS = 8
"""Tiles of a layer on one line."""


def disassemble(program: Program, with_data: bool = True) -> str:
    """The listing of a program: what it is, its surroundings, its code by layers, its data. assemble(disassemble(p)) == p.

    Without data, what isn't shown as numbers stands by its digest: see `tpucc.ir.digests`.
    """
    count, tiles = counted(len(program.instructions), "instruction"), counted(len(program.tiles), "tile")
    before, after = surroundings(program, with_data)
    code = with_headings(program, program.layer_of.tolist(), code_lines(program), stay_lines(program))
    lines = [f"; {printable(program.name)} for {printable(program.target.name)}: {count}, {tiles}", *before, *code, *after]
    return "\n".join(lines) + "\n"


def surroundings(program: Program, with_data: bool) -> tuple[list[str], list[str]]:
    """The directives that stand before the code of a listing, and those after it: all of a program but its instructions and stays."""
    before = [line for part in (_head, _layers, _host) for line in part(program)]
    return before, [line for part in (_blocks, _tiles, _constants, _texts) for line in part(program, with_data)]


def code_lines(program: Program) -> list[str]:
    """The instructions alone, one line each; a record that is no instruction as its bytes."""
    records = program.instructions
    good = well_formed(records)
    texts = Labels(program.host, program.residents).texts
    lines = np.array([""] * len(records), object)
    indices = np.flatnonzero(good)
    lines[indices] = instruction_texts(records[indices], texts=lambda operand, rows, values: texts(operand, indices[rows], values))
    for index in np.flatnonzero(~good).tolist():
        lines[index] = raw_text(records[index : index + 1])
    return [str(line) for line in lines]


def _head(program: Program) -> Iterator[str]:
    yield f".program {name_text(program.name)}"
    yield f".target {_target(program.target)}"
    if program.cores != 1:
        yield f".cores {program.cores}"
    if program.source:
        yield f".source {name_text(program.source)}"
    if program.lower_bound_rows:
        yield f".lower_bound {program.lower_bound_rows}"
    for note in program.notes:
        yield f".note {quote(note)}"


def _target(target: Target) -> str:
    """A built-in target's name; another one's numbers."""
    if target.name in target_names() and load_target(target.name) == target:
        return name_text(target.name)
    fields = (f"{key}={getattr(target, key)}" for key in number_fields())
    return f"{name_text(target.name)} {' '.join(fields)} description={quote(target.description)}"


def _layers(program: Program) -> Iterator[str]:
    yield ""
    for layer in program.layers:
        yield _layer(layer)
        for start in range(0, len(layer.tile_fills), _FILLS):
            fills = layer.tile_fills[start : start + _FILLS]
            yield ".fills " + " ".join(f"{tile}:{rows}x{columns}" for tile, rows, columns in fills)


def _layer(layer: LayerInfo) -> str:
    origin = layer.origin
    words = [f".layer {name_text(layer.name)} {name_text(layer.kind)}"]
    if layer.macs:
        words.append(f"macs={layer.macs}")
    if layer.weights != (0, 0):
        words.append(f"weights={layer.weights[0]}x{layer.weights[1]}")
    words += [f"{key}=[{' '.join(map(str, spans))}]" for key, spans in (("at", origin.spans), ("calls", origin.calls)) if spans]
    words += [f"{key}={quote(text)}" for key, text in (("made_by", origin.made_by), ("choice", layer.choice)) if text]
    return " ".join(words)


def _host(program: Program) -> Iterator[str]:
    yield ""
    for buffer in program.host:
        yield f".host {name_text(buffer.name)} {buffer.kind} start={buffer.start} rows={buffer.rows}"
    for port in program.inputs:
        yield _port(".input", port)
    for port in program.outputs:
        yield _port(".output", port)


def _port(directive: str, port: Port) -> str:
    shape = "x".join(map(str, port.shape))
    format = "" if port.format == DEFAULT_FORMAT else f" type={port.format.name}"
    held = f"scale={port.scale!r} zero={port.zero_point}"
    splits, blocks = (" ".join(map(str, numbers)) for numbers in (port.splits, port.blocks))
    return f"{directive} {name_text(port.name)} {shape} {held} splits=[{splits}] blocks=[{blocks}]{format}"


def with_headings(program: Program, layers: Iterable[int], lines: Sequence[str], stays: StayLines = NO_STAYS) -> Iterator[str]:
    """The lines of the instructions, a heading wherever the layer changes, the stays where they begin and end."""
    names = Counter(layer.name for layer in program.layers)
    heads = [_heading(program, index, names) for index in range(len(program.layers))]
    previous = -1
    yield from stays.head
    for index, (layer, line) in enumerate(zip(layers, lines, strict=True)):
        if layer != previous:
            yield from ("", heads[layer] if layer < len(heads) else f".for {layer}")
            previous = layer
        yield from stays.before.get(index, ())
        yield numbered(line, index)
        yield from stays.after.get(index, ())


def _heading(program: Program, index: int, names: Counter[str]) -> str:
    """`.for fc1 ; line 9: h = relu(dense(x, 128, "fc1"))`; a layer whose name another one has goes by number."""
    layer = program.layers[index]
    unique, line = names[layer.name] == 1, layer.origin.line
    text = Source(program.source, program.source_text).line(line).strip() if line and program.source_text else ""
    comments = [] if unique else [printable(layer.name)]
    if line:
        comments.append(f"line {line}" + (f": {printable(text)}" if text else ""))
    head = f".for {name_text(layer.name) if unique else index}"
    return f"{head} ; {', '.join(comments)}" if comments else head


def _blocks(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.blocks):
        yield ""
    for block in program.blocks:
        yield from block_lines(block, with_data)


def _tiles(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.tiles):
        yield ""
    if program.target.mxu <= READABLE:
        for tile in program.tiles:
            yield from (".tile", *matrix_lines(tile))
    elif not with_data:
        yield from _tile_digests(program)
    elif len(program.tiles):
        yield from (".tiles", *data_lines(program.tiles.tobytes()))


def _tile_digests(program: Program) -> Iterator[str]:
    """A line for each tile, and in words whose it is."""
    fills = {tile: f" ; {tile}: {printable(layer.name)}, {k}x{n}" for layer in program.layers for tile, k, n in layer.tile_fills}
    for index, tile in enumerate(program.tiles):
        yield f".tile sha256={digest_of(tile.tobytes())}{fills.get(index, '')}"


def _constants(program: Program, with_data: bool) -> Iterator[str]:
    if len(program.constants):
        data = program.constants.tobytes()
        short = f" rows={len(program.constants)} sha256={digest_of(data)}"
        yield from ("", *((".constants", *data_lines(data)) if with_data else (f".constants{short}",)))


def _texts(program: Program, with_data: bool) -> Iterator[str]:
    shown = _as_it_is if with_data else without_data
    yield from _text("source_text", program.source_text)
    yield from _text("prologue", shown(program.prologue))
    for number, step in enumerate(program.host_steps):
        yield from ("", f"; step {number}", *text_lines(f".host_step elements={step.elements}", shown(step.graph)))
        yield from (
            f".{name} {' '.join(map(name_text, ports))}" for name, ports in (("reads", step.reads), ("writes", step.writes)) if ports
        )
    yield from _text("epilogue", shown(program.epilogue))


def _as_it_is(text: str) -> str:
    return text


def _text(name: str, text: str) -> Iterator[str]:
    if text:
        yield from ("", *text_lines(f".{name}", text))
