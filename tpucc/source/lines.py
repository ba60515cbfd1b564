"""From the statements of a body to its lines: the names of variables, and the expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from tpucc.language.apply import BINARY, COMPARISONS
from tpucc.language.static import STATIC
from tpucc.source.loops import rolled
from tpucc.source.names import unused, variable_in
from tpucc.source.statements import Member, Statements
from tpucc.source.statics import Statics
from tpucc.source.steps import Body, Leaf, Operand, Step, Value, is_slice, takes_many

SYMBOLS = {op: symbol for symbol, op in (*BINARY.items(), *COMPARISONS.items())}
"""The operators that have a symbol."""


class Level(IntEnum):
    """How tightly an expression holds together."""

    COMPARISON = 1
    TERMS = 2
    FACTORS = 3
    SIGN = 4
    POSTFIX = 5


LEVELS = {**dict.fromkeys(("+", "-"), Level.TERMS), **dict.fromkeys(("*", "/", "@"), Level.FACTORS)}


@dataclass(frozen=True, slots=True)
class Text:
    """An expression. A lone number is static, so that some operators need it as a constant."""

    text: str
    level: Level = Level.POSTFIX
    is_number: bool = False

    def within(self, level: Level) -> str:
        """The expression where one of at least this level must stand."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def tensor(self) -> Text:
        """The expression as a tensor."""
        return Text(f"constant({self.text})") if self.is_number else self


def number(text: str) -> Text:
    """A scalar constant."""
    return Text(text, Level.SIGN if text.startswith("-") else Level.POSTFIX, is_number=True)


def applied(step: Step, operands: Sequence[Text], attributes: Sequence[str]) -> Text:
    """An operator applied to its operands."""
    if is_slice(step):
        return Text(f"{operands[0].within(Level.POSTFIX)}[{', '.join(attributes)}]")
    if step.op in SYMBOLS and (found := _symbolic(step, operands)) is not None:
        return found
    texts = [operand.text for operand in operands]
    if texts and step.op in STATIC:  # a function of numbers, too
        texts[0] = operands[0].tensor.text
    return Text(f"{step.op}({', '.join([*texts, *attributes])})")


def _symbolic(step: Step, operands: Sequence[Text]) -> Text | None:
    """`a + b`; None for a division by a number, which the front end makes a product."""
    a, b = operands
    symbol = SYMBOLS[step.op]
    right = step.operands[1]
    if symbol == "/" and b.is_number:
        return None
    if symbol == "*" and isinstance(right, Leaf) and right.numbers and set(right.numbers) == {-1.0}:
        return Text(f"-{a.tensor.within(Level.SIGN)}", Level.SIGN)
    a = a.tensor if b.is_number else a
    level = LEVELS.get(symbol, Level.COMPARISON)
    left = a.within(Level(level + (level is Level.COMPARISON)))
    return Text(f"{left} {symbol} {b.within(Level(level + 1))}", level)


