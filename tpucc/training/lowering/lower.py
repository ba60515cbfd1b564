"""The program of a step, or of a model: begin to read here.

1. The nodes of the graph are traced in the order of its groups (`symbols.py`): what the operators compute, as operations of elements,
   sums and products. Each part of the batch has its own values until the parts are averaged: those of one core by additions, those of
   several cores by one exchange of all values.
2. Values are computed in vector memory, in this order (`values.py`); operations of elements are fused (`fusion.py`).
3. Buffers get rows of vector memory; inputs and states are loaded, new states and the loss are stored (`room.py`).
4. Units wait for each other where they must (`tpucc.schedule.synchronise`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from tpucc.diagnostics import CompileError, Diagnostic, Label, UsageError
from tpucc.ir import Graph, Node
from tpucc.isa.program import HostBuffer, LayerInfo, Program, bare_program
from tpucc.isa.verify import check
from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.machine.machine import Machine
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v3.machine import V3
from tpucc.numerics import Int64
from tpucc.ops.weight import WeightAttributes
from tpucc.schedule.listing import Listing
from tpucc.schedule.pipeline import residents, with_end
from tpucc.schedule.synchronise import synchronise, with_waits
from tpucc.target import Target
from tpucc.training.lowering.code import Code, Rows
from tpucc.training.lowering.fusion import Fusion
from tpucc.training.lowering.room import Placed, place
from tpucc.training.lowering.symbols import Symbol, traced
from tpucc.training.lowering.trace import Kind, Numbers, Trace, Untraceable, Value, reachable
from tpucc.training.lowering.values import Values, matrix_of
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.names import NEXT, loss_of, values_of
from tpucc.training.step import Step, bytes_of
from tpucc.training.timing.groups import Grouping
from tpucc.training.timing.step_time import StepTime


@dataclass(frozen=True)
class Lowered:
    """A graph as a program, for so many `parts` of a batch on each core.

    `states` are the shapes of states and weights by the names of their nodes, `inputs` those of the inputs of a part, `results` those of
    the results. `moved` has the node of each state's next value, `numbers` what inputs of numbers must be. Integers of the
    buffers of `words` lie there as their bits, others as floats.
    """

    program: Program
    parts: int
    states: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, tuple[int, ...]]
    results: Mapping[str, tuple[int, ...]]
    moved: Mapping[str, str]
    numbers: tuple[Numbers, ...]
    words: frozenset[str]

    def rows(self, name: str) -> slice:
        """The rows of a buffer of HBM."""
        found = next(buffer for buffer in self.program.host if buffer.name == name)
        return slice(found.start, found.end)


def lower(step: Step, target: Target, name: str = "step", source: str = "", source_text: str = "") -> Lowered:
    """The program of a step on each of its cores, which does its parts of the batch one after another. It has passed the verifier.

    Raises `CompileError` E0949 for an operator without instructions as yet, `LimitError` E0950 where vector memory is too small,
    `UsageError` E0951 for a target that no program can be for.
    """
    machine = _machine_of(target)
    groups = [_Together(timed.name, str(timed.role), timed.group.nodes) for timed in StepTime(step, target).groups]
    results, moved = [loss_of(step.graph)], values_of(step.graph, NEXT)
    parts = step.parts // step.cores
    return _Lowering(step.graph, parts, step.cores, groups, results, moved, machine, target).lowered(name, source, source_text)


def lower_model(graph: Graph, target: Target) -> Lowered:
    """The program of a model, whose weights lie in HBM. Raises as `lower` does."""
    machine = _machine_of(target)
    groups = Grouping(graph, frozenset(), frozenset(), bytes_of).groups
    together = [_Together(group.nodes[0].name, "forward", group.nodes) for group in groups]
    together = together or [_Together(graph.name, "forward", graph.nodes)]  # what is computed belongs to some layer
    return _Lowering(graph, 1, 1, together, list(graph.output_nodes), {}, machine, target).lowered(graph.name, "", "")


def input_buffer(name: str, part: int, parts: int) -> str:
    """The buffer of HBM with an input of a part."""
    return f"input:{name}" if parts == 1 else f"input:{name}.{part}"


def result_buffer(name: str) -> str:
    """The buffer of HBM with a result, the loss for one."""
    return f"output:{name}"


def exchange_buffer(name: str) -> str:
    """The buffer of HBM with a core's own value, until the exchange makes it the mean of all cores."""
    return f"exchange:{name}"


