"""Statements of a body: which values stand inside the expressions of others, which in variables, and which in lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.source.steps import Body, Function, Number, Operand, Part, Step, Value, Weight, is_slice, takes_many, values_of, wholes

OPERATIONS = 6
"""Operations in one expression, at most."""
WIDEST = 80
"""Characters of an expression, about, at most; a single operation may have more."""
OPERAND = 6
"""Characters of an operand, about."""
ROUNDS = 3
"""Calls in a row that are a loop: it begins with variables."""
MANY = 4
"""Operands of which each has a variable: so many expressions in one are hard to read. Also values of a list, at least."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A result of a call that the next call of the function takes, as `h` in `h = step(h)`: its place among the operands, the operand that
    this call has there, and the first result in the row of calls."""

    place: int
    before: Value | None
    first: Value


@dataclass(frozen=True, slots=True)
class Member:
    """A value in a list: the list, its place there, and the last statement before which it has a variable of its own."""

    whole: Value
    index: int
    until: int


def carried_places(bodies: Iterable[Body]) -> dict[tuple[Function, int], int]:
    """For the results of functions that go from call to call the place among its operands where the next call takes them."""
    found: dict[tuple[Function, int], int] = {}
    for body in bodies:
        made = {result: (step.function, index) for step in body.steps if step.function for index, result in enumerate(step.results)}
        for step in body.steps:
            for place, operand in enumerate(step.operands if step.function is not None else ()):
                if isinstance(operand, Value) and operand in made and made[operand][0] is step.function:
                    found[made[operand]] = place
    return found


class Statements:
    """The statements of a body in order, `steps`. `named` are values that need a variable. `lengths` are the characters of the static texts
    of steps; without them each operator is a statement. With `lists`, values that are read late are in lists."""

    def __init__(
        self,
        body: Body,
        places: Mapping[tuple[Function, int], int],
        named: Iterable[Operand],
        lengths: Mapping[Step, int] | None,
        lists: bool,
    ) -> None:
        self.body, self.named = body, set(named)
        self.carried = dict(self._carried(places))
        self.inside: dict[Value, Step] = {}
        self.members: dict[Value, Member] = {}
        if lengths is not None:
            self.inside = dict(self._inside(lengths))
        self.steps = list(self._in_order())
        self.last = self._last()
        """The last statement that reads a variable, a list or a weight; the one behind all statements is the `return`."""
        if lists:
            self.members = dict(self._members())
            self.last = self._last()

    def _carried(self, places: Mapping[tuple[Function, int], int]) -> Iterator[tuple[Value, Carried]]:
        firsts: dict[Value, Value] = {}
        for step in self.body.steps:
            for index, result in enumerate(step.results):
                if step.function is not None and (place := places.get((step.function, index))) is not None:
                    before = step.operands[place]
                    whole = before if isinstance(before, Value) else None
                    firsts[result] = firsts.get(before, result) if isinstance(before, Value) else result
                    yield result, Carried(place, whole, firsts[result])

    def _inside(self, lengths: Mapping[Step, int]) -> Iterator[tuple[Value, Step]]:
        """The values that are read once, by an expression that isn't too large with theirs."""
        uses = Counter(value for step in self.body.steps for value in wholes(step)) + Counter(values_of(self.body.results))
        rounds = Counter(carried.first for carried in self.carried.values())
        begun = {carried.before for carried in self.carried.values() if rounds[carried.first] >= ROUNDS}
        variables = {*self.named, *self.carried, *begun}
        makers = {
            value: step
            for step in self.body.steps
            for value in step.results
            if len(step.results) == uses[value] == 1 and value not in variables
        }
        sizes: dict[Value, tuple[int, int, bool]] = {}
        """Of an expression: its operations, its characters, and whether it has a product or a call."""
        for step in self.body.steps:
            is_layer = step.function is not None or isinstance(legalisation_of(step.op), Matrix)
            count, width, has_layer = 1, len(step.op) + lengths[step] + OPERAND * len(step.operands), is_layer
            single = [value for value in wholes(step) if value in makers and not value.hint and not (is_layer and sizes[value][2])]
            if step.function is not None:  # a first state is a variable
                single = [value for value in single if makers[value].operands]
            for value in sorted(single, key=sizes.__getitem__) if len(single) < MANY else ():
                operations, characters, layer = sizes[value]
                if count + operations <= OPERATIONS and width + characters <= WIDEST:
                    count, width, has_layer = count + operations, width + characters, has_layer or layer
                    yield value, makers[value]
            sizes |= dict.fromkeys(step.results, (count, width, has_layer))
        yield from ((value, makers[value]) for value in values_of(self.body.results) if value in makers)

    def _in_order(self) -> Iterator[Step]:
        """The statements, but what has no operands where it is first read."""
        steps = [step for step in self.body.steps if not self.inside.keys() & set(step.results)]
        waiting = {step.results[0]: step for step in steps if not step.operands}
        for step in steps:
            if step.operands:
                yield from (waiting.pop(leaf) for leaf in dict.fromkeys(self.leaves(step)) if isinstance(leaf, Value) and leaf in waiting)
                yield step
        yield from waiting.values()

    def _last(self) -> dict[Value | Weight, int]:
        parts = (*enumerate(self.steps), *((len(self.steps), result) for result in self.body.results))
        return {leaf: place for place, part in parts for leaf in self.leaves(part, place)}

    def _members(self) -> Iterator[tuple[Value, Member]]:
        """The values of lists: results of steps that are alike, each of which is read when the next one is there already."""
        joins = {operand: step for step in self.body.steps if takes_many(step.op) for operand in step.operands}
        rows: dict[Hashable, list[tuple[int, Value]]] = defaultdict(list)
        for place, step in enumerate(self.steps):
            for index, result in enumerate(step.results):
                if result in self.carried:
                    rows[self.carried[result].first].append((place, result))
                elif result in joins:
                    rows[step.function or step.op, index, joins[result]].append((place, result))
                elif is_slice(step):
                    rows[step.op, *wholes(step)].append((place, result))
        for row in rows.values():
            yield from self._lists(row, joins)

    def _lists(self, row: Sequence[tuple[int, Value]], joins: Mapping[Operand, Step]) -> Iterator[tuple[Value, Member]]:
        found: list[tuple[int, Value]] = []
        for (place, value), (following, _) in pairwise([*row, (len(self.steps) + 1, row[-1][1])]):
            last = self.last.get(value, -1)
            if last > following:
                found.append((following, value))
            elif last < following and (value in joins or value is row[-1][1]):
                found.append((place, value))
            if last <= following:
                whole = Value(())
                if len(found) >= MANY:
                    yield from ((each, Member(whole, index, until)) for index, (until, each) in enumerate(found))
                found = []

    def leaves(self, part: Step | Operand, place: int = -1, joined: bool = False) -> Iterator[Value | Weight]:
        """The variables, lists and weights that an expression of a statement reads, in the order in which its text has them."""
        match part:
            case Step():
                for operand in part.operands:
                    yield from self.leaves(operand, place, takes_many(part.op))
            case Part(whole=whole):
                yield from self.leaves(whole, place)
            case Value() if part in self.inside:
                yield from self.leaves(self.inside[part], place)
            case Value() if part in self.members and (joined or place > self.members[part].until):
                yield self.members[part].whole
            case Value() | Weight():
                yield part
            case Number():
                pass
