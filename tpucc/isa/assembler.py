"""From a listing to a program.

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

The listing of a compiled program says everything; in one that is written by hand most directives can be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from tpucc.diagnostics import Diagnostic, LineError, Origin, ProgramError, Source, Span, did_you_mean, printable
from tpucc.ir.digests import Known, without_repetition
from tpucc.isa.instructions import RECORD, OperandSpec, Records
from tpucc.isa.listing.directives import read_directives
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, Errors, Lines, read_lines
from tpucc.isa.listing.parsing import instruction_fields
from tpucc.isa.listing.parts import Parts
from tpucc.isa.listing.places import Places, place_of
from tpucc.isa.listing.stays import read_stays
from tpucc.isa.listing.words import Word, label_in, number_in
from tpucc.isa.program import LayerInfo, Program, Resident
from tpucc.numerics import AnyArray

_FIELDS = RECORD.names or ()


def assemble(text: str, name: str, known: Known | None = None) -> Program:
    """The program of a listing. Takes and raises what `read_listing` does."""
    return read_listing(text, name, known)[0]


def read_listing(text: str, name: str, known: Known | None = None) -> tuple[Program, Places]:
    """The program of a listing, and where its instructions stand, for messages about them.

    `name` (the file's) stands in messages and, without its ending, names a program that has no `.program`; `known` has the constants that
    stand in the listing by their digests.

    Raises `ProgramError` with up to 20 diagnostics, each at its place: E0710 unknown instruction, E0711 unknown operand or flag, E0712
    missing operand, E0713 bad value, E0714 given twice, E0715 unknown directive, E0716 malformed directive, E0717 bad data, E0718 name
    taken, E0760 and E0761 constants by digest that can't be had. What is read is well formed, not yet valid: see `verify`.
    """
    errors = Errors()
    lines = read_lines(text, errors)
    parts = read_directives(lines.directives, PurePath(name).stem, errors, known)
    if not parts.layers:
        parts.add_layer(LayerInfo("main", "program", Origin(made_by="assembler"), 0, (0, 0), ()))
    source = Source(name, text)
    stays = read_stays(lines.code, errors)
    instructions, layer_of, spans = _code(lines, parts, stays, errors)
    if errors.found:
        raise ProgramError(without_repetition(sorted(errors.found, key=_place)), source)
    program = Program(
        name=parts.name,
        source=parts.source,
        source_text=parts.texts.get("source_text", ""),
        target=parts.target,
        instructions=instructions,
        layer_of=layer_of,
        layers=parts.all_layers,
        tiles=parts.all_tiles,
        blocks=parts.all_blocks,
        host=tuple(parts.host),
        constants=parts.all_constants,
        inputs=tuple(parts.inputs),
        outputs=tuple(parts.outputs),
        prologue=parts.texts.get("prologue", ""),
        epilogue=parts.texts.get("epilogue", ""),
        residents=stays,
        lower_bound_rows=parts.lower_bound_rows,
        notes=tuple(parts.notes),
        host_steps=tuple(parts.host_steps),
        cores=parts.cores,
    )
    return program, Places(source, spans)


def _code(lines: Lines, parts: Parts, stays: Sequence[Resident], errors: Errors) -> tuple[Records, AnyArray, tuple[Span, ...]]:
    """The instructions, their layers and their places."""
    labels = Labels(parts.host, stays)
    layer, names = 0, {layer.name: index for index, layer in reversed(list(enumerate(parts.layers)))}
    rows: list[tuple[int, ...]] = []
    layers: list[int] = []
    spans: list[Span] = []
    for line in lines.code:
        if errors.full:
            break
        try:
            if not isinstance(line, Directive):
                spans.append(place_of(line))
                layers.append(layer)
                rows.append(_row(line, labels, len(spans) - 1))
            elif line.name == "for":
                layer = named_layer(line, names, len(parts.layers))
        except LineError as error:
            errors.found.append(error.diagnostic)
    return np.array(rows, RECORD), np.array(layers, np.uint32), tuple(spans)


def _row(line: tuple[Word, ...], labels: Labels, index: int) -> tuple[int, ...]:
    def resolve(operand: OperandSpec, word: Word) -> int:
        return labels.resolve(operand, word, index)

    fields = instruction_fields(line, resolve=resolve)
    return tuple([fields.get(field, 0) for field in _FIELDS])


def named_layer(directive: Directive, names: dict[str, int], count: int) -> int:
    """The index of the layer that `.for NAME` or `.for INDEX` names. Raises `LineError` E0713 or E0716."""
    arguments = Arguments(directive)
    word = arguments.next("a layer")
    arguments.done()
    index, label = number_in(word.text), label_in(word)
    if index is None and label is not None:
        index = names.get(label[0])
    if index is None or index >= count:
        word.fail("E0716", f"no layer is {printable(word.text)}", did_you_mean(word.text, names))
    return index


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    return (span.line, span.column) if span else (0, 0)
