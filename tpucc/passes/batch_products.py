"""Products of parts of one value with the same weights become one product. They are looked for in the graph as a whole.

A recurrent network multiplies each step's rows `x[:, t]` by the same kernel. Step by step the matrix unit would load the kernel's tiles
again for a few rows each; `x @ k` loads them once for all rows. Then each step reads rows of the result, without a copy.
Appleyard, Kočiský and Blunsom, arXiv 1604.01946, batch the input products of recurrent networks likewise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import Origin
from tpucc.ir import Graph, Node, f32
from tpucc.ops.names import matmul
from tpucc.ops.names import slice as slice_
from tpucc.ops.slice import SliceAttributes
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter, as_reshape, constant_of, is_pinned, is_view


@graph_pass("batch-products", "joins products of several parts of one value with the same weights into one product", level=2)
def batch_products(graph: Graph, context: Context, *, coverage: float = 0.5) -> Graph:
    """Rewrites products of at least two different parts of x with the same constant weights w to parts of `x @ w`.

    A part is a slice of rows, reshaped or not; a part of such a product is one too, so that whole stacks of products are batched. The
    parts must have at least `coverage` of the rows of x: the others are multiplied in vain.
    """
    # lab 9 begin: make one product of several with the same weights
    batches = {name: batch for batch in _batches(graph) if batch.accept(coverage) for name in batch.members}
    rewriter = Rewriter(graph, "batch-products")
    for node in rewriter:
        if (batch := batches.get(node.name)) is None:
            rewriter.put(node)
        else:
            _put_part(rewriter, node, batch)
    return rewriter.build()
    # lab 9 end


@dataclass(slots=True, eq=False)
class _Batch:
    """Products of parts of one value with the same weights.

    `x` is the value, or another batch that would compute it, and `shape` its shape; `members` has for each product its rows of `x`.
    """

    x: str | _Batch
    shape: tuple[int, ...]
    weights: Node
    members: dict[str, SliceAttributes] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)
    accepted: bool = False
    product: str = ""

    def accept(self, coverage: float) -> bool:
        """Decides whether the batch is worthwhile. A batch of another's parts needs that one, which comes before it."""
        sizes = {(rows.starts[:-1], rows.stops[:-1]): _row_count(rows) for rows in self.members.values()}
        enough = len(sizes) > 1 and sum(sizes.values()) >= coverage * math.prod(self.shape[:-1])
        self.accepted = enough and (isinstance(self.x, str) or self.x.accepted)
        return self.accepted

    def rows(self, member: str) -> SliceAttributes:
        """The rows of the result that are a member's."""
        rows = self.members[member]
        return replace(rows, stops=(*rows.stops[:-1], self.weights.type.columns))


@dataclass(frozen=True, slots=True)
class _Part:
    """A value that is rows of another, or of what a batch would compute."""

    of: str | _Batch
    shape: tuple[int, ...]
    rows: SliceAttributes


def _batches(graph: Graph) -> list[_Batch]:
    """All products of parts, by what they are parts of and by weights; those of parts of a batch after it."""
    found: dict[tuple[str | _Batch, str], _Batch] = {}
    parts: dict[str, _Part] = {}
    for node in graph:
        part = parts.get(node.operands[0]) if node.operands else None
        if is_pinned(node):
            continue
        if slice_.made(node) and _is_rows(slice_.attributes_of(node), graph[node.operands[0]]):
            parts[node.name] = _Part(node.operands[0], graph[node.operands[0]].type.shape, slice_.attributes_of(node))
        elif part is not None and is_view(node) and node.type.columns == part.shape[-1] and node.type.rank:
            parts[node.name] = part
        elif part is not None and matmul.made(node) and _is_matrix(graph[node.operands[1]]):
            batch = found.setdefault((part.of, node.operands[1]), _Batch(part.of, part.shape, graph[node.operands[1]]))
            batch.members[node.name] = part.rows
            batch.origins.append(node.origin)
            parts[node.name] = _Part(batch, (*part.shape[:-1], node.type.columns), batch.rows(node.name))
    return list(found.values())


def _is_matrix(weights: Node) -> bool:
    return constant_of(weights) is not None and weights.type.rank == 2


def _is_rows(attributes: SliceAttributes, x: Node) -> bool:
    """Whether a slice takes whole rows, neighbours all."""
    last = x.type.rank - 1
    return (
        last > 0
        and not attributes.steps
        and last not in attributes.squeeze
        and attributes.stops[-1] - attributes.starts[-1] == x.type.columns
    )


def _row_count(rows: SliceAttributes) -> int:
    return math.prod(stop - start for start, stop in zip(rows.starts[:-1], rows.stops[:-1], strict=True))


def _put_part(rewriter: Rewriter, node: Node, batch: _Batch) -> None:
    """Puts rows of the batch's product in the place of a member."""
    rows, product = batch.rows(node.name), rewriter.nodes[_product(rewriter, node, batch)]
    if rows.shape == node.type.shape:
        rewriter.put(rewriter.in_place(node, slice_.with_attributes(rows, product)))
        return
    part = rewriter.make(slice_.node(node.name, (product.name,), rows, f32(*rows.shape), node.origin))
    rewriter.put(as_reshape(node, part.name))


def _product(rewriter: Rewriter, first: Node, batch: _Batch) -> str:
    """The name of the batch's product, which is made where its first member stood."""
    if not batch.product:
        x = batch.x if isinstance(batch.x, str) else batch.x.product
        origin = batch.origins[0].merged(*batch.origins[1:])
        made = matmul(rewriter.nodes[x], rewriter.nodes[batch.weights.name])
        batch.product = rewriter.add(made, replace(first, origin=origin)).name
    return batch.product
