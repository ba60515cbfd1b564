"""ONNX files in: from the bytes of a file to a graph of tpucc's operators and its weights.

`bounds` keeps a file small, `decoding` makes a checked value of it by the package onnx, `operators` has a row for each operator, and
`network_of` builds all nodes. Nothing of a file is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tpucc.arguments import no_choice
from tpucc.diagnostics import CompileError, Diagnostic, ProgramError, UsageError, did_you_mean, listed, printable
from tpucc.files import MODELS, read_file
from tpucc.interop.foreign import Foreign, foreign, is_text
from tpucc.interop.onnx import OPSET, PRODUCER
from tpucc.interop.onnx.carried import Carried, graph_carried, is_changed
from tpucc.interop.onnx.reading.files import names
from tpucc.interop.onnx.reading.files.decoding import decoded
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxModel
from tpucc.interop.onnx.reading.files.problems import in_file, malformed, named
from tpucc.interop.onnx.reading.files.tensors import TYPES
from tpucc.interop.onnx.reading.network_of import LAYOUTS, Built, Layout, built
from tpucc.numerics import AnyArray

BATCH = 8
"""The batch of a model that leaves it open."""
SOURCE = Foreign("a source of tpucc already", "compile it, run it and change it as it is; tpucc export makes an ONNX file of it")
TEXT = Foreign("a text", "a source of tpucc has a name that ends in .tpu")
POINTER = Foreign("a pointer of Git LFS", "git lfs pull brings the file itself")
MAX_BYTES = 2**31
"""Of a file, as protobuf has it."""


@dataclass(frozen=True)
class Imported:
    """A model of a file. `name` is that of the file, as an identifier.

    `symbols` are the sizes that the file leaves open, with their values where there is one to begin with: the batch. `batch` is the value
    that a batch has to begin with, and `numbers` are the values that were given for inputs of one integer.
    """

    name: str
    file: str
    model: OnnxModel
    layout: Layout
    batch: int = BATCH
    numbers: Mapping[str, int] = field(default_factory=dict)
    carried: Carried | None = None
    """The graph that the file carries, from which it is read; `model` has no nodes then."""
    is_changed: bool = False
    """Whether the file carries a graph that isn't that of its nodes any more."""

    @property
    def batches(self) -> frozenset[str]:
        """The open sizes that have a value to begin with: first axes, whatever their names are."""
        return frozenset(name for name, size in self.symbols.items() if size is not None)

    @property
    def symbols(self) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for (_, axis), name in self.names.sizes.items():
            found[name] = found.get(name) or (self.batch if axis == 0 else None)
        return found

    def with_numbers(self, given: Mapping[str, int]) -> tuple[Imported, dict[str, int]]:
        """The model in which each input of one integer is a constant if it is given a value, and the other values: those of sizes."""
        graph, sizes, known = self.model.graph, dict(given), dict[str, AnyArray]()
        for value in graph.inputs:
            for name in {value.name, self.names.inputs[value.name]} - self.names.called.keys() if value.is_number else ():
                if name in sizes:
                    known[value.name] = np.full([1] * len(value.shape or ()), sizes.pop(name), TYPES[value.type])
        inputs = tuple(value for value in graph.inputs if value.name not in known)
        model = replace(self.model, graph=replace(graph, inputs=inputs, constants={**graph.constants, **known}))
        return replace(self, model=model, numbers={name: given[name] for name in given if name not in sizes}), sizes

    @cached_property
    def names(self) -> names.Names:
        return names.names_of(self.model.graph)

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """A value for each open size, by the names here; the names of `given` may be the file's, too. Raises `UsageError` E1008 for sizes
        that there aren't, that have two values, or that aren't given."""
        symbols, called = self.symbols, self.names.called
        if unknown := [name for name in given if name not in called]:
            shown = listed([self._named(name) for name in symbols])
            known = f"there {'is' if len(symbols) == 1 else 'are'} {shown}" if symbols else "all its sizes are fixed"
            raise self._refused(f"leaves no size open that is named {named(unknown[0])}", did_you_mean(unknown[0], called) or known)
        values: dict[str, int] = {}
        for name, value in given.items():
            if value < 1:
                raise UsageError(Diagnostic("E1008", f"{printable(name)}: {value} is no size: sizes are whole numbers from 1 on"))
            if (first := values.setdefault(called[name], value)) != value:
                raise self._refused(f"has one size {self._named(called[name])}, and {first:,} and {value:,} are given for it")
        sizes = {name: values.get(name, default) for name, default in symbols.items()}
        if missing := [name for name, size in sizes.items() if size is None]:
            either = "; the name in the file does, too" if any(self._named(name) != name for name in missing) else ""
            shown = listed([self._named(name) for name in missing])
            help = f"say it: {as_given(dict.fromkeys(missing, '…'))}{either}"
            raise self._refused(f"leaves the {'size' if len(missing) == 1 else 'sizes'} {shown} open", help)
        return {name: size for name, size in sizes.items() if size is not None}

    def _named(self, name: str) -> str:
        """A size in a message, with the name that it has in the file where that is another one."""
        theirs = next((theirs for theirs, ours in self.names.sizes_by_name.items() if ours == name), name)
        return name if theirs == name else f"{name} ({named(theirs)} in the file)"

    def _refused(self, message: str, *help: str) -> UsageError:
        return UsageError(Diagnostic("E1008", f"{self.file} {message}", help=help))

    def built(self, given: Mapping[str, int]) -> Built:
        """The graph with its weights.

        Raises `CompileError` for what tpucc can't read, `UsageError` for a size that isn't known, `ProgramError` E1001 and E1003 for nodes
        that can't be what they stand for.
        """
        sizes = self.sizes(given)
        if self.carried is not None:
            return Built(self.carried.graph, self.carried.weights, {}, ())
        is_chosen = self.numbers or any(size != self.symbols[name] for name, size in sizes.items())
        try:
            return built(self.model, self.name, sizes, self.layout, {**self.numbers, **sizes} if is_chosen else {})
        except (ProgramError, CompileError) as error:
            raise in_file(error, self.file) from None


