"""Products of two computed values: by the host, or by the matrix unit, whose weights the host writes while the model runs.

TPU v1 multiplies by tiles of weight memory only, and the host fills that memory. So where both sides of a product are computed, as in
attention, there are two ways. The host computes the product in float32. Or it writes the right side to weight memory as 8-bit tiles, and
the matrix unit multiplies the left side by them. The first costs the host a time for each multiplication, the second the crossings of the
link and one more stop of the device. Only products in the middle of the device's work have the choice: what the host computes before the
device starts, or after it has finished, takes none of the program's time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from math import prod

from tpucc.diagnostics import listed
from tpucc.ir.dataflow import Relations
from tpucc.ir.dtypes import DEFAULT_FORMAT
from tpucc.ir.graph import Graph, NoAttributes, Node
from tpucc.ir.types import TensorType, f32
from tpucc.numerics import INT32_MAX
from tpucc.ops import OPS, facts_of
from tpucc.ops.opdef import OnHost
from tpucc.passes.base import Context, Pass
from tpucc.passes.choices import require_choice
from tpucc.passes.place import is_devices
from tpucc.passes.rewriter import Rewriter, has_weights, is_product
from tpucc.target import Target
from tpucc.values import dataclass

WAYS = ("cheaper", "host", "device")
WORTHWHILE = 2
"""The host's way must take so many times as long: it computes in float32, and the matrix unit in 8-bit integers."""
NAMED = 3
"""Products that a note names; the others are counted."""


@dataclass(frozen=True)
class WriteWeights(Pass):
    """Rewrites products `a @ b` of two computed values to `a @ as_weights(b)`, where that takes half the cycles or less, by an estimate.

    `computed_products` may say one way for all: "host" or "device". The host's takes fewer rows of the unified buffer: a batch of matrices
    of weights can't be split.
    """

    name = "write-weights"
    summary = "lets the host write the right side of a product of computed values to weight memory, where that is cheaper"
    level = 1

    computed_products: str = "cheaper"

    def run(self, graph: Graph, context: Context) -> Graph:
        require_choice("way to compute products", self.computed_products, WAYS)
        choice = _Choice(graph, context, self.computed_products)
        rewriter = Rewriter(graph, self.name)
        for node in rewriter:
            rewriter.put(_with_weights(rewriter, node) if choice.by_device(node) else node)
        return rewriter.build().noting(*choice.notes())


def _with_weights(rewriter: Rewriter, node: Node) -> Node:
    """The product of a and `as_weights(b)`."""
    b = rewriter.nodes[node.operands[1]]

    def make() -> str:
        return rewriter.make(Node(f"{b.name}.weights", "as_weights", (b.name,), NoAttributes(), f32(*b.type.shape), node.origin)).name

    return replace(node, operands=(node.operands[0], rewriter.once(b.name, make)))


