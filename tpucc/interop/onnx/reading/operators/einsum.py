"""Einsum: a sum of products along named axes, two operands at a time from the left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from string import ascii_letters

from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported, require, shortened
from tpucc.interop.onnx.reading.operators.products import product
from tpucc.interop.onnx.reading.operators.reductions import reduced
from tpucc.interop.onnx.reading.operators.rows import operator


@dataclass(frozen=True, eq=False)
class Term:
    """A value, and a letter for each of its axes."""

    letters: str
    value: Value

    @property
    def sizes(self) -> Mapping[str, int]:
        return dict(zip(self.letters, self.value.shape, strict=True))


@operator("Einsum")
def einsum(c: Call, *values: Value, equation: str) -> Result:
    net = c.net
    words, result = _words(equation, values)
    terms = _broadcast([Term(word, value) for word, value in zip(words, values, strict=True)])
    found = terms[0]
    for index, term in enumerate(terms[1:], 2):
        needed = {*result}.union(*(later.letters for later in terms[index:]))
        left, right = _summed(net, found, needed | {*term.letters}), _summed(net, term, needed | {*found.letters})
        found = _contracted(net, left, right, needed)
    found = _summed(net, found, {*result})
    made = net.tensor(found.value)
    return Tensor(made.node, tuple(made.axes[found.letters.index(letter)] for letter in result))


def _words(equation: str, values: Sequence[Value]) -> tuple[list[str], str]:
    """The letters of the operands and of the result. Three dots are the axes that have no letter, the last one first; they get letters that
    the equation doesn't use. Without an arrow the result has the letters that stand once. Raises `Misfit` for an equation of other
    operands, and for axes of one letter with several sizes."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    words = given.split(",")
    require(len(words) == len(values) and {*result.replace("...", "")} <= {*given})
    free = "".join(letter for letter in ascii_letters if letter not in equation)
    dots = [len(value.shape) - len(word.replace("...", "")) for word, value in zip(words, values, strict=True)]
    require(all(count == 0 or (count > 0 and "..." in word) for word, count in zip(words, dots, strict=True)))
    named = [word.replace("...", free[most - count : most]) for most in [max(dots)] for word, count in zip(words, dots, strict=True)]
    sizes: dict[str, set[int]] = {}
    for word, value in zip(named, values, strict=True):
        for letter, size in zip(word, value.shape, strict=True):
            sizes.setdefault(letter, set()).add(size)
    require(all(len(found - {1}) < 2 for found in sizes.values()))
    if not arrow:
        result = "..." * ("..." in given) + "".join(sorted(letter for letter in {*given} - {*".,"} if given.count(letter) == 1))
    result = result.replace("...", free[: max(dots)])
    if any(len({*word}) < len(word) for word in (*named, result)) or not {*result} <= {*"".join(named)} <= {*ascii_letters}:
        raise Unsupported(f"the equation {shortened(equation)}", "each axis of an operand needs a letter of its own; diagonals aren't read")
    return named, result


def _broadcast(terms: Sequence[Term]) -> list[Term]:
    """Without the axes of size 1 that are longer in another operand: there each value counts for all places."""
    sizes: dict[str, int] = {}
    for term in terms:
        sizes |= {letter: size for letter, size in term.sizes.items() if size > sizes.get(letter, 0)}
    return [_without(term, [letter for letter, size in term.sizes.items() if size == 1 < sizes[letter]]) for term in terms]


def _without(term: Term, letters: Sequence[str]) -> Term:
    """Without these axes, which have size 1."""
    gone = [term.letters.index(letter) for letter in letters]
    rest = "".join(letter for letter in term.letters if letter not in letters)
    if isinstance(term.value, Static):
        return Term(rest, Static(term.value.array.squeeze(tuple(gone)), term.value.name))
    axes = tuple(parts for axis, parts in enumerate(term.value.axes) if axis not in gone)
    return Term(rest, Tensor(term.value.node, axes, term.value.kind))


def _summed(net: Network, term: Term, needed: AbstractSet[str]) -> Term:
    """The sum along the axes whose letters nothing needs any more."""
    gone = [axis for axis, letter in enumerate(term.letters) if letter not in needed]
    if not gone:
        return term
    rest = "".join(letter for letter in term.letters if letter in needed)
    if isinstance(term.value, Static):
        return Term(rest, Static(term.value.array.sum(axis=tuple(gone)), term.value.name))
    return Term(rest, reduced(net, "sum", term.value, gone, False))


def _contracted(net: Network, a: Term, b: Term, needed: AbstractSet[str]) -> Term:
    """The products, summed over the letters that both have and nothing else needs. Each other letter is needed."""
    both = [letter for letter in a.letters if letter in b.letters]
    batch, summed = [letter for letter in both if letter in needed], [letter for letter in both if letter not in needed]
    left, right = ([letter for letter in term.letters if letter not in both] for term in (a, b))
    order = [*batch, *left, *right]
    if not summed:
        return Term("".join(order), net.elementwise("mul", _spread(a, order), _spread(b, order)))
    sizes = {**a.sizes, **b.sizes}
    made = product(net, _grouped(net, a, (batch, left, summed)), _grouped(net, b, (batch, summed, right)))
    return Term("".join(order), net.reshaped(made, [sizes[letter] for letter in order]))


def _spread(term: Term, order: Sequence[str]) -> Value:
    """The operand with axes of these letters, size 1 for those that it lacks."""
    sizes, has = term.sizes, [letter for letter in order if letter in term.letters]
    if isinstance(term.value, Static):
        moved = term.value.array.transpose([term.letters.index(letter) for letter in has])
        return Static(moved.reshape([sizes.get(letter, 1) for letter in order]), term.value.name)
    axes = dict(zip(term.letters, term.value.axes, strict=True))
    return Tensor(term.value.node, tuple(axes.get(letter, ()) for letter in order), term.value.kind)


def _grouped(net: Network, term: Term, to: Sequence[Sequence[str]]) -> Value:
    """An operand with its batch axes as they are, and the other two groups of letters joined to one axis each."""
    order = [term.letters.index(letter) for group in to for letter in group]
    sizes, value = term.sizes, term.value
    shape = [*(sizes[letter] for letter in to[0]), *(math.prod(sizes[letter] for letter in group) for group in to[1:])]
    if isinstance(value, Static):
        return Static(value.array.transpose(order).reshape(shape), value.name)
    return net.reshaped(Tensor(value.node, tuple(value.axes[axis] for axis in order), value.kind), shape)
