"""The lines of a body: the names of its variables, statement by statement, and the text of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

from tpucc.interop.decompile.bounds import shortened
from tpucc.interop.decompile.expressions import Text, applied, is_slice, number
from tpucc.interop.decompile.families import FEWEST, Made, Member, families, kind, whole
from tpucc.interop.decompile.names import stem, unnamed
from tpucc.interop.decompile.program import Body, Function, Number, Operand, Step, Value, Weight
from tpucc.interop.decompile.statics import Scope
from tpucc.interop.decompile.variables import Numbers
from tpucc.ops import OPS, legalisation_of
from tpucc.ops.opdef import Matrix

WIDTH = 100
"""Columns of a line."""
SIZED = re.compile(r"\b([^\W0-9]\w*)\.shape")
"""The names whose sizes an expression reads."""
SHORT = 12
"""Characters of an operand in a line that is too long, for which no variable is taken."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a line computes, and for which values; without values, what a body returns."""

    parts: tuple[Step | Operand, ...]
    results: tuple[Value, ...] | None


class Writer(Protocol):
    """A body, as far as its lines need it: see `bodies.Writer`."""

    body: Body
    scope: Scope
    entries: Sequence[str]
    functions: Mapping[Function, Any]
    outputs: Sequence[str] | None
    before: dict[Value, Value]
    continued: dict[Value, Value]
    statics: list[list[str]]
    types: dict[Weight, str]
    inside: dict[Value, Step]
    numbers: dict[int, int]

    def variable(self, value: Value) -> str: ...


def _list(family: int) -> Value:
    """What stands for a list among the values that have names."""
    return Value(-1 - family)


def _takes_many(step: Step) -> bool:
    """Whether a step is an operator that takes a list."""
    return step.function is None and any(operand.many for operand in OPS[step.op].operands)


def _begins_early(value: Value | Weight) -> bool:
    """Whether a name is given in a line before that of the statement: those of weights and lists are."""
    return isinstance(value, Weight) or value.index < 0


