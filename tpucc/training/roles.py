"""What the nodes of a step graph are there for, and what the forward part keeps for the backward one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpucc.ir import Graph, Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import Values
from tpucc.ops.opdef import Given
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.passes.differentiate import differentiate, made_for
from tpucc.training.passes.names import GRADIENT, NEXT, key_of, loss_of, states, values_of
from tpucc.training.passes.optimizer import optimizer_step
from tpucc.training.passes.reduce import all_reduce
from tpucc.training.step import Step, bytes_of


class Role(StrEnum):
    """A part of a step. `STATISTICS` moves the averages of batch normalisation: neither the loss nor a gradient needs it."""

    FORWARD = "forward"
    STATISTICS = "statistics"
    BACKWARD = "backward"
    REDUCE = "all-reduce"
    OPTIMIZER = "optimizer"


MAKERS: Mapping[str, Role] = {differentiate.name: Role.BACKWARD, all_reduce.name: Role.REDUCE, optimizer_step.name: Role.OPTIMIZER}
"""The passes with which a part of the step begins."""


@dataclass(frozen=True)
class Update:
    """What moves one trained weight: its key, its gradient's node in the backward part, and the nodes from there to the next state."""

    key: str
    gradient: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """A step graph by the roles of its nodes.

    `loss` is the graph before differentiation. `backward` has for each of its nodes those of the step that were made on its behalf;
    `updates` what moves the weights; `shared` what the optimizer computes once for all of them. Constants and states are in none of these.
    """

    graph: Graph
    loss: Graph
    roles: Mapping[str, Role]
    backward: Mapping[str, tuple[str, ...]]
    updates: tuple[Update, ...]
    shared: tuple[str, ...]

    @property
    def kept(self) -> tuple[Node, ...]:
        """The activations that are kept: inputs, and values of the forward part, that the backward part reads.

        A value and its views are one activation: the first of them that is read stands for all. A view of a state is none.
        """
        read = {name for node in self.graph if self.roles.get(node.name) is Role.BACKWARD for name in node.operands}
        found: dict[str, Node] = {}
        for node in self.graph:
            if node.name in read and self._activation(viewed := self._viewed(node)):
                found.setdefault(viewed.name, node)
        return tuple(found.values())

    def _activation(self, node: Node) -> bool:
        return node.is_input or self.roles.get(node.name) is Role.FORWARD

    def _viewed(self, node: Node) -> Node:
        """The value whose elements a node's are, in the same order: itself but for a view."""
        while facts_of(node.op).values is Values.VIEWED:
            (node,) = self.graph.operands(node)
        return node

    @property
    def kept_bytes(self) -> int:
        return sum(map(bytes_of, self.kept))

    @property
    def loss_value(self) -> str:
        """The node whose value is the loss of a part of the batch."""
        return loss_of(self.loss)

    @property
    def schedule(self) -> tuple[str, ...]:
        """The keys of the states that all weights share."""
        made = (key_of(node) for node in self.states if node.origin.made_by == optimizer_step.name)
        return tuple(key for key in made if "/" not in key)

    @property
    def states(self) -> tuple[Node, ...]:
        return states(self.graph)

    @property
    def state_bytes(self) -> int:
        return sum(map(bytes_of, self.states))

    def count(self, role: Role) -> int:
        return sum(found is role for found in self.roles.values())


def parts_of(step: Step) -> Parts:
    """The parts of a step."""
    found = roles(step)
    updates = tuple(_updates(step, found))
    owned = {name for update in updates for name in update.nodes}
    shared = tuple(name for name, role in found.items() if role is Role.OPTIMIZER and name not in owned)
    backward = {name: tuple(node.name for node in made if node.name in found) for name, made in rules(step).items()}
    return Parts(step.graph, before(step), found, backward, updates, shared)


def roles(step: Step) -> dict[str, Role]:
    """The role of each node of the step graph that computes something: the part in which its name comes first, or the value's that it
    rounds."""
    known: dict[str, Role] = {}
    role = Role.FORWARD
    for stage in step.stages:
        role = MAKERS.get(stage.name, role)
        for node in stage.graph:
            rounded = isinstance(node.attributes, RoundToBfloat16Attributes)
            known.setdefault(node.name, known[node.operands[0]] if rounded else role)
    found = {node.name: known[node.name] for node in step.graph if not _given(node)}
    return found | {name: Role.STATISTICS for name in _statistics(step) if found.get(name) is Role.FORWARD}


def _statistics(step: Step) -> set[str]:
    """The nodes that only the statistics' next values need."""
    graph = step.graph
    moved = {node for state, node in values_of(graph, NEXT).items() if key_of(graph[state]) in step.statistics}
    needed = {output.node for output in graph.outputs} - moved
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed.update(node.operands)
    return graph.by_name.keys() - needed


def rules(step: Step) -> dict[str, tuple[Node, ...]]:
    """For each node of the forward part the nodes that differentiation made on its behalf, as they were then."""
    graph = step.after(differentiate.name)
    return {name: tuple(graph[made] for made in found) for name, found in made_for(before(step)).items()}


def before(step: Step) -> Graph:
    """The graph that was differentiated."""
    place = next(index for index, stage in enumerate(step.stages) if stage.name == differentiate.name)
    return step.stages[place - 1].graph


def _given(node: Node) -> bool:
    """Whether a node computes nothing: inputs, states, weights, constants."""
    return isinstance(OPS[node.op].legalisation, Given)


def _updates(step: Step, roles: Mapping[str, Role]) -> Iterable[Update]:
    """A weight's update is what its next state depends on and its gradient leads to."""
    graph, moved = step.graph, values_of(step.graph, NEXT)
    late = {name for name, role in roles.items() if role in (Role.REDUCE, Role.OPTIMIZER)}
    for state, gradient in values_of(step.after(differentiate.name), GRADIENT).items():
        if gradient not in graph.by_name or moved[state] not in late:
            continue
        needed, after = {moved[state]}, {gradient}
        for node in reversed(graph.nodes):
            if node.name in needed:
                needed.update(name for name in node.operands if name in late)
        for node in graph:
            if node.name in needed and not after.isdisjoint(node.operands):
                after.add(node.name)
        own = _slots(graph, needed & late, after)
        yield Update(key_of(graph[state]), gradient, tuple(node.name for node in graph if node.name in own))


def _slots(graph: Graph, needed: set[str], after: set[str]) -> set[str]:
    """Of what an update needs, its own: what follows from the gradient, and other values of the size of one that does."""
    shapes = {graph[name].type.shape for name in after}
    return {name for name in needed if name in after or (graph[name].type.shape in shapes and graph[name].type.rank > 0)}
