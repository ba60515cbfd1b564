"""The parts that an edited text may not change: the model's name, its inputs and outputs, its weights, and what the host computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, ProgramError, Source, counted, printable
from tpucc.ir import Constant, Graph
from tpucc.ir.attributes import non_default
from tpucc.ir.digests import CHANGED
from tpucc.isa.program import Port, Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import AnyArray

OTHER_MODEL, OTHER_PORTS, OTHER_TARGET, OTHER_HOST = "E0762", "E0763", "E0764", "E0765"
_HOST_PARTS = {"cores": "number of cores", "host_step": "host step"}
Meanings = Mapping[str, str]
"""What is said of inputs or outputs, by name; ranges don't matter."""


class Located(Protocol):
    """Where the parts of a text stand."""

    @property
    def source(self) -> Source: ...
    def of(self, kind: str, name: str) -> tuple[Label, ...]: ...


@dataclass(frozen=True, slots=True)
class Said:
    """A name that a text says, and where; empty when it says none."""

    name: str = ""
    place: tuple[Label, ...] = ()


def require_same_model(model: Said, target: Said, like: Program, text: Source) -> None:
    """Raises `ProgramError`: E0762 when the text is of another model, E0764 when it is for another machine. It may say neither."""
    if target.name and target.name != like.target.name:
        raise ProgramError(_other_target(target, like), text)
    if model.name and model.name != like.name:
        message = f"the text is of the model {printable(model.name)}, but the one that it is to go on from is {printable(like.name)}"
        raise ProgramError(Diagnostic(OTHER_MODEL, message, model.place, help=("give the model that the text was printed from",)), text)


def require_same_graph(graph: Graph, before: Graph, text: Located) -> None:
    """Raises `ProgramError`: E0763 inputs or outputs that aren't those of `before`, E0761 a constant whose value was changed."""
    found = [
        *_crossing("input", _inputs(graph), _inputs(before), text),
        *_crossing("output", _outputs(graph), _outputs(before), text),
        *_graph_constants(graph, before, text),
    ]
    if found:
        raise ProgramError(found, text.source)


def require_same_surroundings(made: TileProgram | Program, like: Program, text: Located) -> None:
    """Raises `ProgramError`: E0763 ports, E0764 the machine, E0765 the host's part, E0761 weights that aren't those of `like`."""
    found = [] if made.target == like.target else [_other_target(Said(made.target.name, text.of("target", "")), like)]
    for kind, mine, theirs in (("input", made.inputs, like.inputs), ("output", made.outputs, like.outputs)):
        found += _crossing(kind, _ports(mine), _ports(theirs), text)
    if isinstance(made, Program):
        found += _host_part(made, like, text)
    found = found or [*_tiles_and_blocks(made, like, text), *_rows(made, like, text)]
    if found:
        raise ProgramError(found, text.source)


def _inputs(graph: Graph) -> Meanings:
    return {node.name: node.type.brief for node in graph.inputs}


def _outputs(graph: Graph) -> Meanings:
    return {output.name: graph[output.node].type.brief for output in graph.outputs}


def _ports(ports: tuple[Port, ...]) -> Meanings:
    """The tensors that cross between host and device; how they are cut into buffers is free."""
    return {port.name: f"{port.format.name}{list(port.shape)} scale {port.scale!r} zero {port.zero_point}" for port in ports}


def _crossing(kind: str, found: Meanings, expected: Meanings, text: Located) -> Iterator[Diagnostic]:
    """Inputs or outputs against those that there were."""
    yield from _names(kind, found.keys(), expected.keys(), text)
    for name in found.keys() & expected.keys():
        if found[name] != expected[name]:
            yield _changed(f"the {kind} {printable(name)} is {found[name]} here, but {expected[name]} in the model", text.of(kind, name))


def _names(kind: str, found: Iterable[str], expected: Iterable[str], text: Located) -> Iterator[Diagnostic]:
    for name in sorted(set(found) - set(expected)):
        yield _changed(f"the model has no {kind} {printable(name)}", text.of(kind, name))
    for name in sorted(set(expected) - set(found)):
        yield _changed(f"the {kind} {printable(name)} of the model is missing", text.of(kind, name))


