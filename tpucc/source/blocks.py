"""Blocks of steps that repeat, as functions.

A *window* is some steps in a row. Windows look alike if they apply the same operators to the same results of their own steps. Numbers,
weights and what they take from outside may differ. All windows grow together, step by step, as long as one looks like another one. Of all
windows those that save the most lines become calls of one function, and then those that save the most of what is left, in the functions,
too. A round of a recurrence is such a block: the next round takes what it returns.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain, islice
from typing import TypeAlias, TypeVar

import networkx

from tpucc.ir.attributes import identities, identity
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Boundary, Matrix
from tpucc.source.scope import templates
from tpucc.source.steps import Body, Leaf, Operand, Step, Value, bottom_of, keys_of, numbers_of, values_of

LONGEST = 120
"""Steps of a window, at most."""
SAMPLED = 3
"""Windows of one look that are compared before all of them are."""
MOST_INPUTS = 6
"""Tensors that a function takes, at most."""
CHEAP = 0.6
"""Lines of a step that stands inside the expression of another one."""
DEFINITION = 3.0
"""Lines that a function takes beside those of its windows: its head, its `return`, and an empty line."""
ARGUMENT = 0.3
"""Lines that a static argument of a call costs."""
LEAST = 0.5
"""Lines that a function saves, at least."""
FEWEST = 1.75
"""Lines of a function, at least."""
RESULT = 0.6
"""What the lines that windows save are worth for each result after the first one."""
INPUT = 0.85
"""What they are worth for each tensor after the first one that a window takes."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Windows that look alike and don't overlap: where they start among all steps, their length, and the lines that they save."""

    starts: tuple[int, ...]
    length: int
    saved: float


def with_functions(model: Body) -> list[Body]:
    """Puts calls of functions in the places of blocks that repeat. The functions, each behind those that it calls."""
    bodies = [model]
    while (function := _Steps(bodies).best()) is not None:
        bodies.append(function)
    sites = Counter(step.function for body in bodies for step in body.steps)
    for body in bodies:  # a function that one line calls is repeated by nothing but the function around that line
        while single := next((step for step in body.steps if step.function is not None and sites[step.function] == 1), None):
            body.steps = list(chain.from_iterable(_inlined(step) if step is single else (step,) for step in body.steps))
    calls = networkx.DiGraph((body, step.function) for body in bodies for step in body.steps if step.function is not None)
    return list(networkx.dfs_postorder_nodes(calls, model))[:-1] if model in calls else []