def as_given(values: Mapping[str, object]) -> str:
    """How sizes are given, in a message: to the command line, and to Python."""
    options = " ".join(f"-D {name}={value}" for name, value in values.items())
    entries = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return f"{options}, in Python params={{{entries}}}"


def require_layout(layout: object) -> None:
    """Raises `UsageError` E0529 for what is no layout."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise no_choice("the layout", LAYOUTS, layout)


def _kind(path: Path, data: bytes) -> Foreign | None:
    """What a file is that isn't a model in ONNX's format; None for one that may have been."""
    if data.startswith(b"version https://git-lfs"):
        return POINTER
    if is_text(data) and path.suffix.lower() in MODELS:
        return SOURCE if path.suffix == ".tpu" else TEXT
    return None if path.suffix.lower() == ".onnx" else foreign(path, data)


def read(path: Path, layout: Layout = "nhwc", title: str = "") -> Imported:
    """The model of a file, whatever its name is; `title` stands in messages and comments in its place.

    Raises `UsageError` when it can't be read, `ProgramError` E1001 to E1004 for one that is malformed, `CompileError` E1005 and E1006 for
    one that tpucc can't take.
    """
    require_layout(layout)
    data = read_file(path, most=MAX_BYTES, suffixes=MODELS)
    file = title or path.name
    if (carried := graph_carried(data, file)) is not None:
        nothing = OnnxModel(OnnxGraph(carried.graph.name, (), {}, (), ()), {"": OPSET}, PRODUCER)
        return Imported(carried.graph.name, file, nothing, layout, carried=carried)
    try:
        model = decoded(data, path.parent)
    except CompileError as error:
        raise in_file(error, file) from None
    except ProgramError as error:
        kind = _kind(path, data)
        if kind is None:
            raise in_file(error, file) from None
        if kind in (TEXT, POINTER):
            raise malformed(f"{file}: not a model in ONNX's format: it is {kind.what}", kind.help) from None
        raise malformed(f"{path.name} is {kind.what}, not a model in ONNX's format", kind.help) from None
    model = replace(model, producer="") if title else model
    return Imported(names.identifier(path.stem, "model"), file, model, layout, is_changed=is_changed(data))
