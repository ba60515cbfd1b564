"""The source text of an imported model, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, count
from math import isqrt
from pathlib import Path
from textwrap import wrap

import numpy as np

from tpucc.collector import collector_paused
from tpucc.data.archive import npz_bytes
from tpucc.diagnostics import CompileError, Error, ProgramError, listed, printable
from tpucc.interop.onnx.reading import Imported, read
from tpucc.interop.onnx.reading.files.names import BATCH
from tpucc.interop.onnx.reading.files.problems import named, refused
from tpucc.interop.onnx.reading.network_of import Built, Layout
from tpucc.ir import Graph, TensorType
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS
from tpucc.numerics import AnyArray
from tpucc.source import Unwritable, graph_of, same_model, source_of
from tpucc.source.names import escaped, variable_in

COLUMNS = 98
"""Of a comment without its sign."""


@dataclass(frozen=True)
class Text:
    """A model in tpucc's language: `source` is its text, `weights` are its arrays by key. `sizes` are those that the file leaves open, by
    the names that they may be given by: each is a param of the text, or None where it is a number there."""

    source: str
    weights: Mapping[str, AnyArray]
    sizes: Mapping[str, str | None]

    @property
    def params(self) -> dict[str, str]:
        """The sizes that are params."""
        return {name: ours for name, ours in self.sizes.items() if ours is not None}


def model_files(source: str, weights: Mapping[str, AnyArray], before: str, name: str) -> dict[str, bytes]:
    """A source and its weights as files of this name; the text names the weights by the name `before`."""
    text = source.replace(f'weights "{escaped(before)}.npz"', f'weights "{escaped(name)}.npz"', 1)
    return {f"{name}.tpu": text.encode()} | ({f"{name}.npz": npz_bytes(weights)} if weights else {})


@collector_paused()
def imported_model(
    path: Path,
    name: str,
    given: Mapping[str, int],
    layout: Layout = "nhwc",
    title: str = "",
    notes: Sequence[str] = (),
    begin: Callable[[str], None] = lambda _: None,
) -> Text:
    """The model of an ONNX file as text, whose weights are in `NAME.npz`.

    A size that the file leaves open is a param of the text. Where the network for other values isn't the same one, it is a number, and a
    comment says so. `title` is what the file was made of, to be named in its place, and `notes` are comments of that. `begin` is told
    what is done from now on. Raises as `read` and `Imported.built` do.
    """
    begin("read the network")
    found, given = read(path, layout, title).with_numbers(given)
    found, made = _built(found, given)
    begin("write it as a source")
    sizes = found.sizes(given)
    batches = tuple(size for size in sizes if size == BATCH or size in found.batches)
    reason: Exception | None = None
    others = tuple(size for size in sizes if size not in batches)
    for params in dict.fromkeys([tuple(sizes), batches, *((batch,) for batch in batches), others, ()]):
        fixed = [size for size in sizes if size not in params]
        said = "\n".join((*_comments(found, made, sizes, fixed), *notes))
        said = said.replace(" in the file", " in the module") if title else said
        comments = [line for text in said.split("\n") for line in wrap(text, COLUMNS)]
        called = {size: None if own in fixed else own for size, own in found.names.called.items()} | dict.fromkeys(found.numbers)
        try:
            return Text(*_written(found, made, sizes, params, comments, name), called)
        except (Unwritable, _Differs, Error) as error:
            reason = error
    raise refused("E1007", f"{printable(found.file)} can't be written as text: {reason}")


class _Differs(Exception):
    """For other sizes the network is another one."""


def _built(found: Imported, given: Mapping[str, int]) -> tuple[Imported, Built]:
    """The network for these sizes; of a batch of 1 where it takes no other one. Raises as `Imported.built`."""
    try:
        return found, found.built(found.sizes(given))
    except (CompileError, ProgramError) as error:
        is_other = any(problem.code == "E1006" for problem in error.diagnostics)  # that no size mends
        if is_other or found.batch == 1 or found.batches <= {found.names.called[name] for name in given}:
            raise
        try:
            return _built(replace(found, batch=1), given)
        except Error:
            raise error from None


def _written(
    found: Imported, made: Built, sizes: Mapping[str, int], params: Sequence[str], comments: Sequence[str], name: str
) -> tuple[str, Mapping[str, AnyArray]]:
    """The text with these params, and the weights. Raises `Unwritable`, and `_Differs` where it isn't the network for other values of them.

    The network is read with primes in the place of the params, by which the sizes that follow from them are told, and then with others.
    """
    primes = _primes_of_no_number(made.graph)
    first, second = ({param: next(primes) for param in params} for _ in range(2))
    told = found.built({**sizes, **first}) if params else made
    source = source_of(
        _with_results_named(told.graph),
        comments=comments,
        weights=f"{name}.npz" if told.weights else None,
        activations=_activations(told.graph),
        params=first,
        values={param: sizes[param] for param in params},
    )
    if params:
        other = found.built({**sizes, **second})
        is_same = told.weights.keys() == other.weights.keys() and all(
            np.array_equal(other.weights[key], told.weights[key]) for key in told.weights
        )
        if not is_same or not same_model(graph_of(source, second), other.graph) or _types(graph_of(source, {})) != _types(made.graph):
            raise _Differs(f"its sizes don't follow from {listed(params)} by products alone")
    return source, told.weights


def _primes_of_no_number(graph: Graph) -> Iterator[int]:
    """Primes of which no size and no number of a graph is a multiple."""
    found = ((node.type.shape, *(getattr(node.attributes, field.name) for field in fields(node.attributes))) for node in graph)
    numbers = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in chain.from_iterable(found))
    taken = {number for number in numbers if type(number) is int}
    primes = (number for number in count(2) if all(number % factor for factor in range(2, isqrt(number) + 1)))
    return (prime for prime in primes if all(number % prime for number in taken if number))


def _types(graph: Graph) -> list[tuple[str, TensorType]]:
    """The names and types of inputs and outputs."""
    ends = ((node.name, node.type) for node in graph.inputs), ((output.name, graph[output.node].type) for output in graph.outputs)
    return [(name, type_.plain()) for name, type_ in (*ends[0], *ends[1])]


def _activations(graph: Graph) -> str | None:
    """The format of the integers, where the file says one that isn't the usual one."""
    formats = DEVICE_FORMATS.keys() - {DEFAULT_FORMAT.name}
    return next((node.type.dtype for node in graph if node.type.dtype in formats), None)


