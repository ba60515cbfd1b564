"""Functions as text: what each is called, what it takes, and its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpucc.ir.attributes import identity
from tpucc.ops import OPS, dequantizes, legalisation_of, quantizes
from tpucc.ops.opdef import Arithmetic, Matrix
from tpucc.source.lines import clearest
from tpucc.source.names import RESERVED, common_word, literal, unused, word_of
from tpucc.source.scope import SIZES, Parameter, Scope, scope_of
from tpucc.source.statics import Statics, Written
from tpucc.source.steps import Body, Leaf, Step, keys_of

SHORT = 3
"""Operators of a function that is called after them."""


def written(functions: Sequence[Body], params: Mapping[str, int], taken: set[str]) -> dict[Body, Written]:
    """The functions, each behind those that it calls, as text. `taken` are names that they can't have."""
    found: dict[Body, Written] = {}
    for function in functions:
        names = {*RESERVED, *taken, *(known.name for known in found.values())}
        name = unused(_called(function, found), names.__contains__)
        found[function] = _written(function, name, found, params, {*names, name})
    return found


def _written(body: Body, name: str, known: Mapping[Body, Written], params: Mapping[str, int], taken: set[str]) -> Written:
    entries: list[str] = []
    for place, entry in enumerate(body.entries):
        is_state = place in body.carried.values() and len(body.entries) > 1
        entries.append(unused(entry.hint or ("h" if is_state else "x"), {*taken, *entries}.__contains__))
    sizes = {
        f"{entry}.shape[{-1 if axis == len(value.shapes[0]) - 1 else axis}]": of_axis
        for entry, value in zip(entries, body.entries, strict=True)
        for axis, of_axis in reversed(list(enumerate(zip(*value.shapes, strict=True))))
    }
    scope = Scope(params, sizes, taken={*taken, *entries})
    lines = clearest(body, Statics(body, scope, entries, known))
    parameters = sorted((_with_default(each) for each in scope.parameters), key=_place)
    formals = (f"{each.name}={each.default}" if each.default else each.name for each in parameters)
    return Written(name, (*entries, *formals), tuple(lines), tuple(parameters))


def _with_default(parameter: Parameter) -> Parameter:
    """The parameter with the value that most calls give it as its default, if it is an attribute of an operator that has a default, too.
    Each call gives the zero point of a scale, so that calls look alike."""
    usual, times = Counter(map(identity, parameter.values)).most_common(1)[0]
    if isinstance(parameter.values[0], float) or parameter.word in ("name", "zero_point", *SIZES[:3]) or 2 * times <= len(parameter.values):
        return parameter
    return replace(parameter, default=literal(next(value for value in parameter.values if identity(value) == usual)))


def _place(parameter: Parameter) -> int:
    """The place of a parameter among others: sizes, then names, then attributes, and last those with a default."""
    return 3 if parameter.default else 0 if parameter.word in SIZES else 1 if parameter.word == "name" else 2


# what a function is called


def _called(function: Body, known: Mapping[Body, Written]) -> str:
    """A name after the few operators of a function, or else after what the model calls its weights."""
    words = list(_words(function.steps, known))
    if len(words) <= SHORT and sum(_is_layer(step) for step in function.steps) <= 1:
        name = "_".join(words)
        return name if name not in RESERVED else f"{name}_layer"
    keys = ([key for step in function.steps for key in keys_of(step, place)] for place in range(function.environments))
    scopes = list(map(scope_of, filter(None, keys)))
    word = common_word(scopes)
    if function.carried and len(function.entries) > 1 and len(set(scopes)) == 1:
        return "_".join(filter(None, (word, "step")))
    return word or ("block" if scopes else "part")


def _is_layer(step: Step) -> bool:
    return step.function is not None or isinstance(legalisation_of(step.op), Matrix)


def _words(steps: Sequence[Step], known: Mapping[Body, Written]) -> Iterator[str]:
    """What steps compute, in words; a bias belongs to its product, and a value on a grid is `quantized`."""
    before = ""
    for step in steps:
        if step.function is not None:
            word = known[step.function].name
        elif isinstance(legalisation_of(step.op), Matrix) and OPS[step.op].facts.windows is None:
            word = "dense"
        else:
            word = "quantized" if dequantizes(step.op) else word_of(step.op)
        adds = isinstance(legalisation_of(step.op), Arithmetic) and any(
            isinstance(each, Leaf) and bool(each.keys) for each in step.operands
        )
        if not quantizes(step.op) and not (adds and isinstance(legalisation_of(before), Matrix)):
            yield word
        before = step.op