def _changed(message: str, place: tuple[Label, ...], code: str = OTHER_PORTS) -> Diagnostic:
    help = "the text may change how the model is computed, but not the model: stages before this one stay as they are"
    return Diagnostic(code, message, place, (help,))


def _graph_constants(graph: Graph, before: Graph, text: Located) -> Iterator[Diagnostic]:
    for node in graph:
        if node.name not in before.by_name:
            continue
        known = dict(non_default(before[node.name].attributes))
        for key, value in non_default(node.attributes):
            if isinstance(value, Constant) and isinstance(known.get(key), Constant) and value != known[key]:
                yield _changed(f"the constant of {printable(node.name)} isn't the model's", text.of("node", node.name), CHANGED)


def _other_target(said: Said, like: Program) -> Diagnostic:
    mine, theirs = said.name, like.target.name
    what = f"{mine}, but the model is for {theirs}" if mine != theirs else f"a {mine} with other numbers than the model's"
    return Diagnostic(
        OTHER_TARGET, f"the text is for {printable(what)}", said.place, help=("compile the model for this machine: --target, --set",)
    )


def _host_part(made: Program, like: Program, text: Located) -> Iterator[Diagnostic]:
    steps = zip(made.host_steps, like.host_steps, strict=False)
    parts = {
        ("prologue", ""): (made.prologue, like.prologue),
        ("epilogue", ""): (made.epilogue, like.epilogue),
        ("cores", ""): (made.cores, like.cores),
        ("number of host steps", ""): (len(made.host_steps), len(like.host_steps)),
        **{("host_step", str(number)): pair for number, pair in enumerate(steps)},
    }
    for (kind, number), (found, expected) in parts.items():
        if found != expected:
            what = f"{_HOST_PARTS.get(kind, kind)} {number}".strip()
            yield _changed(f"the {what} isn't the model's", text.of(kind, number), OTHER_HOST)


def _tiles_and_blocks(made: TileProgram | Program, like: Program, text: Located) -> Iterator[Diagnostic]:
    owners = {tile: f", of {printable(layer.name)}," for layer in made.layers for tile, _, _ in layer.tile_fills}
    for kind, what, mine, theirs, of in (
        ("tile", "weight tile", made.tiles, like.tiles, owners),
        ("block", "parameter block", made.blocks, like.blocks, {}),
    ):
        numbers = {one.tobytes(): index for index, one in reversed(list(enumerate(theirs)))}
        for index, one in enumerate(mine):
            number, name = numbers.get(one.tobytes()), f"{what} {index:,}{of.get(index, '')}"
            if number is None:
                yield _constant(name, text.of(kind, str(index)))
            elif len(mine) == len(theirs) and one.tobytes() != theirs[index].tobytes():
                yield _constant(name, text.of(kind, str(index)), f"has the values of {what} {number:,} of the model")


def _rows(made: TileProgram | Program, like: Program, text: Located) -> Iterator[Diagnostic]:
    mine, theirs = _constant_rows(made), _constant_rows(like)
    for name, rows in mine.items():
        if name not in theirs or not np.array_equal(rows, theirs[name]):
            yield _constant(f"the constant {printable(name)}, {counted(len(rows), 'row')},", text.of("constants", ""))


def _constant_rows(made: TileProgram | Program) -> dict[str, AnyArray]:
    """The rows of each host buffer of constants."""
    buffers = [buffer for buffer in made.host if buffer.kind == "constant"]
    ends = np.cumsum([buffer.rows for buffer in buffers]).tolist()
    return {buffer.name: made.constants[end - buffer.rows : end] for buffer, end in zip(buffers, ends, strict=True)}


def _constant(what: str, place: tuple[Label, ...], fault: str = "is none of the model's: its values were changed") -> Diagnostic:
    return Diagnostic(CHANGED, f"{what} {fault}", place, ("a text has the weights of its model, each at its own number",))
