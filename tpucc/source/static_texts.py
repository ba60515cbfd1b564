"""The texts of all static values of a body: attributes of operators, arguments of calls, types and keys of weights, indices, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.ops import OPS, legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.source.expressions import Text, attributes_of, indices, number
from tpucc.source.keys import Keys
from tpucc.source.static_values import Parameter, Scope, Vector
from tpucc.source.steps import Body, Function, Number, Operand, Part, Step, Value, Weight, weights_of

SIZES = ("size",) * 6 + ("inputs", "units")
"""What the axes of a weight are called."""
KERNEL = ("size", "size", "inputs", "filters")


@dataclass(frozen=True, slots=True)
class Written:
    """A function that has its text: its name, its parameters as its head has them, the lines of its body, its static parameters in order,
    and the variables that it returns, empty for other expressions."""

    name: str
    formals: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    returned: tuple[str, ...]

    @property
    def head(self) -> str:
        return f"def {self.name}({', '.join(self.formals)}):"


class StaticTexts:
    """The texts of a body, whose entries have these names. `roles` is what the operators call the weights that they read."""

    def __init__(
        self, body: Body, scope: Scope, entries: Sequence[str], functions: Mapping[Function, Written], unread: Sequence[Weight] = ()
    ) -> None:
        self.scope, self.functions = scope, functions
        self.entries = dict(zip(body.entries, entries, strict=True))
        self.types: dict[Weight, str] = {}
        self.roles: dict[Weight, str] = {}
        self.parts: dict[Part, str] = {}
        self.numbers: dict[Number, Text] = {}
        scope.know_keys(list(self._keys(body)))
        self.arguments = {step: self._arguments(step) for step in body.steps}
        for operand in (*unread, *body.results):
            self._know(operand, None)
        used = " ".join((*self.types.values(), *self.parts.values(), *(text for texts in self.arguments.values() for text in texts)))
        self.measured = {name for name in entries if f"{name}.shape[" in used}
        """The entries whose sizes are in a text."""
        self.lengths = {step: sum(map(len, texts)) for step, texts in self.arguments.items()}
        scope.taken.difference_update(entries)  # variables may have their names

    def _keys(self, body: Body) -> Iterator[Keys]:
        """The keys of all weights that steps read, and those that calls are given."""
        for step in body.steps:
            yield from (weight.keys for weight in weights_of(step))
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
            case Weight(keys=keys, shapes=shapes):
                words = KERNEL if len(shapes[0]) == len(KERNEL) else SIZES[len(SIZES) - len(shapes[0]) :]
                sizes = [self._size(values, word, step) for values, word in zip(zip(*shapes, strict=True), words, strict=True)]
                self.types.setdefault(operand, f"f32[{', '.join(sizes)}] = {self.scope.text(keys, 'name')}")
                if step is not None and step.function is None and not isinstance(legalisation_of(step.op), Matrix):
                    self.roles.setdefault(
                        operand, OPS[step.op].operands[min(step.operands.index(operand), len(OPS[step.op].operands) - 1)].name
                    )
            case Part(whole=whole, slices=slices):
                self._know(whole, None)
                self.parts.setdefault(operand, ", ".join(indices(slices, self.scope, whole.shapes)))
            case Number(values=values):
                self.numbers.setdefault(operand, number(values, self.scope))
            case Value():
                pass

    def _size(self, values: tuple[int, ...], word: str, step: Step | None) -> str:
        """A size of a weight. Its inputs are the channels of what a function takes, where the step reads that, or a part of them."""
        if step is None or not self.scope.is_function or word != "inputs":
            return self.scope.text(values, word)
        for entry, name in ((entry, name) for entry, name in self.entries.items() if entry in step.operands):
            rows = tuple(shape[-1] if shape else 0 for shape in entry.shapes)
            groups = tuple(getattr(attributes, "groups", 1) for attributes in step.attributes)
            if values == rows:
                return f"{name}.shape[-1]"
            if len(set(values)) > 1 and values == tuple(a // b for a, b in zip(rows, groups, strict=True)):
                return f"{name}.shape[-1] // {self.scope.text(groups, 'groups')}"
        return self.scope.text(values, word)
