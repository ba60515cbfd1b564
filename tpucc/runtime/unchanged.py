"""The parts that an edited text may not change: the model's name, its inputs and outputs, its weights, and what the host computes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, ProgramError, Source, Span, counted, printable
from tpucc.ir.attributes import non_default
from tpucc.ir.constants import Constant
from tpucc.ir.digests import CHANGED
from tpucc.ir.graph import Graph
from tpucc.isa.program import Port, Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import AnyArray

OTHER_MODEL, OTHER_PORTS, OTHER_TARGET, OTHER_HOST = "E0762", "E0763", "E0764", "E0765"
Meanings = Mapping[str, str]
"""What is said of inputs or outputs, by name; ranges don't matter."""


def require_same_model(name: str, target: str, like: Program, text: Source) -> None:
    """Raises `ProgramError`: E0762 when the text is of another model, E0764 when it is for another machine. It may say neither."""
    if target and target != like.target.name:
        raise ProgramError(_other_target(target, like), text)
    if name and name != like.name:
        message = f"the text is of the model {printable(name)}, but the one that it is to go on from is {printable(like.name)}"
        raise ProgramError(Diagnostic(OTHER_MODEL, message, help=("give the model that the text was printed from",)), text)


def require_same_graph(graph: Graph, before: Graph, text: Source) -> None:
    """Raises `ProgramError`: E0763 inputs or outputs that aren't those of `before`, E0761 a constant whose value was changed."""
    found = [
        *_crossing("input", _inputs(graph), _inputs(before), text),
        *_crossing("output", _outputs(graph), _outputs(before), text),
        *_graph_constants(graph, before, text),
    ]
    if found:
        raise ProgramError(found, text)


def require_same_surroundings(made: TileProgram | Program, like: Program, text: Source) -> None:
    """Raises `ProgramError`: E0763 ports, E0764 the machine, E0765 the host's part, E0761 weights that aren't those of `like`."""
    found = [] if made.target == like.target else [_other_target(made.target.name, like)]
    for kind, mine, theirs in (("input", made.inputs, like.inputs), ("output", made.outputs, like.outputs)):
        found += _crossing(kind, _ports(mine), _ports(theirs), text)
    if isinstance(made, Program):
        found += _host_part(made, like, text)
    found = found or [*_tiles_and_blocks(made, like), *_rows(made, like)]
    if found:
        raise ProgramError(found, text)


def _inputs(graph: Graph) -> Meanings:
    return {node.name: node.type.brief for node in graph.inputs}


def _outputs(graph: Graph) -> Meanings:
    return {output.name: graph[output.node].type.brief for output in graph.outputs}


def _ports(ports: tuple[Port, ...]) -> Meanings:
    """The tensors that cross between host and device; how they are cut into buffers is free."""
    return {port.name: f"{port.format.name}{list(port.shape)} scale {port.scale!r} zero {port.zero_point}" for port in ports}


def _crossing(kind: str, found: Meanings, expected: Meanings, text: Source) -> Iterator[Diagnostic]:
    """Inputs or outputs against those that there were."""
    yield from _names(kind, found.keys(), expected.keys(), text)
    for name in found.keys() & expected.keys():
        if found[name] != expected[name]:
            yield _changed(f"the {kind} {printable(name)} is {found[name]} here, but {expected[name]} in the model", text, name)


def _names(kind: str, found: Iterable[str], expected: Iterable[str], text: Source) -> Iterator[Diagnostic]:
    yield from (_changed(f"the model has no {kind} {printable(name)}", text, name) for name in sorted(set(found) - set(expected)))
    yield from (_changed(f"the {kind} {printable(name)} of the model is missing", text) for name in sorted(set(expected) - set(found)))


def _changed(message: str, text: Source, name: str = "", code: str = OTHER_PORTS) -> Diagnostic:
    help = "the text may change how the model is computed, but not the model: stages before this one stay as they are"
    return Diagnostic(code, message, _line_of(text, name), (help,))


def _line_of(text: Source, name: str) -> tuple[Label, ...]:
    """The line that defines a name: `x = input …`, `.input x …`."""
    match = re.search(rf"(?m)^[ \t]*(\.(?:input|output) {re.escape(name)}(?= )|{re.escape(name)}(?= = ))", text.text) if name else None
    if match is None:
        return ()
    line, column = text.text.count("\n", 0, match.start(1)) + 1, match.start(1) - match.start() + 1
    return (Label(Span(line, column, line, column + len(match[1]))),)


def _graph_constants(graph: Graph, before: Graph, text: Source) -> Iterator[Diagnostic]:
    for node in graph:
        if node.name not in before.by_name:
            continue
        known = dict(non_default(before[node.name].attributes))
        for key, value in non_default(node.attributes):
            if isinstance(value, Constant) and isinstance(known.get(key), Constant) and value != known[key]:
                yield _changed(f"the constant of {printable(node.name)} isn't the model's", text, node.name, CHANGED)


def _other_target(mine: str, like: Program) -> Diagnostic:
    theirs = like.target.name
    what = f"{mine}, but the model is for {theirs}" if mine != theirs else f"a {mine} with other numbers than the model's"
    return Diagnostic(OTHER_TARGET, f"the text is for {printable(what)}", help=("compile the model for this machine: --target, --set",))


def _host_part(made: Program, like: Program, text: Source) -> Iterator[Diagnostic]:
    parts = {
        "prologue": (made.prologue, like.prologue),
        "epilogue": (made.epilogue, like.epilogue),
        "number of cores": (made.cores, like.cores),
        "number of host steps": (len(made.host_steps), len(like.host_steps)),
        **{f"host step {k}": pair for k, pair in enumerate(zip(made.host_steps, like.host_steps, strict=False))},
    }
    for what, (found, expected) in parts.items():
        if found != expected:
            yield _changed(f"the {what} isn't the model's", text, code=OTHER_HOST)


def _tiles_and_blocks(made: TileProgram | Program, like: Program) -> Iterator[Diagnostic]:
    owners = {tile: f", of {printable(layer.name)}," for layer in made.layers for tile, _, _ in layer.tile_fills}
    for what, mine, theirs, of in (("weight tile", made.tiles, like.tiles, owners), ("parameter block", made.blocks, like.blocks, {})):
        known = {one.tobytes() for one in theirs}
        for index, one in enumerate(mine):
            if one.tobytes() not in known:
                yield _constant(f"{what} {index:,}{of.get(index, '')}")


def _rows(made: TileProgram | Program, like: Program) -> Iterator[Diagnostic]:
    mine, theirs = _constant_rows(made), _constant_rows(like)
    for name, rows in mine.items():
        if name not in theirs or not np.array_equal(rows, theirs[name]):
            yield _constant(f"the constant {printable(name)}, {counted(len(rows), 'row')},")


def _constant_rows(made: TileProgram | Program) -> dict[str, AnyArray]:
    """The rows of each host buffer of constants."""
    buffers = [buffer for buffer in made.host if buffer.kind == "constant"]
    ends = np.cumsum([buffer.rows for buffer in buffers]).tolist()
    return {buffer.name: made.constants[end - buffer.rows : end] for buffer, end in zip(buffers, ends, strict=True)}


def _constant(what: str) -> Diagnostic:
    return Diagnostic(CHANGED, f"{what} is none of the model's: its values were changed", help=("a text has the weights of its model",))
