"""A step's graph in groups. A group is what one loop over the machine's registers computes, or one product.

- A product is a group. So are all reductions over the cores together.
- What is computed element by element is a loop, together with the sums and windows that it feeds, and with all that is connected to it:
  what reads its values, or the result of the same product. A loop ends where a product, a sum or a window is complete: only then can what
  depends on it begin.
- The operands of a product are computed while they stream into the array, where that isn't a sum's or another product's work.
- What one group computes and another reads is stored in memory, or computed again, if that reads at most two and a half times as many bytes
  as the value has: two values of its size, and vectors. The results of products, sums and windows are always stored.
- A loop that follows a product at once takes its results as they leave the array. What nothing else reads isn't stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum, auto

from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import forward
from tpucc.ops import facts_of
from tpucc.ops.facts import UNCHANGED, Values, selects
from tpucc.ops.transpose import TransposeAttributes
from tpucc.training.batches import values_with_batch

AGAIN = 2.5
"""A value is computed again where that reads at most so many times its bytes."""


class Kind(Enum):
    """How a node of a step is computed."""

    GIVEN = auto()
    VIEW = auto()
    """Another shape of a value, or the same value rounded as memory holds it; or a value turned, which the array takes as it is."""
    SCALAR = auto()
    """One value of one value: a part of an instruction."""
    LOOP = auto()
    SUM = auto()
    """A sum, a window or another function of several rows or items: it belongs to a loop, and ends it."""
    PRODUCT = auto()
    REDUCTION = auto()
    """Over the cores."""


ENDS = frozenset({Kind.SUM, Kind.PRODUCT, Kind.REDUCTION})
FUSED = frozenset({Kind.LOOP, Kind.SUM})


@dataclass(frozen=True)
class Group:
    """Operators that are computed together: `nodes` are those whose results other groups or the outputs need, and sums.

    `computed` has all of them, and those of other groups that are computed again. `operands` are the values of other groups, and what is
    given; those of them that are `near` are taken as they leave the array, the others are `read`. `written` are the values that memory
    gets. `after` are the values that it waits for: the operands, and those behind scalars.
    """

    nodes: tuple[Node, ...]
    computed: tuple[Node, ...]
    operands: tuple[str, ...]
    after: tuple[str, ...]
    near: frozenset[str] = frozenset()
    written: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """The operands that come from memory."""
        return tuple(name for name in self.operands if name not in self.near)


class Grouping:
    """The groups of a graph, in an order in which they can be computed.

    `reduced` are the reductions over the cores, `rounded` the values that are those of their operands, rounded as memory holds them; `size`
    gives the bytes of a value.
    """

    def __init__(self, graph: Graph, reduced: Set[str], rounded: Set[str], size: Callable[[Node], int]) -> None:
        self.graph, self._size = graph, size
        self._kinds = _kinds(graph, reduced, rounded)
        self.source = forward(graph, self._source)
        self._needs = {node.name: tuple(dict.fromkeys(map(self.source.__getitem__, node.operands))) for node in graph}
        self._outputs = frozenset(self.source[name] for name in graph.output_nodes)
        self._places = {node.name: place for place, node in enumerate(graph)}
        self._levels = self._found_levels()
        self._home = self._found_homes()
        self._stored = self._found_stored()
        self.groups = tuple(self._with_memory(list(self._found_groups())))

    def kind(self, node: Node) -> Kind:
        return self._kinds[node.name]

    def own(self, group: Group) -> tuple[Node, ...]:
        """What a group computes and no other group does."""
        home = self._home[group.nodes[0].name]
        return tuple(node for node in group.computed if self._home[node.name] == home)

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
        """For each node that is computed the node that its group goes by."""
        homes: dict[str, str] = {}
        members: dict[str, list[str]] = {}
        first: dict[tuple[str, int], str] = {}
        """For each product the first node of each level of the loops that read it."""
        reduction = ""

        def join(one: str, other: str) -> None:
            if homes[one] != homes[other]:
                few, many = sorted((homes[one], homes[other]), key=lambda home: len(members[home]))
                homes.update(dict.fromkeys(members[few], many))
                members[many] += members.pop(few)

        for node in self.graph:
            level = self._levels[node.name]
            match self._kinds[node.name]:
                case Kind.PRODUCT:
                    homes[node.name] = node.name
                case Kind.REDUCTION:
                    reduction = homes[node.name] = reduction or node.name
                case Kind.LOOP | Kind.SUM:
                    homes[node.name], members[node.name] = node.name, [node.name]
                    for name in self._needs[node.name]:
                        if self._kinds[name] is Kind.LOOP and self._levels[name] == level:
                            join(name, node.name)
                        elif self._kinds[name] is Kind.PRODUCT:
                            join(first.setdefault((name, level), node.name), node.name)
                case _:
                    pass
        return homes

    def _found_stored(self) -> set[str]:
        """The values that other groups may need: what reductions read, the outputs, and what isn't cheap to compute again."""
        needed = {*self._outputs}
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
            if elsewhere and sum(self._size(self.graph[name]) for name in behind[node.name]) > AGAIN * self._size(node):
                stored.add(node.name)
                del behind[node.name]
        return stored

    def _found_groups(self) -> Iterator[Group]:
        members: dict[str, list[Node]] = {}
        for node in self.graph:
            if node.name in self._stored:
                members.setdefault(self._home[node.name], []).append(node)

        def order(home: str) -> tuple[int, bool, int]:
            return self._levels[home], self._kinds[home] not in FUSED, self._places[home]

        return (self._group(members[home]) for home in sorted(members, key=order))

    def _group(self, nodes: list[Node]) -> Group:
        """The group that computes these nodes."""
        own, operands, after = {node.name for node in nodes}, dict[str, None](), dict[str, None]()
        needed, waiting = {*own}, [node.name for node in nodes]
        while waiting:
            for name in self._needs[waiting.pop()]:
                kind = self._kinds[name]
                if kind is Kind.SCALAR or (kind is Kind.LOOP and name not in self._stored):
                    if name not in needed:
                        needed.add(name)
                        waiting.append(name)
                elif name not in own:
                    after[name] = None
        computed = tuple(self.graph[name] for name in sorted(needed, key=self._places.__getitem__) if self._kinds[name] is not Kind.SCALAR)
        for node in computed:
            operands |= {name: None for name in self._needs[node.name] if name in after}
        return Group(tuple(nodes), computed, tuple(operands), tuple(after))

    def _with_memory(self, groups: list[Group]) -> Iterator[Group]:
        """The groups with what is near, and what is written: see the top of the module."""
        readers: dict[str, list[int]] = {}
        for index, group in enumerate(groups):
            for name in group.operands:
                readers.setdefault(name, []).append(index)
        near: dict[int, set[str]] = {}
        kept: set[str] = {*self._outputs}
        for name, indices in readers.items():
            first = groups[indices[0]].nodes[0].name
            follows = self._kinds[first] in FUSED and self._levels[first] == self._levels[name] + 1
            if self._kinds[name] is Kind.PRODUCT and follows:
                near.setdefault(indices[0], set()).add(name)
                indices = indices[1:]
            if indices:
                kept.add(name)
        for index, group in enumerate(groups):
            written = tuple(node.name for node in group.nodes if node.name in kept)
            yield replace(group, near=frozenset(near.get(index, ())), written=written)


