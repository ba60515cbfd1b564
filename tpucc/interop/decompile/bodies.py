"""From the steps of a body to the lines of a `def` or of the model.

First the static expressions of all steps are found, then which values stand inside others' expressions instead of in variables, and then,
statement by statement, the names of the variables. A line that comes out too long is given another variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tpucc.interop.decompile.costs import is_heavy
from tpucc.interop.decompile.expressions import is_slice, reads, statics
from tpucc.interop.decompile.families import FEWEST
from tpucc.interop.decompile.keys import templates
from tpucc.interop.decompile.lines import Lines, Statement
from tpucc.interop.decompile.literals import listed
from tpucc.interop.decompile.names import common_stem, unnamed
from tpucc.interop.decompile.program import Body, Function, Number, Operand, Shape, Step, Value, Weight
from tpucc.interop.decompile.statics import Parameter, Scope, Vector, constant

OPERATIONS = 6
"""Operations in one expression, at most."""
WORDS = ("size",) * 6 + ("inputs", "units")
"""What the axes of a weight are called; the last one of a kernel has its filters."""
KERNEL = 4
"""The axes of a kernel."""


@dataclass(frozen=True, slots=True)
class Written:
    """A function that has its text: its name, all parameters as its first line has them, the lines of its body, and its static
    parameters in order."""

    name: str
    formals: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    words: tuple[str, ...] = ()
    """What it computes, if the name says that."""
    packed: tuple[str, ...] = ()
    """The parameters that are one tuple, behind the others without a default."""
    named: Mapping[Value, str] = field(default_factory=dict)
    """The names of the states of a recurrence."""

    @property
    def head(self) -> str:
        """The first line."""
        return f"def {self.name}({', '.join(self.formals)}):"


@dataclass
class Writer:
    """Writes one body. `entries` are the names of what it takes; `outputs`, of a model, the names of what it returns."""

    body: Body
    scope: Scope
    entries: Sequence[str]
    functions: Mapping[Function, Written] = field(default_factory=dict)
    outputs: Sequence[str] | None = None
    nested: bool = True
    named: Mapping[Value, str] = field(default_factory=dict)
    """Values that have a name, whatever the graph calls them."""
    called: dict[Value, tuple[str, ...]] = field(init=False)
    states: dict[Value, str] = field(init=False)
    """The names that functions give to the states that they take and return."""
    before: dict[Value, Value] = field(init=False)
    continued: dict[Value, Value] = field(init=False)
    statics: list[list[str]] = field(init=False)
    types: dict[Weight, str] = field(init=False)
    weight_sizes: dict[tuple[int, ...], str] = field(default_factory=dict)
    """The texts of sizes that weights have had."""
    inside: dict[Value, Step] = field(init=False)
    """The steps whose values stand inside others' expressions."""

    def __post_init__(self) -> None:
        self.types = {}
        if self.scope.open:
            self.scope.keys = templates(dict.fromkeys(self._keys()), self.scope)
        self.statics = [self._statics(step) for step in self.body.steps]
        for weight in (*self.body.unused, *(result for result in self.body.results if isinstance(result, Weight))):
            self._declare(weight, None)
        self.numbers = {id(step): index for index, step in enumerate(self.body.steps)}
        self.called = {
            result: step.function.body.hints[inner]
            for step in self.body.steps
            if step.function is not None and not step.function.rounds
            for result, inner in zip(step.results, step.function.body.results, strict=True)
            if isinstance(inner, Value)
        }
        self.states = self._states()
        self.before = self._before()
        self.continued = self._continued()

    def _states(self) -> dict[Value, str]:
        """What calls of cells return, and first states that have no name of their own."""
        found: dict[Value, str] = {}
        for step in self.body.steps:
            named = self.functions[step.function].named if step.function is not None else {}
            if step.function is not None and named:
                inner = step.function.body
                found |= {result: named[own] for result, own in zip(step.results, inner.results, strict=True) if isinstance(own, Value)}
                for operand, entry in zip(step.operands, inner.entries, strict=True):
                    if isinstance(operand, Value) and entry in named and operand not in found and not common_stem(self.body.hints[operand]):
                        found[operand] = named[entry]
        return found

    def _before(self) -> dict[Value, Value]:
        """For results of calls those operands in whose place other calls of the same function take the same results, as `h` in
        `h, c = step(h, c)`."""
        made = self._made()
        calls = [step for step in self.body.steps if step.function]
        places: dict[tuple[Function | None, int], int] = {
            made[operand]: place
            for step in calls
            for place, operand in enumerate(step.operands)
            if isinstance(operand, Value) and operand in made and made[operand][0] is step.function
        }
        found: dict[Value, Value] = {}
        for step in calls:
            for index, result in enumerate(step.results):
                place = places.get((step.function, index))
                operand = step.operands[place] if place is not None else None
                if isinstance(operand, Value):
                    found[result] = operand
        return found

    def _continued(self) -> dict[Value, Value]:
        """Those results and operands that are one variable; of a first call those that have no name of their own."""
        made = self._made()
        return {
            result: operand
            for result, operand in self.before.items()
            if operand in made or not (operand in self.body.entries or self.variable(operand))
        }

    def _made(self) -> dict[Value, tuple[Function, int]]:
        """The results of calls: of which function, and which of its results."""
        return {result: (step.function, index) for step in self.body.steps if step.function for index, result in enumerate(step.results)}

    def lines(self, late: bool = False) -> list[str]:
        """The lines of the body, without indentation. With `late`, results of calls in a row have the row's variable, and get the names of
        outputs before the `return`."""
        forced: set[Value] = set()
        while True:
            self.inside = self._inside(forced) if self.nested else {}
            statements = list(self._statements())
            lines, found = Lines(self, statements, late).lines()
            if found <= forced:
                return lines
            forced |= found

    def ends_a_row(self) -> bool:
        """Whether a result is that of the last of several calls in a row."""
        return any(result in self.continued for result in self.body.results if isinstance(result, Value))

    # static expressions

    def _keys(self) -> Iterator[tuple[str, ...]]:
        """The keys of all weights that steps read, and those that calls are given."""
        for step in self.body.steps:
            yield from (operand.keys for operand in step.operands if isinstance(operand, Weight))
            for _, values in self._given(step):
                if keys := tuple(value for value in values if isinstance(value, str)):
                    yield keys

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
        """A size of a weight: that of the rows with which the step combines it, if the function takes these; else as before, or any."""
        if not self.scope.open:
            return self.scope.text(values, word)
        for name, entry in zip(self.entries, self.body.entries, strict=True):
            rows = tuple(shape[-1] if shape else 0 for shape in self.body.shapes[entry])
            if step is not None and entry in step.operands and rows == values:
                return self.weight_sizes.setdefault(values, f"{name}.shape[-1]")
        if step is not None and word == "inputs" and (divided := self._divided(values, step)):
            return divided
        if values not in self.weight_sizes or word == "size":
            text = self.scope.text(values, word)
            return text if word == "size" else self.weight_sizes.setdefault(values, text)
        return self.weight_sizes[values]

    def _divided(self, values: tuple[int, ...], step: Step) -> str:
        """The inputs of a convolution in groups, as a part of the channels that the function takes; empty for others."""
        groups = tuple(getattr(attributes, "groups", 1) for attributes in step.attributes)
        for name, entry in zip(self.entries, self.body.entries, strict=True):
            rows = tuple(shape[-1] if shape else 0 for shape in self.body.shapes[entry])
            if entry in step.operands and not constant(groups) and tuple(a // b for a, b in zip(rows, groups, strict=True)) == values:
                return f"{name}.shape[-1] // {self.scope.text(groups, 'groups')}"
        return ""

    def _arguments(self, step: Step) -> list[str]:
        assert step.function is not None
        packed = self.functions[step.function].packed
        texts: list[str] = []
        items: list[str] = []
        named: list[str] = []
        for parameter, values in self._given(step):
            text = self.scope.text(values, parameter.word)
            if parameter.name in packed:
                items.append(text)
            elif not parameter.default:
                texts.append(text)
            elif text != parameter.default:
                named.append(f"{parameter.name}={text}")
        return [*texts, *([listed(items)] if items else []), *named]

    # expressions inside others

    def _inside(self, forced: set[Value]) -> dict[Value, Step]:
        """The values that are read once and computed near enough."""
        uses = Counter(operand for step in self.body.steps for operand in step.operands if isinstance(operand, Value))
        uses.update(result for result in self.body.results if isinstance(result, Value))
        inside: dict[Value, Step] = {}
        sizes: dict[Value, int] = {}
        products: set[Value] = set()
        makers = {step.results[0]: step for step in self.body.steps if len(step.results) == 1}
        links = self._links()
        chained = {result for step in links for result in step.results}
        for step in self.body.steps:
            heavy, is_link = is_heavy(step), step in links
            single = [operand for operand in reads(step) if operand in makers and uses[operand] == 1 and operand not in forced]
            chosen = [operand for operand in single if self._is_anonymous(makers[operand]) and not (heavy and operand in products)]
            chosen = [operand for operand in chosen if operand not in chained and (not is_link or self._is_part(makers[operand]))]
            chosen = [] if len(step.operands) >= FEWEST and len(chosen) == len(step.operands) else chosen
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

    def _links(self) -> set[Step]:
        """Calls that stand in a row, each with the result of the one before."""
        makers = {result: step for step in self.body.steps for result in step.results if step.function is not None}
        pairs = [(makers[operand], step) for step in self.body.steps for operand in reads(step) if operand in makers]
        return {link for before, step in pairs if before.function is step.function for link in (before, step)}

    def _is_part(self, maker: Step) -> bool:
        """Whether a value is a part of another, and not the state with which a row of calls begins."""
        return is_slice(maker) and maker.results[0] not in self.before.values()

    def _is_anonymous(self, maker: Step) -> bool:
        """Whether a value needs no variable for its name's sake: a part of what the body takes has a name that says less than the part."""
        is_part = is_slice(maker) and maker.operands[0] in self.body.entries
        return is_part or not self.variable(maker.results[0])

    def variable(self, value: Value) -> str:
        """The variable's name that the graph's names of a value come from, if it had one in all environments."""
        return self.named.get(value) or self.states.get(value) or common_stem(self.hints(value))

    def hints(self, value: Value) -> Sequence[str]:
        """The names that the graph gives to a value; to the result of a function, at all of its calls."""
        return self.called.get(value, self.body.hints[value])

    def _inside_results(self, inside: dict[Value, Step], uses: Counter[Value], makers: Mapping[Value, Step]) -> None:
        """Results that stand in the `return`: of a model those whose output has no name of a variable."""
        many = len(self.body.results)
        for index, result in enumerate(self.body.results):
            if not isinstance(result, Value) or result not in makers or uses[result] > 1 or (many > 1 and result in self.named):
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
