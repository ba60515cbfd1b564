"""The instructions of a text: from the words of each line to records, their layers and their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Span, did_you_mean, printable
from tpucc.isa.instructions import Records
from tpucc.isa.listing.directives import unknown
from tpucc.isa.listing.lines import Arguments, Directive, Errors
from tpucc.isa.listing.places import place_of
from tpucc.isa.listing.words import Word, label_in, number_in
from tpucc.isa.program import LayerInfo

ReadFields = Callable[[tuple[Word, ...], int], Mapping[str, int]]
"""The fields of an instruction, from the words of its line and its number. Raises `LineError`."""


@dataclass(frozen=True, slots=True)
class Code:
    """What the instructions are, the layer of each, and where each stands."""

    records: Records
    layers: Sequence[int]
    spans: tuple[Span, ...]


def read_code(
    code: Sequence[tuple[Word, ...] | Directive], layers: Sequence[LayerInfo], read: ReadFields, dtype: np.dtype[np.void], errors: Errors
) -> Code:
    """The instructions of a text whose layers are known, and the `.for` lines between them; lines that can't be read are reported."""
    layer, names = 0, {layer.name: index for index, layer in reversed(list(enumerate(layers)))}
    rows: list[Mapping[str, int]] = []
    owners: list[int] = []
    spans: list[Span] = []
    for line in code:
        if errors.full:
            break
        with errors:
            if not isinstance(line, Directive):
                spans.append(place_of(line))
                rows.append(read(line, len(spans) - 1))
                owners.append(layer)
            elif line.name == "for":
                layer = _named_layer(line, names, len(layers))
            else:
                raise unknown(line)
    return Code(records_of(rows, dtype), owners, tuple(spans))


def records_of(rows: Sequence[Mapping[str, int]], dtype: np.dtype[np.void]) -> Records:
    """Records from the fields of lines; fields that a line lacks are zero."""
    names = dtype.names or ()
    return np.array([tuple([row.get(name, 0) for name in names]) for row in rows], dtype)


def _named_layer(directive: Directive, names: dict[str, int], count: int) -> int:
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
