"""From the steps of a body to the lines of a `def` or of the model.

First the static expressions of all steps are found, then which values stand inside others' expressions instead of in variables, and then,
statement by statement, the names of the variables. A line that comes out too long is given another variable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tpucc.interop.decompile.costs import is_heavy
from tpucc.interop.decompile.expressions import Text, applied, number, reads, statics
from tpucc.interop.decompile.keys import head, last_word, templates
from tpucc.interop.decompile.names import stem
from tpucc.interop.decompile.program import Body, Function, Number, Operand, Shape, Step, Value, Weight
from tpucc.interop.decompile.statics import Parameter, Scope, Vector, fresh
from tpucc.ops import OPS, legalisation_of
from tpucc.ops.opdef import Matrix

WIDTH = 100
"""Columns of a line."""
OPERATIONS = 6
"""Operations in one expression, at most."""
WORDS = ("size",) * 6 + ("inputs", "units")
"""What the axes of a weight are called; the last one of a kernel has its filters."""
KERNEL = 4
"""The axes of a kernel."""


@dataclass(frozen=True, slots=True)
class Written:
    """A function that has its text: its name, its first line, the lines of its body, and its static parameters in order."""

    name: str
    head: str
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    words: tuple[str, ...] = ()
    """What it computes, if the name says that."""


@dataclass
class Writer:
    """Writes one body. `entries` are the names of what it takes; `outputs`, of a model, the names of what it returns."""

    body: Body
    scope: Scope
    entries: Sequence[str]
    functions: Mapping[Function, Written] = field(default_factory=dict)
    outputs: Sequence[str] | None = None
    nested: bool = True
    called: dict[Value, tuple[str, ...]] = field(init=False)
    statics: list[list[str]] = field(init=False)
    types: dict[Weight, str] = field(init=False)
    weight_sizes: dict[tuple[int, ...], str] = field(default_factory=dict)
    """The texts of sizes that weights have had."""
    inside: dict[Value, Step] = field(init=False)
    """The steps whose values stand inside others' expressions."""

    def __post_init__(self) -> None:
        self.types = {}
        if self.scope.open:
            self.scope.keys = templates(dict(self._keys()), self.scope)
        self.statics = [self._statics(step) for step in self.body.steps]
        for weight in (*self.body.unused, *(result for result in self.body.results if isinstance(result, Weight))):
            self._declare(weight, None)
        self.numbers = {id(step): index for index, step in enumerate(self.body.steps)}
        self.called = {
            result: step.function.body.hints[inner]
            for step in self.body.steps
            if step.function is not None
            for result, inner in zip(step.results, step.function.body.results, strict=True)
            if isinstance(inner, Value)
        }

    def lines(self) -> list[str]:
        """The lines of the body, without indentation."""
        forced: set[Value] = set()
        while True:
            self.inside = self._inside(forced) if self.nested else {}
            statements = list(self._statements())
            lines, found = _Names(self, statements).lines()
            if found <= forced:
                return lines
            forced |= found

    # static expressions

    def _keys(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """The keys of all weights that steps read, and those that calls are given, each with a word for them."""
        for step in self.body.steps:
            for operand in step.operands:
                if isinstance(operand, Weight):
                    yield operand.keys, last_word(head(operand.keys)[0]) or word_of(step.op).rpartition("_")[2]
            for parameter, values in self._given(step):
                if all(isinstance(value, str) for value in values):
                    yield values, parameter.name

    def _given(self, step: Step) -> Iterator[tuple[Parameter, Vector]]:
        """The static arguments of a call."""
        for parameter in self.functions[step.function].parameters if step.function is not None else ():
            yield parameter, tuple(parameter.values[index] for index in step.environments)

    def _statics(self, step: Step) -> list[str]:
        for operand in step.operands:
            if isinstance(operand, Weight):
                self._declare(operand, step)
        if step.function is not None:
            return self._arguments(step)
        first = step.operands[0] if step.operands else None
        return statics(step, self.scope, self.shapes(first) if first is not None else ())

    def shapes(self, operand: Operand) -> Sequence[Shape]:
        match operand:
            case Value():
                return self.body.shapes[operand]
            case Weight(shapes=shapes):
                return shapes
            case Number(values=values):
                return [()] * len(values)

    def _declare(self, weight: Weight, step: Step | None) -> None:
        """Finds the type and the key of a weight."""
        if weight in self.types:
            return
        rank = len(weight.shapes[0])
        words = [*WORDS[:-1], "filters"][-rank:] if rank == KERNEL else WORDS[len(WORDS) - rank :]
        sizes = zip(zip(*weight.shapes, strict=True), words, strict=True)
        texts = [self._size(values, word, step if rank - axis <= 2 else None) for axis, (values, word) in enumerate(sizes)]
        self.types[weight] = f"f32[{', '.join(texts)}] = {self.scope.text(weight.keys, 'name')}"

    def _size(self, values: tuple[int, ...], word: str, step: Step | None) -> str:
        """A size of a weight: that of the rows with which the step combines it, if the function takes these; else as before, or any text."""
        if not self.scope.open:
            return self.scope.text(values, word)
        for name, entry in zip(self.entries, self.body.entries, strict=True):
            rows = tuple(shape[-1] if shape else 0 for shape in self.body.shapes[entry])
            if step is not None and entry in step.operands and rows == values:
                return self.weight_sizes.setdefault(values, f"{name}.shape[-1]")
        if values not in self.weight_sizes or word == "size":
            text = self.scope.text(values, word)
            return text if word == "size" else self.weight_sizes.setdefault(values, text)
        return self.weight_sizes[values]

    def _arguments(self, step: Step) -> list[str]:
        texts: list[str] = []
        for parameter, values in self._given(step):
            text = self.scope.text(values, parameter.word)
            if text != parameter.default:
                texts.append(f"{parameter.name}={text}" if parameter.default else text)
        return texts

    # expressions inside others

    def _inside(self, forced: set[Value]) -> dict[Value, Step]:
        """The values that are read once and computed near enough."""
        uses = Counter(operand for step in self.body.steps for operand in step.operands if isinstance(operand, Value))
        uses.update(result for result in self.body.results if isinstance(result, Value))
        inside: dict[Value, Step] = {}
        sizes: dict[Value, int] = {}
        products: set[Value] = set()
        makers = {step.results[0]: step for step in self.body.steps if len(step.results) == 1}
        for step in self.body.steps:
            heavy = is_heavy(step)
            single = [operand for operand in reads(step) if operand in makers and uses[operand] == 1 and operand not in forced]
            chosen = [operand for operand in single if not self.variable(operand) and not (heavy and operand in products)]
            chosen.sort(key=lambda operand: sizes[operand])
            total = 1
            for operand in chosen:
                if total + sizes[operand] <= OPERATIONS:
                    total += sizes[operand]
                    inside[operand] = makers[operand]
            if len(step.results) == 1:
                sizes[step.results[0]] = total
                if heavy or any(operand in products and operand in inside for operand in chosen):
                    products.add(step.results[0])
        self._inside_results(inside, uses, makers)
        return inside

    def variable(self, value: Value) -> str:
        """The variable's name that the graph's names of a value come from, if it had one in all environments."""
        return common_stem(self.hints(value))

    def hints(self, value: Value) -> Sequence[str]:
        """The names that the graph gives to a value; to the result of a function, at all of its calls."""
        return self.called.get(value, self.body.hints[value])

    def _inside_results(self, inside: dict[Value, Step], uses: Counter[Value], makers: Mapping[Value, Step]) -> None:
        """Results that stand in the `return`: of a model those whose output has no name of a variable."""
        many = len(self.body.results)
        for index, result in enumerate(self.body.results):
            if not isinstance(result, Value) or result not in makers or uses[result] > 1:
                continue
            if self.outputs is None or self.outputs[index] == unnamed(index, many):
                inside[result] = makers[result]

    # statements

    def _statements(self) -> Iterator[Statement]:
        for step in self.body.steps:
            if not any(result in self.inside for result in step.results):
                yield Statement((step,), step.results)
        results = [self.inside[result] if isinstance(result, Value) and result in self.inside else result for result in self.body.results]
        yield Statement(tuple(results), None)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a line computes, and for which values; without values, what a body returns."""

    parts: tuple[Step | Operand, ...]
    results: tuple[Value, ...] | None


def common_stem(hints: Sequence[str]) -> str:
    """The variable's name that all of these come from; empty if there is none."""
    stems = set(map(stem, hints))
    return stems.pop() if len(stems) == 1 else ""


def word_of(op: str) -> str:
    """An operator in a word: `conv` for conv2d."""
    return re.sub(r"\d+d$", "", op)


def unnamed(index: int, many: int) -> str:
    """The name of an output that isn't a variable."""
    return "out" if many == 1 else f"out{index}"


class _Names:
    """Gives names to the variables and weights of a body's statements, and writes the lines."""

    def __init__(self, writer: Writer, statements: Sequence[Statement]) -> None:
        self.writer = writer
        self.statements = statements
        self.names: dict[Value | Weight, str] = dict(zip(writer.body.entries, writer.entries, strict=True))
        self.ends: dict[Value | Weight, int] = {}
        self.sized: dict[str, tuple[Value, int]] = {}
        """For each name the entry whose sizes its text stands for, and the last place where it does."""
        for place, statement in enumerate(statements):
            for operand in self._leaves(statement):
                self.ends[operand] = place
            for step in self._steps(statement):
                self._note_sizes(step, place)
        self.holders = {name: value for value, name in self.names.items()}
        self.too_long: set[Value] = set()

    def lines(self) -> tuple[list[str], set[Value]]:
        """The lines, and the values that should have a variable of their own because a line is too long."""
        lines = [self._weight(weight, "w", 0) for weight in self.writer.body.unused]
        lines += self._at_the_top()
        for place, statement in enumerate(self.statements):
            weights = [leaf for leaf in self._leaves(statement) if isinstance(leaf, Weight) and leaf not in self.names]
            lines += [self._weight(weight, self._role(weight, statement), place) for weight in dict.fromkeys(weights)]
            if statement.results is not None:
                value = self._text(statement.parts[0]).text
                targets = [self._variable(result, place) for result in statement.results]
                lines.append(f"{', '.join(targets)} = {value}")
            else:
                lines += self._returned(statement)
            if len(lines[-1]) > WIDTH - 4 and (inner := self._largest(statement)) is not None:
                self.too_long.add(inner)
        return lines, self.too_long

    def _at_the_top(self) -> Iterator[str]:
        """The declarations of all weights of a function, if none needs the name of another."""
        roles = {leaf: self._role(leaf, each) for each in self.statements for leaf in self._leaves(each) if isinstance(leaf, Weight)}
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
            for operand in part.operands:
                yield from self._read(operand)
        elif not isinstance(part, Number):
            yield part

    def _note_sizes(self, step: Step, place: int) -> None:
        """Notes the entries whose sizes the static expressions of a step read."""
        texts = [*self.writer.statics[self.writer.numbers[id(step)]]]
        texts += [self.writer.types[operand] for operand in step.operands if isinstance(operand, Weight)]
        for name, entry in zip(self.writer.entries, self.writer.body.entries, strict=True):
            if any(re.search(rf"\b{name}\.shape", text) for text in texts):
                self.sized[name] = (entry, place)

    def _largest(self, statement: Statement) -> Value | None:
        """The operand with the longest text, of those that stand inside the statement."""
        inner = [
            operand
            for part in statement.parts
            if isinstance(part, Step)
            for operand in part.operands
            if isinstance(operand, Value) and operand in self.writer.inside
        ]
        return max(inner, key=lambda value: len(self._text(value).text), default=None)

    # texts

    def _text(self, part: Step | Operand) -> Text:
        if isinstance(part, Value) and part in self.writer.inside:
            part = self.writer.inside[part]
        if isinstance(part, Number):
            return number(part.values, self.writer.scope)
        if not isinstance(part, Step):
            return Text(self.names[part])
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
        renamed = [output if name_matters else text for text, output, name_matters in self._renamings(texts, outputs)]
        pairs = [(new, text) for new, text in zip(renamed, texts, strict=True) if new != text]
        return [f"{', '.join(new for new, _ in pairs)} = {', '.join(text for _, text in pairs)}", f"return {', '.join(renamed)}"]

    def _named_right(self, texts: Sequence[str], outputs: Sequence[str]) -> bool:
        return not any(text != output and matters for text, output, matters in self._renamings(texts, outputs))

    def _renamings(self, texts: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
        """Each result's text and name, and whether the text gives it another name than this."""
        for index, (text, output) in enumerate(zip(texts, outputs, strict=True)):
            is_plain = isinstance(self.statements[-1].parts[index], Value | Weight)
            yield text, output, is_plain or output != unnamed(index, len(texts))

    # names

    def _variable(self, value: Value, place: int) -> str:
        output = self._output(value)
        return self._give(value, output or self.writer.variable(value) or "h", place)

    def _output(self, value: Value) -> str:
        """The name that an output must have, if this variable can have it from the beginning."""
        for name, result in zip(self.writer.outputs or (), self.writer.body.results, strict=False):
            if result == value:
                return name
        return ""

    def _give(self, value: Value | Weight, wanted: str, place: int) -> str:
        """A name that nothing has that is read after this place."""
        alive = {name for name, other in self.holders.items() if self.ends.get(other, -1) > place - isinstance(value, Weight)}
        alive |= {name for name, (entry, last) in self.sized.items() if last > place and not self._are_alike(value, entry)}
        name = fresh(wanted, alive | self.writer.scope.taken)
        self.holders[name], self.names[value] = value, name
        return name

    def _are_alike(self, value: Value | Weight, entry: Value) -> bool:
        """Whether a value has the sizes of an entry, so that it may have its name where only the sizes are still read."""
        return isinstance(value, Value) and self.writer.body.shapes[value] == self.writer.body.shapes[entry]

    def _weight(self, weight: Weight, role: str, place: int) -> str:
        name = self._give(weight, self._wanted(weight, role), place)
        return f"weight {name}: {self.writer.types[weight]}"

    def _wanted(self, weight: Weight, role: str) -> str:
        """The last part of a weight's keys, or else its role."""
        last = {key.rpartition(".")[2].rpartition("/")[2] for key in weight.keys}
        return (stem(last.pop()) if len(last) == 1 else "") or role

    def _role(self, weight: Weight, statement: Statement) -> str:
        """What the operator that reads a weight calls it."""
        for step in self._steps(statement):
            if weight in step.operands and step.function is None:
                names = [operand.name for operand in OPS[step.op].operands]
                at = step.operands.index(weight)
                if isinstance(legalisation_of(step.op), Matrix):
                    return "w"
                return names[at] if at < len(names) else "w"
        return "w"

    def _steps(self, statement: Statement) -> Iterator[Step]:
        waiting = list(statement.parts)
        while waiting:
            part = waiting.pop()
            if isinstance(part, Value) and part in self.writer.inside:
                part = self.writer.inside[part]
            if isinstance(part, Step):
                yield part
                waiting.extend(part.operands)
