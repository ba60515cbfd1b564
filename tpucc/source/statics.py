"""The texts of all static values of a body: attributes of operators, arguments of calls, types and keys of weights, indices, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields

from tpucc.ir import Attributes
from tpucc.ir.attributes import identity
from tpucc.ops import OPS, legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes
from tpucc.source.names import array_text, number_text
from tpucc.source.scope import Keys, Parameter, Scope, Vector, is_constant
from tpucc.source.steps import Body, Leaf, Operand, Shape, Step, bottom_of

AXES = ("size",) * 6 + ("inputs", "units")
"""What the axes of a weight are called."""
KERNEL = ("size", "size", "inputs", "filters")


@dataclass(frozen=True, slots=True)
class Written:
    """A function that has its text: its name, its parameters as its head has them, the lines of its body, and its static parameters."""

    name: str
    formals: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def head(self) -> str:
        return f"def {self.name}({', '.join(self.formals)}):"


class Statics:
    """The texts of a body, whose entries have these names: of a step its attributes or static arguments, of a weight its type and key, of
    a slice its indices. `roles` is what the operators call the weights that they read."""

    def __init__(self, body: Body, scope: Scope, entries: Sequence[str], functions: Mapping[Body, Written]) -> None:
        self.scope, self.functions = scope, functions
        self.entries = dict(zip(body.entries, entries, strict=True))
        self.texts: dict[Step | Leaf, list[str]] = {}
        self.roles: dict[Leaf, str] = {}
        scope.know_keys(list(self._keys(body)))
        for step in body.steps:
            if step.attributes and hasattr(step.attributes[0], "groups"):  # from which the inputs of a kernel follow
                scope.text(_values("groups", step.attributes), "groups")
            for place, operand in enumerate(step.operands):
                self._know(operand)
                if isinstance(operand, Leaf) and step.function is None and not isinstance(legalisation_of(step.op), Matrix):
                    self.roles.setdefault(operand, OPS[step.op].operands[min(place, len(OPS[step.op].operands) - 1)].name)
            self.texts[step] = self._arguments(step)
        for operand in body.results:
            self._know(operand)
        used = " ".join(text for texts in self.texts.values() for text in texts)
        self.measured = {name for name in entries if f"{name}.shape[" in used}
        """The entries whose sizes are in a text."""
        scope.taken.difference_update(entries)  # variables may have their names

    def _keys(self, body: Body) -> Iterator[Keys]:
        """The keys of all weights that steps read, and those that calls are given."""
        for step in body.steps:
            weights = (bottom for bottom in map(bottom_of, step.operands) if isinstance(bottom, Leaf) and bottom.keys)
            yield from (weight.keys for weight in weights)
            yield from (values for parameter, values in self._given(step) if parameter.word == "name")

    def _given(self, step: Step) -> Iterator[tuple[Parameter, Vector]]:
        """The static arguments of a call."""
        for parameter in self.functions[step.function].parameters if step.function is not None else ():
            yield parameter, tuple(parameter.values[environment] for environment in step.environments)

    def _arguments(self, step: Step) -> list[str]:
        """The texts of a step's attributes, or of the static arguments of a call."""
        if step.function is None:
            return self._attributes(step)
        given = [(parameter, self.scope.text(values, parameter.word)) for parameter, values in self._given(step)]
        plain = [text for parameter, text in given if not parameter.default]
        return plain + [f"{each.name}={text}" for each, text in given if each.default and text != each.default]

    def _attributes(self, step: Step) -> list[str]:
        """The attributes that a call must give by their place, others by keyword, without those that have their default."""
        if isinstance(step.attributes[0], SliceAttributes):
            return self._indices(step.attributes, step.operands[0].shapes)
        if isinstance(step.attributes[0], ConstantAttributes):
            return [array_text(step.attributes[0].value.data)]
        texts: list[str] = []
        for field in fields(step.attributes[0]):
            values, is_required = _values(field.name, step.attributes), field.default is MISSING
            if not is_required and all(identity(value) == identity(field.default) for value in values):
                continue
            text = self.scope.text(values, field.name)
            if is_required and not step.operands and text.startswith("("):
                text = f"[{text[1:-1].removesuffix(',')}]"
            texts.append(text if is_required else f"{field.name}={text}")
        return texts

    def _know(self, operand: Operand) -> None:
        """Finds the type and the key of a weight, the indices of a slice, the text of a number."""
        if not isinstance(operand, Leaf) or operand in self.texts:
            return
        if operand.whole is not None:
            self._know(operand.whole)
            self.texts[operand] = self._indices(operand.attributes, operand.whole.shapes)
        elif operand.keys:
            words = KERNEL if len(operand.shapes[0]) == len(KERNEL) else AXES[len(AXES) - len(operand.shapes[0]) :]
            sizes = [self.scope.text(values, word) for values, word in zip(zip(*operand.shapes, strict=True), words, strict=True)]
            self.texts[operand] = [f"f32[{', '.join(sizes)}] = {self.scope.text(operand.keys, 'name')}"]
        else:
            values = operand.numbers
            short = tuple(float(number_text(value)) for value in values)  # the same float32, with the digits that it has
            self.texts[operand] = [number_text(values[0]) if is_constant(values) else self.scope.text(short, "factor")]

    def _indices(self, attributes: Sequence[Attributes], shapes: Sequence[Shape]) -> list[str]:
        """The indices of a slice of values of these shapes, without those at the end that take all."""
        slices = [each for each in attributes if isinstance(each, SliceAttributes)]
        texts = [self._index(axis, slices, tuple(shape[axis] for shape in shapes)) for axis in range(len(shapes[0]))]
        while len(texts) > 1 and texts[-1] == ":":
            texts.pop()
        return texts

    def _index(self, axis: int, slices: Sequence[SliceAttributes], sizes: tuple[int, ...]) -> str:
        ranges = [attributes.ranges[axis] for attributes in slices]
        starts, stops, step = tuple(places.start for places in ranges), tuple(places.stop for places in ranges), ranges[0].step
        if axis in slices[0].squeeze:
            return self.scope.text(starts, "t")
        if step > 0 and starts == (0,) * len(sizes) and stops == sizes:
            return ":" if step == 1 else f"::{step}"
        if step == -1 and starts == tuple(size - 1 for size in sizes) and set(stops) == {-1}:
            return "::-1"
        stop = "" if min(stops) < 0 else self.scope.text(stops, "stop")
        return f"{self.scope.text(starts, 'start')}:{stop}" + (f":{step}" if step != 1 else "")


def _values(name: str, attributes: Sequence[Attributes]) -> Vector:
    return tuple(getattr(each, name) for each in attributes)
