"""How long a step of training takes: the work of each group of operators, and two clocks over the groups.

A machine has one core a part of the batch. The time of a group is its slowest unit's, and the latency of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, listed
from tpucc.ir import Graph, Node
from tpucc.machines.v2.units import VALUE_BYTES, Unit, Work, packed_rows_of, rows_of
from tpucc.ops import facts_of
from tpucc.ops.facts import Values
from tpucc.target import STEP_NUMBERS, Target
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.names import key_of
from tpucc.training.roles import Role, roles
from tpucc.training.step import Step
from tpucc.training.timing.groups import Group, Grouping, Kind
from tpucc.training.timing.operations import operations

CONTENTS: Mapping[Role, str] = {Role.FORWARD: "activations", Role.BACKWARD: "gradients", Role.REDUCE: "gradients"}
"""What the values of a part of a step are; those of the others are states."""


@dataclass(frozen=True)
class TimedGroup:
    """A group and its time: `busy` has the seconds of each unit, `seconds` those of the slowest and the latency of memory.

    `name` is the key of the weight that it multiplies by, or else the name of its largest value. `bytes` are those that cross the memory's
    interface, by what they are.
    """

    name: str
    group: Group
    role: Role
    busy: Mapping[Unit, float]
    bytes: Mapping[str, int]
    seconds: float

    @property
    def bound(self) -> Unit:
        """The unit that is at work longest."""
        return max(self.busy, key=lambda unit: self.busy[unit])


class StepTime:
    """The time of a step on a target, each part of the batch on a core of its own.

    Raises `UsageError` E0948 for a target of which not all numbers are known.
    """

    def __init__(self, step: Step, target: Target) -> None:
        require_timed(target)
        self.step, self.target, self.cores = step, target, step.parts
        self._graph: Graph = step.graph
        self._roles = roles(step)
        self._held = frozenset(node.name for node in self._graph if isinstance(node.attributes, RoundToBfloat16Attributes))
        reduced = frozenset(node.name for node in self._graph if isinstance(node.attributes, AllReduceAttributes))
        self._grouping = Grouping(self._graph, reduced, self._held, self._bytes)
        self.groups = tuple(map(self._timed, self._grouping.groups))

    @property
    def examples(self) -> int:
        """The examples of the batch, of all cores: the first axis of the inputs."""
        return self.cores * max((node.type.shape[0] for node in self._graph.inputs if node.type.rank > 1), default=1)

    @property
    def seconds(self) -> float:
        """One group after the other, as profiles of TPU v2 show them."""
        return sum(group.seconds for group in self.groups)

    @cached_property
    def overlapped_seconds(self) -> float:
        """Seconds if a group began as soon as its operands were there and its units free: what the order of the groups allows at best."""
        free = dict.fromkeys(Unit, 0.0)
        ready: dict[str, float] = {}
        for timed in self.groups:
            used = [unit for unit, seconds in timed.busy.items() if seconds]
            start = max([0.0, *(ready.get(name, 0.0) for name in timed.group.operands), *(free[unit] for unit in used)])
            free |= {unit: start + timed.busy[unit] for unit in used}
            ready |= dict.fromkeys((node.name for node in timed.group.nodes), start + timed.seconds)
        return max(ready.values(), default=0.0)

    @property
    def busy(self) -> dict[Unit, float]:
        """The seconds for which each unit is at work."""
        return {unit: sum(group.busy[unit] for group in self.groups) for unit in Unit}

    @property
    def limited(self) -> dict[Unit, float]:
        """The seconds for which each unit is at work in groups that it limits; with the latency of memory they are all of the time."""
        return {unit: sum(group.busy[unit] for group in self.groups if group.bound is unit) for unit in Unit}

    @property
    def bound(self) -> Unit:
        """The unit that limits the largest share of the time."""
        return max(Unit, key=lambda unit: self.limited[unit])

    @property
    def limits(self) -> str:
        """The largest share of the time, in words: `array 52 %`, `latency 61 %`, of memory."""
        name, seconds = max([("latency", self.latency_seconds), *self.limited.items()], key=lambda each: each[1])
        return f"{name} {100 * seconds / self.seconds:.0f} %"

    @property
    def host_seconds(self) -> float:
        """Seconds in which the host writes the inputs of a batch, by the price of a host step: assumed. They are beside the device's."""
        return self.target.host_part_seconds(self.cores * sum(node.type.size for node in self._graph.inputs))

    @property
    def bytes(self) -> Counter[str]:
        """The bytes that cross the memory's interface, by what they are."""
        return sum((Counter(group.bytes) for group in self.groups), Counter())

    @property
    def latency_seconds(self) -> float:
        """Seconds that are the latency of memory, which is assumed."""
        return len(self.groups) * self.target.hbm_latency_seconds

    @cached_property
    def held_bytes(self) -> int:
        """The most bytes that a core's memory holds at once: what is given, all the time; a value from its group to its last reader."""
        given = sum(self._bytes(node) for node in self._graph if self._grouping.kind(node) is Kind.GIVEN)
        last = {name: index for index, timed in enumerate(self.groups) for name in timed.group.read}
        held, most, freed = 0, 0, Counter[int]()
        for index, timed in enumerate(self.groups):
            for name in timed.group.written:
                size = self._bytes(self._graph[name])
                held += size
                freed[last.get(name, len(self.groups))] += size
            most = max(most, held)
            held -= freed[index]
        return given + most

    @property
    def memory_bytes(self) -> int:
        """The bytes of a core's share of its chip's memory."""
        return self.target.weight_memory_bytes // self.target.cores

    def _bytes(self, node: Node) -> int:
        """The bytes of a value in memory: rows of whole lanes, half of them for what is rounded. A scalar is part of an instruction."""
        if node.type.size == 1:
            return 0
        half = node.name in self._held or (node.is_input and self._held.issuperset(reader.name for reader in self._graph.users[node.name]))
        rows = (packed_rows_of if node.is_input else rows_of)(node.type.shape, self.target.mxu)
        return rows * self.target.mxu * VALUE_BYTES >> half

    def _timed(self, group: Group) -> TimedGroup:
        work = Work(self.target)
        for name in (*group.read, *group.written):
            work.bytes[self._contents(self._graph[name])] += self._bytes(self._graph[name])
        reduced = 0
        for node in group.computed:
            match self._grouping.kind(node):
                case Kind.PRODUCT:
                    self._add_products(node, work)
                case Kind.REDUCTION:
                    reduced += node.type.size * VALUE_BYTES
                case kind:
                    self._add_loop(node, kind, work)
        if reduced:
            work.add_exchange(reduced, self.cores)
        busy, main = work.seconds(), max(group.nodes, key=self._bytes)
        factors = [self._grouping.source[name] for name in main.operands] if self._grouping.kind(main) is Kind.PRODUCT else []
        keys = [key_of(self._graph[name]) for name in factors if self._is_state(name)]
        return TimedGroup(
            (*keys, main.name)[0], group, self._roles[main.name], busy, work.bytes, max(busy.values()) + self.target.hbm_latency_seconds
        )

    def _add_products(self, node: Node, work: Work) -> None:
        operands = self._graph.operands(node)
        weights = any(self._is_state(self._grouping.source[operand.name]) for operand in operands)
        for product in facts_of(node.op).products(node.attributes, [operand.type.shape for operand in operands]):
            for _ in range(product.times):
                work.add_product(product.rows, product.depth, product.columns, weights=weights)
                if product.patches is not None:
                    work.add_patches(*product.patches, packed=self._graph[self._grouping.source[operands[0].name]].is_input)

    def _is_state(self, name: str) -> bool:
        return isinstance(self._graph[name].attributes, StateAttributes)

    def _add_loop(self, node: Node, kind: Kind, work: Work) -> None:
        """The operations of the vector unit on a result, on the larger operand that it sums, or on each pixel of each window."""
        facts, lanes = facts_of(node.op), self.target.mxu
        shapes = [operand.type.shape for operand in self._graph.operands(node)]
        result = rows_of(node.type.shape, lanes)
        rows = max(result, *(rows_of(shape, lanes) for shape in shapes)) if shapes else result
        if facts.values is Values.COMPUTED:
            windows = facts.windows(node.attributes, shapes) if facts.windows is not None else ()
            touched = result
            for axis in windows:
                touched *= axis.window
            attributes: Any = node.attributes  # a frozen dataclass, which has a hash
            work.add_elements(touched if windows else rows, operations(node.op, attributes, tuple(map(len, shapes))))
        if kind is Kind.SUM and shapes[0][-1:] != node.type.shape[-1:]:
            work.add_sums_of_rows(rows)

    def _contents(self, node: Node) -> str:
        """What a value is, in a word."""
        return "inputs" if node.is_input else CONTENTS.get(self._roles[node.name], "states") if node.name in self._roles else "states"


def require_timed(target: Target) -> None:
    """Raises `UsageError` E0948 for a target of which not all numbers that a step's time depends on are known."""
    if missing := [name for name in STEP_NUMBERS if not getattr(target, name) and not name.endswith("_seconds")]:
        mend = "tpu_v2 and tpu_v3 say them; --set gives others"
        raise UsageError(Diagnostic("E0948", f"{target.name} doesn't say {listed(missing)}: a step on it can't be timed", help=(mend,)))
