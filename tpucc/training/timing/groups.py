"""A step's graph in groups. A group is what one loop over the machine's registers computes, or one product.

- A product is a group. So are all reductions over the cores together.
- What is computed element by element is a loop, together with the sums and windows that it feeds, and with all that is connected to it. A
  loop ends where a product, a sum or a window is complete: only then can what depends on it begin.
- The operands of a product are computed while they stream into the array, where that isn't a sum's or another product's work.
- What one group computes and another reads is stored in memory, or computed again, if that reads at most twice as many bytes as the value
  has. The results of products, sums and windows are always stored.
- The first loop after a product reads its results while they are in vector memory. What nothing else reads isn't stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum, auto

from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import forward
from tpucc.ops import facts_of
from tpucc.ops.facts import UNCHANGED, Values

AGAIN = 2
"""A value is computed again where that reads at most so many times its bytes."""


class Kind(Enum):
    """How a node of a step is computed."""

    GIVEN = auto()
    VIEW = auto()
    """Another shape of a value; or a value turned, which the array takes as it is."""
    SCALAR = auto()
    LOOP = auto()
    SUM = auto()
    """A sum, a window or another function of several rows: it belongs to a loop, and ends it."""
    PRODUCT = auto()
    REDUCTION = auto()
    """Over the cores."""


ENDS = frozenset({Kind.SUM, Kind.PRODUCT, Kind.REDUCTION})
FUSED = frozenset({Kind.LOOP, Kind.SUM})


@dataclass(frozen=True)
class Group:
    """Operators that are computed together: `nodes` are those whose results are stored.

    `computed` has all of them, and those of other groups that are computed again. `operands` are the values of other groups, and what is
    given; those of them that are `near` are still in vector memory, the others are `read`. `written` are the values that memory gets.
    """

    nodes: tuple[Node, ...]
    computed: tuple[Node, ...]
    operands: tuple[str, ...]
    near: frozenset[str]
    written: tuple[str, ...]

    @property
    def read(self) -> tuple[str, ...]:
        return tuple(name for name in self.operands if name not in self.near)


class Grouping:
    """The groups of a graph, in an order in which they can be computed.

    `reduced` are the reductions over the cores, `held` values that the graph itself says memory holds; `size` gives the bytes of a value.
    `stored` has the values that memory holds.
    """

    def __init__(self, graph: Graph, reduced: Set[str], held: Set[str], size: Callable[[Node], int]) -> None:
        self.graph, self._size = graph, size
        self._kinds = _kinds(graph, reduced, held)
        self.source = forward(graph, self._source)
        self._needs = {node.name: tuple(dict.fromkeys(map(self.source.__getitem__, node.operands))) for node in graph}
        self._levels = self._found_levels()
        self._home = self._found_homes()
        self.stored = self._found_stored(held)
        self.groups = tuple(self._near(self._found_groups()))

    def kind(self, node: Node) -> Kind:
        return self._kinds[node.name]

    def _source(self, node: Node, operands: Mapping[str, str]) -> str:
        """The value that a view is of."""
        return operands[node.operands[0]] if self._kinds[node.name] is Kind.VIEW else node.name

    def _found_levels(self) -> dict[str, int]:
        """The products, sums and reductions on the longest path to each node. All reductions have one level: they are made together."""

        def levels(common: int) -> dict[str, int]:
            def level(node: Node, operands: Mapping[str, int]) -> int:
                after = max((at + (self._kinds[name] in ENDS) for name, at in operands.items()), default=0)
                return max(after, common) if self._kinds[node.name] is Kind.REDUCTION else after

            return forward(self.graph, level)

        first = levels(0)
        return levels(max((at for name, at in first.items() if self._kinds[name] is Kind.REDUCTION), default=0))

    def _found_homes(self) -> dict[str, str]:
        """For each node that is computed the first node of its group."""
        homes: dict[str, str] = {}
        members: dict[str, list[str]] = {}
        reduction = ""
        for node in self.graph:
            match self._kinds[node.name]:
                case Kind.PRODUCT:
                    homes[node.name] = node.name
                case Kind.REDUCTION:
                    reduction = homes[node.name] = reduction or node.name
                case Kind.LOOP | Kind.SUM:
                    homes[node.name], members[node.name] = node.name, [node.name]
                    for name in self._needs[node.name]:
                        if (
                            self._kinds[name] is Kind.LOOP
                            and self._levels[name] == self._levels[node.name]
                            and homes[name] != homes[node.name]
                        ):
                            few, many = sorted((homes[name], homes[node.name]), key=lambda home: len(members[home]))
                            homes |= dict.fromkeys(members[few], many)
                            members[many] += members.pop(few)
                case _:
                    pass
        return homes

    def _found_stored(self, held: Set[str]) -> set[str]:
        """The values that memory holds: what products and reductions read, the outputs, and what isn't cheap to compute again."""
        needed = {*held, *(self.source[name] for name in self.graph.output_nodes)}
        readers: dict[str, set[str]] = {}
        for node in self.graph:
            for name in self._needs[node.name]:
                readers.setdefault(name, set()).add(node.name)
                if self._kinds[node.name] is Kind.REDUCTION:
                    needed.add(name)
        stored = {name for name, kind in self._kinds.items() if kind in ENDS or (kind is Kind.LOOP and name in needed)}
        behind: dict[str, frozenset[str]] = {}
        """What is read to compute a value that isn't stored."""
        for node in self.graph:
            if self._kinds[node.name] is not Kind.LOOP or node.name in stored:
                continue
            behind[node.name] = frozenset().union(*(behind.get(name, frozenset({name})) for name in self._needs[node.name]))
            elsewhere = any(self._home.get(reader) != self._home[node.name] for reader in readers.get(node.name, ()))
            if elsewhere and round(sum(self._size(self.graph[name]) for name in behind[node.name]) / max(1, self._size(node))) > AGAIN:
                stored.add(node.name)
                del behind[node.name]
        return stored

    def _found_groups(self) -> Iterator[Group]:
        places = {node.name: place for place, node in enumerate(self.graph)}
        members: dict[str, list[Node]] = {}
        for node in self.graph:
            if node.name in self.stored:
                members.setdefault(self._home[node.name], []).append(node)

        def order(home: str) -> tuple[int, bool, int]:
            return self._levels[home], self._kinds[home] not in FUSED, places[home]

        for home in sorted(members, key=order):
            yield self._group(members[home])

    def _group(self, nodes: list[Node]) -> Group:
        """The group that stores the results of these nodes."""
        written, operands = tuple(node.name for node in nodes), dict[str, None]()
        own, needed, waiting = {*written}, {*written}, [*written]
        while waiting:
            for name in self._needs[waiting.pop()]:
                if self._kinds[name] is Kind.LOOP and name not in self.stored:
                    if name not in needed:
                        needed.add(name)
                        waiting.append(name)
                elif self._kinds[name] is not Kind.SCALAR and name not in own:
                    operands[name] = None
        computed = tuple(node for node in self.graph if node.name in needed) if len(needed) > 1 else tuple(nodes)
        return Group(tuple(nodes), computed, tuple(operands), frozenset(), written)

    def _near(self, groups: Iterable[Group]) -> Iterator[Group]:
        """The groups with what is read and written near: see the top of the module."""
        found = list(groups)
        readers: dict[str, list[int]] = {}
        for index, group in enumerate(found):
            for name in group.operands:
                readers.setdefault(name, []).append(index)
        outputs = {self.source[name] for name in self.graph.output_nodes}
        near: dict[int, set[str]] = {}
        only = set()
        for name, indices in readers.items():
            first = found[indices[0]]
            if self._kinds[name] is Kind.PRODUCT and self._kinds[first.nodes[0].name] in FUSED:
                near.setdefault(indices[0], set()).add(name)
                if len(indices) == 1 and name not in outputs:
                    only.add(name)
        for index, group in enumerate(found):
            written = tuple(name for name in group.written if name not in only)
            yield Group(group.nodes, group.computed, group.operands, frozenset(near.get(index, ())), written)


