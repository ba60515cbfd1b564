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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from tpucc.diagnostics import Origin, Source, Span, did_you_mean, printable
from tpucc.ir.digests import Known
from tpucc.isa.instructions import RECORD, Records
from tpucc.isa.listing.directives import read_directives, unknown
from tpucc.isa.listing.instructions import instruction_fields, records_of
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, Errors, Places, read_lines
from tpucc.isa.listing.stays import is_stay, read_stays
from tpucc.isa.listing.words import Word, label_in, number_in, place_of
from tpucc.isa.program import LayerInfo, Program

ReadFields = Callable[[tuple[Word, ...], int], Mapping[str, int]]
"""The fields of an instruction, from the words of its line and its number. Raises `LineError`."""


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
    stays = read_stays(lines.code, errors)
    labels = Labels(parts.host, stays)

    def fields(line: tuple[Word, ...], index: int) -> Mapping[str, int]:
        return instruction_fields(line, resolve=lambda operand, word: labels.resolve(operand, word, index))

    code = [line for line in lines.code if not is_stay(line)]
    records, layers, spans = read_code(code, parts.layers, fields, RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    program = replace(parts.program, instructions=records, layer_of=np.array(layers, np.uint32), residents=stays)
    return program, Places(source, spans)


def read_code(
    code: Sequence[tuple[Word, ...] | Directive], layers: Sequence[LayerInfo], read: ReadFields, dtype: np.dtype[np.void], errors: Errors
) -> tuple[Records, list[int], tuple[Span, ...]]:
    """The instructions of a text whose layers are known, the layer of each, and where each stands.

    Between them stand `.for` lines. Lines that can't be read are reported.
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
    """The index of the layer that `.for NAME` or `.for INDEX` names. Raises `LineError` E0713, E0715 or E0716."""
    if directive.name != "for":
        raise unknown(directive)
    arguments = Arguments(directive)
    word = arguments.next("a layer")
    arguments.done()
    index, label = number_in(word.text), label_in(word)
    if index is None and label is not None:
        index = names.get(label[0])
    if index is None or index >= count:
        word.fail("E0716", f"no layer is {printable(word.text)}", did_you_mean(word.text, names))
    return index
