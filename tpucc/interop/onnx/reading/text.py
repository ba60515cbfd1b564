"""The source text of an imported model, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from textwrap import wrap

import numpy as np

from tpucc.collector import collector_paused
from tpucc.data.archive import npz_bytes
from tpucc.diagnostics import Error, Source, listed, printable
from tpucc.interop.onnx.reading import Imported, read
from tpucc.interop.onnx.reading.files.names import BATCH
from tpucc.interop.onnx.reading.files.problems import named, refused
from tpucc.interop.onnx.reading.network_of import Built, Layout
from tpucc.interop.onnx.reading.ties import built_with_ties, with_ties, working_pair
from tpucc.ir import Graph, TensorType
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.numerics import AnyArray
from tpucc.source import Sample, Unwritable, source_of
from tpucc.source.names import escaped, variable_in

COLUMNS = 98
"""Of a comment without its sign."""
SEVERAL = 5
"""The least size that takes the place of another one."""
FEWEST = 2
"""The least batch of the graphs that tell which numbers follow from it; it is as large as no axis is."""


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
    found, made = built_with_ties(found, given)
    begin("write it as a source")
    found, free = with_ties(found, found.sizes(given))
    sizes = found.sizes(given)
    for params in dict.fromkeys([tuple(sizes), tuple(free), *_batches(found, sizes), ()]):
        fixed = [size for size in sizes if size not in params]
        said = "\n".join((*_comments(found, made, sizes, fixed), *notes))
        said = said.replace(" in the file", " in the module") if title else said
        comments = [line for text in said.split("\n") for line in wrap(text, COLUMNS)]
        called = {name: _param(found, own, fixed) for name, own in found.names.called.items()} | dict.fromkeys(found.numbers)
        try:
            return Text(_source(found, made, sizes, params, comments, name), made.weights, called)
        except (Unwritable, _Differs) as error:
            reason = error
        changed = _changed(found, made, sizes, params)
        if changed:
            more = {**sizes, **changed}
            try:
                several = found.built(more)
                source = _source(found, several, more, params, comments, name)
                source = _with_values(source, changed, sizes, made)
            except (Unwritable, _Differs, Error):
                continue
            return Text(source, several.weights, called)
    raise refused("E1007", f"{printable(found.file)} can't be written as text: {reason}")


def _changed(found: Imported, made: Built, sizes: Mapping[str, int], params: Sequence[str]) -> dict[str, int]:
    """Other values of params with which a text may be found that isn't with theirs: of a size 1, as axes of size 1 are left out, and of a
    batch that another axis is as large as."""
    free = next(_sizes_of_no_axis(made, SEVERAL))
    return {param: free for param in params if sizes[param] == 1 or param == BATCH or param in found.batches}


def _sizes_of_no_axis(made: Built, least: int) -> Iterator[int]:
    """Numbers from this one on that no axis of a graph has."""
    taken = {size for node in made.graph for size in node.type.shape}
    return (number for number in count(least) if number not in taken)


def _source(found: Imported, made: Built, sizes: Mapping[str, int], params: Sequence[str], comments: Sequence[str], name: str) -> str:
    """The text of a graph. Raises `Unwritable`, and `_Differs` where other values of the params give another one."""
    return source_of(
        _with_results_named(made.graph),
        comments=comments,
        weights=f"{name}.npz" if made.weights else None,
        activations=_activations(made.graph),
        params={param: sizes[param] for param in params},
        samples=[(values, _with_results_named(graph)) for values, graph in _samples(found, made, sizes, params)],
    )


def _with_values(source: str, changed: Mapping[str, int], sizes: Mapping[str, int], wanted: Built) -> str:
    """The text with `sizes` in the place of changed params. Raises what elaborating it does, and `_Differs` where it has other results than
    wanted."""
    for param, value in changed.items():
        source = source.replace(f"\nparam {param} = {value}\n", f"\nparam {param} = {sizes[param]}\n", 1)
    text = Source("", source)
    if _types(elaborate(parse(text), text).graph) != _types(wanted.graph):
        raise _Differs("its results depend on the sizes")
    return source


def _types(graph: Graph) -> list[tuple[str, TensorType]]:
    """The names and types of inputs and outputs."""
    ends = ((node.name, node.type) for node in graph.inputs), ((output.name, graph[output.node].type) for output in graph.outputs)
    return [(name, type_.plain()) for name, type_ in (*ends[0], *ends[1])]


def _batches(found: Imported, sizes: Collection[str]) -> Iterator[tuple[str, ...]]:
    """The batches among the open sizes, all together and then each alone; a size of that name is one on whichever axis it is."""
    batches = [size for size in sizes if size == BATCH or size in found.batches]
    yield from (tuple(batches), *((size,) for size in batches))


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


class _Differs(Exception):
    """For other sizes the network is another one."""


def _param(found: Imported, size: str, fixed: Collection[str]) -> str | None:
    """The param that a size of the file is; None for one that is a number, or that follows from another one."""
    name = found.ties.get(size, size)
    return None if name in fixed else name


def _samples(found: Imported, made: Built, sizes: Mapping[str, int], params: Sequence[str]) -> list[Sample]:
    """Other values of the params, with their graphs: each param is changed alone, and then all of them to a second value. So no number
    can follow from a param by chance, as it would have to stay where only others change."""
    batches = _sizes_of_no_axis(made, FEWEST)
    pairs: dict[str, tuple[int, int]] = {}
    for name in params:
        pair = (next(batches), next(batches)) if name == BATCH else working_pair(found, sizes, name)
        if pair is None:
            raise _Differs(f"it takes no other {name}")
        pairs[name] = pair
    alone = [{**sizes, name: first} for name, (first, _) in pairs.items()]
    together = [{**sizes, **{name: second for name, (_, second) in pairs.items()}}] if params else []
    return [({name: others[name] for name in params}, _graph_of(found, made, others)) for others in (*alone, *together)]


def _graph_of(found: Imported, made: Built, sizes: Mapping[str, int]) -> Graph:
    """The graph for other sizes. Raises `_Differs` where there is none, or where it has other weights."""
    try:
        other = found.built(sizes)
    except Error as error:
        raise _Differs(str(error)) from None
    if other.weights.keys() != made.weights.keys() or not all(
        np.array_equal(other.weights[key], array) for key, array in made.weights.items()
    ):
        raise _Differs("its constants depend on the sizes")
    return other.graph


def _ranks_of_results(graph: Graph) -> dict[str, int]:
    return {output.name: graph[output.node].type.rank for output in graph.outputs}


def _comments(found: Imported, made: Built, sizes: Mapping[str, int], fixed: Sequence[str]) -> Iterator[str]:
    yield from _origin(found)
    theirs = {ours: named(theirs) for theirs, ours in found.names.sizes_by_name.items()}
    for name, number in found.numbers.items():
        yield printable(f"{named(name)} is {number} here, and an input in the file.")
    for one in dict.fromkeys(found.ties.values()):
        same = [theirs.get(name, name) for name in dict.fromkeys(found.names.sizes.values()) if found.ties.get(name, name) == one]
        yield printable(f"{listed(same)} are one size here, {one}: the network takes them only where they are equal.")
    if renamed := found.names.renamed(found.ties):
        yield printable(f"Renamed here: {listed(renamed)}.")
    ranks = {len(order) for order in made.layouts.values()}
    for rank, kind, axes in ((4, "Images", "height, width"), (3, "Sequences", "length")):
        if names := [name for name, order in made.layouts.items() if len(order) == rank]:
            yield f"{kind} are [batch, {axes}, channels] here, and [batch, channels, {axes}] in the file: {listed(names)}."
    ends = {**{node.name: node.type.rank for node in made.graph.inputs}, **_ranks_of_results(made.graph)}
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
