"""A graph made ready to be run many times: each node is a function and the places of its operands.

In a step on several parts of a batch, most nodes have a value for each part. Nodes that depend on no input have one value for all, and so
have those after an `all_reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tpucc.diagnostics import InputError
from tpucc.floating.all_reduce import all_reduce_mean
from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Defined, Ieee, NoFloats
from tpucc.ops.weight import WeightAttributes
from tpucc.training.arithmetic import remembering
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.state import StateAttributes

Values = dict[str, AnyArray]
Watch = Callable[[Node, Sequence[AnyArray]], None]
Function = Callable[..., AnyArray]
"""Of a node's operands, one argument each."""


class _Call(NamedTuple):
    """One node: what computes it, what takes its operands out of the memory, the place of its result, and those that are free after it."""

    node: Node
    function: Function
    operands: Callable[[list[Any]], Sequence[AnyArray]]
    result: int
    freed: tuple[int, ...]


class Plan:
    """A graph, ready to be run with one arithmetic. Constants are in the memory from the first run on.

    `kept` are the nodes whose values `run` returns, beside those of the outputs.
    """

    def __init__(self, graph: Graph, arithmetic: Arithmetic, kept: Sequence[str] = ()) -> None:
        self.graph = graph
        self._kept = tuple(dict.fromkeys((*(output.node for output in graph.outputs), *kept)))
        self._places = {node.name: place for place, node in enumerate(graph)}
        self._inputs = tuple((node.name, self._places[node.name]) for node in graph.inputs)
        given = (node.name for node in graph if not node.is_input and isinstance(node.attributes, StateAttributes | WeightAttributes))
        self._given = tuple((name, self._places[name]) for name in given)
        self._arithmetic = remembering(arithmetic)
        before, own, self._reductions, after = _phases(graph)
        last = _last_uses((*before, *own, *self._reductions, *after), self._kept)
        make = partial(_call, graph=graph, arithmetic=self._arithmetic, places=self._places, last=last)
        self._before, self._own, self._after = ([make(node) for node in nodes] for nodes in (before, own, after))
        self._constants = [(node, node.attributes.value.data) for node in graph if isinstance(node.attributes, ConstantAttributes)]
        self._memory: list[AnyArray | None] = [None] * len(self._places)
        for node, value in self._constants:
            self._memory[self._places[node.name]] = value

    def run(self, given: Mapping[str, AnyArray], parts: Sequence[Mapping[str, AnyArray]], watch: Watch | None = None) -> Values:
        """The values of the outputs and of the kept nodes, by node name; of those that each part has for itself, the first part's.

        `given` has the states and weights by node name, `parts` the inputs of each part. `watch` sees each node's value or, where the
        parts have their own, all of these. Overflow and division by zero give infinities and NaN, as IEEE 754 says. Raises `InputError`
        E0454, with the node's place, for a label or an index that doesn't exist.
        """
        shared = self._memory.copy()
        if watch is not None:
            for node, value in self._constants:
                watch(node, (value,))
        for name, place in self._given:
            shared[place] = given[name]
        with np.errstate(all="ignore"):
            _run(self._before, (shared,), watch)
            memories = [list(shared) for _ in parts] if len(parts) > 1 else [shared]
            for memory, part in zip(memories, parts, strict=True):
                for name, place in self._inputs:
                    memory[place] = part[name]
            _run(self._own, memories, watch)
            for node in self._reductions:
                operand = self._places[node.operands[0]]
                memories[0][self._places[node.name]] = all_reduce_mean([memory[operand] for memory in memories])  # type: ignore[misc]
            _run(self._after, memories[:1], watch)
        first, places = memories[0], self._places
        return {name: first[places[name]] for name in self._kept}  # type: ignore[misc]


def _phases(graph: Graph) -> tuple[list[Node], list[Node], list[Node], list[Node]]:
    """What is computed: nodes that depend on no input; those that each part has for itself; the reductions; and those after them."""
    own: set[str] = set()
    late: set[str] = set()
    phases: tuple[list[Node], list[Node], list[Node], list[Node]] = ([], [], [], [])
    for node in graph:
        if node.is_input:
            own.add(node.name)
        elif isinstance(node.attributes, StateAttributes | WeightAttributes | ConstantAttributes):
            continue
        elif isinstance(node.attributes, AllReduceAttributes):
            late.add(node.name)
            phases[2].append(node)
        elif not late.isdisjoint(node.operands):
            late.add(node.name)
            phases[3].append(node)
        elif not own.isdisjoint(node.operands):
            own.add(node.name)
            phases[1].append(node)
        else:
            phases[0].append(node)
    return phases


def _last_uses(order: Sequence[Node], kept: Sequence[str]) -> dict[str, str]:
    """For each value that isn't kept the node that reads it last, of nodes in the order in which they are computed."""
    last = {operand: node.name for node in order for operand in node.operands}
    return {name: reader for name, reader in last.items() if name not in kept}


def _call(node: Node, graph: Graph, arithmetic: Arithmetic, places: Mapping[str, int], last: Mapping[str, str]) -> _Call:
    function = _function(node, [operand.type.shape for operand in graph.operands(node)], arithmetic)
    freed = tuple(places[name] for name in dict.fromkeys(node.operands) if last.get(name) == node.name)
    return _Call(node, function, _taker([places[name] for name in node.operands]), places[node.name], freed)


def _taker(places: Sequence[int]) -> Callable[[list[Any]], Sequence[AnyArray]]:
    """A function that takes the values at these places."""
    if len(places) == 1:
        return itemgetter(slice(places[0], places[0] + 1))
    return itemgetter(*places) if places else lambda _: ()


def _function(node: Node, shapes: Sequence[tuple[int, ...]], arithmetic: Arithmetic) -> Function:
    operator, attributes = OPS[node.op], node.attributes
    match operator.floats:
        case Defined(_, prepared) if prepared is not None:
            return prepared(attributes, shapes, arithmetic)
        case Defined(function):
            return lambda *operands: function(attributes, operands, arithmetic)
        case NoFloats(why):
            raise TypeError(f"{node.name}: {node.op} has no float form: {why}")
        case Ieee(prepared) if prepared is not None and node.type.rank:
            return prepared(attributes)
        case _:
            return lambda *operands: operator.reference(attributes, operands)


def _run(calls: Sequence[_Call], memories: Sequence[list[Any]], watch: Watch | None) -> None:
    if len(memories) == 1 and watch is None:
        _run_one(calls, memories[0])
        return
    for node, function, operands, result, freed in calls:
        for memory in memories:
            try:
                memory[result] = function(*operands(memory))
            except InputError as error:
                raise error.at(node.origin.trail()) from None
        if watch is not None:
            watch(node, [memory[result] for memory in memories])
        for place in freed:
            for memory in memories:
                memory[place] = None


def _run_one(calls: Sequence[_Call], memory: list[Any]) -> None:
    """The common case, in which the loop takes as long as small operators do."""
    for node, function, operands, result, freed in calls:
        try:
            memory[result] = function(*operands(memory))
        except InputError as error:
            raise error.at(node.origin.trail()) from None
        for place in freed:
            memory[place] = None
