"""From a listing to a program, and back: `assemble(disassemble(p), name) == p`, where `name` is of no matter.

```
.target tiny
.input x 8x4 scale=0.1 zero=3
.output y 8x4 scale=0.2
.tile
| 1 2 3 4
| 5 6 7 8
.block multiplier=0.25

    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows=8
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows=8, switch
    set_configuration block=0
    synchronize engine=activation wait=matrix
    activate acc=0 ub=8 inner=8
    synchronize engine=host wait=activation
    write_host_memory ub=8 host=y.0 rows=8
    halt
```

A line that begins with a dot is a directive, and lines with a bar after it are its data; `x.0` is the host memory of `x`'s first columns.
Instructions after `.for NAME` are a layer's. A *stay* is the time that a value has rows of the unified buffer: see `listing/stays.py`.

The listing of a compiled program says everything; in one that is written by hand most directives can be left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from tpucc.diagnostics import Origin, Source, Span, counted, did_you_mean, printable
from tpucc.ir.codec import Errors
from tpucc.ir.digests import Known
from tpucc.isa.fields import well_formed
from tpucc.isa.listing.directives import read_directives, surroundings, unknown
from tpucc.isa.listing.instructions import instruction_fields, instruction_texts, numbered, raw_text, records_of
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, ListingSpans, directive_spans, read_lines
from tpucc.isa.listing.stays import NO_STAYS, StayLines, is_stay, read_stays, stay_lines
from tpucc.isa.listing.words import Word, label_in, name_text, number_in, place_of
from tpucc.isa.program import LayerInfo, Program
from tpucc.machine.instruction import RECORD, Records
from tpucc.machine.machine import Machine

ReadFields = Callable[[tuple[Word, ...], int], Mapping[str, int]]
"""The fields of an instruction, from the words of its line and the instruction's number, counted from 0. Raises `LineError`."""


def assemble(text: str, name: str, known: Known | None = None, machine: Machine | None = None) -> Program:
    """The program of a listing. Takes and raises what `read_listing` does."""
    return read_listing(text, name, known, machine)[0]


