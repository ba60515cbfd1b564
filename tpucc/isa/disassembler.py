"""From a program to its listing, which assembles back to an equal program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tpucc.diagnostics import Source, counted, printable
from tpucc.isa.fields import well_formed
from tpucc.isa.listing.directives import surroundings
from tpucc.isa.listing.instructions import instruction_texts, numbered, raw_text
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.stays import NO_STAYS, StayLines, stay_lines
from tpucc.isa.listing.words import name_text
from tpucc.isa.program import Program


def disassemble(program: Program, with_data: bool = True) -> str:
    """The listing of a program: what it is, its surroundings, its code by layers, its data. assemble(disassemble(p)) == p.

    Without data, what isn't shown as numbers stands by its digest: see `tpucc.ir.digests`.
    """
    count, tiles = counted(len(program.instructions), "instruction"), counted(len(program.tiles), "tile")
    before, after = surroundings(program, with_data)
    code = with_headings(program, program.layer_of.tolist(), code_lines(program), stay_lines(program))
    lines = [f"; {printable(program.name)} for {printable(program.target.name)}: {count}, {tiles}", *before, *code, *after]
    return "\n".join(lines) + "\n"


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