class Lines:
    """Gives names to the variables and weights of a body's statements, and writes the lines."""

    def __init__(self, writer: Writer, statements: Sequence[Statement], late: bool = False) -> None:
        self.writer = writer
        self.statements = statements
        self.names: dict[Value | Weight, str] = dict(zip(writer.body.entries, writer.entries, strict=True))
        self.ends: dict[Value | Weight, int] = {}
        self.place = 0
        self.entries = dict(zip(writer.entries, writer.body.entries, strict=True))
        self.outputs: dict[Value | Weight, str] = {}
        """The name that a result must have: the first, if it is several."""
        for name, result in zip(writer.outputs or (), writer.body.results, strict=False):
            if isinstance(result, Value | Weight) and not (late and result in writer.continued):
                self.outputs.setdefault(result, name)
        self._collect()
        self.sized: dict[str, tuple[Value, int]] = {}
        """For each name the entry whose sizes its text stands for, and the last place where it does."""
        for place, statement in enumerate(statements):
            self.place = place
            for operand in self._leaves(statement):
                member = self.members.get(operand) if isinstance(operand, Value) else None
                self.ends[_list(member.family) if member is not None and place > member.until else operand] = place
            for family in self._whole_lists(statement):
                self.ends[_list(family)] = place
            for step in self._steps(statement):
                self._note_sizes(step, place)
        self.read_lists = {family for family, values in enumerate(self.lists) if any(value in self.ends for value in values)}
        """Those with a value that is read by its own variable."""
        self.holders = {name: value for value, name in self.names.items()}
        self.numbers: dict[str, Numbers] = {}
        self.too_long: set[Value] = set()
        self.rounds: dict[object, list[tuple[int, str]]] = {}
        """Of results without a name of their own, by what they are: their places and the names that they were given."""

    def _collect(self) -> None:
        """Finds the lists of values."""
        last: dict[Value, int] = {}
        made: list[Made] = []
        self.lists: list[tuple[Value, ...]] = []
        self.members: dict[Value, Member] = {}
        joins = self._joins()
        for place, statement in enumerate(self.statements):
            last.update({leaf: place for leaf in self._leaves(statement) if isinstance(leaf, Value)})
            root = statement.parts[0]
            if isinstance(root, Step) and not any(map(self._output, statement.results or ())):
                results = enumerate(statement.results or ())
                made += [Made(result, place, (self._kind(root), index, joins.get(result))) for index, result in results]
        self.lists, self.members = families(made, last, self.writer.before)

    def _joins(self) -> dict[Operand, int]:
        """For values a number of the last step that reads them in a list: those of another one are another list."""
        steps = (step for step in self.writer.body.steps if len(step.operands) >= FEWEST and _takes_many(step))
        return {operand: self.writer.numbers[id(step)] for step in steps for operand in step.operands}

    def _kind(self, step: Step) -> object:
        """What the values of a list have in common; of values that are put on a grid, what is put there."""
        own = kind(step, self.writer.statics[self.writer.numbers[id(step)]])
        rounded = step.operands[0] if step.function is not None and step.function.rounds else None
        inner = self.writer.inside.get(rounded) if isinstance(rounded, Value) else None
        return own if inner is None else (own, self._kind(inner))

    def _whole_lists(self, statement: Statement) -> Iterator[int]:
        """The lists that a statement reads as a whole."""
        for step in self._steps(statement):
            if (found := self._whole(step)) is not None:
                yield found[0]

    def _whole(self, step: Step) -> tuple[int, str] | None:
        """The list whose values are all operands of a step, and the slice of it that they are; None if there is none."""
        return whole(step.operands, self.lists, self.members) if _takes_many(step) else None

    def lines(self) -> tuple[list[str], set[Value]]:
        """The lines, and the values that should have a variable of their own because a line is too long."""
        lines = [self._weight(weight, "w", 0) for weight in self.writer.body.unused]
        lines += self._at_the_top()
        for place, statement in enumerate(self.statements):
            weights = [leaf for leaf in self._leaves(statement) if isinstance(leaf, Weight) and leaf not in self.names]
            roles = self._roles(statement) if weights else {}
            lines += [self._weight(weight, roles.get(weight, "w"), place) for weight in dict.fromkeys(weights)]
            self.place = place
            if statement.results is not None:
                lines += self._assigned(statement, statement.results)
            else:
                lines += self._returned(statement)
            if len(shortened(lines[-1])) > WIDTH - 4 and (inner := self._largest(statement)) is not None:
                self.too_long.add(inner)
        return lines, self.too_long

    def _assigned(self, statement: Statement, results: Sequence[Value]) -> Iterator[str]:
        """The lines that compute values: of one in a list, with those that begin the list and add to it."""
        members = [self.members[result] for result in results if result in self.members]
        for member in members:
            if member.index == 0:
                base = self.writer.variable(results[0]) or ("x" if is_slice(statement.parts[0]) else "h")
                yield f"{self._give(_list(member.family), f'{base}s', self.place)} = []"
        value = self._text(statement.parts[0]).text
        if len(results) > 1 or not members or members[0].family in self.read_lists:
            targets = [self._variable(result, index) for index, result in enumerate(results)]
            yield f"{', '.join(targets)} = {value}"
            value = targets[0]
        for member in members:
            name, own = self.names[_list(member.family)], self.lists[member.family][member.index]
            yield f"{name} = {name} + [{self.names[own] if len(results) > 1 else value}]"

    def _at_the_top(self) -> Iterator[str]:
        """The declarations of all weights of a function, if none needs the name of another."""
        roles: dict[Weight, str] = {}
        for statement in self.statements:
            found = self._roles(statement)
            roles |= {leaf: found.get(leaf, "w") for leaf in self._leaves(statement) if isinstance(leaf, Weight)}
        names = [self._wanted(weight, role) for weight, role in roles.items()]
        if self.writer.outputs is None and len(set(names)) == len(names):
            yield from (self._weight(weight, role, 0) for weight, role in roles.items())

    # what a statement reads

    def _leaves(self, statement: Statement) -> Iterator[Value | Weight]:
        for part in statement.parts:
            yield from self._read(part)

    def _read(self, part: Step | Operand) -> Iterator[Value | Weight]:
        """Variables and weights, in the order in which the text has them."""
        if isinstance(part, Value) and part in self.writer.inside:
            part = self.writer.inside[part]
        if isinstance(part, Step):
            for operand in part.operands if self._whole(part) is None else ():
                yield from self._read(operand)
        elif not isinstance(part, Number):
            yield part

    def _note_sizes(self, step: Step, place: int) -> None:
        """Notes the entries whose sizes the static expressions of a step read."""
        texts = [*self.writer.statics[self.writer.numbers[id(step)]]]
        texts += [self.writer.types[operand] for operand in step.operands if isinstance(operand, Weight)]
        for name in (name for text in texts for name in SIZED.findall(text) if name in self.entries):
            self.sized[name] = (self.entries[name], place)

    def _largest(self, statement: Statement) -> Value | None:
        """The operand with the longest text, of those that stand inside the statement; None where a variable would be hardly shorter."""
        inner = [
            operand
            for part in statement.parts
            if isinstance(part, Step)
            for operand in part.operands
            if isinstance(operand, Value) and operand in self.writer.inside
        ]
        lengths = {value: len(shortened(self._text(value).text)) for value in inner}
        longest = max(lengths, key=lengths.__getitem__, default=None)
        return longest if longest is not None and lengths[longest] > SHORT else None

    # texts

    def _text(self, part: Step | Operand) -> Text:
        if isinstance(part, Value) and part in self.writer.inside:
            part = self.writer.inside[part]
        if isinstance(part, Number):
            return number(part.values, self.writer.scope)
        if not isinstance(part, Step):
            member = self.members.get(part) if isinstance(part, Value) else None
            listed = member is not None and self.place > member.until
            return Text(f"{self.names[_list(member.family)]}[{member.index}]" if member is not None and listed else self.names[part])
        if (found := self._whole(part)) is not None:
            values = self.names[_list(found[0])] + found[1]
            return Text(f"{part.op}({', '.join([values, *self.writer.statics[self.writer.numbers[id(part)]]])})")
        operands = [self._text(operand) for operand in part.operands]
        static = self.writer.statics[self.writer.numbers[id(part)]]
        if part.function is not None:
            tensors = [operand.text for operand in operands]
            return Text(f"{self.writer.functions[part.function].name}({', '.join([*tensors, *static])})")
        return applied(part, operands, static)

    def _returned(self, statement: Statement) -> list[str]:
        texts = [self._text(part).tensor.text for part in statement.parts]
        outputs = self.writer.outputs or texts
        if self.writer.outputs is None or self._named_right(texts, outputs):
            return [f"return {', '.join(texts)}"]
        pairs = [(name, text) for name, text in zip(outputs, texts, strict=True) if name != text]
        names, values = ", ".join(name for name, _ in pairs), ", ".join(text for _, text in pairs)
        return [f"{names} = {values}", f"return {', '.join(outputs)}"]

    def _named_right(self, texts: Sequence[str], outputs: Sequence[str]) -> bool:
        return not any(text != output and matters for text, output, matters in self._renamings(texts, outputs))

    def _renamings(self, texts: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
        """Each result's text and name, and whether the text gives it another name than this."""
        for index, (text, output) in enumerate(zip(texts, outputs, strict=True)):
            is_plain = isinstance(self.statements[-1].parts[index], Value | Weight)
            yield text, output, is_plain or output != unnamed(index, len(texts))

    # names

    def _variable(self, value: Value, index: int) -> str:
        """The name of a statement's result, of which it is number `index`."""
        named = self._output(value) or self._continued(value, self.place) or self.writer.variable(value)
        root = self.statements[self.place].parts[0]
        if named or not isinstance(root, Step):
            return self._give(value, named or "h", self.place)
        rounds = self.rounds.setdefault((self._kind(root), index), [])
        name = self._of_a_loop(rounds)
        if not name or self._is_taken(name, value, self.place):
            name = "h"
        rounds.append((self.place, given := self._give(value, name, self.place)))
        return given

    def _of_a_loop(self, rounds: Sequence[tuple[int, str]]) -> str:
        """The name that the two values before had, if these are results of rounds of a loop: in the last round another one may be free that
        is read no more. `rounds` are the places and names of values that are computed alike."""
        if len(rounds) < 2:
            return ""
        (first, name), (second, other) = rounds[-2:]
        return name if name == other and self.place - second == second - first else ""

    def _continued(self, value: Value, place: int) -> str:
        """The variable that a call in a row of calls computes anew, as in `h, c = step(x, h, c)`; empty if it is still read."""
        before = self.writer.continued.get(value)
        return self.names[before] if before in self.names and self.ends.get(before, -1) <= place else ""

    def _output(self, value: Value) -> str:
        """The name that an output must have, if this variable can have it from the beginning."""
        return self.outputs.get(value, "")

    def _give(self, value: Value | Weight, wanted: str, place: int) -> str:
        """A name that nothing has that is read after this place."""
        numbers = self.numbers.setdefault(wanted, Numbers(wanted))
        name = numbers.free(place - _begins_early(value), self._end, lambda name: self._is_taken(name, value, place))
        self.holders[name], self.names[value] = value, name
        return name

    def _end(self, name: str) -> float:
        """The last place where what has a name is read; one that isn't for variables is taken everywhere."""
        if name in self.writer.scope.taken:
            return math.inf
        return self.ends.get(self.holders[name], -1) if name in self.holders else -1

    def _is_taken(self, name: str, value: Value | Weight, place: int) -> bool:
        """Whether something has a name that is read after this place; for a weight or a list, which begin in a line before, or in it."""
        entry, last = self.sized.get(name, (None, -1))
        is_held = self._end(name) > place - _begins_early(value)
        return is_held or (last > place and entry is not None and not self._are_alike(value, entry))

    def _are_alike(self, value: Value | Weight, entry: Value) -> bool:
        """Whether a value has the sizes of an entry, so that it may have its name where only the sizes are still read."""
        shapes = self.writer.body.shapes  # a list has none
        return isinstance(value, Value) and value in shapes and shapes[value] == shapes.get(entry)

    def _weight(self, weight: Weight, role: str, place: int) -> str:
        name = self._give(weight, self._wanted(weight, role), place)
        return f"weight {name}: {self.writer.types[weight]}"

    def _wanted(self, weight: Weight, role: str) -> str:
        """The last part of a weight's keys, or else its role."""
        last = {key.rpartition(".")[2].rpartition("/")[2] for key in weight.keys}
        return (stem(last.pop()) if len(last) == 1 else "") or role

    def _roles(self, statement: Statement) -> dict[Weight, str]:
        """What the operators that read weights call them."""
        found: dict[Weight, str] = {}
        for step in self._steps(statement):
            if step.function is None:
                names = [] if isinstance(legalisation_of(step.op), Matrix) else [operand.name for operand in OPS[step.op].operands]
                for operand, name in zip_longest(step.operands, names[: len(step.operands)], fillvalue="w"):
                    if isinstance(operand, Weight):
                        found.setdefault(operand, name)
        return found

    def _steps(self, statement: Statement) -> Iterator[Step]:
        waiting = list(statement.parts)
        while waiting:
            part = waiting.pop()
            if isinstance(part, Value) and part in self.writer.inside:
                part = self.writer.inside[part]
            if isinstance(part, Step):
                yield part
                waiting.extend(part.operands)