@dataclass
class _Choice:
    """The way of each product, asked in the order of the graph."""

    graph: Graph
    context: Context
    way: str
    _on_device: set[str] = field(default_factory=set)
    _chosen: dict[bool, list[tuple[Node, int, int]]] = field(default_factory=lambda: {True: [], False: []})

    def __post_init__(self) -> None:
        relations = Relations(self.graph)
        self._constants = relations.constants
        weighted = [node.name for node in relations.computed if has_weights(node, self.graph.operands(node), self._constants)]
        self._middle = relations.before(weighted).keys() & relations.after(weighted).keys()

    def by_device(self, node: Node) -> bool:
        """Whether the matrix unit computes the node as a product of two computed values."""
        operands = self.graph.operands(node)
        chosen = node.op == "matmul" and not self._constants.intersection(node.operands) and self._decided(node, *operands)
        if chosen or is_devices(node, operands, self._on_device, self._constants):
            self._on_device.add(node.name)
        return chosen

    def notes(self) -> Iterator[str]:
        """One note for each way: its products, and the estimates for the first of them."""
        for by_device, found in self._chosen.items():
            if not found:
                continue
            named = {node.origin.spans[:1] or node.name: " @ ".join(node.operands) for node, _, _ in reversed(found)}
            names = [*reversed(named.values())]
            shown = listed([*names[:NAMED], *([f"{len(names) - NAMED} others"] if len(names) > NAMED else [])])
            _, host, device = found[0]
            asked = "" if self.way == "cheaper" else ", as --write-weights-computed-products asks"
            if by_device:
                what, costs = f"the host writes the right side of {shown} to weight memory", (device, host, "on the host")
            else:
                what, costs = f"the host computes {shown}", (host, device, "by way of weight memory")
            yield f"{what}{asked}: about {costs[0]:,} cycles a product, and {costs[1]:,} {costs[2]}"

    def _decided(self, node: Node, a: Node, b: Node) -> bool:
        if not self._can(node, a, b) or (self.way != "device" and node.name not in self._middle):
            return False
        host, device = self._costs(node, a, b)
        cheaper = WORTHWHILE * device <= host and not self.context.sparing
        chosen = cheaper if self.way == "cheaper" else self.way == "device"
        self._chosen[chosen].append((node, host, device))
        return chosen

    def _can(self, node: Node, a: Node, b: Node) -> bool:
        """Whether the matrix unit can: 8-bit values, sums that fit the accumulators, rows of both sides that fit the unified buffer."""
        narrow = self.context.format is DEFAULT_FORMAT and not (b.type.rank > 2 and a.type.rank < 2)
        sums = b.type.shape[-2] * DEFAULT_FORMAT.largest * DEFAULT_FORMAT.largest
        room = self.context.target.unified_buffer_rows * self.context.cores
        return narrow and sums <= INT32_MAX and a.type.rows + node.type.rows <= room

    def _costs(self, node: Node, a: Node, b: Node) -> tuple[int, int]:
        """Estimated cycles of both ways: what the host computes and quantises, what crosses the link, stops and fetches of tiles."""
        target = self.context.target
        terms = facts_of(node.op).terms([a.type.shape, b.type.shape])
        wanted = any(isinstance(OPS[user.op].legalisation, OnHost) or is_product(user) for user in self.graph.users[node.name])
        host = target.host_step_cycles(node.type.size * terms) - target.host_step_cycles(0)
        host += sum(_crossing(operand.type, target) for operand in (a, b) if operand.name in self._on_device)
        host += 0 if wanted else _crossing(node.type, target)
        device = target.host_step_cycles(0) + _tiles(b.type, target)
        device += sum(_crossing(type_, target) for type_, crosses in self._crossings(node, a, b, wanted) if crosses)
        return host, device

    def _crossings(self, node: Node, a: Node, b: Node, wanted: bool) -> Iterator[tuple[TensorType, bool]]:
        """The values, and whether they cross the link when the matrix unit multiplies."""
        yield a.type, a.name not in self._on_device
        yield b.type, b.name in self._on_device
        yield node.type, wanted


def _crossing(type_: TensorType, target: Target) -> int:
    """Cycles to quantise or dequantise a value on the host, and to move it over the link."""
    blocks = -(-type_.columns // target.mxu)
    return target.host_step_cycles(type_.size) - target.host_step_cycles(0) + target.host_cycles(type_.rows * blocks)


def _tiles(type_: TensorType, target: Target) -> int:
    """Cycles to quantise matrices [..., K, N], to write their tiles, and to fetch them once."""
    *lead, depth, width = type_.shape
    blocks, matrices = -(-width // target.mxu), prod(lead)
    tiles = matrices * blocks * -(-depth // target.mxu)
    latency = target.host_cycles(0) * (tiles - 1)
    computed = target.host_step_cycles(type_.size) - target.host_step_cycles(0)
    return computed + latency + target.host_cycles(matrices * depth * blocks) + tiles * target.tile_fetch_cycles
