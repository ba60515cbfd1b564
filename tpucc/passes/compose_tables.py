"""Chains of functions: a layer and the look-ups that follow it are one layer with one table. A walk from each layer to its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tpucc.ir import Constant, Graph, Node
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import Conv, Fc, Layer, Requantise, Vector, VectorFunction, looks_up
from tpucc.layers.reference import look_up
from tpucc.numerics import DeviceInts
from tpucc.ops.names import constant
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter


@graph_pass("compose-tables", "joins look-up tables that follow each other into one, in the layer before them", level=1)
def compose_tables(graph: Graph, context: Context) -> Graph:
    """Gives a layer the table of the look-up that alone reads it, and so on along the chain.

    Where every value has an entry of its own (int8: 256), the table of a function of a function is `second[first]`, entry by entry: not a
    bit changes, and each look-up less is one pass over the unified buffer less. The layer's own requantisation and clamp stay, and act
    before the table; scale and zero point become those of the chain's end. Tables with interpolation between entries (int16) don't compose.
    """
    rewriter = Rewriter(graph, "compose-tables")
    done: set[str] = set()
    for node in rewriter:
        if node.name in done:
            continue
        if looked_up := _chain(graph, node):
            done.update((node.name, *(other.name for other in looked_up)))
            _compose(rewriter, node, looked_up)
        else:
            rewriter.put(node)
    return rewriter.build()


def _chain(graph: Graph, root: Node) -> list[Node]:
    """The look-ups that follow a layer with a table or room for one, each the only reader of what is before it."""
    found: list[Node] = []
    last = root
    while (reader := _only_look_up(graph, last)) is not None:
        found.append(reader)
        last = reader
    return found


def _only_look_up(graph: Graph, node: Node) -> Node | None:
    """The look-up that alone reads a layer with exact tables; None where there is none, or the layer can't take its table."""
    format, readers = INTEGER_FORMATS.get(node.type.dtype), graph.users[node.name]
    if format is None or not format.has_exact_tables or not isinstance(node.attributes, Fc | Conv | Vector):
        return None
    if len(readers) != 1 or node.name in graph.output_nodes:
        return None
    reader = readers[0].attributes
    return readers[0] if isinstance(reader, Vector) and reader.function == VectorFunction.TABLE else None


def _compose(rewriter: Rewriter, root: Node, looked_up: list[Node]) -> None:
    """Puts one layer in the place of the root, and the table before it. Of the chain's values only the last one is still there."""
    last, origin = looked_up[-1], root.origin.merged(*(node.origin for node in looked_up))
    entries = rewriter.constant(f"{last.name}.table", Constant(_composed(rewriter.graph, (root, *looked_up))), origin)
    kept = root.operands[:-1] if _has_table(root) else root.operands
    made = replace(root, name=_name(root, last), operands=(*kept, entries.name), attributes=_with_table(root))
    rewriter.put(replace(made, type=last.type, origin=origin).holding(last.holds or (last.name,)))
    for node in (root, *looked_up):
        if node.name != made.name:
            rewriter.alias(node, made.name)


def _composed(graph: Graph, chain: Sequence[Node]) -> DeviceInts:
    """The table of all tables of the chain."""
    first, *others = (constant.attributes_of(graph[node.operands[-1]]).value.data for node in chain if _has_table(node))
    format = INTEGER_FORMATS[chain[0].type.dtype]
    return reduce(lambda before, table: look_up(table, before, format), others, first)


def _name(root: Node, last: Node) -> str:
    """A layer goes by the value that it computes, which is now the chain's end; a product by its weights, as before."""
    layer = root.attributes
    by_weights = isinstance(layer, Conv) or (isinstance(layer, Fc) and not layer.moves)
    return root.name if by_weights else last.name


def _has_table(node: Node) -> bool:
    return isinstance(node.attributes, Layer) and looks_up(node.attributes)


def _with_table(root: Node) -> Fc | Conv | Vector:
    layer = root.attributes
    assert isinstance(layer, Fc | Conv | Vector)
    return replace(layer, epilogue=replace(layer.epilogue, table=True)) if isinstance(layer.epilogue, Requantise) else layer
