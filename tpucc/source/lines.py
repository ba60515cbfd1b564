"""From the steps of a body to the lines of a function or of the model.

First the texts of all static values are found, then which values stand inside the expressions of others instead of in variables, and then,
statement by statement, the names of the variables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import TypeAlias

from tpucc.ops import OPS, legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes
from tpucc.source.expressions import Text, applied, attributes_of, indices, number
from tpucc.source.keys import Keys
from tpucc.source.names import unused, variable_in
from tpucc.source.static_values import Parameter, Scope, Vector
from tpucc.source.steps import Body, Function, Number, Operand, Part, Step, Value, Weight, wholes

OPERATIONS = 6
"""Operations in one expression, at most."""
WIDEST = 80
"""Characters of an expression that stands inside another one, at most, about."""
MANY = 4
"""Operands of which some have a variable of their own: so many expressions in one are hard to read."""
WORDS = ("size",) * 6 + ("inputs", "units")
"""What the axes of a weight are called. The last axis of a kernel, which has four, is called `filters`."""
KERNEL = 4


Carried: TypeAlias = Mapping[tuple[Function, int], int]
"""For a result of a function the place among its operands where the next call takes it."""


def carried_places(bodies: Iterable[Body]) -> dict[tuple[Function, int], int]:
    """The results of functions that go from call to call."""
    found: dict[tuple[Function, int], int] = {}
    for body in bodies:
        made = {result: (step.function, index) for step in body.steps if step.function for index, result in enumerate(step.results)}
        for step in body.steps:
            for place, operand in enumerate(step.operands if step.function is not None else ()):
                if isinstance(operand, Value) and operand in made and made[operand][0] is step.function:
                    found[made[operand]] = place
    return found


@dataclass(frozen=True, slots=True)
class Written:
    """A function that has its text: its name, its parameters as its head has them, the lines of its body, its static parameters in order,
    and the variables that it returns."""

    name: str
    formals: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    returned: tuple[str, ...]

    @property
    def head(self) -> str:
        return f"def {self.name}({', '.join(self.formals)}):"


@dataclass(frozen=True, slots=True)
class Member:
    """A value in a list: the list, its place there, and the statement that makes the next value, to which it has a variable of its own."""

    whole: Value
    index: int
    until: int


class Writer:
    """Writes a body. `entries` are the names of what it takes; `outputs`, of a model, the names of what it returns. If it isn't nested, each
    operator has a line of its own."""

    def __init__(
        self,
        body: Body,
        scope: Scope,
        entries: Sequence[str],
        functions: Mapping[Function, Written],
        carried: Carried,
        outputs: Sequence[str] = (),
        nested: bool = True,
        unread: Sequence[Weight] = (),
    ) -> None:
        self.body, self.scope, self.functions, self.outputs, self.unread = body, scope, functions, outputs, unread
        self.members: dict[Value, Member] = {}
        self.rows: dict[Value, Value] = {}
        self.counts: dict[Value, int] = {}
        """How many values a list has by now."""
        self.types: dict[Weight, str] = {}
        self.parts: dict[Part, str] = {}
        self.numbers: dict[Number, Text] = {}
        self.names: dict[Value | Weight, str] = dict(zip(body.entries, entries, strict=True))
        self.holders: dict[str, Value | Weight] = {name: value for value, name in self.names.items()}
        scope.know_keys(list(self._keys()))
        self.arguments = {step: self._arguments(step) for step in body.steps}
        for result in (*unread, *body.results):
            self._know(result, None)
        self.makers = {result: step for step in body.steps for result in step.results if step.function is not None}
        self.carried = dict(self._carried(carried))
        self.inside = dict(self._inside()) if nested else {}
        self.statements = list(self._in_order([step for step in body.steps if not self.inside.keys() & set(step.results)]))
        self.last = self._last()
        """The last statement that reads a variable, a list or a weight; the one behind all statements is the `return`."""
        self.members = dict(self._members()) if nested else {}
        self.last = self._last()
        used = " ".join((*self.types.values(), *self.parts.values(), *(text for texts in self.arguments.values() for text in texts)))
        scope.taken.difference_update(entries)
        self.measured = {name for name in entries if f"{name}.shape[" in used}
        """The entries whose names are needed to the end, as sizes follow from theirs."""

    # static expressions

    def _keys(self) -> Iterator[Keys]:
        """The keys of all weights that steps read, and those that calls are given."""
        for step in self.body.steps:
            yield from (operand.keys for operand in step.operands if isinstance(operand, Weight))
            yield from (values for parameter, values in self._given(step) if parameter.word == "name")

    def _given(self, step: Step) -> Iterator[tuple[Parameter, Vector]]:
        """The static arguments of a call."""
        for parameter in self.functions[step.function].parameters if step.function is not None else ():
            yield parameter, tuple(parameter.values[environment] for environment in step.environments)

    def _arguments(self, step: Step) -> list[str]:
        """The texts of a step's attributes, or of the static arguments of a call; also finds those of its operands."""
        for operand in step.operands:
            self._know(operand, step)
        if step.function is None:
            return attributes_of(step, self.scope, step.operands[0].shapes if step.operands else ())
        given = [(parameter, self.scope.text(values, parameter.word)) for parameter, values in self._given(step)]
        plain = [text for parameter, text in given if not parameter.default]
        return plain + [f"{each.name}={text}" for each, text in given if each.default and text != each.default]

    def _know(self, operand: Operand, step: Step | None) -> None:
        """Finds the type and the key of a weight, the indices of a part, the text of a number."""
        match operand:
            case Weight(keys=keys, shapes=shapes) if operand not in self.types:
                rank = len(shapes[0])
                words = [*WORDS[:-1], "filters"][-rank:] if rank == KERNEL else WORDS[len(WORDS) - rank :]
                sizes = [self._size(values, word, step) for values, word in zip(zip(*shapes, strict=True), words, strict=True)]
                self.types[operand] = f"f32[{', '.join(sizes)}] = {self.scope.text(keys, 'name')}"
            case Part(whole=whole, slices=slices) if operand not in self.parts:
                self.parts[operand] = ", ".join(indices(slices, self.scope, whole.shapes))
            case Number(values=values) if operand not in self.numbers:
                self.numbers[operand] = number(values, self.scope)
            case _:
                pass

    def _size(self, values: tuple[int, ...], word: str, step: Step | None) -> str:
        """A size of a weight. Its inputs are the channels of what a function takes, where the step reads that, or a part of them."""
        for entry in self.body.entries if self.scope.is_function and step is not None and word == "inputs" else ():
            rows, name = tuple(shape[-1] if shape else 0 for shape in entry.shapes), self.names[entry]
            groups = tuple(getattr(attributes, "groups", 1) for attributes in step.attributes)
            if entry in step.operands and values == rows:
                return f"{name}.shape[-1]"
            if (
                entry in step.operands
                and len(set(groups)) > 1 < len(set(values))
                and values == tuple(a // b for a, b in zip(rows, groups, strict=True))
            ):
                return f"{name}.shape[-1] // {self.scope.text(groups, 'groups')}"
        return self.scope.text(values, word)

    # expressions inside others

    def _carried(self, carried: Carried) -> Iterator[tuple[Value, tuple[str, Value | None]]]:
        """The values that go from call to call of a function, each with the name that the function has for it and the value that it takes the
        place of, as `h` and `c` do in `h, c = step(h, c)`."""
        for step in self.body.steps:
            for index, result in enumerate(step.results):
                if step.function is not None and (place := carried.get((step.function, index))) is not None:
                    operand, name = step.operands[place], self.functions[step.function].formals[place].rstrip("0123456789").replace("x", "")
                    before = operand if isinstance(operand, Value) and operand not in self.body.entries else None
                    yield result, (name, before)
                    if before is not None and not before.hint and before not in self.makers:
                        yield before, (name, None)

    def _inside(self) -> Iterator[tuple[Value, Step]]:
        """The values that are read once, by an expression that isn't too large with theirs, and that the graph doesn't name."""
        uses = Counter(value for step in self.body.steps for value in wholes(step))
        uses.update(result for result in self.body.results if isinstance(result, Value))
        makers = {step.results[0]: step for step in self.body.steps if len(step.results) == 1}
        sizes: dict[Value, tuple[int, int, bool]] = {}
        """Of an expression: its operations, about its characters, and whether it has a product or a call."""
        chosen: dict[Value, Step] = {}
        named = {value for value, name in zip(self.body.results, self.outputs, strict=False) if not self._is_unnamed(name)}
        for step in self.body.steps:
            own = step.function is not None or isinstance(legalisation_of(step.op), Matrix)
            many, width, has_product = 1, len(step.op) + sum(map(len, self.arguments[step])) + 6 * len(step.operands), own
            single = [
                v
                for v in dict.fromkeys(wholes(step))
                if v in makers and uses[v] == 1 and not v.hint and v not in self.carried and v not in named
            ]
            single = [v for v in single if not (own and sizes[v][2]) and not (step.function is not None and not makers[v].operands)]
            if len(single) >= MANY:
                single = []
            for value in sorted(single, key=lambda value: sizes[value]):
                operations, characters, product = sizes[value]
                if many + operations <= OPERATIONS and width + characters <= WIDEST:
                    many, width, has_product = many + operations, width + characters, has_product or product
                    chosen[value] = makers[value]
            for result in step.results:
                sizes[result] = many, width, has_product
        for place, result in enumerate(self.body.results):
            if isinstance(result, Value) and result in makers and uses[result] == 1 and result not in named and result not in self.carried:
                chosen[result] = makers[result]
        yield from chosen.items()

    def _in_order(self, steps: Sequence[Step]) -> Iterator[Step]:
        """The statements, but what has no operands where it is first read."""
        waiting = {step.results[0]: step for step in steps if not step.operands}
        for step in steps:
            if step.operands:
                yield from (waiting.pop(leaf) for leaf in list(self._leaves(step)) if isinstance(leaf, Value) and leaf in waiting)
                yield step
        yield from waiting.values()

    def _last(self) -> dict[Value | Weight, int]:
        parts = [
            *((step, place) for place, step in enumerate(self.statements)),
            *((each, len(self.statements)) for each in self.body.results),
        ]
        return {leaf: place for part, place in parts for leaf in self._leaves(part, place)}

    def _members(self) -> Iterator[tuple[Value, Member]]:
        """The values of lists: results of steps that are alike, each of which is read when the next one is there already."""
        joins = {operand: step for step in self.body.steps if _takes_many(step) for operand in step.operands}
        rows: dict[Hashable, list[tuple[int, Value]]] = defaultdict(list)
        for place, step in enumerate(self.statements):
            for index, result in enumerate(step.results):
                if step.function is not None and result in self.carried:
                    rows[self._first_in_row(step, result), index].append((place, result))
                elif result in joins:
                    rows[step.function or step.op, index, joins[result]].append((place, result))
                elif step.attributes and isinstance(step.attributes[0], SliceAttributes):
                    rows[step.op, *wholes(step)].append((place, result))
        for row in rows.values():
            found: list[tuple[int, Value]] = []
            for (place, value), (following, _) in pairwise([*row, (len(self.statements) + 1, row[-1][1])]):
                last = self.last.get(value, -1)
                if last > following:
                    found.append((following, value))
                elif last < following and (value in joins or value is row[-1][1]):
                    found.append((place, value))
                if last <= following:
                    if len(found) >= MANY:
                        whole = Value(())
                        yield from ((each, Member(whole, index, until)) for index, (until, each) in enumerate(found))
                    found = []

    def _first_in_row(self, step: Step, result: Value) -> Value:
        """The first of the results that go from call to call until this one."""
        before = self.carried[result][1]
        first = self.rows.get(before, result) if before is not None else result
        self.rows[result] = first
        return first

    def _leaves(self, part: Step | Operand, place: int = -1, joined: bool = False) -> Iterator[Value | Weight]:
        """The variables, lists and weights that an expression of a statement reads, in the order in which its text has them."""
        match part:
            case Step():
                for operand in part.operands:
                    yield from self._leaves(operand, place, _takes_many(part))
            case Part(whole=whole):
                yield from self._leaves(whole, place)
            case Value() if part in self.inside:
                yield from self._leaves(self.inside[part], place)
            case Value() if part in self.members and (joined or place > self.members[part].until):
                yield self.members[part].whole
            case Value() | Weight():
                yield part
            case Number():
                pass

    # lines

    def lines(self) -> Iterator[str]:
        """The lines, without indentation."""
        for weight in self.unread:
            yield self._declared(weight, "w", 0)
        for place, step in enumerate(self.statements):
            yield from self._weights(step, place)
            self.place = place
            text = self._text(step).text
            kept = [self.members[result] for result in step.results if result in self.members]
            for member in kept:
                if member.index == 0:
                    yield f"{self._give(member.whole, 'hs', place - 1)} = []"
                self.counts[member.whole] = member.index + 1
            if kept and len(step.results) == 1 and step.results[0] not in self.last and step.results[0] not in self.carried:
                names = [text]
            else:
                self.last |= {result: max(self.last.get(result, 0), place + 1) for result in step.results}
                names = [self._variable(step, index, place) for index in range(len(step.results))]
                yield f"{', '.join(names)} = {text}"
            for name, result in zip(names, step.results, strict=True):
                if result in self.members:
                    whole = self.names[self.members[result].whole]
                    yield f"{whole} = {whole} + [{name}]"
        self.place = len(self.statements)
        for result in self.body.results:
            yield from self._weights(result, len(self.statements))
        texts = [self._text(result).tensor.text for result in self.body.results]
        self.returned = tuple(
            text if isinstance(result, Value) and result not in self.inside else ""
            for text, result in zip(texts, self.body.results, strict=True)
        )
        wanted = list(self.outputs) or texts
        for place, result in enumerate(self.body.results if all(map(self._may_stay, self.body.results, wanted, texts)) else ()):
            wanted[place] = texts[place]
        if pairs := [(name, text) for name, text in zip(wanted, texts, strict=True) if name != text]:
            yield f"{', '.join(name for name, _ in pairs)} = {', '.join(text for _, text in pairs)}"
        yield f"return {', '.join(wanted)}"

    def _may_stay(self, result: Operand, output: str, text: str) -> bool:
        """Whether a result may stand in the `return` as it is, and has its name then."""
        return output == text or (self._is_unnamed(output) and (isinstance(result, Number) or result in self.inside))

    def _is_unnamed(self, output: str) -> bool:
        """Whether an output has the name of a result that isn't a variable."""
        return output in ("out", *(f"out{place}" for place in range(len(self.outputs))))

    def _weights(self, part: Step | Operand, place: int) -> Iterator[str]:
        """The declarations of the weights that an expression reads for the first time."""
        roles = dict(self._roles(part))
        for leaf in dict.fromkeys(self._leaves(part)):
            if isinstance(leaf, Weight) and leaf not in self.names:
                yield self._declared(leaf, roles.get(leaf, "w"), place)

    def _roles(self, part: Step | Operand) -> Iterator[tuple[Weight, str]]:
        """What the operators that read weights call them."""
        if isinstance(part, Value | Part):
            whole = part.whole if isinstance(part, Part) else part
            yield from self._roles(self.inside[whole]) if whole in self.inside else ()
        elif isinstance(part, Step):
            names = (
                []
                if part.function is not None or isinstance(legalisation_of(part.op), Matrix)
                else [each.name for each in OPS[part.op].operands]
            )
            for operand, name in zip_longest(part.operands, names[: len(part.operands)], fillvalue="w"):
                if isinstance(operand, Weight):
                    yield operand, name
                elif not isinstance(operand, str):
                    yield from self._roles(operand)

    def _declared(self, weight: Weight, role: str, place: int) -> str:
        last = {key.rpartition(".")[2].rpartition("/")[2] for key in weight.keys}
        name = self._give(weight, (variable_in(last.pop()) if len(last) == 1 else "") or role, place - 1)
        return f"weight {name}: {self.types[weight]}"

    def _text(self, part: Step | Operand) -> Text:
        match part:
            case Number():
                return self.numbers[part]
            case Part(whole=whole):
                return Text(f"{self._text(whole).within(Text('').level)}[{self.parts[part]}]")
            case Value() if part in self.inside:
                return self._text(self.inside[part])
            case Value() if part in self.members and self.place > self.members[part].until:
                return Text(f"{self.names[self.members[part].whole]}[{self.members[part].index}]")
            case Value() | Weight():
                return Text(self.names[part])
            case Step() if _takes_many(part):
                return Text(f"{part.op}({', '.join([self._joined(part.operands), *self.arguments[part]])})")
            case Step():
                operands = [self._text(operand) for operand in part.operands]
                if part.function is None:
                    return applied(part, operands, self.arguments[part])
                called = self.functions[part.function].name
                return Text(f"{called}({', '.join([*(operand.text for operand in operands), *self.arguments[part]])})")

    def _joined(self, operands: Sequence[Operand]) -> str:
        """A list of operands: those that are in a list already, one after the other, as this list or a part of it."""
        texts: list[str] = []
        place = 0
        while place < len(operands):
            stop, first = place, self._member(operands[place])
            while (
                first is not None
                and stop < len(operands)
                and self._member(operands[stop]) == replace(first, index=first.index + stop - place)
            ):
                stop += 1
            if first is not None:
                taken = f"{first.index}:{first.index + stop - place}"
                texts.append(self.names[first.whole] + (f"[{taken}]" if taken != f"0:{self.counts[first.whole]}" else ""))
            elif texts and texts[-1].startswith("["):
                texts[-1] = f"{texts[-1][:-1]}, {self._text(operands[place]).text}]"
            else:
                texts.append(f"[{self._text(operands[place]).text}]")
            place = max(stop, place + 1)
        return " + ".join(texts)

    def _member(self, operand: Operand) -> Member | None:
        member = self.members.get(operand) if isinstance(operand, Value) else None
        return replace(member, until=0) if member is not None else None

    # names of variables

    def _variable(self, step: Step, index: int, place: int) -> str:
        """The name of a result of a statement: what the calls in a row that take it call it, an output's, what the graph calls it, or `h`."""
        value = step.results[index]
        output = next((name for result, name in zip(self.body.results, self.outputs, strict=False) if result is value and name), "")
        returned = self.functions[step.function].returned[index] if step.function is not None else ""
        name, before = self.carried.get(value, ("", None))
        first = self.names.get(before, "") if before is not None and (before in self.makers or not before.hint) else ""
        return self._give(value, name or output or value.hint or returned.rstrip("0123456789") or "h", place, first)

    def _give(self, value: Value | Weight, wanted: str, place: int, first: str = "") -> str:
        """A name that nothing has that is read behind this place: the first one, or else one like the wanted one."""

        def is_taken(name: str) -> bool:
            holder = self.holders.get(name)
            return name in self.scope.taken or name in self.measured or (holder is not None and self.last.get(holder, -1) > place)

        name = first if first and not is_taken(first) else unused(wanted, is_taken)
        self.holders[name], self.names[value] = value, name
        return name


def _takes_many(step: Step) -> bool:
    """Whether an operator takes a list of tensors."""
    return step.function is None and any(operand.many for operand in OPS[step.op].operands)