def _kinds(graph: Graph, reduced: Set[str], rounded: Set[str]) -> dict[str, Kind]:
    shapes = {node.name: [operand.type.shape for operand in graph.operands(node)] for node in graph}
    products = {node.name for node in graph if facts_of(node.op).products(node.attributes, shapes[node.name])}
    batches = values_with_batch(graph)

    def kind(node: Node, operands: Mapping[str, Kind]) -> Kind:
        facts, types = facts_of(node.op), [each.type for each in graph.operands(node)]
        if facts.values is Values.GIVEN:
            return Kind.GIVEN
        if node.name in reduced:
            return Kind.REDUCTION
        if node.name in products:
            return Kind.PRODUCT
        if node.name in rounded or facts.values is Values.VIEWED or _is_turned(graph, node, products):
            return Kind.VIEW
        if node.type.size == 1 and all(type_.size == 1 for type_ in types):
            return Kind.SCALAR
        if facts.windows is not None or (node.name not in batches and not batches.isdisjoint(node.operands)):
            return Kind.SUM
        smaller = node.type.size < max((type_.size for type_ in types), default=0)
        return Kind.SUM if smaller and not selects(facts) and facts.values not in UNCHANGED else Kind.LOOP

    return forward(graph, kind)


def _is_turned(graph: Graph, node: Node, products: Set[str]) -> bool:
    """Whether a node is matrices turned, for products alone."""
    if not isinstance(node.attributes, TransposeAttributes) or node.type.rank < 2:
        return False
    rank = node.type.rank
    turned = [axis % rank for axis in node.attributes.perm] == [*range(rank - 2), rank - 1, rank - 2]
    return turned and all(reader.name in products for reader in graph.users[node.name])