class Lines:
    """Writes the lines of a body. `outputs` are the names of what a model returns."""

    def __init__(self, statements: Statements, statics: Statics, outputs: Sequence[str] = ()) -> None:
        self.statements, self.statics, self.outputs = statements, statics, outputs
        self.results = statements.body.results
        self.last = dict(statements.last)
        self.names: dict[Value | Leaf, str] = {}
        self.names.update(statics.entries.items())
        self.holders = {name: value for value, name in self.names.items()}
        self.place = 0
        """The statement that is written now."""
        self.counts: dict[Value, int] = {}
        """How many values a list has by now."""
        self.wanted: dict[Value, str] = {
            result: name for result, name in zip(self.results, outputs, strict=False) if isinstance(result, Value)
        }

    def lines(self) -> Iterator[str]:
        """The lines, without indentation."""
        for place, step in enumerate(self.statements.steps):
            self.place = place
            yield from self._weights(step)
            yield from self._assigned(step)
        self.place = len(self.statements.steps)
        for result in self.results:
            yield from self._weights(result)
        texts = [self._text(result).tensor.text for result in self.results]
        wanted = list(self.outputs) or texts
        if all(map(self._may_stay, self.results, wanted, texts)):
            wanted = texts
        elif pairs := [(name, text) for name, text in zip(wanted, texts, strict=True) if name != text]:
            yield f"{', '.join(name for name, _ in pairs)} = {', '.join(text for _, text in pairs)}"
        yield f"return {', '.join(wanted)}"

    def _may_stay(self, result: Operand, output: str, text: str) -> bool:
        """Whether a result may stand in the `return` as it is, and has its name then."""
        is_expression = (isinstance(result, Leaf) and result.whole is None and not result.keys) or result in self.statements.inside
        return output == text or (is_expression and is_unnamed(output, len(self.outputs)))

    def _assigned(self, step: Step) -> Iterator[str]:
        """The lines that compute the results of a statement, and put them into lists."""
        members = {result: self.statements.members[result] for result in step.results if result in self.statements.members}
        text = self._text(step).text
        for member in members.values():
            if member.index == 0:
                yield f"{self._give(member.whole, 'hs', self.place - 1)} = []"
            self.counts[member.whole] = member.index + 1
        names = [text]
        if len(step.results) > 1 or not members or any(result in self.last or result in self.statements.rows for result in step.results):
            self.last |= {result: max(self.last.get(result, 0), self.place + 1) for result in step.results}
            names = [self._variable(step, index) for index in range(len(step.results))]
            yield f"{', '.join(names)} = {text}"
        for name, result in zip(names, step.results, strict=True):
            if result in members:
                whole = self.names[members[result].whole]
                yield f"{whole} = {whole} + [{name}]"

    def _weights(self, part: Step | Operand) -> Iterator[str]:
        """The declarations of the weights that an expression reads for the first time."""
        for leaf in dict.fromkeys(self.statements.leaves(part)):
            if isinstance(leaf, Leaf) and leaf not in self.names:
                yield self._declared(leaf)

    def _declared(self, weight: Leaf) -> str:
        ends = {key.rpartition(".")[2].rpartition("/")[2] for key in weight.keys}
        name = (variable_in(ends.pop()) if len(ends) == 1 else "") or self.statics.roles.get(weight, "w")
        return f"weight {self._give(weight, name, self.place - 1)}: {self.statics.texts[weight][0]}"

    # expressions

    def _text(self, part: Step | Operand) -> Text:
        match part:
            case Leaf(whole=None):
                return Text(self.names[part]) if part.keys else number(self.statics.texts[part][0])
            case Leaf(whole=whole) if whole is not None:
                return Text(f"{self._text(whole).within(Level.POSTFIX)}[{', '.join(self.statics.texts[part])}]")
            case Value() if part in self.statements.inside:
                return self._text(self.statements.inside[part])
            case Value() if (member := self._member(part)) is not None and self.place > self.statements.members[part].until:
                return Text(f"{self.names[member.whole]}[{member.index}]")
            case Step() if takes_many(part.op):
                return Text(f"{part.op}({', '.join([self._joined(part.operands), *self.statics.texts[part]])})")
            case Step():
                operands = [self._text(operand) for operand in part.operands]
                if part.function is None:
                    return applied(part, operands, self.statics.texts[part])
                arguments = [*(operand.text for operand in operands), *self.statics.texts[part]]
                return Text(f"{self.statics.functions[part.function].name}({', '.join(arguments)})")
            case _:
                return Text(self.names[part])

    def _joined(self, operands: Sequence[Operand]) -> str:
        """A list of operands: those that are in a list already, one after the other, as this list or a part of it."""
        texts: list[str] = []
        place = 0
        while place < len(operands):
            stop, first = place + 1, self._member(operands[place])
            if first is not None:
                while stop < len(operands) and self._member(operands[stop]) == replace(first, index=first.index + stop - place):
                    stop += 1
                taken = f"{first.index}:{first.index + stop - place}"
                texts.append(self.names[first.whole] + (f"[{taken}]" if taken != f"0:{self.counts[first.whole]}" else ""))
            elif texts and texts[-1].startswith("["):
                texts[-1] = f"{texts[-1][:-1]}, {self._text(operands[place]).text}]"
            else:
                texts.append(f"[{self._text(operands[place]).text}]")
            place = stop
        return " + ".join(texts)

    def _member(self, operand: Operand) -> Member | None:
        """The place of a value in a list."""
        member = self.statements.members.get(operand) if isinstance(operand, Value) else None
        return replace(member, until=0) if member is not None else None

    # names

    def _variable(self, step: Step, index: int) -> str:
        """The name of a result of a statement: the one of what it takes the place of in a row of calls, else what is wanted, else what the
        graph calls it, else `h`."""
        value = step.results[index]
        entry = step.function.carried.get(index) if step.function is not None else None
        before = step.operands[entry] if entry is not None else None
        first = self.names.get(before, "") if before is not None and before not in self.statics.entries else ""
        return self._give(value, self.wanted.get(value) or value.hint or "h", self.place, first)

    def _give(self, value: Value | Leaf, wanted: str, place: int, first: str = "") -> str:
        """A name that nothing has that is read behind this place: the first one, or else one like the wanted one."""

        def is_taken(name: str) -> bool:
            holder = self.holders.get(name)
            is_read = holder is not None and self.last.get(holder, -1) > place
            return is_read or name in self.statics.scope.taken or name in self.statics.measured

        name = first if first and not is_taken(first) else unused(wanted, is_taken)
        self.holders[name], self.names[value] = value, name
        return name


def clearest(body: Body, statics: Statics, outputs: Sequence[str] = ()) -> list[str]:
    """The lines of a body: with loops, and with lists if they make it shorter."""
    named = [result for result, name in zip(body.results, outputs, strict=bool(outputs)) if not is_unnamed(name, len(outputs))]
    lengths = {step: sum(map(len, texts)) for step, texts in statics.texts.items() if isinstance(step, Step)}
    found = (Lines(Statements(body, named, lengths, lists), statics, outputs).lines() for lists in (False, True))
    return min((list(rolled(list(lines))) for lines in found), key=len)


def is_unnamed(output: str, many: int) -> bool:
    """Whether an output has the name of a result that isn't a variable."""
    return output in ("out", *(f"out{place}" for place in range(many)))
