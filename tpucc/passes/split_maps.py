"""Feature maps too large for the unified buffer are computed in horizontal bands, one after the other.

The unit of placement is a column block of a whole map, so what one operator reads and writes must fit the unified buffer together.
Where it doesn't, a run of operators computes its results a band of lines at a time. A convolution's line depends on as many lines as its
kernel is high, so neighbouring bands compute the lines at their edge both; the deeper the run, the more. Pools, strides and functions of
elements only pass the question on. Known as fused or depth-first tiling: Alwani et al., "Fused-Layer CNN Accelerators", MICRO 2016.

The pass comes after calibration and fusion: all bands of a value have the scale and zero point of the whole, so the integers are the same
as those of a machine on which it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tpucc.diagnostics import counted
from tpucc.ir import Attributes, Graph, Node, TensorType
from tpucc.ir.dataflow import backward
from tpucc.lowering.bands.choice import Choice, Chooser
from tpucc.lowering.bands.maps import Lines, Maps
from tpucc.lowering.bands.run import Band, Piece, Run, covering, overlap, owners
from tpucc.lowering.bands.sizes import ImageSizes
from tpucc.ops import facts_of
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.names import concat
from tpucc.ops.names import slice as slice_
from tpucc.ops.slice import SliceAttributes
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.layering.products import layer_name
from tpucc.passes.place import require_placed
from tpucc.passes.rewriter import Names


@graph_pass("split-maps", "computes maps that don't fit the unified buffer in bands of lines", level=0)
def split_maps(graph: Graph, context: Context, *, most: int = 1024) -> Graph:
    """Replaces each exit of a run by the concat of bands of it, which copies of the run compute from slices of the entries.

    Runs, and the number of their bands, are chosen by an estimate of rows and cycles. A graph whose operators fit stays as it is, and so
    does an operator of which not even a line fits. `most` is the most bands of a run; 1 leaves all maps whole.
    """
    if all(node.type.rank != 4 for node in graph):
        return graph
    require_placed(graph, "maps are split")
    sizes = ImageSizes(Maps(graph), context.target, context.format.bytes_per_value)
    choices = Chooser(sizes, most, context.sparing).choices()
    return _Splitter(sizes.maps, choices).split().noting(*map(_note, choices)) if choices else graph


@dataclass(frozen=True, slots=True)
class _Source:
    """A node that has the lines `has` of a value, of which the lines `own` are its part."""

    node: Node
    piece: Piece


class _Splitter:
    """Writes the graph anew, with bands in the place of the runs."""

    def __init__(self, maps: Maps, choices: Sequence[Choice]) -> None:
        self._maps = maps
        self._graph = maps.graph
        self._choices = choices
        self._names = Names(maps.graph)
        self._banded = {name for choice in choices for name in choice.run.names}
        self._sources: dict[str, list[_Source]] = {}
        self._read: dict[tuple[str, Lines], str] = {}
        self._done: list[Node] = []

    def split(self) -> Graph:
        self._done = [node for node in self._graph if node.name in self._maps.constants]
        nodes = [node for node in self._graph if node.name not in self._maps.constants]
        at = 0
        for choice in self._choices:
            self._done += nodes[at : choice.start]
            self._place(choice, nodes[choice.start : choice.stop])
            at = choice.stop
        return self._placed(self._graph.with_nodes((*self._done, *nodes[at:])))

    def _placed(self, graph: Graph) -> Graph:
        """Lines that are cut out or put together stay on the device where it reads them; at the edges of its work that is the host's, to
        whom it costs nothing."""
        new = [node for node in graph if self._graph.by_name.get(node.name) is not node]
        moving = {node.name for node in new if slice_.made(node) or concat.made(node)}

        def stays(node: Node, readers: Mapping[str, bool]) -> bool:
            return node.on_device and (node.name not in moving or any(readers.values()))

        on_device = backward(graph.nodes, stays)
        return graph.with_nodes(replace(n, place="host") if n.on_device and not on_device[n.name] else n for n in graph)

    def _place(self, choice: Choice, nodes: Sequence[Node]) -> None:
        """The run in bands, after those of the nodes between its own that it may depend on, and before those that depend on it."""
        later = set(choice.run.names)
        for node in nodes:
            if any(name in later for name in node.operands):
                later.add(node.name)
            elif node.name not in later:
                self._done.append(node)
        for band in choice.estimate.bands:
            self._band(choice.run, band)
        self._done += [self._joined(node) for node in choice.run.exits if self._is_read_whole(node.name)]
        self._done += [node for node in nodes if node.name in later and node.name not in choice.run.names]

    def _band(self, run: Run, band: Band) -> None:
        """Copies of the run's nodes that compute the lines of a band."""
        copies: dict[str, _Source] = {}
        for node in run.nodes:
            reading, lines = band.readings[node.name], band.lines[node.name]
            pairs = zip(node.operands, reading.lines, strict=True)
            operands = [name if read is None else self._lines(self._sources_of(name, copies), name, read) for name, read in pairs]
            copy = self._add(f"{node.name}.band", node, operands, reading.attributes, _with_lines(node.type, lines))
            copies[node.name] = _Source(copy, Piece(band.pieces.get(node.name, lines), lines))
        for node in run.exits:
            self._sources.setdefault(node.name, []).append(copies[node.name])

    def _sources_of(self, name: str, copies: Mapping[str, _Source]) -> Sequence[_Source]:
        """Where lines of a value can be read: in the band itself, in the bands of an earlier run, or in the whole."""
        if name in copies:
            return (copies[name],)
        lines = (0, self._graph[name].type.shape[1])
        return self._sources.get(name) or (_Source(self._graph[name], Piece(lines, lines)),)

    def _lines(self, sources: Sequence[_Source], name: str, wanted: Lines) -> str:
        """The node that has the lines `wanted` of a value, and no others: a source, a slice of one, or parts of several joined."""
        pieces = [source.piece for source in sources]
        at = covering(pieces, wanted)
        if at is not None:
            return self._part(sources[at], wanted)
        if (name, wanted) not in self._read:
            parts = [self._part(sources[at], overlap(pieces[at].own, wanted)) for at in owners(pieces, wanted)]
            type_ = _with_lines(self._held_type(self._graph[name]), wanted)
            self._read[name, wanted] = self._add(f"{name}.lines", self._graph[name], parts, ConcatAttributes(1), type_, "concat").name
        return self._read[name, wanted]

    def _part(self, source: _Source, wanted: Lines) -> str:
        """The lines `wanted` of a source; a slice of it, unless these are all."""
        has, node = source.piece.has, source.node
        if has == wanted:
            return node.name
        if (node.name, wanted) not in self._read:
            images, _, *rest = node.type.shape
            starts, stops = (0, wanted[0] - has[0], 0, 0), (images, wanted[1] - has[0], *rest)
            attributes, type_ = SliceAttributes(starts, stops), _with_lines(node.type, wanted)
            self._read[node.name, wanted] = self._add(f"{node.name}.lines", node, (node.name,), attributes, type_, "slice").name
        return self._read[node.name, wanted]

    def _add(self, wanted: str, of: Node, operands: Sequence[str], attributes: Attributes, type_: TensorType, op: str = "") -> Node:
        """Adds a node on behalf of another one, with its operator unless another is given."""
        made = Node(self._names.fresh(wanted), op or of.op, tuple(operands), attributes, type_, of.origin.by(split_maps.name), of.place)
        self._done.append(made)
        return made

    def _is_read_whole(self, name: str) -> bool:
        """Whether an output, or a reader in no run, needs an exit in one."""
        return name in self._graph.output_nodes or any(user.name not in self._banded for user in self._graph.users[name])

    def _joined(self, node: Node) -> Node:
        """The whole of an exit."""
        pieces = tuple(self._part(source, source.piece.own) for source in self._sources[node.name])
        return concat.node(node.name, pieces, ConcatAttributes(1), self._held_type(node), node.origin.by(split_maps.name), node.place)

    def _held_type(self, node: Node) -> TensorType:
        """The node's type, with what says how its copies are held: then joining them rounds nothing.

        That are the parameters of its operand, for operators that only choose among its values.
        """
        held = node
        while held.type.quantisation is None and held.on_device and facts_of(held.op).keeps_parameters:
            held = self._graph[held.operands[0]]
        return replace(node.type, range=held.type.range, quantisation=held.type.quantisation)


def _with_lines(type_: TensorType, lines: Lines) -> TensorType:
    images, _, *rest = type_.shape
    return replace(type_, shape=(images, lines[1] - lines[0], *rest))


def _note(choice: Choice) -> str:
    estimate, sizes = choice.estimate, choice.estimate.context.sizes
    needed = max(sizes.whole(node)[1] for node in choice.run.nodes)
    names = tuple(dict.fromkeys(node.origin.after(layer_name(node)) for node in (choice.run.nodes[0], choice.run.nodes[-1])))
    share = estimate.repeated
    rows, least = sizes.target.unified_buffer_rows, "the model takes more rows of the unified buffer than there are otherwise"
    why = f"whole images take {needed:,} rows at once, and the unified buffer has {rows:,}" if needed > rows else least
    again = "no rows" if share <= 0 else f"{max(share, 0.01):.0%} of the rows"
    bands = f"{len(estimate.bands):,} bands of at most {counted(estimate.lines, 'line')}"
    return f"{'…'.join(names)}: computed in {bands}, because {why}; {again} are computed twice"
