"""Statements of a body: which values stand inside the expressions of others, which in variables, and which in lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.source.steps import Body, Leaf, Operand, Step, Value, is_slice, takes_many, values_of

OPERATIONS = 6
"""Operations in one expression, at most."""
WIDEST = 80
"""Characters of an expression, about, at most; a single operation may have more."""
OPERAND = 6
"""Characters of an operand, about."""
ROUNDS = 3
"""A first state and the results of calls in a row, from so many on: each is a variable."""
MANY = 4
"""Operands of which each has a variable: so many expressions in one are hard to read. Also values of a list, at least."""


@dataclass(frozen=True, slots=True)
class Member:
    """A value in a list: the list, its place there, and the last statement before which it has a variable of its own."""

    whole: Value
    index: int
    until: int


class Statements:
    """The statements of a body in order, `steps`. `named` are values that need a variable. `lengths` are the characters of the static texts
    of steps; without them each operator is a statement. With `lists`, values that are read late are in lists."""

    def __init__(self, body: Body, named: Sequence[Operand], lengths: Mapping[Step, int] | None, lists: bool) -> None:
        self.body = body
        self.rows: dict[Operand, list[Operand]] = {}
        """For a result that goes from call to call the operand of the first call, and all results of these calls."""
        for step in body.steps:
            for index, entry in step.function.carried.items() if step.function is not None else ():
                row = self.rows[step.results[index]] = self.rows.get(step.operands[entry]) or [step.operands[entry]]
                row.append(step.results[index])
        self.inside = dict(self._inside(named, lengths)) if lengths is not None else {}
        self.members: dict[Value, Member] = {}
        self.steps = list(self._in_order())
        self.last = self._last()
        """The last statement that reads a variable, a list or a weight; the one behind all statements is the `return`."""
        if lists:
            self.members = dict(self._members())
            self.last = self._last()

    def _inside(self, named: Sequence[Operand], lengths: Mapping[Step, int]) -> Iterator[tuple[Value, Step]]:
        """The values that are read once, by an expression that isn't too large with theirs."""
        uses = Counter(value for step in self.body.steps for value in values_of(step.operands)) + Counter(values_of(self.body.results))
        variables = {*named, *(value for row in self.rows.values() if len(row) >= ROUNDS for value in row)}
        makers = {
            step.results[0]: step
            for step in self.body.steps
            if len(step.results) == uses[step.results[0]] == 1 and step.results[0] not in variables
        }
        sizes: dict[Value, tuple[int, int, bool]] = {}
        """Of an expression: its operations, its characters, and whether it has a product or a call."""
        for step in self.body.steps:
            is_layer = step.function is not None or isinstance(legalisation_of(step.op), Matrix)
            count, width, has_layer = 1, len(step.op) + lengths[step] + OPERAND * len(step.operands), is_layer
            values = [value for value in values_of(step.operands) if value in makers and not (value.hint and makers[value].operands)]
            if step.function is not None:  # a first state is a variable
                values = [value for value in values if makers[value].operands]
            single = [value for value in values if not (is_layer and sizes[value][2])]
            for value in sorted(single, key=sizes.__getitem__) if len(single) < MANY else ():
                operations, characters, layer = sizes[value]
                if count + operations <= OPERATIONS and width + characters <= WIDEST:
                    count, width, has_layer = count + operations, width + characters, has_layer or layer
                    yield value, makers[value]
            sizes |= dict.fromkeys(step.results, (count, width, has_layer))
        yield from ((value, makers[value]) for value in values_of(self.body.results) if value in makers)

    def _in_order(self) -> Iterator[Step]:
        """The statements, but what is computed of nothing where it is first read."""
        steps = [step for step in self.body.steps if self.inside.keys().isdisjoint(step.results)]
        waiting: dict[Value | Leaf, Step] = {step.results[0]: step for step in steps if not step.operands}
        for step in steps:
            if step.operands:
                yield from (waiting.pop(leaf) for leaf in dict.fromkeys(self.leaves(step)) if leaf in waiting)
                yield step
        yield from waiting.values()

    def _last(self) -> dict[Value | Leaf, int]:
        parts = (*enumerate(self.steps), *((len(self.steps), result) for result in self.body.results))
        return {leaf: place for place, part in parts for leaf in self.leaves(part, place)}

    def _members(self) -> Iterator[tuple[Value, Member]]:
        """The values of lists: results of steps that are alike, each of which is read when the next one is there already."""
        joins = {operand: step for step in self.body.steps if takes_many(step.op) for operand in step.operands}
        rows: dict[Hashable, list[tuple[int, Value]]] = defaultdict(list)
        for place, step in enumerate(self.steps):
            for index, result in enumerate(step.results):
                if result in self.rows:
                    rows[id(self.rows[result])].append((place, result))
                elif result in joins:
                    rows[step.function or step.op, index, joins[result]].append((place, result))
                elif is_slice(step):
                    rows[step.op, *values_of(step.operands)].append((place, result))
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

    def leaves(self, part: Step | Operand, place: int = -1, joined: bool = False) -> Iterator[Value | Leaf]:
        """The variables, lists and weights that an expression of a statement reads, in the order in which its text has them."""
        match part:
            case Step():
                for operand in part.operands:
                    yield from self.leaves(operand, place, takes_many(part.op))
            case Leaf(whole=None):
                if part.keys:
                    yield part
            case Leaf(whole=whole) if whole is not None:
                yield from self.leaves(whole, place)
            case Value() if part in self.inside:
                yield from self.leaves(self.inside[part], place)
            case Value() if part in self.members and (joined or place > self.members[part].until):
                yield self.members[part].whole
            case _:
                yield part
