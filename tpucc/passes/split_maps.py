"""Feature maps too large for the unified buffer are computed in horizontal bands, one after the other.

The unit of placement is a column block of a whole map, so what one operator reads and writes must fit the unified buffer together.
Where it doesn't, a run of operators computes its results a band of lines at a time. A convolution's line depends on as many lines as its
kernel is high, so neighbouring bands compute the lines at their edge both; the deeper the run, the more. Pools, strides and functions of
elements only pass the question on. Known as fused or depth-first tiling: Alwani et al., "Fused-Layer CNN Accelerators", MICRO 2016.

The pass comes after calibration and fusion: all bands of a value have the scale and zero point of the whole, so the integers are the same
as those of a machine on which it fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.ops import OPS
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.opdef import Clamp, Pooling, View
from tpucc.ops.slice import SliceAttributes
from tpucc.passes.bands.choice import Choice, Chooser
from tpucc.passes.bands.lines import Lines
from tpucc.passes.bands.run import Band, Maps, Run
from tpucc.passes.bands.sizes import Sizes
from tpucc.passes.base import Context
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import Names


@dataclass(frozen=True)
class SplitMaps:
    """Replaces each exit of a run by the concat of bands of it, which copies of the run compute from slices of the entries.

    Runs, and the number of their bands, are chosen by an estimate of rows and cycles. A graph whose operators fit stays as it is, and so does
    an operator of which not even a line fits. `most` is the most bands of a run; 1 leaves all maps whole.
    """

    name: ClassVar[str] = "split-maps"
    summary: ClassVar[str] = "computes maps that don't fit the unified buffer in bands of lines"
    level: ClassVar[int] = 0

    most: int = 1024

    def run(self, graph: Graph, context: Context) -> Graph:
        if all(node.type.rank != 4 for node in graph):
            return graph
        sizes = Sizes(Maps(graph), context.target)
        choices = Chooser(sizes, self.most).choices()
        for choice in choices:
            context.warn(_note(choice))
        return _Splitter(sizes.maps, self.name).split(choices) if choices else graph


class _Splitter:
    """Writes the graph anew, with bands in the place of the runs."""

    def __init__(self, maps: Maps, by: str) -> None:
        self._maps = maps
        self._graph = maps.graph
        self._by = by
        self._names = Names(maps.graph)
        self._slices: dict[tuple[str, Lines], str] = {}
        self._done: list[Node] = []

    def split(self, choices: tuple[Choice, ...]) -> Graph:
        self._done = [node for node in self._graph if node.name in self._maps.constants]
        nodes = [node for node in self._graph if node.name not in self._maps.constants]
        at = 0
        for choice in choices:
            self._done += nodes[at : choice.start]
            self._run(choice, nodes[choice.start : choice.stop])
            at = choice.stop
        return self._graph.with_nodes((*self._done, *nodes[at:]))

    def _run(self, choice: Choice, nodes: list[Node]) -> None:
        """The run in bands, after those of the nodes between its own that it may depend on, and before those that depend on it."""
        later = set(choice.run.names)
        for node in nodes:
            if any(name in later for name in node.operands):
                later.add(node.name)
            elif node.name not in later:
                self._done.append(node)
        parts: dict[str, list[str]] = {node.name: [] for node in choice.run.exits}
        for band in choice.estimate.bands:
            copies = self._band(choice.run, band)
            for exit, pieces in parts.items():
                pieces.append(self._lines(copies[exit], band.lines[exit], band.pieces[exit]))
        self._done += [self._joined(node, tuple(parts[node.name])) for node in choice.run.exits]
        self._done += [node for node in nodes if node.name in later and node.name not in choice.run.names]

    def _band(self, run: Run, band: Band) -> dict[str, Node]:
        """Copies of the run's nodes, by their names, that compute the lines of a band."""
        copies: dict[str, Node] = {}
        for node in run.nodes:
            reading = band.readings[node.name]
            operands = []
            for name, lines in zip(node.operands, reading.lines, strict=True):
                source, has = (copies[name], band.lines[name]) if name in copies else (self._graph[name], None)
                operands.append(name if lines is None else self._lines(source, has or (0, source.type.shape[1]), lines))
            type_ = _with_lines(node.type, band.lines[node.name])
            made = Node(
                self._names.fresh(f"{node.name}.band"), node.op, tuple(operands), reading.attributes, type_, node.origin.by(self._by)
            )
            copies[node.name] = made
            self._done.append(made)
        return copies

    def _lines(self, source: Node, has: Lines, wanted: Lines) -> str:
        """The name of the lines `wanted` of a value that has the lines `has`; a slice of it, unless these are all."""
        if has == wanted:
            return source.name
        if (source.name, wanted) not in self._slices:
            starts = (0, wanted[0] - has[0], 0, 0)
            type_ = _with_lines(source.type, wanted)
            attributes = SliceAttributes(starts, tuple(first + size for first, size in zip(starts, type_.shape, strict=True)))
            name = self._slices[source.name, wanted] = self._names.fresh(f"{source.name}.lines")
            self._done.append(Node(name, "slice", (source.name,), attributes, type_, source.origin.by(self._by)))
        return self._slices[source.name, wanted]

    def _joined(self, node: Node, pieces: tuple[str, ...]) -> Node:
        """The whole of an exit. It is held as its pieces are, so that joining them rounds nothing."""
        held = self._held(node)
        type_ = replace(node.type, range=held.range, quantisation=held.quantisation)
        return Node(node.name, "concat", pieces, ConcatAttributes(1), type_, node.origin.by(self._by))

    def _held(self, node: Node) -> TensorType:
        """The type whose parameters a value has on the device: that of its operand, for operators that only choose among its values."""
        while node.type.quantisation is None and self._maps.sides[node.name] == "device" and _keeps_parameters(node):
            node = self._graph[node.operands[0]]
        return node.type


def _keeps_parameters(node: Node) -> bool:
    kind = OPS[node.op].legalisation
    return isinstance(kind, Clamp | View) or kind == Pooling("max") or node.op in ("slice", "transpose")


def _with_lines(type_: TensorType, lines: Lines) -> TensorType:
    images, _, *rest = type_.shape
    return replace(type_, shape=(images, lines[1] - lines[0], *rest))


def _note(choice: Choice) -> str:
    estimate, sizes = choice.estimate, choice.estimate.sizes
    needed = max(sizes.needed(node) for node in choice.run.nodes)
    names = tuple(dict.fromkeys(_name(node) for node in (choice.run.nodes[0], choice.run.nodes[-1])))
    share = estimate.repeated
    again = "no rows" if share <= 0 else f"{max(share, 0.01):.0%} of the rows"
    return (
        f"{'…'.join(names)}: computed in {len(estimate.bands):,} bands of at most {estimate.lines:,} lines, for whole images take "
        f"{needed:,} rows at once, and the unified buffer has {sizes.target.unified_buffer_rows:,}; {again} are computed twice"
    )


def _name(node: Node) -> str:
    return layer_name(node) if node.op in ("conv2d", "convolution", "matmul", "linear") else node.name
