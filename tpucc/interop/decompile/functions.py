"""The text of `def`s: their names, their parameters and their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace

from tpucc.interop.decompile.bodies import Writer, Written
from tpucc.interop.decompile.cells import states
from tpucc.interop.decompile.costs import weights_of
from tpucc.interop.decompile.keys import PARTS, common_word, head
from tpucc.interop.decompile.literals import literal
from tpucc.interop.decompile.names import RESERVED, common_stem, word_of
from tpucc.interop.decompile.program import Body, Function, Step, Value, Weight
from tpucc.interop.decompile.statics import SIZES, Parameter, Scope, constant, fresh
from tpucc.ir.attributes import identity
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Arithmetic, Matrix
from tpucc.ops.quantize import QuantizeAttributes

WORDS = 3
"""Words of a name that says what a function computes."""
GRID = ("scale", "zero_point")
TEXTS = ("padding", "mode")
"""Parameters whose strings aren't names."""
MANY = 4
"""Scales and zero points of a function that are one tuple."""


def written(body: Body, functions: Sequence[Function], taken: set[str]) -> dict[Function, Written]:
    """The texts of the functions of a model's body, each behind those that it calls."""
    found: dict[Function, Written] = {}
    cells = states([body, *(function.body for function in functions)])
    for function in functions:
        words = () if function.rounds else tuple(_computed(function.body, found))
        words = words if 0 < len(words) <= WORDS and all(words) else ()
        name = fresh("quantized" if function.rounds else _of_words(function, words) or _called(function), (taken | RESERVED).__contains__)
        taken.add(name)
        found[function] = _written(function, name, words, found, cells.get(function, {}))
    return found


def _written(
    function: Function, name: str, words: tuple[str, ...], known: Mapping[Function, Written], named: Mapping[Value, str]
) -> Written:
    body = function.body
    scope = Scope({}, taken={name, *(function.name for function in known.values())}, open=True)
    entries: list[str] = []
    first = iter(("x",))
    for entry in body.entries:
        wanted = named.get(entry) or next(first, "") or common_stem(body.hints[entry]) or "y"
        entries.append(fresh(wanted, entries.__contains__))
        scope.sizes += _sizes(entries[-1], body.shapes[entry])
    scope.taken.update(entries)
    writer = Writer(body, scope, entries, known, named=named)
    scope.taken.difference_update(entries)
    lines = writer.lines()  # numbers become parameters, too
    defaults = map(_as_quantize_has_it if function.rounds else _with_default, scope.parameters)
    parameters = sorted(defaults, key=_place)
    packed = [each.name for each in parameters if not each.default and each.word in GRID] if not function.rounds else []
    if len(packed) < MANY:
        packed = []
    pack = (
        fresh("grids", {*entries, *(each.name for each in parameters), *scope.taken, *re.findall(r"\w+", " ".join(lines))}.__contains__)
        if packed
        else ""
    )
    formals = [*entries, *(f"{each.name}={each.default}" if each.default else each.name for each in parameters if each.name not in packed)]
    if packed:
        plain = [formal for formal in formals if "=" not in formal]
        formals = [*plain, pack, *formals[len(plain) :]]
        lines = [_unpacked(line, packed, pack) for line in lines]
    return Written(name, tuple(formals), tuple(lines), tuple(parameters), words, tuple(packed), named)


