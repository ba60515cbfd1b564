"""Lists of values: what the steps of a sequence compute, if all of it is read later, as `hs = hs + [h]` collects it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.interop.decompile.bounds import shortened
from tpucc.interop.decompile.program import Operand, Step, Value

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
FEWEST = 4
"""Values of a list."""
MOST = 1000
"""Values of a list, too: the front end reads all of a list that something is added to."""


@dataclass(frozen=True, slots=True)
class Made:
    """A value that a statement computes, and what it is: values of one kind may be in one list."""

    value: Value
    place: int
    kind: object


@dataclass(frozen=True, slots=True)
class Member:
    """A value in a list: which list, its index, and the last statement that may read the value's variable instead."""

    family: int
    index: int
    until: int


def families(
    made: Sequence[Made], reads: Mapping[Value, int], before: Mapping[Value, Value]
) -> tuple[list[tuple[Value, ...]], dict[Value, Member]]:
    """The lists, and their members. `reads` is the last statement that reads each value, `before` what a step takes in the place of the
    value that the step before it makes.

    A list has up to `MOST` values of one kind at equal distances, each of which is still read when the next has been made; the last one has
    no next. Before them is the value that their first step takes, if it is also still read then: a first step may be of another kind.
    """
    found: list[tuple[Value, ...]] = []
    members: dict[Value, Member] = {}
    places = {each.value: each.place for each in made}
    groups = [group for group in _groups(made) if len(group) <= MOST and _is_read(group, reads)]
    grouped = {each.value for group in groups for each in group}
    for group in groups:
        step = group[1].place - group[0].place
        values = [(each.value, each.place + step) for each in group]
        first = before.get(group[0].value)
        is_free = first in places and first not in grouped and first not in members and len(group) < MOST
        if first is not None and is_free and places[first] < group[0].place < reads.get(first, -1):
            values.insert(0, (first, group[0].place))
        members.update({value: Member(len(found), index, until) for index, (value, until) in enumerate(values[:-1])})
        members[group[-1].value] = Member(len(found), len(values) - 1, group[-1].place)
        found.append(tuple(value for value, _ in values))
    return found, members


def _is_read(group: Sequence[Made], reads: Mapping[Value, int]) -> bool:
    """Whether each value is still read when the next has been made, and the last one at all."""
    step = group[1].place - group[0].place
    return all(reads.get(each.value, -1) > each.place + step for each in group[:-1]) and group[-1].value in reads


def _groups(made: Sequence[Made]) -> Iterator[list[Made]]:
    """Values of one kind at equal distances."""
    kinds: dict[object, list[Made]] = {}
    for each in made:
        kinds.setdefault(each.kind, []).append(each)
    for alike in kinds.values():
        group: list[Made] = []
        for each in alike:
            if len(group) > 1 and each.place - group[-1].place != group[1].place - group[0].place:
                if len(group) >= FEWEST:
                    yield group
                group = group[-1:] if len(group) < FEWEST else []
            group.append(each)
        if len(group) >= FEWEST:
            yield group


def kind(step: Step, statics: Sequence[str]) -> object:
    """What the values of a list have in common: the operator or function, and its static arguments but for numbers."""
    return step.op, step.function, tuple(NUMBER.sub("", shortened(text)) for text in statics)


def whole(operands: Sequence[Operand], found: Sequence[tuple[Value, ...]], members: Mapping[Value, Member]) -> tuple[int, str] | None:
    """The list of which these are values in order, and the slice of it that they are, empty for all; None if there is none."""
    first = members.get(operands[0]) if isinstance(operands[0], Value) else None
    if first is None:
        return None
    values, start, stop = found[first.family], first.index, first.index + len(operands)
    if len(operands) < FEWEST or tuple(operands) != values[start:stop]:
        return None
    return first.family, "" if len(operands) == len(values) else f"[{start or ''}:{stop if stop < len(values) else ''}]"
