"""How long a step of training takes: the work of each group of operators, and two clocks over the groups.

A machine has one core a part of the batch. The time of a group is its slowest unit's, and the latency of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tpucc.diagnostics import Diagnostic, UsageError, listed
from tpucc.ir import Graph, Node
from tpucc.machines.v2.units import VALUE_BYTES, Unit, Work, packed_rows_of, rows_of
from tpucc.ops import facts_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.facts import Values, selects
from tpucc.ops.reductions import ReductionAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.target import STEP_NUMBERS, Target
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.names import DRAW
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
        self._rounded = frozenset(node.name for node in self._graph if isinstance(node.attributes, RoundToBfloat16Attributes))
        reduced = frozenset(node.name for node in self._graph if isinstance(node.attributes, AllReduceAttributes))
        self._grouping = Grouping(self._graph, reduced, self._rounded, self._bytes)
        self.groups = tuple(map(self._timed, self._grouping.groups))

    @property
    def examples(self) -> int:
        """The examples of the batch, of all cores: the first axis of the inputs."""
        return self.cores * max((node.type.shape[0] for node in self._graph.inputs if node.name != DRAW and node.type.shape), default=1)

    @property
    def is_rounded(self) -> bool:
        """Whether values of the batch are kept as bfloat16."""
        return bool(self._rounded)

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
            start = max([0.0, *(ready.get(name, 0.0) for name in timed.group.after), *(free[unit] for unit in used)])
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
        last |= {self._grouping.source[name]: len(self.groups) for name in self._graph.output_nodes}
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
        """The bytes of a value in memory: rows of whole lanes, half of them if all that reads it rounds it. One number for all places is
        part of an instruction."""
        if node.type.size == 1 or _is_one_number(node):
            return 0
        readers = {reader.name for reader in self._graph.users[node.name]}
        rows = (packed_rows_of if node.is_input else rows_of)(node.type.shape, self.target.mxu)
        return rows * self.target.mxu * VALUE_BYTES >> (bool(readers) and readers <= self._rounded)

    def _read_bytes(self, name: str, group: Group) -> int:
        """The bytes of a value that a group reads: all, or the parts of it that slices and lookups take."""
        whole = self._bytes(self._graph[name])
        readers = [node for node in group.computed if name in map(self._grouping.source.__getitem__, node.operands)]
        if all(selects(facts_of(node.op)) and facts_of(node.op).windows is None for node in readers):
            return min(whole, sum(map(self._bytes, readers)))
        return whole

    def _timed(self, group: Group) -> TimedGroup:
        work = self._work(group)
        busy, main = work.seconds(), max(self._grouping.own(group), key=lambda node: node.type.size)
        factors = [self._grouping.source[name] for name in main.operands] if self._grouping.kind(main) is Kind.PRODUCT else []
        keys = [key for name in factors if (key := self._key(name))]
        seconds = max(busy.values()) + self.target.hbm_latency_seconds
        return TimedGroup((*keys, main.name)[0], group, self._roles[main.name], busy, work.bytes, seconds)

    def _work(self, group: Group) -> Work:
        """What a group reads, writes and computes."""
        work, reduced = Work(self.target), 0
        for name in group.read:
            work.bytes[self._contents(self._graph[name])] += self._read_bytes(name, group)
        for name in group.written:
            work.bytes[self._contents(self._graph[name])] += self._bytes(self._graph[name])
        for node in group.computed:
            match self._grouping.kind(node):
                case Kind.PRODUCT:
                    self._add_products(node, work)
                case Kind.REDUCTION:
                    reduced += node.type.size * VALUE_BYTES
                case kind:
                    self._add_loop(node, kind, work)
        for node in group.nodes:
            if rounding := next((reader for reader in self._graph.users[node.name] if reader.name in self._rounded), None):
                work.add_elements(rows_of(node.type.shape, self.target.mxu), operations(rounding.op))
        if reduced:
            work.add_exchange(reduced, self.cores)
        return work

    def _add_products(self, node: Node, work: Work) -> None:
        operands = self._graph.operands(node)
        weights = any(self._key(self._grouping.source[operand.name]) for operand in operands)
        for product in facts_of(node.op).products(node.attributes, [operand.type.shape for operand in operands]):
            for _ in range(product.times):
                work.add_product(product.rows, product.depth, product.columns, weights=weights)
                if product.patches is not None:
                    work.add_patches(*product.patches, packed=self._graph[self._grouping.source[operands[0].name]].is_input)

    def _key(self, name: str) -> str:
        """The key of a weight, trained or fixed; nothing for another value."""
        attributes = self._graph[name].attributes
        return attributes.key if isinstance(attributes, StateAttributes | WeightAttributes) else ""

    def _add_loop(self, node: Node, kind: Kind, work: Work) -> None:
        """The operations of the vector unit on a result, on the larger operand that it sums, or on each pixel of each window."""
        facts, lanes = facts_of(node.op), self.target.mxu
        shapes = [operand.type.shape for operand in self._graph.operands(node)]
        result = rows_of(node.type.shape, lanes)
        if facts.windows is not None:
            height, width = facts.windows(node.attributes, shapes)
            work.add_elements(result * height.window * width.window, 1)
        elif facts.values is Values.COMPUTED and not selects(facts):
            work.add_elements(max(result, *(rows_of(shape, lanes) for shape in shapes)), operations(node.op))
        if kind is Kind.SUM and _sums_lanes(node, max(shapes, key=prod)):
            work.add_sums_of_lanes(node.type.size)

    def _contents(self, node: Node) -> str:
        """What a value is, in a word."""
        return "inputs" if node.is_input else CONTENTS.get(self._roles.get(node.name, Role.OPTIMIZER), "states")


def _is_one_number(node: Node) -> bool:
    """Whether a node is a constant with the same number in all places."""
    if not isinstance(node.attributes, ConstantAttributes):
        return False
    data = node.attributes.value.data
    return bool((data == data.flat[0]).all())


def _sums_lanes(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether a sum of a value of this shape is over its last axis, too."""
    if isinstance(node.attributes, ReductionAttributes):
        axes = node.attributes.axis
        return axes is None or len(shape) - 1 in [axis % len(shape) for axis in ([axes] if isinstance(axes, int) else axes)]
    return shape[-1:] != node.type.shape[-1:]


def require_timed(target: Target) -> None:
    """Raises `UsageError` E0948 for a target of which not all numbers that a step's time depends on are known."""
    if missing := [name for name in STEP_NUMBERS if not getattr(target, name) and not name.endswith("_seconds")]:
        mend = "tpu_v2 and tpu_v3 say them; --set gives others"
        raise UsageError(Diagnostic("E0948", f"{target.name} doesn't say {listed(missing)}: a step on it can't be timed", help=(mend,)))
