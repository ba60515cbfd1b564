"""Files of inputs with labels: those that the command line names, and those that lie beside a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tpucc.data.archive import NO_HINTS, naming, read_arrays
from tpucc.interop.sources import held_out_file
from tpucc.numerics import AnyArray
from tpucc.runtime.batches import Batches
from tpucc.runtime.inputs import accepted
from tpucc.training.labelled import LABELS, without_labels

LABEL = "label"
"""The array of labels in a file of training examples, as `tpucc new` writes it: an input of `train`."""
HINTS = {"E0432": f"answers, which accuracy is measured by, are an array named {LABELS}"}
"""What helps with arrays of a labelled file, by the code of the error."""


def given_arrays(path: Path, batches: Batches) -> tuple[dict[str, AnyArray], AnyArray | None]:
    """The arrays of a file of inputs, as they are, and its labels if it has some. Raises `InputError` when a model that has these `batches`
    doesn't take them."""
    arrays = read_arrays(path)
    labels = next((arrays.pop(name) for name in (LABELS, LABEL) if name in arrays and name not in batches.inputs), None)
    with naming(path, HINTS if labels is None else NO_HINTS):
        accepted(batches, arrays)
    return arrays, labels


def rows_beside(path: Path) -> tuple[dict[str, AnyArray], AnyArray | None] | None:
    """The arrays that lie beside a source, where there is a file of them, and its labels if it has some."""
    place = held_out_file(path)
    if not place.is_file():
        return None
    arrays = read_arrays(place)
    labels = arrays.pop(LABELS, None)
    return arrays, labels


def held_out(path: Path, tell: Callable[[Iterable[str]], None]) -> tuple[dict[str, AnyArray], AnyArray] | None:
    """Inputs and labels that lie beside a source, where there is a file that has labels; one that has none gets a note."""
    found = rows_beside(path)
    if found is None:
        return None
    arrays, labels = found
    if labels is None:
        tell([without_labels(held_out_file(path), arrays)])
        return None
    return arrays, labels
