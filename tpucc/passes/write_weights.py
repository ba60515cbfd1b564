"""Products of two computed values: by the host, or by the matrix unit, whose weights the host writes while the model runs.

TPU v1 multiplies by tiles of weight memory only, and the host fills that memory. So where both sides of a product are computed, as in
attention, there are two ways. The host computes the product in float32. Or it writes the right side to weight memory as 8-bit tiles, and
the matrix unit multiplies the left side by them. The first costs the host a time for each multiplication, the second the crossings of the
link, and further stops of the device where the host reads such a product before the device goes on. Products that the host would compute in
one step share these stops, so they are decided together.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod

from tpucc.diagnostics import some
from tpucc.ir import Graph, Node, TensorType
from tpucc.ir.dataflow import constant_values, stages
from tpucc.ir.dtypes import DEFAULT_FORMAT
from tpucc.numerics import INT32_MAX
from tpucc.ops import OPS, facts_of
from tpucc.ops.names import as_weights, matmul
from tpucc.ops.opdef import Expression, OnHost
from tpucc.passes.base import Context, graph_pass, require_choice
from tpucc.passes.device_work import device_values, is_devices
from tpucc.passes.rewriter import has_weights, is_product, is_written
from tpucc.passes.rules import Match, Rules, rule, value
from tpucc.target import Target

WAYS = ("cheaper", "host", "device")
WORTHWHILE = 2
"""The matrix unit is chosen only if the host would take at least this many times its cycles: the host computes in float32, and the
matrix unit in 8-bit integers."""
NAMED = 3
"""Products that a note names; the others are counted."""


@graph_pass(
    "write-weights", "lets the host write the right side of a product of computed values to weight memory, where that is cheaper", level=1
)
def write_weights(graph: Graph, context: Context, *, computed_products: str = "cheaper") -> Graph:
    """Rewrites products `a @ b` of two computed values to `a @ as_weights(b)`, where that takes half the cycles or less, by an estimate.

    `computed_products` may say one way for all: "host" or "device". "host" helps where rows of the unified buffer are short: a batch whose
    matrices are written as weights can't be split.
    """
    require_choice("way to compute products", computed_products, WAYS)
    choice = _Choice(graph, context, computed_products)
    return _written(graph, context, choice.by_device).noting(*choice.notes())


def _written(graph: Graph, context: Context, products: Collection[str]) -> Graph:
    """The graph in which the right sides of these products are written to weight memory."""
    of_computed = matmul(value("a"), value("b"))
    written = rule("a product of computed values", of_computed, _with_weights, lambda m: m.root.name in products and not is_written(m.b))
    return Rules("write-weights", written).run(graph, context)


def _with_weights(m: Match) -> Expression:
    """The product of a and `as_weights(b)`, which products of the same b share."""
    return matmul(m.a, m.rewriter.once(m.b.name, lambda: m.rewriter.add(as_weights(m.b), m.root, f"{m.b.name}.weights")))


@dataclass(frozen=True, slots=True)
class _Product:
    """A product that has the choice, with estimated cycles of both ways."""

    node: Node
    stage: int
    """The host's stage (see `stages`) in which it would compute this product. The products of a stage share one stop."""
    host: int
    device: int
    """Without further stops, which the products of a stage share."""
    by_device: bool