def _with_results_named(graph: Graph) -> Graph:
    """The graph with the name of a module for its result only: what nothing but the same module reads is named after its operator."""
    kept = {node.name for node in graph if not node.operands} | graph.output_nodes
    readers = {node.name: {variable_in(user.name) for user in graph.users[node.name]} for node in graph if node.name not in kept}
    inner = {name for name, stems in readers.items() if stems == {variable_in(name)}}
    names = {node.name: f"{node.op}_{index}" if node.name in inner else node.name for index, node in enumerate(graph)}
    if len(set(names.values())) < len(names):
        return graph
    nodes = (replace(node, name=names[node.name], operands=tuple(names[operand] for operand in node.operands)) for node in graph)
    return replace(graph, nodes=tuple(nodes))


def _comments(found: Imported, made: Built, sizes: Mapping[str, int], fixed: Sequence[str]) -> Iterator[str]:
    yield from _origin(found)
    for name, number in found.numbers.items():
        yield printable(f"{named(name)} is {number} here, and an input in the file.")
    if renamed := found.names.renamed():
        yield printable(f"Renamed here: {listed(renamed)}.")
    ranks = {len(order) for order in made.layouts.values()}
    for rank, kind, axes in ((4, "Images", "height, width"), (3, "Sequences", "length")):
        if names := [name for name, order in made.layouts.items() if len(order) == rank]:
            yield f"{kind} are [batch, {axes}, channels] here, and [batch, channels, {axes}] in the file: {listed(names)}."
    ends = {
        **{node.name: node.type.rank for node in made.graph.inputs},
        **{output.name: made.graph[output.node].type.rank for output in made.graph.outputs},
    }
    if others := [name for name, rank in ends.items() if rank in ranks and name not in made.layouts]:
        yield f"The axes of {listed(others)} are in the file's order."
    if fixed:
        values = listed([f"{name} = {sizes[name]}" for name in fixed])
        of = f"T{found.file[1:]}" if found.file.startswith("the ") else found.file
        yield f"{of} leaves {listed(fixed)} open; this is the model for {values}."
    yield from (f"{note}." for note in made.notes)


def _origin(found: Imported) -> Iterator[str]:
    by = f", which {named(found.model.producer)} wrote" if found.model.producer else ""
    yield printable(f"From {found.file}{by} (opset {found.model.opset}).")
    if found.is_changed:
        yield "The file has been changed since tpucc wrote it: its nodes are read here, not the graph that it carries."
