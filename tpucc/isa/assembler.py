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

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from tpucc.diagnostics import Origin, Source
from tpucc.ir.digests import Known
from tpucc.isa.instructions import RECORD
from tpucc.isa.listing.code import read_code
from tpucc.isa.listing.directives import read_directives
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Errors, read_lines
from tpucc.isa.listing.parsing import instruction_fields
from tpucc.isa.listing.places import Places
from tpucc.isa.listing.stays import is_stay, read_stays
from tpucc.isa.listing.words import Word
from tpucc.isa.program import LayerInfo, Program


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

    code = read_code([line for line in lines.code if not is_stay(line)], parts.layers, fields, RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    layer_of = np.array(code.layers, np.uint32)
    return replace(parts.program, instructions=code.records, layer_of=layer_of, residents=stays), Places(source, code.spans)