def read_listing(text: str, name: str, known: Known | None = None, machine: Machine | None = None) -> tuple[Program, ListingSpans]:
    """The program of a listing for a machine, and where its instructions stand, for messages about them. Where no machine is given, it is
    the one of the listing's target.

    `name` is the file's: messages show it, and a listing without `.program` is named after it, without its ending. `known` has the
    constants for which the listing has only digests.

    Raises `ProgramError` with up to 20 diagnostics, each at its place: E0710 unknown instruction, E0711 unknown operand or flag, E0712
    missing operand, E0713 bad value, E0714 given twice, E0715 unknown directive, E0716 malformed directive, E0717 bad data, E0718 name
    taken, E0760 and E0761 constants by digest that aren't known. The result is well formed, but not yet checked: see `verify`.
    """
    errors = Errors()
    lines = read_lines(text, errors)
    draft = read_directives(lines.directives, PurePath(name).stem, errors, known, machine)
    if not draft.fills:
        draft.add_layer(LayerInfo("main", "program", Origin(made_by="assembler")))
    stays = read_stays(lines.code, errors)
    machine = draft.machine
    labels = Labels(machine, draft.lists["host"], stays)

    def fields(line: tuple[Word, ...], index: int) -> Mapping[str, int]:
        return instruction_fields(machine, line, resolve=lambda operand, word: labels.resolve(operand, word, index))

    code = [line for line in lines.code if not is_stay(line)]
    records, layers, spans = read_code(code, draft.lists["layers"], fields, RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    program = replace(draft.program(), instructions=records, layer_of=np.array(layers, np.uint32), residents=stays)
    return program, ListingSpans(source, spans, directive_spans(lines), exact=True)


def machine_of(text: str) -> Machine:
    """The machine of a listing's target; the default one where the listing names no target that can be read."""
    errors = Errors()
    targets = [each for each in read_lines(text, errors).directives if each.name == "target"]
    return read_directives(targets, "", errors, None, None).machine


def read_code(
    code: Sequence[tuple[Word, ...] | Directive], layers: Sequence[LayerInfo], read: ReadFields, dtype: np.dtype[np.void], errors: Errors
) -> tuple[Records, list[int], tuple[Span, ...]]:
    """The instructions of a text (a listing, or a tile program's), the index of each one's layer, and where each stands.

    `code` has their lines and the `.for` lines between them; before the first of these, instructions are layer 0's. `read` reads an
    instruction into the fields of `dtype`. Lines that can't be read are reported to `errors`: then the results don't fit each other.
    """
    names = {layer.name: index for index, layer in reversed(list(enumerate(layers)))}
    rows: list[Mapping[str, int]] = []
    owners: list[int] = []
    spans: list[Span] = []
    layer = 0

    def one(line: tuple[Word, ...] | Directive) -> None:
        nonlocal layer
        if isinstance(line, Directive):
            layer = _named_layer(line, names, len(layers))
        else:
            spans.append(place_of(line))
            rows.append(read(line, len(spans) - 1))
            owners.append(layer)

    for line in code:
        errors.attempt(one, line)
    return records_of(rows, dtype), owners, tuple(spans)


def _named_layer(directive: Directive, names: Mapping[str, int], count: int) -> int:
    """The index of the layer that `.for NAME` or `.for INDEX` names, the first one of this name. Raises `LineError` E0713 to E0716."""
    if directive.name != "for":
        raise unknown(directive)
    arguments = Arguments(directive)
    word = arguments.next("a layer")
    arguments.done()
    index, label = number_in(word.text), label_in(word)
    if index is None and label is not None and not label[1]:  # a layer has no rows that `fc1+8` could mean
        index = names.get(label[0])
    if index is None or index >= count:
        word.fail("E0716", f"no layer is {printable(word.text)}", did_you_mean(word.text, names))
    return index


def disassemble(program: Program, with_data: bool = True) -> str:
    """The listing of a program: what it is, its surroundings, its code by layers, its data. `assemble` makes the same program of it.

    Without data, constants that aren't shown as numbers are left out, and their digests stand for them (see `tpucc.ir.digests`):
    `assemble` then needs these constants as `known`.
    """
    count, tiles = counted(len(program.instructions), "instruction"), counted(len(program.tiles), "tile")
    before, after = surroundings(program, with_data)
    code = with_headings(program, program.layer_of.tolist(), code_lines(program), stay_lines(program))
    lines = [f"; {printable(program.name)} for {printable(program.target.name)}: {count}, {tiles}", *before, *code, *after]
    return "\n".join(lines) + "\n"


def code_lines(program: Program) -> list[str]:
    """The instructions alone, one line each, without numbers; a record that isn't a well-formed instruction as its bytes."""
    records = program.instructions
    good = well_formed(program.machine, records)
    texts = Labels(program.machine, program.host, program.residents).texts
    indices = np.flatnonzero(good)
    found = iter(
        instruction_texts(program.machine, records[indices], texts=lambda operand, rows, values: texts(operand, indices[rows], values))
    )
    return [next(found) if fits else raw_text(records[index : index + 1]) for index, fits in enumerate(good.tolist())]


def with_headings(program: Program, layers: Iterable[int], lines: Sequence[str], stays: StayLines = NO_STAYS) -> Iterator[str]:
    """The `lines` of the instructions with their numbers, a heading wherever the layer changes, the stays where they begin and end.

    `layers` has the index of each instruction's layer.
    """
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
    """`.for fc1 ; line 9: h = relu(dense(x, 128, "fc1"))`; where another layer has the same name, `.for 3 ; fc1, line 9: …`. `names` counts
    the layers of each name."""
    layer = program.layers[index]
    unique, line = names[layer.name] == 1, layer.origin.line
    text = Source(program.source, program.source_text).line(line).strip() if line and program.source_text else ""
    comments = [] if unique else [printable(layer.name)]
    if line:
        comments.append(f"line {line}" + (f": {printable(text)}" if text else ""))
    head = f".for {name_text(layer.name) if unique else index}"
    return f"{head} ; {', '.join(comments)}" if comments else head