class _Choice:
    """The way of each product of a graph."""

    def __init__(self, graph: Graph, context: Context, way: str) -> None:
        self.graph, self.context, self.way = graph, context, way
        self._constants = constant_values(graph)
        self._possible = {node.name for node in graph if self._has_choice(node)}
        self._products = self._decided()
        self.by_device = {product.node.name for product in self._products if product.by_device}
        """The products of two computed values that the matrix unit computes."""

    def notes(self) -> Iterator[str]:
        """One note for each way: its products, and the estimates for all of them."""
        if not self._products:
            return
        asked = "" if self.way == "cheaper" else ", as --write-weights-computed-products asks"
        stops = sum(self._stops(self.by_device))
        further = sum(self._stops(self._possible)) - stops if len(self.by_device) < len(self._possible) else 0
        for by_device in (True, False):
            found = [product for product in self._products if product.by_device is by_device]
            if not found:
                continue
            shown = _shown([product.node for product in found])
            host = sum(product.host for product in found)
            device = sum(product.device for product in found) + self._stopping(stops if by_device else further)
            run = "runs" if len(found) == 1 else "run"
            if by_device:
                yield f"{shown} {run} on the matrix unit in 8 bits{asked} (about {device:,} cycles). The host would take {host:,}."
                continue
            is_dearer = self.way == "cheaper" and host > device
            why = "; we trade precision for speed only when it at least halves the time" * is_dearer
            yield f"{shown} {run} on the host in float32{asked} (about {host:,} cycles). The matrix unit would take {device:,}{why}."

    def _has_choice(self, node: Node) -> bool:
        if not matmul.made(node) or self._constants.intersection(node.operands):
            return False
        return self._can(node, *self.graph.operands(node))

    def _decided(self) -> list[_Product]:
        """All products, with estimates for the final choice. Of a stage that isn't worth its stops, the matrix unit computes the
        products that are worth a stop each."""
        with_own_stop: set[int] = set()
        while True:
            found = self._chosen(with_own_stop)
            dear = self._not_worthwhile(found) - with_own_stop if self.way == "cheaper" else set()
            if not dear:
                return found
            with_own_stop |= dear

    def _not_worthwhile(self, products: Sequence[_Product]) -> set[int]:
        """The stages of which the matrix unit would compute products that together aren't worth their stops."""
        chosen = [product for product in products if product.by_device]
        if not chosen:
            return set()
        saved = [-WORTHWHILE * self._stopping(count) for count in self._stops({product.node.name for product in chosen})]
        for product in chosen:
            saved[product.stage] += product.host - WORTHWHILE * product.device
        return {product.stage for product in chosen if saved[product.stage] < 0}

    def _chosen(self, with_own_stop: Collection[int]) -> list[_Product]:
        """The products in the order of the graph, each chosen without stops, but in the stages `with_own_stop` with one of its own."""
        on_device: set[str] = set()
        found: list[_Product] = []
        for node in self.graph:
            operands = self.graph.operands(node)
            chosen = False
            if node.name in self._possible:
                host, device = self._costs(node, operands[0], operands[1], on_device)
                stage = self._stages[node.name]
                stop = self._stopping(1) if stage in with_own_stop else 0
                cheaper = WORTHWHILE * (device + stop) <= host and not self.context.sparing
                chosen = cheaper if self.way == "cheaper" else self.way == "device"
                found.append(_Product(node, stage, host, device, chosen))
            if chosen or is_devices(node, operands, not on_device.isdisjoint(node.operands), self._constants):
                on_device.add(node.name)
        return found

    def _stopping(self, stops: int) -> int:
        """Cycles of so many stops, without what the host computes in them."""
        return stops * self.context.target.host_step_cycles(0)

    @cached_property
    def _devices_own(self) -> frozenset[str]:
        """The values that the device has if the host computes all products of computed values."""
        return device_values(self.graph)

    @cached_property
    def _stages(self) -> Mapping[str, int]:
        """The stages and segments of all nodes, if the host computes these products."""
        return stages(self.graph, self._devices_own)

    def _stops(self, products: Collection[str]) -> Sequence[int]:
        """The further stops of each stage, if the matrix unit computes `products`: by how many segments what follows is later. Where the
        device has nothing else to do, its results are one more."""
        graph = _written(self.graph, self.context, products)
        on_device = device_values(graph)
        before, after = self._stages, stages(graph, on_device)
        last = max((before[name] for name in self._devices_own), default=0)
        later = [0] * (1 + max(before.values(), default=0))
        for name in on_device & before.keys():
            later[before[name]] = max(later[before[name]], after[name] - min(before[name], last))
        first = int(bool(products) and not self._devices_own)
        return [now - then for then, now in pairwise([0, *(first + most for most in accumulate(later, max))])]

    def _can(self, node: Node, a: Node, b: Node) -> bool:
        """Whether the matrix unit can: 8-bit values, sums that fit the accumulators, rows of both sides that fit the unified buffer."""
        narrow = self.context.format is DEFAULT_FORMAT and not (b.type.rank > 2 and a.type.rank < 2)
        sums = b.type.shape[-2] * DEFAULT_FORMAT.largest * DEFAULT_FORMAT.largest
        room = self.context.target.unified_buffer_rows * self.context.cores
        return narrow and sums <= INT32_MAX and a.type.rows + node.type.rows <= room

    def _costs(self, node: Node, a: Node, b: Node, on_device: Container[str]) -> tuple[int, int]:
        """Estimated cycles of both ways: what the host computes and quantises, what crosses the link, and fetches of tiles."""
        target = self.context.target
        terms = facts_of(node.op).terms([a.type.shape, b.type.shape])
        host_reads = any(self._may_be_hosts(user) for user in self.graph.users[node.name])
        host = target.host_step_cycles(node.type.size * terms) - target.host_step_cycles(0)
        host += sum(_crossing_cycles(operand.type, target) for operand in (a, b) if operand.name in on_device)
        host += 0 if host_reads else _crossing_cycles(node.type, target)
        crossings = ((a.type, a.name not in on_device), (b.type, b.name in on_device), (node.type, host_reads))
        device = _tile_cycles(b.type, target) + sum(_crossing_cycles(type_, target) for type_, crosses in crossings if crosses)
        return host, device

    def _may_be_hosts(self, node: Node) -> bool:
        """Whether the host may compute a node: what only the host can, and products of two computed values."""
        if is_product(node):
            return not has_weights(node, self.graph.operands(node), self._constants)
        return isinstance(OPS[node.op].legalisation, OnHost)


def _shown(products: Sequence[Node]) -> str:
    """The products as in a source, `a @ b`: the first few of many, those of an unrolled loop once."""
    named = dict[object, str]()
    for node in products:
        named.setdefault(node.origin.spans[:1] or node.name, node.origin.after(" @ ".join(node.operands)))
    names = list(named.values())
    shown = some(names, NAMED)
    if len(products) == 1:
        return shown
    return f"{len(products):,} products ({'' if len(names) == len(products) else 'like '}{shown})"


def _crossing_cycles(type_: TensorType, target: Target) -> int:
    """Cycles to quantise or dequantise a value on the host, and to move it over the link."""
    blocks = -(-type_.columns // target.mxu)
    return target.host_step_cycles(type_.size) - target.host_step_cycles(0) + target.host_cycles(type_.rows * blocks)


def _tile_cycles(type_: TensorType, target: Target) -> int:
    """Cycles to quantise matrices [..., K, N], to write their tiles, and to fetch them once."""
    *lead, depth, width = type_.shape
    blocks, matrices = -(-width // target.mxu), prod(lead)
    tiles = matrices * blocks * -(-depth // target.mxu)
    latency = target.host_cycles(0) * (tiles - 1)
    computed = target.host_step_cycles(type_.size) - target.host_step_cycles(0)
    return computed + latency + target.host_cycles(matrices * depth * blocks) + tiles * target.tile_fetch_cycles