class _Steps:
    """The steps of all bodies, one after the other."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.steps = [step for body in bodies for step in body.steps]
        self.owners = [body for body in bodies for _ in body.steps]
        results = ((result, (place, index)) for place, step in enumerate(self.steps) for index, result in enumerate(step.results))
        self.made: dict[Operand, tuple[int, int]] = dict(results)
        self.last: dict[Value, int] = {value: place for place, step in enumerate(self.steps) for value in values_of(step.operands)}
        """The last place where a value is read."""
        self.last |= {result: len(self.steps) for body in bodies for result in values_of(body.results)}
        self.keys = {step: tuple(keys_of(step)) for step in self.steps}
        """The keys of the weights that a step reads."""
        self.numbers = {step: numbers_of(step) for step in self.steps}
        kinds: dict[Hashable, int] = {}
        self.kinds = [kinds.setdefault(_kind(step), len(kinds)) for step in self.steps]
        self.costs = [0.0, *accumulate(map(_cost, self.steps))]
        """The lines of all steps before each place."""

    def best(self) -> Body | None:
        """Makes a function of the windows that save the most lines; None if none save any."""
        best, most = None, LEAST
        for repeat in sorted(self._repeats(), key=lambda repeat: -repeat.saved):
            if repeat.saved <= most:
                break
            if self._saved(repeat, repeat.starts[:SAMPLED]) > most and (saved := self._saved(repeat, repeat.starts)) > most:
                best, most = repeat, saved
        return self._replaced(best) if best is not None else None

    def _maker(self, operand: Operand) -> tuple[int, int]:
        """The place of the step that makes what an operand is, or is a slice of, and the place among its results; (-1, 0) if none does."""
        return self.made.get(bottom_of(operand), (-1, 0))

    def _repeats(self) -> Iterator[Repeat]:
        """Windows that look alike, with the lines that they save at most."""
        sources = [[(*self._maker(operand), type(operand)) for operand in step.operands] for step in self.steps]
        near: dict[int, set[int]] = defaultdict(set)
        """The places that read a result of the step so many places before them."""
        for place, operands in enumerate(sources):
            for made, *_ in operands:
                near[place - made].add(place)
        looks: dict[Hashable, int] = {}
        last = list(self.kinds)
        """What each step looks like as the last one of a window of this length, as a number."""
        alive = [(start, -1) for start in range(len(self.steps))]
        """Where windows start, and what each of them looks like."""
        for length in range(1, LONGEST + 1):
            for place in near[length - 1]:
                inner = tuple((place - made, *more) if place - made < length else None for made, *more in sources[place])
                last[place] = looks.setdefault((self.kinds[place], inner), -len(looks) - 1)
            found: dict[tuple[int, int], list[int]] = defaultdict(list)
            for start, number in alive:
                place = start + length - 1
                if place < len(self.steps) and self.owners[place] is self.owners[start]:
                    found[number, last[place]].append(start)
            alive = []
            for number, starts in enumerate(found.values()):
                gaps = list(map(operator.sub, starts[1:], starts))
                if max(gaps, default=0) < length:  # one window alone, or all overlap: they are rounds of shorter ones, also if they grow
                    continue
                alive += [(start, number) for start in starts]
                lines = self.costs[starts[0] + length] - self.costs[starts[0]]
                saved = (len(starts) - 1) * lines - DEFINITION
                if length > 1 and lines >= FEWEST and saved > 0 and min(gaps) >= length:
                    yield Repeat(tuple(starts), length, saved)

    def _saved(self, repeat: Repeat, starts: tuple[int, ...]) -> float:
        """The lines that a function for these windows saves; 0 if it can't be one. `starts` are those of all windows, or of some: then it
        is no less, as what differs between some differs between all."""
        several, repeat = len(repeat.starts), replace(repeat, starts=starts)
        inputs = self._inputs(repeat)
        results = self._results(repeat, inputs) if len(inputs) <= MOST_INPUTS else {}
        if not results or (len(results) > 1 and None in results.values()):
            return 0
        saved = repeat.saved - ARGUMENT * several * self._varying(repeat)
        return saved * RESULT ** (len(results) - 1) * INPUT ** (len(inputs) - 1)

    def _rows(self, repeat: Repeat) -> list[tuple[Step, ...]]:
        """The steps of the windows: for each place those of all windows."""
        return list(zip(*(self.steps[start : start + repeat.length] for start in repeat.starts), strict=True))

    def _inputs(self, repeat: Repeat) -> list[tuple[Operand, ...]]:
        """The tensors that the windows take from outside: for each the operands of all windows in the same place."""
        operands = chain.from_iterable(zip(*(step.operands for step in same), strict=True) for same in self._rows(repeat))
        tensors = (each for each in operands if isinstance(bottom_of(each[0]), Value) and self._maker(each[0])[0] < repeat.starts[0])
        return list(dict.fromkeys(map(_wholes, tensors)))

    def _results(self, repeat: Repeat, inputs: Sequence[tuple[Operand, ...]]) -> dict[tuple[Value, ...], int | None]:
        """The results of the windows' steps that are read behind a window: for each those of all windows, and the input that the next
        window has it for. So results stand in the order of the inputs: `h, c = step(h, c)`."""
        found: dict[tuple[Value, ...], int | None] = {}
        for values in chain.from_iterable(zip(*(step.results for step in same), strict=True) for same in self._rows(repeat)):
            if any(self.last.get(value, -1) >= start + repeat.length for start, value in zip(repeat.starts, values, strict=True)):
                times = [sum(map(operator.is_, values, operands[1:])) for operands in inputs]
                found[values] = times.index(max(times)) if any(times) else None
        return dict(sorted(found.items(), key=lambda item: len(inputs) if item[1] is None else item[1]))

    def _varying(self, repeat: Repeat) -> int:
        """How many numbers and names differ from window to window, each series of them once."""
        rows = self._rows(repeat)
        numbers = {values for same in rows for values in zip(*map(self.numbers.__getitem__, same), strict=True)}
        keys = [keys for same in rows for keys in zip(*map(self.keys.__getitem__, same), strict=True)]
        names = {names for names, _ in templates(keys).values()}
        return sum(len(set(values)) > 1 for values in numbers) + 2 * max(0, len(names) - 1)

    def _replaced(self, repeat: Repeat) -> Body:
        """Puts calls of a new function in the places of the windows."""
        owners = [self.owners[start] for start in repeat.starts]
        count = sum(owner.environments for owner in owners)
        inputs = self._inputs(repeat)
        results = self._results(repeat, inputs)
        entries = tuple(Value(_joined((each.shapes for each in same), range(count)), _hint(same)) for same in inputs)
        known: Known = dict(zip(inputs, entries, strict=True))
        rows = self._rows(repeat)
        steps = [_copied(same, known, range(count)) for same in rows]
        carried = {place: entry for place, entry in enumerate(results.values()) if entry is not None}
        function = Body(count, entries, steps, tuple(known[values] for values in results), carried)
        environments = iter(range(count))
        calls: dict[Step, Step] = {}
        for number, (first, owner) in enumerate(zip(rows[0], owners, strict=True)):
            given, taken = tuple(same[number] for same in inputs), tuple(islice(environments, owner.environments))
            calls[first] = Step("", given, tuple(same[number] for same in results), (), function, taken)
        dropped = set(chain.from_iterable(rows[1:]))
        for owner in dict.fromkeys(owners):
            owner.steps = [calls.get(step, step) for step in owner.steps if step not in dropped]
        return function


def _wholes(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """What operands are slices of, where it is the same slice in all windows, else the operands."""
    wholes = tuple(each.whole for each in operands if isinstance(each, Leaf) and each.whole is not None)
    if len(wholes) < len(operands):
        return operands
    alike = {identities(each.attributes[0]) for each in operands if isinstance(each, Leaf)}
    return _wholes(wholes) if len(alike) == 1 else operands


# copies of steps, with the values of the environments of several, or of some of theirs

Known: TypeAlias = dict[tuple[Operand, ...], Operand]
"""The operands that stand for others, which look alike. It gets more."""
Each = TypeVar("Each")


def _inlined(call: Step) -> Iterator[Step]:
    """The steps of a called function between the operands and the results of the call."""
    assert call.function is not None
    known: Known = dict(zip(zip(call.function.entries, strict=True), call.operands, strict=True))
    known.update(zip(zip(call.function.results, strict=True), call.results, strict=True))
    return (_copied((step,), known, call.environments) for step in call.function.steps)


def _copied(steps: Sequence[Step], known: Known, chosen: Sequence[int]) -> Step:
    """A step for several that look alike, in the chosen ones of all their environments."""
    results = (_copied_operand(same, known, chosen) for same in zip(*(step.results for step in steps), strict=True))
    return Step(
        steps[0].op,
        tuple(_copied_operand(same, known, chosen) for same in zip(*(step.operands for step in steps), strict=True)),
        tuple(result for result in results if isinstance(result, Value)),
        _joined((step.attributes for step in steps), chosen),
        steps[0].function,
        _joined((step.environments for step in steps), chosen),
    )


def _copied_operand(operands: tuple[Operand, ...], known: Known, chosen: Sequence[int]) -> Operand:
    if operands not in known:
        leaves = [operand for operand in operands if isinstance(operand, Leaf)]
        shapes = _joined((operand.shapes for operand in operands), chosen)
        wholes = tuple(leaf.whole for leaf in leaves if leaf.whole is not None)
        whole = _copied_operand(wholes, known, chosen) if wholes else None
        attributes = _joined((leaf.attributes for leaf in leaves), chosen)
        known[operands] = Leaf(attributes, shapes, whole) if leaves else Value(shapes, _hint(operands))
    return known[operands]


def _joined(parts: Iterable[tuple[Each, ...]], chosen: Sequence[int]) -> tuple[Each, ...]:
    joined = tuple(chain.from_iterable(parts))
    return tuple(joined[place] for place in chosen) if joined else ()


def _hint(operands: Sequence[Operand]) -> str:
    """The name that most values have."""
    hint, times = Counter(operand.hint if isinstance(operand, Value) else "" for operand in operands).most_common(1)[0]
    return hint if 2 * times > len(operands) else ""


# what a step is


def _kind(step: Step) -> Hashable:
    """What steps have in common for which one line of a function may stand."""
    ranks = tuple(len(result.shapes[0]) for result in step.results)
    forms = tuple(_form(getattr(step.attributes[0], field.name)) for field in fields(step.attributes[0])) if step.attributes else ()
    return step.function or step.op, tuple(map(_operand_kind, step.operands)), ranks, forms


def _operand_kind(operand: Operand) -> Hashable:
    """Of a tensor its rank; of a weight or a number also that it is one, and whether it is a slice."""
    bottom, rank = bottom_of(operand), len(operand.shapes[0])
    return (rank, type(bottom.attributes[0]), operand is bottom) if isinstance(bottom, Leaf) else rank


def _form(value: object) -> Hashable:
    """What values of an attribute have in common that may differ from call to call: numbers and words may."""
    is_size = isinstance(value, tuple) and all(type(each) is int for each in value)
    return int if is_size or type(value) in (int, str) else float if type(value) is float else identity(value)


def _cost(step: Step) -> float:
    """About how many lines a step takes, with the declarations of its weights."""
    own = step.function is not None or isinstance(legalisation_of(step.op), Matrix | Boundary)
    weights = sum(isinstance(bottom, Leaf) and bool(bottom.keys) for bottom in map(bottom_of, step.operands))
    return (1 if own else CHEAP) + weights
