"""How long a step of training takes: the work of each group, and two clocks over the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir import Graph, Node
from tpucc.machines.v2 import units
from tpucc.machines.v2.units import Unit, Work
from tpucc.ops import facts_of
from tpucc.ops.facts import Values
from tpucc.ops.opdef import Given
from tpucc.target import Target
from tpucc.training.costs import all_reduce
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.roles import Role, roles
from tpucc.training.step import Step
from tpucc.training.timing.groups import Group, Grouping, Kind
from tpucc.training.timing.operations import operations


@dataclass(frozen=True)
class Timed:
    """A group with its time: `seconds` by unit, and `bytes` that cross the memory's interface, by what they are."""

    group: Group
    role: Role
    seconds: Mapping[Unit, float]
    bytes: Mapping[str, int]
    whole: float
    """Seconds: those of the slowest unit, and the latency of memory."""

    @property
    def name(self) -> str:
        return self.group.nodes[0].name

    @property
    def bound(self) -> Unit:
        return units.largest(dict(self.seconds))


class StepTime:
    """The time of a step on `cores` cores of a target, a part of the batch each."""

    def __init__(self, step: Step, target: Target) -> None:
        self.step, self.target, self.cores = step, target, step.parts
        self._graph = step.graph
        self._roles = roles(step)
        reduced = {node.name for node in self._graph if isinstance(node.attributes, AllReduceAttributes)}
        self._held = {node.name for node in self._graph if isinstance(node.attributes, RoundToBfloat16Attributes)}
        self._grouping = Grouping(self._graph, reduced, self._held, self._bytes)
        self.groups = tuple(map(self._timed, self._grouping.groups))

    @property
    def seconds(self) -> float:
        """One group after the other."""
        return sum(group.whole for group in self.groups)

    @cached_property
    def overlapped(self) -> float:
        """Seconds where a group begins as soon as its operands are there and its units are free: what the order of the groups allows."""
        free = dict.fromkeys(Unit, 0.0)
        ready: dict[str, float] = {}
        for timed in self.groups:
            start = max((ready.get(name, 0.0) for name in timed.group.operands), default=0.0)
            start = max(start, *(free[unit] for unit, seconds in timed.seconds.items() if seconds))
            free |= {unit: start + seconds for unit, seconds in timed.seconds.items() if seconds}
            ready |= dict.fromkeys((node.name for node in timed.group.nodes), start + timed.whole)
        return max(ready.values(), default=0.0)

    @property
    def by_unit(self) -> dict[Unit, float]:
        return units.total(dict(group.seconds) for group in self.groups)

    @property
    def bytes(self) -> dict[str, int]:
        """The bytes that cross the memory's interface, by what they are."""
        found: dict[str, int] = {}
        for group in self.groups:
            for what, size in group.bytes.items():
                found[what] = found.get(what, 0) + size
        return found

    @cached_property
    def held_bytes(self) -> int:
        """The most that a core's memory holds at once: what is given, all the time; a value from where it is written to its last reader."""
        given = sum(self._bytes(node) for node in self._graph if self._grouping.kind(node) is Kind.GIVEN)
        last = {name: index for index, timed in enumerate(self.groups) for name in timed.group.read}
        held, most = 0, 0
        freed: dict[int, int] = {}
        for index, timed in enumerate(self.groups):
            for name in timed.group.written:
                size = self._bytes(self._graph[name])
                held += size
                until = last.get(name, len(self.groups))
                freed[until] = freed.get(until, 0) + size
            most = max(most, held)
            held -= freed.pop(index, 0)
        return given + most

    @property
    def room(self) -> int:
        """Bytes of a core's share of its chip's memory."""
        return self.target.weight_memory_bytes // self.target.cores

    def _bytes(self, node: Node) -> int:
        """The bytes of a value in memory: rows of whole lanes. A scalar is part of an instruction."""
        half = node.name in self._held or (node.is_input and self._held.issuperset(reader.name for reader in self._graph.users[node.name]))
        return 0 if node.type.size == 1 else units.rows(node.type.shape, self.target) * units.row_bytes(self.target) >> half

    def _timed(self, group: Group) -> Timed:
        work = self._work(group)
        seconds = work.seconds(self.target)
        role = self._roles[group.nodes[0].name]
        return Timed(group, role, seconds, work.moved, max(seconds.values()) + self.target.hbm_latency_seconds)

    def _work(self, group: Group) -> Work:
        work = Work()
        for name in (*group.read, *group.written):
            what = self._what(self._graph[name])
            work.moved[what] = work.moved.get(what, 0) + self._bytes(self._graph[name])
        reduced = 0
        for node in group.computed:
            match self._grouping.kind(node):
                case Kind.PRODUCT:
                    self._add_products(node, work)
                case Kind.REDUCTION:
                    reduced += node.type.size * units.VALUE_BYTES
                case kind:
                    self._add_loop(node, kind, work)
        if reduced:
            moved = sum(work.moved.values()) / units.core_bandwidth(self.target)
            work.link_seconds = all_reduce(reduced, self.cores, self.target).seconds + moved
        return work

    def _add_products(self, node: Node, work: Work) -> None:
        operands = self._graph.operands(node)
        fixed = any(self._given(self._grouping.source[operand.name]) for operand in operands)
        for product in facts_of(node.op).products(node.attributes, [operand.type.shape for operand in operands]):
            found = units.passes(product.rows, product.depth, product.columns, self.target, weights=fixed)
            work.array += product.count * found.cycles
            work.lanes += product.count * units.turning_cycles(found.turned_blocks, self.target)

    def _given(self, name: str) -> bool:
        return self._grouping.kind(self._graph[name]) is Kind.GIVEN and not self._graph[name].is_input

    def _add_loop(self, node: Node, kind: Kind, work: Work) -> None:
        operands = self._graph.operands(node)
        result = units.rows(node.type.shape, self.target)
        largest = max((units.rows(operand.type.shape, self.target) for operand in operands), default=result)
        ranks = tuple(operand.type.rank for operand in operands)
        facts = facts_of(node.op)
        touched = max(largest, result)
        if facts.windows is not None:
            height, width = facts.windows(node.attributes, [operand.type.shape for operand in operands])
            touched = result * height.window * width.window
        work.vector += touched * (0 if facts.values is not Values.COMPUTED else operations(node.op, node.attributes, ranks))
        if kind is Kind.SUM and operands and operands[0].type.shape[-1:] != node.type.shape[-1:]:
            work.lanes += units.reducing_cycles(largest, self.target)

    def _what(self, node: Node) -> str:
        """What the bytes of a value are, in a word."""
        if node.is_input:
            return "inputs"
        if isinstance(self._kind_of_given(node), Given):
            return "states"
        role = self._roles.get(node.name)
        return {Role.FORWARD: "activations", Role.STATISTICS: "states", Role.OPTIMIZER: "states"}.get(role, "gradients")  # type: ignore[call-overload, no-any-return]

    def _kind_of_given(self, node: Node) -> object:
        from tpucc.ops import OPS

        return OPS[node.op].legalisation