def _unpacked(line: str, packed: Sequence[str], pack: str) -> str:
    """A line that names the items of a tuple in the place of parameters; items in order are a slice of it."""
    places = {name: place for place, name in enumerate(packed)}
    found = re.sub(r"\b[a-z_]+\d*\b(?!=)", lambda word: f"{pack}[{places[word[0]]}]" if word[0] in places else word[0], line)

    def sliced(items: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", items[0].replace(pack, ""))]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return items[0]
        return (
            pack
            if len(numbers) == len(packed)
            else f"{pack}[{numbers[0] or ''}:{numbers[-1] + 1 if numbers[-1] + 1 < len(packed) else ''}]"
        )

    item = rf"{pack}\[\d+\]"
    return re.sub(rf"\({item}(?:, {item})+\)", sliced, found)


def _sizes(name: str, shapes: Sequence[tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    """The sizes of a tensor that a function takes."""
    last = len(shapes[0]) - 1
    return [(f"{name}.shape[{-1 if axis == last else axis}]", sizes) for axis, sizes in enumerate(zip(*shapes, strict=True))]


def _with_default(parameter: Parameter) -> Parameter:
    """The parameter with the value that most calls give it as the default, if it is an attribute, and no scale or zero point, which only
    happen to be the same."""
    is_name = isinstance(parameter.values[0], str) and parameter.word not in TEXTS
    if parameter.word in SIZES[:3] or parameter.word in GRID or is_name:
        return parameter
    counts = Counter(map(identity, parameter.values))
    usual, times = counts.most_common(1)[0]
    if 2 * times <= len(parameter.values):
        return parameter
    value = next(value for value in parameter.values if identity(value) == usual)
    return replace(parameter, default=literal(value))


def _as_quantize_has_it(parameter: Parameter) -> Parameter:
    """The parameter with the default of the attribute of `quantize` that it is, if most calls take it."""
    default = next(each.default for each in fields(QuantizeAttributes) if each.name == parameter.word)
    usual = default is not MISSING and 2 * parameter.values.count(default) > len(parameter.values)
    return replace(parameter, default=literal(default)) if usual else parameter


def _place(parameter: Parameter) -> int:
    """The place of a parameter among others: sizes, then names, then attributes, and last those with a default."""
    if parameter.default:
        return 3
    return 0 if parameter.word in SIZES else 1 if isinstance(parameter.values[0], str) else 2


# names


def _of_words(function: Function, words: Sequence[str]) -> str:
    """A name that says what is computed. That of one operator is taken: with weights it is its layer."""
    name = re.sub(r"\W", "_", "_".join(words))
    if name not in RESERVED:
        return name
    return f"{name}_layer" if any(True for _ in weights_of(function)) else f"{name}_part"


def _called(function: Function) -> str:
    """A name after what the weights are called that a function reads."""
    keys = [weight.keys for weight in weights_of(function)]
    if keys and all(map(constant, keys)):
        word = common_word([re.split(r"[./]", key[0])[0] for key in keys])
        return f"{word}_step" if word else "step"
    heads = {name: None for key in keys if not constant(key) for name in head(key)[0]}
    found = common_word(_shortest(list(heads)))
    if found in PARTS:
        return "step" if any(map(constant, keys)) else "block"
    return found or ("block" if keys else "part")


def _shortest(names: list[str]) -> list[str]:
    """The names of which no other is the beginning: those of blocks, of all their layers' names."""
    ordered = sorted(names)
    found: list[str] = []
    for name in ordered:
        if not found or not name.startswith(found[-1]):
            found.append(name)
    return found


def _computed(body: Body, known: Mapping[Function, Written]) -> list[str]:
    """What a body computes, in words, step by step; an empty one for what has no word. A bias belongs to its product."""
    makers: dict[Value, Step] = {result: step for step in body.steps for result in step.results}
    words: list[str] = []
    for step in body.steps:
        if step.function is not None and step.function.rounds:
            continue
        if step.function is not None:
            words += known[step.function].words or [""]
        elif _is_bias(step, makers):
            words[-1] = "dense" if words[-1] == "matmul" else words[-1]
        else:
            words.append(word_of(step.op))
    return words


def _is_bias(step: Step, makers: Mapping[Value, Step]) -> bool:
    """Whether a step adds a weight to a product."""
    first = step.operands[0] if step.operands else None
    maker = makers.get(first) if isinstance(first, Value) else None
    product = maker is not None and isinstance(legalisation_of(maker.op), Matrix)
    return product and isinstance(legalisation_of(step.op), Arithmetic) and any(isinstance(each, Weight) for each in step.operands)