def _kinds(graph: Graph, reduced: Set[str], held: Set[str]) -> dict[str, Kind]:
    products = {
        node.name for node in graph if facts_of(node.op).products(node.attributes, [each.type.shape for each in graph.operands(node)])
    }

    def kind(node: Node, operands: Mapping[str, Kind]) -> Kind:
        facts, types = facts_of(node.op), [each.type for each in graph.operands(node)]
        if facts.values is Values.GIVEN:
            return Kind.GIVEN
        if node.name in reduced:
            return Kind.REDUCTION
        if node.name in products:
            return Kind.PRODUCT
        if node.name in held and graph.operands(node)[0].is_input:
            return Kind.VIEW  # it arrives so
        if facts.values is Values.VIEWED or (facts.values is Values.PICKED and _turned(graph, node, products)):
            return Kind.VIEW
        if node.type.size == 1 and all(type_.size == 1 for type_ in types):
            return Kind.SCALAR
        whole = facts.values in UNCHANGED or node.type.size >= max(type_.size for type_ in types)
        return Kind.LOOP if whole and facts.windows is None else Kind.SUM

    return forward(graph, kind)


def _turned(graph: Graph, node: Node, products: Set[str]) -> bool:
    """Whether a node is a matrix turned for products alone."""
    (operand,) = graph.operands(node)
    turned = node.type.rank > 1 and node.type.shape == (*operand.type.shape[:-2], *operand.type.shape[:-3:-1])
    return turned and all(reader.name in products for reader in graph.users[node.name])