def state_buffer(name: str) -> str:
    """The buffer of HBM with a state, or with a weight that stays as it is."""
    return f"state:{name}"


def _machine_of(target: Target) -> Machine:
    """The machine whose programs are for a target. Raises `UsageError` E0951 if there is none."""
    found = next((machine for machine in (V2, V3) if not machine.obstacle(target)), None)
    if found is None:
        mend = "tpu_v2 and tpu_v3 have instructions; tpucc train --executor reference computes the same bits without any"
        raise UsageError(Diagnostic("E0951", f"no program can be for {target.name}: it {V2.obstacle(target)}", help=(mend,)))
    return found


@dataclass(frozen=True, slots=True)
class _Together:
    """A group of nodes, which are computed together, with the name and the kind of its layer."""

    name: str
    kind: str
    nodes: tuple[Node, ...]


@contextmanager
def _told_of(value: Value) -> Iterator[None]:
    """Raises what can't be computed as `CompileError` E0949 of the operator that a value is of."""
    try:
        yield
    except Untraceable as error:
        assert value.node is not None
        raise _not_built(value.node, str(error)) from error


class _Lowering:
    """The lowering of one graph."""

    def __init__(
        self,
        graph: Graph,
        parts: int,
        cores: int,
        groups: Sequence[_Together],
        results: Sequence[str],
        moved: Mapping[str, str],
        machine: Machine,
        target: Target,
    ) -> None:
        self._machine = machine
        self._graph, self._target, self._parts, self._cores, self._groups, self._moved = graph, target, parts, cores, groups, moved
        self._trace = Trace()
        self._exchanged: dict[str, Value] = {}
        """One core's own values of those that the cores exchange, by the nodes of their means."""
        self._symbols = self._traced()
        first = self._symbols[0]
        self._next = {state: first[node].value for state, node in moved.items()}
        self._results = {node: first[node].value for node in results}
        self._reached = tuple(reachable([*self._exchanged.values(), *self._results.values(), *self._next.values()]))
        self._products = _products(self._reached, len(groups))
        self._code = Code(target.mxu, target.matrix_units)
        self._hbm: list[HostBuffer] = []
        self._stretches = [_Stretch(part) for states in _stretches(self._graph) for part in self._that_fit(states)]

    def lowered(self, name: str, source: str, source_text: str) -> Lowered:
        self._emit()
        layers = tuple(self._layers())
        placed = place(self._code, self._hbm, self._target, [each.origin for each in layers])
        layer: Int64 = np.array(placed.layers, np.int64)
        listing = Listing(placed.records, layer, np.arange(len(layer)), tuple(each.name for each in layers), self._machine)
        listing = with_end(with_waits(listing, synchronise(listing)))
        buffers = [VirtualBuffer(each.name, each.rows, each.layer) for each in self._code.buffers]
        program = bare_program(
            name=name,
            source=source,
            source_text=source_text,
            target=self._target,
            machine=self._machine,
            instructions=listing.records,
            layer_of=listing.layer.astype(np.uint32),
            layers=layers,
            host=placed.hbm,
            expressions=tuple(self._code.expressions),
            residents=residents(listing, placed.stays, buffers),
            notes=_notes(placed),
            cores=self._cores,
        )
        check(program)
        kept = {node.name: node.type.shape for node in self._graph if _is_kept(node)}
        inputs = {node.name: node.type.shape for node in self._graph.inputs}
        results = {name: self._graph[name].type.shape for name in self._results}
        return Lowered(program, self._parts, kept, inputs, results, self._moved, tuple(self._trace.numbers), frozenset(self._trace.words))

    def _traced(self) -> list[dict[str, Symbol]]:
        """The symbols of all nodes, for each part; those of nodes after a reduction stand with the first."""
        late: set[str] = set()
        for node in self._graph:
            if isinstance(node.attributes, AllReduceAttributes) or not late.isdisjoint(node.operands):
                late.add(node.name)
        ordered = tuple(self._ordered())
        symbols = [{node.name: self._given(node, part) for node in self._graph if _is_given(node)} for part in range(self._parts)]
        for part in range(self._parts):
            for group, node in ordered:
                if node.name not in late:
                    self._trace_node(group, node, symbols, part)
        for group, node in ordered:
            if node.name in late:
                self._trace_node(group, node, symbols, 0)
        return symbols

    def _given(self, node: Node, part: int) -> Symbol:
        name = input_buffer(node.name, part, self._parts) if node.is_input else state_buffer(node.name)
        return Symbol(self._trace, self._trace.given(name, node.type.shape), whole=node.type.dtype == "i32")

    def _ordered(self) -> Iterator[tuple[int, Node]]:
        """All nodes that are computed, with the numbers of their groups, in the order of these; what a group needs stands before it."""
        done = {node.name for node in self._graph if _is_given(node)}
        for number, group in enumerate(self._groups):
            waiting, needed = [*group.nodes], set[str]()
            while waiting:
                node = waiting.pop()
                if node.name not in done and node.name not in needed:
                    needed.add(node.name)
                    waiting += self._graph.operands(node)
            done |= needed
            yield from ((number, node) for node in self._graph if node.name in needed)
        yield from ((len(self._groups) - 1, node) for node in self._graph if node.name not in done)

    def _trace_node(self, group: int, node: Node, symbols: list[dict[str, Symbol]], part: int) -> None:
        self._trace.group, self._trace.node = group, node
        if isinstance(node.attributes, AllReduceAttributes):
            total = _sum([own[node.operands[0]] for own in symbols])
            if self._cores == 1:
                symbols[0][node.name] = total * np.float32(1 / self._parts)
            else:
                self._exchanged[node.name] = total.value
                symbols[0][node.name] = Symbol(self._trace, self._trace.given(exchange_buffer(node.name), node.type.shape))
            return
        try:
            symbols[part][node.name] = traced(self._trace, node, [symbols[part][name] for name in node.operands])
        except Untraceable as error:
            raise _not_built(node, str(error)) from error

    def _emit(self) -> None:
        """Makes the code and the buffers of HBM."""
        roots = {value.number for value in (*self._exchanged.values(), *self._results.values(), *self._next.values())}
        fusion = Fusion(self._reached, lambda value: value.number in roots)
        results = {node: self._code.buffer(result_buffer(node), self._rows(self._graph[node])) for node in self._results}
        places: dict[int, Rows] = {}
        copied = self._placed(self._wanted(results), places)
        named = {symbol.value.number: name for own in reversed(self._symbols) for name, symbol in own.items()}
        values = Values(self._code, self._trace, fusion, places, named)
        self._give(values)
        computed = [value for value in self._reached if value.kind in COMPUTED and value.number not in fusion.inner]
        last = self._exchange(computed, places, values) if self._exchanged else -1
        self._compute([value for value in computed if value.number > last], copied, values)
        self._store(results)

    def _compute(self, computed: Sequence[Value], copied: Sequence[tuple[Value, Rows]], values: Values) -> None:
        """Computes values, and then copies some to their rows."""
        for value in computed:
            self._code.layer = value.group
            if value.kind is Kind.PRODUCT:
                self._code.layer = next(number for number, products in enumerate(self._products) if value in products)
            with _told_of(value):
                values.matrix(value)
        for value, at in copied:
            with _told_of(value):
                values.copied(value, at)

    def _exchange(self, computed: Sequence[Value], places: dict[int, Rows], values: Values) -> int:
        """Computes what the cores exchange, and stores each bucket when all of it is there. Then comes one exchange, after which means are
        loaded where they are needed. Gives the number of the last value that is computed."""
        first, last = self._end, -1
        for nodes in self._buckets():
            home, rows = self._end, sum(map(self._rows, nodes))
            own = self._code.buffer(f"own:{nodes[0].name}", rows)
            copied = self._placed([(self._exchanged[node.name], at) for node, at in self._laid(nodes, own)], places)
            before, last = last, self._exchanged[nodes[-1].name].number
            self._compute([value for value in computed if before < value.number <= last], copied, values)
            self._code.layer = self._symbols[0][nodes[0].name].value.group
            self._code.instructions.append(self._code.store(own, home, rows))
            for node, at in self._laid(nodes, self._code.buffer(nodes[0].name, rows, home)):
                self._add_hbm(exchange_buffer(node.name), "scratch", self._rows(node))
                values.given(self._symbols[0][node.name].value, at, matrix_of(node.type.shape))
        self._code.all_reduce(first, self._end - first, self._parts)
        return last

    def _buckets(self) -> Iterator[list[Node]]:
        """The nodes of means, in the order in which a core has its own values: several of `BUCKET` rows together at most, or one."""
        waiting = [self._graph[name] for name in sorted(self._exchanged, key=lambda name: self._exchanged[name].number)]
        while waiting:
            count = max(1, sum(end <= BUCKET for end in accumulate(map(self._rows, waiting))))
            yield waiting[:count]
            waiting = waiting[count:]

    def _wanted(self, results: Mapping[str, Rows]) -> list[tuple[Value, Rows]]:
        """The results and new states, with their rows."""
        wanted = [(self._results[node], at) for node, at in results.items()]
        for stretch in self._stretches:
            if any(node.name in self._next for node in stretch.states):
                stretch.new = self._code.buffer(f"new:{stretch.states[0].name}", sum(map(self._rows, stretch.states)))
                for node, at in self._laid(stretch.states, stretch.new):
                    wanted.append((self._next[node.name], at))
        return wanted

    def _placed(self, wanted: Sequence[tuple[Value, Rows]], places: dict[int, Rows]) -> list[tuple[Value, Rows]]:
        """Adds the rows of values to `places`, by the values' numbers; gives those values that must be copied to their rows."""
        copied = []
        for value, at in wanted:
            if value.number in places or value.kind not in (Kind.ELEMENT, Kind.PRODUCT):
                copied.append((value, at))
            places.setdefault(value.number, at)
        return copied

    def _give(self, values: Values) -> None:
        """The buffers of HBM, and where what is given lies in vector memory once it is loaded."""
        given = {value.what: value for value in self._reached if value.kind is Kind.GIVEN}
        for stretch in self._stretches:
            stretch.home = self._end
            for node in stretch.states:
                self._add_hbm(state_buffer(node.name), "state" if node.name in self._next else "input", self._rows(node))
            stretch.old = self._code.buffer(stretch.states[0].name, self._end - stretch.home, stretch.home)
            for node, at in self._laid(stretch.states, stretch.old):
                if (value := given.get(state_buffer(node.name))) is not None:
                    values.given(value, at, matrix_of(node.type.shape))
        for part in range(self._parts):
            for node in self._graph.inputs:
                name = input_buffer(node.name, part, self._parts)
                size = matrix_of(node.type.shape) if node.type.dtype == "f32" else (node.type.size, 1)
                home, rows = self._end, size[0] * -(-size[1] // self._target.mxu)
                self._add_hbm(name, "input", rows)
                if (value := given.get(name)) is not None:
                    values.given(value, self._code.buffer(name.removeprefix("input:"), rows, home), size)
        for name in self._results:
            self._add_hbm(result_buffer(name), "output", self._rows(self._graph[name]))

    def _store(self, results: Mapping[str, Rows]) -> None:
        """Stores results when they are there, and the new states of each stretch when all of them are, and the old ones have been read."""
        last = {number: index for index, each in enumerate(self._code.instructions) for number in each.touched}
        written = dict(self._code.last_writes())
        homes = {buffer.name: buffer for buffer in self._hbm}
        stores = []
        for node, rows in results.items():
            home = homes[result_buffer(node)]
            stores.append((written[rows.buffer], self._code.store(rows, home.start, home.rows)))
        for stretch in self._stretches:
            if stretch.new is not None:
                after = max(written[stretch.new.buffer], last.get(stretch.old.buffer, 0))
                self._code.layer = self._code.instructions[after].layer
                stores.append((after, self._code.store(stretch.new, stretch.home, self._code.buffers[stretch.new.buffer].rows)))
        for after, store in sorted(stores, key=lambda each: -each[0]):
            self._code.instructions.insert(after + 1, store)

    @property
    def _end(self) -> int:
        """The first free row of HBM."""
        return self._hbm[-1].end if self._hbm else 0

    def _add_hbm(self, name: str, kind: str, rows: int) -> None:
        self._hbm.append(HostBuffer(name, kind, self._end, rows))

    def _rows(self, node: Node) -> int:
        rows, columns = matrix_of(node.type.shape)
        return rows * -(-columns // self._target.mxu)

    def _that_fit(self, states: tuple[Node, ...]) -> Iterable[tuple[Node, ...]]:
        """States that move together; each alone where vector memory has no room for all."""
        return (states,) if sum(map(self._rows, states)) <= V2.values.size(self._target) else [(state,) for state in states]

    def _laid(self, nodes: Sequence[Node], at: Rows) -> Iterator[tuple[Node, Rows]]:
        """Nodes whose values lie one after the other, from a row on."""
        for node in nodes:
            yield node, at
            at = at.after(self._rows(node))

    def _layers(self) -> Iterator[LayerInfo]:
        """A layer for each group, with the size of its products, and for further products of it."""
        for number, products in enumerate(self._products):
            group = self._groups[products[0].group if number >= len(self._groups) else number]
            name = group.name if number < len(self._groups) else f"{group.name} depth {_depth(products[0])}"
            macs = sum(product.size * _depth(product) for product in products)
            size = (_depth(products[0]), products[-1].shape[1]) if products else (0, 0)
            yield LayerInfo(name, group.kind, group.nodes[0].origin, macs, size)


BUCKET = 1024
"""Rows of values to exchange that are stored and loaded together, so that few transfers pay the latency of HBM: it takes 1.7 µs for so
many, beside 1 µs of latency. Vector memory has room for some of them."""
COMPUTED = (Kind.ELEMENT, Kind.SUM, Kind.LARGEST, Kind.PRODUCT, Kind.GATHERED, Kind.SCATTERED)
"""What instructions compute; the rest is read as it lies."""


def _depth(product: Value) -> int:
    return product.operands[0].shape[1]


def _products(values: Sequence[Value], groups: int) -> list[list[Value]]:
    """The products of each group that have the depth of its first one; then those of its other depths, depth by depth."""
    found: list[list[Value]] = [[] for _ in range(groups)]
    others: dict[tuple[int, int], list[Value]] = {}
    for value in values:
        if value.kind is Kind.PRODUCT:
            first = found[value.group]
            alike = not first or _depth(first[0]) == _depth(value)
            (first if alike else others.setdefault((value.group, _depth(value)), [])).append(value)
    return [*found, *others.values()]


@dataclass(slots=True)
class _Stretch:
    """States that move together, which lie one after the other, in HBM from row `home` on: the buffers of their old and new values."""

    states: tuple[Node, ...]
    home: int = 0
    old: Rows = field(default_factory=lambda: Rows(-1))
    new: Rows | None = None


def _is_kept(node: Node) -> bool:
    """Whether it is a state, or a weight that stays as it is."""
    return isinstance(node.attributes, StateAttributes | WeightAttributes) and not node.is_input


def _is_given(node: Node) -> bool:
    return node.is_input or _is_kept(node)


def _stretches(graph: Graph) -> list[tuple[Node, ...]]:
    """The states of a graph: a weight with what the optimizer keeps for it, what it keeps for all weights, and each fixed weight."""
    found: dict[str, list[Node]] = {}
    for node in graph:
        if isinstance(node.attributes, StateAttributes):
            key = node.attributes.key
            owner = key if node.attributes.initial is None else key.partition("/")[2]
            found.setdefault(owner and f"weight {owner}", []).append(node)
        elif _is_kept(node):
            found[f"fixed {node.name}"] = [node]
    return [tuple(nodes) for nodes in found.values()]


def _sum(parts: list[Symbol]) -> Symbol:
    """The sum over the parts, as `tpucc.floating.all_reduce` begins with it: a halving tree over them."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [low + high for low, high in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


def _not_built(node: Node, why: str) -> CompileError:
    mend = "tpucc train --executor reference computes every step, with the same bits; tpucc run --target tpu_v1 runs every model"
    labels = tuple(Label(span) for span in node.origin.spans[:1])
    return CompileError(Diagnostic("E0949", f"the machine has no instructions for this {node.op} yet: it {why}", labels, (mend,)))


def _notes(placed: Placed) -> tuple[str, ...]:
    spilled = f"{placed.spilled:,} rows were stored because others needed their room"
    in_chunks = f"{placed.in_chunks[Opcode.LOAD]:,} rows were loaded and {placed.in_chunks[Opcode.STORE]:,} stored in chunks"
    return (*((spilled,) if placed.spilled else ()), *((in_chunks,) if placed.in_chunks else ()))
