"""Einsum: a sum of products along named axes, two operands at a time from the left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from string import ascii_letters

from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Value
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
    terms = _broadcast(net, [Term(word, value) for word, value in zip(words, values, strict=True)])
    found = terms[0]
    for index, term in enumerate(terms[1:], 2):
        needed = {*result}.union(*(later.letters for later in terms[index:]))
        left, right = _summed(net, found, needed | {*term.letters}), _summed(net, term, needed | {*found.letters})
        found = _contracted(net, left, right, needed)
    found = _summed(net, found, {*result})
    return found.value.turned([found.letters.index(letter) for letter in result])


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


def _broadcast(net: Network, terms: Sequence[Term]) -> list[Term]:
    """Without the axes of size 1 that are longer in another operand: there each value counts for all places."""
    sizes: dict[str, int] = {}
    for term in terms:
        sizes |= {letter: size for letter, size in term.sizes.items() if size > sizes.get(letter, 0)}
    words = ("".join(letter for letter, size in term.sizes.items() if size == sizes[letter]) for term in terms)
    return [Term(word, net.reshaped(term.value, [term.sizes[letter] for letter in word])) for word, term in zip(words, terms, strict=True)]


def _summed(net: Network, term: Term, needed: AbstractSet[str]) -> Term:
    """The sum along the axes whose letters nothing needs any more."""
    gone = [axis for axis, letter in enumerate(term.letters) if letter not in needed]
    if not gone:
        return term
    rest = "".join(letter for letter in term.letters if letter in needed)
    return Term(rest, reduced(net, "sum", net.tensor(term.value), gone, False))


def _contracted(net: Network, a: Term, b: Term, needed: AbstractSet[str]) -> Term:
    """The products, summed over the letters that both have and nothing else needs. Each other letter is needed."""
    both = [letter for letter in a.letters if letter in b.letters]
    batch, summed = [letter for letter in both if letter in needed], [letter for letter in both if letter not in needed]
    left, right = ([letter for letter in term.letters if letter not in both] for term in (a, b))
    order = [*batch, *left, *right]
    if not summed:
        return Term("".join(order), net.elementwise("mul", _spread(net, a, order), _spread(net, b, order)))
    sizes = {**a.sizes, **b.sizes}
    made = product(net, _grouped(net, a, (batch, left, summed)), _grouped(net, b, (batch, summed, right)))
    return Term("".join(order), net.reshaped(made, [sizes[letter] for letter in order]))


def _spread(net: Network, term: Term, order: Sequence[str]) -> Value:
    """The operand with axes of these letters, size 1 for those that it lacks."""
    moved = term.value.turned([term.letters.index(letter) for letter in order if letter in term.letters])
    return net.reshaped(moved, [term.sizes.get(letter, 1) for letter in order])


def _grouped(net: Network, term: Term, to: Sequence[Sequence[str]]) -> Value:
    """An operand with its batch axes as they are, and the other two groups of letters joined to one axis each."""
    order = [term.letters.index(letter) for group in to for letter in group]
    sizes = term.sizes
    shape = [*(sizes[letter] for letter in to[0]), *(math.prod(sizes[letter] for letter in group) for group in to[1:])]
    return net.reshaped(term.value.turned(order), shape)
